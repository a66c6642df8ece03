//! What comes in and what goes out: events and effects, as values.

use std::collections::BTreeMap;
use std::time::Duration;

use peers_model::config::Role;
use peers_model::outcome::{ErrorKind, PeerExit, TamperKind, Usage};
use peers_model::record::{Cooling, CorrectionPlanned, OperatorRecord, PeerSpawned};
use peers_model::step::SealedNote;
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{CommitId, GoalId, Mono, PeerName, RunId, TickNo, Timestamp, TreeId, Usd};

use crate::cheat::{TurnDiff, Uncommitted};
use crate::plan::Plan;
use crate::prompt::{BugLine, InboxItem, LastHandoff, PeerMessage};
use crate::state::PeerState;

/// Both clocks, read once for each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time.
    pub wall: Timestamp,
    /// Monotonic time.
    pub mono: Mono,
}

/// One input of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// When.
    pub at: Now,
    /// What.
    pub event: Event,
}

/// What a crashed loop left behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// Processes that could not be ended.
    pub survivors: Vec<u32>,
    /// When the peer of the open tick was last heard of, if that is known.
    pub last_sign: Option<Timestamp>,
    /// What that peer's stream says that it used until then: a lower bound.
    pub usage: Usage,
}

/// What happened outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Answer to [`Effect::Survey`].
    Surveyed(Box<Facts>),
    /// Answer to [`Effect::ReapOrphans`].
    OrphansGone(Left),
    /// Answer to [`Effect::Judge`]: all verdicts that were asked for.
    Judged {
        /// The verdicts.
        verdicts: Vec<Judged>,
        /// Wall time, milliseconds.
        took_ms: u64,
        /// The tree was another one when the gates had run.
        moved: bool,
        /// What changed in the work tree then, for people; empty when that is not known.
        changed: String,
    },
    /// Answer to [`Effect::JudgeBehind`]; without verdicts where the gates could not run or were cut off.
    JudgedBehind {
        /// At which tree.
        key: TreeKey,
        /// The verdicts.
        verdicts: Vec<Judged>,
        /// Wall time, milliseconds.
        took_ms: u64,
    },
    /// Answer to [`Effect::Compose`].
    Composed(Box<ComposeFacts>),
    /// The other answer to it: the repository is no longer as it was found, though no turn has begun.
    Outdated,
    /// The peer's process runs.
    PeerSpawned(PeerSpawned),
    /// The peer's process, and all that it started, is gone.
    PeerExited(Box<PeerExit>),
    /// Answer to [`Effect::Harvest`].
    Harvested(Box<Harvest>),
    /// Answer to [`Effect::Correct`].
    Corrected(Box<Corrected>),
    /// The wait is over.
    Timer,
    /// The operator asks to stop.
    Stop(StopRequest),
    /// The repository is not the one that the run began with.
    Tampered {
        /// What was done.
        kind: TamperKind,
        /// For people.
        detail: String,
    },
    /// An effect failed.
    Failed {
        /// What kind of failure.
        kind: ErrorKind,
        /// For people.
        detail: String,
    },
}

/// How urgently the loop is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopRequest {
    /// After the running tick.
    AfterTick,
    /// Finish cheaply. The signal that asked.
    Graceful(i32),
    /// At once. The signal that asked.
    Now(i32),
}

/// The world before a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// HEAD.
    pub head: CommitId,
    /// Tree of HEAD.
    pub head_tree: TreeId,
    /// Tree of everything that git would commit.
    pub worktree: TreeId,
    /// The same, `.peers/` left out.
    pub content: TreeId,
    /// Symbolic branch; absent when HEAD is detached.
    pub branch: Option<String>,
    /// Uncommitted changes, `XY path`, at most 30. Untrusted text.
    pub dirty: Vec<String>,
    /// Commits that became reachable since the last record, when no peer was alive, and stand in no
    /// record yet.
    pub arrived: Vec<CommitId>,
    /// How these commits weaken tests; only looked for when gates ran meanwhile. Untrusted text.
    pub arrived_weaken: Vec<String>,
    /// The head that the last record named is still part of HEAD's history.
    pub history_intact: bool,
    /// An accepted file that is not what was accepted.
    pub mutation: Option<Mutation>,
    /// Somebody touched the control plane.
    pub tamper: Option<(TamperKind, String)>,
    /// For each soft goal, the digest of what it is about.
    pub scopes: BTreeMap<GoalId, String>,
    /// Operator commands that wait to be recorded.
    pub commands: Vec<PendingCommand>,
    /// Branch name of a merge or rebase that was left in progress, for the prompt.
    pub git_state: Option<String>,
    /// The tree kept changing while gates ran.
    pub unstable: bool,
    /// PLAN.md at HEAD, where turns are given out by it and it is a plan.
    pub plan: Option<Plan>,
}

impl Facts {
    /// What verdicts must be about.
    #[must_use]
    pub fn key(&self) -> TreeKey {
        TreeKey { head: self.head.clone(), tree: self.worktree.clone() }
    }

    /// Whether nothing is uncommitted.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.head_tree == self.worktree && !self.unstable
    }
}

