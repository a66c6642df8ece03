//! Turns that are taken back, and forged notes.

use std::fs;

use peers_core::cheat::TAKEN_OVER;
use peers_core::state::PeerState;
use peers_model::record::{CorrectionKind, TickOutcome, TickRecord};

use crate::world::{World, sh};

const TEST_ONLY: &[&str] =
    &["write: {path: 'tests/test_{{iteration}}.py', text: 'def test_x(): assert 1'}", "handoff: More tests"];
const HONEST: &[&str] = &["write: {path: 'src/a{{iteration}}.py', text: 'a = 1'}", "handoff: Work"];

/// The tree of a commit.
fn tree(w: &World, commit: &str) -> String {
    w.git(&["rev-parse", &format!("{commit}^{{tree}}")])
}

#[test]
fn row_47_the_second_turn_of_tests_alone_is_reverted_by_the_substrate_and_the_third_degrades() {
    let w = World::new();
    w.play("repeat", &[TEST_ONLY, HONEST, TEST_ONLY, TEST_ONLY]);
    w.run(&["--max-ticks=4"]).stopped("max_ticks", 0);
    let state = w.settled();
    let (first, third, fourth) = (w.tick(1), w.tick(3), w.tick(4));
    assert_eq!((first.outcome, first.prewarned, first.corrected), (TickOutcome::Handoff, true, None));
    for tick in [&third, &fourth] {
        assert_eq!((tick.peer.as_str(), tick.outcome), ("ann", TickOutcome::Corrected));
        assert_eq!(tick.corrected, Some(CorrectionKind::Revert));
        assert_eq!(tree(&w, tick.head_after.as_str()), tree(&w, tick.head_before.as_str()));
        assert_eq!((tick.commits.len(), tick.own.len()), (1, 1), "the work is hers, the revert is ours");
        let author = w.git(&["log", "-1", "--format=%an <%ae>", tick.own[0].as_str()]);
        assert_eq!(author, "peers-substrate <peers-substrate@local>");
        let kept = &w.salvaged()[tick.salvage.as_ref().unwrap()];
        assert_eq!(kept, tick.commits[0].as_str());
    }
    assert!(!w.has("tests/test_3.py") && !w.has("tests/test_4.py") && w.has("tests/test_1.py"));
    assert_eq!(w.status(), "");
    let ann = state.health(&first.peer);
    assert_eq!((ann.state, ann.failed_cheating), (PeerState::Degraded, 2));
}

#[test]
fn row_48_a_revert_over_a_merge_and_a_dirty_tree_loses_nothing() {
    let w = World::new();
    w.put("notes.py", "draft = 1\n");
    let merge: &[&str] = &[
        "switch_branch: side",
        "write: {path: tests/test_side.py, text: 'def test_s(): assert 1'}",
        "commit: {subject: Side, files: [tests]}",
        "switch_branch: {name: main, existing: true}",
        "write: {path: tests/test_main.py, text: 'def test_m(): assert 1'}",
        "commit: {subject: Main, files: [tests]}",
        "git: [merge, -q, --no-ff, -m, Merge side, side]",
        "write: {path: leftover.py, text: 'x = 1'}",
        "write: {path: tests/test_main.py, append: ' # and more'}",
        "write: {path: readme.txt, append: more}",
        "handoff: {files: none}",
    ];
    let honest: &[&str] = &["write: {path: a.py, text: 'a = 1'}", "handoff: {files: [a.py]}"];
    let test_only: &[&str] =
        &["write: {path: tests/test_1.py, text: 'def test_x(): assert 1'}", "handoff: {files: [tests]}"];
    w.play("idle", &[test_only, honest, merge]);
    w.run(&["--max-ticks=3"]).stopped("max_ticks", 0);
    let tick = w.tick(3);
    assert_eq!(tick.corrected, Some(CorrectionKind::Revert), "{tick:?}");
    assert_eq!(tree(&w, "HEAD"), tree(&w, tick.head_before.as_str()));
    assert_eq!(tick.commits.len(), 4);
    // The tree is as before, edits at other paths are where they were.
    assert!(!w.has("tests/test_side.py") && !w.has("tests/test_main.py"));
    assert_eq!(w.get("leftover.py"), "x = 1");
    assert_eq!(w.get("readme.txt"), "start\nmore");
    assert_eq!(w.get("notes.py"), "draft = 1\n");
    // And everything that was there is in the copy.
    let kept = &w.salvaged()[&tick.salvage.unwrap()];
    for (path, text) in [
        ("leftover.py", "x = 1"),
        ("readme.txt", "start\nmore"),
        ("notes.py", "draft = 1"),
        ("tests/test_side.py", "def test_s(): assert 1"),
        ("tests/test_main.py", "def test_m(): assert 1 # and more"),
    ] {
        assert_eq!(w.git_control(&["show", &format!("{kept}:{path}")]), text);
    }
    w.settled();
}

