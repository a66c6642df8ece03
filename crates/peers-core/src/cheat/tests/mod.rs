//! Tests of `cheat`.

mod seen;
mod silent;

use peers_model::GoalId;
use proptest::prelude::*;

use super::*;
use crate::classify_path::PathKind;

fn own(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

fn changed(path: &str, removed: &[&str], added: &[&str]) -> FileDiff {
    FileDiff::text(path, FileStatus::Modified, own(removed), own(added))
}

/// Whether a change of a configuration file loosens what it demands.
pub(super) fn loosens(path: &str, removed: &[&str], added: &[&str]) -> bool {
    config::loosened(&changed(path, removed, added), config::config_kind(path).unwrap())
}

fn new(path: &str, added: &[&str]) -> FileDiff {
    FileDiff::text(path, FileStatus::Added, Vec::new(), own(added))
}

fn gone(path: &str, removed: &[&str]) -> FileDiff {
    FileDiff::text(path, FileStatus::Deleted, own(removed), Vec::new())
}

/// The diff of two whole texts: lines that both have are no change, wherever they stand.
fn rewritten(path: &str, status: FileStatus, old: &str, new: &str) -> Vec<FileDiff> {
    assert!(FileDiff::wants_text(path), "{path}");
    let lacking = |text: &str, other: &str| {
        let mut left: Vec<&str> = other.lines().collect();
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            match left.iter().position(|l| *l == text) {
                Some(at) => drop(left.swap_remove(at)),
                None => lines.push(ChangedLine { number, text: text.to_owned() }),
            }
        }
        lines
    };
    let (removed, added) = (lacking(old, new), lacking(new, old));
    let (old, new) = (Change { text: old, lines: &removed }, Change { text: new, lines: &added });
    FileDiff::divided(path, status, old, new)
}

fn edited(path: &str, old: &str, new: &str) -> Vec<FileDiff> {
    rewritten(path, FileStatus::Modified, old, new)
}

/// A file with this text becomes another one with that text.
fn renamed(from: &str, to: &str, old: &str, new: &str) -> Vec<FileDiff> {
    let mut files = rewritten(from, FileStatus::Deleted, old, "");
    if FileDiff::wants_text(to) {
        files.extend(rewritten(to, FileStatus::Added, "", new));
    } else {
        files.push(self::new(to, &new.lines().collect::<Vec<_>>()));
    }
    files
}

fn turn(files: Vec<FileDiff>) -> TurnDiff {
    TurnDiff { files }
}

/// What these changes weaken.
fn weakened(files: impl Into<Vec<FileDiff>>) -> Vec<Weakening> {
    weakenings(&turn(files.into()))
}

fn verdict(diff: &TurnDiff, context: &CheatContext) -> CheatVerdict {
    judge(diff, &weakenings(diff), context)
}

fn tests_only() -> TurnDiff {
    turn(vec![changed("tests/test_a.py", &[], &["def test_b():", "    assert f() == 3"])])
}

fn weaker() -> TurnDiff {
    turn(vec![
        changed("tests/test_a.py", &["    assert f() == 3"], &[]),
        changed("src/a.py", &[], &["# a comment"]),
    ])
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
    assert!(is_prewarn(&judge_unfinished(&weakenings(&weaker()), false)));
    assert!(is_revert(&judge_unfinished(&weakenings(&weaker()), true)));
    assert_eq!(judge_unfinished(&weakenings(&tests_only()), true), CheatVerdict::Clean);
}

#[test]
fn a_turn_with_other_lines_is_clean() {
    let with = |path: &str| {
        let mut diff = tests_only();
        diff.files.push(changed(path, &[], &["x"]));
        verdict(&diff, &warned())
    };
    assert_eq!(with("src/a.py"), CheatVerdict::Clean);
    assert_eq!(with("docs/a.md"), CheatVerdict::Clean);
    assert!(is_revert(&with(".peers/x")), "the control directory is no work");
    assert_eq!(verdict(&turn(vec![]), &warned()), CheatVerdict::Clean);
    assert_eq!(verdict(&turn(vec![changed("src/a.py", &["x"], &[])]), &warned()), CheatVerdict::Clean);
}

