//! What stands in the trusted store is written by whoever can write there, and agents run as the same user: who
//! holds a lock is asked of the kernel, how a run ended of the journal.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::ctl_fleet::{
    Fleet, boot_id, carrying, controller, is_locked, lives, pid_in, send, start_time, told,
};
use crate::ctl_ground::store_of;
use crate::support::{Ended, Held, heard};

/// A loop whose turn hangs: its process.
fn hanging(fleet: &Fleet, more: &[&str]) -> u32 {
    let row = fleet.start(more);
    heard(&fleet.path("pipe"));
    pid_in(&row)
}

/// A stranger that has this file open, and no lock of it.
fn opener(path: &Path) -> Child {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    std::process::Command::new("cat").stdin(Stdio::piped()).stdout(file).spawn().unwrap()
}

fn rewrite(path: &Path, content: &[u8]) {
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.rewind().unwrap();
    file.write_all(content).unwrap();
}

/// Changes a run record, as a text editor would.
fn forge(fleet: &Fleet, run: &str, with: impl FnOnce(&mut Value)) {
    let path = fleet.store().join("runs").join(format!("{run}.json"));
    let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    with(&mut record);
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn who_has_the_run_lock_open_and_stands_in_it_is_not_stopped_in_place_of_the_loop() {
    for more in [&[][..], &["--now"]] {
        let fleet = Fleet::hanging();
        let pid = hanging(&fleet, &[]);
        let lock = fleet.store().join("run.lock");
        let mut stranger = opener(&lock);
        let who = stranger.id();
        let run = fleet.row("demo")["run_id"].clone();
        let content = json!({"pid": who, "starttime": start_time(who), "boot_id": boot_id(), "kind": "host", "run_id": run});
        rewrite(&lock, format!("{content}\n").as_bytes());
        assert_eq!(fleet.row("demo")["pid"], pid, "the registry keeps who it started");
        let done = fleet.ctl(&[&["stop"], more].concat()).exits(0);
        assert!(done.out.starts_with("stopped demo"), "{}", done.out);
        assert!(lives(who) && !lives(pid) && !fleet.locked());
        drop(stranger.stdin.take());
        assert_eq!(stranger.wait().unwrap().code(), Some(0));
        fleet.is_quiet();
    }
}

#[test]
fn a_lock_in_which_nothing_can_be_read_keeps_no_loop_from_being_stopped() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    rewrite(&fleet.store().join("run.lock"), b"x");
    assert_eq!(fleet.row("demo")["pid"], pid);
    let done = fleet.ctl(&["stop"]).exits(0);
    assert!(done.out.starts_with("stopped demo") && !lives(pid), "{}", done.out);
    fleet.is_quiet();
}

#[test]
fn the_name_of_another_run_in_the_lock_ends_none_of_its_processes() {
    let fleet = Fleet::hanging();
    fleet.another("victim");
    let started = fleet.data("peers-ctl.start/1", &["start", "victim"], 0);
    heard(&fleet.path("pipe"));
    let theirs = started[0]["run_id"].as_str().unwrap();
    // The shell that said that the peer is up may be ending just now: once it is gone, two looks see the same.
    let mark = format!("PEERS_RUN_ID={theirs}");
    let mut victims = carrying(&mark);
    while victims.iter().any(|pid| told(*pid).contains("echo up")) || victims != carrying(&mark) {
        std::thread::yield_now();
        victims = carrying(&mark);
    }
    let all_live = || victims.iter().all(|pid| lives(*pid));
    assert!(!victims.is_empty());
    let lock = store_of(&fleet, &fleet.at("")).join("run.lock");
    let renamed = || {
        let text = std::fs::read_to_string(&lock).unwrap();
        let holder: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let own = holder["run_id"].as_str().unwrap().to_owned();
        rewrite(&lock, text.replace(&own, theirs).as_bytes());
        own
    };
    let pid = hanging(&fleet, &[]);
    let own = renamed();
    assert_eq!(fleet.row("demo")["run_id"], own);
    send(pid, "KILL");
    while is_locked(&lock) {
        std::thread::yield_now();
    }
    fleet.ctl(&["reconcile"]).exits(0).out_has("demo: running -> crashed (killed)");
    assert!(all_live());
    assert!(carrying(&format!("PEERS_RUN_ID={own}")).is_empty(), "its own are ended");
    // Nor where the registry never knew another name.
    fleet.ctl(&["remove", "demo"]).exits(0);
    let mut child = fleet.spawned(&["run"]);
    heard(&fleet.path("pipe"));
    let own = renamed();
    fleet.ctl(&["add", ".", "--name", "demo"]).exits(0);
    assert_eq!(fleet.row("demo")["run_id"], theirs);
    send(child.id(), "STOP");
    fleet.ctl(&["stop", "demo", "--now"]).exits(0);
    child.wait().unwrap();
    assert!(all_live());
    fleet.ctl(&["stop", "victim"]).exits(0);
    for pid in carrying(&format!("PEERS_RUN_ID={own}")) {
        send(pid, "KILL");
    }
}

