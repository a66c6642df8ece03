//! Checks that run programs of the project: a fake runner answers, with reports as the real ones write them.
//!
//! `testdata/runners` holds what pytest 9, `node --test` 20, cargo, jest 30, vitest 4, mocha 12, playwright 1.65 and Go 1.19
//! wrote.

use std::cell::RefCell;
use std::rc::Rc;

use super::World;
use crate::cx::{CouldNot, RanEnd};
use crate::{CheckCx, Outcome, ToolRan, Verdict};

const PYTEST: &[u8] = include_bytes!("../../testdata/runners/pytest.xml");
const NODE: &[u8] = include_bytes!("../../testdata/runners/node.xml");
const NODE_QUITS: &[u8] = include_bytes!("../../testdata/runners/node_quits.xml");
const CARGO: &[u8] = include_bytes!("../../testdata/runners/cargo.txt");
const CARGO_QUITS: &[u8] = include_bytes!("../../testdata/runners/cargo_quits.txt");
const GO: &[u8] = include_bytes!("../../testdata/runners/go.jsonl");
const GO_QUITS: &[u8] = include_bytes!("../../testdata/runners/go_quits.jsonl");
const JEST: &[u8] = include_bytes!("../../testdata/runners/jest.json");
const VITEST: &[u8] = include_bytes!("../../testdata/runners/vitest.json");
const PLAYWRIGHT: &[u8] = include_bytes!("../../testdata/runners/playwright.xml");
const MOCHA: &[u8] = include_bytes!("../../testdata/runners/mocha.json");

pub(super) fn exit(code: i32, report: Option<&[u8]>, stdout: &[u8]) -> ToolRan {
    ToolRan {
        end: RanEnd::Exit(code),
        stdout: stdout.to_owned(),
        stderr: Vec::new(),
        cut: false,
        report: report.map(<[u8]>::to_owned),
        top: "/checkout".to_owned(),
    }
}

/// A report of pytest with these tests, of which `!` fail and `-` are skipped; and its exit code.
pub(super) fn pytest(tests: &[&str]) -> ToolRan {
    let mut cases = String::new();
    for test in tests {
        let name = test.trim_start_matches(['!', '-']);
        let what = match test.as_bytes()[0] {
            b'!' => "<failure message=\"no\"/>",
            b'-' => "<skipped message=\"no\"/>",
            _ => "",
        };
        let case = ["<testcase classname=\"tests.test_a\" name=\"", name, "\">", what, "</testcase>"];
        cases.extend(case);
    }
    let code = i32::from(tests.iter().any(|test| test.starts_with('!')));
    exit(code, Some(format!("<testsuites><testsuite>{cases}</testsuite></testsuites>").as_bytes()), b"")
}

/// What was run: the commit and the command.
type Seen = Rc<RefCell<Vec<(String, String)>>>;

/// A runner that answers in this order, the last answer again and again.
fn with(cx: CheckCx, answers: Vec<ToolRan>) -> (CheckCx, Seen) {
    let seen = Seen::default();
    let (told, answers) = (Rc::clone(&seen), RefCell::new(answers));
    let cx = cx.with_tools(Box::new(move |tool| {
        told.borrow_mut().push((tool.head.to_string(), tool.cmd.to_owned()));
        let mut answers = answers.borrow_mut();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }));
    (cx, seen)
}

pub(super) fn run(world: &World, check: &str, answers: Vec<ToolRan>) -> Outcome {
    run_with(world, check, &[], answers)
}

pub(super) fn run_with(world: &World, check: &str, flags: &[&str], answers: Vec<ToolRan>) -> Outcome {
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    crate::run(check, &with(world.cx(), answers).0, &flags).unwrap()
}

pub(super) fn project(files: &[(&str, &str)]) -> World {
    let world = World::new();
    world.commit("files", files);
    world
}

pub(super) const TEST_PY: (&str, &str) = ("tests/test_a.py", "def test_a():\n    assert f() == 1\n");

pub(super) fn python() -> World {
    project(&[("src/a.py", "x = 1\n"), TEST_PY])
}

pub(super) const PASS: Verdict = Verdict::Pass;
pub(super) const FAIL: Verdict = Verdict::Fail;
pub(super) const ERROR: Verdict = Verdict::Error;

