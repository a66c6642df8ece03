//! Steps that claim something in a form that the loop reads.

use serde::Deserialize;

use crate::args::{FromText, Texts};

/// Reviews a soft goal, in a commit of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// The goal.
    pub goal: String,
    /// The answer.
    pub pass: bool,
    /// Its reason.
    #[serde(default)]
    pub notes: Option<String>,
    /// What was found.
    #[serde(default)]
    pub issues: Texts,
    /// What was looked at.
    #[serde(default)]
    pub checked: Texts,
    /// The commit hands the turn over as well.
    #[serde(default)]
    pub handoff: bool,
}

/// Reports a bug, in a commit of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BugReport {
    /// Its id.
    pub id: String,
    /// `crit`, `high`, `med`, `low` or `info`.
    #[serde(default = "med")]
    pub severity: String,
    /// One line.
    #[serde(default)]
    pub title: Option<String>,
    /// More.
    #[serde(default)]
    pub description: Option<String>,
    /// `path:line`.
    #[serde(default)]
    pub location: Option<String>,
    /// Who should fix it.
    #[serde(default)]
    pub fix_by: Option<String>,
    /// The JSON block is broken.
    #[serde(default)]
    pub malformed: bool,
    /// The commit hands the turn over as well.
    #[serde(default)]
    pub handoff: bool,
}

fn med() -> String {
    "med".to_owned()
}

/// Resolves a bug, in a commit that takes all changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BugResolve {
    /// Its id.
    pub id: String,
    /// `fixed`, `wontfix`, `duplicate` or `invalid`.
    #[serde(default = "fixed")]
    pub status: String,
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
    /// The other bug of a duplicate.
    #[serde(default)]
    pub of: Option<String>,
    /// The commit hands the turn over as well.
    #[serde(default)]
    pub handoff: bool,
}

fn fixed() -> String {
    "fixed".to_owned()
}

/// Gives the skeptic's verdict in a handoff commit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Skeptic {
    /// The verdict.
    pub verdict: String,
    /// The failure modes that it excludes.
    pub excluded: Texts,
}

impl Default for Skeptic {
    fn default() -> Self {
        let modes = [
            "empty input is refused with a message",
            "a missing file gives an error and no crash",
            "concurrent runs do not share state",
            "text that is no UTF-8 is replaced, not lost",
            "a number out of range is an error",
        ];
        Self { verdict: "clean".to_owned(), excluded: Texts(modes.map(str::to_owned).to_vec()) }
    }
}

impl FromText for Skeptic {
    const WANTED: &'static str = "a verdict such as `clean`, or `{verdict: ..., excluded: [...]}`";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { verdict: text.to_owned(), ..Self::default() })
    }
}

/// Puts a message for another peer into the drop box.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The other peer.
    pub to: String,
    /// The topic, the file's name.
    #[serde(default = "msg")]
    pub topic: String,
    /// The text.
    pub text: String,
}

fn msg() -> String {
    "msg".to_owned()
}
