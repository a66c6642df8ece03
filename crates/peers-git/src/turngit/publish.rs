//! Publishing the work of a turn into the checkout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::IndexEntry;
use peers_model::CommitId;

use super::harvest::{Accepted, HarvestSpec};
use super::index::{hidden, is_as};
use super::{lfs, others};
use crate::checkout::{index_entry, ordered_changes};
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::index_mark::Leaves;
use crate::objects;
use crate::repo::PeerRepo;
use crate::reset::{IndexLock, replace_index};
use crate::snapshot::Stamp;

/// What became of the work of a turn in the checkout.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Published {
    /// The operator moved the run's branch meanwhile; the work is not on it.
    pub moved: Option<BranchMoved>,
    /// What became of the checkout's index.
    pub index: IndexUpdate,
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

/// What became of the checkout's index.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum IndexUpdate {
    /// `HEAD` is elsewhere: it was left as it is.
    #[default]
    Left,
    /// It has what the turn committed. What the operator had staged at the same paths is lost from it.
    Done {
        /// Those paths, cleaned for people.
        displaced: Vec<String>,
        /// The salvage that has their content, where nothing else has it.
        kept: Option<String>,
    },
}

/// Each may be interrupted, and done again when it was done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Lfs,
    Objects,
    Branch,
    Index,
}

pub(crate) const STEPS: [Step; 4] = [Step::Lfs, Step::Objects, Step::Branch, Step::Index];

impl Accepted {
    /// Copies the turn's objects into the checkout, moves the run's branch from where the turn began, brings the
    /// index to what was committed, and throws the turn's git directory away. After an error, or a crash, the
    /// turn is found again and can be harvested and published again.
    ///
    /// # Errors
    /// [`crate::RepoError::Busy`] when branch or index are locked, [`GitError::DiskFull`], [`GitError::Io`].
    pub fn publish(
        self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<Published, GitError> {
        let published = self.steps(control, checkout, spec, &STEPS)?;
        self.git.discard()?;
        Ok(published)
    }

    pub(crate) fn steps(
        &self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
        steps: &[Step],
    ) -> Result<Published, GitError> {
        let mut done = Published::default();
        if self.tip == self.git.state.tip {
            return Ok(done);
        }
        // Left by a crash in the middle of this.
        checkout.remove_own_index_lock()?;
        // A commit with an index from before the branch moves would take the turn's work back.
        let on_branch = checkout.facts().head()?.branch == self.git.state.branch;
        let _lock = on_branch.then(|| IndexLock::take(checkout)).transpose()?;
        for step in steps {
            match step {
                Step::Lfs => done.lfs_refused = lfs::copy(&self.git.git_dir(), checkout.common_dir())?,
                Step::Objects => checkout.publish(control, &self.tip)?,
                Step::Branch => {
                    done.moved = self.move_branch(control, checkout, spec)?;
                    if done.moved.is_some() {
                        break;
                    }
                }
                Step::Index => done.index = self.update_index(control, checkout, spec)?,
            }
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
        let subject = control.facts().commit(new)?.message.lines().next().unwrap_or_default().to_owned();
        let reason = format!("commit: {subject}");
        let found = match &self.git.state.branch {
            Some(branch) => match checkout.update_branch(branch, Some(old), new, spec.author, &reason) {
                Err(GitError::Moved { found, .. }) => found,
                other => return other.map(|()| None),
            },
            None if checkout.facts().head()?.branch.is_some() => None,
            None => match checkout.move_head(old, new, spec.author, &reason) {
                Err(GitError::Moved { found, .. }) => found,
                other => return other.map(|()| None),
            },
        };
        // Done before a crash, and perhaps the operator went on from there.
        if found.as_ref().is_some_and(|found| self.is_in(control, checkout, found)) {
            return Ok(None);
        }
        let kept = others::keep_known(control, ("unpublished", new), spec)?;
        Ok(Some(BranchMoved { found, kept }))
    }

    fn is_in(&self, control: &ControlDir, checkout: &PeerRepo, found: &CommitId) -> bool {
        let within = |facts: crate::Facts<'_>| facts.is_ancestor(&self.tip, found).unwrap_or(false);
        within(control.facts()) || within(checkout.facts())
    }

    /// The index as it would be after a commit there.
    fn update_index(
        &self,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<IndexUpdate, GitError> {
        let head = checkout.facts().head()?;
        if head.branch != self.git.state.branch || head.commit != self.tip {
            return Ok(IndexUpdate::Left);
        }
        let odb = objects::odb(&control.repo)?;
        let tree = |commit| objects::commit_tree(&control.repo, commit);
        let changes = ordered_changes(&odb, tree(&self.git.state.tip)?, tree(&self.tip)?)?;
        let fail = |source| GitError::library("bring the index to what was committed", source);
        let mut index = checkout.open_index_file()?;
        let (mut displaced, mut leaves) = (Vec::new(), Leaves::new());
        for change in &changes {
            let path = Path::new(OsStr::from_bytes(&change.path));
            let old = index.get_path(path, 0);
            let at = |entry: &IndexEntry| Some((entry.mode, entry.id));
            if let Some(entry) = old.as_ref().filter(|entry| ![change.old, change.new].contains(&at(entry))) {
                displaced.push(IndexEntry { path: entry.path.clone(), ..*entry });
            }
            // An unmerged entry goes with its other stages; there may be none.
            drop(index.conflict_remove(path));
            let Some((mode, id)) = change.new else {
                // Not there is as good.
                drop(index.remove(path, 0));
                continue;
            };
            leaves.insert(change.path.clone(), (mode, id));
            let mut entry = stamped(control, checkout, index_entry(&change.path, mode, id, None));
            (entry.flags, entry.flags_extended) = old.as_ref().map_or((0, 0), hidden);
            index.add(&entry).map_err(fail)?;
        }
        let at = (format!("{}/staged", spec.label), spec.author);
        let (kept, _) = checkout.keep_staged(control, &self.tip, (&displaced, &leaves), (&at.0, at.1))?;
        replace_index(checkout, &index)?;
        let displaced = displaced.iter().map(|entry| clean_bytes(&entry.path)).collect();
        Ok(IndexUpdate::Done { displaced, kept })
    }
}

/// With the stamp of the file, where that is known to have the content.
fn stamped(control: &ControlDir, checkout: &PeerRepo, entry: IndexEntry) -> IndexEntry {
    let Some(stamps) = control.stamps(checkout.work_dir()) else { return entry };
    let known = stamps.get(&entry.path).filter(|known| is_as(known, &entry));
    let path = checkout.work_dir().join(OsStr::from_bytes(&entry.path));
    let stat = files::lstat(&path).ok().flatten();
    match stat.filter(|stat| known.is_some_and(|known| known.stamp == Stamp::of(stat))) {
        Some(stat) => index_entry(&entry.path, entry.mode, entry.id, Some(&stat)),
        None => entry,
    }
}
