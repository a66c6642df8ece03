//! `peers tick --after`: a turn that ran outside of the loop.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Ended, World, program};

/// What `ann` commits in a terminal.
fn works(world: &World, file: &str, trailers: &str) {
    world.write(file, "done\n");
    world.git(&["add", "-A"]);
    let message = format!("Work in a terminal\n\n## Self-Review\nread it twice\n\nPeer: ann\n{trailers}");
    world.git(&["commit", "-q", "-m", &message]);
}

const HANDOFF: &str = "Peer-Status: handoff\nSelf-Review: pass\n";

/// The hook of an agent calls, with its message.
fn hook(world: &World, who: &str, message: &str) -> Ended {
    let mut command = world.command(program());
    command
        .args(["tick", "--after", who])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    Ended::waited(child)
}

fn message(dir: &std::path::Path) -> String {
    serde_json::json!({"hook_event_name": "Stop", "cwd": dir}).to_string()
}

#[test]
fn what_a_peer_committed_in_a_terminal_is_its_turn_and_the_next_peer_has_one() {
    let world = World::ready("true");
    works(&world, "by-ann.txt", HANDOFF);
    let done = hook(&world, "ann", &message(&world.at("."))).exits(0);
    assert_eq!(done.last_line(), "Stopped: max_ticks");
    let ticks = world.records("tick");
    assert_eq!((ticks[0]["peer"].as_str(), ticks[1]["peer"].as_str()), (Some("ann"), Some("ben")));
    assert_eq!((ticks[0]["outside"].as_bool(), ticks[0]["success"].as_bool()), (Some(true), Some(true)));
    assert!(ticks[1].get("outside").is_none() && ticks.len() == 2);
    assert_eq!(world.git(&["notes", "--ref", "peers-attest", "show", "HEAD~1"]).trim(), "ann");
    // Called again, as after each answer in that terminal: nothing is new.
    let done = hook(&world, "ann", &message(&world.at("."))).exits(0);
    assert!(done.out.is_empty() && done.err.contains("no new commit of `ann`"), "{done:?}");
    assert_eq!(world.records("tick").len(), 2);
}

#[test]
fn a_turn_that_goes_on_another_directory_and_a_loop_at_work_are_left_alone() {
    let world = World::ready("true");
    works(&world, "half.txt", "");
    hook(&world, "ann", &message(&world.at("."))).exits(0).err_has("has committed and not handed over");
    works(&world, "whole.txt", HANDOFF);
    for elsewhere in ["/", "/no/such/directory"] {
        let done = hook(&world, "ann", &message(std::path::Path::new(elsewhere))).exits(0);
        assert!(done.out.is_empty() && done.err.is_empty(), "{elsewhere}: {done:?}");
    }
    let held = world.hold_lock(serde_json::json!({"command": "run"}));
    let done = hook(&world, "ann", &message(&world.at("."))).exits(0);
    assert!(done.out.is_empty() && done.err.contains("another loop is running here"), "{done:?}");
    drop(held);
    assert!(world.records("tick").is_empty());
    hook(&world, "nobody", "").exits(3).err_has("the peers are ann, ben");
    // 2 would tell the agent to go on.
    let done = hook(&world, "nobody", &message(&world.at("."))).exits(0);
    assert!(done.out.is_empty(), "{}", done.out);
    assert_eq!(
        done.err,
        "note: nothing is taken in: no peer is called `nobody` or run as it; the peers are ann, ben\n"
    );
    // Several are run as `plain`; a person who calls says which by hand.
    hook(&world, "plain", "no message").exits(3).err_has("several peers are run as `plain`");
    hook(&world, "ann", "").exits(0);
    assert_eq!(world.records("tick").len(), 2);
}

#[test]
fn commits_that_name_nobody_are_told_with_what_a_handoff_has() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    hook(&world, "ann", &message(&world.at("."))).exits(0).err_has("no new commit of `ann`");
    world.write("own.txt", "x");
    world.commit("Work without a name");
    let done = hook(&world, "ann", &message(&world.at("."))).exits(0);
    let says =
        "no new commit says `Peer: ann`; a session hands over by a commit with a section `## Self-Review`";
    assert!(done.out.is_empty() && done.err.contains(says), "{}", done.err);
}
