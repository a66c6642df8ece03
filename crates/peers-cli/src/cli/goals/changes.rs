//! What a changed goals or config file means: which gate got weaker, what got wider.

mod config;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use peers_console::output::counted;
use peers_core::dsl::Expr;
use peers_core::lint;
use peers_model::GoalId;
use peers_model::config::Config;
use peers_model::goal::{Course, GateRun, Goal, GoalKind, HardGoal, SoftGoal, TreeChoice};
use peers_model::review::SoftRule;
use peers_store::load;
use peers_sys::term;
use serde_json::{Value, json};

/// Cells of a text that stands in its sentence. A longer one has lines of its own.
const INLINE: usize = 120;
/// Cells of a sentence that stays in one line.
const SENTENCE: usize = 160;
/// Cells of a piece of a longer one.
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

/// One change. Nothing of it is ever cut: whoever says yes to it has seen all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    effect: Effect,
    about: String,
    text: Option<Text>,
}

/// A text of the file that may have many lines: what runs, what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text {
    is: String,
    was: Option<String>,
    behind: &'static str,
}

impl Change {
    fn new(effect: Effect, about: &str) -> Self {
        Self { effect, about: spelled(about), text: None }
    }

    /// Something else that runs as the operator.
    fn runs(about: &str, command: &str) -> Self {
        Self::of(Effect::Wider, about, command, None)
    }

    /// What ends in a text of the file, and the text that it replaces.
    fn of(effect: Effect, about: &str, is: &str, was: Option<&str>) -> Self {
        let text = Text { is: visible(is), was: was.map(visible), behind: "" };
        Self { effect, about: spelled(about), text: Some(text) }
    }

    /// Whether more is proved by it, and nothing else changes.
    pub(super) fn only_strengthens(&self) -> bool {
        self.effect == Effect::Stronger
    }

    /// For people: one line, and more below it where that is long.
    pub(super) fn text(&self) -> String {
        let word = self.effect.word();
        let Some(Text { is, was, behind }) = &self.text else {
            let mut pieces = wrapped(&format!("{word}: {}", self.about), SENTENCE).into_iter();
            let first = pieces.next().unwrap_or_default();
            return pieces.fold(first, |text, piece| text + "\n    > " + &piece);
        };
        let short = |text: &String| !text.contains('\n') && term::width(text) <= INLINE;
        if short(is) && was.as_ref().is_none_or(short) {
            return format!("{word}: {}", self.sentence());
        }
        let mut text = format!("{word}: {} what follows{behind}", self.about);
        if let Some(was) = was.as_ref().filter(|was| short(was)) {
            // Writing to a string cannot fail.
            let _ = write!(text, " in place of `{was}`");
        }
        block(&mut text, is);
        if let Some(was) = was.as_ref().filter(|was| !short(was)) {
            text.push_str("\n  in place of");
            block(&mut text, was);
        }
        text
    }

    /// In one line.
    fn sentence(&self) -> String {
        let Some(Text { is, was, behind }) = &self.text else { return self.about.clone() };
        let was = was.as_ref().map(|was| format!(" in place of `{was}`")).unwrap_or_default();
        format!("{} `{is}`{behind}{was}", self.about)
    }

    pub(super) fn json(&self) -> Value {
        json!({"effect": self.effect.word(), "about": self.sentence()})
    }
}

/// Adds the lines of a text, so that none of them can be taken for one of ours.
fn block(text: &mut String, lines: &str) {
    for line in lines.lines() {
        for (n, piece) in wrapped(line, WRAPPED).iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n    {} {piece}", if n == 0 { '|' } else { '>' });
        }
    }
}

/// As [`visible`], in one line.
fn spelled(text: &str) -> String {
    visible(text).replace('\n', "\\u{a}")
}

/// A text with everything in it that a terminal would not show as what it is written out.
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

/// A line in pieces, where it is longer than `most`.
fn wrapped(line: &str, most: usize) -> Vec<String> {
    if term::width(line) <= most {
        return vec![line.to_owned()];
    }
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
        let course = |text: &str| load::load_course(text).unwrap_or_default();
        compare_course(&course(old_goals), &course(goals), &mut changes);
    }
    if let (old, Some(new)) = configs {
        config::compare(&old.unwrap_or_else(|| config::idle(&new)), &new, &mut changes);
    }
    changes
}

