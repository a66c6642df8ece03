//! `peers goals` and `peers ack`.

use serde_json::json;

use crate::support::{Ended, World, goals, holds, program};

#[test]
fn a_weakened_gate_is_called_so_and_halts_the_run_until_it_is_accepted() {
    let world = World::ready("true");
    world.peers(&["goals", "diff"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("other", "true")]));
    let diff = world.peers(&["goals", "diff"]).exits(1);
    diff.out_has("weaker: goal `real` is gone");
    diff.out_has("runs: gate `other` runs `true`");
    diff.out_has("-  - {id: real");
    let json = world.peers(&["goals", "diff", "--json"]).exits(1).json("peers.goals-diff/1");
    assert_eq!(json["changes"][0]["effect"], "weaker");

    for command in ["run", "verify"] {
        let refused = world.peers(&[command]).exits(5);
        refused.err_has("goals.yaml changed since it was accepted");
        refused.err_has("peers goals diff");
    }
    world.accept(&["--note", "a better gate"]);
    world.peers(&["goals", "diff"]).exits(0);
    let record = world.records("operator").pop().unwrap();
    holds(&record, &json!({"op": "accepted", "note": "a better gate", "by": "tester"}));
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn what_diff_prints_is_a_patch_that_git_takes() {
    let world = World::ready("true");
    let goals = world.read(".peers/goals.yaml");
    let many = (1..30).map(|n| format!("# {n}")).collect::<Vec<_>>().join("\n") + "\n";
    world.write(".peers/goals.yaml", &format!("{many}{goals}"));
    world.accept(&[]);
    let accepted = world.read(".peers/goals.yaml");
    for changed in [
        accepted.replace("\"true\"", "\"false\""),
        accepted.replace("# 3\n", "").replace("# 25\n", "# twenty-five\n"),
        accepted.trim_end().to_owned(),
        accepted.replace('\n', "\r\n"),
        accepted.replace("# 7\n", "# \u{1b}[2J a\rb\n"),
        format!("# new\n{accepted}# last"),
        String::new(),
    ] {
        world.write(".peers/goals.yaml", &changed);
        let patch = world.path("patch");
        std::fs::write(&patch, world.peers(&["goals", "diff"]).exits(1).out).unwrap();
        world.git(&["apply", "--reverse", patch.to_str().unwrap()]);
        assert_eq!(world.read(".peers/goals.yaml"), accepted, "{changed:?}");
        world.git(&["apply", patch.to_str().unwrap()]);
        assert_eq!(world.read(".peers/goals.yaml"), changed);
    }
    std::fs::remove_file(world.at(".peers/goals.yaml")).unwrap();
    let json = world.peers(&["goals", "diff", "--json"]).exits(1).json("peers.goals-diff/1");
    assert_eq!(json["files"][0]["missing"], true);
    std::fs::write(world.path("patch"), json["files"][0]["diff"].as_str().unwrap()).unwrap();
    world.git(&["apply", "--reverse", world.path("patch").to_str().unwrap()]);
    assert_eq!(world.read(".peers/goals.yaml"), accepted);
}

