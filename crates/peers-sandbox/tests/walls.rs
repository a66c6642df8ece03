//! What each wall holds, tried from inside with real processes. A wall that this machine cannot put up is left
//! out, which is no error, unless `PEERS_WALLS=all` says that all are there.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_sandbox::{Access, Asked, Backend, Network, Ran, Wall, run_watched};
use peers_sys::confine::Filter;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::spawn::{RawExit, Spawn, StubProgram};

const LIMIT: Duration = Duration::from_mins(1);

fn stub() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let stub = exe.parent().and_then(Path::parent).unwrap().join("examples/sandbox_stub");
    assert!(stub.is_file(), "build the examples first: {} is missing", stub.display());
    stub
}

/// A place with a repository, and something beside it that is nobody's business.
struct Ground {
    dir: tempfile::TempDir,
    wall: Wall,
}

impl Ground {
    fn on(backend: Backend) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        for sub in
            ["repo/.git", "repo/.peers/log", "repo/.peers/inbox/ann", "repo/.peers/inbox/bob", "tmp", "own"]
        {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        for file in [
            "secret",
            "own/key",
            "repo/a",
            "repo/.git/config",
            "repo/.peers/log/said",
            "repo/.peers/inbox/bob/note",
        ] {
            fs::write(dir.path().join(file), "hidden\n").unwrap();
        }
        let stub = stub();
        let chosen = Wall::choose(&Asked {
            backend: Some(backend),
            require: backend.tier(),
            filter: Filter::Usual,
            stub: &StubProgram::at(&stub),
            program: &stub,
            search: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
            canary: &dir.path().join("secret"),
            operator: &Env::current(),
            image: None,
        });
        let all = std::env::var_os("PEERS_WALLS").is_some_and(|walls| walls == "all");
        assert!(chosen.wall.is_some() || !all, "{:?}", chosen.missing);
        let scratch = SafeDir::create_root(dir.path().join("scratch")).unwrap();
        chosen.wall.map(|wall| Self { dir, wall: wall.with_settings(&scratch).unwrap() })
    }

    /// The walls that this machine has.
    fn all() -> impl Iterator<Item = Self> {
        let podman = std::env::var_os("PEERS_TEST_PODMAN").is_some_and(|value| value == "1");
        let all = [Backend::Landlock, Backend::Bwrap, Backend::Podman];
        all.into_iter().filter(move |backend| podman || *backend != Backend::Podman).filter_map(Self::on)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn access(&self) -> Access {
        Access {
            write: vec![self.path("repo")],
            kept: vec![self.path("repo/.git/config"), self.path("repo/.peers")],
            hidden: vec![self.path("repo/.peers/log"), self.path("repo/.peers/inbox")],
            shown: vec![self.path("repo/.peers/inbox/ann")],
            home: Some(self.path("own")),
            scratch: Some(self.path("tmp")),
            network: Network::None,
            ..Access::default()
        }
    }

    fn spawn(&self, script: &str) -> Spawn {
        let mut spawn = Spawn::new(StubProgram::at(stub()), "/bin/sh", self.path("repo"));
        spawn.args = vec!["-c".into(), script.into(), "sh".into(), self.dir.path().into()];
        spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        spawn
    }

    fn run(&self, script: &str) -> Ran {
        run_watched(&self.wall.put_up(self.spawn(script), &self.access()), LIMIT).unwrap()
    }

    /// What a script prints; its own mistakes are its output too.
    fn says(&self, script: &str) -> String {
        let ran = self.run(&format!("exec 2>&1\n{script}"));
        String::from_utf8_lossy(&ran.stdout.bytes).trim().to_owned()
    }

    /// Whether a script comes to its end well.
    fn can(&self, script: &str) -> bool {
        self.run(script).exit == Some(RawExit::Code(0))
    }

    fn is(&self, backend: Backend) -> bool {
        self.wall.backend() == backend
    }
}

#[test]
fn work_goes_on_in_the_repository_and_nothing_outside_is_written_or_read() {
    for ground in Ground::all() {
        let backend = ground.wall.backend();
        assert_eq!(ground.says("echo new > b && mkdir -p c/d && mv b c/d && cat a c/d/b"), "hidden\nnew");
        assert!(
            ground.can("t=$(mktemp) && echo x > $t && rm $t"),
            "{backend}: a place for what is temporary"
        );
        for outside in ["$1/secret", "$1/own/key", "/etc/shadow"] {
            // That of an image is not ours.
            if ground.is(Backend::Podman) && outside == "/etc/shadow" {
                continue;
            }
            assert!(!ground.can(&format!("cat {outside}")), "{backend}: read {outside}");
            assert!(!ground.can(&format!("ln -s {outside} l && cat l")), "{backend}: a link to {outside}");
        }
        for outside in ["/new", "/usr/new", "/etc/new", "/var/tmp/new-of-peers"] {
            assert!(!ground.can(&format!(": > {outside}")), "{backend}: wrote {outside}");
        }
        // In a `/tmp` of its own that may work.
        ground.run(": > $1/new; rm $1/secret");
        assert!(ground.path("secret").is_file() && !ground.path("new").exists(), "{backend}");
    }
}

#[test]
fn settings_of_the_system_are_there_but_for_what_only_root_may_read() {
    let Some(ground) = Ground::on(Backend::Bwrap) else { return };
    assert!(ground.can("grep -q ^root: /etc/passwd && test -f /etc/resolv.conf"));
    assert!(!ground.can(": > /etc/passwd") && !ground.can(": > /etc/new"));
    assert_eq!(ground.says("ls -d /etc/ssl/private /etc/shadow /etc/ssh 2>/dev/null"), "");
    // One that is named is mounted there.
    let access = Access { read: vec!["/etc/shadow".into()], ..ground.access() };
    let script = "test -f /etc/shadow && ! (: > /etc/shadow) 2>/dev/null && ! (: > /etc/passwd) 2>/dev/null";
    let ran = run_watched(&ground.wall.put_up(ground.spawn(script), &access), LIMIT).unwrap();
    assert_eq!(ran.exit, Some(RawExit::Code(0)), "{}", String::from_utf8_lossy(&ran.stderr.bytes));
}

#[test]
fn what_is_kept_stays_and_what_is_hidden_is_empty_where_the_backend_has_mounts() {
    let Some(ground) = Ground::on(Backend::Bwrap) else { return };
    assert!(!ground.can(": > .git/config") && !ground.can("rm .git/config") && !ground.can(": > .peers/x"));
    assert_eq!(ground.says("cat .git/config; ls -A .peers/log; ls -A .peers/inbox"), "hidden\nann");
    assert!(ground.can("echo hi > .peers/inbox/ann/note"));
    assert_eq!(fs::read_to_string(ground.path("repo/.peers/inbox/ann/note")).unwrap(), "hi\n");
    assert!(!ground.can(": > .peers/inbox/bob/note") && !ground.can("mkdir .peers/inbox/eve"));
}

/// Landlock holds signals from Linux 6.12 on.
fn is_before_signals() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) < (Some(6), Some(12))
}

