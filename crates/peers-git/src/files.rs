//! Plain file access: never follows a symlink in the last component, never waits on a FIFO, always capped.
//!
//! Used for our own files inside the control directory and for reading the few files of a hostile
//! `.git` that the library does not give us.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use crate::error::GitError;

/// A directory handle at `path`; the last component must not be a symlink.
pub(crate) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_dir_at(CWD, path.as_os_str().as_bytes())?)
}

/// The directory `name` below `dir`, not followed.
pub(crate) fn open_dir_at<Fd: AsFd>(dir: Fd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, OsStr::from_bytes(name), flags, Mode::empty())
}

/// `lstat`; `None` when nothing is there.
pub(crate) fn lstat(path: &Path) -> io::Result<Option<Stat>> {
    lstat_at(CWD, path.as_os_str().as_bytes())
}

/// `lstat` of `name` below `dir`; `None` when nothing is there.
pub(crate) fn lstat_at<Fd: AsFd>(dir: Fd, name: &[u8]) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(RawMode::from(stat.st_mode))
}

/// A file type in words, readable after "is".
pub(crate) fn kind_text(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symlink",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of unknown type",
    }
}

/// Which file of which file system.
pub(crate) fn device_and_inode(stat: &Stat) -> (u64, u64) {
    // Signed on some platforms; only compared.
    fn unsigned<T: TryInto<u64>>(n: T) -> u64 {
        n.try_into().unwrap_or(u64::MAX)
    }
    (unsigned(stat.st_dev), stat.st_ino)
}

/// A field whose width differs between platforms.
pub(crate) fn wide<T: Into<u32>>(field: T) -> u32 {
    field.into()
}

pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Opens a regular file for reading. Anything else at that place is an `InvalidInput` error.
pub(crate) fn open_regular<Fd: AsFd>(dir: Fd, name: &[u8]) -> io::Result<(File, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, OsStr::from_bytes(name), flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    if kind(&stat) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, kind_text(kind(&stat))));
    }
    Ok((File::from(fd), stat))
}

/// The id that a file has as a blob, read piece by piece. One that changes size meanwhile is an error.
pub(crate) fn hash_blob(file: &File) -> Result<git2::Oid, git2::Error> {
    let by_handle = format!("/dev/fd/{}", file.as_raw_fd());
    git2::Oid::hash_file(git2::ObjectType::Blob, by_handle)
}

/// What reading a small file found.
pub(crate) enum Small {
    /// Nothing is there.
    Absent,
    /// The whole content.
    Bytes(Vec<u8>),
    /// More than the cap.
    TooLarge,
    /// Not a regular file: what it is.
    Special(&'static str),
}

impl Small {
    /// The content, if it is there.
    pub(crate) fn bytes(self) -> Option<Vec<u8>> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Reads at most `cap` bytes of a regular file below `dir`.
pub(crate) fn read_small_at<Fd: AsFd>(dir: Fd, name: &[u8], cap: u64) -> io::Result<Small> {
    let Some(stat) = lstat_at(&dir, name)? else { return Ok(Small::Absent) };
    if kind(&stat) != FileType::RegularFile {
        return Ok(Small::Special(kind_text(kind(&stat))));
    }
    let (file, _) = match open_regular(&dir, name) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Small::Absent),
        Err(error) => return Err(error),
    };
    if size(&stat) > cap {
        return Ok(Small::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size(&stat)).unwrap_or(0));
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > cap {
        return Ok(Small::TooLarge);
    }
    Ok(Small::Bytes(bytes))
}

/// Reads at most `cap` bytes of a regular file at `path`.
pub(crate) fn read_small(path: &Path, cap: u64) -> io::Result<Small> {
    read_small_at(CWD, path.as_os_str().as_bytes(), cap)
}

