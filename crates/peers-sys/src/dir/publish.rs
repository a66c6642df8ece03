//! Replacing a file so that every reader, at any time, sees the old content or the new.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use peers_model::Timestamp;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{FileError, Kind, SafeDir, io_error};

/// Length of `.<16 hex>.tmp`.
const TEMP_SUFFIX: usize = 21;
const TEMP_AGE: Duration = Duration::from_mins(10);
const TEMP_ATTEMPTS: usize = 8;
const SWEEP_MAX: usize = 100_000;

/// The permissions of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// 0600: everything of ours.
    Private,
    /// 0644: a file of the work tree.
    Plain,
    /// 0755: an executable file of the work tree.
    Executable,
    /// These permission bits: a file of somebody else's, as it was.
    As(u32),
}

impl FileMode {
    fn bits(self) -> Mode {
        let private = Mode::RUSR | Mode::WUSR;
        let plain = private | Mode::RGRP | Mode::ROTH;
        match self {
            Self::Private => private,
            Self::Plain => plain,
            Self::Executable => plain | Mode::XUSR | Mode::XGRP | Mode::XOTH,
            Self::As(bits) => {
                let all = [
                    (0o400, Mode::RUSR),
                    (0o200, Mode::WUSR),
                    (0o100, Mode::XUSR),
                    (0o040, Mode::RGRP),
                    (0o020, Mode::WGRP),
                    (0o010, Mode::XGRP),
                    (0o004, Mode::ROTH),
                    (0o002, Mode::WOTH),
                    (0o001, Mode::XOTH),
                ];
                all.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, mode)| mode).collect()
            }
        }
    }
}

/// What a crash of the machine may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Nothing: content and name are on the disk when the call returns.
    Synced,
    /// This version, or the whole file.
    Lazy,
}

/// What a name that is taken means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Replace,
    Refuse,
}

impl SafeDir {
    /// Replaces `name` by a file with this content (0600), durably and atomically. A link of that
    /// name is replaced itself, what it points at is not touched.
    ///
    /// # Errors
    /// [`FileError::NotRegular`] when a directory has the name, [`FileError::Io`]; the old content is
    /// then still there.
    pub fn publish(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, FileMode::Private, Durability::Synced, Taken::Replace)
    }

    /// Like [`SafeDir::publish`] but not synced, several times faster: for projections that can be
    /// written again. After a crash of the machine the file may be old, empty or missing.
    ///
    /// # Errors
    /// As [`SafeDir::publish`].
    pub fn publish_unsynced(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, FileMode::Private, Durability::Lazy, Taken::Replace)
    }

    /// Like [`SafeDir::publish`], for a name that must be free.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::Io`].
    pub fn publish_new(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, FileMode::Private, Durability::Synced, Taken::Refuse)
    }

    /// Like [`SafeDir::publish`] with the permission bits that the file had, for files of the operator's.
    ///
    /// # Errors
    /// As [`SafeDir::publish`].
    pub fn publish_as(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, FileMode::As(mode), Durability::Synced, Taken::Replace)
    }

    /// Like [`SafeDir::publish_as`], for a name that must be free.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::Io`].
    pub fn publish_new_as(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, FileMode::As(mode), Durability::Synced, Taken::Refuse)
    }

    /// Like [`SafeDir::publish_unsynced`] with permissions, for files of the work tree.
    ///
    /// # Errors
    /// As [`SafeDir::publish`].
    pub fn publish_mode(
        &self,
        name: impl AsRef<OsStr>,
        bytes: &[u8],
        mode: FileMode,
    ) -> Result<(), FileError> {
        self.put(name.as_ref(), bytes, mode, Durability::Lazy, Taken::Replace)
    }

    /// Removes what crashed publishers left: own temporary files last changed more than ten minutes
    /// before `now`. Returns how many.
    ///
    /// # Errors
    /// [`FileError::Io`] when the directory cannot be read.
    pub fn sweep_temps(&self, now: Timestamp) -> Result<usize, FileError> {
        let mut swept = 0;
        for entry in self.list(SWEEP_MAX)?.entries {
            if entry.kind != Kind::File || !is_temp_name(&entry.name) {
                continue;
            }
            let Some(stat) = self.stat(&entry.name)? else { continue };
            if stat.kind == Kind::File
                && now.since(stat.modified()) > TEMP_AGE
                && self.remove_file(&entry.name)?
            {
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Makes the names in this directory durable: what was created, renamed or removed before.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn sync(&self) -> Result<(), FileError> {
        match rustix::fs::fsync(&self.fd) {
            // Some file systems cannot sync a directory.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(e) => Err(io_error(&self.path, "sync", e)),
        }
    }

    fn put(
        &self,
        name: &OsStr,
        bytes: &[u8],
        mode: FileMode,
        durability: Durability,
        taken: Taken,
    ) -> Result<(), FileError> {
        let name = self.component(name)?;
        let candidates = std::iter::repeat_with(|| {
            crate::rand::hex::<8>().map_err(|e| io_error(&self.path, "draw a random name in", e))
        });
        let temp = self.create_temp(name, candidates)?;
        let failed = |op, e: std::io::Error| io_error(&self.full(name), op, e);
        (&temp.file).write_all(bytes).map_err(|e| failed("write", e))?;
        if mode != FileMode::Private {
            rustix::fs::fchmod(&temp.file, mode.bits()).map_err(|e| failed("set the mode of", e.into()))?;
        }
        if durability == Durability::Synced {
            temp.file.sync_all().map_err(|e| failed("sync", e))?;
        }
        temp.rename_to(self, name, taken)?;
        if durability == Durability::Synced { self.sync() } else { Ok(()) }
    }

    /// A fresh private file beside `name`. A name that exists already is not opened, whatever it is.
    pub(super) fn create_temp(
        &self,
        name: &OsStr,
        mut candidates: impl Iterator<Item = Result<String, FileError>>,
    ) -> Result<Temp<'_>, FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut attempts = 1..;
        loop {
            let Some(random) = candidates.next().transpose()? else {
                return Err(FileError::AlreadyExists { path: self.full(name) });
            };
            let temp = temp_name(name, &random);
            match self.open_at(&temp, flags, FileMode::Private.bits()) {
                Ok(fd) => {
                    return Ok(Temp {
                        dir: self.fd.as_fd(),
                        name: temp,
                        file: File::from(fd),
                        placed: false,
                    });
                }
                Err(Errno::EXIST | Errno::LOOP) if attempts.next() < Some(TEMP_ATTEMPTS) => {}
                Err(e) => return Err(io_error(&self.full(name), "create a temporary file for", e)),
            }
        }
    }
}

/// A temporary file, unlinked unless it found its place.
pub(super) struct Temp<'d> {
    dir: BorrowedFd<'d>,
    pub(super) name: OsString,
    pub(super) file: File,
    placed: bool,
}

