//! What can be seen of a project, without changing anything: whether a loop runs, and what became of the last.

use std::path::Path;
use std::time::Duration;

use peers_core::state::{RunInfo, State as LoopState};
use peers_model::outcome::StopReason;
use peers_model::{RunId, Timestamp};
use peers_place::{Holder, Homes};
use peers_store::runs::{self, RunRecord};
use peers_store::{FsDisk, layout, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::identity::Pid;
use peers_sys::{clock, term};

use crate::ground::Ground;
use crate::oplock::{OpLock, Operation};
use crate::registry::{PathId, Phase, Project, Runtime, State};

/// A process that let go of its lock is gone after this.
const DYING: Duration = Duration::from_millis(200);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// What was seen of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// What lies at its path.
    pub path: PathSeen,
    /// Whether a loop runs.
    pub probe: Probe,
    /// A controller is about to start, stop or remove it; who, if it says so.
    pub operation: Option<Option<Operation>>,
    /// What became of the run that the registry knows, or of a newer one. Looked at only where it matters.
    pub run: Option<RunSeen>,
    /// The process that the registry notes for its loop is alive.
    pub alive: bool,
    /// The id of this boot.
    pub boot_id: Option<String>,
    /// It is not set up: it has neither `.peers/` nor a trusted store.
    pub bare: bool,
}

/// What lies at a project's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSeen {
    /// The directory that was registered.
    Same,
    /// Another one.
    Other,
    /// None.
    Missing,
    /// Not a repository any more, or one that leads to another; what is wrong with it.
    Misled(String),
}

/// Whether a loop runs: who holds the run lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A loop does, or a controller for one that it starts.
    Alive(Holder),
    /// Another command does, such as `land`: no loop runs.
    Command(Holder),
    /// Nobody does.
    Dead,
    /// It could not be looked at; why.
    NoAnswer(String),
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSeen {
    /// Which.
    pub run_id: RunId,
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// In which boot.
    pub boot_id: Option<String>,
    /// How it ended; absent while it has not.
    pub ended: Option<RunEnd>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Why.
    pub reason: StopReason,
    /// When.
    pub at: Timestamp,
    /// The exit code.
    pub code: Option<u8>,
    /// The signal that asked for it.
    pub signal: Option<i32>,
}

impl Observation {
    /// Nobody looked.
    #[must_use]
    pub fn none() -> Self {
        let probe = Probe::NoAnswer("nothing checked it".to_owned());
        let path = PathSeen::Same;
        Self { path, probe, operation: None, run: None, alive: false, boot_id: None, bare: false }
    }

    /// Looks at a project. Nothing is made or changed; the lock is looked at by sharing it for an instant.
    #[must_use]
    pub fn of(project: &Project, env: &Env) -> Self {
        Self::below(project, env, Homes::of(env).ok().as_ref())
    }

    /// [`Observation::of`] for who looks at many.
    #[must_use]
    pub fn below(project: &Project, env: &Env, homes: Option<&Homes>) -> Self {
        let boot_id = clock::boot_id().map(str::to_owned);
        let mut this = Self { boot_id, ..Self::none() };
        let Ground { place, path } = match Ground::of(project, env, homes) {
            Ok(ground) => ground,
            Err(error) => return Self { probe: Probe::NoAnswer(error.to_string()), ..this },
        };
        this.path = path;
        let alive = || project.runtime.as_ref().is_some_and(Runtime::is_alive);
        let store = match place.view_store() {
            Ok(Some(store)) => store,
            Ok(None) if is_up(project) => {
                let missing = term::inline(&place.store_dir().to_string_lossy());
                let probe = Probe::NoAnswer(format!("its trusted store is missing: {missing}"));
                return Self { probe, alive: alive(), ..this };
            }
            Ok(None) => {
                let bare = this.path == PathSeen::Same && place.is_bare();
                return Self { probe: Probe::Dead, bare, ..this };
            }
            Err(error) => return Self { probe: Probe::NoAnswer(error.to_string()), alive: alive(), ..this },
        };
        this.probe = match place.holder() {
            Ok(Some(holder)) => probed(holder, project, &store),
            Ok(None) => Probe::Dead,
            Err(error) => Probe::NoAnswer(error.to_string()),
        };
        this.operation = OpLock::holder(&store).ok().flatten();
        if let Probe::Alive(holder) = &this.probe {
            // Another one holds the lock than was started, which lives.
            let other = || {
                project
                    .runtime
                    .as_ref()
                    .is_some_and(|runtime| runtime.pid != holder.pid && runtime.is_alive())
            };
            this.alive = still(other);
        }
        if matches!(this.probe, Probe::Dead | Probe::Command(_)) && matters(project, &store) {
            this.run = store.try_clone().ok().and_then(|store| latest(project, FsDisk::new(store, None)));
            if this.run.as_ref().is_none_or(|run| run.ended.is_none()) {
                this.alive = still(alive);
            }
        }
        this
    }
}

