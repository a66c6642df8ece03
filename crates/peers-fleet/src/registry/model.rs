//! The registry as types, and what each field may hold.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use peers_model::{ProjectId, RunId, RunRequest, Timestamp};
use peers_sys::identity::{BootId, Pid, ProcIdentity};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// The newest format that this program writes.
pub(super) const SCHEMA: u64 = 1;
/// Most projects.
pub(super) const PROJECTS: usize = 1000;
/// Longest path, bytes.
const PATH: usize = 4096;
/// Most labels of a project.
const LABELS: usize = 32;
/// Longest value of a label, characters.
const LABEL_VALUE: usize = 128;
/// Longest notes, bytes.
const NOTES: usize = 4096;

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {why}")]
pub struct Invalid {
    /// Which field, with what stands in it.
    pub what: String,
    /// The rule that it breaks.
    pub why: &'static str,
}

fn invalid(what: &str, text: &str, why: &'static str) -> Invalid {
    Invalid { what: format!("{what} `{}`", peers_sys::term::line(text, 80)), why }
}

/// The name of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectName(String);

impl ProjectName {
    /// Checks the grammar: a letter or digit, then at most 63 letters, digits, `_`, `.` or `-`.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if first && text.len() <= 64 && text.bytes().all(ok) {
            return Ok(Self(text));
        }
        Err(invalid(
            "the project name",
            &text,
            "is not a letter or digit followed by at most 63 letters, digits, `_`, `.` or `-`",
        ))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProjectName {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<String> for ProjectName {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl From<ProjectName> for String {
    fn from(name: ProjectName) -> Self {
        name.0
    }
}

/// Where a project stands, as supervision last saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It never ran.
    Fresh,
    /// A loop runs.
    Running,
    /// The last loop ended by itself, or was stopped.
    Stopped,
    /// The last loop died, or failed.
    Crashed,
    /// Nobody could tell.
    Unknown,
}

impl State {
    /// The word in files and views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
            Self::Unknown => "unknown",
        }
    }
}

/// How the last loop came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was proved.
    Converged,
    /// A cap was reached.
    Limit,
    /// An operator ended it.
    Operator,
    /// It waits for a person.
    Paused,
    /// It did not get on.
    Stuck,
    /// A peer was not to be had.
    Peer,
    /// Somebody touched what is not his.
    Integrity,
    /// Something was missing on this machine.
    Environment,
    /// It failed.
    Error,
    /// Its process is gone without a word.
    Killed,
    /// The machine was started anew.
    HostRebooted,
    /// What became of it is not known.
    Lost,
    /// Its directory is not there.
    PathMissing,
}

impl Outcome {
    /// Every one.
    pub const ALL: [Self; 13] = [
        Self::Converged,
        Self::Limit,
        Self::Operator,
        Self::Paused,
        Self::Stuck,
        Self::Peer,
        Self::Integrity,
        Self::Environment,
        Self::Error,
        Self::Killed,
        Self::HostRebooted,
        Self::Lost,
        Self::PathMissing,
    ];

    /// The word in files and views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Limit => "limit",
            Self::Operator => "operator",
            Self::Paused => "paused",
            Self::Stuck => "stuck",
            Self::Peer => "peer",
            Self::Integrity => "integrity",
            Self::Environment => "environment",
            Self::Error => "error",
            Self::Killed => "killed",
            Self::HostRebooted => "host_rebooted",
            Self::Lost => "lost",
            Self::PathMissing => "path_missing",
        }
    }
}

/// Device and inode of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as the system names them")]
pub struct PathId {
    pub dev: u64,
    pub ino: u64,
}

/// How the last run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExit {
    /// The stop reason, or what became of it.
    pub reason: String,
    /// The exit code, if it is known.
    pub code: Option<u8>,
    /// The signal that ended it, if it is known.
    pub signal: Option<i32>,
    /// Which run.
    pub run_id: Option<RunId>,
    /// When that was, or was seen.
    pub ts: Timestamp,
}

