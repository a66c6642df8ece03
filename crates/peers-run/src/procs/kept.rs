//! Green answers that are kept, and those that will be once their tree is known to have stood still.

use std::cell::{Cell, RefCell};
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
    /// No kept answer is taken.
    anew: Cell<bool>,
    /// What the answers that are being found will be about.
    pending: RefCell<BTreeMap<GoalId, Pending>>,
    /// The ground when gates began to run, by globs: a look at every file is taken once for all of them.
    grounds: RefCell<BTreeMap<Vec<String>, Option<String>>>,
}

/// What an answer will be about.
#[derive(Debug)]
struct Pending {
    about: String,
    worth: Worth,
    /// All of it, as it was before the gate ran.
    whole: String,
}

/// Whether the tree stood still while gates ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stood {
    Still,
    /// No green answer is kept.
    Moved,
}

impl Kept {
    pub(super) fn new(verdicts: Verdicts) -> Self {
        Self { verdicts: RefCell::new(verdicts), ..Self::default() }
    }

    /// Takes no kept answer from here on. What is measured may refute one.
    pub(super) fn ask_anew(&self) {
        self.anew.set(true);
    }

    /// Gates begin to run: what is there now is looked at when it is first asked for.
    pub(super) fn begin(&self) {
        self.grounds.borrow_mut().clear();
    }

    /// Whether a green answer of `gate` about this is kept. If not, the next one will be about it.
    pub(super) fn look(&self, gate: &GoalId, about: &str, worth: &Worth, work_dir: &Path) -> bool {
        let whole = whole(about, worth, |globs| {
            let mut grounds = self.grounds.borrow_mut();
            grounds.entry(globs.to_vec()).or_insert_with(|| ground::digest(work_dir, globs)).clone()
        });
        let kept = |whole: &String| self.verdicts.borrow().find(gate, whole).is_some();
        let found = !self.anew.get() && whole.as_ref().is_some_and(kept);
        let mut pending = self.pending.borrow_mut();
        pending.remove(gate);
        if let Some(whole) = whole.filter(|_| !found) {
            pending.insert(gate.clone(), Pending { about: about.to_owned(), worth: worth.clone(), whole });
        }
        found
    }

    /// Keeps the green ones of these verdicts that are about the same before and after. One that is not green
    /// drops what is kept about the same. Nothing when there is nothing new.
    pub(super) fn stand(
        &self,
        verdicts: &[Judged],
        stood: Stood,
        at: Timestamp,
        work_dir: &Path,
    ) -> Option<Verdicts> {
        let mut pending = std::mem::take(&mut *self.pending.borrow_mut());
        self.begin();
        let mut kept = self.verdicts.borrow_mut();
        let mut news = false;
        let mut files = BTreeMap::new();
        let mut now = |globs: &[String]| {
            files.entry(globs.to_vec()).or_insert_with(|| ground::digest(work_dir, globs)).clone()
        };
        for judged in verdicts.iter().filter(|judged| !judged.cached) {
            let Some(Pending { about, worth, whole: before }) = pending.remove(&judged.goal) else {
                continue;
            };
            // One that was red first says nothing for sure about the next time.
            if !judged.verdict.is_pass() || judged.is_flaky() {
                news |= kept.forget(&judged.goal, &before);
                continue;
            }
            if stood == Stood::Moved || worth == Worth::Nothing {
                continue;
            }
            if whole(&about, &worth, &mut now).as_ref() != Some(&before) {
                continue;
            }
            kept.keep(Pass { gate: judged.goal.clone(), about: before, tree: judged.at.tree.clone(), at });
            news = true;
        }
        news.then(|| kept.clone())
    }
}

