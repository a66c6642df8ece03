//! What forbids a start, and what a start finds and mends.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, symlink};

use peers_sys::signal::Signal;

use crate::world::{World, files};

#[test]
fn row_03_a_running_loop_keeps_a_second_one_out_and_nothing_is_written() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&[&here.tell(), "hang"]]);
    let first = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    let before = files(&w.store());
    let run = w.runs()[0].run_id.to_string();
    w.run(&[]).refused(4, &run);
    assert_eq!(files(&w.store()), before, "owner, journal and run records");
    first.signal(Signal::Term);
    first.end().stopped("interrupted", 143);
    w.settled();
}

#[test]
fn row_03_a_lock_that_an_older_system_holds_in_the_repository_counts_too() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    let path = w.repo().join(".peers/run.lock");
    fs::write(&path, "{\"pid\": 4242, \"run_id\": \"old\"}").unwrap();
    let theirs = File::open(&path).unwrap();
    theirs.lock().unwrap();
    let before = files(&w.store());
    w.run(&[]).refused(4, "by `.peers/run.lock`").refused(4, "4242");
    assert_eq!(files(&w.store()), before);
    // Held is what the kernel says; that the file exists means nothing.
    drop(theirs);
    let inode = fs::metadata(&path).unwrap().ino();
    w.run(&["--max-ticks=4"]).stopped("complete", 0);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "left alone");
    w.settled();
}

#[test]
fn row_04_an_unlocked_lock_file_with_garbage_is_taken_over_in_place() {
    let w = World::new();
    let lock = w.store().join("run.lock");
    fs::write(&lock, b"\xff\x00 garbage").unwrap();
    let inode = fs::metadata(&lock).unwrap().ino();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(fs::metadata(&lock).unwrap().ino(), inode);
    w.settled();
}

#[test]
fn row_05_a_link_in_place_of_a_control_file_stops_the_start_and_its_target_stays() {
    for name in ["state.json", "last-stop-reason.txt", "log/runs.jsonl", "goals.yaml"] {
        let w = World::new();
        let (link, target) = (w.repo().join(".peers").join(name), w.path("target"));
        if link.exists() {
            fs::copy(&link, &target).unwrap();
            fs::remove_file(&link).unwrap();
        } else {
            fs::write(&target, "mine\n").unwrap();
        }
        let before = fs::read(&target).unwrap();
        symlink(&target, &link).unwrap();
        w.run(&[]).refused(5, name);
        assert_eq!(fs::read(&target).unwrap(), before, "{name}");
        assert!(link.is_symlink(), "{name}");
        assert!(w.lines().is_empty(), "{name}");
    }
}

#[test]
fn row_05_a_second_name_of_a_control_file_stops_the_start() {
    let w = World::new();
    let target = w.path("target");
    fs::write(&target, "mine\n").unwrap();
    fs::hard_link(&target, w.repo().join(".peers/state.json")).unwrap();
    w.run(&[]).refused(5, "state.json");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
}

#[test]
fn row_05_a_link_in_place_of_a_control_directory_stops_the_start_and_its_target_stays() {
    for name in [".peers", ".peers/log", ".peers/inbox"] {
        let w = World::new();
        let (link, target) = (w.repo().join(name), w.path("target"));
        fs::rename(&link, &target).unwrap();
        symlink(&target, &link).unwrap();
        let before = files(&target);
        w.run(&[]).refused(5, name);
        assert_eq!(files(&target), before, "{name}");
        assert!(!w.store().join("journal").exists(), "{name}");
    }
}

#[test]
fn row_05_a_link_in_place_of_the_run_lock_stops_the_start_and_its_target_stays() {
    let w = World::new();
    let (link, target) = (w.store().join("run.lock"), w.path("target"));
    fs::write(&target, "mine\n").unwrap();
    drop(fs::remove_file(&link));
    symlink(&target, &link).unwrap();
    w.run(&[]).refused(5, "run.lock");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
}

#[test]
fn row_07_a_branch_without_a_commit_stops_the_start() {
    let w = World::new();
    w.git(&["symbolic-ref", "HEAD", "refs/heads/nothing"]);
    w.run(&[]).refused(3, "git commit --allow-empty");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_a_directory_that_is_no_repository_stops_the_start() {
    let w = World::new();
    fs::rename(w.repo().join(".git"), w.path("git")).unwrap();
    w.run(&[]).refused(3, "git init");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_a_machine_without_git_stops_the_start() {
    let w = World::new();
    let mut command = w.command(&[]);
    command.env("PATH", w.path("nowhere"));
    World::out(command).refused(6, "install git");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_a_missing_program_of_a_peer_stops_the_start() {
    let w = World::new();
    w.put(".peers/config.yaml", NO_PROGRAMS);
    w.accept();
    w.run(&[]).refused(6, "peer `ann`").refused(6, "peer `bob`");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_everything_that_forbids_a_start_is_said_at_once() {
    let w = World::new();
    w.put(".peers/config.yaml", NO_PROGRAMS);
    w.accept();
    w.put(".peers/goals.yaml", "goals: []\n");
    w.git(&["symbolic-ref", "HEAD", "refs/heads/nothing"]);
    let mut command = w.command(&[]);
    command.env("PATH", w.path("nowhere"));
    let ran = World::out(command);
    for says in
        ["no hard gate", "goals.yaml changed", "--allow-empty", "install git", "peer `ann`", "peer `bob`"]
    {
        ran.refused(3, says);
    }
    assert!(w.lines().is_empty());
}

const NO_PROGRAMS: &str = "peers:\n- {name: ann, tool: claude, argv: [no-such-program-at-all, --output-format, stream-json]}\n\
     - {name: bob, tool: claude, argv: [./nor-this-one, --output-format, stream-json]}\n";

#[test]
fn row_39_an_earlier_complete_is_nowhere_said_again_after_a_crash() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=4"]).stopped("complete", 0);
    assert!(w.get(".peers/last-stop-reason.txt").starts_with("complete "));
    fs::remove_file(w.repo().join("fixed")).unwrap();
    w.commit("Break it again");
    let here = w.fifo("here");
    w.play("repeat", &[&[&here.tell(), "hang"]]);
    let second = w.start(&[]);
    here.told();
    second.crash();
    assert!(!w.has(".peers/last-stop-reason.txt"));
    let newest = w.runs().pop().unwrap();
    assert_eq!((newest.reason, newest.ended_at, newest.exit_code), (None, None, None));
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}
