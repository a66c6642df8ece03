//! Steps that do what no agent may.

use serde::Deserialize;

use crate::args::FromText;

/// Rewrites history.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rewrite {
    /// Replaces the last commit by one with another message.
    pub amend: bool,
    /// Drops so many commits.
    pub reset: Option<u32>,
    /// How much is dropped with them.
    pub mode: ResetMode,
}

impl FromText for Rewrite {
    const WANTED: &'static str = "`amend`, or `{reset: N}`";
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "amend" => Ok(Self { amend: true, ..Self::default() }),
            _ => Err(format!("`{text}` is not {}", Self::WANTED)),
        }
    }
}

/// What `git reset` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are git's")]
pub enum ResetMode {
    #[default]
    Hard,
    Mixed,
    Soft,
}

/// Leaves the branch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchBranch {
    /// The branch to go to.
    pub name: Option<String>,
    /// It is there already.
    pub existing: bool,
    /// Detach HEAD.
    pub detach: bool,
}

impl FromText for SwitchBranch {
    const WANTED: &'static str = "a branch name, or `{name: ..., existing: true}`, or `{detach: true}`";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { name: Some(text.to_owned()), ..Self::default() })
    }
}

/// Changes the goals, or another control file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EditGoals {
    /// The file; `.peers/goals.yaml` by default.
    pub file: Option<String>,
    /// The whole content.
    pub text: Option<String>,
    /// Added at the end; a comment by default.
    pub append: Option<String>,
    /// Text to replace ...
    pub from: Option<String>,
    /// ... by this.
    pub to: Option<String>,
}

/// Moves the git directory away.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoveGit {
    /// Where to; beside the working folder by default.
    pub to: Option<String>,
    /// What stays in its place.
    pub leave: Leave,
}

/// What stays in place of the git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leave {
    /// Nothing.
    #[default]
    Nothing,
    /// A file with a `gitdir:` line.
    File,
    /// A symbolic link.
    Symlink,
}

/// What to damage in the git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitPart {
    /// `HEAD` becomes garbage.
    Head,
    /// The index becomes garbage.
    Index,
    /// The configuration becomes garbage.
    Config,
    /// The branch's ref becomes garbage.
    Ref,
    /// Every loose object becomes garbage.
    Objects,
    /// A stale `index.lock` stays behind.
    IndexLock,
    /// A merge seems to be in progress.
    MergeHead,
}

/// Writes a git note.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForgeNote {
    /// The commit that it is about.
    pub commit: String,
    /// The notes ref.
    #[serde(rename = "ref")]
    pub notes_ref: String,
    /// Its text.
    pub text: String,
}

impl Default for ForgeNote {
    fn default() -> Self {
        Self {
            commit: "HEAD".to_owned(),
            notes_ref: "refs/notes/peers-attest".to_owned(),
            text: "peer: {{peer}}".to_owned(),
        }
    }
}

impl FromText for ForgeNote {
    const WANTED: &'static str = "a text, or `{commit: ..., ref: ..., text: ...}`";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), ..Self::default() })
    }
}
