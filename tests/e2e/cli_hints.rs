//! What is said when something went wrong outside of peers: that it is one clear text, and that the
//! command in it works where it was printed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{Ended, World, heard, program};

const HONEST: &str =
    "after: repeat\nturns:\n- - write: {path: ann.txt, append: \"{{turn}}\"}\n  - handoff: Work\n";

/// A run with these flags, killed in its first turn.
fn killed(flags: &[&str]) -> World {
    let world = World::ready("true");
    let pipe = world.fifo("pipe");
    let announce = format!("echo up > {}", pipe.display());
    let script = serde_json::json!({"turns": [[{"shell": announce}, {"hang": "sleep"}]]});
    world.script("ann", &script.to_string());
    let mut child = world
        .command(program())
        .arg("run")
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    heard(&pipe);
    child.kill().unwrap();
    child.wait().unwrap();
    world.script("ann", HONEST);
    world
}

/// The text between the first `begin` and the next backtick.
fn command(text: &str, begin: &str) -> String {
    let from = text.find(&format!("`{begin}")).unwrap_or_else(|| panic!("no `{begin}` in: {text}"));
    text[from + 1..].split('`').next().unwrap().to_owned()
}

/// A command from a text, as somebody would paste it.
fn pasted(world: &World, dir: &Path, line: &str) -> Ended {
    let mut shell = world.command("sh");
    let path = World::search_path(program().parent().unwrap());
    shell.arg("-c").arg(line).current_dir(dir).env("PATH", path);
    Ended::of(&shell.output().unwrap())
}

#[test]
fn a_command_that_only_the_other_program_has_is_named_with_that_program() {
    let world = World::bare();
    let typed = world.peers(&["logs", "--follow"]).exits(2);
    typed.err_has("tip: `logs` is a command of peers-ctl: `peers-ctl logs`\n");
    // No command of the same program that sounds like it.
    let typed = world.peers(&["start"]).exits(2);
    assert_eq!(typed.err.matches("tip:").count(), 1, "{}", typed.err);
    assert!(world.peers(&["lnad"]).exits(2).err.contains("'land'"));
    let typed = world.ctl(&["--json", "verify"]).exits(2).json("peers-ctl.error/1");
    assert_eq!(typed["error"]["hint"], "`verify` is a command of peers: `peers verify`");
}

#[test]
fn after_a_kill_every_command_names_the_one_that_goes_on() {
    for flags in [&["--dry-run"][..], &["--worktree"], &["--branch", "work"], &["--worktree", "--dry-run"]] {
        let world = killed(flags);
        let above = world.path("");
        let said = |args: &[&str]| {
            let done = world.command(program()).args(["-C", "repo"]).args(args).current_dir(&above).output();
            let done = Ended::of(&done.unwrap());
            format!("{}{}", done.out, done.err)
        };
        let again = command(&said(&["land"]), "peers");
        assert_eq!(again, command(&said(&["undo", "last"]), "peers"), "{flags:?}");
        assert_eq!(again, command(&said(&["status"]), "peers"), "{flags:?}");
        assert_eq!(again.contains(" --dry-run"), flags.contains(&"--dry-run"), "{again}");
        let done = pasted(&world, &above, &format!("{again} --max-ticks 1")).exits(0);
        assert_eq!(done.last_line(), "Stopped: max_ticks", "{flags:?}: {}", done.err);
        let ticks = world.records("tick");
        assert_eq!(ticks[0]["classification"], "interrupted", "{flags:?}");
        assert!(ticks.len() == 2, "{flags:?}: the turn was taken up, and one more followed");
    }
}

#[test]
fn a_start_in_the_wrong_place_or_with_other_flags_names_the_right_one() {
    let world = killed(&["--worktree", "--dry-run"]);
    for args in [&["run"][..], &["run", "--dry-run"], &["run", "--branch", "x"]] {
        let done = world.peers(args).exits(4);
        let again = command(&done.err, "peers");
        assert!(again.starts_with("peers -C ") && again.ends_with(" run --dry-run"), "{}", done.err);
    }
}

