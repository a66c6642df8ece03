//! `peers goals` and `peers ack`.

use crate::support::{World, goals};

#[test]
fn a_weakened_gate_is_called_so_and_halts_the_run_until_it_is_accepted() {
    let world = World::ready("true");
    world.peers(&["goals", "diff"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("other", "true")]));
    let diff = world.peers(&["goals", "diff"]).exits(1);
    assert!(diff.out.contains("weaker: goal `real` is gone"), "{}", diff.out);
    assert!(diff.out.contains("runs: gate `other` runs `true`"), "{}", diff.out);
    assert!(diff.out.contains("-  - {id: real"), "{}", diff.out);
    let json = world.peers(&["goals", "diff", "--json"]).exits(1).json("peers.goals-diff/1");
    assert_eq!(json["changes"][0]["effect"], "weaker");

    for command in ["run", "verify"] {
        let refused = world.peers(&[command]).exits(5);
        assert!(refused.err.contains("goals.yaml changed since it was accepted"), "{}", refused.err);
        assert!(refused.err.contains("peers goals diff"), "{}", refused.err);
    }
    world.peers(&["goals", "accept", "--note", "a better gate"]).exits(0);
    world.peers(&["goals", "diff"]).exits(0);
    let record = world.records("operator").pop().unwrap();
    assert_eq!(
        (&record["op"], &record["note"], &record["by"]),
        (&"accepted".into(), &"a better gate".into(), &"tester".into())
    );
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn only_what_is_valid_can_be_accepted_and_every_problem_is_named() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", "goals:\n- {id: a, type: hard, cmd: x, pass_when: exit_code = 0}\n");
    world.write(".peers/config.yaml", "peers: []\nbudgett: 1\n");
    let done = world.peers(&["goals", "accept"]).exits(3);
    assert!(done.err.contains("config error: .peers/config.yaml line 2"), "{}", done.err);
    assert!(done.err.contains("goals error: .peers/goals.yaml line 2"), "{}", done.err);
    assert!(done.err.contains("compare with `==`"), "{}", done.err);
}

#[test]
fn lint_finds_a_gate_that_cannot_turn_red() {
    let world = World::ready("true");
    world.peers(&["goals", "lint"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("real", "make test || true")]));
    let done = world.peers(&["goals", "lint"]).exits(1);
    assert!(done.out.contains("|| true"), "{}", done.out);
}

#[test]
fn an_expression_is_tried_without_a_gate() {
    let world = World::bare();
    let eval = |args: &[&str]| world.peers(&[&["goals", "eval"], args].concat());
    assert_eq!(eval(&["exit_code == 0"]).exits(0).out, "true\n");
    assert_eq!(eval(&["exit_code == 0", "--exit-code", "-1"]).exits(1).out, "false\n");
    assert!(eval(&["exit_code = 0"]).exits(3).err.contains("pass_when"));
    world.write("cov.json", "{\"pct\": 81}");
    eval(&["json('cov.json').pct >= 80"]).exits(0);
    eval(&["json('../cov.json').pct >= 80"]).exits(3);
    eval(&["'ok' in stdout", "--stdout", "all ok", "--json"]).exits(0).json("peers.goals-eval/1");
}

#[test]
fn an_acknowledgement_is_recorded_with_its_reason() {
    let world = World::ready("true");
    world.peers(&["ack", "bug:BUG-1"]).exits(2);
    world.peers(&["ack", "bugs:BUG-1", "--reason", "x"]).exits(2);
    let unused = world.peers(&["ack", "concern:C-1", "--reason", "x"]).exits(3);
    assert!(unused.err.contains("no gate of this version asks about concerns"), "{}", unused.err);
    world.peers(&["ack", "weakening:7", "--reason", "x"]).exits(3);
    let report =
        "Report\n\n## Bug-Report\n{\"id\": \"BUG-1\", \"severity\": \"high\"}\n\nBug-Report: BUG-1\n";
    world.git(&["commit", "-q", "--allow-empty", "-m", report]);
    let wrong = world.peers(&["ack", "bug:BUG-l", "--reason", "x"]).exits(3);
    assert!(wrong.err.contains("did you mean `BUG-1`?"), "{}", wrong.err);
    world
        .peers(&["ack", "bug:BUG-1", "--reason", "known and accepted", "--json"])
        .exits(0)
        .json("peers.ack/1");
    let record = world.records("operator").pop().unwrap();
    assert_eq!((&record["op"], &record["reason"]), (&"ack".into(), &"known and accepted".into()));
    assert_eq!(record["target"], serde_json::json!({"kind": "bug", "id": "BUG-1"}));
}
