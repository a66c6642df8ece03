//! A plan: checked by hand, frozen, run, amended.

use crate::support::World;

const PLAN: &str = "# Feature: greet\n## Meta\nsurfaces: [cli]\nacceptance: sh tests/greet.sh\nacceptance_files: tests/*.sh\n\
## Steps\n- [ ] [STEP-1] Greet\n  - touches: greet.txt\n- [ ] [STEP-2] Greet in Latin\n  - touches: latin.txt\n";

/// A repository with a test that fails, and the plan beside it.
fn planned() -> World {
    let world = World::repo();
    world.write("tests/greet.sh", "grep -q hello greet.txt\n");
    world.commit("A test");
    std::fs::write(world.path("plan.md"), PLAN).unwrap();
    world
}

/// The plan, frozen; its repository is `repo`.
pub(crate) fn frozen() -> World {
    let world = planned();
    world.peers(&["init", "--modes", "implement", "--plan", "../plan.md"]).exits(0);
    world
}

#[test]
fn a_plan_is_shown_as_it_is_understood() {
    let world = planned();
    let done = world.peers(&["plan", "check", "../plan.md"]).exits(0);
    done.out_has("Feature: greet\n")
        .out_has("acceptance: sh tests/greet.sh")
        .out_has("[ ] STEP-2 Greet in Latin; touches latin.txt");
    let json = world.peers(&["plan", "check", "../plan.md", "--json"]).exits(0).json("peers.plan-check/1");
    assert_eq!((&json["steps"][1]["id"], &json["errors"]), (&"STEP-2".into(), &serde_json::json!([])));
    std::fs::write(world.path("plan.md"), PLAN.replace("STEP-2", "STEP-3").replace("[cli]", "[cly]"))
        .unwrap();
    let done = world.peers(&["plan", "check", "../plan.md"]).exits(3);
    done.out_has("../plan.md:3: error: `cly` is not a surface").out_has("../plan.md:9: error: no STEP-2");
    let json = world.peers(&["plan", "check", "../plan.md", "--json"]).exits(3).json("peers.plan-check/1");
    assert_eq!(json["errors"][0]["line"], 3);
    world.peers(&["plan", "check", "../absent.md"]).exits(2);
}

#[test]
fn row_41_a_plan_is_frozen_when_its_command_fails_before_anything_is_done() {
    let world = planned();
    let init = |more: &[&str]| {
        let args: Vec<&str> = ["init", "--plan", "../plan.md"].iter().chain(more).copied().collect();
        world.peers(&args)
    };
    init(&[]).exits(2).err_has("--modes implement");
    init(&["--modes", "audit"]).exits(2);
    for (command, code, says) in
        [("true", 1, "already implemented"), ("no-such-program-here", 3, "measures nothing: exit 127")]
    {
        std::fs::write(world.path("plan.md"), PLAN.replace("sh tests/greet.sh", command)).unwrap();
        init(&["--modes", "implement"]).exits(code).err_has(says);
        assert!(!world.at(".peers").exists() && !world.at("PLAN.md").exists(), "{command}");
    }
    init(&["--modes", "implement", "--accept-passing"]).exits(0);
    assert!(world.at("PLAN.md").exists());
}

#[test]
fn a_plan_whose_command_names_a_file_that_anybody_may_write_is_refused() {
    let plan = |files: &str| PLAN.replace("tests/greet.sh", "tests/late.sh").replace("tests/*.sh", files);
    let world = planned();
    let init = |plan: &str| {
        std::fs::write(world.at("plan.md"), plan).unwrap();
        world.peers(&["init", "--modes", "implement", "--plan", "plan.md"])
    };
    for text in [plan("tests/*.sh"), plan("tests/late.sh")] {
        init(&text)
            .exits(3)
            .err_has("`tests/late.sh`, which is not in HEAD")
            .err_has("hint: commit it first");
        assert!(!world.at(".peers").exists() && !world.at("PLAN.md").exists());
    }
    // What a step writes is the feature, and may be missing; `--accept-passing` takes the rest.
    let touched = plan("tests/*.sh").replace("greet.txt\n", "tests/late.sh\n");
    std::fs::write(world.at("plan.md"), &touched).unwrap();
    let dry_run = ["init", "--modes", "implement", "--plan", "plan.md", "--dry-run"];
    world
        .peers(&dry_run)
        .exits(0)
        .err_has("`tests/late.sh`, which a command of the plan names, is not in HEAD");
    std::fs::write(world.at("plan.md"), plan("tests/*.sh")).unwrap();
    world.peers(&[&dry_run[..], &["--accept-passing"]].concat()).exits(0).err_has("is not in HEAD");
    // With the test in a commit: frozen or not, and how it failed.
    let loose = PLAN.replace("acceptance_files: tests/*.sh\n", "");
    let done = init(&loose).exits(0);
    done.err_has("`tests/greet.sh`, which a command of the plan names, is not frozen")
        .err_has("tried at HEAD: exit 2, `grep: greet.txt: No such file")
        .err_has("plan.md is not needed any more: PLAN.md is the plan now");
    assert!(world.records("operator").iter().any(|r| r.to_string().contains("exit 2, `grep: greet.txt")));
    world.ctl(&["add", "."]).exits(0);
    let amend = |cmd: &str| world.ctl(&["amend", "repo", "--acceptance", cmd, "--reason", "it moved"]);
    amend("sh tests/late.sh").exits(3).err_has("`tests/late.sh`, which is not in HEAD");
    amend("sh ./tests/greet.sh").exits(0).out_has("`tests/greet.sh` is not frozen");
}

