//! What an operator has: one file of projects, with what supervision needs of each.
//!
//! Format: `docs/formats/registry.md`. A reader needs no lock, since the file is replaced as a whole. A writer
//! holds the lock for a moment around reading and replacing ([`edit`]), and never while it waits for anything.

mod file;
mod model;
#[cfg(test)]
mod tests;

pub use file::{Loaded, Stamp, Warning, backups, check, edit, load, restore, stamp};
pub use model::{
    Entry, Invalid, LastExit, Outcome, PathId, Phase, Project, ProjectName, Registry, Restart, RestartPolicy,
    Runtime, RuntimeKind, State, label,
};