/// Phases, and what stays green at the end. One that is there no more, or says something else, asks for less as far
/// as anybody can tell.
fn compare_course(old: &Course, new: &Course, changes: &mut Vec<Change>) {
    for phase in old.phases.iter().filter(|phase| !new.phases.contains(phase)) {
        let how =
            if new.phases.iter().any(|other| other.name == phase.name) { "is different" } else { "is gone" };
        changes.push(Change::of(Effect::Weaker, &format!("phase {how}:"), &phase.name, None));
    }
    for phase in new.phases.iter().filter(|phase| old.phases.iter().all(|other| other.name != phase.name)) {
        changes.push(Change::of(Effect::Other, "phase is new:", &phase.name, None));
    }
    for id in old.settle.iter().filter(|id| !new.settle.contains(id)) {
        changes.push(Change::new(Effect::Weaker, &format!("gate `{id}` need not stay green at the end")));
    }
    for id in new.settle.iter().filter(|id| !old.settle.contains(id)) {
        changes.push(Change::new(Effect::Stronger, &format!("gate `{id}` has to stay green at the end")));
    }
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
                if let Some(description) = &goal.description {
                    changes.push(Change::of(Effect::Other, &format!("goal `{id}`: says"), description, None));
                }
                begins(id.as_str(), &goal.kind, changes);
            }
            Some((GoalKind::Hard(old), GoalKind::Hard(new))) => hard(id.as_str(), old, new, changes),
            Some((GoalKind::Soft(old), GoalKind::Soft(new))) => soft(id.as_str(), old, new, changes),
            Some((GoalKind::Hard(_), GoalKind::Soft(_))) => {
                changes.push(Change::new(
                    Effect::Weaker,
                    &format!("goal `{id}` is no longer measured, only reviewed"),
                ));
                begins(id.as_str(), &goal.kind, changes);
            }
            Some((GoalKind::Soft(_), GoalKind::Hard(_))) => {
                changes.push(Change::new(Effect::Stronger, &format!("goal `{id}` is measured now")));
                begins(id.as_str(), &goal.kind, changes);
            }
        }
    }
}

/// What a goal runs and asks that was none before, or none of its kind.
fn begins(id: &str, kind: &GoalKind, changes: &mut Vec<Change>) {
    let hard = match kind {
        GoalKind::Hard(hard) => hard,
        GoalKind::Soft(soft) => {
            changes.push(Change::of(Effect::Other, &format!("review `{id}`: asks"), &soft.prompt, None));
            if !soft.paths.is_empty() {
                changes.push(Change::new(Effect::Other, &format!("review `{id}`: {}", about_files(soft))));
            }
            return;
        }
    };
    match &hard.run {
        GateRun::Shell { cmd, pass_when } => {
            changes.push(Change::runs(&format!("gate `{id}` runs"), cmd));
            if asks_else(USUAL, pass_when) {
                let about = format!("gate `{id}`: passes when");
                changes.push(Change::of(Effect::Other, &about, pass_when, None));
            }
        }
        GateRun::Check { name, args } => {
            changes.push(Change::new(Effect::Other, &format!("gate `{id}`: is the {}", check(name, args))));
        }
    }
    if !hard.env.is_empty() {
        changes.push(Change::new(Effect::Wider, &format!("gate `{id}` asks for {}", hard.env.join(", "))));
    }
}

/// The condition of most gates, of which nothing needs to be said.
const USUAL: &str = "exit_code == 0";

fn check(name: &str, args: &[String]) -> String {
    let words: Vec<&str> = std::iter::once(name).chain(args.iter().map(String::as_str)).collect();
    format!("check `{}`", words.join(" "))
}

fn about_files(soft: &SoftGoal) -> String {
    match soft.paths.as_slice() {
        [] => "is about all files that are no documentation, and TASK.md".to_owned(),
        globs => format!("is about {}", globs.join(", ")),
    }
}

