//! Options of `peers` that are for single needs: what each changes.

use std::io::BufRead as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{World, program};

#[test]
fn a_scripted_peer_plays_the_turn_that_is_named_and_reads_its_prompt_from_a_file() {
    let world = World::repo();
    world.script("any", "turns:\n- - say: first\n- - read_prompt: {save: got}\n  - say: second\n");
    world.write("asked", "Do it.\n");
    let script = world.path("scripts/any.yaml");
    let play = |args: &[&str]| {
        let all = [&["fake-peer", "--peer", "ann", "--script", script.to_str().unwrap()], args].concat();
        world.peers(&all).exits(0).out
    };
    for _ in 0..2 {
        let said = play(&["--turn", "2", "--prompt-file", "asked"]);
        assert!(said.contains("second") && !said.contains("first"), "{said}");
        assert_eq!(world.read("got"), "Do it.\n");
    }
    assert!(play(&["--prompt", ""]).contains("first"), "what is named is not counted");
}

#[test]
fn history_up_to_a_base_is_left_out_of_the_ledger() {
    let world = World::ready("true");
    let report = "Report\n\n## Bug-Report\n{\"id\": \"BUG-1\", \"severity\": \"high\", \"title\": \"It breaks\"}\n\nBug-Report: BUG-1\nPeer: ann\n";
    let before = world.head();
    world.git(&["commit", "-q", "--allow-empty", "-m", report]);
    for args in [["bug-hunt", "gate"], ["check", "bug-ledger"]] {
        world.peers(&args).exits(1);
        world.peers(&[&args[..], &["--base", "HEAD"]].concat()).exits(0);
        world.peers(&[&args[..], &["--base", &before]].concat()).exits(1);
        world.peers(&[&args[..], &["--base", "nothing"]].concat()).exits(3);
    }
}

#[test]
fn watch_polls_as_often_as_it_is_told() {
    let world = World::ready("true");
    world.peers(&["watch", "--poll-s", "0"]).exits(2);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let mut command = world.command(program());
    command.args(["watch", "--json", "--lines", "1", "--poll-s", "0.01"]).stdout(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["record"]["event"], "exit");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(next()["record"]["event"], json!("run-started"));
    watch.kill().unwrap();
    watch.wait().unwrap();
}
