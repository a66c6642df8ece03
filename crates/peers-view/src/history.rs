//! The whole journal in one pass, boiled down to what a report needs. Bounded whatever its length.

use std::collections::{BTreeMap, VecDeque};

use peers_core::machine::Recovery;
use peers_core::state::State;
use peers_model::outcome::{ExitClass, StopReason, Usage};
use peers_model::reader::RecordReader;
use peers_model::record::{
    CapSet, CommitsSeen, CorrectionKind, CorrectionPlanned, Digests, ExitProof, ExitRecord, GatesRecord,
    Line, MirrorRestored, OperatorOp, OperatorRecord, ProofRecord, Rules, RunStarted, TickOutcome,
    TickRecord,
};
use peers_model::verdict::{Judged, Verdict};
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, Tokens, Usd};
use peers_store::journal::Journal;
use peers_store::{Disk, Position, StoreError, store};
use serde::Serialize;

use crate::budget;
use crate::notable::{self, Collector, Notable};
use crate::sourced::Sourced;
use crate::ticks::TickRow;
use crate::words::{self, chain};

/// Ticks kept of the timeline.
const TICKS: usize = 50;
/// Ticks of which is kept how the gates stood, the newest.
const GATE_TICKS: usize = 200;
/// Rows kept of each other list, the newest.
const ROWS: usize = 100;

/// What happened, ever.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct History {
    /// Records read.
    pub records: u64,
    /// Runs that began.
    pub runs: u64,
    /// When the first one did.
    pub first: Option<Timestamp>,
    /// When the last record was written.
    pub last: Option<Timestamp>,
    /// Ticks in all.
    pub ticks: u64,
    /// The newest ticks, oldest first, at most 50.
    pub timeline: VecDeque<TickRow>,
    /// How the gates stood tick by tick, oldest first, at most 200.
    pub gate_ticks: VecDeque<GateTick>,
    /// By gate.
    pub gates: BTreeMap<GoalId, GateHistory>,
    /// By peer.
    pub cost: BTreeMap<PeerName, PeerCost>,
    /// What was undone, the newest.
    pub corrections: VecDeque<CorrectionRow>,
    /// How runs ended, the newest.
    pub exits: VecDeque<ExitRow>,
    /// What the operator did, the newest.
    pub operator: VecDeque<OperatorRow>,
    /// What the operator accepted, the newest.
    pub accepted: VecDeque<AcceptanceRow>,
    /// How runs began, the newest.
    pub starts: VecDeque<StartRow>,
    /// Reviews that were accepted, the newest.
    pub reviews: VecDeque<ReviewRow>,
    /// Proof runs.
    pub proofs: u64,
    /// Of these, those that passed.
    pub proofs_passed: u64,
    /// How often the mirror of the journal was found changed.
    pub mirror_restored: u64,
    /// Ticks that changed guarded files of the git directory.
    pub git_tampered: u64,
    /// What must not be overlooked.
    pub notable: Notable,
}

/// How each gate stood when a tick had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateTick {
    /// Which tick.
    pub tick: TickNo,
    /// When it ended.
    pub ts: Timestamp,
    /// Its newest answer by then, of each gate that had one.
    pub gates: BTreeMap<GoalId, GateMark>,
}

/// An answer of a gate, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum GateMark {
    Pass,
    Fail,
    /// It could not be judged.
    Error,
}

/// When a gate said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct When {
    /// Ticks completed, or the tick that was just ending.
    pub tick: TickNo,
    /// The record's time.
    pub ts: Timestamp,
}

/// A gate over time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GateHistory {
    /// Its first red answer.
    pub first_red: Option<When>,
    /// Its newest one.
    pub last_red: Option<When>,
    /// Its first green answer.
    pub first_green: Option<When>,
    /// Its newest one.
    pub last_green: Option<When>,
    /// Green answers.
    pub green: u64,
    /// Red answers.
    pub red: u64,
    /// Could-not-judge answers.
    pub errors: u64,
    /// Green answers after a red attempt.
    pub flaky: u64,
    /// Wall time of all of them, milliseconds.
    pub took_ms: u64,
}

