//! Ticks in a row: clean ones, and red gates.

use peers_core::machine::Phase;
use peers_core::state::State;
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::{Record, TickStarted};
use peers_model::step::CourseMoved;
use peers_model::verdict::Place;
use peers_model::{TickNo, Usd};

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, goal, handoff_text};

fn report(severity: &str) -> String {
    let block =
        format!("## Bug-Report\n{{\"id\": \"B1\", \"severity\": \"{severity}\", \"title\": \"t\"}}\n\n");
    handoff_text(&block, "Bug-Report: B1\n")
}

/// The clean counter after two clean ticks and this turn.
fn after(turn: Turn, dry_run: bool) -> u32 {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.plays([Turn::handoff("one"), Turn::handoff("two")]);
    assert_eq!(bench.m.state.clean_ticks, 2);
    bench.cfg.rules.dry_run = dry_run;
    bench.cfg.max_ticks = Some(1);
    bench.plays([turn]);
    assert_eq!(bench.ticks().len(), 3);
    bench.m.state.clean_ticks
}

#[test]
fn row_55_what_counts_as_a_clean_tick() {
    assert_eq!(after(Turn::handoff("three"), false), 3);
    for harmless in ["info", "low"] {
        assert_eq!(after(Turn::commit("three", &report(harmless)), false), 3, "{harmless}");
    }
    for blocking in ["med", "high", "crit", "no such severity"] {
        assert_eq!(after(Turn::commit("three", &report(blocking)), false), 0, "{blocking}");
    }
    for flag in ["weak-fix: B0", "Shallow-Fix: B0"] {
        let text = handoff_text("", &format!("Bug-Report: {flag}\n"));
        assert_eq!(after(Turn::commit("three", &text), false), 0, "{flag}");
    }
    assert_eq!(after(Turn::nothing(), false), 0, "a failed tick");
    assert_eq!(after(Turn::handoff("three"), true), 2, "a dry run");
    assert_eq!(after(Turn::commit("three", &report("high")), true), 2, "a dry run that reports");
}

#[test]
fn row_55_neutral_ticks_and_empty_handoffs_neither_count_nor_reset() {
    assert_eq!(after(Turn::fails(ExitClass::Nonzero, ApiClass::Transient), false), 2, "rate-limited");
    assert_eq!(after(Turn::fails(ExitClass::Interrupted, ApiClass::None), false), 2, "interrupted");
    assert_eq!(after(Turn::says("", ""), false), 2, "changed nothing, looked at nothing");
    assert_eq!(after(Turn::says("## Review\nread all of it\n\n", ""), false), 3, "a review is evidence");
    assert_eq!(after(Turn::skeptic(), false), 3, "so is a skeptic's section");
}

fn watched(threshold: u32) -> Bench {
    let mut bench = Bench::new("ann bob");
    bench.cfg.stuck_after = threshold;
    bench.cfg.stuck_gates = vec![goal("tests-pass")];
    bench
}

#[test]
fn row_56_a_gate_that_is_red_for_five_ticks_stops_after_exactly_five() {
    for habit in [Habit::Busy, Habit::Empty] {
        let mut bench = watched(5);
        bench.habit = habit;
        let reason = bench.run();
        assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("stuck:tests-pass", 11));
        assert_eq!(bench.ticks().len(), 5, "{habit:?}");
        assert_eq!(bench.exits()[0].detail, "it is red");
    }
}

#[test]
fn row_77_a_step_that_is_checked_off_is_progress_whatever_is_red() {
    let mut bench = watched(5).up_to(4);
    bench.habit = Habit::Busy;
    assert_eq!(bench.run(), StopReason::MaxTicks);
    let reds = |state: &State| state.board.gates[&goal("tests-pass")].reds;
    for (checked_off, due) in [(false, 4), (true, 0)] {
        let mut state = bench.m.state.clone();
        let started = TickStarted { tick: TickNo(5), ..(*bench.started().last().unwrap()).clone() };
        let mut tick = (*bench.ticks().last().unwrap()).clone();
        (tick.iteration, tick.peer) = (TickNo(5), started.peer.clone());
        tick.verdicts.clear();
        tick.course = Some(Box::new(CourseMoved { checked_off, ..CourseMoved::default() }));
        for record in [Record::TickStarted(Box::new(started)), Record::Tick(Box::new(tick))] {
            state.apply(bench.now, None, &record).unwrap();
        }
        assert_eq!(reds(&state), due, "{checked_off}");
    }
}

