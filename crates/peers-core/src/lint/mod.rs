//! Gates that are allowed and prove less than they seem to.
//!
//! Every warning names the gate, what was found, why it matters and what to write. Nothing is guessed:
//! a command or an expression that is not understood is not warned of. Start reading at [`goals`].

mod script;
mod shell;
#[cfg(test)]
mod tests;

use std::fmt;

use peers_model::check;
use peers_model::goal::{GateRun, Goal, HardGoal, TreeChoice};
use serde::Serialize;

use self::shell::Flaw;
pub use self::shell::Program;
use crate::dsl::{Comparison, Expr};

/// Seconds below which a slow machine alone makes a gate red.
const SHORT: u32 = 5;

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
    let mut warnings = Vec::new();
    let mut seen: Vec<(&Goal, &HardGoal)> = Vec::new();
    for goal in goals {
        let Some(hard) = goal.measured() else { continue };
        let mut warn = |kind, what: String, why: &str, write: &str| {
            warnings.push(Warning {
                goal: goal.id.to_string(),
                kind,
                what,
                why: why.to_owned(),
                write: write.to_owned(),
            });
        };
        if let GateRun::Shell { cmd, pass_when } = &hard.run {
            if let Ok(expr) = Expr::parse(pass_when) {
                expression(cmd, &expr, &mut warn);
            }
            limits(goal, hard, cmd, &mut warn);
            if let Some((twin, _)) = seen.iter().find(|(other, run)| twins(goal, hard, other, run)) {
                warn(
                    "twice",
                    format!("it runs the same command as `{}` and asks the same", twin.id),
                    "it proves nothing more",
                    "let it run something else, or remove it",
                );
            }
        }
        if let GateRun::Check { name, args } = &hard.run
            && let Some(args) = check::spec(name).and_then(|spec| check::Args::parse(spec, args).ok())
        {
            for useless in args.useless() {
                warn("useless-args", format!("in `args`, {useless}"), "it changes nothing", "leave it out");
            }
        }
        seen.push((goal, hard));
    }
    warnings
}

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

/// Whether a shell command ends with exit code 0 whatever it finds, as far as that is seen.
#[must_use]
pub fn exit_code_says_nothing(cmd: &str) -> bool {
    shell::flaws(cmd).iter().any(|flaw| match flaw {
        Flaw::Nothing(_)
        | Flaw::Forced(_)
        | Flaw::Ends(_)
        | Flaw::Background
        | Flaw::BothStreams
        | Flaw::Filtered(_) => true,
        Flaw::Lost(_) | Flaw::ErrexitOff | Flaw::Early => false,
    })
}

type Warn<'a> = dyn FnMut(&'static str, String, &str, &str) + 'a;

fn expression(cmd: &str, expr: &Expr, warn: &mut Warn<'_>) {
    const ASK: &str = "write `exit_code == 0`, or ask for what only a good run prints";
    let flaws = shell::flaws(cmd);
    let nothing = flaws.iter().any(|flaw| matches!(flaw, Flaw::Nothing(_)));
    if expr.cannot_fail() {
        warn(
            "always-true",
            "`pass_when` is true whatever the command does".into(),
            "the gate is always green",
            ASK,
        );
        return;
    }
    if expr.cannot_pass() {
        warn(
            "always-false",
            "`pass_when` is false whatever the command does".into(),
            "the gate is always red",
            "write a condition that a good run can meet, such as `exit_code == 0`",
        );
        return;
    }
    if expr.passes_when_not_found() && !nothing {
        warn(
            "passes-unrun",
            "`pass_when` is true even where the command is not found".into(),
            "a gate that measures nothing is green",
            "ask for the exit code as well: `exit_code == 0 and …`",
        );
    } else if expr.passes_by_files_alone() {
        let files: Vec<String> = expr.json_files().into_iter().map(|file| format!("`{file}`")).collect();
        warn(
            "passes-unrun",
            format!("`pass_when` asks nothing but {}", files.join(", ")),
            "a file that lies there from before is enough, even where the command is not found",
            "ask for the exit code as well: `exit_code == 0 and …`",
        );
    } else if expr.asks_for_text_alone() {
        warn(
            "text-alone",
            "some text is enough for `pass_when`".into(),
            "a run that fails and prints it too is green (`1 passed, 1 failed`)",
            "ask for the exit code as well: `exit_code == 0 and …`",
        );
    }
    for flaw in flaws {
        if matches!(flaw, Flaw::Nothing(_)) || expr.reads_exit_code() {
            command(flaw, warn);
        }
    }
}

