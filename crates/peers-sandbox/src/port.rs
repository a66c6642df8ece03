//! What became of a program.

use peers_sys::spawn::{RawExit, SpawnError, WaitError};
use thiserror::Error;

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it ended; absent if it was ended at its limit.
    pub exit: Option<RawExit>,
    /// What it wrote to its standard output.
    pub stdout: Output,
    /// What it wrote to its standard error.
    pub stderr: Output,
}

/// What was read of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The beginning, up to [`OUTPUT_CAP`].
    pub bytes: Vec<u8>,
    /// There was more.
    pub cut: bool,
}

/// Bytes that are kept of a stream.
pub const OUTPUT_CAP: usize = 32 * 1024 * 1024;

/// Why nothing is known of a program's end.
#[derive(Debug, Error)]
pub enum ExecError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// It was started and could not be waited for.
    #[error(transparent)]
    Wait(#[from] WaitError),
}
