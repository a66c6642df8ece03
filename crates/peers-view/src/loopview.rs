//! Everything about one loop, read once.

use std::collections::BTreeSet;

use peers_core::budget::{self as core_budget, Caps};
use peers_core::state::{OpenMove, State, WarningEntry};
use peers_core::turns::{self, Choice};
use peers_model::config::Config;
use peers_model::record::MoveKind;
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp, exit, limits};
use peers_store::journal::{self, Journal, Position};
use peers_store::load::Source;
use peers_store::project::{self, Project};
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, Disk, StoreError, accept, layout, load, store};
use serde::{Deserialize, Serialize};

use crate::advice::{self, Attention, Facts, Spelling};
use crate::budget::{self, BudgetView};
use crate::bugs::BugsView;
use crate::converge::{self, ConvergeView};
use crate::facts::{GitFacts, Here, Paths};
use crate::gates::{self, GateFact, GateRow};
use crate::liveness::{self, Confinement, Liveness, Lock, OpenTurn};
use crate::notable::{self, LandedRow, Notable, UndoneRow};
use crate::peers::{self, PeerRow};
use crate::row::{LoopRow, RecentTick};
use crate::setup::{self, Setup};
use crate::soft::{self, SoftRow};
use crate::sourced::Sourced;
use crate::ticks::{self, JournalTail};
use crate::words::{self, chain};

/// The kind of an alert about what a start would refuse for.
pub(crate) const REFUSED: &str = "refused";
/// The kind of an alert about a peer that has no turns.
const PEER: &str = "peer";
/// The kind of an alert that nobody can have a turn now.
const WAITING: &str = "waiting";
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
    /// The directory that was asked about, if that matters.
    pub here: Option<String>,
    /// The same, as who types commands has to name it, if that is not the directory in which they are typed.
    pub typed: Option<String>,
    /// The directory in which the newest run worked is not there any more.
    pub gone: bool,
    /// When the peer whose turn is open last printed something, if somebody looked.
    pub heard: Option<Timestamp>,
    /// Since when the loop that runs runs gates, as it says in its lock.
    pub gates_since: Option<Timestamp>,
    /// Somebody holds the lock of older systems in `.peers/`.
    pub foreign_lock: bool,
    /// What a start would refuse for now, each with what to do about it.
    pub refusals: Vec<String>,
    /// The directory whose `.peers/` is read, if that is not the one that was asked about.
    pub files_in: Option<String>,
    /// The names of the logs of gates where the newest run worked, if that is another directory.
    pub gate_logs: Option<BTreeSet<String>>,
    /// Free bytes where the loop works, if somebody looked.
    pub free_bytes: Option<u64>,
    /// The run that its operator had killed, and when.
    pub killed: Option<(RunId, Timestamp)>,
}

impl Asked {
    /// Without git facts.
    #[must_use]
    pub fn new(now: Timestamp, boot_id: Option<String>, lock: Lock) -> Self {
        Self {
            now,
            boot_id,
            lock,
            git: Sourced::Missing,
            ticks: TICKS,
            here: None,
            typed: None,
            gone: false,
            heard: None,
            gates_since: None,
            foreign_lock: false,
            refusals: Vec::new(),
            files_in: None,
            gate_logs: None,
            free_bytes: None,
            killed: None,
        }
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
    /// Records that were taken from the snapshot and not read again.
    pub unverified: u64,
    /// What must not be overlooked.
    pub notable: Sourced<Notable>,
    /// The newest run's branch was landed since.
    pub landed: Option<LandedRow>,
    /// The newest run was undone since.
    pub undone: Option<UndoneRow>,
    /// What the operator's files say, and whether they are accepted.
    pub setup: Setup,
    /// The directory that was asked about.
    pub here: Option<String>,
    /// The directory in which the newest run worked is not there any more.
    pub gone: bool,
    /// How long the peer whose turn is open has been silent.
    pub silence: Option<Silence>,
    /// What is wrong with the sources.
    pub alerts: Vec<Alert>,
    /// What it asks of its operator.
    #[serde(skip)]
    pub attention: Attention,
    /// It is shown to who has projects by name.
    #[serde(skip)]
    pub(crate) by_name: bool,
}

/// A silence, and how long it may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Silence {
    /// Milliseconds without a byte.
    pub ms: u64,
    /// Milliseconds after which the process is ended.
    pub limit_ms: Option<u64>,
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
    /// Nothing is uncommitted, if that is known: while a turn runs nobody looks.
    pub clean: Option<bool>,
    /// The first uncommitted paths, if somebody looked. Untrusted text.
    pub dirty: Vec<String>,
    /// How many uncommitted paths were counted, if somebody looked.
    pub dirty_count: Option<u64>,
    /// There are more than were counted.
    pub dirty_more: bool,
    /// The first of the uncommitted paths that only `.git/info/exclude` ignores. Untrusted text.
    pub excluded: Vec<String>,
    /// How many of these were counted.
    pub excluded_count: u64,
    /// Where the run works.
    pub workdir: Option<String>,
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
    /// It puts each turn back.
    pub dry_run: bool,
}