/// An accepted file that is not what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// Its name below `.peers/`.
    pub file: String,
    /// `disappeared`, `unreadable` or `changed`, for people.
    pub what: String,
}

/// A command of the operator that was dropped for the loop.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCommand {
    /// Its file name in the drop.
    pub id: String,
    /// What to record.
    pub record: OperatorRecord,
}

/// What a prompt is made of, as far as it is not in the state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComposeFacts {
    /// Random hex for the fences.
    pub nonce: String,
    /// New commits of others.
    pub inbox: Vec<InboxItem>,
    /// Newest commit shown, by sender.
    pub bookmarks: BTreeMap<PeerName, CommitId>,
    /// Hybrid messages with their final paths.
    pub messages: Vec<(String, PeerMessage)>,
    /// The counterpart's newest handoff.
    pub last_handoff: Option<LastHandoff>,
    /// Open bugs that want something of this peer.
    pub open_bugs: Vec<BugLine>,
    /// For who compares them: the notes of the implementer and of the reviewers, each with its author.
    pub notes: Vec<(PeerName, String)>,
    /// Files of `.peers/` that tell of the project.
    pub primers: Vec<&'static str>,
}

/// What a turn left behind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Harvest {
    /// HEAD, its tree and the work tree's.
    pub at: Option<HeadFacts>,
    /// HEAD before is an ancestor of HEAD.
    pub ancestor: bool,
    /// Commits that became reachable, oldest first.
    pub commits: Vec<CommitSeen>,
    /// Lines changed between the trees before and after, and what is weaker.
    pub diff: TurnDiff,
    /// The same against the work trees before and after: what lay there without being committed.
    pub uncommitted: Uncommitted,
    /// Uncommitted changes, at most 30.
    pub dirty: Vec<String>,
    /// Guarded files of `.git` that changed; they were restored.
    pub git_tampered: Vec<String>,
    /// Protected refs that moved; they were restored.
    pub refs_tampered: Vec<String>,
    /// Somebody touched the control plane.
    pub tamper: Option<(TamperKind, String)>,
    /// Digest of each soft goal's scope before and after.
    pub scopes: BTreeMap<GoalId, (String, String)>,
    /// Messages that were published: final paths.
    pub published: Vec<String>,
    /// Warnings of the sweep.
    pub warnings: Vec<String>,
    /// Ids of bugs that are open.
    pub open_bugs: Vec<peers_model::BugId>,
    /// How many of all bugs that were ever reported count as closed.
    pub bugs_closed: u32,
    /// How many blocking bugs were ever reported.
    pub bugs_reported: u32,
    /// Why the turn's work could not be taken in. The branch is back where the turn began.
    pub unreadable: Option<String>,
    /// The work of an earlier attempt at this tick was corrected already.
    pub salvage: Option<String>,
    /// The artifact of the phase at HEAD, where the turn was asked for one.
    pub artifact: Option<String>,
    /// PLAN.md at HEAD, where turns are given out by it and it is a plan.
    pub plan: Option<Plan>,
    /// Notes about a step that were handed in.
    pub note: Option<SealedNote>,
}

/// HEAD after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFacts {
    /// HEAD.
    pub head: CommitId,
    /// Tree of HEAD.
    pub head_tree: TreeId,
    /// Tree of everything that git would commit.
    pub worktree: TreeId,
    /// The same, `.peers/` left out.
    pub content: TreeId,
    /// Symbolic branch; absent when HEAD is detached.
    pub branch: Option<String>,
}

/// A commit that became reachable in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSeen {
    /// Its id.
    pub id: CommitId,
    /// Its message. Untrusted text.
    pub message: String,
    /// Who it came from, by observation.
    pub origin: Origin,
    /// Files at the top of the tree that it changed, where it is the peer's. Untrusted text.
    pub paths: Vec<String>,
    /// Goals whose reviews in it pass and name nothing in `checked` that is there.
    pub unfounded: Vec<GoalId>,
}

/// Where a commit came from, by observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It appeared while the peer ran.
    Peer,
    /// It was known before the turn.
    Known,
    /// We made it.
    Own,
}

/// What was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrected {
    /// HEAD now.
    pub at: HeadFacts,
    /// Our own commits.
    pub own: Vec<CommitId>,
    /// Where the undone work is kept.
    pub salvage: Option<String>,
}

