//! Phases, steps and quiet ticks: what a run goes through beyond gates and reviews, and what follows from it.
//!
//! All of it is data of goals.yaml. Where that names none, nothing here does anything.

use peers_model::goal::{Course as Asked, Phase};
use peers_model::outcome::StopReason;
use peers_model::record::Rules;
use peers_model::step::{CourseAsked, CourseMoved, CourseRules, Quiet, StepRole, StepWork};
use peers_model::verdict::TreeKey;
use peers_model::{PeerName, StepId};

use crate::course::Course;
use crate::machine::{ComposeFacts, Composing, Facts, Harvest, LoopConfig, Origin};
use crate::plan::{Mark, Plan};
use crate::prompt::Task;
use crate::state::{OpenTick, State};
use crate::steps::{CurrentStep, Due, Team, due};
use crate::turns;

/// Turns of one phase without its artifact.
pub const TRIES: u32 = 3;
/// The file with the steps.
pub const PLAN: &str = "PLAN.md";

/// How all gates stand at this tree.
#[must_use]
pub fn quiet(state: &State, key: &TreeKey) -> Quiet {
    let Rules { gates, course, .. } = &state.rules;
    let settle = course.as_ref().map(|course| course.settle.as_slice()).unwrap_or_default();
    let green = |gate| state.board.fresh(gate, key).is_some_and(|judged| judged.verdict.is_pass());
    let red: Vec<_> = gates.iter().filter(|gate| !green(gate)).collect();
    if red.is_empty() {
        Quiet::Green
    } else if red.iter().all(|gate| settle.contains(&gate.id)) {
        Quiet::Unsettled
    } else {
        Quiet::Red
    }
}

/// Quiet ticks that are missing at these facts, where all gates are green; 0 where none are asked for.
#[must_use]
pub fn unquiet(state: &State, facts: &Facts) -> u32 {
    match state.rules.course.as_deref() {
        Some(CourseRules { settle, quiet_ticks, .. }) if !settle.is_empty() => {
            state.course.calm.after(*quiet_ticks, quiet(state, &facts.key())).left(*quiet_ticks)
        }
        Some(_) | None => 0,
    }
}

/// The phase at hand.
#[must_use]
pub fn phase<'a>(asked: &'a Asked, state: &State) -> Option<&'a Phase> {
    asked.phases.get(state.course.phase)
}

/// The phase, and the step at hand, for people; nothing where goals.yaml names no phases.
#[must_use]
pub fn words(state: &State) -> Option<String> {
    let Course { phase, tries, book, .. } = &state.course;
    let name = state.rules.course.as_ref()?.phases.get(*phase)?;
    let Some(CurrentStep { step, implementer, handed_in, reviews, .. }) = &book.current else {
        let tried = if *tries > 0 { format!(", {tries} of {TRIES} turns used") } else { String::new() };
        return Some(format!("{name}{tried}"));
    };
    let readers: Vec<&str> = reviews.iter().map(|(by, _)| by.as_str()).collect();
    Some(match handed_in {
        None => format!("{name}, {step} is implemented by {implementer}"),
        Some(_) if readers.is_empty() => format!("{name}, {step} of {implementer} is under review"),
        Some(_) => format!("{name}, {step} of {implementer} was read by {}", readers.join(", ")),
    })
}

/// Whether the phase at hand ends with a file that is not delivered yet.
pub(crate) fn owes_artifact(cfg: &LoopConfig, state: &State) -> bool {
    phase(&cfg.course, state).is_some_and(|phase| phase.artifact.is_some())
}

