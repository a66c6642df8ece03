//! Publishing the work of a turn into the checkout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_model::CommitId;

use super::harvest::{Accepted, HarvestSpec, keep_known};
use super::{index, lfs};
use crate::checkout::{index_entry, ordered_changes};
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::index_entries::hidden;
use crate::objects;
use crate::repo::PeerRepo;
use crate::write::stage;

/// Each may be interrupted, and done again: files of git-lfs, objects, branch, index.
pub(crate) const STEPS: u32 = 4;

/// What became of the work of a turn in the checkout.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Published {
    /// The operator moved the run's branch meanwhile; the work is not on it.
    pub moved: Option<BranchMoved>,
    /// Paths that the turn committed and the operator had staged otherwise: they stay staged so. Cleaned for people.
    pub staged: Vec<String>,
    /// Files of git-lfs whose content is not what their name says. They were not copied.
    pub lfs_refused: Vec<String>,
}

/// A branch that is not where the turn began any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchMoved {
    /// Where it is; `None` when it is gone, or `HEAD` is not detached any more.
    pub found: Option<CommitId>,
    /// The salvage that the work of the turn is kept as.
    pub kept: String,
}

impl Accepted {
    /// Copies the turn's objects into the checkout, moves the run's branch from where the turn began, brings the
    /// index to what was committed unless `HEAD` is elsewhere, and throws the turn's git directory away. After an
    /// error, or a crash, the turn is found again and can be harvested and published again.
    ///
    /// # Errors
    /// [`crate::RepoError::Busy`] when branch or index are locked, [`GitError::DiskFull`], [`GitError::Io`].
    pub fn publish(
        self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<Published, GitError> {
        let published = self.steps(control, checkout, spec, STEPS)?;
        self.git.discard()?;
        Ok(published)
    }

    /// The first so many steps.
    pub(crate) fn steps(
        &self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
        steps: u32,
    ) -> Result<Published, GitError> {
        let mut done = Published::default();
        if self.tip == self.git.state.tip {
            return Ok(done);
        }
        // Left by a crash in the middle of this.
        checkout.remove_own_index_lock()?;
        // A commit with an index from before the branch moves would take the turn's work back.
        let on_branch = checkout.facts().head()?.branch == self.git.state.branch;
        let _lock = on_branch.then(|| checkout.lock_index()).transpose()?;
        if steps > 0 {
            done.lfs_refused = lfs::copy(&self.git.git_dir(), checkout.common_dir())?;
        }
        if steps > 1 {
            checkout.publish(control, &self.tip)?;
        }
        if steps > 2 {
            done.moved = self.move_branch(control, checkout, spec)?;
        }
        if steps > 3 && on_branch && checkout.facts().head()?.commit == self.tip {
            done.staged = self.update_index(control, checkout)?;
        }
        Ok(done)
    }

    fn move_branch(
        &self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<Option<BranchMoved>, GitError> {
        let (old, new) = (&self.git.state.tip, &self.tip);
        let message = control.facts().commit(new)?.message;
        let reason = format!("commit: {}", message.lines().next().unwrap_or_default());
        let moved = match &self.git.state.branch {
            Some(branch) => checkout.update_branch(branch, Some(old), new, spec.author, &reason),
            None if checkout.facts().head()?.branch.is_some() => {
                Err(GitError::Moved { name: "HEAD".to_owned(), expected: Some(old.clone()), found: None })
            }
            None => checkout.move_head(old, new, spec.author, &reason),
        };
        let found = match moved {
            Err(GitError::Moved { found, .. }) => found,
            other => return other.map(|()| None),
        };
        // Done before a crash, and perhaps the operator went on from there.
        let has = |found: &CommitId| checkout.facts().is_ancestor(new, found).unwrap_or(false);
        if found.as_ref().is_some_and(has) {
            return Ok(None);
        }
        let kept = keep_known(control, ("unpublished", new), spec)?;
        Ok(Some(BranchMoved { found, kept }))
    }

    /// The index as it would be after a commit there. Returns what the operator had staged, which stays.
    fn update_index(&self, control: &ControlDir, checkout: &PeerRepo) -> Result<Vec<String>, GitError> {
        let odb = objects::odb(&control.repo)?;
        let tree = |commit| objects::commit_tree(&control.repo, commit);
        let changes = ordered_changes(&odb, tree(&self.git.state.tip)?, tree(&self.tip)?)?;
        let stamps = control.stamps(checkout.work_dir());
        let mut file = checkout.open_index_file()?;
        let mut staged = Vec::new();
        for change in &changes {
            let path = Path::new(OsStr::from_bytes(&change.path));
            let old = file.get_path(path, 0);
            let is = old.as_ref().map(|entry| (entry.mode, entry.id));
            if is != change.old && is != change.new {
                staged.push(clean_bytes(&change.path));
                continue;
            }
            let Some((mode, id)) = change.new else {
                stage(&mut file, &change.path, None)?;
                continue;
            };
            let mut entry = index_entry(change.path.as_slice(), mode, id, None);
            let stat = || files::lstat(&checkout.work_dir().join(path)).ok().flatten();
            index::stamp(stamps.as_deref(), &mut entry, || stat().map(|stat| (stat.st_uid, stat.st_gid)));
            (entry.flags, entry.flags_extended) = old.as_ref().map_or((0, 0), hidden);
            stage(&mut file, &change.path, Some(&entry))?;
        }
        checkout.put_index(file.iter().collect()).map(|()| staged)
    }
}
