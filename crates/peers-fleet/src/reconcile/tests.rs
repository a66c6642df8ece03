//! The table of the specification as a whole, and what holds for every combination, odd ones too.

use std::path::Path;

use peers_model::outcome::ErrorKind;
use peers_place::Holder;

use super::*;
use crate::oplock::Operation;
use crate::registry::ProjectName;

const KNOWN: &str = "00000000000000aa";
const OTHER: &str = "00000000000000bb";
const BOOT: &str = "this-boot";

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + second * 1000)
}

const STATES: [State; 5] = [State::Fresh, State::Running, State::Unknown, State::Crashed, State::Stopped];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Alive,
    Dead,
    /// Another command holds the lock.
    Command,
    NoAnswer,
}
const LOOKS: [Look; 4] = [Look::Alive, Look::Dead, Look::Command, Look::NoAnswer];

/// What the store has of the run that the registry knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Ended,
    Interrupted,
    Failed,
    Open,
    OpenOtherBoot,
    OpenNoBoot,
    /// Nothing at all, or nothing that can be read.
    Missing,
    /// That of another run, which was over before this one began.
    ForeignOld,
    /// That of another run, which came after it.
    ForeignNew,
}
const RUNS: [Run; 9] = [
    Run::Ended,
    Run::Interrupted,
    Run::Failed,
    Run::Open,
    Run::OpenOtherBoot,
    Run::OpenNoBoot,
    Run::Missing,
    Run::ForeignOld,
    Run::ForeignNew,
];
const PHASES: [Option<Phase>; 4] = [None, Some(Phase::Starting), Some(Phase::Up), Some(Phase::Stopping)];

/// The known run began at second 100; somebody looks at 200.
fn project(state: State, phase: Option<Phase>) -> Project {
    let mut project = Project::new(ProjectName::new("p").unwrap(), Path::new("/repo"), None, at(0));
    project.state = state;
    if state != State::Fresh {
        project.last_started_at = Some(at(100));
    }
    if matches!(state, State::Stopped | State::Crashed) {
        project.last_stopped_at = Some(at(150));
        project.last_exit = Some(LastExit {
            reason: "complete".to_owned(),
            code: Some(0),
            signal: None,
            run_id: Some(RunId::new(KNOWN).unwrap()),
            ts: at(150),
        });
    }
    project.runtime = phase.map(|phase| Runtime {
        run_id: RunId::new(KNOWN).unwrap(),
        kind: RuntimeKind::Host,
        phase,
        pid: Some(4242),
        pgid: Some(4242),
        starttime: Some(7),
        boot_id: Some(BOOT.to_owned()),
        peers_bin: "/bin/peers".to_owned(),
        version: String::new(),
        request: None,
        since: at(100),
        extra: serde_json::Map::new(),
    });
    project
}

fn run(run: Run) -> Option<RunSeen> {
    let seen = |id: &str, started: i64, boot: Option<&str>, ended: Option<(StopReason, i64)>| {
        Some(RunSeen {
            run_id: RunId::new(id).unwrap(),
            pid: 4242,
            started_at: at(started),
            boot_id: boot.map(str::to_owned),
            ended: ended.map(|(reason, second)| RunEnd {
                code: Some(reason.exit_code()),
                reason,
                at: at(second),
                signal: None,
            }),
        })
    };
    match run {
        Run::Ended => seen(KNOWN, 100, Some(BOOT), Some((StopReason::Complete, 150))),
        Run::Interrupted => seen(KNOWN, 100, Some(BOOT), Some((StopReason::Interrupted(15), 150))),
        Run::Failed => seen(KNOWN, 100, Some(BOOT), Some((StopReason::Error(ErrorKind::Io), 150))),
        Run::Open => seen(KNOWN, 100, Some(BOOT), None),
        Run::OpenOtherBoot => seen(KNOWN, 100, Some("another-boot"), None),
        Run::OpenNoBoot => seen(KNOWN, 100, None, None),
        Run::Missing => None,
        Run::ForeignOld => seen(OTHER, -60, Some(BOOT), Some((StopReason::Complete, -50))),
        Run::ForeignNew => seen(OTHER, 160, Some(BOOT), Some((StopReason::MaxTicks, 190))),
    }
}

