//! The durable state: what is left when the journal is folded.
//!
//! Not in it: what config says, what git says, what is only in flight. [`State::apply`] (in
//! `apply.rs`) is the only way it changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use peers_model::outcome::{StopReason, Usage};
use peers_model::record::{
    AckTarget, BranchMove, Cap, CorrectionPlanned, Digests, PeerSpawned, Rules, TickOutcome, TickStarted,
    TurnEnded, WaitCause,
};
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, Tokens, TreeId, Usd};
use serde::{Deserialize, Serialize};

use crate::board::GateBoard;
use crate::course::Course;
use crate::reviews::SoftStatus;
use crate::standstill::Standstill;

/// The version of the serialised state.
pub const STATE_FORMAT: u32 = 3;

/// The fold of the journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct State {
    /// Version of this shape.
    pub format: u32,
    /// Rules of the current or last run.
    pub rules: Rules,
    /// The current or last run.
    pub run: Option<RunInfo>,
    /// Ticks completed, ever.
    pub ticks: TickNo,
    /// Index into `rules.peers` of the peer whose turn it is.
    pub turn_index: usize,
    /// Health of each peer, also of those that config no longer names.
    pub peers: BTreeMap<PeerName, PeerHealth>,
    /// What was spent since the counters were last reset.
    pub spent: Spent,
    /// Caps that the operator set over those of the configuration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub raised: BTreeMap<Cap, Raised>,
    /// What was spent since something got better.
    #[serde(default)]
    pub progress: Progress,
    /// Verdicts.
    pub board: GateBoard,
    /// Results of proof runs.
    pub proofs: ProofStore,
    /// What gates answered in a clean checkout before a turn was paid for.
    #[serde(default)]
    pub trial: Trial,
    /// Soft-goal consensus.
    pub soft: BTreeMap<GoalId, SoftStatus>,
    /// When each peer was last asked for a review.
    pub asked: BTreeMap<PeerName, BTreeMap<GoalId, TickNo>>,
    /// Successful ticks in a row that filed nothing blocking.
    pub clean_ticks: u32,
    /// How long the run has got nowhere.
    #[serde(default)]
    pub standstill: Standstill,
    /// Phases, steps and quiet ticks.
    #[serde(default)]
    pub course: Course,
    /// The skeptic.
    pub skeptic: Skeptic,
    /// Warnings for the next prompt.
    pub warnings: Vec<String>,
    /// The last warnings, for people.
    pub warnings_history: VecDeque<WarningEntry>,
    /// The tick that began and has not ended.
    pub open: Option<OpenTick>,
    /// Receiver to sender to newest commit shown.
    pub bookmarks: BTreeMap<PeerName, BTreeMap<PeerName, CommitId>>,
    /// Hybrid messages not yet delivered, final paths below `comms/`.
    pub messages: VecDeque<String>,
    /// Next number of a hybrid message, by `<from>-to-<to>`.
    pub message_numbers: BTreeMap<String, u64>,
    /// HEAD as last recorded.
    pub head: Option<CommitId>,
    /// Branch as last recorded; absent when HEAD was detached.
    pub branch: Option<String>,
    /// Uncommitted changes were left by the last tick.
    pub dirty: bool,
    /// What was accepted when the last run started or reloaded.
    pub digests: Digests,
    /// What the operator acknowledged.
    pub acks: BTreeSet<AckTarget>,
    /// Who last changed the product.
    pub last_product_author: Option<PeerName>,
    /// Something came in of which nobody saw who made it, and two skeptics have not looked at it.
    #[serde(default)]
    pub strangers: bool,
    /// Tests were weakened where nobody saw by whom: the operator names this tick when he has looked.
    #[serde(default)]
    pub distrusted: Option<TickNo>,
    /// The newest handoff.
    pub last_handoff: Option<HandoffMark>,
    /// How the last run ended.
    pub last_exit: Option<LastExit>,
    /// A landing or an undo that has begun and is not known to have ended.
    #[serde(default)]
    pub moving: Option<OpenMove>,
}

/// A cap that the operator set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// In the unit of the cap.
    pub value: u64,
    /// It holds before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When it was set.
    pub at: Timestamp,
    /// Login name of who set it.
    pub by: String,
}

/// A landing or an undo that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMove {
    /// What is moved.
    pub what: BranchMove,
    /// Login name of who asked.
    pub by: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its id.
    pub id: RunId,
    /// When it began.
    pub started_at: Timestamp,
    /// Ticks that it completed.
    pub ticks: u64,
    /// HEAD when it began.
    pub base: CommitId,
    /// The backend that confines agents and gates.
    #[serde(default)]
    pub sandbox: String,
    /// It ended.
    pub ended: bool,
}