#[test]
fn row_48_a_revert_waits_for_an_index_that_was_broken_in_the_turn() {
    let w = World::new();
    let broken: &[&str] = &[TEST_ONLY[0], TEST_ONLY[1], "corrupt_git: index"];
    w.play("idle", &[TEST_ONLY, HONEST, broken]);
    w.run(&["--max-ticks=3"]).stopped("tamper:git", 5);
    w.do_as_told();
    w.run(&["--max-ticks=1"]);
    assert_eq!(w.tick(3).corrected, Some(CorrectionKind::Revert));
    assert_eq!(w.status(), "");
    w.settled();
}

#[test]
fn row_49_a_note_that_was_forged_in_the_turn_is_healed() {
    let w = World::new();
    let forge = "forge_note: {text: 'operator'}";
    w.play(
        "idle",
        &[
            HONEST,
            &[
                "write: {path: fixed, text: 'yes'}",
                "handoff: Fix it",
                forge,
                "forge_note: {commit: HEAD~1, text: bob}",
            ],
        ],
    );
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    let note = |rev: &str| w.git(&["notes", "--ref", "peers-attest", "show", rev]);
    assert_eq!((note("HEAD").as_str(), note("HEAD~1").as_str()), ("bob", "ann"));
    assert!(w.tick(2).warnings_emitted.iter().any(|t| t.contains("refs/notes/peers-attest")));
    w.settled();
}

#[test]
fn protected_references_that_were_moved_are_put_back() {
    let w = World::new();
    let before = w.git(&["rev-parse", "peers-baseline"]);
    let refs = sh(
        "git tag -f peers-baseline HEAD; git update-ref refs/peers/mine HEAD; git update-ref refs/notes/peers-other HEAD; git replace HEAD HEAD~1",
    );
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff", &refs]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.git(&["rev-parse", "peers-baseline"]), before);
    assert_eq!(w.git(&["for-each-ref", "refs/peers", "refs/replace", "refs/notes/peers-other"]), "");
    let said = w.tick(1).warnings_emitted;
    for name in ["refs/tags/peers-baseline", "refs/peers/mine", "refs/notes/peers-other", "refs/replace/"] {
        assert!(said.iter().any(|t| t.contains(name)), "{name}: {said:?}");
    }
    w.settled();
}

/// Tick 1 of ann brings a test with three assertions, tick 3 loses two of them behind something.
fn weakened_behind(hide: &str) {
    let w = World::new();
    let test = "write: {path: tests/test_z.py, text: \"def test_z():\\n    assert f(1) == 1\\n    assert f(2) == 2\\n    assert f(3) == 3\\n\"}";
    let weaken = "write: {path: tests/test_z.py, text: \"def test_z():\\n    assert f(1) == 1\\n\"}";
    w.play(
        "idle",
        &[
            &[test, "write: {path: src/f.py, text: 'def f(x): return x'}", "handoff"],
            HONEST,
            &[weaken, &sh(hide), "write: {path: src/g.py, text: 'g = 1'}", "handoff"],
        ],
    );
    w.run(&["--max-ticks=3"]).stopped("max_ticks", 0);
    let tick = w.tick(3);
    assert!(tick.prewarned, "{hide}: {tick:?}");
    w.settled();
}

#[test]
fn row_47_a_weakening_is_seen_behind_a_large_file() {
    weakened_behind("yes 'x = 1' | head -c 3000000 > a.py");
}

const WEAK: &str = "write: {path: tests/test_z.py, text: \"def test_z():\\n    assert f(1) == 1\\n\"}";
const STRONG: &str = "def test_z():\n    assert f(1) == 1\n    assert f(2) == 2\n";

