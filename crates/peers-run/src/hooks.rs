//! What the operator's hooks are told: one JSON object on their standard input.

use peers_core::apply::bounded;
use peers_model::config::Hook;
use peers_model::outcome::{StopReason, Usage};
use peers_model::record::{ExitProof, ExitRecord, TickOutcome, TickRecord};
use peers_model::verdict::{Judged, Place};
use peers_model::{CommitId, GoalId, PeerName, ProjectId, RunId, TickNo, Timestamp, limits};
use peers_sys::redact::Rules;
use serde::Serialize;

/// Which object this is. The number rises when a field goes away or changes its meaning.
const SCHEMA: &str = "peers.hook/1";

/// Something around which hooks run.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The tick that it belongs to; between two ticks the one before, and before a turn the one to come.
    pub tick: TickNo,
    /// What it is about.
    pub about: HookAbout,
}

/// What hooks are told, by hook.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "hook", rename_all = "snake_case")]
pub enum HookAbout {
    /// A peer is about to have its turn.
    PreTurn {
        /// Who.
        peer: PeerName,
        /// A skeptic turn.
        skeptic: bool,
    },
    /// A turn was recorded.
    PostTurn(Box<TurnTold>),
    /// Gates are about to run.
    PreGate {
        /// Which.
        gates: Vec<GoalId>,
        /// Where.
        place: Place,
    },
    /// Gates have answered.
    PostGate {
        /// What they said.
        verdicts: Vec<VerdictTold>,
        /// Where they ran.
        place: Place,
        /// Wall time, milliseconds.
        took_ms: u64,
    },
    /// The loop stopped as `complete`.
    Converge(Box<StopTold>),
    /// The loop stopped for any other reason.
    Halt(Box<StopTold>),
}

/// A turn, in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnTold {
    peer: PeerName,
    skeptic: bool,
    outcome: TickOutcome,
    success: bool,
    classification: String,
    reason: Option<String>,
    commits: Vec<CommitId>,
    head: CommitId,
    usage: Usage,
    duration_ms: u64,
    recovered: bool,
    gates: std::collections::BTreeMap<GoalId, String>,
}

/// What a gate said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictTold {
    id: GoalId,
    verdict: &'static str,
    diagnostic: String,
}

/// How the loop stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StopTold {
    reason: String,
    detail: String,
    exit_code: u8,
    head: Option<CommitId>,
    proof: Option<ExitProof>,
}

impl HookAbout {
    /// The hook.
    #[must_use]
    pub fn hook(&self) -> Hook {
        match self {
            Self::PreTurn { .. } => Hook::PreTurn,
            Self::PostTurn(_) => Hook::PostTurn,
            Self::PreGate { .. } => Hook::PreGate,
            Self::PostGate { .. } => Hook::PostGate,
            Self::Converge(_) => Hook::Converge,
            Self::Halt(_) => Hook::Halt,
        }
    }

    /// The peer that it is about, if it is about one.
    #[must_use]
    pub fn peer(&self) -> Option<&PeerName> {
        match self {
            Self::PreTurn { peer, .. } => Some(peer),
            Self::PostTurn(turn) => Some(&turn.peer),
            Self::PreGate { .. } | Self::PostGate { .. } | Self::Converge(_) | Self::Halt(_) => None,
        }
    }
}

impl HookEvent {
    /// A turn was recorded.
    #[must_use]
    pub fn turn(record: &TickRecord) -> Self {
        let told = TurnTold {
            peer: record.peer.clone(),
            skeptic: record.skeptic.is_some(),
            outcome: record.outcome,
            success: record.success,
            classification: record.classification.clone(),
            reason: record.soft_fail_reason.clone(),
            commits: record.commits.clone(),
            head: record.head_after.clone(),
            usage: record.exit.usage,
            duration_ms: record.exit.duration_ms,
            recovered: record.recovered,
            gates: record.gates.clone(),
        };
        Self { tick: record.iteration, about: HookAbout::PostTurn(Box::new(told)) }
    }

    /// Gates have answered.
    #[must_use]
    pub fn gates(tick: TickNo, place: Place, verdicts: &[Judged], took_ms: u64) -> Self {
        let told = |judged: &Judged| VerdictTold {
            id: judged.goal.clone(),
            verdict: judged.verdict.word(),
            diagnostic: judged.verdict.diagnostic().to_owned(),
        };
        let verdicts = verdicts.iter().map(told).collect();
        Self { tick, about: HookAbout::PostGate { verdicts, place, took_ms } }
    }

