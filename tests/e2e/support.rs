//! A repository with a home of its own, and the program under test.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program, beside the directory of this test binary.
pub(crate) fn program() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let profile = here.parent().and_then(Path::parent).unwrap();
    let program = profile.join("peers");
    assert!(
        program.is_file(),
        "{} is missing: run `cargo test --workspace`, or `cargo build -p peers-cli` first",
        program.display()
    );
    program
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// How a command in the background ended.
    pub(crate) fn waited(child: Child) -> Self {
        Self::of(&child.wait_with_output().unwrap())
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON, whose schema is this one.
    #[track_caller]
    pub(crate) fn json(&self, schema: &str) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}:\n{}", self.out));
        assert_eq!(value["schema"], schema, "{}", self.out);
        value
    }

    /// Asserts that this stands on standard output.
    #[track_caller]
    pub(crate) fn out_has(&self, text: &str) -> &Self {
        self.holds(&self.out, text, true)
    }

    /// Asserts that this does not stand on standard output.
    #[track_caller]
    pub(crate) fn out_lacks(&self, text: &str) -> &Self {
        self.holds(&self.out, text, false)
    }

    /// Asserts that this stands on standard error.
    #[track_caller]
    pub(crate) fn err_has(&self, text: &str) -> &Self {
        self.holds(&self.err, text, true)
    }

    /// Asserts that this does not stand on standard error.
    #[track_caller]
    pub(crate) fn err_lacks(&self, text: &str) -> &Self {
        self.holds(&self.err, text, false)
    }

    #[track_caller]
    fn holds(&self, stream: &str, text: &str, expected: bool) -> &Self {
        assert_eq!(stream.contains(text), expected, "`{text}` in:\n{stream}\nof {self:?}");
        self
    }

    pub(crate) fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

/// A lock that a process holds which is none of those that ask who does.
pub(crate) struct Held {
    pub(crate) process: Child,
}

