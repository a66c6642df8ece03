//! The trial: gates in a clean checkout before a turn is paid for, and whose fault a red proof is.
//!
//! A gate that is green in the work tree and not in a clean checkout needs something that no commit holds. That
//! is the environment's fault, which no peer can mend, so the operator is told before money is spent.

use std::time::Duration;

use peers_model::GoalId;
use peers_model::goal::{GateRun, TreeChoice, gate_of};
use peers_model::outcome::StopReason;
use peers_model::record::{GateRule, Record, TrialRecord};
use peers_model::verdict::{Judged, Place};

use super::decide::{keep, look, stop_with};
use super::event::{Effect, Facts, Input, Notice};
use super::{Decision, LoopConfig, Machine, Phase, Purpose};
use crate::apply::bounded;
use crate::state::State;
use crate::test_output;

/// What a shell says of a command that it cannot run, or not find.
const NOT_RUN: [i32; 2] = [126, 127];
/// Bytes of a diagnostic that are shown.
const SAID: usize = 300;

/// The gates of a trial that is owed before the first turn of this run; none once this run has made one, or the
/// gates as they are have been tried or proved.
pub(super) fn owed(cfg: &LoopConfig, state: &State) -> Vec<GoalId> {
    if cfg.trial_s == 0 || cfg.anyway || state.run.as_ref().is_some_and(|run| run.ticks > 0) {
        return Vec::new();
    }
    if state.trial.run.as_ref() == Some(&cfg.run_id) {
        return Vec::new();
    }
    let command = |rule: &&GateRule| {
        let shell =
            gate_of(&cfg.goals, &rule.id).is_some_and(|gate| matches!(gate.run, GateRun::Shell { .. }));
        shell && rule.tree != TreeChoice::Live
    };
    let known = |rule: &GateRule| {
        let tried = state.trial.gates.get(&rule.id).filter(|tried| tried.gate == rule.digest);
        let proof = state.proofs.verdicts.get(&rule.id).filter(|proof| proof.gate == rule.digest);
        tried.is_some_and(|tried| !tried.only_here) || proof.is_some_and(|proof| proof.verdict.is_pass())
    };
    let gates: Vec<&GateRule> = state.rules.gates.iter().filter(command).collect();
    if gates.iter().all(|rule| known(rule)) {
        return Vec::new();
    }
    gates.into_iter().map(|rule| rule.id.clone()).collect()
}

/// Begins a trial of `gates`.
pub(super) fn begin(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    unstable: u8,
    gates: Vec<GoalId>,
    input: &Input,
) -> Decision {
    let mut d = keep(m, Phase::Proving(Box::new(facts.clone()), unstable, Purpose::Trial));
    let limit = Duration::from_secs(cfg.trial_s.into());
    d.effects.push(Effect::Tell(Notice::TrialStarted { count: gates.len(), limit }));
    d.effects.push(Effect::SetTimer(input.at.wall.plus(limit)));
    d.effects.push(Effect::Judge { gates, key: facts.key(), place: Place::Pristine, tick: m.state.ticks });
    d
}

/// The gates of a trial have answered, or were cut off.
pub(super) fn on_answer(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    unstable: u8,
    (verdicts, took_ms, moved): (&[Judged], u64, bool),
    input: &Input,
) -> Decision {
    let asked = owed(cfg, &m.state);
    let kept: Vec<Judged> = verdicts.iter().filter(|j| j.at == facts.key()).cloned().collect();
    let silent: Vec<String> = asked
        .iter()
        .filter(|id| !verdicts.iter().any(|judged| judged.goal == **id))
        .map(|id| format!("`{id}`"))
        .collect();
    let cut = !silent.is_empty();
    let missing =
        |j: &&Judged| !j.verdict.is_pass() && !j.verdict.is_skipped() && is_green(&m.state, facts, &j.goal);
    let only_here: Vec<&Judged> = kept.iter().filter(missing).collect();
    // No turn mends a command that cannot be run anywhere. It was not tried, so that the next start tries it.
    let here = |judged: &Judged| answer(&m.state, facts, &judged.goal).is_some_and(is_not_run);
    let not_run = kept.iter().find(|judged| !cut && is_not_run(judged) && here(judged));
    let record = Record::Trial(TrialRecord {
        at: facts.key(),
        asked: asked.into_iter().filter(|id| not_run.is_none_or(|judged| judged.goal != *id)).collect(),
        verdicts: kept.clone(),
        only_here: only_here.iter().map(|judged| judged.goal.clone()).collect(),
        cut,
        took_ms,
    });
    let mut state = m.state.clone();
    if let Err(error) = state.apply(input.at.wall, Some(&cfg.run_id), &record) {
        let kind = peers_model::outcome::ErrorKind::Internal;
        return stop_with(cfg, m, Some(facts), StopReason::Error(kind), &error.to_string());
    }
    // The gates have answered: an exit from here cuts none of them off.
    let unstable = if moved { unstable.saturating_add(1) } else { unstable };
    let ahead = Machine { state, phase: Phase::Surveying(unstable), stop: m.stop, behind: m.behind.clone() };
    let detail = only_here.first().map(|first| {
        let names: Vec<String> = only_here.iter().map(|judged| format!("`{}`", judged.goal)).collect();
        let (names, pass) = (names.join(", "), if only_here.len() == 1 { "passes" } else { "pass" });
        let said = bounded(&test_output::cause(first.verdict.diagnostic()), SAID);
        let head = facts.head.short();
        let advice = advice(cfg);
        format!("{names} {pass} in the work tree and not in a clean checkout of {head}: {said}{advice}")
    });
    let mut d = match (not_run, detail) {
        (Some(judged), _) => {
            let said = bounded(&test_output::cause(judged.verdict.diagnostic()), SAID);
            let detail = format!("its command cannot be run, in a clean checkout neither: {said}");
            stop_with(cfg, &ahead, Some(facts), StopReason::Unjudged(judged.goal.clone()), &detail)
        }
        (None, Some(detail)) if !cut => stop_with(cfg, &ahead, Some(facts), StopReason::ParkedProof, &detail),
        (None, detail) => {
            let mut d = look(&ahead);
            d.phase = Phase::Surveying(unstable);
            let notice = match detail {
                Some(detail) => Some(Notice::Warning(detail)),
                None if cut => Some(Notice::Warning(format!(
                    "the trial was cut off before {} answered, or before `setup` was done; the run goes on, and `peers verify --pristine` tries again",
                    silent.join(", ")
                ))),
                None => {
                    unprepared(facts, &kept).map(Notice::Warning).or_else(|| trouble(&kept).map(Notice::Note))
                }
            };
            if let Some(notice) = notice {
                d.effects.insert(0, Effect::Tell(notice));
            }
            d
        }
    };
    d.records.insert(0, record);
    d.effects.insert(0, Effect::Tell(Notice::TrialEnded { verdicts: verdicts.to_vec(), took_ms }));
    d
}

