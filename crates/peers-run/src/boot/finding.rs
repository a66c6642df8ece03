//! What stands against a start.

use std::fmt;

use peers_git::{CliError, Git, GitError};
use peers_model::command::Step;
use peers_model::exit;
use peers_place::{FREE_SPACE, PlaceError};
use peers_store::StoreError;
use peers_store::load::LoadError;
use peers_sys::dir::FileError;
use peers_sys::env::Env;
use peers_sys::error::chain;

/// One reason not to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The exit code that it asks for.
    pub exit: u8,
    /// What, about which thing. May have several lines.
    pub message: String,
    /// What to do.
    pub hint: Option<Step>,
}

impl Finding {
    /// A finding with a hint.
    #[must_use]
    pub fn new(exit: u8, message: impl Into<String>, hint: impl Into<Step>) -> Self {
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
        Self {
            exit: peers_place::file_exit(error),
            message: chain(error),
            hint: peers_place::file_hint(error),
        }
    }
}

impl From<FileError> for Finding {
    fn from(error: FileError) -> Self {
        Self::from(&error)
    }
}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Self {
        Self { exit: peers_place::store_exit(&error), message: chain(&error), hint: error.hint() }
    }
}

impl From<GitError> for Finding {
    fn from(error: GitError) -> Self {
        if let GitError::Repo(error) = &error {
            return Self::new(peers_place::repo_exit(error), chain(error), peers_place::repo_hint(error));
        }
        let code = match &error {
            GitError::Cli(_) => exit::ENVIRONMENT,
            GitError::Exists { .. } | GitError::Moved { .. } => exit::CONFLICT,
            GitError::Unsafe { .. } => exit::REFUSED,
            GitError::DiskFull { .. } => exit::BUG,
            _ => exit::INVALID,
        };
        let full = matches!(error, GitError::DiskFull { .. });
        Self { exit: code, message: chain(&error), hint: full.then(|| FREE_SPACE.into()) }
    }
}

impl From<LoadError> for Finding {
    fn from(error: LoadError) -> Self {
        Self { exit: exit::INVALID, message: error.to_string(), hint: None }
    }
}

/// The `git` program.
///
/// # Errors
/// A [`Finding`] where there is none.
pub fn git_program(env: &Env) -> Result<Git, Finding> {
    Git::locate(env.var("PATH").unwrap_or_default()).map_err(|error| no_git(&error))
}

/// That there is no such program, or that it is of no use.
pub(super) fn no_git(error: &CliError) -> Finding {
    Finding::new(exit::ENVIRONMENT, chain(error), "install git 2.30 or newer")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_path_and_what_helps() {
        let full = peers_store::DiskError {
            kind: peers_store::DiskErrorKind::Full,
            op: "write",
            area: peers_store::Area::Store,
            path: "journal/000001.jsonl".into(),
            detail: "no space left on device".into(),
        };
        let found = Finding::from(StoreError::from(full));
        assert!(found.message.contains("journal/000001.jsonl"), "{}", found.message);
        assert_eq!(found.hint, Some(FREE_SPACE.into()));
        let blob = GitError::DiskFull { what: "blob 12ab".into() };
        assert_eq!(Finding::from(blob).hint, Some(FREE_SPACE.into()));
    }
}