#[test]
fn an_end_that_the_journal_does_not_know_is_none() {
    for (reason, signal) in [("complete", None), ("interrupted", Some(15)), ("max-ticks", None)] {
        let fleet = Fleet::hanging();
        let pid = hanging(&fleet, &[]);
        let run = fleet.row("demo")["run_id"].as_str().unwrap().to_owned();
        forge(&fleet, &run, |record| {
            record["ended_at"] = record["started_at"].clone();
            record["reason"] = reason.into();
            record["exit_code"] = 0.into();
            record["signal"] = json!(signal);
            record["detail"] = "all gates green, proved".into();
        });
        fleet.kill(pid);
        let said = fleet.ctl(&["dashboard"]).exits(0).out;
        assert!(said.contains("crashed") && !said.contains("proved"), "{reason}: {said}");
        assert_eq!(fleet.row("demo")["state"], "crashed", "{reason}");
        fleet.ctl(&["wait", "--timeout", "1m"]).exits(70);
        let status = fleet.peers(&["status"]).out;
        assert!(status.contains("state:     crashed") && !status.contains("proved"), "{reason}: {status}");
    }
}

#[test]
fn who_holds_the_lock_of_controllers_and_is_none_hides_no_crash() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    // Also where it says what another one left there.
    let old = json!({"pid": 4242, "op": "peers-ctl start demo", "since": "2026-03-04T21:10:00.000Z"});
    let held = Held::of(&fleet.store().join("op.lock"), |_| Some(old));
    fleet.kill(pid);
    assert_eq!(fleet.row("demo")["state"], "crashed");
    fleet.ctl(&["wait", "--timeout", "1m"]).exits(70);
    let done = fleet.ctl(&["stop", "demo"]).exits(4);
    let who = format!("process {} holds the lock of controllers", held.process.id());
    done.err_has(&who);
}

/// A record of a run that never was, newer than all.
fn plant(fleet: &Fleet, with: impl FnOnce(&mut Value)) {
    let mut runs = fleet.runs().into_iter().filter(|run| run["run_id"] != "ffffffffffffffff");
    let last = runs.next_back().unwrap()["run_id"].as_str().unwrap().to_owned();
    let runs = fleet.store().join("runs");
    std::fs::copy(runs.join(format!("{last}.json")), runs.join("ffffffffffffffff.json")).unwrap();
    forge(fleet, "ffffffffffffffff", |record| {
        record["run_id"] = "ffffffffffffffff".into();
        record["started_at"] = "2199-01-01T00:00:00.000Z".into();
        with(record);
    });
}

#[test]
fn a_run_that_the_journal_does_not_know_keeps_no_loop_from_starting_and_sets_no_cap() {
    let fleet = Fleet::new();
    fleet.accept_config("budget:\n  max_usd: 10\n");
    fleet.ran(&["--max-ticks", "1"]);
    plant(&fleet, |record| {
        record["workdir"] = "/nonexistent/worktree".into();
        record["own_branch"] = true.into();
        record["branch"] = "elsewhere".into();
        record["request"] = json!({"max_usd": 90000});
    });
    let done = fleet.ctl(&["budget", "raise", "--usd", "+5"]).exits(0);
    done.out_has("`budget.max_usd` is $15.00 until ");
    done.out_has("\n  before: `budget.max_usd` $10.00\n");
    // Nor where that of the true last run is gone: nobody knows then where it worked.
    let own = fleet.runs().into_iter().find(|run| run["run_id"] != "ffffffffffffffff").unwrap();
    let own = format!("{}.json", own["run_id"].as_str().unwrap());
    let (there, aside) = (fleet.store().join("runs").join(&own), fleet.path("aside"));
    std::fs::rename(&there, &aside).unwrap();
    fleet.ctl(&["start"]).exits(5).err_has("where demo worked is not known");
    fleet.ctl(&["budget", "raise", "--usd", "+5"]).exits(0).out_has("`budget.max_usd` is $20.00 until ");
    std::fs::rename(&aside, &there).unwrap();
    let row = fleet.start(&["--max-ticks", "1"]);
    assert_eq!(row["workdir"], fleet.at("").canonicalize().unwrap().to_string_lossy().trim_end_matches('/'));
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
}

