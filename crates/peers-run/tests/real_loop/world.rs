//! A repository, a store of its own, and the program that runs loops on them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use peers_core::state::State;
use peers_model::RunId;
use peers_model::record::{ExitRecord, Line, Record, TickRecord};
use peers_place::Place;
use peers_setup::{Existing, InitOptions, InitReport, init};
use peers_store::project::{self, Project};
use peers_store::runs::{self, RunRecord};
use peers_store::{FsDisk, accept, store};
use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::reap;
use peers_sys::signal::{Signal, signal_verified};
use tempfile::TempDir;

/// So long is waited for something that must come. Reached only when a test fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// The turn after which the gate is green.
pub(crate) const FIX: &[&str] = &["write: {path: fixed, text: 'yes'}", "handoff: Fix it"];

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

    /// The run stopped for this reason, with the code that belongs to it.
    #[track_caller]
    pub(crate) fn stopped(&self, reason: &str, code: i32) -> &Self {
        assert_eq!((self.last_line(), self.code), (format!("Stopped: {reason}").as_str(), code), "{self:#?}");
        self
    }

    /// The run did not start, for a reason that has this in it.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, says: &str) -> &Self {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:#?}");
        assert!(self.stderr.contains(says), "`{says}` is not in {self:#?}");
        self
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

/// Does something that may block on another thread, and waits for it, but not for ever.
#[track_caller]
fn within_patience<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || drop(done.send(work())));
    wait.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("waited too long: {what}"))
}

/// Looks until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "waited too long: {what}");
        thread::yield_now();
    }
}

/// A step that runs a shell command.
pub(crate) fn sh(command: &str) -> String {
    format!("shell: {}", serde_json::Value::from(command))
}

/// A meeting point of a peer and a test.
pub(crate) struct Fifo(PathBuf);

impl Fifo {
    /// The step of a peer that says that it has come so far.
    pub(crate) fn tell(&self) -> String {
        sh(&format!("echo here > {}", self.0.display()))
    }

    /// The step of a peer that waits until the test lets it go on.
    pub(crate) fn wait(&self) -> String {
        sh(&format!("read go < {}", self.0.display()))
    }

    /// Waits until the peer tells.
    #[track_caller]
    pub(crate) fn told(&self) {
        let path = self.0.clone();
        assert!(!within_patience("a peer at a meeting point", move || fs::read(path).unwrap()).is_empty());
    }

    /// Lets the peer go on.
    #[track_caller]
    pub(crate) fn go(&self) {
        let path = self.0.clone();
        within_patience("a peer that waits", move || fs::write(path, "go\n").unwrap());
    }
}

/// A run that goes on beside the test.
pub(crate) struct Live {
    child: Option<Child>,
    identity: ProcIdentity,
}

