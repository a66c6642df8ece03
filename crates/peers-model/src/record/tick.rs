//! Records of one tick: how it began, whose process it was, what it left and what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Role;
use crate::ids::{CommitId, GoalId, PeerName, TickNo, TreeId};
use crate::money::{Tokens, Usd};
use crate::outcome::PeerExit;
use crate::step::{CourseAsked, CourseMoved};
use crate::time::Timestamp;
use crate::verdict::Judged;

/// Record `tick-started`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TickStarted {
    /// Its number.
    pub tick: TickNo,
    /// Who has the turn.
    pub peer: PeerName,
    /// HEAD before.
    pub head_before: CommitId,
    /// Tree of HEAD before.
    pub tree_before: TreeId,
    /// Tree of the work tree before, `.peers/` left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_before: Option<TreeId>,
    /// Symbolic branch before; absent when HEAD is detached.
    pub branch: Option<String>,
    /// SHA-256 of the prompt.
    pub prompt_sha256: String,
    /// Size of the prompt.
    pub prompt_bytes: u64,
    /// How many queued warnings the prompt took.
    pub warnings_taken: u32,
    /// This is a skeptic turn.
    #[serde(default)]
    pub skeptic: bool,
    /// Inbox bookmarks after this prompt: sender to newest commit shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inbox: BTreeMap<PeerName, CommitId>,
    /// Hybrid messages shown: final paths below `comms/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Soft goals whose review was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<GoalId>,
    /// The turn ran outside, and is over when this is written (`peers tick --after`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Phase, step and role; absent where goals.yaml names no phases and no `settle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Box<CourseAsked>>,
}

/// Record `peer-spawned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerSpawned {
    /// The open tick.
    pub tick: TickNo,
    /// Process id, which is also the group and session id.
    pub pid: u32,
    /// Start time in kernel clock ticks since boot.
    pub start_time: u64,
    /// Which boot.
    pub boot_id: String,
}

/// Record `turn-ended`: written only where gates run before the tick is closed. Commits beyond `head`
/// may be the work of a gate, which runs what peers wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The open tick.
    pub tick: TickNo,
    /// HEAD as the peer left it.
    pub head: CommitId,
    /// How its process ended: after a crash in the gates the turn is still known, and what it cost.
    pub exit: Box<PeerExit>,
}

/// What will be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CorrectionKind {
    /// One commit on top that restores the tree from before the turn.
    Revert,
    /// The branch is set back to where it was, since known history vanished from it.
    RestoreHistory,
    /// HEAD is put back on the branch that the run works on.
    RestoreBranch,
    /// A dry run: everything is put back.
    Reset,
}

/// Record `correction-planned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionPlanned {
    /// The open tick.
    pub tick: TickNo,
    /// What will be done.
    pub kind: CorrectionKind,
    /// The commit found.
    pub from: CommitId,
    /// The commit to go back to.
    pub to: CommitId,
    /// The branch concerned.
    pub branch: Option<String>,
    /// Why, for people.
    pub reason: String,
}

/// What the tick meant to the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TickOutcome {
    /// A valid handoff.
    Handoff,
    /// The turn ended without one: half a failure where there were commits, else a whole one.
    NoHandoff,
    /// Something was undone.
    Corrected,
    /// The process failed.
    PeerFailed,
    /// The service asked to wait: neutral.
    RateLimited,
    /// The subscription's window is used up until it opens again: neutral.
    UsageCapped,
    /// It says that something outside of the repository is in its way: neutral.
    Blocked,
    /// Only the operator can help.
    NeedsOperator,
    /// Cut short by us or by a crash: neutral.
    Interrupted,
}

impl TickOutcome {
    /// Whether the tick counts neither for nor against the peer.
    #[must_use]
    pub fn is_neutral(self) -> bool {
        matches!(self, Self::RateLimited | Self::UsageCapped | Self::Blocked | Self::Interrupted)
    }

    /// Whether its peer broke down. Where such a turn left nothing, its peer did not come to work at all.
    #[must_use]
    pub fn is_breakdown(self) -> bool {
        matches!(self, Self::PeerFailed | Self::NeedsOperator)
    }

    /// Whether its service asked to wait, for a moment or until a window opens again.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::RateLimited | Self::UsageCapped)
    }

    /// Whether it stays what it is although the turn's work is undone or lost: one that counts for nobody
    /// still does, and what only the operator can mend is still to be mended.
    #[must_use]
    pub fn outlives_correction(self) -> bool {
        self.is_neutral() || self == Self::NeedsOperator
    }

    /// Whether somebody read the prompt for sure. What it showed is shown again otherwise: better
    /// twice than never.
    #[must_use]
    pub fn read_its_prompt(self) -> bool {
        matches!(self, Self::Handoff | Self::NoHandoff | Self::Corrected | Self::Blocked)
    }
}

