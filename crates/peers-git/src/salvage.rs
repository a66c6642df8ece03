//! Nothing is undone without a copy: tips and dirty trees kept in the control directory.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use git2::{ErrorCode, Oid};
use peers_model::CommitId;

use crate::control::ControlDir;
use crate::error::{GitError, clean};
use crate::files;
use crate::ids;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;
use crate::snapshot::{self, Written};
use crate::write::Author;

pub(crate) const PREFIX: &str = "refs/salvage/";
/// What was ever kept, line by line: a reference can be deleted.
pub(crate) const SALVAGED: &str = "peers/salvaged";
/// In the place of the hash: the content is gone.
const LOST: &str = "lost";
/// That list is read up to here.
const SALVAGED_CAP: u64 = 64 << 20;
/// How the message of a kept work tree begins.
const WORK_TREE_ON: &str = "salvage: work tree on ";
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
    /// Files that were too large (64 MiB) or unreadable, all of them, as they are. Untrusted bytes.
    pub left_out: Vec<Vec<u8>>,
}

/// What became of kept copies whose reference was gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct SalvageSeen {
    /// Those that have their name again.
    pub again: Vec<String>,
    /// Those whose content is gone.
    pub lost: Vec<String>,
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
            let message = format!("{WORK_TREE_ON}{}\n", tip.short());
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
                Ok(()) => {
                    files::append(&self.path().join(SALVAGED), format!("{new} {name}\n").as_bytes())?;
                    return Ok(name);
                }
                Err(GitError::Moved { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Err(GitError::Exists { what: format!("salvage `{}`", clean(name, 200)) })
    }

    /// Names kept copies again whose reference is gone: those of our own list, and `recorded`, names with the
    /// commit that was kept or on which the kept work tree lay.
    ///
    /// # Errors
    /// [`GitError::Io`], [`GitError::TooLarge`] beyond 10 000 of them.
    pub fn name_again(
        &self,
        recorded: &[(String, CommitId)],
        author: &Author,
    ) -> Result<SalvageSeen, GitError> {
        let here: HashSet<String> = self.list_salvage()?.into_iter().map(|kept| kept.name).collect();
        let mut wanted: BTreeMap<String, (Oid, bool)> = BTreeMap::new();
        for (name, on) in recorded {
            wanted.insert(name.clone(), (ids::commit_oid(on)?, true));
        }
        let path = self.path().join(SALVAGED);
        let bytes = files::small(&path, SALVAGED_CAP)?.unwrap_or_default();
        for (hash, name) in String::from_utf8_lossy(&bytes).lines().filter_map(|line| line.split_once(' ')) {
            if hash == LOST {
                wanted.remove(name);
            } else if let Ok(oid) = Oid::from_str(hash) {
                wanted.insert(name.to_owned(), (oid, false));
            }
        }
        wanted.retain(|name, _| !here.contains(name) && refs::check_name(&format!("{PREFIX}{name}")).is_ok());
        let mut seen = SalvageSeen::default();
        let who = author.signature()?;
        for (name, (oid, may_lie_on)) in wanted {
            let kept = if may_lie_on { self.work_tree_on(oid) } else { None };
            let full = format!("{PREFIX}{name}");
            let whole = |oid: &Oid| self.repo.find_commit(*oid).and_then(|found| found.tree()).is_ok();
            let named = kept.or(Some(oid)).filter(whole).is_some_and(|oid| {
                refs::compare_and_swap(&self.repo, &full, None, Some(oid), &who, "salvage: named again")
                    .is_ok()
            });
            if named {
                seen.again.push(name);
            } else {
                // Told once.
                files::append(&path, format!("{LOST} {name}\n").as_bytes())?;
                seen.lost.push(name);
            }
        }
        Ok(seen)
    }

    /// The kept work tree that lay on a commit.
    fn work_tree_on(&self, tip: Oid) -> Option<Oid> {
        let odb = objects::odb(&self.repo).ok()?;
        let wanted = format!("{WORK_TREE_ON}{}", ids::commit_id(tip).short());
        let mut found = None;
        let _rest = odb.foreach(|oid| {
            let kind = odb.read_header(*oid).map(|(_, kind)| kind);
            if kind.is_ok_and(|kind| kind == git2::ObjectType::Commit)
                && let Ok(commit) = self.repo.find_commit(*oid)
                && commit.parent_ids().eq([tip])
                && commit.message_bytes().starts_with(wanted.as_bytes())
            {
                found = Some(*oid);
            }
            found.is_none()
        });
        found
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
                    dirty: fact.is_some_and(|fact| fact.message.starts_with(WORK_TREE_ON)),
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
