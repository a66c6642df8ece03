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

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

#[cfg(target_os = "linux")]
use crate::contain::keep;
use crate::spawn::{RawExit, resolve_program};

pub(crate) use options::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Keeping, StubOptions};
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
    let failure = match (prepare(&options), &options.keeping) {
        (Ok(()), None) => StubFailure::exec(&options.exec, &become_program(&options)),
        (Ok(()), Some(keeping)) => match keep(&options, keeping) {
            Ok(exit) => return end_as(exit),
            Err(failure) => failure,
        },
        (Err((step, error)), _) => StubFailure::setup(step, &error),
    };
    if options.keeping.as_ref().is_some_and(|keeping| keeping.with_lock) {
        return crate::detach::not_begun(&failure.message);
    }
    report(&options.mark.line(&failure), failure.exit_code())
}

#[cfg(not(target_os = "linux"))]
fn keep(_options: &StubOptions, _keeping: &Keeping) -> Result<RawExit, StubFailure> {
    Err(StubFailure::setup("container", &io::ErrorKind::Unsupported.into()))
}

/// Ends this process as another one ended.
fn end_as(exit: RawExit) -> ExitCode {
    match exit {
        RawExit::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        RawExit::Signal(number) => {
            // One that cannot be had this way is told as a shell tells it.
            let _raised = Signal::try_from(number).and_then(|signal| {
                SigSet::empty().thread_set_mask()?;
                nix::sys::signal::raise(signal)
            });
            ExitCode::from(u8::try_from(number.saturating_add(128)).unwrap_or(u8::MAX))
        }
    }
}

/// Runs the second stub on the arguments after [`ENTER`]; returns only if the program could not be started.
#[must_use]
pub fn enter(args: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match StubOptions::parse(args) {
        Ok(options) => options,
        Err(problem) => return report(&format!("peers-stub: {problem}\n"), EXIT_NOT_EXECUTABLE),
    };
    let entered = lower(&options.limits).and_then(|()| mask(&SigSet::empty())).and_then(|()| {
        close_fds::set_fds_cloexec(3, &[]);
        options.confine.apply()
    });
    let mut options = options;
    if options.search {
        match found_here(&options.argv0) {
            Ok(found) => options.exec = found,
            Err(failure) => return report(&options.mark.line(&failure), failure.exit_code()),
        }
    }
    let failure = match entered {
        Ok(()) => StubFailure::exec(&options.exec, &become_program(&options)),
        Err((step, error)) => StubFailure::setup(step, &error),
    };
    report(&options.mark.line(&failure), failure.exit_code())
}

/// The program, by our own environment and working directory.
fn found_here(argv0: &OsStr) -> Result<PathBuf, StubFailure> {
    let cwd = std::env::current_dir().map_err(|error| StubFailure::setup("working directory", &error))?;
    resolve_program(argv0, std::env::var_os("PATH").as_deref(), &cwd).map_err(|error| {
        let kind = if error.exit_code() == EXIT_NOT_FOUND { Errno::NOENT } else { Errno::ACCESS };
        StubFailure::exec(Path::new(argv0), &kind.into())
    })
}

/// Sets the signals that wait. They are inherited through `exec`.
fn mask(signals: &SigSet) -> Result<(), (&'static str, io::Error)> {
    change_mask(SigmaskHow::SIG_SETMASK, signals).map_err(|error| ("signal mask", error))
}

/// Changes the signals that wait, of a process with one thread. nix does not see that `pthread_sigmask` fails, whose
/// result is the error.
pub(crate) fn change_mask(how: SigmaskHow, signals: &SigSet) -> io::Result<()> {
    sigprocmask(how, Some(signals), None).map_err(io::Error::from)
}

/// Everything but the `exec`; the error names the step.
fn prepare(options: &StubOptions) -> Result<(), (&'static str, io::Error)> {
    let step = |name: &'static str| move |errno: rustix::io::Errno| (name, io::Error::from(errno));
    die_with_parent(options).map_err(|error| ("parent", error))?;
    rustix::process::setsid().map_err(step("setsid"))?;
    let _previous = rustix::process::umask(Mode::from_raw_mode(0o077));
    lower(&options.limits)?;
    // Of the dispositions, `exec` itself resets handlers and std resets SIGPIPE; no safe call resets another signal
    // that our parent was told to ignore.
    let asks_for_an_end = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
    mask(&asks_for_an_end.into_iter().filter(|_| options.holds_signals).collect())?;
    // So late that nothing of the above can open a file afterwards.
    close_fds::set_fds_cloexec(3, &[]);
    options.confine.apply()
}

/// Asks to be killed when the thread that spawned us ends, and checks that it has not ended yet. Who keeps a container
/// is only told, and who outlives that thread is not.
fn die_with_parent(options: &StubOptions) -> io::Result<()> {
    if options.keeping.as_ref().is_some_and(|keeping| keeping.with_lock) {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::Signal;
        let signal = if options.keeping.is_some() { Signal::USR1 } else { Signal::KILL };
        rustix::process::set_parent_process_death_signal(Some(signal))?;
    }
    if rustix::process::getppid() == Some(options.parent.raw()) {
        Ok(())
    } else {
        Err(io::Error::other("the process that asked for this one has ended"))
    }
}

/// Lowers the limits of this process for good, and that of core files to nothing; an error names the limit.
pub(crate) fn lower(limits: &Limits) -> Result<(), (&'static str, io::Error)> {
    let Limits { processes, file_bytes, memory_bytes } = *limits;
    for (name, resource, value) in [
        ("core limit", Resource::Core, Some(0)),
        ("process limit", Resource::Nproc, processes),
        ("file size limit", Resource::Fsize, file_bytes),
        ("memory limit", Resource::As, memory_bytes),
    ] {
        if let Some(value) = value {
            limit(resource, value).map_err(|errno| (name, errno.into()))?;
        }
    }
    Ok(())
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
