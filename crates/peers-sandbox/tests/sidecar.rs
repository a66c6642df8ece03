//! Helpers with real processes. Nothing here sleeps: a test waits for an end, which comes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use peers_sandbox::{Sidecar, SidecarEnd, SidecarError, SidecarSpec};
use peers_sys::spawn::{RawExit, StubProgram};

const LONG: Duration = Duration::from_mins(1);
/// Becomes ready, then runs until a signal, of which it tells by its exit code.
const SERVING: &str = "trap 'exit 7' HUP; trap 'exit 8' TERM; echo ready; tail -f /dev/null & wait";

fn spec(dir: &Path, script: &str) -> SidecarSpec {
    let exe = std::env::current_exe().unwrap();
    let stub = exe.parent().and_then(Path::parent).unwrap().join("examples/sandbox_stub");
    assert!(stub.is_file(), "build the examples first: {} is missing", stub.display());
    SidecarSpec {
        stub: StubProgram::at(stub),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        scratch: dir.join("run"),
        patience: LONG,
    }
}

fn start(spec: &SidecarSpec) -> (Result<Sidecar, SidecarError>, Receiver<SidecarEnd>) {
    let (tell, told) = channel();
    (Sidecar::start(spec, move |end| tell.send(end.clone()).unwrap()), told)
}

fn serving(dir: &Path) -> (Sidecar, Receiver<SidecarEnd>) {
    let (sidecar, told) = start(&spec(dir, SERVING));
    (sidecar.unwrap(), told)
}

#[test]
fn a_helper_that_is_ready_runs_until_it_is_ended() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (sidecar, told) = serving(dir.path());
    assert_eq!(sidecar.ended(), None);
    assert_eq!(sidecar.socket("egress.sock"), dir.path().join("run/egress.sock"));
    let mode = std::fs::metadata(sidecar.scratch()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let end = sidecar.end().unwrap();
    assert_eq!(end.exit, Some(RawExit::Code(8)));
    assert_eq!(told.recv().unwrap(), end);
}

/// Whether whoever started the tests ignores SIGHUP, as `nohup` does.
fn hup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn a_helper_is_told_to_read_its_policy_again() {
    if hup_is_ignored() {
        // A shell then cannot catch it; a program of ours would.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (sidecar, told) = serving(dir.path());
    sidecar.reload().unwrap();
    assert_eq!(told.recv().unwrap().exit, Some(RawExit::Code(7)));
    assert!(sidecar.wait_ended(LONG).is_some());
    assert!(sidecar.reload().is_err());
}

#[test]
fn a_helper_that_is_let_go_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (sidecar, told) = serving(dir.path());
    drop(sidecar);
    assert_eq!(told.recv().unwrap().exit, Some(RawExit::Code(8)), "it is asked first");
}

#[test]
fn a_helper_that_dies_is_noticed_with_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let (sidecar, told) = start(&spec(dir.path(), "echo ready; read word; echo 'no more' >&2; exit 5"));
    let sidecar = sidecar.unwrap();
    assert_eq!(sidecar.ended(), None);
    let pid = sidecar.identity().pid.to_string();
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    let end = told.recv().unwrap();
    assert_eq!(end.exit, Some(RawExit::Signal(15)));
    assert_eq!(sidecar.wait_ended(LONG), Some(end));
}

#[test]
fn a_helper_that_never_becomes_ready_is_an_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (failed, told) = start(&spec(dir.path(), "echo hello; echo 'no socket\nto be had' >&2; exit 5"));
    let Err(SidecarError::Died { end, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!((end.exit, end.said.as_str()), (Some(RawExit::Code(5)), "no socket to be had"));
    assert_eq!(told.recv().unwrap(), end);
    let mut silent = spec(dir.path(), "exec tail -f /dev/null");
    silent.patience = Duration::from_millis(10);
    let (failed, told) = start(&silent);
    assert!(matches!(failed, Err(SidecarError::Late { .. })), "{failed:?}");
    assert_eq!(told.recv().unwrap().exit, Some(RawExit::Signal(15)));
    let mut missing = spec(dir.path(), "");
    missing.program = "/no/such/program".into();
    assert!(matches!(start(&missing).0, Err(SidecarError::Start(_))));
}
