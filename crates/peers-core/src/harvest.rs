//! What a turn amounts to: the outcome rules, read off observed facts.
//!
//! Ancestry comes first, then whose commits they are (by observation, never by trailer), then the
//! handoff, then anti-cheat: of every turn whose commits stay, however it ended.

use peers_model::claim::CommitClaims;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit};
use peers_model::record::{AcceptedReview, CorrectionKind, SkepticVerdict, TickOutcome, TickStarted};
use peers_model::step::StepRole;
use peers_model::weakening::Weakening;
use peers_model::{CommitId, PeerName, limits};

use crate::apply::bounded;
use crate::bugs;
use crate::cheat::{self, CheatContext, CheatVerdict, OfTurn, TAKEN_OVER, WEAKENED};
use crate::classify_path::{self, PathKind};
use crate::failed::BY_PROCESS;
use crate::machine::{CommitSeen, Harvest, Origin};
use crate::reviews::eligible;
use crate::state::{OpenTick, State};

/// Warnings of one turn. What peers write can cause any number of them.
const WARNINGS: usize = 20;

/// What a turn amounts to.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "plain facts for one record")]
pub struct Judgement {
    /// What it meant.
    pub outcome: TickOutcome,
    /// A valid handoff that stands.
    pub success: bool,
    /// Why not.
    pub reason: Option<String>,
    /// A handoff that counted although we ended the process.
    pub rescued: bool,
    /// The peer's commits.
    pub commits: Vec<CommitId>,
    /// Commits that were known before.
    pub foreign: Vec<CommitId>,
    /// Ours.
    pub own: Vec<CommitId>,
    /// Accepted reviews.
    pub reviews: Vec<AcceptedReview>,
    /// Review claims seen and rejected.
    pub reviews_seen: u32,
    /// Review claims rejected.
    pub reviews_rejected: u32,
    /// For the next prompt; a verdict about the tests first. Few, each of bounded length.
    pub warnings: Vec<String>,
    /// Something blocking was filed.
    pub blocking_report: bool,
    /// What the peer says is in its way. Untrusted text.
    pub blocked_on: Option<String>,
    /// The skeptic's answer.
    pub skeptic: Option<SkepticVerdict>,
    /// Files outside documentation changed.
    pub product_change: bool,
    /// Any file changed.
    pub tree_changed: bool,
    /// The turn left evidence.
    pub evidence: bool,
    /// A commit of it names another peer, or none, where it hands over.
    pub misnamed: bool,
    /// It stands, with a warning: it changed only tests, or weakened them.
    pub prewarned: bool,
    /// A test-only turn that was justified.
    pub justification: Option<String>,
    /// What a turn outside of the loop did to the tests.
    pub distrust: Option<String>,
    /// What must be undone, and why.
    pub undo: Option<(CorrectionKind, String)>,
    /// Warnings that were too many.
    unsaid: u64,
}

impl Judgement {
    /// The turn's work could not be taken in and is set aside: there is nothing that could count.
    pub(crate) fn lose(&mut self, why: &str) {
        self.because(why);
        if !self.outcome.outlives_correction() {
            self.outcome = TickOutcome::PeerFailed;
        }
        self.success = false;
        self.rescued = false;
        self.prewarned = false;
        self.evidence = false;
        self.skeptic = self.skeptic.map(|_| SkepticVerdict::Missing);
        self.reviews.clear();
        self.undo = None;
        self.warn_first(why);
    }

    /// Gives the reason. Where the operator is needed it stands behind what they are needed for.
    fn because(&mut self, why: &str) {
        self.reason = Some(match self.reason.take() {
            Some(needed) if self.outcome == TickOutcome::NeedsOperator => format!("{needed}; {why}"),
            Some(_) | None => why.to_owned(),
        });
    }

    fn warn(&mut self, text: &str) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(bounded(text, limits::WARNING));
        } else {
            self.unsaid = self.unsaid.saturating_add(1);
        }
    }

    /// For the few that must not be lost among others.
    fn warn_first(&mut self, text: &str) {
        self.warnings.insert(0, bounded(text, limits::WARNING));
    }
}

