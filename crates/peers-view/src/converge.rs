//! What is missing until the loop may say `complete`, in words.

use peers_core::converge::{has_real_gate, skeptic_passed};
use peers_core::phases;
use peers_core::state::State;
use peers_model::GoalId;
use peers_model::step::Quiet;
use peers_store::planted::Planted;
use serde::Serialize;

use crate::facts::Here;
use crate::gates::GateRow;
use crate::soft::SoftRow;
use crate::words;

/// Names in one sentence.
const NAMED: usize = 6;

/// How far the loop is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvergeView {
    /// Nothing is missing, as far as is known here.
    pub complete: bool,
    /// What is missing, in the order in which the loop asks.
    pub missing: Vec<Missing>,
    /// Gates that the operator exempted from the proof run.
    pub exempt: Vec<GoalId>,
    /// Successful ticks in a row that filed nothing blocking.
    pub clean_ticks: u32,
    /// Skeptic turns without a usable answer.
    pub skeptic_attempts: u32,
    /// It got nowhere for half of the ticks after which it stops.
    pub standstill: Option<StandstillView>,
    /// The phase, and the step at hand.
    pub course: Option<String>,
}

/// What planted faults showed of the gates, for people.
pub(crate) fn planted_words(planted: &Planted) -> String {
    format!("the gates noticed {} of {} planted here", planted.noticed, words::count(planted.judged, "fault"))
}

/// A loop that gets nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StandstillView {
    /// Ticks in a row without progress.
    pub ticks: u32,
    /// Ticks after which it stops.
    pub of: u32,
}

impl StandstillView {
    /// For people.
    pub(crate) fn words(self) -> String {
        let Self { ticks, of } = self;
        format!("{} in a row without progress (the loop stops at {of})", words::count(ticks.into(), "turn"))
    }
}

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// One word: `red`, `unjudged`, `unmeasured`, `dirty`, `reviews`, `no-real-gate`, `skeptic`, `quiet`,
    /// `proof`, `proof-red`, `proof-unjudged`, `no-gates`.
    pub kind: &'static str,
    /// For people.
    pub text: String,
}

pub(crate) fn view(
    state: &State,
    here: &Here,
    gates: &[GateRow],
    soft: &[SoftRow],
    soft_required: bool,
    idle_limit: u32,
) -> ConvergeView {
    let mut missing = Vec::new();
    let mut miss = |kind, text: String| missing.push(Missing { kind, text });
    if gates.is_empty() {
        miss("no-gates", gateless(state).to_owned());
    }
    gates_missing(gates, &mut miss);
    if here.clean == Some(false) {
        miss("dirty", "the work tree has uncommitted changes".to_owned());
    } else if here.left_dirty {
        miss("dirty", "the last turn left uncommitted changes".to_owned());
    }
    let waiting: Vec<String> =
        soft.iter().filter(|row| !row.ok).map(|row| format!("{} ({})", row.id, row.share())).collect();
    if soft_required && !waiting.is_empty() {
        let verb = if waiting.len() == 1 { "waits" } else { "wait" };
        let goals = words::count_of(&waiting, "soft goal");
        miss("reviews", format!("{goals} {verb} for reviews: {}", words::list(&waiting, NAMED)));
    }
    if !gates.is_empty() && !has_real_gate(state) {
        miss("no-real-gate", "no gate measures this project: all of them are the shipped ones".to_owned());
    }
    if let Some(text) = skeptic(state, here) {
        miss("skeptic", text);
    }
    if let Some(ticks) = unquiet(state, gates) {
        let ticks = words::count(ticks.into(), "more tick");
        miss("quiet", format!("{ticks} in a row with every gate green"));
    }
    proof_missing(gates, &mut miss);
    ConvergeView {
        complete: missing.is_empty(),
        missing,
        exempt: gates.iter().filter(|gate| gate.exempt).map(|gate| gate.id.clone()).collect(),
        clean_ticks: state.clean_ticks,
        skeptic_attempts: state.skeptic.attempts,
        standstill: state.standstill.near(idle_limit).map(|(ticks, of)| StandstillView { ticks, of }),
        course: phases::words(state),
    }
}