/// What a peer cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PeerCost {
    /// Turns.
    pub ticks: u64,
    /// Of these, valid handoffs.
    pub handoffs: u64,
    /// Of these, neither for nor against it.
    pub neutral: u64,
    /// Run time, milliseconds.
    pub ms: u64,
    /// Run time of turns that failed, milliseconds.
    pub wasted_ms: u64,
    /// Tokens, as far as known; `None` where nothing is known of them.
    pub tokens: Option<Tokens>,
    /// It used at least these tokens.
    pub tokens_at_least: bool,
    /// Money, as far as known; `None` where nothing is known of it.
    pub usd: Option<Usd>,
    /// It cost at least this money.
    pub usd_at_least: bool,
    /// Turns whose tokens nobody knows.
    pub unknown: u64,
    /// Turns whose price nobody knows.
    pub unknown_usd: u64,
    /// Turns that used at least what is counted.
    pub at_least: u64,
    /// Commits.
    pub commits: u64,
}

/// Something that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorrectionRow {
    /// In which tick.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// What was done.
    pub kind: CorrectionKind,
    /// Why.
    pub reason: String,
    /// What had been found.
    pub from: Option<CommitId>,
    /// Where it was set back to.
    pub to: Option<CommitId>,
    /// Where the undone work is kept.
    pub salvage: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitRow {
    /// When.
    pub ts: Timestamp,
    /// Which run.
    pub run_id: Option<RunId>,
    /// Why; absent for a run that never said so.
    pub reason: Option<StopReason>,
    /// For people. Untrusted text.
    pub detail: String,
    /// Ticks of that process.
    pub ticks_in_run: u64,
    /// HEAD then.
    pub head: Option<CommitId>,
    /// What `complete` rests on.
    pub proof: Option<ExitProof>,
}

/// What the operator did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorRow {
    /// When.
    pub ts: Timestamp,
    /// Who.
    pub by: String,
    /// What, for people.
    pub what: String,
}

/// Goals or configuration that the operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptanceRow {
    /// When.
    pub ts: Timestamp,
    /// Login name that the command gave. Untrusted text.
    pub by: String,
    /// What changed, for people.
    pub what: String,
    /// The digests from then on.
    pub digests: Digests,
    /// Why.
    pub note: Option<String>,
}

/// How a run began: what is needed to do the same again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartRow {
    /// When.
    pub ts: Timestamp,
    /// Which.
    pub run_id: Option<RunId>,
    /// Version of the program.
    pub version: String,
    /// Backend and tier of the sandbox.
    pub sandbox: String,
    /// The branch; absent when HEAD was detached. Untrusted text.
    pub branch: Option<String>,
    /// HEAD then.
    pub head: CommitId,
    /// What was accepted.
    pub digests: Digests,
    /// Its tick cap.
    pub max_ticks: Option<u64>,
}

/// A review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewRow {
    /// When its turn ended.
    pub ts: Timestamp,
    /// In which tick.
    pub tick: TickNo,
    /// Who, by the record.
    pub peer: PeerName,
    /// Of which soft goal.
    pub goal: GoalId,
    /// The answer.
    pub pass: bool,
    /// The commit that holds it.
    pub sha: CommitId,
    /// Notes. Untrusted text.
    pub notes: String,
    /// The newest answer of another peer to the same question was not the same.
    pub dissents: bool,
}

impl History {
    /// Time of turns that failed and of all turns, milliseconds.
    #[must_use]
    pub fn waste(&self) -> (u64, u64) {
        let sum = |of: fn(&PeerCost) -> u64| self.cost.values().map(of).fold(0, u64::saturating_add);
        (sum(|cost| cost.wasted_ms), sum(|cost| cost.ms))
    }

    /// Reads the whole journal. Where it is damaged, what stands before the damage is stale.
    pub fn read<D: Disk>(disk: &mut D) -> Sourced<Self> {
        let mut fold = Fold::default();
        let read = Journal::open(disk, &Position::default(), false, |read| {
            let line = &read.line;
            store::apply(&mut fold.state, line)?;
            fold.take(line);
            Ok::<(), StoreError>(())
        });
        let Fold { mut history, notable, .. } = fold;
        history.notable = notable.finish();
        match read {
            Ok(_) if history.records == 0 => Sourced::Missing,
            Ok(_) => Sourced::Fresh(history),
            Err(error) if history.records == 0 => Sourced::Unreadable(chain(&error)),
            Err(error) => Sourced::Stale { value: history, why: chain(&error) },
        }
    }
}

