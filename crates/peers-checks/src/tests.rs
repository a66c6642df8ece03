//! Against real repositories and a real store.

mod advice;
mod bug_ledger;
mod codemap;
mod cx;
mod history;
mod kept;
mod no_secrets;
mod plan;
mod self_review;
mod shortcuts;
mod skips;
mod sources;
mod staged;
mod streak;
mod suite;

use std::path::{Path, PathBuf};
use std::process::Command;

use peers_git::{ControlDir, Git, PeerRepo, SyntheticGit};
use peers_model::config::Role;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit};
use peers_model::record::{
    AckTarget, Digests, OperatorOp, OperatorRecord, PeerRule, Record, Rules, RunStarted, TickOutcome,
    TickRecord, TickStarted,
};
use peers_model::{BugId, CommitId, PeerName, RunId, TickNo, Timestamp, Tokens, TreeId, Usd};
use peers_store::project::{self, Project};
use peers_store::{FsDisk, Store};
use peers_sys::SafeDir;

use crate::{Asked, CheckCx, CouldNot, Outcome};

/// A handoff that lacks nothing.
fn handoff(subject: &str) -> String {
    format!(
        "{subject}\n\n## Self-Review\n{}\n\nPeer-Status: handoff\nSelf-Review: pass\n",
        "Read the whole diff again, ran the tests, looked at the error paths and the limits of each loop."
    )
}

/// A repository with a trusted store beside it.
struct World {
    dir: tempfile::TempDir,
    work: PathBuf,
    store: Option<Store<FsDisk>>,
    runs: u64,
    tick: u64,
    clock: i64,
}

impl World {
    /// One commit, which is the base; no run yet.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("repo");
        std::fs::create_dir(&work).unwrap();
        let mut world = Self { dir, work, store: None, runs: 0, tick: 0, clock: 1_700_000_000_000 };
        world.git(&["init", "-q", "-b", "main", "--template="]);
        world.commit("first", &[("a.txt", "one\n")]);
        let mut disk = world.disk();
        let base = Some(world.head());
        let project =
            Project { v: 1, path: "x".into(), dev: 1, ino: 1, created_at: Timestamp::default(), base };
        project::write(&mut disk, &project).unwrap();
        world.store = Some(Store::open(disk).unwrap().0);
        world
    }

    /// With a run that has begun at HEAD.
    fn running() -> Self {
        let mut world = Self::new();
        world.start_run(Vec::new());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn disk(&self) -> FsDisk {
        FsDisk::new(SafeDir::create_root(self.path("store")).unwrap(), None)
    }

    fn start_run(&mut self, operator: Vec<CommitId>) {
        self.runs += 1;
        let peer = |name: &str| PeerRule { name: name_of(name), tool: name.into(), role: Role::Default };
        let started = RunStarted {
            pid: 1,
            version: "0".into(),
            branch: Some("main".into()),
            head: self.head(),
            operator,
            digests: Digests::default(),
            sandbox: "none".into(),
            max_ticks: None,
            rules: Rules { peers: vec![peer("claude"), peer("codex")], ..Rules::default() },
            torn: None,
        };
        self.append(Record::RunStarted(Box::new(started)));
    }

    fn append(&mut self, record: Record) {
        self.clock += 1000;
        let at = Timestamp::from_millis(self.clock);
        let run = RunId::new(format!("{:016x}", self.runs)).unwrap();
        self.store.as_mut().unwrap().append(at, Some(&run), &[record]).unwrap();
    }

    fn begin_tick(&mut self, peer: &str) {
        self.begin_tick_with(peer, |_| {});
    }

    fn begin_tick_with(&mut self, peer: &str, change: impl FnOnce(&mut TickStarted)) {
        self.tick += 1;
        let mut started = TickStarted {
            tick: TickNo(self.tick),
            peer: name_of(peer),
            head_before: self.head(),
            tree_before: TreeId::new("e".repeat(40)).unwrap(),
            content_before: None,
            branch: Some("main".into()),
            prompt_sha256: String::new(),
            prompt_bytes: 0,
            warnings_taken: 0,
            skeptic: false,
            inbox: std::collections::BTreeMap::new(),
            messages: Vec::new(),
            asked: Vec::new(),
            outside: false,
            course: None,
        };
        change(&mut started);
        self.append(Record::TickStarted(Box::new(started)));
    }

    /// Ends the open tick with these commits.
    fn end_tick(&mut self, peer: &str, commits: Vec<CommitId>, change: impl FnOnce(&mut TickRecord)) {
        let mut record = tick_record(TickNo(self.tick), name_of(peer), self.head());
        record.commits = commits;
        change(&mut record);
        self.append(Record::Tick(Box::new(record)));
    }

    /// A whole turn with one commit.
    fn turn(&mut self, peer: &str, message: &str) -> CommitId {
        self.turn_with(peer, message, &[])
    }

    fn turn_with(&mut self, peer: &str, message: &str, files: &[(&str, &str)]) -> CommitId {
        self.begin_tick(peer);
        let id = self.commit(message, files);
        self.end_tick(peer, vec![id.clone()], |_| {});
        id
    }

    /// The operator accepts a configuration with this beside two peers.
    fn accept_config(&mut self, more: &str) {
        let config =
            format!("peers: [{{name: claude, argv: [claude]}}, {{name: codex, argv: [codex]}}]\n{more}");
        let read = peers_store::load::decode(peers_store::load::Source::Config, config.as_bytes());
        read.and_then(peers_store::load::load_config).unwrap();
        let at = Timestamp::from_millis(self.clock);
        peers_store::accept::write(&mut self.disk(), b"goals: []\n", config.as_bytes(), at, "ann", None)
            .unwrap();
    }

    fn ack(&mut self, bug: &str) {
        let target = AckTarget::Bug(BugId::new(bug).unwrap());
        let op = OperatorOp::Ack { target, reason: "agreed".into() };
        self.append(Record::Operator(OperatorRecord { op, by: "ann".into() }));
    }

    fn commit(&self, message: &str, files: &[(&str, &str)]) -> CommitId {
        for (name, text) in files {
            let path = self.work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    fn head(&self) -> CommitId {
        CommitId::new(self.git(&["rev-parse", "HEAD"]).trim()).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.work, self.dir.path(), args)
    }

    fn control(&self) -> ControlDir {
        let mut control = ControlDir::open_or_create(&self.path("control.git"), program()).unwrap();
        let _imported = control.import(&PeerRepo::open(&self.work).unwrap(), None).unwrap();
        control
    }

    fn asked(&self) -> Asked<'_> {
        Asked { repo: &self.work, control: None, head: None, base: None }
    }

    fn cx(&self) -> CheckCx {
        CheckCx::open(self.asked(), Some(&mut self.disk())).unwrap()
    }

    fn check(&self, name: &str) -> Outcome {
        self.check_with(name, &[])
    }

    /// History before HEAD is not looked at from now on.
    fn base_here(&mut self) {
        let mut disk = self.disk();
        let mut found = project::read(&mut disk).unwrap().unwrap();
        found.base = Some(self.head());
        project::write(&mut disk, &found).unwrap();
    }

    /// As in a clone that peers does not know.
    fn without_store(&self, name: &str) -> Outcome {
        crate::run(name, &CheckCx::open(self.asked(), None).unwrap(), &[]).unwrap()
    }

    fn check_with(&self, name: &str, flags: &[&str]) -> Outcome {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        crate::run(name, &self.cx(), &flags).unwrap()
    }
}

