//! Loops and runs side by side.

use peers_core::bugs::{Counts, OpenBugs};
use peers_model::outcome::{StopReason, Usage};
use peers_model::record::{OperatorOp, TickOutcome};
use peers_model::verdict::Verdict;
use peers_model::{RunId, Timestamp, Tokens, Usd};
use serde_json::{Value as Json, json};

use super::hostile::EVIL;
use super::{World, is_harmless, judged, operator, rules, squeezed};
use crate::{
    Colour, CompareInput, Comparison, FleetWarning, Measured, Value, compare, compare_csv, compare_json,
    compare_text, run_named,
};

/// Two runs: one of three ticks that stops at its cap, one that converges.
fn world() -> World {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |tick| {
        (tick.outcome, tick.success) = (TickOutcome::NoHandoff, false);
    });
    world.tick(3, "claude", |tick| {
        (tick.outcome, tick.success) = (TickOutcome::PeerFailed, false);
        tick.classification = "idle-timeout".into();
        tick.exit.usage = Usage::default();
        tick.peer_state_after = "degraded".into();
    });
    world.gates(3, vec![judged("tests-pass", 'b', Verdict::Pass)]);
    world.exit(StopReason::MaxTicks, "");
    world.run = RunId::new("00000000000000bb").unwrap();
    world.start(rules());
    world.append(operator(OperatorOp::BudgetReset));
    for tick in 4..=7 {
        world.tick(tick, "codex", |tick| tick.product_change = tick.iteration.0 == 4);
    }
    world.exit(StopReason::Complete, "");
    world
}

#[test]
fn one_that_did_not_complete_has_not_converged_however_clean_it_is() {
    let mut world = world();
    world.run = RunId::new("00000000000000cc").unwrap();
    world.start(rules());
    world.tick(8, "codex", |_| {});
    world.exit(StopReason::MaxTicks, "");
    let all = measured(&world, None);
    assert!(all.clean >= 3, "{all:?}");
    assert_eq!(all.ticks_to_convergence, None);
}

#[test]
fn clean_ticks_of_a_run_are_its_own_though_those_before_count_for_the_loop() {
    let mut world = world();
    let before = measured(&world, None).clean;
    world.run = RunId::new("00000000000000cc").unwrap();
    world.start(rules());
    world.tick(8, "codex", |_| {});
    world.exit(StopReason::Complete, "");
    assert_eq!(measured(&world, None).clean, before + 1);
    assert_eq!(measured(&world, Some("00000000000000cc")).clean, 1);
    assert_eq!(measured(&world, Some("00000000000000bb")).clean, 4);
    assert_eq!(measured(&world, Some("00000000000000aa")).clean, 0, "its last tick failed");
}

fn measured(world: &World, run: Option<&str>) -> Measured {
    let run = run.map(|run| RunId::new(run).unwrap());
    Measured::read(&mut world.disk(), run.as_ref()).unwrap().unwrap()
}

fn input(name: &str, group: Option<&str>, measured: Measured) -> CompareInput {
    CompareInput { name: name.into(), group: group.map(str::to_owned), measured }
}

fn value(comparison: &Comparison, key: &str) -> Vec<Option<Value>> {
    comparison.rows.iter().find(|row| row.key == key).unwrap().values.clone()
}

fn number(n: f64) -> Value {
    Value::Number(n)
}

#[test]
fn a_run_counts_by_itself_and_a_loop_with_all_of_its_runs() {
    let world = world();
    let first = measured(&world, Some("00000000000000aa"));
    assert_eq!((first.iterations, first.success, first.no_handoff), (3, 1, 1));
    assert_eq!((first.idle_timeouts, first.api_errors, first.degraded), (1, 0, 1));
    assert_eq!((first.runtime_ms, first.wasted_ms), (540_100, 360_000));
    assert_eq!(
        (first.tokens, first.usd, first.at_least.usd),
        (Some(Tokens(3000)), Some(Usd::from_micros(1_000_000)), true)
    );
    assert_eq!((first.stop.clone(), first.ticks_to_convergence), (Some(StopReason::MaxTicks), None));
    let second = measured(&world, Some("00000000000000bb"));
    assert_eq!((second.iterations, second.runtime_ms, second.at_least.usd), (4, 720_000, false));
    assert_eq!(second.stop, Some(StopReason::Complete));
    let all = measured(&world, None);
    assert_eq!((all.iterations, all.runtime_ms), (7, 1_260_100), "what was set back was used all the same");
    assert_eq!(all.stop, Some(StopReason::Complete));
    let none = RunId::new("00000000000000cc").unwrap();
    assert_eq!(Measured::read(&mut world.disk(), Some(&none)).unwrap(), None);
}