#[test]
fn a_binary_file_counts_as_changed() {
    let mut diff = turn(vec![FileDiff::opaque("tests/a.bin", FileStatus::Added)]);
    assert!(diff.is_test_only());
    diff.files.push(FileDiff::opaque("assets/a.png", FileStatus::Modified));
    assert!(!diff.is_test_only());
}

#[test]
fn a_change_of_mode_alone_is_no_change() {
    assert!(!turn(vec![changed("tests/a.py", &[], &[])]).is_test_only());
}

#[test]
fn lost_assertions_are_counted_by_file() {
    let diff = turn(vec![
        changed("tests/a.rs", &["assert_eq!(a, 1);", "assert!(b);"], &["assert!(c);"]),
        changed("tests/b.rs", &[], &["assert!(d);", "assert!(e);"]),
    ]);
    assert_eq!(weakenings(&diff), [Weakening::Assertions { path: "tests/a.rs".into(), lost: 1 }]);
}

#[test]
fn a_changed_assertion_is_no_lost_one() {
    assert!(
        weakened([changed("a_test.go", &["assert.Equal(t, 1, x)"], &["assert.Equal(t, 2, x)"])]).is_empty()
    );
}

#[test]
fn an_assertion_that_always_holds_replaces_none() {
    for (path, old, new) in [
        ("tests/a.rs", "assert_eq!(a, 1);", "assert!(true);"),
        ("tests/test_a.py", "    assert a == 1", "    assert True"),
        ("src/a.test.ts", "expect(a).toBe(1);", "expect(true).toBe(true);"),
        ("tests/test_a.py", "    assert a == 1", "    # assert a == 1"),
    ] {
        let found = weakened([changed(path, &[old], &[new])]);
        assert_eq!(found, [Weakening::Assertions { path: path.into(), lost: 1 }], "{new}");
    }
}

#[test]
fn an_exact_assertion_that_becomes_loose_is_weaker() {
    for (path, old, new) in [
        ("tests/a.rs", "assert_eq!(a, Some(1));", "assert!(a.is_some());"),
        ("src/a.spec.js", "expect(a).toEqual([1]);", "expect(a).toBeTruthy();"),
        ("tests/test_a.py", "assert f() == 3", "assert f()"),
    ] {
        let found = weakened([changed(path, &[old], &[new])]);
        assert_eq!(found, [Weakening::Looser { path: path.into(), lost: 1 }], "{new}");
    }
}

#[test]
fn a_removed_test_is_weaker_and_a_renamed_one_is_not() {
    let body = "    do_it()";
    let removed = changed("tests/test_a.py", &["def test_a():", body], &[]);
    assert_eq!(weakened([removed]), [Weakening::Tests { path: "tests/test_a.py".into(), lost: 1 }]);
    assert!(weakened([changed("tests/test_a.py", &["def test_a():"], &["def test_b():"])]).is_empty());
}

#[test]
fn a_moved_test_file_is_as_strong_as_before() {
    let lines = ["def test_a():", "    assert f() == 3"];
    assert!(weakened([gone("tests/test_a.py", &lines), new("tests/unit/test_a.py", &lines)]).is_empty());
    let lost = weakened([gone("tests/test_a.py", &lines), new("tests/unit/test_a.py", &lines[..1])]);
    assert_eq!(lost, [Weakening::Assertions { path: "tests/test_a.py".into(), lost: 1 }]);
    assert!(!weakened([gone("tests/test_a.py", &lines)]).is_empty());
}

#[test]
fn a_test_moved_between_files_weakens_neither_and_pays_for_nothing() {
    let moved = ["def test_a():", "    assert f() == 3"];
    let from = || changed("tests/test_a.py", &moved, &[]);
    assert!(
        weakened([from(), changed("tests/test_b.py", &[], &["def test_a():", "  assert f() == 3"])])
            .is_empty()
    );
    let to = changed("tests/test_b.py", &["def test_x():", "    assert g() == 4"], &moved);
    let found = weakened([from(), to]);
    assert_eq!(
        found,
        [
            Weakening::Tests { path: "tests/test_b.py".into(), lost: 1 },
            Weakening::Assertions { path: "tests/test_b.py".into(), lost: 1 }
        ]
    );
}

