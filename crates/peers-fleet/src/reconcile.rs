//! What an observation makes of what the registry says: a pure function over both.
//!
//! The table is that of `docs/controller.md`. Three answers: a loop runs, none does, nobody knows. The last one
//! never makes a loop crashed. States in which nothing runs stay as they are, so that looking at them changes
//! nothing.

#[cfg(test)]
mod tests;

use std::time::Duration;

use peers_model::outcome::StopReason;
use peers_model::{RunId, Timestamp};

use crate::observe::{Observation, PathSeen, Probe, RunEnd, RunSeen};
use crate::registry::{LastExit, Outcome, Phase, Project, Runtime, RuntimeKind, State};

/// A controller that has been at work for longer hangs: each wait of a start and of a stop, once the loop is dead,
/// is shorter.
const PATIENCE: Duration = Duration::from_mins(1);

/// What has to be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The state now.
    pub state: State,
    /// The outcome now.
    pub outcome: Option<Outcome>,
    /// The loop now.
    pub runtime: Option<Runtime>,
    /// How the last run ended, where that is new.
    pub last_exit: Option<LastExit>,
    /// Nothing runs any more since now.
    pub stopped: bool,
    /// A loop was found that began then.
    pub started: Option<Timestamp>,
    /// What shows it, for people.
    pub evidence: String,
    /// Processes of this run may be left over: it did not end by itself.
    pub leftovers: Option<RunId>,
}

/// What has to be changed of a project by what was seen of it; `None` when nothing.
#[must_use]
pub fn reconcile(project: &Project, seen: &Observation, now: Timestamp) -> Option<Transition> {
    // A loop goes on in a directory that was moved away.
    if seen.path == PathSeen::Missing && !matches!(seen.probe, Probe::Alive(_)) {
        return missing(project, seen);
    }
    match &seen.probe {
        Probe::NoAnswer(why) => (project.state == State::Running).then(|| Transition {
            state: State::Unknown,
            evidence: if seen.alive {
                format!("the run lock cannot be looked at: {why}; {} is alive", noted(project))
            } else {
                format!("the run lock cannot be looked at: {why}")
            },
            ..same(project)
        }),
        Probe::Alive(_) if seen.alive => (project.state != State::Unknown).then(|| Transition {
            state: State::Unknown,
            evidence: format!("{} is alive, and another process holds the run lock", noted(project)),
            ..same(project)
        }),
        Probe::Alive(holder) => {
            let named = holder.run_id.as_ref().and_then(|id| RunId::new(id.as_str()).ok());
            alive(project, seen, named, holder, now)
        }
        Probe::Dead | Probe::Command(_) => dead(project, seen, now),
    }
}

fn same(project: &Project) -> Transition {
    Transition {
        state: project.state,
        outcome: project.outcome,
        runtime: project.runtime.clone(),
        last_exit: None,
        stopped: false,
        started: None,
        evidence: String::new(),
        leftovers: None,
    }
}

fn missing(project: &Project, seen: &Observation) -> Option<Transition> {
    // Its store tells that nothing runs; what a controller is about is for that to note down.
    let nobody =
        matches!(seen.probe, Probe::Dead | Probe::Command(_)) && !seen.alive && seen.operation.is_none();
    let runtime = project.runtime.clone().filter(|_| !nobody);
    let known = project.state == State::Unknown
        && project.outcome == Some(Outcome::PathMissing)
        && project.runtime == runtime;
    (!known).then(|| Transition {
        runtime,
        stopped: nobody && project.state == State::Running,
        state: State::Unknown,
        outcome: Some(Outcome::PathMissing),
        evidence: "its directory is missing".to_owned(),
        ..same(project)
    })
}

/// A loop runs, whoever started it.
fn alive(
    project: &Project,
    seen: &Observation,
    run_id: Option<RunId>,
    holder: &peers_place::Holder,
    now: Timestamp,
) -> Option<Transition> {
    let known = project.runtime.as_ref();
    // What was noted of this very process is not changed by what stands in the lock, where anybody can write.
    let kept = known.filter(|runtime| is_process(runtime, holder)).map(|runtime| runtime.run_id.clone());
    // One that is being started has not said its name yet.
    let Some(run_id) = kept.or(run_id).or_else(|| known.map(|runtime| runtime.run_id.clone())) else {
        return (project.state != State::Running).then(|| Transition {
            state: State::Running,
            outcome: None,
            evidence: "the run lock is held by a loop that does not say which it is".to_owned(),
            started: Some(now),
            ..same(project)
        });
    };
    let busy = seen.operation.is_some();
    let runtime = match known.filter(|runtime| runtime.run_id == run_id) {
        // A controller is in the middle of it, and says itself when it is done.
        Some(runtime) if busy && runtime.phase != Phase::Up => runtime.clone(),
        Some(runtime) => {
            let identity = holder.identity.as_ref();
            let pgid =
                identity.and_then(|identity| identity.pgid).and_then(|pid| u32::try_from(pid.get()).ok());
            Runtime {
                phase: Phase::Up,
                pid: holder.pid.or(runtime.pid),
                pgid: pgid.or(runtime.pgid),
                starttime: identity.and_then(|identity| identity.start_time).or(runtime.starttime),
                boot_id: identity
                    .and_then(|identity| identity.boot_id.as_ref())
                    .map(|boot| boot.as_str().to_owned())
                    .or_else(|| runtime.boot_id.clone()),
                since: if runtime.phase == Phase::Up { runtime.since } else { now },
                ..runtime.clone()
            }
        }
        None => by_hand(run_id, holder, now),
    };
    let changed = known != Some(&runtime);
    let heals = project.state != State::Running;
    (heals || changed).then(|| Transition {
        state: State::Running,
        outcome: None,
        evidence: format!("the run lock is held: {holder}"),
        started: heals.then_some(now),
        runtime: Some(runtime),
        ..same(project)
    })
}