fn node(script: &str) -> World {
    let package = format!("{{\"scripts\": {{\"test\": \"{script}\"}}}}");
    project(&[("package.json", &package), ("a.test.js", "test('a', () => {});\n")])
}

#[test]
fn each_runner_is_found_by_the_files_and_its_report_read() {
    let cargo = || project(&[("Cargo.toml", "[package]\n"), ("src/lib.rs", "fn a() {}\n")]);
    let go = || project(&[("go.mod", "module a\n"), ("a_test.go", "package a\n")]);
    let pytest: &dyn Fn() -> World = &python;
    for (world, runner, ran, numbers, failed) in [
        (pytest, "-m pytest", exit(1, Some(PYTEST), b""), (4, 1, 2), "test_a::test_bad"),
        (&|| node("node --test"), "node --test", exit(1, Some(NODE), b""), (2, 1, 2), "is wrong"),
        (&|| node("vitest"), "bin/vitest", exit(1, Some(VITEST), b""), (2, 1, 2), "a.test.js::is wrong"),
        (&|| node("jest --ci"), "bin/jest", exit(1, Some(JEST), b""), (2, 1, 2), "a.test.js::is wrong"),
        (&|| node("mocha"), "bin/mocha", exit(1, Some(MOCHA), b""), (2, 1, 1), "a.test.js::is wrong"),
        (
            &|| node("playwright test"),
            "bin/playwright",
            exit(1, Some(PLAYWRIGHT), b""),
            (2, 1, 2),
            "a.spec.js::a group › is wrong",
        ),
        (&cargo, "cargo test", exit(101, None, CARGO), (4, 1, 1), "shop::tests::is_wrong"),
        (&go, "go test -json", exit(1, None, GO), (2, 5, 1), "example.org/shop"),
    ] {
        let made = world();
        let (cx, seen) = with(made.cx(), vec![ran]);
        let flags = ["--retry=0".to_owned()];
        let report = crate::run("tests", &cx, &flags).unwrap().report;
        let [(_, cmd)] = &seen.borrow()[..] else { panic!("{runner}: not one run") };
        assert!(cmd.contains(runner), "{cmd}");
        let found = (report.counts["passed"], report.counts["failed"], report.counts["skipped"]);
        assert_eq!((report.verdict, found), (FAIL, numbers), "{runner}: {report:?}");
        assert_eq!(report.findings[0].path, failed, "{runner}");
    }
}

#[test]
fn a_run_is_green_only_where_exit_code_and_report_say_so_and_some_test_ran() {
    let passed = pytest(&["test_a"]);
    let with_code = |code| ToolRan { end: RanEnd::Exit(code), ..passed.clone() };
    let ended = |end| ToolRan { end, ..passed.clone() };
    let red = pytest(&["test_a", "!test_b"]);
    for (ran, due, says) in [
        (passed.clone(), PASS, "1 tests pass"),
        (with_code(2), FAIL, "exits 2, and its report names no test that failed"),
        (red.clone(), FAIL, "1 of 2 tests fail"),
        // `exit 0` somewhere behind the runner.
        (ToolRan { end: RanEnd::Exit(0), ..red }, FAIL, "1 of 2 tests fail"),
        (pytest(&[]), FAIL, "ran no test"),
        // A test that ended the whole process.
        (exit(0, None, b""), ERROR, "exit 0, and it left no report"),
        (exit(1, None, b"No module named pytest"), ERROR, "it left no report (No module named pytest)"),
        (exit(0, Some(b"<testsuites"), b""), ERROR, "its report cannot be read"),
        (exit(0, Some(b"<html/>"), b""), ERROR, "it is no JUnit XML"),
        (with_code(127), ERROR, "a program is missing: exit 127"),
        (ended(RanEnd::Timeout), ERROR, "no end within 600 s"),
        (ended(RanEnd::Signal), ERROR, "a signal ended it"),
        (ToolRan { cut: true, ..passed.clone() }, ERROR, "more than is read"),
    ] {
        let report = run(&python(), "tests", vec![ran]).report;
        assert_eq!(report.verdict, due, "{report:?}");
        assert!(report.summary.contains(says), "{report:?}");
    }
}