#[derive(Default)]
struct Fold {
    state: State,
    history: History,
    notable: Collector,
    planned: Option<CorrectionPlanned>,
    /// The run that has begun and not ended.
    open_run: Option<(RunId, Timestamp, u64)>,
    /// The rules in force, as far as they are known.
    rules: Option<Rules>,
    /// By goal the newest answer of each peer.
    answers: BTreeMap<GoalId, BTreeMap<PeerName, bool>>,
    /// The newest answer of each gate.
    marks: BTreeMap<GoalId, GateMark>,
}

impl Fold {
    fn take(&mut self, line: &Line) {
        line.record.tell(line, &mut self.notable);
        let history = &mut self.history;
        history.records = line.seq;
        history.first.get_or_insert(line.ts);
        history.last = Some(line.ts);
        line.record.tell(line, self);
    }

    /// What gates say that ran between two ticks belongs to the one before.
    fn between(&mut self, ts: Timestamp, verdicts: &[Judged]) {
        self.judged(self.state.ticks, ts, verdicts);
        let newest = self.history.gate_ticks.back_mut().filter(|newest| newest.tick == self.state.ticks);
        if let Some(newest) = newest {
            newest.gates.clone_from(&self.marks);
        }
    }

    fn judged(&mut self, tick: TickNo, ts: Timestamp, verdicts: &[Judged]) {
        judged(&mut self.history.gates, tick, ts, verdicts);
        for judged in verdicts {
            let mark = match judged.verdict {
                Verdict::Pass => GateMark::Pass,
                Verdict::Fail { .. } | Verdict::Timeout { .. } => GateMark::Fail,
                Verdict::Error { .. } => GateMark::Error,
                Verdict::Skipped { .. } => continue,
            };
            self.marks.insert(judged.goal.clone(), mark);
        }
    }
}

impl<'l> RecordReader<&'l Line> for Fold {
    fn run_started(&mut self, line: &'l Line, run: &RunStarted) {
        let history = &mut self.history;
        history.runs += 1;
        self.rules = Some(run.rules.clone());
        let start = StartRow {
            ts: line.ts,
            run_id: line.run_id.clone(),
            version: run.version.clone(),
            sandbox: run.sandbox.clone(),
            branch: run.branch.clone(),
            head: run.head.clone(),
            digests: run.digests.clone(),
            max_ticks: run.max_ticks,
        };
        keep(&mut history.starts, start, ROWS);
        if let Some((run_id, ts, ticks_in_run)) = self.open_run.take() {
            let lost = ExitRow {
                ts,
                run_id: Some(run_id),
                reason: None,
                detail: "it never ended".to_owned(),
                ticks_in_run,
                head: None,
                proof: None,
            };
            keep(&mut history.exits, lost, ROWS);
        }
        self.open_run = line.run_id.clone().map(|id| (id, line.ts, 0));
    }

    fn correction_planned(&mut self, _line: &'l Line, plan: &CorrectionPlanned) {
        self.planned = Some(plan.clone());
    }

    fn gates(&mut self, line: &'l Line, gates: &GatesRecord) {
        self.between(line.ts, &gates.verdicts);
    }

    fn proof(&mut self, line: &'l Line, proof: &ProofRecord) {
        self.history.proofs += 1;
        self.history.proofs_passed += u64::from(proof.passed);
        self.between(line.ts, &proof.verdicts);
    }

    fn operator(&mut self, line: &'l Line, op: &OperatorRecord) {
        let row = OperatorRow { ts: line.ts, by: op.by.clone(), what: operator_words(&op.op) };
        keep(&mut self.history.operator, row, ROWS);
        if let OperatorOp::Accepted { old, new, note, rules } = &op.op {
            let what = notable::changed((old, new), self.rules.as_ref(), rules.as_deref());
            let (ts, by, digests) = (line.ts, op.by.clone(), new.clone());
            let row = AcceptanceRow { ts, by, what, digests, note: note.clone() };
            keep(&mut self.history.accepted, row, ROWS);
            self.rules = rules.as_deref().cloned().or(self.rules.take());
        }
    }

    fn commits_seen(&mut self, line: &'l Line, seen: &CommitsSeen) {
        if !seen.commits.is_empty() {
            let by = if seen.while_gates { "nobody known" } else { "operator" };
            let row = OperatorRow { ts: line.ts, by: by.to_owned(), what: seen_words(seen) };
            keep(&mut self.history.operator, row, ROWS);
        }
    }

