//! The bug ledger as rows.

use peers_core::bugs::{Bug, BugStatus, Ledger};
use peers_model::bug::Severity;
use peers_model::{BugId, CommitId, Timestamp};
use serde::Serialize;

/// Bugs in a view; more are counted.
const SHOWN: usize = 1000;

/// The bugs, the worst open ones first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BugsView {
    /// The bugs, at most 1000.
    pub rows: Vec<BugRow>,
    /// All of them.
    pub total: usize,
    /// Those that are open.
    pub open: usize,
    /// Those that are open and block.
    pub blocking: usize,
    /// What is wrong with the claims. Untrusted text.
    pub warnings: Vec<String>,
}

/// One bug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BugRow {
    /// Its id.
    pub id: BugId,
    /// How bad it is.
    pub severity: Severity,
    /// One line. Untrusted text.
    pub title: String,
    /// `path:line`. Untrusted text.
    pub location: Option<String>,
    /// What the newest resolution says, or open.
    pub status: BugStatus,
    /// Why it is open; absent when it is closed.
    pub open: Option<&'static str>,
    /// Who reported it first, by the record.
    pub found_by: String,
    /// The newest report.
    pub found_in: CommitId,
    /// When it was first reported.
    pub found_at: Timestamp,
    /// Who resolved it.
    pub resolved_by: Option<String>,
    /// The commit that resolves it.
    pub resolved_in: Option<CommitId>,
    /// Who verified the fix.
    pub verified_by: Vec<String>,
    /// A commit that reproduces it touches a test.
    pub reproduced: bool,
}

impl BugsView {
    /// Of a ledger.
    #[must_use]
    pub fn of(ledger: &Ledger) -> Self {
        let mut bugs: Vec<&Bug> = ledger.bugs.values().collect();
        bugs.sort_by(|a, b| {
            (b.open.is_some(), b.severity).cmp(&(a.open.is_some(), a.severity)).then_with(|| a.id.cmp(&b.id))
        });
        let open = bugs.iter().filter(|bug| bug.open.is_some()).count();
        Self {
            total: bugs.len(),
            open,
            blocking: ledger.blocking_open().len(),
            rows: bugs.into_iter().take(SHOWN).map(row).collect(),
            warnings: ledger.warnings.clone(),
        }
    }
}

fn row(bug: &Bug) -> BugRow {
    BugRow {
        id: bug.id.clone(),
        severity: bug.severity,
        title: bug.title.clone(),
        location: bug.location.clone().or_else(|| bug.file.clone()),
        status: bug.status,
        open: bug.open.as_ref().map(peers_core::bugs::OpenReason::as_str),
        found_by: bug.found_by.to_string(),
        found_in: bug.reported_in.clone(),
        found_at: bug.reported_at,
        resolved_by: bug.resolution.as_ref().map(|resolution| resolution.by.to_string()),
        resolved_in: bug.resolution.as_ref().map(|resolution| resolution.commit.clone()),
        verified_by: bug.verified_by.iter().map(ToString::to_string).collect(),
        reproduced: bug.reproduced,
    }
}
