//! Checkouts: pristine trees and gate trees of ours, and linked worktrees of the operator's repository.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Oid};
use peers_model::CommitId;

use crate::bare::{self, Bare};
use crate::checkout::{self, CheckoutReport, Laid, Trust};
use crate::control::ControlDir;
use crate::copy;
use crate::error::{GitError, clean};
use crate::files;
use crate::ids;
use crate::import::Check;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;
use crate::snapshot::Cache;
use crate::store::{Bounded, Budget};
use crate::write::Author;

/// Tags that a synthetic git directory shows.
const MAX_TAGS: usize = 5_000;
/// A tag may name a tag, and so on.
const MAX_TAG_CHAIN: usize = 20;
/// A tag that is larger is not shown, and none after so much of them, or after this time.
const TAG_CAP: usize = 1 << 20;
const TAGS_TOTAL: usize = if cfg!(test) { 4 << 20 } else { 64 << 20 };
const TAGS_TIME: Duration = Duration::from_mins(1);
/// Packs of a history that is brought in as a whole, in bytes.
const MAX_HISTORY: u64 = 2 << 30;
/// Files beside packs. A store with more is refused elsewhere.
const MAX_PACKS: usize = 1_000_000;

/// What stands in for `.git` in a tree of ours, so that gates can ask git about it: our own directory
/// with a detached `HEAD`, packed references, an empty configuration, and objects borrowed from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticGit {
    /// The object store to borrow from, as the programs in the tree will see its path.
    pub objects_dir: PathBuf,
    /// The edge of that store's history, if it is shallow.
    pub shallow: Vec<CommitId>,
    /// Tags, name and object.
    pub tags: Vec<(String, String)>,
}

impl SyntheticGit {
    /// Borrows from the control directory: the imported history, merges and reverts made there included.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn over_control(control: &ControlDir) -> Result<Self, GitError> {
        let shallow = bare::shallow_of(control.path())?;
        Ok(Self { objects_dir: control.objects_dir(), shallow, tags: Vec::new() })
    }
}

/// Bytes of all packs and their indexes. An index has as much per object as a small object in a pack, and many
/// objects cost more than much content.
fn pack_bytes(peer: &PeerRepo) -> Result<u64, GitError> {
    let path = peer.objects_dir().join("pack");
    let fail = |source| GitError::io(&path, source);
    let Ok(dir) = files::open_dir(&path) else { return Ok(0) };
    let mut total = 0_u64;
    for (name, _) in files::list(&dir, MAX_PACKS).map_err(fail)?.unwrap_or_default() {
        let weight = if name.ends_with(b".idx") { 64 } else { u64::from(name.ends_with(b".pack")) };
        if let Some(stat) = files::lstat_at(&dir, &name).map_err(fail)?.filter(|_| weight > 0) {
            total = total.saturating_add(files::size(&stat).saturating_mul(weight));
        }
    }
    Ok(total)
}

/// What a tag names.
fn tag_target(tag: &[u8]) -> Option<Oid> {
    let line = tag.strip_prefix(b"object ")?.get(..40)?;
    Oid::from_str(std::str::from_utf8(line).ok()?).ok()
}