/// The newest handoff, for the counterpart's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffMark {
    /// Who.
    pub peer: PeerName,
    /// HEAD before and after.
    pub from: CommitId,
    /// HEAD after.
    pub to: CommitId,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExit {
    /// Why.
    pub reason: StopReason,
    /// When.
    pub at: Timestamp,
    /// Gates were running.
    #[serde(default)]
    pub in_gates: bool,
}

/// The tick that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenTick {
    /// How it began.
    pub started: TickStarted,
    /// When.
    pub at: Timestamp,
    /// Its process, once known.
    pub spawned: Option<PeerSpawned>,
    /// How the peer left it, once gates run on it.
    #[serde(default)]
    pub ended: Option<TurnEnded>,
    /// What will be undone.
    pub correction: Option<CorrectionPlanned>,
}

/// So many reverted turns in a row degrade a peer.
pub(crate) const MOST_REVERTED: u32 = 2;

/// A peer's standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerState {
    /// Takes its turns.
    #[default]
    Healthy,
    /// Failed too often; gets a recovery turn now and then.
    Degraded,
    /// Out until the next run.
    Halted,
    /// Needs its operator.
    Unavailable,
}

impl PeerState {
    /// The word in files and views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Halted => "halted",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A peer's health.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeerHealth {
    /// Its standing.
    pub state: PeerState,
    /// Failed attempts of the current turn.
    pub consecutive_fails: u32,
    /// The last five ticks in half failures: 0 success, 1 work without a handoff, 2 failure.
    pub recent: VecDeque<u8>,
    /// Why it is degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_reason: Option<String>,
    /// Since which tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_at: Option<TickNo>,
    /// The failed recovery turn from which the next interval counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_cooldown: Option<TickNo>,
    /// A recovery turn is due now (set when the operator starts a run).
    #[serde(default)]
    pub recovery_due: bool,
    /// Turns of it that were reverted, since its last clean handoff.
    pub failed_cheating: u32,
    /// It was warned about a turn that changed only tests, or weakened them.
    pub prewarned: bool,
    /// The newest tick for which it was warned so, or reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_at: Option<TickNo>,
    /// Its last tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// It waits until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitCause>,
    /// Since when its service refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_since: Option<Timestamp>,
    /// How long it was told to wait since then, milliseconds.
    #[serde(default)]
    pub waited_ms: u64,
    /// Refusals in a row.
    #[serde(default)]
    pub rate_limit_streak: u32,
    /// It says that something is in its way; it has no turn until others have changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// How often in a row it said so when it was asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked_times: u32,
    /// What its newest turns cost that came to an end by themselves.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub costs: VecDeque<Usage>,
    /// Tokens of all its ticks.
    #[serde(default)]
    pub tokens: Tokens,
    /// Money of all its ticks.
    #[serde(default)]
    pub usd: Usd,
    /// Ticks of which not all tokens are known.
    #[serde(default)]
    pub vague_tokens: u64,
    /// Ticks of which not all money is known.
    #[serde(default)]
    pub vague_usd: u64,
    /// Its ticks.
    #[serde(default)]
    pub ticks: u64,
}

impl PeerHealth {
    /// What was in its way is gone, or may be: it is asked as if it had never said so.
    pub(crate) fn unblock(&mut self) {
        self.blocked = None;
        self.blocked_times = 0;
    }

    /// Another peer got something done. Who said once that something is in its way is asked again then; who
    /// said so again is asked after twice as many turns each time.
    pub(crate) fn others_moved(&mut self) {
        let Some(blocked) = &mut self.blocked else { return };
        blocked.changes = blocked.changes.saturating_add(1);
        if self.asked_after() == Some(0) {
            self.blocked = None;
        }
    }

    /// How many more turns of others that get something done it takes until it is asked again whether
    /// something is still in its way; `None` where nothing is.
    #[must_use]
    pub fn asked_after(&self) -> Option<u32> {
        let blocked = self.blocked.as_ref()?;
        let doubled = 1_u32.checked_shl(self.blocked_times.saturating_sub(1)).unwrap_or(MOST_CHANGES);
        Some(doubled.min(MOST_CHANGES).saturating_sub(blocked.changes))
    }

    /// Failures among the last five ticks, in halves.
    #[must_use]
    pub fn recent_half_fails(&self) -> u32 {
        self.recent.iter().map(|h| u32::from(*h)).sum()
    }
}

/// What a peer says is in its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// In which tick it said so.
    pub tick: TickNo,
    /// Its words. Untrusted text.
    pub on: String,
    /// Turns of others since then that got something done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes: u32,
}

