//! Names in a directory: listing, looking, renaming, removing one.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::{FileError, FileStat, Kind, SafeDir, io_error};

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, of any encoding.
    pub name: OsString,
    /// What it stands for.
    pub kind: Kind,
}

/// The names in a directory, sorted by their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The names, at most as many as asked for.
    pub entries: Vec<Entry>,
    /// Whether there were more.
    pub truncated: bool,
}

impl SafeDir {
    /// The names in this directory, at most `max` of them.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn list(&self, max: usize) -> Result<Listing, FileError> {
        let mut entries = Vec::new();
        let truncated = read_names(self.as_fd(), max, |name, file_type| {
            let kind = match file_type {
                FileType::Unknown => self.lookup(&name).map(|stat| stat.kind),
                known => Ok(Kind::new(known)),
            };
            match kind {
                Ok(kind) => entries.push(Entry { name, kind }),
                // Removed in the meantime.
                Err(Errno::NOENT) => {}
                Err(e) => return Err(e),
            }
            Ok(())
        })
        .map_err(|e| io_error(&self.path, "list", e))?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Listing { entries, truncated })
    }

    /// Makes the symbolic link `name`, which leads to `target`.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::Io`].
    pub fn link(&self, name: impl AsRef<OsStr>, target: &Path) -> Result<(), FileError> {
        let name = self.component(name.as_ref())?;
        rustix::fs::symlinkat(target, self.as_fd(), name).map_err(|errno| match errno {
            Errno::EXIST => FileError::AlreadyExists { path: self.path.join(name) },
            errno => io_error(&self.path.join(name), "make a link", errno),
        })
    }

    /// What `name` stands for, links not followed; `None` when there is nothing.
    ///
    /// # Errors
    /// [`FileError::InvalidName`], [`FileError::Io`].
    pub fn stat(&self, name: impl AsRef<OsStr>) -> Result<Option<FileStat>, FileError> {
        let name = self.component(name.as_ref())?;
        match self.lookup(name) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(io_error(&self.full(name), "stat", e)),
        }
    }

    /// Removes the name of a file or link. Returns whether there was one.
    ///
    /// # Errors
    /// [`FileError::NotRegular`] for a directory, [`FileError::Io`].
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<bool, FileError> {
        let name = self.component(name.as_ref())?;
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            // Linux says EISDIR to unlinking a directory, others EPERM.
            Err(e @ (Errno::ISDIR | Errno::PERM)) => match self.lookup(name) {
                Ok(stat) if stat.kind == Kind::Dir => {
                    Err(FileError::NotRegular { path: self.full(name), expected: "a file" })
                }
                _ => Err(io_error(&self.full(name), "remove", e)),
            },
            Err(e) => Err(io_error(&self.full(name), "remove", e)),
        }
    }

    /// Renames `from` to `to` in this directory, replacing a file of that name, durably.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotRegular`] when a directory has the name,
    /// [`FileError::Io`].
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<(), FileError> {
        self.rename_into(from, self, to)
    }

    /// Renames `from` to `to` in another directory of the same file system, as [`SafeDir::rename`].
    ///
    /// # Errors
    /// As [`SafeDir::rename`].
    pub fn rename_into(
        &self,
        from: impl AsRef<OsStr>,
        dir: &SafeDir,
        to: impl AsRef<OsStr>,
    ) -> Result<(), FileError> {
        let from = self.component(from.as_ref())?;
        let to = dir.component(to.as_ref())?;
        match rustix::fs::renameat(&self.fd, from, &dir.fd, to) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(FileError::NotFound { path: self.full(from) }),
            Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                return Err(FileError::NotRegular { path: dir.full(to), expected: "replaceable" });
            }
            Err(e) => return Err(io_error(&self.full(from), "rename", e)),
        }
        dir.sync()?;
        if dir.identity() == self.identity() { Ok(()) } else { self.sync() }
    }

    /// Renames `from` to `to` in another directory of the same file system, for a name that must be free. A
    /// file system that cannot promise that is looked at just before.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::NotFound`], [`FileError::Io`].
    pub fn rename_new_into(
        &self,
        from: impl AsRef<OsStr>,
        dir: &SafeDir,
        to: impl AsRef<OsStr>,
    ) -> Result<(), FileError> {
        let from = self.component(from.as_ref())?;
        let to = dir.component(to.as_ref())?;
        match rename_noreplace(self.fd.as_fd(), from, dir.fd.as_fd(), to) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(FileError::NotFound { path: self.full(from) }),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR) => {
                return Err(FileError::AlreadyExists { path: dir.full(to) });
            }
            Err(e) => return Err(io_error(&self.full(from), "rename", e)),
        }
        dir.sync()?;
        if dir.identity() == self.identity() { Ok(()) } else { self.sync() }
    }

    /// The bytes that an unprivileged user may still write to this file system.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn free_bytes(&self) -> Result<u64, FileError> {
        let stat = rustix::fs::fstatvfs(&self.fd).map_err(|e| io_error(&self.path, "measure", e))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Whether this file system is mounted so that nothing can be written.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn is_read_only(&self) -> Result<bool, FileError> {
        let stat = rustix::fs::fstatvfs(&self.fd).map_err(|e| io_error(&self.path, "measure", e))?;
        Ok(stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }
}

fn rename_noreplace(
    dir: BorrowedFd<'_>,
    from: &OsStr,
    into: BorrowedFd<'_>,
    to: &OsStr,
) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match rustix::fs::renameat_with(dir, from, into, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        result => return result,
    }
    match rustix::fs::statat(into, to, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(dir, from, into, to),
        Err(error) => Err(error),
    }
}

/// Calls `each` for at most `max` names in `dir`. Returns whether there were more.
pub(super) fn read_names(
    dir: BorrowedFd<'_>,
    max: usize,
    mut each: impl FnMut(OsString, FileType) -> Result<(), Errno>,
) -> Result<bool, Errno> {
    let mut seen = 0;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if seen == max {
            return Ok(true);
        }
        seen += 1;
        each(OsString::from_vec(name.to_vec()), entry.file_type())?;
    }
    Ok(false)
}
