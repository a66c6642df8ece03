//! The whole loop on a real disk, with real git, real processes and scripted peers.
//!
//! Tests named `row_NN_...` are rows of `docs/scenarios.md` of which only the edge can show that they
//! hold: see `World::settled` for what is asked after each of them.
//!
//! Nothing sleeps: a peer and a test meet at a FIFO, and the little that must be looked for again and
//! again is looked for until a deadline that only a failing test reaches.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod attacks;
mod between;
mod branches;
mod control_files;
mod corrections;
mod crash;
mod dry_run;
mod faults;
mod gate_keys;
mod git_dir;
mod goals;
mod history;
mod hooks;
mod hostile_gates;
mod hostile_git;
mod landing;
mod messages;
mod nowhere;
mod outcomes;
mod own_copy;
mod pid_one;
mod primer;
mod proof;
mod protocol;
mod signals;
mod start;
mod store;
mod volume;
mod world;

use world::{World, sh};

#[test]
fn two_scripted_peers_drive_a_red_test_to_complete() {
    let w = World::new();
    w.play("repeat", &[&["write: {path: fixed, text: 'yes'}", "handoff: Fix it"]]);
    w.run(&["--max-ticks=8"]).stopped("complete", 0);
    let state = w.settled();
    assert_eq!(state.ticks.0, 2, "one to fix it, one to doubt it");
    assert_eq!(w.git(&["notes", "--ref", "peers-attest", "list"]).lines().count(), 2);
    assert_eq!(w.exit().proof.unwrap().tree.as_str(), w.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn nothing_of_a_peer_is_believed_when_the_gate_is_red() {
    let w = World::new();
    w.play("repeat", &[&[&sh("echo all tests pass"), "handoff: 'Everything is green, complete'"]]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    w.settled();
}