/// When a loop is started again by `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// By a person alone.
    #[default]
    Never,
    /// After it died or failed.
    OnCrash,
}

/// The restart policy with its limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Restart {
    /// When.
    pub policy: RestartPolicy,
    /// At most so often in an hour; five where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
    /// When it was started again, as far as that is needed to know how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Timestamp>,
}

/// What a controller is about with a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is about to be started.
    Starting,
    /// It runs.
    Up,
    /// It was told to stop.
    Stopping,
}

/// Where a loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeKind {
    /// On this machine.
    #[default]
    Host,
    /// In a container.
    Container,
}

/// The loop of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Runtime {
    /// Its run.
    pub run_id: RunId,
    /// Where.
    #[serde(default)]
    pub kind: RuntimeKind,
    /// What is being done with it.
    pub phase: Phase,
    /// Its process, once known.
    #[serde(default)]
    pub pid: Option<u32>,
    /// The process group.
    #[serde(default)]
    pub pgid: Option<u32>,
    /// Clock ticks between boot and the start of the process.
    #[serde(default)]
    pub starttime: Option<u64>,
    /// The boot in which pid and start time mean something.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The program.
    #[serde(default)]
    pub peers_bin: String,
    /// Its version, where it is known.
    #[serde(default)]
    pub version: String,
    /// What it was asked, where a controller started it.
    #[serde(default)]
    pub request: Option<RunRequest>,
    /// When this phase began.
    pub since: Timestamp,
    /// What a newer program keeps here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Runtime {
    /// Its process, told apart from every other one with that number; `None` where not enough is noted.
    #[must_use]
    pub fn identity(&self) -> Option<ProcIdentity> {
        let pid = Pid::new(i32::try_from(self.pid?).ok()?)?;
        let (start_time, boot) = (self.starttime?, BootId::current()?);
        let known = self.boot_id.as_deref() == Some(boot.as_str());
        known.then_some(ProcIdentity {
            pid,
            start_time: Some(start_time),
            boot_id: Some(boot),
            pgid: None,
            session: None,
        })
    }

    /// Whether that process is alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.identity().is_some_and(|identity| peers_sys::identity::is_alive(&identity))
    }
}

/// One project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Project {
    /// Its name.
    pub name: ProjectName,
    /// The work tree, absolute, without links.
    pub path: String,
    /// What lay there when it was registered.
    pub path_id: Option<PathId>,
    /// Which project that was: its trusted store is called so. What the repository says later does not count.
    #[serde(default)]
    pub project_id: Option<ProjectId>,
    /// Where it stands.
    pub state: State,
    /// Since when, where that was seen.
    #[serde(default)]
    pub state_since: Option<Timestamp>,
    /// How its last loop ended.
    pub outcome: Option<Outcome>,
    /// Where its loop writes, relative to the config directory.
    pub log_path: String,
    /// When it was registered.
    pub added_at: Timestamp,
    /// When a loop was last started.
    pub last_started_at: Option<Timestamp>,
    /// When a loop was last seen to have ended.
    pub last_stopped_at: Option<Timestamp>,
    /// How.
    pub last_exit: Option<LastExit>,
    /// What the operator calls it by.
    pub labels: BTreeMap<String, String>,
    /// What the operator wants to remember.
    pub notes: String,
    /// Whether `watch` starts it again.
    #[serde(default)]
    pub restart: Restart,
    /// What the last start was asked, for the next.
    #[serde(default)]
    pub last_request: RunRequest,
    /// Its loop.
    pub runtime: Option<Runtime>,
    /// What a newer program keeps here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Project {
    /// A project that never ran.
    #[must_use]
    pub fn new(name: ProjectName, path: &Path, path_id: Option<PathId>, now: Timestamp) -> Self {
        Self {
            log_path: log_path(&name),
            name,
            path: path.to_string_lossy().into_owned(),
            path_id,
            project_id: None,
            state: State::Fresh,
            state_since: None,
            outcome: None,
            added_at: now,
            last_started_at: None,
            last_stopped_at: None,
            last_exit: None,
            labels: BTreeMap::new(),
            notes: String::new(),
            restart: Restart::default(),
            last_request: RunRequest::default(),
            runtime: None,
            extra: Map::new(),
        }
    }

    /// It stands there from now on.
    pub fn stand(&mut self, state: State, now: Timestamp) {
        if self.state != state {
            self.state_since = Some(now);
        }
        self.state = state;
    }

    /// The file name of its log.
    #[must_use]
    pub fn log_name(&self) -> String {
        format!("{}.log", self.name)
    }

    /// Whether everything in it is as it may be.
    ///
    /// # Errors
    /// [`Invalid`], the first that is not.
    pub fn check(&self) -> Result<(), Invalid> {
        if !self.path.starts_with('/') || self.path.contains('\0') {
            return Err(invalid("the path", &self.path, "is not absolute"));
        }
        if self.path.len() > PATH {
            return Err(invalid("the path", &self.path, "is longer than 4,096 bytes"));
        }
        if self.labels.len() > LABELS {
            return Err(Invalid { what: format!("{} labels", self.labels.len()), why: "are more than 32" });
        }
        for (key, value) in &self.labels {
            label(key, value)?;
        }
        if self.notes.len() > NOTES {
            return Err(Invalid { what: "the notes".to_owned(), why: "are longer than 4 KiB" });
        }
        Ok(())
    }
}

