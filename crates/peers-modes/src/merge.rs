//! A stack of modes as one set of goals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use peers_model::goal::{GoalEntry, GoalType};
use peers_model::keys;
use peers_store::accept::AcceptedMode;
use serde_json::Value;

use crate::bundle::{Budget, Bundle, Files};
use crate::library::ModeError;

/// What a stack of modes asks for.
#[derive(Debug, Clone, Default)]
pub struct Merged {
    /// The goals with the mode that each comes from, in the order of the stack.
    pub goals: Vec<(String, GoalEntry)>,
    /// The largest caps of the stack.
    pub budget: Budget,
    /// The tests of the project are a gate too.
    pub tests: bool,
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
                None => merged.goals.push((bundle.name.clone(), goal.clone())),
                Some((_, known)) if same_goal(known, goal) => {}
                Some((first, _)) => {
                    return Err(ModeError::Collision {
                        goal: goal.id.to_string(),
                        first: first.clone(),
                        second: bundle.name.clone(),
                    });
                }
            }
        }
        let Budget { max_runtime_s, max_iterations } = bundle.budget;
        merged.budget.max_runtime_s = merged.budget.max_runtime_s.max(max_runtime_s);
        merged.budget.max_iterations = merged.budget.max_iterations.max(max_iterations);
        merged.tests |= bundle.tests;
        let gates =
            bundle.goals.iter().filter(|goal| goal.r#type == GoalType::Hard).map(|goal| goal.id.clone());
        merged.applied.push(AcceptedMode {
            name: bundle.name.clone(),
            version: bundle.version,
            sha256: bundle.sha256.clone(),
            gates: gates.collect(),
            files: if bundle.has_scripts() { bundle.files.keys().cloned().collect() } else { Vec::new() },
        });
        if bundle.has_scripts() {
            merged.files.insert(bundle.name.clone(), bundle.files.clone());
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

/// A goal as an entry of `goals.yaml`: what says something else than its absence, in the order of the description.
fn entry(goal: &GoalEntry) -> String {
    let said = serde_json::to_value(goal).unwrap_or_default();
    let mut text = String::new();
    let table = keys::of::<GoalEntry>();
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
