//! Children, their ends and their leftovers, with real processes.
//!
//! Nothing here sleeps: a test waits for a line, an end of file or an exit, each with a deadline.
//! Whatever changes or sweeps the whole process runs in a process of its own ([`isolated`]).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends by panicking")]

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use peers_model::{RunId, TickNo};
use peers_sys::confine::{Confine, Files, Filter};
use peers_sys::identity::{Pid, ProcIdentity, is_alive};
use peers_sys::reap::{self, Guard, Orphans, Stillness, Sweep};
use peers_sys::signal::{Signal, SignalError, signal_verified};
use peers_sys::spawn::{Child, Limits, RawExit, Spawn, SpawnError, Stdin, StubProgram, WaitError};
use peers_sys::stub::{Mark, StubFailureKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

const DEADLINE: Duration = Duration::from_mins(1);
/// Runs until it is killed, or nobody holds its stdout any more.
const FOREVER: &str = "exec tail -f /dev/null";

fn stub_path() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().and_then(Path::parent).unwrap().join("examples/stub");
    assert!(path.is_file(), "build the examples first: {} is missing", path.display());
    path
}

fn program(program: &str, args: &[&str]) -> Spawn {
    let mut spawn = Spawn::new(StubProgram::at(stub_path()), program, "/");
    spawn.args = args.iter().map(OsString::from).collect();
    spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spawn
}

fn shell(script: &str) -> Spawn {
    program("sh", &["-c", script])
}

/// A shell of tick 1 of `run`.
fn marked_shell(run: &RunId, script: &str) -> Child {
    let mut spawn = shell(script);
    spawn.env.extend(reap::marker_env(run, TickNo(1)));
    spawn.start().unwrap()
}

/// Other tests must not find our processes, nor we theirs.
fn new_run() -> RunId {
    RunId::new(peers_sys::rand::hex::<8>().unwrap()).unwrap()
}

fn await_readable(stream: &impl AsFd) {
    let timeout = Timespec::try_from(DEADLINE).unwrap();
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&timeout)).unwrap(), 1, "nothing came before the deadline");
}

fn read_line(stream: &mut (impl Read + AsFd)) -> String {
    let mut line = Vec::new();
    loop {
        await_readable(stream);
        let mut byte = [0];
        match stream.read(&mut byte).unwrap() {
            1 if byte != *b"\n" => line.extend(byte),
            _ => return String::from_utf8(line).unwrap(),
        }
    }
}

fn read_to_end(stream: &mut (impl Read + AsFd)) -> String {
    let mut all = Vec::new();
    loop {
        await_readable(stream);
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).unwrap() {
            0 => return String::from_utf8(all).unwrap(),
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}

/// The identity of the process whose pid comes as the next line.
fn read_identity(stream: &mut (impl Read + AsFd)) -> ProcIdentity {
    let pid = Pid::new(read_line(stream).parse().unwrap()).unwrap();
    ProcIdentity::of(pid).unwrap()
}

fn await_exit(child: &mut Child) -> RawExit {
    child.wait_exited(Some(DEADLINE)).unwrap().expect("it ends before the deadline")
}

/// Runs a child to its end: its exit, stdout and stderr.
fn run(spawn: &Spawn) -> (RawExit, String, String) {
    let mut child = spawn.start().unwrap();
    let out = read_to_end(&mut child.take_stdout().unwrap());
    let err = read_to_end(&mut child.take_stderr().unwrap());
    await_exit(&mut child);
    (child.reap().unwrap(), out, err)
}

fn stdout_of(spawn: &Spawn) -> String {
    let (exit, out, err) = run(spawn);
    assert_eq!(exit, RawExit::Code(0), "{err}");
    out
}

/// Runs `body` in a process of its own, in which test `name` is the only one.
fn isolated(name: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "PEERS_SYS_TEST_ALONE";
    if std::env::var_os(VARIABLE).as_deref() == Some(OsStr::new(name)) {
        return body();
    }
    let output = test_process(name).env(VARIABLE, name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{problem}", output.status);
    assert!(text.contains("1 passed"), "`{name}` is not a test:\n{text}");
}

/// This test binary, with a shell in between, so that there is an ancestor to be hit by mistake.
fn test_process(name: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#""$@"; exit $?"#, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    command
}

// What the child finds.

#[test]
fn a_child_leads_its_own_session_and_group() {
    let mut child = shell("cat /proc/$$/stat; read line").start().unwrap();
    let stat = read_line(&mut child.take_stdout().unwrap());
    let fields: Vec<&str> = stat.split(' ').collect();
    let pid = child.pid().to_string();
    assert_eq!(fields[4..6], [&pid, &pid], "group and session: {stat}");
    assert_eq!(child.identity().pgid, Some(child.pid()));
    assert_eq!(child.identity().session, Some(child.pid()));
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let mut spawn = program("env", &[]);
    spawn.env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("B".into(), "first".into()),
        ("B".into(), "last".into()),
    ];
    let out = stdout_of(&spawn);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["B=last", "PATH=/usr/bin:/bin"]);
}

