//! The first process of a container.
//!
//! The kernel gives it no signal for which it has no handler, least of all from inside, and ends every other process
//! of the container with it. It ends when its program does, or when the keeper outside is gone.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread;

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::Mode;

use super::door::SOCKET;
use super::wire::{self, Plan};
use crate::spawn::RawExit;
use crate::stub::{ENTER, EXIT_NOT_EXECUTABLE, StubFailure, StubOptions, lower};

/// As a shell says of a program that was killed.
const KILLED: u8 = 128 + 9;
/// Variables that an image or its tools set for the first process, and that are not the program's.
const NOT_PASSED: [&str; 4] = ["HOME", "HOSTNAME", "TERM", "container"];

/// Runs the first process on the arguments after [`super::ENTRY`]: the directory of the socket. Returns the exit code
/// of the program.
#[must_use]
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(door) = args.next() else { return ExitCode::from(EXIT_NOT_EXECUTABLE) };
    // Before the streams are here there is nobody to be told; the keeper sees that nobody came.
    let Ok(socket) = UnixStream::connect(Path::new(&door).join(SOCKET)) else {
        return ExitCode::from(EXIT_NOT_EXECUTABLE);
    };
    let Ok((plan, streams)) = wire::receive(&socket) else { return ExitCode::from(EXIT_NOT_EXECUTABLE) };
    let exit = run(&Arc::new(socket), &plan, streams);
    match exit {
        RawExit::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(KILLED)),
        RawExit::Signal(_) => ExitCode::from(KILLED),
    }
}

fn run(socket: &Arc<UnixStream>, plan: &Plan, streams: [OwnedFd; 3]) -> RawExit {
    let exit = match begin(socket, plan, streams) {
        Ok(leader) => wait_for(leader),
        Err(failure) => {
            if let Ok(options) = StubOptions::parse(plan.words.iter().cloned()) {
                let _told = io::Write::write_all(&mut io::stderr(), options.mark.line(&failure).as_bytes());
            }
            RawExit::Code(EXIT_NOT_EXECUTABLE.into())
        }
    };
    // Whoever does not hear it is gone, and so are we.
    let _told = wire::tell_end(socket, exit);
    exit
}

/// Starts the program; from then on signals reach it.
fn begin(socket: &Arc<UnixStream>, plan: &Plan, streams: [OwnedFd; 3]) -> Result<Pid, StubFailure> {
    let step = |name: &'static str| move |error: io::Error| StubFailure::setup(name, &error);
    let [input, output, errors] = streams;
    rustix::stdio::dup2_stdin(input)
        .and_then(|()| rustix::stdio::dup2_stdout(output))
        .and_then(|()| rustix::stdio::dup2_stderr(errors))
        .map_err(|errno| step("streams")(errno.into()))?;
    crate::confine::hide_memory().map_err(step("memory"))?;
    let options = StubOptions::parse(plan.words.iter().cloned())
        .map_err(|problem| step("options")(io::Error::other(problem.to_string())))?;
    let _previous = rustix::process::umask(Mode::from_raw_mode(0o077));
    lower(&options.limits).map_err(|(name, error)| StubFailure::setup(name, &error))?;
    let of_image = std::env::vars_os().filter(|(name, _)| NOT_PASSED.iter().all(|own| name != own));
    let child = Command::new("/proc/self/exe")
        .arg(ENTER)
        .args(&plan.words)
        .env_clear()
        .envs(of_image)
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&plan.cwd)
        .process_group(0)
        .spawn()
        .map_err(step("second stub"))?;
    let leader = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    // The program's own: they end with it.
    let nothing =
        std::fs::File::options().read(true).write(true).open("/dev/null").map_err(step("/dev/null"))?;
    rustix::stdio::dup2_stdin(&nothing)
        .and_then(|()| rustix::stdio::dup2_stdout(&nothing))
        .and_then(|()| rustix::stdio::dup2_stderr(&nothing))
        .map_err(|errno| step("streams")(errno.into()))?;
    pass_signals(socket, leader);
    Ok(leader)
}

/// From the keeper, and from whoever stops the container itself.
fn pass_signals(socket: &Arc<UnixStream>, leader: Pid) {
    // First, so that every thread has it.
    let asked: SigSet =
        [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM].into_iter().collect();
    let blocked = asked.thread_block().is_ok();
    let from_keeper = Arc::clone(socket);
    thread::spawn(move || {
        while let Some(number) = wire::hear_signal(&from_keeper) {
            if let Ok(signal) = Signal::try_from(number) {
                // It may have ended.
                let _sent = killpg(leader, signal);
            }
        }
        // Nobody keeps this container any more.
        #[expect(clippy::exit, reason = "the kernel ends all that is left inside with this process")]
        std::process::exit(KILLED.into());
    });
    if blocked {
        thread::spawn(move || {
            while let Ok(signal) = asked.wait() {
                let _sent = killpg(leader, signal);
            }
        });
    }
}

/// Waits for the program, and reaps what else ends.
fn wait_for(leader: Pid) -> RawExit {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == leader => return RawExit::Code(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == leader => {
                #[expect(clippy::as_conversions, reason = "an enumeration of the system's own numbers")]
                return RawExit::Signal(signal as i32);
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            // There is no child at all, which cannot be before the program was reaped.
            Err(_) => return RawExit::Code(KILLED.into()),
        }
    }
}
