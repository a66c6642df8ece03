//! Entries of an index, and writing one.

use std::path::Path;

use git2::IndexEntry;
use sha1::{Digest as _, Sha1};

use crate::error::GitError;
use crate::files;

/// Of an entry's flags those that say which side of a conflict it is, how long its path is, that there are extended
/// ones, and `assume-unchanged`.
pub(crate) const STAGE: u16 = 0x3000;
pub(crate) const LENGTH: u16 = 0x0fff;
pub(crate) const EXTENDED: u16 = 0x4000;
pub(crate) const ASSUME: u16 = 0x8000;
/// Of the extended ones `skip-worktree` and `intent-to-add`.
pub(crate) const SKIP: u16 = 0x4000;
pub(crate) const NEW: u16 = 0x2000;

/// What the operator told git not to look at: `assume-unchanged` among the flags, `skip-worktree` among the extended ones.
pub(crate) fn hidden(entry: &IndexEntry) -> (u16, u16) {
    (entry.flags & ASSUME, entry.flags_extended & SKIP)
}

/// Writes a new index with these entries, which replaces what is at `path`. What else an index can hold (trees computed
/// earlier, lists of untracked files) is not in it.
///
/// The library would look for each entry among all that are there, and it hashes with a guard against forgeries: here
/// nobody can gain by one.
pub(crate) fn write(path: &Path, mut entries: Vec<IndexEntry>) -> Result<(), GitError> {
    entries.sort_by(|a, b| (&a.path, a.flags & STAGE).cmp(&(&b.path, b.flags & STAGE)));
    let is_extended = |entry: &IndexEntry| entry.flags_extended & (SKIP | NEW) != 0;
    let version: u32 = if entries.iter().any(is_extended) { 3 } else { 2 };
    let mut out = Vec::with_capacity(entries.len().saturating_mul(112));
    out.extend_from_slice(b"DIRC");
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&u32::try_from(entries.len()).unwrap_or(u32::MAX).to_be_bytes());
    for entry in &entries {
        let begin = out.len();
        for time in [&entry.ctime, &entry.mtime] {
            out.extend_from_slice(&time.seconds().to_be_bytes());
            out.extend_from_slice(&time.nanoseconds().to_be_bytes());
        }
        let IndexEntry { dev, ino, mode, uid, gid, file_size, .. } = entry;
        for field in [dev, ino, mode, uid, gid, file_size] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(entry.id.as_bytes());
        let length = u16::try_from(entry.path.len()).unwrap_or(LENGTH).min(LENGTH);
        let extended = if is_extended(entry) { EXTENDED } else { 0 };
        let flags = entry.flags & (ASSUME | STAGE) | extended | length;
        out.extend_from_slice(&flags.to_be_bytes());
        if extended != 0 {
            out.extend_from_slice(&(entry.flags_extended & (SKIP | NEW)).to_be_bytes());
        }
        out.extend_from_slice(&entry.path);
        // At least one zero, and a length that eight divides.
        let size = (out.len() - begin + 8) & !7;
        out.resize(begin + size, 0);
    }
    let hash = Sha1::digest(&out);
    out.extend_from_slice(&hash);
    files::replace_as(path, &out, 0o666)
}