fn observation(look: Look, what: Run, busy: bool) -> Observation {
    let holder = |run: Option<&str>, command: Option<&str>| Holder {
        pid: Some(4242),
        identity: None,
        run_id: run.map(str::to_owned),
        command: command.map(str::to_owned),
        starting: false,
        gates_since: None,
    };
    let probe = match look {
        Look::Alive => Probe::Alive(holder(Some(KNOWN), None)),
        Look::Dead => Probe::Dead,
        Look::Command => Probe::Command(holder(None, Some("land"))),
        Look::NoAnswer => Probe::NoAnswer("no answer".to_owned()),
    };
    let operation =
        busy.then(|| Some(Operation { pid: 1, op: "peers-ctl start p".to_owned(), since: at(190) }));
    Observation {
        path: PathSeen::Same,
        probe,
        operation,
        run: run(what),
        alive: false,
        bare: false,
        boot_id: Some(BOOT.to_owned()),
    }
}

/// State and outcome that the table has for a loop that was up; `None` where nothing is written.
fn due(state: State, look: Look, what: Run) -> Option<(State, Option<Outcome>)> {
    let stopped = |outcome| Some((State::Stopped, Some(outcome)));
    let crashed = |outcome| Some((State::Crashed, Some(outcome)));
    let told = match what {
        Run::Ended => stopped(Outcome::Converged),
        Run::Interrupted => stopped(Outcome::Operator),
        Run::ForeignNew => stopped(Outcome::Limit),
        Run::Failed => crashed(Outcome::Error),
        Run::Open => crashed(Outcome::Killed),
        Run::OpenOtherBoot => crashed(Outcome::HostRebooted),
        Run::OpenNoBoot => crashed(Outcome::Lost),
        Run::Missing | Run::ForeignOld => None,
    };
    match (look, state) {
        (Look::Alive, State::Running) => None,
        (Look::Alive, _) => Some((State::Running, None)),
        (Look::NoAnswer, State::Running) => Some((State::Unknown, None)),
        (Look::NoAnswer, _) => None,
        (Look::Dead | Look::Command, State::Running | State::Unknown) => told.or(crashed(Outcome::Lost)),
        // Another run was there since somebody looked.
        (Look::Dead | Look::Command, State::Stopped | State::Crashed) => {
            told.filter(|_| what == Run::ForeignNew)
        }
        // It was registered with its history.
        (Look::Dead | Look::Command, State::Fresh) if what == Run::ForeignOld => stopped(Outcome::Converged),
        (Look::Dead | Look::Command, State::Fresh) => told,
    }
}

#[test]
fn the_table_of_states_and_probes_and_run_records() {
    for state in STATES {
        let up = matches!(state, State::Running | State::Unknown).then_some(Phase::Up);
        for look in LOOKS {
            for what in RUNS {
                let before = project(state, up);
                let found = reconcile(&before, &observation(look, what, false), at(200));
                let told = found.as_ref().map(|change| (change.state, change.outcome));
                assert_eq!(told, due(state, look, what), "{state:?} {look:?} {what:?}: {found:?}");
                let Some(change) = found else { continue };
                let stops = matches!(change.state, State::Stopped | State::Crashed);
                assert_eq!(change.stopped, stops, "{state:?} {look:?} {what:?}");
                assert_eq!(change.runtime.is_none(), stops, "{state:?} {look:?} {what:?}");
                assert!(!change.evidence.is_empty());
            }
        }
    }
}

/// Every combination there is, also of fields that no controller writes together.
fn each(check: impl Fn(&Project, &Observation, Option<Phase>, Look, Run, bool)) {
    for state in STATES {
        for phase in PHASES {
            for look in LOOKS {
                for what in RUNS {
                    for busy in [false, true] {
                        let project = project(state, phase);
                        check(&project, &observation(look, what, busy), phase, look, what, busy);
                    }
                }
            }
        }
    }
}

/// Whether no record says how the run ended.
fn is_open(what: Run) -> bool {
    matches!(what, Run::Open | Run::OpenOtherBoot | Run::OpenNoBoot | Run::Missing)
}