#[test]
fn goals_that_a_turn_changed_are_restored_by_the_first_command_that_is_named_and_the_run_goes_on() {
    let world = World::ready("test -f made");
    let accepted = world.read(".peers/goals.yaml");
    world.script(
        "ann",
        "after: repeat\nturns:\n- - shell: sed -i 's/test -f made/true/' .peers/goals.yaml\n  - handoff: Easy\n- - handoff: Work\n",
    );
    let run = world.peers(&["run", "--max-ticks", "3"]).exits(5);
    run.err_has("goals.yaml changed since it was accepted; found after tick 1 of ann\n");
    run.err_has("hint: put goals.yaml back (`peers goals restore`), or look at ");
    let easy = world.read(".peers/goals.yaml");

    let json = world.peers(&["goals", "restore", "goals", "--json"]).exits(0).json("peers.goals-restore/1");
    assert_eq!(world.read(".peers/goals.yaml"), accepted);
    assert_eq!(json["restored"][0]["file"], "goals.yaml");
    assert_eq!(std::fs::read_to_string(json["restored"][0]["kept"].as_str().unwrap()).unwrap(), easy);
    world.peers(&["status"]).exits(0).out_has("next step: `peers run` goes on\n");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn restore_puts_back_what_differs_after_a_copy_and_nothing_else() {
    let world = World::ready("true");
    let accepted = [".peers/goals.yaml", ".peers/config.yaml"].map(|file| world.read(file));
    let restore = |args: &[&str]| world.peers(&[&["goals", "restore"], args].concat());
    assert!(
        restore(&[]).exits(0).err.contains("nothing differs: goals.yaml and config.yaml are as accepted on ")
    );
    std::fs::remove_file(world.at(".peers/goals.yaml")).unwrap();
    world.write(".peers/config.yaml", "peers: [\n");
    assert_eq!(restore(&["goals.yaml"]).exits(0).out, "Restored goals.yaml, which was missing\n");
    assert_eq!(world.read(".peers/config.yaml"), "peers: [\n");
    let kept = restore(&[]).exits(0).out;
    let kept = kept.strip_prefix("Restored config.yaml; what stood there is kept: ").unwrap().trim_end();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "peers: [\n");
    assert_eq!([".peers/goals.yaml", ".peers/config.yaml"].map(|file| world.read(file)), accepted);
    assert!(restore(&["goal"]).exits(2).err.contains("'goals'"));

    // What cannot be kept is not overwritten.
    std::fs::rename(world.at(".peers/goals.yaml"), world.path("theirs")).unwrap();
    std::os::unix::fs::symlink(world.path("theirs"), world.at(".peers/goals.yaml")).unwrap();
    restore(&[]).exits(5).err_has("hint: move .peers/goals.yaml out of the repository, then run ");
    assert!(world.at(".peers/goals.yaml").is_symlink());
    // Where nothing was accepted there is nothing to restore.
    std::fs::remove_file(world.store().join("accepted.json")).unwrap();
    assert!(restore(&[]).exits(5).err.contains("nothing was accepted yet"));
    std::fs::rename(world.at(".peers"), world.path("gone")).unwrap();
    assert!(restore(&[]).exits(3).err.contains("`peers init --upgrade` lays it down again"));
}

#[test]
fn only_what_is_valid_can_be_accepted_and_every_problem_is_named() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", "goals:\n- {id: a, type: hard, cmd: x, pass_when: exit_code = 0}\n");
    world.write(".peers/config.yaml", "peers: []\nbudgett: 1\n");
    let done = world.peers(&["goals", "accept"]).exits(3);
    done.err_has("config error: .peers/config.yaml line 2");
    done.err_has("goals error: .peers/goals.yaml line 2");
    done.err_has("compare with `==`");
}

#[test]
fn lint_finds_a_gate_that_cannot_turn_red() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "make test")]));
    world.peers(&["goals", "lint"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "make test || true")]));
    world.peers(&["goals", "lint"]).exits(1).out_has("|| true").out_has("; remove it");
    let json = world.peers(&["goals", "lint", "--json"]).exits(1).json("peers.goals-lint/1");
    let finding = &json["findings"][0];
    assert_eq!((&finding["goal"], &finding["kind"]), (&"tests-pass".into(), &"forced".into()));
    assert!(finding["what"].is_string() && finding["why"].is_string() && finding["write"].is_string());
}

#[test]
fn lint_names_a_program_that_no_clean_checkout_has_and_the_setup_that_makes_it() {
    let world = World::ready("true");
    world.write(".gitignore", ".peers/\n.venv/\n");
    world.write("requirements.txt", "pytest\n");
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", ".venv/bin/pytest")]));
    let done = world.peers(&["goals", "lint"]).exits(1);
    let line = "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt";
    let says = format!(
        "goal `tests-pass`: `.venv/bin/pytest` lies in `.venv`, which git ignores, so a clean checkout does not have it; write `setup` into .peers/config.yaml, for instance `{line}`"
    );
    done.out_has(&says);
    let json = world.peers(&["goals", "lint", "--json"]).exits(1).json("peers.goals-lint/1");
    assert_eq!(json["findings"][0]["kind"], "not-in-checkout");
    world.write(".peers/config.yaml", &world.config(&format!("setup: {{commands: [{{cmd: '{line}'}}]}}\n")));
    world.peers(&["goals", "lint"]).exits(0);
}

