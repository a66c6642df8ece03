//! One mode: what its files say.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use peers_model::goal::{CHECK_NAMES, Course, GoalEntry, GoalsFile};
use peers_model::{keys, time};
use peers_store::load;
use peers_sys::digest::sha256_hex;
use peers_sys::{term, yaml};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What the mode is.
pub(crate) const MODE: &str = "mode.yaml";
/// What it asks for.
pub(crate) const GOALS: &str = "goals.yaml";
/// The languages that a mode can be for.
const LANGUAGES: [&str; 4] = ["python", "js", "rust", "go"];
/// More peers than any project has: how many there are is checked where the goals are laid down.
const PEERS: usize = 64;
/// Bytes of a description.
const DESCRIPTION: usize = 200;

/// The files of a bundle, by their paths in it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Where a bundle comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It ships with the program.
    BuiltIn,
    /// From the operator's directory of modes.
    User {
        /// A built-in mode has the same name.
        shadows: bool,
    },
}

/// A mode. What it says was checked; what it names may be missing.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What it is.
    pub mode: Mode,
    /// What it asks for, with the texts of its prompts.
    pub goals: Vec<GoalEntry>,
    /// Its phases with the texts of their prompts, and the gates that stay green at its end.
    pub course: Course,
    /// Where it comes from.
    pub origin: Origin,
    /// All of its files.
    pub files: Files,
    /// Over all of its files.
    pub sha256: String,
}

/// What `mode.yaml` says.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default = "first")]
    pub version: u32,
    /// What it is for, for people.
    #[serde(default)]
    pub description: String,
    /// Modes that come before it.
    #[serde(default)]
    pub requires: Vec<String>,
    /// It stacks with no other.
    #[serde(default)]
    pub exclusive: bool,
    /// Modes that it does not stack with.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// The languages that it is for; empty: all.
    #[serde(default)]
    pub languages: Vec<String>,
    /// Whether the tests of the project are a gate too.
    #[serde(default)]
    pub tests: Tests,
    /// Caps where the operator sets none.
    #[serde(default)]
    pub budget: Budget,
}

/// Whether the tests of a project are a gate of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tests {
    /// They are not.
    #[default]
    Unasked,
    /// They are, where a manifest says how they are run.
    IfDetected,
    /// They are: the operator says how they are run, where no manifest does.
    Required,
}

/// Caps of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// `budget.max_runtime_s`.
    #[serde(default, rename(deserialize = "max_runtime"), deserialize_with = "seconds")]
    pub max_runtime_s: Option<u64>,
    /// `budget.max_iterations`.
    pub max_iterations: Option<NonZeroU32>,
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let told = Option::<String>::deserialize(from)?;
    let time = told.as_deref().map(time::parse_duration).transpose();
    let time = time.map_err(|_| D::Error::custom("`budget.max_runtime` is a time such as 6h or 90m"))?;
    Ok(time.map(|time| time.as_secs()))
}

fn first() -> u32 {
    1
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// What is wrong with it, fit for a terminal.
    pub fn read(files: Files, origin: Origin) -> Result<Self, String> {
        let text = |name: &str| {
            let bytes = files.get(name).ok_or_else(|| format!("{name} is missing"))?;
            std::str::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", term::line(name, 200)))
        };
        let mode: Mode = yaml::from_str(MODE, text(MODE)?).map_err(|error| error.to_string())?;
        if let Some(bad) =
            [&mode.name].into_iter().chain(&mode.requires).chain(&mode.conflicts).find(|name| !is_name(name))
        {
            return Err(format!(
                "{MODE}: `{}` is no name of a mode: lower-case letters, digits and `-`",
                term::line(bad, 80)
            ));
        }
        if mode.description.len() > DESCRIPTION
            || mode.description.chars().any(|c| c.is_control() || term::invisible(c))
        {
            return Err(format!("{MODE}: `description` is one line of at most {DESCRIPTION} bytes"));
        }
        if let Some(bad) = mode.languages.iter().find(|language| !LANGUAGES.contains(&language.as_str())) {
            return Err(format!(
                "{MODE}: `languages` knows {}, not `{}`",
                LANGUAGES.join(", "),
                term::line(bad, 80)
            ));
        }
        if mode.exclusive && !mode.requires.is_empty() {
            return Err(format!("{MODE}: an exclusive mode requires no other"));
        }
        let mut goals = goals(text(GOALS)?)?;
        let mut course = load::load_course(text(GOALS)?).map_err(|error| format!("{GOALS}: {error}"))?;
        // The text itself, or the file that has it.
        let told = |prompt: &mut String, whose: String| {
            if prompt.starts_with("prompts/") {
                *prompt = text(prompt.trim()).map_err(|error| format!("{whose}: {error}"))?.to_owned();
            }
            Ok::<(), String>(())
        };
        for goal in &mut goals {
            if let Some(prompt) = &mut goal.prompt {
                told(prompt, format!("goal `{}`", goal.id))?;
            }
        }
        for phase in &mut course.phases {
            told(&mut phase.prompt, format!("phase `{}`", term::line(&phase.name, 80)))?;
        }
        let sha256 = digest(&files);
        Ok(Self { mode, goals, course, origin, files, sha256 })
    }
}

impl Bundle {
    /// Whether it has files for its gates, and not just texts.
    #[must_use]
    pub fn has_scripts(&self) -> bool {
        let is_page = |file: &str| Path::new(file).extension().is_some_and(|ending| ending == "md");
        self.files.keys().any(|file| file != MODE && file != GOALS && !is_page(file))
    }
}

/// Whether a mode can have this name.
#[must_use]
pub(crate) fn is_name(name: &str) -> bool {
    let tame = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 64 && name.starts_with(tame) && name.chars().all(|c| tame(c) || c == '-')
}

/// The goals of a bundle or of a project as they are written, each checked.
///
/// # Errors
/// What is wrong with them, fit for a terminal.
pub fn goals(text: &str) -> Result<Vec<GoalEntry>, String> {
    load::load_goals(text, PEERS, &CHECK_NAMES).map_err(|error| {
        let told = error.problems().iter().map(|problem| match problem.line {
            Some(line) => format!("{GOALS} line {line}: {}", problem.message),
            None => format!("{GOALS}: {}", problem.message),
        });
        told.collect::<Vec<_>>().join("; ")
    })?;
    let document = yaml::Document::read(GOALS, text).map_err(|error| error.to_string())?;
    let sound = document.check(keys::of::<GoalsFile>()).sound;
    let file: GoalsFile = serde_json::from_value(sound).map_err(|error| format!("{GOALS}: {error}"))?;
    Ok(file.goals.unwrap_or_default())
}

/// Names the content of every file.
#[must_use]
pub fn digest(files: &Files) -> String {
    let mut text = "peers mode 1\n".to_owned();
    for (path, bytes) in files {
        text.extend([&path.len().to_string(), " ", path, "\n", &sha256_hex(bytes), "\n"]);
    }
    sha256_hex(text.as_bytes())
}
