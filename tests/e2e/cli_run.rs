//! `peers run` and `peers tick`.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{Held, World};

#[test]
fn four_ticks_alternate_and_the_last_line_says_why_it_stopped() {
    let world = World::ready("true");
    let done = world.peers(&["run", "--max-ticks", "4"]).exits(0);
    assert_eq!(done.out, "Stopped: max_ticks\n");
    let first: Vec<&str> = done.err.lines().take(2).collect();
    assert!(first[0].contains("ann and ben work on branch `main`"), "{}", done.err);
    assert!(first[1].starts_with("unconfined"), "{}", done.err);
    done.err_has("tick 4 ben (skeptic): handoff, ");
    let peers: Vec<_> = world.records("tick").iter().map(|tick| tick["peer"].clone()).collect();
    assert_eq!(peers, ["ann", "ben", "ann", "ben"]);
    assert_eq!(world.records("exit").len(), 1);
    assert!(!world.at(".peers/run.lock").exists());
}

#[test]
fn a_tick_is_one_turn_and_is_silent_inside_of_a_turn() {
    let world = World::ready("true");
    let done = world.peers(&["tick"]).exits(0);
    assert_eq!(done.last_line(), "Stopped: max_ticks");
    assert_eq!(world.records("tick").len(), 1);
    world.peers(&["tick", "--max-ticks", "2"]).exits(2);
    let project = world.store().file_name().unwrap().to_owned();
    let inside =
        world.command(crate::support::program()).arg("tick").env("PEERS_IN_TICK", project).output().unwrap();
    assert!(inside.status.success() && inside.stdout.is_empty() && inside.stderr.is_empty(), "{inside:?}");
    assert_eq!(world.records("tick").len(), 1);
}

#[test]
fn a_program_that_is_there_and_cannot_be_started_has_the_one_remedy_that_helps() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::ready("true");
    let agent = world.path("agent");
    let config =
        world.config("").replace(&crate::support::program().display().to_string(), agent.to_str().unwrap());
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    let correct = "correct `argv` of this peer in .peers/config.yaml";
    for (text, mode, message) in [
        ("#!/bin/sh\n", 0o644, format!("not executable: `chmod +x {}`", agent.display())),
        (
            "#!/no/such/interpreter\n",
            0o755,
            format!(
                "{} is there, but the interpreter that its first line names is not: `/no/such/interpreter`; install it, or correct that line",
                agent.display()
            ),
        ),
    ] {
        std::fs::write(&agent, text).unwrap();
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = world.peers(&["run"]).exits(6).err;
        let both = format!("peer `ann`: {message}\nhint: do that, or {correct}\n");
        assert!(said.contains(&both) && !said.contains("make `"), "{said}");
        let found = world.peers(&["doctor", "--json"]).json("peers.doctor/1");
        let checks = found["checks"].as_array().unwrap();
        let error = |check: &&serde_json::Value| {
            check["level"] == "error" && check["message"].as_str().unwrap().contains(&message)
        };
        assert!(checks.iter().any(|check| error(&check)), "{found}");
    }
}

#[test]
fn a_held_lock_is_a_stop_reason_and_changes_nothing() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    let before = world.journal();
    let lock = Held::of(&world.store().join("run.lock"), |_| None);
    let done = world.peers(&["run"]).exits(4);
    assert_eq!(done.last_line(), "Stopped: lock-held");
    done.err_has("holds the lock");
    world.peers(&["undo", "last"]).exits(4);
    world.peers(&["state", "rebuild"]).exits(4);
    world.peers(&["init", "--force"]).exits(4);
    assert!(world.peers(&["info"]).exits(0).out.contains("held"));
    assert_eq!(world.journal(), before);
    drop(lock);
    world.peers(&["tick"]).exits(0);
}

#[test]
fn a_dry_run_puts_everything_back_and_refuses_a_dirty_tree() {
    let world = World::ready("true");
    let before = world.head();
    world.peers(&["run", "--max-ticks", "2", "--dry-run"]).exits(0);
    assert_eq!(world.head(), before);
    assert!(!world.at("ann.txt").exists());
    assert!(!world.peers(&["salvage", "list"]).exits(0).out.is_empty());
    world.write("dirty.txt", "");
    world.peers(&["run", "--max-ticks", "1", "--dry-run"]).exits(4);
}

#[test]
fn money_and_ticks_are_checked_on_the_command_line() {
    let world = World::ready("true");
    for args in [
        ["--max-ticks", "0"],
        ["--max-ticks", "-1"],
        ["--max-usd", "0"],
        ["--max-usd", "nan"],
        ["--max-usd", "x"],
    ] {
        world.peers(&["run", args[0], args[1]]).exits(2);
    }
}

