//! The file operations that the store needs, as a port with two implementations: the real one
//! ([`crate::FsDisk`]) and a simulated one that crashes on purpose.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// Which of the two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// The trusted store.
    Store,
    /// `.peers/` in the repository.
    Peers,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "the trusted store",
            Self::Peers => ".peers",
        })
    }
}

/// Identifies a file's content without reading it: any write changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Device and inode.
    pub id: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// Time of the last change of content or metadata, nanoseconds.
    pub changed: i128,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No space, or a quota.
    Full,
    /// A symlink, hard link, special file or foreign owner: refused.
    Unsafe,
    /// Longer than its cap.
    TooLarge,
    /// It exists already.
    Exists,
    /// The whole area is not there.
    NoArea,
    /// Anything else.
    Io,
}

/// A failed file operation.
#[derive(Debug, Error)]
#[error("{op} {path} in {area}: {detail}")]
pub struct DiskError {
    /// What kind.
    pub kind: DiskErrorKind,
    /// What was tried.
    pub op: &'static str,
    /// Where.
    pub area: Area,
    /// On what.
    pub path: String,
    /// In words.
    pub detail: String,
}

/// File operations. Paths are relative, components separated by `/`; directories are made as needed.
pub trait Disk {
    /// Where a file lies, for people; nothing where that is no path of this machine.
    fn locate(&self, _area: Area, _path: &str) -> Option<PathBuf> {
        None
    }

    /// The whole content, or `None` when there is no such file.
    ///
    /// # Errors
    /// Unsafe file, longer than `cap`, or I/O.
    fn read(&mut self, area: Area, path: &str, cap: u64) -> Result<Option<Vec<u8>>, DiskError>;

    /// At most `len` bytes from `offset`.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn read_at(&mut self, area: Area, path: &str, offset: u64, len: u64) -> Result<Vec<u8>, DiskError>;

    /// Bytes, or `None` when there is no such file.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn len(&mut self, area: Area, path: &str) -> Result<Option<u64>, DiskError>;

    /// Replaces the whole file. With `sync` it is durable on return; without, it may be lost in a
    /// crash but is never half-written.
    ///
    /// # Errors
    /// Unsafe file or I/O; the old content is intact then.
    fn publish(&mut self, area: Area, path: &str, bytes: &[u8], sync: bool) -> Result<(), DiskError>;

    /// Replaces the whole file, for readers alone: as [`Disk::publish`] without `sync`, and nobody may write it.
    ///
    /// # Errors
    /// As [`Disk::publish`].
    fn publish_read_only(&mut self, area: Area, path: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.publish(area, path, bytes, false)
    }

    /// Appends in one write. Not durable until [`Disk::sync`]. On error the file has its old length,
    /// as far as the disk allows.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn append(&mut self, area: Area, path: &str, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// I/O.
    fn sync(&mut self, area: Area, path: &str) -> Result<(), DiskError>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn truncate(&mut self, area: Area, path: &str, len: u64) -> Result<(), DiskError>;

    /// Names in a directory, sorted; empty when there is none.
    ///
    /// # Errors
    /// Unsafe directory or I/O.
    fn list(&mut self, area: Area, dir: &str) -> Result<Vec<String>, DiskError>;

    /// The name in a directory that was changed last, of those that end in `suffix`.
    ///
    /// # Errors
    /// As [`Disk::list`].
    fn newest(&mut self, area: Area, dir: &str, suffix: &str) -> Result<Option<String>, DiskError> {
        let mut newest = None;
        for name in self.list(area, dir)?.into_iter().filter(|name| name.ends_with(suffix)) {
            let print = self.fingerprint(area, &format!("{dir}/{name}"))?;
            newest = newest.max(print.map(|print| (print.changed, name)));
        }
        Ok(newest.map(|(_, name)| name))
    }

    /// Names that [`Disk::list`] leaves out, made printable: directories, links, special files, names that
    /// are no UTF-8. Empty where a disk knows plain files alone.
    ///
    /// # Errors
    /// As [`Disk::list`].
    fn irregular(&mut self, _area: Area, _dir: &str) -> Result<Vec<String>, DiskError> {
        Ok(Vec::new())
    }

    /// Gives entries whose names are no UTF-8 a printable free name that ends in `suffix`. Returns the new
    /// names.
    ///
    /// # Errors
    /// As [`Disk::rename`].
    fn make_printable(&mut self, _area: Area, _dir: &str, _suffix: &str) -> Result<Vec<String>, DiskError> {
        Ok(Vec::new())
    }

    /// Removes a file; nothing happens when there is none.
    ///
    /// # Errors
    /// I/O.
    fn remove(&mut self, area: Area, path: &str) -> Result<(), DiskError>;

    /// Moves a file within its area, replacing the target.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn rename(&mut self, area: Area, from: &str, to: &str) -> Result<(), DiskError>;

    /// The file's fingerprint, or `None` when there is no such file.
    ///
    /// # Errors
    /// Unsafe file or I/O.
    fn fingerprint(&mut self, area: Area, path: &str) -> Result<Option<Fingerprint>, DiskError>;
}

/// The first of the names with the numbers 1, 2 and so on that is not taken.
pub(crate) fn free_name<E>(
    numbered: impl Fn(u32) -> String,
    mut taken: impl FnMut(&str) -> Result<bool, E>,
) -> Result<String, E> {
    let mut number = 1_u32;
    loop {
        let name = numbered(number);
        if !taken(&name)? {
            return Ok(name);
        }
        number = number.saturating_add(1);
    }
}
