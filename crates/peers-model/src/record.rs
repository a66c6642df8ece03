//! Journal records. The journal is the truth; state is its fold.
//!
//! One JSON object per line: the envelope of [`Line`] with the record beside it, tag `event`.
//! `docs/formats/journal.md` describes the file; old samples live in `tests/golden/`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Role;
use crate::goal::TreeChoice;
use crate::ids::{BugId, CommitId, GoalId, PeerName, RunId, TickNo, TreeId};
use crate::money::{Tokens, Usd};
use crate::outcome::{PeerExit, StopReason};
use crate::review::SoftRule;
use crate::time::Timestamp;
use crate::verdict::{Judged, TreeKey};

/// The version of the line format.
pub const LINE_VERSION: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Format version.
    pub v: u32,
    /// Position, from 1, without gaps.
    pub seq: u64,
    /// When it was written.
    pub ts: Timestamp,
    /// The loop that wrote it; absent while no loop runs.
    pub run_id: Option<RunId>,
    /// SHA-256 (hex) of the bytes of the line before, without its newline; empty for the first.
    pub prev: String,
    /// What happened.
    #[serde(flatten)]
    pub record: Record,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Record {
    /// A loop took the repository over.
    RunStarted(Box<RunStarted>),
    /// A turn begins: from here until its `tick` record the tick is open.
    TickStarted(Box<TickStarted>),
    /// The peer's process runs.
    PeerSpawned(PeerSpawned),
    /// The peer is done and its work was looked at; gates run before the tick is closed.
    TurnEnded(TurnEnded),
    /// Something that the peer did will be undone.
    CorrectionPlanned(CorrectionPlanned),
    /// A turn ended.
    Tick(Box<TickRecord>),
    /// Verdicts that arrived outside a tick.
    Gates(GatesRecord),
    /// The proof run.
    Proof(ProofRecord),
    /// A peer waits.
    Cooling(Cooling),
    /// Commits appeared between ticks.
    CommitsSeen(CommitsSeen),
    /// The operator did something.
    Operator(OperatorRecord),
    /// The mirror differed from the journal and was rewritten.
    MirrorRestored(MirrorRestored),
    /// The whole state, first record of a rotated segment.
    Checkpoint(CheckpointRecord),
    /// The loop stopped.
    Exit(Box<ExitRecord>),
}

impl Record {
    /// The tag, as written.
    #[must_use]
    pub fn event(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run-started",
            Self::TickStarted(_) => "tick-started",
            Self::PeerSpawned(_) => "peer-spawned",
            Self::TurnEnded(_) => "turn-ended",
            Self::CorrectionPlanned(_) => "correction-planned",
            Self::Tick(_) => "tick",
            Self::Gates(_) => "gates",
            Self::Proof(_) => "proof",
            Self::Cooling(_) => "cooling",
            Self::CommitsSeen(_) => "commits-seen",
            Self::Operator(_) => "operator",
            Self::MirrorRestored(_) => "mirror-restored",
            Self::Checkpoint(_) => "checkpoint",
            Self::Exit(_) => "exit",
        }
    }
}

/// The rules that folding needs, frozen at the start of a run so that a fold needs no config.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// The peers in config order.
    pub peers: Vec<PeerRule>,
    /// Failed attempts before the turn passes on.
    pub max_retries: u32,
    /// Ticks until a degraded peer gets one recovery turn; 0 = never.
    pub recovery_interval: u32,
    /// The gates.
    pub gates: Vec<GateRule>,
    /// The soft goals.
    pub soft: Vec<SoftRuleEntry>,
    /// Go on without a peer that needs its operator.
    pub continue_without_peer: bool,
    /// Skeptic rounds that must be clean; 0 = no skeptic.
    pub skeptic_rounds: u32,
    /// Skeptic attempts without a usable verdict before the loop is stuck.
    pub skeptic_attempts: u32,
    /// Nothing of a tick stays (`--dry-run`).
    pub dry_run: bool,
}

/// A peer as far as folding needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRule {
    /// Its name.
    pub name: PeerName,
    /// Its tool.
    pub tool: String,
    /// Its part.
    pub role: Role,
}

/// A hard goal as far as folding needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRule {
    /// Its id.
    pub id: GoalId,
    /// Where it runs.
    pub tree: TreeChoice,
    /// It reads commits and loop state, so its verdict belongs to the head, not to the tree alone.
    pub reads_history: bool,
    /// One of the gates that `init` ships.
    pub shipped: bool,
    /// Digest of its definition: a changed one voids kept verdicts.
    pub digest: String,
}

/// A soft goal as far as folding needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftRuleEntry {
    /// Its id.
    pub id: GoalId,
    /// When it is green.
    pub rule: SoftRule,
    /// Ask at most every so many ticks.
    pub every: u32,
}

/// Digests of what the operator accepted (SHA-256, hex).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Digests {
    /// `goals.yaml`.
    pub goals: String,
    /// `config.yaml`.
    pub config: String,
}

/// Record `run-started`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Our process.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Where agents work.
    pub branch: Option<String>,
    /// HEAD at the start.
    pub head: CommitId,
    /// Commits that appeared while no loop ran: the operator's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operator: Vec<CommitId>,
    /// What was accepted.
    pub digests: Digests,
    /// Backend and tier of the sandbox.
    pub sandbox: String,
    /// Tick cap of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ticks: Option<u64>,
    /// Frozen rules.
    pub rules: Rules,
    /// Bytes of a torn line that were cut off and kept aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn: Option<u64>,
}

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
}

