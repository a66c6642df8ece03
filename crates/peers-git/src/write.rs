//! Changes to the agents' repository.
//!
//! Commits are built in the control directory, copied over object by object, and published by a
//! compare-and-swap of the reference. The work tree is changed path by path. No hook, filter or signing
//! program runs, and nothing is undone here that has not been salvaged by the caller.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ErrorCode, Index, IndexEntry, Oid, Signature};
use peers_model::{CommitId, Timestamp, TreeId};

use crate::blob::{self, Leaf};
use crate::checkout::{self, CheckoutReport, Writer};
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::diff::RawChange;
use crate::error::{BusyState, GitError, clean, clean_bytes};
use crate::facts::Identity;
use crate::files::{self, Small};
use crate::ids;
use crate::index_entries::STAGE;
use crate::objects::{self, Entry, MODE_EXEC, MODE_FILE, MODE_TREE};
use crate::place::Place;
use crate::refs;
use crate::repo::PeerRepo;

/// A file that [`PeerRepo::commit_paths`] takes.
const COMMIT_FILE_CAP: u64 = 8 << 20;

/// Who makes a change, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Name and address, for author, committer and reflog.
    pub identity: Identity,
    /// The time, stored in seconds and as UTC.
    pub time: Timestamp,
}

impl Author {
    /// From its parts.
    #[must_use]
    pub fn new(name: &str, email: &str, time: Timestamp) -> Self {
        Self { identity: Identity { name: name.to_owned(), email: email.to_owned() }, time }
    }

    pub(crate) fn signature(&self) -> Result<Signature<'static>, GitError> {
        refs::signature(&self.identity, self.time.as_millis().div_euclid(1000))
    }
}

impl ControlDir {
    /// Builds one commit on `onto` whose tree is the tree of `tree_of`: a revert that needs no merge and
    /// cannot conflict. It is in the control directory only; see [`PeerRepo::publish`].
    ///
    /// # Errors
    /// [`GitError::NotFound`] when one of the commits was not imported.
    pub fn revert_commit(
        &self,
        onto: &CommitId,
        tree_of: &CommitId,
        message: &str,
        author: &Author,
    ) -> Result<CommitId, GitError> {
        let tree = objects::commit_tree(&self.repo, tree_of)?;
        self.commit_tree(tree, &[ids::commit_oid(onto)?], message, author)
    }

    /// Builds a commit of an existing tree.
    pub(crate) fn commit_tree(
        &self,
        tree: Oid,
        parents: &[Oid],
        message: &str,
        author: &Author,
    ) -> Result<CommitId, GitError> {
        let fail = |source| GitError::library("build a commit", source);
        let who = author.signature()?;
        let tree = self.repo.find_tree(tree).map_err(fail)?;
        let parents = parents
            .iter()
            .map(|oid| self.repo.find_commit(*oid))
            .collect::<Result<Vec<_>, _>>()
            .map_err(fail)?;
        let message = message.replace('\0', "\u{fffd}");
        self.repo
            .commit(None, &who, &who, &message, &tree, &parents.iter().collect::<Vec<_>>())
            .map(ids::commit_id)
            .map_err(fail)
    }
}

impl PeerRepo {
    /// Copies a commit of the control directory, and all that it needs, into this repository's objects.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] when the control directory lacks something; [`GitError::Repo`].
    pub fn publish(&self, control: &ControlDir, commit: &CommitId) -> Result<(), GitError> {
        self.check_objects()?;
        let stores = (&objects::odb(&control.repo)?, &objects::odb(&self.repo)?);
        match copy::copy_closure(stores, &[ids::commit_oid(commit)?], &[], Limits::OURS, Shape::Loose)? {
            Copied::Done(_) => Ok(()),
            Copied::TooMuch => {
                Err(GitError::TooLarge { what: format!("commit {}", commit.short()), cap: "8 GiB".into() })
            }
            Copied::Odd(what) => Err(GitError::Corrupt { what, detail: "not well formed".to_owned() }),
        }
    }

