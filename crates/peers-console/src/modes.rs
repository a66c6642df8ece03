//! `modes`: what each mode asks for, and whether a project's modes are still those that it was set up with.

use std::fmt::Write as _;

use peers_model::command::Step;
use peers_model::goal::{GoalEntry, GoalType, Reviewer};
use peers_model::{GoalId, exit, limits};
use peers_modes::{Bundle, Library, Mode, Origin, Tests};
use peers_setup::ScaffoldError;
use peers_store::accept::{self, AcceptedMode};
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk};
use peers_sys::env::Env;
use peers_sys::term;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::error::CommandError;
use crate::output::table;

/// What a command has to say.
#[derive(Debug)]
pub struct Told {
    /// The command, as a word of a schema.
    pub command: &'static str,
    /// For machines.
    pub body: Value,
    /// For people.
    pub text: String,
    /// What else they should know.
    pub notes: Vec<Step>,
    /// The exit code.
    pub exit: u8,
}

/// A check as a goal asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOfGoal {
    /// Its name.
    pub name: String,
    /// Its own flags.
    pub args: Vec<String>,
}

/// The checks that the goals of these modes name, and of the modes that they require, each once.
///
/// # Errors
/// [`CommandError`] for modes that are unknown or do not stack.
pub fn checks(asked: &[String], env: &Env) -> Result<Vec<CheckOfGoal>, CommandError> {
    let library = Library::load(env);
    let refuse = |error| CommandError::from(ScaffoldError::Mode(error));
    let names = peers_modes::names(asked).map_err(refuse)?;
    let stack = library.resolve(&names, &[]).map_err(refuse)?;
    let merged = peers_modes::merge(&stack).map_err(refuse)?;
    let mut checks: Vec<CheckOfGoal> = Vec::new();
    for (_, goal) in merged.goals {
        let Some(name) = goal.check else { continue };
        let check = CheckOfGoal { name, args: goal.args };
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    Ok(checks)
}

/// All modes.
#[must_use]
pub fn list(env: &Env) -> Told {
    let library = Library::load(env);
    let mut rows = vec![["NAME", "VERSION", "SOURCE", "DESCRIPTION"].map(str::to_owned).to_vec()];
    rows.extend(library.bundles().map(|bundle| {
        let Mode { name, version, description, .. } = &bundle.mode;
        vec![name.clone(), version.to_string(), source(bundle).to_owned(), description.clone()]
    }));
    let modes: Vec<Value> = library.bundles().map(described).collect();
    let notes = library.notes.clone();
    Told {
        command: "modes-list",
        body: json!({"modes": modes, "notes": notes}),
        text: table(&rows),
        notes: steps(notes),
        exit: exit::OK,
    }
}

/// One mode.
///
/// # Errors
/// There is no such mode, or no such file in it.
pub fn show(name: &str, file: Option<&str>, env: &Env) -> Result<Told, CommandError> {
    let library = Library::load(env);
    let bundle = library.named(name).map_err(ScaffoldError::from)?;
    if let Some(file) = file {
        let Some(bytes) = bundle.files.get(file) else {
            let names: Vec<_> = bundle.files.keys().map(|name| term::line(name, 200)).collect();
            let message = format!(
                "the mode `{name}` has no file {}; it has {}",
                term::line(file, 200),
                names.join(", ")
            );
            return Err(CommandError::new(exit::INVALID, message));
        };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let body = json!({"name": bundle.mode.name, "file": file, "text": text});
        let text = term::block(&text).into_owned();
        return Ok(Told { command: "modes-show", body, text, notes: steps(library.notes), exit: exit::OK });
    }
    let mut body = described(bundle);
    body["goals"] = bundle.goals.iter().map(|goal| json!({"id": goal.id, "type": goal.r#type, "description": goal.description, "asks": asks(goal)})).collect();
    Ok(Told { command: "modes-show", body, text: page(bundle), notes: steps(library.notes), exit: exit::OK })
}

/// The applied modes of a project beside those that there are now.
///
/// # Errors
/// The store cannot be read, or the goals are not valid.
pub fn diff(cx: &Cx) -> Result<Told, CommandError> {
    let (_, mut disk) = cx.view()?;
    let library = Library::load(&cx.env);
    let applied = accept::read(&mut disk)?.map(|accepted| accepted.modes).unwrap_or_default();
    let goals = disk.read(Area::Peers, peers::GOALS, limits::CONFIG)?.unwrap_or_default();
    let goals = peers_modes::goals(&String::from_utf8_lossy(&goals)).map_err(|why| {
        CommandError::new(exit::INVALID, why).hint("`peers goals lint` says all that is wrong")
    })?;
    let (mut text, mut rows, mut differs) = (String::new(), Vec::new(), false);
    for mode in &applied {
        let now = library.named(&mode.name).ok();
        let state = match now {
            None => "gone",
            Some(now) if now.sha256 == mode.sha256 => "same",
            Some(_) => "changed",
        };
        let changed: Vec<(String, &str)> = now.map(|now| changed(now, &goals)).unwrap_or_default();
        differs |= state != "same" || !changed.is_empty();
        let versions = match now.map(|now| now.mode.version) {
            Some(now) if now != mode.version => format!("version {} applied, {now} now", mode.version),
            _ => format!("version {}", mode.version),
        };
        let _infallible = writeln!(text, "{}  {state}  {versions}", mode.name);
        for (goal, how) in &changed {
            let _infallible = writeln!(text, "  {goal}: {how}");
        }
        let goals: Vec<Value> =
            changed.iter().map(|(goal, how)| json!({"id": goal, "change": how})).collect();
        rows.push(json!({"name": mode.name, "state": state, "applied": {"version": mode.version, "sha256": mode.sha256},
            "now": now.map(|now| json!({"version": now.mode.version, "sha256": now.sha256})), "goals": goals}));
    }
    let mut notes = steps(library.notes);
    if applied.is_empty() {
        notes.push("no mode is applied here; `peers init --modes A,B` sets a project up with modes".into());
    } else if differs {
        notes.push("goals.yaml stays as it was accepted; `peers goals edit` takes a change over".into());
    }
    let negative = differs || applied.is_empty();
    let exit = if negative { exit::NEGATIVE } else { exit::OK };
    Ok(Told { command: "modes-diff", body: json!({"differs": differs, "modes": rows}), text, notes, exit })
}

/// Which of the applied modes are not what they were when the goals were made from them. Nothing follows from it.
#[must_use]
pub fn changed_since(modes: &[AcceptedMode], env: &Env) -> Vec<String> {
    if modes.is_empty() {
        return Vec::new();
    }
    let library = Library::load(env);
    let differs =
        |mode: &&AcceptedMode| library.named(&mode.name).map_or(true, |now| now.sha256 != mode.sha256);
    modes
        .iter()
        .filter(differs)
        .map(|mode| {
            let name = term::line(&mode.name, 64);
            format!("the mode `{name}` changed since it was applied, and goals.yaml did not; `peers modes diff` shows it")
        })
        .collect()
}

/// Refuses goals without a gate that a mode of the project has, or with another one in its place, unless a note
/// says why.
///
/// # Errors
/// Such a gate, and no note.
pub fn refuse_unexplained(disk: &mut FsDisk, goals: &[u8], note: Option<&str>) -> Result<(), CommandError> {
    let modes = accept::read(disk).ok().flatten().map(|accepted| accepted.modes).unwrap_or_default();
    if modes.is_empty() || note.is_some_and(|note| !note.trim().is_empty()) {
        return Ok(());
    }
    let read = |bytes: &[u8]| peers_modes::goals(&String::from_utf8_lossy(bytes)).unwrap_or_default();
    let old = read(&accept::read_bytes(disk, peers::GOALS).ok().flatten().unwrap_or_default());
    let new = read(goals);
    for mode in &modes {
        let touched = |id: &&GoalId| {
            let of = |goals: &[GoalEntry]| goals.iter().find(|goal| goal.id == **id).map(measured);
            old.iter().any(|goal| goal.id == **id)
                && !of(&new).zip(of(&old)).is_some_and(|(new, old)| peers_modes::same_goal(&new, &old))
        };
        if let Some(gate) = mode.gates.iter().find(touched) {
            let message = format!("a gate of the mode `{}` is dropped or changed: {gate}", mode.name);
            return Err(
                CommandError::new(exit::REFUSED, message).hint("say why, for the record: `--note TEXT`")
            );
        }
    }
    Ok(())
}

/// A gate without what only views show.
fn measured(goal: &GoalEntry) -> GoalEntry {
    GoalEntry { description: None, group: None, weight: None, ..goal.clone() }
}

/// The goals of a mode that a project does not have as the mode has them.
fn changed(mode: &Bundle, goals: &[GoalEntry]) -> Vec<(String, &'static str)> {
    let how = |goal: &GoalEntry| match goals.iter().find(|there| there.id == goal.id) {
        None => Some("not in goals.yaml"),
        Some(there) if peers_modes::same_goal(there, goal) => None,
        Some(_) => Some("different in goals.yaml"),
    };
    mode.goals.iter().filter_map(|goal| Some((goal.id.to_string(), how(goal)?))).collect()
}

fn steps(notes: Vec<String>) -> Vec<Step> {
    notes.into_iter().map(Step::from).collect()
}

fn described(bundle: &Bundle) -> Value {
    let mut value = json!(bundle.mode);
    value["source"] = source(bundle).into();
    value["files"] = bundle.files.keys().cloned().collect();
    value["sha256"] = bundle.sha256.clone().into();
    value
}

fn source(bundle: &Bundle) -> &'static str {
    match bundle.origin {
        Origin::BuiltIn => "built-in",
        Origin::User { shadows: false } => "user",
        Origin::User { shadows: true } => "user, replaces built-in",
    }
}

/// What a goal asks, in a word or two.
fn asks(goal: &GoalEntry) -> String {
    match (&goal.check, &goal.cmd, goal.reviewer) {
        (Some(check), _, None) => format!("check {check}"),
        (_, Some(cmd), _) => format!("`{}`", term::line(cmd, 60)),
        (_, _, Some(Reviewer::Both)) => "review by every peer".to_owned(),
        (_, _, Some(Reviewer::Other)) => "review by another peer".to_owned(),
        (_, _, Some(Reviewer::Alternating)) => "review by one peer after the other".to_owned(),
        (_, _, Some(Reviewer::Quorum)) => {
            format!("review by {} peers", goal.quorum.as_deref().unwrap_or("some"))
        }
        (None, None, None) => String::new(),
    }
}

fn page(bundle: &Bundle) -> String {
    let Mode { name, version, description, requires, exclusive, conflicts, languages, tests, budget } =
        &bundle.mode;
    let mut text = format!("{name}, version {version} ({})\n{description}\n", source(bundle));
    let mut line = |label: &str, words: &[String]| {
        if !words.is_empty() {
            let _infallible = writeln!(text, "{label}: {}", words.join(", "));
        }
    };
    line("Requires", requires);
    line(
        "Does not stack with",
        &if *exclusive { vec!["any other mode".to_owned()] } else { conflicts.clone() },
    );
    line("Languages", languages);
    let caps = [
        budget
            .max_runtime_s
            .map(|cap| format!("{} of ticks", peers_view::duration_ms(cap.saturating_mul(1000)))),
        budget.max_iterations.map(|cap| format!("{cap} ticks")),
    ];
    line("Budget", &caps.into_iter().flatten().collect::<Vec<_>>());
    for (kind, title) in [(GoalType::Hard, "Gates"), (GoalType::Soft, "Reviews")] {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let tests = match tests {
            Tests::Unasked => None,
            Tests::IfDetected => Some("--test CMD, or if detected"),
            Tests::Required => Some("--test CMD, else detected"),
        };
        if let Some(how) = tests.filter(|_| kind == GoalType::Hard) {
            rows.push(["  tests-pass", how, "The test suite passes"].map(str::to_owned).to_vec());
        }
        rows.extend(bundle.goals.iter().filter(|goal| goal.r#type == kind).map(|goal| {
            let about = goal.description.as_deref().map(|text| term::line(text, 100)).unwrap_or_default();
            vec![format!("  {}", goal.id), asks(goal), about]
        }));
        if !rows.is_empty() {
            text.extend(["\n", title, "\n", &table(&rows)]);
        }
    }
    text.extend(["\nFiles (`peers modes show ", name, " FILE` prints one)\n"]);
    for file in bundle.files.keys() {
        text.extend(["  ", &term::line(file, 200), "\n"]);
    }
    text
}
