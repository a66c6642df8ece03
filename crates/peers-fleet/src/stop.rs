//! How a loop is stopped: the right process, in the right order, and nothing left of it.
//!
//! Who is signalled is whoever holds the run lock ([`stopping`]). The loop makes an orderly end of SIGTERM by
//! itself: the turn is ended, the records are written. Only after its grace it is killed, and with it what carries
//! its mark.

use std::ops::ControlFlow;
use std::time::Duration;

use peers_model::command::Step;
use peers_model::outcome::StopReason;
use peers_model::{RunId, exit};
use peers_place::{Holder, Place, PlaceError};
use peers_run::boot::Finding;
use peers_run::stopping::{self, LOOK, ended, hurry, tell};
use peers_store::{FsDisk, runs, store};
use peers_sys::env::Env;
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::reap::{Guard, Orphans, Sweep};
use peers_sys::signal::{ProcHandle, Signal};
use peers_sys::{clock, term};

use crate::config::ConfigDir;
use crate::fault;
use crate::ground::Ground;
use crate::observe::{Observation, Probe};
use crate::oplock::OpLock;
use crate::reconcile::{noted, reconcile};
use crate::registry::{self, LastExit, Outcome, Phase, Project, ProjectName, Runtime, State};
use crate::start::{project, unknown};

/// Once it is hurried, the loop kills its peers at once and writes its records.
const HURRIED: Duration = Duration::from_secs(3);
/// What was killed is gone by then.
const DYING: Duration = Duration::from_secs(5);
/// What a killed loop left is looked for so long.
const SWEEP: Duration = Duration::from_secs(10);
/// The number of SIGKILL.
const KILL: i32 = 9;

/// How a loop is to be stopped.
#[derive(Debug, Clone)]
pub struct StopOptions {
    /// It is killed when it still runs after this.
    pub grace: Duration,
    /// It is hurried, and killed soon.
    pub now: bool,
    /// Wait so long for another controller.
    pub wait: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// None ran.
    NotRunning {
        /// What was found instead, for people.
        what: String,
        /// Processes that one which died had left, and which were ended.
        swept: Vec<u32>,
    },
    /// It ended by itself.
    Ended {
        /// Its run.
        run_id: Option<RunId>,
        /// Its stop reason, where it wrote one.
        reason: Option<String>,
        /// Processes that it had left, where it died without a last word.
        swept: Vec<u32>,
    },
    /// It had to be killed.
    Killed {
        /// Its run.
        run_id: Option<RunId>,
        /// Processes of it that were ended after it.
        swept: Vec<u32>,
    },
    /// It ends after the turn that runs.
    AfterTick {
        /// Its run.
        run_id: Option<RunId>,
    },
}

/// Stops the loop of a project.
///
/// # Errors
/// A [`Finding`]: exit 4 while another controller is at work, 5 where nobody can tell who holds the lock, 1 where
/// it does not end.
pub fn stop(
    config: &ConfigDir,
    name: &ProjectName,
    env: &Env,
    options: &StopOptions,
) -> Result<Stopped, Finding> {
    let (_op, known, place) = match about(config, name, env, options.wait)? {
        About::Project { op, known, place } => (op, known, place),
        About::NeverSetUp(stopped) => return Ok(stopped),
    };
    fault::point("stop.op-locked");
    let (holder, handle) = match grasp(&known, &place, env)? {
        ControlFlow::Continue(held) => held,
        ControlFlow::Break(seen) => return not_running(config, (&known, &place), &seen),
    };
    let run_id = holder.run_id.as_ref().and_then(|id| RunId::new(id.as_str()).ok());
    // A registry that cannot be written must not keep a loop running.
    told_later(set_phase(config, name, run_id.as_ref(), Phase::Stopping));
    fault::point("stop.intent-written");
    let grace = if options.now { HURRIED } else { options.grace };
    if options.now {
        hurry(&handle)?;
    } else {
        tell(&handle, Signal::Term)?;
    }
    fault::point("stop.signalled");
    if ended(&handle, grace)? {
        return finish(config, (&known, &place), env, run_id);
    }
    // A last word before the last resort: its peers die at once, and its records are written.
    if !options.now {
        hurry(&handle)?;
        if ended(&handle, HURRIED)? {
            return finish(config, (&known, &place), env, run_id);
        }
    }
    tell(&handle, Signal::Kill)?;
    fault::point("stop.killed");
    if !ended(&handle, DYING)? {
        return Err(Finding::new(
            exit::NEGATIVE,
            format!("{name} was killed and is not gone: {holder}"),
            "a process in the middle of a system call cannot die before that returns; stop it again later",
        ));
    }
    settled(&known, env)?;
    let swept = run_id.as_ref().map(|run| bury(&place, run)).transpose()?.unwrap_or_default();
    fault::point("stop.swept");
    let (at, killed) = (clock::now(), StopReason::Interrupted(KILL));
    let noted = registry::edit(config, |registry| {
        let Some(project) = registry.get_mut(name) else { return Err(unknown(name.as_str(), registry)) };
        project.stand(State::Stopped, at);
        project.outcome = Some(Outcome::Operator);
        project.runtime = None;
        project.last_stopped_at = Some(at);
        project.last_exit = Some(LastExit {
            reason: killed.to_string(),
            code: Some(killed.exit_code()),
            signal: Some(KILL),
            run_id: run_id.clone(),
            ts: at,
        });
        Ok(())
    });
    told_later(noted);
    fault::point("stop.done");
    Ok(Stopped::Killed { run_id, swept })
}

