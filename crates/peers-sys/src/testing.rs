//! Tests that need a process of their own: one that is killed, or one with a resource limit.
//!
//! Such a test runs its own binary again, filtered to itself, and finds out which side it is.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

const TEST: &str = "PEERS_SYS_TEST";
const PLACE: &str = "PEERS_SYS_TEST_PLACE";
const STEP: &str = "PEERS_SYS_TEST_STEP";

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

/// Runs the child side of `test` to its end, whatever that is.
pub(crate) fn run_child(test: &str, place: &Path, step: &str) -> Output {
    command(test, place).env(STEP, step).stdin(Stdio::null()).output().unwrap()
}

/// In a child of [`run_child`]: which of its steps is asked for.
pub(crate) fn child_step() -> String {
    crate::env::Env::current().text(STEP).unwrap().to_owned()
}

/// Runs the child side of `test` in a place that the shell script `make` has made at `place` for it alone, as the
/// administrator of namespaces of its own. Where such a place cannot be made, it says so.
#[cfg(target_os = "linux")]
pub(crate) fn run_in_mount(test: &str, place: &Path, make: &str) {
    let child = command(test, place);
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    unshare.arg(format!("{make} || exit 77; exec \"$@\"")).arg(place);
    unshare.arg(child.get_program()).args(child.get_args());
    unshare.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = unshare.stdin(Stdio::null()).output();
    match &ended {
        Ok(output) if output.status.success() || output.status.code() == Some(101) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
            assert!(stdout.contains("1 passed"), "the child ran no test: {stdout}");
        }
        no_namespace => eprintln!("not shown: {no_namespace:?}"),
    }
}

/// From here on this process dies of SIGSYS when this thread makes one of these calls. False where the kernel filters
/// no calls.
#[cfg(target_os = "linux")]
pub(crate) fn die_at(calls: Vec<(nix::libc::c_long, Vec<seccompiler::SeccompRule>)>) -> bool {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let deadly = calls.into_iter().collect();
    let filter = SeccompFilter::new(deadly, SeccompAction::Allow, SeccompAction::KillProcess, arch);
    let program = BpfProgram::try_from(filter.unwrap()).unwrap();
    // Such a death leaves a core behind.
    crate::confine::hide_memory().unwrap();
    match seccompiler::apply_filter(&program) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("not shown: {error}");
            false
        }
    }
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