/// What the executor does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Look at the repository and the control files. Answer: [`Event::Surveyed`].
    Survey,
    /// End what a crashed loop left running. Answer: [`Event::OrphansGone`].
    ReapOrphans {
        /// The open tick; absent when none was open, and gates may be left.
        tick: Option<TickNo>,
        /// Its process, where it was recorded.
        spawned: Option<PeerSpawned>,
    },
    /// Run gates. Answer: [`Event::Judged`].
    Judge {
        /// Which.
        gates: Vec<GoalId>,
        /// At which tree.
        key: TreeKey,
        /// Where.
        place: Place,
        /// For log names.
        tick: TickNo,
    },
    /// Run gates in a kept copy of the commit while a peer works. [`Effect::Judge`] ends them where it needs
    /// the same gates, or one that wants to be alone. Answer: [`Event::JudgedBehind`].
    JudgeBehind {
        /// Which.
        gates: Vec<GoalId>,
        /// At which tree.
        key: TreeKey,
        /// For log names.
        tick: TickNo,
    },
    /// End the gates that run. [`Event::Judged`] still comes, with what there is.
    CancelGates,
    /// Gather what a prompt needs. Answer: [`Event::Composed`].
    Compose {
        /// For whom.
        peer: PeerName,
    },
    /// Start the peer. Answers: [`Event::PeerSpawned`], then [`Event::PeerExited`].
    RunPeer(Box<RunPeer>),
    /// End the running peer. [`Event::PeerExited`] follows.
    EndPeer {
        /// Skip the grace.
        now: bool,
    },
    /// See what the turn left. Answer: [`Event::Harvested`].
    Harvest {
        /// The open tick.
        tick: TickNo,
        /// Whose.
        peer: PeerName,
        /// HEAD before.
        from: CommitId,
    },
    /// Undo. Idempotent. Answer: [`Event::Corrected`].
    Correct {
        /// What.
        plan: CorrectionPlanned,
        /// Whose turn.
        peer: PeerName,
    },
    /// Wake up then. Answer: [`Event::Timer`].
    SetTimer(Timestamp),
    /// Publish attribution notes for the newest tick. No answer.
    Attest,
    /// Remove recorded operator commands. No answer.
    DropCommands(Vec<String>),
    /// Archive delivered messages. No answer.
    ArchiveMessages(Vec<String>),
    /// Write `state.json`, texts, snapshot. No answer.
    WriteProjections,
    /// Finish the run record. No answer.
    FinishRun,
    /// Show something to people. No answer.
    Tell(Notice),
}

/// A peer to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPeer {
    /// Number of the tick.
    pub tick: TickNo,
    /// Who.
    pub peer: PeerName,
    /// Its part.
    pub role: Role,
    /// What it is asked.
    pub prompt: String,
    /// Seconds that are left of the run's budget, where there is one.
    pub runtime_left_s: Option<u64>,
    /// What it may spend before it is ended.
    pub ceiling: Ceiling,
    /// A skeptic turn.
    pub skeptic: bool,
}

/// What a turn may spend. `None`: nothing ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ceiling {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub usd: Option<Usd>,
}

/// A run that broke off, as a later one finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Which run.
    pub run: RunId,
    /// It never said that it ended: it was killed, or the machine went down.
    pub killed: bool,
    /// The turn that was open.
    pub turn: Option<(TickNo, PeerName)>,
    /// The peer of that turn was done, and how is recorded.
    pub done: bool,
}

/// Something for people.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// The run begins.
    RunStarted,
    /// An earlier run broke off, and what it left is taken up.
    Recovering(Recovery),
    /// Gates run.
    GatesStarted {
        /// How many.
        count: usize,
        /// Where.
        place: Place,
    },
    /// Gates are tried in a clean checkout before the first turn.
    TrialStarted {
        /// How many.
        count: usize,
        /// How long at most.
        limit: Duration,
    },
    /// They have answered, or were cut off.
    TrialEnded {
        /// The verdicts.
        verdicts: Vec<Judged>,
        /// Wall time, milliseconds.
        took_ms: u64,
    },
    /// Gates have run.
    GatesDone {
        /// The verdicts.
        verdicts: Vec<Judged>,
        /// Wall time, milliseconds.
        took_ms: u64,
        /// Where.
        place: Place,
    },
    /// A turn begins.
    TickStarted {
        /// Number.
        tick: TickNo,
        /// Whose.
        peer: PeerName,
        /// A skeptic turn.
        skeptic: bool,
    },
    /// A turn ended; it is the newest in the state.
    TickEnded(Box<peers_model::record::TickRecord>),
    /// A peer's standing got worse.
    PeerDegraded {
        /// Who.
        peer: PeerName,
        /// What it is now.
        state: PeerState,
        /// Why.
        reason: String,
    },
    /// A peer is at a cap of its own: it takes no more turns.
    PeerCapped {
        /// Who.
        peer: PeerName,
        /// Which cap, and what was spent of it.
        reached: String,
    },
    /// A peer is passed over from here on: its usual turn costs more than is left of a cap.
    PeerPassedOver {
        /// Who.
        peer: PeerName,
        /// What is left, and what its turns cost.
        why: String,
    },
    /// A peer waits for its service.
    PeerWaits(Cooling),
    /// Nobody can have a turn now.
    Waiting {
        /// Until when.
        until: Timestamp,
        /// Who waits for what, and who is out, for people.
        why: String,
    },
    /// The loop stopped.
    Stopped {
        /// Why.
        reason: peers_model::outcome::StopReason,
        /// For people.
        detail: String,
    },
    /// A warning.
    Warning(String),
    /// Something that need not be wrong.
    Note(String),
}

impl Notice {
    /// What it says, where it is nothing but a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Warning(text) | Self::Note(text) => Some(text),
            _ => None,
        }
    }
}