    /// Moves a branch, if it is still where `expected` says (`None` = it must not exist).
    ///
    /// Work tree and index stay as they are.
    ///
    /// # Errors
    /// [`GitError::Moved`] when it is somewhere else, [`crate::RepoError::Busy`] when it is locked.
    pub fn update_branch(
        &self,
        branch: &str,
        expected: Option<&CommitId>,
        new: &CommitId,
        author: &Author,
        reason: &str,
    ) -> Result<(), GitError> {
        let name = refs::branch_name(branch)?;
        self.swap(&name, expected, Some(new), author, reason)
    }

    /// Moves whatever `HEAD` is: its branch, or a detached `HEAD` itself.
    ///
    /// # Errors
    /// As [`PeerRepo::update_branch`].
    pub fn move_head(
        &self,
        expected: &CommitId,
        new: &CommitId,
        author: &Author,
        reason: &str,
    ) -> Result<(), GitError> {
        let name = self.facts().head()?.branch.unwrap_or_else(|| "HEAD".to_owned());
        self.swap(&name, Some(expected), Some(new), author, reason)
    }

    fn swap(
        &self,
        name: &str,
        expected: Option<&CommitId>,
        new: Option<&CommitId>,
        author: &Author,
        reason: &str,
    ) -> Result<(), GitError> {
        self.check_writable()?;
        let oid = |id: Option<&CommitId>| id.map(ids::commit_oid).transpose();
        refs::compare_and_swap(&self.repo, name, oid(expected)?, oid(new)?, &author.signature()?, reason)
    }

    /// Whether a branch of this name can be made; nothing is written.
    ///
    /// # Errors
    /// [`GitError::InvalidName`] for what is no name of a branch, [`GitError::Exists`] when it is taken, or
    /// another one leaves no room for it, such as `a` for `a/b`.
    pub fn free_branch(&self, branch: &str) -> Result<(), GitError> {
        let name = refs::branch_name(branch)?;
        let short = |name: &str| clean(name.strip_prefix("refs/heads/").unwrap_or(name), 200);
        if self.list_refs(&name, usize::MAX)?.is_some_and(|found| found.contains_key(&name)) {
            return Err(GitError::Exists { what: format!("branch `{}`", short(&name)) });
        }
        let Some(other) = self.in_the_way(&name)? else { return Ok(()) };
        let (other, name) = (short(&other), short(&name));
        Err(GitError::Exists { what: format!("branch `{other}`, which blocks the name `{name}`,") })
    }

    /// A reference that leaves no room for one of this name: `a` for `a/b`, and the other way round.
    ///
    /// # Errors
    /// [`GitError::InvalidName`], [`GitError::Library`] when the references cannot be listed.
    pub fn in_the_way(&self, name: &str) -> Result<Option<String>, GitError> {
        refs::check_name(name)?;
        let mut above = name.match_indices('/').skip(1).filter_map(|(at, _)| name.get(..at));
        if let Some(above) = above.find(|above| self.repo.find_reference(above).is_ok()) {
            return Ok(Some(above.to_owned()));
        }
        let fail = |source| GitError::library("list the references", source);
        let mut below = self.repo.references_glob(&format!("{name}/*")).map_err(fail)?;
        Ok(below.find_map(|found| found.ok()?.name().ok().map(str::to_owned)))
    }

    /// Makes a new branch.
    ///
    /// # Errors
    /// [`GitError::Exists`] when the name is taken.
    pub fn create_branch(&self, branch: &str, at: &CommitId, author: &Author) -> Result<(), GitError> {
        match self.update_branch(branch, None, at, author, "branch: created by peers") {
            Err(GitError::Moved { name, .. }) => Err(GitError::Exists { what: format!("branch `{name}`") }),
            other => other,
        }
    }

    /// Makes `HEAD` name a branch (again). Work tree, index and branch stay as they are.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when there is no such branch.
    pub fn set_head_branch(&self, branch: &str, author: &Author) -> Result<(), GitError> {
        let name = refs::branch_name(branch)?;
        self.check_writable()?;
        if self.facts().reference(&name)?.is_none() {
            return Err(GitError::NotFound { what: format!("branch `{}`", clean(&name, 200)) });
        }
        refs::set_head(&self.repo, Ok(&name), &author.signature()?)
    }

