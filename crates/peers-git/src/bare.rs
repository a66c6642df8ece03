//! Git directories of ours that borrow all their objects.

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_model::CommitId;

use crate::error::{GitError, clean};
use crate::files;
use crate::repo::PeerRepo;

/// Stores that a store borrows from, and the file that names them.
const MAX_STORES: usize = 32;
const STORE_FILE: u64 = 64 * 1024;
/// The edge of a history.
const SHALLOW_CAP: u64 = 16 << 20;

/// What one holds.
#[derive(Debug, Clone)]
pub(crate) struct Bare<'a> {
    /// Its configuration.
    pub(crate) config: &'a [u8],
    /// `ref: ` and the full name of a branch, or a commit.
    pub(crate) head: &'a str,
    /// The references, see [`packed_refs`].
    pub(crate) refs: String,
    /// The object stores that it borrows from, see [`alternates`].
    pub(crate) stores: Vec<u8>,
    /// The edge of the history.
    pub(crate) shallow: &'a [CommitId],
}

impl Bare<'_> {
    /// Writes these files, in place of those that are there.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), GitError> {
        for inner in
            ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "info"]
        {
            files::ensure_dir(&dir.join(inner))?;
        }
        files::overwrite(&dir.join("config"), self.config)?;
        files::overwrite(&dir.join("HEAD"), format!("{}\n", self.head).as_bytes())?;
        files::overwrite(&dir.join("packed-refs"), self.refs.as_bytes())?;
        files::overwrite(&dir.join("objects/info/alternates"), &self.stores)?;
        if self.shallow.is_empty() {
            return files::remove_tree(&dir.join("shallow"));
        }
        files::overwrite(&dir.join("shallow"), shallow_text(self.shallow).as_bytes())
    }
}

/// A file `packed-refs`: names, sorted, with hashes.
pub(crate) fn packed_refs<N: Display, H: Display>(refs: impl IntoIterator<Item = (N, H)>) -> String {
    let lines = refs.into_iter().map(|(name, hash)| format!("{hash} {name}\n"));
    std::iter::once("# pack-refs with: sorted\n".to_owned()).chain(lines).collect()
}

/// A file `objects/info/alternates`.
pub(crate) fn alternates<'a>(stores: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<u8>, GitError> {
    let lines = stores.into_iter().map(|store| Ok([path_bytes(store)?, b"\n"].concat()));
    Ok(lines.collect::<Result<Vec<_>, GitError>>()?.concat())
}

/// The object store of a repository, and all that it borrows from. What is not there cannot be borrowed from.
pub(crate) fn stores_of(peer: &PeerRepo) -> Result<Vec<PathBuf>, GitError> {
    let mut found = vec![files::canonical(&peer.objects_dir())?];
    let mut at = 0;
    while let Some(store) = found.get(at).filter(|_| at < MAX_STORES).cloned() {
        at += 1;
        let text = files::small(&store.join("info/alternates"), STORE_FILE)?.unwrap_or_default();
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
            let other = files::canonical(&store.join(OsStr::from_bytes(line))).ok();
            found.extend(other.filter(|other| !found.contains(other)));
        }
    }
    found.truncate(MAX_STORES);
    Ok(found)
}

/// The edge of the history in a git directory, line by line checked.
pub(crate) fn shallow_of(git_dir: &Path) -> Result<Vec<CommitId>, GitError> {
    let bytes = files::small(&git_dir.join("shallow"), SHALLOW_CAP)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| CommitId::new(line).ok()).collect())
}

pub(crate) fn shallow_text(shallow: &[CommitId]) -> String {
    shallow.iter().flat_map(|commit| [commit.as_str(), "\n"]).collect()
}

/// A path for one of git's one-line files.
pub(crate) fn path_bytes(path: &Path) -> Result<&[u8], GitError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b'\n') {
        let path = clean(&path.display().to_string(), 200);
        return Err(GitError::Unsafe { path, why: "its name has a line break" });
    }
    Ok(bytes)
}