#[test]
fn whatever_stands_in_the_registry_it_becomes_what_was_seen_and_stays_so() {
    each(|before, seen, phase, look, what, busy| {
        let told = format!("{:?} {phase:?} {look:?} {what:?} busy {busy}", before.state);
        let change = reconcile(before, seen, at(200));
        let mut after = before.clone();
        if let Some(change) = &change {
            change.apply(&mut after, at(200));
        }
        let between = busy && phase.is_some_and(|phase| phase != Phase::Up);
        match look {
            Look::Alive => {
                assert_eq!(after.state, State::Running, "{told}");
                let due = if between { phase } else { Some(Phase::Up) };
                assert_eq!(after.runtime.as_ref().map(|runtime| runtime.phase), due, "{told}");
            }
            Look::NoAnswer => {
                let due = if before.state == State::Running { State::Unknown } else { before.state };
                assert_eq!((after.state, &after.runtime), (due, &before.runtime), "{told}");
                assert!(change.is_none() || before.state == State::Running, "{told}");
            }
            // What became of it is noted down by the controller that is at work.
            Look::Dead | Look::Command if between || (busy && phase.is_some() && is_open(what)) => {
                assert_eq!(change, None, "{told}");
            }
            Look::Dead | Look::Command => {
                assert!(!matches!(after.state, State::Running | State::Unknown), "{told}: {change:?}");
                assert_eq!(after.runtime, None, "{told}");
            }
        }
        if let Some(change) = &change {
            // Only what died by itself, on this boot, can have left something.
            let open = what == Run::Open && matches!(look, Look::Dead | Look::Command);
            assert!(change.leftovers.is_none() || open, "{told}");
        }
        assert_eq!(reconcile(&after, seen, at(220)), None, "{told}: looking again changes nothing");
    });
}

#[test]
fn a_controller_that_hangs_hides_no_crash() {
    let before = project(State::Running, Some(Phase::Up));
    let seen = observation(Look::Dead, Run::Open, true);
    // At work since 190.
    for (when, hidden) in [(190, true), (250, true), (251, false), (189, false)] {
        assert_eq!(reconcile(&before, &seen, at(when)).is_none(), hidden, "{when}");
    }
    let nobody = Observation { operation: Some(None), ..seen };
    let change = reconcile(&before, &nobody, at(200)).unwrap();
    assert_eq!((change.state, change.outcome), (State::Crashed, Some(Outcome::Killed)));
}

#[cfg(target_os = "linux")]
#[test]
fn what_stands_in_the_lock_of_a_known_process_does_not_say_which_run_it_is() {
    let mut before = project(State::Running, Some(Phase::Up));
    let runtime = before.runtime.as_mut().unwrap();
    runtime.boot_id = peers_sys::clock::boot_id().map(str::to_owned);
    (runtime.pid, runtime.starttime) = (Some(4242), Some(7));
    let noted = runtime.identity().unwrap();
    let run_of = |identity: Option<peers_sys::identity::ProcIdentity>| {
        let mut seen = observation(Look::Alive, Run::Open, false);
        let Probe::Alive(holder) = &mut seen.probe else { panic!("{seen:?}") };
        (holder.run_id, holder.identity) = (Some(OTHER.to_owned()), identity);
        let change = reconcile(&before, &seen, at(200));
        let after = change.map_or(before.runtime.clone(), |change| change.runtime);
        after.unwrap().run_id.to_string()
    };
    let another = peers_sys::identity::ProcIdentity { start_time: Some(8), ..noted.clone() };
    assert_eq!([run_of(None), run_of(Some(another)), run_of(Some(noted))], [OTHER, OTHER, KNOWN]);
}

#[test]
fn a_loop_that_was_told_to_stop_and_is_gone_was_stopped_and_not_lost() {
    for state in [State::Running, State::Unknown] {
        let before = project(state, Some(Phase::Stopping));
        for (what, outcome) in [(Run::Open, Outcome::Operator), (Run::Interrupted, Outcome::Operator)] {
            let change = reconcile(&before, &observation(Look::Dead, what, false), at(200)).unwrap();
            assert_eq!((change.state, change.outcome), (State::Stopped, Some(outcome)), "{state:?}");
        }
        // It came to its end before it heard of it.
        let change = reconcile(&before, &observation(Look::Dead, Run::Ended, false), at(200)).unwrap();
        assert_eq!((change.state, change.outcome), (State::Stopped, Some(Outcome::Converged)), "{state:?}");
    }
}

