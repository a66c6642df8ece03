//! The loop as a pure machine: `decide` says which records to make durable and which effects to
//! perform then; [`State::apply`](crate::state::State::apply) folds the records in.

mod decide;
mod event;
mod settle;
mod survey;
mod trial;

use peers_model::config::Comm;
use peers_model::goal::{Course, Goal};
use peers_model::outcome::{PeerExit, StopReason};
use peers_model::record::{CorrectionKind, Digests, Record, Rules};
use peers_model::step::StepWork;
use peers_model::verdict::{Judged, TreeKey};
use peers_model::{CommitId, GoalId, PeerName, RunId, Timestamp, TreeId};

pub use decide::{decide, start};
pub use event::{
    Ceiling, CommitSeen, ComposeFacts, Corrected, Effect, Event, Facts, Harvest, HeadFacts, Input, Left,
    Mutation, Notice, Now, Origin, PendingCommand, Recovery, RunPeer, StopRequest,
};

use crate::apply::IllegalRecord;
use crate::budget::Caps;
use crate::state::State;

/// What the machine needs of configuration and flags.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key or a flag of its own")]
pub struct LoopConfig {
    /// This process.
    pub run_id: RunId,
    /// Its process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// All goals.
    pub goals: Vec<Goal>,
    /// Frozen rules.
    pub rules: Rules,
    /// What was accepted.
    pub digests: Digests,
    /// Phases, and the gates that stay green at the end.
    pub course: Course,
    /// Stop once before the last phase.
    pub checkpoint: bool,
    /// Caps.
    pub caps: Caps,
    /// A turn that ran outside and is over.
    pub after: Option<After>,
    /// Tick cap of this process.
    pub max_ticks: Option<u64>,
    /// A watched gate that is red so many ticks stops the loop; 0 = never.
    pub stuck_after: u32,
    /// The watched gates.
    pub stuck_gates: Vec<GoalId>,
    /// So many ticks in a row, times the peers that may go, without progress stop the loop; 0 = never.
    pub idle_after: u32,
    /// Seconds that a trial in a clean checkout may take before the first turn; 0 = none.
    pub trial_s: u32,
    /// Without that trial.
    pub anyway: bool,
    /// The command that usually sets up a checkout of this project, where `setup` does not have it.
    pub setup_hint: Option<String>,
    /// Soft goals must be green.
    pub soft_required: bool,
    /// Expensive gates may run beside a peer: it is confined, and the operator wants it (`pipeline_gates`).
    pub overlap: bool,
    /// A gate that changes the work tree is red.
    pub strict_tree: bool,
    /// Globs of `setup.paths`: a kept copy is set up again when something there changes.
    pub setup_paths: Vec<String>,
    /// Run without a real gate; the loop then never completes.
    pub allow_no_gates: bool,
    /// How peers talk.
    pub comm: Comm,
    /// Largest prompt, bytes.
    pub prompt_max: usize,
    /// A peer whose service refuses it longer than so many seconds is unavailable.
    pub max_wait_s: u64,
    /// Silence that ends a peer, seconds.
    pub idle_s: u64,
    /// Time limit of a peer, seconds.
    pub absolute_s: u64,
    /// Backend and tier, for the record.
    pub sandbox: String,
    /// Bytes of a torn journal line that were cut off at open.
    pub torn: Option<u64>,
    /// Paths that were uncommitted before anybody of the loop had a turn, as they still are: the operator's.
    pub uncommitted: Vec<String>,
}

/// A turn that somebody else than the loop ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// Whose turn it is said to have been.
    pub peer: PeerName,
    /// HEAD as it was last known before.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
}

