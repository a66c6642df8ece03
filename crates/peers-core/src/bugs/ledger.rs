//! Folding commits into the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use peers_model::bug::{
    BugClaims, BugDefer, BugReport, BugResolution, MIN_REASON, ReportBody, ReportDefect, ResolutionStatus,
    Severity, reason_chars,
};
use peers_model::trailer::Message;
use peers_model::{BugId, CommitId, PeerName, Timestamp};

use super::standing::{Bug, BugEvent, Disposition, Resolution, judge};
use crate::classify_path::{PathKind, TestPaths, classify};

/// Warnings kept; one more says how many were left out.
const WARNINGS: usize = 200;
/// Events kept of one bug, the newest.
const HISTORY: usize = 64;

/// Who made a commit, as the loop knows it from its own records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Author {
    /// A configured peer, in its turn.
    Peer(PeerName),
    /// A person: the commit appeared while no peer was alive.
    Operator,
    /// The loop itself. Its commits claim nothing.
    Substrate,
    /// Somebody else: the commit existed before the turn that brought it in.
    Foreign,
    /// Nothing is known about it.
    Unattributed,
}

impl Author {
    /// Whether this is somebody whose word about another's work can count.
    #[must_use]
    pub fn is_attested(&self) -> bool {
        match self {
            Self::Peer(_) | Self::Operator => true,
            Self::Substrate | Self::Foreign | Self::Unattributed => false,
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peer(name) => name.as_str(),
            Self::Operator => "operator",
            Self::Substrate => "peers-substrate",
            Self::Foreign => "foreign",
            Self::Unattributed => "unattributed",
        })
    }
}

/// A path that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTouched {
    /// The path, from the root of the repository, with `/`.
    pub path: String,
    /// The change is in tests: a test file, or test lines within a source file.
    pub tests: bool,
}

impl PathTouched {
    /// A touched path, classified by its name alone.
    #[must_use]
    pub fn of(path: impl Into<String>) -> Self {
        Self::among(&TestPaths::default(), path)
    }

    /// A touched path, classified by its name and by what else are tests.
    #[must_use]
    pub fn among(tests: &TestPaths, path: impl Into<String>) -> Self {
        let path = path.into();
        let tests = tests.classify(&path) == PathKind::Test;
        Self { path, tests }
    }
}

/// A commit as the ledger sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerCommit {
    /// Its id.
    pub id: CommitId,
    /// Who made it.
    pub author: Author,
    /// When, by the commit.
    pub time: Timestamp,
    /// Its message, untrusted.
    pub message: String,
    /// The paths it changed against its first parent.
    pub paths: Vec<PathTouched>,
    /// It belongs to a turn whose work was taken back. Its reports still count; what it closes does not.
    pub voided: bool,
}

/// The state of all bugs, judged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// The bugs by id.
    pub bugs: BTreeMap<BugId, Bug>,
    /// What is wrong with the claims, oldest first, bounded.
    pub warnings: Vec<String>,
}

impl Ledger {
    /// Folds commits, oldest first, a parent before its children. `acks` holds the bugs whose
    /// deferral the operator has agreed to.
    ///
    /// Commits for which [`BugClaims::may_be_in`] says no may be left out.
    #[must_use]
    pub fn read(commits: &[LedgerCommit], acks: &BTreeSet<BugId>) -> Self {
        let mut fold = Fold::default();
        for (order, commit) in commits.iter().enumerate() {
            if commit.author != Author::Substrate && BugClaims::may_be_in(&commit.message) {
                fold.commit(order, commit);
            }
        }
        fold.finish(acks)
    }
}

/// A report of a range that resets the count of clean ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingReport {
    /// The commit that holds it.
    pub commit: CommitId,
    /// What it says, for people.
    pub what: String,
}

/// Whether one of these commit messages files something that blocks.
pub fn blocking_reports<'a>(messages: impl IntoIterator<Item = &'a str>) -> bool {
    messages.into_iter().any(|m| BugClaims::may_be_in(m) && BugClaims::read(&Message::parse(m)).blocks())
}