/// Judges a turn.
#[must_use]
pub fn judge(state: &State, open: &OpenTick, exit: &PeerExit, harvest: &Harvest) -> Judgement {
    let mut j = weigh(state, open, exit, harvest);
    if j.unsaid > 0 {
        let more = format!("and {} more warnings about this turn", j.unsaid);
        j.warnings.push(more);
    }
    if state.rules.dry_run {
        // Nothing of it stays, whatever it amounts to.
        j.undo = Some((CorrectionKind::Reset, "dry run".into()));
    }
    j
}

fn weigh(state: &State, open: &OpenTick, exit: &PeerExit, harvest: &Harvest) -> Judgement {
    let mut j = gather(state, open, harvest);
    let started = &open.started;
    let branch_moved = harvest.at.as_ref().is_some_and(|at| at.branch != started.branch);
    if !harvest.ancestor {
        j.undo = Some((CorrectionKind::RestoreHistory, "history was rewritten".into()));
        return restored(
            j,
            exit,
            "history was rewritten: the commits from before this turn are no longer part of HEAD; the branch was set back and the tip was kept",
        );
    }
    if branch_moved {
        j.undo = Some((CorrectionKind::RestoreBranch, "HEAD left its branch".into()));
        return restored(
            j,
            exit,
            "HEAD left its branch in this turn; the branch was restored and the tip was kept",
        );
    }
    let mut j = outcome(j, exit, handoff_in(harvest));
    anti_cheat(state, open, harvest, &mut j);
    j
}

/// A turn whose commits go: no handoff of it counts.
fn restored(j: Judgement, exit: &PeerExit, why: &str) -> Judgement {
    match needs_operator(exit, false) {
        Some(needed) => fail(j, TickOutcome::NeedsOperator, &format!("{needed}; {why}")),
        None => fail(j, TickOutcome::Corrected, why),
    }
}

/// What only the operator can help with, in words.
fn needs_operator(exit: &PeerExit, has_handoff: bool) -> Option<String> {
    if !exit.api.needs_operator() || (has_handoff && exit.class == ExitClass::Ok) {
        return None;
    }
    let what = if exit.api == ApiClass::Auth { "it is not logged in" } else { "its quota is used up" };
    Some(format!("{what}; only the operator can help"))
}

/// How the turn ended, and whether it handed off.
fn outcome(mut j: Judgement, exit: &PeerExit, has_handoff: bool) -> Judgement {
    if exit.class == ExitClass::SpawnFail {
        return fail(j, TickOutcome::PeerFailed, "the process could not be started");
    }
    if let Some(needed) = needs_operator(exit, has_handoff) {
        return fail(j, TickOutcome::NeedsOperator, &needed);
    }
    if exit.class == ExitClass::Interrupted && !has_handoff {
        return fail(j, TickOutcome::Interrupted, "the turn was cut short");
    }
    if !has_handoff {
        if exit.api == ApiClass::Transient {
            return fail(j, TickOutcome::RateLimited, "the service asked to wait");
        }
        if exit.api == ApiClass::UsageCap {
            return fail(j, TickOutcome::UsageCapped, "the usage cap of its subscription is reached");
        }
        if exit.class == ExitClass::Budget {
            return fail(
                j,
                TickOutcome::Interrupted,
                "a cap or the run's time was used up in the middle of the turn",
            );
        }
        if exit.class != ExitClass::Ok {
            let label = exit.classification();
            return fail(j, TickOutcome::PeerFailed, &format!("{BY_PROCESS}{label}"));
        }
        if let Some(on) = j.blocked_on.clone() {
            return fail(j, TickOutcome::Blocked, &format!("it says that it is blocked: {on}"));
        }
        if j.commits.is_empty() {
            return fail(j, TickOutcome::NoHandoff, "no commit by peer this turn");
        }
        return fail(
            j,
            TickOutcome::NoHandoff,
            "commits without a handoff: one commit must carry `Peer-Status: handoff` and `Self-Review: pass`",
        );
    }
    j.success = true;
    j.outcome = TickOutcome::Handoff;
    if !matches!(exit.class, ExitClass::Ok) || exit.api != ApiClass::None {
        j.rescued = true;
        j.warn_first(&format!(
            "the turn ended as `{}`, but its handoff was complete and counts; commit earlier and end cleanly",
            exit.classification()
        ));
    }
    j
}

