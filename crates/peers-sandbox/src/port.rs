//! The port: what is to be run, and what became of it.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use peers_sys::spawn::{RawExit, SpawnError, WaitError};
use thiserror::Error;

/// A place where programs of a project run.
pub trait Sandbox: Debug {
    /// Runs a program to its end. Blocks up to the limit and a few seconds more.
    ///
    /// # Errors
    /// [`ExecError`] if it never ran or its end could not be seen.
    fn run(&self, spec: &ExecSpec) -> Result<Ran, ExecError>;
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct ExecSpec {
    /// The program, looked up in the `PATH` of `env`, and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// It is ended after so long.
    pub limit: Duration,
}

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
    /// No program was named.
    #[error("start a program: the command is empty")]
    Empty,
    /// It was not started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// It was started and could not be waited for.
    #[error(transparent)]
    Wait(#[from] WaitError),
}