    /// Makes `HEAD` name a commit and no branch. Work tree, index and branches stay as they are.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when the commit is not in this repository.
    pub fn detach_head(&self, at: &CommitId, author: &Author) -> Result<(), GitError> {
        let at = self.facts().commit_oid(at)?;
        self.check_writable()?;
        refs::set_head(&self.repo, Err(at), &author.signature()?)
    }

    /// Writes the paths that differ between two trees of the control directory into the work tree, and
    /// brings the index to `to` at these paths.
    ///
    /// No symlink is followed; paths in `.peers` are left alone. Doing it twice gives the same.
    ///
    /// # Errors
    /// [`GitError::Unsafe`] for a path that leads out of the work tree (nothing is changed then),
    /// [`crate::RepoError::Busy`] when the index is locked.
    pub fn checkout_changed(
        &self,
        control: &ControlDir,
        from: &TreeId,
        to: &TreeId,
    ) -> Result<CheckoutReport, GitError> {
        self.checkout_changed_but(control, from, to, &|_| false)
    }

    /// As [`PeerRepo::checkout_changed`], but paths that `spared` takes are left as they are.
    ///
    /// # Errors
    /// As [`PeerRepo::checkout_changed`].
    pub fn checkout_changed_but(
        &self,
        control: &ControlDir,
        from: &TreeId,
        to: &TreeId,
        spared: &dyn Fn(&str) -> bool,
    ) -> Result<CheckoutReport, GitError> {
        self.check_out(control, (from, to), spared, true)
    }

    /// As [`PeerRepo::checkout_changed_but`], but the index stays as it is: for content that was never
    /// committed, of which the agents' repository has no copy.
    ///
    /// # Errors
    /// As [`PeerRepo::checkout_changed`].
    pub fn write_changed_but(
        &self,
        control: &ControlDir,
        from: &TreeId,
        to: &TreeId,
        spared: &dyn Fn(&str) -> bool,
    ) -> Result<CheckoutReport, GitError> {
        self.check_out(control, (from, to), spared, false)
    }

    fn check_out(
        &self,
        control: &ControlDir,
        (from, to): (&TreeId, &TreeId),
        spared: &dyn Fn(&str) -> bool,
        with_index: bool,
    ) -> Result<CheckoutReport, GitError> {
        let odb = objects::odb(&control.repo)?;
        let (from, to) =
            (objects::require_tree(&control.repo, from)?, objects::require_tree(&control.repo, to)?);
        let mut changes = checkout::ordered_changes(&odb, from, to)?;
        changes.retain(|change| !is_ours(&change.path) && !spared(&String::from_utf8_lossy(&change.path)));
        if let Some(bad) =
            changes.iter().find(|change| change.path.split(|b| *b == b'/').any(objects::forbidden_name))
        {
            return Err(GitError::Unsafe {
                path: clean_bytes(&bad.path),
                why: "it is not a name for a file of a work tree",
            });
        }
        if changes.is_empty() {
            return Ok(CheckoutReport::default());
        }
        self.check_writable()?;
        self.check_index_free()?;
        let mut index = if with_index {
            self.open_index()?
        } else {
            // One of no repository, thrown away: it asks for no objects.
            Index::new().map_err(|source| GitError::library("make an index", source))?
        };
        let mut writer = Writer::new(&odb, Place::work_tree(self.work_dir())?, to);
        write_changes(&mut writer, &mut index, &changes)?;
        if with_index {
            self.write_index(&mut index)?;
        }
        Ok(writer.report)
    }

    /// Whether the index can be read. One that is not there can.
    #[must_use]
    pub fn index_readable(&self) -> bool {
        self.open_index().is_ok()
    }

    /// Makes the index hold exactly this tree of the control directory, whatever was staged or marked in
    /// it. The work tree stays as it is.
    ///
    /// # Errors
    /// [`crate::RepoError::Busy`] when the index is locked.
    pub fn reset_index(&self, control: &ControlDir, to: &TreeId) -> Result<(), GitError> {
        let odb = objects::odb(&control.repo)?;
        let to = objects::require_tree(&control.repo, to)?;
        self.check_writable()?;
        let _lock = self.lock_index()?;
        // What is right keeps its stamps, so that git need not read every file again.
        let mut held: HashMap<Vec<u8>, IndexEntry> = self
            .open_index_file()?
            .iter()
            .filter(|entry| entry.flags & STAGE == 0)
            .map(|entry| (entry.path.clone(), IndexEntry { flags: 0, flags_extended: 0, ..entry }))
            .collect();
        let entry = |leaf: Leaf| {
            let right = held.remove(&leaf.path).filter(|held| held.mode == leaf.mode && held.id == leaf.id);
            right.unwrap_or_else(|| checkout::index_entry(leaf.path, leaf.mode, leaf.id, None))
        };
        self.put_index(blob::leaves(&odb, to)?.into_iter().map(entry).collect())
    }

