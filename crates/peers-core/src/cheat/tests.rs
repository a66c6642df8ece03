//! Tests of `cheat`.

use peers_model::GoalId;
use peers_model::weakening::{Weakened, Weakening};

use super::*;
use crate::classify_path::PathKind;

fn changed(path: &str) -> FileDiff {
    FileDiff::text(path, 1, 1)
}

fn turn(files: Vec<FileDiff>) -> TurnDiff {
    TurnDiff { files, weaker: Vec::new() }
}

fn verdict(diff: &TurnDiff, context: &CheatContext) -> CheatVerdict {
    judge(diff, &diff.weaker, context)
}

fn tests_only() -> TurnDiff {
    turn(vec![FileDiff::text("tests/test_a.py", 2, 0)])
}

fn lost(path: &str) -> Weakening {
    Weakened::Assertions { lost: 1 }.at(path)
}

fn weaker() -> TurnDiff {
    TurnDiff {
        files: vec![changed("tests/test_a.py"), changed("src/a.py")],
        weaker: vec![lost("tests/test_a.py")],
    }
}

const REASON: &str = "the fixture used a port that CI blocks";

fn fresh() -> CheatContext {
    CheatContext::default()
}

fn warned() -> CheatContext {
    CheatContext { prewarned: true, ..CheatContext::default() }
}

fn is_prewarn(verdict: &CheatVerdict) -> bool {
    matches!(verdict, CheatVerdict::Prewarn { .. })
}

fn is_revert(verdict: &CheatVerdict) -> bool {
    matches!(verdict, CheatVerdict::Revert { .. })
}

#[test]
fn row_47_a_test_only_turn_is_warned_about_and_then_reverted() {
    assert!(is_prewarn(&verdict(&tests_only(), &fresh())));
    assert!(is_revert(&verdict(&tests_only(), &warned())));
}

#[test]
fn row_47_a_justified_test_only_turn_is_accepted() {
    let with = |text: &str| CheatContext { justification: Some(text.into()), ..warned() };
    assert_eq!(verdict(&tests_only(), &with(REASON)), CheatVerdict::Justified { text: REASON.into() });
    assert!(is_revert(&verdict(&tests_only(), &with("because"))), "20 characters at least");
    let CheatVerdict::Justified { text } = verdict(&tests_only(), &with(&"x".repeat(900))) else { panic!() };
    assert_eq!(text.len(), 500);
}

#[test]
fn row_47_a_reproducer_is_fine() {
    let context = CheatContext { reproduces_open_bug: true, ..warned() };
    assert_eq!(verdict(&tests_only(), &context), CheatVerdict::Reproducer);
    assert_eq!(
        verdict(&tests_only(), &CheatContext { reviewer: true, ..warned() }),
        CheatVerdict::Reproducer
    );
}

#[test]
fn row_47_a_removed_assertion_is_not_justified_by_words() {
    let context = |prewarned| CheatContext {
        justification: Some(REASON.into()),
        reproduces_open_bug: true,
        reviewer: true,
        prewarned,
    };
    assert!(is_prewarn(&verdict(&weaker(), &context(false))), "a source line beside it does not help");
    assert!(is_revert(&verdict(&weaker(), &context(true))));
}

#[test]
fn a_turn_that_did_not_hand_off_is_measured_for_weakening_and_for_nothing_else() {
    assert!(is_prewarn(&judge_unfinished(&weaker().weaker, false)));
    assert!(is_revert(&judge_unfinished(&weaker().weaker, true)));
    assert_eq!(judge_unfinished(&tests_only().weaker, true), CheatVerdict::Clean);
}

#[test]
fn a_turn_with_other_lines_is_clean() {
    let with = |path: &str| {
        let mut diff = tests_only();
        diff.files.push(changed(path));
        verdict(&diff, &warned())
    };
    assert_eq!(with("src/a.py"), CheatVerdict::Clean);
    assert_eq!(with("docs/a.md"), CheatVerdict::Clean);
    assert!(is_revert(&with(".peers/x")), "the control directory is no work");
    assert_eq!(verdict(&turn(vec![]), &warned()), CheatVerdict::Clean);
    assert_eq!(verdict(&turn(vec![changed("src/a.py")]), &warned()), CheatVerdict::Clean);
}

