//! Records that cannot stand where they stand.

use peers_core::machine::Phase;
use peers_core::state::State;
use peers_model::record::{
    CheckpointRecord, CorrectionKind, CorrectionPlanned, ExitRecord, PeerSpawned, Record, RunStarted,
    TickStarted,
};
use peers_model::{RunId, TickNo};

use crate::bench::Bench;
use crate::world::{Turn, peer};

/// States and records to put together: a loop stopped at each interesting place.
struct Case {
    what: &'static str,
    state: State,
    run: Option<RunId>,
    record: Record,
}

fn run_id(digit: &str) -> RunId {
    RunId::new(digit.repeat(16)).unwrap()
}

fn idle() -> Bench {
    let mut bench = Bench::new("ann bob");
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    bench
}

fn open() -> Bench {
    let mut bench = idle();
    bench.until_phase(|p| matches!(p, Phase::Running { spawned: false }));
    bench
}

fn ended() -> Bench {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.run();
    bench
}

fn last<T>(bench: &Bench, pick: impl Fn(&Record) -> Option<T>) -> T {
    bench.log.iter().rev().find_map(pick).unwrap()
}

fn run_started(bench: &Bench) -> RunStarted {
    last(bench, |r| if let Record::RunStarted(s) = r { Some((**s).clone()) } else { None })
}

fn tick_started(bench: &Bench, tick: u64) -> Record {
    let started: TickStarted = (*bench.started().last().unwrap()).clone();
    Record::TickStarted(Box::new(TickStarted { tick: TickNo(tick), ..started }))
}

fn tick(bench: &Bench, number: u64, name: &str) -> Record {
    let mut tick = (*bench.ticks().last().unwrap()).clone();
    tick.iteration = TickNo(number);
    tick.peer = peer(name);
    Record::Tick(Box::new(tick))
}

fn spawned(tick: u64) -> Record {
    Record::PeerSpawned(PeerSpawned { tick: TickNo(tick), pid: 7, start_time: 1, boot_id: "boot".into() })
}

fn planned(bench: &Bench, tick: u64) -> Record {
    let head = bench.world.tip().id.clone();
    Record::CorrectionPlanned(CorrectionPlanned {
        tick: TickNo(tick),
        kind: CorrectionKind::Revert,
        from: head.clone(),
        to: head,
        branch: None,
        reason: "x".into(),
    })
}

fn exit(bench: &Bench) -> Record {
    Record::Exit(Box::new(ExitRecord {
        reason: peers_model::outcome::StopReason::Drained,
        detail: String::new(),
        ticks_in_run: 0,
        signal: None,
        head: bench.m.state.head.clone(),
        proof: None,
        in_gates: false,
    }))
}

fn illegal() -> Vec<Case> {
    let (idle, open, ended, fresh) = (idle(), open(), ended(), Bench::new("ann bob"));
    let started = |bench: &Bench| Record::RunStarted(Box::new(run_started(bench)));
    let mut running = open.clone();
    running.until_phase(|p| matches!(p, Phase::Running { spawned: true }));
    let mut correcting = Bench::new("ann bob");
    correcting.play([Turn::nothing().rewrites(crate::world::Rewrite::DropTip)]);
    correcting.begin();
    correcting.until_phase(|p| matches!(p, Phase::Correcting(_)));
    let same = |b: &Bench| Some(b.cfg.run_id.clone());
    let state = |b: &Bench| b.m.state.clone();
    let case = |what, bench: &Bench, record| Case { what, state: state(bench), run: same(bench), record };
    vec![
        Case { what: "a run without an id", state: state(&fresh), run: None, record: started(&idle) },
        case("a run that has started already", &idle, started(&idle)),
        case("a run that has started already, with a tick open", &open, started(&open)),
        case("a tick while one is open", &open, tick_started(&open, 4)),
        case("the open tick once more", &open, tick_started(&open, 3)),
        case("a tick that skips a number", &idle, tick_started(&idle, 4)),
        case("a tick whose number was used", &idle, tick_started(&idle, 2)),
        case("tick zero", &fresh, tick_started(&idle, 0)),
        case("a process while no tick is open", &idle, spawned(3)),
        case("a process of another tick", &open, spawned(2)),
        case("a second process", &running, spawned(3)),
        case("a correction while no tick is open", &idle, planned(&idle, 3)),
        case("a correction of another tick", &open, planned(&open, 2)),
        case("a second correction", &correcting, planned(&correcting, 1)),
        case("the end of a tick while none is open", &idle, tick(&idle, 3, "ann")),
        case("the end of a tick that ended", &idle, tick(&idle, 2, "bob")),
        case("the end of another tick than the open one", &open, tick(&open, 4, "ann")),
        case("the end of the open tick by another peer", &open, tick(&open, 3, "bob")),
        case("the end of a run before one began", &fresh, exit(&fresh)),
        case("the end of a run that ended", &ended, exit(&ended)),
        Case {
            what: "the end of another run",
            state: state(&idle),
            run: Some(run_id("f")),
            record: exit(&idle),
        },
        Case { what: "the end of a run by nobody", state: state(&idle), run: None, record: exit(&idle) },
        case(
            "a checkpoint that is no state",
            &idle,
            Record::Checkpoint(CheckpointRecord { state: serde_json::json!({"format": "three"}) }),
        ),
    ]
}

#[test]
fn an_impossible_record_is_refused_and_changes_nothing() {
    for Case { what, state, run, record } in illegal() {
        let mut after = state.clone();
        let error = after.apply(Bench::new("ann").now, run.as_ref(), &record).expect_err(what);
        assert_eq!(error.event, record.event(), "{what}");
        assert!(!error.why.is_empty(), "{what}");
        assert_eq!(after, state, "{what}");
        assert!(state.applied(Bench::new("ann").now, run.as_ref(), &record).is_err(), "{what}");
    }
}

#[test]
fn the_same_records_at_their_places_are_taken() {
    let (idle, open) = (idle(), open());
    let now = idle.now;
    let run = Some(&idle.cfg.run_id);
    for (bench, record) in [
        (&idle, tick_started(&idle, 3)),
        (&idle, exit(&idle)),
        (&open, spawned(3)),
        (&open, planned(&open, 3)),
        (&open, tick(&open, 3, "ann")),
    ] {
        assert!(bench.m.state.clone().applied(now, run, &record).is_ok(), "{}", record.event());
    }
    // A loop that died without an exit record is followed by another run.
    let next = Record::RunStarted(Box::new(run_started(&open)));
    assert!(open.m.state.clone().applied(now, Some(&run_id("f")), &next).is_ok());
}

#[test]
fn a_checkpoint_stands_for_everything_before_it() {
    for bench in [idle, open, ended].map(|make| Box::new(make())) {
        let record =
            Record::Checkpoint(CheckpointRecord { state: serde_json::to_value(&bench.m.state).unwrap() });
        let state = State::new().applied(bench.now, None, &record).unwrap();
        assert_eq!(state, bench.m.state);
    }
}

#[test]
fn the_machine_never_writes_an_impossible_record_when_an_answer_comes_twice() {
    let mut bench = open();
    let spawned = |tick| {
        peers_core::machine::Event::PeerSpawned(PeerSpawned {
            tick: TickNo(tick),
            pid: 7,
            start_time: 1,
            boot_id: "boot".into(),
        })
    };
    bench.feed(spawned(9));
    assert!(
        bench.m.state.open.as_ref().unwrap().spawned.is_none(),
        "another tick's process is nobody of ours"
    );
    bench.feed(spawned(3));
    bench.feed(spawned(3));
    assert!(matches!(bench.m.phase, Phase::Running { spawned: true }));
}
