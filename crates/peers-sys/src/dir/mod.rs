//! Files that somebody else may have tampered with, opened safely.
//!
//! A [`SafeDir`] is an open directory. Everything below it is named by single components relative to
//! that handle, never by a path string that a planted link could bend:
//!
//! - no component below the root may be a symbolic link; the root's own path may contain some, they
//!   are resolved once when it is opened;
//! - a file counts only if it is regular, has one link, belongs to us (or root) and still is what its
//!   name names after it was opened; opening never blocks, never truncates, never follows;
//! - reads have a size cap; writes replace the file atomically or append whole lines;
//! - what is opened below a private root loses its group and other permission bits.
//!
//! Start reading at [`SafeDir::open_root`]. [`crate::append`], [`crate::lines`] and [`crate::lock`]
//! open their files by the same rules.

mod copy;
mod entries;
mod error;
mod file;
mod open;
mod publish;
mod remove;
mod stat;

pub use entries::{Entry, Listing};
pub use error::FileError;
pub use file::{Tail, WriteMode};
pub use open::SafeDir;
pub use publish::FileMode;
pub use stat::{FileId, FileStat, Kind};

pub(crate) use error::io_error;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;
