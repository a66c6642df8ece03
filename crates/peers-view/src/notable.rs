//! What an operator must not overlook, whatever else a view says: goals or configuration that were
//! accepted while a run was live, turns that weakened tests and stand, hooks that failed, and runs that were
//! landed or undone.

use std::collections::BTreeSet;

use peers_core::cheat::{TAKEN_OVER, WEAKENED};
use peers_model::config::Hook;
use peers_model::reader::RecordReader;
use peers_model::record::{
    AckTarget, Digests, ExitRecord, HookFailed, Line, OperatorOp, OperatorRecord, Rules, RunStarted,
    TickRecord,
};
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, limits};
use serde::Serialize;

use crate::words;

/// So much of the end of the journal is looked through by a view that must be quick.
pub(crate) const LOOK: u64 = 16 * limits::MIB;
/// Rows kept of each kind, the newest.
const ROWS: usize = 100;
/// Gates named in a row.
const NAMED: usize = 6;

/// What must not be overlooked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Notable {
    /// Acceptances that were recorded while a run was live, since the last one that was not.
    pub accepted: Vec<AcceptedRow>,
    /// Older ones that are not named.
    pub accepted_left_out: u64,
    /// Turns that weakened tests or gates, got a warning, and stand.
    pub weakened: Vec<WeakenedRow>,
    /// Older ones that are not named, and that nobody acknowledged.
    pub weakened_left_out: u64,
    /// Hooks that failed in the newest run, by hook.
    pub hooks: Vec<HookRow>,
    /// Runs whose branch was landed.
    pub landed: Vec<LandedRow>,
    /// Runs that were taken back.
    pub undone: Vec<UndoneRow>,
    /// Older records were not looked at.
    pub cut: bool,
}

/// Goals or configuration, accepted while a run was live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedRow {
    /// When the loop took it up.
    pub ts: Timestamp,
    /// Which run.
    pub run_id: RunId,
    /// The tick that had just ended; absent before the first one of the run.
    pub after: Option<TickNo>,
    /// Whose tick it was.
    pub peer: Option<PeerName>,
    /// The run had been killed and nobody had looked after what it left.
    pub broken: bool,
    /// Login name that the command gave. Untrusted text: an agent has the operator's.
    pub by: String,
    /// What changed, for people.
    pub what: String,
}

/// A turn that weakened tests or gates and stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WeakenedRow {
    /// Which.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// In which run.
    pub run_id: Option<RunId>,
    /// The warning. Untrusted text.
    pub text: String,
    /// The turn only committed what somebody who is not known had left in the work tree.
    pub taken_over: bool,
    /// The operator acknowledged it.
    pub acknowledged: bool,
}

/// A hook that failed in the newest run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookRow {
    /// Which.
    pub hook: Hook,
    /// How many of its commands failed.
    pub times: u64,
    /// When that was recorded last.
    pub ts: Timestamp,
    /// In which tick.
    pub tick: TickNo,
    /// Which program failed last, and what became of it. Untrusted text in parts.
    pub what: String,
}

/// A run whose branch was landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LandedRow {
    /// When.
    pub ts: Timestamp,
    /// Which.
    pub run_id: RunId,
    /// Into which branch. Untrusted text.
    pub into: String,
    /// The tip that the branch got.
    pub commit: CommitId,
    /// Login name of who did it. Untrusted text.
    pub by: String,
}

/// A run whose branch was set back to where the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoneRow {
    /// When.
    pub ts: Timestamp,
    /// Which.
    pub run_id: RunId,
    /// Where the branch is again.
    pub to: CommitId,
    /// Where what was there is kept. Untrusted text.
    pub salvage: String,
    /// Login name of who did it. Untrusted text.
    pub by: String,
}

impl AcceptedRow {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        if self.broken {
            return format!(
                "accepted after run {} was killed and before what it left was ended, by `{}`: {}",
                self.run_id, self.by, self.what
            );
        }
        let when = match (&self.after, &self.peer) {
            (Some(tick), Some(peer)) => format!("during tick {tick} of {peer} or the gates after it"),
            _ => "before the first tick".to_owned(),
        };
        format!("accepted while run {} was live, {when}, by `{}`: {}", self.run_id, self.by, self.what)
    }
}