#[test]
fn ticks_until_convergence_are_those_before_the_streak_that_it_ended_with() {
    let world = world();
    let all = measured(&world, None);
    // The streak of clean ticks is as long as asked for, at least.
    assert!(all.clean >= 3, "{all:?}");
    assert_eq!(all.ticks_to_convergence, Some(5));
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id_where_only_one_begins_so() {
    let world = world();
    let named = |text: &str| run_named(&mut world.disk(), text).unwrap().map(|id| id.to_string());
    assert_eq!(named("00000000000000bb").as_deref(), Some("00000000000000bb"));
    assert_eq!(named("00000000000000b").as_deref(), Some("00000000000000bb"));
    assert_eq!((named("0000"), named(""), named("f")), (None, None, None));
}

#[test]
fn each_column_is_measured_by_the_first_and_the_unknown_stays_unknown() {
    let world = world();
    let bugs = Counts { open: OpenBugs { med: 1, ..OpenBugs::default() }, blocking: 1 };
    let inputs = [
        input("a@00000000000000aa", None, measured(&world, Some("00000000000000aa"))),
        input(
            "a@00000000000000bb",
            None,
            measured(&world, Some("00000000000000bb")).with_bugs(Some(bugs), Some(4)),
        ),
    ];
    let comparison = compare(&inputs);
    let row = comparison.rows.iter().find(|row| row.key == "iterations").unwrap();
    assert_eq!(
        (row.values.clone(), row.deltas.clone()),
        (vec![Some(number(3.0)), Some(number(4.0))], vec![Some(0.0), Some(1.0)])
    );
    let row = comparison.rows.iter().find(|row| row.key == "bugs").unwrap();
    assert_eq!((row.values.clone(), row.deltas.clone()), (vec![None, Some(number(4.0))], vec![None, None]));
    let text = squeezed(&compare_text(&comparison, Colour::Plain));
    for line in [
        "a@00000000000000aa a@00000000000000bb",
        "iterations 3 4 (+1)",
        "runtime 9m 12m (+2m 59s)",
        "wasted 6m 0s (-6m)",
        "tokens 3,000+ 6,000 (+3,000)",
        "usd $1.00+ $2.00 (+$1.00)",
        "bugs ? 4",
        "stop max_ticks complete",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} in {text}");
    }
}

#[test]
fn those_of_one_group_become_their_median() {
    let of =
        |iterations: u64, stop: StopReason| Measured { iterations, stop: Some(stop), ..Measured::default() };
    let inputs = [
        input("x", None, of(10, StopReason::Complete)),
        input("a", Some("g"), of(1, StopReason::MaxTicks)),
        input("y", None, of(20, StopReason::Complete)),
        input("b", Some("g"), of(100, StopReason::Complete)),
        input("c", Some("g"), of(5, StopReason::MaxTicks)),
        input("d", Some("h"), of(2, StopReason::Complete)),
        input("e", Some("h"), of(5, StopReason::Complete)),
    ];
    let comparison = compare(&inputs);
    let names: Vec<&str> = comparison.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["x", "g", "y", "h"]);
    assert_eq!(comparison.columns[1].members, ["a", "b", "c"]);
    assert_eq!(
        value(&comparison, "iterations"),
        [Some(number(10.0)), Some(number(5.0)), Some(number(20.0)), Some(number(3.5))]
    );
    assert_eq!(value(&comparison, "stop")[1], Some(Value::Text("max_ticks".into())));
    assert!(compare_text(&comparison, Colour::Plain).contains("g (median of 3)"));
}

#[test]
fn programs_get_numbers_and_null() {
    let world = world();
    let inputs = [input("a", None, measured(&world, None)), input(EVIL, None, Measured::default())];
    let comparison = compare(&inputs);
    let left_out =
        FleetWarning { code: "unreadable".into(), message: EVIL.into(), project: Some("b".into()) };
    let text = compare_json(&comparison, &[left_out], Timestamp::from_millis(0));
    assert!(is_harmless(&text) && is_harmless(&compare_text(&comparison, Colour::Plain)));
    let value: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "peers-ctl.compare/1");
    assert_eq!(value["data"]["columns"][1]["name"], EVIL);
    assert_eq!(value["warnings"], json!([{"code": "unreadable", "message": EVIL, "project": "b"}]));
    assert_eq!(
        value["data"]["rows"][5],
        json!({"key": "usd", "unit": "usd", "values": [3.0, null], "at_least": [true, false], "deltas": [0.0, null]})
    );
    let csv = compare_csv(&comparison);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 1 + 21 + 1);
    assert!(lines[0].starts_with("measure,unit,a,"), "{}", lines[0]);
    assert!(lines[0].contains(",a (at least),"), "{}", lines[0]);
    assert_eq!(lines[6], "usd,usd,3,,,true,false");
    assert_eq!(lines[1], "iterations,count,7,0,-7,false,false");
    assert!(is_harmless(&csv.replace('\r', "")));
}
