//! The ledger for people and for scripts.

use std::collections::BTreeMap;
use std::fmt;

use peers_model::bug::Severity;
use peers_model::{BugId, CommitId, Timestamp};
use serde::Serialize;

use super::ledger::Ledger;
use super::standing::{Bug, BugStatus, Disposition};

/// The ledger in numbers and lines. Serialises with sorted keys; `Display` is the text form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Reports by weakness class, closed ones too.
    pub by_cwe: BTreeMap<String, usize>,
    /// Open bugs by severity; all five keys are there.
    pub by_severity: BTreeMap<&'static str, usize>,
    /// Bugs deferred, whether that counts or not.
    pub deferred: usize,
    /// Bugs resolved as fixed, whether that counts or not.
    pub fixed: usize,
    /// Open bugs that block.
    pub open_blocking: usize,
    /// All bugs by id.
    pub reports: Vec<ReportLine>,
    /// Bugs with a reproducing test.
    pub reproduced: usize,
    /// Version of this format.
    pub schema_version: u32,
    /// Bugs reported.
    pub total: usize,
    /// What is wrong with the claims.
    pub warnings: Vec<String>,
}

/// One bug of a [`Summary`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `Bug`, in the order in which they are printed")]
pub struct ReportLine {
    pub cwe: Option<String>,
    pub description: Option<String>,
    pub duplicate_of: Option<BugId>,
    pub file: Option<String>,
    pub fix_by: Option<String>,
    pub found_by: String,
    pub function: Option<String>,
    pub history: Vec<HistoryLine>,
    pub id: BugId,
    pub location: Option<String>,
    pub malformed: bool,
    pub open: bool,
    pub open_reason: Option<&'static str>,
    pub reproduced: bool,
    pub resolution_sha: Option<CommitId>,
    pub resolved_by: Option<String>,
    pub severity: Severity,
    pub sha: CommitId,
    pub status: BugStatus,
    pub title: String,
    pub verified_by: Vec<String>,
}

/// One event of a [`ReportLine`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `BugEvent`")]
pub struct HistoryLine {
    pub by: String,
    pub sha: CommitId,
    pub ts: Timestamp,
    pub what: String,
}

impl Ledger {
    /// The ledger in numbers and lines.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut by_severity: BTreeMap<&'static str, usize> =
            Severity::ALL.into_iter().map(|s| (s.as_str(), 0)).collect();
        let mut by_cwe: BTreeMap<String, usize> = BTreeMap::new();
        for bug in self.bugs.values() {
            if bug.open.is_some() {
                *by_severity.entry(bug.severity.as_str()).or_default() += 1;
            }
            if let Some(cwe) = &bug.cwe {
                *by_cwe.entry(cwe.clone()).or_default() += 1;
            }
        }
        let with = |status| self.bugs.values().filter(|b| b.status == status).count();
        Summary {
            by_cwe,
            by_severity,
            deferred: with(BugStatus::Deferred),
            fixed: with(BugStatus::Fixed),
            open_blocking: self.blocking_open().len(),
            reports: self.bugs.values().map(line).collect(),
            reproduced: self.bugs.values().filter(|b| b.reproduced).count(),
            schema_version: 1,
            total: self.bugs.len(),
            warnings: self.warnings.clone(),
        }
    }
}

fn line(bug: &Bug) -> ReportLine {
    let resolution = bug.resolution.as_ref();
    ReportLine {
        cwe: bug.cwe.clone(),
        description: bug.description.clone(),
        duplicate_of: resolution.and_then(|r| match &r.kind {
            Disposition::Duplicate { of } => of.clone(),
            Disposition::Fixed | Disposition::Deferred | Disposition::Wontfix | Disposition::Invalid => None,
        }),
        file: bug.file.clone(),
        fix_by: bug.fix_by.clone(),
        found_by: bug.found_by.to_string(),
        function: bug.function.clone(),
        history: bug
            .history
            .iter()
            .map(|e| HistoryLine {
                by: e.by.to_string(),
                sha: e.commit.clone(),
                ts: e.time,
                what: e.what.clone(),
            })
            .collect(),
        id: bug.id.clone(),
        location: bug.location.clone(),
        malformed: bug.malformed.is_some(),
        open: bug.open.is_some(),
        open_reason: bug.open.as_ref().map(super::OpenReason::as_str),
        reproduced: bug.reproduced,
        resolution_sha: resolution.map(|r| r.commit.clone()),
        resolved_by: resolution.map(|r| r.by.to_string()),
        severity: bug.severity,
        sha: bug.reported_in.clone(),
        status: bug.status,
        title: bug.title.clone(),
        verified_by: bug.verified_by.iter().map(ToString::to_string).collect(),
    }
}

impl Summary {
    /// The text of `summary --format json`: two blanks of indent, keys sorted, no newline at the end.
    ///
    /// # Errors
    /// None that this data can cause; the serialiser's signature has one.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<String> = Severity::ALL
            .iter()
            .map(|s| format!("{s}={}", self.by_severity.get(s.as_str()).copied().unwrap_or_default()))
            .collect();
        writeln!(
            f,
            "bug-hunt: {} blocking open ({}); {} total reported, {} fixed, {} deferred, {} have reproduce-tests",
            self.open_blocking,
            open.join(" "),
            self.total,
            self.fixed,
            self.deferred,
            self.reproduced
        )?;
        let mut blocking: Vec<&ReportLine> =
            self.reports.iter().filter(|r| r.open && r.severity.blocks()).collect();
        blocking.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.id.cmp(&b.id)));
        for bug in blocking {
            writeln!(
                f,
                "  {:<4}  {}  {}  {}  {}  {} ({})",
                bug.severity,
                bug.id,
                bug.sha.short(),
                plain(bug.fix_by.as_deref().unwrap_or(&bug.found_by), 40),
                plain(bug.location.as_deref().unwrap_or("-"), 120),
                plain(&bug.title, 60),
                bug.open_reason.unwrap_or_default(),
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {}", plain(warning, 400))?;
        }
        Ok(())
    }
}

/// Untrusted text on one line: bounded, without control bytes and without marks that turn the
/// reading direction.
fn plain(text: &str, chars: usize) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| !turns(*c)).map(|c| if c.is_control() { ' ' } else { c }).take(chars).collect()
}
