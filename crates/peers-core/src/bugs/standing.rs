//! What counts: whether a bug is open, why, and what the gates say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use peers_model::bug::{ReportDefect, Severity};
use peers_model::{BugId, CommitId, Timestamp};
use serde::Serialize;

use super::ledger::{Author, Draft, Ledger, Reproducer};

/// A bug as it stands. All texts are untrusted and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bug {
    /// Its id.
    pub id: BugId,
    /// The highest severity ever filed, unless another peer agreed to a lower one.
    pub severity: Severity,
    /// What is wrong with the newest report; it weighs at least med until it is filed again.
    pub malformed: Option<ReportDefect>,
    /// One line.
    pub title: String,
    /// Longer text.
    pub description: Option<String>,
    /// Who should fix it, by the reporter's advice.
    pub fix_by: Option<String>,
    /// `path:line`.
    pub location: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// The function.
    pub function: Option<String>,
    /// The weakness class.
    pub cwe: Option<String>,
    /// Who reported it first.
    pub found_by: Author,
    /// The newest report.
    pub reported_in: CommitId,
    /// When it was first reported, by the commit.
    pub reported_at: Timestamp,
    /// What the newest resolution says, or open.
    pub status: BugStatus,
    /// Why it is open; `None` when it is closed.
    pub open: Option<OpenReason>,
    /// It might be closed if the authors of all commits were known.
    pub wants_attribution: bool,
    /// The newest resolution, whether it closes the bug or not.
    pub resolution: Option<Resolution>,
    /// Who verified the fix.
    pub verified_by: Vec<Author>,
    /// A commit that reproduces it touches a test.
    pub reproduced: bool,
    /// What is missing for `tdd-order`, if anything.
    pub tdd: Option<TddDefect>,
    /// The commit that lets it pass `tdd-order`: with a test, and older than the fix.
    pub tdd_reproducer: Option<CommitId>,
    /// What happened to it, oldest first, bounded.
    pub history: Vec<BugEvent>,
}

/// A step in the life of a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugEvent {
    /// The commit.
    pub commit: CommitId,
    /// Who made it.
    pub by: Author,
    /// When, by the commit.
    pub time: Timestamp,
    /// What, for people.
    pub what: String,
}

/// A resolution or deferral.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The commit that claims it.
    pub commit: CommitId,
    /// Who made that commit.
    pub by: Author,
    /// Place of the commit in the log that was read, from 0.
    pub order: usize,
    /// What became of the bug.
    pub kind: Disposition,
    /// Note or reason. Untrusted, bounded.
    pub note: String,
}

/// What became of a bug, by the newest resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// Fixed.
    Fixed,
    /// Put off, with a reason.
    Deferred,
    /// Left as it is.
    Wontfix,
    /// The same as another one.
    Duplicate {
        /// The other one.
        of: Option<BugId>,
    },
    /// No bug.
    Invalid,
}

impl Disposition {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.status().as_str()
    }

    fn status(&self) -> BugStatus {
        match self {
            Self::Fixed => BugStatus::Fixed,
            Self::Deferred => BugStatus::Deferred,
            Self::Wontfix => BugStatus::Wontfix,
            Self::Duplicate { .. } => BugStatus::Duplicate,
            Self::Invalid => BugStatus::Invalid,
        }
    }
}

/// The word that reports show. It does not say whether the bug is closed: [`Bug::open`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BugStatus {
    /// Nobody has resolved it.
    Open,
    /// No readable report exists.
    Malformed,
    /// Resolved as fixed.
    Fixed,
    /// Deferred.
    Deferred,
    /// Resolved as wontfix.
    Wontfix,
    /// Resolved as duplicate.
    Duplicate,
    /// Resolved as invalid.
    Invalid,
}

impl BugStatus {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Malformed => "malformed",
            Self::Fixed => "fixed",
            Self::Deferred => "deferred",
            Self::Wontfix => "wontfix",
            Self::Duplicate => "duplicate",
            Self::Invalid => "invalid",
        }
    }
}

/// Why a bug is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenReason {
    /// Nobody has resolved it since it was filed.
    Unresolved,
    /// No readable report exists.
    Malformed,
    /// Fixed at crit or high, and nobody else has verified it.
    AwaitsVerification,
    /// Wontfix, duplicate or invalid, and nobody entitled has agreed.
    AwaitsAck,
    /// Deferred at high without the operator's word.
    AwaitsOperator,
    /// Deferred, but crit cannot be deferred.
    CritDeferred,
    /// Duplicate of nothing that is open or fixed.
    NoOriginal,
    /// Duplicate of an open bug of lower severity.
    LesserOriginal,
}

