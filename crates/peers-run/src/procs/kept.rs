//! Green answers that are kept, and those that will be once their tree is known to have stood still.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use peers_model::verdict::Judged;
use peers_model::{GoalId, Timestamp};
use peers_store::verdicts::{Pass, Verdicts};
use peers_sys::digest::sha256_hex;

use super::ground;

/// What a green answer is worth beyond this process, besides what it is known to be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Worth {
    /// It is kept as it is.
    Keeping,
    /// It is one about the work tree: files that git does not see are part of what it is about, those of these
    /// globs alone where there are some.
    With(Vec<String>),
    /// It is not kept: what earlier commits or gates left took part in it. A kept one is as good as ever.
    Nothing,
}

/// In this process memory is the authority: the file is read once and written again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    verdicts: RefCell<Verdicts>,
    /// What the answers that are being found will be about.
    pending: RefCell<BTreeMap<GoalId, (String, Worth)>>,
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
    pub(super) fn look(&self, gate: &GoalId, about: &str, worth: &Worth, work_dir: &Path) -> bool {
        // A look at every file is spared where nothing is kept of the gate.
        let known = self.verdicts.borrow().has(gate);
        let found = known
            && whole(about, worth, work_dir)
                .is_some_and(|about| self.verdicts.borrow().find(gate, &about).is_some());
        if found {
            self.pending.borrow_mut().remove(gate);
        } else {
            self.pending.borrow_mut().insert(gate.clone(), (about.to_owned(), worth.clone()));
        }
        found
    }

    /// Keeps the green ones of these verdicts. Nothing when there is nothing new.
    pub(super) fn stand(&self, verdicts: &[Judged], at: Timestamp, work_dir: &Path) -> Option<Verdicts> {
        let mut pending = std::mem::take(&mut *self.pending.borrow_mut());
        let mut kept = self.verdicts.borrow_mut();
        let mut news = false;
        for judged in verdicts.iter().filter(|judged| judged.verdict.is_pass() && !judged.cached) {
            // One that was red first says nothing for sure about the next time.
            if judged.is_flaky() {
                continue;
            }
            let Some((about, worth)) = pending.remove(&judged.goal) else { continue };
            if worth == Worth::Nothing {
                continue;
            }
            let Some(about) = whole(&about, &worth, work_dir) else { continue };
            let gate = judged.goal.clone();
            kept.keep(Pass { gate, about, tree: judged.at.tree.clone(), at });
            news = true;
        }
        news.then(|| kept.clone())
    }
}

/// Everything that an answer is about; nothing where that cannot be told.
fn whole(about: &str, worth: &Worth, work_dir: &Path) -> Option<String> {
    match worth {
        Worth::Keeping | Worth::Nothing => Some(about.to_owned()),
        Worth::With(globs) => {
            let files = ground::digest(work_dir, globs)?;
            Some(sha256_hex(format!("{about} {files}").as_bytes()))
        }
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
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        assert_eq!(
            kept.stand(&[judged(Verdict::Fail { diagnostic: String::new() })], now, Path::new("/")),
            None
        );
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        // The tree moved: nobody said that it stands, and what comes next is about something else.
        assert!(!kept.look(&lint, "two", &Worth::Keeping, Path::new("/")));
        assert!(kept.stand(&[judged(Verdict::Pass)], now, Path::new("/")).is_some());
        assert!(kept.look(&lint, "two", &Worth::Keeping, Path::new("/")));
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
    }

    #[test]
    fn a_kept_answer_is_not_kept_again() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        assert!(kept.stand(&[judged(Verdict::Pass)], now, Path::new("/")).is_some());
        assert!(kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        let cached = Judged { cached: true, ..judged(Verdict::Pass) };
        assert_eq!(kept.stand(&[cached], now, Path::new("/")), None);
    }

    #[test]
    fn what_earlier_work_took_part_in_is_not_kept_and_takes_what_is() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let (now, at) = (Timestamp::from_millis(0), Path::new("/"));
        assert!(!kept.look(&lint, "one", &Worth::Nothing, at));
        assert_eq!(kept.stand(&[judged(Verdict::Pass)], now, at), None);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, at));
        assert!(kept.stand(&[judged(Verdict::Pass)], now, at).is_some());
        assert!(kept.look(&lint, "one", &Worth::Nothing, at));
    }

    #[test]
    fn an_answer_about_the_work_tree_is_about_files_that_git_ignores_too() {
        let tmp = tempfile::tempdir().unwrap();
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        let look = |globs: &[&str]| {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
            kept.look(&lint, "one", &Worth::With(globs), tmp.path())
        };
        let stand = || kept.stand(&[judged(Verdict::Pass)], now, tmp.path()).is_some();
        std::fs::create_dir(tmp.path().join("src")).unwrap();
        std::fs::write(tmp.path().join("src/a"), "x").unwrap();
        std::fs::write(tmp.path().join("other"), "x").unwrap();
        assert!(!look(&[]) && stand());
        assert!(look(&[]));
        std::fs::write(tmp.path().join("ignored"), "x").unwrap();
        assert!(!look(&[]) && stand());
        std::fs::write(tmp.path().join("ignored"), "y").unwrap();
        assert!(!look(&[]));
        assert!(!look(&["src"]) && stand());
        std::fs::remove_file(tmp.path().join("ignored")).unwrap();
        assert!(look(&["src"]), "not below the globs");
    }
}