#[test]
fn a_test_that_ends_its_process_well_is_not_green() {
    let rust = project(&[("Cargo.toml", "[package]\n"), ("src/lib.rs", "fn a() {}\n")]);
    let go = project(&[("go.mod", "module a\n"), ("a_test.go", "package a\n")]);
    for (world, ran, says) in [
        (rust, exit(0, None, CARGO_QUITS), "4 test binaries began, 3 told a result"),
        (node("node --test"), exit(0, Some(NODE_QUITS), b""), "`mid.test.js` told of no test"),
        (node("jest"), exit(0, None, b""), "it left no report"),
        (go, exit(0, None, b"ok\n"), "there is no event in it"),
    ] {
        let report = run(&world, "tests", vec![ran]).report;
        assert!(report.verdict == ERROR && report.summary.contains(says), "{report:?}");
    }
}

#[test]
fn a_package_of_go_without_an_answer_is_red() {
    let go = project(&[("go.mod", "module a\n"), ("a_test.go", "package a\n")]);
    // Go 1.24 and later tell of a build in events, the recorded version in a line of text.
    let newer = b"{\"ImportPath\":\"example.org/shop/broken\",\"Action\":\"build-output\",\"Output\":\"a.go:3:2: undefined: x\\n\"}\n\
        {\"ImportPath\":\"example.org/shop/broken\",\"Action\":\"build-fail\"}\n\
        {\"Action\":\"fail\",\"Package\":\"example.org/shop/broken\",\"Elapsed\":0,\"FailedBuild\":\"example.org/shop/broken\"}\n";
    for (code, bytes, due) in [
        (1, GO, "example.org/shop/broken"),
        (1, newer, "example.org/shop/broken"),
        // `TestMain` ended it with 0 before any test; the package with benchmarks alone is no such case.
        (0, GO_QUITS, "example.org/shop"),
    ] {
        let report = run_with(&go, "tests", &["--retry=0"], vec![exit(code, None, bytes)]).report;
        let failed: Vec<&str> = report.findings.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(report.verdict, FAIL);
        assert!(
            report.notes.iter().all(|note| !note.contains("Action") && !note.contains("PASS")),
            "{report:?}"
        );
        assert!(failed.contains(&due) && !failed.iter().any(|path| path.ends_with("bench")), "{failed:?}");
    }
}

#[test]
fn what_failed_tests_of_go_said_is_shown_as_they_said_it() {
    let go = project(&[("go.mod", "module a\n"), ("a_test.go", "package a\n")]);
    let report = run_with(&go, "tests", &["--retry=0"], vec![exit(1, None, GO)]).report;
    for due in
        ["    shop_test.go:13: 3 is not 4", "--- FAIL: TestWrong (0.00s)", "FAIL\texample.org/shop\t0.005s"]
    {
        assert!(report.notes.iter().any(|note| note == due), "{due}: {:?}", report.notes);
    }
}

#[test]
fn a_test_that_two_runners_know_passes_only_where_it_passes_in_both() {
    let package = "{\"scripts\": {\"test\": \"node --test\"}}";
    let world = project(&[("package.json", package), ("a.test.js", "x;\n"), TEST_PY]);
    for answers in [["!test_a", "test_a"], ["test_a", "!test_a"]] {
        let answers = answers.map(|test| pytest(&[test])).into();
        assert_eq!(run_with(&world, "tests", &["--retry=0"], answers).report.verdict, FAIL);
    }
    // A helper in Python is no reason for pytest.
    let rust = project(&[("Cargo.toml", "[package]\n"), ("tests/helper.py", "x = 1\n")]);
    assert_eq!(run(&rust, "tests", vec![exit(0, None, b"")]).report.verdict, ERROR);
    let (cx, seen) = with(rust.cx(), vec![exit(101, None, CARGO)]);
    crate::run("tests", &cx, &["--retry=0".to_owned()]).unwrap();
    assert_eq!(seen.borrow().len(), 1);
}

#[test]
fn a_report_that_is_made_to_break_its_reader_is_no_answer() {
    let deep = "<testsuite>".repeat(100_000);
    for bytes in
        [deep.as_bytes(), b"\xff\xfe", b"<!DOCTYPE a [<!ENTITY b \"c\">]><testsuite>&b;</testsuite>", b"{}"]
    {
        assert_eq!(run(&python(), "tests", vec![exit(0, Some(bytes), b"")]).report.verdict, ERROR);
    }
}

