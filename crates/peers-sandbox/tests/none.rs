//! The backend `none` with real processes. Nothing here waits for a time: what is ended would run for ever.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::Path;
use std::time::Duration;

use peers_sandbox::{Access, ExecError, Wall, run_watched};
use peers_sys::spawn::{RawExit, Spawn, SpawnError, StubProgram};

fn run(argv: &[&str], limit: Duration) -> Result<peers_sandbox::Ran, ExecError> {
    let exe = std::env::current_exe().unwrap();
    let stub = exe.parent().and_then(Path::parent).unwrap().join("examples/sandbox_stub");
    assert!(stub.is_file(), "build the examples first: {} is missing", stub.display());
    let (program, rest) = argv.split_first().unwrap();
    let mut spawn = Spawn::new(StubProgram::at(stub), program, "/");
    spawn.args = rest.iter().map(Into::into).collect();
    spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("GIVEN".into(), "yes".into())];
    run_watched(&Wall::none().put_up(spawn, &Access::default()), limit)
}

const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_program_gets_the_environment_that_was_given_and_its_end_is_told() {
    let ran = run(&["sh", "-c", "echo $GIVEN-$HOME; echo no >&2; exit 7"], LONG).unwrap();
    assert_eq!(ran.exit, Some(RawExit::Code(7)));
    assert_eq!((ran.stdout.bytes.as_slice(), ran.stderr.bytes.as_slice()), (&b"yes-\n"[..], &b"no\n"[..]));
}

#[test]
fn a_program_at_its_limit_is_ended_with_its_group() {
    // The pipe closes only when the one in the background is gone too.
    let ran =
        run(&["sh", "-c", "tail -f /dev/null & echo on; exec tail -f /dev/null"], Duration::from_millis(300));
    let ran = ran.unwrap();
    assert_eq!((ran.exit, ran.stdout.cut), (None, false));
}

#[test]
fn what_runs_on_in_the_group_after_the_exit_is_ended() {
    let ran = run(&["sh", "-c", "tail -f /dev/null & exit 0"], LONG).unwrap();
    assert_eq!((ran.exit, ran.stdout.cut), (Some(RawExit::Code(0)), false));
}

#[test]
fn a_program_that_is_not_there_is_told_from_one_that_failed() {
    let missing = run(&["no-such-program-here"], LONG).unwrap_err();
    assert!(matches!(missing, ExecError::Start(SpawnError::NotFound { .. })), "{missing}");
}