#[test]
fn the_processes_outside_are_neither_signalled_nor_looked_into() {
    let own = std::process::id();
    for ground in Ground::all() {
        let backend = ground.wall.backend();
        assert!(
            !ground.can(&format!("kill -0 {own}")) || (ground.is(Backend::Landlock) && is_before_signals()),
            "{backend}"
        );
        assert!(!ground.can(&format!("cat /proc/{own}/environ")), "{backend}");
        if ground.is(Backend::Bwrap) {
            assert!(ground.says("ps -e 2>/dev/null | wc -l; ls /proc | grep -c '^[0-9]'").len() < 8);
        }
    }
}

#[test]
fn a_network_of_its_own_reaches_itself_and_nothing_else() {
    let Some(ground) = Ground::on(Backend::Bwrap) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bash = "bash -c";
    assert!(!ground.can(&format!("{bash} 'exec 3<>/dev/tcp/127.0.0.1/{port}'")), "the loopback of the host");
    assert_eq!(ground.says("ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev"), "1");
}

#[test]
fn calls_that_only_debuggers_and_administrators_make_are_refused() {
    for ground in Ground::all() {
        let backend = ground.wall.backend();
        for refused in ["mount -t tmpfs none /mnt", "chroot / true", "unshare -m mount --bind /usr /opt"] {
            assert!(!ground.can(refused), "{backend}: {refused}");
        }
        assert!(ground.says("grep Seccomp: /proc/self/status").ends_with('2'), "{backend}");
        assert!(ground.says("grep NoNewPrivs: /proc/self/status").ends_with('1'), "{backend}");
    }
}

#[test]
fn a_program_is_asked_to_end_before_it_is_killed() {
    for ground in Ground::all() {
        let script = "trap 'echo ended > done; exit 3' TERM; echo on; while :; do read -r x < fifo; done";
        assert!(ground.can("mkfifo fifo"));
        let spawn = ground.wall.put_up(ground.spawn(script), &ground.access());
        let mut child = spawn.start().unwrap();
        let mut first = [0; 3];
        std::io::Read::read_exact(&mut child.take_stdout().unwrap(), &mut first).unwrap();
        child.terminate().unwrap();
        let ended = child.wait_exited(Some(LIMIT)).unwrap();
        assert_eq!(ended, Some(RawExit::Code(3)), "{}", ground.wall.backend());
        assert_eq!(fs::read_to_string(ground.path("repo/done")).unwrap(), "ended\n");
        child.reap().unwrap();
    }
}

#[test]
fn what_a_program_leaves_behind_is_gone_where_processes_are_its_own() {
    let Some(ground) = Ground::on(Backend::Bwrap) else { return };
    // It holds the pipe: as long as it lives nothing ends.
    let ran = ground.run("setsid sh -c 'setsid tail -f /dev/null & exec tail -f /dev/null' & exit 0");
    assert_eq!((ran.exit, ran.stdout.cut), (Some(RawExit::Code(0)), false));
}

#[test]
fn a_program_that_is_not_there_is_told_from_one_that_failed() {
    for ground in Ground::all() {
        let mut spawn = ground.spawn("");
        spawn.program = ground.path("repo/none").into();
        // Programs of an image are looked for inside.
        let found = ground.wall.put_up(spawn, &ground.access()).start().is_ok();
        assert_eq!(found, ground.is(Backend::Podman), "{}", ground.wall.backend());
        // There, but not to be seen from inside.
        let program = ground.path("prog");
        fs::copy("/bin/true", &program).unwrap();
        let mut spawn = ground.spawn("");
        spawn.program = program.into();
        let mut child = ground.wall.put_up(spawn, &ground.access()).start().unwrap();
        let mut said = Vec::new();
        std::io::Read::read_to_end(&mut child.take_stderr().unwrap(), &mut said).unwrap();
        let exit = child.wait_exited(Some(LIMIT)).unwrap().unwrap();
        assert!(child.stub_failure(exit, &said).is_some(), "{exit:?}: {}", String::from_utf8_lossy(&said));
        child.reap().unwrap();
    }
}