fn command(flaw: Flaw, warn: &mut Warn<'_>) {
    match flaw {
        Flaw::Nothing(shown) => warn(
            "nothing-runs",
            format!("`cmd` is only `{shown}`, which cannot fail"),
            "it measures nothing",
            "run what is to be proved",
        ),
        Flaw::Forced(shown) => {
            warn("forced", format!("`cmd` ends in `|| {shown}`"), "its exit code says nothing", "remove it");
        }
        Flaw::Ends(shown) => warn(
            "ends-green",
            format!("`cmd` ends in `{shown}`"),
            "the exit code of what comes before it is lost",
            "remove it, or join the commands by `&&`",
        ),
        Flaw::Background => warn(
            "background",
            "`cmd` ends in `&`".into(),
            "nobody waits for the command, and the exit code is always 0",
            "remove the `&`",
        ),
        Flaw::BothStreams => warn(
            "background",
            "`cmd` has `&>`, which /bin/sh may read as `&` and `>`".into(),
            "the command may go to the background, with exit code 0",
            "write `>file 2>&1`",
        ),
        Flaw::Filtered(name) => warn(
            "pipe",
            format!("`cmd` ends in a pipe into `{name}`"),
            "the exit code is that of the filter, not of the command before it",
            "leave the pipe out (peers keeps all output), or `bash -o pipefail -c '…'`",
        ),
        Flaw::Lost(runner) => warn(
            "lost-exit",
            format!("`cmd` goes on after `{runner}` whatever it found"),
            "only the last command decides the exit code",
            "join the commands by `&&`, or begin with `set -e`",
        ),
        Flaw::ErrexitOff => warn(
            "errexit-off",
            "`cmd` has `set +e`".into(),
            "what fails behind it does not end the command",
            "remove it, or join the commands by `&&`",
        ),
        Flaw::Early => warn(
            "early-exit",
            "`cmd` has `|| exit 0`".into(),
            "a command that fails there makes the gate green",
            "write `|| exit 1`",
        ),
    }
}

fn limits(goal: &Goal, hard: &HardGoal, cmd: &str, warn: &mut Warn<'_>) {
    if let Some(seconds) = hard.timeout_s.filter(|seconds| *seconds < SHORT) {
        warn(
            "short-timeout",
            format!("`timeout_s` is {seconds}"),
            "a busy machine alone makes it red",
            "leave it out, or allow for a slow day",
        );
    }
    if hard.retries > 0
        && let Some(tool) = lints(goal.id.as_str(), cmd)
    {
        warn(
            "retried-lint",
            format!("`retry_on_fail` is set, and `{tool}` finds the same each time"),
            "a red answer only takes longer",
            "remove `retry_on_fail`",
        );
    }
}

/// The word by which a gate tells that it reads the source and runs nothing.
fn lints(id: &str, cmd: &str) -> Option<&'static str> {
    const WORDS: [&str; 12] = [
        "lint",
        "clippy",
        "eslint",
        "ruff",
        "flake8",
        "pylint",
        "tsc",
        "mypy",
        "shellcheck",
        "golangci-lint",
        "rustfmt",
        "gofmt",
    ];
    let words = |text: &str, word: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|part| part == word)
    };
    let named = id.split(['-', '.', '_']).any(|part| part == "lint");
    WORDS.into_iter().find(|word| words(cmd, word)).or_else(|| named.then_some("lint"))
}

/// Two gates of one family that run and ask the same.
fn twins(goal: &Goal, hard: &HardGoal, other: &Goal, run: &HardGoal) -> bool {
    let family = |goal: &Goal| {
        let id = goal.id.as_str();
        id.split(['-', '.', '_']).next().unwrap_or(id).to_owned()
    };
    let (GateRun::Shell { cmd, pass_when }, GateRun::Shell { cmd: theirs, pass_when: asked }) =
        (&hard.run, &run.run)
    else {
        return false;
    };
    if cmd.trim() != theirs.trim() || family(goal) != family(other) {
        return false;
    }
    match (Expr::parse(pass_when), Expr::parse(asked)) {
        (Ok(one), Ok(two)) => one.compare(&two) == Comparison::Same,
        _ => false,
    }
}
