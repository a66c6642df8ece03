//! The lines of a test runner's output that name the failure. Known are the formats of pytest, unittest, TAP,
//! `node --test`, jest, vitest, mocha, cargo and go.

/// Lines that are taken where no failure is recognised.
const LAST_LINES: usize = 2;

/// Beginnings of lines that follow a failure and say nothing of it.
const NOISE: [&str; 10] = [
    "error: test failed, to rerun pass",
    "error: could not compile",
    "error: aborting due to",
    "note: run with `RUST_BACKTRACE=",
    "For more information about this error",
    "Ran all test suites",
    "Snapshots:",
    "Time:",
    "= help: ",
    "= note: ",
];

/// What a diagnostic says: the last failure that a known test runner reports in the output, else the last
/// lines that say something, where most programs say what is wrong. One that quotes no output is taken
/// as it is.
#[must_use]
pub fn last_words(diagnostic: &str) -> String {
    let Some((why, out, err)) = tails(diagnostic) else { return diagnostic.trim().to_owned() };
    let lines = lines(out, err);
    // `pass_when returned False; exit_code=1`: the code is what tells something.
    let why = why.strip_prefix("pass_when returned False; ").unwrap_or(why);
    if lines.is_empty() { why.to_owned() } else { format!("{} ({why})", lines.join(" | ")) }
}

/// A diagnostic that quotes output, in its parts: why, and the tails of both streams.
#[must_use]
pub fn tails(diagnostic: &str) -> Option<(&str, &str, &str)> {
    let (why, tails) = diagnostic.split_once("; stdout-tail='")?;
    let (out, err) = tails.rsplit_once("'; stderr-tail='").unwrap_or((tails, ""));
    Some((why, out, err.strip_suffix('\'').unwrap_or(err)))
}

/// The same on one line.
#[must_use]
pub fn cause(diagnostic: &str) -> String {
    let words = last_words(diagnostic);
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" | ")
}

/// The last failure that is told, on standard error before standard output; else the last lines, of which
/// the same holds.
#[must_use]
pub fn lines(out: &str, err: &str) -> Vec<String> {
    let (out, err) = (telling(out), telling(err));
    if let Some(told) = failure(&err).or_else(|| failure(&out)) {
        return told;
    }
    // Errors come last on their own stream; a program that says nothing there said it on the other.
    let lines = if err.is_empty() { out } else { err };
    let from = lines.len().saturating_sub(LAST_LINES);
    lines.iter().skip(from).map(|line| (*line).to_owned()).collect()
}

/// Of a long output the lines that name tests which failed, then those that say what failed in them, as many as
/// fit into `max` bytes with a line break after each; in their order, and untrimmed.
#[must_use]
pub fn naming(text: &str, max: usize) -> Vec<&str> {
    let all: Vec<(usize, &str)> = text.lines().enumerate().collect();
    let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<(usize, &str)> {
        all.iter().copied().filter(|(_, line)| wanted(line.trim())).collect()
    };
    let (names, says) = (of(&names_test), of(&|line| sign(line).is_some() && !names_test(line)));
    let mut room = max;
    let mut kept: Vec<(usize, &str)> = Vec::new();
    for (at, line) in names.into_iter().chain(says) {
        if !kept.iter().any(|(_, known)| *known == line)
            && let Some(left) = room.checked_sub(line.len() + 1)
        {
            room = left;
            kept.push((at, line));
        }
    }
    kept.sort_unstable_by_key(|(at, _)| *at);
    kept.into_iter().map(|(_, line)| line).collect()
}

/// The lines that say something: rulers, underlines and what only leads on do not.
fn telling(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .filter(|line| !NOISE.iter().any(|noise| line.starts_with(noise)))
        .collect()
}

/// What a line is, as far as it belongs to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// It names the failure and all of it.
    Whole,
    /// It names the place, and the next line the failure.
    Head,
    /// It names the failure; the line before may name the place, lines behind it the two values.
    Core,
    /// The name of an exception without a text: the line before is the code that threw it.
    Bare,
}

