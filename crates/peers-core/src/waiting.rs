//! How long a peer waits whose service refuses it, and when that is too long.
//!
//! A rate limit passes within minutes: the wait that the service names, else a growing one. A usage cap
//! passes when the subscription's window opens again, often hours later: asking before is of no use. Both
//! are bounded by what the operator allows (`rate_limit_max_wait_s`): the waits since the first refusal
//! add up. The bound is about a loop that stands still: a peer may wait longer where two others go on. Turns of others in between, and the time while no loop runs, are no waits.

use std::time::Duration;

use peers_model::outcome::{ApiClass, PeerExit};
use peers_model::record::{Cooling, WaitCause};
use peers_model::{PeerName, TickNo, Timestamp};

use crate::state::State;

/// Waits after 1, 2, 3, 4 and more rate limits in a row that name no time, seconds.
const BACKOFF_S: [u64; 4] = [15, 30, 60, 120];
/// Waits after 1, 2, 3 and more usage caps in a row whose end nobody names, seconds.
const CAP_BACKOFF_S: [u64; 3] = [900, 1800, 3600];
/// No refusal is followed by a shorter wait, whatever the service names; the second in a row and later ones
/// by none shorter than the table of rate limits says for the one before.
const LEAST_S: u64 = 2;
/// Most that is added to a time that the service named.
const LATER: Duration = Duration::from_mins(1);

/// What follows a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The peer waits.
    Until(Cooling),
    /// It would wait longer than the operator allows for the run to stand still.
    TooLong {
        /// Why, for people.
        why: String,
        /// How it waits where others go on without it.
        cooling: Cooling,
    },
}

/// What follows a refusal in tick `tick` of `peer` that ended at `now`. `run` varies the waits of
/// loops that were refused at the same moment.
#[must_use]
pub fn after(
    state: &State,
    peer: &PeerName,
    (tick, run): (TickNo, &str),
    exit: &PeerExit,
    most: Duration,
    now: Timestamp,
) -> Wait {
    let health = state.health(peer);
    let cause = if exit.api == ApiClass::UsageCap { WaitCause::UsageCap } else { WaitCause::RateLimit };
    let streak = health.rate_limit_streak.saturating_add(1);
    let since = health.limited_since.unwrap_or(now);
    let share = share(&format!("{run} {tick} {peer}"));
    let named = exit
        .resets_at
        .filter(|_| cause == WaitCause::UsageCap)
        .map(|at| at.since(now))
        .or_else(|| exit.retry_after_s.map(Duration::from_secs));
    let wait = if let Some(named) = named {
        // Not before the time that was named, and not all at that very moment.
        let later = named.saturating_add((named / 10).min(LATER).mul_f64(share));
        later.max(Duration::from_secs(least(streak)))
    } else {
        let table: &[u64] = if cause == WaitCause::UsageCap { &CAP_BACKOFF_S } else { &BACKOFF_S };
        let at = usize::try_from(streak - 1).unwrap_or(usize::MAX).min(table.len() - 1);
        let about = Duration::from_secs(table.get(at).copied().unwrap_or(120));
        about.mul_f64(0.8 + 0.4 * share)
    };
    let left = most.saturating_sub(Duration::from_millis(health.waited_ms));
    if named.unwrap_or_default() > left || left.is_zero() {
        let word = cause.word();
        let cooling =
            Cooling { peer: peer.clone(), until: now.plus(wait), streak, cause, since: Some(since) };
        let why = match exit.resets_at.filter(|_| cause == WaitCause::UsageCap) {
            Some(at) => format!("its {word} lasts until {at}, longer than `rate_limit_max_wait_s` allows"),
            None => format!(
                "its service has refused it since {since} ({word}), as long as `rate_limit_max_wait_s` allows"
            ),
        };
        return Wait::TooLong { why, cooling };
    }
    // The last attempt comes when the time is over, not after it.
    let until = now.plus(if named.is_some() { wait } else { wait.min(left) });
    Wait::Until(Cooling { peer: peer.clone(), until, streak, cause, since: Some(since) })
}

/// Seconds that a wait lasts at least after so many refusals in a row.
fn least(streak: u32) -> u64 {
    let before = usize::try_from(streak).unwrap_or(usize::MAX).checked_sub(2);
    before.map_or(LEAST_S, |at| BACKOFF_S.get(at.min(BACKOFF_S.len() - 1)).copied().unwrap_or(LEAST_S))
}

