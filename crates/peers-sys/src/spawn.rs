//! Children: how they are started, watched, signalled and laid to rest.
//!
//! Every child runs in its own session (so its group id is its pid), dies with the thread that
//! started it, has an explicit environment and inherits nothing but its three pipes. Its exit is
//! first only looked at ([`Child::exited_nowait`]); until [`Child::reap`] the zombie keeps pid and
//! group id from being reused, so the group can still be swept.
//!
//! All children of this process should be started here: [`crate::reap`] takes a child it does not
//! know for an orphan of some agent.

mod child;
mod interpreter;
pub(crate) mod live;
mod resolve;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

pub use child::{Child, RawExit, WaitError};
pub use resolve::resolve_program;

use crate::confine::Confine;
use crate::identity::{IdentityError, Pid};
use crate::signal::SignalError;
use crate::stub::{ENTRY, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Mark, StubOptions};
pub use crate::stub::{Limits, StubFailure, StubProgram};

/// A child to be started.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// How to start the stub that becomes the program.
    pub stub: StubProgram,
    /// What to run, and its `argv[0]`. Without a slash it is looked up in the `PATH` of `env`;
    /// relative with a slash, it is relative to `cwd`.
    pub program: OsString,
    /// The arguments after `argv[0]`.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited. Of equal names the last one counts.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// What the child reads.
    pub stdin: Stdin,
    /// Limits that the child cannot raise.
    pub limits: Limits,
    /// What it may do.
    pub confine: Confine,
    /// A program that starts it in a place of its own; absent: it is started where we are.
    pub within: Option<Within>,
}

/// A program that makes a place and starts another one there, such as bubblewrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    /// Its path.
    pub program: PathBuf,
    /// Its arguments, up to where the command begins.
    pub args: Vec<OsString>,
    /// The program of the stub, by its path in that place.
    pub stub: PathBuf,
    /// The place is a container, which does not end by itself; absent: it ends with that program.
    pub kept: Option<Kept>,
}

/// A container, made by a program that is then asked for with `run` and the arguments; the last of them are the image
/// and what has [`crate::contain::ENTRY`] run in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The whole environment of that program. The child's own goes another way.
    pub env: Vec<(OsString, OsString)>,
    /// It outlives whoever starts it, by [`crate::detach::Launch`]: its standard input is a held lock, which is held until
    /// all of the container is gone, and every signal that asks for something is the program's.
    pub with_lock: bool,
}

/// The standard input of a child. Its standard output and error are always pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// End of file at once.
    Null,
    /// A pipe, for a prompt.
    Piped,
}

/// What makes a file executable; nothing does that for a directory.
fn remedy(path: &Path) -> String {
    if path.is_dir() {
        return format!("{} is a directory", path.display());
    }
    // Without the `.` of a path that was given relative.
    let path: PathBuf = path.components().collect();
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if !text.starts_with('-') && text.chars().all(plain) {
        return format!("`chmod +x {text}`");
    }
    format!("`chmod +x -- '{}'`", text.replace('\'', r"'\''"))
}

/// Why a child was not started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("start {}: not found", program.display())]
    NotFound {
        /// The program as it was asked for.
        program: OsString,
    },
    /// There is a file of that name, but it cannot be executed.
    #[error("not executable: {}", remedy(path))]
    NotExecutable {
        /// The program as it was asked for.
        program: OsString,
        /// The file.
        path: PathBuf,
    },
    /// It is a script, and what its first line names is not there.
    #[error("{}", interpreter::words(path, interpreter))]
    NoInterpreter {
        /// The program as it was asked for.
        program: OsString,
        /// The file.
        path: PathBuf,
        /// What interprets it.
        interpreter: OsString,
    },
    /// The working directory is not there, or not absolute.
    #[error("start {} in {}", program.display(), cwd.display())]
    WorkDir {
        /// The program as it was asked for.
        program: OsString,
        /// The directory.
        cwd: PathBuf,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The stub could not be started: no processes, no memory, arguments too long.
    #[error("start {} by {}", program.display(), stub.display())]
    Stub {
        /// The program as it was asked for.
        program: OsString,
        /// The stub's file.
        stub: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The child ran, but could not be identified, and was killed.
    #[error("identify the process of {}", program.display())]
    Identify {
        /// The program as it was asked for.
        program: OsString,
        /// Why not.
        #[source]
        source: IdentityError,
    },
    /// The child ran, but could not be watched, and was killed.
    #[error("watch the process of {}", program.display())]
    Watch {
        /// The program as it was asked for.
        program: OsString,
        /// Why not.
        #[source]
        source: SignalError,
    },
}

impl SpawnError {
    /// The exit code a shell would give for it: 127 if the program is not there, else 126.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } | Self::NoInterpreter { .. } => EXIT_NOT_FOUND,
            Self::NotExecutable { .. }
            | Self::WorkDir { .. }
            | Self::Stub { .. }
            | Self::Identify { .. }
            | Self::Watch { .. } => EXIT_NOT_EXECUTABLE,
        }
    }
}