/// Whether a line names a test that failed.
fn names_test(line: &str) -> bool {
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let after = |word: &str| line.strip_prefix(word);
    // `FAIL: test_x (mod.Case.test_x)`
    let unittest = || {
        let rest = after("FAIL: ").or_else(|| after("ERROR: "))?;
        rest.split_once(" (").map(|(name, _)| !name.contains(' '))
    };
    // `not ok 3 - adds`; one that is marked as known does not fail.
    let tap = || after("not ok ").map(|rest| !rest.contains("# TODO") && !rest.contains("# SKIP"));
    // ` FAIL  a.test.ts > suite > test`, `FAIL ./a.test.js`
    let file =
        || after("FAIL ").map(|rest| [" > ", ".test.", ".spec."].iter().any(|part| rest.contains(part)));
    // `1) suite test:`
    let mocha = || {
        let (number, title) = line.split_once(") ")?;
        let plain = !number.is_empty() && number.len() <= 4 && number.bytes().all(|b| b.is_ascii_digit());
        Some(plain && !title.trim().is_empty())
    };
    let cross = ["\u{25cf} ", "\u{2715} ", "\u{2716} ", "\u{d7} "];
    starts(&["--- FAIL: "])
        || (starts(&["FAILED ", "ERROR "]) && line.contains(".py"))
        || (starts(&["test "]) && line.ends_with(" ... FAILED"))
        || (starts(&["---- "]) && line.ends_with(" stdout ----"))
        || (starts(&cross) && !line.ends_with(':'))
        || [unittest(), tap(), file(), mocha()].contains(&Some(true))
}

fn sign(line: &str) -> Option<Sign> {
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if line.contains("panicked at ") || starts(&["--- FAIL: ", "error[E", "\u{25cf} "]) {
        return Some(Sign::Head);
    }
    if starts(&["assertion ", "expect(", "E   "]) {
        return Some(Sign::Core);
    }
    // `FAILED tests/test_a.py::test_b - assert 1 == 2`
    if starts(&["FAILED ", "ERROR "]) && line.contains(".py") {
        return Some(Sign::Whole);
    }
    // `ValueError: text`, `AssertionError [ERR_ASSERTION]: text`
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let named = name.ends_with("Error") || name.ends_with("Exception");
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
    let rest = line.get(name.len()..).unwrap_or_default();
    match rest {
        _ if !named || !plain => None,
        "" => Some(Sign::Bare),
        rest if rest.starts_with(": ") || rest.starts_with(" [") => Some(Sign::Whole),
        _ => None,
    }
}

/// The last failure that is told.
fn failure(lines: &[&str]) -> Option<Vec<String>> {
    // rustc and clippy name many errors without a number; other programs say `error: ` of anything.
    let placed = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("--> "));
    let of = |at: usize, line: &str| {
        sign(line).or_else(|| (line.starts_with("error: ") && placed(at)).then_some(Sign::Head))
    };
    let Some((at, sign)) = lines.iter().enumerate().rev().find_map(|(at, line)| Some((at, of(at, line)?)))
    else {
        let names = lines.iter().filter(|line| names_test(line)).take(LAST_LINES);
        let names: Vec<String> = names.map(|line| shortened(line)).collect();
        return (!names.is_empty()).then_some(names);
    };
    let line = |at: usize| lines.get(at).map(|line| shortened(line));
    let before = || at.checked_sub(1).and_then(|at| lines.get(at).map(|line| (*line, shortened(line))));
    let mut said = Vec::new();
    match sign {
        Sign::Whole => said.extend(line(at)),
        Sign::Head => said.extend(line(at).into_iter().chain(line(at + 1))),
        Sign::Bare => said.extend(before().map(|(_, short)| short).into_iter().chain(line(at))),
        Sign::Core => {
            let place = before().filter(|(line, _)| self::sign(line) == Some(Sign::Head));
            said.extend(place.map(|(_, short)| short).into_iter().chain(line(at)));
            let values = lines.iter().skip(at + 1).take(2);
            let value = |line: &&&str| {
                ["left:", "right:", "Expected", "Received"].iter().any(|word| line.starts_with(word))
            };
            said.extend(values.take_while(value).map(|line| (*line).to_owned()));
        }
    }
    if !said.iter().any(|line| names_test(line))
        && let Some(name) = lines.iter().take(at).rfind(|line| names_test(line))
    {
        said.insert(0, shortened(name));
    }
    Some(said)
}