impl ControlDir {
    /// What stands in for `.git` where something is proved. It borrows from this directory alone, whose
    /// objects were hashed when they came in, and shows the tags of the agents' repository that lead to
    /// imported commits. The history from before the import is brought in first; where there is more of it
    /// than two gigabytes, or it cannot be read, gates see the history from there on.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a repository that is unsafe to read, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn lend(&mut self, peer: &PeerRepo) -> Result<SyntheticGit, GitError> {
        if self.lacks_history_of(peer)? {
            match self.deepen_by(peer, Check::Names) {
                Ok(()) => {}
                Err(error @ (GitError::Repo(_) | GitError::Io { .. } | GitError::DiskFull { .. })) => {
                    return Err(error);
                }
                // What is asked is about the imported part, and that is here.
                Err(_) => self.reopen()?,
            }
        }
        let mut git = SyntheticGit::over_control(self)?;
        git.tags = self.tags_here(peer)?;
        Ok(git)
    }

    /// Whether the history here ends where that of the agents' repository goes on, and is not too long.
    fn lacks_history_of(&self, peer: &PeerRepo) -> Result<bool, GitError> {
        let theirs: HashSet<CommitId> = bare::shallow_of(peer.common_dir())?.into_iter().collect();
        let ends = bare::shallow_of(self.path())?.iter().any(|commit| !theirs.contains(commit));
        Ok(ends && pack_bytes(peer)? <= MAX_HISTORY)
    }

    /// Tags of the agents' repository whose commits are here. Their own objects are copied.
    fn tags_here(&self, peer: &PeerRepo) -> Result<Vec<(String, String)>, GitError> {
        let fail = |source| GitError::library("list tags", source);
        let found = peer.repo.references_glob("refs/tags/*").map_err(fail)?.take(MAX_TAGS);
        // An unreadable tag is no tag.
        let named = found.flatten().filter_map(|tag| Some((tag.name().ok()?.to_owned(), tag.target()?)));
        let tags: Vec<(String, Oid)> = named.collect();
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        peer.check_objects()?;
        let (src, dst) = (objects::odb(&peer.repo)?, objects::odb(&self.repo)?);
        let mut here = Vec::new();
        let mut budget = Budget::new(TAGS_TOTAL, TAGS_TIME);
        for (name, oid) in tags {
            if budget.is_late() {
                break;
            }
            let mut chain = Vec::new();
            let mut at = Some(oid);
            while let Some(next) = at.filter(|next| !copy::has(&dst, *next)) {
                let is_tag = src.read_header(next).is_ok_and(|(_, kind)| kind == ObjectType::Tag);
                if !is_tag || chain.len() >= MAX_TAG_CHAIN {
                    break;
                }
                at = match budget.read(&src, next, TAG_CAP) {
                    Bounded::Read(_, data) => {
                        let target = tag_target(&data);
                        chain.push(data);
                        target
                    }
                    Bounded::Damaged | Bounded::TooMuch => None,
                };
            }
            if !at.is_some_and(|at| copy::has(&dst, at)) {
                continue;
            }
            for tag in chain.into_iter().rev() {
                let fail = |source| GitError::library(format!("a tag of `{}`", clean(&name, 200)), source);
                dst.write(ObjectType::Tag, &tag).map_err(fail)?;
            }
            here.push((name, oid.to_string()));
        }
        Ok(here)
    }

    /// Checks out an imported commit into `dir`, which must be absent or empty and whose parent must
    /// exist. Nothing but what the commit holds is in it: no ignored files, no caches.
    ///
    /// # Errors
    /// [`GitError::Exists`] when something is in the way, [`GitError::NotFound`], [`GitError::DiskFull`].
    pub fn checkout_pristine(
        &self,
        commit: &CommitId,
        dir: &Path,
        git: &SyntheticGit,
    ) -> Result<(), GitError> {
        empty_dir(dir)?;
        let odb = objects::odb(&self.repo)?;
        let laid = checkout::lay_down(&odb, objects::commit_tree(&self.repo, commit)?, dir)?;
        self.write_synthetic(commit, dir, git, laid)
    }

    /// Brings a checkout back to a commit: what is not in the commit goes, except below the directories
    /// `keep` (relative to it); changed files are written again, unchanged ones keep their times.
    ///
    /// # Errors
    /// As [`ControlDir::checkout_pristine`].
    pub fn reset_checkout(
        &self,
        commit: &CommitId,
        dir: &Path,
        keep: &[&str],
        git: &SyntheticGit,
    ) -> Result<CheckoutReport, GitError> {
        let dir = files::canonical(dir)?;
        let odb = objects::odb(&self.repo)?;
        let tree = objects::commit_tree(&self.repo, commit)?;
        let mut cache = Cache::load(&self.own(""), &dir);
        let trust = Trust { known: &cache.entries, clock: self.clock };
        let done = checkout::bring_back(&odb, tree, &dir, keep, &trust)?;
        cache.update(done.stamps)?;
        self.write_synthetic(commit, &dir, git, done.laid)?;
        Ok(done.report)
    }

    /// Writes `.git` of a checkout anew: whatever a gate did to the old one is gone.
    fn write_synthetic(
        &self,
        commit: &CommitId,
        dir: &Path,
        git: &SyntheticGit,
        laid: Vec<Laid>,
    ) -> Result<(), GitError> {
        let SyntheticGit { objects_dir, shallow, tags } = git;
        let dot_git = dir.join(".git");
        files::remove_tree(&dot_git)?;
        let mut packed: Vec<(String, String)> = tags.clone();
        for (name, oid) in self.imported_branches()? {
            packed.push((name, oid.to_string()));
        }
        packed.sort();
        let made = Bare {
            config: b"",
            head: commit.as_str(),
            refs: bare::packed_refs(packed),
            stores: bare::alternates([objects_dir])?,
            shallow,
        };
        made.write(&dot_git)?;
        checkout::write_index(&dot_git.join("index"), laid)
    }
}