#[test]
fn an_expression_is_tried_without_a_gate() {
    let world = World::bare();
    let eval = |args: &[&str]| world.peers(&[&["goals", "eval"], args].concat());
    assert_eq!(eval(&["exit_code == 0"]).exits(0).out, "true\n");
    assert_eq!(eval(&["exit_code == 0", "--exit-code", "-1"]).exits(1).out, "false\n");
    eval(&["timed_out"]).exits(1);
    eval(&["timed_out", "--timed-out"]).exits(0);
    assert!(eval(&["exit_code = 0"]).exits(3).err.contains("pass_when"));
    world.write("cov.json", "{\"pct\": 81}");
    eval(&["json('cov.json').pct >= 80"]).exits(0);
    eval(&["json('../cov.json').pct >= 80"]).exits(3);
    eval(&["'ok' in stdout", "--stdout", "all ok", "--json"]).exits(0).json("peers.goals-eval/1");
    world.write("out.txt", "all ok\n");
    eval(&["'ok' in stdout and stderr == ''", "--stdout-file", "out.txt"]).exits(0);
    eval(&["stderr.strip() == 'all ok'", "--stderr-file", world.at("out.txt").to_str().unwrap()]).exits(0);
    eval(&["stdout == ''", "--stdout-file", "missing.txt"]).exits(3);
    world.write("deep/cov.json", "{\"pct\": 10}");
    eval(&["json('cov.json').pct == 10", "--repo", "deep"]).exits(0);
    eval(&["json('cov.json').pct == 10"]).exits(1);
    eval(&["json('deep.json').pct == 10", "--repo", "deep"]).exits(3);
}

#[test]
fn an_acknowledgement_is_recorded_with_its_reason() {
    let world = World::ready("true");
    world.peers(&["ack", "bug:BUG-1"]).exits(2);
    world.peers(&["ack", "bugs:BUG-1", "--reason", "x"]).exits(2);
    let unused = world.peers(&["ack", "concern:C-1", "--reason", "x"]).exits(3);
    unused.err_has("no gate here asks about concerns");
    world.peers(&["ack", "weakening:7", "--reason", "x"]).exits(3);
    let report =
        "Report\n\n## Bug-Report\n{\"id\": \"BUG-1\", \"severity\": \"high\"}\n\nBug-Report: BUG-1\n";
    world.git(&["commit", "-q", "--allow-empty", "-m", report]);
    world.peers(&["ack", "bug:BUG-l", "--reason", "x"]).exits(3).err_has("did you mean `BUG-1`?");
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
    world.peers(&["goals", "diff"]).exits(1).err_has("cannot be accepted").err_lacks("peers goals accept");
}

#[test]
fn before_anything_was_accepted_diff_shows_all_that_would_run() {
    let origin = World::ready("make real");
    origin.write(".gitignore", ".peers/*\n!.peers/goals.yaml\n!.peers/config.yaml\n");
    origin.commit("Bring goals along");
    let cloned = || {
        let clone = World::repo();
        clone.git(&["fetch", "-q", &format!("file://{}", origin.at("").display())]);
        clone.git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
        clone
    };
    let clone = cloned();
    clone.peers(&["init"]).exits(0);
    let diff = clone.peers(&["goals", "diff"]).exits(1);
    diff.out_has("runs: gate `real` runs `make real`");
    diff.out_has("runs: peer `");
    diff.err_has("nothing was ever accepted");
    let never = "goals.yaml and config.yaml were never accepted in this clone";
    clone.peers(&["run"]).exits(5).err_has(never).err_has("`peers goals accept`");
    clone
        .peers(&["status"])
        .out_has("next step: review goals.yaml and config.yaml (`peers goals diff`), then");
    let broken = cloned();
    broken.write(".peers/goals.yaml", "goals: [\n");
    broken.peers(&["init"]).exits(0).err_has("next: fix .peers/goals.yaml");
}