/// Asks the loop of a project to end after the turn that runs.
///
/// # Errors
/// As [`stop`].
pub fn stop_after_tick(
    config: &ConfigDir,
    name: &ProjectName,
    env: &Env,
    wait: Duration,
) -> Result<Stopped, Finding> {
    let (_op, known, place) = match about(config, name, env, wait)? {
        About::Project { op, known, place } => (op, known, place),
        About::NeverSetUp(stopped) => return Ok(stopped),
    };
    let (holder, handle) = match grasp(&known, &place, env)? {
        ControlFlow::Continue(held) => held,
        ControlFlow::Break(seen) => return not_running(config, (&known, &place), &seen),
    };
    tell(&handle, Signal::Usr1)?;
    Ok(Stopped::AfterTick { run_id: holder.run_id.as_ref().and_then(|id| RunId::new(id.as_str()).ok()) })
}

/// What a stop is about.
enum About {
    /// This one. Nobody else is at work on it meanwhile.
    Project { op: OpLock, known: Box<Project>, place: Place },
    /// One that has no store, and never had.
    NeverSetUp(Stopped),
}

/// The project, wherever it lies by now: its trusted store says whether a loop runs.
fn about(config: &ConfigDir, name: &ProjectName, env: &Env, wait: Duration) -> Result<About, Finding> {
    let known = project(config, name)?;
    let place = Ground::of_one(&known, env)?.place;
    if place.view_store().map_err(|error| Finding::from(&error))?.is_none() {
        let seen = Observation::of(&known, env);
        if let Probe::NoAnswer(why) = &seen.probe {
            return Err(unseen(&known, &seen, why));
        }
        return not_running(config, (&known, &place), &seen).map(About::NeverSetUp);
    }
    let op = OpLock::take(&place, &format!("peers-ctl stop {name}"), wait)?;
    Ok(About::Project { op, known: Box::new(project(config, name)?), place })
}

/// That cannot tell whether it runs.
fn unseen(known: &Project, seen: &Observation, why: &str) -> Finding {
    let alive = if seen.alive { format!("; {} is alive", noted(known)) } else { String::new() };
    Finding::new(
        exit::REFUSED,
        format!("whether {} runs cannot be seen: {why}{alive}", known.name),
        Step::text("no process was signalled; `peers-ctl doctor {}` shows more", &[known.name.as_str()]),
    )
}