#[test]
fn umask_and_core_limit_are_strict() {
    assert_eq!(stdout_of(&shell("umask; ulimit -c; ulimit -Hc")), "0077\n0\n0\n");
}

#[test]
fn limits_are_set_for_good() {
    let mut spawn = program("cat", &["/proc/self/limits"]);
    spawn.limits = Limits { processes: Some(77), file_bytes: Some(4096), memory_bytes: Some(1 << 30) };
    let out = stdout_of(&spawn);
    let words = |name: &str| -> Vec<String> {
        let line = out.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().take(2).map(str::to_owned).collect()
    };
    assert_eq!(words("Max processes"), ["77", "77"]);
    assert_eq!(words("Max file size"), ["4096", "4096"]);
    assert_eq!(words("Max address space"), ["1073741824", "1073741824"]);
}

#[test]
fn no_signal_is_blocked_and_a_broken_pipe_kills_as_usual() {
    // In this thread alone, as for a loop that waits for its signals elsewhere.
    SigSet::all().thread_block().unwrap();
    let out = stdout_of(&program("cat", &["/proc/self/status"]));
    let bits = |name: &str| {
        let hex = out.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        u64::from_str_radix(hex, 16).unwrap()
    };
    assert_eq!(bits("SigBlk:"), 0);
    assert_eq!(
        bits("SigIgn:") & (1 << 12),
        0,
        "SIGPIPE is ignored by every Rust program, but not by its child"
    );
}

#[test]
fn no_descriptor_leaks_into_a_child() {
    isolated("no_descriptor_leaks_into_a_child", || {
        // `dup` makes a descriptor that is inherited through `exec`.
        let file = std::fs::File::open("/dev/null").unwrap();
        let leaky: Vec<_> = (0..5).map(|_| rustix::io::dup(&file).unwrap()).collect();
        let plain = Command::new("/bin/ls").arg("/proc/self/fd").output().unwrap();
        assert!(plain.stdout.split(|b| *b == b'\n').count() > leaky.len() + 3, "they are leaky");
        assert_eq!(stdout_of(&program("ls", &["/proc/self/fd"])), "0\n1\n2\n3\n", "3 is what `ls` opened");
    });
}

// Programs that cannot be run.

#[test]
fn a_missing_program_is_found_out_before_anything_starts() {
    let missing = program("no-such-program", &[]).start().unwrap_err();
    assert!(matches!(missing, SpawnError::NotFound { .. }));
    let refused = program("/etc/passwd", &[]).start().unwrap_err();
    assert!(matches!(refused, SpawnError::NotExecutable { .. }));
    assert_eq!(refused.to_string(), "not executable: `chmod +x /etc/passwd`");
    let odd = tempfile::tempdir().unwrap();
    let odd = odd.path().canonicalize().unwrap().join("a b's");
    std::fs::write(&odd, "").unwrap();
    let refused = program(odd.to_str().unwrap(), &[]).start().unwrap_err();
    let shown = odd.to_str().unwrap().replace('\'', r"'\''");
    assert_eq!(refused.to_string(), format!("not executable: `chmod +x -- '{shown}'`"));
    let refused = program("/etc", &[]).start().unwrap_err();
    assert_eq!(refused.to_string(), "not executable: /etc is a directory");
}

