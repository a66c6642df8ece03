//! Journal records. The journal is the truth; state is its fold.
//!
//! One JSON object per line: the envelope of [`Line`] with the record beside it, tag `event`.
//! `docs/formats/journal.md` describes the file; old samples live in `tests/golden/`.

mod operator;
mod tick;

use serde::{Deserialize, Serialize};

use crate::config::{Hook, Role};
use crate::goal::TreeChoice;
use crate::ids::{CommitId, GoalId, PeerName, RunId, TickNo, TreeId};
use crate::outcome::StopReason;
use crate::review::SoftRule;
use crate::step::CourseRules;
use crate::time::Timestamp;
use crate::verdict::{Judged, TreeKey};

pub use operator::{
    AckTarget, BranchMove, Cap, CapSet, ContractAct, ContractRecord, MoveKind, OperatorOp, OperatorRecord,
};
pub use tick::{
    AcceptedReview, CorrectionKind, CorrectionPlanned, PeerSpawned, ScopeMove, SkepticVerdict, TickOutcome,
    TickRecord, TickStarted, TurnEnded,
};

/// The version of the line format.
pub const LINE_VERSION: u32 = 1;

/// One line of the journal. It is read by [`Line::read`].
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// The line without its record.
#[derive(Deserialize)]
struct Envelope {
    v: u32,
    seq: u64,
    ts: Timestamp,
    run_id: Option<RunId>,
    prev: String,
    event: String,
}

impl Line {
    /// Reads a line: its envelope, then the record that it names. A derived reader of a tagged record keeps every value
    /// until it is known whose it is: with it `peers status` took 88 ms after 560 ticks, in place of 75.
    ///
    /// # Errors
    /// What is wrong with the text, also an event that is not known.
    pub fn read(text: &[u8]) -> serde_json::Result<Self> {
        let Envelope { v, seq, ts, run_id, prev, event } = serde_json::from_slice(text)?;
        let record = Record::read(&event, text)?;
        Ok(Self { v, seq, ts, run_id, prev, record })
    }
}

/// Declares what can be in a line, by its tag.
macro_rules! records {
    ($($(#[$doc:meta])+ $name:ident($of:ty) = $tag:literal,)+) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "event")]
        pub enum Record {
            $($(#[$doc])+ #[serde(rename = $tag)] $name($of),)+
        }

        impl Record {
            fn read(event: &str, text: &[u8]) -> serde_json::Result<Self> {
                match event {
                    $($tag => serde_json::from_slice(text).map(Self::$name),)+
                    unknown => {
                        Err(serde::de::Error::custom(format!("unknown event `{}`", unknown.escape_default())))
                    }
                }
            }

            /// The tag, as written.
            #[must_use]
            pub fn event(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $tag,)+
                }
            }
        }
    };
}

records! {
    /// A loop took the repository over.
    RunStarted(Box<RunStarted>) = "run-started",
    /// A turn begins: from here until its `tick` record the tick is open.
    TickStarted(Box<TickStarted>) = "tick-started",
    /// The peer's process runs.
    PeerSpawned(PeerSpawned) = "peer-spawned",
    /// The peer is done and its work was looked at; gates run before the tick is closed.
    TurnEnded(TurnEnded) = "turn-ended",
    /// Something that the peer did will be undone.
    CorrectionPlanned(CorrectionPlanned) = "correction-planned",
    /// A turn ended.
    Tick(Box<TickRecord>) = "tick",
    /// Verdicts that arrived outside a tick.
    Gates(GatesRecord) = "gates",
    /// The proof run.
    Proof(ProofRecord) = "proof",
    /// Gates were tried in a clean checkout before a turn was paid for.
    Trial(TrialRecord) = "trial",
    /// A peer waits.
    Cooling(Cooling) = "cooling",
    /// Commits appeared between ticks.
    CommitsSeen(CommitsSeen) = "commits-seen",
    /// The operator did something.
    Operator(OperatorRecord) = "operator",
    /// The mirror differed from the journal and was rewritten.
    MirrorRestored(MirrorRestored) = "mirror-restored",
    /// A hook of the operator failed.
    HookFailed(HookFailed) = "hook-failed",
    /// The whole state, first record of a rotated segment.
    Checkpoint(CheckpointRecord) = "checkpoint",
    /// The loop stopped.
    Exit(Box<ExitRecord>) = "exit",
}

impl Record {
    /// Whom it is about, where it tells of a turn or a wait of one peer.
    #[must_use]
    pub fn peer(&self) -> Option<&PeerName> {
        if let Self::TickStarted(tick) = self {
            return Some(&tick.peer);
        }
        if let Self::Tick(tick) = self {
            return Some(&tick.peer);
        }
        if let Self::Cooling(cooling) = self { Some(&cooling.peer) } else { None }
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
    /// Agents may work while no loop does, in terminals say: what appears then is not the operator's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwatched: bool,
    /// Nothing of a tick stays (`--dry-run`).
    pub dry_run: bool,
    /// Phases and quiet ticks; absent where goals.yaml names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Box<CourseRules>>,
}

impl Rules {
    /// All that is measured, with the digest of its definition: the gates, then the checks of soft goals.
    pub fn measured(&self) -> impl Iterator<Item = (&GoalId, &str)> {
        let gates = self.gates.iter().map(|gate| (&gate.id, gate.digest.as_str()));
        gates.chain(self.soft.iter().filter_map(|soft| Some((&soft.id, soft.check.as_deref()?))))
    }
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
    /// It may run beside a confined peer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expensive: bool,
    /// Under what views show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How much it counts where views say how far things are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_one(n: &u32) -> bool {
    *n == 1
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
    /// Digest of the check whose findings its reviewers are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Goals that must be green before it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<GoalId>,
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
    /// They weaken tests, and agents may have made them unwatched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weakens: bool,
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
    /// How many gates are green after them at the tree that they are about, those that did not run too; absent
    /// where that tree is gone, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub green: Option<u32>,
    /// How many gates there are; absent where `green` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
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

/// Record `trial`. It proves nothing: what it found is asked again in a proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// At which head and tree.
    pub at: TreeKey,
    /// The gates that were asked.
    pub asked: Vec<GoalId>,
    /// What they answered, as far as they did.
    pub verdicts: Vec<Judged>,
    /// Gates that are green in the work tree and not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_here: Vec<GoalId>,
    /// It was cut off before all had answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
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
    /// How many refusals in a row.
    pub streak: u32,
    /// Why.
    #[serde(default)]
    pub cause: WaitCause,
    /// Since when it is refused; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Why a peer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCause {
    /// Too many requests, or an overloaded service.
    #[default]
    RateLimit,
    /// The subscription's window is used up.
    UsageCap,
}

impl WaitCause {
    /// For people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RateLimit => "rate limit",
            Self::UsageCap => "usage cap",
        }
    }
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

/// Record `hook-failed`: at most one for each hook in a tick, and one at the end of the run for what stands in
/// none yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFailed {
    /// The tick that the hook was told.
    pub tick: TickNo,
    /// Which.
    pub hook: Hook,
    /// Which program, what became of it, and where its output is. Untrusted text in parts.
    pub what: String,
    /// How many of its commands failed since the last such record of it, this one included.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub times: u32,
}

impl HookFailed {
    /// For people, one line.
    #[must_use]
    pub fn words(&self) -> String {
        format!("hook `{}`: {}", self.hook.word(), self.what)
    }
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
