//! What the engine needs of the world, as traits with two implementations each: the real one and
//! the simulator's. Files are `peers_store::Disk`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use peers_core::bugs::LedgerCommit;
use peers_core::cheat::TurnDiff;
use peers_core::machine::{Corrected, Facts, Harvest, HeadFacts, Notice, Now, RunPeer};
use peers_core::prompt::LastHandoff;
use peers_core::state::{HandoffMark, State};
use peers_model::config::Hook;
use peers_model::outcome::{TamperKind, Usage};
use peers_model::record::{CorrectionPlanned, HookFailed, PeerSpawned};
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{CommitId, GoalId, Mono, PeerName, RunId, TickNo, Timestamp};
use peers_store::Authors;
use peers_store::verdicts::Verdicts;
use thiserror::Error;

use crate::hooks::HookEvent;

/// Why the repository could not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RepoFailure {
    /// Git cannot be read or written.
    #[error("git: {0}")]
    Git(String),
    /// There is no space left for what git has to write.
    #[error("git: {0}")]
    DiskFull(String),
    /// Tests were weakened in the work tree and could not be put back.
    #[error("{0}")]
    Weakened(String),
    /// The repository is in a state that is not put right, and on a line of its own how a person goes on from there.
    #[error("{what}{}", way.as_deref().map(|way| format!("\n{way}, then start again")).unwrap_or_default())]
    Tampered {
        /// What is wrong.
        what: String,
        /// The command that helps, in words.
        way: Option<String>,
    },
}

/// The repository before a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFacts {
    /// HEAD and trees.
    pub at: HeadFacts,
    /// Uncommitted changes, at most 30; empty exactly when the tree is clean.
    pub dirty: Vec<String>,
    /// Commits in `known_head..HEAD`, oldest first; without a known head since the base of the project.
    pub since: Vec<CommitId>,
    /// `known_head` is HEAD or an ancestor of it. True without a known head.
    pub intact: bool,
    /// Digest of each soft goal's scope at HEAD.
    pub scopes: BTreeMap<GoalId, String>,
    /// A merge or rebase that was left in progress.
    pub git_state: Option<String>,
}

impl From<RepoFacts> for Facts {
    fn from(found: RepoFacts) -> Self {
        let RepoFacts { at, dirty, since, intact, scopes, git_state } = found;
        Self {
            head: at.head,
            head_tree: at.head_tree,
            worktree: at.worktree,
            content: at.content,
            branch: at.branch,
            dirty,
            arrived: since,
            arrived_weaken: Vec::new(),
            history_intact: intact,
            mutation: None,
            tamper: None,
            scopes,
            commands: Vec::new(),
            git_state,
            unstable: false,
            plan: None,
        }
    }
}

/// A soft goal's scope: its globs, empty = every file that is no documentation, and TASK.md.
pub type Scopes = [(GoalId, Vec<String>)];

