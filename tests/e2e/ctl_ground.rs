//! Whose store it is that a controller looks at: that of the repository which was registered, whatever lies at its
//! path by now, and whatever its `.git` says.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ctl_fleet::{Fleet, controller, hold, is_locked, lives, pid_in, send, start_time};
use crate::support::Ended;

/// The store of the project at a path.
pub(crate) fn store_of(fleet: &Fleet, dir: &Path) -> PathBuf {
    let stores = std::fs::read_dir(fleet.path("home/state/peers")).unwrap();
    let path = dir.canonicalize().unwrap();
    let mut found = stores.map(|entry| entry.unwrap().path()).filter(|store| {
        std::fs::read_to_string(store.join("project.json"))
            .is_ok_and(|text| text.contains(path.to_str().unwrap()))
    });
    found.next().expect("it has a store")
}

#[test]
fn a_repository_that_leads_to_another_one_gives_nobody_power_over_that() {
    let fleet = Fleet::still();
    let victim = fleet.another("victim");
    let started = fleet.data("peers-ctl.start/1", &["start", "victim"], 0)[0].clone();
    let loops = pid_in(&started);
    // A worktree of the other repository, put where this one was.
    let (other, demo) = (fleet.path("side"), fleet.path("repo"));
    fleet.git(&["-C", victim.to_str().unwrap(), "worktree", "add", "-q", other.to_str().unwrap()]);
    std::fs::rename(demo.join(".git"), fleet.path("git-of-demo")).unwrap();
    std::fs::copy(other.join(".git"), demo.join(".git")).unwrap();
    std::fs::write(victim.join(".git/worktrees/side/gitdir"), format!("{}\n", demo.join(".git").display()))
        .unwrap();
    let before = fleet.registry()["projects"][1].clone();
    assert_ne!(fleet.row("demo")["state"], "running");
    fleet.ctl(&["dashboard"]).exits(0).out_has("is not the repository that was registered");
    for words in [&["stop", "demo"][..], &["stop", "demo", "--now"], &["stop", "demo", "--after-tick"]] {
        fleet.ctl(words).exits(0).out_has("no loop runs");
    }
    for words in [
        &["start", "demo"][..],
        &["start", "demo", "--reset-budget", "--force"],
        &["resume", "demo", "--start"],
        &["budget", "raise", "demo", "--ticks", "5"],
        &["status", "demo"],
        &["report", "demo", "-o", "-"],
        &["peek", "demo", "--no-follow"],
    ] {
        let done = fleet.ctl(words).exits(5);
        assert!(done.err.contains("is not the repository that was registered"), "{words:?}: {}", done.err);
    }
    assert!(lives(loops));
    assert_eq!(fleet.registry()["projects"][1], before, "nothing was noted of the other one");
    // The other one is what it was, and so is this one once its `.git` is back.
    std::fs::remove_file(demo.join(".git")).unwrap();
    std::fs::rename(fleet.path("git-of-demo"), demo.join(".git")).unwrap();
    fleet.ctl(&["status", "demo"]).exits(0);
    fleet.ctl(&["stop", "victim", "--now"]).exits(0);
    assert!(!lives(loops));
}

#[test]
fn a_loop_whose_directory_was_moved_away_or_broke_is_seen_and_stopped() {
    for how in ["moved", "broken"] {
        let fleet = Fleet::still();
        let loops = pid_in(&fleet.start(&[]));
        // It would see that itself, and end.
        assert!(send(loops, "STOP"));
        let demo = fleet.path("repo");
        // The commands are given somewhere else.
        let ctl = |args: &[&str]| {
            Ended::of(
                &fleet.command(controller()).args(args).current_dir(fleet.path("home")).output().unwrap(),
            )
        };
        if how == "moved" {
            std::fs::rename(&demo, fleet.path("elsewhere")).unwrap();
        } else {
            std::fs::rename(demo.join(".git"), demo.join("git")).unwrap();
            std::fs::write(demo.join(".git"), "gitdir: /nowhere\n").unwrap();
        }
        let row = ctl(&["list", "--json"]).json("peers-ctl.list/1")["data"][0].clone();
        assert_eq!(row["state"], "running", "{how}");
        ctl(&["remove", "demo"]).exits(4).err_has("its loop runs");
        assert_ne!(ctl(&["start", "demo"]).code, Some(0));
        assert!(lives(loops));
        ctl(&["stop", "demo", "--grace", "0s"]).exits(0);
        assert!(!lives(loops), "{how}");
        assert!(fleet.alive().is_empty(), "{how}");
        ctl(&["remove", "demo"]).exits(0);
    }
}

