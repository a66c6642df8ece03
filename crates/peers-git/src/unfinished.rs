//! Operations of git that were begun and not ended.
//!
//! The next plain `git commit` in such a repository is not plain: with a `MERGE_HEAD` it becomes a merge
//! and brings commits in that its author never saw. So what a turn leaves of this kind is taken away.

use std::collections::BTreeMap;
use std::path::Path;

use peers_model::CommitId;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::GitError;
use crate::files::{self, Small};
use crate::ids;
use crate::ref_list::hash_at;
use crate::repo::PeerRepo;

/// Where git keeps what it has begun, in the git directory of a work tree.
const PLACES: [&str; 21] = [
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_HEAD",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];
/// A file of these is read up to here.
const FILE_CAP: u64 = 1 << 20;
/// Files of a directory of these that are looked at.
const MAX_FILES: usize = 2_000;
/// Files of a directory of these that are copied.
const MAX_COPIES: usize = 100;
/// Commits named by one of these that are reported.
const MAX_COMMITS: usize = 50;

/// What was begun and not ended at some moment: place to digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unfinished(BTreeMap<String, String>);

/// Something that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its name in the git directory.
    pub name: String,
    /// Commits that it names, as far as they can be read.
    pub commits: Vec<CommitId>,
    /// Its files, with names that are plain; nothing when not all of it can be read.
    pub files: Option<Vec<(String, Vec<u8>)>>,
    digest: String,
}

impl PeerRepo {
    /// What is begun and not ended now.
    #[must_use]
    pub fn unfinished(&self) -> Unfinished {
        let digest = |name: &&str| Some(((*name).to_owned(), digest(&self.git_dir().join(name))?));
        Unfinished(PLACES.iter().filter_map(digest).collect())
    }

    /// What was not there `before`, or is not as it was then. Also the names of directories that had been
    /// there and are different now.
    #[must_use]
    pub fn begun_since(&self, before: &Unfinished) -> (Vec<Begun>, Vec<String>) {
        let (mut begun, mut changed) = (Vec::new(), Vec::new());
        for (name, digest) in self.unfinished().0 {
            let old = before.0.get(&name);
            if old == Some(&digest) {
                continue;
            }
            if old.is_some() && digest.starts_with(DIRECTORY) {
                changed.push(name);
                continue;
            }
            let path = self.git_dir().join(&name);
            let files = copies(&name, &path);
            begun.push(Begun { commits: self.named_in(&path), files, name, digest });
        }
        (begun, changed)
    }

    /// Removes what was begun, if it is still as it was found. Whether it is gone. For what has been kept.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn remove_begun(&self, begun: &Begun) -> Result<bool, GitError> {
        let path = self.git_dir().join(&begun.name);
        match digest(&path) {
            Some(now) if now == begun.digest => files::remove_tree(&path).map(|()| true),
            now => Ok(now.is_none()),
        }
    }

    fn named_in(&self, path: &Path) -> Vec<CommitId> {
        let mut found = Vec::new();
        for bytes in contents(path).into_values().flatten() {
            let hashes = bytes.split(|b| *b == b'\n').filter_map(|line| hash_at(line, 0));
            found.extend(hashes.take(MAX_COMMITS).filter_map(|hash| self.peel(hash)));
        }
        found.sort();
        found.dedup();
        found.truncate(MAX_COMMITS);
        found
    }
}

/// Marks digests of directories.
const DIRECTORY: &str = "dir ";

/// What is there, as a digest; `None` when nothing is.
fn digest(path: &Path) -> Option<String> {
    // What cannot be looked at cannot be compared: it counts as nothing, and git will not read it either.
    let stat = files::lstat(path).ok()??;
    let mut hash = Sha256::new();
    for (name, bytes) in contents(path) {
        hash.update(&name);
        hash.update([0]);
        hash.update(bytes.map_or_else(|| "unread".to_owned(), |bytes| ids::hex(&Sha256::digest(&bytes))));
    }
    let kind = if files::kind(&stat) == FileType::Directory { DIRECTORY } else { "" };
    Some(format!("{kind}{}", ids::hex(&hash.finalize())))
}

/// Everything at a place, by names of our own; `None` when that is not to be had.
fn copies(name: &str, path: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    let plain = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
    if let Ok(dir) = files::open_dir(path) {
        // More than are listed, or that cannot be, are not in the contents.
        files::list(&dir, MAX_COPIES).ok()??;
    }
    let copy = |(inner, bytes): (Vec<u8>, Option<Vec<u8>>)| {
        let inner = String::from_utf8(inner).ok().filter(|inner| inner.len() < 100)?;
        let name = if inner.is_empty() { name.to_owned() } else { format!("{name}_{inner}") };
        name.bytes().all(|c| plain(&c)).then_some(())?;
        Some((name, bytes?))
    };
    contents(path).into_iter().map(copy).collect()
}

/// The files at a place by name: one, or those of a directory.
fn contents(path: &Path) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let mut out = BTreeMap::new();
    match files::open_dir(path) {
        Ok(dir) => {
            for (name, _) in files::list(&dir, MAX_FILES).ok().flatten().unwrap_or_default() {
                let content = files::read_small_at(&dir, &name, FILE_CAP).ok().and_then(Small::bytes);
                out.insert(name, content);
            }
        }
        Err(_) => drop(out.insert(Vec::new(), files::small(path, FILE_CAP).ok().flatten())),
    }
    out
}
