//! Making a git directory that an agent wrote safe to open, and looking whether it is within bounds.
//!
//! Everything goes handle by handle: each part of the directory may be a link to somewhere else.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;

use crate::error::GitError;
use crate::files;

/// What the library reads of a git directory of a turn. Nothing else is needed to take commits out of it.
const CONFIG: &[u8] = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
/// Entries, bytes and directories inside directories that one may have.
const MAX_ENTRIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
const MAX_BYTES: u64 = 16 << 30;
const MAX_DEPTH: usize = 200;

/// Puts our own files in the place of those that the turn left in `<dir>/.git`, and removes what else changes how the
/// library sees objects: it would let us read any repository of this machine, or believe parents that commits do not
/// have.
pub(super) fn put_right(dir: &Path, alternates: &[u8], shallow: &str) -> Result<(), GitError> {
    let path = dir.join(".git");
    let right = || -> io::Result<()> {
        let git = files::open_writable_dir(&files::open_dir(dir)?, b".git")?;
        put(&git, "config", CONFIG)?;
        for name in ["config.worktree", "shallow"] {
            files::remove_tree_at(&git, name.as_bytes())?;
        }
        if !shallow.is_empty() {
            put(&git, "shallow", shallow.as_bytes())?;
        }
        let objects = files::open_writable_dir(&git, b"objects")?;
        let info = files::open_writable_dir(&objects, b"info")?;
        put(&info, "alternates", alternates)?;
        for name in ["commit-graph", "commit-graphs", "http-alternates"] {
            files::remove_tree_at(&info, name.as_bytes())?;
        }
        // What is no directory is refused by those who look at all of it.
        if let Ok(pack) = files::open_writable_dir(&objects, b"pack") {
            files::remove_tree_at(&pack, b"multi-pack-index")?;
            files::remove_tree_at(&pack, b"multi-pack-index.d")?;
        }
        if let Ok(info) = files::open_writable_dir(&git, b"info") {
            files::remove_tree_at(&info, b"grafts")?;
        }
        Ok(())
    };
    right().map_err(|source| GitError::io(path, source))
}

/// Writes a new file in the place of whatever is there.
pub(super) fn put(dir: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    files::remove_tree_at(dir, name.as_bytes())?;
    files::create_new_at(dir, name, 0o600)?.write_all(bytes)
}

/// Bytes that a directory takes on the disk, with all in it. Follows no link, opens no file.
///
/// # Errors
/// [`GitError::TooLarge`] beyond a million entries, 16 GiB or 200 levels.
pub(super) fn weigh(dir: &Path) -> Result<u64, GitError> {
    let fail = |source: io::Error| GitError::io(dir, source);
    let beyond = || GitError::TooLarge {
        what: format!("`{}`", dir.display()),
        cap: format!("{MAX_ENTRIES} entries, {MAX_BYTES} bytes or {MAX_DEPTH} levels"),
    };
    let (mut left, mut bytes, mut disk) = (MAX_ENTRIES, 0_u64, 0_u64);
    let mut levels: Vec<(OwnedFd, Vec<Vec<u8>>)> = Vec::new();
    let mut next = Some(files::open_dir(dir).map_err(fail)?);
    loop {
        if let Some(fd) = next.take() {
            let listed = files::list(&fd, left).map_err(fail)?.ok_or_else(beyond)?;
            left = left.saturating_sub(listed.len());
            let mut inner = Vec::new();
            for (name, kind) in listed {
                if kind == FileType::Directory {
                    inner.push(name);
                } else if let Some(stat) = files::lstat_at(&fd, &name).map_err(fail)? {
                    bytes = bytes.saturating_add(files::size(&stat));
                    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
                    disk = disk.saturating_add(blocks.saturating_mul(512));
                }
            }
            levels.push((fd, inner));
            if bytes > MAX_BYTES || levels.len() > MAX_DEPTH {
                return Err(beyond());
            }
        }
        let Some((fd, inner)) = levels.last_mut() else { return Ok(disk) };
        match inner.pop() {
            Some(name) => next = Some(files::open_writable_dir(&*fd, &name).map_err(fail)?),
            None => drop(levels.pop()),
        }
    }
}
