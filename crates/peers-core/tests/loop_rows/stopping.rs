//! A stop request in every phase.

use std::collections::BTreeMap;

use peers_core::machine::{Effect, Phase, StopRequest};
use peers_core::state::PeerState;
use peers_model::outcome::{ApiClass, ExitClass, StopReason};

use crate::bench::Bench;
use crate::world::{Gate, Habit, Rewrite, Turn};

const REQUESTS: [StopRequest; 3] = [StopRequest::AfterTick, StopRequest::Graceful(15), StopRequest::Now(2)];

fn word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Reaping => "reaping",
        Phase::Booting { .. } => "booting",
        Phase::Surveying(_) => "surveying",
        Phase::Judging(..) => "judging",
        Phase::Composing(_) => "composing",
        Phase::Running { spawned: false } => "starting",
        Phase::Running { spawned: true } => "running",
        Phase::Harvesting { .. } => "harvesting",
        Phase::Correcting(_) => "correcting",
        Phase::Refreshing(_) => "refreshing",
        Phase::Proving(..) => "proving",
        Phase::AwaitingGates => "awaiting gates",
        Phase::CoolingDown => "cooling-down",
        Phase::Stopped(_) => "stopped",
    }
}

const PHASES: [&str; 13] = [
    "reaping",
    "booting",
    "surveying",
    "judging",
    "composing",
    "starting",
    "running",
    "harvesting",
    "correcting",
    "refreshing",
    "proving",
    "cooling-down",
    "stopped",
];

/// A loop in that phase for the first time.
fn in_phase(phase: &str) -> Bench {
    let mut bench = match phase {
        "proving" => Bench::green(),
        "refreshing" => {
            let mut bench = Bench::bare("ann bob");
            bench.gate("tests-pass", Gate::At("good"));
            bench.habit = Habit::Good("good");
            bench
        }
        _ => Bench::new("ann bob"),
    };
    bench.cfg.max_ticks = Some(3);
    match phase {
        "correcting" => bench.play([Turn::handoff("work").rewrites(Rewrite::DropTip)]),
        "cooling-down" => bench.play((0..2).map(|_| Turn::fails(ExitClass::Nonzero, ApiClass::Transient))),
        _ => {}
    }
    bench.begin();
    if phase == "reaping" {
        bench.until_phase(|p| matches!(p, Phase::Running { .. }));
        bench.crash();
        bench.begin();
    }
    bench.until_phase(|p| word(p) == phase);
    bench
}

fn has(bench: &Bench, from: usize, test: impl Fn(&Effect) -> bool) -> bool {
    bench.effects.iter().skip(from).any(test)
}

#[test]
fn every_phase_answers_every_request_and_the_loop_stops_for_that_reason() {
    // What happens at once: `stops`, `waits` for the answer that is on its way, `ends` what runs.
    let table: BTreeMap<&str, [&str; 3]> = BTreeMap::from([
        ("reaping", ["waits", "waits", "waits"]),
        ("booting", ["stops", "stops", "stops"]),
        ("surveying", ["stops", "stops", "stops"]),
        ("judging", ["waits", "cancels", "cancels"]),
        ("composing", ["waits", "stops", "stops"]),
        ("starting", ["waits", "ends", "kills"]),
        ("running", ["waits", "ends", "kills"]),
        ("harvesting", ["waits", "waits", "waits"]),
        ("correcting", ["waits", "waits", "waits"]),
        ("refreshing", ["waits", "hurries", "hurries"]),
        ("proving", ["waits", "cancels", "cancels"]),
        ("cooling-down", ["stops", "stops", "stops"]),
        ("stopped", ["stopped", "stopped", "stopped"]),
    ]);
    for phase in PHASES {
        for (request, expected) in REQUESTS.into_iter().zip(table[phase]) {
            let what = format!("{phase}, {request:?}");
            let mut bench = in_phase(phase);
            let (effects, records) = (bench.effects.len(), bench.log.len());
            let reason_before = bench.stopped();
            bench.stop(request);
            let ends = |now: bool| move |e: &Effect| matches!(e, Effect::EndPeer { now: n } if *n == now);
            let seen = match (bench.stopped().is_some(), reason_before.is_some()) {
                (_, true) if bench.log.len() == records && bench.effects.len() == effects => "stopped",
                (true, _) if has(&bench, effects, |e| matches!(e, Effect::CancelGates)) => "cancels",
                (true, _) => "stops",
                (false, _) if has(&bench, effects, ends(false)) => "ends",
                (false, _) if has(&bench, effects, ends(true)) => "kills",
                (false, _) if has(&bench, effects, |e| matches!(e, Effect::CancelGates)) => "hurries",
                (false, _) => "waits",
            };
            assert_eq!(seen, expected, "{what}");
            let reason = bench.finish();
            let wanted = match (reason_before, request) {
                (Some(before), _) => before,
                (None, StopRequest::AfterTick) => StopReason::Drained,
                (None, StopRequest::Graceful(n) | StopRequest::Now(n)) => StopReason::Interrupted(n),
            };
            assert_eq!(reason, wanted, "{what}");
            assert!(bench.m.state.open.is_none(), "{what}: a tick is left open");
            let exits = usize::from(phase != "booting");
            assert_eq!(bench.exits().len(), exits, "{what}: one exit record, unless the run never began");
            let tells = |e: &&Effect| matches!(e, Effect::FinishRun);
            assert_eq!(bench.effects.iter().filter(tells).count(), 1, "{what}");
            assert_eq!(bench.m.stop, None, "{what}");
            let ticks = match phase {
                "cooling-down" => 2,
                "stopped" => 3,
                "proving" | "reaping" | "starting" | "running" | "harvesting" | "correcting"
                | "refreshing" => 1,
                _ => 0,
            };
            assert_eq!(bench.ticks().len(), ticks, "{what}: no new turn begins");
            assert!(bench.m.state.peers.values().all(|p| p.state == PeerState::Healthy), "{what}");
        }
    }
}