#[test]
fn lost_rows_of_a_table_are_lost_expectations() {
    let found = weakened([changed("a_test.go", &["\t{\"a\", 1},", "\t{\"b\", 2},"], &["\t{\"a\", 1},"])]);
    assert_eq!(found, [Weakening::Expectations { path: "a_test.go".into(), lost: 1 }]);
    assert!(weakened([changed("tests/fixtures/a.json", &["\"a\","], &[])]).is_empty(), "fixtures are data");
}

#[test]
fn added_skips_are_weaker_in_every_language() {
    for (path, line) in [
        ("tests/test_a.py", "@pytest.mark.skip(reason=\"later\")"),
        ("tests/test_a.py", "@pytest.mark.xfail"),
        ("src/a.test.ts", "it.skip('x', () => {"),
        ("tests/a.rs", "#[ignore]"),
        ("a_test.go", "\tt.Skip(\"x\")"),
        ("conftest.py", "collect_ignore = ['tests/hard.py']"),
    ] {
        let found = weakened([changed(path, &[], &[line])]);
        assert!(found.contains(&Weakening::Skips { path: path.into(), added: 1 }), "{line}: {found:?}");
    }
    assert!(weakened([changed("tests/a.rs", &["#[ignore]"], &["#[ignore = \"slow\"]"])]).is_empty());
    assert!(weakened([changed("src/a.py", &[], &["@pytest.mark.skip"])]).is_empty(), "no test file");
}

#[test]
fn rewritten_snapshots_are_weaker_and_new_ones_are_not() {
    let path = "src/snapshots/a.snap";
    let found = |file: FileDiff| weakened([file, changed("src/a.rs", &["a"], &["b"])]);
    assert_eq!(found(changed(path, &["old"], &["new"])), [Weakening::Snapshot { path: path.into() }]);
    assert_eq!(found(gone(path, &["old"])).len(), 1);
    assert!(found(new(path, &["new"])).is_empty());
    assert!(found(changed(path, &[], &["more"])).is_empty());
}

#[test]
fn lowered_thresholds_are_weaker() {
    let found = weakened([changed("pyproject.toml", &["fail_under = 90"], &["fail_under = 70"])]);
    let threshold = |path: &str, to: Option<&str>| Weakening::Threshold {
        path: path.into(),
        key: "fail_under".into(),
        from: "90".into(),
        to: to.map(Into::into),
    };
    assert_eq!(found, [threshold("pyproject.toml", Some("70"))]);
    let found = weakened([changed(".coveragerc", &["fail_under = 90"], &[])]);
    assert_eq!(found, [threshold(".coveragerc", None)]);
    assert!(weakened([changed(".coveragerc", &["fail_under = 80"], &["fail_under = 90"])]).is_empty());
}

#[test]
fn edited_gate_configuration_is_weaker() {
    let found = |file: FileDiff| weakened([file]);
    assert_eq!(
        found(changed("ruff.toml", &["a = 1"], &["b = 1"])),
        [Weakening::GateConfig { path: "ruff.toml".into() }]
    );
    assert_eq!(found(gone("clippy.toml", &["x"])).len(), 1);
    assert!(found(new("eslint.config.js", &["export default [];"])).is_empty(), "setting one up is none");
    assert_eq!(found(new("pytest.ini", &["addopts = --ignore=tests/hard"])).len(), 1);
    assert!(found(changed("pyproject.toml", &[], &["dependencies = [\"x\"]"])).is_empty());
    assert_eq!(found(changed("package.json", &["\"test\": \"jest\","], &["\"test\": \"true\","])).len(), 1);
}