/// What is to be said of a `setup` that fails, where the gates are red in the work tree too: agents may mend both.
fn unprepared(facts: &Facts, verdicts: &[Judged]) -> Option<String> {
    let failed = verdicts.iter().find(|judged| judged.setup_failed)?;
    let said = bounded(&test_output::cause(failed.verdict.diagnostic()), SAID);
    let head = facts.head.short();
    Some(format!(
        "no run is `complete` before `setup` works in a clean checkout, and in that of {head} it does not: {said}"
    ))
}

/// What is to be said of gates that are red here and there; nothing where none is.
fn trouble(verdicts: &[Judged]) -> Option<String> {
    let red: Vec<String> =
        verdicts.iter().filter(|j| !j.verdict.is_pass()).map(|j| format!("`{}`", j.goal)).collect();
    (!red.is_empty()).then(|| {
        format!(
            "red in the work tree too, so peers cannot tell yet whether a clean checkout lacks anything: {}",
            red.join(", ")
        )
    })
}

/// Why a red proof is not the peers' fault, for people: it was so before a turn was paid for, a command could not
/// be run, or `setup` failed again though what it goes by is what it was then. `None` where it is theirs.
pub(super) fn blamed(cfg: &LoopConfig, state: &State, facts: &Facts, verdicts: &[Judged]) -> Option<String> {
    let why = |judged: &Judged| {
        let rule = state.rules.gates.iter().find(|rule| rule.id == judged.goal)?;
        let tried = state.trial.gates.get(&judged.goal).filter(|tried| tried.gate == rule.digest);
        let same = judged.manifests.is_some() && judged.manifests == state.trial.manifests;
        Some(match judged.exit_code {
            _ if tried.is_some_and(|tried| tried.only_here) => "as before the first turn".to_owned(),
            _ if judged.setup_failed && same => {
                "`setup` failed twice, and no manifest or lock file has changed since it was tried".to_owned()
            }
            Some(code) if NOT_RUN.contains(&code) => {
                format!("its command could not be run (exit code {code})")
            }
            _ => return None,
        })
    };
    let red = |j: &&Judged| j.verdict.is_red() && is_green(state, facts, &j.goal);
    verdicts.iter().filter(red).find_map(|judged| {
        let why = why(judged)?;
        let said = bounded(&test_output::cause(judged.verdict.diagnostic()), SAID);
        Some(format!(
            "`{}` passes in the work tree and not in a clean checkout of {}, {why}: {said}{}",
            judged.goal,
            facts.head.short(),
            advice(cfg)
        ))
    })
}

/// The line of `setup` to write, on a line of its own, where it is known what installs what is missing.
fn advice(cfg: &LoopConfig) -> String {
    let line = |cmd: &String| {
        // What ends a plain text within brackets is quoted.
        let cmd = if cmd.contains(['[', ',', '{']) {
            serde_json::Value::from(cmd.as_str()).to_string()
        } else {
            cmd.clone()
        };
        format!(
            "\nTo install what is missing, replace `setup:` in config.yaml with `setup: {{commands: [{{cmd: {cmd}}}]}}`"
        )
    };
    cfg.setup_hint.as_ref().map(line).unwrap_or_default()
}

/// Whether a gate is green in the work tree at these facts.
fn is_green(state: &State, facts: &Facts, gate: &GoalId) -> bool {
    answer(state, facts, gate).is_some_and(|j| j.verdict.is_pass())
}

/// What a gate answered in the work tree at these facts.
fn answer<'a>(state: &'a State, facts: &Facts, gate: &GoalId) -> Option<&'a Judged> {
    let rule = state.rules.gates.iter().find(|rule| rule.id == *gate)?;
    state.board.fresh(rule, &facts.key())
}

/// Whether a gate is red since its command could not be run, or was not found.
fn is_not_run(judged: &Judged) -> bool {
    judged.verdict.is_red() && judged.exit_code.is_some_and(|code| NOT_RUN.contains(&code))
}