/// A small plain file; nothing where there is none.
pub(crate) fn small(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, GitError> {
    Ok(read_small(path, cap).map_err(|source| GitError::io(path, source))?.bytes())
}

/// Names and types.
pub(crate) type Listing = Vec<(Vec<u8>, FileType)>;

/// The names and types in a directory; `None` when there are more than `cap`.
pub(crate) fn list<Fd: AsFd>(dir: Fd, cap: usize) -> io::Result<Option<Listing>> {
    let (listing, whole) = list_some(dir, cap)?;
    Ok(whole.then_some(listing))
}

/// The first names and types in a directory, at most `cap`, and whether these are all.
///
/// An unknown type (some file systems) is looked up.
pub(crate) fn list_some<Fd: AsFd>(dir: Fd, cap: usize) -> io::Result<(Listing, bool)> {
    let mut whole = true;
    let mut out = Vec::new();
    let mut unknown = Vec::new();
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if out.len() >= cap {
            whole = false;
            break;
        }
        if entry.file_type() == FileType::Unknown {
            unknown.push(out.len());
        }
        out.push((name.to_vec(), entry.file_type()));
    }
    for index in unknown {
        if let Some((name, found)) = out.get_mut(index)
            && let Some(stat) = lstat_at(&dir, name)?
        {
            *found = kind(&stat);
        }
    }
    Ok((out, whole))
}

/// Replaces a file of ours: temporary name, write, rename. Not synced: what is kept this way can be
/// rebuilt.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    replace_as(path, bytes, 0o600)
}

/// The same, with permissions as far as the operator leaves them to new files.
pub(crate) fn replace_as(path: &Path, bytes: &[u8], mode: RawMode) -> Result<(), GitError> {
    let fail = |source: io::Error| GitError::io(path, source);
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
    let mut temp_name = name.to_owned();
    temp_name.push(format!(".{}.tmp", random_hex().map_err(fail)?));
    let temp = path.with_file_name(temp_name);
    let write = || -> io::Result<()> {
        let mut file = create_new_at(CWD, &temp, mode)?;
        file.write_all(bytes)?;
        rustix::fs::renameat(CWD, &temp, CWD, path)?;
        Ok(())
    };
    write().map_err(|error| {
        // The temporary file may not exist; there is nothing better to do about it.
        let _ = rustix::fs::unlinkat(CWD, &temp, AtFlags::empty());
        fail(error)
    })
}

/// Writes a file of ours in place. Only for content that can tell when it is torn, or may be: replacing a
/// file by renaming makes some file systems write it out at once, which costs milliseconds.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let write = |mut file: File| {
        file.write_all(bytes)?;
        file.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    };
    open_ours(path, OFlags::empty()).and_then(write).map_err(|source| GitError::io(path, source))
}

fn open_ours(path: &Path, how: OFlags) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | how;
    Ok(File::from(rustix::fs::openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)?))
}

/// A new private file at `path`.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    create_new_at(CWD, path, 0o600)
}

/// The same below `dir`, with permissions as far as the operator leaves them to new files.
pub(crate) fn create_new_at<Fd: AsFd>(dir: Fd, name: impl AsRef<Path>, mode: RawMode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(dir, name.as_ref(), flags, Mode::from_raw_mode(mode))?))
}

/// Appends to a file of ours.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let write = |mut file: File| file.write_all(bytes);
    open_ours(path, OFlags::APPEND).and_then(write).map_err(|source| GitError::io(path, source))
}

/// A directory of ours; existing is fine, a symlink is not.
pub(crate) fn ensure_dir(path: &Path) -> Result<(), GitError> {
    match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => open_dir(path).map(drop).map_err(|source| GitError::io(path, source)),
        Err(error) => Err(GitError::io(path, error)),
    }
}

