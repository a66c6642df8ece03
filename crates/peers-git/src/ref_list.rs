//! All references as they stand, and the commits that only pseudo-references and reflogs name.

use std::collections::BTreeMap;

use git2::{ErrorCode, ObjectType, Oid};
use peers_model::CommitId;
use serde::{Deserialize, Serialize};

use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::ids;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::Author;

/// A file that names commits is read up to here.
const FILE_CAP: u64 = 4 << 20;
/// Tags of tags of tags.
const MAX_TAGS: usize = 5;
/// Files of the git directory that name a commit without being references.
const PSEUDO: [&str; 8] = [
    "FETCH_HEAD",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "MERGE_AUTOSTASH",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_HEAD",
];
/// The reference of the stash, and its log, which holds all but the newest entry.
pub(crate) const STASH: &str = "refs/stash";

/// What a reference holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefValue {
    /// The hash of an object, hex.
    Direct(String),
    /// The name of another reference.
    Symbolic(String),
}

/// What a branch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchState {
    /// There is no such branch.
    Absent,
    /// It names a commit that can be read.
    Commit(CommitId),
    /// It is another name for something else, cleaned for people; and the commit that this leads to.
    Symbolic(String, Option<CommitId>),
    /// It names something that is not there, or no commit.
    Dangling(String),
    /// It cannot be read.
    Unreadable,
}

impl PeerRepo {
    /// All references whose names start with `prefix`; `None` when there are more than `cap`. What cannot
    /// be read is left out.
    ///
    /// # Errors
    /// [`GitError::Library`] when they cannot be listed.
    pub fn list_refs(
        &self,
        prefix: &str,
        cap: usize,
    ) -> Result<Option<BTreeMap<String, RefValue>>, GitError> {
        let fail = |source| GitError::library("list the references", source);
        let mut out = BTreeMap::new();
        for reference in self.repo.references_glob(&format!("{prefix}*")).map_err(fail)? {
            let Ok(reference) = reference else { continue };
            let Ok(name) = reference.name() else { continue };
            let value = match (reference.target(), reference.symbolic_target_bytes()) {
                (Some(oid), _) => RefValue::Direct(oid.to_string()),
                (None, Some(target)) => RefValue::Symbolic(clean_bytes(target)),
                (None, None) => continue,
            };
            if out.len() >= cap {
                return Ok(None);
            }
            out.insert(name.to_owned(), value);
        }
        Ok(Some(out))
    }

    /// The commit that a hash leads to, tags peeled; `None` for anything else, and for what is not there.
    #[must_use]
    pub fn peel(&self, hash: &str) -> Option<CommitId> {
        let odb = objects::odb(&self.repo).ok()?;
        let mut oid = Oid::from_str(hash).ok().filter(|_| hash.len() == 40)?;
        for _ in 0..MAX_TAGS {
            let (size, kind) = odb.read_header(oid).ok()?;
            match kind {
                ObjectType::Commit => return Some(ids::commit_id(oid)),
                ObjectType::Tag if size <= objects::META_CAP => {
                    let tag = odb.read(oid).ok()?;
                    let line = tag.data().strip_prefix(b"object ")?.get(..40)?;
                    oid = Oid::from_str(std::str::from_utf8(line).ok()?).ok()?;
                }
                _ => return None,
            }
        }
        None
    }

    /// What a branch (full name) is. Follows nothing that an agent could make endless.
    ///
    /// # Errors
    /// [`GitError::InvalidName`].
    pub fn branch_state(&self, branch: &str) -> Result<BranchState, GitError> {
        let name = refs::branch_name(branch)?;
        let found = match self.repo.find_reference(&name) {
            Ok(found) => found,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(BranchState::Absent),
            Err(_) => return Ok(BranchState::Unreadable),
        };
        if let Some(target) = found.symbolic_target_bytes() {
            let leads_to = found.resolve().ok().and_then(|found| found.target());
            let commit = leads_to.and_then(|oid| self.peel(&oid.to_string()));
            return Ok(BranchState::Symbolic(clean_bytes(target), commit));
        }
        let Some(oid) = found.target() else { return Ok(BranchState::Unreadable) };
        let odb = objects::odb(&self.repo)?;
        let is_commit = odb.read_header(oid).is_ok_and(|(_, kind)| kind == ObjectType::Commit);
        Ok(if is_commit {
            BranchState::Commit(ids::commit_id(oid))
        } else {
            BranchState::Dangling(oid.to_string())
        })
    }

    /// Names a commit that need not be readable, so that it is not collected as garbage.
    ///
    /// # Errors
    /// [`GitError::InvalidName`], [`GitError::Moved`] when the name is taken by another commit.
    pub fn name_commit(&self, name: &str, commit: &CommitId, author: &Author) -> Result<(), GitError> {
        self.check_writable()?;
        let (who, new) = (author.signature()?, ids::commit_oid(commit)?);
        match refs::compare_and_swap(&self.repo, name, None, Some(new), &who, "peers: set aside") {
            Err(GitError::Moved { found: Some(found), .. }) if found == *commit => Ok(()),
            other => other,
        }
    }

    /// Commits that only pseudo-references name (`FETCH_HEAD`, `ORIG_HEAD`, …), at most `cap`.
    #[must_use]
    pub fn pseudo_commits(&self, cap: usize) -> Vec<CommitId> {
        let mut found = Vec::new();
        for name in PSEUDO {
            let Ok(Some(bytes)) = files::small(&self.git_dir().join(name), FILE_CAP) else { continue };
            let hashes = bytes.split(|b| *b == b'\n').filter_map(|line| hash_at(line, 0));
            found.extend(hashes.take(cap).filter_map(|hash| self.peel(hash)));
        }
        found.sort();
        found.dedup();
        found.truncate(cap);
        found
    }

    /// The entries of the stash, the newest first, at most `cap`.
    #[must_use]
    pub fn stash(&self, cap: usize) -> Vec<CommitId> {
        let mut found = self.reflog(STASH, cap);
        let top = self.repo.find_reference(STASH).ok().and_then(|found| found.target());
        if let Some(top) = top.and_then(|oid| self.peel(&oid.to_string()))
            && !found.contains(&top)
        {
            found.insert(0, top);
        }
        found.truncate(cap);
        found
    }

    /// Where a reference was according to its log, the newest first, at most `cap`. Claims.
    #[must_use]
    pub fn reflog(&self, name: &str, cap: usize) -> Vec<CommitId> {
        let log = self.common_dir().join("logs").join(name);
        let Ok(Some(bytes)) = files::small(&log, FILE_CAP) else { return Vec::new() };
        let mut found = Vec::new();
        for line in bytes.split(|b| *b == b'\n').rev() {
            if found.len() >= cap {
                break;
            }
            if let Some(commit) = hash_at(line, 41).and_then(|hash| self.peel(hash))
                && !found.contains(&commit)
            {
                found.push(commit);
            }
        }
        found
    }
}

/// The 40 hex digits in a line from a place on.
pub(crate) fn hash_at(line: &[u8], at: usize) -> Option<&str> {
    let hash = line.get(at..at + 40)?;
    let ends = line.get(at + 40).is_none_or(|next| !next.is_ascii_hexdigit());
    let hex = ends && hash.iter().all(u8::is_ascii_hexdigit);
    std::str::from_utf8(hash).ok().filter(|_| hex)
}
