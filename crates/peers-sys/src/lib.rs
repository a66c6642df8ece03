//! The operating system, made safe: files, locks, processes, identity, signals, clock.
//!
//! Ring 2. Every byte that reaches a control file, every lock, child, signal and clock reading goes
//! through here, so that the rules against hostile files and reused process ids exist once. The crate
//! knows nothing of goals, ticks, journals or git, and decides nothing.
//!
//! Start reading at [`dir`] (files) and [`spawn`] (children). Text of foreign origin passes
//! [`redact`] before it is kept and [`term`] before a terminal sees it; [`yaml`] is the only YAML
//! entry, [`env`](mod@env) the only reader of environment variables.

pub mod append;
pub mod clock;
pub mod confine;
#[cfg(target_os = "linux")]
pub mod contain;
pub mod detach;
pub mod digest;
pub mod dir;
pub mod env;
pub mod error;
pub mod lines;
pub mod lock;
pub mod loopback;
pub mod rand;
pub mod redact;
pub mod term;
pub mod yaml;
pub mod zlib;

pub mod identity;
pub mod interrupts;
pub mod reap;
pub mod signal;
pub mod spawn;
pub mod stub;

#[cfg(test)]
mod testing;

/// A file that was opened here, with the checks of [`dir`].
pub use std::fs::File as OpenFile;

pub use append::AppendLog;
pub use dir::{FileError, SafeDir};
pub use lock::FileLock;
