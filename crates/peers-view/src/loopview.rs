//! Everything about one loop, read once.

use peers_core::budget::Caps;
use peers_core::state::{State, WarningEntry};
use peers_model::config::Config;
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp, exit, limits};
use peers_store::journal::{self, Journal, Position};
use peers_store::project::{self, Project};
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, Disk, StoreError, accept, layout, load, store};
use serde::{Deserialize, Serialize};

use crate::budget::{self, BudgetView};
use crate::bugs::BugsView;
use crate::converge::{self, ConvergeView};
use crate::facts::{GitFacts, Here};
use crate::gates::{self, GateRow};
use crate::liveness::{self, Confinement, Liveness, Lock, OpenTurn};
use crate::peers::{self, PeerRow};
use crate::soft::{self, SoftRow};
use crate::sourced::Sourced;
use crate::ticks::{self, JournalTail};
use crate::words::chain;

/// Warnings in a view.
const WARNINGS: usize = 20;
/// Ticks in a view, unless asked otherwise.
const TICKS: usize = 10;

/// What the caller brings.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Now.
    pub now: Timestamp,
    /// The id of this boot, where the system has one.
    pub boot_id: Option<String>,
    /// What a look at the run lock showed, just before.
    pub lock: Lock,
    /// The repository, if somebody looked.
    pub git: Sourced<GitFacts>,
    /// How many of the newest ticks are wanted.
    pub ticks: usize,
}

impl Asked {
    /// Without git facts.
    #[must_use]
    pub fn new(now: Timestamp, boot_id: Option<String>, lock: Lock) -> Self {
        Self { now, boot_id, lock, git: Sourced::Missing, ticks: TICKS }
    }
}

/// Everything about one loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopView {
    /// When it was read.
    pub at: Timestamp,
    /// Which repository.
    pub project: Sourced<Project>,
    /// Whether a loop runs.
    pub liveness: Sourced<Liveness>,
    /// The newest run.
    pub run: Sourced<RunRecord>,
    /// Whether its peers are confined.
    pub confinement: Confinement,
    /// What the journal amounts to.
    #[serde(rename = "loop")]
    pub core: Sourced<Core>,
    /// The bug ledger, if somebody read it.
    pub bugs: Sourced<BugsView>,
    /// The end of the journal.
    pub journal: Sourced<JournalTail>,
    /// What is wrong with the sources.
    pub alerts: Vec<Alert>,
}

/// What the fold of the journal says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Core {
    /// Ticks completed, ever.
    pub ticks: TickNo,
    /// The current or last run.
    pub run: Option<RunBrief>,
    /// Who has the turn.
    pub turn: Option<PeerName>,
    /// The turn that is open.
    pub open: Option<OpenTurn>,
    /// HEAD: of the repository where somebody looked, else as last recorded.
    pub head: Option<CommitId>,
    /// Its branch.
    pub branch: Option<String>,
    /// Nothing is uncommitted, if that is known.
    pub clean: Option<bool>,
    /// Uncommitted paths, if somebody looked. Untrusted text.
    pub dirty: Vec<String>,
    /// Hard goals.
    pub gates: Vec<GateRow>,
    /// Soft goals.
    pub soft: Vec<SoftRow>,
    /// Peers.
    pub peers: Vec<PeerRow>,
    /// The budget.
    pub budget: BudgetView,
    /// What is missing for `complete`.
    pub converge: ConvergeView,
    /// The newest warnings, oldest first. Untrusted text.
    pub warnings: Vec<WarningEntry>,
    /// Warnings that the next prompt will carry.
    pub warnings_waiting: usize,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunBrief {
    /// Its id.
    pub id: RunId,
    /// When it began.
    pub started_at: Timestamp,
    /// Ticks that it completed.
    pub ticks: u64,
    /// It ended.
    pub ended: bool,
}

/// Something wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// Which, one word.
    pub kind: &'static str,
    /// For people.
    pub text: String,
}

impl LoopView {
    /// Reads everything once. Writes nothing. Nothing here fails: what cannot be read says so.
    pub fn read<D: Disk>(disk: &mut D, asked: &Asked) -> Self {
        let mut alerts = Vec::new();
        let project = Sourced::from_read(project::read(disk).map_err(|e| chain(&e)));
        let state = read_state(disk, &mut alerts);
        let records = read_runs(disk, &mut alerts);
        let config = read_config(disk);
        let journal = match ticks::tail(disk, asked.ticks) {
            Ok(tail) => Sourced::Fresh(tail),
            Err(error) => Sourced::Unreadable(chain(&error)),
        };
        let known = state.value();
        let runs = records.as_deref().unwrap_or_default();
        let live = match &records {
            Err(why) if known.is_none() => Err(why.clone()),
            _ => liveness::liveness(&asked.lock, known, runs, asked.boot_id.as_deref()),
        };
        let newest = match &records {
            Ok(records) => Sourced::from_read(Ok(records.last().cloned())),
            Err(why) => Sourced::Unreadable(why.clone()),
        };
        let idle = asked.lock == Lock::Free;
        if let Some(torn) = journal.value().map(|tail| tail.torn).filter(|torn| *torn > 0 && idle) {
            let text = format!(
                "the journal ends in an unfinished line of {torn} bytes; the next run keeps it aside"
            );
            alerts.push(Alert { kind: "torn", text });
        }
        let git = asked.git.value();
        if let Some(why) = asked.git.why() {
            alerts.push(Alert { kind: "git", text: format!("the repository cannot be read: {why}") });
        }
        Self {
            at: asked.now,
            project,
            liveness: Sourced::from_read(live.map(Some)),
            confinement: Confinement::of(newest.value()),
            run: newest,
            core: state.map(|state| core(&state, git, &config, asked.now)),
            bugs: bugs(&asked.git),
            journal,
            alerts,
        }
    }

