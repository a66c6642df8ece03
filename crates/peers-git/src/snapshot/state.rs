//! The questions that callers ask about a work tree.

use std::cell::Ref;
use std::collections::HashMap;
use std::path::Path;

use git2::Oid;
use peers_model::{CommitId, TreeId};

use crate::control::ControlDir;
use crate::error::GitError;
use crate::files;
use crate::ids;
use crate::objects;
use crate::snapshot::cache::{Cache, Known};
use crate::snapshot::scan::{Outcome, Scan, Wanted};

/// The state of a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// The tree of the commit that was asked about.
    pub head_tree: TreeId,
    /// The tree that the work tree would be committed as: tracked and untracked files, ignored ones
    /// left out, `.peers/` as the commit has it. Only its hash: the tree itself is not stored.
    pub worktree_tree: TreeId,
    /// The hash of the same, `.peers/` left out.
    pub without_peers: TreeId,
    /// The work tree differs from the commit, or a submodule in it from its own.
    pub dirty: bool,
    /// Checked-out submodules.
    pub submodules: Vec<SubmoduleState>,
    /// Names that no tree can hold (spellings of `.git`), at most 20. The tree is dirty then.
    pub unrepresentable: Vec<String>,
    /// Directories that lie deeper than any tree that can be read, at most 10 000, as they are: a commit of
    /// what is in them could not be read. The tree is dirty then. Untrusted bytes.
    pub too_deep: Vec<Vec<u8>>,
}

impl TreeState {
    /// Identifies what is in the work tree: its tree, or a hash that no tree has where something is in it
    /// that no tree of this repository can hold (names, uncommitted content of submodules).
    ///
    /// # Errors
    /// [`GitError::Library`].
    pub fn key(&self) -> Result<TreeId, GitError> {
        self.identify(&self.worktree_tree)
    }

    /// As [`TreeState::key`], of everything but `.peers/`.
    ///
    /// # Errors
    /// As [`TreeState::key`].
    pub fn content(&self) -> Result<TreeId, GitError> {
        self.identify(&self.without_peers)
    }

    fn identify(&self, tree: &TreeId) -> Result<TreeId, GitError> {
        // No path holds a line break that is not shown as something else; a hash has a fixed length.
        let edited = self.submodules.iter().filter(|module| module.changed);
        let beside: Vec<String> = edited
            .map(|module| format!("{} {}", module.content, module.path))
            .chain(self.unrepresentable.iter().map(|name| format!("name {name}")))
            .collect();
        if beside.is_empty() {
            return Ok(tree.clone());
        }
        let text = format!("{tree}\n{}\n", beside.join("\n"));
        Oid::hash_object(git2::ObjectType::Blob, text.as_bytes())
            .map(ids::tree_id)
            .map_err(|source| GitError::library("identify the work tree", source))
    }
}

/// A submodule that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmoduleState {
    /// Its path, cleaned for people.
    pub path: String,
    /// The hash of the files in it.
    pub content: TreeId,
    /// They are not those of the commit that it has checked out. False where that cannot be told.
    pub changed: bool,
}

/// A path that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirtyFile {
    /// How.
    pub status: DirtyStatus,
    /// The path, invalid UTF-8 replaced.
    pub path: String,
}

/// How a path differs from the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirtyStatus {
    /// Not in the commit.
    Added,
    /// Other content or mode.
    Modified,
    /// In the commit only.
    Deleted,
}

impl ControlDir {
    /// The state of the work tree at `work_dir` against the imported commit `head`.
    ///
    /// # Errors
    /// [`GitError::NotFound`] for a commit that was not imported, [`GitError::TooLarge`] for a work tree
    /// beyond all bounds, [`GitError::Io`].
    pub fn tree_state(&self, work_dir: &Path, head: &CommitId) -> Result<TreeState, GitError> {
        let (head_tree, outcome) = look(self, work_dir, head, Wanted::Hashes)?;
        let worktree_tree = ids::tree_id(outcome.tree);
        let head_tree = ids::tree_id(head_tree);
        Ok(TreeState {
            dirty: worktree_tree != head_tree
                || !outcome.unrepresentable.is_empty()
                || outcome.submodules.iter().any(|module| module.changed),
            head_tree,
            worktree_tree,
            without_peers: ids::tree_id(outcome.without_peers.unwrap_or(outcome.tree)),
            submodules: outcome.submodules,
            unrepresentable: outcome.unrepresentable,
            too_deep: outcome.too_deep,
        })
    }

