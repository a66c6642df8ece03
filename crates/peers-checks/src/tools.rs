//! The port through which a check has programs of the project run.

use std::time::Duration;

use peers_model::CommitId;

use crate::cx::{CouldNot, RanEnd};

/// Runs a program of the project in a clean checkout of a commit, confined as the place allows. Checks start nothing
/// themselves.
pub type Tools = dyn Fn(&Tool<'_>) -> Result<ToolRan, CouldNot>;

/// A program that is to be run.
#[derive(Debug, Clone)]
pub struct Tool<'a> {
    /// For `/bin/sh -c`, at the top of the checkout.
    pub cmd: &'a str,
    /// Where in the checkout it leaves its report; absent: at `$PEERS_REPORT`, outside of it. What the commit has there
    /// is removed before.
    pub report: Option<&'a str>,
    /// The commit.
    pub head: &'a CommitId,
    /// How long it may take.
    pub limit: Duration,
}

/// What became of it. Everything but the end is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRan {
    /// How it ended.
    pub end: RanEnd,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// Output was lost, since there was too much of it.
    pub cut: bool,
    /// Its report.
    pub report: Option<Vec<u8>>,
    /// The top of the checkout.
    pub top: String,
}

impl ToolRan {
    /// The last lines of its output, standard error behind the rest.
    pub(crate) fn tail(&self, lines: usize) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let all = text(&self.stdout) + "\n" + &text(&self.stderr);
        let all: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
        all.iter().skip(all.len().saturating_sub(lines)).map(|line| (*line).to_owned()).collect()
    }
}
