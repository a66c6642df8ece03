//! A repository, a store of its own, and the program that runs loops on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use peers_run::place::Place;
use peers_run::scaffold::{Existing, InitOptions, init};
use peers_store::{accept, store};
use peers_sys::env::Env;
use tempfile::TempDir;

/// What a program printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

impl From<Output> for Ran {
    fn from(out: Output) -> Self {
        Self {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }
}

/// The world of one test.
pub(crate) struct World {
    dir: TempDir,
}

/// The test program, built by cargo beside the tests.
pub(crate) fn program() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let dir = exe.parent().and_then(Path::parent).unwrap();
    let program = dir.join("examples/lite");
    assert!(program.exists(), "build the examples first: cargo test -p peers-run does");
    program
}

impl World {
    pub(crate) fn new() -> Self {
        let w = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(w.repo()).unwrap();
        w.git(&["init", "-q", "-b", "main"]);
        fs::write(w.repo().join("readme.txt"), "start\n").unwrap();
        w.git(&["add", "."]);
        w.git(&["commit", "-qm", "start"]);
        let options = InitOptions { target: w.repo(), existing: Existing::Refuse, dry_run: false, driver: None, no_commit: false };
        init(&options, &w.env()).unwrap();
        w.config("");
        w.script("as: plain\ncount: ticks\nafter: idle\nturns: []\n");
        w
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn env(&self) -> Env {
        let home = self.dir.path().join("home");
        fs::create_dir_all(&home).unwrap();
        Env::from_pairs([
            ("HOME", home.clone().into_os_string()),
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("XDG_STATE_HOME", home.join("state").into_os_string()),
            ("XDG_CACHE_HOME", home.join("cache").into_os_string()),
            ("XDG_DATA_HOME", home.join("data").into_os_string()),
            ("XDG_CONFIG_HOME", home.join("config").into_os_string()),
        ])
    }

    /// Two peers, `ann` and `bob`, that play `script.yaml`; `more` is further YAML.
    pub(crate) fn config(&self, more: &str) {
        let program = program();
        let script = self.path("script.yaml");
        let peer = |name: &str| {
            format!(
                "- name: {name}\n  tool: claude\n  argv: [{:?}, fake-peer, {:?}, {name}, --output-format, stream-json]\n",
                program.display().to_string(),
                script.display().to_string()
            )
        };
        let text = format!("peers:\n{}{}{more}", peer("ann"), peer("bob"));
        fs::write(self.repo().join(".peers/config.yaml"), text).unwrap();
        self.accept();
    }

    pub(crate) fn goals(&self, entries: &str) {
        fs::write(self.repo().join(".peers/goals.yaml"), format!("goals:\n{entries}")).unwrap();
        self.accept();
    }

    pub(crate) fn accept(&self) {
        let place = self.place();
        let mut disk = place.open_store_disk().unwrap();
        let read = |name: &str| fs::read(self.repo().join(".peers").join(name)).unwrap();
        let (goals, config) = (read("goals.yaml"), read("config.yaml"));
        accept::write(&mut disk, &goals, &config, peers_sys::clock::now(), "test", None).unwrap();
    }

    pub(crate) fn script(&self, text: &str) {
        fs::write(self.path("script.yaml"), text).unwrap();
    }

    pub(crate) fn place(&self) -> Place {
        Place::locate(&self.repo(), &self.env()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.env_clear().envs(self.env().vars().iter().cloned());
        command.arg("run").arg(self.repo()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let out = Command::new("git")
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Op", "-c", "user.email=op@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// The journal verifies and the snapshot agrees with it.
    pub(crate) fn verify_journal(&self) -> peers_core::state::State {
        let mut disk = self.place().open_store_disk().unwrap();
        assert_eq!(store::compare_snapshot(&mut disk).unwrap(), None);
        store::read(&mut disk).unwrap().0
    }
}