#[test]
fn a_worktree_that_somebody_removed_is_named_and_what_is_committed_is_landed() {
    let world = World::ready("true");
    let dir = world.path("apart");
    world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
    std::fs::remove_dir_all(&dir).unwrap();
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains("(removed)"), "{status}");
    assert!(status.contains("`peers land` merges it") && !status.contains("peers -C"), "{status}");
    let branch = world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/peers/"]);
    world.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
    let landed = world.peers(&["land"]).exits(3).err;
    let again = command(&landed, "git -C ");
    for args in [&["status"][..], &["doctor"]] {
        let said = world.peers(args).out;
        let line = format!("there is no branch `{branch}`, on which run ");
        assert!(said.contains(&line) && command(&said, "git -C ") == again, "{said}");
    }
    pasted(&world, &world.path(""), &again).exits(0);
    world.peers(&["run", "--max-ticks", "1"]).exits(0).err_has("that worktree is gone; this one works here");
    world.peers(&["undo", "last"]).exits(0);
    world.peers(&["land"]).exits(0).err_has("is gone, and what was not committed in it");
    assert!(world.at("ann.txt").exists());
    world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
}

#[test]
fn undo_of_a_run_whose_worktree_is_gone_keeps_the_tip_and_then_nothing_is_left_to_land() {
    let world = World::ready("true");
    let dir = world.path("apart");
    world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
    let tip = world.records("tick")[0]["commits"][0].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(&dir).unwrap();
    world.peers(&["undo", "last"]).exits(0).err_has("is gone");
    let list = world.peers(&["salvage", "list", "--json"]).exits(0).json("peers.salvage/1");
    let kept = &list["salvages"][0];
    assert_eq!((&kept["commit"], &kept["with_work_tree"]), (&tip.into(), &false.into()));
    world.peers(&["land"]).exits(1);
}

#[test]
fn a_turn_in_a_worktree_that_somebody_removed_is_taken_up_by_the_command_that_is_named() {
    for pruned in [false, true] {
        let world = killed(&["--worktree"]);
        let record = std::fs::read_dir(world.store().join("runs")).unwrap().next().unwrap().unwrap().path();
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        std::fs::remove_dir_all(record["workdir"].as_str().unwrap()).unwrap();
        if pruned {
            pasted(&world, &world.at(""), "git worktree prune").exits(0);
        }
        let hint = world.peers(&["run"]).exits(4).err;
        let again = command(&hint, "d=");
        assert_eq!(again, command(&world.peers(&["status"]).exits(0).out, "d="));
        pasted(&world, &world.path(""), &format!("{again} --max-ticks 1")).exits(0);
        assert_eq!(world.records("tick")[0]["classification"], "interrupted");
    }
}

#[test]
fn the_first_run_in_a_worktree_and_the_next_one_outside_say_nothing_of_copies_of_the_journal() {
    let world = World::ready("true");
    let dir = world.path("apart");
    for args in [&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()][..], &["tick"]] {
        world.peers(args).exits(0).err_lacks("journal");
    }
    std::fs::remove_file(world.at(".peers/log/runs.jsonl")).unwrap();
    world.peers(&["tick"]).exits(0).err_has(".peers/log/runs.jsonl, a copy of the journal");
}