impl Held {
    /// Takes the lock of this file and lets another process keep it, which is given to `content` for what is to
    /// stand in the file.
    pub(crate) fn of(path: &Path, content: impl FnOnce(u32) -> Option<Value>) -> Self {
        let mut lock = std::fs::File::options().write(true).create(true).truncate(false).open(path).unwrap();
        lock.lock().unwrap();
        let its = Stdio::from(lock.try_clone().unwrap());
        // It ends with its standard input.
        let process = Command::new("cat").stdin(Stdio::piped()).stdout(its).spawn().unwrap();
        if let Some(content) = content(process.id()) {
            lock.set_len(0).unwrap();
            lock.write_all(format!("{content}\n").as_bytes()).unwrap();
        }
        Self { process }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// Whether tests may make containers.
pub(crate) fn tests_podman() -> bool {
    std::env::var_os("PEERS_TEST_PODMAN").is_some_and(|value| value == "1")
}

/// A repository with a home of its own.
pub(crate) struct World {
    tmp: TempDir,
}

impl World {
    /// Nothing but a home and an empty directory `repo`.
    pub(crate) fn bare() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        for dir in ["home", "repo", "scripts"] {
            std::fs::create_dir(tmp.path().join(dir)).unwrap();
        }
        let world = Self { tmp };
        // What a wall holds has tests of its own; here scripts do what no wall would let them, unless somebody wants
        // to see which (`PEERS_TEST_WALL=bwrap`).
        world.set_wall(&std::env::var("PEERS_TEST_WALL").unwrap_or_else(|_| "none".to_owned()));
        world
    }

    /// The wall by the operator's own file. Scripts count their turns beside themselves.
    pub(crate) fn set_wall(&self, wall: &str) {
        let config = self.path("home/config/peers");
        std::fs::create_dir_all(&config).unwrap();
        let policy = format!("backend: {wall}\nrequire: 0\npeers: {{write: [{:?}]}}\n", self.path("scripts"));
        std::fs::write(config.join("sandbox.yaml"), policy).unwrap();
    }

    /// Whether this machine can put a wall up; one that it cannot is no error unless `PEERS_WALLS=all`.
    /// Podman is tried only where `PEERS_TEST_PODMAN=1`, and must be there then.
    pub(crate) fn has_wall(&self, wall: &str) -> bool {
        let podman = wall == "podman";
        if podman && !tests_podman() {
            eprintln!("skipped behind podman: PEERS_TEST_PODMAN is not 1");
            return false;
        }
        let tried = self.peers(&["sandbox", "shell", "--gate", "--sandbox", wall, "-c", "exit 0"]);
        let there = tried.code == Some(0);
        let all = podman || std::env::var_os("PEERS_WALLS").is_some_and(|walls| walls == "all");
        assert!(there || !all, "{wall} is not there: {}", tried.err);
        there
    }

    /// A repository with one commit.
    pub(crate) fn repo() -> Self {
        let world = Self::bare();
        world.git(&["init", "-q", "-b", "main"]);
        world.write("README.md", "# sample\n");
        world.commit("First");
        world
    }

    /// A repository that is set up, with one real gate and the two scripted peers `ann` and `ben`.
    pub(crate) fn ready(gate: &str) -> Self {
        let world = Self::repo();
        world.set_up(gate);
        world
    }

    /// Sets it up with one real gate and the two scripted peers `ann` and `ben`.
    pub(crate) fn set_up(&self, gate: &str) {
        self.peers(&["init"]).exits(0);
        self.write(".peers/goals.yaml", &goals(&[("real", gate)]));
        self.script("ann", "after: repeat\nturns:\n- - write: {path: ann.txt, append: \"{{turn}}\\n\"}\n  - handoff: Work of ann\n");
        self.script("ben", "after: repeat\nturns:\n- - write: {path: ben.txt, append: \"{{turn}}\\n\"}\n  - handoff: Work of ben\n");
        self.accept_config("");
    }

    /// A configuration of the two scripted peers.
    pub(crate) fn config(&self, more: &str) -> String {
        let mut text = "peers:\n".to_owned();
        for peer in ["ann", "ben"] {
            let script = self.path(&format!("scripts/{peer}.yaml"));
            let argv = serde_json::json!([program(), "fake-peer", "--script", script]);
            writeln!(text, "  - name: {peer}\n    tool: plain\n    argv: {argv}").unwrap();
        }
        text.push_str(more);
        text
    }

    pub(crate) fn script(&self, peer: &str, text: &str) {
        std::fs::write(self.path(&format!("scripts/{peer}.yaml")), text).unwrap();
    }

    /// The same script for both peers.
    pub(crate) fn scripts(&self, text: &str) {
        for peer in ["ann", "ben"] {
            self.script(peer, text);
        }
    }

    /// Makes a FIFO; a name without a directory lies below the temporary directory.
    pub(crate) fn fifo(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.tmp.path().join(path);
        assert!(self.command("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Takes the run lock and writes this into it, in the name of a process that is there.
    pub(crate) fn hold_lock(&self, mut content: Value) -> Held {
        Held::of(&self.store().join("run.lock"), |pid| {
            content["pid"] = pid.into();
            Some(content)
        })
    }

    /// A path below the temporary directory.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.tmp.path().join(path)
    }

    /// Makes a program of a script: its path below the temporary directory.
    pub(crate) fn executable(&self, path: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// `PATH` with this directory in front.
    pub(crate) fn search_path(first: &Path) -> String {
        format!("{}:{}", first.display(), std::env::var("PATH").unwrap())
    }

    /// A path in the repository.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.tmp.path().join("repo").join(path)
    }

    /// Every path below the temporary directory, with what it holds.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn visit(dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                // Who holds a lock is no content.
                if path.ends_with("op.lock") || path.ends_with(".lock") {
                    continue;
                }
                if kind.is_dir() {
                    visit(&path, all);
                }
                let bytes = if kind.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                all.insert(path, bytes);
            }
        }
        let mut all = BTreeMap::new();
        visit(&self.path(""), &mut all);
        all
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// A command with a clean environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("home/state"))
            .env("XDG_CACHE_HOME", self.path("home/cache"))
            .env("XDG_DATA_HOME", self.path("home/data"))
            .env("XDG_CONFIG_HOME", self.path("home/config"))
            .env("TMPDIR", self.tmp.path())
            .env("USER", "tester")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.at(""))
            .stdin(Stdio::null());
        // Where a user without root has containers.
        for name in ["XDG_RUNTIME_DIR", "CONTAINERS_STORAGE_CONF", "CONTAINERS_CONF"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
    }

