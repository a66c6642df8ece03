//! A move of a branch that may have been cut short.
//!
//! What is about to be moved is recorded first and again when it is done. Whoever takes the project next
//! looks, and finishes what a crash left half done. The journal holds it, not a file of its own: a landing
//! that nobody proved must not be made up by writing a note.

use std::collections::BTreeSet;
use std::path::Path;

use peers_core::state::OpenMove;
use peers_git::{Facts, PathChange, PeerRepo, RepoError};
use peers_model::record::{BranchMove, MoveKind, OperatorOp};
use peers_model::{CommitId, exit};
use peers_place::{repo_exit, repo_hint};
use peers_run::boot::Finding;
use peers_run::boot::gone::of_move;
use peers_store::{FsDisk, Store};
use peers_sys::dir::SafeDir;
use peers_sys::error::chain;
use peers_sys::term;
use peers_sys::term::quoted;

use super::moving::refuse_locked;
use super::{Ground, full, record};

/// Paths compared one by one.
const PATHS: usize = 100_000;
/// Paths named in a message.
const NAMED: usize = 5;
/// A file larger than this is not compared with what we were writing.
const WRITTEN: usize = 256 << 20;

/// What became of one that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There was none, or the branch is not where it was to go.
    Nothing,
    /// The branch holds what it was to get, and a work tree that had it checked out follows now. With the
    /// paths that could not be put in place.
    Moved(OpenMove, Vec<String>),
}

/// Records what is about to be moved.
pub(super) fn intend(store: &mut Store<FsDisk>, what: &BranchMove, by: &str) -> Result<(), Finding> {
    record(store, OperatorOp::Moving(what.clone()), by)
}

impl Ground {
    /// It is done, or nothing of it was.
    pub(super) fn intended(&mut self) -> Result<(), Finding> {
        let Some(moving) = &self.store.state().moving else { return Ok(()) };
        let by = moving.by.clone();
        self.record(OperatorOp::Moved, &by)
    }

    /// Closes what was begun and failed. Whether nothing is left to do: where the branch stands at its new
    /// place all the same it stays open, and whoever comes next follows it up.
    pub(super) fn give_up(&mut self) -> bool {
        let Some(moving) = &self.store.state().moving else { return true };
        let what = &moving.what;
        let still = self.repo.facts().reference(&full(&what.branch));
        let apart = still.is_ok_and(|tip| tip.as_ref() != Some(&what.to));
        if apart {
            // What stays of the note is seen through the next time.
            drop(self.intended());
        }
        apart
    }

    /// Finishes what was cut short. The caller records it.
    ///
    /// The branch is asked first: where it was not moved no work tree matters. Where it is gone nobody
    /// knows, and the operator is asked to name it again.
    pub(super) fn take_up(&mut self) -> Result<Found, Finding> {
        let Some(moving) = self.store.state().moving.clone() else { return Ok(Found::Nothing) };
        let intent = &moving.what;
        // Of one that was killed while it moved the branch, or of a git: who made it cannot be seen.
        refuse_locked(&self.repo, None, &intent.branch)?;
        let Some(tip) = self.tip(&intent.branch)? else {
            // Under another name it may well have been moved, and its work tree half written.
            return Err(of_move(&self.repo, &self.place, intent));
        };
        if !was_made(&self.control.facts(), intent, &tip) {
            self.intended()?;
            return Ok(Found::Nothing);
        }
        let mut blocked = Vec::new();
        // Somebody may have gone on from there: then work tree and index are theirs.
        if tip == intent.to
            && let Some(work) = self.lagging(intent)?
        {
            blocked = self.follow(&work, intent)?;
        }
        Ok(Found::Moved(moving, blocked))
    }

    /// The work tree that may lag behind the branch.
    ///
    /// One that is gone, or that is another repository's by now, is nobody's to bring along. A project that
    /// was moved since has the branch checked out where it is now.
    fn lagging(&self, intent: &BranchMove) -> Result<Option<PeerRepo>, Finding> {
        let Some(dir) = &intent.workdir else { return Ok(None) };
        match self.known(Path::new(dir)) {
            Ok(work) => {
                Self::unlock(&work)?;
                return Ok(Some(work));
            }
            Err(RepoError::NotARepo { .. } | RepoError::Redirected { .. }) => {}
            Err(error) => {
                let hint = format!(
                    "{}; or move that work tree out of the way: started again, this goes on without it",
                    repo_hint(&error)
                );
                return Err(Finding::new(repo_exit(&error), chain(&error), hint));
            }
        }
        let here = self.checked_out(&intent.branch, [self.place.work_dir(), self.place.project_dir()]);
        if here.is_none() {
            tracing::warn!(
                "`{}` was moved to {}, and {} was not updated: it is no longer a work tree of this repository",
                term::inline(&intent.branch),
                intent.to.short(),
                term::inline(dir)
            );
        }
        Ok(here)
    }

