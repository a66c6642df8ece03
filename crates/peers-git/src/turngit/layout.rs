//! Making a git directory that an agent wrote safe to open, and looking whether it is within bounds.
//!
//! Everything goes handle by handle: each part of the directory may be a link to somewhere else.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{GitError, RepoError};
use crate::files;

/// What the library reads of a git directory of a turn. Nothing else is needed to take commits out of it.
pub(super) const CONFIG: &[u8] = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
/// Entries, bytes and directories inside directories that one may have.
const MAX_ENTRIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
const MAX_BYTES: u64 = 16 << 30;
const MAX_DEPTH: usize = 200;
/// What else changes how the library sees objects: it would let us read any repository of this machine, or
/// believe parents that commits do not have.
const OBJECTS_INFO: [&str; 3] = ["commit-graph", "commit-graphs", "http-alternates"];
const OBJECTS_PACK: [&str; 2] = ["multi-pack-index", "multi-pack-index.d"];

/// Puts our own files in the place of those that the turn left in `<dir>/.git`.
pub(super) fn put_right(dir: &Path, alternates: &[u8], shallow: Option<&[u8]>) -> Result<(), GitError> {
    let path = dir.join(".git");
    let fail = |source: io::Error| GitError::io(&path, source);
    let top = files::open_dir(dir).map_err(fail)?;
    let inner = |dir: &OwnedFd, name: &str| {
        let unsafe_dir = |stat| RepoError::Unsafe {
            path: path.join(name),
            found: files::kind_text(files::kind(&stat)).to_owned(),
        };
        match files::lstat_at(dir, name.as_bytes()).map_err(fail)? {
            Some(stat) if files::kind(&stat) != FileType::Directory => Err(GitError::Repo(unsafe_dir(stat))),
            Some(_) => files::open_writable_dir(dir, name.as_bytes()).map(Some).map_err(fail),
            None => Ok(None),
        }
    };
    let gone =
        || GitError::Corrupt { what: "the git directory".to_owned(), detail: "it is empty".to_owned() };
    let remove = |dir: &OwnedFd, name: &str| files::remove_tree_at(dir, name.as_bytes()).map_err(fail);
    let git = inner(&top, ".git")?.ok_or_else(gone)?;
    put(&git, "config", CONFIG).map_err(fail)?;
    remove(&git, "config.worktree")?;
    match shallow {
        Some(shallow) => put(&git, "shallow", shallow).map_err(fail)?,
        None => remove(&git, "shallow")?,
    }
    if let Some(info) = inner(&git, "info")? {
        remove(&info, "grafts")?;
    }
    let objects = inner(&git, "objects")?.ok_or_else(gone)?;
    let info = inner(&objects, "info")?.ok_or_else(gone)?;
    put(&info, "alternates", alternates).map_err(fail)?;
    for name in OBJECTS_INFO {
        remove(&info, name)?;
    }
    if let Some(pack) = inner(&objects, "pack")? {
        for name in OBJECTS_PACK {
            remove(&pack, name)?;
        }
    }
    Ok(())
}

/// Writes a new file in the place of whatever is there.
pub(super) fn put(dir: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    files::remove_tree_at(dir, name.as_bytes())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    File::from(rustix::fs::openat(dir, name, flags, mode)?).write_all(bytes)
}

/// How much is in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    entries: usize,
    bytes: u64,
    /// Bytes that it takes on the disk.
    pub(super) disk: u64,
}

impl Weight {
    /// Adds the entries of one directory, and returns the directories among them.
    fn add(&mut self, dir: &OwnedFd, path: &Path) -> Result<Vec<Vec<u8>>, GitError> {
        let fail = |source: io::Error| GitError::io(path, source);
        let beyond = |cap: String| GitError::TooLarge { what: format!("`{}`", path.display()), cap };
        let left = MAX_ENTRIES.saturating_sub(self.entries);
        let listed = files::list(dir, left).map_err(fail)?;
        let listed = listed.ok_or_else(|| beyond(format!("{MAX_ENTRIES} entries")))?;
        self.entries += listed.len();
        let mut inner = Vec::new();
        for (name, kind) in listed {
            if kind == FileType::Directory {
                inner.push(name);
            } else if let Some(stat) = files::lstat_at(dir, &name).map_err(fail)? {
                self.bytes = self.bytes.saturating_add(files::size(&stat));
                let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
                self.disk = self.disk.saturating_add(blocks.saturating_mul(512));
            }
        }
        if self.bytes > MAX_BYTES { Err(beyond(format!("{MAX_BYTES} bytes"))) } else { Ok(inner) }
    }
}

/// Adds up what is in a directory. Follows no link, opens no file.
///
/// # Errors
/// [`GitError::TooLarge`] beyond a million entries, 16 GiB or 200 levels.
pub(super) fn weigh(dir: &Path) -> Result<Weight, GitError> {
    let fail = |source: io::Error| GitError::io(dir, source);
    let mut weight = Weight::default();
    let top = files::open_dir(dir).map_err(fail)?;
    let inner = weight.add(&top, dir)?;
    let mut levels = vec![(top, inner)];
    while let Some((fd, inner)) = levels.last_mut() {
        let Some(name) = inner.pop() else {
            levels.pop();
            continue;
        };
        let next = files::open_writable_dir(&*fd, &name).map_err(fail)?;
        if levels.len() >= MAX_DEPTH {
            let (what, cap) = (format!("`{}`", dir.display()), format!("{MAX_DEPTH} levels"));
            return Err(GitError::TooLarge { what, cap });
        }
        let inner = weight.add(&next, dir)?;
        levels.push((next, inner));
    }
    Ok(weight)
}