#[test]
fn a_red_run_is_tried_again_as_often_as_the_goal_says() {
    let (red, green) = (pytest(&["!test_a"]), pytest(&["test_a"]));
    let report = run(&python(), "tests", vec![red.clone(), green.clone()]).report;
    assert_eq!(report.verdict, PASS);
    assert!(report.notes[0].starts_with("red at first: 1 of 2 runs failed"), "{report:?}");
    let once = run_with(&python(), "tests", &["--retry=0"], vec![red.clone(), green.clone()]);
    assert_eq!(once.report.verdict, FAIL);
    let silent = exit(0, None, b"");
    assert_eq!(run(&python(), "tests", vec![silent, green]).report.verdict, PASS);
}

#[test]
fn runners_of_packages_below_the_top_are_run_there() {
    let vitest = r#"{"devDependencies": {"vitest": "4"}}"#;
    let holds = r#"{"workspaces": ["web"]}"#;
    let js = |path| (path, "test('a', () => {});\n");
    let py = "def test_a():\n    pass\n";
    for (files, due) in [
        (vec![("web/package.json", vitest), js("web/a.test.js")], "cd web/ && exec node_modules/.bin/vitest"),
        (
            vec![("package.json", holds), ("web/package.json", vitest), js("web/a.test.js")],
            "cd web/ && exec node_modules",
        ),
        (
            vec![("package.json", vitest), ("web/package.json", vitest), js("web/a.test.js")],
            "exec node_modules",
        ),
        (vec![("my app/go.mod", "module a\n")], "cd 'my app/' && exec go test"),
        (
            vec![("api/Cargo.toml", "[package]\n"), ("api/x/Cargo.toml", "[package]\n")],
            "cd api/ && exec cargo test",
        ),
        (
            vec![("api/pyproject.toml", "[project]\n"), ("api/tests/test_a.py", py)],
            "cd api/ && for python in",
        ),
        (
            vec![("pyproject.toml", "[project]\n"), ("api/setup.py", ""), ("api/test_a.py", py)],
            "for python in",
        ),
        (vec![("api/test_a.py", py)], "for python in"),
    ] {
        let world = project(&files);
        let (cx, seen) = with(world.cx(), vec![exit(0, None, b"")]);
        crate::run("tests", &cx, &["--retry=0".to_owned()]).unwrap();
        let seen: Vec<String> = seen.borrow().iter().map(|(_, cmd)| cmd.clone()).collect();
        assert!(seen.len() == 1 && seen[0].starts_with(due), "{seen:?}");
    }
    // Tests of one name in two packages are two tests.
    let both = project(&[("a/setup.py", ""), ("a/test_a.py", py), ("b/setup.py", ""), ("b/test_a.py", py)]);
    let report =
        run_with(&both, "tests", &["--retry=0"], vec![pytest(&["!test_a"]), pytest(&["test_a"])]).report;
    assert_eq!((report.counts["passed"], report.counts["failed"]), (1, 1));
    assert_eq!(report.findings[0].path, "a/tests.test_a::test_a");
    for files in [
        // Tests of the top belong to no package below it.
        vec![("package.json", holds), ("web/package.json", vitest), js("web/a.test.js"), js("a.test.js")],
        vec![("web/package.json", "{}"), js("web/a.test.js")],
        vec![("node_modules/x/package.json", vitest), js("node_modules/x/a.test.js")],
    ] {
        assert_eq!(run(&project(&files), "tests", vec![pytest(&["test_a"])]).report.verdict, ERROR);
    }
}

#[test]
fn a_project_without_a_known_runner_cannot_be_measured() {
    for world in [
        project(&[("src/a.py", "x = 1\n")]),
        node("make test"),
        node("node --test || true"),
        node("node --test --test-reporter=dot"),
    ] {
        let report = run(&world, "tests", vec![pytest(&["test_a"])]).report;
        assert_eq!(report.verdict, ERROR, "{report:?}");
        assert!(report.hint.unwrap().contains("checks.test_command"));
    }
    // Where nothing can be started, nothing is measured.
    assert_eq!(python().check("tests").report.verdict, ERROR);
}