impl Temp<'_> {
    fn rename_to(mut self, dir: &SafeDir, name: &OsStr, taken: Taken) -> Result<(), FileError> {
        let result = match taken {
            Taken::Replace => rustix::fs::renameat(self.dir, &self.name, self.dir, name),
            Taken::Refuse => rename_noreplace(self.dir, &self.name, name),
        };
        let path = || dir.full(name);
        match result {
            Ok(()) => {
                self.placed = true;
                Ok(())
            }
            Err(Errno::EXIST) => Err(FileError::AlreadyExists { path: path() }),
            Err(Errno::ISDIR) => Err(FileError::NotRegular { path: path(), expected: "a regular file" }),
            Err(e) => Err(io_error(&path(), "rename into place", e)),
        }
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // The error that led here matters more; the sweep takes what is left.
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}

fn rename_noreplace(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        result => return result,
    }
    link_noreplace(dir, from, to)
}

/// For file systems without the flag: a link fails when the name is taken.
pub(super) fn link_noreplace(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())?;
    rustix::fs::unlinkat(dir, from, AtFlags::empty())
}

// `<name>.<16 hex>.tmp`; a long name is cut to leave room.
fn temp_name(name: &OsStr, random: &str) -> OsString {
    let bytes = name.as_bytes();
    let mut temp = bytes.get(..255 - TEMP_SUFFIX).unwrap_or(bytes).to_vec();
    temp.extend_from_slice(format!(".{random}.tmp").as_bytes());
    OsString::from_vec(temp)
}

fn is_temp_name(name: &OsStr) -> bool {
    name.as_bytes().strip_suffix(b".tmp").is_some_and(|stem| {
        let Some((head, hex)) = stem.len().checked_sub(17).and_then(|at| stem.split_at_checked(at)) else {
            return false;
        };
        !head.is_empty()
            && hex
                .strip_prefix(b".")
                .is_some_and(|hex| hex.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
    })
}
