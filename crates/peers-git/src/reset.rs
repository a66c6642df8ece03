//! Moving a branch together with the work tree that has it checked out.
//!
//! In two steps, so that whoever keeps a record of it can write that in between: everything that can
//! forbid it is looked at first, with the index locked, and nothing has changed yet.

use git2::{Odb, Oid, Signature};
use peers_model::CommitId;
use rustix::fs::{Access, AtFlags, CWD};

use crate::checkout::{self, CheckoutReport, Writer};
use crate::control::ControlDir;
use crate::diff::RawChange;
use crate::error::{GitError, clean};
use crate::files;
use crate::ids;
use crate::index_file::{IndexLock, LOCK};
use crate::objects;
use crate::place::{Place, check_path};
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::{Author, is_ours, write_changes};

/// A move of a branch and its work tree that nothing forbids. The index is locked as long as it lives.
pub struct Reset<'a> {
    peer: &'a PeerRepo,
    odb: Odb<'a>,
    name: String,
    commits: (Oid, Oid),
    trees: (Oid, Oid),
    changes: Vec<RawChange>,
    _lock: IndexLock,
}

impl PeerRepo {
    /// Looks whether a branch can be moved from `expected` to `commit`, with the paths of the work tree
    /// that differ between the two. `branch` `None` is a detached `HEAD`. Nothing changes but objects that
    /// are added, and the index gets locked.
    ///
    /// # Errors
    /// [`GitError::Moved`] when the branch is somewhere else, [`RepoError::Busy`](crate::RepoError::Busy) when the index is locked,
    /// [`GitError::Unsafe`] for a path that no work tree can have, [`GitError::Io`] where nothing can be
    /// written.
    pub fn prepare_reset<'a>(
        &'a self,
        control: &'a ControlDir,
        branch: Option<&str>,
        expected: &CommitId,
        commit: &CommitId,
    ) -> Result<Reset<'a>, GitError> {
        self.check_writable()?;
        let name = branch.map_or_else(|| Ok("HEAD".to_owned()), refs::branch_name)?;
        let commits = (ids::commit_oid(expected)?, ids::commit_oid(commit)?);
        let found = self.repo.find_reference(&name).ok().and_then(|found| found.target());
        if found != Some(commits.0) {
            let found = found.map(ids::commit_id);
            return Err(GitError::Moved { name: clean(&name, 200), expected: Some(expected.clone()), found });
        }
        let lock = self.lock_index()?;
        if !self.index_readable() {
            return Err(GitError::Corrupt { what: "the index".to_owned(), detail: "unreadable".to_owned() });
        }
        let odb = objects::odb(&control.repo)?;
        let trees =
            (objects::commit_tree(&control.repo, expected)?, objects::commit_tree(&control.repo, commit)?);
        let mut changes = checkout::ordered_changes(&odb, trees.0, trees.1)?;
        changes.retain(|change| !is_ours(&change.path));
        for change in &changes {
            check_path(&change.path)?;
            self.check_place(&change.path)?;
        }
        self.publish(control, commit)?;
        Ok(Reset { peer: self, odb, name, commits, trees, changes, _lock: lock })
    }

    /// The directory that a path would be written to, or the nearest one above it that is there, must be
    /// writable.
    fn check_place(&self, path: &[u8]) -> Result<(), GitError> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = self.work_dir().join(std::ffi::OsStr::from_bytes(path));
        for dir in path.ancestors().skip(1) {
            if dir.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                return rustix::fs::accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
                    .map_err(|error| GitError::io(dir, error));
            }
            if dir == self.work_dir() {
                break;
            }
        }
        Ok(())
    }

    /// Removes a lock of the index that [`PeerRepo::prepare_reset`] left when its process was killed.
    /// Returns whether there was one; locks of git stay.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn remove_own_index_lock(&self) -> Result<bool, GitError> {
        let path = self.git_dir().join("index.lock");
        if files::small(&path, 64)?.as_deref() != Some(LOCK) {
            return Ok(false);
        }
        self.remove_index_lock()
    }

    /// Sets a branch to `commit` (compare-and-swap), then the paths that differ between the two, in work
    /// tree and index. Edits at other paths stay.
    ///
    /// `branch` `None` is a detached `HEAD`. Salvage first: the old tip is only in the reflog after this.
    ///
    /// # Errors
    /// As [`PeerRepo::prepare_reset`] and [`Reset::apply`].
    pub fn reset_to(
        &self,
        control: &ControlDir,
        branch: Option<&str>,
        expected: &CommitId,
        commit: &CommitId,
        author: &Author,
    ) -> Result<CheckoutReport, GitError> {
        self.prepare_reset(control, branch, expected, commit)?.apply(author)
    }
}

impl Reset<'_> {
    /// Moves the branch, then work tree and index. When files cannot be written the branch goes back unless
    /// somebody locks it or was faster, and the files as far as they can.
    ///
    /// # Errors
    /// [`GitError::Moved`] when somebody was faster, [`RepoError::Busy`](crate::RepoError::Busy) when the branch is locked,
    /// [`GitError::Io`], [`GitError::DiskFull`].
    pub fn apply(self, author: &Author) -> Result<CheckoutReport, GitError> {
        let (who, repo) = (author.signature()?, &self.peer.repo);
        let (from, to) = self.commits;
        refs::compare_and_swap(repo, &self.name, Some(from), Some(to), &who, "reset: by peers")?;
        let done = self.write(self.trees.1, &self.changes);
        if done.is_err() {
            self.take_back(&who);
        }
        done
    }

    /// Branch and files as they were, as far as they can be written. What made it necessary is the error
    /// that matters. The index was not touched, so git shows what stays, and who asks sees where the branch
    /// is.
    pub(crate) fn take_back(&self, who: &Signature<'_>) {
        let (repo, (from, to)) = (&self.peer.repo, self.commits);
        drop(refs::compare_and_swap(repo, &self.name, Some(to), Some(from), who, "reset: undone"));
        let Ok(mut writer) = self.writer(self.trees.0) else { return };
        for change in self.changes.iter().rev() {
            drop(match change.old {
                Some((mode, id)) => writer.put(&change.path, mode, id).map(drop),
                None => writer.remove(&change.path),
            });
        }
    }

    fn writer(&self, tree: Oid) -> Result<Writer<'_>, GitError> {
        Ok(Writer::new(&self.odb, Place::work_tree(self.peer.work_dir())?, tree))
    }

    /// Writes the files, and then a new index beside the old one, which it replaces.
    fn write(&self, tree: Oid, changes: &[RawChange]) -> Result<CheckoutReport, GitError> {
        if changes.is_empty() {
            return Ok(CheckoutReport::default());
        }
        let mut index = self.peer.open_index_file()?;
        let mut writer = self.writer(tree)?;
        write_changes(&mut writer, &mut index, changes)?;
        self.peer.put_index(index.iter().collect())?;
        Ok(writer.report)
    }
}