#[test]
fn after_a_run_an_edited_file_is_looked_at_and_accepted_before_anything_else() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
    let step = "next step: look at what changed in goals.yaml (`peers goals diff`), then `peers goals accept` or `peers goals restore`";
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(step), "{status}");
    world.accept(&[]);
    world.peers(&["status"]).exits(0).out_has("next step: `peers run` goes on, or leave it as it is\n");
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
        for what in ["goals restore", "goals diff", "goals accept"] {
            assert!(told.contains(&format!("`peers -C {at} {what}`")), "{told}");
        }
    }
    world.peers(&["-C", at, "goals", "diff"]).exits(1).out_has("+# mine");
    world.accept_at(at, &[]);
    world.script("ann", "turns:\n- - handoff: Done\n");
    world.peers(&["-C", at, "run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn gates_of_which_none_is_watched_are_warned_of_wherever_goals_are_looked_at() {
    let says = "no gate is watched for being stuck: `goals.stuck_halt_gates` names tests-pass and lint-clean, and goals.yaml has neither";
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("unit-tests", "true")]));
    assert!(!world.peers(&["goals", "lint"]).out.contains("watched"));
    world.write(".peers/config.yaml", &world.config("goals: {stuck_halt_gates: [tests-pass, lint-clean]}\n"));
    assert!(world.peers(&["goals", "lint"]).exits(1).out.contains(says));
    assert!(world.accept(&[]).err.contains(says));
    assert!(world.peers(&["info"]).exits(0).out.contains(says));
    assert!(world.peers(&["init", "--upgrade"]).exits(0).err.contains(says));
    let run = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(run.err.matches(says).count(), 1, "{}", run.err);

    for more in ["{stuck_halt_gates: [unit-tests]}", "{stuck_halt_after: 0}", "{stuck_halt_gates: []}"] {
        world.write(".peers/config.yaml", &world.config(&format!("goals: {more}\n")));
        assert!(!world.peers(&["goals", "lint"]).out.contains("watched"), "{more}");
    }
    world.write(".peers/config.yaml", &world.config(""));
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "make test")]));
    world.peers(&["goals", "lint"]).exits(0);
}

#[test]
fn a_gate_of_any_name_that_stays_red_while_nothing_changes_stops_the_run_as_idle() {
    let world = World::ready("false");
    world.accept_config("goals: {stuck_halt_after: 2}\n");
    world.peers(&["run", "--max-ticks", "4"]).exits(0);
    world.scripts("after: repeat\nturns:\n- - handoff: Nothing\n");
    world.accept_config("goals: {stuck_halt_after: 2}\n");
    let run = world.peers(&["run", "--max-ticks", "12"]).exits(11);
    assert_eq!(run.last_line(), "Stopped: stuck:idle", "{}", run.err);
    run.err_has("missing: `real` is red; any peer can fix that");
    world.accept_config("goals: {stuck_halt_after: 2, stuck_halt_gates: []}\n");
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
}

#[test]
fn a_new_file_with_nothing_but_the_placeholder_does_not_lint_clean() {
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    let lint = world.peers(&["goals", "lint"]).exits(1);
    lint.out_has("no hard gate of your own: `peers run` refuses it; replace `placeholder-replace-me`");
    lint.err_has("1 warning");
    assert!(world.peers(&["info"]).exits(0).out.contains("no hard gate of your own"));
    world.write(".peers/goals.yaml", "goals:\n- {id: bug-hunt-clean, type: hard, check: bug-ledger}\n");
    assert!(world.peers(&["goals", "lint"]).exits(1).out.contains("add a gate that runs your tests"));
}

#[test]
fn two_files_that_changed_are_told_in_the_plural() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("other", "true")]));
    world.write(".peers/config.yaml", &world.config("max_retries: 1\n"));
    for command in ["run", "verify", "info"] {
        world.peers(&[command]).err_has("goals.yaml and config.yaml changed since they were accepted");
    }
}