/// Written by another process: a child that another test forks meanwhile would hold a file of ours open for
/// writing, and nobody can run such a file.
fn script(dir: &Path, text: &str) -> String {
    let path = dir.join("script").to_str().unwrap().to_owned();
    let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let done = std::process::Command::new("/bin/sh").args(["-c", write, &path, text]).status().unwrap();
    assert!(done.success());
    path
}

#[test]
fn a_failed_exec_is_told_from_a_program_that_exits_127() {
    let dir = tempfile::tempdir().unwrap();
    let none = script(dir.path(), &format!("#!{}/none\n", dir.path().display()));
    let refused = program(&none, &[]).start().unwrap_err();
    assert!(matches!(refused, SpawnError::NoInterpreter { .. }) && refused.exit_code() == 127, "{refused}");
    let told = refused.to_string();
    assert!(told.starts_with(&none) && told.contains("/none`; install it, or correct that line"), "{told}");
    // What only the kernel finds out: the interpreter has none of its own.
    let below = tempfile::tempdir().unwrap();
    let mut child = program(&script(below.path(), &format!("#!{none}\n")), &[]).start().unwrap();
    let err = read_to_end(&mut child.take_stderr().unwrap());
    let exit = await_exit(&mut child);
    assert_eq!(exit, RawExit::Code(127));
    let failure = child.stub_failure(exit, err.as_bytes()).expect("the stub says so");
    assert_eq!((failure.kind, failure.errno), (StubFailureKind::Exec, 2));

    // A program that repeats the line of another child is still a program.
    let mut liar = shell("printf '%s' \"$LINE\" >&2; exit 127");
    liar.env.push(("LINE".into(), err.into()));
    let mut child = liar.start().unwrap();
    let err = read_to_end(&mut child.take_stderr().unwrap());
    let exit = await_exit(&mut child);
    assert_eq!(exit, RawExit::Code(127));
    assert_eq!(child.stub_failure(exit, err.as_bytes()), None, "{err}");
}

#[test]
fn a_stub_whose_parent_has_gone_runs_nothing() {
    let mark = "0123456789abcdef0123456789abcdef";
    let args = ["__spawn", "--mark", mark, "--parent", "1", "--exec", "/bin/echo", "--", "echo", "ran"];
    let output = Command::new(stub_path()).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(output.stdout.is_empty());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with(&format!("peers-stub: setup-failed {mark} 0 parent: ")), "{err}");
    let other = Mark::random().unwrap();
    assert_eq!(other.failure(RawExit::Code(126), err.as_bytes()), None);
}