impl OpenReason {
    /// What has to happen, for people.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unresolved => "unresolved",
            Self::Malformed => "report unreadable; file it again",
            Self::AwaitsVerification => "fixed; awaits another peer's Bug-Verified",
            Self::AwaitsAck => "awaits another peer's Bug-Ack",
            Self::AwaitsOperator => "deferred; awaits the operator's ack",
            Self::CritDeferred => "crit cannot be deferred",
            Self::NoOriginal => "duplicate of no bug that is open or fixed",
            Self::LesserOriginal => "duplicate of an open bug of lower severity",
        }
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a fixed bug fails `tdd-order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TddDefect {
    /// No commit says that it reproduces the bug, and no waiver is there.
    NoReproducer,
    /// The commits that say so touch no test.
    TouchesNoTest,
    /// The reproducing test came with or after the fix.
    AfterTheFix,
    /// A waiver exists, but it is older than the fix.
    WaivedBeforeTheFix,
}

impl fmt::Display for TddDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReproducer => "no commit reproduces it",
            Self::TouchesNoTest => "the commit that should reproduce it touches no test",
            Self::AfterTheFix => "the reproducing test is not older than the fix",
            Self::WaivedBeforeTheFix => "it was waived before the fix",
        })
    }
}

/// What a ledger gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerVerdict {
    /// Nothing stands against it.
    Pass,
    /// These bugs do.
    Fail(Vec<BugId>),
    /// These bugs would not, if it were known who made the commits that speak for them.
    Unjudged(Vec<BugId>),
}

impl Ledger {
    /// Open bugs of at least this severity, the worst first, then by id.
    #[must_use]
    pub fn open_from(&self, least: Severity) -> Vec<&Bug> {
        let mut open: Vec<&Bug> =
            self.bugs.values().filter(|b| b.open.is_some() && b.severity >= least).collect();
        open.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.id.cmp(&b.id)));
        open
    }

    /// Open bugs that block.
    #[must_use]
    pub fn blocking_open(&self) -> Vec<&Bug> {
        self.open_from(Severity::Med)
    }

    /// The gate: no open bug of at least this severity.
    #[must_use]
    pub fn gate(&self, least: Severity) -> LedgerVerdict {
        let open = self.open_from(least);
        let certain: Vec<BugId> =
            open.iter().filter(|b| !b.wants_attribution).map(|b| b.id.clone()).collect();
        if open.is_empty() {
            LedgerVerdict::Pass
        } else if certain.is_empty() {
            LedgerVerdict::Unjudged(open.iter().map(|b| b.id.clone()).collect())
        } else {
            LedgerVerdict::Fail(certain)
        }
    }

    /// The test-first gate: every blocking bug resolved as fixed has a reproducing test that is
    /// older than the fix, or a waiver that is newer. Gives the bugs that have neither, by id.
    #[must_use]
    pub fn gate_tdd(&self) -> Vec<(BugId, TddDefect)> {
        self.bugs.values().filter_map(|b| Some((b.id.clone(), b.tdd?))).collect()
    }
}

/// Judges all drafts.
pub(super) fn judge(drafts: BTreeMap<BugId, Draft>, acks: &BTreeSet<BugId>) -> BTreeMap<BugId, Bug> {
    let open: BTreeMap<BugId, Option<OpenReason>> =
        drafts.iter().map(|(id, draft)| (id.clone(), open_reason(id, draft, &drafts, acks))).collect();
    drafts
        .into_iter()
        .zip(open.into_values())
        .map(|((id, draft), open)| (id.clone(), finished(id, draft, open)))
        .collect()
}

fn open_reason(
    id: &BugId,
    draft: &Draft,
    all: &BTreeMap<BugId, Draft>,
    acks: &BTreeSet<BugId>,
) -> Option<OpenReason> {
    let Some(resolution) = &draft.resolution else {
        return Some(if draft.body.is_none() { OpenReason::Malformed } else { OpenReason::Unresolved });
    };
    let severity = draft.effective();
    let ack = || (!acked(draft, resolution)).then_some(OpenReason::AwaitsAck);
    match &resolution.kind {
        Disposition::Fixed if severity >= Severity::High && !verified(draft, resolution) => {
            Some(OpenReason::AwaitsVerification)
        }
        Disposition::Fixed => None,
        Disposition::Deferred => match severity {
            Severity::Crit => Some(OpenReason::CritDeferred),
            Severity::High if !acks.contains(id) => Some(OpenReason::AwaitsOperator),
            Severity::High | Severity::Med | Severity::Low | Severity::Info => None,
        },
        Disposition::Wontfix | Disposition::Invalid => ack(),
        Disposition::Duplicate { of } => {
            let original = of.as_ref().filter(|of| *of != id).and_then(|of| all.get(of));
            match original.map(|o| (o.resolution.as_ref().map(|r| &r.kind), o.effective())) {
                Some((None, least)) if least < severity => Some(OpenReason::LesserOriginal),
                Some((None | Some(Disposition::Fixed), _)) => ack(),
                Some((
                    Some(
                        Disposition::Deferred
                        | Disposition::Wontfix
                        | Disposition::Duplicate { .. }
                        | Disposition::Invalid,
                    ),
                    _,
                ))
                | None => Some(OpenReason::NoOriginal),
            }
        }
    }
}

/// Somebody known who did not fix it has verified the fix. A fixer whom nobody saw at it, also one whose commit
/// was brought in by another's turn, might be anybody, the verifier too.
fn verified(draft: &Draft, resolution: &Resolution) -> bool {
    resolution.by.is_attested() && draft.verified_by.iter().any(|by| by.is_attested() && *by != resolution.by)
}

/// Somebody known other than the resolver agrees, or the only reporter takes his report back.
fn acked(draft: &Draft, resolution: &Resolution) -> bool {
    draft.acked_by.iter().filter(|by| by.is_attested()).any(|by| {
        let another = *by != resolution.by && resolution.by.is_attested();
        let only_reporter = draft.reporters.len() == 1 && draft.reporters.contains(by);
        another || only_reporter
    })
}

fn finished(id: BugId, draft: Draft, open: Option<OpenReason>) -> Bug {
    let severity = draft.effective();
    let tdd = tdd_defect(&draft);
    let unknown_resolver = draft.resolution.as_ref().is_some_and(|r| r.by == Author::Unattributed);
    let witnesses = draft.verified_by.iter().chain(&draft.acked_by);
    let unknown_witness = witnesses.clone().any(|by| *by == Author::Unattributed);
    let has_witness = witnesses.clone().next().is_some();
    let wants_attribution = match &open {
        Some(OpenReason::AwaitsVerification | OpenReason::AwaitsAck) => {
            unknown_witness || (unknown_resolver && has_witness)
        }
        Some(
            OpenReason::Unresolved
            | OpenReason::Malformed
            | OpenReason::AwaitsOperator
            | OpenReason::CritDeferred
            | OpenReason::NoOriginal
            | OpenReason::LesserOriginal,
        ) => draft.lowered_by_unknown,
        None => false,
    };
    let status = match &draft.resolution {
        Some(resolution) => resolution.kind.status(),
        None if draft.body.is_none() => BugStatus::Malformed,
        None => BugStatus::Open,
    };
    let tdd_reproducer = first_reproducer(&draft).map(|reproducer| reproducer.commit.clone());
    let Draft {
        body,
        defect,
        found_by,
        reported_in,
        reported_at,
        resolution,
        verified_by,
        reproducers,
        history,
        ..
    } = draft;
    let (title, description, fix_by, location, file, function, cwe) = match body {
        Some(b) => (b.title, b.description, b.fix_by, b.location, b.file, b.function, b.cwe),
        None => ("unreadable report".to_owned(), None, None, None, None, None, None),
    };
    Bug {
        id,
        severity,
        malformed: defect,
        title,
        description,
        fix_by,
        location,
        file,
        function,
        cwe,
        found_by,
        reported_in,
        reported_at,
        status,
        open,
        wants_attribution,
        resolution,
        verified_by: verified_by.into_iter().collect(),
        tdd_reproducer,
        reproduced: reproducers.iter().any(|r| r.tests),
        tdd,
        history,
    }
}

/// The first reproducer with a test, where it is older than the fix of a bug that blocks.
fn first_reproducer(draft: &Draft) -> Option<&Reproducer> {
    let fixed = draft.resolution.as_ref().filter(|r| r.kind == Disposition::Fixed)?;
    let first = draft.reproducers.iter().filter(|r| r.tests).min_by_key(|r| r.order)?;
    (draft.effective().blocks() && first.order < fixed.order).then_some(first)
}

fn tdd_defect(draft: &Draft) -> Option<TddDefect> {
    let fixed = draft.resolution.as_ref().filter(|r| r.kind == Disposition::Fixed)?;
    if !draft.effective().blocks() {
        return None;
    }
    let tests = |r: &&Reproducer| r.tests;
    if draft.reproducers.is_empty() {
        return match draft.waivers.iter().max() {
            Some(waived) if *waived > fixed.order => None,
            Some(_) => Some(TddDefect::WaivedBeforeTheFix),
            None => Some(TddDefect::NoReproducer),
        };
    }
    match draft.reproducers.iter().filter(tests).map(|r| r.order).min() {
        Some(first) if first < fixed.order => None,
        Some(_) => Some(TddDefect::AfterTheFix),
        None => Some(TddDefect::TouchesNoTest),
    }
}