/// A review that was accepted from a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedReview {
    /// Which soft goal.
    pub goal: GoalId,
    /// The answer.
    pub pass: bool,
    /// The commit that holds it.
    pub sha: CommitId,
    /// Notes, bounded. Untrusted text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// The verdict that a skeptic turn gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkepticVerdict {
    /// Nothing found, with evidence.
    Clean,
    /// It reported something that blocks, or changed the product.
    Found,
    /// No usable verdict.
    Missing,
}

/// Record `tick`. One for each turn; everything that an operator greps for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a flat record that people read with jq")]
pub struct TickRecord {
    /// Number of the tick.
    pub iteration: TickNo,
    /// Whose turn it was.
    pub peer: PeerName,
    /// Its tool.
    pub tool: String,
    /// Its part.
    pub role: Role,
    /// What it meant.
    pub outcome: TickOutcome,
    /// Whether it was a valid handoff.
    pub success: bool,
    /// The legacy label of the process result.
    pub classification: String,
    /// Why it was no success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_fail_reason: Option<String>,
    /// How the process ended.
    pub exit: PeerExit,
    /// Found after a crash of the loop.
    #[serde(default)]
    pub recovered: bool,
    /// The turn ran outside of the loop: nobody watched it, and what it cost is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// A handoff that counted although the process was ended by us.
    #[serde(default)]
    pub rescued: bool,
    /// When the turn began.
    pub started_at: Timestamp,
    /// Time spent on gates of this tick, milliseconds.
    #[serde(default)]
    pub gate_ms: u64,
    /// HEAD before.
    pub head_before: CommitId,
    /// HEAD after everything, our own corrections included.
    pub head_after: CommitId,
    /// Tree of HEAD after.
    pub tree_after: TreeId,
    /// Tree of the work tree after, `.peers/` left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_after: Option<TreeId>,
    /// Symbolic branch after.
    pub branch: Option<String>,
    /// New commits of the peer, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitId>,
    /// Commits that became reachable but were known before the tick.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<CommitId>,
    /// Our own commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<CommitId>,
    /// What was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<CorrectionKind>,
    /// Where the undone work is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<String>,
    /// Uncommitted changes were left.
    #[serde(default)]
    pub dirty: bool,
    /// The turn changed files outside documentation.
    #[serde(default)]
    pub product_change: bool,
    /// The tree of the head changed at all.
    #[serde(default)]
    pub tree_changed: bool,
    /// The turn left something that counts as evidence: a changed tree, or a review or skeptic section.
    #[serde(default)]
    pub evidence: bool,
    /// A blocking report, or a flag that a fix is weak, was filed.
    #[serde(default)]
    pub blocking_report: bool,
    /// Warnings for the next prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings_emitted: Vec<String>,
    /// Accepted reviews.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<AcceptedReview>,
    /// Review claims seen.
    #[serde(default)]
    pub soft_reviews_seen: u32,
    /// Review claims rejected.
    #[serde(default)]
    pub soft_reviews_rejected: u32,
    /// For each soft goal the digest of its scope before and after.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<GoalId, ScopeMove>,
    /// The skeptic's answer, when it was a skeptic turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skeptic: Option<SkepticVerdict>,
    /// A test-only turn: accepted with a warning.
    #[serde(default)]
    pub prewarned: bool,
    /// A commit of it named another peer in `Peer:`, or none where it handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub misnamed: bool,
    /// A test-only turn that was justified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Verdicts of gates that ran again after the handoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Judged>,
    /// Guarded files of `.git` that the turn changed, restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git_tampered: Vec<String>,
    /// Messages published from the drop box: final paths below `comms/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<String>,
    /// Size of the prompt.
    #[serde(default)]
    pub prompt_bytes: u64,
    /// What is in the peer's way, in its own words, when it says that it is blocked. Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<String>,
    /// Bugs that count as closed at its end, of all that were ever reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bugs_closed: u32,
    /// Blocking bugs that were ever reported, as of its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bugs_reported: u32,
    /// The soft money cap about which this tick warned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_warned: Option<Usd>,
    /// What it brought to its phase or step; absent where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Box<CourseMoved>>,
    /// State of every gate after the tick, for people and old scripts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gates: BTreeMap<GoalId, String>,
    /// All tokens so far.
    pub spent_tokens_total: Tokens,
    /// All money so far.
    pub spent_usd_total: Usd,
    /// The peer's health after the tick.
    pub peer_state_after: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// How the content that a soft goal is about moved in a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeMove {
    /// Digest before.
    pub before: String,
    /// Digest after.
    pub after: String,
}
