//! `peers verify`.

use crate::support::{Ended, World, goals, program};

#[test]
fn green_gates_pass_and_the_report_is_written() {
    let world = World::ready("true");
    let done = world.peers(&["verify"]).exits(0);
    assert!(
        done.out.starts_with("# peers verify — repo\n\n**Result:** PASS (1 of 1 hard goal green)\n"),
        "{}",
        done.out
    );
    done.out_has("| real | pass | ");
    assert_eq!(world.read(".peers/VERIFY.md"), done.out);
    assert!(world.journal().iter().all(|record| record["event"] == "operator"), "verify records nothing");
}

#[test]
fn one_red_gate_is_a_negative_answer_with_its_reason() {
    let world = World::ready("echo the | pipe >&2; false");
    world.peers(&["verify", "--no-write"]).exits(1).out_has("**Result:** FAIL (0 of 1 hard goal green)");
    assert!(!world.at(".peers/VERIFY.md").exists());
    let json = world.peers(&["verify", "--json", "--no-write"]).exits(1).json("peers.verify/2");
    assert_eq!((&json["result"], &json["hard"][0]["state"]), (&"fail".into(), &"fail".into()));
    assert_eq!(json["head"], world.head().as_str());
}

#[test]
fn a_red_gate_stays_red_when_nobody_reads_the_report() {
    let world = World::ready("false");
    let args: [&[&str]; 3] = [&["verify"], &["verify", "--json"], &["verify", "--pristine"]];
    for args in args {
        let mut child = world.spawned(args);
        drop(child.stdout.take());
        Ended::waited(child).exits(1);
        assert!(world.read(".peers/VERIFY.md").contains("FAIL"));
    }
}

#[test]
fn a_gate_that_lives_on_an_ignored_file_is_red_in_a_clean_checkout() {
    let world = World::ready("test -e built");
    world.write(".gitignore", ".peers/\nbuilt\n");
    world.commit("Ignore what is built");
    world.write("built", "");
    world.peers(&["verify"]).exits(0);
    world.peers(&["verify", "--pristine"]).exits(1).out_has("a clean checkout");
}

#[test]
fn a_link_out_of_the_repository_proves_nothing_unless_it_was_there_when_peers_was_set_up() {
    let link = |world: &World, name: &str| {
        std::fs::create_dir_all(world.path("out")).unwrap();
        std::fs::write(world.path("out/ok"), "").unwrap();
        std::os::unix::fs::symlink(world.path("out"), world.at(name)).unwrap();
        world.commit("A link");
    };
    let world = World::repo();
    link(&world, "theirs");
    world.peers(&["init"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("real", "test -e theirs/ok")]));
    world.accept_config("");
    world.write("later.txt", "");
    world.commit("Something else");
    world.peers(&["verify", "--pristine"]).exits(0);
    link(&world, "later");
    world.peers(&["verify"]).exits(0);
    let done = world.peers(&["verify", "--pristine"]).exits(1);
    done.out_has("leads out of the repository: \\`later\\`");
    done.out_lacks("theirs");
}

#[test]
fn an_exempt_gate_is_named_as_not_proved() {
    let world = World::ready("true");
    world.write(
        ".peers/goals.yaml",
        &goals(&[("real", "test -d .peers")]).replace("type: hard", "type: hard, tree: live"),
    );
    world.accept(&[]);
    let done = world.peers(&["verify"]).exits(0);
    done.out_has("Not proved in a clean checkout, by `tree: live`: 1 gate (real)");
    world.peers(&["verify", "--pristine"]).exits(1).out_has("NOTHING TO CHECK");
    world.peers(&["verify", "--pristine", "--allow-empty"]).exits(0);
}

#[test]
fn commands_of_the_configuration_run_after_the_gates() {
    let world = World::ready("true");
    world.accept_config(
        "verify:\n  commands:\n  - {name: lint, cmd: 'echo untidy >&2; exit 2'}\n  - {cmd: 'true'}\n",
    );
    let done = world.peers(&["verify"]).exits(1);
    done.out_has("(1 of 1 hard goal green, 1 of 2 verify commands green)");
    done.out_has("| lint | fail | ").out_has("exit code 2; untidy");
    world.peers(&["verify", "--only", "real"]).exits(0);
    world.peers(&["verify", "--only", "lint"]).exits(1);
    let unknown = world.peers(&["verify", "--only", "rael"]).exits(2).err;
    assert!(unknown.contains("is called `rael`; did you mean `real`? (real, "), "{unknown}");
    assert!(world.peers(&["verify", "--only", "nope"]).exits(2).err.contains("is called `nope` (real, "));
}