    fn mirror_restored(&mut self, _line: &'l Line, _restored: &MirrorRestored) {
        self.history.mirror_restored += 1;
    }

    fn exit(&mut self, line: &'l Line, exit: &ExitRecord) {
        self.open_run = None;
        let row = ExitRow {
            ts: line.ts,
            run_id: line.run_id.clone(),
            reason: Some(exit.reason.clone()),
            detail: exit.detail.clone(),
            ticks_in_run: exit.ticks_in_run,
            head: exit.head.clone(),
            proof: exit.proof.clone(),
        };
        keep(&mut self.history.exits, row, ROWS);
    }

    fn tick(&mut self, line: &'l Line, tick: &TickRecord) {
        self.judged(tick.iteration, line.ts, &tick.verdicts);
        let stood = GateTick { tick: tick.iteration, ts: line.ts, gates: self.marks.clone() };
        let history = &mut self.history;
        keep(&mut history.gate_ticks, stood, GATE_TICKS);
        history.ticks += 1;
        history.git_tampered += u64::from(!tick.git_tampered.is_empty());
        if let Some(broken) = history.exits.back_mut().filter(|_| tick.recovered) {
            let done = tick.exit.class != ExitClass::Interrupted;
            let taken_up = taken_up(tick.iteration, &tick.peer, done);
            let before = if broken.detail.is_empty() { "" } else { "; " };
            broken.detail = format!("{}{before}{taken_up}", broken.detail);
        }
        if let Some((_, _, ticks)) = &mut self.open_run {
            *ticks += 1;
        }
        keep(&mut history.timeline, TickRow::of(line.ts, line.run_id.as_ref(), tick), TICKS);
        for review in &tick.reviews {
            let answers = self.answers.entry(review.goal.clone()).or_default();
            let dissents = answers.iter().any(|(peer, pass)| *peer != tick.peer && *pass != review.pass);
            answers.insert(tick.peer.clone(), review.pass);
            let row = ReviewRow {
                ts: line.ts,
                tick: tick.iteration,
                peer: tick.peer.clone(),
                goal: review.goal.clone(),
                pass: review.pass,
                sha: review.sha.clone(),
                notes: review.notes.clone(),
                dissents,
            };
            keep(&mut history.reviews, row, ROWS);
        }
        let cost = history.cost.entry(tick.peer.clone()).or_default();
        cost.ticks += 1;
        cost.handoffs += u64::from(tick.outcome == TickOutcome::Handoff && tick.success);
        cost.neutral += u64::from(tick.outcome.is_neutral());
        cost.ms = cost.ms.saturating_add(tick.exit.duration_ms);
        if !tick.success && !tick.outcome.is_neutral() {
            cost.wasted_ms = cost.wasted_ms.saturating_add(tick.exit.duration_ms);
        }
        let Usage { tokens, usd } = tick.exit.usage;
        cost.tokens = tokens.map(|more| cost.tokens.unwrap_or_default() + more).or(cost.tokens);
        cost.usd = usd.map(|more| cost.usd.unwrap_or_default() + more).or(cost.usd);
        cost.tokens_at_least |= tokens.is_none() || tick.exit.at_least;
        cost.usd_at_least |= usd.is_none() || tick.exit.at_least;
        cost.unknown += u64::from(tokens.is_none());
        cost.unknown_usd += u64::from(usd.is_none());
        cost.at_least += u64::from(tick.exit.at_least);
        cost.commits = cost.commits.saturating_add(u64::try_from(tick.commits.len()).unwrap_or(u64::MAX));
        let planned = self.planned.take().filter(|plan| plan.tick == tick.iteration);
        if let Some(kind) = tick.corrected {
            let row = CorrectionRow {
                tick: tick.iteration,
                peer: tick.peer.clone(),
                kind,
                reason: planned
                    .as_ref()
                    .map(|plan| plan.reason.clone())
                    .or_else(|| tick.soft_fail_reason.clone())
                    .unwrap_or_default(),
                from: planned.as_ref().map(|plan| plan.from.clone()),
                to: planned.map(|plan| plan.to),
                salvage: tick.salvage.clone(),
            };
            keep(&mut history.corrections, row, ROWS);
        }
    }
}

/// What becomes of a turn during which its run broke off; `done`: how the peer ended was recorded.
fn taken_up(tick: TickNo, peer: &PeerName, done: bool) -> String {
    let known = if done { "" } else { ", its time and cost are lower bounds" };
    format!("what tick {tick} of {peer} left is judged like any turn{known}")
}