/// The blocking reports of a range of commits: severity med or worse, flags against earlier fixes,
/// and reports that cannot be read.
#[must_use]
pub fn blocking_reports_in(commits: &[LedgerCommit]) -> Vec<BlockingReport> {
    let mut found = Vec::new();
    for commit in commits {
        if commit.author == Author::Substrate || !BugClaims::may_be_in(&commit.message) {
            continue;
        }
        let claims = BugClaims::read(&Message::parse(&commit.message));
        let reports = claims.reports.iter().filter(|r| r.blocks()).map(|report| {
            let id = report.id.as_ref().map_or("a report without a usable id", BugId::as_str);
            match &report.body {
                Ok(body) => format!("{id} ({})", body.severity),
                Err(defect) => format!("{id} (unreadable: {defect})"),
            }
        });
        let flags = claims.flags.iter().map(|flag| match &flag.id {
            Some(id) => format!("the fix of {id} is flagged"),
            None => "a fix is flagged".to_owned(),
        });
        found.extend(reports.chain(flags).map(|what| BlockingReport { commit: commit.id.clone(), what }));
    }
    found
}

/// A bug while the history is being read.
#[derive(Debug)]
pub(super) struct Draft {
    /// The newest report that could be read.
    pub(super) body: Option<ReportBody>,
    /// What is wrong with the newest report.
    pub(super) defect: Option<ReportDefect>,
    /// The highest severity ever filed, unless lowered with somebody's agreement.
    pub(super) severity: Severity,
    /// A lower severity that waits for agreement, and who asked for it.
    lower: Option<(Severity, Author)>,
    pub(super) reporters: BTreeSet<Author>,
    pub(super) found_by: Author,
    pub(super) reported_in: CommitId,
    pub(super) reported_at: Timestamp,
    pub(super) resolution: Option<Resolution>,
    /// Since the resolution.
    pub(super) verified_by: BTreeSet<Author>,
    /// Since the resolution.
    pub(super) acked_by: BTreeSet<Author>,
    /// Somebody whom we do not know agreed to a lower severity.
    pub(super) lowered_by_unknown: bool,
    pub(super) reproducers: Vec<Reproducer>,
    /// Places in the log of the waivers.
    pub(super) waivers: Vec<usize>,
    pub(super) history: Vec<BugEvent>,
}

#[derive(Debug, Clone)]
pub(super) struct Reproducer {
    pub(super) commit: CommitId,
    pub(super) order: usize,
    pub(super) tests: bool,
}

impl Draft {
    fn new(commit: &LedgerCommit) -> Self {
        Self {
            body: None,
            defect: None,
            severity: Severity::Info,
            lower: None,
            reporters: BTreeSet::new(),
            found_by: commit.author.clone(),
            reported_in: commit.id.clone(),
            reported_at: commit.time,
            resolution: None,
            verified_by: BTreeSet::new(),
            acked_by: BTreeSet::new(),
            lowered_by_unknown: false,
            reproducers: Vec::new(),
            waivers: Vec::new(),
            history: Vec::new(),
        }
    }

    /// The severity that counts now: an unreadable newest report weighs at least med.
    pub(super) fn effective(&self) -> Severity {
        if self.defect.is_some() { self.severity.max(Severity::Med) } else { self.severity }
    }

    fn note(&mut self, commit: &LedgerCommit, what: impl Into<String>) {
        if self.history.len() >= HISTORY {
            self.history.remove(0);
        }
        self.history.push(BugEvent {
            commit: commit.id.clone(),
            by: commit.author.clone(),
            time: commit.time,
            what: what.into(),
        });
    }

    fn reopen(&mut self) -> bool {
        self.verified_by.clear();
        self.acked_by.clear();
        self.resolution.take().is_some()
    }

    fn resolve(&mut self, resolution: Resolution) -> bool {
        self.verified_by.clear();
        self.acked_by.clear();
        self.resolution.replace(resolution).is_some()
    }
}

#[derive(Debug, Default)]
struct Fold {
    drafts: BTreeMap<BugId, Draft>,
    /// Reproducers and waivers may come before the report that they belong to.
    reproducers: BTreeMap<BugId, Vec<Reproducer>>,
    waivers: BTreeMap<BugId, Vec<usize>>,
    warnings: Vec<String>,
    dropped: usize,
}

