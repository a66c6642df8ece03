//! Hard goals: what their gates said last, and about which tree.

use std::collections::BTreeSet;

use peers_core::state::State;
use peers_core::test_output::cause;
use peers_model::goal::{CHECK_NAMES, GateRun, GoalKind, HardGoal, TreeChoice};
use peers_model::outcome::StopReason;
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{CommitId, GoalId, TickNo, TreeId};
use peers_store::load::{self, Source};
use peers_store::{Area, Disk, accept, artifacts, layout};
use serde::Serialize;

use crate::facts::Here;

/// A gate that is red after so many ticks in a row is worth a look.
pub(crate) const REDS: u32 = 3;

/// What helps with a gate that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GateFact {
    /// Which.
    pub(crate) id: GoalId,
    /// Its command, as it was accepted; nothing for one that is a check of ours.
    pub(crate) command: Option<String>,
    /// All that it printed, the whole path of the file.
    pub(crate) log: Option<String>,
}

/// One gate.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, as JSON has them")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateRow {
    /// Its goal.
    pub id: GoalId,
    /// `pass`, `fail`, `timeout`, `error`, `skipped`, `proof-failed`, or `unknown` without any verdict.
    pub state: &'static str,
    /// The tree that the verdict is about.
    pub at: Option<TreeKey>,
    /// The verdict is about another tree, or about another definition of the gate.
    pub stale: Option<bool>,
    /// Ticks in a row that ended red.
    pub reds: u32,
    /// Could-not-judge answers in a row.
    pub errors: u32,
    /// Ticks completed when it was measured.
    pub measured_at: Option<TickNo>,
    /// Ticks completed when it was last green.
    pub last_green: Option<TickNo>,
    /// How often it was tried.
    pub attempts: u8,
    /// It passed only after a red attempt.
    pub flaky: bool,
    /// It did not run: a kept green answer was taken.
    pub cached: bool,
    /// Exit code of the last attempt.
    pub exit_code: Option<i32>,
    /// The signal that ended the last attempt.
    pub signal: Option<i32>,
    /// Wall time of all attempts, milliseconds.
    pub duration_ms: u64,
    /// Where it ran.
    pub place: Option<Place>,
    /// The operator exempted it from the proof run (`tree: live`).
    pub exempt: bool,
    /// It is one that `init` ships.
    pub shipped: bool,
    /// Under what it is shown.
    pub group: Option<String>,
    /// How much it counts.
    pub weight: u32,
    /// What it said. Untrusted text.
    pub diagnostic: String,
    /// Where all of its output is kept, below the directory that the run works in.
    pub log: Option<String>,
    /// Its newest proof in a clean checkout.
    pub proof: Option<ProofFact>,
    /// The verdict is about another definition of the gate.
    #[serde(skip)]
    pub(crate) redefined: bool,
}

/// A gate's newest proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProofFact {
    /// `pass`, `fail`, `timeout` or `error`.
    pub state: &'static str,
    /// The head that was checked out.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// It is about what is there now.
    pub current: bool,
    /// What it said. Untrusted text.
    pub diagnostic: String,
}

impl GateRow {
    /// Green at the tree that is there now.
    pub(crate) fn is_green(&self) -> bool {
        self.state == "pass" && self.stale == Some(false)
    }

    /// What it says, in short, and whether only a clean checkout makes it say so.
    pub(crate) fn cause(&self) -> String {
        let said = cause(&self.diagnostic);
        if self.state == "proof-failed" && !said.is_empty() {
            return format!("in a clean checkout: {said}");
        }
        said
    }
}

/// The gates in the order of the goals.
pub(crate) fn rows(state: &State, here: &Here) -> Vec<GateRow> {
    state.rules.gates.iter().map(|rule| row(state, rule, here)).collect()
}