/// Whether the run lock is held by the process that the registry notes.
fn is_process(runtime: &Runtime, holder: &peers_place::Holder) -> bool {
    let Some(identity) = &holder.identity else { return false };
    runtime.identity().is_some_and(|noted| {
        (noted.pid, noted.start_time, &noted.boot_id)
            == (identity.pid, identity.start_time, &identity.boot_id)
    })
}

/// A loop that no controller of this registry started.
fn by_hand(run_id: RunId, holder: &peers_place::Holder, now: Timestamp) -> Runtime {
    let identity = holder.identity.as_ref();
    Runtime {
        run_id,
        kind: RuntimeKind::Host,
        phase: Phase::Up,
        pid: holder.pid,
        pgid: identity.and_then(|identity| identity.pgid).and_then(|pid| u32::try_from(pid.get()).ok()),
        starttime: identity.and_then(|identity| identity.start_time),
        boot_id: identity.and_then(|identity| identity.boot_id.as_ref()).map(|boot| boot.as_str().to_owned()),
        peers_bin: String::new(),
        version: String::new(),
        request: None,
        since: now,
        extra: serde_json::Map::new(),
    }
}

/// No loop runs.
fn dead(project: &Project, seen: &Observation, now: Timestamp) -> Option<Transition> {
    // A controller is at work between two of its steps, maybe that of another registry, which says itself how a
    // run ended that it had killed.
    let open = seen.run.as_ref().is_none_or(|run| run.ended.is_none());
    let up = project.runtime.as_ref().map(|runtime| runtime.phase == Phase::Up);
    if at_work(seen, now) && (up == Some(false) || (open && up == Some(true))) {
        return None;
    }
    if seen.alive && seen.run.as_ref().is_none_or(|run| run.ended.is_none()) {
        return (project.state != State::Unknown).then(|| Transition {
            state: State::Unknown,
            evidence: format!("{} is alive and does not hold the run lock", noted(project)),
            ..same(project)
        });
    }
    let known = project.last_exit.as_ref().and_then(|exit| exit.run_id.as_ref());
    let run = seen.run.as_ref();
    let runtime = project.runtime.as_ref();
    let idle = matches!(project.state, State::Fresh | State::Stopped | State::Crashed);
    // Of a project that was registered with its history, the last run is how it stands.
    let unheard = project.state == State::Fresh && project.last_exit.is_none();
    if let Some(runtime) = runtime.filter(|runtime| idle && runtime.phase == Phase::Starting)
        && run.is_none_or(|run| run.run_id != runtime.run_id)
    {
        // It was noted down and never began; where a run was there since, that one counts.
        let newer =
            run.filter(|run| unheard || (Some(&run.run_id) != known && run.started_at >= runtime.since));
        return Some(match newer {
            Some(run) => ended(project, run, seen, now),
            None => Transition {
                runtime: None,
                evidence: format!("run {} was to be started and never began", runtime.run_id),
                ..same(project)
            },
        });
    }
    // An older run has nothing to say of the one that the registry knows, whose record is gone.
    let its = run.filter(|run| {
        runtime.is_none_or(|known| run.run_id == known.run_id || run.started_at >= known.since)
    });
    match project.state {
        State::Running => Some(match its {
            Some(run) => ended(project, run, seen, now),
            None => lost(project, now),
        }),
        State::Unknown => Some(match its {
            Some(run) => ended(project, run, seen, now),
            None if runtime.is_some() || project.last_started_at.is_some() => lost(project, now),
            None => Transition {
                state: State::Fresh,
                outcome: None,
                runtime: None,
                evidence: "nothing runs, and nothing ever did".to_owned(),
                ..same(project)
            },
        }),
        // Sticky, but for a run that was there and is over since somebody looked.
        State::Fresh | State::Stopped | State::Crashed => {
            let since = project.last_stopped_at.unwrap_or(project.added_at);
            let newer = run.filter(|run| {
                let last = run.ended.as_ref().map_or(run.started_at, |end| end.at);
                unheard || (Some(&run.run_id) != known && last > since)
            });
            match (newer, runtime) {
                (Some(run), _) => Some(ended(project, run, seen, now)),
                (None, Some(_)) => {
                    Some(Transition { runtime: None, evidence: "nothing runs".to_owned(), ..same(project) })
                }
                (None, None) => None,
            }
        }
    }
}