#[test]
fn a_program_that_went_missing_during_a_run_is_named_at_its_end_as_by_the_status() {
    let world = World::ready("true");
    let agent = world.path("agent");
    symlink(crate::support::program(), &agent).unwrap();
    let real = format!("[\"{}\"", crate::support::program().display());
    let config = world.config("").replacen(&real, &format!("[\"{}\"", agent.display()), 1);
    assert!(config.contains(agent.to_str().unwrap()), "{config}");
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    world.peers(&["run", "--max-ticks", "1"]).exits(0).err_lacks("alert: ");
    let gone = format!(
        "after: repeat\nturns:\n- - shell: rm {}\n  - write: {{path: ann.txt, append: x}}\n  - handoff: Work\n",
        agent.display()
    );
    world.script("ben", &gone);
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let status = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    let alerts = status["alerts"].as_array().unwrap();
    let alert = alerts.iter().find(|alert| alert["kind"] == "refused").expect("the status says so");
    let text = alert["text"].as_str().unwrap();
    assert!(text.contains(agent.to_str().unwrap()), "{text}");
    assert!(done.err.contains(&format!("\nalert: {text}\n")), "{text}\n{}", done.err);
    let next = status["next_step"].as_str().unwrap();
    assert!(next.starts_with("`peers doctor` shows what prevents a start; fix that"), "{next}");
    assert!(done.err.contains(&format!("\nhint: {next}\n")), "{next}\n{}", done.err);
}

#[test]
fn after_a_run_that_no_peer_is_left_of_a_file_says_what_the_status_says() {
    let world = World::ready("false");
    world.scripts("after: repeat\nturns:\n- - exit: 3\n");
    world.accept_config("budget: {max_consecutive_failures: 50}\n");
    let done = world.peers(&["run"]);
    assert_eq!(done.last_line(), "Stopped: peer-unavailable:all-peers-degraded", "{}", done.err);
    let halted = world.read(".peers/HALTED.md");
    let status = world.peers(&["status"]).out;
    let why = "its last 3 turns failed (the last one: its process ended with exit code 3)";
    for (peer, tick) in [("ann", 5), ("ben", 6)] {
        let replay = format!("`peers replay {tick}`");
        assert!(halted.contains(&format!("{peer} is halted: `{why}`")), "{halted}");
        assert!(halted.contains(&format!("check why `{peer}` failed ({replay}")), "{halted}");
        assert!(status.contains(&format!("halted  {peer}")) && status.contains(why), "{status}");
        assert!(status.contains(&format!("{peer} failed last: see {replay}")), "{status}");
    }
}

#[test]
fn a_degraded_peer_is_told_in_words() {
    let world = World::ready("false");
    world.scripts("after: repeat\nturns:\n- - exit: 3\n");
    world.accept_config("max_retries: 9\n");
    let done = world.peers(&["run", "--max-ticks", "3"]).exits(0);
    let says = "ann is degraded: its last 3 turns failed (the last one: its process ended with exit code 3)";
    done.err_has(says);
    done.err_lacks("run classification");
}

#[test]
fn a_proof_says_how_much_of_it_was_proved_before_at_this_tree() {
    let gate = "test -e src/add.py && test -e tests/test_add.py";
    let world = World::ready(gate);
    let pair = world.peers(&["fake-peer", "--example", "pair"]).exits(0).out;
    world.write(".peers/config.yaml", &world.config("").replace("ben.yaml", "ann.yaml"));
    world.script("ann", &pair);
    world.accept(&[]);
    let first = world.peers(&["run", "--max-ticks", "8"]).exits(0);
    first.err_has("proof in a clean checkout: 1 of 1 gate green in ");
    world.accept_goals(&[("real", gate), ("second", "true")]);
    let again = world.peers(&["run", "--max-ticks", "8"]).exits(0);
    assert_eq!(again.last_line(), "Stopped: complete", "{}", again.err);
    let says = " (1 of them proved before at this tree)";
    let line =
        again.err.lines().find(|line| line.contains("proof in a clean checkout: 2 of 2 gates green in "));
    assert!(line.is_some_and(|line| line.ends_with(says)), "{}", again.err);
}

#[test]
fn a_directory_that_a_peer_swaps_for_a_link_to_itself_stops_the_run() {
    type Dir = fn(&World) -> PathBuf;
    let dirs: [(Dir, &str); 5] = [
        (|world| world.at(".peers"), "tamper:peer-dir"),
        (World::store, "tamper:store"),
        (|world| world.store().join("git"), "tamper:store"),
        (|world| world.path("repo"), "tamper:peer-dir"),
        (|world| world.at(".git"), "tamper:git"),
    ];
    for (dir, reason) in dirs {
        let world = World::ready("test -f ann.txt");
        let (dir, moved) = (dir(&world).display().to_string(), world.path("moved").display().to_string());
        let swap = json!(format!("mv {dir} {moved}; ln -s {moved} {dir}"));
        let turn = format!(
            "turns:\n- - write: {{path: ann.txt, text: done}}\n  - shell: {swap}\n  - handoff: Done\n"
        );
        world.script("ann", &turn);
        let done = world.peers(&["run", "--max-ticks", "4"]).exits(5);
        assert_eq!(done.last_line(), format!("Stopped: {reason}"));
        let what = format!("is now a symbolic link to `{moved}`; it was a directory when the run began");
        assert!(done.err.contains(&what), "{dir}: {}", done.err);
        let again = world.peers(&["run"]).exits(5);
        assert!(again.out.is_empty(), "{dir}: it does not start: {}", again.out);
    }
}
