//! What the controller goes by, whatever agents write where they can write.

use serde_json::json;

use crate::ctl_fleet::{Fleet, carrying, controller, hold, pid_in, send};
use crate::support::{Ended, heard, program};

/// The same with another registry of the same user.
fn other(fleet: &Fleet, args: &[&str]) -> Ended {
    let mut command = fleet.command(controller());
    command.arg("--config-dir").arg(fleet.path("other")).args(args);
    Ended::of(&command.output().unwrap())
}

/// A loop that was killed, whose turn hangs.
fn kill(fleet: &Fleet) {
    fleet.kill(pid_in(&fleet.row("demo")));
    assert_eq!(fleet.row("demo")["state"], "crashed");
}

#[test]
fn caps_are_counted_from_what_was_accepted_and_a_refused_start_sets_none() {
    let fleet = Fleet::hanging();
    fleet.accept_config("budget:\n  max_runtime_s: 3600\n  max_usd: 10\n");
    fleet.start(&[]);
    heard(&fleet.path("pipe"));
    fleet.write(".peers/config.yaml", &fleet.config("budget:\n  max_runtime_s: 9000000\n  max_usd: 90000\n"));
    let done = fleet.ctl(&["budget", "raise", "--runtime", "+1h", "--usd", "+5"]).exits(0);
    done.out_has("`budget.max_runtime_s` is 2h, `budget.max_usd` is $15.00 until ");
    fleet.ctl(&["stop"]).exits(0);
    let said = || fleet.records("operator").len();
    let before = said();
    for args in [&["--max-runtime", "+1h"][..], &["--reset-budget"], &["--max-runtime", "+1h", "--force"]] {
        fleet.ctl(&[&["start"], args].concat()).exits(5).err_has("config.yaml changed since it was accepted");
    }
    // What the loop did not take before it ended is all that was recorded.
    assert_eq!(fleet.records("operator").iter().filter(|r| r["op"] == "budget-set").count(), 1);
    assert!(said() <= before + 1);
    // A cap that is reached at once is not set either.
    fleet.accept_config("budget:\n  max_runtime_s: 3600\n");
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
    let row = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    fleet.kill(pid_in(&row));
    let said = fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    assert!(said.contains(" state        demo: running -> crashed (killed): run "), "{said}");
}

#[test]
fn a_loop_that_was_killed_by_a_stop_is_stopped_for_every_registry() {
    let fleet = Fleet::hanging();
    other(&fleet, &["add", ".", "--name", "same"]).exits(0);
    other(&fleet, &["start", "same", "--restart", "on-crash"]).exits(0);
    heard(&fleet.path("pipe"));
    let pid = pid_in(&fleet.row("demo"));
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
    fleet.ctl(&["status"]).exits(0).out_lacks("crashed").out_has("its operator had it killed");
    fleet.peers(&["status"]).exits(0).out_lacks("crashed").out_has("its operator had it killed");
    fleet.script("ann", "after: repeat\nturns:\n- - handoff: Again\n");
    fleet.ran(&["--max-ticks", "1"]);
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
        assert!(said.contains("another process holds `.peers/run.lock`") && !said.contains("land"), "{said}");
    }
    fleet.kill(pid_in(&row));
    let held = hold(&fleet.at(".peers/run.lock"), &json!({"pid": me, "command": "land"}));
    assert!(!carrying(&run).is_empty());
    assert_eq!(fleet.row("demo")["state"], "crashed");
    assert!(carrying(&run).is_empty(), "what it left is ended");
    fleet.ctl(&["dashboard"]).exits(0).out_has("crashed").out_lacks("running").out_lacks("land");
    fleet.ctl(&["wait", "--for", "attention", "--timeout", "1m"]).exits(0);
    fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out_has(" act          demo: crashed");
    let pid = me.to_string();
    fleet.ctl(&["status"]).out_has("another process holds `.peers/run.lock`").out_lacks(&pid);
    let way = format!("fuser -v {}", fleet.at(".peers/run.lock").display());
    fleet.ctl(&["start"]).exits(4).err_has(&way).err_lacks(&pid);
    let done = fleet.ctl(&["stop"]).exits(0);
    assert!(done.out.starts_with("demo: no loop runs; ") && done.out.contains(&way), "{}", done.out);
    fleet.peers(&["doctor"]).out_has("another process holds `.peers/run.lock`");
    drop(held);
    fleet.script("ann", "after: repeat\nturns:\n- - handoff: Again\n");
    fleet.ran(&["--max-ticks", "1"]);
    fleet.is_quiet();
}

#[test]
fn a_control_directory_that_leads_elsewhere_hides_no_crash() {
    let fleet = Fleet::hanging();
    let row = fleet.start(&[]);
    heard(&fleet.path("pipe"));
    fleet.kill(pid_in(&row));
    let (peers, aside) = (fleet.at(".peers"), fleet.path("aside"));
    std::fs::rename(&peers, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &peers).unwrap();
    let done = fleet.ctl(&["stop"]).exits(0);
    assert!(done.out.starts_with("demo: its loop has ended already"), "{}", done.out);
    assert_eq!(fleet.row("demo")["state"], "crashed");
    fleet.is_quiet();
}

/// The commands that change something, about `demo`.
const CHANGES: [&[&str]; 12] = [
    &["budget", "raise", "demo", "--usd", "1000", "--for", "never"],
    &["start", "demo"],
    &["stop", "--all"],
    &["restart", "demo"],
    &["resume", "demo"],
    &["remove", "demo"],
    &["new", "."],
    &["add", ".", "--name", "again"],
    &["registry", "restore", "--yes"],
    &["prune"],
    &["service", "remove"],
    &["watch", "--once"],
];