#[test]
fn the_operators_command_stands_for_all_runners() {
    let mut world = python();
    world.accept_config("checks: {test_command: make test}\n");
    let (cx, seen) = with(world.cx(), vec![exit(0, None, b"")]);
    let report = crate::run("tests", &cx, &[]).unwrap().report;
    assert_eq!((report.verdict, seen.borrow()[0].1.as_str()), (PASS, "make test"));
    assert_eq!(run(&world, "tests", vec![exit(1, None, b"")]).report.verdict, FAIL);
    world.base_here();
    assert_eq!(run(&world, "no-regression", vec![exit(0, None, b"")]).report.verdict, ERROR);
    world.accept_config("checks: {test_command: make test, test_report: out.xml}\n");
    assert_eq!(run(&world, "tests", vec![exit(0, None, b"")]).report.verdict, ERROR, "no report");
    let cx = world.cx().with_tools(Box::new(|tool| {
        assert_eq!(tool.report, Some("out.xml"));
        Ok(pytest(&["test_a"]))
    }));
    assert_eq!(crate::run("tests", &cx, &[]).unwrap().report.verdict, PASS);
}

#[test]
fn linters_and_type_checkers_are_found_by_the_files() {
    for (check, files, due) in [
        ("lint", &[("src/a.py", "x = 1\n")][..], "exec ruff check ."),
        ("lint", &[("biome.json", "{}"), ("src/a.js", "x\n")], "exec node_modules/.bin/biome lint ."),
        ("lint", &[("eslint.config.js", "x"), ("src/a.js", "x\n")], "exec node_modules/.bin/eslint ."),
        ("lint", &[("src/lib.rs", "fn a() {}\n")], "exec cargo clippy --all-targets -- -D warnings"),
        ("lint", &[("a.go", "package a\n")], "gofmt -l ."),
        ("types", &[("src/a.py", "x = 1\n")], "exec mypy ."),
        ("types", &[("pyproject.toml", "[tool.pyright]\n"), ("src/a.py", "x = 1\n")], "exec pyright"),
        ("types", &[("tsconfig.json", "{}"), ("src/a.ts", "x\n")], "exec node_modules/.bin/tsc --noEmit"),
        ("types", &[("src/lib.rs", "fn a() {}\n")], "exec cargo check --all-targets"),
        ("types", &[("a.go", "package a\n")], "exec go build ./..."),
    ] {
        let world = project(files);
        let (cx, seen) = with(world.cx(), vec![exit(0, None, b"")]);
        let report = crate::run(check, &cx, &[]).unwrap().report;
        assert_eq!(report.verdict, PASS, "{report:?}");
        assert!(seen.borrow()[0].1.contains(due), "{:?}", seen.borrow());
    }
    let world = project(&[("src/a.js", "x\n")]);
    assert_eq!(run(&world, "lint", vec![exit(0, None, b"")]).report.verdict, ERROR, "no linter is named");
    assert_eq!(
        run(&project(&[]), "lint", vec![exit(0, None, b"")]).report.verdict,
        FAIL,
        "nothing to look at"
    );
}

#[test]
fn a_linter_that_is_missing_or_hangs_is_no_answer() {
    let world = project(&[("src/a.py", "x = 1\n")]);
    for (end, due) in [
        (RanEnd::Exit(0), PASS),
        (RanEnd::Exit(1), FAIL),
        (RanEnd::Exit(127), ERROR),
        (RanEnd::Timeout, ERROR),
        (RanEnd::Signal, ERROR),
    ] {
        let ran = ToolRan { end, ..exit(0, None, b"a.py:1: F401\n") };
        let report = run_with(&world, "lint", &["--cmd", "make lint"], vec![ran]).report;
        assert_eq!(report.verdict, due);
        assert_eq!(report.notes.is_empty(), due == PASS, "{report:?}");
    }
}

/// The base has the tests `a` to `f`, all of which pass.
const BASE: [&str; 6] = ["test_a", "test_b", "test_c", "test_d", "test_e", "test_f"];

fn regression(now: &[&[&str]]) -> Outcome {
    let mut world = python();
    world.base_here();
    world.start_run(Vec::new());
    world.turn("claude", "work");
    let mut answers = vec![pytest(&BASE)];
    answers.extend(now.iter().map(|tests| pytest(tests)));
    run(&world, "no-regression", answers)
}

