//! The trusted store and the `.peers/` projections: layout, journal, snapshot, acceptance, run records.
//!
//! The journal is the truth; everything else here can be made again from it. This crate knows no
//! git and runs nothing. All file access goes through [`Disk`], so that a simulated disk can crash
//! before and after every single operation. Start reading at [`store`].

pub mod accept;
pub mod artifacts;
pub mod authors;
pub mod bugs;
pub mod commands;
pub mod contracts;
pub mod disk;
pub mod fsdisk;
pub mod history;
pub mod journal;
mod json;
pub mod layout;
pub mod load;
pub mod planted;
pub mod project;
pub mod projection;
pub mod runs;
pub mod schema;
pub mod store;
pub mod verdicts;

pub use authors::{Author, Authors};
pub use disk::{Area, Disk, DiskError, DiskErrorKind, Fingerprint};
pub use fsdisk::FsDisk;
pub use journal::{Journal, JournalError, Position};
pub use store::{OpenReport, Store, StoreError};

#[cfg(test)]
mod tests;