/// Where the loop is between two inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Waits until a crashed loop's leftovers are gone. Nothing is looked at before.
    Reaping,
    /// Waits for the first facts.
    Booting(Left),
    /// Waits for facts. How often in a row the tree moved while gates ran.
    Surveying(u8),
    /// Waits for the verdicts owed at these facts; with the count of [`Phase::Surveying`].
    Judging(Box<Facts>, u8),
    /// Waits for what the prompt needs.
    Composing(Box<Composing>),
    /// A peer runs.
    Running {
        /// Its process is known.
        spawned: bool,
    },
    /// Waits for what the turn left.
    Harvesting {
        /// How the process ended.
        exit: Box<PeerExit>,
        /// After a crash of the loop.
        recovered: bool,
    },
    /// Waits until something is undone.
    Correcting(Box<Draft>),
    /// Waits for the gates that were red before.
    Refreshing(Box<Draft>),
    /// Waits for gates in a clean checkout; with the count of [`Phase::Surveying`].
    Proving(Box<Facts>, u8, Purpose),
    /// Waits for the gates that run beside a peer, at the very tree that is asked about.
    AwaitingGates,
    /// Everyone waits.
    CoolingDown,
    /// The end.
    Stopped(StopReason),
}

/// Why gates run in a clean checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The proof run.
    Proof,
    /// The trial before the first turn.
    Trial,
}

/// A turn that is being prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Composing {
    /// The facts that it rests on.
    pub facts: Facts,
    /// Whose turn.
    pub peer: PeerName,
    /// A skeptic turn.
    pub skeptic: bool,
    /// The step that it is about.
    pub work: Option<StepWork>,
}

/// A tick that is being closed.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// How the process ended.
    pub exit: PeerExit,
    /// After a crash of the loop.
    pub recovered: bool,
    /// What the turn left.
    pub harvest: Harvest,
    /// What it amounts to.
    pub judgement: crate::harvest::Judgement,
    /// What is or was undone.
    pub corrected: Option<CorrectionKind>,
    /// The result of undoing.
    pub correction: Option<Corrected>,
    /// Verdicts after the handoff.
    pub verdicts: Vec<Judged>,
    /// Time for them, milliseconds.
    pub gate_ms: u64,
    /// The tree changed while they ran.
    pub moved: bool,
}

/// What the loop wants: first make `records` durable, then perform `effects` in order.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Decision {
    /// To be appended and synced together.
    pub records: Vec<Record>,
    /// Where the loop is then.
    pub phase: Phase,
    /// A stop that was asked for and is not done.
    pub stop: Option<StopRequest>,
    /// The gates that run beside a peer.
    pub behind: Behind,
    /// To be performed then.
    pub effects: Vec<Effect>,
}

/// Everything the machine remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The durable part.
    pub state: State,
    /// The volatile part.
    pub phase: Phase,
    /// A stop that was asked for and is not done.
    pub stop: Option<StopRequest>,
    /// The gates that run beside a peer.
    pub behind: Behind,
}

/// The gates that run beside a peer. Volatile: what a crash cuts off is owed again.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Behind {
    /// None.
    #[default]
    Idle,
    /// They run, at this tree.
    Running(TreeKey),
    /// They have answered. Recorded at the next survey, and used only where it finds the same tree.
    Answered {
        /// What they said.
        verdicts: Vec<Judged>,
        /// Wall time, milliseconds.
        took_ms: u64,
    },
}

impl Machine {
    /// A machine that resumes from a folded state.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self { state, phase: Phase::Booting(Left::default()), stop: None, behind: Behind::Idle }
    }

    /// Takes a decision over, after its records became durable.
    ///
    /// # Errors
    /// [`IllegalRecord`] when `decide` and `apply` disagree, which is a bug of ours.
    pub fn commit(&mut self, ts: Timestamp, run: &RunId, decision: &Decision) -> Result<(), IllegalRecord> {
        for record in &decision.records {
            self.state.apply(ts, Some(run), record)?;
        }
        self.phase = decision.phase.clone();
        self.stop = decision.stop;
        self.behind = decision.behind.clone();
        Ok(())
    }
}
