//! What is kept of the reviews of one goal, and how it changes.

use std::collections::{BTreeMap, BTreeSet};

use peers_model::record::AcceptedReview;
use peers_model::review::SoftRule;
use peers_model::{CommitId, PeerName, TickNo};
use serde::{Deserialize, Serialize};

/// Reviews kept of one goal.
const HISTORY: usize = 20;

/// A peer as the review rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterEntry {
    /// Its name.
    pub name: PeerName,
    /// It is a spare that runs only when all others are out.
    pub recovery: bool,
    /// It can take turns in this run.
    pub available: bool,
}

impl RosterEntry {
    /// Whether its review can be waited for.
    pub(super) fn counts(&self) -> bool {
        self.available && !self.recovery
    }
}

/// The reviews of one soft goal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftStatus {
    /// Distinct passes at `scope`, none if somebody objects there. For display: the rule decides.
    pub consensus_count: u32,
    /// The newest answer.
    pub last_pass: Option<bool>,
    /// Who gave it.
    pub last_reviewer: Option<PeerName>,
    /// The newest reviews, oldest first.
    pub history: Vec<SoftReview>,
    /// Whose turn it is to review, for `alternating`: a count of reviews.
    pub alt_cursor: u64,
    /// For display, by peer.
    pub per_peer: BTreeMap<PeerName, PeerTally>,
    /// The scope of the newest review or change.
    pub scope: String,
    /// Who made the newest change that we saw, and to what scope it led.
    pub changed: Option<ScopeChange>,
    /// Something came in of which nobody saw who made it, and not enough have passed it since.
    pub strangers: bool,
}

/// The newest change of a goal's scope in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeChange {
    /// In whose turn.
    pub by: PeerName,
    /// The scope after it.
    pub scope: String,
}

/// A review as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftReview {
    /// The answer.
    pub pass: bool,
    /// Who, by attribution.
    pub reviewer: PeerName,
    /// The commit that holds it.
    pub sha: CommitId,
    /// Notes. Untrusted, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The scope it is about.
    pub scope: String,
    /// The tick.
    pub tick: TickNo,
}

/// What one peer said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerTally {
    /// 1 when its answer at the current scope is a pass.
    pub consensus_count: u32,
    /// Its newest answer, whatever the scope.
    pub last_pass: Option<bool>,
}

/// What became of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingested {
    /// It counts.
    Counted,
    /// This commit's review was taken before.
    Known,
    /// The goal is reviewed in turn, and it is another peer's.
    NotYourTurn,
}

/// Whether this peer's review can be taken now. Only `alternating` says no.
#[must_use]
pub fn eligible(status: &SoftStatus, rule: SoftRule, roster: &[RosterEntry], peer: &PeerName) -> bool {
    match rule {
        SoftRule::Other { .. } | SoftRule::Both { .. } | SoftRule::Quorum { .. } => true,
        SoftRule::Alternating { .. } => whose_turn(status, roster) == Some(peer),
    }
}

fn whose_turn<'a>(status: &SoftStatus, roster: &'a [RosterEntry]) -> Option<&'a PeerName> {
    let peers: Vec<&PeerName> = roster.iter().filter(|r| r.counts()).map(|r| &r.name).collect();
    let n = u64::try_from(peers.len()).unwrap_or(u64::MAX);
    let at = usize::try_from(status.alt_cursor.checked_rem(n)?).ok()?;
    peers.get(at).copied()
}

/// Takes a review by `reviewer`, whose turn it was, of the scope as it was after that turn.
/// Each commit is taken once.
pub fn ingest(
    status: &mut SoftStatus,
    rule: SoftRule,
    roster: &[RosterEntry],
    reviewer: &PeerName,
    review: &AcceptedReview,
    scope: &str,
    tick: TickNo,
) -> Ingested {
    if status.history.iter().any(|r| r.sha == review.sha) {
        return Ingested::Known;
    }
    if !eligible(status, rule, roster, reviewer) {
        return Ingested::NotYourTurn;
    }
    scope.clone_into(&mut status.scope);
    status.alt_cursor = status.alt_cursor.wrapping_add(1);
    status.last_pass = Some(review.pass);
    status.last_reviewer = Some(reviewer.clone());
    status.history.push(SoftReview {
        pass: review.pass,
        reviewer: reviewer.clone(),
        sha: review.sha.clone(),
        notes: review.notes.clone(),
        scope: scope.to_owned(),
        tick,
    });
    if status.history.len() > HISTORY {
        let victim = least_telling(&status.history, scope);
        status.history.remove(victim);
    }
    tally(status);
    Ingested::Counted
}

