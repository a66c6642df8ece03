//! What stands against a start.

use std::fmt;

use peers_model::exit;
use peers_store::StoreError;
use peers_store::load::LoadError;
use peers_sys::dir::FileError;

use crate::gitrepo::chain;
use crate::place::{self, PlaceError};

/// One reason not to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The exit code that it asks for.
    pub exit: u8,
    /// What, about which thing. May have several lines.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Finding {
    /// A finding with a hint.
    #[must_use]
    pub fn new(exit: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: Some(hint.into()) }
    }

    /// A finding whose message says it all.
    #[must_use]
    pub fn plain(exit: u8, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }
}

impl From<PlaceError> for Finding {
    fn from(error: PlaceError) -> Self {
        Self { exit: error.exit(), message: chain(&error), hint: error.hint() }
    }
}

impl From<&FileError> for Finding {
    fn from(error: &FileError) -> Self {
        Self { exit: place::file_exit(error), message: chain(error), hint: place::file_hint(error) }
    }
}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Self {
        Self { exit: place::store_exit(&error), message: chain(&error), hint: place::store_hint(&error) }
    }
}

impl From<LoadError> for Finding {
    fn from(error: LoadError) -> Self {
        Self { exit: exit::INVALID, message: error.to_string(), hint: None }
    }
}

/// Everything that stands against a start, in checking order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootError {
    /// Never empty.
    pub findings: Vec<Finding>,
}

impl BootError {
    /// The exit code: that of the first finding.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.findings.first().map_or(exit::BUG, |f| f.exit)
    }
}

impl<F: Into<Finding>> From<F> for BootError {
    fn from(finding: F) -> Self {
        Self { findings: vec![finding.into()] }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, finding) in self.findings.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&finding.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for BootError {}
