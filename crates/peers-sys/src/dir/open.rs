//! Opening directories and files by the rules of the module.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::{invalid_name, io_error, open_error};
use super::{FileError, FileId, FileStat, Kind};
use crate::term;

/// A name that is replaced again and again while it is opened is an attack, not a busy writer.
const ATTEMPTS: usize = 8;
/// Columns of a link's target in a message.
const TARGET_SHOWN: usize = 200;

/// Whether opening takes group and other permissions away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modes {
    Tighten,
    Keep,
}

/// An open directory; see the module for its rules.
#[derive(Debug)]
pub struct SafeDir {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    id: FileId,
    modes: Modes,
}

impl SafeDir {
    /// Opens the root of a private tree. What is opened below it loses the permission bits of group
    /// and others; the root itself is left as it is.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotRegular`] when it is no directory, [`FileError::Io`].
    pub fn open_root(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::root(path.as_ref(), Modes::Tighten)
    }

    /// Whether `path` is absolute and leads to a directory without a link on the way, as
    /// [`Path::canonicalize`] would give it. False where the system cannot tell at once.
    #[must_use]
    pub fn is_canonical(path: &Path) -> bool {
        use std::path::Component;
        let plain = path.is_absolute()
            && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        // A trailing slash and doubled ones are left out of the components.
        plain
            && path.components().collect::<PathBuf>().as_os_str() == path.as_os_str()
            && leads_straight(path)
    }

    /// Opens the root of a tree whose permissions are not ours to change, such as a work tree.
    ///
    /// # Errors
    /// As [`SafeDir::open_root`].
    pub fn open_shared(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::root(path.as_ref(), Modes::Keep)
    }