/// Which review can go: one of another scope, else a pass that its author has since repeated or
/// taken back, else the oldest. So nobody can push out the answer of another by repeating his own.
fn least_telling(history: &[SoftReview], scope: &str) -> usize {
    let stale = history.iter().position(|r| r.scope != scope);
    let superseded = || {
        history.iter().enumerate().position(|(i, r)| {
            r.pass
                && history
                    .iter()
                    .skip(i + 1)
                    .any(|later| later.reviewer == r.reviewer && later.scope == r.scope)
        })
    };
    stale.or_else(superseded).unwrap_or(0)
}

/// Notes that the scope changed from `before` to `after` in the turn of `by`; `None` where nobody saw whose it was. His own reviews of
/// `before` go with the change; those of others stay behind and are stale.
pub fn scope_changed(status: &mut SoftStatus, by: Option<&PeerName>, before: &str, after: &str) {
    if before == after {
        return;
    }
    status.strangers |= by.is_none();
    let Some(by) = by else {
        status.changed = None;
        return;
    };
    for review in status.history.iter_mut().filter(|r| r.reviewer == *by && r.scope == before) {
        after.clone_into(&mut review.scope);
    }
    after.clone_into(&mut status.scope);
    status.changed = Some(ScopeChange { by: by.clone(), scope: after.to_owned() });
    tally(status);
}

/// Forgets the reviews that these commits hold: their turn was taken back.
pub fn void(status: &mut SoftStatus, commits: &BTreeSet<CommitId>) {
    status.history.retain(|r| !commits.contains(&r.sha));
    let newest = status.history.last();
    status.last_pass = newest.map(|r| r.pass);
    status.last_reviewer = newest.map(|r| r.reviewer.clone());
    tally(status);
}

/// The newest review of each peer at a scope, oldest first.
pub(super) fn fresh<'a>(status: &'a SoftStatus, scope: &str) -> Vec<&'a SoftReview> {
    let mut seen: BTreeSet<&PeerName> = BTreeSet::new();
    let newest = status.history.iter().rev().filter(|r| r.scope == scope && seen.insert(&r.reviewer));
    let mut found: Vec<&SoftReview> = newest.collect();
    found.reverse();
    found
}

/// Whose newest answer at a scope is no. Such an objection stands until its author passes or the
/// scope changes.
pub(super) fn objector<'a>(status: &'a SoftStatus, scope: &str, known: Known<'_>) -> Option<&'a PeerName> {
    fresh(status, scope).into_iter().find(|r| !r.pass && known(&r.reviewer)).map(|r| &r.reviewer)
}

/// Who passed at a scope since anybody last objected there.
pub(super) fn passes<'a>(status: &'a SoftStatus, scope: &str, known: Known<'_>) -> BTreeSet<&'a PeerName> {
    let here = |r: &&SoftReview| r.scope == scope && known(&r.reviewer);
    let newest_fail = status.history.iter().rposition(|r| here(&r) && !r.pass);
    let since = status.history.iter().skip(newest_fail.map_or(0, |i| i + 1));
    since.filter(here).map(|r| &r.reviewer).collect()
}

/// Whether a peer still belongs to the project.
pub(super) type Known<'a> = &'a dyn Fn(&PeerName) -> bool;

fn tally(status: &mut SoftStatus) {
    let scope = status.scope.clone();
    let anybody = |_: &PeerName| true;
    let passes: BTreeSet<PeerName> = if objector(status, &scope, &anybody).is_some() {
        BTreeSet::new()
    } else {
        passes(status, &scope, &anybody).into_iter().cloned().collect()
    };
    let newest: BTreeMap<PeerName, bool> =
        status.history.iter().map(|r| (r.reviewer.clone(), r.pass)).collect();
    status.per_peer = newest
        .into_iter()
        .map(|(peer, pass)| {
            let consensus_count = u32::from(passes.contains(&peer));
            (peer, PeerTally { consensus_count, last_pass: Some(pass) })
        })
        .collect();
    status.consensus_count = u32::try_from(passes.len()).unwrap_or(u32::MAX);
}