#[test]
fn a_binary_file_counts_as_changed() {
    let mut diff = turn(vec![FileDiff { binary: true, ..FileDiff::text("tests/a.bin", 0, 0) }]);
    assert!(diff.is_test_only());
    diff.files.push(FileDiff { binary: true, ..FileDiff::text("assets/a.png", 0, 0) });
    assert!(!diff.is_test_only());
}

#[test]
fn a_change_of_mode_alone_is_no_change() {
    assert!(!turn(vec![FileDiff::text("tests/a.py", 0, 0)]).is_test_only());
}

#[test]
fn a_gate_that_test_edits_alone_turned_green_is_named() {
    let gate = |id: &str| GoalId::new(id).unwrap();
    let (red, green) = (vec![gate("tests-pass"), gate("lint-clean")], vec![gate("tests-pass")]);
    let edit = turn(vec![changed("tests/a.rs")]);
    assert_eq!(green_by_test_edits(&edit, &red, &green), [&gate("tests-pass")]);
    assert!(green_by_test_edits(&tests_only(), &red, &green).is_empty(), "new tests are no edits");
    let with_source = turn(vec![edit.files[0].clone(), changed("src/a.rs")]);
    assert!(green_by_test_edits(&with_source, &red, &green).is_empty());
    assert!(green_by_test_edits(&edit, &red, &[]).is_empty());
}

#[test]
fn the_reason_names_files_without_control_bytes_and_is_bounded() {
    let weaker = (0..20).map(|n| lost(&format!("tests/\u{1b}{n}.rs"))).collect();
    let diff = TurnDiff { weaker, ..TurnDiff::default() };
    let CheatVerdict::Prewarn { why } = verdict(&diff, &fresh()) else { panic!() };
    assert!(!why.contains('\u{1b}'));
    assert!(why.contains("and 15 more"), "{why}");
}

#[test]
fn what_lay_uncommitted_before_a_turn_is_taken_over_and_what_it_leaves_is_its_own() {
    let weaker = |path: &str| TurnDiff { weaker: vec![lost(path)], ..TurnDiff::default() };
    let of = |diff: &TurnDiff, around: &Uncommitted, left: bool| {
        let of = OfTurn::new(diff, around, left);
        assert!(of.taken_over.is_empty() || of.found_there.is_empty());
        (of.own.len(), of.taken_over.len() + 10 * of.found_there.len())
    };
    let (a, none) = (weaker("tests/test_a.py"), TurnDiff::default());
    let clean = Uncommitted::default();
    assert_eq!(of(&a, &clean, true), (1, 0), "its own");
    let stood = Uncommitted { since: Some(none.clone()), ..clean.clone() };
    assert_eq!(of(&a, &stood, true), (0, 10), "only committed, and nobody knows whose it is");
    let known = ["tests/test_a.py".to_owned()].into_iter().collect();
    let stood = Uncommitted { charged: known, ..stood };
    assert_eq!(of(&a, &stood, true), (0, 1), "only committed, and somebody answered for it");
    let more = Uncommitted { since: Some(a.clone()), ..clean.clone() };
    assert_eq!(of(&a, &more, true), (1, 0), "weakened further");
    let left = Uncommitted { left: a.clone(), made: a.clone(), ..clean.clone() };
    assert_eq!(of(&none, &left, true), (1, 0), "left");
    assert_eq!(of(&none, &left, false), (0, 0), "a turn that was cut short may have meant to go on");
    assert_eq!(of(&a, &left, true), (1, 0), "told once");
    let stands = Uncommitted { left: a.clone(), made: weaker("src/x.py"), ..clean };
    assert_eq!(of(&none, &stands, true), (0, 0), "somebody else left it");
}

#[test]
fn lines_of_tests_in_a_file_of_the_product_are_tests() {
    let divided = |tests, rest| {
        let mut diff = turn(vec![FileDiff::text("src/a.rs", 3, 2)]);
        diff.divide("src/a.rs", tests, rest);
        diff
    };
    let both = divided((2, 1), (1, 1));
    assert_eq!((both.weight(PathKind::Source), both.weight(PathKind::Test)), (2, 3));
    assert!(divided((2, 1), (0, 0)).is_test_only() && !both.is_test_only());
    let mut other = turn(vec![FileDiff::text("tests/a.rs", 3, 2)]);
    other.divide("tests/a.rs", (1, 1), (2, 1));
    assert_eq!(other.files.len(), 1, "all of it is tests");
}
