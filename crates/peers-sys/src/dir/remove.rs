//! Removing a whole tree, without following a link or leaving its file system.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::entries::read_names;
use super::open::{Crossing, open_beneath};
use super::{FileError, FileStat, Kind, SafeDir, io_error};

/// Directories held open at once; deeper ones are moved up first.
const DEPTH: usize = 32;
/// Names taken from a directory at once.
const BATCH: usize = 1024;
/// Rounds that may fail to empty a directory before somebody is taken to be filling it.
const ROUNDS: usize = 16;

impl SafeDir {
    /// Removes `name` and everything below it. Returns whether there was something.
    ///
    /// Permissions inside the tree are no obstacle as long as it is ours; its depth is none either.
    ///
    /// # Errors
    /// [`FileError::Io`], with `CrossesDevices` when something is mounted in the tree; part of it may
    /// be gone then.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> Result<bool, FileError> {
        let name = self.component(name.as_ref())?;
        let path = self.full(name);
        let failed = |e: Errno| io_error(&path, "remove", e);
        let dev = FileStat::new(&rustix::fs::fstat(&self.fd).map_err(failed)?).id.dev;
        match self.lookup(name) {
            Err(Errno::NOENT) => return Ok(false),
            Err(e) => return Err(failed(e)),
            Ok(stat) if stat.kind != Kind::Dir => return self.remove_file(name),
            Ok(_) => {}
        }
        for _ in 0..ROUNDS {
            let top = match enter(self.fd.as_fd(), name, dev) {
                Ok(top) => top,
                Err(Errno::NOENT) => return Ok(true),
                Err(e) => return Err(failed(e)),
            };
            empty(top.as_fd(), top.as_fd(), dev, 0, &path)?;
            match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(true),
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(failed(Errno::NOTEMPTY))
    }
}

/// Empties `dir`, which lies `depth` directories below `top`.
fn empty(
    top: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    dev: u64,
    depth: usize,
    path: &Path,
) -> Result<(), FileError> {
    let failed = |e: Errno| io_error(path, "remove", e);
    let mut idle = 0;
    loop {
        let mut names: Vec<OsString> = Vec::new();
        read_names(dir, BATCH, |name, _| {
            names.push(name);
            Ok(())
        })
        .map_err(failed)?;
        if names.is_empty() {
            return Ok(());
        }
        let mut progress = false;
        for name in &names {
            progress |= remove_one(top, dir, name, dev, depth, path)?;
        }
        idle = if progress { 0 } else { idle + 1 };
        if idle == ROUNDS {
            return Err(failed(Errno::NOTEMPTY));
        }
    }
}

/// Whether `name` is gone from `dir`.
fn remove_one(
    top: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &OsStr,
    dev: u64,
    depth: usize,
    path: &Path,
) -> Result<bool, FileError> {
    let failed = |e: Errno| io_error(path, "remove", e);
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        // Linux says EISDIR to unlinking a directory, others EPERM.
        Err(Errno::ISDIR) => {}
        Err(e @ Errno::PERM) => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileStat::new(&stat).kind == Kind::Dir => {}
            _ => return Err(failed(e)),
        },
        Err(e) => return Err(failed(e)),
    }
    let sub = match enter(dir, name, dev) {
        Ok(sub) => sub,
        Err(Errno::NOENT) => return Ok(true),
        Err(e) => return Err(failed(e)),
    };
    if depth + 1 == DEPTH {
        // Flatten instead of descending: a tree may be deeper than there are descriptors.
        let random = crate::rand::hex::<8>().map_err(|e| io_error(path, "draw a random name in", e))?;
        rustix::fs::renameat(dir, name, top, format!("{random}.tmp")).map_err(failed)?;
        return Ok(true);
    }
    empty(top, sub.as_fd(), dev, depth + 1, path)?;
    match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

/// Opens a directory that is about to be emptied, and makes it writable for us: package caches are
/// read-only on purpose.
pub(super) fn enter(dir: BorrowedFd<'_>, name: &OsStr, dev: u64) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |flags| open_beneath(dir, name, flags, Mode::empty(), Crossing::Forbidden);
    let fd = match open(flags) {
        Err(Errno::ACCESS) => {
            unlock(open)?;
            open(flags)?
        }
        result => result?,
    };
    let stat = rustix::fs::fstat(&fd)?;
    if FileStat::new(&stat).id.dev != dev {
        return Err(Errno::XDEV);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&fd, mode | Mode::RWXU)?;
    }
    Ok(fd)
}

/// Gives us access to a directory of ours without any permission, through a handle that needs none.
#[cfg(target_os = "linux")]
fn unlock(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let fd = open(OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)
}

#[cfg(not(target_os = "linux"))]
fn unlock(_open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<(), Errno> {
    Err(Errno::ACCESS)
}