fn name_of(name: &str) -> PeerName {
    PeerName::new(name).unwrap()
}

fn tick_record(iteration: TickNo, peer: PeerName, head: CommitId) -> TickRecord {
    let mut exit = PeerExit::interrupted(1000);
    exit.class = ExitClass::Ok;
    exit.api = ApiClass::None;
    TickRecord {
        iteration,
        peer,
        tool: "plain".into(),
        role: Role::Default,
        outcome: TickOutcome::Handoff,
        success: true,
        classification: "success".into(),
        soft_fail_reason: None,
        exit,
        recovered: false,
        outside: false,
        rescued: false,
        started_at: Timestamp::default(),
        gate_ms: 0,
        head_before: head.clone(),
        head_after: head,
        tree_after: TreeId::new("e".repeat(40)).unwrap(),
        content_after: None,
        branch: Some("main".into()),
        commits: Vec::new(),
        foreign: Vec::new(),
        own: Vec::new(),
        corrected: None,
        salvage: None,
        dirty: false,
        product_change: false,
        tree_changed: false,
        evidence: false,
        blocking_report: false,
        warnings_emitted: Vec::new(),
        reviews: Vec::new(),
        soft_reviews_seen: 0,
        soft_reviews_rejected: 0,
        scopes: std::collections::BTreeMap::new(),
        skeptic: None,
        blocked_on: None,
        bugs_closed: 0,
        bugs_reported: 0,
        prewarned: false,
        misnamed: false,
        justification: None,
        verdicts: Vec::new(),
        git_tampered: Vec::new(),
        published: Vec::new(),
        prompt_bytes: 0,
        usd_warned: None,
        course: None,
        gates: std::collections::BTreeMap::new(),
        spent_tokens_total: Tokens::default(),
        spent_usd_total: Usd::ZERO,
        peer_state_after: "healthy".into(),
    }
}

fn program() -> Git {
    Git::locate(&std::env::var_os("PATH").unwrap()).unwrap()
}

fn git_in(dir: &Path, home: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program().program());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.org");
        command.env(format!("GIT_{role}_DATE"), "1700000000 +0100");
    }
    let output = command.current_dir(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A pristine checkout of HEAD as the proof run makes it.
fn pristine(world: &World, control: &ControlDir) -> PathBuf {
    let dir = world.path("pristine");
    let objects_dir = PeerRepo::open(&world.work).unwrap().objects_dir();
    let git = SyntheticGit { objects_dir, shallow: Vec::new(), tags: Vec::new() };
    control.checkout_pristine(&world.head(), &dir, &git).unwrap();
    dir
}

fn no_store(world: &World) -> Result<CheckCx, CouldNot> {
    CheckCx::open(world.asked(), None)
}