/// From here on the kernel refuses these calls of this thread and of its children with an error of our own.
fn refuse(call: nix::libc::c_long, when: &[(u8, SeccompCmpArgLen, SeccompCmpOp, u64)]) {
    let one = |(at, length, how, value): &(u8, SeccompCmpArgLen, SeccompCmpOp, u64)| {
        SeccompCondition::new(*at, length.clone(), how.clone(), *value).unwrap()
    };
    let all: Vec<_> = when.iter().map(one).collect();
    let rules = if all.is_empty() { Vec::new() } else { vec![SeccompRule::new(all).unwrap()] };
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let error = SeccompAction::Errno(OURS.unsigned_abs());
    let filter = SeccompFilter::new([(call, rules)].into(), SeccompAction::Allow, error, arch).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

/// An error that none of the calls of the stub gives by itself.
const OURS: i32 = nix::libc::EADDRNOTAVAIL;

/// A child that asks for every step of the stub, but for what needs Landlock where there is none.
fn of_all_steps() -> Spawn {
    let mut spawn = program("echo", &["ran"]);
    spawn.limits = Limits { processes: Some(1 << 20), file_bytes: Some(4096), memory_bytes: Some(1 << 40) };
    let all = Files { read: vec!["/".into()], write: Vec::new() };
    let files = peers_sys::confine::has_landlock().then_some(all);
    spawn.confine = Confine { files, filter: Some(Filter::Usual), apart: false };
    spawn
}

/// The stub of this child fails at this step with this error of the system, and runs nothing.
fn fails_at(spawn: &Spawn, step: &str, errno: i32) {
    let mut child = spawn.start().unwrap();
    let err = read_to_end(&mut child.take_stderr().unwrap());
    assert_eq!(read_to_end(&mut child.take_stdout().unwrap()), "", "{step}: the program ran");
    let exit = await_exit(&mut child);
    assert_eq!(exit, RawExit::Code(126), "{step}: {err}");
    let failure = child.stub_failure(exit, err.as_bytes()).unwrap_or_else(|| panic!("{step}: {err}"));
    assert_eq!((failure.kind, failure.errno), (StubFailureKind::Setup, errno), "{step}: {err}");
    assert!(failure.message.starts_with(&format!("{step}: ")), "{step}: {err}");
    assert_eq!(err.lines().count(), 1, "{step}: {err}");
    child.reap().unwrap();
    let left = nix::sys::wait::waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
    assert_eq!(
        left,
        Err(nix::errno::Errno::ECHILD),
        "{step}: nothing is left, not even of a child of the stub"
    );
}

#[test]
fn a_stub_that_fails_says_at_which_step_and_why_and_leaves_no_child() {
    use nix::libc;

    const SET_LIMIT: libc::c_long = libc::SYS_prlimit64;
    isolated("a_stub_that_fails_says_at_which_step_and_why_and_leaves_no_child", || {
        reap::become_subreaper().unwrap();
        let (exit, out, err) = run(&of_all_steps());
        assert_eq!((exit, out.as_str()), (RawExit::Code(0), "ran\n"), "{err}");

        let is = |at, value| (at, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
        // Reading a limit goes through the same call, without a new one.
        let limit = |kind: u64| vec![is(1, kind), (2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)];
        let steps = [
            ("parent", libc::SYS_prctl, vec![is(0, 1)]), // PR_SET_PDEATHSIG
            ("setsid", libc::SYS_setsid, Vec::new()),
            ("core limit", SET_LIMIT, limit(libc::RLIMIT_CORE.into())),
            ("process limit", SET_LIMIT, limit(libc::RLIMIT_NPROC.into())),
            ("file size limit", SET_LIMIT, limit(libc::RLIMIT_FSIZE.into())),
            ("memory limit", SET_LIMIT, limit(libc::RLIMIT_AS.into())),
            // Whoever starts the stub does the same, and goes on where it fails.
            ("signal mask", libc::SYS_rt_sigprocmask, vec![is(0, 2)]), // SIG_SETMASK
            ("capabilities", libc::SYS_capget, Vec::new()),
            ("landlock", libc::SYS_landlock_restrict_self, Vec::new()),
            ("seccomp", libc::SYS_seccomp, Vec::new()),
        ];
        for (step, call, when) in steps {
            if matches!(step, "capabilities" | "landlock") && of_all_steps().confine.files.is_none() {
                eprintln!("not shown: {step}: no Landlock");
                continue;
            }
            // A filter holds for one thread and those that it starts.
            let failing = std::thread::spawn(move || {
                refuse(call, &when);
                fails_at(&of_all_steps(), step, OURS);
            });
            failing.join().unwrap();
        }
    });
}

#[test]
fn a_stub_that_leads_a_group_already_says_that_it_can_begin_no_session() {
    let mark = "0123456789abcdef0123456789abcdef";
    let parent = std::process::id().to_string();
    let args = ["__spawn", "--mark", mark, "--parent", &parent, "--exec", "/bin/echo", "--", "echo", "ran"];
    let mut command = Command::new(stub_path());
    let output = command.args(args).process_group(0).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(126), Vec::new()));
    let err = String::from_utf8(output.stderr).unwrap();
    let told = format!("peers-stub: setup-failed {mark} {} setsid: ", nix::libc::EPERM);
    assert!(err.starts_with(&told), "{err}");
}

