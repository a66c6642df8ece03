//! What a changed goals or config file means: which gate got weaker, what got wider.

mod config;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use peers_core::dsl::{Comparison, Expr};
use peers_model::GoalId;
use peers_model::config::Config;
use peers_model::goal::{GateRun, Goal, GoalKind, HardGoal, SoftGoal, TreeChoice};
use peers_model::review::SoftRule;
use peers_store::load;
use peers_sys::term;
use serde_json::{Value, json};

use crate::output::counted;

/// Cells of a sentence.
const SENTENCE: usize = 300;
/// Cells of a command that stands in its sentence. A longer one has lines of its own.
const INLINE: usize = 120;
/// Cells of such a line.
const WRAPPED: usize = 100;

/// What a change does to what is proved, or to what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Less is proved.
    Weaker,
    /// More is proved.
    Stronger,
    /// Other programs run as you.
    Wider,
    /// Neither can be told from the file.
    Other,
}

impl Effect {
    fn word(self) -> &'static str {
        match self {
            Self::Weaker => "weaker",
            Self::Stronger => "stronger",
            Self::Wider => "runs",
            Self::Other => "changed",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    effect: Effect,
    about: String,
    /// What runs, in full: whoever says yes to it has seen all of it.
    runs: Option<Runs>,
}

/// A command, and what stands behind it in the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Runs {
    command: String,
    behind: String,
}

impl Change {
    fn new(effect: Effect, about: &str) -> Self {
        Self { effect, about: term::line(about, SENTENCE), runs: None }
    }

    /// Something else that runs as the operator.
    fn runs(about: &str, command: &str, behind: &str) -> Self {
        let runs = Runs { command: visible(command), behind: term::line(behind, SENTENCE) };
        Self { effect: Effect::Wider, about: term::line(about, SENTENCE), runs: Some(runs) }
    }

    /// Whether it belongs to what needs a yes of its own.
    pub(super) fn widens(&self) -> bool {
        self.effect == Effect::Wider
    }

    /// Whether more is proved by it, and nothing else changes.
    pub(super) fn only_strengthens(&self) -> bool {
        self.effect == Effect::Stronger
    }

