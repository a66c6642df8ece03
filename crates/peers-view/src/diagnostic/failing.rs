//! The lines of a test runner's output that name the failure.

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

/// The last failure that is told, on standard error before standard output; else the last lines, of which
/// the same holds.
pub(super) fn lines(out: &str, err: &str) -> Vec<String> {
    let (out, err) = (telling(out), telling(err));
    if let Some(told) = failure(&err).or_else(|| failure(&out)) {
        return told;
    }
    // Errors come last on their own stream; a program that says nothing there said it on the other.
    let lines = if err.is_empty() { out } else { err };
    let from = lines.len().saturating_sub(LAST_LINES);
    lines.iter().skip(from).map(|line| (*line).to_owned()).collect()
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
    let (at, sign) = lines.iter().enumerate().rev().find_map(|(at, line)| Some((at, of(at, line)?)))?;
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
    Some(said)
}

/// Without what only leads in: the thread of a panic, the mark of a line.
fn shortened(line: &str) -> String {
    let line = line.find("panicked at ").and_then(|at| line.get(at..)).unwrap_or(line);
    let line = line.strip_prefix("E   ").map_or(line, str::trim_start);
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
        let want = "panicked at tests/median.rs:10:5 | assertion `left == right` failed | left: Some(3.0) | right: Some(2.5)";
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
        assert_eq!(said("", err), "AssertionError: 3 != 2.5");
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
}