/// Something wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// Which, one word.
    pub kind: &'static str,
    /// For people.
    pub text: String,
}

impl Alert {
    /// Whether there are commands in its text, which are of no use when it is cut.
    pub(crate) fn has_commands(&self) -> bool {
        matches!(self.kind, REFUSED | PEER)
    }

    /// Whether something is wrong; a wait ends by itself.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind != WAITING
    }
}

impl LoopView {
    /// Reads everything once. Writes nothing. Nothing here fails: what cannot be read says so.
    pub fn read<D: Disk>(disk: &mut D, asked: &Asked) -> Self {
        let mut alerts = Vec::new();
        let project = Sourced::from_read(project::read(disk).map_err(|e| chain(&e)));
        let (state, unverified) = read_state(disk, &mut alerts);
        let records = read_runs(disk, &mut alerts);
        let config = read_config(disk);
        let setup = Setup { dir: asked.files_in.clone(), ..setup::read(disk, config.value()) };
        let journal = match ticks::tail(disk, asked.ticks) {
            Ok(tail) => Sourced::Fresh(tail),
            Err(error) => Sourced::Unreadable(chain(&error)),
        };
        let known = state.value();
        let runs = records.as_deref().unwrap_or_default();
        let live = match &records {
            Err(why) if known.is_none() => Err(why.clone()),
            _ => liveness::liveness((&asked.lock, asked.gates_since), known, runs, asked.boot_id.as_deref()),
        };
        let live = live.map(|live| live.or_killed(asked.killed.as_ref()));
        let newest = match &records {
            Ok(records) => Sourced::from_read(Ok(records.last().cloned())),
            Err(why) => Sourced::Unreadable(why.clone()),
        };
        let idle = asked.lock == Lock::Free;
        if let Some(torn) = journal.value().map(|tail| tail.torn).filter(|torn| *torn > 0 && idle) {
            let text = format!(
                "the journal ends in an unfinished line of {}; the next run keeps it aside",
                crate::words::bytes(torn)
            );
            alerts.push(Alert { kind: "torn", text });
        }
        if let Some(seq) = journal.value().and_then(|tail| tail.broken) {
            let text = format!(
                "the journal is damaged: record {seq} does not continue the one before it; `peers state check` reads all of it"
            );
            alerts.push(Alert { kind: "journal", text });
        }
        let notable = match notable::read(disk) {
            Ok(found) => Sourced::Fresh(found),
            Err(error) => Sourced::Unreadable(chain(&error)),
        };
        let (landed, undone) = since(notable.value(), runs);
        let idle = config.value().map(|config| u64::from(config.health.idle_timeout_s.get()) * 1000);
        let open =
            known.and_then(|state| state.open.as_ref()).filter(|_| matches!(asked.lock, Lock::Held { .. }));
        let silence = open.zip(asked.heard).map(|(open, heard)| {
            let passed = asked.now.since(heard.max(open.at)).as_millis();
            Silence { ms: u64::try_from(passed).unwrap_or(u64::MAX), limit_ms: idle }
        });
        alerts.extend(known.filter(|_| asked.lock == Lock::Free).and_then(cut_short));
        if let (Some(state), Ok(live)) = (known, &live) {
            let caps =
                config.value().map(|config| caps(config.clone(), runs.last()).in_force(state, asked.now));
            alerts.extend(waiting(state, live, caps.as_ref(), asked.now));
        }
        let moving = known.and_then(|state| state.moving.clone());
        let gate = known.and_then(|state| {
            let here = project.value().map_or(".", |project| project.path.as_str());
            let work = runs.last().map_or(here, |record| record.workdir.as_str());
            gates::in_the_way(disk, state, (work, here))
        });
        let git = asked.git.value();
        if asked.foreign_lock {
            alerts.push(Alert { kind: "foreign-lock", text: crate::advice::FOREIGN_LOCK.to_owned() });
        }
        for refusal in &asked.refusals {
            alerts.push(Alert { kind: REFUSED, text: format!("`peers run` would refuse: {refusal}") });
        }
        let told = |why: &str| asked.refusals.iter().any(|text| text.contains(why));
        if let Some(why) = asked.git.why().filter(|why| !told(why)) {
            alerts.push(Alert { kind: "git", text: format!("the repository cannot be read: {why}") });
        }
        let mut view = Self {
            at: asked.now,
            project,
            liveness: Sourced::from_read(live.map(Some)),
            confinement: Confinement::of(newest.value()),
            run: newest,
            core: state.map(|state| {
                let mut core = core(&state, git, &config, runs.last(), asked.now);
                gates::find_logs(disk, asked.gate_logs.as_ref(), &mut core.gates);
                core
            }),
            bugs: bugs(&asked.git),
            journal,
            unverified,
            notable,
            landed,
            undone,
            setup,
            here: asked.here.clone(),
            gone: asked.gone,
            silence,
            alerts,
            attention: Attention::default(),
            by_name: false,
        };
        let (attention, out) = view.advice(asked, config.value(), (moving.as_ref(), gate.as_ref()));
        view.alerts.extend(out.into_iter().map(|text| Alert { kind: PEER, text }));
        view.attention = attention;
        view
    }