#[test]
fn a_link_in_place_of_the_report_is_refused_and_its_target_untouched() {
    let world = World::ready("true");
    world.write("victim", "untouched");
    std::os::unix::fs::symlink(world.at("victim"), world.at(".peers/VERIFY.md")).unwrap();
    world.peers(&["verify"]).exits(5).err_has("VERIFY.md was a symbolic link; it was removed");
    assert_eq!(world.read("victim"), "untouched");
    assert!(!world.at(".peers/VERIFY.md").is_symlink(), "it could lead to a report that somebody forged");
}

#[test]
fn it_works_beside_a_running_loop_and_says_so() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    let lock = std::fs::File::open(world.store().join("run.lock")).unwrap();
    lock.lock().unwrap();
    let done = world.peers(&["verify", "--junit", "../j.xml", "--sarif", "../s.sarif"]).exits(0);
    done.err_has("a loop works here");
    done.out_has("A loop works in this repository at the same time");
    let github = world.peers(&["verify", "--format", "github"]).exits(0).out;
    for told in [github, world.read("../j.xml"), world.read("../s.sarif")] {
        assert!(told.contains("a loop works in this repository at the same time"), "{told}");
    }
    assert_eq!(world.peers(&["verify", "--json"]).exits(0).json("peers.verify/2")["beside"], true);
}

#[test]
fn a_gate_of_the_live_tree_alone_is_refused_for_a_clean_checkout_with_its_reason() {
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    let live = "  - {id: near, type: hard, cmd: 'true', pass_when: exit_code == 0, tree: live}\n";
    world.write(".peers/goals.yaml", &format!("{}{live}", goals(&[("real", "true")])));
    world.accept_config("verify: {commands: [{cmd: 'true', name: extra}]}\n");
    let said = |names: &[&str], code: i32| {
        let only = names.iter().flat_map(|name| ["--only", name]);
        let args: Vec<&str> = ["verify", "--pristine"].into_iter().chain(only).collect();
        world.peers(&args).exits(code).err
    };
    let err = said(&["near"], 2);
    assert!(err.contains("`near` is `tree: live` and does not run in a clean checkout"), "{err}");
    let err = said(&["near", "extra"], 2);
    assert!(err.contains("`extra` is one of `verify.commands` and does not run"), "{err}");
    said(&["real", "extra"], 2);
    said(&["near", "real"], 0);
    world.peers(&["verify", "--only", "near"]).exits(0);
}

#[test]
fn a_report_that_cannot_be_written_is_in_the_exit_code_of_the_json_too() {
    let world = World::ready("true; mkdir -p .peers/VERIFY.md");
    let done = world.peers(&["verify", "--json"]);
    let code = done.code.unwrap();
    assert!(code > 1, "{code}");
    let json = done.json("peers.verify/2");
    assert_eq!((&json["result"], &json["exit_code"]), (&"pass".into(), &code.into()));
    done.err_has("`--no-write`");
    std::fs::remove_dir(world.at(".peers/VERIFY.md")).unwrap();
    let json = world.peers(&["verify", "--json", "--no-write"]).exits(0).json("peers.verify/2");
    assert_eq!(json["exit_code"], 0);
}