#[test]
fn a_part_of_the_git_directory_that_is_no_file_is_never_to_be_removed() {
    for part in ["HEAD", "config", "index"] {
        for kind in ["a symlink", "a FIFO", "a directory"] {
            let world = World::ready("true");
            let path = world.at(&format!(".git/{part}"));
            std::fs::rename(&path, world.path("real")).unwrap();
            match kind {
                "a symlink" => symlink(world.path("real"), &path).unwrap(),
                "a FIFO" => drop(world.fifo(&path)),
                _ => std::fs::create_dir(&path).unwrap(),
            }
            for args in [&["run"][..], &["verify"], &["undo", "last"], &["init", "--upgrade"]] {
                let said = world.peers(args).exits(5).err;
                assert!(said.contains(&format!(".git/{part}` is {kind}\n")), "{args:?}: {said}");
                assert!(said.contains("hint: a regular file is expected there"), "{args:?}: {said}");
                assert!(!said.contains("remove") && !said.contains("git init"), "{args:?}: {said}");
            }
            std::fs::remove_dir(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
            std::fs::rename(world.path("real"), &path).unwrap();
        }
    }
}

#[test]
fn nothing_is_made_over_a_repository_that_git_does_not_take_for_one() {
    let world = World::repo();
    std::fs::remove_file(world.at(".git/HEAD")).unwrap();
    world.peers(&["init"]).exits(3).err_has("from a backup").err_lacks("git init");
}

#[test]
fn a_directory_in_place_of_the_mark_of_a_turn_is_refused_before_anything_starts() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    let mark = world.store().join("git/turn.json");
    std::fs::remove_file(&mark).unwrap();
    std::fs::create_dir(&mark).unwrap();
    world.peers(&["run"]).exits(5).err_has("git/turn.json in the trusted store is a directory");
    std::fs::remove_dir(&mark).unwrap();
    world.peers(&["tick"]).exits(0);
}

#[test]
fn a_file_in_place_of_the_accepted_ones_is_one_error_and_accepting_anew_mends_it() {
    let world = World::ready("true");
    let accepted = world.store().join("accepted");
    std::fs::remove_dir_all(&accepted).unwrap();
    std::fs::write(&accepted, "x").unwrap();
    let said = world.peers(&["run"]).exits(5).err;
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("accepted is not a directory") && said.contains("`peers goals accept`"), "{said}");
    world.accept(&[]);
    assert_eq!(std::fs::read_to_string(world.store().join("accepted.bad")).unwrap(), "x");
    world.peers(&["tick"]).exits(0);
}

#[test]
fn a_file_with_two_names_is_refused_with_the_command_that_mends_it() {
    for file in [
        ".peers/config.yaml",
        ".peers/log/runs.jsonl",
        "run.lock",
        ".peers/comms/a'; touch $(echo planted) #",
    ] {
        let world = World::ready("true");
        world.peers(&["tick"]).exits(0);
        if file.contains("planted") {
            world.write(file, "");
        }
        let path = if file == "run.lock" { world.store().join(file) } else { world.at(file) };
        std::fs::hard_link(&path, world.path("other")).unwrap();
        let said = world.peers(&["tick"]).exits(5).err;
        pasted(&world, &world.at(""), &command(&said, "f=")).exits(0);
        assert!(!world.at("planted").exists(), "{said}");
        world.peers(&["tick"]).exits(0);
    }
}

#[test]
fn salvages_are_unknown_when_the_control_git_directory_is_gone() {
    let world = World::ready("true");
    world.peers(&["salvage", "list"]).exits(0);
    world.peers(&["tick"]).exits(0);
    std::fs::remove_dir_all(world.store().join("git")).unwrap();
    for args in [&["salvage", "list"][..], &["salvage", "list", "--json"], &["salvage", "restore", "x"]] {
        let done = world.peers(args).exits(3);
        assert!(done.err.contains("the kept copies are unknown"), "{args:?}: {}", done.err);
    }
}

/// A run whose gate is up, and waits.
fn in_gates(world: &World, up: &Path, go: &Path) -> Child {
    let child = world.spawned(&["run", "--max-ticks", "1"]);
    heard(up);
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(", gates since ") && !status.contains("tick 1 of ann for"), "{status}");
    let json = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    let live = &json["liveness"]["value"];
    assert!(live["kind"] == "running" && live["gates_since"].is_string(), "{live}");
    assert!(live["pid"] == child.id() && live["run_id"].is_string(), "{live}");
    std::fs::write(go, "go\n").unwrap();
    child
}

