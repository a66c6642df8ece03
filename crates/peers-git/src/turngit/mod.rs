//! The git directory of one turn, where the sandbox can mount one over the operator's.
//!
//! It is made before a turn and thrown away after it, so nothing that a turn plants in it (hooks,
//! configuration, filters, replace references, staged leftovers) is there for anybody else. What the turn
//! committed is taken out of it by the same checked import as everywhere, and only then published into the
//! checkout. The checkout's own `.git` is never seen by agents.
//!
//! This module makes directories and reads them back; it mounts nothing. [`TurnGit::make`] returns what has
//! to be mounted where as [`TurnMount`]s. All steps after the turn may be interrupted and done again:
//! [`TurnGit::find`] opens what was left.
//!
//! The agent may write everything below the directory. It is read only after all processes of the turn have
//! ended, and only after our own configuration, alternates and shallow edge have replaced those of the turn.

mod config;
mod harvest;
mod hooks;
mod index;
mod layout;
mod lfs;
mod make;
mod mounts;
mod nested;
mod publish;
mod shown;
mod state;

pub use config::{operator_config_files, readable_config};
pub use harvest::{Accepted, Harvest, HarvestSpec, KeptRef, TurnFailure};
pub use make::{MadeTurn, TurnSpec};
pub use mounts::TurnMount;
pub use nested::{NestedGit, NestedSeen};
#[cfg(test)]
pub(crate) use publish::STEPS;
pub use publish::{BranchMoved, Published};
pub use state::TurnGit;