/// Takes hold of the loop that holds the run lock; where none does, what was seen.
fn grasp(
    known: &Project,
    place: &Place,
    env: &Env,
) -> Result<ControlFlow<Observation, (Holder, ProcHandle)>, Finding> {
    stopping::grasp(known.name.as_str(), place, || {
        let seen = Observation::of(known, env);
        match &seen.probe {
            Probe::Alive(_) if seen.alive => Err(unseen(known, &seen, "another process holds the run lock")),
            Probe::Alive(holder) => Ok(ControlFlow::Continue(holder.clone())),
            Probe::NoAnswer(why) => Err(unseen(known, &seen, why)),
            Probe::Dead | Probe::Command(_) => Ok(ControlFlow::Break(seen)),
        }
    })
}

/// What could not be noted down is seen again by the next look.
fn told_later(noted: Result<(), Finding>) {
    if let Err(finding) = noted {
        tracing::warn!("the registry was not written: {}", finding.message);
    }
}

/// The project once the lock is free: a child of it may have a copy for an instant. One that stays held is no end.
fn settled(known: &Project, env: &Env) -> Result<Observation, Finding> {
    let deadline = clock::mono().plus(DYING);
    loop {
        let seen = Observation::of(known, env);
        let Probe::Alive(holder) = &seen.probe else { return Ok(seen) };
        if clock::mono() >= deadline {
            return Err(Finding::new(
                exit::NEGATIVE,
                format!(
                    "the process that was told to end has ended, and the run lock of {} is still held: {holder}",
                    known.name
                ),
                Step::text(
                    "another loop runs, or a process of it has the lock: `peers-ctl stop {}` once more",
                    &[known.name.as_str()],
                ),
            ));
        }
        std::thread::sleep(LOOK);
    }
}

/// Notes down how a loop ended that was told to.
fn finish(
    config: &ConfigDir,
    (known, place): (&Project, &Place),
    env: &Env,
    run_id: Option<RunId>,
) -> Result<Stopped, Finding> {
    let mut seen = settled(known, env)?;
    let mut swept = Vec::new();
    if let Some(run) = run_id.as_ref().filter(|_| seen.run.as_ref().is_some_and(|run| run.ended.is_none())) {
        // It was told to end, and died without a last word. What cannot be listed of it is looked for again by the
        // next start.
        swept = bury(place, run).unwrap_or_default();
        seen = Observation::of(known, env);
    }
    let (project, _) = noted_down(config, known, &seen);
    let ended = project.last_exit.filter(|exit| exit.run_id == run_id);
    fault::point("stop.done");
    Ok(Stopped::Ended { run_id, reason: ended.map(|exit| exit.reason), swept })
}

/// Brings the registry up to what was seen, and gives the project as it is then, with the run that left
/// something. A registry that cannot be written keeps nobody from stopping.
fn noted_down(config: &ConfigDir, known: &Project, seen: &Observation) -> (Project, Option<RunId>) {
    let now = clock::now();
    // This very controller is the one that is at work.
    let seen = Observation { operation: None, ..seen.clone() };
    let bring = |project: &mut Project| {
        let change = reconcile(project, &seen, now)?;
        change.apply(project, now);
        change.leftovers
    };
    let edited = registry::edit(config, |registry| {
        let Some(project) = registry.get_mut(&known.name) else {
            return Err(unknown(known.name.as_str(), registry));
        };
        let leftovers = bring(project);
        Ok((project.clone(), leftovers))
    });
    edited.unwrap_or_else(|finding| {
        told_later(Err(finding));
        let mut project = known.clone();
        let leftovers = bring(&mut project);
        (project, leftovers)
    })
}

fn not_running(
    config: &ConfigDir,
    (known, place): (&Project, &Place),
    seen: &Observation,
) -> Result<Stopped, Finding> {
    let (project, leftovers) = noted_down(config, known, seen);
    if project.state == State::Unknown && seen.alive {
        return Err(unseen(known, seen, "nobody holds the run lock"));
    }
    let swept = leftovers.map(|run| sweep(place, &run)).transpose()?.unwrap_or_default();
    let what = match (&seen.probe, &known.runtime) {
        (Probe::Command(holder), _) => format!("no loop runs; {holder}"),
        (_, Some(runtime)) => match gone(runtime) {
            Some(what) => what,
            None => "its loop has ended already".to_owned(),
        },
        (_, None) => "no loop runs".to_owned(),
    };
    let what = match place.refuse_foreign_lock() {
        Err(error @ PlaceError::ForeignLock { .. }) => {
            let hint = error.hint().map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("{what}; {error}{hint}")
        }
        Ok(()) | Err(_) => what,
    };
    Ok(Stopped::NotRunning { what, swept })
}

