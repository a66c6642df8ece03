//! What a script does with processes: leave some behind, refuse to die, die, hang.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, raise};
use peers_sys::env::Env;

use crate::shell::command;
use crate::step::{Fork, ForkKind, Hang};

/// Starts a process that outlives us and returns when it has settled.
pub(crate) fn fork(fork: &Fork, task: Option<&str>, cwd: &Path, env: &Env) -> io::Result<()> {
    // The child tells that it has settled through its standard input, a pipe that it may write to.
    let work = if task.is_some() { "exec sh -c \"$FAKE_TASK\"" } else { "exec sleep \"$FAKE_SECONDS\"" };
    let settle = format!("echo r >&3; exec 3>&-; {work}");
    let script = match fork.what {
        ForkKind::HoldsPipe => format!("exec 3>&0 0</dev/null; {settle}"),
        ForkKind::Setsid => in_session(&format!("exec 3>&0 0</dev/null; {settle}")),
        ForkKind::Daemon => {
            in_session(&format!("exec 3>&0 0</dev/null >/dev/null 2>&1; ( {settle} ) & exit 0"))
        }
    };
    let (mut settled, theirs) = io::pipe()?;
    let mut child = {
        let mut command = command("sh", cwd, env);
        if fork.clean_env {
            command.env_clear();
            if let Some(path) = env.var("PATH") {
                command.env("PATH", path);
            }
        }
        command.env("FAKE_SECONDS", fork.seconds.to_string());
        if let Some(task) = task {
            command.env("FAKE_TASK", task);
        }
        // The command dies with this block: while it lives it keeps their end of the pipe open.
        command.arg("-c").arg(script).stdin(Stdio::from(theirs)).spawn()?
    };
    if settled.read(&mut [0])? == 0 {
        return Err(io::Error::other("the forked process did not start"));
    }
    if fork.what == ForkKind::Daemon {
        child.wait()?;
    }
    Ok(())
}

/// Runs `script` in a session of its own; the tools for that differ between systems.
fn in_session(script: &str) -> String {
    let quoted = script.replace('\'', "'\\''");
    format!(
        "if command -v setsid >/dev/null 2>&1; then exec setsid sh -c '{quoted}'; \
         else exec perl -e 'use POSIX; POSIX::setsid(); exec @ARGV' sh -c '{quoted}'; fi"
    )
}

/// Ignores the polite signals from here on, and so do the programs started later.
pub(crate) fn ignore_term() -> io::Result<()> {
    let mut polite = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        polite.add(signal);
    }
    // Blocking needs no handler, so it needs no unsafe code; nothing here ever unblocks it.
    polite.thread_block().map_err(io::Error::from)
}

/// Dies of a signal, named with or without `SIG`.
pub(crate) fn crash(name: &str) -> Result<(), String> {
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let signal = Signal::from_str(&full).map_err(|_| format!("`{name}` is not a signal"))?;
    raise(signal).map_err(|error| error.to_string())
}

/// Never returns.
pub(crate) fn hang(how: Hang) -> io::Result<()> {
    match how {
        Hang::Sleep => loop {
            thread::sleep(Duration::from_hours(1));
        },
        Hang::Futex => loop {
            thread::park();
        },
        Hang::Spin => loop {
            std::hint::spin_loop();
        },
        Hang::Read => {
            let (mut reader, writer) = io::pipe()?;
            // The end never comes: we hold the other end ourselves.
            let read = reader.read(&mut [0]).map(|_| ());
            drop(writer);
            read
        }
    }
}
