//! A stack of modes as one set of goals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use peers_model::goal::{Course, GoalEntry, GoalType, Phase};
use peers_model::keys;
use peers_store::accept::AcceptedMode;
use serde::Serialize;
use serde_json::Value;

use crate::bundle::{Budget, Bundle, Files, Tests};
use crate::library::ModeError;

/// What a stack of modes asks for.
#[derive(Debug, Clone, Default)]
pub struct Merged {
    /// The goals with the mode that each comes from, in the order of the stack.
    pub goals: Vec<(String, GoalEntry)>,
    /// The phases, and the gates that stay green at the end: those of the first mode of the stack with any.
    pub course: Course,
    /// The largest caps of the stack.
    pub budget: Budget,
    /// Whether the tests of the project are a gate too: the most that a mode of the stack asks.
    pub tests: Tests,
    /// The modes, what is required first.
    pub applied: Vec<AcceptedMode>,
    /// All files of those that have some for their gates, by mode.
    pub files: BTreeMap<String, Files>,
}

/// The goals of a stack. Equal ones count once.
///
/// # Errors
/// [`ModeError::Collision`] for two goals with one id that say different things.
pub fn merge(stack: &[&Bundle]) -> Result<Merged, ModeError> {
    let mut merged = Merged::default();
    for bundle in stack {
        for goal in &bundle.goals {
            match merged.goals.iter().find(|(_, known)| known.id == goal.id) {
                None => merged.goals.push((bundle.mode.name.clone(), goal.clone())),
                Some((_, known)) if same_goal(known, goal) => {}
                Some((first, _)) => {
                    return Err(ModeError::Collision {
                        goal: goal.id.to_string(),
                        first: first.clone(),
                        second: bundle.mode.name.clone(),
                    });
                }
            }
        }
        if merged.course == Course::default() {
            merged.course.clone_from(&bundle.course);
        }
        let Budget { max_runtime_s, max_iterations } = bundle.mode.budget;
        merged.budget.max_runtime_s = merged.budget.max_runtime_s.max(max_runtime_s);
        merged.budget.max_iterations = merged.budget.max_iterations.max(max_iterations);
        merged.tests = merged.tests.max(bundle.mode.tests);
        let gates =
            bundle.goals.iter().filter(|goal| goal.r#type == GoalType::Hard).map(|goal| goal.id.clone());
        merged.applied.push(AcceptedMode {
            name: bundle.mode.name.clone(),
            version: bundle.mode.version,
            sha256: bundle.sha256.clone(),
            gates: gates.collect(),
            files: if bundle.has_scripts() { bundle.files.keys().cloned().collect() } else { Vec::new() },
        });
        if bundle.has_scripts() {
            merged.files.insert(bundle.mode.name.clone(), bundle.files.clone());
        }
    }
    Ok(merged)
}

impl Merged {
    /// The goals as they stand below `goals:`, but for those with these ids.
    #[must_use]
    pub fn text(&self, without: &[String]) -> String {
        let mut text = String::new();
        let mut of = "";
        for (mode, goal) in
            self.goals.iter().filter(|(_, goal)| !without.iter().any(|id| id == goal.id.as_str()))
        {
            if of != mode {
                let applied = self.applied.iter().find(|applied| applied.name == *mode);
                let version = applied.map_or(1, |applied| applied.version);
                let _infallible = write!(text, "\n  # From the mode `{mode}`, version {version}.\n");
                of = mode;
            }
            text.push_str(&entry(goal));
        }
        text
    }
}

/// Phases and what stays green at the end, as they stand at the end of `goals.yaml`; nothing where there are none.
#[must_use]
pub fn course_text(course: &Course) -> String {
    let Course { phases, settle } = course;
    let mut text = String::new();
    if !phases.is_empty() {
        text.push_str("\n# What turns are asked for first; the last phase stays.\nphases:\n");
        text.extend(phases.iter().map(said::<Phase>));
    }
    if !settle.is_empty() {
        let settle: Vec<&str> = settle.iter().map(peers_model::GoalId::as_str).collect();
        let settle = settle.join(", ");
        let _infallible =
            write!(text, "\n# These stay green for two more ticks at the end.\nsettle: [{settle}]\n");
    }
    text
}

/// A goal as an entry of `goals.yaml`: what says something else than its absence, in the order of the description.
fn entry(goal: &GoalEntry) -> String {
    said(goal)
}

fn said<T: Serialize + keys::Described>(entry: &T) -> String {
    let said = serde_json::to_value(entry).unwrap_or_default();
    let mut text = String::new();
    let table = keys::of::<T>();
    for key in table.keys.iter().filter(|key| key.name != "prompt").chain(table.key("prompt")) {
        let Some(value) = said.get(key.name).filter(|value| !value.is_null()) else { continue };
        if key.default.is_some_and(|default| default() == *value) {
            continue;
        }
        let lead = if text.is_empty() { "  - " } else { "    " };
        let _infallible = writeln!(text, "{lead}{}: {}", key.name, written(value));
    }
    text
}

/// A value in YAML: a text of several lines as a block, everything else as in JSON, which YAML reads.
fn written(value: &Value) -> String {
    let Some(text) = value.as_str() else { return value.to_string() };
    let tame = |c: char| c.is_ascii_alphanumeric() || " ._/,'-".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(tame)
        && !text.ends_with(' ')
        && !is_word(text)
    {
        return text.to_owned();
    }
    let plain = |line: &str| !line.contains(char::is_control) && line.trim_end() == line;
    if text.contains('\n')
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.split('\n').all(plain)
    {
        let lines: String = text
            .lines()
            .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n      {line}") })
            .collect();
        return format!("|{lines}");
    }
    value.to_string()
}

/// Whether YAML reads the text as something else than a text.
fn is_word(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"];
    words.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether two goals say the same.
#[must_use]
pub fn same_goal(one: &GoalEntry, other: &GoalEntry) -> bool {
    entry(one) == entry(other)
}
