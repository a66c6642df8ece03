//! What happens while no tick is open: commits that appear, and what gates do besides judging.

use std::fs;

use peers_model::record::TickOutcome;

use crate::world::{World, sh};

/// A gate that is red until `fixed` exists, and does something once.
fn gate_that(w: &World, act: &str) {
    let once = w.path("once");
    let git = "git -c user.name=g -c user.email=g@example.org";
    let act = act.replace("git commit", &format!("{git} commit"));
    w.gate(&format!("if mkdir {} 2>/dev/null; then {act}; fi; test -f fixed", once.display()));
}

#[test]
fn a_commit_that_a_gate_made_and_that_weakens_tests_stops_the_loop_and_the_next_run_goes_on() {
    let w = World::new();
    fs::create_dir(w.repo().join("tests")).unwrap();
    w.put("tests/test_a.py", "def test_a():\n    assert f() == 3\n    assert g() == 4\n");
    w.commit("Tests");
    gate_that(&w, "echo 'def test_a(): pass' > tests/test_a.py && git commit -qam 'By a gate'");
    w.play("idle", &[]);
    let ran = w.run(&["--max-ticks=1"]);
    ran.stopped("tamper:history", 5);
    let exit = w.exit();
    assert!(exit.detail.contains("fewer assertions in tests/test_a.py"), "{}", exit.detail);
    assert!(w.ticks().is_empty(), "no agent built on it");
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn a_gate_that_writes_to_the_trusted_store_stops_the_loop() {
    let w = World::new();
    let accepted = w.store().join("accepted.json");
    gate_that(&w, &format!("echo ' ' >> {}", accepted.display()));
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("tamper:store", 5);
    let exit = w.exit();
    assert!(
        exit.detail.contains("while gates ran") && exit.detail.contains("accepted.json"),
        "{}",
        exit.detail
    );
    assert!(w.ticks().is_empty());
}

#[test]
fn lines_that_a_peer_adds_to_the_journal_are_kept_aside_and_the_next_run_goes_on() {
    let w = World::new();
    let journal = w.store().join("journal/000001.jsonl");
    let act = sh(&format!("tail -n 1 {0} >> {0}", journal.display()));
    w.play("idle", &[&[act.as_str(), "write: {path: a.py, text: 'a = 1'}", "handoff"]]);
    w.run(&["--max-ticks=1"]).stopped("tamper:store", 5);
    let kept = fs::read_dir(w.store().join("journal")).unwrap();
    let kept = kept.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with("foreign-"));
    assert_eq!(kept.count(), 1);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn a_segment_that_a_peer_plants_is_found() {
    let w = World::new();
    let planted = w.store().join("journal/000002.jsonl");
    let act = sh(&format!(": > {}", planted.display()));
    w.play("idle", &[&[act.as_str(), "write: {path: a.py, text: 'a = 1'}", "handoff"]]);
    w.run(&["--max-ticks=1"]).stopped("tamper:store", 5);
    assert!(w.exit().detail.contains("000002.jsonl is not ours"));
}

#[test]
fn what_a_gate_plants_in_git_is_put_back_before_anybody_has_the_turn() {
    let w = World::new();
    w.git(&["branch", "feature"]);
    gate_that(
        &w,
        "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/commit-msg && chmod +x .git/hooks/commit-msg \
         && git config core.hooksPath /tmp/none && echo HEAD > .git/MERGE_HEAD \
         && git update-index --assume-unchanged readme.txt && git branch -D feature",
    );
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert!(!w.has(".git/hooks/commit-msg") && !w.has(".git/MERGE_HEAD"));
    assert_eq!(w.git(&["config", "--default", "unset", "core.hooksPath"]), "unset");
    assert!(!w.git(&["ls-files", "-v"]).contains("h readme.txt"));
    assert!(w.salvaged().keys().any(|name| name.contains("feature")), "{:?}", w.salvaged());
    w.settled();
}

/// A run that is interrupted while a gate runs that does this and hangs.
fn interrupted_in_a_gate(w: &World, act: &str) {
    let here = w.fifo("here");
    gate_that(w, &format!("{act}; echo here > {}; exec tail -f /dev/null", w.path("here").display()));
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    let live = w.start(&["--no-skeptic"]);
    here.told();
    live.signal(peers_sys::signal::Signal::Int);
    live.end().stopped("interrupted", 130);
}

#[test]
fn row_38_who_leaves_the_branch_after_a_turn_was_over_is_asked_back_and_the_turn_counts() {
    for (leave, back) in [
        (&["checkout", "-q", "-b", "other"][..], &["switch", "-q", "main"][..]),
        (&["checkout", "-q", "--detach"], &["switch", "-q", "main"]),
        (&["branch", "-m", "main", "other"], &["branch", "-m", "other", "main"]),
    ] {
        let w = World::new();
        let here = w.fifo("here");
        let (once, told) = (w.path("once"), w.path("here"));
        let hang = format!("echo here > {}; exec tail -f /dev/null", told.display());
        w.gate(&format!("test -f fixed || exit 1; if mkdir {} 2>/dev/null; then {hang}; fi", once.display()));
        w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
        let live = w.start(&["--no-skeptic"]);
        here.told();
        live.crash();
        let made = w.head();
        w.git(leave);
        let refused = w.run(&["--max-ticks=1", "--no-skeptic"]);
        refused.refused(4, "was cut short on `main` after its turn");
        assert!(refused.stderr.contains("switch main"), "{}", refused.stderr);
        w.git(back);
        w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
        assert_eq!((w.head(), w.tick(1).outcome), (made, TickOutcome::Handoff));
        assert_eq!(w.tick(1).corrected, None);
        w.settled();
    }
}

const STRONG: &str = "def test_a():\n    assert f() == 3\n    assert g() == 4\n";

/// A world with a test and a gate that does this once; a turn follows that commits all that there is.
fn weakened_by_a_gate(act: &str) -> World {
    let w = World::new();
    fs::create_dir(w.repo().join("tests")).unwrap();
    w.put("tests/test_a.py", STRONG);
    w.put(".gitignore", ".peers/\n*.ign\n");
    w.commit("Tests");
    gate_that(&w, act);
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w
}

#[track_caller]
fn put_back(w: &World) {
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.git(&["show", "HEAD:tests/test_a.py"]), STRONG.trim_end());
    let told = |t: &String| t.contains("while gates ran") && t.contains("tests/test_a.py");
    assert!(w.tick(1).warnings_emitted.iter().any(told), "{:#?}", w.tick(1));
    assert!(!w.tick(1).prewarned);
    w.settled();
}

