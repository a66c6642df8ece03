//! Runs a program and keeps its output, without waiting for what it leaves in the background.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use peers_sys::env::Env;

/// How much output an event shows.
const SHOWN: u64 = 64 * 1024;

/// What a program did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    /// Both streams, cut.
    pub(crate) output: String,
}

impl Done {
    /// The exit code; 128 + N after signal N.
    pub(crate) fn code(&self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.code().or_else(|| self.status.signal().map(|n| n.saturating_add(128))).unwrap_or(-1)
    }
}

/// A command with exactly the environment of the peer.
pub(crate) fn command(program: impl AsRef<OsStr>, cwd: &Path, env: &Env) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(env.vars().iter().map(|(name, value)| (name, value))).current_dir(cwd);
    command
}

/// Runs `command` to the end of the program itself, with `input` on its standard input.
pub(crate) fn run(mut command: Command, input: Option<&[u8]>) -> io::Result<Done> {
    // A file and no pipe: a background job that keeps the output open must not hold the turn.
    let mut kept = scratch()?;
    command.stdout(kept.try_clone()?).stderr(kept.try_clone()?);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        match stdin.write_all(input) {
            // A program that does not want its input says so by its exit code.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
    }
    let status = child.wait()?;
    let mut output = Vec::new();
    kept.seek(SeekFrom::Start(0))?;
    kept.take(SHOWN).read_to_end(&mut output)?;
    Ok(Done { status, output: String::from_utf8_lossy(&output).into_owned() })
}

/// A file without a name.
fn scratch() -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("peers-fake-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
