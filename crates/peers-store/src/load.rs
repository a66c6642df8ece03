//! Reading `config.yaml` and `goals.yaml`: every problem in one go, each at its place.
//!
//! Three looks at a text. The parser refuses what it cannot read at all; that is told alone, since
//! nothing behind it can be trusted. The description of the keys (`peers_model::keys`) finds what is
//! wrong with each value. What remains is checked for sense. Only a text without any problem is loaded.

mod pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use peers_core::dsl::Expr;
use peers_model::PeerName;
use peers_model::config::{self, Config, ConfigError, PeerSpec, Step, ToolSpec};
use peers_model::goal::{self, Course, Goal, GoalEntry, GoalError, GoalsFile};
use peers_model::keys;
use peers_sys::yaml::{self, At, Document, Findings, Mistake, YamlError};
use peers_sys::{digest, term};
use serde_json::Value;

/// Longest piece of a source line in a message, in terminal cells.
const SHOWN: usize = 110;
/// A goal's id is looked for so many lines behind a syntax error.
const BEHIND: usize = 64;
/// Problems of a file that are told; the others are counted.
const TOLD: usize = 20;

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `config.yaml`.
    Config,
    /// `goals.yaml`.
    Goals,
}

impl Source {
    /// Its path in the repository, for people.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Config => ".peers/config.yaml",
            Self::Goals => ".peers/goals.yaml",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Config => "config error",
            Self::Goals => "goals error",
        }
    }
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; `None` when the place is unknown.
    pub line: Option<u64>,
    /// The character in the line, from 1.
    pub column: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where the message does not say it.
    pub remedy: Option<String>,
    /// The source line with a caret below, without a final line end; empty when the place is unknown.
    pub snippet: String,
}

/// Everything that is wrong with a file. Shows as one block of lines for each problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    source: Source,
    problems: Vec<Problem>,
}

impl LoadError {
    /// Which file.
    #[must_use]
    pub fn file(&self) -> Source {
        self.source
    }

    /// What is wrong, in the order of the file. Never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn one(source: Source, problem: Problem) -> Self {
        Self { source, problems: vec![problem] }
    }

    fn yaml(source: Source, text: &str, error: YamlError) -> Self {
        let goal =
            (source == Source::Goals).then(|| error.line.and_then(|line| goal_near(text, line))).flatten();
        let condition = source == Source::Goals && error.line.is_some_and(|line| is_condition(text, line));
        let mut problem = Problem::from(error);
        if condition && problem.remedy.is_none() {
            problem.remedy = Some(UNQUOTED.to_owned());
        }
        if let Some(id) = goal {
            problem.message = format!("goal `{}`: {}", term::line(id, 64), problem.message);
        }
        Self::one(source, problem)
    }
}

/// How a condition needs no quotes of YAML.
const UNQUOTED: &str = "write `pass_when: >-` and the condition alone on the next line, indented further: there it needs no quotes of its own, and no `#` begins a comment";

/// Whether a line begins a condition, as far as a text that cannot be parsed tells.
fn is_condition(text: &str, line: u32) -> bool {
    let line = usize::try_from(line).ok().and_then(|line| text.lines().nth(line.checked_sub(1)?));
    line.is_some_and(|line| line.trim_start().trim_start_matches("- ").trim_start().starts_with("pass_when:"))
}

/// The goal in which a line stands, as far as a text that cannot be parsed tells.
fn goal_near(text: &str, line: u32) -> Option<&str> {
    let line = usize::try_from(line).ok()?;
    let above: Vec<&str> = text.lines().take(line).collect();
    let id =
        |line: &&&str| -> bool { line.trim_start().trim_start_matches("- ").trim_start().starts_with("id:") };
    let found = above.iter().rev().take(BEHIND).find(id)?;
    let (_, id) = found.split_once("id:")?;
    let id = id.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    id.parse::<peers_model::GoalId>().is_ok().then_some(id)
}