#[test]
fn tests_that_a_gate_deletes_behind_a_commit_of_its_own_are_put_back() {
    put_back(&weakened_by_a_gate("git commit -q --allow-empty -m n; rm tests/test_a.py"));
}

/// Where case counts, this is a directory like any other; what is ours is not written to where it does not.
#[cfg(target_os = "linux")]
#[test]
fn tests_that_cannot_be_put_back_after_a_gate_stop_the_loop() {
    let w = World::new();
    fs::create_dir_all(w.repo().join(".PEERS/tests")).unwrap();
    w.put(".PEERS/tests/test_a.py", STRONG);
    w.commit("Tests");
    gate_that(&w, "rm .PEERS/tests/test_a.py");
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=1"]).stopped("tamper:history", 5);
    assert!(w.ticks().is_empty(), "no agent built on it");
    let detail = w.exit().detail;
    assert!(detail.contains("tests/test_a.py") && detail.contains("start again"), "{detail}");
}

#[test]
fn tests_that_a_gate_weakened_before_it_was_cut_off_are_put_back() {
    let w = World::new();
    fs::create_dir(w.repo().join("tests")).unwrap();
    w.put("tests/test_a.py", STRONG);
    w.commit("Tests");
    interrupted_in_a_gate(&w, "rm tests/test_a.py");
    assert_eq!(w.get("tests/test_a.py"), STRONG);
    assert_eq!(w.status(), "");
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}