/// Record `commits-seen`: commits that appeared while no tick was open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitsSeen {
    /// HEAD with them.
    pub head: CommitId,
    /// The commits, oldest first. None, after an exit: the gates that it cut off made none.
    pub commits: Vec<CommitId>,
    /// Gates ran when they appeared, or a run broke off. A gate runs what peers wrote, so nothing
    /// tells whether the operator made them: they are nobody's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_gates: bool,
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
    /// Only the operator can help.
    NeedsOperator,
    /// Cut short by us or by a crash: neutral.
    Interrupted,
}

impl TickOutcome {
    /// Whether the tick counts neither for nor against the peer.
    #[must_use]
    pub fn is_neutral(self) -> bool {
        matches!(self, Self::RateLimited | Self::Interrupted)
    }

    /// Whether somebody read the prompt for sure. What it showed is shown again otherwise: better
    /// twice than never.
    #[must_use]
    pub fn read_its_prompt(self) -> bool {
        matches!(self, Self::Handoff | Self::NoHandoff | Self::Corrected)
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
    /// The soft money cap about which this tick warned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_warned: Option<Usd>,
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

/// How the content that a soft goal is about moved in a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeMove {
    /// Digest before.
    pub before: String,
    /// Digest after.
    pub after: String,
}

/// Record `gates`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatesRecord {
    /// Ticks completed when they ran.
    pub iteration: TickNo,
    /// Wall time of the evaluation, milliseconds.
    pub took_ms: u64,
    /// The verdicts.
    pub verdicts: Vec<Judged>,
}

/// Record `proof`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofRecord {
    /// At which head and tree.
    pub at: TreeKey,
    /// The verdicts.
    pub verdicts: Vec<Judged>,
    /// Gates that the operator exempted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<GoalId>,
    /// Whether all were green.
    pub passed: bool,
    /// Wall time, milliseconds.
    pub took_ms: u64,
}

/// Record `cooling`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    /// Who waits.
    pub peer: PeerName,
    /// Until when.
    pub until: Timestamp,
    /// How many rate limits in a row.
    pub streak: u32,
}

/// Record `operator`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// What was done.
    #[serde(flatten)]
    pub op: OperatorOp,
    /// Login name of who did it.
    pub by: String,
}

/// What an operator can do to a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum OperatorOp {
    /// New goals or config were accepted.
    Accepted {
        /// The digests before.
        old: Digests,
        /// The digests now.
        new: Digests,
        /// Why.
        note: Option<String>,
        /// The new rules, when a loop took them over while it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Box<Rules>>,
    },
    /// Spent counters were zeroed.
    BudgetReset,
    /// A bug, a concern or a weakening was acknowledged.
    Ack {
        /// What.
        target: AckTarget,
        /// Why.
        reason: String,
    },
    /// The store was attached to a repository that moved.
    StoreAttached {
        /// The path that the store knew.
        old_path: String,
    },
    /// The branch was set back to the base of a run.
    Undone {
        /// Which run.
        run: RunId,
        /// The tip that was left.
        from: CommitId,
        /// The base.
        to: CommitId,
        /// Where the tip is kept.
        salvage: String,
    },
    /// A run's branch was landed.
    Landed {
        /// Which run.
        run: RunId,
        /// Into which branch.
        into: String,
        /// The new tip.
        commit: CommitId,
    },
    /// A branch is about to be moved by a landing or an undo.
    Moving(BranchMove),
    /// That move is done, or nothing of it was.
    Moved,
}

/// A branch that is about to be moved, so that a crash in between can be finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMove {
    /// On whose behalf.
    pub kind: MoveKind,
    /// Which run.
    pub run: RunId,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Where it is.
    pub from: CommitId,
    /// Where it will be.
    pub to: CommitId,
    /// The work tree that has it checked out; absent when none has.
    pub workdir: Option<String>,
}

/// Why a branch is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveKind {
    /// `peers land`: recorded as landed when it is done.
    Land,
    /// `peers undo`: recorded as undone before it is begun.
    Undo,
}

/// What an `ack` is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "kebab-case")]
pub enum AckTarget {
    /// A bug report.
    Bug(BugId),
    /// A concern of a peer.
    Concern(String),
    /// A turn that weakened tests.
    Weakening(TickNo),
}

/// Record `mirror-restored`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorRestored {
    /// The tick in which a peer changed it; absent when it was found at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<TickNo>,
    /// What differed.
    pub what: String,
}

/// Record `checkpoint`. The state is opaque here, since ring 0 does not know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// The state, as the snapshot holds it.
    pub state: serde_json::Value,
}

/// Record `exit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Why.
    pub reason: StopReason,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Ticks of this process.
    pub ticks_in_run: u64,
    /// The signal, when the reason is `interrupted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// HEAD.
    pub head: Option<CommitId>,
    /// The proof behind `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ExitProof>,
    /// Gates were running: what appears until the next start may be their work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_gates: bool,
}

/// What `complete` rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitProof {
    /// The tree that was proved.
    pub tree: TreeId,
    /// Gates that the operator exempted.
    pub exempt: Vec<GoalId>,
}