    /// The same for who has projects by name: what it asks is what its row asks, in the same words.
    #[must_use]
    pub fn told_by_name(self, row: &LoopRow) -> Self {
        Self { attention: row.attention.clone(), by_name: true, ..self }
    }

    /// What it asks of its operator, who types commands where the directory that was asked about may have to be
    /// named; and the peers that have no turns.
    fn advice(
        &self,
        asked: &Asked,
        config: Option<&Config>,
        (moving, gate): (Option<&OpenMove>, Option<&GateFact>),
    ) -> (Attention, Vec<String>) {
        let spelling = Spelling::Loop { dir: asked.typed.clone() };
        self.with_facts(&spelling, |facts| {
            let facts = Facts {
                idle_ms: config.map(|config| u64::from(config.health.idle_timeout_s.get()) * 1000),
                gate,
                needed: config.map(|config| config.goals.convergence_n.get()),
                moving: moving.map(|moving| &moving.what),
                moved: facts.moved.max(asked.heard),
                free_bytes: asked.free_bytes,
                foreign_lock: asked.foreign_lock,
                refusals: &asked.refusals,
                ..facts
            };
            (advice::attention(&facts), advice::out(&facts))
        })
    }

    /// Gives what this view knows of its loop to who seeks advice.
    pub(crate) fn with_facts<T>(&self, spelling: &Spelling, seek: impl FnOnce(Facts<'_>) -> T) -> T {
        let tail = self.journal.value();
        let ticks: Vec<RecentTick> =
            tail.map(|tail| tail.ticks.iter().map(RecentTick::of).collect()).unwrap_or_default();
        let run = self.core.value().and_then(|core| core.run.as_ref()).map(|run| &run.id);
        let mirror =
            tail.and_then(|tail| tail.mirror.as_ref()).filter(|(of, ..)| of.is_some() && of.as_ref() == run);
        let above = self.setup.dir.as_ref().map(|dir| format!("{dir}/")).unwrap_or_default();
        let broken: Vec<String> =
            self.setup.broken.iter().map(|file| format!("{above}{}", file.words())).collect();
        let seam = self.alerts.iter().find(|alert| alert.kind == "journal").map(|alert| alert.text.as_str());
        seek(Facts {
            now: self.at,
            spelling,
            live: self.liveness.as_ref(),
            unknown: None,
            damage: self.core.why().or(seam),
            core: self.core.value(),
            run: self.run.value(),
            idle_ms: None,
            gate: None,
            unaccepted: &self.setup.unaccepted,
            placeholder: self.setup.placeholder,
            broken: &broken,
            files_in: self.setup.dir.as_deref(),
            apart: self.apart(),
            project: self.project.value().map_or(".", |project| project.path.as_str()),
            ticks: &ticks,
            needed: None,
            mirror: mirror.map(|(_, at, tick)| (*at, *tick)),
            decided: self.landed.is_some() || self.undone.is_some(),
            moving: None,
            gone: self.gone,
            moved: tail.and_then(|tail| tail.last),
            free_bytes: None,
            full: None,
            foreign_lock: false,
            version: env!("CARGO_PKG_VERSION"),
            refusals: &[],
        })
    }

    /// Where the newest run worked, if that is not the directory that was asked about.
    pub(crate) fn apart(&self) -> Option<&str> {
        let workdir = self.core.value()?.workdir.as_deref()?;
        let here =
            self.here.as_deref().or_else(|| self.project.value().map(|project| project.path.as_str()))?;
        (workdir != here).then_some(workdir)
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
    /// read or is seen to be damaged, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (&self.core, &self.liveness) {
            (Sourced::Unreadable(_) | Sourced::Stale { .. }, _) | (_, Sourced::Unreadable(_)) => {
                exit::INVALID
            }
            _ if self.journal.value().is_some_and(|tail| tail.broken.is_some()) => exit::INVALID,
            (_, Sourced::Fresh(Liveness::Fresh)) => exit::NEGATIVE,
            _ => exit::OK,
        }
    }
}