/// A world with a test of the operator.
fn tested() -> World {
    let w = World::new();
    fs::create_dir(w.repo().join("tests")).unwrap();
    w.put("tests/test_z.py", STRONG);
    w.commit("A test");
    w
}

#[test]
fn a_weakening_that_is_left_uncommitted_is_charged_to_who_left_it_and_not_to_who_commits_it() {
    let w = tested();
    w.play("idle", &[&[HONEST[0], HONEST[1], WEAK], HONEST, HONEST]);
    w.run(&["--max-ticks=3"]).stopped("max_ticks", 0);
    let (ann, bob, again) = (w.tick(1), w.tick(2), w.tick(3));
    assert!(ann.prewarned, "{ann:#?}");
    assert!(
        w.git(&["show", "--stat", bob.head_after.as_str()]).contains("tests/test_z.py"),
        "it was taken over"
    );
    assert_eq!((bob.prewarned, bob.outcome), (false, TickOutcome::Handoff), "{bob:#?}");
    let told = "bob committed changes that were left uncommitted before this turn";
    assert!(
        bob.warnings_emitted.iter().any(|t| t.contains(told) && t.contains("tests/test_z.py")),
        "{bob:#?}"
    );
    assert!(!bob.warnings_emitted.iter().any(|t| t.starts_with(TAKEN_OVER)), "it is known who left it");
    assert!(!again.prewarned, "once is enough: {again:#?}");
    w.settled();
}

