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
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "true")]));
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

#[test]
fn a_file_that_cannot_be_read_is_to_be_corrected_and_nowhere_to_be_accepted() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write(
        ".peers/goals.yaml",
        "goals:\n  - {id: real, type: hard, cmd: x, pass_when: exit_code == 0}\nhelp: [\n",
    );
    let status = world.peers(&["status"]).exits(0).out;
    let line = |begins: &str| status.lines().find(|line| line.starts_with(begins)).unwrap_or_default();
    assert!(line("next step:").contains("correct .peers/goals.yaml line "), "{status}");
    let alert = line("alert:");
    assert!(alert.contains("goals error: .peers/goals.yaml line ") && !alert.contains('^'), "{status}");
    let diff = world.peers(&["goals", "diff"]).exits(1);
    assert!(
        diff.err.contains("cannot be accepted") && !diff.err.contains("peers goals accept"),
        "{}",
        diff.err
    );
}

#[test]
fn after_a_run_an_edited_file_is_looked_at_and_accepted_before_anything_else() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
    let step =
        "next step: look at what changed in goals.yaml (`peers goals diff`), then `peers goals accept`";
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(step), "{status}");
    world.peers(&["goals", "accept"]).exits(0);
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains("next step: `peers run` goes on, or leave it as it is\n"), "{status}");
}

#[test]
fn goals_that_changed_in_a_worktree_are_looked_at_and_accepted_by_the_commands_that_are_named() {
    let world = World::ready("true");
    let dir = world.path("apart");
    world.script(
        "ann",
        "turns:\n- - write: {path: .peers/goals.yaml, append: \"# mine\\n\"}\n  - handoff: Done\n",
    );
    let run = world.peers(&["run", "--worktree", dir.to_str().unwrap()]).exits(5);
    assert_eq!(run.last_line(), "Stopped: goal-mutation:goals.yaml");
    let at = dir.canonicalize().unwrap();
    let at = at.to_str().unwrap();
    let status = world.peers(&["status"]).exits(0).out;
    for told in [&run.err, &status] {
        for what in ["goals diff", "goals accept"] {
            assert!(told.contains(&format!("`peers -C {at} {what}`")), "{told}");
        }
    }
    let diff = world.peers(&["-C", at, "goals", "diff"]).exits(1);
    assert!(diff.out.contains("+# mine"), "{}", diff.out);
    world.peers(&["-C", at, "goals", "accept"]).exits(0);
    world.script("ann", "turns:\n- - handoff: Done\n");
    world.peers(&["-C", at, "run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn gates_of_which_none_is_watched_are_warned_of_wherever_goals_are_looked_at() {
    let says = "no gate is watched for being stuck: `goals.stuck_halt_gates` names tests-pass and no-prior-regression, and goals.yaml has neither";
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("unit-tests", "true")]));
    assert!(world.peers(&["goals", "lint"]).exits(1).out.contains(says));
    assert!(world.peers(&["goals", "accept"]).exits(0).err.contains(says));
    assert!(world.peers(&["info"]).exits(0).out.contains(says));
    assert!(world.peers(&["init", "--upgrade"]).exits(0).err.contains(says));
    let run = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(run.err.matches(says).count(), 1, "{}", run.err);

    for more in ["{stuck_halt_gates: [unit-tests]}", "{stuck_halt_after: 0}", "{stuck_halt_gates: []}"] {
        world.write(".peers/config.yaml", &world.config(&format!("goals: {more}\n")));
        world.peers(&["goals", "lint"]).exits(0);
    }
    world.write(".peers/config.yaml", &world.config(""));
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "true")]));
    world.peers(&["goals", "lint"]).exits(0);
}

#[test]
fn two_files_that_changed_are_told_in_the_plural() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("other", "true")]));
    world.write(".peers/config.yaml", &world.config("max_retries: 1\n"));
    for command in ["run", "verify", "info"] {
        let told = world.peers(&[command]).err;
        assert!(told.contains("goals.yaml and config.yaml changed since they were accepted"), "{told}");
    }
}