/// What the operator did with the newest run's branch since that run began. It may be recorded for an
/// earlier run, which made the branch.
fn since(notable: Option<&Notable>, records: &[RunRecord]) -> (Option<LandedRow>, Option<UndoneRow>) {
    let (Some(notable), Some(newest)) = (notable, records.last()) else { return (None, None) };
    let same_branch = |run: &RunId| {
        *run == newest.run_id
            || records.iter().any(|r| r.run_id == *run && r.branch.is_some() && r.branch == newest.branch)
    };
    let landed = notable.landed.iter().rev().find(|row| row.ts >= newest.started_at);
    let undone = notable.undone.iter().rev().find(|row| row.ts >= newest.started_at);
    (
        landed.filter(|row| same_branch(&row.run_id)).cloned(),
        undone.filter(|row| same_branch(&row.run_id)).cloned(),
    )
}

fn bugs(git: &Sourced<GitFacts>) -> Sourced<BugsView> {
    match git {
        Sourced::Fresh(git) | Sourced::Stale { value: git, .. } => git.bugs.as_ref().map(BugsView::of),
        Sourced::Missing => Sourced::Missing,
        Sourced::Unreadable(why) => Sourced::Unreadable(why.clone()),
    }
}

pub(crate) fn core(
    state: &State,
    git: Option<&GitFacts>,
    config: &Sourced<Config>,
    record: Option<&RunRecord>,
    now: Timestamp,
) -> Core {
    let here = Here::new(state, git);
    let gates = gates::rows(state, &here);
    let soft = soft::rows(state, git);
    let soft_required = config.value().is_none_or(|config| config.goals.soft_consensus_required);
    let caps = config.clone().map(|config| caps(config, record).in_force(state, now));
    let turn = peers::next(state, caps.value(), now);
    let idle_after = config.value().map_or(0, |config| config.goals.idle_halt_after);
    let idle_limit = caps.value().map_or(0, |caps| turns::idle_limit(idle_after, caps, state));
    let converge = converge::view(state, &here, &gates, &soft, soft_required, idle_limit);
    let excess = state.warnings_history.len().saturating_sub(WARNINGS);
    let dirty = git.and_then(|git| git.dirty.clone());
    let Paths { first: excluded, count: excluded_count, more: _ } =
        git.map(|git| git.excluded.clone()).unwrap_or_default();
    Core {
        ticks: state.ticks,
        run: state.run.as_ref().map(|run| RunBrief {
            id: run.id.clone(),
            started_at: run.started_at,
            ticks: run.ticks,
            ended: run.ended,
            dry_run: state.rules.dry_run,
        }),
        turn: turn.clone(),
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
        dirty_count: dirty.as_ref().map(|dirty| dirty.count),
        dirty_more: dirty.as_ref().is_some_and(|dirty| dirty.more),
        dirty: dirty.map(|dirty| dirty.first).unwrap_or_default(),
        excluded,
        excluded_count,
        workdir: record.map(|record| record.workdir.clone()),
        peers: peers::rows(state, turn.as_ref(), caps.value()),
        budget: BudgetView {
            // What a run measures stands still when it has ended; what was set for a time runs out all the same.
            set: budget::set_by_hand(state, now),
            ..budget::view(state, caps, record.and_then(|record| record.ended_at).unwrap_or(now))
        },
        converge,
        gates,
        soft,
        warnings: state.warnings_history.iter().skip(excess).cloned().collect(),
        warnings_waiting: state.warnings.len(),
    }
}

