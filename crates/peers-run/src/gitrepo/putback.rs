//! Putting tests, gates and what hides them back to how they were in the work tree.

use std::collections::BTreeSet;

use peers_core::cheat::TurnDiff;
use peers_git::{GitError, PeerRepo};
use peers_model::weakening::Weakening;
use peers_model::{CommitId, TickNo, TreeId};
use peers_sys::error::chain;
use serde::{Deserialize, Serialize};

use super::mend::{aside, quoted};
use super::{GitRepo, substrate};
use crate::measure::is_measured;
use crate::ports::RepoFailure;

/// A work tree that was stored, and which of its measured files could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) tree: TreeId,
    /// As they are: a name need not be text.
    pub(super) left_out: BTreeSet<Vec<u8>>,
}

/// What files are put back to: those of the work tree before, where somebody had not committed them and
/// nobody has since, else those of HEAD.
pub(super) struct Target {
    head: TreeId,
    start: Stored,
    uncommitted: BTreeSet<String>,
}

/// What of a work tree is weaker than it was.
type Weaker<'a> = &'a dyn Fn(&GitRepo, &Stored) -> Result<Vec<Weakening>, GitError>;

/// What was put back.
#[derive(Debug, Default)]
pub(super) struct PutBack {
    /// The files, for people.
    pub(super) names: Vec<String>,
    /// The copy of the work tree.
    pub(super) kept: String,
}

impl PutBack {
    /// Where the copy is, for a warning.
    pub(super) fn words(&self) -> String {
        format!("a copy is kept as salvage `{}`", self.kept)
    }
}

impl Stored {
    pub(super) fn whole(tree: TreeId) -> Self {
        Self { tree, left_out: BTreeSet::new() }
    }
}

impl GitRepo {
    /// Stores the work tree.
    pub(super) fn stored(&self, head: &CommitId) -> Result<Stored, GitError> {
        let stored = self.control.keep_work_tree(&self.work_dir, head)?;
        let measured = |path: &Vec<u8>| is_measured(&self.tests, &text(path));
        let left_out = stored.left_out.into_iter().filter(measured).collect();
        Ok(Stored { tree: stored.tree, left_out })
    }

    pub(super) fn is_file(&self, tree: &TreeId, path: &[u8]) -> bool {
        self.control.facts().has_file(tree, path).unwrap_or(false)
    }

    /// What to put back to, of a work tree that was `start` on top of `from` when something began, after
    /// which HEAD has the tree `head`.
    pub(super) fn target(&self, from: &TreeId, start: &Stored, head: &TreeId) -> Result<Target, GitError> {
        let facts = self.control.facts();
        let mut uncommitted: BTreeSet<String> = BTreeSet::new();
        if start.tree != *from {
            uncommitted.extend(facts.changed_paths(from, &start.tree)?);
        }
        if head != from {
            for path in facts.changed_paths(from, head)? {
                uncommitted.remove(&path);
            }
        }
        Ok(Target { head: head.clone(), start: start.clone(), uncommitted })
    }

