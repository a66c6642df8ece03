//! Green answers that are kept, and those that will be once their tree is known to have stood still.

use std::cell::RefCell;
use std::collections::BTreeMap;

use peers_model::verdict::Judged;
use peers_model::{GoalId, Timestamp};
use peers_store::verdicts::{Pass, Verdicts};

/// In this process memory is the authority: the file is read once and written again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    verdicts: RefCell<Verdicts>,
    /// What the answers that are being found will be about.
    pending: RefCell<BTreeMap<GoalId, String>>,
}

impl Kept {
    pub(super) fn new(verdicts: Verdicts) -> Self {
        Self { verdicts: RefCell::new(verdicts), pending: RefCell::default() }
    }

    /// Drops everything.
    pub(super) fn forget(&self) {
        *self.verdicts.borrow_mut() = Verdicts::default();
    }

    /// Whether a green answer of `gate` about this is kept. If not, the next one will be about it.
    pub(super) fn look(&self, gate: &GoalId, about: String) -> bool {
        let found = self.verdicts.borrow().find(gate, &about).is_some();
        if found {
            self.pending.borrow_mut().remove(gate);
        } else {
            self.pending.borrow_mut().insert(gate.clone(), about);
        }
        found
    }

    /// Keeps the green ones of these verdicts. Nothing when there is nothing new.
    pub(super) fn stand(&self, verdicts: &[Judged], at: Timestamp) -> Option<Verdicts> {
        let mut pending = std::mem::take(&mut *self.pending.borrow_mut());
        let mut kept = self.verdicts.borrow_mut();
        let mut news = false;
        for judged in verdicts.iter().filter(|judged| judged.verdict.is_pass() && !judged.cached) {
            // One that was red first says nothing for sure about the next time.
            if judged.is_flaky() {
                continue;
            }
            let Some(about) = pending.remove(&judged.goal) else { continue };
            let gate = judged.goal.clone();
            kept.keep(Pass { gate, about, tree: judged.at.tree.clone(), at });
            news = true;
        }
        news.then(|| kept.clone())
    }
}

#[cfg(test)]
mod tests {
    use peers_model::verdict::{Place, TreeKey, Verdict};
    use peers_model::{CommitId, TreeId};

    use super::*;

    fn judged(verdict: Verdict) -> Judged {
        let at = TreeKey {
            head: CommitId::new("a".repeat(40)).unwrap(),
            tree: TreeId::new("b".repeat(40)).unwrap(),
        };
        Judged::new(GoalId::new("lint").unwrap(), at, Place::Live, verdict)
    }

    #[test]
    fn only_a_green_answer_that_stood_is_kept() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        assert!(!kept.look(&lint, "one".into()));
        assert_eq!(kept.stand(&[judged(Verdict::Fail { diagnostic: String::new() })], now), None);
        assert!(!kept.look(&lint, "one".into()));
        // The tree moved: nobody said that it stands, and what comes next is about something else.
        assert!(!kept.look(&lint, "two".into()));
        assert!(kept.stand(&[judged(Verdict::Pass)], now).is_some());
        assert!(kept.look(&lint, "two".into()));
        assert!(!kept.look(&lint, "one".into()));
    }

    #[test]
    fn a_kept_answer_is_not_kept_again() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        assert!(!kept.look(&lint, "one".into()));
        assert!(kept.stand(&[judged(Verdict::Pass)], now).is_some());
        assert!(kept.look(&lint, "one".into()));
        let cached = Judged { cached: true, ..judged(Verdict::Pass) };
        assert_eq!(kept.stand(&[cached], now), None);
    }
}
