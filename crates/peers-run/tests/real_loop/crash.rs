//! The loop is killed in the middle of a turn, and started again.

use std::fs;

use peers_model::record::TickOutcome;

use crate::world::{World, sh};

#[test]
fn row_38_a_killed_loop_recovers_its_tick_once_and_its_leftovers_are_ended() {
    let w = World::new();
    let here = w.fifo("here");
    w.play(
        "idle",
        &[&[
            "write: {path: a.py, text: 'a = 1'}",
            "commit: Half the work",
            "fork: {what: setsid}",
            "fork: {what: daemon}",
            &here.tell(),
            "hang",
        ]],
    );
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    assert_eq!(w.count("tick"), 0);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let state = w.settled();
    let tick = w.tick(1);
    assert!(tick.recovered);
    assert_eq!((tick.outcome, tick.peer.as_str()), (TickOutcome::Interrupted, "ann"));
    assert_eq!(tick.commits.iter().map(peers_model::CommitId::as_str).collect::<Vec<_>>(), [w.head()]);
    assert_eq!(w.tick(2).peer.as_str(), "ann", "a turn that was cut short is had again");
    assert_eq!((state.spent.iterations, state.health(&tick.peer).ticks), (2, 2), "each charged once");
    // A third start finds nothing to recover.
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(w.ticks().iter().filter(|t| t.recovered).count(), 1);
    w.settled();
}

#[test]
fn row_38_a_lock_of_gits_that_the_killed_turn_left_does_not_forbid_the_restart() {
    let w = World::new();
    let here = w.fifo("here");
    w.play(
        "idle",
        &[&[
            "write: {path: a.py, text: 'a = 1'}",
            "commit: Half",
            "corrupt_git: index_lock",
            &here.tell(),
            "hang",
        ]],
    );
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert!(tick.warnings_emitted.iter().any(|t| t.contains("index.lock")), "{tick:?}");
    assert!(!w.has(".git/index.lock"));
    w.settled();
}

#[test]
fn a_lock_that_a_killed_loop_left_on_a_reference_of_its_own_does_not_forbid_the_restart() {
    let w = World::new();
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "commit: Done"]]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let lock = w.repo().join(".git/refs/notes/peers-attest.lock");
    std::fs::write(&lock, "").unwrap();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(!lock.exists());
    w.settled();
}

#[test]
fn row_38_a_merge_that_the_killed_turn_left_does_not_forbid_the_restart() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["corrupt_git: merge_head", &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert!(w.tick(1).recovered);
    assert!(w.prompt(2).contains("merge"), "{}", w.prompt(2));
    w.settled();
}

