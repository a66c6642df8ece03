//! The state of a work tree: what `git add -A && git write-tree` would give.
//!
//! Computed by our own walk over the directory, handle by handle, against the tree of `HEAD` as the
//! control directory has it. Neither the agents' index nor their configuration nor `info/exclude` is
//! looked at, so nothing set there can hide a change; no program runs; nothing special (FIFO, device)
//! is opened; no object is written. A private cache of file stamps makes the second look cheap.

mod attrs;
mod cache;
mod convert;
mod ignore;
mod pattern;
mod scan;
mod state;
mod submodule;

pub use state::{DirtyFile, DirtyStatus, StoredTree, SubmoduleState, TreeState};

pub(crate) use attrs::{ATTRS_CAP, AttrFile, conversion, special};
pub(crate) use cache::{Cache, Known, Stamp};
pub(crate) use convert::to_work_tree;
pub(crate) use scan::{Scan, Wanted};
pub(crate) use state::{Written, write_work_tree};
