//! What can go wrong with a file, always with its display path.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// A file operation that was refused or failed. None is worth a retry.
#[derive(Debug, Error)]
pub enum FileError {
    /// A symbolic link stands where a file or directory must.
    #[error("{} is a symbolic link", shown(path))]
    Symlink {
        /// The link itself.
        path: PathBuf,
    },
    /// A FIFO, device, socket or directory stands where a regular file must, or no directory where one must.
    #[error("{} is not {expected}", shown(path))]
    NotRegular {
        /// What was named.
        path: PathBuf,
        /// What it must be, with its article.
        expected: &'static str,
    },
    /// The file has further names, through which somebody else may read or write it.
    #[error("{} has {links} hard links; {} gives it one name of its own", shown(path), unlinking(path))]
    HardLinked {
        /// The name used.
        path: PathBuf,
        /// The link count.
        links: u64,
    },
    /// The name stood for something else after the file was opened.
    #[error("{} was replaced while it was opened", shown(path))]
    Swapped {
        /// The name used.
        path: PathBuf,
    },
    /// The file belongs to neither us nor root.
    #[error("{} belongs to user {uid}", shown(path))]
    WrongOwner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The file is longer than allowed.
    #[error("{} is larger than {cap} bytes", shown(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        cap: u64,
    },
    /// A name that is no single path component.
    #[error("`{name}` is not a file name (in {})", shown(path))]
    InvalidName {
        /// The directory.
        path: PathBuf,
        /// The name, made printable.
        name: String,
    },
    /// The name is taken.
    #[error("{} exists already", shown(path))]
    AlreadyExists {
        /// The name used.
        path: PathBuf,
    },
    /// There is nothing of that name.
    #[error("{} does not exist", shown(path))]
    NotFound {
        /// The name used.
        path: PathBuf,
    },
    /// The content is not UTF-8.
    #[error("{} is not UTF-8 (first bad byte at offset {offset})", shown(path))]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Bytes that are UTF-8.
        offset: usize,
    },
    /// The system refused.
    #[error("{op} {}", shown(path))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted, as a verb.
        op: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl FileError {
    /// The display path of the file or directory concerned.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Symlink { path }
            | Self::NotRegular { path, .. }
            | Self::HardLinked { path, .. }
            | Self::Swapped { path }
            | Self::WrongOwner { path, .. }
            | Self::TooLarge { path, .. }
            | Self::InvalidName { path, .. }
            | Self::AlreadyExists { path }
            | Self::NotFound { path }
            | Self::NotUtf8 { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// Whether the file looks tampered with, so that a command that needs it must refuse (exit 5).
    #[must_use]
    pub fn is_unsafe(&self) -> bool {
        match self {
            Self::Symlink { .. }
            | Self::NotRegular { .. }
            | Self::HardLinked { .. }
            | Self::Swapped { .. }
            | Self::WrongOwner { .. } => true,
            Self::TooLarge { .. }
            | Self::InvalidName { .. }
            | Self::AlreadyExists { .. }
            | Self::NotFound { .. }
            | Self::NotUtf8 { .. }
            | Self::Io { .. } => false,
        }
    }

    /// Whether there simply is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether this user may not do it.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether the file system takes no writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    /// Whether the disk or a quota is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}

// A name may hold control bytes; the message goes to terminals and logs.
fn shown(path: &Path) -> String {
    crate::term::inline(&path.to_string_lossy())
}

/// The command that makes a copy of a file take the file's place.
fn unlinking(path: &Path) -> String {
    let name = shown(path).replace('\'', r"'\''");
    format!("`f='{name}'; cp \"$f\" \"$f.new\" && mv \"$f.new\" \"$f\"`")
}

pub(crate) fn io_error(path: &Path, op: &'static str, source: impl Into<io::Error>) -> FileError {
    FileError::Io { path: path.to_owned(), op, source: source.into() }
}

pub(super) fn invalid_name(dir: &Path, name: &OsStr) -> FileError {
    FileError::InvalidName { path: dir.to_owned(), name: crate::term::line(&name.to_string_lossy(), 80) }
}

/// The error for an `open` of `path` that must yield `expected`.
pub(super) fn open_error(path: PathBuf, expected: &'static str, errno: Errno) -> FileError {
    match errno {
        Errno::NOENT => FileError::NotFound { path },
        Errno::LOOP | Errno::MLINK => FileError::Symlink { path },
        Errno::EXIST => FileError::AlreadyExists { path },
        // A FIFO without a reader, a socket, a device without a driver.
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::NODEV => FileError::NotRegular { path, expected },
        errno => io_error(&path, "open", errno),
    }
}