impl Spawn {
    /// A child with no arguments, an empty environment, no input and no limits.
    #[must_use]
    pub fn new(stub: StubProgram, program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            stub,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            limits: Limits::default(),
            confine: Confine::default(),
            within: None,
        }
    }

    /// Starts the child.
    ///
    /// The kernel kills it when the calling *thread* ends: call this from one that lives as long as
    /// the process. That the program could not be executed after all is known only at its exit, from
    /// [`Child::stub_failure`].
    ///
    /// # Errors
    /// [`SpawnError`]; no process is left behind.
    pub fn start(&self) -> Result<Child, SpawnError> {
        let stdin = match self.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        };
        self.start_with([stdin, Stdio::piped(), Stdio::piped()])
    }

    /// The arguments by which our own program, wherever it is started, starts this child in its own place.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn words(&self) -> Result<Vec<OsString>, SpawnError> {
        let options = self.options()?;
        Ok(std::iter::once(ENTRY.into()).chain(options.to_args()).collect())
    }

    /// Starts the child on our own three streams, to take our place for whoever watches us; `stdin` does not count.
    ///
    /// # Errors
    /// As [`Spawn::start`].
    pub fn start_in_place(&self) -> Result<Child, SpawnError> {
        self.start_with([Stdio::inherit(), Stdio::inherit(), Stdio::inherit()])
    }

    fn start_with(&self, [stdin, stdout, stderr]: [Stdio; 3]) -> Result<Child, SpawnError> {
        let (mut command, mark) = self.command()?;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        // No sweep may see the child before it is known to be ours.
        let mut live = live::lock();
        let process = command.spawn().map_err(|source| self.stub_error(source))?;
        let kept = self.within.as_ref().is_some_and(|within| within.kept.is_some());
        Child::adopt(process, mark, (&self.program, kept), &mut live)
    }

    fn stub_error(&self, source: io::Error) -> SpawnError {
        SpawnError::Stub { program: self.program.clone(), stub: self.stub.path().to_owned(), source }
    }

    /// The stub with all that it is told.
    fn command(&self) -> Result<(Command, Mark), SpawnError> {
        let options = self.options()?;
        let mut command = Command::new(self.stub.path());
        let vars = self.env.iter().map(|(name, value)| (name, value));
        command.arg(ENTRY).args(options.to_args()).env_clear().envs(vars).current_dir(&self.cwd);
        Ok((command, options.mark))
    }

    fn options(&self) -> Result<StubOptions, SpawnError> {
        let Self { stub: _, program, args, env: _, cwd, stdin: _, limits, confine, within } = self;
        self.check_cwd()?;
        let kept = within.as_ref().is_some_and(|within| within.kept.is_some());
        // Our own program has another place behind a wall, and what lies in a container is found there.
        let own = within.as_ref().filter(|within| within.stub == **program).map(|within| within.stub.clone());
        let own = own.or_else(|| kept.then(|| program.into()));
        let exec = own.map_or_else(|| resolve_program(program, self.path_variable(), cwd), Ok)?;
        let mut options = StubOptions {
            mark: Mark::random().map_err(|source| self.stub_error(source))?,
            parent: Pid::of_self(),
            limits: *limits,
            confine: confine.clone(),
            holds_signals: false,
            search: kept,
            keeping: None,
            exec,
            argv0: program.clone(),
            args: args.clone(),
        };
        if let Some(within) = within {
            options = options.within(within);
        }
        Ok(options)
    }

    fn check_cwd(&self) -> Result<(), SpawnError> {
        let problem = if self.cwd.is_absolute() {
            match std::fs::metadata(&self.cwd) {
                Ok(found) if found.is_dir() => return Ok(()),
                Ok(_) => io::ErrorKind::NotADirectory.into(),
                Err(error) => error,
            }
        } else {
            io::Error::other("the path is not absolute")
        };
        Err(SpawnError::WorkDir { program: self.program.clone(), cwd: self.cwd.clone(), source: problem })
    }

    fn path_variable(&self) -> Option<&OsStr> {
        self.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
    }
}