#[test]
fn while_gates_run_the_status_says_so_and_since_when() {
    let world = World::ready("true");
    let (up, go) = (world.fifo("up"), world.fifo("go"));
    // Not before the turn: nothing reads there yet.
    let gate = format!("test ! -e ann.txt || {{ echo up > {}; read x < {}; }}", up.display(), go.display());
    world.accept_goals(&[("real", &gate)]);
    let mut child = in_gates(&world, &up, &go);
    assert!(child.wait().unwrap().success());
    let json = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    assert_eq!(json["liveness"]["value"]["kind"], "stopped");
}

#[test]
fn a_lock_of_git_is_a_conflict_for_every_command() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write(".git/index.lock", "");
    for args in [&["run"][..], &["undo", "last"]] {
        let said = world.peers(args).exits(4).err;
        assert!(said.contains("`index.lock` exists"), "{args:?}: {said}");
        assert!(said.contains("`rm \""), "{args:?}: {said}");
    }
    let said = world.peers(&["run"]).exits(4).err;
    pasted(&world, &world.path(""), &command(&said, "rm")).exits(0);
    world.peers(&["undo", "last"]).exits(0);
}

#[test]
fn undo_names_the_later_run_that_has_to_go_first_and_the_runs_that_there_are() {
    let world = World::ready("true");
    assert_eq!(world.peers(&["undo", "last"]).exits(1).err, "error: there was no run yet\n");
    let ids: Vec<String> = (0..2)
        .map(|_| {
            world.peers(&["tick"]).exits(0);
            world.records("run-started").pop().unwrap()["run_id"].as_str().unwrap().to_owned()
        })
        .collect();
    world.peers(&["undo", "zz"]).exits(3).err_has(&format!("`last` first: {}, {}\n", ids[1], ids[0]));
    let refused = world.peers(&["undo", &ids[0]]).exits(4).err;
    pasted(&world, &world.at(""), &command(&refused, "peers")).exits(0);
    world.peers(&["undo", &ids[0]]).exits(0);
    world.peers(&["tick"]).exits(0);
    world.write("mine.txt", "");
    world.commit("Mine on top");
    world.peers(&["undo", "last"]).exits(4).err_has("no run made them");
}

#[test]
fn undo_of_a_run_whose_branch_is_gone_names_the_command_that_makes_it_again() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1", "--branch", "work"]).exits(0);
    let tip = world.head();
    world.git(&["checkout", "-q", "main"]);
    world.git(&["branch", "-qD", "work"]);
    let said = world.peers(&["undo", "last"]).exits(3).err;
    assert!(said.starts_with("error: there is no branch `work`, on which run "), "{said}");
    pasted(&world, Path::new("/"), &command(&said, "git -C ")).exits(0);
    assert_eq!(world.git(&["rev-parse", "work"]), tip);
    world.peers(&["undo", "last"]).exits(0);
}

#[test]
fn a_start_over_on_a_full_disk_says_where_the_copy_lies_and_how_to_go_back() {
    let world = World::ready("true");
    let before = world.read(".peers/goals.yaml");
    // No file may grow.
    let limited = format!("trap '' XFSZ; ulimit -f 0; exec {} init --force", program().display());
    let done = pasted(&world, &world.at(""), &limited).exits(70);
    assert!(done.err.starts_with("error: kept: the old .peers in "), "{}", done.err);
    done.err_has("the new set-up is not complete");
    done.err_has("hint: free some space, then `peers init --force` once more");
    pasted(&world, &world.path(""), &command(&done.err, "rm -rf")).exits(0);
    assert_eq!(world.read(".peers/goals.yaml"), before);
    world.peers(&["tick"]).exits(0);
}