/// Most turns of others that it takes until a peer is asked again whether something is still in its way.
const MOST_CHANGES: u32 = 32;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What was spent since something got better, and how good it was.
///
/// Better is one more gate green than ever since the gates are what they are, or one more bug closed than
/// ever: a gate that turns red and green again is no progress.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Tokens since then, as far as known.
    pub tokens: Tokens,
    /// Money since then, as far as known.
    pub usd: Usd,
    /// Ticks since then.
    pub ticks: u64,
    /// Most gates that were ever green together.
    pub greens: u32,
    /// Most bugs that were ever closed.
    pub closed: u32,
}

/// A peer's last tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    /// Which tick.
    pub tick: TickNo,
    /// Whether it was a success.
    pub success: bool,
    /// What the loop made of it; absent in snapshots of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TickOutcome>,
    /// The legacy label.
    pub classification: String,
    /// Milliseconds.
    pub duration_ms: u64,
    /// Why it was no success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_fail_reason: Option<String>,
    /// The pattern behind an API error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Ticks.
    pub iterations: u64,
    /// Peers' run time, milliseconds.
    pub peer_ms: u64,
    /// Gates' run time, milliseconds.
    pub gate_ms: u64,
    /// Waiting, milliseconds.
    pub wait_ms: u64,
    /// Failed ticks' run time, milliseconds.
    pub wasted_ms: u64,
    /// The last twenty failed ticks.
    pub wasted: VecDeque<Wasted>,
    /// Failures in a row, of any peer.
    pub consecutive_failures: u32,
    /// Of these, how many at the end were spawn failures.
    pub spawn_failures: u32,
    /// Tokens, as far as known.
    pub tokens: Tokens,
    /// Money, as far as known.
    pub usd: Usd,
    /// Ticks whose cost is unknown.
    pub unknown_usage: u64,
    /// The cap about which a warning was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_warned_for: Option<Usd>,
}

/// A failed tick's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wasted {
    /// Which tick.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// A warning with its circumstances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningEntry {
    /// When.
    pub ts: Timestamp,
    /// At which tick.
    pub tick: TickNo,
    /// The text.
    pub text: String,
}

/// The adversarial turn before `complete`. It passed when `passed` holds enough peers for `tree`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Skeptic {
    /// The tree that the answers are about.
    pub tree: Option<TreeId>,
    /// Who found nothing.
    pub passed: Vec<PeerName>,
    /// Turns without a usable answer.
    pub attempts: u32,
    /// Skeptic turns in a row that changed something and reported nothing that blocks.
    #[serde(default)]
    pub unreported: u32,
}

/// The newest proof verdict of each gate, and what it was about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProofStore {
    /// By gate.
    pub verdicts: BTreeMap<GoalId, ProofVerdict>,
}

/// What gates answered in a clean checkout before a turn was paid for. It proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// By gate.
    pub gates: BTreeMap<GoalId, Tried>,
    /// Digest of the manifests and lock files of the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// The run that made the newest one, which makes no second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// One gate of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Digest of its definition.
    pub gate: String,
    /// It was green in the work tree and not there.
    pub only_here: bool,
}

/// One gate's proof verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofVerdict {
    /// The head that was checked out.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// Digest of the gate's definition.
    pub gate: String,
    /// It did not run: `setup` failed.
    #[serde(default)]
    pub setup_failed: bool,
    /// It is of an earlier run. A red one is proved again before a turn is paid for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
    /// The answer.
    #[serde(flatten)]
    pub verdict: peers_model::verdict::Verdict,
}

impl State {
    /// Whether nobody can say what happened since the last record: a run broke off, or ended while
    /// gates ran, which run what peers wrote.
    #[must_use]
    pub fn unwitnessed(&self) -> bool {
        self.live_run().is_some() || self.last_exit.as_ref().is_some_and(|exit| exit.in_gates)
    }

    /// The state before anything happened.
    #[must_use]
    pub fn new() -> Self {
        Self { format: STATE_FORMAT, ..Self::default() }
    }

    /// The rule entry of the peer whose turn it is.
    #[must_use]
    pub fn turn_peer(&self) -> Option<&PeerName> {
        self.rules.peers.get(self.turn_index).or_else(|| self.rules.peers.first()).map(|p| &p.name)
    }

    /// A peer's health; the default for one that has not run.
    #[must_use]
    pub fn health(&self, peer: &PeerName) -> PeerHealth {
        self.peers.get(peer).cloned().unwrap_or_default()
    }

    /// The run that is not ended, if any.
    #[must_use]
    pub fn live_run(&self) -> Option<&RunInfo> {
        self.run.as_ref().filter(|r| !r.ended)
    }
}
