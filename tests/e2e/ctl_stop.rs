//! `peers-ctl stop`: the right process, nothing left of it, and nobody else.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::ctl_fleet::{
    Fleet, boot_id, carrying, controller, hold, is_locked, lives, pid_in, send, start_time, told,
};
use crate::support::{Ended, heard, holds};

/// A started loop whose turn is up: its row.
fn started(fleet: &Fleet) -> Value {
    let row = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    row
}

fn run_id(row: &Value) -> String {
    row["run_id"].as_str().unwrap_or_else(|| panic!("{row}")).to_owned()
}

#[test]
fn a_loop_that_is_told_to_stop_makes_an_orderly_end() {
    for more in [&[][..], &["--now"]] {
        let fleet = Fleet::hanging();
        let row = started(&fleet);
        let run = run_id(&row);
        // The turn that runs carries the mark of its run.
        assert!(!carrying(&format!("PEERS_RUN_ID={run}")).is_empty());
        let done = fleet.ctl(&[&["stop"], more].concat()).exits(0);
        assert_eq!(done.out, format!("stopped demo (run {run}): interrupted\n"));
        assert!(carrying(&run).is_empty());
        fleet.is_quiet();
        let row = fleet.stands("stopped", "operator");
        let exit = &row["last_exit"];
        holds(exit, &json!({"reason": "interrupted", "signal": 15, "run_id": run}));
        let exit = fleet.records("exit").pop().unwrap();
        assert_eq!(exit["reason"], "interrupted");
        assert_eq!(fleet.records("tick").pop().unwrap()["classification"], "interrupted");
        fleet.peers(&["state", "check"]).exits(0);
    }
}

/// A loop whose turn started three more processes, and none of which ends by itself.
fn with_grandchildren() -> (Fleet, Value) {
    let fleet = Fleet::hanging();
    let announce = format!("echo up > {}", fleet.path("pipe").display());
    let turn = json!([
        {"fork": {"what": "holds-pipe"}}, {"fork": {"what": "setsid"}}, {"fork": {"what": "daemon"}},
        "ignore_term", {"shell": announce}, {"hang": "sleep"}
    ]);
    fleet.script("ann", &json!({"turns": [turn]}).to_string());
    let row = started(&fleet);
    (fleet, row)
}

#[test]
fn one_that_is_hurried_kills_an_agent_that_ignores_signals_and_writes_its_records() {
    let (fleet, row) = with_grandchildren();
    let run = run_id(&row);
    let done = fleet.ctl(&["stop", "--now"]).exits(0);
    assert_eq!(done.out, format!("stopped demo (run {run}): interrupted\n"));
    assert_eq!(fleet.records("exit").pop().unwrap()["signal"], 15);
}

#[test]
fn one_that_does_not_end_is_killed_with_all_that_it_left_and_that_is_said() {
    let (fleet, row) = with_grandchildren();
    let run = run_id(&row);
    assert!(carrying(&format!("PEERS_RUN_ID={run}")).len() >= 4);
    // It cannot answer any signal.
    assert!(send(pid_in(&row), "STOP"));
    let done = fleet.ctl(&["stop", "--grace", "0s"]).exits(0);
    let first = format!("killed demo (run {run}), which did not end by itself; ");
    let rest = done.out.strip_prefix(&first).unwrap_or_else(|| panic!("{}", done.out));
    let count: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(count >= 3 && rest.contains("processes of it ended too"), "{}", done.out);
    assert!(carrying(&run).is_empty(), "{:?}", carrying(&run).into_iter().map(told).collect::<Vec<_>>());
    fleet.is_quiet();
    let row = fleet.stands("stopped", "operator");
    let exit = &row["last_exit"];
    holds(exit, &json!({"reason": "interrupted", "code": 137, "signal": 9}));
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(137);
    // The turn that was open is taken up by the next start.
    fleet.scripts("after: repeat\nturns:\n- - handoff: Again\n");
    fleet.ran(&["--max-ticks", "1"]);
    assert_eq!(fleet.records("tick")[0]["recovered"], true);
}