#[test]
fn a_stub_behind_too_many_walls_says_that_there_is_no_room_for_its_own() {
    isolated("a_stub_behind_too_many_walls_says_that_there_is_no_room_for_its_own", || {
        let spawn = of_all_steps();
        if spawn.confine.files.is_none() {
            return eprintln!("not shown: no Landlock");
        }
        reap::become_subreaper().unwrap();
        let walls = Confine { filter: None, ..spawn.confine.clone() };
        // The kernel stacks sixteen.
        let (step, _) = (0..=16).find_map(|_| walls.apply().err()).unwrap();
        assert_eq!(step, "landlock");
        fails_at(&spawn, "landlock", nix::libc::E2BIG);
    });
}

// The end of a child.

#[test]
fn an_exit_is_seen_before_it_is_reaped_and_again_then() {
    let mut child = shell("exit 7").start().unwrap();
    assert_eq!(await_exit(&mut child), RawExit::Code(7));
    assert_eq!(child.exited_nowait().unwrap(), Some(RawExit::Code(7)), "looking does not reap");
    assert!(ProcIdentity::of(child.pid()).is_ok(), "the zombie keeps its pid");
    assert!(!is_alive(child.identity()), "but a zombie is not alive");
    assert_eq!(child.reap().unwrap(), RawExit::Code(7));
    assert!(ProcIdentity::of(child.pid()).is_err());
    assert_eq!(child.reap().unwrap(), RawExit::Code(7), "the answer stays");
}

#[test]
fn the_group_is_swept_while_its_dead_leader_holds_the_number() {
    let mut child = shell("tail -f /dev/null & exit 0").start().unwrap();
    assert_eq!(await_exit(&mut child), RawExit::Code(0));
    child.sweep_group(Signal::Kill).unwrap();
    assert_eq!(read_to_end(&mut child.take_stdout().unwrap()), "", "nobody holds the pipe any more");
    assert_eq!(child.reap().unwrap(), RawExit::Code(0));
}

#[test]
fn a_reaped_childs_group_is_not_signalled_though_it_has_members() {
    let mut child = shell("tail -f /dev/null & echo $!").start().unwrap();
    let mut stdout = child.take_stdout().unwrap();
    let job = read_identity(&mut stdout);
    assert_eq!(job.pgid, Some(child.pid()));
    await_exit(&mut child);
    child.reap().unwrap();
    for refused in [child.sweep_group(Signal::Kill), child.terminate(), child.kill()] {
        assert!(matches!(refused, Err(SignalError::Gone { .. })), "the number may be reused");
    }
    assert!(is_alive(&job));
    signal_verified(&job, Signal::Kill).unwrap();
    assert_eq!(read_to_end(&mut stdout), "");
}

#[test]
fn a_dropped_child_is_killed_with_its_group() {
    let mut child = shell("tail -f /dev/null & echo ready; wait").start().unwrap();
    let mut stdout = child.take_stdout().unwrap();
    assert_eq!(read_line(&mut stdout), "ready");
    drop(child);
    assert_eq!(read_to_end(&mut stdout), "");
}

#[test]
fn a_stolen_exit_is_reported_and_nothing_is_signalled_any_more() {
    let mut child = shell("exit 0").start().unwrap();
    await_exit(&mut child);
    let raw = nix::unistd::Pid::from_raw(child.pid().get());
    nix::sys::wait::waitpid(raw, None).unwrap();
    assert!(matches!(child.exited_nowait(), Err(WaitError::Stolen { .. })));
    assert!(matches!(child.sweep_group(Signal::Kill), Err(SignalError::Gone { .. })));
}

