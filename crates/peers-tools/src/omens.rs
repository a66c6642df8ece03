//! Signs, while a child still runs, that waiting for its end is of no use.
//!
//! Some tools retry for minutes what only a person can mend, or spin on empty replies for ever. The
//! child's own end would say the same, later.

use crate::event::{FailureKind, ToolEvent};
use crate::reset::brief;

/// How many retries for the same hopeless reason are believed; one may be a hiccup.
const RETRIES: u32 = 2;
/// How many model steps in a row may bring nothing.
const EMPTY_STEPS: u32 = 20;

/// A sign that a child will not get anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omen {
    /// What the child's own failure would be.
    pub kind: FailureKind,
    /// Why, on one line of at most [`crate::event::FAILURE_CHARS`] characters.
    pub text: String,
}

/// Watches the events of one child.
#[derive(Debug, Clone, Default)]
pub struct Omens {
    /// Hopeless retries in a row.
    retries: u32,
}

impl Omens {
    /// Takes an event, in order. A row of failures gives its sign once; whatever gets the child further
    /// ends the row.
    pub fn feed(&mut self, event: &ToolEvent) -> Option<Omen> {
        match event {
            ToolEvent::RetryNotice(retry) if retry.kind.halts() => {
                self.retries = self.retries.saturating_add(1);
                (self.retries == RETRIES).then(|| {
                    let why = if retry.text.is_empty() { retry.kind.as_str() } else { &retry.text };
                    let text = brief(&format!("tried {RETRIES} times in a row in vain: {why}"));
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
    use crate::event::{Retry, UsageDelta};

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
    fn twenty_empty_steps_are_an_omen_once() {
        let events: Vec<_> = (1..=30).map(|in_a_row| ToolEvent::EmptyStep { in_a_row }).collect();
        let told: Vec<_> =
            omens(&events).iter().enumerate().filter_map(|(at, omen)| omen.map(|_| at)).collect();
        assert_eq!(told, [19]);
    }
}