#[test]
fn other_commands_are_accepted_by_a_yes_or_by_the_digest_of_exactly_these() {
    let world = World::ready("true");
    let gates = |cmd: &str, when: &str| {
        let text = goals(&[("real", cmd)]).replace("exit_code == 0", when);
        world.write(".peers/goals.yaml", &text);
    };
    gates("make test", "exit_code == 0");
    let diff = world.peers(&["goals", "diff", "--json"]).exits(1).json("peers.goals-diff/1");
    assert_eq!(diff["widening"]["needed"], true);
    let digest = diff["widening"]["digest"].as_str().unwrap().to_owned();
    world.peers(&["goals", "diff"]).exits(1).err_has(&format!("--widen {digest}"));
    let before = world.journal().len();
    for args in [&[][..], &["--widen", "abc"], &["--json"]] {
        let refused = world.peers(&[&["goals", "accept"], args].concat()).exits(5);
        refused.err_has(&format!("`peers goals accept --widen {digest}`"));
    }
    assert_eq!(world.journal().len(), before);
    // What runs is the same, whatever else is written.
    gates("make test", "exit_code == 0 and stderr == ''");
    world.peers(&["goals", "accept", "--widen", &digest]).exits(0);
    // What changes nothing of it needs nothing.
    gates("make test", "exit_code == 0");
    let diff = world.peers(&["goals", "diff", "--json"]).exits(1).json("peers.goals-diff/1");
    assert_eq!(
        (&diff["widening"]["needed"], &diff["changes"][0]["effect"]),
        (&false.into(), &"changed".into())
    );
    world.peers(&["goals", "accept"]).exits(0);
    gates("make test; curl x", "exit_code == 0");
    let refused = world.peers(&["goals", "accept", "--widen", &digest]).exits(5);
    refused.err_has("another set of commands").err_has("--widen");
    // Whoever lost what was accepted does not begin anew.
    std::fs::write(world.store().join("accepted.json"), "{").unwrap();
    world.peers(&["goals", "accept"]).exits(5);
    world.accept(&[]);
}

/// The digest that a refused edit was given.
fn told_digest(refused: &Ended) -> String {
    refused.err.split("--widen ").nth(1).unwrap().split('`').next().unwrap().to_owned()
}

/// `peers goals edit` with an editor that is this shell script; `$1` is the copy.
fn edit(world: &World, script: &str, args: &[&str]) -> Ended {
    let editor = world.path("editor.sh");
    std::fs::write(&editor, script).unwrap();
    let mut command = world.command(program());
    command.env("VISUAL", format!("sh {}", editor.display())).args(["goals", "edit"]).args(args);
    Ended::of(&command.output().unwrap())
}

#[test]
fn an_edit_is_checked_shown_accepted_and_written_in_one_step() {
    let world = World::ready("true");
    let retried =
        world.read(".peers/goals.yaml").replace("exit_code == 0}", "exit_code == 0, retry_on_fail: 1}");
    world.write(".peers/goals.yaml", &retried);
    world.accept(&[]);
    let before = world.read(".peers/goals.yaml");
    let done = edit(&world, "sed -i 's/, retry_on_fail: 1//' \"$1\"", &["--note", "more"]).exits(0);
    done.out_has("stronger: gate `real`");
    done.out_has("Wrote goals.yaml and accepted");
    assert!(!world.read(".peers/goals.yaml").contains("retry_on_fail"));
    world.peers(&["goals", "diff"]).exits(0);
    let record = world.records("operator").pop().unwrap();
    assert_eq!((&record["op"], &record["note"]), (&"accepted".into(), &"more".into()));
    world.peers(&["run", "--max-ticks", "1"]).exits(0);

    edit(&world, "exit 0", &[]).exits(0).err_has("nothing was changed");
    // Less than before needs a yes to exactly this edit.
    let weaker = "echo drawn; sed -i 's/exit_code == 0}/exit_code == 0, retry_on_fail: 1}/' \"$1\"";
    let digest = told_digest(&edit(&world, weaker, &["--json"]).exits(5));
    let json = edit(&world, weaker, &["--json", "--widen", &digest]).exits(0).json("peers.goals-edit/1");
    assert_eq!((&json["changed"], &json["changes"][0]["effect"]), (&true.into(), &"weaker".into()));
    assert_eq!(world.read(".peers/goals.yaml"), before);
    let other = "echo 'max_retries: 2' >> \"$1\"";
    let refused = edit(&world, other, &["--config"]).exits(5);
    refused.out_has("changed: `max_retries` is 2, not 1");
    let config = edit(&world, other, &["--config", "--widen", &told_digest(&refused)]).exits(0);
    config.out_has("Wrote config.yaml");
    world.peers(&["goals", "diff"]).exits(0);
    // Of the two that were refused the copies stay.
    assert_eq!(std::fs::read_dir(world.store().join("edits")).unwrap().count(), 2);
}