#[test]
fn a_money_cap_beside_turns_of_unknown_cost_is_warned_of() {
    let world = World::ready("true");
    let first = world.peers(&["run", "--max-ticks", "1", "--max-usd", "5"]).exits(0);
    let said = "warning: the cost of 1 turn is not known: the money cap counts only what is, nothing so far";
    assert_eq!(first.err.matches(said).count(), 1, "at the end: {}", first.err);
    let again = world.peers(&["run", "--max-ticks", "1", "--max-usd", "5"]).exits(0);
    assert!(again.err.contains(said), "at the start: {}", again.err);
    assert!(!world.peers(&["tick"]).exits(0).err.contains("money cap"), "without a cap nothing is missed");
}

#[test]
fn an_acknowledgement_that_clears_nothing_says_so() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    world.peers(&["ack", "weakening:1", "--reason", "x"]).exits(0).err_has("tick 1 had none to clear");
    let json = world.peers(&["ack", "weakening:1", "--reason", "x", "--json"]).exits(0).json("peers.ack/1");
    assert_eq!((&json["cleared"], &json["standing"]), (&false.into(), &serde_json::json!([])));
}

#[test]
fn without_a_gate_of_its_own_a_run_starts_only_when_asked_to() {
    let world = World::ready("true");
    world.accept_goals(&[("placeholder-replace-me", "false")]);
    world.peers(&["run", "--max-ticks", "3"]).exits(3).err_has("no hard gate of your own");
    let done = world.peers(&["run", "--max-ticks", "3", "--allow-no-gates"]).exits(0);
    assert_eq!(done.last_line(), "Stopped: max_ticks", "{}", done.err);
}

/// A project that was run for one turn on `main`, and the commit that it came to.
fn lived() -> (World, String) {
    let world = World::ready("true");
    world.script("ann", HONEST);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let head = pasted(&world, &world.at(""), "git rev-parse HEAD").exits(0).out.trim().to_owned();
    (world, head)
}

/// What `run` says helps, in backticks, which `status` says as well.
fn mending(world: &World, begin: &str) -> String {
    let said = world.peers(&["run"]).exits(3).err;
    let line = command(&said, begin);
    let status = world.peers(&["status"]).exits(0).out;
    assert!(status.contains(&line), "{line} is not in {status}");
    line
}

/// The history is back and a run goes on with it.
fn mended(world: &World, head: &str) {
    let now = pasted(world, &world.at(""), "git rev-parse main").exits(0).out;
    assert_eq!(now.trim(), head);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let parent = pasted(world, &world.at(""), "git rev-parse main~1").exits(0).out;
    assert_eq!(parent.trim(), head);
}

#[test]
fn a_branch_that_lost_its_commit_is_set_back_by_the_line_that_is_named() {
    for gone in [false, true] {
        let (world, head) = lived();
        std::fs::remove_file(world.at(".git/refs/heads/main")).unwrap();
        if gone {
            let (dir, file) = head.split_at(2);
            std::fs::remove_file(world.at(&format!(".git/objects/{dir}/{file}"))).unwrap();
        }
        let said = world.peers(&["run"]).exits(3).err;
        assert!(said.contains(&format!("`main` names no commit now; it was at {head}")), "{said}");
        assert!(!said.contains("--allow-empty"), "{said}");
        let line = mending(&world, "git -C ");
        assert_eq!(line.contains(" fetch "), gone, "{line}");
        pasted(&world, &world.path(""), &line).exits(0);
        mended(&world, &head);
    }
}

#[test]
fn a_git_directory_that_is_gone_is_made_again_from_the_copy_in_the_trusted_store() {
    let (world, head) = lived();
    std::fs::remove_dir_all(world.at(".git")).unwrap();
    for args in [&["run"][..], &["init"], &["init", "--upgrade"], &["verify"]] {
        let said = world.peers(args).exits(3).err;
        assert!(!said.contains("commit something"), "{args:?}: {said}");
        assert!(said.contains("the trusted store has a copy"), "{args:?}: {said}");
    }
    let line = mending(&world, "git init");
    pasted(&world, &world.path(""), &line).exits(0);
    mended(&world, &head);
}