/// Why the loop stops for the sake of its phases or its plan.
pub(crate) fn limit(cfg: &LoopConfig, state: &State, facts: &Facts) -> Option<(StopReason, String)> {
    let phase = phase(&cfg.course, state)?;
    if phase.artifact.is_some() {
        let detail =
            || format!("{TRIES} turns of the phase {} did not bring {}", phase.name, missing(cfg, state));
        return (state.course.tries >= TRIES).then(|| (StopReason::StuckPhase, detail()));
    }
    if cfg.checkpoint && !state.course.checkpointed && state.course.phase > 0 {
        return Some((StopReason::Checkpoint, format!("the phase {} comes next", phase.name)));
    }
    let plan = facts.plan.as_ref().filter(|_| phase.steps)?;
    let Due::Blocked(steps) = asked_now(state, plan, facts) else { return None };
    let words = |id: &StepId| {
        let step = plan.steps.iter().find(|step| step.id == *id)?;
        if step.mark != Mark::Blocked {
            return Some(format!("{id} waits for another"));
        }
        let why = step.rationale.as_deref().or(step.notes.as_deref()).unwrap_or("no reason given");
        Some(format!("{id}: {}", crate::apply::bounded(why, 120)))
    };
    let steps: Vec<String> = steps.iter().filter_map(words).collect();
    Some((StopReason::ParkedBlocked, format!("only blocked steps are open: {}", steps.join("; "))))
}

fn missing(cfg: &LoopConfig, state: &State) -> String {
    let artifact = phase(&cfg.course, state).and_then(|phase| phase.artifact.clone());
    artifact.unwrap_or_default()
}

fn asked_now(state: &State, plan: &Plan, facts: &Facts) -> Due {
    let rules = &state.rules.peers;
    let regular = rules.iter().filter(|rule| rule.role != peers_model::config::Role::Recovery).count();
    let shares = |rule: &&peers_model::record::PeerRule| {
        regular < 2 || rule.role != peers_model::config::Role::Recovery
    };
    let turn = state.turn_index.min(rules.len());
    let (after, before) = rules.split_at_checked(turn).map_or((&[][..], &[][..]), |(b, a)| (a, b));
    let peers: Vec<PeerName> =
        after.iter().chain(before).filter(shares).map(|rule| rule.name.clone()).collect();
    let able: Vec<PeerName> = peers.iter().filter(|peer| turns::may_ever_go(state, peer)).cloned().collect();
    due(plan, &state.course.book, Team { peers: &peers, able: &able }, &facts.head)
}

/// The step that the next turn is about, and who may have it.
pub(crate) fn work(cfg: &LoopConfig, state: &State, facts: &Facts) -> Option<(StepWork, Vec<PeerName>)> {
    let plan = facts.plan.as_ref().filter(|_| phase(&cfg.course, state).is_some_and(|phase| phase.steps))?;
    match asked_now(state, plan, facts) {
        Due::Turn(work, who) => Some((work, who)),
        Due::Blocked(_) | Due::Nothing => None,
    }
}

/// Whether the turn's phase or step says what to do. Reviews that are due come in the next turn without one.
pub(crate) fn task(cfg: &LoopConfig, state: &State, composing: &Composing) -> Task {
    let phase = phase(&cfg.course, state).filter(|_| !composing.skeptic);
    let given = composing.work.is_some() || phase.is_some_and(|phase| phase.artifact.is_some());
    if given { Task::Given } else { Task::Free }
}

/// What the record of a turn that begins says of all this.
pub(crate) fn asked(cfg: &LoopConfig, state: &State, composing: &Composing) -> Option<Box<CourseAsked>> {
    let rules = state.rules.course.as_deref()?;
    let seen = (!rules.settle.is_empty()).then(|| quiet(state, &composing.facts.key()));
    let phase = phase(&cfg.course, state).filter(|_| !composing.skeptic).map(|phase| phase.name.clone());
    Some(Box::new(CourseAsked { phase, work: composing.work.clone(), seen }))
}

/// Whether it is the turn of a reviewer that has not handed in yet what it read.
pub(crate) fn is_blind(composing: &Composing) -> bool {
    composing.work.as_ref().is_some_and(|work| work.role == StepRole::Review)
}

/// What such a reviewer is shown: commits, and nothing that their author says.
pub(crate) fn shown(composing: &Composing, facts: &ComposeFacts) -> ComposeFacts {
    let mut facts = facts.clone();
    if is_blind(composing) {
        facts.open_bugs.clear();
        facts.inbox.clear();
        facts.bookmarks.clear();
        facts.messages.clear();
        facts.last_handoff = None;
    }
    facts
}