#[test]
fn a_child_dies_with_its_parent() {
    const NAME: &str = "a_child_dies_with_its_parent";
    const FIFO: &str = "PEERS_SYS_TEST_FIFO";
    if let Some(fifo) = std::env::var_os(FIFO) {
        // Not by its broken stdout: that it could notice itself.
        let mut spawn = shell("exec 9>\"$FIFO\" >/dev/null; echo ready >&9; exec tail -f /dev/null");
        spawn.env.push(("FIFO".into(), fifo));
        let mut child = spawn.start().unwrap();
        child.wait_exited(None).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    // Directly, without a shell in between: it is this process that is killed.
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
        .env(FIFO, &fifo)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = std::fs::File::open(&fifo).unwrap();
    assert_eq!(read_line(&mut reader), "ready");
    parent.kill().unwrap();
    assert_eq!(read_to_end(&mut reader), "", "the grandchild held the pipe, and has gone");
    parent.wait().unwrap();
}

// Verified signals.

#[test]
fn only_the_process_that_is_meant_is_signalled() {
    let mut child = shell(FOREVER).start().unwrap();
    let meant = child.identity().clone();
    let other = ProcIdentity { start_time: meant.start_time.map(|t| t - 1), ..meant.clone() };
    assert!(matches!(signal_verified(&other, Signal::Kill), Err(SignalError::Reused { .. })));
    assert_eq!(child.exited_nowait().unwrap(), None, "it was not hit");
    signal_verified(&meant, Signal::Kill).unwrap();
    assert_eq!(await_exit(&mut child), RawExit::Signal(9));
    assert!(matches!(signal_verified(&meant, Signal::Kill), Err(SignalError::Gone { .. })), "a zombie");
    child.reap().unwrap();
    assert!(matches!(
        signal_verified(&meant, Signal::Kill),
        Err(SignalError::Gone { .. } | SignalError::Reused { .. })
    ));
}

// Leftovers.
/// A daemon without a marker.
const BARE_DAEMON: &str = "(env -i setsid /bin/sh -c 'echo $$; exec tail -f /dev/null' &)";

/// A sweep of everything that carries the mark of this run.
fn sweep_of(run_id: &RunId) -> Sweep<'_> {
    Sweep {
        run_id,
        iteration: None,
        since: None,
        guard: Guard::default(),
        orphans: Orphans::Leave,
        deadline: DEADLINE,
    }
}

fn pids(identities: &[ProcIdentity]) -> Vec<Pid> {
    identities.iter().map(|identity| identity.pid).collect()
}

#[test]
fn a_daemon_that_shed_its_marker_is_found_as_an_orphan() {
    isolated("a_daemon_that_shed_its_marker_is_found_as_an_orphan", || {
        reap::become_subreaper().unwrap();
        let run_id = new_run();
        let mut child = marked_shell(&run_id, BARE_DAEMON);
        let mut stdout = child.take_stdout().unwrap();
        let daemon = read_identity(&mut stdout);
        await_exit(&mut child);
        assert_eq!(pids(&reap::marked(&run_id, None, None).unwrap()), []);
        assert_eq!(pids(&reap::adopted_orphans(&[]).unwrap()), [daemon.pid]);
        assert_eq!(pids(&reap::adopted_orphans(&[daemon.pid]).unwrap()), []);

        let report = reap::sweep_tick(&run_id, Some(TickNo(1)), &[]).unwrap();
        assert_eq!((report.killed, report.survivors), (vec![daemon.pid], vec![]));
        assert_eq!(read_to_end(&mut stdout), "");
        assert!(ProcIdentity::of(daemon.pid).is_err(), "it is reaped, too");
        assert_eq!(child.reap().unwrap(), RawExit::Code(0), "the leader is left to its owner");
    });
}