#[test]
fn a_start_goes_on_in_the_worktree_of_the_last_run_again_and_again() {
    let fleet = Fleet::new();
    let dir = fleet.start(&["--worktree", "--max-ticks", "1"])["workdir"].as_str().unwrap().to_owned();
    let head = fleet.head();
    for args in [&["start"][..], &["start"], &["restart"], &["resume", "--start"]] {
        fleet.ctl(&["wait", "--timeout", "2m"]);
        fleet.ctl(args).exits(0);
        fleet.ctl(&["stop"]).exits(0);
        let run = fleet.runs().pop().unwrap();
        assert_eq!((&run["workdir"], &run["own_branch"]), (&dir.as_str().into(), &true.into()), "{args:?}");
        assert_eq!(run["into"], "main");
    }
    assert_eq!(fleet.head(), head, "nothing was done in the checkout");
    let runs = fleet.runs().len();
    // Something else in its place is no worktree of it.
    std::fs::rename(&dir, fleet.path("moved")).unwrap();
    std::os::unix::fs::symlink(fleet.at(""), &dir).unwrap();
    fleet.ctl(&["start", "--dry-run"]).exits(0).out_has("would be refused: demo worked in ");
    for args in [&["start"][..], &["resume", "--start"]] {
        fleet.ctl(args).exits(5).err_has("which is not the worktree of run ");
    }
    std::fs::remove_file(&dir).unwrap();
    fleet.ctl(&["start"]).exits(5).err_has("which is gone, and run ");
    assert_eq!((fleet.runs().len(), fleet.head()), (runs, head));
}

#[test]
fn a_crash_in_a_worktree_is_taken_up_by_the_command_that_is_shown() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &["--worktree"]);
    for _ in 0..2 {
        let pid = if lives(pid) { pid } else { pid_in(&fleet.row("demo")) };
        fleet.kill(pid);
        let said = fleet.data("peers-ctl.dashboard/1", &["dashboard", "--project", "demo"], 0);
        assert_eq!(said["project"]["attention"]["action"], "peers-ctl start demo", "{said}");
        fleet.ctl(&["start"]).exits(0);
        heard(&fleet.path("pipe"));
    }
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn a_lock_in_the_repository_keeps_nobody_from_what_begins_no_loop() {
    let fleet = Fleet::hanging();
    hanging(&fleet, &[]);
    let _held = Held::of(&fleet.at(".peers/run.lock"), |pid| Some(json!({"pid": pid})));
    fleet.ctl(&["budget", "raise", "--ticks", "+5"]).exits(0);
    fleet.ctl(&["resume"]).exits(0);
    fleet.ctl(&["stop"]).exits(0);
    fleet.ctl(&["budget", "raise", "--ticks", "+5"]).exits(0);
    fleet.ctl(&["resume"]).exits(0);
    fleet.ctl(&["start"]).exits(4);
}

#[test]
fn a_resume_whose_start_is_refused_raises_nothing() {
    let fleet = Fleet::new();
    fleet.ran(&["--max-ticks", "1"]);
    fleet.write(".peers/config.yaml", &fleet.config("budget:\n  max_runtime_s: 77\n"));
    let before = fleet.journal();
    let done = fleet.ctl(&["resume", "--start", "--max-runtime", "+1h", "--reset-budget"]).exits(5);
    done.err_has("config.yaml changed since it was accepted");
    assert_eq!(fleet.journal(), before);
}