/// Ticks that every gate has still to stay green, where all of them are.
fn unquiet(state: &State, gates: &[GateRow]) -> Option<u32> {
    let rules = state.rules.course.as_deref().filter(|rules| !rules.settle.is_empty())?;
    let green = !gates.is_empty() && gates.iter().all(|gate| gate.state == "pass");
    let left = state.course.calm.after(rules.quiet_ticks, Quiet::Green).left(rules.quiet_ticks);
    (green && left > 0).then_some(left)
}

/// Why there is no gate to be asked.
fn gateless(state: &State) -> &'static str {
    match state.run {
        None => "no gate is known; they are once a run has begun",
        Some(_) => "there is no gate of your own, so no run can complete",
    }
}

/// `not proved in a clean checkout (`tree: live`): big`; nothing where every gate is.
pub(crate) fn unproved(converge: &ConvergeView) -> Option<String> {
    let names: Vec<&str> = converge.exempt.iter().map(GoalId::as_str).collect();
    (!names.is_empty())
        .then(|| format!("not proved in a clean checkout (`tree: live`): {}", names.join(", ")))
}

fn gates_missing(gates: &[GateRow], miss: &mut impl FnMut(&'static str, String)) {
    let those = |wanted: &dyn Fn(&GateRow) -> bool| -> Vec<String> {
        gates.iter().filter(|gate| wanted(gate)).map(|gate| gate.id.to_string()).collect()
    };
    let red = those(&|gate| matches!(gate.state, "fail" | "timeout"));
    if !red.is_empty() {
        let verb = if red.len() == 1 { "is" } else { "are" };
        miss("red", format!("{} {verb} red: {}", words::count_of(&red, "gate"), words::list(&red, NAMED)));
    }
    let unjudged = those(&|gate| gate.state == "error");
    if !unjudged.is_empty() {
        let gates = words::count_of(&unjudged, "gate");
        miss("unjudged", format!("{gates} could not be judged: {}", words::list(&unjudged, NAMED)));
    }
    let unmeasured =
        those(&|gate| gate.state == "unknown" || (gate.state == "pass" && gate.stale != Some(false)));
    if !unmeasured.is_empty() {
        let verb = if unmeasured.len() == 1 { "has" } else { "have" };
        let gates = words::count_of(&unmeasured, "gate");
        let names = words::list(&unmeasured, NAMED);
        miss("unmeasured", format!("{gates} {verb} no verdict about the current tree: {names}"));
    }
}

fn skeptic(state: &State, here: &Here) -> Option<String> {
    let rounds = state.rules.skeptic_rounds;
    let tree = here.tree.as_ref();
    if rounds == 0 || state.rules.gates.is_empty() || tree.is_some_and(|tree| skeptic_passed(state, tree)) {
        return None;
    }
    let done =
        if tree.is_some() && state.skeptic.tree.as_ref() == tree { state.skeptic.passed.len() } else { 0 };
    let attempts = match state.skeptic.attempts {
        0 => String::new(),
        n => format!("; {} without a usable answer", words::count(n.into(), "attempt")),
    };
    Some(if rounds == 1 {
        format!("the skeptic has not passed the current tree{attempts}")
    } else {
        format!("{done} of {rounds} skeptics passed the current tree{attempts}")
    })
}

fn proof_missing(gates: &[GateRow], miss: &mut impl FnMut(&'static str, String)) {
    let proof = |wanted: &dyn Fn(Option<&'static str>) -> bool| -> Vec<String> {
        gates
            .iter()
            .filter(|gate| !gate.exempt)
            .filter(|gate| wanted(gate.proof.as_ref().filter(|proof| proof.current).map(|proof| proof.state)))
            .map(|gate| gate.id.to_string())
            .collect()
    };
    let red = proof(&|state| matches!(state, Some("fail" | "timeout")));
    if !red.is_empty() {
        miss("proof-red", format!("red in a clean checkout: {}", words::list(&red, NAMED)));
    }
    let unjudged = proof(&|state| state == Some("error"));
    if !unjudged.is_empty() {
        let names = words::list(&unjudged, NAMED);
        miss("proof-unjudged", format!("could not be judged in a clean checkout: {names}"));
    }
    let owed = proof(&|state| state.is_none());
    if !owed.is_empty() {
        let verb = if owed.len() == 1 { "has" } else { "have" };
        let gates = words::count_of(&owed, "gate");
        miss("proof", format!("{gates} {verb} no proof in a clean checkout: {}", words::list(&owed, NAMED)));
    }
}