#[test]
fn a_sweep_spares_a_living_child_with_tree_and_session_until_it_is_ending() {
    isolated("a_sweep_spares_a_living_child_with_tree_and_session_until_it_is_ending", || {
        reap::become_subreaper().unwrap();
        let run_id = new_run();
        let script = "(tail -f /dev/null & echo $!)
            setsid sh -c 'echo $$; exec tail -f /dev/null' &
            exec tail -f /dev/null";
        let mut child = marked_shell(&run_id, script);
        let mut stdout = child.take_stdout().unwrap();
        let orphan_in_session = read_identity(&mut stdout);
        let child_out_of_session = read_identity(&mut stdout);

        let report = reap::sweep_tick(&run_id, Some(TickNo(1)), &[]).unwrap();
        assert_eq!(report, reap::SweepReport::default());
        for spared in [child.identity(), &orphan_in_session, &child_out_of_session] {
            assert!(is_alive(spared), "{spared:?}");
        }

        let ending = [child.pid()];
        let other_run = new_run();
        let sweep = Sweep { guard: Guard { tracked: &[], ending: &ending }, ..sweep_of(&other_run) };
        let report = sweep.run().unwrap();
        assert_eq!(report.survivors, []);
        assert_eq!(report.killed.len(), 3, "{report:?}");
        assert_eq!(read_to_end(&mut stdout), "");
        assert_eq!(child.reap().unwrap(), RawExit::Signal(9));

        let report = sweep.run().unwrap();
        assert_eq!(report, reap::SweepReport::default(), "a reaped leader's number means nobody");
    });
}

#[test]
fn orphans_can_be_left_to_a_living_peer() {
    isolated("orphans_can_be_left_to_a_living_peer", || {
        reap::become_subreaper().unwrap();
        let run_id = new_run();
        let mut child = marked_shell(&run_id, BARE_DAEMON);
        let mut stdout = child.take_stdout().unwrap();
        let daemon = read_identity(&mut stdout);
        await_exit(&mut child);
        let mut sweep = sweep_of(&run_id);
        assert_eq!(sweep.run().unwrap(), reap::SweepReport::default());
        assert!(is_alive(&daemon));
        sweep.orphans = Orphans::Kill;
        assert_eq!(sweep.run().unwrap().killed, [daemon.pid]);
    });
}

#[test]
fn a_number_that_is_no_child_from_here_is_never_ended() {
    isolated("a_number_that_is_no_child_from_here_is_never_ended", || {
        let mut other = Command::new("/usr/bin/tail").args(["-f", "/dev/null"]).spawn().unwrap();
        let ending = [Pid::new(other.id().try_into().unwrap()).unwrap()];
        let other_run = new_run();
        let sweep = Sweep { guard: Guard { tracked: &[], ending: &ending }, ..sweep_of(&other_run) };
        assert_eq!(sweep.run().unwrap(), reap::SweepReport::default());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    });
}

#[test]
fn neither_we_nor_an_ancestor_nor_a_stranger_is_swept() {
    const NAME: &str = "neither_we_nor_an_ancestor_nor_a_stranger_is_swept";
    const INNER: &str = "PEERS_SYS_TEST_SWEEPER";
    if std::env::var_os(INNER).is_some() {
        let run_id = RunId::new(std::env::var(reap::RUN_MARKER).unwrap()).unwrap();
        let found = pids(&reap::marked(&run_id, None, None).unwrap());
        let parent = Pid::new(rustix::process::getppid().unwrap().as_raw_pid()).unwrap();
        assert!(found.contains(&Pid::of_self()) && found.contains(&parent), "both carry the marker");
        assert_eq!(reap::sweep_tick(&run_id, None, &[]).unwrap(), reap::SweepReport::default());
        return;
    }
    // A process with another run's marker, older than the sweep.
    let mut stranger = marked_shell(&new_run(), "echo ready; exec tail -f /dev/null");
    let mut stdout = stranger.take_stdout().unwrap();
    assert_eq!(read_line(&mut stdout), "ready");
    let run_id = new_run();
    let output = test_process(NAME)
        .env(INNER, "1")
        .env(reap::RUN_MARKER, run_id.as_str())
        .env(reap::ITERATION_MARKER, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stranger.exited_nowait().unwrap(), None);
}