#[test]
fn a_loop_that_was_registered_with_its_history_stands_as_its_last_run_left_it() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    fleet.kill(pid);
    fleet.ctl(&["remove", "demo"]).exits(0);
    fleet.ctl(&["add", ".", "--name", "again"]).exits(0);
    fleet.ctl(&["wait", "again", "--timeout", "1m"]).exits(70);
    assert_eq!(fleet.row("again")["state"], "crashed");
    fleet.ctl(&["list", "--state", "crashed"]).exits(0).out_has("again");
}

#[test]
fn a_look_says_what_it_ended() {
    let fleet = Fleet::hanging();
    let announce = format!("echo up > {}", fleet.path("pipe").display());
    let turn = json!([{"fork": {"what": "setsid"}}, {"shell": announce}, {"hang": "sleep"}]);
    fleet.script("ann", &json!({"turns": [turn]}).to_string());
    let pid = hanging(&fleet, &[]);
    let run = fleet.row("demo")["run_id"].as_str().unwrap().to_owned();
    fleet.kill(pid);
    assert!(!carrying(&format!("PEERS_RUN_ID={run}")).is_empty());
    let done = fleet.ctl(&["list"]).exits(0);
    let said = format!("warning: run {run} of demo died, and what it had left was ended: process ");
    done.err_has(&said);
}

#[test]
fn what_every_start_refuses_for_is_shown_before_it_is_typed() {
    let fleet = Fleet::new();
    fleet.ctl(&["new", "../bare"]).exits(0);
    fleet.ctl(&["dashboard"]).exits(0).out_has("the gate is still a placeholder").out_lacks("start bare");
    // One that its operator stopped, and whose budget was lowered since.
    fleet.ran(&["--max-ticks", "3"]);
    fleet.accept_config("budget:\n  max_iterations: 2\n");
    let shown = fleet.data("peers-ctl.dashboard/1", &["dashboard", "--project", "demo"], 0);
    let attention = &shown["project"]["attention"];
    assert_eq!(attention["code"], "budget", "{attention}");
    let action = attention["action"].as_str().unwrap();
    assert_eq!(action, "peers-ctl budget raise demo --ticks +11, then peers-ctl resume demo --start");
    fleet.ctl(&["budget", "raise", "demo", "--ticks", "+2"]).exits(0);
    fleet.ctl(&["resume", "demo", "--start"]).exits(0);
    fleet.ctl(&["wait", "demo", "--timeout", "2m"]).exits(10);
}

