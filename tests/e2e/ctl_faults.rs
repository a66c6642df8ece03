//! A controller that is killed in the middle: the next one tells the truth, and nothing is orphaned.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, carrying, controller, lives, pid_in, send, told};
use crate::support::heard;

/// Every place where a controller can be told to die, from its source.
fn points() -> Vec<&'static str> {
    let source = include_str!("../../crates/peers-fleet/src/fault.rs");
    let list = source.split_once("POINTS: ").unwrap().1;
    let names: Vec<&str> =
        list.split('"').filter(|name| name.starts_with("start.") || name.starts_with("stop.")).collect();
    assert!(list.starts_with(&format!("[&str; {}]", names.len())));
    names
}

/// Turns that start processes of their own, and never end.
fn world() -> Fleet {
    let fleet = Fleet::hanging();
    let announce = format!("echo up > {}", fleet.path("pipe").display());
    let turn = json!([{"fork": {"what": "setsid"}}, {"fork": {"what": "daemon"}}, {"shell": announce}, {"hang": "sleep"}]);
    fleet.scripts(&json!({"after": "repeat", "turns": [turn]}).to_string());
    fleet
}

/// `peers-ctl ARGS`, which dies at this place.
#[track_caller]
fn dies(fleet: &Fleet, point: &str, args: &[&str]) {
    let mut command = fleet.command(controller());
    command.args(args).env("PEERS_CTL_FAULT", point).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().unwrap();
    assert_eq!(status.signal(), Some(9), "{point}: {status}");
}

/// The processes of the runs that have begun and not ended, by their records.
fn loops(fleet: &Fleet) -> Vec<u32> {
    let all = fleet.runs().into_iter().filter(|run| run["ended_at"].is_null());
    all.map(|run| pid_in(&run)).filter(|pid| lives(*pid)).collect()
}

/// What `list` says is what the lock and the system say.
#[track_caller]
fn truth(fleet: &Fleet, point: &str) -> Value {
    let (held, row) = (fleet.locked(), fleet.row("demo"));
    assert_eq!(row["state"] == "running", held, "{point}: {row}");
    if held {
        let run = row["run_id"].as_str().unwrap_or_else(|| panic!("{point}: {row}"));
        assert_eq!(row["phase"], "up", "{point}: {row}");
        // The loop itself has it on its command line, from the first instant on.
        assert!(!carrying(run).is_empty(), "{point}: {row}");
    } else {
        assert_eq!((&row["pid"], &row["phase"]), (&Value::Null, &Value::Null), "{point}: {row}");
        let left: Vec<String> = fleet.alive().into_iter().map(told).collect();
        assert!(left.is_empty(), "{point}: {row}: {left:#?}");
    }
    row
}

/// A loop comes, or runs: exactly one. Then it is stopped, and nothing is left.
#[track_caller]
fn goes_on(fleet: &Fleet, point: &str, was_heard: bool) {
    let running = fleet.locked();
    let again = fleet.ctl(&["start"]);
    assert_eq!(again.code, Some(if running { 4 } else { 0 }), "{point}: {}{}", again.out, again.err);
    if !was_heard {
        heard(&fleet.path("pipe"));
    }
    assert_eq!(loops(fleet).len(), 1, "{point}");
    let row = truth(fleet, point);
    assert_eq!(row["pid"], loops(fleet)[0], "{point}: {row}");
    let run = row["run_id"].as_str().unwrap();
    assert_eq!(fleet.records("run-started").pop().unwrap()["run_id"], run, "{point}");
    let done = fleet.ctl(&["stop"]).exits(0);
    assert_eq!(done.out, format!("stopped demo (run {run}): interrupted\n"), "{point}");
    fleet.is_quiet();
    let row = truth(fleet, point);
    assert_eq!((&row["state"], &row["outcome"]), (&"stopped".into(), &"operator".into()), "{point}: {row}");
    fleet.peers(&["state", "check"]).exits(0);
}

