//! What a directory entry is.

use peers_model::Timestamp;
use rustix::fs::{FileType, Mode, Stat};
use serde::{Deserialize, Serialize};

/// Which file, whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    /// The device.
    pub dev: u64,
    /// The inode on it.
    pub ino: u64,
}

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, never followed.
    Symlink,
    /// A FIFO, socket or device.
    Special,
}

/// What is known of a name without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// What kind of thing.
    pub kind: Kind,
    /// Which one.
    pub id: FileId,
    /// The number of names it has.
    pub links: u64,
    /// Its owner's user id.
    pub owner: u32,
    /// Its permission bits, with the set-id and sticky bits.
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Its last change in nanoseconds since the epoch, only to be compared with an earlier reading.
    pub modified_ns: i64,
    /// The last change of content or metadata, in nanoseconds; unlike `modified_ns` no program can set it.
    pub changed_ns: i64,
}

impl FileStat {
    /// Its last change as a wall time.
    #[must_use]
    pub fn modified(&self) -> Timestamp {
        Timestamp::from_millis(self.modified_ns.div_euclid(1_000_000))
    }

    pub(crate) fn new(stat: &Stat) -> Self {
        let seconds: i64 = narrow(stat.st_mtime);
        let nanos: i64 = narrow(stat.st_mtime_nsec);
        Self {
            kind: Kind::new(FileType::from_raw_mode(stat.st_mode)),
            id: FileId { dev: narrow(stat.st_dev), ino: narrow(stat.st_ino) },
            links: narrow(stat.st_nlink),
            owner: narrow(stat.st_uid),
            mode: narrow(Mode::from_raw_mode(stat.st_mode).bits()),
            size: narrow(stat.st_size),
            modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
            changed_ns: {
                let seconds: i64 = narrow(stat.st_ctime);
                let nanos: i64 = narrow(stat.st_ctime_nsec);
                seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
            },
        }
    }
}

impl Kind {
    pub(super) fn new(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

// The fields of `struct stat` differ in width and sign from system to system; the values fit.
fn narrow<T: TryInto<U>, U: Default>(value: T) -> U {
    value.try_into().unwrap_or_default()
}