#[test]
fn an_agent_that_writes_into_the_lock_of_its_loop_is_seen_to_come_out_of_it() {
    let fleet = Fleet::new();
    let (pipe, out) = (fleet.fifo("pipe"), fleet.path("out"));
    let asked = format!(
        "printf x | dd of={lock} bs=1 conv=notrunc 2>/dev/null; {{ env -u PEERS_IN_TICK -u PEERS_RUN_ID HOME={home} XDG_CONFIG_HOME={home}/config XDG_STATE_HOME={home}/state {ctl} --config-dir {home}/config/peers-ctl budget raise demo --usd 777 --for never; echo $?; }} > {out} 2>&1; echo up > {pipe}",
        lock = fleet.store().join("run.lock").display(),
        home = fleet.path("home").display(),
        ctl = controller().display(),
        out = out.display(),
        pipe = pipe.display(),
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
    assert!(fleet.alive().is_empty());
}

#[test]
fn what_a_lock_says_of_a_command_makes_a_loop_no_command() {
    for (forged, by_hand) in [("command", false), ("command", true), ("phase", false), ("phase", true)] {
        let fleet = Fleet::hanging();
        let mut child = None;
        if by_hand {
            child = Some(fleet.spawned(&["run"]));
            heard(&fleet.path("pipe"));
        } else {
            hanging(&fleet, &[]);
        }
        let lock = fleet.store().join("run.lock");
        let text = std::fs::read_to_string(&lock).unwrap();
        let mut content: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        content[forged] = if forged == "command" { "land".into() } else { "starting".into() };
        rewrite(&lock, format!("{content}\n").as_bytes());
        assert_eq!(fleet.row("demo")["state"], "running", "{forged} {by_hand}");
        let done = fleet.ctl(&["stop"]).exits(0);
        assert!(done.out.starts_with("stopped demo"), "{forged} {by_hand}: {}", done.out);
        if let Some(child) = &mut child {
            child.wait().unwrap();
        }
        fleet.is_quiet();
    }
}

#[test]
fn who_holds_a_lock_that_was_put_in_the_place_of_that_of_a_loop_is_not_the_loop() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    let lock = fleet.store().join("run.lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    let mut content: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    // What a loop that is stopped cannot see.
    send(pid, "STOP");
    std::fs::rename(&lock, fleet.path("old")).unwrap();
    let decoy = Held::of(&lock, |who| {
        content["pid"] = who.into();
        content["starttime"] = start_time(who).into();
        content["run_id"] = "ffffffffffffffff".into();
        Some(content)
    });
    let row = fleet.row("demo");
    assert_eq!((&row["state"], &row["pid"]), (&"unknown".into(), &pid.into()), "{row}");
    fleet.ctl(&["stop"]).exits(5).err_has("no process was signalled");
    fleet.ctl(&["start"]).exits(4);
    assert!(lives(decoy.process.id()) && lives(pid));
    drop(decoy);
    assert_eq!(fleet.row("demo")["state"], "unknown");
    fleet.ctl(&["start"]).exits(4);
    std::fs::rename(fleet.path("old"), &lock).unwrap();
    assert_eq!(fleet.row("demo")["state"], "running");
    fleet.ctl(&["stop", "--now"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn an_end_of_a_run_that_the_journal_does_not_know_hides_none_that_it_does() {
    let fleet = Fleet::new();
    fleet.ran(&["--max-ticks", "1"]);
    for reason in ["interrupted", "complete"] {
        plant(&fleet, |record| {
            record["reason"] = reason.into();
            record["signal"] = 9.into();
            record["exit_code"] = 0.into();
            record["ended_at"] = record["started_at"].clone();
            record["detail"] = "all gates green, proved".into();
        });
        let said = [fleet.ctl(&["dashboard"]), fleet.peers(&["status"])].map(|done| done.out).concat();
        assert!(!said.contains("proved") && !said.contains("had it killed"), "{reason}: {said}");
    }
}

#[test]
fn an_ordinary_run_does_not_take_over_a_branch_from_a_run_that_never_was() {
    let fleet = Fleet::new();
    fleet.git(&["branch", "release"]);
    fleet.ran(&["--max-ticks", "1"]);
    plant(&fleet, |record| {
        record["own_branch"] = true.into();
        record["into"] = "release".into();
    });
    let run = fleet.ran(&["--max-ticks", "1"])["run_id"].clone();
    let runs = fleet.runs();
    let record = runs.iter().find(|record| record["run_id"] == run).unwrap();
    assert_eq!((&record["own_branch"], &record["into"]), (&false.into(), &Value::Null), "{record}");
}

#[test]
fn a_loop_is_not_ended_for_a_restart_that_is_refused() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    let before = fleet.records("operator").len();
    fleet.ctl(&["restart", "--branch", "main"]).exits(4).err_has("branch `main` exists already");
    fleet.ctl(&["resume", "--start", "--reset-budget"]).exits(4);
    fleet.write(".peers/config.yaml", &fleet.config("budget:\n  max_runtime_s: 77\n"));
    fleet.ctl(&["restart"]).exits(5);
    assert!(lives(pid) && fleet.locked());
    fleet.ctl(&["stop"]).exits(0);
    assert_eq!(fleet.records("operator").len(), before);
    fleet.is_quiet();
}

#[test]
fn one_that_dies_without_a_last_word_while_it_is_stopped_is_stopped_in_every_view() {
    let fleet = Fleet::hanging();
    let pid = hanging(&fleet, &[]);
    send(pid, "STOP");
    let mut command = fleet.command(controller());
    let stops = command
        .args(["stop", "--grace", "5m"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while fleet.registry()["projects"][0]["runtime"]["phase"] != "stopping" {
        std::thread::yield_now();
    }
    send(pid, "KILL");
    Ended::waited(stops).exits(0);
    fleet.stands("stopped", "operator");
    fleet.ctl(&["wait", "--timeout", "1m"]).exits(137);
    let said = [fleet.ctl(&["dashboard"]), fleet.ctl(&["status"])].map(|done| done.out).concat();
    assert!(!said.contains("crashed"), "{said}");
    fleet.is_quiet();
}
