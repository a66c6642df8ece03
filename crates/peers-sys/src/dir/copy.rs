//! Copying a whole tree, without following a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RawMode, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::entries::read_names;
use super::{FileError, FileStat, Kind, SafeDir, io_error};

/// Directories inside of each other; each holds two handles.
const DEEPEST: usize = 200;
/// What `chmod` sets.
const PERMISSIONS: RawMode = 0o7777;

impl SafeDir {
    /// Copies everything below the directory `name` to a new one, `to` below `there`: files, links as links, modes
    /// and times of last change. Hard links become files of their own; pipes, sockets and devices are left out.
    ///
    /// # Errors
    /// [`FileError::TooLarge`] once the sizes of the files add up to more than `most` bytes, holes included;
    /// [`FileError::Io`]. What was copied by then stays. A tree deeper than 200 directories is refused.
    pub fn copy_tree(
        &self,
        name: impl AsRef<OsStr>,
        there: &Self,
        to: impl AsRef<OsStr>,
        most: u64,
    ) -> Result<(), FileError> {
        let (name, to) = (self.component(name.as_ref())?, there.component(to.as_ref())?);
        let path = self.full(name);
        let failed = |e: Errno| io_error(&path, "copy", e);
        let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if FileStat::new(&stat).kind != Kind::Dir {
            return Err(FileError::NotRegular { path, expected: "a directory" });
        }
        let mut copying = Copying { path: &path, most, left: most };
        copying.directory((self.fd.as_fd(), there.fd.as_fd()), (name, to), &stat, 0)
    }
}

/// Both sides of a copy.
type Pair<'a> = (BorrowedFd<'a>, BorrowedFd<'a>);

/// A copy under way.
struct Copying<'a> {
    /// What is copied.
    path: &'a Path,
    /// Bytes that may be copied, and how many of them are left.
    most: u64,
    left: u64,
}

impl Copying<'_> {
    fn failed(&self, error: Errno) -> FileError {
        io_error(self.path, "copy", error)
    }

    fn directory(
        &mut self,
        (from, to): Pair<'_>,
        (name, new): (&OsStr, &OsStr),
        stat: &Stat,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth == DEEPEST {
            return Err(self.failed(Errno::NAMETOOLONG));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |dir, name| rustix::fs::openat(dir, name, flags, Mode::empty());
        rustix::fs::mkdirat(to, new, Mode::RWXU).map_err(|e| self.failed(e))?;
        let inner = open(from, name).map_err(|e| self.failed(e))?;
        let copy = open(to, new).map_err(|e| self.failed(e))?;
        let mut names: Vec<OsString> = Vec::new();
        read_names(inner.as_fd(), usize::MAX, |name, _| {
            names.push(name);
            Ok(())
        })
        .map_err(|e| self.failed(e))?;
        for name in &names {
            self.entry((inner.as_fd(), copy.as_fd()), name, depth)?;
        }
        finish(&copy, stat).map_err(|e| self.failed(e))
    }

    fn entry(&mut self, pair: Pair<'_>, name: &OsStr, depth: usize) -> Result<(), FileError> {
        let (from, to) = pair;
        let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| self.failed(e))?;
        match FileStat::new(&stat).kind {
            Kind::Dir => self.directory(pair, (name, name), &stat, depth + 1),
            Kind::File => {
                let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                let too_large = || FileError::TooLarge { path: self.path.to_owned(), cap: self.most };
                self.left = self.left.checked_sub(size).ok_or_else(too_large)?;
                let nofollow = OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let reading = OFlags::RDONLY | OFlags::NONBLOCK | nofollow;
                let source = rustix::fs::openat(from, name, reading, Mode::empty());
                let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | nofollow;
                let copy = rustix::fs::openat(to, name, new, Mode::RUSR | Mode::WUSR);
                let mut copy = File::from(copy.map_err(|e| self.failed(e))?);
                // One that still grows is cut off at the size that was counted.
                let mut source = File::from(source.map_err(|e| self.failed(e))?).take(size);
                std::io::copy(&mut source, &mut copy).map_err(|e| io_error(self.path, "copy", e))?;
                finish(&OwnedFd::from(copy), &stat).map_err(|e| self.failed(e))
            }
            Kind::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new()).map_err(|e| self.failed(e))?;
                rustix::fs::symlinkat(target, to, name).map_err(|e| self.failed(e))
            }
            Kind::Special => Ok(()),
        }
    }
}

/// Gives a copy the mode and the time of last change of what it was copied from.
fn finish(copy: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
    rustix::fs::fchmod(copy, Mode::from_raw_mode(stat.st_mode & PERMISSIONS))?;
    let modified =
        Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec.try_into().unwrap_or_default() };
    rustix::fs::futimens(copy, &Timestamps { last_access: modified, last_modification: modified })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_tree_is_copied_with_links_modes_and_times_and_without_what_is_no_file() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |path: &str| tmp.path().join(path);
        fs::create_dir_all(at("from/bin")).unwrap();
        fs::write(at("from/bin/tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(at("from/bin/tool"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::hard_link(at("from/bin/tool"), at("from/again")).unwrap();
        symlink("/etc/passwd", at("from/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("from/pipe"), Mode::RUSR).unwrap();
        fs::set_permissions(at("from/bin"), PermissionsExt::from_mode(0o500)).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
        fs::File::options().write(true).open(at("from/again")).unwrap().set_modified(old).unwrap();

        let dir = SafeDir::open_shared(tmp.path()).unwrap();
        dir.copy_tree("from", &dir, "to", 20).unwrap();
        assert_eq!(fs::read_to_string(at("to/bin/tool")).unwrap(), "#!/bin/sh\n");
        assert_eq!(fs::metadata(at("to/bin")).unwrap().mode() & 0o777, 0o500);
        let tool = fs::metadata(at("to/bin/tool")).unwrap();
        assert_eq!((tool.mode() & 0o777, tool.mtime(), tool.nlink()), (0o755, 1000, 1));
        assert_eq!(fs::read_link(at("to/link")).unwrap(), Path::new("/etc/passwd"));
        assert!(fs::symlink_metadata(at("to/pipe")).is_err());
        assert!(dir.copy_tree("from", &dir, "to", 20).is_err(), "never into what is there");
        assert!(dir.copy_tree("from/../..", &dir, "out", 20).is_err());
        // Twice ten bytes, by two names.
        let cut = dir.copy_tree("from", &dir, "half", 19).unwrap_err();
        assert!(matches!(cut, FileError::TooLarge { cap: 19, .. }), "{cut}");
        fs::set_permissions(at("from/bin"), PermissionsExt::from_mode(0o700)).unwrap();
        fs::set_permissions(at("to/bin"), PermissionsExt::from_mode(0o700)).unwrap();
    }
}
