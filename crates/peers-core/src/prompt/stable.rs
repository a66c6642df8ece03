//! The instructions, which depend only on who is asked and how peers communicate.

use peers_model::config::Role;
use peers_model::step::{StepRole, StepWork};
use peers_model::{CommitId, PeerName};

use super::input::{PromptInput, Task};

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../templates/prompts/", $name))
    };
}

pub(crate) const IDENTITY: &str = template!("identity.md");
pub(crate) const TASK: &str = template!("task.md");
pub(crate) const BUGS: &str = template!("bugs.md");
pub(crate) const HANDOFF: &str = template!("handoff.md");
pub(crate) const HYBRID: &str = template!("hybrid.md");
pub(crate) const DATA: &str = template!("data.md");
pub(crate) const REVIEW: &str = template!("review.md");
pub(crate) const SKEPTIC: &str = template!("skeptic.md");
const ROLE_RECOVERY: &str = template!("role-recovery.md");
const ROLE_WITNESS: &str = template!("role-witness.md");
const ROLE_DEBATER: &str = template!("role-debater.md");
const DRY_RUN: &str = template!("dry-run.md");
const PRIMERS: &str = template!("primers.md");
const STEP_IMPLEMENT: &str = template!("step-implement.md");
const STEP_REVIEW: &str = template!("step-review.md");
const STEP_COMPARE: &str = template!("step-compare.md");

/// What a turn is about where nothing else says so.
const FREE_CHOICE: &str = "Choose the step that helps most: a red gate's root cause, an open blocking bug, a requested \
                           review, else the next missing piece of what is wanted.";
const OWN_PART: &str =
    "What to do in this turn is said below, under its own heading: do that and nothing else.";

/// Most other peers that are named one by one.
const ROSTER_SHOWN: usize = 12;

/// The instruction blocks in order, by name.
pub(crate) fn blocks(input: &PromptInput) -> Vec<(&'static str, String)> {
    let PromptInput { me, role, roster, skeptic, hybrid, dry_run, phase, task, work, primers, .. } = input;
    let exception = if *hybrid { ", except your own message box" } else { "" };
    let choice = match task {
        Task::Free => FREE_CHOICE,
        Task::Given => OWN_PART,
    };
    let fill = |text: &str| {
        text.replace("{me}", me.as_str())
            .replace("{others}", &others(me, roster))
            .replace("{hybrid_exception}", exception)
            .replace("{choice}", choice)
    };
    let mut blocks = Vec::new();
    if *skeptic {
        blocks.push(("skeptic", SKEPTIC.to_owned()));
    }
    for (name, text) in
        [("identity", IDENTITY), ("task", TASK), ("bugs-protocol", BUGS), ("handoff-rules", HANDOFF)]
    {
        blocks.push((name, fill(text)));
    }
    if *hybrid {
        blocks.push(("hybrid", fill(HYBRID)));
    }
    if !primers.is_empty() {
        let names: Vec<String> = primers.iter().map(|name| format!("`.peers/{name}`")).collect();
        blocks.push(("primers", PRIMERS.replace("{files}", &names.join(", "))));
    }
    let role_text = match role {
        Role::Default => None,
        Role::Recovery => Some(ROLE_RECOVERY),
        Role::Witness => Some(ROLE_WITNESS),
        Role::Debater => Some(ROLE_DEBATER),
    };
    if let Some(text) = role_text {
        blocks.push(("role", format!("## Your role\n\n{text}")));
    }
    if *dry_run {
        blocks.push(("dry-run", DRY_RUN.to_owned()));
    }
    if let Some(phase) = phase {
        blocks.push(("phase", format!("{}\n", phase.trim_end())));
    }
    if let Some(work) = work {
        blocks.push(("step", fill(&step(work))));
    }
    blocks
}

/// What the role in a step asks for.
fn step(work: &StepWork) -> String {
    let StepWork { step, role, base, head } = work;
    let text = match role {
        StepRole::Implement => STEP_IMPLEMENT,
        StepRole::Review => STEP_REVIEW,
        StepRole::Compare => STEP_COMPARE,
    };
    let head = head.as_ref().map_or("HEAD", CommitId::as_str);
    text.replace("{step}", &step.to_string()).replace("{base}", base.as_str()).replace("{head}", head)
}

fn others(me: &PeerName, roster: &[PeerName]) -> String {
    let others: Vec<&PeerName> = roster.iter().filter(|name| *name != me).collect();
    let mut named: Vec<String> = others.iter().take(ROSTER_SHOWN).map(|name| format!("`{name}`")).collect();
    match others.len().saturating_sub(ROSTER_SHOWN) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    let last = named.pop();
    match (named.is_empty(), last) {
        (_, None) => "nobody else".into(),
        (true, Some(last)) => last,
        (false, Some(last)) => format!("{} and {last}", named.join(", ")),
    }
}
