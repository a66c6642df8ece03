//! Reading `config.yaml` and `goals.yaml`: every problem, each at its line.
//!
//! What the text itself breaks (syntax, types, unknown keys) is reported alone, since nothing behind
//! it can be trusted. What makes no sense is reported all at once.

mod place;
#[cfg(test)]
mod tests;

use std::fmt;

use peers_core::dsl::Expr;
use peers_model::config::Config;
use peers_model::goal::{self, Goal, GoalEntry, GoalsFile};
use peers_sys::yaml::{self, YamlError};
use peers_sys::{digest, term};

use place::{At, Outline, Which};

/// Longest piece of a source line in a message, in terminal cells.
const SHOWN: usize = 110;
/// A goal's id is looked for so many lines behind a syntax error.
const BEHIND: u64 = 64;
/// Problems of a file that are told.
const TOLD: usize = 50;

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
        let snippet = error.snippet().to_owned();
        let YamlError { line, column, message, hint, .. } = error;
        let (line, column) = (line.map(u64::from), column.map(u64::from));
        let goal = (source == Source::Goals)
            .then(|| line.and_then(|line| Outline::until(text, line.saturating_add(BEHIND)).goal_at(line)))
            .flatten();
        let message = match goal {
            Some(id) => format!("goal `{}`: {message}", term::line(&id, 64)),
            None => message,
        };
        Self::one(source, Problem { line, column, message, remedy: hint, snippet })
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
    let config: Config = yaml::from_str(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    let outline = Outline::of(text);
    let mut problems: Vec<Problem> = Vec::new();
    for error in config.check().err().unwrap_or_default().into_iter().take(TOLD + 1) {
        let which = if error.what.contains("stands twice") { Which::Last } else { Which::First };
        let at = outline.needle(&error.needle, which);
        problems.push(problem(text, at, &format!("{}: {}", error.at, error.what), None));
    }
    for (key, list) in
        [("error_patterns", &config.health.error_patterns), ("halt_patterns", &config.health.halt_patterns)]
    {
        for (i, pattern) in list.iter().flatten().enumerate() {
            let Some((what, remedy)) = unusable(pattern) else { continue };
            let at = outline.list_item(key, i).or_else(|| outline.needle(key, Which::First));
            problems.push(problem(text, at, &format!("health.{key}[{i}]: {what}"), Some(remedy)));
        }
    }
    done(source, config, problems)
}

/// Reads and checks `goals.yaml`. `peers` is the number of configured peers, `known_checks` the names of
/// the built-in checks.
///
/// # Errors
/// [`LoadError`] with every problem that was found.
pub fn load_goals(text: &str, peers: usize, known_checks: &[&str]) -> Result<Vec<Goal>, LoadError> {
    let source = Source::Goals;
    let file: GoalsFile =
        yaml::from_str(source.path(), text).map_err(|e| LoadError::yaml(source, text, e))?;
    let outline = Outline::of(text);
    let entries = file.goals.clone().unwrap_or_default();
    let mut problems: Vec<Problem> =
        entries.iter().filter_map(|entry| expression(text, &outline, entry)).take(TOLD + 1).collect();
    problems.extend(entries.iter().filter_map(|entry| check_args(text, &outline, entry)).take(TOLD + 1));
    let goals = goal::check_goals(file, peers, known_checks).unwrap_or_else(|errors| {
        problems.extend(errors.into_iter().take(TOLD + 1).map(|error| {
            // The only thing that can be wrong with an id here is that it is taken.
            let which = if error.key == "id" { Which::Last } else { Which::First };
            let at = outline.in_goal(&error.goal, error.key, which);
            let remedy =
                (error.key == "check").then(|| nearest(&entries, &error.goal, known_checks)).flatten();
            problem(text, at, &format!("goal `{}`: {}", error.goal, error.what), remedy)
        }));
        Vec::new()
    });
    done(source, goals, problems)
}

/// What is allowed and yet most likely not meant: gates that cannot turn red.
#[must_use]
pub fn goal_warnings(goals: &[Goal]) -> Vec<String> {
    peers_core::lint::goals(goals).iter().map(|warning| term::line(&warning.to_string(), 400)).collect()
}