    /// `peers ARGS` in the repository.
    pub(crate) fn peers(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(program()).args(args).output().unwrap())
    }

    /// `peers ARGS` in the background, with both streams kept.
    pub(crate) fn spawned(&self, args: &[&str]) -> Child {
        let mut command = self.command(program());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// `peers-ctl ARGS` in the repository.
    pub(crate) fn ctl(&self, args: &[&str]) -> Ended {
        Ended::of(&self.command(program().with_file_name("peers-ctl")).args(args).output().unwrap())
    }

    /// A command in front of a terminal on which this is typed: how it ended, and what stood there.
    pub(crate) fn on_terminal(command: Command, typed: &str) -> (Option<i32>, String) {
        Self::on_terminal_until(command, typed, "\0", || {})
    }

    /// The same, and what is done once this stands there.
    pub(crate) fn on_terminal_until(
        mut command: Command,
        typed: &str,
        seen: &str,
        then: impl FnOnce(),
    ) -> (Option<i32>, String) {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let end = || std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let mut terminal = std::fs::File::from(terminal);
        // It waits there until it is asked for.
        terminal.write_all(typed.as_bytes()).unwrap();
        let (mut shown, mut piece, mut then) = (Vec::new(), [0; 4096], Some(then));
        // The last end was closed: an error, as terminals tell it.
        while let Ok(read @ 1..) = terminal.read(&mut piece) {
            shown.extend_from_slice(&piece[..read]);
            if String::from_utf8_lossy(&shown).contains(seen)
                && let Some(then) = then.take()
            {
                then();
            }
        }
        (child.wait().unwrap().code(), String::from_utf8(shown).unwrap().replace('\r', ""))
    }

    /// Accepts goals and configuration, other commands too.
    #[track_caller]
    pub(crate) fn accept(&self, more: &[&str]) -> Ended {
        self.accept_at(self.at("").to_str().unwrap(), more)
    }

    /// The same for another directory.
    #[track_caller]
    pub(crate) fn accept_at(&self, dir: &str, more: &[&str]) -> Ended {
        let args = [&["-C", dir, "goals", "accept"], more].concat();
        let first = self.peers(&args);
        let Some(digest) = first.err.split("--widen ").nth(1).filter(|_| first.code == Some(5)) else {
            return first.exits(0);
        };
        let digest = digest.split('`').next().unwrap();
        self.peers(&[&args[..], &["--widen", digest]].concat()).exits(0)
    }

    /// Writes goals with these gates and nothing else, and accepts them.
    #[track_caller]
    pub(crate) fn accept_goals(&self, gates: &[(&str, &str)]) {
        self.write(".peers/goals.yaml", &goals(gates));
        self.accept(&[]);
    }

    /// Writes a configuration of the two scripted peers, and accepts it.
    #[track_caller]
    pub(crate) fn accept_config(&self, more: &str) {
        self.write(".peers/config.yaml", &self.config(more));
        self.accept(&[]);
    }

    /// `git ARGS` in the repository; its output without the last line end.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let identity =
            ["-c", "user.name=Op", "-c", "user.email=op@example.org", "-c", "commit.gpgsign=false"];
        let done = Ended::of(&self.command("git").args(identity).args(args).output().unwrap()).exits(0);
        done.out.trim_end().to_owned()
    }

    /// Commits everything.
    pub(crate) fn commit(&self, subject: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", subject]);
        self.head()
    }

    /// Makes a commit, and cuts its object short: who reads on would wait for ever.
    pub(crate) fn cut_head(&self) {
        let message = "What there is to say of it, line by line\n".repeat(300);
        self.git(&["commit", "-q", "--allow-empty", "-m", &message]);
        let id = self.head();
        let object = self.at(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let whole = std::fs::read(&object).unwrap();
        std::fs::remove_file(&object).unwrap();
        std::fs::write(&object, &whole[..whole.len() * 2 / 3]).unwrap();
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The directory of the trusted store.
    pub(crate) fn store(&self) -> PathBuf {
        let stores = self.path("home/state/peers");
        let mut found = std::fs::read_dir(&stores).unwrap().map(|entry| entry.unwrap().path());
        let store = found.next().expect("a store");
        assert!(found.next().is_none(), "more than one store");
        store
    }

    /// The records of the journal.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.store().join("journal/000001.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The records of one kind.
    pub(crate) fn records(&self, event: &str) -> Vec<Value> {
        self.journal().into_iter().filter(|record| record["event"] == event).collect()
    }
}

/// Asserts that these fields of an object have these values.
#[track_caller]
pub(crate) fn holds(object: &Value, fields: &Value) {
    for (key, value) in fields.as_object().unwrap() {
        assert_eq!(&object[key], value, "{key} of {object}");
    }
}

/// Waits until somebody writes the line `up` into a FIFO.
pub(crate) fn heard(fifo: &Path) {
    let mut line = String::new();
    BufReader::new(std::fs::File::open(fifo).unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
}

/// Goals with these gates and nothing else.
pub(crate) fn goals(gates: &[(&str, &str)]) -> String {
    let mut text = "goals:\n".to_owned();
    for (id, cmd) in gates {
        let cmd = serde_json::json!(cmd);
        writeln!(text, "  - {{id: {id}, type: hard, cmd: {cmd}, pass_when: exit_code == 0}}").unwrap();
    }
    text
}