    /// Puts back, after a copy, what `weaker` finds in the work tree. The files that it names first; when it
    /// still finds something, all files of that kind. What is left then is an error, as the next commit
    /// would take it over.
    pub(super) fn put_back(
        &mut self,
        (tick, what): (TickNo, &str),
        target: &Target,
        weaker: Weaker<'_>,
    ) -> Result<Option<PutBack>, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head()?.commit;
        let now = self.stored(&head)?;
        let found = paths(&weaker(self, &now)?);
        if found.is_empty() {
            return Ok(None);
        }
        let who = substrate(peers_sys::clock::now());
        let name = aside(tick, what);
        let kept = self.control.salvage(&name, &head, &self.work_dir, &who)?;
        let names: Vec<String> = found.iter().cloned().collect();
        let done = PutBack { names, kept: kept.name };
        let above = ancestors(&found);
        let few = |path: &str| found.contains(path) || above.contains(path);
        let tests = self.tests.clone();
        let all = |path: &str| is_measured(&tests, path) || above.contains(path);
        let passes: [&dyn Fn(&str) -> bool; 2] = [&few, &all];
        let mut still = Ok(Vec::new());
        let mut now = now;
        for which in passes {
            still = self.write_back(&peer, (&now, target), which);
            now = self.stored(&head)?;
            let left = paths(&weaker(self, &now)?);
            if left.is_empty() {
                return Ok(Some(done));
            }
            if let Ok(blocked) = &mut still {
                blocked.extend(left.into_iter().map(String::into_bytes));
            }
        }
        let why = match still {
            Ok(paths) => {
                quoted(&texts(&paths).into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())
            }
            Err(error) => chain(&error),
        };
        Err(stuck(
            &format!("tests were weakened in the work tree, at {}", quoted(&done.names)),
            &why,
            &done.words(),
        ))
    }

    /// Writes the files that `which` takes, and returns what is still in the way.
    pub(super) fn write_back(
        &mut self,
        peer: &PeerRepo,
        (now, target): (&Stored, &Target),
        which: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let Target { head: committed, start, uncommitted } = target;
        // What could not be read at the start is not known: it stays.
        let unknown = shown(&start.left_out);
        let wanted = |path: &str| which(path) && !unknown.contains(path);
        let is_due = |path: &&Vec<u8>| {
            let tree = if uncommitted.contains(&text(path)) { &start.tree } else { committed };
            wanted(&text(path)) && self.is_file(tree, path)
        };
        // What was too large to be stored is written over by nobody.
        let mut blocked: Vec<Vec<u8>> = now.left_out.iter().filter(is_due).cloned().collect();
        let spare = |path: &str| !wanted(path) || uncommitted.contains(path);
        blocked.extend(peer.checkout_changed_but(&self.control, &now.tree, committed, &spare)?.blocked);
        let spare = |path: &str| !wanted(path) || !uncommitted.contains(path);
        blocked.extend(peer.write_changed_but(&self.control, &now.tree, &start.tree, &spare)?.blocked);
        self.clean_at = None;
        Ok(blocked)
    }

    /// Brings the work tree from one tree to another; of tests and gates nothing may stay in the way.
    pub(super) fn check_out_whole(
        &mut self,
        peer: &PeerRepo,
        (from, to): (&TreeId, &TreeId),
    ) -> Result<(), RepoFailure> {
        let mut blocked = peer.checkout_changed(&self.control, from, to)?.blocked;
        blocked.retain(|path| is_measured(&self.tests, &text(path)));
        if blocked.is_empty() { Ok(()) } else { Err(not_back(&blocked)) }
    }

    /// What is weaker at the end of a turn than in its commits and than before it.
    pub(super) fn weaker_left(
        &self,
        head: &TreeId,
        start: &Stored,
        now: &Stored,
    ) -> Result<Vec<Weakening>, GitError> {
        let (left, made) = self.around(&Stored::whole(head.clone()), start, now)?;
        Ok(left.weaker_since(&made))
    }

    /// What is weaker in the work tree after gates than before them. Where they moved HEAD, what is as it is
    /// there is a matter of the commits.
    pub(super) fn weaker_after_gates(
        &self,
        (from, head): (&TreeId, &TreeId),
        start: &Stored,
        now: &Stored,
    ) -> Result<Vec<Weakening>, GitError> {
        let (left, made) = self.around(&Stored::whole(head.clone()), start, now)?;
        let still = |w: &Weakening| head == from || left.files.iter().any(|file| file.path == w.path);
        Ok(made.weaker.into_iter().filter(still).collect())
    }

    /// From each of two work trees to how it is now.
    fn around(&self, head: &Stored, start: &Stored, now: &Stored) -> Result<(TurnDiff, TurnDiff), GitError> {
        let mut diffs = self.diffs(&[(head, now), (start, now)])?.into_iter();
        Ok((diffs.next().unwrap_or_default(), diffs.next().unwrap_or_default()))
    }
}

/// That something is in the way of what is to be put back.
pub(super) fn not_back(blocked: &[Vec<u8>]) -> RepoFailure {
    let what = "tests that a turn took away could not be put back";
    stuck(what, &quoted(&texts(blocked)), "what they were is in HEAD")
}

fn stuck(what: &str, why: &str, kept: &str) -> RepoFailure {
    RepoFailure::Weakened(format!(
        "{what}; in the way is {why}; {kept}\nput these files back (`git status` names them, `git checkout -- FILE` \
         takes them from HEAD), then start again"
    ))
}

fn paths(found: &[Weakening]) -> BTreeSet<String> {
    found.iter().map(|w| w.path.clone()).collect()
}

/// The directories above: something else may lie in their place.
fn ancestors(paths: &BTreeSet<String>) -> BTreeSet<String> {
    paths.iter().flat_map(|path| above(path)).map(str::to_owned).collect()
}

fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// A path as those who ask for it by text have it.
pub(super) fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

pub(super) fn shown(paths: &BTreeSet<Vec<u8>>) -> BTreeSet<String> {
    paths.iter().map(|path| text(path)).collect()
}

pub(super) fn texts(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| text(path)).collect()
}
