//! Gates that cannot fail, and commands that swallow an exit code.
//!
//! Every warning names the gate, what was found, why it matters and what to write. Start reading at [`goals`].

mod shell;
#[cfg(test)]
mod tests;

use std::fmt;

use peers_model::goal::{GateRun, Goal, HardGoal, TreeChoice};
use serde::Serialize;

pub use self::shell::Program;
use crate::dsl::{Evidence, Expr};

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The goal concerned.
    pub goal: String,
    /// A word for machines.
    pub kind: &'static str,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to write.
    pub write: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { goal, kind: _, what, why, write } = self;
        write!(f, "goal `{goal}`: {what}, so {why}; {write}")
    }
}

/// All warnings about these goals, in their order.
#[must_use]
pub fn goals(goals: &[Goal]) -> Vec<Warning> {
    let gates = goals.iter().filter_map(|goal| Some((goal, goal.measured()?)));
    gates.flat_map(|(goal, gate)| about(goal, gate)).collect()
}

fn about(goal: &Goal, gate: &HardGoal) -> Vec<Warning> {
    let GateRun::Shell { cmd, pass_when } = &gate.run else { return Vec::new() };
    let Ok(condition) = Expr::parse(pass_when) else { return Vec::new() };
    let warning = |kind, what: &str, why: &str, write: &str| Warning {
        goal: goal.id.to_string(),
        kind,
        what: what.to_owned(),
        why: why.to_owned(),
        write: write.to_owned(),
    };
    if condition.cannot_fail() {
        let what = "`pass_when` is true whatever the command does";
        let write = "write `exit_code == 0`, or ask for what only a good run prints";
        return vec![warning("always-true", what, "the gate is always green", write)];
    }
    if condition.cannot_pass() {
        let what = "`pass_when` is false whatever the command does";
        let write = "write a condition that a good run can meet, such as `exit_code == 0`";
        return vec![warning("always-false", what, "the gate is always red", write)];
    }
    let flaw = shell::flaw(cmd);
    let nothing = flaw.as_ref().is_some_and(|(flaw, _)| flaw.kind == "nothing-runs");
    let mut warnings = Vec::new();
    if !nothing && passes(&condition, &NOT_FOUND) {
        let what = "`pass_when` is true even where the command is not found";
        let write = "ask for the exit code as well: `exit_code == 0 and …`";
        warnings.push(warning("passes-unrun", what, "a gate that measures nothing is green", write));
    }
    if let Some((flaw, what)) = flaw.filter(|_| nothing || condition.reads_exit_code()) {
        warnings.push(warning(flaw.kind, &what, flaw.why, flaw.write));
    }
    warnings
}

/// Whether a gate is green whatever there is to find, as far as that is seen.
#[must_use]
pub fn cannot_fail(cmd: &str, pass_when: &str) -> bool {
    Expr::parse(pass_when).is_ok_and(|condition| {
        condition.cannot_fail() || exit_code_says_nothing(cmd) && passes(&condition, &Evidence::silent(0))
    })
}

/// Whether a shell command ends with exit code 0 whatever it finds, as far as that is seen.
#[must_use]
pub fn exit_code_says_nothing(cmd: &str) -> bool {
    shell::flaw(cmd).is_some_and(|(flaw, _)| flaw.always_zero)
}

fn passes(condition: &Expr, evidence: &Evidence<'_>) -> bool {
    condition.eval(evidence).unwrap_or(false)
}

/// What is there where the shell did not find the command.
const NOT_FOUND: Evidence<'_> =
    Evidence { stderr: "/bin/sh: 1: a-command-that-is-not-there: not found\n", ..Evidence::silent(127) };

/// The first program that a gate runs, seen from the top of the tree; `None` where that cannot be told.
#[must_use]
pub fn program(hard: &HardGoal) -> Option<Program> {
    let GateRun::Shell { cmd, .. } = &hard.run else { return None };
    let mut program = shell::program(cmd)?;
    if let Some(cwd) = &hard.cwd {
        program.dir.insert_str(0, &format!("{cwd}/"));
    }
    Some(program)
}

/// Directories that package managers make.
const MANAGED: [&str; 5] = [".venv", "venv", "env", "node_modules", "vendor"];

/// Gates whose program no clean checkout has, where nothing sets one up. `ignored` names the directory on the way
/// to a path that git ignores; `setup` is the command that usually makes what package managers make.
#[must_use]
pub fn not_in_checkouts(
    goals: &[Goal],
    ignored: &dyn Fn(&str) -> Option<String>,
    setup: Option<&str>,
) -> Vec<Warning> {
    let warning = |goal: &Goal| {
        let hard = goal.gate().filter(|hard| hard.tree != TreeChoice::Live)?;
        let path = program(hard)?.path()?;
        let dir = ignored(&path)?;
        let managed = dir.split('/').any(|part| MANAGED.contains(&part));
        let write = match setup.filter(|_| managed) {
            Some(line) => format!("for instance `{line}`"),
            None => format!("with the command that makes `{path}`"),
        };
        Some(Warning {
            goal: goal.id.to_string(),
            kind: "not-in-checkout",
            what: format!("`{path}` lies in `{dir}`, which git ignores"),
            why: "a clean checkout does not have it".to_owned(),
            write: format!("write `setup` into .peers/config.yaml, {write}"),
        })
    };
    goals.iter().filter_map(warning).collect()
}