/// Where the log of a project lies, relative to the config directory.
pub(super) fn log_path(name: &ProjectName) -> String {
    format!("{}/{name}.log", crate::config::LOGS)
}

/// Whether a label may be so.
///
/// # Errors
/// [`Invalid`].
pub fn label(key: &str, value: &str) -> Result<(), Invalid> {
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let rest = |b: u8| first(b) || matches!(b, b'_' | b'.' | b'/' | b'-');
    let ok = key.bytes().next().is_some_and(first) && key.len() <= 63 && key.bytes().all(rest);
    if !ok {
        return Err(invalid(
            "the label",
            key,
            "is not a lower-case letter or digit followed by at most 62 of `a-z 0-9 _ . / -`",
        ));
    }
    if value.chars().count() > LABEL_VALUE || value.chars().any(char::is_control) {
        return Err(invalid(
            "the value of a label,",
            value,
            "is longer than 128 characters, or has control characters",
        ));
    }
    Ok(())
}

/// One entry of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A project.
    Known(Box<Project>),
    /// Something that is none. It is kept as it is.
    Odd(Value),
}

impl Entry {
    /// The project, if it is one.
    #[must_use]
    pub fn project(&self) -> Option<&Project> {
        match self {
            Self::Known(project) => Some(project),
            Self::Odd(_) => None,
        }
    }
}

/// The registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    /// Which registry; empty before the first write.
    pub registry_id: String,
    /// How often it was written.
    pub revision: u64,
    /// The entries, in the order in which they were added.
    pub entries: Vec<Entry>,
    /// The format of a newer program: it may be looked at and not be written.
    pub newer: Option<u64>,
    /// What a newer program keeps here.
    pub extra: Map<String, Value>,
}

impl Registry {
    /// One without projects.
    #[must_use]
    pub fn empty() -> Self {
        Self { registry_id: String::new(), revision: 0, entries: Vec::new(), newer: None, extra: Map::new() }
    }

    /// The projects.
    pub fn projects(&self) -> impl Iterator<Item = &Project> {
        self.entries.iter().filter_map(Entry::project)
    }

    /// The project of this name.
    #[must_use]
    pub fn get(&self, name: &ProjectName) -> Option<&Project> {
        self.projects().find(|project| project.name == *name)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, name: &ProjectName) -> Option<&mut Project> {
        self.entries.iter_mut().find_map(|entry| match entry {
            Entry::Known(project) if project.name == *name => Some(project.as_mut()),
            Entry::Known(_) | Entry::Odd(_) => None,
        })
    }
}