#[test]
fn row_56_a_gate_that_nobody_watches_never_stops() {
    let mut bench = watched(5);
    bench.cfg.stuck_gates = vec![goal("another")];
    assert_eq!(bench.run(), StopReason::MaxTicks);
}

#[test]
fn row_56_ticks_that_count_for_nobody_are_no_ticks_of_a_streak() {
    let neutral: [fn() -> Turn; 2] = [
        || Turn::fails(ExitClass::Nonzero, ApiClass::Transient),
        || Turn::fails(ExitClass::Interrupted, ApiClass::None),
    ];
    for turn in neutral {
        let mut bench = watched(3);
        bench.play((0..6).map(|_| turn()));
        bench.play([Turn::says("", "")]);
        bench.play((0..2).map(|_| turn()));
        assert_eq!(bench.run(), StopReason::StuckGate(goal("tests-pass")));
        assert_eq!(bench.ticks().len(), 11, "three of them could work");
    }
}

#[test]
fn row_56_a_green_in_between_starts_the_count_anew() {
    let mut bench = watched(3);
    bench.gate("tests-pass", Gate::At("green"));
    // Another gate keeps the loop from converging.
    bench.gate("lint-clean", Gate::Red);
    let turns = ["a", "b", "green", "c", "d", "e", "f"];
    bench.play(turns.map(Turn::handoff));
    assert_eq!(bench.run(), StopReason::StuckGate(goal("tests-pass")));
    assert_eq!(bench.ticks().len(), 6, "red, red, green, red, red, red");
}

#[test]
fn row_56_a_restart_measures_its_own_streak() {
    let mut bench = watched(5);
    assert_eq!(bench.run(), StopReason::StuckGate(goal("tests-pass")));
    assert_eq!(bench.run(), StopReason::StuckGate(goal("tests-pass")));
    assert_eq!(bench.ticks().len(), 10, "five more, not none");
}

#[test]
fn row_56_could_not_judge_is_counted_apart_and_stops_after_three() {
    let mut bench = watched(1);
    bench.gate("tests-pass", Gate::Cannot);
    let reason = bench.run();
    assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("unjudged:tests-pass", 3));
    assert_eq!(bench.ticks().len(), 2, "at the start and after two ticks");
    assert_eq!(bench.m.state.board.gates.get(&goal("tests-pass")).unwrap().reds, 0);
    assert_eq!(bench.exits()[0].detail, "no tool");
}

#[test]
fn row_56_a_tool_that_was_mended_is_noticed_before_the_first_turn() {
    for broken in [Gate::Cannot, Gate::Red] {
        let mut bench = Bench::green().up_to(1);
        bench.gate("tests-pass", broken);
        bench.plays([Turn::nothing()]);
        bench.gate("tests-pass", Gate::Green);
        bench.cfg.max_ticks = Some(2);
        assert_eq!(bench.run(), StopReason::Complete);
        assert!(bench.started()[1].skeptic, "{broken:?}: nothing else was left to do");
    }
}

#[test]
fn what_was_measured_after_a_handoff_while_the_tree_moved_is_measured_again() {
    let mut bench = Bench::bare("ann bob");
    bench.gate("tests-pass", Gate::At("good"));
    bench.habit = Habit::Good("good");
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Running { .. }));
    bench.world.restless = 1;
    bench.until(|b| b.ticks().len() == 1);
    assert!(bench.tick(1).verdicts.is_empty());
    let runs = bench.judged(Place::Live).len();
    assert_eq!(bench.finish(), StopReason::Complete);
    assert!(bench.judged(Place::Live).len() > runs);
}

#[test]
fn no_gate_runs_twice_at_the_same_tree_in_the_same_tick() {
    let mut bench = Bench::converging();
    bench.gate("lint-clean", Gate::Green);
    assert_eq!(bench.run(), StopReason::Complete);
    let runs = bench.judged(Place::Live);
    for (i, (gates, key)) in runs.iter().enumerate() {
        for (earlier, at) in runs.iter().take(i) {
            assert!(
                at != key || !earlier.iter().any(|g| gates.contains(g)),
                "{gates:?} ran again at {key:?}"
            );
        }
    }
}

#[test]
fn what_a_turn_used_is_added_up_and_the_unknown_is_counted() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.plays([
        Turn::says("", "").uses(Some(5), Some(Usd::from_micros(7))),
        Turn::says("", "").uses(None, None),
        Turn::says("", "").uses(Some(1), None),
    ]);
    let spent = &bench.m.state.spent;
    assert_eq!((spent.tokens.0, spent.usd.as_micros(), spent.unknown_usage), (6, 7, 1));
    assert_eq!(bench.tick(3).spent_tokens_total.0, 6);
}