    /// [`LoopView::read`], again where a loop seems to have crashed only because it began or ended
    /// while it was looked at. `probe` looks at the run lock.
    pub fn settled<D: Disk>(disk: &mut D, asked: &Asked, mut probe: impl FnMut() -> Lock) -> Self {
        let mut view = Self::read(disk, asked);
        for _ in 0..2 {
            if !matches!(view.liveness.value(), Some(Liveness::Crashed { .. })) {
                break;
            }
            view = Self::read(disk, &Asked { lock: probe(), ..asked.clone() });
        }
        view
    }

    /// The exit code of a command that shows it: 1 before the first run, 3 when the journal cannot be
    /// read, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (&self.core, &self.liveness) {
            (Sourced::Unreadable(_) | Sourced::Stale { .. }, _) | (_, Sourced::Unreadable(_)) => {
                exit::INVALID
            }
            (_, Sourced::Fresh(Liveness::Fresh)) => exit::NEGATIVE,
            _ => exit::OK,
        }
    }
}

fn bugs(git: &Sourced<GitFacts>) -> Sourced<BugsView> {
    match git {
        Sourced::Fresh(git) | Sourced::Stale { value: git, .. } => git.bugs.as_ref().map(BugsView::of),
        Sourced::Missing => Sourced::Missing,
        Sourced::Unreadable(why) => Sourced::Unreadable(why.clone()),
    }
}

fn core(state: &State, git: Option<&GitFacts>, config: &Sourced<Config>, now: Timestamp) -> Core {
    let here = Here::new(state, git);
    let gates = gates::rows(state, &here);
    let soft = soft::rows(state, git);
    let soft_required = config.value().is_none_or(|config| config.goals.soft_consensus_required);
    let caps = config.clone().map(|config| Caps::new(config.budget));
    let converge = converge::view(state, &here, &gates, &soft, soft_required);
    let excess = state.warnings_history.len().saturating_sub(WARNINGS);
    Core {
        ticks: state.ticks,
        run: state.run.as_ref().map(|run| RunBrief {
            id: run.id.clone(),
            started_at: run.started_at,
            ticks: run.ticks,
            ended: run.ended,
        }),
        turn: state.turn_peer().cloned(),
        open: state.open.as_ref().map(|open| OpenTurn {
            tick: open.started.tick,
            peer: open.started.peer.clone(),
            since: open.at,
            skeptic: open.started.skeptic,
            spawned: open.spawned.is_some(),
        }),
        head: here.head.clone(),
        branch: match git {
            Some(git) => git.branch.clone(),
            None => state.branch.clone(),
        },
        clean: here.clean,
        dirty: git.and_then(|git| git.dirty.clone()).unwrap_or_default(),
        peers: peers::rows(state),
        budget: budget::view(state, caps, now),
        converge,
        gates,
        soft,
        warnings: state.warnings_history.iter().skip(excess).cloned().collect(),
        warnings_waiting: state.warnings.len(),
    }
}

/// The snapshot file.
#[derive(Debug, Deserialize)]
struct Snapshot {
    at: Position,
    state: State,
}

/// The fold of the journal; what the snapshot says where that is broken.
fn read_state<D: Disk>(disk: &mut D, alerts: &mut Vec<Alert>) -> Sourced<State> {
    let snapshot = snapshot(disk);
    if let Err(why) = &snapshot {
        let text = format!("snapshot.json {why}; the state was folded from the journal");
        alerts.push(Alert { kind: "snapshot", text });
    }
    match store::read_state(disk) {
        Ok(state) => Sourced::Fresh(state),
        Err(error) => {
            let why = chain(&error);
            match snapshot {
                Ok(Some(Snapshot { at, state })) if matches!(journal::holds(disk, &at), Ok(true)) => {
                    let state = up_to_damage(disk, &at, state);
                    Sourced::Stale { value: state, why }
                }
                _ => Sourced::Unreadable(why),
            }
        }
    }
}

/// What can still be folded behind a snapshot.
fn up_to_damage<D: Disk>(disk: &mut D, from: &Position, mut state: State) -> State {
    let mut last = state.clone();
    // The error is known: it is why we are here.
    let _broken = Journal::open(disk, from, false, |read| {
        let line = &read.line;
        let applied = state.apply(line.ts, line.run_id.as_ref(), &line.record);
        applied.map_err(|source| StoreError::Illegal { seq: line.seq, source })?;
        last.clone_from(&state);
        Ok::<(), StoreError>(())
    });
    last
}

fn snapshot<D: Disk>(disk: &mut D) -> Result<Option<Snapshot>, String> {
    let read = disk.read(Area::Store, layout::store::SNAPSHOT, limits::STATE).map_err(|e| e.detail)?;
    let Some(bytes) = read else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("is damaged ({error})"))
}

fn read_runs<D: Disk>(disk: &mut D, alerts: &mut Vec<Alert>) -> Result<Vec<RunRecord>, String> {
    let (records, bad) = runs::list(disk).map_err(|error| chain(&error))?;
    if !bad.is_empty() {
        let text = format!("run records that cannot be read: {}", crate::words::list(&bad, 5));
        alerts.push(Alert { kind: "run-records", text });
    }
    Ok(records)
}

/// The accepted configuration.
fn read_config<D: Disk>(disk: &mut D) -> Sourced<Config> {
    let read = accept::read_bytes(disk, layout::peers::CONFIG).map_err(|error| chain(&error));
    Sourced::from_read(read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(None) };
        let text = load::decode(load::Source::Config, &bytes).map_err(|error| error.to_string())?;
        load::load_config(text).map(Some).map_err(|error| error.to_string())
    }))
}