/// What a turn that stands brought to its phase or its step, and what it lacks, for the next prompt.
pub(crate) fn moved(
    cfg: &LoopConfig,
    open: &OpenTick,
    harvest: &Harvest,
    success: bool,
) -> (CourseMoved, Option<String>) {
    let mut moved = CourseMoved::default();
    let Some(asked) = open.started.course.as_deref() else { return (moved, None) };
    let by_peer = |path: &str| {
        let mut commits = harvest.commits.iter().filter(|commit| commit.origin == Origin::Peer);
        commits.any(|commit| commit.paths.iter().any(|changed| changed == path))
    };
    let phase = cfg.course.phases.iter().find(|phase| Some(&phase.name) == asked.phase.as_ref());
    if let Some((phase, artifact)) = phase.and_then(|phase| Some((phase, phase.artifact.as_deref()?))) {
        let defect = if by_peer(artifact) {
            defect(phase, harvest.artifact.as_deref(), harvest.plan.as_ref())
        } else {
            Some("is in no commit of this turn".to_owned())
        };
        moved.delivered = defect.is_none();
        let lacks = defect.map(|defect| format!("the phase {} goes on: {artifact} {defect}", phase.name));
        return (moved, lacks);
    }
    let Some(work) = asked.work.as_ref().filter(|_| success) else { return (moved, None) };
    moved.note.clone_from(&harvest.note);
    let step = harvest.plan.as_ref().and_then(|plan| plan.steps.iter().find(|step| step.id == work.step));
    moved.checked_off =
        work.role == StepRole::Compare && by_peer(PLAN) && step.is_some_and(|step| step.mark == Mark::Done);
    let lacks = work.role.part().filter(|_| moved.note.is_none()).map(|part| {
        format!("{} is not handed in: {} was not in the drop box, or had no text", work.step, part.word())
    });
    (moved, lacks)
}

/// What an artifact lacks.
fn defect(phase: &Phase, text: Option<&str>, plan: Option<&Plan>) -> Option<String> {
    let Some(text) = text else { return Some("is missing, or no plain text of at most 256 KiB".to_owned()) };
    let least = usize::try_from(phase.least_bytes).unwrap_or(usize::MAX);
    if text.trim().len() < least {
        return Some(format!("has {} bytes, of {least}", text.trim().len()));
    }
    let headings: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_matches(['#', ' ', '\t']).to_lowercase())
        .collect();
    if let Some(section) = phase.sections.iter().find(|name| !headings.contains(&name.to_lowercase())) {
        return Some(format!("has no section `{section}`"));
    }
    let steps = plan.filter(|_| phase.each_step).map(|plan| plan.steps.as_slice()).unwrap_or_default();
    let named = |id: StepId| text.contains(&format!("[{id}]"));
    steps.iter().find(|step| !named(step.id)).map(|step| format!("does not name [{}]", step.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_has_its_size_its_sections_and_each_step() {
        let phase = Phase {
            name: "recon".into(),
            prompt: "look".into(),
            artifact: Some("RECON.md".into()),
            least_bytes: 20,
            sections: vec!["Module map".into()],
            each_step: true,
            steps: false,
        };
        let plan = crate::plan::parse(
            b"# F\n## Meta\nsurfaces: [cli]\nacceptance: true\n## Steps\n- [ ] [STEP-1] a\n  - touches: a\n",
        )
        .plan;
        for (text, due) in [
            (None, "is missing"),
            (Some("short"), "has 5 bytes, of 20"),
            (Some("a text that is long enough"), "has no section `Module map`"),
            (Some("## module map\nlong enough, without the step"), "does not name [STEP-1]"),
            (Some("## Module map\nlong enough, with [STEP-1]"), ""),
        ] {
            let found = defect(&phase, text, plan.as_ref()).unwrap_or_default();
            assert!(found.starts_with(due) && found.is_empty() == due.is_empty(), "{text:?}: {found}");
        }
    }
}
