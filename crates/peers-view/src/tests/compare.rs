//! Loops and runs side by side.

use super::*;
use serde_json::Value as Json;

use super::hostile::EVIL;
use crate::Value;

/// Two runs: one of three ticks that stops at its cap, one that converges.
fn world() -> World {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |tick| {
        fail(tick, TickOutcome::NoHandoff);
    });
    world.tick(3, "claude", |tick| {
        fail(tick, TickOutcome::PeerFailed);
        tick.classification = "idle-timeout".into();
        tick.exit.usage = Usage::default();
        tick.peer_state_after = "degraded".into();
    });
    world.gates(3, vec![judged("tests-pass", 'b', Verdict::Pass)]);
    world.exit(StopReason::MaxTicks, "");
    world.another_run("00000000000000bb");
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
    world.another_run("00000000000000cc");
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
    world.another_run("00000000000000cc");
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
fn a_run_is_named_by_the_beginning_of_its_id_where_only_one_begins_so() {
    let world = world();
    let named = |text: &str| run_named(&mut world.disk(), text).unwrap().map(|id| id.to_string());
    assert_eq!(named("00000000000000bb").as_deref(), Some("00000000000000bb"));
    assert_eq!(named("00000000000000b").as_deref(), Some("00000000000000bb"));
    assert_eq!((named("0000"), named(""), named("f")), (None, None, None));
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

#[test]
fn a_run_counts_by_itself_and_a_loop_with_all_of_its_runs_each_measured_by_the_first() {
    let world = world();
    let bugs = Counts { open: OpenBugs { med: 1, ..OpenBugs::default() }, blocking: 1 };
    let inputs = [
        input("first", None, measured(&world, Some("00000000000000aa"))),
        input("second", None, measured(&world, Some("00000000000000bb")).with_bugs(Some(bugs), Some(4))),
        input("all", None, measured(&world, None)),
    ];
    let comparison = compare(&inputs);
    let row = comparison.rows.iter().find(|row| row.key == "bugs").unwrap();
    assert_eq!((row.values[1].clone(), &row.deltas[..]), (Some(number(4.0)), &[None; 3][..]));
    // What was set back was used all the same.
    insta::assert_snapshot!(compare_text(&comparison, Colour::Plain));
    let none = RunId::new("00000000000000cc").unwrap();
    assert_eq!(Measured::read(&mut world.disk(), Some(&none)).unwrap(), None);
}
