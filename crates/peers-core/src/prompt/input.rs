//! What a prompt is made of.

use peers_model::config::Role;
use peers_model::step::StepWork;
use peers_model::{BugId, CommitId, GoalId, PeerName, TickNo, Usd};

/// Everything that a prompt may say. Plain data; the strings are hostile unless a field says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptInput {
    /// Whose turn it is.
    pub me: PeerName,
    /// Its role.
    pub role: Role,
    /// All peers in turn order, this one included.
    pub roster: Vec<PeerName>,
    /// The tick that begins.
    pub tick: TickNo,
    /// Random lower-case hex, at least 16 digits, fresh for each prompt.
    pub nonce: String,
    /// Size of the whole prompt, bytes. Kept from 16 KiB up; below that the instructions, which are
    /// never cut, may exceed it.
    pub max_bytes: usize,
    /// The hard gates in file order.
    pub gates: Vec<GateLine>,
    /// `goals.stuck_halt_after`: the hint to change strategy comes at half of it; 0 is off (hint at 10).
    pub stuck_after: u32,
    /// How long the run has made no progress, once that is half of what ends it.
    pub standstill: Option<StandstillLine>,
    /// Warnings of the loop, oldest first.
    pub warnings: Vec<String>,
    /// Reviews that this peer is asked for.
    pub reviews: Vec<ReviewAsk>,
    /// Commits of the others since this peer's last turn, oldest first.
    pub inbox: Vec<InboxItem>,
    /// Hybrid messages to this peer in order of delivery.
    pub messages: Vec<PeerMessage>,
    /// The newest handoff of another peer.
    pub last_handoff: Option<LastHandoff>,
    /// Why this peer's previous turn did not count, one sentence.
    pub own_last: Option<String>,
    /// What is left.
    pub budget: BudgetLeft,
    /// `git status` lines of the uncommitted changes, those of the operator aside.
    pub dirty: Vec<String>,
    /// `git status` lines of what the operator had not committed when the run began.
    pub operators: Vec<String>,
    /// A merge or rebase that was left in progress.
    pub git_state: Option<String>,
    /// Open bugs that want something of this peer.
    pub open_bugs: Vec<BugLine>,
    /// What the phase asks for. The operator's text.
    pub phase: Option<String>,
    /// Who chooses what to do.
    pub task: Task,
    /// The step that the turn is about.
    pub work: Option<StepWork>,
    /// Notes about that step, each with its author.
    pub notes: Vec<(PeerName, String)>,
    /// Files of `.peers/` that tell of the project, by name.
    pub primers: Vec<&'static str>,
    /// This is a skeptic turn.
    pub skeptic: bool,
    /// Peers may leave messages (`comm: hybrid`).
    pub hybrid: bool,
    /// The run is a dry run.
    pub dry_run: bool,
}

/// Who chooses what a turn does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The peer.
    Free,
    /// The phase or the step, and nothing else is asked for.
    Given,
}

/// A run that gets nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandstillLine {
    /// Ticks in a row so far.
    pub ticks: u32,
    /// Ticks after which it stops.
    pub of: u32,
    /// What is missing, and whose answer it is.
    pub missing: String,
}

/// One hard gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLine {
    /// The gate.
    pub id: GoalId,
    /// The operator's description.
    pub about: Option<String>,
    /// Its state at the current tree.
    pub state: GateState,
    /// What it said; empty when it passed.
    pub diagnostic: String,
    /// Red evaluations in a row.
    pub reds: u32,
    /// Its state before the last tick, when known.
    pub was: Option<GateState>,
    /// It is judged in the live tree only, exempt from the proof run.
    pub exempt: bool,
}

/// The state of a gate as a prompt shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateState {
    /// Green.
    Pass,
    /// Red.
    Fail,
    /// Red: it ran into its time limit.
    Timeout,
    /// Could not be judged.
    Error,
    /// Not run, since a gate that it needs is not green.
    Skipped,
    /// Green in the work tree, red in a clean checkout.
    ProofFailed,
    /// Not judged yet at this tree.
    Unknown,
}

impl GateState {
    /// The word for people and peers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::ProofFailed => "proof-failed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the gate gave a negative answer.
    #[must_use]
    pub fn is_red(self) -> bool {
        match self {
            Self::Fail | Self::Timeout | Self::ProofFailed => true,
            Self::Pass | Self::Error | Self::Skipped | Self::Unknown => false,
        }
    }
}

/// A review that the peer is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewAsk {
    /// The soft goal.
    pub id: GoalId,
    /// The operator's instruction.
    pub prompt: String,
    /// What our own check found for it.
    pub findings: Option<Findings>,
}

/// What the check of a review found at the tree under review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The check.
    pub check: String,
    /// Its answer.
    pub state: GateState,
    /// What it printed. Untrusted, bounded.
    pub text: String,
}

/// A commit of another peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxItem {
    /// Who, by attribution.
    pub from: PeerName,
    /// First line of the commit message.
    pub subject: String,
    /// The commit.
    pub sha: CommitId,
}

/// A hybrid message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerMessage {
    /// Who, by attribution.
    pub from: PeerName,
    /// File name.
    pub name: String,
    /// Content.
    pub text: String,
}

/// The newest handoff of another peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastHandoff {
    /// Who, by attribution.
    pub peer: PeerName,
    /// The commit.
    pub sha: CommitId,
    /// First line of its message.
    pub subject: String,
    /// Its self-review section.
    pub self_review: String,
    /// What the turn changed, by file.
    pub diffstat: String,
}

/// What is left of the run's budget, and the limits of this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetLeft {
    /// Ticks; absent when not limited, as below.
    pub iterations: Option<u64>,
    /// Run time, seconds.
    pub runtime_s: Option<u64>,
    /// Model tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub usd: Option<Usd>,
    /// Seconds of silence after which the process is ended.
    pub idle_s: u64,
    /// Seconds after which the process is ended in any case.
    pub absolute_s: u64,
}

/// An open bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugLine {
    /// Its id.
    pub id: BugId,
    /// `crit`, `high`, `med`, `low` or `info`.
    pub severity: String,
    /// Title.
    pub title: String,
    /// `path:line`.
    pub location: String,
    /// Who reported it.
    pub reporter: String,
    /// What it waits for: a fix, a verification, an agreement.
    pub needs: String,
}