#[test]
fn row_23_a_test_that_is_red_twice_is_lost_and_one_that_is_red_once_is_a_flake() {
    let mut world = project(&[("src/a.py", "x = 1\n")]);
    world.base_here();
    world.commit("tests", &[TEST_PY]);
    let (cx, seen) = with(world.cx(), vec![pytest(&["!test_a"])]);
    assert_eq!(crate::run("no-regression", &cx, &[]).unwrap().report.verdict, PASS, "nothing to lose");
    assert_eq!(seen.borrow().len(), 0, "no suite was run");

    let mut unknown = node("tape 'test/*.js'");
    unknown.base_here();
    assert_eq!(run(&unknown, "no-regression", vec![]).report.verdict, ERROR, "tests that nobody can run");

    assert_eq!(regression(&[&BASE]).report.verdict, PASS);
    let red = ["!test_a", "test_b", "test_c", "test_d", "test_e", "test_f", "!test_new"];
    let twice = regression(&[&red, &red]).report;
    assert_eq!((twice.verdict, twice.findings.len()), (FAIL, 1), "{twice:?}");
    assert_eq!(twice.findings[0].path, "tests.test_a::test_a");
    let once = regression(&[&red, &BASE]).report;
    assert_eq!(
        (once.verdict, &once.notes[..]),
        (PASS, &["flaky, red and then green: tests.test_a::test_a".to_owned()][..])
    );
    let all_red: Vec<String> = BASE.iter().map(|test| format!("!{test}")).collect();
    let all_red: Vec<&str> = all_red.iter().map(String::as_str).collect();
    let storm = regression(&[&all_red, &BASE]).report;
    assert_eq!(storm.verdict, PASS);
    assert_eq!(storm.notes[0], "FLAKE STORM: 6 tests were red and then green");
    let skipped = regression(&[&["-test_a", "test_b", "test_c", "test_d", "test_e", "test_f"]]).report;
    assert_eq!(skipped.verdict, FAIL, "what is skipped does not pass");
}

#[test]
fn row_24_without_a_report_or_a_base_nothing_is_measured_and_a_new_name_needs_a_trailer() {
    let mut world = python();
    assert_eq!(no_base(&world).report.verdict, ERROR, "the baseline is gone");
    world.base_here();
    world.start_run(Vec::new());
    let silent = exit(0, None, b"");
    let green = pytest(&["test_a"]);
    assert_eq!(run(&world, "no-regression", vec![silent.clone()]).report.verdict, ERROR);
    let answers = vec![silent, green.clone(), green.clone()];
    assert_eq!(run(&world, "no-regression", answers).report.verdict, PASS, "the second try told");

    let file = |name: &str, body: &str| format!("def {name}():\n    assert f() == 1\n{body}");
    let renamed = || vec![green.clone(), pytest(&["test_sum"])];
    let says = |world: &World| run(world, "no-regression", renamed()).report.verdict;
    world.turn_with("claude", "rename", &[("tests/test_a.py", &file("test_sum", ""))]);
    assert_eq!(says(&world), FAIL);
    let trailer = "say so\n\nTest-Rename: tests.test_a::test_a -> tests.test_a::test_sum\n";
    world.turn("claude", trailer);
    assert_eq!(says(&world), PASS);
    world.turn_with("claude", "gut", &[("tests/test_a.py", "def test_sum():\n    assert True\n")]);
    assert_eq!(says(&world), FAIL, "another body");
}

fn no_base(world: &World) -> Outcome {
    let cx = CheckCx::open(world.asked(), None).unwrap();
    crate::run("no-regression", &with(cx, vec![pytest(&["test_a"])]).0, &[]).unwrap()
}

#[test]
fn row_25_a_baseline_in_the_repository_has_no_effect() {
    let mut world = python();
    world.base_here();
    world.start_run(Vec::new());
    let planted = [(".peers/baseline/tests.json", "[]"), (".peers/snapshots/tests.json", "[]")];
    world.turn_with("claude", "plant", &planted);
    let answers = vec![pytest(&["test_a"]), pytest(&["!test_a"])];
    assert_eq!(run(&world, "no-regression", answers).report.verdict, FAIL);
    // Without such a goal no test of the base is run: the base is measured by the check itself.
    let (cx, seen) = with(world.cx(), vec![pytest(&["test_a"])]);
    crate::run("skip-reasons", &cx, &[]).unwrap();
    assert_eq!(seen.borrow().len(), 0);
}

