//! What the controller goes by, whatever agents write where they can write.

use serde_json::json;

use crate::ctl_fleet::{Fleet, carrying, controller, hold, send};
use crate::support::{Ended, heard};

/// The same with another registry of the same user.
fn other(fleet: &Fleet, args: &[&str]) -> Ended {
    let mut command = fleet.command(controller());
    command.arg("--config-dir").arg(fleet.path("other")).args(args);
    Ended::of(&command.output().unwrap())
}

/// A loop that was killed, whose turn hangs.
fn kill(fleet: &Fleet) {
    let pid = fleet.row("demo")["pid"].as_u64().unwrap();
    send(u32::try_from(pid).unwrap(), "KILL");
    fleet.ctl(&["wait", "--timeout", "2m"]);
    assert_eq!(fleet.row("demo")["state"], "crashed");
}

#[test]
fn caps_are_counted_from_what_was_accepted_and_a_refused_start_sets_none() {
    let fleet = Fleet::hanging();
    fleet.configured("budget:\n  max_runtime_s: 3600\n  max_usd: 10\n");
    fleet.start(&[]);
    heard(&fleet.path("pipe"));
    fleet.write(
        ".peers/config.yaml",
        &fleet.config("budget:\n  max_runtime_s: 9000000\n  max_usd: 90000\n"),
    );
    let done = fleet.ctl(&["budget", "raise", "--runtime", "+1h", "--usd", "+5"]).exits(0);
    assert!(
        done.out.contains("`budget.max_runtime_s` is 2h, `budget.max_usd` is $15.00 until "),
        "{}",
        done.out
    );
    fleet.ctl(&["stop"]).exits(0);
    let said = || fleet.records("operator").len();
    let before = said();
    for args in [&["--max-runtime", "+1h"][..], &["--reset-budget"], &["--max-runtime", "+1h", "--force"]] {
        let done = fleet.ctl(&[&["start"], args].concat()).exits(5);
        assert!(done.err.contains("config.yaml changed since it was accepted"), "{}", done.err);
    }
    // What the loop did not take before it ended is all that was recorded.
    assert_eq!(fleet.records("operator").iter().filter(|r| r["op"] == "budget-set").count(), 1);
    assert!(said() <= before + 1);
    // A cap that is reached at once is not set either.
    fleet.configured("budget:\n  max_runtime_s: 3600\n");
    let before = said();
    fleet.start(&["--max-runtime", "3h"]);
    heard(&fleet.path("pipe"));
    assert_eq!(said(), before + 1);
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn of_a_second_crash_somebody_is_told_though_nobody_looked_in_between() {
    let fleet = Fleet::hanging();
    let once = || fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    for _ in 0..2 {
        fleet.start(&[]);
        heard(&fleet.path("pipe"));
        kill(&fleet);
        let said = once();
        assert!(said.contains(" act          demo: crashed"), "{said}");
        assert_eq!(once(), "");
    }
}

#[test]
fn what_changed_names_its_project_once() {
    let fleet = Fleet::hanging();
    let pid = fleet.start(&[])["pid"].as_u64().unwrap();
    heard(&fleet.path("pipe"));
    send(u32::try_from(pid).unwrap(), "KILL");
    while fleet.locked() {
        std::thread::yield_now();
    }
    let said = fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    assert!(said.contains(" state        demo: running -> crashed (killed): run "), "{said}");
}

#[test]
fn a_loop_that_was_killed_by_a_stop_is_stopped_for_every_registry() {
    let fleet = Fleet::hanging();
    other(&fleet, &["add", ".", "--name", "same"]).exits(0);
    other(&fleet, &["start", "same", "--restart", "on-crash"]).exits(0);
    heard(&fleet.path("pipe"));
    let pid = u32::try_from(fleet.row("demo")["pid"].as_u64().unwrap()).unwrap();
    send(pid, "STOP");
    let done = fleet.ctl(&["stop", "--now"]).exits(0);
    assert!(done.out.starts_with("killed demo (run "), "{}", done.out);
    let record = &fleet.runs()[0];
    let told = ["reason", "signal", "exit_code"].map(|key| record[key].clone());
    assert_eq!(told, [json!("interrupted"), json!(9), json!(137)], "{record}");
    let said = other(&fleet, &["watch", "--once"]).exits(0).out;
    assert!(said.contains("running -> stopped (operator): run ") && !said.contains("restarted"), "{said}");
    let registry = std::fs::read_to_string(fleet.path("other/projects.json")).unwrap();
    let registry: serde_json::Value = serde_json::from_str(&registry).unwrap();
    let project = &registry["projects"][0];
    assert_eq!((&project["state"], &project["outcome"]), (&json!("stopped"), &json!("operator")));
    // Every view says the same, and the turn that was open is taken up.
    let said = fleet.ctl(&["status"]).exits(0).out;
    assert!(!said.contains("crashed") && said.contains("its operator had it killed"), "{said}");
    let said = fleet.peers(&["status"]).exits(0).out;
    assert!(!said.contains("crashed") && said.contains("its operator had it killed"), "{said}");
    fleet.script("ann", "after: repeat\nturns:\n- - handoff: Again\n");
    fleet.ctl(&["start", "--max-ticks", "1"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
    assert_eq!(fleet.records("tick")[0]["recovered"], true);
}

#[test]
fn a_lock_that_an_agent_holds_hides_no_crash_and_keeps_nothing_alive() {
    let fleet = Fleet::hanging();
    let announce = format!("echo up > {}", fleet.path("pipe").display());
    let turn = json!([{"fork": {"what": "setsid"}}, {"shell": announce}, {"hang": "sleep"}]);
    fleet.script("ann", &json!({"turns": [turn]}).to_string());
    let row = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    let run = format!("PEERS_RUN_ID={}", row["run_id"].as_str().unwrap());
    let me = std::process::id();
    for content in [json!({"pid": me}), json!({"pid": me, "command": "land"})] {
        let _held = hold(&fleet.at(".peers/run.lock"), &content);
        let said = fleet.ctl(&["dashboard"]).exits(0).out;
        assert!(said.contains("somebody holds `.peers/run.lock`") && !said.contains("land"), "{said}");
    }
    send(u32::try_from(row["pid"].as_u64().unwrap()).unwrap(), "KILL");
    while fleet.locked() {
        std::thread::yield_now();
    }
    let held = hold(&fleet.at(".peers/run.lock"), &json!({"pid": me, "command": "land"}));
    assert!(!carrying(&run).is_empty());
    assert_eq!(fleet.row("demo")["state"], "crashed");
    assert!(carrying(&run).is_empty(), "what it left is ended");
    let said = fleet.ctl(&["dashboard"]).exits(0).out;
    assert!(said.contains("crashed") && !said.contains("running") && !said.contains("land"), "{said}");
    fleet.ctl(&["wait", "--for", "attention", "--timeout", "1m"]).exits(0);
    let said = fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    assert!(said.contains(" act          demo: crashed"), "{said}");
    let pid = me.to_string();
    let said = fleet.ctl(&["status"]);
    assert!(said.out.contains("somebody holds `.peers/run.lock`") && !said.out.contains(&pid), "{}", said.out);
    let way = format!("fuser -v {}", fleet.at(".peers/run.lock").display());
    let done = fleet.ctl(&["start"]).exits(4);
    assert!(done.err.contains(&way) && !done.err.contains(&pid), "{}", done.err);
    let done = fleet.ctl(&["stop"]).exits(0);
    assert!(done.out.starts_with("demo: no loop runs; ") && done.out.contains(&way), "{}", done.out);
    let done = fleet.peers(&["doctor"]);
    assert!(done.out.contains("somebody holds `.peers/run.lock`"), "{}", done.out);
    drop(held);
    fleet.script("ann", "after: repeat\nturns:\n- - handoff: Again\n");
    fleet.ctl(&["start", "--max-ticks", "1"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn a_control_directory_that_leads_elsewhere_hides_no_crash() {
    let fleet = Fleet::hanging();
    let row = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    send(u32::try_from(row["pid"].as_u64().unwrap()).unwrap(), "KILL");
    while fleet.locked() {
        std::thread::yield_now();
    }
    let (peers, aside) = (fleet.at(".peers"), fleet.path("aside"));
    std::fs::rename(&peers, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &peers).unwrap();
    let done = fleet.ctl(&["stop"]).exits(0);
    assert!(done.out.starts_with("demo: its loop has ended already"), "{}", done.out);
    assert_eq!(fleet.row("demo")["state"], "crashed");
    fleet.is_quiet();
}