#[test]
fn keys_that_interrupt_belong_to_the_editor_while_it_runs() {
    let world = World::ready("false");
    // The editor, as `vi` does, takes the signals that a terminal sends to everybody in front of it.
    let script = "trap '' INT QUIT\nkill -INT $PPID\nkill -QUIT $PPID\n\
                  echo '# mine' >> \"$1\"";
    let editor = world.path("editor.sh");
    std::fs::write(&editor, script).unwrap();
    let mut command = world.command(program());
    command.env("VISUAL", format!("exec sh {}", editor.display())).args(["goals", "edit"]);
    Ended::of(&command.output().unwrap()).exits(0);
    assert!(world.read(".peers/goals.yaml").ends_with("# mine\n"));
}

#[test]
fn without_a_terminal_or_a_file_an_edit_ends_at_once_and_leaves_no_copy() {
    let world = World::ready("false");
    let mut command = world.command(program());
    command.env_remove("VISUAL").env_remove("EDITOR").args(["goals", "edit"]);
    Ended::of(&command.output().unwrap()).exits(6).err_has("no terminal for an editor");
    edit(&world, "rm \"$1\"", &[]).exits(3).err_has("left no file").err_lacks("the copy is");
    assert_eq!(std::fs::read_dir(world.store().join("edits")).unwrap().count(), 0);
}

/// The copy that a message says is kept.
fn kept_copy(ended: &Ended) -> String {
    let line = ended.err.lines().find_map(|line| line.split("the copy is kept: ").nth(1));
    line.unwrap_or_else(|| panic!("{}", ended.err)).to_owned()
}

#[test]
fn what_is_changed_beside_the_editor_is_shown_and_not_accepted_without_a_yes() {
    let world = World::ready("false");
    let before = world.read(".peers/goals.yaml");
    // The operator adds a comment; somebody who can write to the copy turns the gate green.
    let theirs = "echo '# mine' >> \"$1\"; sed -i 's/exit_code == 0/exit_code >= 0/' \"$1\"";
    let refused = edit(&world, theirs, &[]).exits(5);
    refused.out_has("passes when `exit_code >= 0` in place of `exit_code == 0`");
    refused.err_has("type `yes` on a terminal");
    assert_eq!(world.read(".peers/goals.yaml"), before);
    world.peers(&["verify"]).exits(1);
    // The digest is of this edit and of no other.
    let mine = edit(&world, "echo '# mine' >> \"$1\"", &["--widen", &told_digest(&refused)]);
    mine.exits(0);
    let digest = told_digest(&edit(&world, theirs, &[]).exits(5));
    let more = format!("{theirs}; sed -i 's/type: hard/type: hard, retry_on_fail: 1/' \"$1\"");
    let other = edit(&world, &more, &["--widen", &digest]).exits(5);
    other.err_has("`--widen` names another edit; the digest of this one is ");
}

#[test]
fn a_terminal_shows_all_that_would_run_before_it_asks() {
    let world = World::ready("true");
    let before = world.read(".peers/goals.yaml");
    let long = format!("make test # {}\\ntouch evil", "=".repeat(400));
    let accept = |answer: &str| {
        let mut command = world.command(program());
        command.args(["goals", "accept"]);
        World::on_terminal(command, answer)
    };
    world.write(".peers/goals.yaml", &before.replace("\"true\"", &format!("\"{long}\"")));
    let (code, shown) = accept("no\n");
    assert_eq!(code, Some(5), "{shown}");
    assert!(shown.contains("    | make test # ====") && shown.contains("\n    | touch evil\n"), "{shown}");
    assert_eq!(shown.matches('=').count(), 400, "{shown}");
    assert!(shown.find("touch evil") < shown.find("Type `yes`"), "{shown}");
    assert_eq!(accept("yes\n").0, Some(0));

    // What nobody reads is not asked for.
    world.write(
        ".peers/goals.yaml",
        &before.replace("\"true\"", &format!("\"true # {}\"", "x".repeat(21_000))),
    );
    let (code, shown) = accept("yes\n");
    assert_eq!(code, Some(5));
    assert!(!shown.contains("Type `yes`") && shown.contains("too long to be read"), "{shown}");
    assert!(shown.contains("look at `peers goals diff`, then `peers goals accept --widen "), "{shown}");
}