#[test]
fn inline_tests_of_rust_files_are_tests() {
    let old = "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(f(), ()); }\n}\n";
    let text = "fn f() { }\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { }\n}\n";
    let line = |number, text: &str| ChangedLine { number, text: text.into() };
    let removed = [line(1, "fn f() {}"), line(5, "    fn a() { assert_eq!(f(), ()); }")];
    let added = [line(1, "fn f() { }"), line(5, "    fn a() { }")];
    let divide = |removed: &[ChangedLine], added: &[ChangedLine]| {
        FileDiff::divided(
            "src/a.rs",
            FileStatus::Modified,
            Change { text: old, lines: removed },
            Change { text, lines: added },
        )
    };
    let files = divide(&removed, &added);
    let kinds: Vec<(PathKind, u64, u64)> = files.iter().map(|f| (f.kind, f.added, f.deleted)).collect();
    assert_eq!(kinds, [(PathKind::Source, 1, 1), (PathKind::Test, 1, 1)]);
    assert_eq!(weakenings(&turn(files)), [Weakening::Assertions { path: "src/a.rs".into(), lost: 1 }]);
    assert!(turn(divide(&removed[1..], &added[1..])).is_test_only());
    assert!(!turn(divide(&removed[..1], &added[..1])).is_test_only());
    assert_eq!(divide(&[], &[]).len(), 1);
}

#[test]
fn a_gate_that_test_edits_alone_turned_green_is_named() {
    let gate = |id: &str| GoalId::new(id).unwrap();
    let (red, green) = (vec![gate("tests-pass"), gate("lint-clean")], vec![gate("tests-pass")]);
    let edit = turn(vec![changed("tests/a.rs", &["assert_eq!(f(), 1);"], &["assert_eq!(f(), 2);"])]);
    assert_eq!(green_by_test_edits(&edit, &red, &green), [&gate("tests-pass")]);
    assert!(green_by_test_edits(&tests_only(), &red, &green).is_empty(), "new tests are no edits");
    let with_source = turn(vec![edit.files[0].clone(), changed("src/a.rs", &[], &["x"])]);
    assert!(green_by_test_edits(&with_source, &red, &green).is_empty());
    assert!(green_by_test_edits(&edit, &red, &[]).is_empty());
}

#[test]
fn the_reason_names_files_without_control_bytes_and_is_bounded() {
    let files = (0..20).map(|n| changed(&format!("tests/\u{1b}{n}.rs"), &["assert!(a);"], &[])).collect();
    let CheatVerdict::Prewarn { why } = verdict(&turn(files), &fresh()) else { panic!() };
    assert!(!why.contains('\u{1b}'));
    assert!(why.contains("and 15 more"), "{why}");
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("assert_eq!(a, 1);".to_owned()),
        Just("assert!(true);".to_owned()),
        Just("#[ignore]".to_owned()),
        Just("#[test]".to_owned()),
        Just("(1, 2),".to_owned()),
        Just("fail_under = 9".to_owned()),
        any::<String>(),
    ]
}

fn any_file() -> impl Strategy<Value = FileDiff> {
    let path = prop_oneof![
        Just("tests/a.rs"),
        Just("src/a.rs"),
        Just("pytest.ini"),
        Just("Cargo.toml"),
        Just("x.snap"),
        Just("a.md"),
    ];
    let status = prop_oneof![Just(FileStatus::Added), Just(FileStatus::Modified), Just(FileStatus::Deleted)];
    let lines = || proptest::collection::vec(any_line(), 0..6);
    (path, status, lines(), lines())
        .prop_map(|(path, status, removed, added)| FileDiff::text(path, status, removed, added))
}

fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("def test_a():\n"),
        Just("    assert f() == 1\n"),
        Just("class A:\n"),
        Just("return\n"),
        Just("if False:\n"),
        Just("it('a', () => {\n"),
        Just("  return;\n"),
        Just("expect(x).toBe(1);\n"),
        Just("});\n"),
        Just("#[cfg(test)]\nmod tests {\n"),
        Just("mod a;\n"),
        Just("#[test]\nfn a() {\n"),
        Just("assert_eq!(f(), 1);\n"),
        Just("}\n"),
        Just("/*\n"),
        Just("*/\n"),
        Just("\"\"\"\n"),
        Just("`\n"),
        Just("#if 0\n"),
        Just("é\r\n"),
        Just("(1, 2),\n"),
    ];
    proptest::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