/// That a process id that the registry still has belongs to somebody else by now, for people.
fn gone(runtime: &Runtime) -> Option<String> {
    let pid = i32::try_from(runtime.pid?).ok().and_then(Pid::new)?;
    let now = ProcIdentity::of(pid).ok()?.start_time?;
    // The loop itself stands there until whoever started it has asked for its end.
    (now != runtime.starttime?).then(|| {
        format!(
            "its loop has ended already; process {} is now a different one and was not touched",
            term::inline(&pid.to_string())
        )
    })
}

fn set_phase(
    config: &ConfigDir,
    name: &ProjectName,
    run_id: Option<&RunId>,
    phase: Phase,
) -> Result<(), Finding> {
    let now = clock::now();
    registry::edit(config, |registry| {
        let Some(project) = registry.get_mut(name) else { return Err(unknown(name.as_str(), registry)) };
        if let Some(runtime) = project.runtime.as_mut().filter(|runtime| Some(&runtime.run_id) == run_id) {
            runtime.phase = phase;
            runtime.since = now;
        }
        Ok(())
    })
}

/// Ends what a run left that died without a word, and says which processes these were. The run lock is held
/// meanwhile, so that no new run begins; where somebody has it, nothing is done.
///
/// # Errors
/// A [`Finding`] when processes cannot be listed.
pub fn sweep(place: &Place, run: &RunId) -> Result<Vec<u32>, Finding> {
    let Ok(_lock) = place.lock_own("stop") else { return Ok(Vec::new()) };
    if !is_its_own(place, run) {
        return Ok(Vec::new());
    }
    swept(run)
}

/// Whether the journal has this run for its last. A run lock can name one of another project, whose processes are
/// that one's. A journal that cannot be read says nothing against it.
fn is_its_own(place: &Place, run: &RunId) -> bool {
    let Ok(Some(store)) = place.open_store() else { return false };
    let state = store::read_state(&mut FsDisk::new(store, None));
    state.map_or(true, |state| state.run.is_some_and(|last| last.id == *run))
}

/// The same of a run that was killed here, whose record says so then: every registry goes by that.
fn bury(place: &Place, run: &RunId) -> Result<Vec<u32>, Finding> {
    let Ok(_lock) = place.lock_own("stop") else { return Ok(Vec::new()) };
    if !is_its_own(place, run) {
        return Ok(Vec::new());
    }
    told_later(note_killed(place, run));
    swept(run)
}

/// Writes into the record of a run that its operator had it killed, where nothing says how it ended. The run lock
/// is held.
fn note_killed(place: &Place, run: &RunId) -> Result<(), Finding> {
    let Some(store) = place.open_store()? else { return Ok(()) };
    let mut disk = FsDisk::new(store, None);
    let Some(mut record) = runs::get(&mut disk, run)?.filter(|record| record.ended_at.is_none()) else {
        return Ok(());
    };
    let said = store::read_state(&mut disk).ok().and_then(|state| state.run);
    if said.is_some_and(|said| said.id == *run && said.ended) {
        return Ok(());
    }
    let reason = StopReason::Interrupted(KILL);
    record.ended_at = Some(clock::now());
    record.exit_code = Some(reason.exit_code());
    record.reason = Some(reason);
    record.signal = Some(KILL);
    "its operator had it killed; the turn that was open is taken up by the next start"
        .clone_into(&mut record.detail);
    Ok(runs::write(&mut disk, &record)?)
}

fn swept(run: &RunId) -> Result<Vec<u32>, Finding> {
    let sweep = Sweep {
        run_id: run,
        iteration: None,
        since: None,
        guard: Guard::default(),
        orphans: Orphans::Leave,
        deadline: SWEEP,
    };
    let report = sweep
        .run()
        .map_err(|error| Finding::plain(exit::BUG, format!("look for what the run left: {error}")))?;
    Ok(report.killed.iter().filter_map(|pid| u32::try_from(pid.get()).ok()).collect())
}