#[test]
fn only_takes_what_is_needed_along_and_is_no_whole_verification() {
    let world = World::ready("true");
    let goal = |id: &str, more: &str| {
        format!("- {{id: {id}, type: hard, cmd: \"{more}\", pass_when: exit_code == 0")
    };
    let text = format!(
        "goals:\n{}}}\n{}, needs: [first]}}\n{}, needs: [second]}}\n{}}}\n",
        goal("first", "false"),
        goal("second", "true"),
        goal("third", "true"),
        goal("other", "true")
    );
    world.write(".peers/goals.yaml", &text);
    world.accept_config("verify: {commands: [{name: lint, cmd: 'true'}]}\n");
    world.peers(&["verify"]).exits(1);
    let whole = world.read(".peers/VERIFY.md");
    assert!(whole.contains("**Result:** FAIL (") && !whole.contains("--only"), "{whole}");

    let done = world.peers(&["verify", "--only", "third", "--junit", "../j.xml"]).exits(1);
    assert!(done.out.contains("1 left out") || done.out.contains("--only left out 2"), "{}", done.out);
    done.out_has("| first | fail |").out_has("| third | skipped |");
    done.out_has("**No whole verification:** `--only` left out other, lint");
    done.err_has(".peers/VERIFY.md is left as it is");
    assert_eq!(world.read(".peers/VERIFY.md"), whole);
    assert!(world.read("../j.xml").contains("<property name=\"whole\" value=\"false\"/>"));
    let json = world.peers(&["verify", "--only", "other", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!(json["whole"], false);
    let left_out = serde_json::json!({"hard": ["first", "second", "third"], "verify": ["lint"]});
    assert_eq!(json["left_out"], left_out);
}

#[test]
fn a_red_gate_is_shown_with_its_cause_in_every_place() {
    let world = World::ready("true");
    let gate = "printf 'Traceback:\\n  File x\\nAssertionError: 3 != 2.5\\n' >&2; exit 1";
    world.write(".peers/goals.yaml", &goals(&[("tests-pass", gate)]));
    world.accept_config("goals: {stuck_halt_after: 1}\n");
    let short = "AssertionError: 3 != 2.5 (exit_code=1)";
    let log = ".peers/log/gates/tick-00001-tests-pass.log";
    let run = world.peers(&["run", "--branch", "work"]).exits(11);
    run.err_has(&format!("\ntests-pass is red: {short}; its output: {log}\n"));
    assert!(world.read(log).contains("AssertionError"));
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(&format!("stuck:tests-pass: {short}; its output: {log} (exit 11)")), "{status}");
    let verify = world.peers(&["verify", "--no-write"]).exits(1).out;
    assert!(verify.contains(&format!("| {short} |")), "{verify}");
    let land = world.peers(&["land"]).exits(1);
    assert_eq!(land.out, format!("tests-pass: fail: {short}\n"));
    land.err_has("hint: `peers run` on `work` goes on, or mend it there yourself");
    for told in [&run.err, &status, &verify, &land.err, &world.peers(&["report"]).exits(0).out] {
        assert!(!told.contains("stderr-tail="), "{told}");
    }
    let dir = world.path("apart");
    world.peers(&["run", "--worktree", dir.to_str().unwrap()]).exits(11);
    let status = world.peers(&["status"]).exits(0).out;
    let log = dir.canonicalize().unwrap().join(".peers/log/gates/tick-0000");
    assert!(status.contains(&format!("{short}; its output: {}", log.display())), "{status}");
    let json = world.peers(&["verify", "--json", "--no-write"]).exits(1).json("peers.verify/2");
    assert_eq!(json["hard"][0]["cause"], short);
    assert!(json["hard"][0]["diagnostic"].as_str().unwrap().contains("Traceback"));
}

#[test]
fn files_that_gates_leave_are_named_by_verify_and_by_run() {
    let world = World::ready("mkdir -p left; touch left/a left/b left/c left/d; true");
    world.peers(&["verify"]).exits(0).err_has("such files block `complete`, or an agent commits them");
    std::fs::remove_dir_all(world.at("left")).unwrap();
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let says = "the work tree changed while gates ran (left/a, left/b, left/c and 1 more); they run again";
    done.err_has(says);
}

fn rows(world: &World, args: &[&str]) -> Vec<(String, String)> {
    let done = world.peers(&[&["verify", "--json"], args].concat());
    let json = done.json("peers.verify/2");
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    json["hard"].as_array().unwrap().iter().map(|row| (text(row, "name"), text(row, "state"))).collect()
}

#[test]
fn a_kept_answer_is_taken_by_the_next_verify_until_something_changes_or_fresh_is_asked_for() {
    let world = World::ready("true");
    let ran = world.path("ran");
    let cmd = format!("echo x >> {}", ran.display());
    world.write(
        ".peers/goals.yaml",
        &format!(
            "goals:\n- {{id: kept, type: hard, cmd: '{cmd}', pass_when: exit_code == 0, cacheable: true}}\n"
        ),
    );
    world.accept(&[]).exits(0);
    let runs = || std::fs::read_to_string(&ran).unwrap_or_default().lines().count();
    let first = world.peers(&["verify"]).exits(0).out;
    let second = world.peers(&["verify"]).exits(0).out;
    assert_eq!((runs(), first), (1, second), "the report does not tell them apart");
    world.peers(&["verify", "--fresh"]).exits(0);
    assert_eq!(runs(), 2);
    world.write("untracked", "x");
    world.peers(&["verify"]).exits(0);
    assert_eq!(runs(), 3);
    world.peers(&["verify", "--pristine"]).exits(0);
    assert_eq!(runs(), 4, "a clean checkout takes nobody's word");
    world.git(&["commit", "-q", "--allow-empty", "-m", "The same files"]);
    world.peers(&["verify"]).exits(0);
    assert_eq!(runs(), 5, "another commit");
}

#[test]
fn the_file_that_a_gate_changed_is_named_and_none_that_was_changed_before() {
    let world = World::ready("echo y >> zzz");
    for name in ["mine-a", "mine-b", "mine-c", "zzz"] {
        world.write(name, "x\n");
    }
    world.commit("Files");
    for name in ["mine-a", "mine-b", "mine-c"] {
        world.write(name, "mine\n");
    }
    for more in ["", "goals: {strict_tree: true}\n"] {
        world.accept_config(more);
        for _ in 0..2 {
            let done = world.peers(&["verify", "--no-write"]);
            let told = format!("{}{}", done.out, done.err);
            assert!(told.contains("zzz") && !told.contains("mine-a"), "{more}: {told}");
        }
    }
}

#[test]
fn goals_that_cannot_be_read_are_an_error_and_no_verdict() {
    let world = World::ready("true");
    world.peers(&["verify"]).exits(0);
    world
        .write(".peers/goals.yaml", "goals:\n- {id: real, type: hard, cmnd: x, pass_when: exit_code == 0}\n");
    let done = world.peers(&["verify"]).exits(3);
    assert!(done.err.contains("did you mean `cmd`") && done.out.is_empty(), "{done:?}");
    assert!(!world.at(".peers/VERIFY.md").exists(), "an older report does not stay");
}

#[test]
fn gates_of_a_copy_do_not_find_what_another_one_left() {
    let world = World::ready("true");
    world.write("code", "bad\n");
    world.write(
        ".peers/goals.yaml",
        "goals:\n\
         - {id: lint, type: hard, tree: copy, cmd: echo good > code, pass_when: exit_code == 0}\n\
         - {id: code, type: hard, tree: copy, needs: [lint], cmd: grep good code, pass_when: exit_code == 0}\n",
    );
    world.accept(&[]).exits(0);
    world.commit("Code");
    for more in ["", "goals: {strict_tree: true}\n"] {
        world.accept_config(more);
        let told: Vec<_> = rows(&world, &["--fresh"]).into_iter().map(|(_, state)| state).collect();
        assert_eq!(told, ["pass", "fail"], "{more}");
    }
}

#[test]
fn where_a_gate_changes_a_file_of_the_commit_no_pass_stands() {
    let world = World::ready("true");
    world.write("code", "bad\n");
    world.accept_goals(&[("lint", "echo good > code"), ("code", "sleep 0; grep good code || true")]);
    world.commit("Code");
    let told: Vec<_> = rows(&world, &[]).into_iter().map(|(_, state)| state).collect();
    assert_eq!(told, ["error", "error"]);
    // From here on it is what the operator has, and is written again beside the other gate.
    let done = world.peers(&["verify"]).exits(3);
    let told = "files of the commit were written while these gates ran (code), and are what they were";
    done.out_has("uncommitted").out_has(told);
    world.write("code", "worse\n");
    world.peers(&["verify"]).exits(3).out_has("files of the commit changed while gates ran (code)");
}

#[test]
fn where_a_gate_moves_head_or_takes_the_repository_away_nothing_is_judged() {
    for (what, told) in [
        ("git commit -q --allow-empty -m gate", "HEAD moved from"),
        ("git checkout -q -b sneaky", "another branch was checked out (sneaky, before main)"),
        ("mv .git ../gone", "the repository cannot be read any more"),
    ] {
        let world = World::ready("true");
        world.git(&["config", "user.name", "x"]);
        world.git(&["config", "user.email", "x@example.org"]);
        let text = format!(
            "goals:\n- {{id: hostile, type: hard, cmd: '{what}', pass_when: exit_code == 0}}\n\
             - {{id: next, type: hard, tree: copy, needs: [hostile], cmd: 'true', pass_when: exit_code == 0}}\n"
        );
        world.write(".peers/goals.yaml", &text);
        world.accept(&[]).exits(0);
        let done = world.peers(&["verify"]).exits(3);
        assert!(done.out.contains(told) && done.out.contains("it was not run: "), "{what}: {}", done.out);
    }
}

#[test]
fn an_attempt_in_a_clean_checkout_finds_nothing_of_the_one_before() {
    let world = World::ready("true");
    let cmd = "test -e out || { mkdir out; exit 1; }";
    let text = format!(
        "goals:\n- {{id: twice, type: hard, cmd: '{cmd}', pass_when: exit_code == 0, retry_on_fail: 1}}\n"
    );
    world.write(".peers/goals.yaml", &text);
    world.accept(&[]).exits(0);
    world.peers(&["verify", "--pristine"]).exits(1);
    world.peers(&["verify"]).exits(0);
}

#[test]
fn a_gate_that_changes_what_a_build_tool_does_in_the_next_one_is_refused() {
    let world = World::ready("true");
    std::fs::create_dir(world.path("home/.cargo")).unwrap();
    let setting = world.path("home/.cargo/config.toml");
    let at = setting.display();
    // The last one would put it back.
    let gates =
        [("lint", format!("echo a > {at}")), ("next", format!("cat {at}")), ("z", format!("rm -f {at}"))];
    let gates: Vec<_> = gates.iter().map(|(id, cmd)| (*id, cmd.as_str())).collect();
    world.accept_goals(&gates);
    let done = world.peers(&["verify", "--pristine"]).exits(5);
    let told = format!("tamper:tool-home: `{at}`, which decides what build tools do in gates, was added");
    assert!(done.err.contains(&told) && done.out.is_empty(), "{}", done.err);
    assert!(setting.exists() && !world.at(".peers/VERIFY.md").exists());
    // What was there when the command began is what counts.
    world.accept_goals(&[("lint", "true"), ("other", "true")]);
    world.peers(&["verify", "--pristine"]).exits(0);
    world.accept_goals(&[("lint", &format!("echo b > {at}"))]);
    world.peers(&["verify"]).exits(5).err_has("was changed while gates ran");
}

#[test]
fn where_gates_that_run_together_write_a_file_of_the_commit_and_put_it_back_no_pass_stands() {
    let world = World::ready("true");
    world.write("code", "bad\n");
    let (save, written, read) = (world.path("save"), world.fifo("written"), world.fifo("read"));
    let (save, written, read) = (save.display(), written.display(), read.display());
    let lint = format!("cp code {save}; echo good > code; echo > {written}; cat {read}; cp {save} code");
    let code = format!("cat {written}; grep good code; was=$?; echo > {read}; exit $was");
    world.write(".peers/config.yaml", &world.config("goals: {parallel: 2}\n"));
    let text =
        goals(&[("lint", &lint), ("code", &code)]).replace("0}", "0, cacheable: true, paths: [README.md]}");
    world.write(".peers/goals.yaml", &text);
    world.accept(&[]).exits(0);
    world.commit("Code");
    for _ in 0..2 {
        let done = world.peers(&["verify"]).exits(3);
        let told = "files of the commit were written while these gates ran (code), and are what they were";
        done.out_has(told).out_has("| code | error |");
    }
    // In turn each finds what is there.
    world.write(".peers/config.yaml", &world.config("goals: {strict_tree: true}\n"));
    let lint = format!("cp code {save}; echo good > code; cp {save} code");
    world.accept_goals(&[("lint", &lint), ("code", "grep good code")]);
    let told: Vec<_> = rows(&world, &[]).into_iter().map(|(_, state)| state).collect();
    assert_eq!(told, ["pass", "fail"]);
}

#[test]
fn a_gate_that_writes_a_file_of_the_commit_as_it_was_is_green_alone_and_told() {
    let world = World::ready("true");
    world.write("code", "x\n");
    let ran = world.path("ran");
    let formats = format!("echo x >> {}; echo x > code", ran.display());
    let keeps = "pass_when: exit_code == 0, cacheable: true, paths: [README.md]";
    let alone = format!("goals:\n- {{id: formats, type: hard, cmd: '{formats}', {keeps}}}\n");
    world.write(".peers/goals.yaml", &alone);
    world.accept(&[]).exits(0);
    world.commit("Code");
    let told = "iles of the commit were written while gates ran, and are what they were: code";
    for _ in 0..2 {
        world.peers(&["verify"]).exits(0).out_has(told);
    }
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 2, "nothing was kept");
    let json = world.peers(&["verify", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!(json["rewritten"], serde_json::json!(["code"]));
    // Beside others it says how to run alone, and what needs it comes after it.
    for (serial, code) in [("", 3), (", serial: true", 0)] {
        let text = format!(
            "goals:\n- {{id: other, type: hard, cmd: 'true', pass_when: exit_code == 0}}\n\
             - {{id: formats, type: hard, cmd: '{formats}', pass_when: exit_code == 0{serial}}}\n\
             - {{id: after, type: hard, cmd: 'true', pass_when: exit_code == 0, needs: [formats]}}\n"
        );
        world.write(".peers/goals.yaml", &text);
        world.accept(&[]).exits(0);
        let done = world.peers(&["verify"]).exits(code);
        done.out_has(told);
        assert_eq!(done.out.contains("`serial: true`") || done.out.contains("serial: true"), code == 3);
    }
}

/// One gate whose green answer is kept, and perhaps others.
fn with_kept(world: &World, cmd: &str, more: &str) {
    let text = format!(
        "goals:\n- {{id: kept, type: hard, cmd: '{cmd}', pass_when: exit_code == 0, cacheable: true}}\n{more}"
    );
    world.write(".peers/goals.yaml", &text);
    world.accept(&[]).exits(0);
}

#[test]
fn a_kept_answer_is_about_what_a_link_leads_to() {
    let world = World::ready("true");
    world.write(".gitignore", "found\n.peers/\n");
    with_kept(&world, "grep good found || grep good found/in", "");
    world.commit("Ignore");
    let there = world.path("there");
    std::fs::write(&there, "good").unwrap();
    std::os::unix::fs::symlink(&there, world.at("found")).unwrap();
    world.peers(&["verify"]).exits(0);
    std::fs::write(&there, "worse").unwrap();
    world.peers(&["verify"]).exits(1);
    // In a directory elsewhere nobody looks.
    std::fs::remove_file(&there).unwrap();
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("in"), "good").unwrap();
    world.peers(&["verify"]).exits(0);
    std::fs::write(there.join("in"), "worse").unwrap();
    world.peers(&["verify"]).exits(1);
}

#[test]
fn a_virtual_environment_on_the_path_is_named_with_what_the_gate_writes_instead() {
    let world = World::ready("mytool --all");
    world.write(".gitignore", ".peers/\n.venv/\n");
    world.commit("Ignore");
    world.write(".venv/bin/mytool", "#!/bin/sh\n");
    let bin = world.at(".venv/bin").canonicalize().unwrap();
    let path = World::search_path(&bin);
    let run =
        |args: &[&str]| Ended::of(&world.command(program()).args(args).env("PATH", &path).output().unwrap());
    let what = format!("`{}` on your PATH lies in the repository, so gates do not get it", bin.display());
    let says = format!("{what}; write `.venv/bin/mytool` in the gate");
    let done = run(&["verify"]).exits(1);
    done.err_has(&format!("note: {says}"));
    assert!(done.out.replace('\\', "").contains(&says), "the red gate says it too: {}", done.out);
    assert!(run(&["doctor"]).out.contains(&what));
    assert!(run(&["run", "--max-ticks", "1"]).err.contains(&format!("warning: {says}")));
}

#[test]
fn gates_of_which_one_needs_the_other_did_not_run_together() {
    let world = World::ready("true");
    world.write(
        ".peers/goals.yaml",
        "goals:\n\
         - {id: made, type: hard, cmd: 'touch README.md', pass_when: exit_code == 0}\n\
         - {id: same, type: hard, cmd: 'git diff --exit-code', pass_when: exit_code == 0, needs: [made]}\n",
    );
    world.accept(&[]);
    world.peers(&["verify"]).exits(0);
}

#[test]
fn an_answer_is_not_kept_where_another_gate_took_away_what_it_found() {
    let world = World::ready("true");
    world.write(".gitignore", "found\n.peers/\n");
    let later = "- {id: later, type: hard, cmd: 'rm -f found', pass_when: exit_code == 0, needs: [kept]}\n";
    with_kept(&world, "test -e found", later);
    world.commit("Ignore");
    world.write("found", "");
    world.peers(&["verify"]).exits(0);
    assert!(!world.at("found").exists());
    world.peers(&["verify"]).exits(1);
}
