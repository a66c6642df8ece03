//! A move of a branch that may have been cut short.
//!
//! What is about to be moved is recorded first and again when it is done. Whoever takes the project next
//! looks, and finishes what a crash left half done. The journal holds it, not a file of its own: a landing
//! that nobody proved must not be made up by writing a note.

use std::collections::BTreeSet;
use std::path::Path;

use peers_core::state::OpenMove;
use peers_git::PeerRepo;
use peers_model::record::{BranchMove, OperatorOp};
use peers_model::{CommitId, exit};
use peers_store::{FsDisk, Store};
use peers_sys::term;

use super::{Ground, full, open, record};
use crate::boot::Finding;
use crate::oneshot;

/// Paths compared one by one.
const PATHS: usize = 100_000;
/// Paths named in a message.
const NAMED: usize = 5;

/// What became of one that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There was none, or nothing had been moved.
    Nothing,
    /// The branch had been moved; work tree and index follow it now.
    Finished(OpenMove, Vec<String>),
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

    /// Finishes what was cut short. The caller records it.
    pub(super) fn take_up(&mut self) -> Result<Found, Finding> {
        let Some(moving) = self.store.state().moving.clone() else { return Ok(Found::Nothing) };
        let intent = &moving.what;
        let tip = self.repo.facts().reference(&full(&intent.branch)).map_err(oneshot::git)?;
        let work = match &intent.workdir {
            Some(dir) => Some(open(Path::new(dir))?),
            None => None,
        };
        if let Some(work) = &work {
            work.remove_own_index_lock().map_err(oneshot::git)?;
        }
        if tip.as_ref() != Some(&intent.to) {
            let facts = self.control.facts();
            let part = tip.is_some_and(|tip| facts.is_ancestor(&intent.to, &tip).unwrap_or(false));
            if !part {
                self.intended()?;
            }
            // Somebody went on from there: then work tree and index are theirs.
            return Ok(if part { Found::Finished(moving, Vec::new()) } else { Found::Nothing });
        }
        let blocked = match &work {
            Some(work) => self.follow(work, intent)?,
            None => Vec::new(),
        };
        Ok(Found::Finished(moving, blocked))
    }

    /// Brings a work tree to where its branch is, if every path is as it was before or as it is to be.
    fn follow(&self, work: &PeerRepo, intent: &BranchMove) -> Result<Vec<String>, Finding> {
        let head = work.facts().head().map_err(oneshot::git)?;
        if head.branch.as_deref() != Some(full(&intent.branch).as_str()) {
            return Ok(Vec::new());
        }
        let dirty = |against: &CommitId| -> Result<BTreeSet<String>, Finding> {
            let files = self.control.dirty_files(work.work_dir(), against, PATHS).map_err(oneshot::git)?;
            Ok(files.into_iter().map(|file| file.path).collect())
        };
        let (not_old, not_new) = (dirty(&intent.from)?, dirty(&intent.to)?);
        let facts = self.control.facts();
        let tree = |commit| facts.tree_of(commit).map_err(oneshot::git);
        let (from, to) = (tree(&intent.from)?, tree(&intent.to)?);
        let changed = facts.diff_trees(&from, &to).map_err(oneshot::git)?;
        let edited: Vec<String> = changed
            .into_iter()
            .map(|change| change.path)
            .filter(|path| not_old.contains(path) && not_new.contains(path))
            .collect();
        if !edited.is_empty() {
            let named: Vec<String> = edited.iter().take(NAMED).map(|path| term::inline(path)).collect();
            let message = format!(
                "`{}` was moved to {} and its work tree was not brought along, and files in it were edited since: {}",
                term::inline(&intent.branch),
                intent.to.short(),
                named.join(", ")
            );
            let hint =
                "put them back to what they were, or commit what you want to keep; then start this again";
            return Err(Finding::new(exit::CONFLICT, message, hint));
        }
        let report = work.checkout_changed(&self.control, &from, &to).map_err(oneshot::git)?;
        Ok(report.blocked)
    }
}
