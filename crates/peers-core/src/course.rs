//! Phases, steps and quiet ticks: what a run goes through beyond gates and reviews.
//!
//! All of it is data of goals.yaml. Where that names none, nothing here does anything.

use peers_model::goal::{Course as Asked, Phase};
use peers_model::outcome::StopReason;
use peers_model::record::{Rules, TickRecord, TickStarted};
use peers_model::step::{CourseAsked, CourseMoved, CourseRules, Quiet, StepRole, StepWork};
use peers_model::verdict::TreeKey;
use peers_model::{PeerName, StepId};
use serde::{Deserialize, Serialize};

use crate::machine::{ComposeFacts, Composing, Facts, Harvest, LoopConfig, Origin};
use crate::plan::{Mark, Plan};
use crate::state::{OpenTick, State};
use crate::steps::{CurrentStep, Due, StepBook, Team, due};
use crate::turns;

/// Turns of one phase without its artifact.
pub const TRIES: u32 = 3;
/// Ticks at the end in which the gates of `settle` stay green.
const SETTLED: u32 = 2;
/// The file with the steps.
pub const PLAN: &str = "PLAN.md";

/// How far a run is in its phases, its plan and its quiet ticks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Course {
    /// Index of the phase.
    #[serde(default)]
    pub phase: usize,
    /// Turns of it that did not bring its artifact.
    #[serde(default)]
    pub tries: u32,
    /// The loop stopped for the operator before the last phase.
    #[serde(default)]
    pub checkpointed: bool,
    /// The steps.
    #[serde(default)]
    pub book: StepBook,
    /// The quiet ticks.
    #[serde(default)]
    pub calm: Calm,
}

/// Ticks in a row with every gate green.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", content = "ticks", rename_all = "kebab-case")]
pub enum Calm {
    /// So many; as many as the plan asks for lead on.
    Green(u32),
    /// Then so many in which the gates of `settle` were green too.
    Settling(u32),
}

impl Default for Calm {
    fn default() -> Self {
        Self::Green(0)
    }
}

impl Calm {
    /// After one more tick.
    #[must_use]
    pub fn after(self, quiet_ticks: u32, seen: Quiet) -> Self {
        match (self, seen) {
            (_, Quiet::Red) | (Self::Green(_), Quiet::Unsettled) => Self::Green(0),
            (Self::Green(ticks), Quiet::Green) if ticks.saturating_add(1) >= quiet_ticks => Self::Settling(0),
            (Self::Green(ticks), Quiet::Green) => Self::Green(ticks.saturating_add(1)),
            (Self::Settling(_), Quiet::Unsettled) => Self::Settling(0),
            (Self::Settling(ticks), Quiet::Green) => Self::Settling(ticks.saturating_add(1)),
        }
    }

    /// Ticks that are missing.
    #[must_use]
    pub fn left(self, quiet_ticks: u32) -> u32 {
        match self {
            Self::Green(ticks) => quiet_ticks.saturating_sub(ticks).saturating_add(SETTLED),
            Self::Settling(ticks) => SETTLED.saturating_sub(ticks),
        }
    }
}

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

/// What the record of a turn that begins says of all this.
pub(crate) fn asked(cfg: &LoopConfig, state: &State, composing: &Composing) -> Option<Box<CourseAsked>> {
    let rules = state.rules.course.as_deref()?;
    let seen = (!rules.settle.is_empty()).then(|| quiet(state, &composing.facts.key()));
    let phase = phase(&cfg.course, state).filter(|_| !composing.skeptic).map(|phase| phase.name.clone());
    Some(Box::new(CourseAsked { phase, work: composing.work.clone(), seen }))
}

/// What a reviewer is shown before it has handed in what it read: commits, and nothing that their author says.
pub(crate) fn shown(composing: &Composing, facts: &ComposeFacts) -> ComposeFacts {
    let mut facts = facts.clone();
    if composing.work.as_ref().is_some_and(|work| work.role == StepRole::Review) {
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

impl Course {
    /// Takes a turn in; `counts` is false where it counts for nobody. Whether it got on by that.
    pub(crate) fn after(
        &mut self,
        rules: &Rules,
        started: &TickStarted,
        tick: &TickRecord,
        counts: bool,
    ) -> bool {
        let (Some(rules), Some(asked)) = (rules.course.as_deref(), started.course.as_deref()) else {
            return false;
        };
        let moved = tick.course.as_deref().cloned().unwrap_or_default();
        let before = self.clone();
        if asked.phase.as_ref() == rules.phases.get(self.phase) && asked.phase.is_some() {
            if moved.delivered {
                self.phase = self.phase.saturating_add(1);
                self.tries = 0;
            } else if counts {
                self.tries = self.tries.saturating_add(1);
            }
        }
        self.book.after(started, tick);
        if let Some(seen) = asked.seen.filter(|_| counts) {
            self.calm = self.calm.after(rules.quiet_ticks, seen);
        }
        let quieter = asked.seen == Some(Quiet::Green) && self.calm != before.calm;
        self.phase > before.phase || self.book != before.book || quieter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_76_gates_stay_green_for_as_long_as_the_plan_asks_and_then_two_ticks_more() {
        use Quiet::{Green, Red, Unsettled};
        let fold = |seen: &[Quiet]| seen.iter().fold(Calm::default(), |calm, seen| calm.after(5, *seen));
        let green = [Green; 9];
        for (seen, due) in [
            (&green[..4], Calm::Green(4)),
            (&green[..5], Calm::Settling(0)),
            (&green[..7], Calm::Settling(2)),
            // A gate of `settle` is red: before, all begins anew; later, the two ticks do.
            (&[Green, Green, Green, Green, Unsettled], Calm::Green(0)),
            (&[Green, Green, Green, Green, Green, Green, Unsettled], Calm::Settling(0)),
            // Another one, a blocking bug say.
            (&[Green, Green, Green, Green, Green, Green, Red], Calm::Green(0)),
        ] {
            assert_eq!(fold(seen), due, "{seen:?}");
        }
        assert_eq!(
            [fold(&green[..4]).left(5), fold(&green[..5]).left(5), fold(&green[..7]).left(5)],
            [3, 2, 0]
        );
    }

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