fn row(state: &State, rule: &peers_model::record::GateRule, here: &Here) -> GateRow {
    let standing = state.board.gates.get(&rule.id);
    let last: Option<&Judged> = standing.and_then(|standing| standing.last.as_ref());
    let redefined = standing.is_some_and(|standing| standing.digest != rule.digest);
    let proof = state.proofs.verdicts.get(&rule.id).map(|proof| {
        let same_tree = match &here.head_tree {
            Some(tree) => proof.tree == *tree,
            None => here.head.as_ref() == Some(&proof.head),
        };
        let same_head = !rule.reads_history || here.head.as_ref() == Some(&proof.head);
        ProofFact {
            state: proof.verdict.word(),
            head: proof.head.clone(),
            tree: proof.tree.clone(),
            current: same_tree && same_head && proof.gate == rule.digest,
            diagnostic: proof.verdict.diagnostic().to_owned(),
        }
    });
    let refuted = proof.as_ref().filter(|p| p.current && matches!(p.state, "fail" | "timeout"));
    let state_word = match (last, refuted) {
        (Some(judged), Some(_)) if judged.verdict.is_pass() => "proof-failed",
        (Some(judged), _) => judged.verdict.word(),
        (None, _) => "unknown",
    };
    let diagnostic = match (state_word, refuted) {
        ("proof-failed", Some(proof)) => proof.diagnostic.clone(),
        _ => last.map(|judged| judged.verdict.diagnostic().to_owned()).unwrap_or_default(),
    };
    GateRow {
        id: rule.id.clone(),
        state: state_word,
        at: last.map(|judged| judged.at.clone()),
        stale: last.map(|judged| redefined || !is_here(&judged.at, here)),
        reds: standing.map_or(0, |standing| standing.reds),
        errors: standing.map_or(0, |standing| standing.errors),
        measured_at: standing.filter(|s| s.last.is_some()).map(|standing| standing.measured_at),
        last_green: standing.and_then(|standing| standing.last_green),
        attempts: last.map_or(0, |judged| judged.attempts),
        flaky: last.is_some_and(Judged::is_flaky),
        cached: last.is_some_and(|judged| judged.cached),
        exit_code: last.and_then(|judged| judged.exit_code),
        signal: last.and_then(|judged| judged.signal),
        duration_ms: last.map_or(0, |judged| judged.duration_ms),
        place: last.map(|judged| judged.place),
        exempt: rule.tree == TreeChoice::Live,
        shipped: rule.shipped,
        group: rule.group.clone(),
        weight: rule.weight,
        diagnostic,
        log: None,
        proof,
        redefined,
    }
}

/// Names the log of each gate that is not green, where it is still there: among `elsewhere`, which are the
/// names in another work directory, or below the `.peers/` that is read.
pub(crate) fn find_logs<D: Disk>(disk: &mut D, elsewhere: Option<&BTreeSet<String>>, rows: &mut [GateRow]) {
    for row in rows.iter_mut().filter(|row| matches!(row.state, "fail" | "timeout" | "error")) {
        let (Some(tick), Some(place)) = (row.measured_at, row.place) else { continue };
        let name = artifacts::tick_file(tick, row.id.as_str(), artifacts::gate_log_suffix(place));
        let inner = format!("{}/{name}", layout::peers::LOG_GATES);
        // Logs are for people: without them the records still stand.
        let kept = match elsewhere {
            Some(names) => names.contains(&name),
            None => disk.len(Area::Peers, &inner).is_ok_and(|len| len.is_some()),
        };
        row.log = kept.then(|| format!(".peers/{inner}"));
    }
}

/// What helps with the gate that the last run stopped for, or, while one runs, with the one that is red for
/// longest. `work` is the directory that the run works in, `here` the one whose `.peers/` is read.
pub(crate) fn in_the_way<D: Disk>(
    disk: &mut D,
    state: &State,
    (work, here): (&str, &str),
) -> Option<GateFact> {
    let ended = state.last_exit.as_ref().filter(|_| state.live_run().is_none());
    let id = match ended.map(|exit| &exit.reason) {
        Some(StopReason::StuckGate(id) | StopReason::Unjudged(id)) => id.clone(),
        Some(_) => return None,
        None => {
            let gates = state.rules.gates.iter().filter_map(|rule| {
                let reds = state.board.gates.get(&rule.id)?.reds;
                (reds >= REDS).then_some((reds, &rule.id))
            });
            gates.max_by_key(|(reds, _)| *reds)?.1.clone()
        }
    };
    let standing = state.board.gates.get(&id);
    let log = standing.and_then(|standing| {
        let place = standing.last.as_ref().filter(|judged| !judged.verdict.is_pass())?.place;
        let name = artifacts::tick_file(standing.measured_at, id.as_str(), artifacts::gate_log_suffix(place));
        let inner = format!("{}/{name}", layout::peers::LOG_GATES);
        // In another work directory nobody looks here.
        let kept = work != here || disk.len(Area::Peers, &inner).is_ok_and(|len| len.is_some());
        kept.then(|| format!("{work}/.peers/{inner}"))
    });
    Some(GateFact { command: command(disk, state, &id), id, log })
}

/// The command of a gate, as it was accepted; nothing where that cannot be read, or it has none.
fn command<D: Disk>(disk: &mut D, state: &State, id: &GoalId) -> Option<String> {
    let bytes = accept::read_bytes(disk, layout::peers::GOALS).ok()??;
    let text = load::decode(Source::Goals, &bytes).ok()?;
    let goals = load::load_goals(text, state.rules.peers.len(), &CHECK_NAMES).ok()?;
    let goal = goals.into_iter().find(|goal| goal.id == *id)?;
    match goal.kind {
        GoalKind::Hard(HardGoal { run: GateRun::Shell { cmd, .. }, .. }) => Some(cmd),
        GoalKind::Hard(_) | GoalKind::Soft(_) => None,
    }
}

/// Whether a verdict is about what is there now, as far as that is known.
fn is_here(at: &TreeKey, here: &Here) -> bool {
    here.head.as_ref() == Some(&at.head) && here.tree.as_ref().is_none_or(|tree| *tree == at.tree)
}
