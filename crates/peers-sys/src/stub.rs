//! The hidden `__spawn` entry: what has to happen in a child between `fork` and the program it runs.
//!
//! Code between `fork` and `exec` would be unsafe, so our own binary is executed first. It starts a
//! session, ties itself to its parent, drops what must not be inherited and then becomes the
//! program. It says nothing when that works; when it fails it writes one marked line to stderr
//! ([`Mark::failure`]) and exits 126 or 127, as a shell would.
//!
//! The binary's `main` hands over before it does anything else, and before it starts a thread:
//! if its first argument is [`ENTRY`], it returns what [`main`] returns for the rest.

mod options;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::sys::signal::{SigSet, Signal};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit};

pub(crate) use options::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, StubOptions};
pub use options::{Limits, Mark, StubFailure, StubFailureKind};

/// The first argument by which a binary is asked to be the stub.
pub const ENTRY: &str = "__spawn";

/// The first argument by which a binary is asked to be the second stub, in the place that another program made.
pub const ENTER: &str = "__enter";

/// How to start the stub: a program and the arguments before the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubProgram {
    path: PathBuf,
}

impl StubProgram {
    /// This very program, found even if its file was replaced or removed meanwhile.
    ///
    /// # Errors
    /// Where there is no `/proc/self/exe`: if the path of the program is unknown.
    pub fn this_program() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            Ok(Self::at("/proc/self/exe"))
        } else {
            std::env::current_exe().map(|path| Self { path })
        }
    }

    /// Another program that knows [`ENTRY`].
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file that is executed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Runs the stub on the arguments after [`ENTRY`]; returns only if the program could not be started.
#[must_use]
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match StubOptions::parse(args) {
        Ok(options) => options,
        Err(problem) => return report(&format!("peers-stub: {problem}\n"), EXIT_NOT_EXECUTABLE),
    };
    let failure = match prepare(&options) {
        Ok(()) => StubFailure::exec(&options.exec, &become_program(&options)),
        Err((step, error)) => StubFailure::setup(step, &error),
    };
    report(&options.mark.line(&failure), failure.exit_code())
}

/// Runs the second stub on the arguments after [`ENTER`]; returns only if the program could not be started.
#[must_use]
pub fn enter(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match StubOptions::parse(args) {
        Ok(options) => options,
        Err(problem) => return report(&format!("peers-stub: {problem}\n"), EXIT_NOT_EXECUTABLE),
    };
    let entered = mask(&SigSet::empty()).and_then(|()| {
        close_fds::set_fds_cloexec(3, &[]);
        options.confine.apply()
    });
    let failure = match entered {
        Ok(()) => StubFailure::exec(&options.exec, &become_program(&options)),
        Err((step, error)) => StubFailure::setup(step, &error),
    };
    report(&options.mark.line(&failure), failure.exit_code())
}

/// Sets the signals that wait. They are inherited through `exec`.
fn mask(signals: &SigSet) -> Result<(), (&'static str, io::Error)> {
    signals.thread_set_mask().map_err(|errno| ("signal mask", io::Error::from(errno)))
}

/// Everything but the `exec`; the error names the step.
fn prepare(options: &StubOptions) -> Result<(), (&'static str, io::Error)> {
    let step = |name: &'static str| move |errno: rustix::io::Errno| (name, io::Error::from(errno));
    die_with_parent(options).map_err(|error| ("parent", error))?;
    rustix::process::setsid().map_err(step("setsid"))?;
    let _previous = rustix::process::umask(Mode::from_raw_mode(0o077));
    limit(Resource::Core, 0).map_err(step("core limit"))?;
    if let Some(processes) = options.limits.processes {
        limit(Resource::Nproc, processes).map_err(step("process limit"))?;
    }
    if let Some(bytes) = options.limits.file_bytes {
        limit(Resource::Fsize, bytes).map_err(step("file size limit"))?;
    }
    if let Some(bytes) = options.limits.memory_bytes {
        limit(Resource::As, bytes).map_err(step("memory limit"))?;
    }
    // Of the dispositions, `exec` itself resets handlers and std resets SIGPIPE; no safe call resets another signal
    // that our parent was told to ignore.
    let asks_for_an_end = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
    mask(&asks_for_an_end.into_iter().filter(|_| options.holds_signals).collect())?;
    // So late that nothing of the above can open a file afterwards.
    close_fds::set_fds_cloexec(3, &[]);
    options.confine.apply()
}

/// Asks to be killed when the thread that spawned us ends, and checks that it has not ended yet.
fn die_with_parent(options: &StubOptions) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    if rustix::process::getppid() == Some(options.parent.raw()) {
        Ok(())
    } else {
        Err(io::Error::other("the process that asked for this one has ended"))
    }
}

/// Lowers a limit for good; a limit that is lower already stays.
fn limit(resource: Resource, value: u64) -> rustix::io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let value = Some(hard.map_or(value, |hard| hard.min(value)));
    rustix::process::setrlimit(resource, Rlimit { current: value, maximum: value })
}

/// Returns only on failure.
fn become_program(options: &StubOptions) -> io::Error {
    let StubOptions { exec, argv0, args, .. } = options;
    Command::new(exec).arg0::<&OsStr>(argv0).args(args).exec()
}

fn report(line: &str, code: u8) -> ExitCode {
    // One write, so that the line cannot be torn. Were it lost, the exit code would still tell.
    let _lost = io::stderr().write_all(line.as_bytes());
    ExitCode::from(code)
}