impl WeakenedRow {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        let known = if self.acknowledged { " (acknowledged)" } else { "" };
        let how = if self.taken_over {
            "committed weakened tests that had been left uncommitted"
        } else {
            "weakened tests"
        };
        format!("tick {} of {} {how}{known}: {}", self.tick, self.peer, self.text)
    }
}

impl HookRow {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        let times = match self.times {
            1 => String::new(),
            n => format!(" {}, last", words::count(n, "time")),
        };
        format!("hook `{}` failed{times} in tick {}: {}", self.hook.word(), self.tick, self.what)
    }
}

impl LandedRow {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        format!("into `{}` as {}, by `{}`", self.into, self.commit.short(), self.by)
    }
}

impl UndoneRow {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "back to {}, by `{}`; the previous state is saved as {}",
            self.to.short(),
            self.by,
            self.salvage
        )
    }
}

/// Collects while lines go by, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    found: Notable,
    /// The rules in force, as far as they are known.
    rules: Option<Rules>,
    /// The newest tick of the run that is live.
    last: Option<(TickNo, PeerName)>,
    /// The run that has begun and not ended, as far as the records say.
    open: Option<RunId>,
    acknowledged: BTreeSet<TickNo>,
    /// Weakenings that are not named for want of room.
    unnamed: Vec<(TickNo, Option<RunId>)>,
}

impl<'l> RecordReader<&'l Line> for Collector {
    fn run_started(&mut self, line: &'l Line, run: &RunStarted) {
        self.rules = Some(run.rules.clone());
        self.last = None;
        self.found.hooks.clear();
        self.open.clone_from(&line.run_id);
    }

    fn tick(&mut self, line: &'l Line, tick: &TickRecord) {
        self.last = Some((tick.iteration, tick.peer.clone()));
        self.warned(line.run_id.as_ref(), tick);
    }

    fn hook_failed(&mut self, line: &'l Line, failed: &HookFailed) {
        let HookFailed { tick, hook, what, times } = failed;
        let before = self.found.hooks.iter().position(|row| row.hook == *hook);
        // The newest one last.
        let before = before.map_or(0, |at| self.found.hooks.remove(at).times);
        let times = before.saturating_add(u64::from(*times));
        self.found.hooks.push(HookRow { hook: *hook, times, ts: line.ts, tick: *tick, what: what.clone() });
    }

    fn operator(&mut self, line: &'l Line, operator: &OperatorRecord) {
        self.decided(line, &operator.op, &operator.by);
    }

    fn exit(&mut self, _line: &'l Line, _exit: &ExitRecord) {
        self.open = None;
    }
}

impl Collector {
    fn warned(&mut self, run_id: Option<&RunId>, tick: &TickRecord) {
        if tick.corrected.is_some() {
            return;
        }
        let row = |text: &str, taken_over: bool| WeakenedRow {
            tick: tick.iteration,
            peer: tick.peer.clone(),
            run_id: run_id.cloned(),
            text: text.to_owned(),
            taken_over,
            acknowledged: false,
        };
        let mut texts = tick.warnings_emitted.iter();
        if let Some(text) = texts.find_map(|text| text.strip_prefix(TAKEN_OVER)) {
            self.weakened(row(text, true));
        }
        // A turn that changed only tests is warned about as well; that alone is no weakening.
        let mut own = tick.warnings_emitted.iter().filter(|text| !text.starts_with(TAKEN_OVER));
        if let Some(text) = own.find_map(|text| text.strip_prefix(WEAKENED)).filter(|_| tick.prewarned) {
            self.weakened(row(text, false));
        }
    }

    fn weakened(&mut self, row: WeakenedRow) {
        let unnamed = keep(&mut self.found.weakened, row);
        self.unnamed.extend(unnamed.map(|row| (row.tick, row.run_id)));
    }

