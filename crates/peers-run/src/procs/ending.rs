//! Waiting for the end of a child without reaping it, and for a point of the boot-time clock.

use std::time::Duration;

use peers_model::Mono;
use peers_sys::clock;
use peers_sys::spawn::{Child, RawExit};
#[cfg(target_os = "linux")]
use {std::os::fd::OwnedFd, tokio::io::Interest, tokio::io::unix::AsyncFd};

/// Between two looks where nothing can be waited on.
const POLL: Duration = Duration::from_millis(20);
/// The timer of the runtime stands still while the machine is suspended; the clock does not.
const LONGEST_SLEEP: Duration = Duration::from_secs(2);
/// A wake-up later than this was no busy machine: it slept, or we were stopped.
const LATE: Duration = Duration::from_secs(5);

/// Tells when a child has ended.
#[derive(Debug)]
pub(super) struct Ending {
    #[cfg(target_os = "linux")]
    pidfd: Option<AsyncFd<OwnedFd>>,
}

impl Ending {
    #[cfg(target_os = "linux")]
    #[expect(
        deprecated,
        reason = "its replacement is an unsafe function; this one is unsound only for a type that gives away or \
                  closes its descriptor, which `OwnedFd` cannot while it is owned here"
    )]
    pub(super) fn of(child: &Child) -> Self {
        let pidfd = child.pidfd().try_clone_to_owned();
        Self { pidfd: pidfd.and_then(|fd| AsyncFd::with_interest(fd, Interest::READABLE)).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_child: &Child) -> Self {
        Self {}
    }

    /// Comes back when the child has ended, or a little later to have a look. Cancel-safe.
    pub(super) async fn look(&self) {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &self.pidfd
            && pidfd.readable().await.is_ok()
        {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What is known of the end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It has not ended, as far as was seen.
    Unseen,
    /// It has ended, and somebody else took its exit.
    Lost,
    /// It has ended like this.
    Seen(RawExit),
}

impl Exit {
    /// Has a look at a child, which stays a zombie.
    pub(super) fn look(child: &mut Child) -> Self {
        match child.exited_nowait() {
            Ok(None) => Self::Unseen,
            Ok(Some(exit)) => Self::Seen(exit),
            Err(error) => {
                tracing::error!(%error, "the exit of a child was lost");
                Self::Lost
            }
        }
    }

    /// How it ended, if that is known.
    pub(super) fn raw(self) -> Option<RawExit> {
        match self {
            Self::Seen(exit) => Some(exit),
            Self::Unseen | Self::Lost => None,
        }
    }
}

/// How a wait went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// As planned; the time may not have come yet.
    InTime,
    /// Much later than planned.
    Late(Duration),
}

/// Sleeps until `deadline`, but comes back earlier from a long sleep. Cancel-safe.
pub(super) async fn doze(deadline: Mono) -> Woken {
    let from = clock::mono();
    let planned = deadline.since(from).min(LONGEST_SLEEP);
    tokio::time::sleep(planned).await;
    Woken::at(clock::mono(), from.plus(planned))
}

impl Woken {
    /// A little late is a busy machine; much later, machine or process slept, and nobody could be heard.
    fn at(now: Mono, planned: Mono) -> Self {
        let late = now.since(planned);
        if late > LATE { Self::Late(late) } else { Self::InTime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wakes_much_later_than_planned_slept_through_it() {
        let at = Mono::from_millis;
        for (now, slept) in [
            (60_000, None),
            (59_000, None),
            (65_000, None),
            (65_001, Some(5_001)),
            (3_660_000, Some(3_600_000)),
        ] {
            let woken = match Woken::at(at(now), at(60_000)) {
                Woken::InTime => None,
                Woken::Late(late) => Some(u64::try_from(late.as_millis()).unwrap()),
            };
            assert_eq!(woken, slept, "planned at 60 s, woken at {now} ms");
        }
    }
}
