//! The goals and the configuration are the operator's.

use std::fs;

use peers_model::record::{OperatorOp, Record};
use peers_store::commands::{self, Command};
use peers_store::{accept, layout};

use crate::world::{World, sh};

/// A goal whose gate would tell that it ran.
fn planted(w: &World) -> String {
    format!(
        "edit_goals: {{text: {}}}",
        serde_json::Value::from(format!("goals:\n{}", w.counting_gate("planted", "true")))
    )
}

/// The turn stops the run, and what it planted never ran.
fn mutation(w: &World, file: &str, says: &str) {
    w.run(&["--max-ticks=4"]).stopped(&format!("goal-mutation:{file}"), 5);
    assert!(w.exit().detail.contains(says), "{}", w.exit().detail);
    assert_eq!((w.gate_runs("planted"), w.ticks().len()), (0, 1));
    w.settled();
}

#[test]
fn row_45_edited_goals_stop_the_loop() {
    let w = World::new();
    w.play("idle", &[&[&planted(&w), "handoff: Nothing else"]]);
    mutation(&w, "goals.yaml", "changed");
    // It does not start again either, until the operator has put them back.
    w.run(&[]).refused(5, "goals.yaml changed since it was accepted");
    let accepted = fs::read_to_string(w.store().join("accepted/goals.yaml")).unwrap();
    w.put(".peers/goals.yaml", &accepted);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn row_45_goals_that_were_edited_and_committed_with_source_stop_the_loop() {
    let w = World::new();
    let force = "git: [add, -f, .peers/goals.yaml]";
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", &planted(&w), force, "handoff: Fix it"]]);
    mutation(&w, "goals.yaml", "changed");
}

#[test]
fn row_45_a_planted_file_of_digests_helps_nobody() {
    let w = World::new();
    let plant = sh(
        "for f in accepted.json goals.sha256 goals.yaml.sha256; do sha256sum .peers/goals.yaml > .peers/$f; done",
    );
    w.play("idle", &[&[&planted(&w), &plant, "handoff: Fix it"]]);
    mutation(&w, "goals.yaml", "changed");
}

#[test]
fn row_45_goals_that_were_deleted_stop_the_loop() {
    let w = World::new();
    w.play("idle", &[&["remove: .peers/goals.yaml", "handoff: Fix it"]]);
    mutation(&w, "goals.yaml", "disappeared");
    w.run(&[]).refused(3, "goals.yaml is missing");
}

#[test]
fn row_45_goals_that_grew_beyond_reason_stop_the_loop() {
    let w = World::new();
    let grow = sh("head -c 3145728 /dev/zero | tr '\\0' '#' >> .peers/goals.yaml");
    w.play("idle", &[&[&grow, "handoff: Fix it"]]);
    mutation(&w, "goals.yaml", "unreadable");
}

#[test]
fn row_45_goals_behind_a_link_are_a_swapped_control_file() {
    let w = World::new();
    let link = sh("mv .peers/goals.yaml ../goals.yaml; ln -s ../../goals.yaml .peers/goals.yaml");
    w.play("idle", &[&[&link, "handoff: Fix it"]]);
    w.run(&["--max-ticks=4"]).stopped("tamper:peer-dir", 5);
    w.settled();
}

#[test]
fn row_45_an_edited_command_of_a_peer_stops_the_loop() {
    let w = World::new();
    let edit =
        "edit_goals: {file: .peers/config.yaml, from: 'stream-json]', to: 'stream-json, --dangerous]'}";
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", edit, "handoff: Fix it"]]);
    mutation(&w, "config.yaml", "changed");
}

#[test]
fn row_68_goals_that_were_edited_in_the_last_allowed_tick_are_seen() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", &planted(&w), "handoff: Fix it"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("goal-mutation:goals.yaml", 5);
    w.settled();
}

/// What the operator's command does while a loop runs: the files, then the message to the loop.
fn accept_meanwhile(w: &World) {
    let mut disk = w.place().open_store_disk().unwrap();
    let read = |name: &str| fs::read(w.repo().join(".peers").join(name)).unwrap();
    let (goals, config) = (read(layout::peers::GOALS), read(layout::peers::CONFIG));
    let old = accept::read(&mut disk).unwrap().unwrap().digests;
    let new = accept::digests(&goals, &config);
    let at = peers_sys::clock::now();
    accept::write(&mut disk, &goals, &config, at, "op", None).unwrap();
    let op = OperatorOp::Accepted { old, new, note: None, rules: None };
    let command = Command { v: 1, op, by: "op".into(), at };
    commands::drop_command(&mut disk, "0000000000001-aabbcc", &command).unwrap();
}