/// The repository.
pub trait Repo {
    /// Looks. With `settled` (no tick is open) everything that is there now counts as known.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn survey(
        &mut self,
        known_head: Option<&CommitId>,
        scopes: &Scopes,
        settled: bool,
    ) -> Result<RepoFacts, RepoFailure>;

    /// Lines changed between two commits.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn diff(&mut self, from: &CommitId, to: &CommitId) -> Result<TurnDiff, RepoFailure>;

    /// Head and work tree as they are now.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn key(&mut self) -> Result<TreeKey, RepoFailure>;

    /// Remembers what a turn of this peer must not touch.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn before_turn(&mut self, tick: TickNo, peer: &PeerName) -> Result<(), RepoFailure>;

    /// Remembers what gates must not touch.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn before_gates(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        let _ = tick;
        Ok(())
    }

    /// The paths in which the work tree differs from how it was before gates ran, as far as that is known.
    /// Anybody's text.
    fn changed_by_gates(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Puts back what gates touched of it. Says what that was, for people.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn after_gates(&mut self) -> Result<Vec<String>, RepoFailure> {
        Ok(Vec::new())
    }

    /// Puts back tests that gates weakened in the work tree, after a copy: the next commit would take it
    /// over, whoever makes it. Asked after the tree was compared. Says what that was, for people.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn undo_weakening(&mut self) -> Result<Vec<String>, RepoFailure> {
        Ok(Vec::new())
    }

    /// Puts back tests that a turn weakened in the work tree without committing that, where nobody answers
    /// for it: it was cut short, or gates ran before this could be told from what they did. After a copy;
    /// `found` is told, and is about what is there then.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn undo_left(&mut self, tick: TickNo, from: &CommitId, found: &mut Harvest) -> Result<(), RepoFailure> {
        let (_, _, _) = (tick, from, found);
        Ok(())
    }

    /// Whether what [`Repo::before_turn`] remembered of this tick is still known.
    fn remembers(&self, tick: TickNo) -> bool {
        let _ = tick;
        true
    }

    /// Sees what the turn left, and restores what it must not have touched.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn harvest(&mut self, tick: TickNo, from: &CommitId, scopes: &Scopes) -> Result<Harvest, RepoFailure>;
    /// Sees what the turn left in the repository, and restores what it must not have touched. What is said of
    /// the control plane, of messages and of bugs stays at its default: the caller fills it in.
    /// Keeps what a turn (with the commit that it began at) or gates left, as the run stops because the git
    /// directory is not where it was. Says that and how a person goes on, after what is wrong.
    fn before_stop(&mut self, turn: Option<(TickNo, &CommitId)>, what: String) -> String {
        let _ = turn;
        what
    }

    /// Undoes, after keeping a copy. Idempotent: what is undone already is seen and left.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn correct(
        &mut self,
        plan: &CorrectionPlanned,
        peer: &PeerName,
        run: &RunId,
    ) -> Result<Corrected, RepoFailure>;

    /// Publishes attribution as notes.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn attest(&mut self, commits: &[(CommitId, String)]) -> Result<(), RepoFailure>;

    /// Commits in `from..HEAD` (all when `from` is gone: from the merge base), newest last, with messages.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn commits_since(&mut self, from: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure>;

    /// What the bug ledger is folded from: `base..HEAD`, oldest first.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn ledger(&mut self, authors: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure>;

    /// A plain file of a commit; none where there is no such file, or a larger one.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn file(&mut self, commit: &CommitId, path: &str, cap: usize) -> Result<Option<Vec<u8>>, RepoFailure> {
        let (_, _, _) = (commit, path, cap);
        Ok(None)
    }

    /// What the counterpart's newest handoff says of itself.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn last_handoff(&mut self, mark: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure>;

    /// A fresh checkout of a commit, nothing else in it.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn checkout(&mut self, commit: &CommitId) -> Result<PathBuf, RepoFailure>;

    /// Why a clean checkout proves nothing, in words for the gate that would run there.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn unfit(&mut self, commit: &CommitId, checkout: &Path) -> Result<Option<String>, RepoFailure> {
        let (_, _) = (commit, checkout);
        Ok(None)
    }

    /// A kept copy of the commit, brought to it; nothing while the work tree has uncommitted changes, or where
    /// there are no such copies. The one for gates beside a peer is another one.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn gate_copy(&mut self, key: &TreeKey, behind: bool) -> Result<Option<GateCopy>, RepoFailure> {
        let (_, _) = (key, behind);
        Ok(None)
    }

    /// Digests of what lies below globs, at a commit; nothing while the work tree has uncommitted changes, and
    /// of globs that hold no file, or links.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn scopes_of(&mut self, key: &TreeKey, globs: &Scopes) -> Result<BTreeMap<GoalId, String>, RepoFailure> {
        let (_, _) = (key, globs);
        Ok(BTreeMap::new())
    }

    /// A digest of what lies below globs at a commit, whatever that is; nothing while the work tree has
    /// uncommitted changes.
    ///
    /// # Errors
    /// [`RepoFailure`].
    fn digest_of(&mut self, key: &TreeKey, globs: &[String]) -> Result<Option<String>, RepoFailure> {
        let (_, _) = (key, globs);
        Ok(None)
    }

    /// Removes a checkout. Losing one costs disk space only; leftovers go at the next start.
    fn remove_checkout(&mut self, dir: &std::path::Path);
}

/// Gates to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateJob {
    /// Which.
    pub gates: Vec<GoalId>,
    /// At which tree.
    pub key: TreeKey,
    /// Where.
    pub place: Place,
    /// The tree's directory; absent = the work tree.
    pub dir: Option<PathBuf>,
    /// The kept copy of the commit, for gates that want one instead of the work tree. Absent where there is
    /// none: they run in the work tree then.
    pub copy: Option<GateCopy>,
    /// For log names.
    pub tick: TickNo,
    /// Gates that are not among these and are known not to be green here: what needs them is skipped.
    pub not_green: Vec<GoalId>,
    /// Digests of what kept answers are about, of gates that name `paths`.
    pub scopes: BTreeMap<GoalId, String>,
    /// Digest of the files that `setup.paths` names; without it a copy is set up each time.
    pub setup: Option<String>,
    /// Attempts of its only gate that went before, each in a checkout of its own.
    pub tried: u8,
    /// Why the clean checkout proves nothing, whatever a command says in it.
    pub unfit: Option<String>,
    /// What these gates are a part of, for people; absent = they are all.
    pub round: Option<Round>,
}

/// Gates that are judged for one purpose, in however many jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// When the first was started.
    pub since: Mono,
    /// How many there are.
    pub of: usize,
    /// How many have answered in earlier jobs.
    pub done: usize,
}

/// A kept copy of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCopy {
    /// Where.
    pub dir: PathBuf,
    /// It was just made: nothing of an earlier commit, or of a gate, is in it.
    pub fresh: bool,
}

impl GateCopy {
    /// One that was just made.
    #[must_use]
    pub fn made(dir: PathBuf) -> Self {
        Self { dir, fresh: true }
    }
}

