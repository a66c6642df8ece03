//! Steps that work: files, commits, processes, the prompt, conditions.

use serde::Deserialize;

use super::Step;
use crate::args::{Files, FromText, Pairs, Texts};
use crate::script::Condition;

/// Runs a command with `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// The command.
    pub run: String,
    /// The exit code that it must have; absent: any.
    #[serde(default)]
    pub expect: Option<i32>,
}

impl FromText for Shell {
    const WANTED: &'static str = "a command, or `{run: ..., expect: N}`";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { run: text.to_owned(), expect: None })
    }
}

/// Writes a file; directories are made. Exactly one of the three contents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Where, relative to the working folder.
    pub path: String,
    /// The whole content.
    #[serde(default)]
    pub text: Option<String>,
    /// Added at the end.
    #[serde(default)]
    pub append: Option<String>,
    /// So many numbered lines as the whole content.
    #[serde(default)]
    pub lines: Option<u32>,
}

/// Makes a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Commit {
    /// What it takes.
    pub files: Files,
    /// The first line.
    pub subject: Option<String>,
    /// Paragraphs after the subject.
    pub body: Option<String>,
    /// Further paragraphs, such as `## Review` with a JSON block.
    pub sections: Option<String>,
    /// The last paragraph.
    pub trailers: Pairs,
    /// A commit without changes is fine.
    pub allow_empty: Option<bool>,
    /// The text of the `## Self-Review` section of a handoff.
    pub self_review: Option<String>,
    /// The whole message as it is, in place of all the above.
    pub message: Option<String>,
}

impl FromText for Commit {
    const WANTED: &'static str = "a subject, or a mapping with `subject`, `files`, `trailers` and so on";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { subject: Some(text.to_owned()), ..Self::default() })
    }
}

/// Starts a process that outlives the turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// How it hangs on.
    pub what: ForkKind,
    /// How long it sleeps.
    #[serde(default = "ten_minutes")]
    pub seconds: u32,
    /// What it does in place of sleeping.
    #[serde(default)]
    pub shell: Option<String>,
    /// It loses the environment, so that it cannot be known by it.
    #[serde(default)]
    pub clean_env: bool,
}

fn ten_minutes() -> u32 {
    600
}

/// How a forked process hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkKind {
    /// A child in our process group that keeps our output open.
    HoldsPipe,
    /// A child in a session of its own that keeps our output open.
    Setsid,
    /// An orphan in a session of its own, output closed.
    Daemon,
}

/// How to hang for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hang {
    /// Asleep.
    #[default]
    Sleep,
    /// Blocked in a read that never returns.
    Read,
    /// Blocked in a futex.
    Futex,
    /// Busy.
    Spin,
}

/// Reads the prompt to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadPrompt {
    /// Texts that it must contain, else exit code 9.
    pub expect: Texts,
    /// Texts that it must not contain, else exit code 9.
    pub reject: Texts,
    /// A file that gets a copy.
    pub save: Option<String>,
}

/// Steps under a condition. All that is given must hold.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// See [`Condition::prompt`].
    pub prompt: Texts,
    /// See [`Condition::env`].
    pub env: Texts,
    /// See [`Condition::file`].
    pub file: Texts,
    /// Done when it holds.
    pub steps: Vec<Step>,
    /// Done when it does not.
    #[serde(rename = "else")]
    pub otherwise: Vec<Step>,
}

impl When {
    pub(crate) fn condition(&self) -> Condition {
        Condition { prompt: self.prompt.clone(), env: self.env.clone(), file: self.file.clone() }
    }
}
