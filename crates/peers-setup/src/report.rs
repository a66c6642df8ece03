//! What was done, or would be.

use std::path::{Path, PathBuf};

use peers_model::command::Step;
use peers_model::{CommitId, ProjectId};
use serde::{Serialize, Serializer};

use super::{HostHook, ScaffoldError, fault};

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Made what was not there.
    Create,
    /// Wrote what had been accepted.
    Restore,
    /// Changed the content.
    Edit,
    /// Moved aside.
    Move,
    /// Removed.
    Remove,
    /// Committed.
    Commit,
    /// Tagged.
    Tag,
    /// Accepted as the operator's.
    Accept,
}

impl Action {
    /// For people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Restore => "restore",
            Self::Edit => "edit",
            Self::Move => "move",
            Self::Remove => "remove",
            Self::Commit => "commit",
            Self::Tag => "tag",
            Self::Accept => "accept",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What was done.
    pub action: Action,
    /// To what: a path in the repository, or words for what lies elsewhere.
    pub what: String,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There was nothing.
    Fresh,
    /// What was there was moved aside and made anew.
    Rebuilt,
    /// What was there was completed.
    Upgraded,
}

/// What `init` did, or with `dry_run` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InitReport {
    /// Nothing was written.
    pub dry_run: bool,
    /// How it went.
    pub outcome: Outcome,
    /// The control directory.
    #[serde(serialize_with = "lossy")]
    pub peers_dir: PathBuf,
    /// The trusted store.
    #[serde(serialize_with = "lossy")]
    pub store: PathBuf,
    /// The project.
    pub project: ProjectId,
    /// The commit from which the agents' history is counted.
    pub base: Option<CommitId>,
    /// The commit of the ignore line.
    pub commit: Option<CommitId>,
    /// The directory of hook snippets, if they were written.
    pub hooks: Option<String>,
    /// The stop hooks of the operator's tools, where they were to be changed.
    #[serde(rename = "host_hooks")]
    pub host: Vec<HostHook>,
    /// In order.
    pub changes: Vec<Change>,
    /// What the operator should know.
    pub notes: Vec<Step>,
}

/// How the next turn begins where stop hooks call the loop.
pub const WORK_WITH_HOOKS: &str = "work in a session of claude or codex; a handoff there calls the next turn";

impl InitReport {
    /// Where the stop hooks for the agents are, for people; nothing where none were laid down.
    #[must_use]
    pub fn where_hooks_are(&self) -> Option<String> {
        let hooks = self.hooks.as_ref()?;
        Some(format!("Stop hooks for the agents are in {hooks}; its README.md says where they go"))
    }
}

/// What `deinit` did, or with `dry_run` would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeinitReport {
    /// Nothing was removed.
    pub dry_run: bool,
    /// The trusted store, which stays unless it was purged.
    #[serde(serialize_with = "lossy")]
    pub store: PathBuf,
    /// The stop hooks of the operator's tools, without those in which there was nothing of ours.
    #[serde(rename = "host_hooks")]
    pub host: Vec<HostHook>,
    /// In order.
    pub changes: Vec<Change>,
    /// What the operator should know.
    pub notes: Vec<Step>,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Does things, or only says that it would.
#[derive(Debug)]
pub(super) struct Steps {
    dry_run: bool,
    pub(super) changes: Vec<Change>,
    pub(super) notes: Vec<Step>,
}

impl Steps {
    pub(super) fn new(dry_run: bool) -> Self {
        Self { dry_run, changes: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// Does it, unless this is a dry run; either way it is listed.
    pub(super) fn act(
        &mut self,
        action: Action,
        what: impl Into<String>,
        effect: impl FnOnce() -> Result<(), ScaffoldError>,
    ) -> Result<(), ScaffoldError> {
        let what = what.into();
        if !self.dry_run {
            // A commit is reported when it is made already.
            if action != Action::Commit {
                fault::at(&what)?;
            }
            effect()?;
        }
        self.changes.push(Change { action, what });
        Ok(())
    }

    pub(super) fn note(&mut self, note: impl Into<Step>) {
        self.notes.push(note.into());
    }
}