    /// Before anything is changed that the index must follow.
    pub(crate) fn check_index_free(&self) -> Result<(), GitError> {
        self.index_lock().map_or(Ok(()), |busy| Err(GitError::Repo(busy)))
    }

    pub(crate) fn write_index(&self, index: &mut Index) -> Result<(), GitError> {
        index.write().map_err(|source| match source.code() {
            ErrorCode::Locked => GitError::Repo(self.is_busy(BusyState::IndexLock, None)),
            _ => GitError::library("write the index", source),
        })
    }

    /// Commits exactly these files as they are in the work tree, on top of `HEAD`, whatever else is
    /// staged: other staged changes stay staged and out of the commit.
    ///
    /// For small plain files (8 MiB); a file that is gone from the work tree is removed.
    ///
    /// # Errors
    /// [`crate::RepoError::Unborn`] without a first commit, [`GitError::Unsafe`] for a path that is no plain
    /// file of the work tree, [`GitError::Moved`] when `HEAD` moves meanwhile.
    pub fn commit_paths(&self, paths: &[&str], message: &str, author: &Author) -> Result<CommitId, GitError> {
        let head = self.facts().head()?;
        self.check_writable()?;
        self.check_index_free()?;
        let fail = |source| GitError::library("commit files", source);
        let odb = objects::odb(&self.repo)?;
        let parent = self.repo.find_commit(ids::commit_oid(&head.commit)?).map_err(fail)?;
        let mut tree = parent.tree_id();
        let mut changed = Vec::new();
        for path in paths {
            let leaf = self.read_file(path)?;
            let entry = leaf
                .map(|(mode, bytes)| Ok((mode, odb.write(git2::ObjectType::Blob, &bytes)?)))
                .transpose()
                .map_err(fail)?;
            tree = graft(&odb, Some(tree), path.as_bytes(), entry)?
                .map_or_else(|| odb.write(git2::ObjectType::Tree, &[]).map_err(fail), Ok)?;
            changed.push((path.as_bytes(), entry));
        }
        let who = author.signature()?;
        let tree = self.repo.find_tree(tree).map_err(fail)?;
        let message = message.replace('\0', "\u{fffd}");
        let commit = self.repo.commit(None, &who, &who, &message, &tree, &[&parent]).map_err(fail)?;
        let name = head.branch.as_deref().unwrap_or("HEAD");
        let subject = message.lines().next().unwrap_or_default();
        refs::compare_and_swap(
            &self.repo,
            name,
            Some(parent.id()),
            Some(commit),
            &who,
            &format!("commit: {subject}"),
        )?;
        let mut index = self.open_index()?;
        for (bytes, entry) in changed {
            let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
            let stat = files::lstat(&self.work_dir().join(path)).ok().flatten();
            let entry = entry.map(|(mode, id)| checkout::index_entry(bytes, mode, id, stat.as_ref()));
            stage(&mut index, bytes, entry.as_ref())?;
        }
        self.write_index(&mut index)?;
        Ok(ids::commit_id(commit))
    }

