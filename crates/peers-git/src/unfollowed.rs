//! Why files differ from their commit though the operator's git calls them unchanged.
//!
//! What git's configuration and its filter programs make of files is not followed here: an agent could
//! write both. A work tree that lives by them would look changed for ever, so a start has to say it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_model::CommitId;

use crate::error::clean;
use crate::files;
use crate::index_entries::SKIP;
use crate::repo::PeerRepo;
use crate::snapshot::{ATTRS_CAP, AttrFile, DirtyFile, DirtyStatus, special};

/// Contents that are compared are not larger.
const COMPARED: u64 = 1024 * 1024;
/// Contents that are compared.
const COMPARISONS: usize = 50;

/// What of git is not followed, and makes a file differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfollowed {
    /// The checkout is sparse, and the file was left out of it.
    Sparse,
    /// An attribute hands the content to a program (`filter=lfs`), or stores it in another encoding.
    Attribute(String),
    /// The content differs in line ends alone, as `core.autocrlf` makes them.
    LineEnds,
}

impl PeerRepo {
    /// The first of `changes` against `head` that comes from something that is not followed, with its path.
    /// What cannot be read explains nothing.
    #[must_use]
    pub fn unfollowed(&self, head: &CommitId, changes: &[DirtyFile]) -> Option<(Unfollowed, String)> {
        let index = self.open_index_file().ok();
        let mut compared = 0;
        changes.iter().find_map(|change| {
            let path = change.path.as_str();
            let why = match change.status {
                DirtyStatus::Added => None,
                DirtyStatus::Deleted => {
                    let entry = index.as_ref().and_then(|index| index.get_path(Path::new(path), 0))?;
                    (entry.flags_extended & SKIP != 0).then_some(Unfollowed::Sparse)
                }
                // An edit is told by git as well.
                DirtyStatus::Modified if !self.is_unchanged(index.as_ref()?, head, path) => None,
                DirtyStatus::Modified => self.attribute(path).map(Unfollowed::Attribute).or_else(|| {
                    compared += 1;
                    (compared <= COMPARISONS && self.same_but_line_ends(head, path))
                        .then_some(Unfollowed::LineEnds)
                }),
            };
            why.map(|why| (why, path.to_owned()))
        })
    }

    /// Whether git calls a file unchanged without a look at its content: it is as it was when the index was
    /// written, and that has what the commit has.
    fn is_unchanged(&self, index: &git2::Index, head: &CommitId, path: &str) -> bool {
        let Some(entry) = index.get_path(Path::new(path), 0) else { return false };
        let Ok(Some(stat)) = files::lstat(&self.work_dir().join(path)) else { return false };
        // The index keeps the low 32 bits of everything, and no nanoseconds or inodes where git is built so.
        let low = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap_or(0);
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let same_file = entry.file_size == low(files::size(&stat))
            && i64::from(entry.mtime.seconds()) == stat.st_mtime
            && (entry.mtime.nanoseconds() == 0 || entry.mtime.nanoseconds() == nanos)
            && (entry.ino == 0 || entry.ino == low(stat.st_ino));
        same_file && self.facts().blob_id(head, path).is_ok_and(|id| id == Some(entry.id))
    }

    /// The attribute of a path that asks for a program or an encoding, as it is written.
    fn attribute(&self, path: &str) -> Option<String> {
        let read = |path: &Path| files::small(path, ATTRS_CAP).ok().flatten().unwrap_or_default();
        let mut found = Vec::new();
        let tops = path.match_indices('/').map(|(at, _)| at + 1);
        for base in std::iter::once(0).chain(tops) {
            let dir = self.work_dir().join(OsStr::from_bytes(path.as_bytes().get(..base)?));
            found.push(AttrFile::parse(base, &read(&dir.join(".gitattributes"))));
        }
        found.push(AttrFile::parse(0, &read(&self.common_dir().join("info/attributes"))));
        special(&found, path.as_bytes()).map(|text| clean(&text, 80))
    }

    fn same_but_line_ends(&self, head: &CommitId, path: &str) -> bool {
        let cap = usize::try_from(COMPARED).unwrap_or(usize::MAX);
        let Ok(Some(stored)) = self.facts().read_blob(head, path, cap) else { return false };
        let Ok(Some(here)) = files::small(&self.work_dir().join(path), COMPARED) else { return false };
        let lines = |bytes: &[u8]| -> Vec<u8> {
            let mut rest = bytes.iter().copied().peekable();
            let mut out = Vec::with_capacity(bytes.len());
            while let Some(byte) = rest.next() {
                if byte != b'\r' || rest.peek() != Some(&b'\n') {
                    out.push(byte);
                }
            }
            out
        };
        stored.bytes != here && lines(&stored.bytes) == lines(&here)
    }
}