fn done<T>(source: Source, value: T, mut problems: Vec<Problem>) -> Result<T, LoadError> {
    if problems.is_empty() {
        return Ok(value);
    }
    // Stable: problems of one line stay in the order in which they were found.
    problems.sort_by_key(|problem| problem.line);
    if problems.len() > TOLD {
        problems.truncate(TOLD);
        problems.push(Problem {
            line: None,
            column: None,
            message: "there are more problems than these".to_owned(),
            remedy: None,
            snippet: String::new(),
        });
    }
    Err(LoadError { source, problems })
}

/// What is wrong with the arguments of the entry's check.
fn check_args(text: &str, outline: &Outline<'_>, entry: &GoalEntry) -> Option<Problem> {
    let spec = peers_model::check::spec(entry.check.as_deref()?)?;
    let error = peers_model::check::Args::parse(spec, &entry.args).err()?;
    let at = outline.in_goal(entry.id.as_str(), "args", Which::First);
    Some(problem(text, at, &format!("goal `{}`: `args`: {error}", entry.id), None))
}

/// What is wrong with the entry's `pass_when`.
fn expression(text: &str, outline: &Outline<'_>, entry: &GoalEntry) -> Option<Problem> {
    let written = entry.pass_when.as_deref()?;
    let error = Expr::parse(written).err()?;
    let value = outline.value_in_goal(entry.id.as_str(), "pass_when");
    // Only an expression that stands in the file as it is can be pointed into.
    let inside = value.filter(|value| value.raw.starts_with(written)).map(|value| At {
        line: value.at.line,
        column: value.at.column.saturating_add(count(error.column)).saturating_sub(1),
    });
    let message = match inside {
        Some(_) => format!("goal `{}`: `pass_when`: {}", entry.id, error.message),
        None => format!("goal `{}`: `pass_when`, character {}: {}", entry.id, error.column, error.message),
    };
    let at = inside.or_else(|| outline.in_goal(entry.id.as_str(), "pass_when", Which::First));
    Some(problem(text, at, &message, None))
}

fn nearest(entries: &[GoalEntry], goal: &str, known_checks: &[&str]) -> Option<String> {
    let written = entries.iter().find(|entry| entry.id.as_str() == goal)?.check.as_deref()?;
    let near = yaml::closest(written, known_checks.iter().copied())?;
    Some(format!("did you mean `{near}`?"))
}

/// Why a pattern of `health` cannot be used, and what to do. The settings are those of the matcher.
fn unusable(pattern: &str) -> Option<(String, String)> {
    const PROGRAM_BYTES: usize = 4 * 1024 * 1024;
    let build = |unicode: bool| {
        regex::bytes::RegexBuilder::new(pattern)
            .multi_line(true)
            .unicode(unicode)
            .size_limit(PROGRAM_BYTES)
            .dfa_size_limit(PROGRAM_BYTES)
            .nest_limit(64)
            .build()
    };
    match build(false).or_else(|_| build(true)) {
        Ok(regex) if regex.is_match(b"") => Some((
            "matches the empty line, and so every line".into(),
            "name the words that must occur".into(),
        )),
        Ok(_) => None,
        Err(error) => {
            let text = error.to_string();
            if text.contains("look-around") || text.contains("backreferences") {
                return Some((
                    "uses look-around or a back-reference, which this engine does not have".into(),
                    "write it without `(?=`, `(?!`, `(?<=`, `(?<!` and `\\1`".into(),
                ));
            }
            // The engine draws the pattern over several lines; the last one names the error.
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Some((
                format!("is not a usable regular expression: {}", term::line(last, 200)),
                "correct the pattern".into(),
            ))
        }
    }
}

fn problem(text: &str, at: Option<At>, message: &str, remedy: Option<String>) -> Problem {
    let snippet = at.map(|at| {
        let index = usize::try_from(at.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(at.column).unwrap_or(usize::MAX).saturating_sub(1);
        caret(at.line, text.lines().nth(index).unwrap_or_default(), column)
    });
    Problem {
        line: at.map(|at| at.line),
        column: at.map(|at| at.column),
        message: term::line(message, 400),
        remedy,
        snippet: snippet.unwrap_or_default(),
    }
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