/// Removes a checkout with everything in it, never following a symlink. Nothing there is fine.
///
/// # Errors
/// [`GitError::Io`].
pub fn remove_checkout(dir: &Path) -> Result<(), GitError> {
    files::remove_tree(dir)
}

impl PeerRepo {
    /// Makes a linked worktree at `dir` (absent or empty, outside this work tree) with a new branch at an
    /// imported commit, and opens it. `name` is the worktree's name inside the git directory.
    ///
    /// # Errors
    /// [`GitError::Exists`] when directory, name or branch are taken; nothing is left behind then.
    pub fn add_linked(
        &self,
        control: &ControlDir,
        dir: &Path,
        name: &str,
        branch: &str,
        at: &CommitId,
        author: &Author,
    ) -> Result<Self, GitError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
            return Err(GitError::InvalidName { what: "worktree name", text: clean(name, 100) });
        }
        self.check_writable()?;
        empty_dir(dir)?;
        let dir = files::canonical(dir)?;
        if dir.starts_with(self.work_dir()) || self.work_dir().starts_with(&dir) {
            return Err(GitError::Unsafe {
                path: clean(&dir.display().to_string(), 300),
                why: "a linked worktree must lie outside the checkout",
            });
        }
        let worktrees = self.common_dir().join("worktrees");
        files::ensure_dir(&worktrees)?;
        let admin = worktrees.join(name);
        if files::lstat(&admin).map_err(|source| GitError::io(&admin, source))?.is_some() {
            return Err(GitError::Exists { what: format!("worktree `{name}`") });
        }
        self.publish(control, at)?;
        self.create_branch(branch, at, author)?;
        let made = fill_linked(control, &dir, &admin, branch, at);
        if let Err(error) = made {
            // Undo as far as possible; the first error is the one that matters.
            drop(files::remove_tree(&dir));
            drop(files::remove_tree(&admin));
            let full = refs::branch_name(branch)?;
            let who = author.signature()?;
            drop(refs::compare_and_swap(
                &self.repo,
                &full,
                Some(ids::commit_oid(at)?),
                None,
                &who,
                "worktree: undone",
            ));
            return Err(error);
        }
        Ok(Self::open_known(&dir, self.common_dir())?)
    }
}

fn fill_linked(
    control: &ControlDir,
    dir: &Path,
    admin: &Path,
    branch: &str,
    at: &CommitId,
) -> Result<(), GitError> {
    files::ensure_dir(admin)?;
    files::replace(&admin.join("HEAD"), format!("ref: {}\n", refs::branch_name(branch)?).as_bytes())?;
    files::replace(&admin.join("commondir"), b"../..\n")?;
    let line = |prefix: &[u8], path: &Path| -> Result<Vec<u8>, GitError> {
        Ok([prefix, bare::path_bytes(path)?, b"\n"].concat())
    };
    files::replace(&admin.join("gitdir"), &line(b"", &dir.join(".git"))?)?;
    files::replace(&dir.join(".git"), &line(b"gitdir: ", admin)?)?;
    let odb = objects::odb(&control.repo)?;
    let laid = checkout::lay_down(&odb, objects::commit_tree(&control.repo, at)?, dir)?;
    checkout::write_index(&admin.join("index"), laid)
}

fn empty_dir(dir: &Path) -> Result<(), GitError> {
    let fail = |source| GitError::io(dir, source);
    files::ensure_dir(dir)?;
    let fd = files::open_dir(dir).map_err(fail)?;
    match files::list(&fd, 1).map_err(fail)? {
        Some(found) if found.is_empty() => Ok(()),
        _ => Err(GitError::Exists { what: format!("something in `{}`", dir.display()) }),
    }
}