#[test]
fn a_project_that_is_not_set_up_is_told_alike_by_every_list() {
    let fleet = Fleet::new();
    let bare = fleet.path("bare");
    std::fs::create_dir(&bare).unwrap();
    let at = bare.to_str().unwrap();
    fleet.git(&["-C", at, "init", "-q"]);
    fleet.ctl(&["add", at]).exits(0);
    for words in [&["list", "bare"][..], &["list", "bare", "--wide"], &["dashboard", "bare"]] {
        let shown = fleet.ctl(words).exits(0).out;
        assert!(shown.contains("not set up"), "{words:?}: {shown}");
    }
    fleet.ctl(&["list", "bare", "--wide"]).exits(0).out_has(&format!("peers -C {at} init"));
    assert_eq!(fleet.row("bare")["state"], "fresh");
    let rows = fleet.ctl(&["dashboard", "bare", "--json"]).json("peers-ctl.dashboard/1");
    let row = &rows["data"]["projects"][0];
    assert_eq!((&row["state"], &row["attention"]["code"]), (&"fresh".into(), &"not-set-up".into()));
}

#[test]
fn a_store_that_is_not_there_makes_nobody_dead() {
    let fleet = Fleet::still();
    let loops = pid_in(&fleet.start(&[]));
    assert!(send(loops, "STOP"));
    let (store, away) = (store_of(&fleet, &fleet.path("repo")), fleet.path("away"));
    std::fs::rename(&store, &away).unwrap();
    assert_eq!(fleet.row("demo")["state"], "unknown");
    for words in [&["stop", "demo"][..], &["stop", "demo", "--after-tick"], &["restart", "demo"]] {
        let before = fleet.registry();
        let done = fleet.ctl(words).exits(5);
        assert!(done.err.contains(&loops.to_string()), "it names the process: {}", done.err);
        done.err_has("no process was signalled");
        assert_eq!(fleet.registry()["projects"], before["projects"]);
    }
    fleet.ctl(&["remove", "demo"]).exits(4);
    assert!(lives(loops) && !store.exists());
    std::fs::rename(&away, &store).unwrap();
    assert_eq!(fleet.row("demo")["state"], "running");
    fleet.ctl(&["stop", "demo", "--grace", "0s"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn a_run_lock_that_is_another_file_by_now_makes_nobody_dead_and_lets_no_second_loop_in() {
    let fleet = Fleet::still();
    let loops = pid_in(&fleet.start(&[]));
    // It would see that itself, and end.
    assert!(send(loops, "STOP"));
    let lock = fleet.store().join("run.lock");
    std::fs::rename(&lock, fleet.path("old")).unwrap();
    std::fs::write(&lock, "").unwrap();
    assert_eq!(fleet.row("demo")["state"], "unknown");
    fleet.ctl(&["start", "demo"]).exits(4).err_has(&loops.to_string());
    fleet.ctl(&["stop", "demo"]).exits(5).err_has(&loops.to_string());
    assert!(lives(loops));
    std::fs::rename(fleet.path("old"), &lock).unwrap();
    assert_eq!(fleet.row("demo")["state"], "running");
    fleet.ctl(&["stop", "demo", "--grace", "0s"]).exits(0);
}

#[test]
fn what_lies_in_the_repository_as_a_lock_makes_nobody_running() {
    let fleet = Fleet::new();
    let us = std::process::id();
    let content = serde_json::json!({"pid": us, "starttime": start_time(us), "run_id": "0123456789abcdef"});
    let lock = hold(&fleet.at(".peers/run.lock"), &content);
    assert_eq!(fleet.row("demo")["state"], "fresh");
    // An older system may be at work all the same.
    fleet.ctl(&["start", "demo"]).exits(4);
    fleet.ctl(&["stop", "demo"]).exits(0);
    drop(lock);
    std::fs::remove_file(fleet.at(".peers/run.lock")).unwrap();
    let fifo = fleet.fifo("pipe");
    std::fs::rename(fifo, fleet.at(".peers/run.lock")).unwrap();
    assert_eq!(fleet.row("demo")["state"], "fresh");
    fleet.ctl(&["stop", "demo"]).exits(0);
}

#[test]
fn a_run_record_that_is_none_says_nothing_of_a_loop_that_died() {
    type Damage = fn(&Fleet, &Path);
    let kinds: [(&str, Damage); 7] = [
        ("missing", |_, _| {}),
        ("oversized", |_, path| std::fs::write(path, vec![b' '; 4 << 20]).unwrap()),
        ("a symlink", |fleet, path| std::os::unix::fs::symlink(fleet.path("kept"), path).unwrap()),
        ("a hard link", |fleet, path| std::fs::hard_link(fleet.path("kept"), path).unwrap()),
        ("a pipe", |fleet, path| std::fs::rename(fleet.fifo("fifo"), path).unwrap()),
        ("a directory", |_, path| std::fs::create_dir(path).unwrap()),
        ("of another run", |fleet, path| {
            let text = std::fs::read_to_string(fleet.path("kept")).unwrap();
            let mut record: Value = serde_json::from_str(&text).unwrap();
            record["run_id"] = "0123456789abcdef".into();
            record["ended_at"] = record["started_at"].clone();
            record["reason"] = "complete".into();
            std::fs::write(path, record.to_string()).unwrap();
        }),
    ];
    for (what, damage) in kinds {
        let fleet = Fleet::still();
        let started = fleet.start(&[]);
        fleet.kill(pid_in(&started));
        let record = fleet.store().join(format!("runs/{}.json", started["run_id"].as_str().unwrap()));
        std::fs::rename(&record, fleet.path("kept")).unwrap();
        damage(&fleet, &record);
        let row = fleet.row("demo");
        assert_eq!((&row["state"], &row["outcome"]), (&"crashed".into(), &"lost".into()), "{what}: {row}");
    }
}

#[test]
fn who_is_chosen_by_a_state_is_in_it() {
    let fleet = Fleet::still();
    fleet.another("other");
    let loops = pid_in(&fleet.start(&[]));
    assert!(send(loops, "KILL"));
    while lives(loops) || is_locked(&store_of(&fleet, &fleet.path("repo")).join("run.lock")) {
        std::thread::yield_now();
    }
    let names = |state: &str| {
        let done = fleet.ctl(&["list", "--state", state]);
        ["demo", "other"].into_iter().filter(|name| done.out.contains(name)).collect::<Vec<_>>()
    };
    assert_eq!(names("running"), [""; 0]);
    assert_eq!(names("crashed"), ["demo"]);
    assert_eq!(names("fresh"), ["other"]);
}

#[test]
fn a_turn_that_was_cut_short_is_taken_up_where_the_repository_was_moved_to() {
    let fleet = Fleet::still();
    let loops = pid_in(&fleet.start(&[]));
    fleet.kill(loops);
    let (old, new) = (fleet.path("repo"), fleet.path("moved"));
    std::fs::rename(&old, &new).unwrap();
    std::fs::create_dir(&old).unwrap();
    for peer in ["ann", "ben"] {
        fleet.script(peer, r#"{"after": "repeat", "turns": [[{"handoff": "Work"}]]}"#);
    }
    let at = new.to_str().unwrap();
    fleet.peers(&["-C", at, "store", "attach", old.to_str().unwrap()]).exits(0);
    fleet.ctl(&["remove", "demo"]).exits(0);
    fleet.ctl(&["add", at, "--name", "demo"]).exits(0);
    let done = fleet.ctl(&["start", "demo", "--max-ticks", "2"]).exits(0);
    assert!(!done.out.contains(", in "), "it works in the repository itself: {}", done.out);
    fleet.ctl(&["wait", "demo"]).exits(0);
    let record = fleet.runs().into_iter().find(|run| run["ticks_in_run"] != 0).unwrap();
    assert_eq!(record["reason"], "max_ticks", "{record}");
}