    /// For people: one line, and below it what runs where that is long.
    pub(super) fn text(&self) -> String {
        let Self { effect, about, runs } = self;
        let Some(Runs { command, behind }) = runs else { return format!("{}: {about}", effect.word()) };
        if !command.contains('\n') && term::width(command) <= INLINE {
            return format!("{}: {about} `{command}`{behind}", effect.word());
        }
        let mut text = format!("{}: {about} what follows{behind}", effect.word());
        for line in command.lines() {
            for (n, piece) in wrapped(line).iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n    {} {piece}", if n == 0 { '|' } else { '>' });
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let about = match &self.runs {
            Some(Runs { command, behind }) => format!("{} `{command}`{behind}", self.about),
            None => self.about.clone(),
        };
        json!({"effect": self.effect.word(), "about": about})
    }
}

/// A command with everything in it that a terminal would not show as what it is written out.
fn visible(command: &str) -> String {
    let mut text = String::with_capacity(command.len());
    for c in command.chars() {
        let shows = c == '\n'
            || c == ' '
            || !(c.is_control() || c.is_whitespace() || term::invisible(c) || term::char_width(c) == 0);
        if shows {
            text.push(c);
        } else {
            text.extend(c.escape_unicode());
        }
    }
    text
}

/// A line in pieces.
fn wrapped(line: &str) -> Vec<String> {
    let (mut pieces, mut used) = (vec![String::new()], 0);
    for c in line.chars() {
        let width = term::char_width(c);
        if used + width > WRAPPED {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

/// The changes between two pairs of goals and config. A new file that does not parse gives none; beside an old
/// one that does not, all that the new one runs is new.
pub(super) fn between((old_goals, old_config): (&str, &str), (goals, config): (&str, &str)) -> Vec<Change> {
    let mut changes = Vec::new();
    let configs = (load::load_config(old_config).ok(), load::load_config(config).ok());
    let peers = |config: &Option<Config>| config.as_ref().map_or(2, |config| config.peers.len());
    let read = |text: &str, config| load::load_goals(text, peers(config), peers_checks::names()).ok();
    if let Some(new) = read(goals, &configs.1) {
        compare_goals(&read(old_goals, &configs.0).unwrap_or_default(), &new, &mut changes);
    }
    if let (old, Some(new)) = configs {
        config::compare(&old.unwrap_or_else(|| config::idle(&new)), &new, &mut changes);
    }
    changes
}

fn compare_goals(old: &[Goal], new: &[Goal], changes: &mut Vec<Change>) {
    let by_id = |goals: &[Goal]| -> BTreeMap<String, Goal> {
        goals.iter().map(|goal| (goal.id.to_string(), goal.clone())).collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    for goal in old.iter().filter(|goal| !after.contains_key(goal.id.as_str())) {
        changes.push(Change::new(Effect::Weaker, &format!("goal `{}` is gone", goal.id)));
    }
    for goal in new {
        let id = &goal.id;
        if let Some(old) = before.get(id.as_str()) {
            told(old, goal, changes);
        }
        match before.get(id.as_str()).map(|old| (&old.kind, &goal.kind)) {
            None => {
                changes.push(Change::new(Effect::Stronger, &format!("goal `{id}` is new")));
                runs(id.as_str(), &goal.kind, changes);
            }
            Some((GoalKind::Hard(old), GoalKind::Hard(new))) => hard(id.as_str(), old, new, changes),
            Some((GoalKind::Soft(old), GoalKind::Soft(new))) => soft(id.as_str(), old, new, changes),
            Some((GoalKind::Hard(_), GoalKind::Soft(_))) => {
                changes.push(Change::new(
                    Effect::Weaker,
                    &format!("goal `{id}` is no longer measured, only reviewed"),
                ));
            }
            Some((GoalKind::Soft(_), GoalKind::Hard(_))) => {
                changes.push(Change::new(Effect::Stronger, &format!("goal `{id}` is measured now")));
                runs(id.as_str(), &goal.kind, changes);
            }
        }
    }
}

fn runs(id: &str, kind: &GoalKind, changes: &mut Vec<Change>) {
    let GoalKind::Hard(hard) = kind else { return };
    if let GateRun::Shell { cmd, .. } = &hard.run {
        changes.push(Change::runs(&format!("gate `{id}` runs"), cmd, ""));
    }
    if !hard.env.is_empty() {
        changes.push(Change::new(Effect::Wider, &format!("gate `{id}` asks for {}", hard.env.join(", "))));
    }
}

/// What is for people and for agents to read.
fn told(old: &Goal, new: &Goal, changes: &mut Vec<Change>) {
    // In full, so that a new field does not build until there is a line about it.
    let Goal { id, description, group, weight, kind: _ } = new;
    let mut push = |what: &str| changes.push(Change::new(Effect::Other, &format!("goal `{id}`: {what}")));
    if old.description != *description {
        push("another description");
    }
    if old.group != *group {
        push("is shown in another group");
    }
    if old.weight != *weight {
        push("another weight where views say how far things are");
    }
}

fn hard(id: &str, old: &HardGoal, new: &HardGoal, changes: &mut Vec<Change>) {
    what_runs(id, &old.run, &new.run, changes);
    let mut push = |effect, what: String| changes.push(Change::new(effect, &format!("gate `{id}`: {what}")));
    // In full, so that a new field does not build until there is a line about it.
    let HardGoal {
        run: _,
        timeout_s: was_timeout,
        retries: was_retries,
        tree: was_tree,
        cacheable: was_cacheable,
        expensive: was_expensive,
        serial: was_serial,
        needs: was_needs,
        paths: was_paths,
        env: was_env,
        cwd: was_cwd,
    } = old;
    let HardGoal { run: _, timeout_s, retries, tree, cacheable, expensive, serial, needs, paths, env, cwd } =
        new;
    field(*was_retries, *retries, &mut push, |was, is| {
        let effect = if is > was { Effect::Weaker } else { Effect::Stronger };
        (effect, format!("is tried {} more when red, not {was}", counted(is.into(), "time")))
    });
    field(*was_tree, *tree, &mut push, |was, is| match (was == TreeChoice::Live, is == TreeChoice::Live) {
        (false, true) => (Effect::Weaker, "is exempt from the proof in a clean checkout".to_owned()),
        (true, false) => (Effect::Stronger, "is proved in a clean checkout".to_owned()),
        _ => (Effect::Other, format!("runs in the tree `{}`, not `{}`", word(&is), word(&was))),
    });
    field(*was_timeout, *timeout_s, &mut push, |was, is| {
        let shown = |limit: Option<u32>| limit.map_or("the default".to_owned(), |s| format!("{s} s"));
        (Effect::Other, format!("time limit is {}, not {}", shown(is), shown(was)))
    });
    let either = |is: bool, yes: &str, no: &str| if is { yes.to_owned() } else { no.to_owned() };
    field(*was_cacheable, *cacheable, &mut push, |_, is| {
        let effect = if is { Effect::Weaker } else { Effect::Stronger };
        (effect, either(is, "a green answer may outlive the run", "no green answer outlives the run"))
    });
    field(*was_expensive, *expensive, &mut push, |_, is| {
        (Effect::Other, either(is, "runs in a kept copy of the commit in ticks", "is no longer expensive"))
    });
    field(*was_serial, *serial, &mut push, |_, is| {
        (Effect::Other, either(is, "runs alone", "runs beside other gates"))
    });
    field(was_needs, needs, &mut push, |was, is| {
        let shown = |ids: &[GoalId]| match ids {
            [] => "nothing".to_owned(),
            ids => ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        (Effect::Other, format!("needs {}, not {}", shown(is), shown(was)))
    });
    field(was_paths, paths, &mut push, |_, is| {
        let about = if is.is_empty() { "the whole tree".to_owned() } else { is.join(", ") };
        (Effect::Other, format!("a kept answer is about {about}"))
    });
    field(was_env, env, &mut push, |was, is| {
        let shown = if is.is_empty() { "no further variables".to_owned() } else { is.join(", ") };
        (wider_by(was, is), format!("asks for {shown}"))
    });
    field(was_cwd, cwd, &mut push, |_, is| {
        (Effect::Other, format!("starts in {}", is.as_deref().unwrap_or("the top of the tree")))
    });
}

/// One field of a gate: nothing where it stayed, else what the change means.
fn field<T: PartialEq>(
    was: T,
    is: T,
    push: &mut dyn FnMut(Effect, String),
    says: impl FnOnce(T, T) -> (Effect, String),
) {
    if was != is {
        let (effect, what) = says(was, is);
        push(effect, what);
    }
}

/// A word as it stands in the file.
fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Names that are new let more in; names that are gone do not.
fn wider_by(was: &[String], is: &[String]) -> Effect {
    if is.iter().all(|name| was.contains(name)) { Effect::Other } else { Effect::Wider }
}

fn what_runs(id: &str, old: &GateRun, new: &GateRun, changes: &mut Vec<Change>) {
    let about = format!("gate `{id}`: runs");
    match (old, new) {
        (GateRun::Shell { cmd: was, pass_when: when }, GateRun::Shell { cmd, pass_when }) => {
            if was != cmd {
                let was = term::line(&visible(was), INLINE);
                changes.push(Change::runs(&about, cmd, &format!(" in place of `{was}`")));
            }
            if let Some(effect) = condition(when, pass_when) {
                let about = format!("gate `{id}`: passes when `{pass_when}` in place of `{when}`");
                changes.push(Change::new(effect, &about));
            }
        }
        (GateRun::Check { .. }, GateRun::Shell { cmd, .. }) => {
            changes.push(Change::runs(&about, cmd, " in place of a check"));
        }
        (old, GateRun::Check { name, args }) => {
            if old != new {
                let shown = [std::slice::from_ref(name), args.as_slice()].concat().join(" ");
                changes.push(Change::new(Effect::Other, &format!("gate `{id}`: is the check `{shown}`")));
            }
        }
    }
}

/// What another condition means; `None` where it is the same in other words.
fn condition(old: &str, new: &str) -> Option<Effect> {
    let (Ok(old), Ok(new)) = (Expr::parse(old), Expr::parse(new)) else {
        return (old != new).then_some(Effect::Other);
    };
    match old.compare(&new) {
        Comparison::Same => None,
        Comparison::Weaker => Some(Effect::Weaker),
        Comparison::Stronger => Some(Effect::Stronger),
        Comparison::Changed => Some(Effect::Other),
    }
}

fn soft(id: &str, old: &SoftGoal, new: &SoftGoal, changes: &mut Vec<Change>) {
    let mut push = |effect, what: &str| changes.push(Change::new(effect, &format!("review `{id}`: {what}")));
    // A new field does not build until there is a line about it.
    let SoftGoal { prompt: _, rule: _, every: _, paths: _, check: _ } = new;
    if old.rule != new.rule {
        push(rule(old.rule, new.rule), "another rule says who must pass it");
    }
    if old.prompt != new.prompt {
        push(Effect::Other, "another instruction");
    }
    if old.paths != new.paths {
        push(Effect::Other, "is about other files");
    }
    match (&old.check, &new.check) {
        (old, new) if old == new => {}
        (None, _) => push(Effect::Other, "its reviewers are shown what a check finds"),
        (_, None) => push(Effect::Other, "its reviewers are not shown any more what a check finds"),
        _ => push(Effect::Other, "its reviewers are shown what another check finds"),
    }
    if old.every != new.every {
        push(Effect::Other, &format!("is asked for once in {} at most", counted(new.every.into(), "tick")));
    }
}

/// What another rule means.
fn rule(old: SoftRule, new: SoftRule) -> Effect {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if let (SoftRule::Quorum { pass: was, of: among }, SoftRule::Quorum { pass, of }) = (old, new) {
        // The more reviews there are to take them from, the easier passes are found.
        return match (pass.cmp(&was), of.cmp(&among)) {
            (Less | Equal, Greater) | (Less, Equal) => Effect::Weaker,
            (Greater | Equal, Less) | (Greater, Equal) => Effect::Stronger,
            (Less, Less) | (Equal, Equal) | (Greater, Greater) => Effect::Other,
        };
    }
    match needed(new).cmp(&needed(old)) {
        Less => Effect::Weaker,
        Greater if !matches!(new, SoftRule::Quorum { .. }) => Effect::Stronger,
        Greater | Equal => Effect::Other,
    }
}

/// How many peers must pass it; all of them is the most.
fn needed(rule: SoftRule) -> u8 {
    match rule {
        SoftRule::Other { needed } | SoftRule::Alternating { needed } => needed,
        SoftRule::Both { .. } => u8::MAX,
        SoftRule::Quorum { pass, .. } => pass,
    }
}