impl From<YamlError> for Problem {
    fn from(error: YamlError) -> Self {
        let snippet = error.snippet().to_owned();
        let YamlError { line, column, message, hint, .. } = error;
        Self { line: line.map(u64::from), column: column.map(u64::from), message, remedy: hint, snippet }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let Problem { line, column: _, message, remedy, snippet } = problem;
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", self.source.word(), self.source.path())?;
            if let Some(line) = line {
                write!(f, " line {line}")?;
            }
            write!(f, ": {message}")?;
            for line in snippet.lines() {
                write!(f, "\n  {line}")?;
            }
            if let Some(remedy) = remedy {
                write!(f, "\n  hint: {remedy}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// The text of a file.
///
/// # Errors
/// [`LoadError`] at the first byte that is not UTF-8.
pub fn decode(source: Source, bytes: &[u8]) -> Result<&str, LoadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = good.iter().fold(1_u64, |line, &b| line + u64::from(b == b'\n'));
        let start = good.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let before = String::from_utf8_lossy(good.get(start..).unwrap_or_default()).into_owned();
        let byte =
            digest::hex(bytes.get(error.valid_up_to()..).and_then(|rest| rest.get(..1)).unwrap_or_default());
        let column = count(before.chars().count()).saturating_add(1);
        LoadError::one(
            source,
            Problem {
                line: Some(line),
                column: Some(column),
                message: format!("byte 0x{byte} is not UTF-8"),
                remedy: Some("save the file as UTF-8".to_owned()),
                snippet: caret(line, &before, before.chars().count()),
            },
        )
    })
}

/// Reads and checks `config.yaml`.
///
/// # Errors
/// [`LoadError`] with every problem that was found.
pub fn load_config(text: &str) -> Result<Config, LoadError> {
    let source = Source::Config;
    let document = Document::read(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    let Findings { mut mistakes, sound } = document.check(keys::of::<Config>());
    let hooks = sound.get("hooks").and_then(|hooks| serde_json::from_value(hooks.clone()).ok());
    let hooks = config::check_hooks(&hooks.unwrap_or_default());
    mistakes.extend(peers_together(&sound).into_iter().chain(hooks).map(|error| {
        let ConfigError { at, what, path } = error;
        Mistake { at: document.place(&path), message: format!("{at}: {what}"), hint: None }
    }));
    for key in ["error_patterns", "halt_patterns"] {
        let list = sound.pointer(&format!("/health/{key}")).and_then(Value::as_array);
        for (i, pattern) in list.into_iter().flatten().enumerate() {
            let Some((what, remedy)) = pattern.as_str().and_then(pattern::unusable) else { continue };
            let at = document.place(&["health".into(), key.into(), i.into()]);
            mistakes.push(Mistake { at, message: format!("health.{key}[{i}]: {what}"), hint: Some(remedy) });
        }
    }
    if !mistakes.is_empty() {
        return Err(told(source, &document, mistakes));
    }
    config(&document, sound)
}

/// [`load_config`] for a text that was accepted as it is: it had no mistake then, and is not searched for any.
///
/// # Errors
/// [`LoadError`] where it cannot be read at all.
pub fn load_accepted_config(text: &str) -> Result<Config, LoadError> {
    let source = Source::Config;
    let document = Document::read(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    match document.check(keys::of::<Config>()) {
        Findings { mistakes, sound } if mistakes.is_empty() => config(&document, sound),
        // What is wrong is told as always.
        Findings { .. } => load_config(text),
    }
}

/// The configuration that was found sound, key by key.
fn config(document: &Document<'_>, sound: Value) -> Result<Config, LoadError> {
    let whole = |message: String| vec![Mistake { at: None, message, hint: None }];
    let config: Config =
        serde_json::from_value(sound).map_err(|e| told(Source::Config, document, whole(e.to_string())))?;
    let config = config.promote(|name| document.key(&["tools".into()], name.as_str()));
    let errors = config.check().err().unwrap_or_default();
    if errors.is_empty() {
        return Ok(config);
    }
    let mistakes = errors.into_iter().flat_map(|error| whole(error.to_string())).collect();
    Err(told(Source::Config, document, mistakes))
}

/// What is wrong with the peers that are right one by one.
fn peers_together(sound: &Value) -> Vec<ConfigError> {
    let capped: Vec<PeerName> = sound
        .pointer("/budget/per_peer")
        .and_then(Value::as_object)
        .map(|caps| caps.keys().filter_map(|name| name.parse().ok()).collect())
        .unwrap_or_default();
    let capped: Vec<&PeerName> = capped.iter().collect();
    let (peers, from_tools): (Vec<Option<PeerSpec>>, _) = match (sound.get("peers"), sound.get("tools")) {
        (Some(Value::Array(list)), None) => {
            (list.iter().map(|each| serde_json::from_value(each.clone()).ok()).collect(), false)
        }
        (None, Some(tools)) => {
            let tools = serde_json::from_value::<BTreeMap<PeerName, ToolSpec>>(tools.clone());
            let peer = |(name, tool): (PeerName, ToolSpec)| Some(tool.peer(name));
            (tools.unwrap_or_default().into_iter().map(peer).collect(), true)
        }
        // Both, neither, or none that can be read: that was told.
        _ => return Vec::new(),
    };
    let peers: Vec<Option<&PeerSpec>> = peers.iter().map(Option::as_ref).collect();
    config::check_peers(&peers, from_tools, &capped)
}

/// Reads and checks `goals.yaml`. `peers` is the number of configured peers, `known_checks` the names of
/// the built-in checks.
///
/// # Errors
/// [`LoadError`] with every problem that was found.
pub fn load_goals(text: &str, peers: usize, known_checks: &[&str]) -> Result<Vec<Goal>, LoadError> {
    let source = Source::Goals;
    let document = Document::read(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    let Findings { mut mistakes, sound } = document.check(keys::of::<GoalsFile>());
    let listed = sound.get("goals").and_then(Value::as_array).cloned().unwrap_or_default();
    for mistake in &mut mistakes {
        name_goal(mistake, &document);
    }
    let count = listed.len();
    // What is wrong by itself is not judged further; the others keep their places.
    let entries: Vec<(usize, GoalEntry)> = listed
        .into_iter()
        .enumerate()
        .filter_map(|(i, each)| Some((i, serde_json::from_value(each).ok()?)))
        .collect();
    mistakes.extend(entries.iter().filter_map(|(i, entry)| expression(&document, *i, entry)));
    mistakes.extend(entries.iter().filter_map(|(i, entry)| check_args(&document, *i, entry)));
    let course = course_of(&sound);
    let entries_of = entries.iter().map(|(_, entry)| entry.clone()).collect();
    let file = GoalsFile { goals: Some(entries_of), phases: Vec::new(), settle: Vec::new() };
    let goals = goal::check_goals(file, peers, known_checks).unwrap_or_else(|mut errors| {
        // Whether what is needed is there cannot be told of a list that was not read in full.
        errors.retain(|error| error.key != "needs" || entries.len() == count);
        mistakes.extend(errors.into_iter().map(|error| senseless(&document, &entries, error, known_checks)));
        Vec::new()
    });
    if mistakes.is_empty() && entries.len() < count {
        let message = "an entry of `goals` cannot be read".to_owned();
        mistakes.push(Mistake { at: None, message, hint: None });
    }
    if mistakes.is_empty()
        && let Some(wrong) = course.wrong(&goals)
    {
        let at = document.key(&[], if wrong.starts_with("`settle`") { "settle" } else { "phases" });
        mistakes.push(Mistake { at, message: wrong, hint: None });
    }
    if mistakes.is_empty() { Ok(goals) } else { Err(told(source, &document, mistakes)) }
}

/// What a `goals.yaml` that [`load_goals`] read says besides goals.
///
/// # Errors
/// [`LoadError`] where it is no YAML.
pub fn load_course(text: &str) -> Result<Course, LoadError> {
    let source = Source::Goals;
    let document = Document::read(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    Ok(course_of(&document.check(keys::of::<GoalsFile>()).sound))
}

/// The phases of what was found sound, and the gates at the end.
fn course_of(sound: &Value) -> Course {
    let part = |key: &str| sound.get(key).cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    Course {
        phases: serde_json::from_value(part("phases")).unwrap_or_default(),
        settle: serde_json::from_value(part("settle")).unwrap_or_default(),
    }
}

/// Puts the id of the goal before a message about something in it.
fn name_goal(mistake: &mut Mistake, document: &Document<'_>) {
    let Some(i) = mistake.at.and_then(|at| document.entry_at(&["goals".into()], at)) else { return };
    if let Some(id) = document.text(&["goals".into(), i.into(), "id".into()]) {
        mistake.message = format!("goal `{}`: {}", term::line(id, 64), mistake.message);
    }
}

/// A goal that makes no sense, at the key that says so.
fn senseless(
    document: &Document<'_>,
    entries: &[(usize, GoalEntry)],
    error: GoalError,
    known_checks: &[&str],
) -> Mistake {
    let GoalError { goal, what, key } = error;
    let of_it = || entries.iter().filter(|(_, entry)| entry.id.as_str() == goal);
    // The only thing that can be wrong with an id here is that it is taken.
    let found = if key == "id" { of_it().next_back() } else { of_it().next() };
    let at = found.and_then(|(i, _)| {
        let path: [Step; 2] = ["goals".into(), (*i).into()];
        document.key(&path, key).or_else(|| document.key(&path, "id")).or_else(|| document.place(&path))
    });
    let written = found.filter(|_| key == "check").and_then(|(_, entry)| entry.check.as_deref());
    let near = written
        .filter(|written| !known_checks.contains(written))
        .and_then(|written| yaml::closest(written, known_checks.iter().copied()));
    let hint = near.map(|near| format!("did you mean `{near}`?"));
    Mistake { at, message: format!("goal `{goal}`: {what}"), hint }
}

/// What is allowed and yet most likely not meant: gates that cannot turn red.
#[must_use]
pub fn goal_warnings(goals: &[Goal]) -> Vec<String> {
    peers_core::lint::goals(goals).iter().map(|warning| term::line(&warning.to_string(), 400)).collect()
}

/// All that is wrong, by its line; what is too much is counted.
fn told(source: Source, document: &Document<'_>, mut mistakes: Vec<Mistake>) -> LoadError {
    // Stable: what stands at one place stays in the order in which it was found.
    mistakes.sort_by_key(|mistake| (mistake.at.is_none(), mistake.at));
    let more = mistakes.len().saturating_sub(TOLD);
    mistakes.truncate(TOLD);
    let mut problems: Vec<Problem> =
        mistakes.into_iter().map(|mistake| document.show(mistake).into()).collect();
    if more > 0 {
        let s = if more == 1 { "" } else { "s" };
        problems.push(Problem {
            line: None,
            column: None,
            message: format!("and {more} more problem{s}"),
            remedy: None,
            snippet: String::new(),
        });
    }
    LoadError { source, problems }
}

/// What is wrong with the arguments of the entry's check.
fn check_args(document: &Document<'_>, i: usize, entry: &GoalEntry) -> Option<Mistake> {
    // What no program can be given is told by whoever checks the goals.
    if entry.args.iter().any(|arg| arg.contains('\0')) {
        return None;
    }
    let spec = peers_model::check::spec(entry.check.as_deref()?)?;
    let error = peers_model::check::Args::parse(spec, &entry.args).err()?;
    let path: [Step; 2] = ["goals".into(), i.into()];
    let at = document.key(&path, "args").or_else(|| document.key(&path, "id"));
    Some(Mistake { at, message: format!("goal `{}`: `args`: {error}", entry.id), hint: None })
}

/// What is wrong with the entry's `pass_when`.
fn expression(document: &Document<'_>, index: usize, entry: &GoalEntry) -> Option<Mistake> {
    let error = Expr::parse(entry.pass_when.as_deref()?).err()?;
    let path: [Step; 3] = ["goals".into(), index.into(), "pass_when".into()];
    // Only an expression that stands in the file as it is can be pointed into.
    let behind = u32::try_from(error.column).unwrap_or(u32::MAX).saturating_sub(1);
    let inside = document.verbatim(&path).map(|at| At { column: at.column.saturating_add(behind), ..at });
    let message = match inside {
        Some(_) => format!("goal `{}`: `pass_when`: {}", entry.id, error.message),
        None => format!("goal `{}`: `pass_when`, character {}: {}", entry.id, error.column, error.message),
    };
    let at = inside.or_else(|| document.key(path.get(..2)?, "pass_when"));
    // A `#` behind a blank ends a plain text of YAML in the midst of a string.
    let hint = error.message.contains("not closed").then(|| UNQUOTED.to_owned());
    Some(Mistake { at, message, hint })
}

/// `source` with its number, and a caret below its character `column` (from 0) if that is shown.
fn caret(number: u64, source: &str, column: usize) -> String {
    let head: String = source.chars().take(column).collect();
    let indent = term::width(&term::inline(&head));
    let shown = term::line(source, SHOWN);
    let gutter = number.to_string().len();
    if indent >= SHOWN {
        return format!("{number} | {}", shown.trim_end());
    }
    format!("{number} | {}\n{:gutter$} | {:indent$}^", shown.trim_end(), "", "")
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