#[test]
fn a_head_that_names_nothing_is_written_anew_by_the_line_that_is_named() {
    for content in ["", "garbage\n"] {
        let (world, head) = lived();
        std::fs::write(world.at(".git/HEAD"), content).unwrap();
        let line = mending(&world, "printf");
        pasted(&world, &world.path(""), &line).exits(0);
        mended(&world, &head);
    }
}

#[test]
fn what_a_run_would_refuse_for_is_an_alert_of_status_with_what_helps() {
    let refused = |break_it: &dyn Fn(&World), says: &str, helps: &str| {
        let (world, _) = lived();
        break_it(&world);
        let run = world.peers(&["run"]);
        assert_ne!(run.code, Some(0));
        run.err_has(says);
        let status = Ended::of(&world.command(program()).arg("status").output().unwrap()).out;
        assert!(status.contains(says) && status.contains(helps), "{status}");
        assert!(!status.contains("next step: run it again"), "{status}");
        world.peers(&["report", "--no-write"]).out_has(says).out_has(helps);
    };
    let no_peers = |world: &World| std::fs::remove_dir_all(world.at(".peers")).unwrap();
    refused(&no_peers, "has no .peers directory", "`peers init --upgrade` lays it down again");
    let accepted = |world: &World| std::fs::write(world.store().join("accepted.json"), "{").unwrap();
    refused(&accepted, "accepted.json", "`peers goals accept`");
    let older = |world: &World| {
        let path = world.store().join("journal/000001.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let half: Vec<&str> = text.lines().take(3).collect();
        std::fs::write(&path, half.join("\n") + "\n").unwrap();
    };
    refused(&older, "records were lost", "copy .peers/log/runs.jsonl to journal/");
}

#[test]
fn init_says_what_a_run_would_refuse_for() {
    let world = World::ready("true");
    assert!(!world.peers(&["init", "--upgrade"]).exits(0).err.contains("would refuse"));
    let config = world.config("").replace(&program().display().to_string(), "/missing/agent");
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    let said = world.peers(&["init", "--upgrade"]).exits(0).err;
    assert!(said.contains("warning: a start would refuse: ") && said.contains("/missing/agent"), "{said}");
    let json = world.peers(&["init", "--upgrade", "--json"]).exits(0).json("peers.init/1");
    assert!(json["refusals"][0].as_str().is_some_and(|text| text.contains("/missing/agent")), "{json}");
}

#[test]
fn a_command_in_the_lines_of_a_run_names_the_directory_that_it_was_pointed_at() {
    let world = World::ready("true");
    world.script("ann", "turns:\n- - exit: 3\n");
    let above = world.path("");
    let run = |dir: &Path, args: &[&str]| {
        let done =
            world.command(program()).args(args).args(["run", "--max-ticks", "1"]).current_dir(dir).output();
        Ended::of(&done.unwrap()).exits(0).err
    };
    let said = run(&above, &["-C", "repo"]);
    let replay = command(&said, "peers -C repo replay");
    pasted(&world, &above, &replay).exits(0);
    world.script("ben", "turns:\n- - exit: 3\n");
    assert!(run(&world.at(""), &[]).contains("see `peers replay 2`"));
    let report =
        world.command(program()).args(["-C", "repo", "report"]).current_dir(&above).output().unwrap();
    Ended::of(&report).exits(0).out_lacks("`peers replay").out_lacks("`peers run");
    assert!(!world.read(".peers/REPORT.md").contains("-C repo"), "the file lies in the repository");
}

#[test]
fn goals_that_measure_something_are_no_placeholder_to_replace() {
    let (world, _) = lived();
    world.peers(&["deinit"]).exits(0);
    world.peers(&["init", "--upgrade"]).exits(0).err_lacks("placeholder");
}

#[test]
fn a_worktree_whose_project_was_moved_is_connected_again_by_the_command_that_is_named() {
    let world = World::ready("true");
    let dir = world.path("it's a worktree");
    world.peers(&["run", "--max-ticks", "1", "--worktree", dir.to_str().unwrap()]).exits(0);
    let (old, new) = (world.at(""), world.path("moved"));
    std::fs::rename(&old, &new).unwrap();
    std::fs::create_dir(&old).unwrap();
    let there = |args: &[&str]| world.peers(&[&["-C", dir.to_str().unwrap()], args].concat());
    there(&["status"]).exits(5).err_has("if the repository was moved to PROJECT: `git -C PROJECT");
    let at = |args: &[&str]| world.peers(&[&["-C", new.to_str().unwrap()], args].concat());
    let attached = at(&["store", "attach", old.to_str().unwrap()]).exits(0);
    let line = command(&attached.err, "git -C ");
    assert!(line.contains("worktree repair"), "{line}");
    let status = at(&["status"]).exits(0);
    assert_eq!(command(&status.out, "git -C "), line, "{}", status.out);
    assert_eq!(command(&there(&["status"]).exits(5).err, "git -C "), line);
    pasted(&world, &world.path(""), &line).exits(0);
    at(&["status"]).exits(0).out_lacks("cannot be read");
    there(&["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn files_of_the_operator_that_an_undo_takes_away_come_back_by_the_command_that_it_names() {
    let world = World::ready("true");
    world.write("my own.txt", "mine\n");
    world.write("README.md", "# edited\n");
    let turn = "turns:\n- - shell: git add 'my own.txt' README.md && git commit -q -m All\n  - write: {path: ann.txt, text: x}\n  - handoff: Work\n";
    world.script("ann", turn);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(world.git(&["status", "--porcelain", "my own.txt"]), "");
    let done = world.peers(&["undo", "last"]).exits(0);
    assert!(!world.at("my own.txt").exists());
    done.err_has("README.md, my own.txt; as they were then");
    let line = command(&done.err, "peers -C ");
    assert!(line.contains("--source=refs/peers/salvage/start-") && !line.contains("ann.txt"), "{line}");
    pasted(&world, Path::new("/"), &line).exits(0);
    assert_eq!(
        (world.read("my own.txt").as_str(), world.read("README.md").as_str()),
        ("mine\n", "# edited\n")
    );
    let status = world.git(&["status", "--porcelain"]);
    assert!(
        status.contains("M README.md") && status.contains("?? \"my own.txt\""),
        "nothing is committed: {status}"
    );
}

#[test]
fn an_undo_names_the_copy_from_the_start_as_data_too_and_only_where_something_went() {
    let world = World::ready("true");
    world.write("mine.txt", "mine\n");
    let turn = "turns:\n- - shell: git add mine.txt && git commit -q -m All\n  - handoff: Work\n";
    world.script("ann", turn);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let done = world.peers(&["undo", "last", "--json"]).exits(0).json("peers.undo/1");
    assert_eq!(
        (done["start"]["files"][0].as_str(), done["start"]["more"].as_u64()),
        (Some("mine.txt"), Some(0))
    );
    assert!(done["start"]["salvage"].as_str().unwrap().starts_with("start-") && done["finished"].is_null());
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let done = world.peers(&["undo", "last", "--json"]).exits(0).json("peers.undo/1");
    assert!(done["start"].is_null());
}

#[test]
fn a_start_on_a_detached_head_says_that_no_branch_holds_the_commits() {
    let world = World::ready("true");
    world.git(&["switch", "-q", "--detach"]);
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    done.err_has("on a detached HEAD").err_has("`peers run --branch NAME` makes one");
    world.peers(&["run", "--max-ticks", "1", "--branch", "work"]).exits(0).err_lacks("--branch NAME");
}