/// For people: that an earlier run broke off, and what becomes of what it left.
#[must_use]
pub fn recovery_words(recovery: &Recovery) -> String {
    let Recovery { run, killed, turn, done } = recovery;
    let broke = if *killed { "was killed or lost" } else { "stopped in the middle of a turn" };
    match turn {
        Some((tick, peer)) => format!("run {run} {broke}: {}", taken_up(*tick, peer, *done)),
        None => format!("run {run} {broke}: no turn was open, and what it left running was ended"),
    }
}

/// Appends, and drops the oldest beyond `most`.
fn keep<T>(rows: &mut VecDeque<T>, row: T, most: usize) {
    rows.push_back(row);
    if rows.len() > most {
        rows.pop_front();
    }
}

fn judged(gates: &mut BTreeMap<GoalId, GateHistory>, tick: TickNo, ts: Timestamp, verdicts: &[Judged]) {
    for judged in verdicts {
        let gate = gates.entry(judged.goal.clone()).or_default();
        gate.took_ms = gate.took_ms.saturating_add(judged.duration_ms);
        let now = Some(When { tick, ts });
        match judged.verdict {
            Verdict::Pass => {
                gate.green += 1;
                gate.flaky += u64::from(judged.attempts > 1);
                gate.first_green = gate.first_green.or(now);
                gate.last_green = now;
            }
            Verdict::Fail { .. } | Verdict::Timeout { .. } => {
                gate.red += 1;
                gate.first_red = gate.first_red.or(now);
                gate.last_red = now;
            }
            Verdict::Error { .. } => gate.errors += 1,
            Verdict::Skipped { .. } => {}
        }
    }
}

pub(crate) fn seen_words(seen: &CommitsSeen) -> String {
    let when = if seen.while_gates { ", while gates ran" } else { "" };
    format!("committed up to {} ({}{when})", seen.head.short(), words::count_of(&seen.commits, "commit"))
}

pub(crate) fn operator_words(op: &OperatorOp) -> String {
    use peers_model::record::{AckTarget, ContractAct, ContractRecord};
    match op {
        OperatorOp::Accepted { note, .. } => match note {
            Some(note) => format!("accepted goals and config: {note}"),
            None => "accepted goals and config".to_owned(),
        },
        OperatorOp::BudgetReset => "reset the budget".to_owned(),
        OperatorOp::BudgetSet { caps, until } => {
            let word =
                |set: &CapSet| format!("{} to {}", set.cap.key(), budget::cap_words(set.cap, set.value));
            let caps: Vec<String> = caps.iter().map(word).collect();
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            format!("set {}{until}", caps.join(", "))
        }
        OperatorOp::Resumed => "lets everybody have turns again".to_owned(),
        OperatorOp::Ack { target, reason } => {
            let target = match target {
                AckTarget::Bug(id) => format!("bug {id}"),
                AckTarget::Concern(id) => format!("concern {id}"),
                AckTarget::Weakening(tick) => format!("the weakening of tick {tick}"),
                AckTarget::Blocked(peer) => format!("that {peer} is no longer blocked"),
            };
            format!("acknowledged {target}: {reason}")
        }
        OperatorOp::StoreAttached { old_path } => format!("attached the store of {old_path}"),
        OperatorOp::Undone { run, from, to, salvage } => {
            format!("undid run {run}: {} back to {}, kept as {salvage}", from.short(), to.short())
        }
        OperatorOp::Landed { run, into, commit } => {
            format!("landed run {run} into {into} as {}", commit.short())
        }
        OperatorOp::Moving(what) => {
            format!("moves {} from {} to {}", what.branch, what.from.short(), what.to.short())
        }
        OperatorOp::Moved => "moved it, or left it where it was".to_owned(),
        OperatorOp::Contract(act) => {
            let ContractRecord { contract, reason, change, state: _ } = act;
            let step = change.get("step").map(|step| format!(" {step}")).unwrap_or_default();
            let did = match contract {
                ContractAct::Init => "froze the plan and its commands",
                ContractAct::Amend => "amended a frozen command",
                ContractAct::AckBlock => "acknowledged the blocked",
                ContractAct::Unblock => "withdrew the acknowledgement of",
            };
            format!("{did}{step}: {reason}")
        }
    }
}