impl Fold {
    fn commit(&mut self, order: usize, commit: &LedgerCommit) {
        let claims = BugClaims::read(&Message::parse(&commit.message));
        for warning in &claims.warnings {
            self.warn(commit, warning);
        }
        let mut nameless = 0;
        for report in claims.reports {
            self.report(commit, report, &mut nameless);
        }
        for id in &claims.reopened {
            let Some(draft) = self.known(commit, id, "Bug-Reopen") else { continue };
            draft.reopen();
            draft.note(commit, "reopened");
        }
        if commit.voided {
            return;
        }
        for resolution in claims.resolutions {
            self.resolution(order, commit, resolution);
        }
        for deferral in claims.deferrals {
            self.deferral(order, commit, deferral);
        }
        let tests = commit.paths.iter().any(|p| p.tests);
        for id in claims.reproduces {
            if !tests {
                self.warn(commit, &format!("the reproducer of {id} touches no test"));
            }
            self.reproducers.entry(id).or_default().push(Reproducer {
                commit: commit.id.clone(),
                order,
                tests,
            });
        }
        for waiver in claims.waivers {
            self.waivers.entry(waiver.id).or_default().push(order);
        }
        for id in &claims.verified {
            self.verified(commit, id);
        }
        for id in &claims.acks {
            self.acked(commit, id);
        }
    }

    fn report(&mut self, commit: &LedgerCommit, report: BugReport, nameless: &mut u32) {
        let id = if let Ok(id) = report.id {
            id
        } else {
            *nameless += 1;
            let suffix = if *nameless > 1 { format!(".{nameless}") } else { String::new() };
            // A report that cannot be named must not vanish: it blocks under a name of ours.
            let Ok(id) = BugId::new(format!("malformed:{}{suffix}", commit.id.short())) else { return };
            self.warn(commit, &format!("that report stays open as {id} until it is filed under this id"));
            id
        };
        let body = report.body;
        let again = self.drafts.contains_key(&id);
        let draft = self.drafts.entry(id.clone()).or_insert_with(|| Draft::new(commit));
        let reopened = draft.reopen();
        draft.reporters.insert(commit.author.clone());
        draft.reported_in = commit.id.clone();
        match body {
            Ok(body) => {
                draft.note(commit, format!("reported as {}", body.severity));
                let first = draft.body.is_none();
                if first || body.severity >= draft.severity {
                    draft.severity = body.severity;
                    draft.lower = None;
                } else {
                    draft.lower = Some((body.severity, commit.author.clone()));
                }
                draft.defect = None;
                draft.body = Some(body);
            }
            Err(defect) => {
                draft.note(commit, format!("reported, unreadable: {defect}"));
                draft.defect = Some(defect);
            }
        }
        let lower = draft.lower.as_ref().map(|(severity, _)| *severity);
        let kept = draft.severity;
        if reopened {
            self.warn(commit, &format!("{id} is filed again after its resolution and open again"));
        } else if again {
            self.warn(commit, &format!("{id} is filed again"));
        }
        if let Some(lower) = lower {
            self.warn(
                commit,
                &format!("{id} stays at {kept}: lowering it to {lower} needs another peer's `Bug-Ack`"),
            );
        }
    }

    fn resolution(&mut self, order: usize, commit: &LedgerCommit, claim: BugResolution) {
        let BugResolution { id, body } = claim;
        let Some(body) = body else { return };
        let kind = match body.status {
            ResolutionStatus::Fixed => Disposition::Fixed,
            ResolutionStatus::Wontfix => Disposition::Wontfix,
            ResolutionStatus::Duplicate { of } => Disposition::Duplicate { of },
            ResolutionStatus::Invalid => Disposition::Invalid,
        };
        if kind == Disposition::Fixed && !commit.paths.iter().any(|p| classify(&p.path) != PathKind::Control)
        {
            self.warn(commit, &format!("resolution of {id} does not count: the commit changes no file"));
            return;
        }
        self.dispose(order, commit, &id, kind, body.note);
    }