fn fail(mut j: Judgement, outcome: TickOutcome, reason: &str) -> Judgement {
    j.outcome = outcome;
    j.success = false;
    j.reason = Some(reason.to_owned());
    j
}

/// Whether a turn was ended before it was done: nothing that it left uncommitted was left on purpose.
#[must_use]
pub fn is_cut_short(exit: &PeerExit, commits: &[CommitSeen]) -> bool {
    matches!(exit.class, ExitClass::Interrupted | ExitClass::Budget) && !hands_off(commits)
}

fn handoff_in(harvest: &Harvest) -> bool {
    hands_off(&harvest.commits)
}

fn hands_off(commits: &[CommitSeen]) -> bool {
    commits
        .iter()
        .filter(|c| c.origin == Origin::Peer)
        .any(|c| CommitClaims::read(&c.message).handoff.unverified().is_handoff())
}

/// Everything that is read off, whatever the outcome.
fn gather(state: &State, open: &OpenTick, harvest: &Harvest) -> Judgement {
    let started = &open.started;
    let mut j = Judgement {
        outcome: TickOutcome::NoHandoff,
        success: false,
        reason: None,
        rescued: false,
        commits: ids(harvest, Origin::Peer),
        foreign: ids(harvest, Origin::Known),
        own: ids(harvest, Origin::Own),
        reviews: Vec::new(),
        reviews_seen: 0,
        reviews_rejected: 0,
        warnings: Vec::new(),
        blocking_report: false,
        blocked_on: None,
        skeptic: None,
        product_change: false,
        tree_changed: harvest.at.as_ref().is_some_and(|at| at.head_tree != started.tree_before),
        evidence: false,
        misnamed: false,
        prewarned: false,
        justification: None,
        distrust: None,
        undo: None,
        unsaid: 0,
    };
    j.product_change = harvest
        .diff
        .files
        .iter()
        .any(|f| matches!(classify_path::classify(&f.path), PathKind::Source | PathKind::Test));
    // What we saw ourselves comes before what the peer's own words give cause for.
    warn_of_traces(&started.peer, harvest, &mut j);
    if started.outside {
        j.warn(&format!(
            "this turn ran outside of the loop, so that it was {}'s is only what its commits say: its reviews and what it says of bugs that others reported or fixed do not count; the gates do",
            started.peer
        ));
    }
    let mut seen_section = false;
    let mut skeptic_clean = false;
    let mut told_of = Vec::new();
    for commit in harvest.commits.iter().filter(|c| c.origin == Origin::Peer) {
        let claims = CommitClaims::read(&commit.message);
        let handoff = claims.handoff.unverified();
        // The newest word counts.
        if handoff.status.is_some() {
            j.blocked_on = handoff.blocked().map(str::to_owned);
        }
        let trailer_matters = handoff.is_handoff() || handoff.peer.is_some();
        let other = trailer_matters && !handoff.names(&started.peer);
        j.misnamed |= other;
        if other {
            let what = if handoff.peer.is_some() {
                "names another peer in its `Peer:` trailer"
            } else {
                "hands over without a `Peer:` trailer"
            };
            // Once each.
            if !told_of.contains(&what) {
                j.warn(&format!(
                    "a commit of this turn {what}; it counts as {}'s, who ran; write `Peer: {}`",
                    started.peer, started.peer
                ));
                told_of.push(what);
            }
        }
        for review in &claims.reviews {
            take_review(state, started, commit, review, &mut j);
        }
        seen_section |= claims.has_review_section;
        let skeptic = claims.skeptic.unverified();
        seen_section |= skeptic.has_section;
        skeptic_clean |= skeptic.is_clean();
        for warning in &claims.warnings {
            j.warn(&format!("commit {}: {warning}", commit.id.short()));
        }
    }
    j.blocking_report = bugs::blocking_reports(
        harvest.commits.iter().filter(|c| c.origin == Origin::Peer).map(|c| c.message.as_str()),
    );
    j.evidence = j.tree_changed || seen_section;
    if started.skeptic {
        j.skeptic = Some(if j.blocking_report || j.tree_changed {
            SkepticVerdict::Found
        } else if skeptic_clean && handoff_in(harvest) {
            SkepticVerdict::Clean
        } else {
            SkepticVerdict::Missing
        });
    }
    j
}