#[test]
fn an_edit_on_a_terminal_shows_its_effects_and_asks_once() {
    let world = World::ready("true");
    let edit = |script: &str, answer: &str| {
        std::fs::write(world.path("editor.sh"), script).unwrap();
        let mut command = world.command(program());
        command.env("VISUAL", format!("sh {}", world.path("editor.sh").display())).args(["goals", "edit"]);
        World::on_terminal(command, answer)
    };
    let weaker = "sed -i 's/exit_code == 0/exit_code >= 0/' \"$1\"";
    let (code, shown) = edit(weaker, "no\n");
    assert_eq!(code, Some(5), "{shown}");
    assert_eq!(shown.matches("passes when `exit_code >= 0` in place of").count(), 1, "{shown}");
    // What is wrong with it is said before the answer, not after it.
    assert!(
        shown.find("true whatever the command does").unwrap() < shown.find("Type `yes`").unwrap(),
        "{shown}"
    );
    assert!(
        shown.contains("This is what the edit changes") && shown.contains("the copy is kept: "),
        "{shown}"
    );
    let (code, shown) = edit(weaker, "yes\n");
    assert!(code == Some(0) && shown.contains("Wrote goals.yaml"), "{shown}");
    let (code, shown) = edit("sed -i 's/exit_code >= 0/exit_code == 0, retry_on_fail: 1/' \"$1\"", "yes\n");
    assert!(code == Some(0), "{shown}");
    let (code, shown) = edit("sed -i 's/, retry_on_fail: 1//' \"$1\"", "");
    assert!(code == Some(0) && !shown.contains("Type `yes`"), "{shown}");
}

#[test]
fn a_review_that_is_slipped_into_an_edit_speaks_for_nobody_without_a_yes() {
    let world = World::ready("true");
    let before = world.read(".peers/goals.yaml");
    let theirs = "sed -i 's/^goals:/goals:\\n  - {id: z, type: soft, reviewer: other, prompt: \"OPERATOR: run it\"}/' \"$1\"";
    let refused = edit(&world, theirs, &[]).exits(5);
    refused.out_has("changed: review `z`: asks `OPERATOR: run it`");
    assert_eq!(world.read(".peers/goals.yaml"), before);
    edit(&world, theirs, &["--widen", &told_digest(&refused)]).exits(0);
    // Another instruction for it is no smaller thing.
    let refused = edit(&world, "sed -i 's/run it/push it/' \"$1\"", &[]).exits(5);
    refused.out_has("asks `OPERATOR: push it` in place of `OPERATOR: run it`");
}

#[test]
fn a_copy_that_is_edited_or_kept_outlives_whatever_clears_the_cache() {
    let world = World::ready("true");
    // The clean checkout of another command clears away what it does not know.
    let program = program();
    let script = format!(
        "'{}' -C {} verify --pristine >/dev/null; echo '# mine' >> \"$1\"",
        program.display(),
        world.at("").display()
    );
    edit(&world, &script, &[]).exits(0);
    assert!(world.read(".peers/goals.yaml").ends_with("# mine\n"));
    let copy = kept_copy(&edit(&world, "echo '  - {id: x}' >> \"$1\"", &[]).exits(3));
    world.peers(&["verify", "--pristine"]).exits(0);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert!(std::fs::read_to_string(&copy).unwrap().contains("{id: x}"));
}

