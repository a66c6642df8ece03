//! A peer that reaches for the control plane.

use std::fs;

use crate::world::{World, files, sh};

/// The turn of ann, which hands over; then the loop must have stopped without another gate run.
fn tampered(w: &World, steps: &[&str], reason: &str) {
    let mut turn = vec!["write: {path: fixed, text: 'yes'}"];
    turn.extend(steps);
    turn.push("handoff: Fix it");
    w.play("idle", &[&turn]);
    w.run(&["--max-ticks=4", "--no-skeptic"]).stopped(reason, 5);
    assert_eq!((w.ticks().len(), w.gate_runs("tests")), (1, 1), "no gate ran after it");
    assert_eq!(w.tick(1).commits.len(), 1, "its commits are attributed all the same");
}

#[test]
fn row_06_a_control_directory_that_was_swapped_for_a_link_is_seen_before_anything_is_written() {
    let w = World::new();
    fs::create_dir(w.path("decoy")).unwrap();
    let swap = sh("mv .peers ../peers-moved; ln -s ../decoy .peers");
    tampered(&w, &[&swap], "tamper:peer-dir");
    assert_eq!(files(&w.path("decoy")).len(), 0);
    // Put back by the operator, and the link taken out of the commit, everything goes on.
    fs::remove_file(w.repo().join(".peers")).unwrap();
    fs::rename(w.path("peers-moved"), w.repo().join(".peers")).unwrap();
    w.commit("Take the link out");
    w.run(&["--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn row_06_a_control_directory_that_is_gone_is_seen() {
    let w = World::new();
    tampered(&w, &[&sh("mv .peers ../peers-moved")], "tamper:peer-dir");
    assert!(!w.has(".peers"), "nothing was written in its place");
    fs::rename(w.path("peers-moved"), w.repo().join(".peers")).unwrap();
    w.settled();
}

/// A peer that runs unconfined as our own user and knows where the store is.
fn store_touched(command: &str) {
    let w = World::new();
    let command = command.replace("STORE", &w.store().display().to_string());
    tampered(&w, &[&sh(&command)], "tamper:store");
}

#[test]
fn a_peer_that_writes_another_owner_into_the_run_lock_is_seen() {
    store_touched("echo '{}' > STORE/run.lock");
}

#[test]
fn a_peer_that_destroys_our_git_directories_does_not_complete() {
    for command in ["rm -rf STORE/git", "echo '{}' > STORE/git/turn.json"] {
        let w = World::new();
        let ruin = sh(&command.replace("STORE", &w.store().display().to_string()));
        w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff: Fix it", &ruin]]);
        let ran = w.run(&["--max-ticks=1", "--no-skeptic"]);
        let stopped = ran.code == 5 || ran.code == 70;
        assert!(stopped || command.contains("turn.json"), "{command}: {ran:?}");
        w.dead();
    }
}