    /// Brings a work tree to where its branch is, if every path is as it was before or as it is to be.
    fn follow(&self, work: &PeerRepo, intent: &BranchMove) -> Result<Vec<String>, Finding> {
        let head = work.facts().head()?;
        if head.branch.as_deref() != Some(full(&intent.branch).as_str()) {
            return Ok(Vec::new());
        }
        let dirty = |against: &CommitId| -> Result<BTreeSet<String>, Finding> {
            let files = self.control.dirty_files(work.work_dir(), against, PATHS)?;
            Ok(files.into_iter().map(|file| file.path).collect())
        };
        let (not_old, not_new) = (dirty(&intent.from)?, dirty(&intent.to)?);
        let facts = self.control.facts();
        let tree = |commit| facts.tree_of(commit).map_err(Finding::from);
        let (from, to) = (tree(&intent.from)?, tree(&intent.to)?);
        let changed = facts.diff_trees(&from, &to)?;
        let edited: Vec<PathChange> = changed
            .into_iter()
            .filter(|change| not_old.contains(&change.path) && not_new.contains(&change.path))
            .filter(|change| !begun(&facts, work, &intent.to, &change.path))
            .collect();
        if !edited.is_empty() {
            return Err(kept_apart(work, intent, &edited));
        }
        let report = work.checkout_changed(&self.control, &from, &to)?;
        Ok(report.blocked_names())
    }
}

/// Whether a branch at `tip` was moved as it was to be, whatever was put on it since.
fn was_made(facts: &Facts<'_>, intent: &BranchMove, tip: &CommitId) -> bool {
    let holds = |commit: &CommitId| tip == commit || facts.is_ancestor(commit, tip).unwrap_or(false);
    // An undo goes back: where the branch came from holds where it was to go.
    holds(&intent.to) && (intent.kind == MoveKind::Land || !holds(&intent.from))
}

/// Whether a file holds the beginning of what it was to become: then nobody edited it, we were killed while
/// we wrote it.
fn begun(facts: &Facts<'_>, work: &PeerRepo, to: &CommitId, path: &str) -> bool {
    let Ok(Some(due)) = facts.read_blob(to, path, WRITTEN) else { return false };
    let cap = u64::try_from(due.bytes.len()).unwrap_or(u64::MAX);
    let found = SafeDir::open_shared(work.work_dir())
        .and_then(|dir| dir.parent_of(path))
        .and_then(|(dir, name)| dir.read(name, cap));
    found.is_ok_and(|found| begins(&found, &due.bytes))
}

/// Whether `found` is a part of `due` from its start, whatever ends its lines.
fn begins(found: &[u8], due: &[u8]) -> bool {
    if found.len() < due.len() && due.starts_with(found) {
        return true;
    }
    let mut lines = Vec::with_capacity(found.len());
    for (at, byte) in found.iter().enumerate() {
        let ends = *byte == b'\r' && found.get(at + 1).is_none_or(|next| *next == b'\n');
        if !ends {
            lines.push(*byte);
        }
    }
    lines.len() < due.len() && due.starts_with(&lines)
}

/// Files that somebody edited stand in the way: the commands that give them up, once they were copied.
fn kept_apart(work: &PeerRepo, intent: &BranchMove, edited: &[PathChange]) -> Finding {
    let named = edited.iter().take(NAMED).map(|change| term::inline(&change.path));
    let message = format!(
        "`{}` was moved to {} and its work tree was not brought along, and files in it were edited since: {}",
        term::inline(&intent.branch),
        intent.to.short(),
        term::first_of(edited.len(), named)
    );
    let dir = work.work_dir().to_string_lossy();
    let is_gone = |change: &&PathChange| change.new_mode == 0;
    let as_word = |change: &PathChange| quoted(&change.path);
    let stay: Vec<String> =
        edited.iter().filter(|change| !is_gone(change)).take(NAMED).map(as_word).collect();
    let go: Vec<String> = edited.iter().filter(is_gone).take(NAMED).map(as_word).collect();
    let mut commands = Vec::new();
    if !stay.is_empty() {
        let (dir, to) = (quoted(&dir), intent.to.as_str());
        // A name may look like a pattern.
        commands.push(format!("git --literal-pathspecs -C {dir} checkout {to} -- {}", stay.join(" ")));
    }
    if !go.is_empty() {
        commands.push(format!("(cd {} && rm -f -- {})", quoted(&dir), go.join(" ")));
    }
    let hint = format!(
        "copy what you want to keep of them elsewhere, then `{}`, and start this again",
        commands.join(" && ")
    );
    Finding::new(exit::CONFLICT, message, hint)
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn only_a_part_from_the_start_is_what_we_were_writing() {
        assert!(begins(b"", b"ab\ncd\n") && begins(b"ab\nc", b"ab\ncd\n") && begins(b"ab\r\nc", b"ab\ncd\n"));
        assert!(
            !begins(b"b", b"ab")
                && !begins(b"ab", b"ab")
                && !begins(b"abc", b"ab")
                && !begins(b"a\rb", b"abc")
        );
    }
}