    fn decided(&mut self, line: &Line, op: &OperatorOp, by: &str) {
        match op {
            OperatorOp::Accepted { old, new, note: _, rules } => {
                let what = changed((old, new), self.rules.as_ref(), rules.as_deref());
                if let Some(rules) = rules {
                    self.rules = Some(rules.as_ref().clone());
                }
                // The loop records what it was handed under its run; who finds no loop running does not. After
                // a run that was killed, something of it may have lived on and done this.
                let broken = line.run_id.is_none();
                let Some(run_id) = line.run_id.clone().or_else(|| self.open.clone()) else {
                    self.found.accepted.clear();
                    self.found.accepted_left_out = 0;
                    return;
                };
                let (after, peer) = self.last.clone().unzip();
                let row = AcceptedRow { ts: line.ts, run_id, after, peer, broken, by: by.to_owned(), what };
                let unnamed = keep(&mut self.found.accepted, row);
                self.found.accepted_left_out += u64::from(unnamed.is_some());
            }
            OperatorOp::Ack { target: AckTarget::Weakening(tick), .. } => {
                self.acknowledged.insert(*tick);
            }
            OperatorOp::Undone { run, from: _, to, salvage } => {
                self.found.weakened.retain(|row| row.run_id.as_ref() != Some(run));
                self.unnamed.retain(|(_, of)| of.as_ref() != Some(run));
                let (run_id, to, salvage, by) = (run.clone(), to.clone(), salvage.clone(), by.to_owned());
                // Of these only the newest are asked for.
                let _older = keep(&mut self.found.undone, UndoneRow { ts: line.ts, run_id, to, salvage, by });
            }
            OperatorOp::Landed { run, into, commit } => {
                let (run_id, into, commit, by) = (run.clone(), into.clone(), commit.clone(), by.to_owned());
                let _older =
                    keep(&mut self.found.landed, LandedRow { ts: line.ts, run_id, into, commit, by });
            }
            OperatorOp::Ack { .. }
            | OperatorOp::BudgetReset
            | OperatorOp::BudgetSet { .. }
            | OperatorOp::Resumed
            | OperatorOp::StoreAttached { .. }
            | OperatorOp::Moving(_)
            | OperatorOp::Moved
            | OperatorOp::Contract(_) => {}
        }
    }

    pub(crate) fn finish(self) -> Notable {
        let Self { mut found, acknowledged, unnamed, .. } = self;
        let standing = unnamed.iter().filter(|(tick, _)| !acknowledged.contains(tick)).count();
        found.weakened_left_out = u64::try_from(standing).unwrap_or(u64::MAX);
        for row in &mut found.weakened {
            row.acknowledged = acknowledged.contains(&row.tick);
        }
        found
    }
}

/// Adds a row. The oldest one, where it had to make room.
fn keep<T>(rows: &mut Vec<T>, row: T) -> Option<T> {
    let oldest = (rows.len() == ROWS).then(|| rows.remove(0));
    rows.push(row);
    oldest
}

/// Which file changed, and which gates.
pub(crate) fn changed(
    (old, new): (&Digests, &Digests),
    before: Option<&Rules>,
    after: Option<&Rules>,
) -> String {
    let mut parts = Vec::new();
    if old.goals != new.goals {
        parts.push("goals changed".to_owned());
    }
    if old.config != new.config {
        parts.push("config changed".to_owned());
    }
    if let (Some(before), Some(after)) = (before, after) {
        let digest = |rules: &Rules, id: &GoalId| {
            rules.gates.iter().find(|gate| gate.id == *id).map(|gate| gate.digest.clone())
        };
        let of = |rules: &Rules, wanted: &dyn Fn(&GoalId) -> bool| -> Vec<String> {
            rules.gates.iter().map(|gate| &gate.id).filter(|id| wanted(id)).map(ToString::to_string).collect()
        };
        let gone = of(before, &|id| digest(after, id).is_none());
        let new = of(after, &|id| digest(before, id).is_none());
        let other = of(after, &|id| digest(before, id).is_some_and(|was| Some(was) != digest(after, id)));
        for (names, what) in [(gone, "gone"), (other, "redefined"), (new, "new")] {
            if !names.is_empty() {
                let gates = words::count_of(&names, "gate");
                parts.push(format!("{gates} {what}: {}", words::list(&names, NAMED)));
            }
        }
    }
    if parts.is_empty() { "nothing changed".to_owned() } else { parts.join("; ") }
}

/// Whether a record with this tag is looked at.
pub(crate) fn matters(tag: Option<&[u8]>) -> bool {
    matches!(tag, Some(b"run-started" | b"tick" | b"operator" | b"hook-failed" | b"exit"))
}