#[test]
fn nothing_inside_of_a_run_changes_any_project() {
    let fleet = Fleet::new();
    for (name, value) in [("PEERS_IN_TICK", "0123456789abcdef"), ("PEERS_RUN_ID", "0123456789abcdef")] {
        let inside = |args: &[&str]| {
            let mut command = fleet.command(controller());
            Ended::of(&command.args(args).env(name, value).output().unwrap())
        };
        for args in CHANGES {
            let done = inside(args).exits(5);
            let said =
                format!("is for the operator alone, and this call comes from inside a run ({name} is set)");
            assert!(done.err.contains(&said), "{args:?}: {}", done.err);
        }
        for args in [&["list"][..], &["status"], &["dashboard"], &["registry", "check"], &["reconcile"]] {
            inside(args).exits(0);
        }
    }
    assert!(fleet.runs().is_empty());
}

#[test]
fn an_agent_of_one_project_that_drops_its_marks_does_not_command_another() {
    let fleet = Fleet::new();
    fleet.another("other");
    let (pipe, out) = (fleet.fifo("pipe"), fleet.path("out"));
    let call = |rest: &str| format!("env -u PEERS_IN_TICK -u PEERS_RUN_ID {} {rest}", controller().display());
    let config = fleet.path("home/config/peers-ctl");
    let asked = format!(
        "{{ HOME={home} XDG_CONFIG_HOME={home}/config XDG_STATE_HOME={home}/state {call}; echo $?; }} > {out} 2>&1; echo up > {pipe}",
        home = fleet.path("home").display(),
        call = call(&format!("--config-dir {} budget raise other --usd 1000 --for never", config.display())),
        out = out.display(),
        pipe = pipe.display()
    );
    for peer in ["ann", "ben"] {
        let script = json!({"after": "repeat", "turns": [[{"shell": asked}, {"hang": "sleep"}]]});
        fleet.script(peer, &script.to_string());
    }
    fleet.start(&[]);
    heard(&pipe);
    let said = std::fs::read_to_string(&out).unwrap();
    assert!(said.contains("which holds a run lock, started it") && said.ends_with("5\n"), "{said}");
    fleet.ctl(&["stop", "demo"]).exits(0);
    fleet.ctl(&["budget", "raise", "other", "--usd", "1000"]).exits(0);
    assert!(fleet.alive().is_empty());
}

#[test]
fn a_worktree_that_is_gone_is_not_replaced_by_the_checkout() {
    let fleet = Fleet::new();
    let row = fleet.ran(&["--worktree", "--max-ticks", "1"]);
    let dir = row["workdir"].as_str().unwrap();
    let head = fleet.head();
    std::fs::remove_dir_all(dir).unwrap();
    for view in [&["list", "--wide"][..], &["dashboard"], &["status"]] {
        fleet.ctl(view).exits(0).out_has(&format!("peers -C {} land", fleet.path("repo").display()));
    }
    let name = format!("refs/heads/{}", row["branch"].as_str().unwrap());
    let tip = fleet.git(&["rev-parse", &name]);
    fleet.git(&["update-ref", "-d", &name]);
    let gone = format!("there is no branch `{}`, on which run ", row["branch"].as_str().unwrap());
    for view in [&["list", "--wide"][..], &["dashboard"], &["status"], &["start", "--dry-run"]] {
        fleet.ctl(view).exits(0).out_has(&gone).out_has(&format!(" {tip}"));
    }
    fleet.ctl(&["start"]).exits(5).err_has(&gone);
    fleet.git(&["update-ref", &name, &tip]);
    let done = fleet.ctl(&["start", "--dry-run"]).exits(0);
    done.out_has("would be refused: demo worked in ").out_has("worktree add -f ");
    for args in [&["start"][..], &["restart"], &["resume", "--start"]] {
        fleet.ctl(args).exits(5).err_has("which is gone, and run ").err_has("worktree add -f ");
    }
    assert_eq!((fleet.runs().len(), fleet.head()), (1, head));
    let done = fleet.ctl(&["start"]).exits(5);
    let way = done.err.split("make it again: `").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let way = way.replace("peers -C", &format!("{} -C", program().display()));
    let made = fleet.command("sh").args(["-c", &way]).output().unwrap();
    Ended::of(&made).exits(0);
    let row = fleet.start(&["--max-ticks", "1"]);
    assert_eq!(row["workdir"], dir);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
}

#[test]
fn the_way_out_of_a_used_up_budget_is_told_in_whole_commands() {
    let fleet = Fleet::new();
    fleet.accept_config("budget:\n  max_iterations: 1\n");
    fleet.start(&[]);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(10);
    let done = fleet.ctl(&["resume", "--start"]).exits(10);
    let (raise, start) = ("peers-ctl budget raise demo --ticks +10", "peers-ctl resume demo --start");
    done.err_has(&format!("raise it: `{raise}`, then `{start}`; or"));
    let words = |line: &'static str| line.split(' ').skip(1).collect::<Vec<_>>();
    let done = fleet.ctl(&words(raise)).exits(0);
    done.out_has(&format!("does not run, and is not started by this: `{start}`"));
    fleet.ctl(&words(start)).exits(0);
    fleet.ctl(&["stop"]).exits(0);
}