/// Removes `name` below `dir` with everything in it, handle by handle, never through a symlink and
/// never onto another file system. Nothing there is fine.
pub(crate) fn remove_tree_at<Fd: AsFd>(dir: Fd, name: &[u8]) -> io::Result<()> {
    let Some(stat) = lstat_at(&dir, name)? else { return Ok(()) };
    if kind(&stat) != FileType::Directory {
        rustix::fs::unlinkat(&dir, OsStr::from_bytes(name), AtFlags::empty())?;
        return Ok(());
    }
    // An explicit stack: a planted tree may be deeper than ours.
    let mut stack = vec![Emptying::enter(open_writable_dir(&dir, name)?, name)?];
    while let Some(top) = stack.last_mut() {
        if let Some(child) = top.inner.pop() {
            let fd = open_writable_dir(&top.dir, &child)?;
            if rustix::fs::fstat(&fd)?.st_dev != stat.st_dev {
                return Err(io::Error::other("another file system is mounted inside"));
            }
            if stack.len() >= 512 {
                return Err(io::Error::other("the tree is deeper than 512 directories"));
            }
            stack.push(Emptying::enter(fd, &child)?);
            continue;
        }
        let Some(done) = stack.pop() else { break };
        let name = OsStr::from_bytes(&done.name);
        match stack.last() {
            Some(parent) => rustix::fs::unlinkat(&parent.dir, name, AtFlags::REMOVEDIR)?,
            None => rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)?,
        }
    }
    Ok(())
}

/// One level of [`remove_tree_at`]: its files are gone, these directories are left.
struct Emptying {
    dir: OwnedFd,
    name: Vec<u8>,
    inner: Vec<Vec<u8>>,
}

impl Emptying {
    fn enter(dir: OwnedFd, name: &[u8]) -> io::Result<Self> {
        let mut inner = Vec::new();
        for (child, found) in list(&dir, usize::MAX)?.unwrap_or_default() {
            if found == FileType::Directory {
                inner.push(child);
            } else {
                rustix::fs::unlinkat(&dir, OsStr::from_bytes(&child), AtFlags::empty())?;
            }
        }
        Ok(Self { dir, name: name.to_vec(), inner })
    }
}

/// Does something with an entry of a directory. Where that is not allowed, once more when their owner may do
/// everything with both: without that no directory can be moved elsewhere, and nothing out of one.
pub(crate) fn allowed<Fd: AsFd, T>(
    dir: Fd,
    name: &OsStr,
    act: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    let first = act();
    if !matches!(first, Err(Errno::ACCESS)) {
        return first;
    }
    let mode = |stat: &Stat| Mode::from_raw_mode(RawMode::from(stat.st_mode)) | Mode::RWXU;
    // Whoever is not the owner cannot; then the second attempt says so.
    let _tried = rustix::fs::fstat(&dir).and_then(|stat| rustix::fs::fchmod(&dir, mode(&stat)));
    if let Ok(Some(stat)) = lstat_at(&dir, name.as_bytes())
        && kind(&stat) == FileType::Directory
    {
        let _tried = rustix::fs::chmodat(&dir, name, mode(&stat), AtFlags::empty());
    }
    act()
}

/// Opens a directory that is to be emptied; gates leave read-only ones behind (module caches).
pub(crate) fn open_writable_dir<Fd: AsFd>(dir: Fd, name: &[u8]) -> io::Result<OwnedFd> {
    let fd = match open_dir_at(&dir, name) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&dir, OsStr::from_bytes(name), Mode::RWXU, AtFlags::empty())?;
            open_dir_at(&dir, name)?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(RawMode::from(rustix::fs::fstat(&fd)?.st_mode));
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&fd, mode | Mode::RWXU)?;
    }
    Ok(fd)
}

/// [`remove_tree_at`] for a path; its parent may be reached through symlinks.
pub(crate) fn remove_tree(path: &Path) -> Result<(), GitError> {
    let fail = |source| GitError::io(path, source);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    match std::fs::canonicalize(parent) {
        Ok(parent) => open_dir(&parent).and_then(|dir| remove_tree_at(dir, name.as_bytes())).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fail(error)),
    }
}

/// 64 random bits as hex.
pub(crate) fn random_hex() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// The absolute path without symlinks.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, GitError> {
    std::fs::canonicalize(path).map_err(|source| GitError::io(path, source))
}