/// Everything that an answer is about; nothing where that cannot be told.
fn whole(about: &str, worth: &Worth, mut files: impl FnMut(&[String]) -> Option<String>) -> Option<String> {
    match worth {
        Worth::Keeping | Worth::Nothing => Some(about.to_owned()),
        Worth::With(globs) => {
            let files = files(globs)?;
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

    fn red() -> Judged {
        judged(Verdict::Fail { diagnostic: String::new() })
    }

    #[test]
    fn only_a_green_answer_that_stood_is_kept() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        assert_eq!(kept.stand(&[red()], Stood::Still, now, Path::new("/")), None);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        // The tree moved: nobody said that it stands, and what comes next is about something else.
        assert!(!kept.look(&lint, "two", &Worth::Keeping, Path::new("/")));
        assert!(kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, Path::new("/")).is_some());
        assert!(kept.look(&lint, "two", &Worth::Keeping, Path::new("/")));
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
    }

    #[test]
    fn a_kept_answer_is_not_kept_again() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        assert!(kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, Path::new("/")).is_some());
        assert!(kept.look(&lint, "one", &Worth::Keeping, Path::new("/")));
        let cached = Judged { cached: true, ..judged(Verdict::Pass) };
        assert_eq!(kept.stand(&[cached], Stood::Still, now, Path::new("/")), None);
    }

    #[test]
    fn an_answer_that_is_not_green_drops_the_kept_one_about_the_same() {
        let (lint, at) = (GoalId::new("lint").unwrap(), Path::new("/"));
        let now = Timestamp::from_millis(0);
        let error = || judged(Verdict::Error { diagnostic: String::new() });
        let flaky = || Judged { attempts: 2, ..judged(Verdict::Pass) };
        for (judged, stood) in
            [(red(), Stood::Still), (red(), Stood::Moved), (error(), Stood::Still), (flaky(), Stood::Still)]
        {
            let mut verdicts = Verdicts::default();
            for about in ["one", "two"] {
                let tree = judged.at.tree.clone();
                verdicts.keep(Pass { gate: lint.clone(), about: about.to_owned(), tree, at: now });
            }
            let kept = Kept::new(verdicts);
            assert!(kept.look(&lint, "one", &Worth::Keeping, at));
            kept.ask_anew();
            assert!(!kept.look(&lint, "one", &Worth::Keeping, at));
            let left = kept.stand(&[judged], stood, now, at).unwrap();
            assert!(left.find(&lint, "one").is_none() && left.find(&lint, "two").is_some());
        }
    }

    #[test]
    fn a_tree_that_moved_keeps_nothing() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let (now, at) = (Timestamp::from_millis(0), Path::new("/"));
        assert!(!kept.look(&lint, "one", &Worth::Keeping, at));
        assert_eq!(kept.stand(&[judged(Verdict::Pass)], Stood::Moved, now, at), None);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, at));
    }

    #[test]
    fn an_answer_is_kept_only_where_its_ground_is_the_same_before_and_after() {
        let tmp = tempfile::tempdir().unwrap();
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        let look = || kept.look(&lint, "one", &Worth::With(Vec::new()), tmp.path());
        let stand = || kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, tmp.path()).is_some();
        let ignored = tmp.path().join("ignored");
        // It found a file that another gate took away.
        std::fs::write(&ignored, "x").unwrap();
        assert!(!look());
        std::fs::remove_file(&ignored).unwrap();
        assert!(!stand() && !look());
        // And the other way about.
        std::fs::write(&ignored, "x").unwrap();
        assert!(!stand() && !look());
        assert!(stand() && look());
    }

    #[test]
    fn what_earlier_work_took_part_in_is_not_kept_and_takes_what_is() {
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let (now, at) = (Timestamp::from_millis(0), Path::new("/"));
        assert!(!kept.look(&lint, "one", &Worth::Nothing, at));
        assert_eq!(kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, at), None);
        assert!(!kept.look(&lint, "one", &Worth::Keeping, at));
        assert!(kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, at).is_some());
        assert!(kept.look(&lint, "one", &Worth::Nothing, at));
    }

    #[test]
    fn an_answer_about_the_work_tree_is_about_files_that_git_ignores_too() {
        let tmp = tempfile::tempdir().unwrap();
        let (kept, lint) = (Kept::default(), GoalId::new("lint").unwrap());
        let now = Timestamp::from_millis(0);
        let look = |globs: &[&str]| {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
            kept.begin();
            kept.look(&lint, "one", &Worth::With(globs), tmp.path())
        };
        let stand = || kept.stand(&[judged(Verdict::Pass)], Stood::Still, now, tmp.path()).is_some();
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