/// That a landing or an undo did not come to its end.
fn cut_short(state: &State) -> Option<Alert> {
    let moving = &state.moving.as_ref()?.what;
    let text = match moving.kind {
        MoveKind::Land => "a landing was cut short: `peers land` finishes it".to_owned(),
        MoveKind::Undo => format!("an undo was cut short: `peers undo {}` finishes it", moving.run),
    };
    Some(Alert { kind: "moving", text })
}

/// That the run works on nothing now, since everybody who could have a turn waits.
fn waiting(state: &State, live: &Liveness, caps: Option<&Caps>, now: Timestamp) -> Option<Alert> {
    let idle = matches!(live, Liveness::Running { turn: None, gates_since: None, .. });
    // What a run that has not begun yet will do is decided when it has.
    if !idle || state.live_run().is_none() {
        return None;
    }
    let may = |peer: &PeerName| caps.is_none_or(|caps| core_budget::may_go(caps, state, peer));
    let Choice::Wait(until) = turns::choose_within(state, now, may) else { return None };
    let (until, why) = (words::clock(now, until), turns::why_not(state, now));
    Some(Alert { kind: WAITING, text: format!("nobody can have a turn before {until}: {why}") })
}

/// The caps of the configuration, with the one that the newest run was given on its command line.
fn caps(config: Config, record: Option<&RunRecord>) -> Caps {
    Caps::new(config.budget).given(record.and_then(RunRecord::given_usd))
}

/// The snapshot file.
#[derive(Debug, Deserialize)]
struct Snapshot {
    at: Position,
    state: State,
}

/// The fold of the journal; what the snapshot says where that is broken. Also the number of records that
/// came from the snapshot unread.
pub(crate) fn read_state<D: Disk>(disk: &mut D, alerts: &mut Vec<Alert>) -> (Sourced<State>, u64) {
    let snapshot = snapshot(disk);
    let wrong = match &snapshot {
        Err(why) => Some(why.clone()),
        Ok(Some(Snapshot { at, .. })) if matches!(journal::holds(disk, at), Ok(false)) => {
            Some(format!("stands at record {}, which the journal does not have like that", at.seq))
        }
        Ok(_) => None,
    };
    if let Some(why) = &wrong {
        let text = format!("snapshot.json {why}; the state was folded from the journal");
        alerts.push(Alert { kind: "snapshot", text });
    }
    let unread = match &snapshot {
        Ok(Some(Snapshot { at, .. })) if wrong.is_none() => at.seq,
        _ => 0,
    };
    let state = match store::read_state(disk) {
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
    };
    (state, unread)
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
pub(crate) fn read_config<D: Disk>(disk: &mut D) -> Sourced<Config> {
    let read = accept::read_bytes(disk, layout::peers::CONFIG).map_err(|error| chain(&error));
    Sourced::from_read(read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(None) };
        let text = load::decode(Source::Config, &bytes).map_err(|error| error.to_string())?;
        load::load_config(text).map(Some).map_err(|error| error.to_string())
    }))
}