#[test]
fn the_more_urgent_request_wins_and_the_first_signal_names_the_exit() {
    use StopRequest::{AfterTick, Graceful, Now};
    let cases: [(&[StopRequest], StopReason, bool); 8] = [
        (&[AfterTick, Graceful(15)], StopReason::Interrupted(15), false),
        (&[Graceful(15), AfterTick], StopReason::Interrupted(15), false),
        (&[Graceful(2), Now(2)], StopReason::Interrupted(2), true),
        (&[Graceful(2), Now(15)], StopReason::Interrupted(2), true),
        (&[Graceful(2), Graceful(15)], StopReason::Interrupted(2), false),
        (&[Graceful(15), Graceful(2)], StopReason::Interrupted(15), false),
        (&[Now(2), Now(15)], StopReason::Interrupted(2), true),
        (&[Now(1), Graceful(15), AfterTick], StopReason::Interrupted(1), true),
    ];
    for (requests, reason, killed) in cases {
        let mut bench = in_phase("running");
        for request in requests {
            bench.stop(*request);
        }
        assert_eq!(has(&bench, 0, |e| matches!(e, Effect::EndPeer { now: true })), killed, "{requests:?}");
        assert_eq!(bench.finish(), reason, "{requests:?}");
        let signal = bench.exits()[0].signal;
        let StopReason::Interrupted(named) = reason else { panic!("all cases are signals") };
        assert_eq!(signal, Some(named), "{requests:?}");
    }
}

#[test]
fn a_drained_loop_still_records_the_verdicts_of_its_last_tree() {
    let mut bench = in_phase("judging");
    bench.stop(StopRequest::AfterTick);
    bench.finish();
    assert!(bench.m.state.board.gates.values().all(|g| g.last.is_some()));
}

#[test]
fn answers_that_come_after_the_end_change_nothing() {
    for phase in ["judging", "proving", "surveying", "composing"] {
        let mut bench = in_phase(phase);
        bench.stop(StopRequest::Now(15));
        let (state, reason) = (bench.m.state.clone(), bench.stopped());
        while bench.has_answers() {
            bench.advance();
        }
        assert_eq!((&bench.m.state, bench.stopped()), (&state, reason), "{phase}");
    }
}

#[test]
fn a_run_goes_on_where_an_interrupted_one_stopped() {
    for phase in PHASES {
        let mut bench = in_phase(phase);
        bench.stop(StopRequest::Graceful(15));
        bench.finish();
        let before = bench.ticks().len();
        bench.cfg.max_ticks = Some(2);
        let reason = bench.run();
        assert!(matches!(reason, StopReason::MaxTicks | StopReason::Complete), "{phase}: {reason}");
        let numbers: Vec<u64> = bench.ticks().iter().map(|t| t.iteration.0).collect();
        assert_eq!(numbers, (1..=u64::try_from(numbers.len()).unwrap()).collect::<Vec<_>>(), "{phase}");
        assert!(numbers.len() > before || reason == StopReason::Complete, "{phase}");
    }
}
