//! The loop is killed in the middle of a turn, and started again.

use std::fs;

use peers_model::record::{Record, TickOutcome};

use crate::world::{World, eventually, sh};

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
fn row_38_commits_that_an_orphan_makes_after_the_kill_belong_to_the_open_tick() {
    let w = World::new();
    let here = w.fifo("here");
    let task = "while :; do git commit -q --no-verify --allow-empty -m Orphan; done";
    let orphan = format!("fork: {{what: daemon, shell: {}}}", serde_json::Value::from(task));
    w.play("idle", &[&[&orphan, &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    for _ in 0..2 {
        let head = w.head();
        eventually("the orphan commits on", || w.head() != head);
    }
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
    let tick = w.tick(1);
    assert!(tick.recovered && tick.exit.survivors.is_empty(), "{tick:?}");
    assert!(tick.commits.len() >= 2);
    assert_eq!(tick.head_after.as_str(), w.head(), "nobody commits any more");
}

#[test]
fn row_38_an_orphan_without_our_marker_is_found_by_its_session() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["fork: {what: holds-pipe, clean_env: true}", &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(w.tick(1).recovered);
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
fn row_38_locks_of_references_that_the_killed_turn_left_do_not_forbid_the_restart() {
    let w = World::new();
    let here = w.fifo("here");
    let locks = sh(": > .git/HEAD.lock; : > .git/refs/heads/main.lock; : > .git/packed-refs.lock");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", &locks, &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(!w.has(".git/HEAD.lock") && !w.has(".git/refs/heads/main.lock"));
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
fn row_38_a_rewritten_history_is_put_back_after_a_crash_too() {
    let w = World::new();
    let here = w.fifo("here");
    let honest: &[&str] = &["write: {path: a.py, text: 'a = 1'}", "handoff: Good work"];
    w.play("idle", &[honest, &["rewrite: {reset: 1}", &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 2);
    live.crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(w.head(), w.tick(1).head_after.as_str());
    assert_eq!((w.get("a.py").as_str(), w.status().as_str()), ("a = 1", ""));
    assert!(w.tick(2).recovered);
    w.settled();
}

#[test]
fn row_38_what_a_killed_turn_planted_in_git_is_put_back() {
    let w = World::new();
    let here = w.fifo("here");
    let evil = sh(
        "git config core.fsmonitor ./evil; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    let before = fs::read(w.repo().join(".git/config")).unwrap();
    w.play("idle", &[&[&evil, &here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let mut tampered = w.tick(1).git_tampered;
    tampered.sort();
    assert_eq!(tampered, ["config", "hooks/pre-commit"]);
    assert_eq!(fs::read(w.repo().join(".git/config")).unwrap(), before);
    assert!(!w.has(".git/hooks/pre-commit"));
    w.settled();
}

#[test]
fn row_38_a_crash_between_the_journal_and_its_copies_costs_nothing() {
    let w = World::new();
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff"]]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let (snapshot, mirror) = (w.store().join("snapshot.json"), w.repo().join(".peers/log/runs.jsonl"));
    let old = (fs::read(&snapshot).unwrap(), fs::read(&mirror).unwrap());
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    // As if the machine had stopped right after the newest records.
    fs::write(&snapshot, old.0).unwrap();
    fs::write(&mirror, old.1).unwrap();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let state = w.settled();
    assert_eq!((state.ticks.0, w.ticks().len()), (3, 3));
    let restored = w.records().into_iter().filter(|r| matches!(r, Record::MirrorRestored(_))).count();
    assert_eq!(restored, 1);
    let journal = fs::read(w.store().join("journal/000001.jsonl")).unwrap();
    assert_eq!(fs::read(&mirror).unwrap(), journal);
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
fn row_38_a_dry_run_that_was_cut_short_is_undone_by_a_dry_run() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "commit: Half the work", &here.tell(), "hang"]]);
    let before = w.head();
    let live = w.start(&["--dry-run"]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    w.run(&[]).refused(4, "so that nothing of it stays");
    w.run(&["--dry-run", "--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!((w.head(), w.status()), (before, String::new()));
    assert!(w.tick(1).recovered);
    w.settled();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
}

#[test]
fn row_38_a_tick_that_was_cut_short_in_a_worktree_is_taken_up_there() {
    let w = World::new();
    let here = w.fifo("here");
    let dir = w.path("elsewhere");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "commit: Half the work", &here.tell(), "hang"]]);
    let live = w.start(&[&format!("--worktree={}", dir.display())]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.crash();
    let before = w.head();
    w.run(&[]).refused(4, &dir.display().to_string());
    assert_eq!((w.head(), w.git(&["symbolic-ref", "HEAD"])), (before, "refs/heads/main".to_owned()));
    w.run_in(&dir, &["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(w.tick(1).recovered && w.tick(1).commits.len() == 1);
    w.settled_at(&dir);
    // The checkout is not where the last record stands, which is nobody's misdeed.
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
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