#[test]
fn a_start_that_was_noted_down_and_never_began_leaves_things_as_they_were() {
    for state in [State::Fresh, State::Stopped, State::Crashed] {
        for what in [Run::Missing, Run::ForeignOld] {
            let before = project(state, Some(Phase::Starting));
            let change = reconcile(&before, &observation(Look::Dead, what, false), at(200)).unwrap();
            let mut after = before.clone();
            change.apply(&mut after, at(200));
            if state == State::Fresh && what == Run::ForeignOld {
                assert_eq!(
                    (after.state, after.runtime),
                    (State::Stopped, None),
                    "registered with its history"
                );
                continue;
            }
            assert_eq!(after, Project { runtime: None, ..before }, "{state:?} {what:?}");
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_unknown_and_comes_back_as_it_was() {
    each(|before, seen, phase, look, what, busy| {
        let missing = Observation { path: PathSeen::Missing, ..seen.clone() };
        let mut after = before.clone();
        if look == Look::Alive {
            // A loop goes on in a directory that was moved away.
            assert_eq!(reconcile(before, &missing, at(200)), reconcile(before, seen, at(200)));
            return;
        }
        reconcile(before, &missing, at(200)).unwrap().apply(&mut after, at(200));
        assert_eq!((after.state, after.outcome), (State::Unknown, Some(Outcome::PathMissing)));
        assert_eq!(reconcile(&after, &missing, at(300)), None);
        // Back again, and nothing runs.
        let back = observation(Look::Dead, what, false);
        if let Some(change) = reconcile(&after, &back, at(400)) {
            change.apply(&mut after, at(400));
        }
        let known = matches!(what, Run::Missing | Run::ForeignOld);
        if before.state == State::Fresh && phase.is_none() && what == Run::Missing && !busy {
            assert_eq!((after.state, after.outcome), (State::Fresh, None));
        }
        assert!(known || !matches!(after.state, State::Running | State::Unknown), "{what:?}: {after:?}");
    });
}

#[test]
fn whose_process_is_alive_is_never_dead_unless_its_record_says_so() {
    each(|before, seen, phase, look, what, busy| {
        let alive = Observation { alive: true, ..seen.clone() };
        let over = seen.run.as_ref().is_some_and(|run| run.ended.is_some());
        if look != Look::Dead || over || (busy && phase.is_some()) {
            return;
        }
        let mut after = before.clone();
        if let Some(change) = reconcile(before, &alive, at(200)) {
            assert_eq!(change.leftovers, None);
            change.apply(&mut after, at(200));
        }
        assert_eq!((after.state, &after.runtime), (State::Unknown, &before.runtime), "{what:?}");
        assert_eq!(reconcile(&after, &alive, at(300)), None);
    });
}

#[test]
fn a_run_that_is_lost_says_so_in_place_of_the_exit_before() {
    let before = project(State::Running, Some(Phase::Up));
    let change = reconcile(&before, &observation(Look::Dead, Run::Missing, false), at(200)).unwrap();
    let exit = change.last_exit.unwrap();
    assert_eq!((exit.reason.as_str(), exit.code, exit.ts), ("lost", None, at(200)));
    assert_eq!(exit.run_id, before.runtime.map(|runtime| runtime.run_id));
}

#[test]
fn what_a_run_left_is_looked_for_where_it_died_in_this_boot() {
    for (state, up) in [(State::Running, Some(Phase::Up)), (State::Running, None), (State::Fresh, None)] {
        let before = project(state, up);
        for (what, swept) in [(Run::Open, true), (Run::OpenOtherBoot, false), (Run::OpenNoBoot, false)] {
            let change = reconcile(&before, &observation(Look::Dead, what, false), at(200)).unwrap();
            assert_eq!(change.leftovers.is_some(), swept, "{change:?}");
        }
    }
}