/// What the turn left behind besides commits.
fn warn_of_traces(peer: &PeerName, harvest: &Harvest, j: &mut Judgement) {
    if !harvest.dirty.is_empty() {
        j.warn(&format!(
            "uncommitted changes were left by {peer} ({}): commit them or remove them, they block completion",
            bounded(&harvest.dirty.join(", "), 300)
        ));
    }
    for file in &harvest.git_tampered {
        j.warn(&format!(
            "this turn changed `{file}` of the repository's git directory; it was restored: never touch it"
        ));
    }
    for name in &harvest.refs_tampered {
        j.warn(&format!("this turn moved the protected ref `{name}`; it was restored: never touch it"));
    }
    for warning in &harvest.warnings {
        j.warn(warning);
    }
}

fn ids(harvest: &Harvest, origin: Origin) -> Vec<CommitId> {
    harvest.commits.iter().filter(|c| c.origin == origin).map(|c| c.id.clone()).collect()
}

fn take_review(
    state: &State,
    started: &TickStarted,
    commit: &CommitSeen,
    review: &Result<
        peers_model::claim::Claimed<peers_model::review::ReviewClaim>,
        peers_model::review::ReviewRejection,
    >,
    j: &mut Judgement,
) {
    j.reviews_seen = j.reviews_seen.saturating_add(1);
    let reject = |j: &mut Judgement, why: String| {
        j.reviews_rejected = j.reviews_rejected.saturating_add(1);
        j.warn(&format!("review in commit {} was not counted: {why}", commit.id.short()));
    };
    if started.outside {
        // Who reviews must be seen to be another than who wrote.
        reject(j, "the loop did not run this turn; only reviews from its own turns count".to_owned());
        return;
    }
    match review {
        Ok(claim) => {
            let claim = claim.unverified();
            let Some(soft) = state.rules.soft.iter().find(|s| s.id == claim.goal) else {
                reject(j, format!("there is no soft goal `{}`", claim.goal));
                return;
            };
            let status = state.soft.get(&claim.goal).cloned().unwrap_or_default();
            if !eligible(&status, soft.rule, &crate::converge::roster(state), &started.peer) {
                reject(j, format!("it is another peer's turn to review `{}`", claim.goal));
                return;
            }
            if claim.pass && (claim.checked.is_empty() || commit.unfounded.contains(&claim.goal)) {
                let what = "it says `pass`, but `checked` names no existing file (`file:line what`)";
                reject(j, what.to_owned());
                return;
            }
            // The last word of a turn on a goal is the one that counts.
            j.reviews.retain(|r| r.goal != claim.goal);
            j.reviews.push(AcceptedReview {
                goal: claim.goal.clone(),
                pass: claim.pass,
                sha: commit.id.clone(),
                notes: bounded(&claim.notes, limits::NOTES),
            });
        }
        Err(rejection) => reject(j, rejection.to_string()),
    }
}

/// A weakening that was found after the handoff was judged: the first is warned about, the next is
/// taken back.
pub(crate) fn weakened(state: &State, open: &OpenTick, j: &mut Judgement, why: &str) {
    if j.undo.is_some() {
        return;
    }
    let why = format!("{WEAKENED}{why}");
    if open.started.outside {
        distrust(j, &why);
        return;
    }
    if state.health(&open.started.peer).prewarned {
        take_back(open, j, &why);
    } else {
        prewarn(open, j, &why);
    }
}

/// Weakened tests of which nobody saw whose doing they are: nobody is charged, nothing is taken back, and the
/// operator has to look.
fn distrust(j: &mut Judgement, why: &str) {
    let why = bounded(why, limits::WARNING - 200);
    j.warn_first(&format!("{why} (outside the loop; no peer is charged)"));
    j.prewarned = true;
    j.distrust.get_or_insert(why);
}

