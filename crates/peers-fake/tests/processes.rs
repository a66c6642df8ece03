//! What the fake peer does as a process: dying, hanging, leaving children behind.

#![expect(clippy::expect_used, reason = "a test may expect")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The example program, built beside the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let target = test.parent().and_then(|deps| deps.parent()).expect("target directory");
    target.join("examples/fake_peer")
}

struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    _dir: TempDir,
}

/// Starts a script of one turn.
fn start(steps: &str) -> Running {
    let dir = tempfile::tempdir().expect("tempdir");
    let script = dir.path().join("script.yaml");
    std::fs::write(&script, format!("as: plain\nturns:\n- - {steps}\n")).expect("script");
    std::fs::create_dir(dir.path().join("repo")).expect("mkdir");
    let mut child = Command::new(program())
        .arg(&script)
        .arg("alpha")
        .current_dir(dir.path().join("repo"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the example; `cargo test -p peers-fake` builds it");
    let stdout = BufReader::new(child.stdout.take().expect("stdout"));
    Running { child, stdout, _dir: dir }
}

impl Running {
    /// Reads lines up to one that begins with `start` and returns the rest of it.
    fn until(&mut self, start: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stdout.read_line(&mut line).expect("read") > 0, "no line `{start}`");
            if let Some(rest) = line.trim_end().strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("pid"));
        kill(pid, signal).expect("kill");
    }
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().expect("a process id"))
}

#[test]
fn a_crash_is_a_death_by_that_signal() {
    for (step, number) in [("crash", 9), ("crash: ABRT", 6), ("crash: SIGTERM", 15)] {
        let status = start(step).child.wait().expect("wait");
        assert_eq!(status.signal(), Some(number), "{step}");
    }
}

#[test]
fn each_way_to_hang_lasts_until_a_signal() {
    for how in ["sleep", "read", "futex", "spin"] {
        let mut running = start(&format!("say: here\n  - hang: {how}\n  - say: never"));
        running.until("here");
        assert_eq!(running.child.try_wait().expect("wait"), None, "{how}");
        running.signal(Signal::SIGTERM);
        assert_eq!(running.child.wait().expect("wait").signal(), Some(15), "{how}");
    }
}

#[test]
fn the_polite_signals_are_ignored_by_it_and_by_what_it_starts() {
    let mut running =
        start("ignore_term\n  - shell: kill -TERM $$; kill -HUP $$; echo alive\n  - say: here\n  - hang");
    running.until("alive");
    running.until("here");
    running.signal(Signal::SIGTERM);
    running.signal(Signal::SIGINT);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.child.wait().expect("wait").signal(), Some(9), "only the last one works");
}

#[test]
fn a_forked_child_holds_the_pipe_after_the_turn() {
    for what in ["holds-pipe", "setsid"] {
        let fork = format!("fork: {{what: {what}, shell: 'echo \"fork $$\"; exec sleep 600'}}\n  - exit: 0");
        let mut running = start(&fork);
        let fork = running.until("fork ");
        assert!(running.child.wait().expect("wait").success());
        // The turn is over and the pipe is still open: the end comes with the child's end only.
        let session = nix::unistd::getsid(Some(pid(&fork))).expect("the child lives");
        let ours = nix::unistd::getsid(None).expect("our session");
        assert_eq!(session != ours, what == "setsid");
        kill(pid(&fork), Signal::SIGKILL).expect("kill");
        let mut rest = String::new();
        running.stdout.read_to_string(&mut rest).expect("the end of the pipe");
    }
}

#[test]
fn a_daemon_lives_on_in_its_own_session_with_nothing_of_ours_open() {
    let mut running = start(
        "shell: mkfifo told\n  - fork: {what: daemon, clean_env: true, shell: 'echo $$ $HOME > told; exec sleep 600'}\n  \
         - shell: cat told\n  - exit: 0",
    );
    running.until("$ cat told");
    let told = running.until("");
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).expect("the pipe ends with the turn");
    assert!(running.child.wait().expect("wait").success());
    let daemon = pid(told.split(' ').next().unwrap_or_default());
    assert!(!told.contains(' '), "the environment is gone: {told}");
    assert_ne!(
        nix::unistd::getsid(Some(daemon)).expect("it lives"),
        nix::unistd::getsid(None).expect("ours")
    );
    kill(daemon, Signal::SIGKILL).expect("kill");
}

#[test]
fn a_fork_without_a_task_sleeps_for_its_time() {
    let mut running = start("fork: {what: holds-pipe, seconds: 0}\n  - say: after\n  - exit: 0");
    running.until("after");
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).expect("both are gone");
    assert!(running.child.wait().expect("wait").success());
}