/// What is for people and for agents to read.
fn told(old: &Goal, new: &Goal, changes: &mut Vec<Change>) {
    // In full, so that a new field does not build until there is a line about it.
    let Goal { id, description, group, weight, kind: _ } = new;
    if old.description != *description {
        let (is, was) = (description.as_deref().unwrap_or_default(), old.description.as_deref());
        changes.push(Change::of(Effect::Other, &format!("goal `{id}`: says"), is, was));
    }
    let mut push = |what: &str| changes.push(Change::new(Effect::Other, &format!("goal `{id}`: {what}")));
    if old.group != *group {
        push(&format!("is shown in the group `{}`", group.as_deref().unwrap_or_default()));
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
    field(was_paths, paths, &mut push, |was, is| {
        let about = |globs: &[String]| match globs {
            [] => "the whole tree".to_owned(),
            globs => globs.join(", "),
        };
        (Effect::Other, format!("a kept answer is about {}, not {}", about(is), about(was)))
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
    changes.extend(idles(id, old, new));
    let about = format!("gate `{id}`: runs");
    match (old, new) {
        (GateRun::Shell { cmd: was, pass_when: when }, GateRun::Shell { cmd, pass_when }) => {
            if was != cmd {
                changes.push(Change::of(Effect::Wider, &about, cmd, Some(was)));
            }
            if asks_else(when, pass_when) {
                let about = format!("gate `{id}`: passes when");
                changes.push(Change::of(Effect::Other, &about, pass_when, Some(when)));
            }
        }
        (GateRun::Check { .. }, GateRun::Shell { cmd, pass_when }) => {
            let mut change = Change::runs(&about, cmd);
            if let Some(text) = &mut change.text {
                text.behind = " in place of a check";
            }
            changes.push(change);
            if asks_else(USUAL, pass_when) {
                let about = format!("gate `{id}`: passes when");
                changes.push(Change::of(Effect::Other, &about, pass_when, None));
            }
        }
        (old, GateRun::Check { name, args }) => {
            if old != new {
                let about = format!("gate `{id}`: is the {}", check(name, args));
                changes.push(Change::new(Effect::Other, &about));
            }
        }
    }
}

/// That a gate which could turn red is green from now on, whatever there is to find.
fn idles(id: &str, old: &GateRun, new: &GateRun) -> Option<Change> {
    let GateRun::Shell { cmd, pass_when } = new else { return None };
    let could_fail = match old {
        GateRun::Shell { cmd, pass_when } => !lint::cannot_fail(cmd, pass_when),
        GateRun::Check { .. } => true,
    };
    if !(could_fail && lint::cannot_fail(cmd, pass_when)) {
        return None;
    }
    let same_command = matches!(old, GateRun::Shell { cmd: was, .. } if was == cmd);
    let (what, text) = if same_command { ("condition", pass_when) } else { ("command", cmd) };
    let about = format!("gate `{id}` can no longer fail: its {what} is now");
    Some(Change::of(Effect::Weaker, &about, text, None))
}

/// Whether another condition asks something else.
fn asks_else(old: &str, new: &str) -> bool {
    match (Expr::parse(old), Expr::parse(new)) {
        (Ok(old), Ok(new)) => !old.same(&new),
        _ => old != new,
    }
}

fn soft(id: &str, old: &SoftGoal, new: &SoftGoal, changes: &mut Vec<Change>) {
    if old.prompt != new.prompt {
        let about = format!("review `{id}`: asks");
        changes.push(Change::of(Effect::Other, &about, &new.prompt, Some(&old.prompt)));
    }
    let mut push = |effect, what: &str| changes.push(Change::new(effect, &format!("review `{id}`: {what}")));
    // A new field does not build until there is a line about it.
    let SoftGoal { prompt: _, rule: _, every: _, paths: _, check: _, needs: _ } = new;
    if old.rule != new.rule {
        push(rule(old.rule, new.rule), "another rule says who must pass it");
    }
    if old.paths != new.paths {
        push(Effect::Other, &format!("{}; before it {}", about_files(new), about_files(old)));
    }
    match (&old.check, &new.check) {
        (old, new) if old == new => {}
        (None, _) => push(Effect::Other, "its reviewers are shown what a check finds"),
        (_, None) => push(Effect::Other, "its reviewers are not shown any more what a check finds"),
        _ => push(Effect::Other, "its reviewers are shown what another check finds"),
    }
    if old.needs != new.needs {
        let names: Vec<&str> = new.needs.iter().map(peers_model::GoalId::as_str).collect();
        let what = if names.is_empty() {
            "is asked for whatever other goals say".to_owned()
        } else {
            format!("is asked for once these are green: {}", names.join(", "))
        };
        push(Effect::Other, &what);
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