/// Whether a controller is at work that is to note down itself what comes of it. One that hangs is not waited for.
fn at_work(seen: &Observation, now: Timestamp) -> bool {
    let Some(Some(operation)) = &seen.operation else { return false };
    operation.since <= now && now.since(operation.since) <= PATIENCE
}

/// The process that the registry notes for its loop, for people.
pub(crate) fn noted(project: &Project) -> String {
    let pid = project.runtime.as_ref().and_then(|runtime| runtime.pid);
    pid.map_or_else(|| "its process".to_owned(), |pid| format!("process {pid}, which was started for it,"))
}

/// A run of which nothing is left.
fn lost(project: &Project, now: Timestamp) -> Transition {
    let run_id = project.runtime.as_ref().map(|runtime| runtime.run_id.clone());
    let reason = Outcome::Lost.word().to_owned();
    Transition {
        last_exit: Some(LastExit { reason, code: None, signal: None, run_id, ts: now }),
        state: State::Crashed,
        outcome: Some(Outcome::Lost),
        runtime: None,
        stopped: true,
        evidence: "nothing runs, and no run record says what became of it".to_owned(),
        ..same(project)
    }
}

/// What a run that is over leaves.
fn ended(project: &Project, run: &RunSeen, seen: &Observation, now: Timestamp) -> Transition {
    let exit = |reason: String, code, signal| LastExit {
        reason,
        code,
        signal,
        run_id: Some(run.run_id.clone()),
        ts: run.ended.as_ref().map_or(now, |end| end.at),
    };
    let base = Transition { runtime: None, stopped: true, ..same(project) };
    if let Some(RunEnd { reason, code, signal, .. }) = &run.ended {
        let failed = matches!(reason, StopReason::Error(_));
        return Transition {
            state: if failed { State::Crashed } else { State::Stopped },
            outcome: Some(outcome(reason)),
            last_exit: Some(exit(reason.to_string(), *code, *signal)),
            evidence: format!("run {} ended: {reason}", run.run_id),
            ..base
        };
    }
    let stopping = project
        .runtime
        .as_ref()
        .is_some_and(|runtime| runtime.run_id == run.run_id && runtime.phase == Phase::Stopping);
    let same_boot = run.boot_id.is_some() && run.boot_id == seen.boot_id;
    let leftovers = same_boot.then(|| run.run_id.clone());
    let (state, outcome, evidence) = match (&run.boot_id, &seen.boot_id) {
        _ if stopping => {
            (State::Stopped, Outcome::Operator, "it was told to stop and is gone, without a last word")
        }
        (Some(then), Some(boot)) if then == boot => {
            (State::Crashed, Outcome::Killed, "its process is gone without a word")
        }
        (Some(_), Some(_)) => (State::Crashed, Outcome::HostRebooted, "the machine was started anew since"),
        _ => (State::Crashed, Outcome::Lost, "what became of its process is not known"),
    };
    Transition {
        state,
        outcome: Some(outcome),
        last_exit: Some(exit(outcome.word().to_owned(), None, None)),
        evidence: format!("run {}: {evidence}", run.run_id),
        leftovers,
        ..base
    }
}

/// The outcome of a stop reason.
#[must_use]
pub fn outcome(reason: &StopReason) -> Outcome {
    // `unchanged` is no ending of a run; nothing of a run says it.
    Outcome::ALL.into_iter().find(|outcome| outcome.word() == reason.outcome()).unwrap_or(Outcome::Lost)
}

impl Transition {
    /// Writes it into the project.
    pub fn apply(&self, project: &mut Project, now: Timestamp) {
        let Self { state, outcome, runtime, last_exit, stopped, started, evidence: _, leftovers: _ } = self;
        project.stand(*state, now);
        project.outcome = *outcome;
        project.runtime.clone_from(runtime);
        if let Some(exit) = last_exit {
            project.last_exit = Some(exit.clone());
        }
        if *stopped {
            project.last_stopped_at = Some(now);
        }
        if let Some(at) = started {
            project.last_started_at = Some(*at);
        }
    }

    /// `running -> stopped (complete)`, for people.
    #[must_use]
    pub fn words(&self, before: State) -> String {
        let outcome = self.outcome.map(|outcome| format!(" ({})", outcome.word())).unwrap_or_default();
        format!("{} -> {}{outcome}: {}", before.word(), self.state.word(), self.evidence)
    }
}