    /// Opens the private root `path`, making the directories that are missing (0700).
    ///
    /// The part of the path that exists is trusted as [`SafeDir::open_root`] trusts it.
    ///
    /// # Errors
    /// As [`SafeDir::open_root`] and [`SafeDir::create_subdir`].
    pub fn create_root(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let mut missing = Vec::new();
        let mut base = path;
        loop {
            match Self::open_root(if base.as_os_str().is_empty() { Path::new(".") } else { base }) {
                Ok(mut dir) => {
                    for name in missing.iter().rev() {
                        dir = dir.create_subdir(name)?;
                    }
                    return Ok(dir);
                }
                Err(error @ FileError::NotFound { .. }) => {
                    let (Some(parent), Some(name)) = (base.parent(), base.file_name()) else {
                        return Err(error);
                    };
                    missing.push(name.to_owned());
                    base = parent;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn root(path: &Path, modes: Modes) -> Result<Self, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|e| open_error(path.to_owned(), "a directory", e))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| io_error(path, "stat", e))?;
        Ok(Self { fd, path: path.to_owned(), id: FileStat::new(&stat).id, modes })
    }

    /// The same directory with the rule of [`SafeDir::open_root`] for what is opened below it.
    #[must_use]
    pub fn into_private(self) -> Self {
        Self { modes: Modes::Tighten, ..self }
    }

    /// Another handle on the same directory.
    ///
    /// # Errors
    /// [`FileError::Io`] when no descriptor is left.
    pub fn try_clone(&self) -> Result<Self, FileError> {
        let fd = self.fd.try_clone().map_err(|e| io_error(&self.path, "duplicate", e))?;
        Ok(Self { fd, path: self.path.clone(), ..*self })
    }

    /// The path for messages. It may name something else by now: see [`SafeDir::still_at`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which directory this is.
    #[must_use]
    pub fn identity(&self) -> FileId {
        self.id
    }

    /// What lies at `path`, a link itself and not what it leads to; `None` where nothing can be seen there. To be
    /// compared with an earlier answer, not to be trusted.
    #[must_use]
    pub fn id_at(path: &Path) -> Option<FileId> {
        let stat = rustix::fs::lstat(path).ok()?;
        Some(FileStat::new(&stat).id)
    }

    /// Whether `path` is this directory itself: a link to it is not. Links above it are followed.
    #[must_use]
    pub fn still_at(&self, path: impl AsRef<Path>) -> bool {
        Self::id_at(path.as_ref()) == Some(self.id)
    }

    /// What became of [`SafeDir::path`], to stand between it and "when it was opened"; `None` while this directory is
    /// [`SafeDir::still_at`] it. Safe to print.
    #[must_use]
    pub fn displaced(&self) -> Option<String> {
        let now = match rustix::fs::lstat(&self.path).map(|stat| FileStat::new(&stat)) {
            Ok(stat) if stat.id == self.id => return None,
            Ok(FileStat { kind: Kind::Dir, .. }) => {
                return Some("is not the directory that it was".to_owned());
            }
            Ok(FileStat { kind: Kind::Symlink, .. }) => {
                let target = rustix::fs::readlink(&self.path, Vec::new()).unwrap_or_default();
                format!("is now a symbolic link to `{}`", term::line(&target.to_string_lossy(), TARGET_SHOWN))
            }
            Ok(FileStat { kind: Kind::File | Kind::Special, .. }) => "is now a file".to_owned(),
            Err(_) => "cannot be found".to_owned(),
        };
        Some(format!("{now}; it was a directory"))
    }

    /// Opens the subdirectory `name`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], and those with [`FileError::is_unsafe`].
    pub fn subdir(&self, name: impl AsRef<OsStr>) -> Result<Self, FileError> {
        let name = self.component(name.as_ref())?;
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = self.open_at(name, flags, Mode::empty()).map_err(|errno| {
            // Some systems answer "not a directory" to a link that must not be followed.
            let link =
                errno == Errno::NOTDIR && matches!(self.lookup(name), Ok(s) if s.kind == Kind::Symlink);
            open_error(path.clone(), "a directory", if link { Errno::LOOP } else { errno })
        })?;
        let stat = self.admit(fd.as_fd(), name, Kind::Dir)?;
        Ok(Self { fd, path, id: stat.id, modes: self.modes })
    }

    /// Makes the subdirectory `name`, for everybody whom the user lets in.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`], [`FileError::Io`].
    pub fn make_shared_subdir(&self, name: impl AsRef<OsStr>) -> Result<Self, FileError> {
        let name = self.component(name.as_ref())?;
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) => self.subdir(name),
            Err(Errno::EXIST) => Err(FileError::AlreadyExists { path: self.path.join(name) }),
            Err(e) => Err(io_error(&self.path.join(name), "create directory", e)),
        }
    }

    /// Opens the subdirectory `name`, made with mode 0700 when it is missing.
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn create_subdir(&self, name: impl AsRef<OsStr>) -> Result<Self, FileError> {
        let name = self.component(name.as_ref())?;
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.subdir(name),
            Err(e) => Err(io_error(&self.path.join(name), "create directory", e)),
        }
    }

    /// Opens `a/b/c` below this directory, each component by [`SafeDir::subdir`]. The empty path is
    /// this directory.
    ///
    /// # Errors
    /// As [`SafeDir::subdir`]; [`FileError::InvalidName`] for an absolute path or a `..`.
    pub fn open_path(&self, path: impl AsRef<Path>) -> Result<Self, FileError> {
        self.walk(path.as_ref(), |dir, name| dir.subdir(name))
    }

    /// Like [`SafeDir::open_path`], making what is missing.
    ///
    /// # Errors
    /// As [`SafeDir::open_path`].
    pub fn create_path(&self, path: impl AsRef<Path>) -> Result<Self, FileError> {
        self.walk(path.as_ref(), |dir, name| dir.create_subdir(name))
    }

    /// The directory that holds the file `a/b/c`, and the name `c` in it.
    ///
    /// # Errors
    /// As [`SafeDir::open_path`].
    pub fn parent_of(&self, path: impl AsRef<Path>) -> Result<(Self, OsString), FileError> {
        let (parent, name) = self.split(path.as_ref())?;
        Ok((self.open_path(parent)?, name))
    }

    /// Like [`SafeDir::parent_of`], making the directories that are missing.
    ///
    /// # Errors
    /// As [`SafeDir::open_path`].
    pub fn create_parent_of(&self, path: impl AsRef<Path>) -> Result<(Self, OsString), FileError> {
        let (parent, name) = self.split(path.as_ref())?;
        Ok((self.create_path(parent)?, name))
    }

    fn split<'p>(&self, path: &'p Path) -> Result<(&'p Path, OsString), FileError> {
        match (path.parent(), path.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => Ok((parent, name.to_owned())),
            _ => Err(invalid_name(&self.path, path.as_os_str())),
        }
    }

    fn walk(
        &self,
        path: &Path,
        step: impl Fn(&Self, &OsStr) -> Result<Self, FileError>,
    ) -> Result<Self, FileError> {
        let names: Vec<&OsStr> = path
            .components()
            .map(|component| match component {
                Component::Normal(name) => Ok(name),
                _ => Err(invalid_name(&self.path, path.as_os_str())),
            })
            .collect::<Result<_, _>>()?;
        names.into_iter().try_fold(self.try_clone()?, |dir, name| step(&dir, name))
    }

    /// `name` if it is a single path component.
    pub(super) fn component<'n>(&self, name: &'n OsStr) -> Result<&'n OsStr, FileError> {
        let bytes = name.as_bytes();
        let bad = matches!(bytes, b"" | b"." | b"..")
            || bytes.len() > 255
            || bytes.iter().any(|&b| b == b'/' || b == 0);
        if bad { Err(invalid_name(&self.path, name)) } else { Ok(name) }
    }

    /// The display path of `name`.
    pub(crate) fn full(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// Opens the regular file `name`. Content is untouched whatever the flags.
    pub(crate) fn open_regular(&self, name: &OsStr, flags: OFlags) -> Result<(File, FileStat), FileError> {
        let name = self.component(name)?;
        let mut attempts = 1..;
        loop {
            let fd = self
                .open_at(name, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR)
                .map_err(|e| open_error(self.full(name), "a regular file", e))?;
            match self.admit(fd.as_fd(), name, Kind::File) {
                // A publisher renamed a new version into place in between: take that one.
                Err(FileError::Swapped { .. }) if attempts.next() < Some(ATTEMPTS) => {}
                Err(error) => return Err(error),
                Ok(stat) => return Ok((File::from(fd), stat)),
            }
        }
    }

    /// Checks what was opened as `name`, and takes permissions away where that is the rule.
    pub(super) fn admit(&self, fd: BorrowedFd<'_>, name: &OsStr, kind: Kind) -> Result<FileStat, FileError> {
        let path = || self.full(name);
        let raw = rustix::fs::fstat(fd).map_err(|e| io_error(&path(), "stat", e))?;
        let stat = FileStat::new(&raw);
        if stat.kind != kind {
            let expected = if kind == Kind::Dir { "a directory" } else { "a regular file" };
            return Err(FileError::NotRegular { path: path(), expected });
        }
        if kind == Kind::File && stat.links > 1 {
            return Err(FileError::HardLinked { path: path(), links: stat.links });
        }
        match self.lookup(name) {
            Ok(named) if named.id == stat.id && stat.links > 0 => {}
            Ok(named) if named.kind == Kind::Symlink => return Err(FileError::Symlink { path: path() }),
            Ok(_) | Err(Errno::NOENT) => return Err(FileError::Swapped { path: path() }),
            Err(e) => return Err(io_error(&path(), "stat", e)),
        }
        if stat.owner != 0 && stat.owner != rustix::process::geteuid().as_raw() {
            return Err(FileError::WrongOwner { path: path(), uid: stat.owner });
        }
        if self.modes == Modes::Tighten && stat.mode & 0o077 != 0 {
            let narrow = Mode::from_raw_mode(raw.st_mode).difference(Mode::RWXG | Mode::RWXO);
            match rustix::fs::fchmod(fd, narrow) {
                // Root's file, or a file system mounted read-only: nobody can narrow it.
                Ok(()) | Err(Errno::PERM | Errno::ROFS) => {}
                Err(e) => return Err(io_error(&path(), "narrow the permissions of", e)),
            }
        }
        Ok(stat)
    }

    /// What `name` stands for now, links not followed.
    pub(super) fn lookup(&self, name: &OsStr) -> Result<FileStat, Errno> {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileStat::new(&stat))
    }

    /// Opens one component, never following a link. `name` must have passed [`SafeDir::component`].
    pub(super) fn open_at(&self, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        // The kernel refuses a mode where nothing can be made.
        let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
        open_beneath(self.fd.as_fd(), name, flags, mode, Crossing::Allowed)
    }
}

#[cfg(target_os = "linux")]
fn leads_straight(path: &Path) -> bool {
    use rustix::fs::ResolveFlags;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn leads_straight(_path: &Path) -> bool {
    false
}

/// Whether an open may enter another mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crossing {
    Allowed,
    Forbidden,
}

#[cfg(target_os = "linux")]
pub(super) fn open_beneath(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
    crossing: Crossing,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if crossing == Crossing::Forbidden {
        resolve |= ResolveFlags::NO_XDEV;
    }
    match rustix::io::retry_on_intr(|| rustix::fs::openat2(dir, name, flags, mode, resolve)) {
        // Old kernel, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_nofollow(dir, name, flags, mode),
        result => result,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_beneath(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
    _crossing: Crossing,
) -> Result<OwnedFd, Errno> {
    open_nofollow(dir, name, flags, mode)
}

/// For a single component this and the checks after opening say the same as the newer call.
pub(super) fn open_nofollow(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW, mode))
}

impl AsFd for SafeDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