const READ: [&str; 7] = [
    "tests/test_a.py",
    "src/a.test.ts",
    "src/a.rs",
    "tests/a.rs",
    "a_test.go",
    "spec/a_spec.rb",
    "tests/a.c",
];

proptest! {
    #[test]
    fn a_text_weakens_itself_in_no_language(text in any_text()) {
        for path in READ {
            prop_assert_eq!(weakenings(&turn(edited(path, &text, &text))), [], "{}", path);
        }
    }

    #[test]
    fn what_is_appended_to_nothing_weakens_nothing(text in any_text()) {
        for path in READ {
            prop_assert_eq!(weakenings(&turn(rewritten(path, FileStatus::Added, "", &text))), [], "{}", path);
        }
    }

    #[test]
    fn any_two_texts_are_compared(old in any_text(), new in any_text(), other in any::<String>()) {
        for path in READ {
            for (old, new) in [(&old, &new), (&old, &other), (&other, &new)] {
                let files = edited(path, old, new);
                prop_assert!(!files.is_empty() && files.len() <= 3);
                let _ = weakenings(&turn(files)).len();
            }
        }
    }

    #[test]
    fn nothing_is_reverted_without_a_warning_before(files in proptest::collection::vec(any_file(), 0..5), reviewer: bool) {
        let context = CheatContext { reviewer, ..fresh() };
        prop_assert!(!is_revert(&verdict(&turn(files), &context)));
    }

    #[test]
    fn reordered_lines_weaken_nothing(lines in proptest::collection::vec(any_line(), 0..12)) {
        let mut other = lines.clone();
        other.reverse();
        let file = |path| FileDiff::text(path, FileStatus::Modified, lines.clone(), other.clone());
        prop_assert!(weakened([file("tests/a.rs"), file("pyproject.toml")]).is_empty());
    }

    #[test]
    fn lines_moved_between_files_weaken_nothing(lines in proptest::collection::vec(any_line(), 0..12)) {
        let from = FileDiff::text("tests/a.rs", FileStatus::Modified, lines.clone(), Vec::new());
        let to = FileDiff::text("tests/b.rs", FileStatus::Modified, Vec::new(), lines);
        prop_assert_eq!(weakened([from, to]), []);
    }
}

#[test]
fn what_lay_uncommitted_before_a_turn_is_taken_over_and_what_it_leaves_is_its_own() {
    let lost = |path: &str| TurnDiff {
        files: vec![FileDiff::text(
            path,
            FileStatus::Modified,
            vec!["    assert f(2) == 2".to_owned()],
            Vec::new(),
        )],
    };
    let of = |diff: &TurnDiff, around: &Uncommitted, left: bool| {
        let of = weakenings_of_turn(diff, around, left);
        assert!(of.taken_over.is_empty() || of.found_there.is_empty());
        (of.own.len(), of.taken_over.len() + 10 * of.found_there.len())
    };
    let (a, none) = (lost("tests/test_a.py"), TurnDiff::default());
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
    let stands = Uncommitted { left: a.clone(), made: lost("src/x.py"), ..clean };
    assert_eq!(of(&none, &stands, true), (0, 0), "somebody else left it");
}

#[test]
fn a_test_that_could_not_be_read_at_the_end_is_weaker_and_one_that_could_not_before_is_not_known() {
    let one = || ["tests/test_a.py".to_owned()].into_iter().collect::<std::collections::BTreeSet<_>>();
    let none = std::collections::BTreeSet::new;
    let unread = Weakening::Unreadable { path: "tests/test_a.py".into() };
    let of = |before, after, existed: bool| {
        let grown = TurnDiff { files: vec![FileDiff::opaque("tests/test_a.py", FileStatus::Modified)] };
        weakenings(&grown.unread(&before, &after, &|_| existed))
    };
    assert_eq!(of(none(), one(), true), [unread]);
    assert_eq!(of(none(), one(), false), [], "a new file takes nothing away");
    assert_eq!(of(one(), none(), true), []);
    assert_eq!(of(one(), one(), true), []);
}