impl Live {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = Pid::new(i32::try_from(child.id()).unwrap()).unwrap();
        Self { identity: ProcIdentity::of(pid).unwrap(), child: Some(child) }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_verified(&self.identity, signal).unwrap();
    }

    /// Lets it go on after it was stopped (`SIGSTOP`).
    pub(crate) fn go_on(&self) {
        let mut command = Command::new("kill");
        assert!(command.arg("-CONT").arg(self.identity.pid.to_string()).status().unwrap().success());
    }

    /// From now on it may have so many files open at a time, whatever it has open.
    pub(crate) fn may_open(&self, files: u32) {
        let mut command = Command::new("prlimit");
        command.arg("--pid").arg(self.identity.pid.to_string()).arg(format!("--nofile={files}:"));
        assert!(command.status().unwrap().success());
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran {
        let child = self.child.take().unwrap();
        let identity = self.identity.clone();
        let (done, wait) = mpsc::channel();
        thread::spawn(move || drop(done.send(child.wait_with_output().unwrap())));
        if let Ok(out) = wait.recv_timeout(PATIENCE) {
            return out.into();
        }
        drop(signal_verified(&identity, Signal::Kill));
        panic!("the run does not end: {:#?}", wait.recv().map(Ran::from));
    }

    /// Kills it as the kernel would when memory runs out.
    pub(crate) fn crash(self) {
        self.signal(Signal::Kill);
        assert_eq!(self.end().code, -1);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The world of one test.
pub(crate) struct World {
    dir: TempDir,
    name: &'static str,
    store: PathBuf,
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
    /// A repository with one commit, set up for two peers, with a gate that is red until `fixed` exists.
    pub(crate) fn new() -> Self {
        Self::named("repo")
    }

    /// The same in a directory of this name.
    pub(crate) fn named(name: &'static str) -> Self {
        let mut w = Self { dir: tempfile::tempdir().unwrap(), name, store: PathBuf::new() };
        fs::create_dir_all(w.repo()).unwrap();
        w.git(&["init", "-q", "-b", "main"]);
        fs::write(w.repo().join("readme.txt"), "start\n").unwrap();
        w.git(&["add", "."]);
        w.git(&["commit", "-qm", "start"]);
        let options = InitOptions { target: w.repo(), ..InitOptions::default() };
        init(&options, &w.env()).unwrap();
        w.place().store_dir().clone_into(&mut w.store);
        w.config("");
        w.gate("test -f fixed");
        w.play("idle", &[]);
        w
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    /// A place outside the repository.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// The store's disk, by its path alone: the repository may be broken.
    pub(crate) fn disk(&self) -> FsDisk {
        let store = SafeDir::open_shared(self.store.parent().unwrap()).unwrap();
        FsDisk::new(store.subdir(self.store.file_name().unwrap()).unwrap(), None)
    }

    pub(crate) fn fifo(&self, name: &str) -> Fifo {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Fifo(path)
    }

    pub(crate) fn env(&self) -> Env {
        let home = self.dir.path().join("home");
        let policy = home.join("config/peers/sandbox.yaml");
        if !policy.exists() {
            // What a wall holds has tests of its own; here scripts do what no wall would let them.
            fs::create_dir_all(policy.parent().unwrap()).unwrap();
            fs::write(policy, "backend: none\nrequire: 0\n").unwrap();
        }
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
        self.put(".peers/config.yaml", &text);
        self.accept();
    }

    pub(crate) fn goals(&self, entries: &str) {
        self.put(".peers/goals.yaml", &format!("goals:\n{entries}"));
        self.accept();
    }

    /// One gate, `tests`, that runs this command and counts its runs.
    pub(crate) fn gate(&self, command: &str) {
        self.goals(&self.counting_gate("tests", command));
    }

    /// A goal entry whose runs are counted by [`World::gate_runs`].
    pub(crate) fn counting_gate(&self, id: &str, command: &str) -> String {
        let counter = self.path(&format!("ran-{id}"));
        let cmd = serde_json::Value::from(format!("echo x >> {}; {command}", counter.display()));
        format!("- {{id: {id}, type: hard, cmd: {cmd}, pass_when: exit_code == 0}}\n")
    }

    /// How often a gate ran.
    pub(crate) fn gate_runs(&self, id: &str) -> usize {
        fs::read_to_string(self.path(&format!("ran-{id}"))).unwrap_or_default().lines().count()
    }

    /// What the operator does by `peers goals accept` while no loop runs.
    pub(crate) fn accept(&self) {
        let place = self.place();
        let mut disk = place.open_store_disk().unwrap();
        let read = |name: &str| fs::read(self.repo().join(".peers").join(name)).unwrap();
        let (goals, config) = (read("goals.yaml"), read("config.yaml"));
        accept::write(&mut disk, &goals, &config, peers_sys::clock::now(), "test", None).unwrap();
    }

    /// As `init` leaves a repository without a commit: history is counted from nowhere.
    pub(crate) fn unanchor(&self) {
        let mut disk = self.disk();
        let project = project::read(&mut disk).unwrap().unwrap();
        project::write(&mut disk, &Project { base: None, ..project }).unwrap();
        self.git(&["tag", "-d", "peers-baseline"]);
    }

    /// The commit from which history is counted.
    pub(crate) fn anchor(&self) -> Option<String> {
        let project = project::read(&mut self.disk()).unwrap().unwrap();
        project.base.map(|base| base.to_string())
    }

    /// What `peers init --upgrade` does.
    pub(crate) fn upgrade(&self) -> InitReport {
        let options =
            InitOptions { target: self.repo(), existing: Existing::Upgrade, ..InitOptions::default() };
        init(&options, &self.env()).unwrap()
    }

    pub(crate) fn script(&self, text: &str) {
        fs::write(self.path("script.yaml"), text).unwrap();
    }

    /// What the peers do: turn N in tick N, each step one line of YAML. A skeptic turn is always clean.
    pub(crate) fn play(&self, after: &str, turns: &[&[&str]]) {
        let mut text = format!("as: claude\ncount: ticks\nafter: {after}\nturns:\n");
        text.push_str("- on: {prompt: '# Skeptic turn'}\n  steps: [{skeptic: clean}]\n");
        for steps in turns {
            text.push_str(if steps.is_empty() { "- []\n" } else { "-\n" });
            for step in *steps {
                text.extend(["  - ", step, "\n"]);
            }
        }
        self.script(&text);
    }

    pub(crate) fn place(&self) -> Place {
        Place::locate(&self.repo(), &self.env()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_in(&self.repo(), args)
    }

    fn command_in(&self, work: &Path, args: &[&str]) -> Command {
        let mut command = self.bare(program());
        command.arg("run").arg(work).args(args);
        command
    }

    /// A program with the environment of this world and nothing else.
    pub(crate) fn bare(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env().vars().iter().cloned());
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Live {
        Live::start(self.command(args))
    }

    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.start(args).end()
    }

    /// Runs the loop in another work tree.
    #[track_caller]
    pub(crate) fn run_in(&self, work: &Path, args: &[&str]) -> Ran {
        Self::out(self.command_in(work, args))
    }

    /// Runs a command that was made by [`World::command`].
    #[track_caller]
    pub(crate) fn out(command: Command) -> Ran {
        Live::start(command).end()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let out = self.try_git(dir, args);
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    pub(crate) fn try_git(&self, dir: &Path, args: &[&str]) -> Output {
        Command::new("git")
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Op", "-c", "user.email=op@example.invalid"])
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs the command that the exit of the last run names.
    #[track_caller]
    pub(crate) fn do_as_told(&self) {
        let detail = self.exit().detail;
        let command = detail.rsplit('`').nth(1).unwrap_or_else(|| panic!("no command in {detail}"));
        let done = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.dir.path())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{command}: {done:?}");
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits everything, as the operator.
    pub(crate) fn commit(&self, subject: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", subject]);
        self.head()
    }

    /// Uncommitted changes, as git tells them.
    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// Kept copies in the control git dir: name to commit.
    pub(crate) fn salvaged(&self) -> BTreeMap<String, String> {
        let refs = self.git_in(
            &self.store().join("git/control.git"),
            &["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/salvage"],
        );
        refs.lines().filter_map(|l| l.split_once(' ')).map(|(n, c)| (n.to_owned(), c.to_owned())).collect()
    }

    pub(crate) fn git_control(&self, args: &[&str]) -> String {
        self.git_in(&self.store().join("git/control.git"), args)
    }

    /// Writes a file of the repository, as the operator.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.repo().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.repo().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.repo().join(name).symlink_metadata().is_ok()
    }

    /// The text that a peer left in a file outside the repository.
    pub(crate) fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}")).trim_end().to_owned()
    }

    /// The prompt of a tick, as it was sent.
    pub(crate) fn prompt(&self, tick: u64) -> String {
        let dir = self.repo().join(".peers/log/prompts");
        let start = format!("tick-{tick:05}-");
        let mut names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
        let found = names.find(|p| p.file_name().unwrap().to_string_lossy().starts_with(&start));
        fs::read_to_string(found.unwrap_or_else(|| panic!("no prompt of tick {tick}"))).unwrap()
    }

    fn journal_text(&self) -> String {
        let Ok(names) = fs::read_dir(self.store().join("journal")) else { return String::new() };
        let mut paths: Vec<PathBuf> = names.map(|e| e.unwrap().path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
        paths.sort();
        paths.iter().map(|p| fs::read_to_string(p).unwrap()).collect()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.journal_text().lines().map(|l| Line::read(l.as_bytes()).unwrap()).collect()
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.lines().into_iter().map(|l| l.record).collect()
    }

    /// What the mirror was restored for: the tick, if it was in one.
    pub(crate) fn restored(&self) -> Vec<Option<u64>> {
        let tick = |r| if let Record::MirrorRestored(r) = r { Some(r.tick.map(|t| t.0)) } else { None };
        self.records().into_iter().filter_map(tick).collect()
    }

    /// How many records of this kind there are.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.journal_text().matches(&format!("\"event\":\"{event}\"")).count()
    }

    /// Waits until the journal has so many records of this kind.
    #[track_caller]
    pub(crate) fn recorded(&self, event: &str, times: usize) {
        eventually(event, || self.count(event) >= times);
    }

    pub(crate) fn ticks(&self) -> Vec<TickRecord> {
        let tick = |r| if let Record::Tick(tick) = r { Some(*tick) } else { None };
        self.records().into_iter().filter_map(tick).collect()
    }

    /// The record of a tick, of which there is exactly one.
    #[track_caller]
    pub(crate) fn tick(&self, number: u64) -> TickRecord {
        let mut found: Vec<_> = self.ticks().into_iter().filter(|t| t.iteration.0 == number).collect();
        assert_eq!(found.len(), 1, "records of tick {number}");
        found.remove(0)
    }

    /// How the last run ended.
    pub(crate) fn exit(&self) -> ExitRecord {
        let exit = |r| if let Record::Exit(exit) = r { Some(*exit) } else { None };
        self.records().into_iter().rev().find_map(exit).unwrap()
    }

    pub(crate) fn runs(&self) -> Vec<RunRecord> {
        runs::list(&mut self.disk()).unwrap().0
    }

    /// The journal verifies and the snapshot agrees with it.
    #[track_caller]
    pub(crate) fn verify_journal(&self) -> State {
        let mut disk = self.disk();
        assert_eq!(store::compare_snapshot(&mut disk).unwrap(), None);
        store::read(&mut disk).unwrap().0
    }

    /// The journal verifies, no process of any run lives, no tick is open, and every commit since the
    /// first run began has exactly one author.
    #[track_caller]
    pub(crate) fn settled(&self) -> State {
        self.settled_at(&self.repo())
    }

    /// The same, where the loop worked in another work tree.
    #[track_caller]
    pub(crate) fn settled_at(&self, work: &Path) -> State {
        let state = self.dead();
        assert!(state.open.is_none(), "tick {:?} is open", state.open);
        let records = self.records();
        let base = records.iter().find_map(|r| match r {
            Record::RunStarted(started) => Some(started.head.clone()),
            _ => None,
        });
        let range = format!("{}..HEAD", base.unwrap());
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for record in &records {
            let named = match record {
                Record::RunStarted(r) => r.operator.clone(),
                Record::CommitsSeen(r) => r.commits.clone(),
                Record::Tick(r) => [&r.commits[..], &r.foreign, &r.own].concat(),
                _ => Vec::new(),
            };
            for commit in named {
                *times.entry(commit.to_string()).or_default() += 1;
            }
        }
        for commit in self.git_in(work, &["rev-list", &range]).lines() {
            let log = self.git_in(work, &["log", "-1", "--format=%h %an: %s", commit]);
            assert_eq!(times.get(commit).copied(), Some(1), "how often {log} has an author");
        }
        state
    }

    /// The journal verifies and no process of any run lives.
    #[track_caller]
    pub(crate) fn dead(&self) -> State {
        for run in self.run_ids() {
            let left = reap::marked(&run, None, None).unwrap();
            assert!(left.is_empty(), "processes of run {run} live: {left:?}");
        }
        self.verify_journal()
    }

    fn run_ids(&self) -> Vec<RunId> {
        let id = |l: &str| Line::read(l.as_bytes()).ok().and_then(|l| l.run_id);
        let mut ids: Vec<RunId> = self.journal_text().lines().filter_map(id).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        for run in self.run_ids() {
            for left in reap::marked(&run, None, None).unwrap_or_default() {
                drop(signal_verified(&left, Signal::Kill));
            }
        }
    }
}

/// All files below a directory with their bytes; links with their targets.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                todo.push(path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(path, target.into_os_string().into_encoded_bytes());
            } else if meta.is_file() {
                let bytes = fs::read(&path).unwrap();
                found.insert(path, bytes);
            }
        }
    }
    found
}