#[test]
fn one_that_was_killed_by_somebody_else_is_said_to_be_and_what_it_left_is_ended() {
    let (fleet, row) = with_grandchildren();
    let run = run_id(&row);
    fleet.kill(pid_in(&row));
    // Whoever looks first ends it; here that is the stop.
    let done = fleet.ctl(&["stop"]).exits(0);
    assert_eq!(done.out, "demo: its loop has ended already; 3 processes of it ended too\n");
    assert!(carrying(&run).is_empty(), "{:?}", carrying(&run).into_iter().map(told).collect::<Vec<_>>());
    fleet.is_quiet();
    fleet.stands("crashed", "killed");
}

#[test]
fn one_that_does_not_run_is_no_error() {
    let fleet = Fleet::new();
    let before = fleet.registry();
    for more in [&[][..], &["--now"], &["--after-tick"]] {
        let done = fleet.ctl(&[&["stop"], more].concat()).exits(0);
        assert_eq!(done.out, "demo: no loop runs\n");
    }
    let rows = fleet.data("peers-ctl.stop/1", &["stop"], 0);
    assert_eq!(rows[0]["result"], "not-running");
    assert_eq!(fleet.registry(), before);
    // Another command at the lock is no loop, and is left alone.
    let held = fleet.hold_lock(json!({"kind": "command", "command": "land"}));
    let who = held.process.id();
    let done = fleet.ctl(&["stop"]).exits(0);
    assert_eq!(done.out, format!("demo: no loop runs; `peers land` is at work, process {who}\n"));
    assert!(lives(who));
}

#[test]
fn a_turn_comes_to_its_end_where_that_was_asked() {
    let fleet = Fleet::hanging();
    let go = fleet.fifo("go");
    let wait = format!("echo up > {}; read answer < {}", fleet.path("pipe").display(), go.display());
    fleet.script("ann", &json!({"turns": [[{"shell": wait}, {"handoff": "Done in time"}]]}).to_string());
    let run = run_id(&started(&fleet));
    let done = fleet.ctl(&["stop", "--after-tick"]).exits(0);
    let said =
        format!("demo stops after the turn that runs (run {run}); `peers-ctl wait demo` waits for it\n");
    assert_eq!(done.out, said);
    assert_eq!(fleet.row("demo")["state"], "running");
    std::fs::write(&go, "go\n").unwrap();
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
    let row = fleet.row("demo");
    assert_eq!([&row["outcome"], &row["last_exit"]["reason"]], ["operator", "drained"], "{row}");
    assert_eq!(fleet.records("tick").pop().unwrap()["outcome"], "handoff");
    fleet.is_quiet();
}

