//! Making a git directory that an agent wrote safe to open, and looking whether it is within bounds.
//!
//! Everything goes handle by handle: each part of the directory may be a link to somewhere else.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::GitError;
use crate::files;

/// What the library reads of a git directory of a turn. Nothing else is needed to take commits out of it.
pub(super) const CONFIG: &[u8] = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
/// Entries, bytes and directories inside directories that one may have.
const MAX_ENTRIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
const MAX_BYTES: u64 = 16 << 30;
const MAX_DEPTH: usize = 200;

/// Puts our own files in the place of those that the turn left in `<dir>/.git`, and removes what else changes how the
/// library sees objects: it would let us read any repository of this machine, or believe parents that commits do not
/// have.
pub(super) fn put_right(dir: &Path, alternates: &[u8], shallow: Option<&[u8]>) -> Result<(), GitError> {
    let path = dir.join(".git");
    let right = || -> io::Result<()> {
        let git = files::open_writable_dir(&files::open_dir(dir)?, b".git")?;
        put(&git, "config", CONFIG)?;
        for name in ["config.worktree", "shallow"] {
            files::remove_tree_at(&git, name.as_bytes())?;
        }
        if let Some(shallow) = shallow {
            put(&git, "shallow", shallow)?;
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
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    File::from(rustix::fs::openat(dir, name, flags, mode)?).write_all(bytes)
}

/// How much is in a directory.
#[derive(Debug, Default)]
pub(super) struct Weight {
    entries: usize,
    bytes: u64,
    /// Bytes that it takes on the disk.
    pub(super) disk: u64,
}

impl Weight {
    /// Adds the entries of one directory, and returns the directories among them; nothing beyond the bounds.
    fn add(&mut self, dir: &OwnedFd) -> io::Result<Option<Vec<Vec<u8>>>> {
        let left = MAX_ENTRIES.saturating_sub(self.entries);
        let Some(listed) = files::list(dir, left)? else { return Ok(None) };
        self.entries += listed.len();
        let mut inner = Vec::new();
        for (name, kind) in listed {
            if kind == FileType::Directory {
                inner.push(name);
            } else if let Some(stat) = files::lstat_at(dir, &name)? {
                self.bytes = self.bytes.saturating_add(files::size(&stat));
                let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
                self.disk = self.disk.saturating_add(blocks.saturating_mul(512));
            }
        }
        Ok((self.bytes <= MAX_BYTES).then_some(inner))
    }
}

/// Adds up what is in a directory. Follows no link, opens no file.
///
/// # Errors
/// [`GitError::TooLarge`] beyond a million entries, 16 GiB or 200 levels.
pub(super) fn weigh(dir: &Path) -> Result<Weight, GitError> {
    let fail = |source: io::Error| GitError::io(dir, source);
    let beyond = || GitError::TooLarge {
        what: format!("`{}`", dir.display()),
        cap: format!("{MAX_ENTRIES} entries, {MAX_BYTES} bytes or {MAX_DEPTH} levels"),
    };
    let mut weight = Weight::default();
    let top = files::open_dir(dir).map_err(fail)?;
    let inner = weight.add(&top).map_err(fail)?.ok_or_else(beyond)?;
    let mut levels = vec![(top, inner)];
    while let Some((fd, inner)) = levels.last_mut() {
        let Some(name) = inner.pop() else {
            levels.pop();
            continue;
        };
        let next = files::open_writable_dir(&*fd, &name).map_err(fail)?;
        let inner = weight.add(&next).map_err(fail)?.filter(|_| levels.len() < MAX_DEPTH);
        levels.push((next, inner.ok_or_else(beyond)?));
    }
    Ok(weight)
}