    /// A small plain file of the work tree, through no symlink; `None` when it is not there.
    fn read_file(&self, path: &str) -> Result<Option<(u32, Vec<u8>)>, GitError> {
        let refuse = |why| GitError::Unsafe { path: clean(path, 200), why };
        let fail = |source| GitError::io(self.work_dir().join(path), source);
        let mut parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| objects::forbidden_name(part.as_bytes())) || is_ours(path.as_bytes()) {
            return Err(refuse("it is not a name for a file of a work tree"));
        }
        let name = parts.pop().unwrap_or_default();
        let mut dir = files::open_dir(self.work_dir()).map_err(fail)?;
        for part in parts {
            dir = files::open_dir_at(&dir, part.as_bytes()).map_err(|error| fail(error.into()))?;
        }
        match files::read_small_at(&dir, name.as_bytes(), COMMIT_FILE_CAP).map_err(fail)? {
            Small::Bytes(bytes) => {
                let stat = files::lstat_at(&dir, name.as_bytes()).map_err(fail)?;
                let executable = stat.is_some_and(|stat| stat.st_mode & 0o100 != 0);
                Ok(Some((if executable { MODE_EXEC } else { MODE_FILE }, bytes)))
            }
            Small::Absent => Ok(None),
            Small::TooLarge => Err(refuse("it is larger than 8 MiB")),
            Small::Special(_) => Err(refuse("it is not a regular file")),
        }
    }

    /// Makes a lightweight tag, unless there is one of that name. Returns whether it was made.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when the commit is not in this repository.
    pub fn tag_if_absent(&self, tag: &str, at: &CommitId, author: &Author) -> Result<bool, GitError> {
        let name = format!("refs/tags/{tag}");
        refs::check_name(&name)?;
        let at = self.facts().commit_oid(at).map(ids::commit_id)?;
        match self.swap(&name, None, Some(&at), author, "tag: by peers") {
            Ok(()) => Ok(true),
            Err(GitError::Moved { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }
}

/// Makes changes in a work tree and its index, in order.
pub(crate) fn write_changes(
    writer: &mut Writer<'_>,
    index: &mut Index,
    changes: &[RawChange],
) -> Result<(), GitError> {
    for change in changes {
        let entry = if let Some((mode, id)) = change.new {
            let stat = writer.put(&change.path, mode, id)?;
            Some(checkout::index_entry(change.path.as_slice(), mode, id, stat.as_ref()))
        } else {
            writer.remove(&change.path)?;
            None
        };
        stage(index, &change.path, entry.as_ref())?;
    }
    Ok(())
}

/// Sets what an index has at a path.
pub(crate) fn stage(index: &mut Index, path: &[u8], entry: Option<&IndexEntry>) -> Result<(), GitError> {
    let at = Path::new(std::ffi::OsStr::from_bytes(path));
    // An unmerged entry goes with its other stages; there may be none.
    drop(index.conflict_remove(at));
    if let Some(entry) = entry {
        let fail = |source| GitError::library(format!("index `{}`", clean_bytes(path)), source);
        return index.add(entry).map_err(fail);
    }
    // Not there is as good.
    drop(index.remove(at, 0));
    Ok(())
}

/// `.peers` at the top of the work tree is none of this crate's business.
pub(crate) fn is_ours(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').next().is_some_and(|first| first.eq_ignore_ascii_case(b".peers"))
}

/// The tree with one leaf set or removed; `None` when nothing is left in it.
pub(crate) fn graft(
    odb: &git2::Odb<'_>,
    tree: Option<Oid>,
    path: &[u8],
    leaf: Option<(u32, Oid)>,
) -> Result<Option<Oid>, GitError> {
    let mut entries = tree.map_or(Ok(Vec::new()), |tree| objects::read_tree(odb, tree))?;
    let (first, rest) = match path.iter().position(|b| *b == b'/') {
        Some(at) => (path.get(..at).unwrap_or(path), path.get(at + 1..)),
        None => (path, None),
    };
    let old = entries.iter().find(|entry| entry.name == first).map(|entry| (entry.mode, entry.id));
    let new = match rest {
        None => leaf,
        Some(rest) => {
            let inner = old.filter(|(mode, _)| *mode == MODE_TREE).map(|(_, id)| id);
            graft(odb, inner, rest, leaf)?.map(|id| (MODE_TREE, id))
        }
    };
    entries.retain(|entry| entry.name != first);
    if let Some((mode, id)) = new {
        entries.push(Entry { mode, name: first.to_vec(), id });
    }
    if entries.is_empty() {
        return Ok(None);
    }
    odb.write(git2::ObjectType::Tree, &objects::tree_bytes(&mut entries))
        .map(Some)
        .map_err(|source| GitError::library("write a tree", source))
}
