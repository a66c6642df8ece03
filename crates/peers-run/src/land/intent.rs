//! A move of a branch that may have been cut short.
//!
//! What is about to be moved is written down first and taken away when everything is done. Whoever takes
//! the project next looks, and finishes what a crash left half done.

use std::collections::BTreeSet;
use std::path::PathBuf;

use peers_git::PeerRepo;
use peers_model::{CommitId, RunId, exit};
use peers_sys::term;
use serde::{Deserialize, Serialize};

use super::{Ground, full, open};
use crate::boot::Finding;
use crate::oneshot;

const FILE: &str = "land.json";
/// It is small.
const CAP: u64 = 64 * 1024;
/// Paths compared one by one.
const PATHS: usize = 100_000;
/// Paths named in a message.
const NAMED: usize = 5;

/// What is about to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
    pub(super) v: u32,
    pub(super) kind: Kind,
    pub(super) run: RunId,
    /// The branch.
    pub(super) branch: String,
    pub(super) from: CommitId,
    pub(super) to: CommitId,
    /// The work tree that has it checked out.
    pub(super) workdir: Option<PathBuf>,
    /// Who asked.
    pub(super) by: String,
}

/// On whose behalf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Recorded when it is done.
    Land,
    /// Recorded before it is begun.
    Undo,
}

/// What became of one that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There was none, or nothing had been moved.
    Nothing,
    /// The branch had been moved; work tree and index follow it now.
    Finished(Intent, Vec<String>),
}

impl Ground {
    /// Writes down what is about to be moved.
    pub(super) fn intend(&self, intent: &Intent) -> Result<(), Finding> {
        let bytes = serde_json::to_vec(intent)
            .map_err(|e| Finding::plain(exit::BUG, format!("what is to be moved cannot be written: {e}")))?;
        self.git_dir.publish(FILE, &bytes).map_err(|e| oneshot::file(&e))
    }

    /// It is done, or nothing of it was.
    pub(super) fn intended(&self) -> Result<(), Finding> {
        self.git_dir.remove_file(FILE).map(drop).map_err(|e| oneshot::file(&e))
    }

    /// Finishes what was cut short. The caller records it.
    pub(super) fn take_up(&self) -> Result<Found, Finding> {
        let Some(bytes) = self.git_dir.read_opt(FILE, CAP).map_err(|e| oneshot::file(&e))? else {
            return Ok(Found::Nothing);
        };
        let Ok(intent) = serde_json::from_slice::<Intent>(&bytes) else {
            // Torn: it was being written, so nothing had been moved.
            self.intended()?;
            return Ok(Found::Nothing);
        };
        let tip = self.repo.facts().reference(&full(&intent.branch)).map_err(oneshot::git)?;
        let work = match &intent.workdir {
            Some(dir) => Some(open(dir)?),
            None => None,
        };
        if let Some(work) = &work {
            work.remove_own_index_lock().map_err(oneshot::git)?;
        }
        if tip.as_ref() != Some(&intent.to) {
            self.intended()?;
            let facts = self.control.facts();
            let part = tip.is_some_and(|tip| facts.is_ancestor(&intent.to, &tip).unwrap_or(false));
            // Somebody went on from there: then work tree and index are theirs.
            return Ok(if part { Found::Finished(intent, Vec::new()) } else { Found::Nothing });
        }
        let blocked = match &work {
            Some(work) => self.follow(work, &intent)?,
            None => Vec::new(),
        };
        Ok(Found::Finished(intent, blocked))
    }

    /// Brings a work tree to where its branch is, if every path is as it was before or as it is to be.
    fn follow(&self, work: &PeerRepo, intent: &Intent) -> Result<Vec<String>, Finding> {
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