impl GateJob {
    /// Gates in the work tree, with nothing known but the tree.
    #[must_use]
    pub fn live(gates: Vec<GoalId>, key: TreeKey, tick: TickNo) -> Self {
        Self {
            gates,
            key,
            place: Place::Live,
            dir: None,
            copy: None,
            tick,
            not_green: Vec::new(),
            scopes: BTreeMap::new(),
            setup: None,
            tried: 0,
            unfit: None,
            round: None,
        }
    }
}

/// Processes and timers. What they report comes back as inputs of the engine.
pub trait Procs {
    /// Starts the peer: `PeerSpawned`, then `PeerExited` follow; only `PeerExited` when it cannot start.
    fn run_peer(&mut self, launch: &RunPeer);
    /// Ends the running peer; nothing happens when none runs.
    fn end_peer(&mut self, now: bool);
    /// Starts gates: one `Judged` follows.
    fn judge(&mut self, job: GateJob);
    /// Starts gates beside a peer, in the copy that the job names: one `JudgedBehind` follows. Ended by
    /// [`Procs::judge`] where that needs the same gates, or one that wants to be alone.
    fn judge_behind(&mut self, job: GateJob);
    /// These verdicts stand: the tree did not move while they were found. Gives back the file of kept green
    /// answers where it is to be written anew.
    fn stand(&mut self, verdicts: &[Judged]) -> Option<Verdicts> {
        let _ = verdicts;
        None
    }
    /// Ends the running gates; `Judged` still follows.
    fn cancel_gates(&mut self);
    /// Ends what a crashed loop left of this tick, by recorded identity and by environment marker.
    /// Returns what could not be ended.
    fn reap(&mut self, run: Option<&RunId>, tick: Option<TickNo>, spawned: Option<&PeerSpawned>) -> Vec<u32>;
    /// When this peer was last heard of in this tick, if that is known.
    fn last_sign(&mut self, tick: TickNo, peer: &PeerName) -> Option<Timestamp> {
        let (_, _) = (tick, peer);
        None
    }
    /// What this peer's stream says that it used in this tick, as far as it was written down: a lower bound.
    fn used(&mut self, tick: TickNo, peer: &PeerName) -> Usage {
        let (_, _) = (tick, peer);
        Usage::default()
    }
    /// Whether the operator wants something to run then, and it still may.
    fn has_hook(&self, hook: Hook) -> bool {
        let _ = hook;
        false
    }
    /// Runs it, after those hooks that run and wait already.
    fn run_hook(&mut self, event: &HookEvent) {
        let _ = event;
    }
    /// Whether a hook runs or waits.
    fn hooks_run(&self) -> bool {
        false
    }
    /// Ends the hook that runs. From here on none begins but those of the end of the loop.
    fn end_hooks(&mut self) {}
    /// What people must know of hooks that have ended; each is told once.
    fn told_by_hooks(&mut self) -> Vec<HookFailed> {
        Vec::new()
    }
    /// `Timer` follows then.
    fn set_timer(&mut self, at: Timestamp);
}

/// What a sweep of the control plane found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sweep {
    /// Somebody touched what nobody may touch.
    pub tamper: Option<(TamperKind, String)>,
    /// Things that were removed.
    pub warnings: Vec<String>,
}

/// Guards the control plane.
pub trait Guard {
    /// `.peers/` is still the directory that it was, and holds no link or special file.
    ///
    /// # Errors
    /// A directory of the repository or of the trusted store that is no longer at its path: nothing may be read or
    /// written there.
    fn sweep(&mut self) -> Result<Sweep, (TamperKind, String)>;
    /// Remembers the trusted store as it is, before what peers wrote may run: a turn, or gates.
    fn before(&mut self);
    /// The trusted store is as it was then, but for our own records of a turn, and every directory is at its path.
    fn after(&mut self) -> Option<(TamperKind, String)>;
}

/// Time and chance.
pub trait Clock {
    /// Both clocks.
    fn now(&self) -> Now;
    /// Random hex for fences.
    fn nonce(&mut self) -> String;
}

/// Who watches. Called after the records behind a notice are durable.
pub trait Observer {
    /// Something happened.
    fn notice(&mut self, notice: &Notice, state: &State, at: Now);

    /// Gets the live progress of children, once, before anything runs.
    fn progress(&mut self, progress: crate::procs::Progress) {
        drop(progress);
    }
}

/// Everything that the engine needs.
pub trait World {
    /// Files.
    type Disk: peers_store::Disk;
    /// Repository.
    type Repo: Repo;
    /// Processes.
    type Procs: Procs;
    /// Control plane.
    type Guard: Guard;
    /// Time.
    type Clock: Clock;
    /// Watchers.
    type Observer: Observer;

    /// The repository.
    fn repo(&mut self) -> &mut Self::Repo;
    /// Processes.
    fn procs(&mut self) -> &mut Self::Procs;
    /// The control plane's guard.
    fn guard(&mut self) -> &mut Self::Guard;
    /// The clock.
    fn clock(&mut self) -> &mut Self::Clock;
    /// Who watches.
    fn observer(&mut self) -> &mut Self::Observer;
}
