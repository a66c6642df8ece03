//! Signals: what the operator asks for by them.

use std::io;
use std::time::Duration;

use peers_core::machine::StopRequest;
use peers_model::Mono;
use peers_sys::clock;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A second signal within this time means "now".
const IMPATIENCE: Duration = Duration::from_secs(10);

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGTERM: i32 = 15;
/// A file would be larger than the limit on files. Unhandled it ends the process; handled, the write fails.
const SIGXFSZ: i32 = 25;

/// What signals ask for. The first asks for an end, a second one soon after it for one at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    asked: Option<Mono>,
}

impl Patience {
    /// What a signal that ends programs asks for.
    pub fn on_signal(&mut self, signal: i32, now: Mono) -> StopRequest {
        let again = self.asked.is_some_and(|asked| now.since(asked) <= IMPATIENCE);
        self.asked = Some(now);
        if again { StopRequest::Now(signal) } else { StopRequest::Graceful(signal) }
    }
}

/// The signals of this process. SIGPIPE is ignored by the standard library already.
#[derive(Debug)]
pub struct Signals {
    hup: Signal,
    int: Signal,
    quit: Signal,
    term: Signal,
    usr1: Signal,
    /// Held, so that a write beyond a limit is an error and no death.
    _too_large: Signal,
    patience: Patience,
}

impl Signals {
    /// Takes over SIGHUP, SIGINT, SIGQUIT, SIGTERM and SIGUSR1. Inside a runtime with I/O.
    ///
    /// # Errors
    /// When a handler cannot be set.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            term: signal(SignalKind::terminate())?,
            usr1: signal(SignalKind::user_defined1())?,
            _too_large: signal(SignalKind::from_raw(SIGXFSZ))?,
            patience: Patience::default(),
        })
    }

    /// The next request. Cancel-safe.
    pub async fn next(&mut self) -> StopRequest {
        let number = tokio::select! {
            // `stop --now` sends SIGTERM and SIGINT; the first names the exit.
            biased;
            _ = self.term.recv() => SIGTERM,
            _ = self.hup.recv() => SIGHUP,
            _ = self.int.recv() => SIGINT,
            _ = self.quit.recv() => SIGQUIT,
            _ = self.usr1.recv() => return StopRequest::AfterTick,
        };
        self.patience.on_signal(number, clock::mono())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Mono {
        Mono::from_millis(s * 1000)
    }

    #[test]
    fn the_first_signal_is_graceful_and_a_second_one_soon_after_is_not() {
        let mut patience = Patience::default();
        assert_eq!(patience.on_signal(SIGINT, at(100)), StopRequest::Graceful(SIGINT));
        assert_eq!(patience.on_signal(SIGTERM, at(105)), StopRequest::Now(SIGTERM));
    }

    #[test]
    fn a_late_second_signal_is_a_first_one_again() {
        let mut patience = Patience::default();
        assert_eq!(patience.on_signal(SIGHUP, at(100)), StopRequest::Graceful(SIGHUP));
        assert_eq!(patience.on_signal(SIGHUP, at(111)), StopRequest::Graceful(SIGHUP));
        assert_eq!(patience.on_signal(SIGQUIT, at(112)), StopRequest::Now(SIGQUIT));
    }
}