#[test]
fn a_start_that_dies_anywhere_leaves_a_loop_that_runs_or_nothing() {
    for point in points().into_iter().filter(|point| point.starts_with("start.")) {
        let fleet = world();
        dies(&fleet, point, &["start", "--max-runtime", "2h"]);
        let begun = ["start.spawned", "start.recorded", "start.ready", "start.done"].contains(&point);
        assert_eq!(fleet.locked(), begun, "{point}");
        let row = truth(&fleet, point);
        assert_eq!(row["state"], if begun { "running" } else { "fresh" }, "{point}: {row}");
        goes_on(&fleet, point, false);
        assert_eq!(fleet.runs().len(), 1, "{point}");
    }
}

#[test]
fn a_start_that_dies_is_found_by_whatever_looks_first() {
    for point in ["start.intent-written", "start.spawned", "start.recorded"] {
        let fleet = world();
        dies(&fleet, point, &["start"]);
        // Nobody looked in between.
        goes_on(&fleet, point, false);
    }
    let fleet = world();
    dies(&fleet, "start.intent-written", &["start"]);
    assert_eq!(fleet.ctl(&["stop"]).exits(0).out, "demo: its loop has ended already\n");
    assert_eq!(truth(&fleet, "stop")["state"], "fresh");
    dies(&fleet, "start.recorded", &["start"]);
    heard(&fleet.path("pipe"));
    fleet.ctl(&["stop"]).exits(0);
    assert_eq!(truth(&fleet, "stop")["outcome"], "operator");
    fleet.is_quiet();
}

#[test]
fn a_stop_that_dies_anywhere_leaves_a_loop_that_runs_or_nothing() {
    for point in points().into_iter().filter(|point| point.starts_with("stop.")) {
        let fleet = world();
        let started = fleet.start(&[]);
        heard(&fleet.path("pipe"));
        let pid = pid_in(&started);
        let hard = ["stop.killed", "stop.swept"].contains(&point);
        if hard {
            assert!(send(pid, "STOP"));
        }
        dies(&fleet, point, if hard { &["stop", "--grace", "0s"] } else { &["stop"] });
        let told = ["stop.op-locked", "stop.intent-written"].contains(&point);
        if !told {
            // What it was sent takes its time.
            fleet.is_gone(pid);
        }
        assert_eq!(lives(pid), told, "{point}");
        let row = if hard {
            // This look ends what is left, too.
            fleet.row("demo");
            truth(&fleet, point)
        } else {
            truth(&fleet, point)
        };
        let (state, outcome) = if told { ("running", Value::Null) } else { ("stopped", "operator".into()) };
        assert_eq!((&row["state"], &row["outcome"]), (&state.into(), &outcome), "{point}: {row}");
        assert_eq!(row["run_id"].is_null(), !told, "{point}: {row}");
        goes_on(&fleet, point, told);
        assert_eq!(fleet.runs().len(), if told { 1 } else { 2 }, "{point}");
    }
}

#[test]
fn a_killed_stop_is_taken_up_by_the_next_command_whichever_that_is() {
    for next in [&["stop"][..], &["start"], &["restart"], &["status"], &["reconcile"]] {
        let fleet = world();
        let started = fleet.start(&[]);
        heard(&fleet.path("pipe"));
        let pid = pid_in(&started);
        assert!(send(pid, "STOP"));
        dies(&fleet, "stop.killed", &["stop", "--grace", "0s"]);
        fleet.is_gone(pid);
        let done = fleet.ctl(next);
        assert_eq!(done.code, Some(0), "{next:?}: {}{}", done.out, done.err);
        let first = started["run_id"].as_str().unwrap();
        if fleet.locked() {
            heard(&fleet.path("pipe"));
        }
        let left: Vec<String> = carrying(&format!("PEERS_RUN_ID={first}")).into_iter().map(told).collect();
        assert!(left.is_empty(), "{next:?}: {left:#?}");
        fleet.ctl(&["stop"]).exits(0);
        fleet.is_quiet();
    }
}
