//! What the caller brings for a row.

use std::collections::BTreeMap;

use peers_core::bugs::Counts;
use peers_model::{CommitId, RunId, Timestamp};

use crate::advice::Spelling;
use crate::liveness::Lock;
use crate::sourced::Sourced;

/// What the caller brings.
#[derive(Debug, Clone)]
pub struct RowAsked {
    /// Now.
    pub now: Timestamp,
    /// The id of this boot, where the system has one.
    pub boot_id: Option<String>,
    /// What a look at the run lock showed, just before.
    pub lock: Lock,
    /// Since when the loop that runs runs gates, as it says in its lock.
    pub gates_since: Option<Timestamp>,
    /// Somebody holds the lock of older systems in `.peers/`.
    pub foreign_lock: bool,
    /// What the registry says of the project.
    pub listed: Listed,
    /// How commands are spelt.
    pub spelling: Spelling,
    /// HEAD where the newest run worked, if somebody looked.
    pub head: Sourced<HeadFact>,
    /// The open bugs, if somebody counted them.
    pub bugs: Sourced<Counts>,
    /// When the peer whose turn is open last printed something, if the caller looked; a row looks for itself
    /// below the `.peers/` that it reads.
    pub heard: Option<Timestamp>,
    /// Free bytes where the loop works, or where its store lies if that is less, if somebody looked.
    pub free_bytes: Option<u64>,
    /// Where that is, if it is not where the loop works.
    pub full: Option<String>,
    /// The directory in which the newest run worked is not there any more.
    pub gone: bool,
    /// What a start would refuse for now, each with what to do about it.
    pub refusals: Vec<String>,
    /// The version of this program.
    pub version: String,
}

impl RowAsked {
    /// Without facts from git, the registry or the file system.
    #[must_use]
    pub fn new(now: Timestamp, lock: Lock, listed: Listed, spelling: Spelling) -> Self {
        Self {
            now,
            boot_id: None,
            lock,
            gates_since: None,
            foreign_lock: false,
            listed,
            spelling,
            head: Sourced::Missing,
            bugs: Sourced::Missing,
            heard: None,
            free_bytes: None,
            full: None,
            gone: false,
            refusals: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
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