    /// The loop stopped.
    #[must_use]
    pub fn stop(tick: TickNo, reason: &StopReason, detail: &str, record: Option<&ExitRecord>) -> Self {
        let told = Box::new(StopTold {
            reason: reason.to_string(),
            detail: detail.to_owned(),
            exit_code: reason.exit_code(),
            head: record.and_then(|record| record.head.clone()),
            proof: record.and_then(|record| record.proof.clone()),
        });
        let about =
            if *reason == StopReason::Complete { HookAbout::Converge(told) } else { HookAbout::Halt(told) };
        Self { tick, about }
    }

    /// The object, in one line. Texts of others in it hold no secret that `rules` know.
    #[must_use]
    pub fn json(&self, run: &RunId, project: &ProjectId, at: Timestamp, rules: &Rules) -> String {
        let mut about = self.about.clone();
        // In this order: what a cut leaves of a secret is not recognised.
        let clean = |text: &mut String| *text = bounded(&rules.redact(text), limits::WARNING);
        match &mut about {
            HookAbout::PostTurn(turn) => {
                if let Some(reason) = &mut turn.reason {
                    clean(reason);
                }
            }
            HookAbout::PostGate { verdicts, .. } => {
                for verdict in verdicts {
                    clean(&mut verdict.diagnostic);
                }
            }
            HookAbout::Converge(stop) | HookAbout::Halt(stop) => clean(&mut stop.detail),
            HookAbout::PreTurn { .. } | HookAbout::PreGate { .. } => {}
        }
        let whole = Whole { schema: SCHEMA, run_id: run, project, at, tick: self.tick, about: &about };
        // Names, numbers and texts always become JSON.
        let mut text = serde_json::to_string(&whole).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'static str,
    run_id: &'a RunId,
    project: &'a ProjectId,
    at: Timestamp,
    tick: TickNo,
    #[serde(flatten)]
    about: &'a HookAbout,
}

#[cfg(test)]
mod tests {
    use peers_model::outcome::ErrorKind;
    use serde_json::{Value, json};

    use super::*;

    fn value(event: &HookEvent, rules: &Rules) -> Value {
        let (run, project) =
            (RunId::new("0123456789abcdef").unwrap(), ProjectId::new("fedcba9876543210").unwrap());
        let text = event.json(&run, &project, Timestamp::from_millis(0), rules);
        assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_object_is_the_documented_one() {
        let event = HookEvent {
            tick: TickNo(3),
            about: HookAbout::PreTurn { peer: PeerName::new("ann").unwrap(), skeptic: false },
        };
        let rules = Rules::new(Vec::<&str>::new());
        let expected = json!({
            "schema": "peers.hook/1", "hook": "pre_turn", "run_id": "0123456789abcdef",
            "project": "fedcba9876543210", "at": "1970-01-01T00:00:00.000Z", "tick": 3,
            "peer": "ann", "skeptic": false,
        });
        assert_eq!(value(&event, &rules), expected);
    }

    #[test]
    fn a_stop_is_told_with_its_exit_code_and_without_secrets() {
        let rules = Rules::new(["hunter2-hunter2"]);
        let reason = StopReason::Error(ErrorKind::Git);
        let event = HookEvent::stop(TickNo(1), &reason, "pushed with hunter2-hunter2", None);
        let told = value(&event, &rules);
        assert_eq!(told["hook"], "halt");
        assert_eq!((&told["exit_code"], &told["proof"]), (&reason.exit_code().into(), &Value::Null));
        assert!(!told.to_string().contains("hunter2"), "{told}");
        let long = format!("{}hunter2-hunter2", "x".repeat(limits::WARNING - 8));
        let told = value(&HookEvent::stop(TickNo(1), &reason, &long, None), &rules);
        assert!(!told.to_string().contains("hunter2"), "across the cut: {told}");
        assert!(told["detail"].as_str().unwrap().len() <= limits::WARNING, "{told}");
        assert_eq!(HookEvent::stop(TickNo(1), &StopReason::Complete, "", None).about.hook(), Hook::Converge);
    }
}
