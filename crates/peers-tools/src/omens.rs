//! Signs, while a child still runs, that waiting for its end is of no use.
//!
//! Some tools retry for minutes what only a person can mend, wait for as long as a service asks them to, or
//! spin on empty replies for ever. The child's own end would say the same, later.

use std::time::Duration;

use crate::event::{FailureKind, Retry, ToolEvent};
use crate::reset::words;

/// How many retries for the same hopeless reason are believed; one may be a hiccup.
const RETRIES: u32 = 2;
/// A child that waits longer than this before it tries again holds up whoever could work meanwhile.
const LONGEST_WAIT: Duration = Duration::from_mins(10);
/// How many model steps in a row may bring nothing.
const EMPTY_STEPS: u32 = 20;

/// A sign that a child will not get anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omen {
    /// What the child's own failure would be.
    pub kind: FailureKind,
    /// Why, in at most [`crate::event::WORDS_CHARS`] characters, secrets and all: for [`crate::brief`].
    pub text: String,
}

/// Watches the events of one child.
#[derive(Debug, Clone)]
pub struct Omens {
    /// Hopeless retries in a row.
    retries: u32,
    longest_wait: Duration,
}

impl Default for Omens {
    fn default() -> Self {
        Self::of_patience(Duration::MAX)
    }
}

impl Omens {
    /// For a child that is ended when it is silent for so long.
    #[must_use]
    pub fn of_patience(idle: Duration) -> Self {
        Self { retries: 0, longest_wait: LONGEST_WAIT.min(idle) }
    }

    /// Takes an event, in order. A row of failures gives its sign once; whatever gets the child further
    /// ends the row.
    pub fn feed(&mut self, event: &ToolEvent) -> Option<Omen> {
        match event {
            ToolEvent::RetryNotice(Retry { delay: Some(delay), kind, text, .. })
                if *delay >= self.longest_wait =>
            {
                let why = if text.is_empty() { kind.as_str() } else { text };
                let text = words(&format!("waits {} s before it tries again: {why}", delay.as_secs()));
                // It is worth another attempt then, and not before.
                let wait = FailureKind::RateLimit { retry_after: Some(*delay) };
                Some(Omen { kind: if kind.halts() { *kind } else { wait }, text })
            }
            ToolEvent::RetryNotice(retry) if retry.kind.halts() => {
                self.retries = self.retries.saturating_add(1);
                (self.retries == RETRIES).then(|| {
                    let why = if retry.text.is_empty() { retry.kind.as_str() } else { &retry.text };
                    let text = words(&format!("tried {RETRIES} times in a row in vain: {why}"));
                    Omen { kind: retry.kind, text }
                })
            }
            ToolEvent::EmptyStep { in_a_row } => (*in_a_row == EMPTY_STEPS).then(|| Omen {
                // A service that answers with nothing is broken, and may be mended later.
                kind: FailureKind::Overload,
                text: format!("{in_a_row} model steps in a row brought neither text nor a tool call"),
            }),
            // Another fault in between: the provider is in trouble, which can pass.
            ToolEvent::RetryNotice(_)
            | ToolEvent::Text(_)
            | ToolEvent::ToolBegun { .. }
            | ToolEvent::ToolEnded { .. }
            | ToolEvent::Usage(_)
            | ToolEvent::Final { ok: true, .. } => {
                self.retries = 0;
                None
            }
            ToolEvent::Activity
            | ToolEvent::PlanWindow { .. }
            | ToolEvent::Failure(_)
            | ToolEvent::Final { ok: false, .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::UsageDelta;

    fn retry(kind: FailureKind) -> ToolEvent {
        ToolEvent::RetryNotice(Retry { attempt: 1, of: 10, delay: None, kind, text: "why".to_owned() })
    }

    fn omens(events: &[ToolEvent]) -> Vec<Option<FailureKind>> {
        let mut omens = Omens::default();
        events.iter().map(|event| omens.feed(event).map(|omen| omen.kind)).collect()
    }

    #[test]
    fn the_second_hopeless_retry_is_an_omen_and_the_third_says_it_not_again() {
        for kind in [FailureKind::Auth, FailureKind::Quota, FailureKind::UsageCap { resets_at: Some(5) }] {
            let events = [retry(kind), ToolEvent::Activity, retry(kind), retry(kind)];
            assert_eq!(omens(&events), [None, None, Some(kind), None]);
        }
        let mut omens = Omens::default();
        omens.feed(&retry(FailureKind::Auth));
        let omen = omens.feed(&retry(FailureKind::Auth)).expect("the second");
        assert_eq!(omen.text, "tried 2 times in a row in vain: why");
    }

    #[test]
    fn progress_and_other_faults_begin_a_new_row() {
        let begun = ToolEvent::ToolBegun { name: "Bash".to_owned(), id: "1".to_owned() };
        let ended = ToolEvent::ToolEnded { id: "1".to_owned(), is_error: true };
        let spent = ToolEvent::Usage(UsageDelta::default());
        for between in [ToolEvent::Text("x".to_owned()), begun, ended, spent, retry(FailureKind::Overload)] {
            let events = [retry(FailureKind::Auth), between, retry(FailureKind::Auth)];
            assert_eq!(omens(&events), [None; 3]);
        }
        let auth = || retry(FailureKind::Auth);
        let again = [auth(), auth(), ToolEvent::Text("x".to_owned()), auth(), auth()];
        let omen = Some(FailureKind::Auth);
        assert_eq!(omens(&again), [None, omen, None, None, omen]);
    }

    #[test]
    fn a_transient_retry_is_no_omen() {
        for kind in [FailureKind::Overload, FailureKind::RateLimit { retry_after: None }, FailureKind::Other]
        {
            assert_eq!(omens(&[retry(kind), retry(kind), retry(kind)]), [None; 3]);
        }
    }

    #[test]
    fn a_wait_that_is_too_long_for_a_turn_is_an_omen_at_once() {
        let told = |mut omens: Omens, kind, seconds| {
            let delay = Some(Duration::from_secs(seconds));
            let event = Retry { attempt: 1, of: 10, delay, kind, text: "why".to_owned() };
            omens.feed(&ToolEvent::RetryNotice(event)).map(|omen| (omen.kind, omen.text))
        };
        let wait = |seconds| FailureKind::RateLimit { retry_after: Some(Duration::from_secs(seconds)) };
        let limit = FailureKind::RateLimit { retry_after: None };
        assert_eq!(told(Omens::default(), limit, 599), None);
        for kind in [limit, FailureKind::Overload] {
            let text = "waits 600 s before it tries again: why".to_owned();
            assert_eq!(told(Omens::default(), kind, 600), Some((wait(600), text)));
        }
        let cap = FailureKind::UsageCap { resets_at: Some(5) };
        assert_eq!(told(Omens::default(), cap, 7200).map(|(kind, _)| kind), Some(cap));
        // Whoever is ended for its silence before does not come to the end of the wait.
        let short = || Omens::of_patience(Duration::from_secs(40));
        assert_eq!(told(short(), limit, 39), None);
        assert_eq!(told(short(), limit, 40).map(|(kind, _)| kind), Some(wait(40)));
    }

    #[test]
    fn twenty_empty_steps_are_an_omen_once() {
        let events: Vec<_> = (1..=30).map(|in_a_row| ToolEvent::EmptyStep { in_a_row }).collect();
        let told: Vec<_> =
            omens(&events).iter().enumerate().filter_map(|(at, omen)| omen.map(|_| at)).collect();
        assert_eq!(told, [19]);
    }
}
