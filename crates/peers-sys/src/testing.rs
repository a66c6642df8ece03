//! Tests that need a process of their own: one that is killed, or one with a resource limit.
//!
//! Such a test runs its own binary again, filtered to itself, and finds out which side it is.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

const TEST: &str = "PEERS_SYS_TEST";
const PLACE: &str = "PEERS_SYS_TEST_PLACE";

/// In the child of `test`: its directory.
pub(crate) fn child_place(test: &str) -> Option<PathBuf> {
    let env = crate::env::Env::current();
    (env.text(TEST) == Some(test)).then(|| env.absolute(PLACE).unwrap())
}

/// Runs the rest of `test` in a child: `Some` there, `None` in the parent once the child passed.
pub(crate) fn in_child(test: &str) -> Option<PathBuf> {
    if let Some(place) = child_place(test) {
        return Some(place);
    }
    let tmp = tempfile::tempdir().unwrap();
    let output = command(test, tmp.path()).stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("1 passed"), "the child ran no test: {stdout}");
    None
}

fn command(test: &str, place: &Path) -> Command {
    let mut command = Command::new(crate::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(TEST, test).env(PLACE, place);
    command
}

/// A child that works until it is killed.
pub(crate) struct Victim {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

/// Starts the child side of `test` and waits until it says that it is ready.
pub(crate) fn start_child(test: &str, place: &Path) -> Victim {
    let mut child = command(test, place).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut victim = Victim { child, lines };
    victim.wait_for_word();
    victim
}

impl Victim {
    /// Waits for the next [`say_ready`] of the child.
    pub(crate) fn wait_for_word(&mut self) {
        let mut line = String::new();
        while !line.contains("READY") {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the child ended early");
        }
    }

    /// SIGKILL, and its end awaited.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Already dead in the good case.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn say_ready() {
    let mut out = std::io::stdout().lock();
    out.write_all(b"\nREADY\n").unwrap();
    out.flush().unwrap();
}

/// Says so, then waits to be killed (or for the parent to end).
pub(crate) fn say_ready_and_wait() {
    say_ready();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Runs `f` while no file of this process may grow beyond `bytes`. Only in a child of its own.
pub(crate) fn with_file_size_limit<R>(bytes: u64, f: impl FnOnce() -> R) -> R {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    signals.thread_block().unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, bytes, hard).unwrap();
    let result = f();
    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    result
}