fn prewarn(open: &OpenTick, j: &mut Judgement, why: &str) {
    j.prewarned = true;
    let why = bounded(why, limits::WARNING - 200);
    j.warn_first(&format!("{why} (turn of {}; the next turn of that kind is reverted)", open.started.peer));
}

fn take_back(open: &OpenTick, j: &mut Judgement, why: &str) {
    let why = bounded(why, limits::WARNING - 200);
    j.success = false;
    j.because(&format!("{why} (the turn was reverted)"));
    // The work goes all the same.
    if !j.outcome.outlives_correction() {
        j.outcome = TickOutcome::Corrected;
    }
    j.warn_first(&format!("{why} (the turn of {} was reverted)", open.started.peer));
    j.undo = Some((CorrectionKind::Revert, why));
    // What a reverted handoff claimed is void.
    j.reviews.clear();
}

/// Measures what a turn does to the tests: by its commits, which stay however it ended, and by what it leaves
/// for somebody else to commit. What lay in the work tree before it was left by somebody else.
fn anti_cheat(state: &State, open: &OpenTick, harvest: &Harvest, j: &mut Judgement) {
    let started = &open.started;
    let prewarned = state.health(&started.peer).prewarned;
    if started.outside {
        let OfTurn { own, taken_over, .. } = OfTurn::new(&harvest.diff, &harvest.uncommitted, false);
        let found: Vec<Weakening> = own.into_iter().chain(taken_over).collect();
        if !found.is_empty() {
            distrust(j, &cheat::weakened_words(&found));
        }
        return;
    }
    // Who was cut short may have meant to go on.
    let left_counts = j.outcome != TickOutcome::Interrupted;
    let OfTurn { own: found, taken_over, found_there } =
        OfTurn::new(&harvest.diff, &harvest.uncommitted, left_counts);
    let words = |found: &[Weakening]| {
        bounded(cheat::weakened_words(found).trim_start_matches(WEAKENED), limits::WARNING - 200)
    };
    if !taken_over.is_empty() {
        j.warn_first(&format!(
            "{} committed changes that were left uncommitted before this turn: {} (check that this is intended)",
            started.peer,
            words(&taken_over)
        ));
    }
    if !found_there.is_empty() {
        j.warn_first(&format!("{TAKEN_OVER}{}", words(&found_there)));
    }
    let verdict = if j.success {
        let (justification, reproduces_open_bug) = excuses(harvest);
        let reads = started.course.as_ref().and_then(|course| course.work.as_ref());
        let reviewer = started.skeptic || reads.is_some_and(|work| work.role != StepRole::Implement);
        let context = CheatContext { reviewer, reproduces_open_bug, justification, prewarned };
        cheat::judge(&harvest.diff, &found, &context)
    } else {
        cheat::judge_unfinished(&found, prewarned)
    };
    match verdict {
        CheatVerdict::Clean | CheatVerdict::Reproducer => {}
        CheatVerdict::Justified { text } => {
            j.warn_first(&format!(
                "{} changed only tests and gave this reason; review it: {text}",
                started.peer
            ));
            j.justification = Some(text);
        }
        CheatVerdict::Prewarn { why } => prewarn(open, j, &why),
        CheatVerdict::Revert { why } => take_back(open, j, &why),
    }
}

/// The reason that was given for a turn of tests alone, and whether it reproduces an open bug.
fn excuses(harvest: &Harvest) -> (Option<String>, bool) {
    let mut justification = None;
    let mut reproduces = false;
    for commit in harvest.commits.iter().filter(|c| c.origin == Origin::Peer) {
        let claims = CommitClaims::read(&commit.message);
        if justification.is_none() {
            justification = claims.justified_test_only.map(|text| bounded(text.unverified(), 500));
        }
        reproduces |=
            claims.bugs.unverified().reproduced_ids().iter().any(|id| harvest.open_bugs.contains(id));
    }
    (justification, reproduces)
}