/// Without what only leads in or out: the thread of a panic, the mark of a line, the dashes around a test.
fn shortened(line: &str) -> String {
    let line = line.find("panicked at ").and_then(|at| line.get(at..)).unwrap_or(line);
    let line = line.strip_prefix("E   ").map_or(line, str::trim_start);
    let line = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")).unwrap_or(line);
    line.trim_end_matches(':').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(out: &str, err: &str) -> String {
        lines(out, err).join(" | ")
    }

    #[test]
    fn of_cargo_test_the_assertion_is_named_and_not_how_to_run_it_again() {
        let out = "\nrunning 3 tests\ntest an_empty_list_has_none ... ok\ntest the_middle_of_four ... FAILED\n\nfailures:\n\n---- the_middle_of_four stdout ----\n\nthread 'the_middle_of_four' (4242) panicked at tests/median.rs:10:5:\nassertion `left == right` failed\n  left: Some(3.0)\n right: Some(2.5)\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\nfailures:\n    the_middle_of_four\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
        let err = "   Compiling median v0.1.0 (/w)\n     Running tests/median.rs (target/debug/deps/median-1f)\nerror: test failed, to rerun pass `--test median`\n";
        let want = "the_middle_of_four | panicked at tests/median.rs:10:5 | assertion `left == right` failed | left: Some(3.0) | right: Some(2.5)";
        assert_eq!(said(out, err), want);
        let own = "thread 'x' (1) panicked at src/lib.rs:3:5:\nno such row\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(said(own, err), "panicked at src/lib.rs:3:5 | no such row");
    }

    #[test]
    fn of_a_crate_that_does_not_compile_the_error_and_its_place_are_named() {
        let err = "   Compiling median v0.1.0 (/w)\nerror[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:2:5\n  |\n2 |     x\n  |     ^ not found in this scope\n\nFor more information about this error, try `rustc --explain E0425`.\nerror: could not compile `median` (lib) due to 1 previous error\n";
        assert_eq!(said("", err), "error[E0425]: cannot find value `x` in this scope | --> src/lib.rs:2:5");
    }

    #[test]
    fn of_clippy_the_finding_and_its_place_are_named_and_not_how_to_silence_it() {
        let err = "    Checking median v0.1.0 (/w)\nerror: items after a test module\n  --> src/lib.rs:3:1\n   |\n 3 | mod tests {\n   | ^^^^^^^^^\n...\n 9 | fn f() {}\n   | ------\n   |\n   = help: for further information visit https://rust-lang.github.io/\n   = note: `-D clippy::items-after-test-module` implied by `-D warnings`\n   = help: to override `-D warnings` add `#[allow(clippy::items_after_test_module)]`\n   = help: move the items to before the test module was defined\n\nerror: could not compile `median` (lib test) due to 1 previous error\n";
        assert_eq!(said("", err), "error: items after a test module | --> src/lib.rs:3:1");
        // Of a program that names no place the last lines stay.
        assert_eq!(said("", "error: no such table\nstep 3\nsee the log\n"), "step 3 | see the log");
    }

    #[test]
    fn of_pytest_the_summary_line_of_the_test_is_named() {
        let out = "F.                                                                       [100%]\n=================================== FAILURES ===================================\n__________________________________ test_even ___________________________________\n\n    def test_even():\n>       assert median([4, 1, 3, 2]) == 2.5\nE       assert 3 == 2.5\nE        +  where 3 = median([4, 1, 3, 2])\n\ntest_m.py:5: AssertionError\n=========================== short test summary info ============================\nFAILED test_m.py::test_even - assert 3 == 2.5\n1 failed, 1 passed in 0.02s\n";
        assert_eq!(said(out, ""), "FAILED test_m.py::test_even - assert 3 == 2.5");
    }

    #[test]
    fn of_unittest_the_exception_is_named_and_not_a_ruler() {
        let err = "F.\n======================================================================\nFAIL: test_even (test_m.Median.test_even)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/test_m.py\", line 7, in test_even\n    self.assertEqual(median([4, 1, 3, 2]), 2.5)\n    ~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^^^\nAssertionError: 3 != 2.5\n\n----------------------------------------------------------------------\nRan 2 tests in 0.000s\n\nFAILED (failures=1)\n";
        assert_eq!(said("", err), "FAIL: test_even (test_m.Median.test_even) | AssertionError: 3 != 2.5");
    }

    #[test]
    fn of_a_bare_assertion_the_code_is_named_and_not_its_underline() {
        let err = "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in <module>\n    assert median([1, 2]) == 1.5\n           ^^^^^^^^^^^^^^^^^^^^^\nAssertionError\n";
        assert_eq!(said("", err), "assert median([1, 2]) == 1.5 | AssertionError");
    }

    #[test]
    fn of_jest_the_expectation_and_both_values_are_named() {
        let err = "FAIL ./median.test.js\n  \u{2715} even (3 ms)\n  \u{2713} odd\n\n  \u{25cf} even\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 2.5\n    Received: 3\n\n      2 | test('even', () => {\n    > 3 |   expect(median([4, 1, 3, 2])).toBe(2.5);\n        |                                ^\n      4 | });\n\n      at Object.toBe (median.test.js:3:32)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 passed, 2 total\nSnapshots:   0 total\nTime:        0.3 s\nRan all test suites.\n";
        let want = "\u{25cf} even | expect(received).toBe(expected) // Object.is equality | Expected: 2.5 | Received: 3";
        assert_eq!(said("", err), want);
    }

    #[test]
    fn of_go_the_test_and_what_it_said_are_named() {
        let out = "--- FAIL: TestEven (0.00s)\n    median_test.go:7: got 3, want 2.5\nFAIL\nexit status 1\nFAIL\tmedian\t0.002s\n";
        assert_eq!(said(out, ""), "--- FAIL: TestEven (0.00s) | median_test.go:7: got 3, want 2.5");
    }

    /// The end of what each runner prints with coverage, in short.
    const COVERAGE: &str = "Name        Stmts   Miss  Cover\n-----------------------------\nsrc/a.py       10      2    80%\n-----------------------------\nTOTAL          10      2    80%\n\n--------|---------|----------|---------|\nFile    | % Stmts | % Branch | % Lines |\n--------|---------|----------|---------|\n a.js   |   66.66 |      100 |   66.66 |\n--------|---------|----------|---------|\n";

    #[test]
    fn the_test_that_failed_is_named_before_a_coverage_table_whatever_the_runner() {
        for (runner, out, want) in [
            (
                "pytest",
                "F.   [100%]\n=== FAILURES ===\n___ test_even ___\n>       assert 3 == 2\nE       assert 3 == 2\n\ntest_m.py:5: AssertionError\n=== short test summary info ===\nFAILED test_m.py::test_even - assert 3 == 2\n",
                "FAILED test_m.py::test_even - assert 3 == 2",
            ),
            (
                "unittest",
                "FAIL: test_even (test_m.Median.test_even)\n-----\nTraceback (most recent call last):\n  File \"/w/test_m.py\", line 7, in test_even\nAssertionError: 3 != 2\n\nRan 2 tests in 0.000s\n\nFAILED (failures=1)\n",
                "FAIL: test_even (test_m.Median.test_even) | AssertionError: 3 != 2",
            ),
            (
                "tap",
                "TAP version 13\n# Subtest: odd\nok 1 - odd\n# Subtest: even\nnot ok 2 - even\n  ---\n  duration_ms: 0.6\n  failureType: 'testCodeFailure'\n  error: '3 == 2'\n  code: 'ERR_ASSERTION'\n  ...\nnot ok 3 - later # TODO\n1..3\n# pass 1\n# fail 1\n",
                "not ok 2 - even",
            ),
            (
                "node --test",
                "\u{2714} odd (0.5ms)\n\u{2716} even (0.9ms)\n\u{2139} tests 2\n\n\u{2716} failing tests:\n\ntest at a.test.js:5:1\n\u{2716} even (0.9ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n  3 !== 2\n",
                "\u{2716} even (0.9ms) | AssertionError [ERR_ASSERTION]: Expected values to be strictly equal",
            ),
            (
                "jest",
                "FAIL ./a.test.js\n  math\n    \u{2715} even (3 ms)\n\n  \u{25cf} math \u{203a} even\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 2\n    Received: 3\n\n      at Object.toBe (a.test.js:3:32)\n\nTests:       1 failed, 1 passed, 2 total\n",
                "\u{25cf} math \u{203a} even | expect(received).toBe(expected) // Object.is equality | Expected: 2 | Received: 3",
            ),
            (
                "vitest",
                " \u{276f} a.test.ts (2 tests | 1 failed) 4ms\n   \u{d7} math > even 3ms\n\n FAIL  a.test.ts > math > even\nAssertionError: expected 3 to be 2 // Object.is equality\n\n- Expected\n+ Received\n\n- 2\n+ 3\n\n Tests  1 failed | 1 passed (2)\n",
                "FAIL  a.test.ts > math > even | AssertionError: expected 3 to be 2 // Object.is equality",
            ),
            (
                "mocha",
                "  math\n    \u{2714} odd\n    1) even\n\n  1 passing (4ms)\n  1 failing\n\n  1) math even:\n\n      AssertionError [ERR_ASSERTION]: 3 == 2\n      + expected - actual\n\n      -3\n      +2\n",
                "1) math even | AssertionError [ERR_ASSERTION]: 3 == 2",
            ),
            (
                "cargo",
                "running 2 tests\ntest a::odd ... ok\ntest a::even ... FAILED\n\nfailures:\n\n---- a::even stdout ----\n\nthread 'a::even' (42) panicked at src/lib.rs:10:5:\nassertion `left == right` failed\n  left: 3\n right: 2\n\nfailures:\n    a::even\n\ntest result: FAILED. 1 passed; 1 failed\n",
                "a::even | panicked at src/lib.rs:10:5 | assertion `left == right` failed | left: 3 | right: 2",
            ),
            (
                "go",
                "=== RUN   TestEven\n    a_test.go:7: got 3, want 2\n--- FAIL: TestEven (0.00s)\nFAIL\ncoverage: 66.7% of statements\nexit status 1\nFAIL\tmedian\t0.002s\n",
                "--- FAIL: TestEven (0.00s) | FAIL",
            ),
        ] {
            let whole = format!("{out}\n{COVERAGE}");
            assert_eq!(said(&whole, ""), want, "{runner}");
            // What is kept of it says the same, and nothing of the table.
            let kept = naming(&whole, 300);
            assert!(
                kept.iter().any(|line| line.contains("even") || line.contains("TestEven")),
                "{runner}: {kept:?}"
            );
            assert!(
                !kept.iter().any(|line| line.contains('%') || line.contains("# TODO")),
                "{runner}: {kept:?}"
            );
        }
    }

    #[test]
    fn names_of_tests_go_before_what_failed_in_them_and_no_more_is_kept_than_fits() {
        let out = "E   assert 1\nFAILED a.py::one\nE   assert 2\nFAILED a.py::two\nFAILED a.py::two\n";
        assert_eq!(naming(out, 34), ["FAILED a.py::one", "FAILED a.py::two"]);
        assert_eq!(naming(out, 50), ["E   assert 1", "FAILED a.py::one", "FAILED a.py::two"]);
        assert_eq!(naming(out, 0), Vec::<&str>::new());
    }

    #[test]
    fn of_an_unknown_program_the_last_lines_that_say_something_are_taken() {
        assert_eq!(said("one\ntwo\n-----\n3 wrong\n=====\n", ""), "two | 3 wrong");
        assert_eq!(said("said here", "error: test failed, to rerun pass `--lib`\n^^^^\n"), "said here");
        assert_eq!(
            said("", "Errors were found\nHttpError is no line of one\n"),
            "Errors were found | HttpError is no line of one"
        );
        assert_eq!(said("", "^^^\n"), "");
    }

    #[test]
    fn a_red_gate_is_known_by_the_last_lines_of_its_output() {
        let said = |out: &str, err: &str| {
            last_words(&format!(
                "pass_when returned False; exit_code=1; stdout-tail='{out}'; stderr-tail='{err}'"
            ))
        };
        assert_eq!(said("a\nb\n\n3 failed\n", ""), "b | 3 failed (exit_code=1)");
        assert_eq!(said("it's fine", "warning\nerror: no\n"), "warning | error: no (exit_code=1)");
        assert_eq!(said("", ""), "exit_code=1");
        assert_eq!(last_words("self-review: FAIL\n  x\n"), "self-review: FAIL\n  x");
        assert_eq!(
            last_words("pass_when error: no file; exit_code=0; stdout-tail='x'; stderr-tail=''"),
            "x (pass_when error: no file; exit_code=0)"
        );
        assert_eq!(cause("self-review: FAIL\n  x\n"), "self-review: FAIL | x");
    }
}
