//! Journals made of handcrafted records over a real store, and what the views make of them.

mod advice;
mod attention;
mod caveats;
mod compare;
mod converge;
mod feed;
mod fleet;
mod handoffs;
mod hostile;
mod info;
mod money;
mod next;
mod notable;
mod range;
mod replay;
mod report;
mod row;
mod status;
mod unreadable;

use super::*;
use peers_core::bugs::{Author, Counts, Ledger, LedgerCommit, OpenBugs, PathTouched};
use peers_core::cheat::WEAKENED;
use peers_core::state::State;
use peers_git::{DirtyFile, DirtyStatus, Git, PeerRepo};
use peers_model::config::{Hook, Role};
use peers_model::goal::TreeChoice;
use peers_model::outcome::{
    ApiClass, BudgetKind, ErrorKind, ExitClass, Matched, PeerExit, StopReason, TamperKind, Usage,
};
use peers_model::record::{
    AcceptedReview, AckTarget, BranchMove, CheckpointRecord, Cooling, CorrectionKind, CorrectionPlanned,
    Digests, ExitProof, ExitRecord, GateRule, GatesRecord, HookFailed, Line, MirrorRestored, MoveKind,
    OperatorOp, OperatorRecord, PeerRule, PeerSpawned, ProofRecord, Record, Rules, RunStarted, ScopeMove,
    SkepticVerdict, SoftRuleEntry, TickOutcome, TickRecord, TickStarted, WaitCause,
};
use peers_model::review::SoftRule;
use peers_model::verdict::{Judged, Place, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, Tokens, TreeId, Usd};
use peers_store::load::{load_config, load_goals};
use peers_store::project::{self, Project};
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, FsDisk, Journal, JournalError, Position, Store, accept};
use peers_sys::{SafeDir, term};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const BEGAN: i64 = 1_700_000_000_000;
const BOOT: &str = "boot-one";

/// A store and a `.peers/`.
struct World {
    dir: tempfile::TempDir,
    store: Store<FsDisk>,
    now: i64,
    run: RunId,
}

