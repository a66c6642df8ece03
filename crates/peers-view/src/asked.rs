//! What the caller brings for a look at a loop.

use std::collections::{BTreeMap, BTreeSet};

use peers_core::bugs::Counts;
use peers_core::plan::Progress;
use peers_model::command::Step;
use peers_model::{CommitId, RunId, Timestamp};

use crate::advice::Spelling;
use crate::facts::GitFacts;
use crate::liveness::Lock;
use crate::sourced::Sourced;

/// Ticks in a view, unless asked otherwise.
const TICKS: usize = 10;

/// What the caller brings.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Now.
    pub now: Timestamp,
    /// The id of this boot, where the system has one.
    pub boot_id: Option<String>,
    /// What a look at the run lock showed, just before.
    pub lock: Lock,
    /// The repository, if somebody looked.
    pub git: Sourced<GitFacts>,
    /// How many of the newest ticks are wanted.
    pub ticks: usize,
    /// The directory that was asked about, if that matters.
    pub here: Option<String>,
    /// The directory in which the newest run worked is not there any more.
    pub gone: bool,
    /// That somebody deleted the branch of the newest run, and what brings it back.
    pub lost: Option<(String, Step)>,
    /// When the peer whose turn is open last printed something, if somebody looked.
    pub heard: Option<Timestamp>,
    /// Since when the loop that runs runs gates, as it says in its lock.
    pub gates_since: Option<Timestamp>,
    /// Somebody holds the lock of older systems in `.peers/`.
    pub foreign_lock: bool,
    /// What a start would refuse for now, each with what to do about it.
    pub refusals: Vec<Step>,
    /// The directory whose `.peers/` is read, if that is not the one that was asked about.
    pub files_in: Option<String>,
    /// The names of the logs of gates where the newest run worked, if that is another directory.
    pub gate_logs: Option<BTreeSet<String>>,
    /// Free bytes where the loop works, or where its store lies if that is less, if somebody looked.
    pub free_bytes: Option<u64>,
    /// Where that is, if it is not where the loop works.
    pub full: Option<String>,
    /// What the registry says of the project.
    pub listed: Listed,
    /// How commands are spelt.
    pub spelling: Spelling,
    /// HEAD where the newest run worked, if somebody looked for a row.
    pub head: Sourced<HeadFact>,
    /// The open bugs, if somebody counted them for a row.
    pub bugs: Sourced<Counts>,
    /// How far its plan was at the end of the last turn, if it has one.
    pub plan: Option<Progress>,
    /// The version of this program.
    pub version: String,
}

impl Asked {
    /// Without git facts.
    #[must_use]
    pub fn new(now: Timestamp, boot_id: Option<String>, lock: Lock) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { now, boot_id, lock, ticks: TICKS, version, ..Self::default() }
    }

    /// For the row of a project that is listed by name.
    #[must_use]
    pub fn of_row(now: Timestamp, lock: Lock, listed: Listed, spelling: Spelling) -> Self {
        Self { listed, spelling, ..Self::new(now, None, lock) }
    }
}

/// What the registry says of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The top of its repository.
    pub path: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The loop that runs was started by the controller.
    pub managed: bool,
    /// `host` or `container`, if it is known.
    pub kind: Option<String>,
    /// The run that its operator had killed, and when.
    pub killed: Option<(RunId, Timestamp)>,
    /// What holds its run lock, where that was seen and its directory cannot be looked at.
    pub adrift: Option<Adrift>,
    /// Nobody can say whether it runs, whatever the lock shows.
    pub unknown: Option<Unknown>,
    /// It was never set up.
    pub bare: bool,
}

/// A loop that runs and whose directory was moved or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adrift {
    /// Its process, if that is known.
    pub pid: Option<u32>,
    /// Its run, as its lock says it.
    pub run_id: Option<String>,
}

/// Why nobody can say whether a loop runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// One word, such as `path_missing`.
    pub outcome: Option<String>,
    /// For people.
    pub why: String,
    /// All the same no loop runs.
    pub nobody: bool,
}

/// HEAD, as the repository says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFact {
    /// The commit.
    pub sha: CommitId,
    /// First line of its message. Untrusted text.
    pub subject: String,
    /// When it was made, as it says. Untrusted.
    pub at: Timestamp,
}