    fn deferral(&mut self, order: usize, commit: &LedgerCommit, claim: BugDefer) {
        let BugDefer { id, reason } = claim;
        let reason = reason.unwrap_or_default();
        if reason_chars(&reason) < MIN_REASON {
            self.warn(
                commit,
                &format!("deferral of {id} does not count: no `reason` of {MIN_REASON} characters"),
            );
            return;
        }
        self.dispose(order, commit, &id, Disposition::Deferred, reason);
    }

    fn dispose(&mut self, order: usize, commit: &LedgerCommit, id: &BugId, kind: Disposition, note: String) {
        let what = kind.as_str();
        let Some(draft) = self.known(commit, id, "a resolution") else { return };
        if draft.body.is_none() {
            self.warn(commit, &format!("{id} cannot be closed before it is filed again in a readable form"));
            return;
        }
        draft.note(commit, what);
        let by = commit.author.clone();
        if draft.resolve(Resolution { commit: commit.id.clone(), by, order, kind, note }) {
            self.warn(commit, &format!("{id} is resolved again; the newest resolution counts"));
        }
    }

    fn verified(&mut self, commit: &LedgerCommit, id: &BugId) {
        let Some(draft) = self.known(commit, id, "Bug-Verified") else { return };
        match &draft.resolution {
            Some(r)
                if r.kind == Disposition::Fixed && r.by == commit.author && commit.author.is_attested() =>
            {
                self.warn(commit, &format!("{id} cannot be verified by who fixed it"));
            }
            Some(r) if r.kind == Disposition::Fixed => {
                draft.verified_by.insert(commit.author.clone());
                draft.note(commit, "verified");
            }
            Some(_) | None => {
                self.warn(commit, &format!("`Bug-Verified` of {id}: there is no fix to verify"));
            }
        }
    }

    fn acked(&mut self, commit: &LedgerCommit, id: &BugId) {
        let Some(draft) = self.known(commit, id, "Bug-Ack") else { return };
        let mut used = false;
        if let Some((lower, proposer)) = draft.lower.clone() {
            if commit.author.is_attested() && commit.author != proposer && proposer.is_attested() {
                draft.severity = lower;
                draft.lower = None;
                draft.note(commit, format!("lowered to {lower}"));
                used = true;
            } else if commit.author == Author::Unattributed || proposer == Author::Unattributed {
                draft.lowered_by_unknown = true;
                used = true;
            }
        }
        let asks = draft.resolution.as_ref().is_some_and(|r| match r.kind {
            Disposition::Wontfix | Disposition::Duplicate { .. } | Disposition::Invalid => true,
            Disposition::Fixed | Disposition::Deferred => false,
        });
        if asks {
            draft.acked_by.insert(commit.author.clone());
            draft.note(commit, "acknowledged");
            used = true;
        }
        if !used {
            self.warn(
                commit,
                &format!("`Bug-Ack` of {id}: there is nothing that this author could agree to"),
            );
        }
    }

    fn known(&mut self, commit: &LedgerCommit, id: &BugId, what: &str) -> Option<&mut Draft> {
        if !self.drafts.contains_key(id) {
            self.warn(commit, &format!("{what} names {id}, which was never reported"));
        }
        self.drafts.get_mut(id)
    }

    fn warn(&mut self, commit: &LedgerCommit, text: &str) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(format!("{}: {text}", commit.id.short()));
        } else {
            self.dropped += 1;
        }
    }

    fn finish(mut self, acks: &BTreeSet<BugId>) -> Ledger {
        for (id, found) in self.reproducers {
            match self.drafts.get_mut(&id) {
                Some(draft) => draft.reproducers = found,
                None => self.warnings.push(format!("a reproducer names {id}, which was never reported")),
            }
        }
        for (id, found) in self.waivers {
            match self.drafts.get_mut(&id) {
                Some(draft) => draft.waivers = found,
                None => self.warnings.push(format!("a waiver names {id}, which was never reported")),
            }
        }
        if self.dropped > 0 {
            self.warnings.push(format!("and {} more warnings", self.dropped));
        }
        Ledger { bugs: judge(self.drafts, acks), warnings: self.warnings }
    }
}