#[test]
fn a_lock_that_names_somebody_else_gets_nobody_signalled() {
    let fleet = Fleet::new();
    fleet.ran(&["--max-ticks", "1"]);
    let mut stranger = fleet.command("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (who, us) = (stranger.id(), std::process::id());
    let named = |pid: u32| json!({"pid": pid, "starttime": start_time(pid), "boot_id": boot_id(), "kind": "host", "run_id": "0123456789abcdef"});
    let mut without = named(who);
    without.as_object_mut().unwrap().remove("starttime");
    let later = {
        let mut later = named(who);
        later["starttime"] = (start_time(who) + 1).into();
        later
    };
    let elsewhen = {
        let mut elsewhen = named(who);
        elsewhen["boot_id"] = "00000000-0000-0000-0000-000000000000".into();
        elsewhen
    };
    let corpus = [
        named(who),
        without,
        later,
        elsewhen,
        json!({"pid": 1, "starttime": start_time(1), "boot_id": boot_id()}),
        json!({"pid": 0, "starttime": 0, "boot_id": boot_id()}),
        json!({"pid": -1, "starttime": 0, "boot_id": boot_id()}),
        json!({"pid": true}),
        json!({"pid": 99_999_999_999_u64}),
        json!([[[["deep"]]]]),
        json!("no object"),
    ];
    for (nth, content) in corpus.iter().enumerate() {
        let lock = hold(&fleet.store().join("run.lock"), content);
        // Who the lock names is looked at before any option counts: all of them with one content, one with each other.
        let all = [&[][..], &["--now"], &["--after-tick"], &["--grace", "0s"]];
        for more in if nth == 0 { &all[..] } else { &all[nth % 4..=nth % 4] } {
            let done = fleet.ctl(&[&["stop"], *more].concat()).exits(5);
            assert!(done.err.contains("no process was signalled"), "{content}: {}", done.err);
        }
        fleet.ctl(&["restart"]).exits(5);
        assert!(lives(who) && lives(us));
        assert!(is_locked(&fleet.store().join("run.lock")));
        // That somebody has it is true all the same.
        assert_eq!(fleet.row("demo")["state"], "running");
        fleet.ctl(&["start"]).exits(4);
        drop(lock);
    }
    // Once it is free, what stands in it says nothing.
    assert_ne!(fleet.row("demo")["state"], "running");
    fleet.ctl(&["stop"]).exits(0);
    assert!(lives(who));
    drop(stranger.stdin.take());
    assert_eq!(stranger.wait().unwrap().code(), Some(0), "it ended by itself");
}

#[test]
fn a_loop_that_nobody_has_asked_for_its_end_is_over_all_the_same() {
    for signal in ["KILL", "STOP"] {
        let fleet = Fleet::hanging();
        // Started by hand: a child of this process, which waits for it only at the end.
        let mut child = fleet.spawned(&["run"]);
        heard(&fleet.path("pipe"));
        let row = fleet.row("demo");
        assert_eq!((&row["state"], &row["managed"]), (&"running".into(), &false.into()), "{row}");
        let run = run_id(&row);
        assert!(send(child.id(), signal));
        while signal == "KILL" && lives(child.id()) {
            std::thread::yield_now();
        }
        let done = fleet.ctl(&["stop", "--grace", "0s"]).exits(0);
        assert!(!lives(child.id()), "{signal}");
        let row = fleet.row("demo");
        if signal == "STOP" {
            assert!(done.out.starts_with(&format!("killed demo (run {run})")), "{}", done.out);
            assert_eq!((&row["state"], &row["outcome"]), (&"stopped".into(), &"operator".into()), "{row}");
        } else {
            assert_eq!((&row["state"], &row["outcome"]), (&"crashed".into(), &"killed".into()), "{row}");
        }
        assert!(carrying(&format!("PEERS_RUN_ID={run}")).is_empty(), "{signal}");
        assert!(!fleet.locked());
        child.wait().unwrap();
        fleet.is_quiet();
    }
}

#[test]
fn who_stops_a_loop_and_its_own_group_live_on() {
    let (fleet, row) = with_grandchildren();
    let run = run_id(&row);
    assert!(send(pid_in(&row), "STOP"));
    // Whoever carries the mark of the run is of the run, and does not end it.
    let marked = fleet
        .command("sh")
        .args(["-c", "\"$0\" stop --now"])
        .arg(controller())
        .env("PEERS_RUN_ID", &run)
        .output();
    Ended::of(&marked.unwrap()).exits(5).err_has("for the operator alone");
    assert!(lives(pid_in(&row)));
    let mut shell = fleet.command("sh");
    let line = format!("{} stop --grace 0s; echo \"$?, and on\"", controller().display());
    shell.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let done = Ended::waited(child);
    assert_eq!(done.code, Some(0), "{out}{}", done.err);
    assert!(out.contains(&format!("killed demo (run {run})")) && out.ends_with("0, and on\n"), "{out}");
    assert!(carrying(&run).is_empty());
    fleet.is_quiet();
}