    /// The paths that make the work tree dirty, at most `limit`, sorted.
    ///
    /// # Errors
    /// As [`ControlDir::tree_state`].
    pub fn dirty_files(
        &self,
        work_dir: &Path,
        head: &CommitId,
        limit: usize,
    ) -> Result<Vec<DirtyFile>, GitError> {
        let (_, outcome) = look(self, work_dir, head, Wanted::Names(limit))?;
        let mut found = outcome.dirty;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.truncate(limit);
        Ok(found)
    }

    /// Stores the work tree at `work_dir` as a tree of its own, ignored files left out. Its hash; equal to
    /// [`TreeState::worktree_tree`] but for files that were too large or unreadable, which are left out.
    ///
    /// # Errors
    /// As [`ControlDir::tree_state`]; [`GitError::DiskFull`].
    pub fn store_work_tree(&self, work_dir: &Path, head: &CommitId) -> Result<TreeId, GitError> {
        self.keep_work_tree(work_dir, head).map(|stored| stored.tree)
    }

    /// As [`ControlDir::store_work_tree`], with the names of the files that were left out: the tree has of
    /// them what the commit has.
    ///
    /// # Errors
    /// As [`ControlDir::store_work_tree`].
    pub fn keep_work_tree(&self, work_dir: &Path, head: &CommitId) -> Result<StoredTree, GitError> {
        let Written { tree, left_out, .. } = write_work_tree(self, work_dir, head)?;
        Ok(StoredTree { tree: ids::tree_id(tree), left_out })
    }

    /// Where something of the name `.git` lies below the top of a work tree, outside of ignored directories;
    /// at most 10 000.
    pub(crate) fn nested_git(&self, work_dir: &Path, head: &CommitId) -> Result<Vec<Vec<u8>>, GitError> {
        look(self, work_dir, head, Wanted::Hashes).map(|(_, outcome)| outcome.nested)
    }

    /// The same as the last look of this process found it, where that was against a commit of the same tree.
    pub(crate) fn nested_seen(&self, work_dir: &Path, head: &CommitId) -> Result<Vec<Vec<u8>>, GitError> {
        self.load_cache(work_dir);
        let tree = objects::commit_tree(&self.repo, head)?;
        let seen = self.cache.borrow().as_ref().and_then(|cache| cache.nested.clone());
        seen.filter(|(then, _)| *then == tree)
            .map_or_else(|| self.nested_git(work_dir, head), |seen| Ok(seen.1))
    }

    /// Content hashes of files of a work tree under their stamps, as the last look found them.
    pub(crate) fn stamps(&self, work_dir: &Path) -> Option<Ref<'_, HashMap<Vec<u8>, Known>>> {
        self.load_cache(work_dir);
        Ref::filter_map(self.cache.borrow(), |slot| slot.as_ref().map(|cache| &cache.entries)).ok()
    }

    fn load_cache(&self, work_dir: &Path) {
        let mut slot = self.cache.borrow_mut();
        if slot.as_ref().is_none_or(|cache| cache.work_dir != work_dir) {
            *slot = Some(Cache::load(&self.own(""), work_dir));
        }
    }
}

/// A work tree that was stored as a tree of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTree {
    /// The tree.
    pub tree: TreeId,
    /// Paths of files that were too large (64 MiB) or unreadable, as they are. Untrusted bytes.
    pub left_out: Vec<Vec<u8>>,
}

/// A work tree written into the control directory as a tree.
pub(crate) struct Written {
    pub(crate) tree: Oid,
    pub(crate) head_tree: Oid,
    /// Files that were too large to be kept.
    pub(crate) left_out: Vec<Vec<u8>>,
}

/// Stores the work tree's content in the control directory.
pub(crate) fn write_work_tree(
    control: &ControlDir,
    work_dir: &Path,
    head: &CommitId,
) -> Result<Written, GitError> {
    let (head_tree, outcome) = look(control, work_dir, head, Wanted::Objects)?;
    Ok(Written { tree: outcome.tree, head_tree, left_out: outcome.left_out })
}

fn look(
    control: &ControlDir,
    work_dir: &Path,
    head: &CommitId,
    wanted: Wanted,
) -> Result<(Oid, Outcome), GitError> {
    let work_dir = files::canonical(work_dir)?;
    let head_tree = objects::commit_tree(&control.repo, head)?;
    let odb = objects::odb(&control.repo)?;
    control.load_cache(&work_dir);
    let mut slot = control.cache.borrow_mut();
    // Filled two lines above.
    let Some(cache) = slot.as_mut() else {
        return Err(GitError::NotFound { what: "the cache".to_owned() });
    };
    let (outcome, entries) = Scan::new(&odb, &cache.entries, wanted, control.clock).run(
        &work_dir,
        head_tree,
        control.excludes.as_deref(),
    )?;
    cache.update(entries)?;
    cache.nested = Some((head_tree, outcome.nested.clone()));
    Ok((head_tree, outcome))
}