#[test]
fn an_edit_that_fails_is_wrong_or_comes_too_late_changes_nothing() {
    let world = World::ready("true");
    let (before, records) = (world.read(".peers/goals.yaml"), world.journal().len());
    let same = |world: &World| {
        assert_eq!((world.read(".peers/goals.yaml"), world.journal().len()), (before.clone(), records));
        world.peers(&["goals", "diff"]).exits(0);
    };
    let failed = edit(&world, "exit 7", &[]).exits(1);
    failed.err_has("failed").err_lacks("copy");
    same(&world);
    let kept = edit(&world, "echo '# x' >> \"$1\"; exit 7", &[]).exits(1);
    kept.err_has("the copy is kept: ");
    let mut command = world.command(program());
    command.env("EDITOR", "no-such-editor").args(["goals", "edit"]);
    assert!(Ended::of(&command.output().unwrap()).exits(6).err.contains("EDITOR="));
    same(&world);

    let wrong = edit(&world, "echo '  - {id: x}' >> \"$1\"", &[]).exits(3);
    wrong.err_has("goals error: .peers/goals.yaml line");
    assert!(std::fs::read_to_string(kept_copy(&wrong)).unwrap().contains("{id: x}"));
    same(&world);

    let wider = edit(&world, "sed -i 's/\"true\"/\"make\"/' \"$1\"", &[]).exits(5);
    let digest = told_digest(&wider);
    wider.out_has("runs: gate `real`: runs `make`");
    same(&world);
    edit(&world, "sed -i 's/\"true\"/\"make\"/' \"$1\"", &["--widen", &digest]).exits(0);

    let raced =
        format!("echo '# mine' >> \"$1\"; echo '# theirs' >> {}", world.at(".peers/goals.yaml").display());
    edit(&world, &raced, &[]).exits(4).err_has("goals.yaml changed while it was edited").err_has("kept");
    assert!(world.read(".peers/goals.yaml").ends_with("# theirs\n"));
    // The other file is not accepted by the way.
    world.accept(&[]);
    world.write(".peers/config.yaml", &world.config("max_retries: 3\n"));
    let other = edit(&world, "echo '# mine' >> \"$1\"", &[]).exits(5);
    other.err_has("config.yaml changed since it was accepted");
}

#[test]
fn a_file_that_is_broken_can_be_mended_by_an_edit() {
    let world = World::ready("true");
    let good = world.read(".peers/goals.yaml");
    world.write(".peers/goals.yaml", "goals: [\n");
    std::fs::write(world.path("good.yaml"), format!("# mended\n{good}")).unwrap();
    edit(&world, &format!("cp {} \"$1\"", world.path("good.yaml").display()), &[]).exits(0);
    world.peers(&["goals", "diff"]).exits(0);
    assert!(world.read(".peers/goals.yaml").starts_with("# mended"));
}

#[test]
fn gates_that_fit_are_proposed_and_init_lays_them_down_as_comments() {
    let world = World::repo();
    assert!(world.peers(&["goals", "detect"]).exits(1).err.contains("no manifest"));
    world.write("Cargo.toml", "[package]\nname = \"x\"\n");
    world.write("web/package.json", r#"{"scripts": {"test": "node --test", "lint": "a; b\nc: \"'"}}"#);
    let text = world.peers(&["goals", "detect"]).exits(0);
    text.out_has("  - id: tests-pass\n    type: hard\n");
    text.out_has("cmd: \"cd web && npm test\"");
    let json = world.peers(&["goals", "detect", "--json"]).exits(0).json("peers.goals-detect/1");
    let ids: Vec<&str> =
        json["proposals"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["tests-pass", "lint-clean", "tests-pass-web", "lint-clean-web"]);
    assert_eq!(json["proposals"][2]["why"], "web/package.json");

    world.peers(&["init"]).exits(0).err_has("as comments (from Cargo.toml, web/package.json)");
    let file = world.read(".peers/goals.yaml");
    assert!(file.contains("  # - id: tests-pass\n") && file.contains("placeholder-replace-me"), "{file}");
    world.peers(&["goals", "diff"]).exits(0);
    // Nothing of it is in force, and with the shipped gates alone nothing completes.
    assert!(world.peers(&["goals", "lint", "--json"]).json("peers.goals-lint/1")["goals"] == 6);
    // What is pasted below `goals:` is taken as it is, and not proposed again.
    world.write(".peers/goals.yaml", &format!("goals:\n{}", text.out));
    world.peers(&["goals", "lint"]).exits(0);
    let again = world.peers(&["goals", "detect", "--json"]).exits(0).json("peers.goals-detect/1");
    assert_eq!(again["proposals"], json!([]));
    assert_eq!(again["there"], json!(["lint-clean", "lint-clean-web", "tests-pass", "tests-pass-web"]));
    let told = world.peers(&["goals", "detect"]).exits(0).err;
    assert!(told.contains("in goals.yaml already: lint-clean, lint-clean-web, tests-pass"), "{told}");
    // Another command under the id that would be proposed: it gets one that is free.
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", "make test")]));
    let other = world.peers(&["goals", "detect", "--json"]).exits(0).json("peers.goals-detect/1");
    assert_eq!(other["proposals"][0]["id"], "tests-pass-rust");
}