/// Whether a process is alive, and still is a little later: one that is dying lets go of its lock before it is
/// gone.
fn still(alive: impl Fn() -> bool) -> bool {
    let until = clock::mono().plus(DYING);
    while alive() {
        if clock::mono() >= until {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Whether the registry has it that a loop runs, or nobody knows.
fn is_up(project: &Project) -> bool {
    project.runtime.is_some() || matches!(project.state, State::Running | State::Unknown)
}

/// Device and inode of a directory; `None` where there is none.
#[must_use]
pub fn path_id(path: &Path) -> Option<PathId> {
    let id = SafeDir::open_shared(path).ok()?.identity();
    Some(PathId { dev: id.dev, ino: id.ino })
}

/// Who holds the run lock, and whether that is a loop. Anybody can write what stands there: it counts where that
/// process holds the lock, and not against what is known of it. The process that the registry notes is a loop; so is
/// one whose run is the last and open.
fn probed(holder: Holder, project: &Project, store: &SafeDir) -> Probe {
    let believed = if cfg!(target_os = "linux") { believed(&holder, project, store) } else { holder };
    if is_loop(&believed) { Probe::Alive(believed) } else { Probe::Command(believed) }
}

fn believed(holder: &Holder, project: &Project, store: &SafeDir) -> Holder {
    let lock = store.stat(layout::store::RUN_LOCK).ok().flatten().map(|stat| stat.id);
    let holds = |pid: Option<u32>| {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::new);
        pid.zip(lock).is_some_and(|(pid, lock)| peers_sys::identity::has_locked(pid, lock))
    };
    if let Some(runtime) = project.runtime.as_ref().filter(|runtime| runtime.is_alive() && holds(runtime.pid))
    {
        return Holder {
            pid: runtime.pid,
            identity: runtime.identity(),
            run_id: Some(runtime.run_id.to_string()),
            command: None,
            starting: holder.starting && runtime.phase == Phase::Starting,
            gates_since: holder.gates_since.filter(|_| holder.pid == runtime.pid),
        };
    }
    if !holds(holder.pid) {
        let starting = holder.starting;
        return Holder {
            pid: None,
            identity: None,
            run_id: None,
            command: None,
            starting,
            gates_since: None,
        };
    }
    let says_more = holder.command.is_some() || holder.starting;
    let open = || store.try_clone().ok().and_then(|store| latest(project, FsDisk::new(store, None)));
    match says_more.then(open).flatten().filter(|run| run.ended.is_none() && Some(run.pid) == holder.pid) {
        Some(run) => {
            Holder { run_id: Some(run.run_id.to_string()), command: None, starting: false, ..holder.clone() }
        }
        None => holder.clone(),
    }
}

/// Whether the holder of the run lock is a loop of ours. A controller that starts one holds it under a name of its
/// own.
fn is_loop(holder: &Holder) -> bool {
    holder.command.as_deref().is_none_or(|command| command == crate::start::COMMAND)
}

/// Whether it matters what became of runs: the registry holds one for running, or another one was there since.
fn matters(project: &Project, store: &SafeDir) -> bool {
    if is_up(project) {
        return true;
    }
    if project.state == State::Fresh && project.last_exit.is_none() {
        return true;
    }
    let changed = store.stat(layout::store::RUNS).ok().flatten().map(|stat| stat.modified());
    let looked = project.last_stopped_at.unwrap_or(project.added_at);
    changed.is_some_and(|changed| changed > looked)
}

/// The run that the registry knows, or a newer one where there was one since.
fn latest(project: &Project, mut disk: FsDisk) -> Option<RunSeen> {
    let state = store::read_state(&mut disk).ok();
    let last = state.as_ref().and_then(|state| state.run.as_ref());
    let known = project.runtime.as_ref().map(|runtime| &runtime.run_id);
    let known = known.and_then(|id| runs::get(&mut disk, id).ok().flatten());
    let record = match (known, last) {
        (Some(record), Some(last)) if last.id != record.run_id && last.started_at >= record.started_at => {
            match runs::get(&mut disk, &last.id).ok().flatten() {
                Some(newer) => newer,
                None => return Some(RunSeen::unrecorded(last, state.as_ref()?)),
            }
        }
        (Some(record), _) => record,
        // One that was noted down and never began, or one that was started by hand.
        (None, last) => runs::newest(&mut disk, last.map(|last| &last.id)).ok().flatten()?,
    };
    Some(RunSeen::of(&record, state.as_ref()))
}

/// How the last run of the journal ended, where it has.
fn told(run: &RunInfo, state: &LoopState) -> Option<RunEnd> {
    let exit = state.last_exit.as_ref().filter(|_| run.ended)?;
    Some(RunEnd {
        reason: exit.reason.clone(),
        at: exit.at,
        code: Some(exit.reason.exit_code()),
        signal: None,
    })
}

impl RunSeen {
    /// The last run of the journal, whose record is gone.
    fn unrecorded(run: &RunInfo, state: &LoopState) -> Self {
        Self {
            run_id: run.id.clone(),
            pid: 0,
            started_at: run.started_at,
            boot_id: None,
            ended: told(run, state),
        }
    }

    /// How a run ended stands in the journal; the record counts where nothing in the journal can say it. Nothing is
    /// complete because a record says so.
    fn of(record: &RunRecord, state: Option<&LoopState>) -> Self {
        let said = || {
            let (at, reason) = (record.ended_at?, record.reason.clone()?);
            Some(RunEnd { reason, at, code: record.exit_code, signal: record.signal })
        };
        let last = state.and_then(|state| state.run.as_ref()).filter(|run| run.id == record.run_id);
        let ended = match (state, last) {
            (Some(state), Some(run)) if run.ended => {
                told(run, state).map(|end| RunEnd { signal: record.signal, ..end })
            }
            (Some(_), run) => said().filter(|_| record.says_more_than_the_journal(run.is_some())),
            (None, _) => said().filter(|end| end.reason != StopReason::Complete),
        };
        Self {
            run_id: record.run_id.clone(),
            pid: record.pid,
            started_at: record.started_at,
            boot_id: record.boot_id.clone(),
            ended,
        }
    }
}