impl World {
    /// Set up, and nothing run.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(&dir);
        let project = Project {
            v: 1,
            path: "/home/ann/repo".into(),
            dev: 1,
            ino: 1,
            created_at: Timestamp::from_millis(BEGAN),
            base: None,
        };
        project::write(&mut disk, &project).unwrap();
        let config = "peers:\n- name: claude\n  argv: [claude]\n- name: codex\n  argv: [codex]\nhealth: {idle_timeout_s: 9}\nbudget: {max_usd: 5.0, max_iterations: 10}\n";
        accept::write(
            &mut disk,
            b"goals: []\n",
            config.as_bytes(),
            Timestamp::from_millis(BEGAN),
            "ann",
            None,
        )
        .unwrap();
        let store = Store::open(disk).unwrap().0;
        Self { dir, store, now: BEGAN, run: RunId::new("00000000000000aa").unwrap() }
    }

    /// Accepts another budget.
    fn budget(&mut self, budget: &str) {
        let config = format!(
            "peers:\n- {{name: claude, argv: [claude]}}\n- {{name: codex, argv: [codex]}}\nbudget: {budget}\n"
        );
        let at = Timestamp::from_millis(BEGAN);
        accept::write(self.store.disk(), b"goals: []\n", config.as_bytes(), at, "ann", None).unwrap();
    }

    /// Accepts other goals.
    fn accept_goals(&mut self, goals: &str) {
        let config = "peers:\n- {name: claude, argv: [claude]}\n- {name: codex, argv: [codex]}\n";
        let at = Timestamp::from_millis(BEGAN);
        accept::write(self.store.disk(), goals.as_bytes(), config.as_bytes(), at, "ann", None).unwrap();
    }

    /// With a run that has begun.
    fn running() -> Self {
        let mut world = Self::new();
        world.start(rules());
        world
    }

    fn start(&mut self, rules: Rules) {
        let mut record = run_record(&self.run);
        record.started_at = Timestamp::from_millis(self.now);
        runs::write(self.store.disk(), &record).unwrap();
        let started = RunStarted {
            pid: 7,
            version: "0.1.0".into(),
            branch: Some("main".into()),
            head: commit('a'),
            operator: Vec::new(),
            digests: Digests::default(),
            sandbox: "none".into(),
            max_ticks: None,
            rules,
            torn: None,
        };
        self.append(Record::RunStarted(Box::new(started)));
    }

    fn append(&mut self, record: Record) {
        self.now += 1000;
        let at = Timestamp::from_millis(self.now);
        self.store.append(at, Some(&self.run), &[record]).unwrap();
    }

    /// Appends a record of no run.
    fn alone(&mut self, record: Record) {
        self.now += 1000;
        self.store.append(Timestamp::from_millis(self.now), None, &[record]).unwrap();
    }

    fn begin_tick(&mut self, tick: u64, peer: &str) {
        self.append(Record::TickStarted(Box::new(started(tick, peer))));
    }

    fn end_tick(&mut self, tick: u64, peer: &str, change: impl FnOnce(&mut TickRecord)) {
        let mut record = tick_record(tick, peer);
        change(&mut record);
        self.append(Record::Tick(Box::new(record)));
    }

    fn tick(&mut self, tick: u64, peer: &str, change: impl FnOnce(&mut TickRecord)) {
        self.begin_tick(tick, peer);
        self.end_tick(tick, peer, change);
    }

    fn gates(&mut self, tick: u64, verdicts: Vec<Judged>) {
        self.append(Record::Gates(GatesRecord {
            iteration: TickNo(tick),
            took_ms: 100,
            verdicts,
            green: None,
            of: None,
        }));
    }

    fn exit(&mut self, reason: StopReason, detail: &str) {
        let exit = ExitRecord {
            reason: reason.clone(),
            detail: detail.to_owned(),
            ticks_in_run: 1,
            signal: None,
            head: Some(commit('b')),
            proof: None,
            in_gates: false,
        };
        self.append(Record::Exit(Box::new(exit)));
        let mut record = run_record(&self.run);
        record.ended_at = Some(Timestamp::from_millis(self.now));
        record.exit_code = Some(reason.exit_code());
        record.detail = detail.to_owned();
        record.reason = Some(reason);
        runs::write(self.store.disk(), &record).unwrap();
    }

    fn disk(&self) -> FsDisk {
        disk(&self.dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn asked(&self, lock: Lock) -> Asked {
        // Two minutes later.
        let mut asked = Asked::new(Timestamp::from_millis(self.now + 120_000), Some(BOOT.into()), lock);
        asked.ticks = 10;
        asked
    }

    fn view(&self) -> LoopView {
        LoopView::read(&mut self.disk(), &self.asked(Lock::Free))
    }

    fn view_held(&self) -> LoopView {
        let lock = Lock::Held { pid: Some(7), run_id: Some(self.run.to_string()) };
        LoopView::read(&mut self.disk(), &self.asked(lock))
    }

    fn read(&self, asked: &Asked) -> LoopView {
        LoopView::read(&mut self.disk(), asked)
    }

    fn text(&self) -> String {
        status_text(&self.view(), Colour::Plain)
    }

    /// The status for programs.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&status_json(&self.view())).unwrap()
    }

    fn report(&self) -> Report {
        Report::read(&mut self.disk(), &self.asked(Lock::Free))
    }

    /// The report for people, cells of its tables not filled up.
    fn page(&self) -> String {
        squeezed(&report_markdown(&self.report()))
    }

    /// Another run begins.
    fn another_run(&mut self, id: &str) {
        self.run = RunId::new(id).unwrap();
        self.start(rules());
    }

    /// Changes what stands in the journal first.
    fn tamper(&self, from: &str, to: &str) {
        let path = self.path("store/journal/000001.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed);
        std::fs::write(&path, changed).unwrap();
    }

    /// Changes the record of the newest run.
    fn amend(&mut self, change: impl FnOnce(&mut RunRecord)) {
        let mut record = runs::all(self.store.disk()).unwrap().pop().unwrap();
        change(&mut record);
        runs::write(self.store.disk(), &record).unwrap();
    }
}

/// Makes it a turn that failed in this way.
fn fail(tick: &mut TickRecord, outcome: TickOutcome) {
    (tick.success, tick.outcome) = (false, outcome);
}

/// Makes it a turn after which its peer needs its operator.
fn refuse(tick: &mut TickRecord, api: ApiClass) {
    fail(tick, TickOutcome::NeedsOperator);
    (tick.exit.class, tick.exit.api) = (ExitClass::Nonzero, api);
}

/// Makes it a turn that says what is in its way.
fn block(tick: &mut TickRecord, on: &str) {
    fail(tick, TickOutcome::Blocked);
    tick.blocked_on = Some(on.into());
}

fn disk(dir: &tempfile::TempDir) -> FsDisk {
    let root = |name: &str| SafeDir::create_root(dir.path().join(name)).unwrap();
    FsDisk::new(root("store"), Some(root("peers")))
}

fn commit(c: char) -> CommitId {
    CommitId::new(c.to_string().repeat(40)).unwrap()
}

fn tree(c: char) -> TreeId {
    TreeId::new(c.to_string().repeat(40)).unwrap()
}

fn goal(id: &str) -> GoalId {
    GoalId::new(id).unwrap()
}

fn name(name: &str) -> PeerName {
    PeerName::new(name).unwrap()
}

fn gate(id: &str) -> GateRule {
    GateRule {
        id: goal(id),
        tree: TreeChoice::Auto,
        reads_history: false,
        shipped: false,
        digest: format!("digest-of-{id}"),
        expensive: false,
        group: None,
        weight: 1,
    }
}

fn rules() -> Rules {
    let peer = |n: &str| PeerRule { name: name(n), tool: n.into(), role: Role::Default };
    Rules {
        peers: vec![peer("claude"), peer("codex")],
        max_retries: 1,
        recovery_interval: 8,
        gates: vec![gate("tests-pass"), gate("lint-clean")],
        soft: vec![SoftRuleEntry {
            id: goal("docs-read"),
            rule: SoftRule::Both { needed: 1 },
            every: 1,
            check: None,
            needs: Vec::new(),
        }],
        continue_without_peer: false,
        skeptic_rounds: 1,
        skeptic_attempts: 3,
        unwatched: false,
        dry_run: false,
        course: None,
    }
}

/// Runs of blanks as one: cells of a table are filled up.
fn squeezed(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

fn run_record(id: &RunId) -> RunRecord {
    RunRecord {
        v: 1,
        run_id: id.clone(),
        argv: vec!["peers".into(), "run".into()],
        request: peers_model::RunRequest::default(),
        version: "0.1.0".into(),
        sandbox: "none".into(),
        tier: 0,
        credentials: std::collections::BTreeMap::new(),
        digests: Digests::default(),
        branch: Some("main".into()),
        workdir: "/home/ann/repo".into(),
        own_branch: false,
        into: None,
        base: Some(commit('a')),
        pid: 7,
        starttime: Some(1),
        boot_id: Some(BOOT.into()),
        started_at: Timestamp::from_millis(BEGAN),
        ready_at: None,
        ended_at: None,
        reason: None,
        detail: String::new(),
        exit_code: None,
        signal: None,
        iteration: 0,
        ticks_in_run: 0,
        head: None,
        proof: None,
        redactions: 0,
    }
}

fn started(tick: u64, peer: &str) -> TickStarted {
    TickStarted {
        tick: TickNo(tick),
        peer: name(peer),
        head_before: commit('a'),
        tree_before: tree('1'),
        content_before: None,
        branch: Some("main".into()),
        prompt_sha256: "0".repeat(64),
        prompt_bytes: 4096,
        warnings_taken: 0,
        skeptic: false,
        inbox: std::collections::BTreeMap::new(),
        messages: Vec::new(),
        asked: Vec::new(),
        outside: false,
        course: None,
    }
}

/// A handoff from `a` to `b` at tree `1` that took three minutes.
fn tick_record(tick: u64, peer: &str) -> TickRecord {
    let mut exit = PeerExit::interrupted(180_000);
    exit.class = ExitClass::Ok;
    exit.api = ApiClass::None;
    exit.code = Some(0);
    exit.usage = Usage { tokens: Some(Tokens(1500)), usd: Some(Usd::from_micros(500_000)) };
    TickRecord {
        iteration: TickNo(tick),
        peer: name(peer),
        tool: peer.into(),
        role: Role::Default,
        outcome: TickOutcome::Handoff,
        success: true,
        classification: "success".into(),
        soft_fail_reason: None,
        exit,
        recovered: false,
        outside: false,
        rescued: false,
        started_at: Timestamp::from_millis(BEGAN),
        gate_ms: 0,
        head_before: commit('a'),
        head_after: commit('b'),
        tree_after: tree('1'),
        content_after: None,
        branch: Some("main".into()),
        commits: vec![commit('b')],
        foreign: Vec::new(),
        own: Vec::new(),
        corrected: None,
        salvage: None,
        dirty: false,
        product_change: true,
        tree_changed: false,
        evidence: true,
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
        prompt_bytes: 4096,
        usd_warned: None,
        course: None,
        gates: std::collections::BTreeMap::new(),
        spent_tokens_total: Tokens(1500),
        spent_usd_total: Usd::ZERO,
        peer_state_after: "healthy".into(),
    }
}

fn operator(op: OperatorOp) -> Record {
    Record::Operator(OperatorRecord { op, by: "ann".into() })
}

fn judged(id: &str, head: char, verdict: Verdict) -> Judged {
    Judged {
        goal: goal(id),
        at: TreeKey { head: commit(head), tree: tree('1') },
        place: Place::Live,
        verdict,
        attempts: 1,
        duration_ms: 50,
        leaked: 0,
        exit_code: None,
        signal: None,
        cached: false,
        setup_failed: false,
        manifests: None,
    }
}

fn red(what: &str) -> Verdict {
    Verdict::Fail { diagnostic: what.to_owned() }
}

fn proof(verdicts: Vec<Judged>) -> Record {
    let passed = verdicts.iter().all(|judged| judged.verdict.is_pass());
    let at = TreeKey { head: commit('b'), tree: tree('1') };
    Record::Proof(ProofRecord { at, verdicts, exempt: Vec::new(), passed, took_ms: 200 })
}

/// No byte of it steers a terminal.
fn is_harmless(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !(c.is_control() || peers_sys::term::invisible(c)))
}

/// Everything below a directory, with sizes and times.
fn listing(dir: &std::path::Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut todo = vec![dir.to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                todo.push(entry.path());
            }
            found.push((entry.path(), meta.len(), meta.modified().unwrap()));
        }
    }
    found.sort();
    found
}