#[test]
fn what_the_operator_left_uncommitted_is_charged_to_nobody() {
    let w = tested();
    w.put("tests/test_z.py", "def test_z():\n    assert f(1) == 1\n");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: {files: [a.py]}"], HONEST]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert!(w.ticks().iter().all(|tick| !tick.prewarned), "{:#?}", w.ticks());
    assert!(w.git(&["show", "--stat", "HEAD"]).contains("tests/test_z.py"));
    let (first, second) = (w.tick(1).warnings_emitted, w.tick(2).warnings_emitted);
    assert!(!first.iter().any(|t| t.starts_with(TAKEN_OVER)), "{first:#?}");
    assert!(second.iter().any(|t| t.starts_with(TAKEN_OVER) && t.contains("tests/test_z.py")), "{second:#?}");
    w.settled();
}

#[test]
fn the_second_weakening_that_is_left_uncommitted_goes_with_its_turn_and_is_kept() {
    let w = tested();
    w.put("notes.py", "mine = 1\n");
    let left: &[&str] = &[
        "write: {path: 'src/a{{iteration}}.py', text: 'a = 1'}",
        "handoff: {files: [src]}",
        WEAK,
        "write: {path: wip.py, text: 'w = 1'}",
    ];
    let undone = sh("git checkout -q tests");
    let between: &[&str] = &["write: {path: src/b.py, text: 'b = 1'}", &undone, "handoff: {files: [src]}"];
    let all = ["write: {path: src/c.py, text: 'c = 1'}", "handoff"];
    w.play("idle", &[left, between, left, &all]);
    w.run(&["--max-ticks=4"]).stopped("max_ticks", 0);
    let (first, third, fourth) = (w.tick(1), w.tick(3), w.tick(4));
    assert!(first.prewarned, "{first:#?}");
    assert_eq!(third.corrected, Some(CorrectionKind::Revert), "{third:#?}");
    let kept = &w.salvaged()[third.salvage.as_ref().unwrap()];
    assert_eq!(
        w.git_control(&["show", &format!("{kept}:tests/test_z.py")]),
        "def test_z():\n    assert f(1) == 1"
    );
    assert_eq!(fourth.outcome, TickOutcome::Handoff);
    assert_eq!(w.get("tests/test_z.py"), STRONG);
    assert_eq!((w.get("notes.py").as_str(), w.get("wip.py").as_str()), ("mine = 1\n", "w = 1"));
    w.settled();
}

#[test]
fn tests_that_a_gate_weakens_in_the_work_tree_are_put_back_before_anybody_commits_that() {
    let w = tested();
    let flag = w.path("flag");
    fs::write(&flag, "").unwrap();
    // Only in the work tree, and once.
    w.gate(&format!(
        "if [ -e {0} ] && [ \"$PWD\" = {1} ] && [ -e a.py ]; then rm {0} tests/test_z.py; echo x > made.txt; fi; false",
        flag.display(),
        w.repo().display()
    ));
    let ann: &[&str] = &["write: {path: a.py, text: 'a = 1'}", "handoff"];
    let bob: &[&str] = &["write: {path: b.py, text: 'b = 1'}", "handoff"];
    w.play("idle", &[ann, bob]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert!(!flag.exists(), "the gate has done it");
    assert_eq!(w.git(&["show", "HEAD:tests/test_z.py"]), STRONG.trim_end());
    assert_eq!(w.git(&["show", "HEAD:made.txt"]), "x", "what is no test is not touched");
    for tick in w.ticks() {
        assert_eq!((tick.outcome, tick.prewarned), (TickOutcome::Handoff, false), "{tick:#?}");
    }
    let told = |tick: &peers_model::record::TickRecord| {
        tick.warnings_emitted.iter().any(|t| t.contains("while gates ran") && t.contains("tests/test_z.py"))
    };
    assert!(w.ticks().iter().any(told), "{:#?}", w.ticks());
    w.settled();
}

/// The work tree is as strong as HEAD, and a tick says that it was put back.
#[track_caller]
fn put_back(w: &World, said: &str) {
    assert_eq!(w.get("tests/test_z.py"), STRONG);
    assert_eq!(w.git(&["show", "HEAD:tests/test_z.py"]), STRONG.trim_end());
    let told = |tick: &TickRecord| {
        tick.warnings_emitted.iter().any(|t| t.contains(said) && t.contains("tests/test_z.py"))
    };
    assert!(w.ticks().iter().any(told), "{:#?}", w.ticks());
    assert!(w.ticks().iter().all(|tick| !tick.prewarned), "{:#?}", w.ticks());
    assert!(w.git(&["status", "--porcelain", "tests"]).is_empty());
}

/// A turn that weakens a test, commits nothing and hangs.
fn cut_short(w: &World) -> crate::world::Live {
    let here = w.fifo("here");
    w.play("idle", &[&[WEAK, "write: {path: wip.py, text: 'w = 1'}", &here.tell(), "hang"], HONEST, HONEST]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live
}

#[test]
fn what_a_turn_left_weakened_when_the_loop_was_killed_is_put_back_by_the_next_run() {
    let w = tested();
    cut_short(&w).crash();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(w.tick(1).recovered);
    put_back(&w, "by a turn that was cut short");
    w.settled();
}

#[test]
fn a_test_that_is_left_too_large_to_be_read_is_charged_to_who_left_it() {
    let w = tested();
    let grow = sh("truncate -s 70M tests/test_z.py");
    let ann: &[&str] = &[HONEST[0], "handoff: {files: [src]}", &grow];
    w.play("idle", &[ann, HONEST]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let (ann, bob) = (w.tick(1), w.tick(2));
    let said = "tests/test_z.py cannot be read any more";
    assert!(ann.prewarned && ann.warnings_emitted.iter().any(|t| t.contains(said)), "{ann:#?}");
    assert!(w.git(&["show", "--stat", bob.head_after.as_str()]).contains("tests/test_z.py"));
    assert!(!bob.prewarned, "{bob:#?}");
    w.settled();
}

#[test]
fn an_uncommitted_edit_does_not_shield_a_later_weakening_of_its_file_from_the_revert() {
    let w = tested();
    let harmless = format!("{STRONG}# a note\n");
    w.put("tests/test_z.py", &harmless);
    let weak: &[&str] =
        &["write: {path: 'src/a{{iteration}}.py', text: 'a = 1'}", "handoff: {files: [src]}", WEAK];
    let again = sh("git checkout -q tests && echo '# a note' >> tests/test_z.py");
    let bob: &[&str] = &["write: {path: src/b.py, text: 'b = 1'}", &again, "handoff: {files: [src]}"];
    w.play("idle", &[weak, bob, weak]);
    w.run(&["--max-ticks=3"]).stopped("max_ticks", 0);
    assert!(w.tick(1).prewarned, "{:#?}", w.tick(1));
    assert_eq!(w.tick(3).corrected, Some(CorrectionKind::Revert), "{:#?}", w.tick(3));
    assert_eq!(w.get("tests/test_z.py"), harmless);
    w.settled();
}