/// A number from 0 to 1, the same for the same text: loops that were refused together come back apart.
fn share(text: &str) -> f64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    // The upper half of the hash varies most.
    let upper = u32::try_from(hash >> 32).unwrap_or_default();
    f64::from(upper) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use peers_model::outcome::ExitClass;

    use super::*;

    const HOUR: u64 = 3600;

    fn exit(api: ApiClass) -> PeerExit {
        PeerExit { class: ExitClass::Nonzero, api, ..PeerExit::interrupted(0) }
    }

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_secs(s))
    }

    fn ask(state: &State, exit: &PeerExit, now: u64) -> Wait {
        let peer = PeerName::new("ann").unwrap();
        after(state, &peer, (TickNo(1), "run"), exit, Duration::from_secs(6 * HOUR), at(now))
    }

    fn waits(state: &State, exit: &PeerExit, now: u64) -> u64 {
        match ask(state, exit, now) {
            Wait::Until(cooling) => cooling.until.since(at(now)).as_secs(),
            Wait::TooLong { why, .. } => panic!("{why}"),
        }
    }

    fn refused(times: u32, waited: u64) -> State {
        let mut state = State::new();
        let health = state.peers.entry(PeerName::new("ann").unwrap()).or_default();
        health.rate_limit_streak = times;
        health.limited_since = Some(at(0));
        health.waited_ms = waited * 1000;
        state
    }

    #[test]
    fn without_a_named_time_waits_grow_and_vary_by_a_fifth() {
        for (times, about) in [(0, 15), (1, 30), (2, 60), (3, 120), (9, 120)] {
            let waited = waits(&refused(times, 0), &exit(ApiClass::Transient), 0);
            assert!((about * 8 / 10..=about * 12 / 10).contains(&waited), "{times}: {waited}");
        }
        for (times, about) in [(0, 900), (1, 1800), (2, 3600), (9, 3600)] {
            let waited = waits(&refused(times, 0), &exit(ApiClass::UsageCap), 0);
            assert!((about * 8 / 10..=about * 12 / 10).contains(&waited), "{times}: {waited}");
        }
    }

    #[test]
    fn a_named_time_is_kept_and_never_cut_short() {
        let asked = PeerExit { retry_after_s: Some(100), ..exit(ApiClass::Transient) };
        assert!((100..=110).contains(&waits(&State::new(), &asked, 0)));
        let capped = PeerExit { resets_at: Some(at(2 * HOUR)), ..exit(ApiClass::UsageCap) };
        assert!((2 * HOUR..=2 * HOUR + 60).contains(&waits(&State::new(), &capped, 0)));
        // Already open again: soon.
        assert_eq!(waits(&State::new(), &capped, 3 * HOUR), 2);
    }

    #[test]
    fn a_service_that_names_no_wait_at_all_again_and_again_is_not_asked_without_a_break() {
        let at_once = PeerExit { retry_after_s: Some(0), ..exit(ApiClass::Transient) };
        for (times, wait) in [(0, 2), (1, 15), (2, 30), (3, 60), (4, 120), (99, 120)] {
            assert_eq!(waits(&refused(times, 0), &at_once, 0), wait, "{times}");
        }
    }

    #[test]
    fn two_peers_that_are_refused_together_do_not_come_back_together() {
        let wait = |name: &str| {
            let peer = PeerName::new(name).unwrap();
            after(
                &State::new(),
                &peer,
                (TickNo(1), "run"),
                &exit(ApiClass::Transient),
                Duration::from_hours(6),
                at(0),
            )
        };
        let (Wait::Until(ann), Wait::Until(bob)) = (wait("ann"), wait("bob")) else { panic!("too long") };
        assert_ne!(ann.until, bob.until);
    }

    #[test]
    fn what_lasts_longer_than_allowed_is_too_long_at_once_or_when_the_time_is_over() {
        let capped = PeerExit { resets_at: Some(at(7 * HOUR)), ..exit(ApiClass::UsageCap) };
        let Wait::TooLong { why, cooling } = ask(&State::new(), &capped, 0) else { panic!("waits") };
        assert!(why.contains("usage cap lasts until 1970-01-01T07:00:00"), "{why}");
        assert!((7 * HOUR..=7 * HOUR + 60).contains(&cooling.until.since(at(0)).as_secs()), "{cooling:?}");
        let limited = exit(ApiClass::Transient);
        assert_eq!(waits(&refused(99, 6 * HOUR - 5), &limited, 7 * HOUR), 5, "one last attempt");
        assert_eq!(
            waits(&refused(99, HOUR), &limited, 99 * HOUR) / 60,
            waits(&refused(99, 0), &limited, 0) / 60,
            "only waits count"
        );
        let Wait::TooLong { why, .. } = ask(&refused(99, 6 * HOUR), &limited, 6 * HOUR) else {
            panic!("waits")
        };
        assert!(why.contains("rate limit"), "{why}");
    }
}