#[test]
fn row_46_goals_that_the_operator_accepts_while_the_loop_runs_are_taken_over() {
    let w = World::new();
    let (here, go) = (w.fifo("here"), w.fifo("go"));
    w.play("idle", &[&[&here.tell(), &go.wait(), "write: {path: other, text: 'yes'}", "handoff: Fix it"]]);
    let live = w.start(&["--max-ticks=4", "--no-skeptic"]);
    here.told();
    let entries = w.counting_gate("tests", "test -f other") + &w.counting_gate("more", "test -f readme.txt");
    w.put(".peers/goals.yaml", &format!("goals:\n{entries}"));
    accept_meanwhile(&w);
    go.go();
    live.end().stopped("complete", 0);
    assert_eq!(w.ticks().len(), 1);
    assert!(w.gate_runs("more") > 0);
    let taken = w.records().into_iter().any(
        |r| matches!(r, Record::Operator(o) if matches!(o.op, OperatorOp::Accepted { rules: Some(_), .. })),
    );
    assert!(taken, "the rules came along");
    assert_eq!(fs::read_dir(w.store().join("commands")).unwrap().count(), 0, "taken once");
    w.settled();
    // The next run starts with them.
    w.run(&["--no-skeptic"]).stopped("complete", 0);
}

/// The steps of `goals edit` beside a running loop, one at a time.
fn edit_meanwhile(w: &World, goals: &str, id: &str) -> impl FnOnce() {
    let mut disk = w.place().open_store_disk().unwrap();
    let config = fs::read(w.repo().join(".peers").join(layout::peers::CONFIG)).unwrap();
    let old = accept::read(&mut disk).unwrap().unwrap().digests;
    let new = accept::digests(goals.as_bytes(), &config);
    let at = peers_sys::clock::now();
    let op = OperatorOp::Accepted { old, new, note: None, rules: None };
    commands::drop_command(&mut disk, id, &Command { v: 1, op, by: "op".into(), at }).unwrap();
    accept::write(&mut disk, goals.as_bytes(), &config, at, "op", None).unwrap();
    let (path, goals) = (w.repo().join(".peers/goals.yaml"), goals.to_owned());
    move || fs::write(path, goals).unwrap()
}

#[test]
fn row_46_an_acceptance_whose_file_is_not_there_yet_waits_for_it() {
    let w = World::new();
    let (here, go) = (w.fifo("here"), w.fifo("go"));
    let (here_again, go_again) = (w.fifo("here-again"), w.fifo("go-again"));
    w.play(
        "idle",
        &[
            &[&here.tell(), &go.wait(), "handoff: Look"],
            &[&here_again.tell(), &go_again.wait(), "write: {path: other, text: 'yes'}", "handoff: Fix it"],
        ],
    );
    let live = w.start(&["--max-ticks=6", "--no-skeptic"]);
    here.told();
    let goals = format!("goals:\n{}", w.counting_gate("more", "test -f other"));
    let write = edit_meanwhile(&w, &goals, "0000000000001-aabbcc");
    go.go();
    // A whole tick has passed with the message and without the file.
    here_again.told();
    assert_eq!(w.gate_runs("more"), 0);
    assert_eq!(fs::read_dir(w.store().join("commands")).unwrap().count(), 1, "it waits");
    write();
    go_again.go();
    live.end().stopped("complete", 0);
    assert!(w.gate_runs("more") > 0);
    assert_eq!(fs::read_dir(w.store().join("commands")).unwrap().count(), 0, "taken once");
    w.settled();
}

#[test]
fn row_46_an_acceptance_whose_file_never_comes_gives_way_to_the_next_one() {
    let w = World::new();
    let (here, go) = (w.fifo("here"), w.fifo("go"));
    w.play("idle", &[&[&here.tell(), &go.wait(), "write: {path: other, text: 'yes'}", "handoff: Fix it"]]);
    let live = w.start(&["--max-ticks=6", "--no-skeptic"]);
    here.told();
    let never = format!("goals:\n{}", w.counting_gate("never", "true"));
    drop(edit_meanwhile(&w, &never, "0000000000001-aabbcc"));
    let goals = format!("goals:\n{}", w.counting_gate("more", "test -f other"));
    edit_meanwhile(&w, &goals, "0000000000002-aabbcc")();
    go.go();
    live.end().stopped("complete", 0);
    assert_eq!(w.gate_runs("never"), 0);
    assert_eq!(fs::read_dir(w.store().join("commands")).unwrap().count(), 0);
    w.settled();
}

#[test]
fn row_46_a_command_that_is_no_command_is_put_aside() {
    let w = World::new();
    let (here, go) = (w.fifo("here"), w.fifo("go"));
    w.play("repeat", &[&[&here.tell(), &go.wait(), "handoff: Nothing"]]);
    let live = w.start(&["--max-ticks=1"]);
    here.told();
    fs::create_dir_all(w.store().join("commands")).unwrap();
    fs::write(w.store().join("commands/0001.json"), "{not json").unwrap();
    go.go();
    live.end().stopped("max_ticks", 0);
    assert!(w.store().join("commands/0001.json.bad").exists());
    w.settled();
}
