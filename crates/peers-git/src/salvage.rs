//! Nothing is undone without a copy: tips and dirty trees kept in the control directory.

use std::path::Path;

use git2::ErrorCode;
use peers_model::CommitId;

use crate::control::ControlDir;
use crate::error::{GitError, clean};
use crate::ids;
use crate::refs;
use crate::repo::PeerRepo;
use crate::snapshot::{self, Written};
use crate::write::Author;

const PREFIX: &str = "refs/salvage/";
/// Salvages listed.
const MAX_LISTED: usize = 10_000;

/// A kept copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageRef {
    /// What comes after `refs/salvage/`.
    pub name: String,
    /// The commit: the tip, or the dirty tree as a commit on top of it.
    pub commit: CommitId,
    /// The work tree was dirty: [`SalvageRef::commit`] holds it, its parent is the tip.
    pub dirty: bool,
    /// Files that were too large (64 MiB) or unreadable, cleaned for people, at most 100.
    pub left_out: Vec<String>,
}

impl ControlDir {
    /// Keeps `tip` and, when it differs, the work tree (untracked files included, ignored ones not) under
    /// `refs/salvage/<name>`. A name that is taken gets a number.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when the tip was not imported; as [`ControlDir::tree_state`].
    pub fn salvage(
        &self,
        name: &str,
        tip: &CommitId,
        work_dir: &Path,
        author: &Author,
    ) -> Result<SalvageRef, GitError> {
        refs::check_name(&format!("{PREFIX}{name}"))?;
        let Written { tree, head_tree, left_out } = snapshot::write_work_tree(self, work_dir, tip)?;
        let dirty = tree != head_tree;
        let commit = if dirty {
            let message = format!("salvage: work tree on {}\n", tip.short());
            self.commit_tree(tree, &[ids::commit_oid(tip)?], &message, author)?
        } else {
            tip.clone()
        };
        let name = self.name_copy(name, &commit, author)?;
        Ok(SalvageRef { name, commit, dirty, left_out })
    }

    /// Keeps an imported commit alone under `refs/salvage/<name>`. A name that is taken by another commit
    /// gets a number. Returns the name.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when the commit was not imported, [`GitError::InvalidName`].
    pub fn keep(&self, name: &str, commit: &CommitId, author: &Author) -> Result<String, GitError> {
        let full = format!("{PREFIX}{name}");
        refs::check_name(&full)?;
        let oid = self.facts().commit_oid(commit)?;
        match self.repo.find_reference(&full) {
            Ok(found) if found.target() == Some(oid) => Ok(name.to_owned()),
            _ => self.name_copy(name, commit, author),
        }
    }

    fn name_copy(&self, name: &str, commit: &CommitId, author: &Author) -> Result<String, GitError> {
        let who = author.signature()?;
        let new = ids::commit_oid(commit)?;
        for attempt in 1..1000_u32 {
            let name = if attempt == 1 { name.to_owned() } else { format!("{name}.{attempt}") };
            let full = format!("{PREFIX}{name}");
            match refs::compare_and_swap(&self.repo, &full, None, Some(new), &who, "salvage") {
                Ok(()) => return Ok(name),
                Err(GitError::Moved { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Err(GitError::Exists { what: format!("salvage `{}`", clean(name, 200)) })
    }

    /// All kept copies, sorted by name.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond 10 000.
    pub fn list_salvage(&self) -> Result<Vec<SalvageRef>, GitError> {
        let found = refs::matching(&self.repo, &[format!("{PREFIX}*")], MAX_LISTED)?;
        Ok(found
            .into_iter()
            .map(|(name, commit)| {
                let fact = self.facts().commit(&commit).ok();
                SalvageRef {
                    name: name.trim_start_matches(PREFIX).to_owned(),
                    dirty: fact.is_some_and(|fact| fact.message.starts_with("salvage: work tree on ")),
                    commit,
                    left_out: Vec::new(),
                }
            })
            .collect())
    }

    /// Puts a kept copy into the agents' repository as `refs/peers/salvage/<name>`. Returns its commit.
    ///
    /// # Errors
    /// [`GitError::NotFound`] for an unknown name, [`GitError::Exists`] when another commit has the name.
    pub fn restore_salvage(
        &self,
        name: &str,
        peer: &PeerRepo,
        author: &Author,
    ) -> Result<CommitId, GitError> {
        let full = format!("{PREFIX}{name}");
        refs::check_name(&full)?;
        let what = || format!("salvage `{}`", clean(name, 200));
        let commit = match self.repo.find_reference(&full) {
            Ok(found) => found.target().map(ids::commit_id),
            Err(error) if error.code() == ErrorCode::NotFound => None,
            Err(source) => return Err(GitError::library(what(), source)),
        };
        let commit = commit.ok_or_else(|| GitError::NotFound { what: what() })?;
        peer.check_writable()?;
        peer.publish(self, &commit)?;
        let theirs = format!("refs/peers/salvage/{name}");
        let new = ids::commit_oid(&commit)?;
        let swap = refs::compare_and_swap(
            &peer.repo,
            &theirs,
            None,
            Some(new),
            &author.signature()?,
            "salvage: restored",
        );
        match swap {
            Err(GitError::Moved { found: Some(found), .. }) if found == commit => Ok(commit),
            Err(GitError::Moved { .. }) => Err(GitError::Exists { what: format!("`{theirs}`") }),
            other => other.map(|()| commit),
        }
    }
}