#[test]
fn a_process_that_keeps_forking_is_torn_down() {
    isolated("a_process_that_keeps_forking_is_torn_down", || {
        reap::become_subreaper().unwrap();
        let run_id = new_run();
        // Each generation starts the next one in a session of its own, and ends. They die out by
        // themselves, but not before they were caught.
        let generation = r#"[ "$2" = 0 ] || setsid sh -c "$1" sh "$1" $(($2 - 1)) &"#;
        let mut spawn = program("sh", &["-c", generation, "sh", generation, "20000"]);
        spawn.env.extend(reap::marker_env(&run_id, TickNo(1)));
        let mut child = spawn.start().unwrap();
        await_exit(&mut child);
        let sweep = Sweep { orphans: Orphans::Kill, ..sweep_of(&run_id) };
        let report = sweep.run().unwrap();
        assert_eq!((report.survivors, report.restless), (vec![], false));
        let err = read_to_end(&mut child.take_stderr().unwrap());
        assert!(!report.killed.is_empty(), "it died out: {err}");
        assert_eq!(read_to_end(&mut child.take_stdout().unwrap()), "", "no generation is left");
    });
}

#[test]
fn zombies_are_reaped_by_pid_and_a_tracked_exit_is_not_stolen() {
    isolated("zombies_are_reaped_by_pid_and_a_tracked_exit_is_not_stolen", || {
        reap::become_subreaper().unwrap();
        // The orphan ends when its input does, so not before it is one.
        let mut spawn = shell("exec 3<&0; sh -c 'read line' <&3 & echo $!; exit 5");
        spawn.stdin = Stdin::Piped;
        let mut child = spawn.start().unwrap();
        let orphan = read_identity(&mut child.take_stdout().unwrap()).pid;
        await_exit(&mut child);
        drop(child.take_stdin());
        let end = Instant::now() + DEADLINE;
        let reaped = loop {
            let reaped = reap::reap_zombies(&[]).unwrap();
            assert!(Instant::now() < end, "the orphan never became a zombie of ours");
            if !reaped.is_empty() {
                break reaped;
            }
            std::thread::yield_now();
        };
        assert_eq!(reaped, [orphan]);
        assert_eq!(child.reap().unwrap(), RawExit::Code(5));
    });
}

#[test]
fn a_sleep_is_still_until_it_was_stopped_once() {
    isolated("a_sleep_is_still_until_it_was_stopped_once", || {
        let child = program("sleep", &["600"]).start().unwrap();
        let pid = child.pid();
        let until = |what: &str, reached: &dyn Fn() -> bool| {
            let end = Instant::now() + DEADLINE;
            while !reached() {
                assert!(Instant::now() < end, "never {what}: {:?}", reap::stillness(pid));
                std::thread::yield_now();
            }
        };
        let alive = || matches!(reap::stillness(pid), Stillness::Alive(_));
        until("still", &|| !alive());
        let raw = nix::unistd::Pid::from_raw(pid.to_string().parse().unwrap());
        let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();

        nix::sys::signal::kill(raw, NixSignal::SIGSTOP).unwrap();
        until("stopped", &|| file("stat").contains(") T "));
        assert!(alive(), "who knows what it would do");

        // The kernel goes on with the sleep by a call that may as well be the rest of a `poll`.
        nix::sys::signal::kill(raw, NixSignal::SIGCONT).unwrap();
        let rest = format!("{} ", nix::libc::SYS_restart_syscall);
        until("asleep again", &|| file("stat").contains(") S ") && file("syscall").starts_with(&rest));
        assert!(alive(), "what it waits for cannot be told");
    });
}