#[test]
fn a_frozen_plan_is_not_changed_where_an_object_is_cut_short() {
    let world = frozen();
    world.ctl(&["add", "."]).exits(0);
    let plan = world.read("PLAN.md").replace("- [ ] [STEP-1] Greet\n", "- [BLOCKED] [STEP-1] Greet\n");
    world.write("PLAN.md", &plan);
    world.commit("It cannot be done");
    world.cut_head();
    for args in [
        &["amend", "repo", "--acceptance", "sh tests/greet.sh", "--reason", "it moved"][..],
        &["ack-block", "repo", "STEP-1", "--reason", "it may stay"],
    ] {
        let done = world.ctl(args);
        assert_ne!(done.code, Some(0), "{args:?}");
        done.err_has("an object that is cut short");
    }
    assert!(!world.records("operator").iter().any(|record| record.to_string().contains("it m")));
    assert_eq!(world.read("PLAN.md"), plan);
}

#[test]
fn a_new_project_without_the_acceptance_test_is_not_made() {
    let world = planned();
    for plan in [PLAN.to_owned(), PLAN.replace("sh tests/greet.sh", "make greet")] {
        std::fs::write(world.path("plan.md"), plan).unwrap();
        let done = world.ctl(&["new", "../nn", "--modes", "implement", "--plan", "../plan.md"]).exits(3);
        done.err_has("HEAD").err_has("hint: commit it first");
        assert!(!world.path("nn").exists());
    }
}

#[test]
fn row_48_the_frozen_command_runs_in_a_clean_checkout_with_the_frozen_files() {
    let world = frozen();
    let done = world.peers(&["check", "acceptance"]).exits(1);
    done.out_has("acceptance: FAIL (the frozen command exits 2)");
    // A peer makes the test easy, in the repository and in the copy.
    world.write("tests/greet.sh", "exit 0\n");
    world.commit("Make it pass");
    world.peers(&["check", "acceptance"]).exits(1);
    let copy = world.at(".peers/contracts/acceptance.sh");
    std::fs::remove_file(&copy).unwrap();
    std::fs::write(&copy, "exit 0\n").unwrap();
    world
        .peers(&["check", "acceptance"])
        .exits(1)
        .out_has(".peers/contracts/acceptance.sh: tamper:contracts");
    world.peers(&["check", "contracts"]).exits(1).out_has("tamper:contracts");
    world.write("greet.txt", "hello\n");
    world.peers(&["check", "acceptance"]).exits(1);
    world.commit("Greet");
    world.peers(&["check", "acceptance"]).exits(0).out_has("acceptance: pass");
    world.peers(&["check", "e2e"]).exits(0).out_has("e2e: skipped");
    world.peers(&["check", "plan-complete"]).exits(1).out_has("STEP-1 is open");
    world.peers(&["check", "plan-preserved"]).exits(0);
}

#[test]
fn row_49_a_frozen_command_is_amended_with_a_reason() {
    let world = frozen();
    world.ctl(&["add", "."]).exits(0);
    let amend = |args: &[&str]| {
        let args: Vec<&str> = ["amend"].iter().chain(args).copied().collect();
        world.ctl(&args)
    };
    let with = |name| amend(&[name, "--acceptance", "true", "--reason", "it moved"]);
    with("nobody").exits(3);
    with("../x").exits(2);
    amend(&["repo", "--acceptance", "true"]).exits(2);
    amend(&["repo", "--acceptance", "true", "--reason", "a\nb"]).exits(2);
    with("repo").exits(0).out_has("acceptance was `sh tests/greet.sh` and is `true`");
    world.peers(&["check", "acceptance"]).exits(0);
    world.peers(&["check", "contracts"]).exits(0);
    world.peers(&["check", "plan-preserved"]).exits(0);
    let other = World::ready("true");
    other.ctl(&["add", "."]).exits(0);
    other.ctl(&["amend", "repo", "--acceptance", "true", "--reason", "x"]).exits(3).err_has("not implement");
}

#[test]
fn row_50_a_blocked_step_is_acknowledged_and_no_other() {
    let world = frozen();
    world.ctl(&["add", "."]).exits(0);
    let ack = |step: &str| world.ctl(&["ack-block", "repo", step, "--reason", "no licence"]);
    ack("STEP-1").exits(1).err_has("its mark is `[ ]`");
    ack("STEP-9").exits(3);
    ack("step-1").exits(2);
    world.ctl(&["ack-block", "repo", "STEP-1"]).exits(2);
    let blocked = world.read("PLAN.md").replace("- [ ] [STEP-1]", "- [BLOCKED] [STEP-1]");
    world.write("PLAN.md", &blocked);
    world.commit("Blocked");
    world.peers(&["check", "no-unresolved-blocks"]).exits(1);
    // What cannot be recorded changes nothing.
    let journal = world.store().join("journal");
    let aside = world.store().join("aside");
    std::fs::rename(&journal, &aside).unwrap();
    std::fs::write(&journal, "").unwrap();
    assert_ne!(ack("STEP-1").code, Some(0));
    assert_eq!(world.read("PLAN.md"), blocked);
    std::fs::remove_file(&journal).unwrap();
    std::fs::rename(&aside, &journal).unwrap();
    ack("STEP-1").exits(0);
    assert_eq!(world.read("PLAN.md"), blocked.replace("[BLOCKED]", "[BLOCKED-ACK]"));
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    world.peers(&["check", "no-unresolved-blocks"]).exits(0);
    ack("STEP-1").exits(1);
    std::fs::remove_file(world.at("PLAN.md")).unwrap();
    std::os::unix::fs::symlink("README.md", world.at("PLAN.md")).unwrap();
    ack("STEP-1").exits(5);
}