#[test]
fn row_23_a_test_that_any_runner_tells_to_fail_is_lost() {
    let report = |text: &str, from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let made = |runner: &str| match runner {
        "cargo" => project(&[("Cargo.toml", "[package]\n"), ("src/lib.rs", "fn a() {}\n")]),
        "go" => project(&[("go.mod", "module a\n"), ("a_test.go", "package a\n")]),
        script => node(script),
    };
    let junit = "<testsuites><testsuite><testcase classname=\"a\" name=\"one\"/></testsuite></testsuites>";
    let red = "name=\"one\"><failure/></testcase>";
    let in_jest = r#"{"testResults": [{"name": "/checkout/a.js", "assertionResults": [{"title": "one", "status": "passed"}]}]}"#;
    let in_mocha = r#"{"passes": [{"file": "/checkout/a.js", "title": "one", "fullTitle": "one"}], "pending": [], "failures": []}"#;
    let in_cargo = "     Running unittests src/lib.rs (target/debug/deps/a-0)\nrunning 1 test\ntest one ... ok\ntest result: ok\n";
    let in_go = "{\"Action\":\"run\",\"Package\":\"a\",\"Test\":\"One\"}\n{\"Action\":\"pass\",\"Package\":\"a\",\"Test\":\"One\"}\n";
    for (runner, green, gone) in [
        ("node --test", junit.as_bytes().to_vec(), report(junit, "name=\"one\"/>", red)),
        ("vitest", in_jest.into(), report(in_jest, "passed", "failed")),
        ("jest", in_jest.into(), report(in_jest, "passed", "skipped")),
        ("mocha", in_mocha.into(), report(in_mocha, "\"title\": \"one\"", "\"title\": \"two\"")),
        ("playwright test", junit.as_bytes().to_vec(), report(junit, "one", "two")),
        ("cargo", in_cargo.into(), report(in_cargo, "one ... ok", "one ... ignored")),
        ("go", in_go.into(), report(in_go, "pass", "fail")),
    ] {
        let mut world = made(runner);
        world.base_here();
        let told = |bytes: &[u8]| {
            let by_output = text(bytes).contains("Running") || text(bytes).contains("Action");
            if by_output { exit(0, None, bytes) } else { exit(0, Some(bytes), b"") }
        };
        let lost = run(&world, "no-regression", vec![told(&green), told(&gone)]).report;
        assert_eq!((lost.verdict, lost.findings.len()), (FAIL, 1), "{lost:?}");
        assert_eq!(run(&world, "no-regression", vec![told(&green)]).report.verdict, PASS);
    }
}

#[test]
fn row_13_a_reproducer_is_a_test_in_each_language() {
    for (path, text, name, due) in [
        ("tests/b.rs", "#[test]\nfn test_b() { assert!(f()); }\n", "test_b", PASS),
        ("pkg/b_test.go", "package b\nfunc TestB(t *testing.T) { f() }\n", "TestB", PASS),
        ("src/b.test.ts", "test('b', (): void => {});\n", "b", PASS),
        ("src/__tests__/b.js", "test('b', () => {});\n", "b", PASS),
        ("src/b.go", "package b\n", "TestB", FAIL),
        ("src/b.ts", "let b = 1;\n", "b", FAIL),
    ] {
        let mut world = bug();
        world.turn_with("claude", REPRODUCE, &[(path, text)]);
        world.turn_with("claude", RESOLVE, &[("src/a.py", "x = 2\n")]);
        let answers = vec![pytest(&["test_a", &format!("!{name}")]), pytest(&["test_a", name])];
        let report = run(&world, "tdd-order", answers).report;
        assert_eq!(report.verdict, due, "{path}: {report:?}");
    }
}

fn bug() -> World {
    let mut world = python();
    world.base_here();
    world.start_run(Vec::new());
    let report = "r\n\n## Bug-Report\n{\"id\":\"B1\",\"severity\":\"med\",\"title\":\"one too many\",\"description\":\"f() is 2, and 1 is expected of it always\"}\n\nBug-Report: B1\n";
    world.turn("claude", report);
    world
}

