//! Rewritten history and branches that were left: put back, with a copy.

use peers_model::record::{CorrectionKind, TickOutcome};

use crate::world::{World, sh};

/// Tick 1 of ann is honest, tick 2 of bob is not: what he did, what he noted as his tip, how it ends.
fn corrected(w: &World, steps: &[&str], kind: CorrectionKind) {
    let note = sh(&format!("git rev-parse HEAD > {}", w.path("tip").display()));
    let mut bob = steps.to_vec();
    bob.push(&note);
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: Good work"], &bob]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let (before, after) = (w.tick(1), w.tick(2));
    assert_eq!((after.peer.as_str(), after.outcome, after.success), ("bob", TickOutcome::Corrected, false));
    assert_eq!(after.corrected, Some(kind));
    assert_eq!(after.head_after, before.head_after);
    assert_eq!(w.head(), before.head_after.as_str());
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(w.get("a.py"), "a = 1");
    assert!(after.commits.is_empty(), "nothing of it is on the branch");
    let kept = &w.salvaged()[&after.salvage.unwrap()];
    let tip = w.noted("tip");
    let found = w.git_control(&["rev-list", "--max-count=2", kept]);
    assert!(found.lines().any(|c| c == tip), "the tip is kept");
    w.settled();
    // The culprit is told in the words of the record.
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    let why = after.soft_fail_reason.unwrap();
    assert_eq!(w.tick(3).peer.as_str(), "bob");
    assert!(w.prompt(3).contains(&why), "{why}");
}

#[test]
fn row_16_an_amended_commit_is_put_back() {
    let w = World::new();
    corrected(&w, &["rewrite: amend"], CorrectionKind::RestoreHistory);
    assert_eq!(w.status(), "");
}

#[test]
fn row_16_history_that_was_dropped_and_replaced_is_put_back() {
    let w = World::new();
    let steps = ["rewrite: {reset: 1}", "write: {path: fixed, text: 'yes'}", "handoff: Other work"];
    corrected(&w, &steps, CorrectionKind::RestoreHistory);
    assert_eq!(w.status(), "");
    assert!(!w.has("fixed"));
}

#[test]
fn row_16_a_switch_to_an_older_branch_is_put_back() {
    let w = World::new();
    w.git(&["branch", "old"]);
    corrected(&w, &["switch_branch: {name: old, existing: true}"], CorrectionKind::RestoreHistory);
    assert_eq!(w.status(), "");
}

#[test]
fn row_16_a_detached_head_with_a_handoff_is_put_back() {
    let w = World::new();
    let steps = ["switch_branch: {detach: true}", "write: {path: fixed, text: 'yes'}", "handoff"];
    corrected(&w, &steps, CorrectionKind::RestoreBranch);
    assert_eq!(w.status(), "");
    assert!(!w.has("fixed"));
}

#[test]
fn row_16_a_branch_that_was_deleted_is_made_again() {
    let w = World::new();
    let steps = ["switch_branch: side", "git: [branch, -q, -D, main]", "handoff"];
    corrected(&w, &steps, CorrectionKind::RestoreBranch);
    assert_eq!(w.status(), "");
}

#[test]
fn row_16_what_the_operator_had_not_committed_survives_the_repair() {
    let w = World::new();
    w.put("notes-of-the-operator.py", "think = True\n");
    w.put("readme.txt", "start\nand a change\n");
    // Ann leaves the operator's files alone; bob does too, but rewrites history.
    w.play(
        "idle",
        &[
            &["write: {path: a.py, text: 'a = 1'}", "handoff: {files: [a.py]}"],
            &["rewrite: amend", "write: {path: leftover.py, text: 'x = 1'}"],
        ],
    );
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let tick = w.tick(2);
    assert_eq!(tick.corrected, Some(CorrectionKind::RestoreHistory));
    assert_eq!(w.head(), w.tick(1).head_after.as_str());
    assert_eq!(w.get("notes-of-the-operator.py"), "think = True\n");
    assert_eq!(w.get("readme.txt"), "start\nand a change\n");
    let kept = &w.salvaged()[&tick.salvage.unwrap()];
    assert_eq!(w.git_control(&["show", &format!("{kept}:leftover.py")]), "x = 1");
    assert_eq!(w.git_control(&["show", &format!("{kept}:notes-of-the-operator.py")]), "think = True");
    w.settled();
}

#[test]
fn row_16_a_branch_for_which_another_one_leaves_no_room_stops_the_run_until_there_is_room() {
    for (branch, act) in [
        ("main", "git branch -m main main/x"),
        ("work/on/it", "git branch -m work/on/it other; git branch work/on; git checkout -q work/on"),
    ] {
        let w = World::new();
        if branch != "main" {
            w.git(&["checkout", "-q", "-b", branch]);
        }
        let start = w.head();
        let note = sh(&format!("git rev-parse HEAD > {}", w.path("tip").display()));
        let work = ["write: {path: a.py, text: 'a = 1'}", "handoff: Work", &note, &sh(act)];
        w.play("idle", &[&work, &["write: {path: b.py, text: 'b = 1'}", "handoff: More"]]);
        w.run(&["--max-ticks=1"]).stopped("tamper:git", 5);
        assert!(w.salvaged().values().any(|kept| *kept == w.noted("tip")), "{:?}", w.salvaged());
        w.do_as_told();
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        let tick = w.tick(1);
        assert_eq!(tick.corrected, Some(CorrectionKind::RestoreBranch), "{tick:#?}");
        assert_eq!(tick.head_after.as_str(), start);
        assert_eq!(w.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
        w.git(&["fsck", "--strict"]);
        w.settled();
    }
}