#[test]
fn row_38_a_new_branch_is_not_made_over_an_open_tick() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "commit: Half the work", &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    let half = w.head();
    for how in ["--branch=work", "--worktree", "--dry-run"] {
        w.run(&[how]).refused(4, "tick 1 of the last run was cut short");
    }
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert_eq!(tick.commits.iter().map(peers_model::CommitId::as_str).collect::<Vec<_>>(), [half.as_str()]);
    assert_eq!((tick.recovered, tick.corrected), (true, None));
    assert_eq!(w.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
    w.settled();
    w.run(&["--max-ticks=1", "--branch=work"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn row_38_what_gates_of_a_killed_loop_left_is_ended_too() {
    let w = World::new();
    let here = w.fifo("here");
    let go = w.path("go");
    w.gate(&format!(
        "test -f {} || {{ setsid tail -f /dev/null & echo here > {}; exec tail -f /dev/null; }}",
        go.display(),
        w.path("here").display()
    ));
    let live = w.start(&[]);
    here.told();
    live.crash();
    fs::write(&go, "").unwrap();
    w.run(&["--no-skeptic"]).stopped("complete", 0);
    assert!(w.ticks().is_empty());
    w.settled();
}

#[test]
fn a_crashed_turn_whose_mark_is_lost_stops_once_and_the_next_run_goes_on() {
    for damage in ["rm FILE", ": > FILE", "echo '{' > FILE", "rm FILE; mkfifo FILE"] {
        let w = World::new();
        let here = w.fifo("here");
        let hook = sh("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
        w.play(
            "idle",
            &[&["write: {path: a.py, text: 'a = 1'}", "commit: Half the work", &hook, &here.tell(), "hang"]],
        );
        let live = w.start(&[]);
        here.told();
        w.recorded("peer-spawned", 1);
        live.crash();
        let file = w.store().join("git/turn.json").display().to_string();
        let spoil = std::process::Command::new("sh").arg("-c").arg(damage.replace("FILE", &file)).status();
        assert!(spoil.unwrap().success());
        let ran = w.run(&["--max-ticks=1"]);
        ran.stopped("tamper:store", 5);
        let detail = w.exit().detail;
        assert!(detail.contains("turn.json") && detail.contains("tick 1 of ann"), "{damage}: {detail}");
        fs::remove_file(w.repo().join(".git/hooks/pre-commit")).unwrap();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert!(w.tick(1).recovered);
        w.settled();
    }
}

/// A loop that was killed in a turn that had worked, planted a hook, and done this.
fn killed_after(damage: &str) -> World {
    let w = World::new();
    let here = w.fifo("here");
    let hook = sh("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let work = ["write: {path: a.py, text: 'a = 1'}", "commit: Half the work"];
    w.play("idle", &[&[work[0], work[1], &hook, &sh(damage), &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    // Who does not hold the lock puts nothing back.
    assert_ne!(w.run(&["--max-ticks=1"]).code, 0);
    assert!(w.has(".git/hooks/pre-commit"), "{damage}");
    live.crash();
    w
}

fn taken_up(w: &World, tampered: &[&str]) {
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert!(tick.recovered && tick.commits.len() == 1, "{tick:#?}");
    assert_eq!(tick.git_tampered, tampered);
    w.settled();
}

#[test]
fn settings_that_a_killed_turn_left_unreadable_are_put_back_before_the_repository_is_opened() {
    let w = killed_after("echo '[garbage' > .git/config; echo /tmp > .git/commondir");
    taken_up(&w, &["commondir", "config", "hooks/pre-commit"]);
}

#[test]
fn a_git_directory_that_a_killed_turn_left_unfit_to_be_opened_is_refused_until_that_is_undone() {
    let w = killed_after("mkfifo .git/refs/heads/p");
    w.run(&["--max-ticks=1"]).refused(5, "refs/heads/p");
    fs::remove_file(w.repo().join(".git/refs/heads/p")).unwrap();
    taken_up(&w, &["hooks/pre-commit"]);
}

/// A loop that was killed while a gate ran that had done this; the gate passes from here on.
fn killed_in_a_gate(w: &World, act: &str) {
    let here = w.fifo("here");
    let go = w.path("go");
    let told = w.path("here").display().to_string();
    w.gate(&format!("test -f {} || {{ {act}; echo here > {told}; exec tail -f /dev/null; }}", go.display()));
    let live = w.start(&[]);
    here.told();
    live.crash();
    fs::write(&go, "").unwrap();
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"]]);
}

#[test]
fn what_changed_in_git_since_gates_of_a_killed_loop_stays_for_as_long_as_a_start_is_refused() {
    let w = World::new();
    killed_in_a_gate(&w, "git config core.fsmonitor ./evil");
    w.git(&["config", "remote.origin.url", "mine"]);
    let large = format!("#!/bin/sh\n{}", "x".repeat(2 << 20));
    fs::write(w.repo().join(".git/hooks/pre-commit"), &large).unwrap();
    let goals = w.get(".peers/goals.yaml");
    w.put(".peers/goals.yaml", &format!("{goals}# mine\n"));
    w.run(&["--max-ticks=1"]).refused(5, "goals.yaml changed");
    assert_eq!(w.git(&["config", "remote.origin.url"]), "mine");
    assert!(w.has(".git/hooks/pre-commit"));
    w.put(".peers/goals.yaml", &goals);
    let ran = w.run(&["--max-ticks=1"]);
    for told in ["gates of the last run were cut short", "`config`", "`hooks/pre-commit`"] {
        assert!(ran.stderr.contains(told), "{ran:#?}");
    }
    assert!(!w.has(".git/hooks/pre-commit") && !w.store().join("git/gates.json").exists());
    let warned = w.tick(1).warnings_emitted;
    let kept = warned.iter().find(|text| text.contains("in the trusted store")).unwrap();
    assert!(kept.contains("git/kept/tick-") && kept.contains(".git/peers-aside/kept-tick-"), "{warned:#?}");
    let aside = fs::read_dir(w.repo().join(".git/peers-aside")).unwrap();
    assert!(aside.into_iter().any(|entry| fs::read(entry.unwrap().path()).unwrap() == large.as_bytes()));
    w.settled();
}

#[test]
fn what_an_orphan_of_gates_plants_in_git_while_a_start_looks_around_is_put_back_once_it_is_gone() {
    let w = World::new();
    killed_in_a_gate(
        &w,
        "setsid sh -c 'while :; do echo evil > .git/hooks/pre-commit; done' & setsid sh -c 'while :; do echo evil > .git/hooks/pre-push; done' & true",
    );
    w.run(&["--max-ticks=1"]);
    assert!(!w.has(".git/hooks/pre-commit") && !w.has(".git/hooks/pre-push"));
    w.settled();
}