const RESOLVE: &str = "fix\n\n## Bug-Resolution\n{\"resolves\":\"B1\",\"status\":\"fixed\",\"note\":\"one less\"}\n\nBug-Resolves: B1\n";
const REPRODUCE: &str = "show it\n\nBug-Reproduce: B1\n";

#[test]
fn row_13_a_reproducer_comes_before_the_fix_fails_without_it_and_passes_with_it() {
    let test = [("tests/test_b.py", "def test_b():\n    assert f() == 1\n")];
    let source = [("src/a.py", "x = 2\n")];
    let honest = || {
        let mut world = bug();
        world.turn_with("claude", REPRODUCE, &test);
        world.turn_with("claude", RESOLVE, &source);
        world
    };
    let (red, green) = (pytest(&["test_a", "!test_b"]), pytest(&["test_a", "test_b"]));
    let says = |world: &World, answers: Vec<ToolRan>| run(world, "tdd-order", answers).report;
    let world = honest();
    let (cx, seen) = with(world.cx(), vec![red.clone(), green.clone()]);
    let report = crate::run("tdd-order", &cx, &[]).unwrap().report;
    assert_eq!((report.verdict, report.counts["executed"]), (PASS, 1), "{report:?}");
    let parent = world.git(&["rev-parse", "HEAD~1"]);
    let heads: Vec<String> = seen.borrow().iter().map(|(head, _)| head.clone()).collect();
    assert_eq!(
        heads,
        [parent.trim().to_owned(), world.head().to_string()],
        "the parent of the fix, then the fix"
    );

    for (answers, due, why) in [
        (vec![green.clone(), green.clone()], FAIL, "it passes without the fix"),
        (vec![red.clone(), red.clone()], FAIL, "it fails with the fix"),
        (vec![pytest(&["!test_a", "test_b"]), green.clone()], FAIL, "another test was red"),
        (vec![red.clone(), pytest(&["test_a"])], FAIL, "it is gone with the fix"),
        (vec![exit(0, None, b"")], ERROR, "nothing is told"),
    ] {
        assert_eq!(says(&world, answers).verdict, due, "{why}");
    }
    let unasked = run_with(&world, "tdd-order", &["--no-execute"], vec![green.clone()]).report;
    assert_eq!(unasked.verdict, PASS);

    let late = {
        let mut world = bug();
        world.turn_with("claude", RESOLVE, &source);
        world.turn_with("claude", REPRODUCE, &test);
        world
    };
    let with_files = |files: &[(&str, &str)]| {
        let mut world = bug();
        world.turn_with("claude", REPRODUCE, files);
        world.turn_with("claude", RESOLVE, &source);
        world
    };
    for world in [late, with_files(&[]), with_files(&[("docs/a.md", "how\n")])] {
        assert_eq!(says(&world, vec![red.clone(), green.clone()]).verdict, FAIL);
    }
}

#[test]
fn row_14_without_a_reproducer_a_waiver_after_the_fix_says_why_there_can_be_none() {
    let waive = |reason: &str| {
        format!(
            "w\n\n## Bug-Reproduce-Waive\n{{\"waives\":\"B1\",\"reason\":\"{reason}\"}}\n\nBug-Reproduce-Waive: B1\nPeer: claude\n"
        )
    };
    let long = "only a build without the network shows it, which no test here can make";
    for (reason, after, due) in [(long, true, PASS), ("too hard", true, FAIL), (long, false, FAIL)] {
        let mut world = bug();
        let (fix, waiver) = (RESOLVE.to_owned(), waive(reason));
        let order = if after { [fix, waiver] } else { [waiver, fix] };
        for message in &order {
            let files: &[(&str, &str)] =
                if message.starts_with("fix") { &[("src/a.py", "x = 2\n")] } else { &[] };
            world.turn_with("claude", message, files);
        }
        let report = run(&world, "tdd-order", vec![pytest(&["test_a"])]).report;
        assert_eq!(report.verdict, due, "{reason}, {after}: {report:?}");
    }
}

#[test]
fn without_anything_that_runs_programs_the_checks_say_so() {
    let why: CouldNot = python()
        .cx()
        .tool(&crate::Tool {
            cmd: "true",
            report: None,
            head: &python().head(),
            limit: std::time::Duration::from_secs(1),
        })
        .unwrap_err();
    assert!(why.what.contains("only where peers is set up"));
}
