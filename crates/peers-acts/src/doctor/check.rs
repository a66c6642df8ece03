//! What one look of the doctor finds.

use peers_model::command::Step;
use peers_model::outcome::PeerExit;
use peers_model::{PeerName, exit};
use peers_run::boot::Finding;
use serde::Serialize;

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// A run starts; something of it will be missing.
    Warning,
    /// A run, or a peer in it, cannot start.
    Error,
}

impl Level {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is about: a word, or `peer NAME`.
    pub about: String,
    /// How much it matters.
    pub level: Level,
    /// One sentence. May have more lines where a file is quoted.
    pub message: String,
    /// What mends it; absent where nothing has to be.
    pub fix: Option<Step>,
    /// The exit code that it asks for; 0 unless it is an error.
    #[serde(skip)]
    pub exit: u8,
}

impl Check {
    /// Whether it says that the run lock could not be read.
    #[must_use]
    pub fn is_unseen_lock(&self) -> bool {
        self.about == "lock" && self.level == Level::Warning
    }

    pub(crate) fn ok(about: &str, message: impl Into<String>) -> Self {
        let about = about.to_owned();
        Self { about, level: Level::Ok, message: message.into(), fix: None, exit: exit::OK }
    }

    pub(crate) fn warning(about: &str, message: impl Into<String>, fix: impl Into<Step>) -> Self {
        let about = about.to_owned();
        Self { about, level: Level::Warning, message: message.into(), fix: Some(fix.into()), exit: exit::OK }
    }

    pub(crate) fn error(about: &str, exit: u8, message: impl Into<String>, fix: impl Into<Step>) -> Self {
        let about = about.to_owned();
        Self { about, level: Level::Error, message: message.into(), fix: Some(fix.into()), exit }
    }

    pub(super) fn found(about: &str, finding: Finding) -> Self {
        let Finding { exit, message, hint } = finding;
        Self { about: about.to_owned(), level: Level::Error, message, fix: hint, exit }
    }
}

/// What a peer answered to one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who.
    pub peer: PeerName,
    /// How its process ended and what it used; or why it could not be asked.
    pub exit: Result<PeerExit, String>,
}
