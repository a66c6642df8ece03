//! How tests are written in the languages that we know. Patterns are over single lines.

use std::sync::LazyLock;

use regex::Regex;

/// How much an assertion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Something holds.
    Loose,
    /// Something equals something.
    Exact,
}

/// Whether a line asserts something, and how much. Comments, imports and what holds always are no
/// assertions.
pub(super) fn assertion(line: &str) -> Option<Strength> {
    let line = line.trim();
    if is_comment(line) || IMPORT.is_match(line) || !ASSERTION.is_match(line) || is_trivial(line) {
        return None;
    }
    Some(if EXACT.is_match(line) { Strength::Exact } else { Strength::Loose })
}

/// Whether a line begins a test.
pub(super) fn test_start(line: &str) -> bool {
    !is_comment(line.trim()) && TEST.is_match(line)
}

/// Whether a line keeps tests from running, or from failing.
pub(super) fn skip(line: &str) -> bool {
    let line = line.trim();
    GO_BUILD_IGNORE.is_match(line) || (!is_comment(line) && SKIP.is_match(line))
}

/// Whether a line is an expected value or a case of a table: literals and a comma.
pub(super) fn table_row(line: &str) -> bool {
    let line = line.trim();
    !is_comment(line) && ROW.is_match(line) && assertion(line).is_none()
}

fn is_comment(line: &str) -> bool {
    let hash = line.starts_with('#') && !line.starts_with("#[");
    hash || ["//", "/*", "* ", "--", "<!--"].iter().any(|c| line.starts_with(c)) || line == "*"
}

/// Whether an assertion holds whatever the product does: `assert true`, `assert_eq!(1, 1)`.
fn is_trivial(line: &str) -> bool {
    if TRIVIAL.is_match(line) {
        return true;
    }
    let Some((_, arguments)) = line.split_once('(') else { return false };
    let Some((arguments, _)) = arguments.rsplit_once(')') else { return false };
    let arguments = arguments.strip_prefix("t,").unwrap_or(arguments);
    let mut parts = arguments.split(',').map(str::trim);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(a), Some(b), None) => a == b,
        (_, _, _) => false,
    }
}

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles each of them")]
fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

static IMPORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:import|from|use|pub use|export)\b"));

static ASSERTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:debug_|prop_)?assert(?:_?[A-Za-z]\w*)?(?:!|\s*\(|\.\w+\s*\()",
        r"|\bassert\s+[^\s=]",
        r"|(?:^|[^.\w])expect\s*\(",
        r"|\.(?:toBe|toEqual|toStrictEqual|toMatch|toThrow|toHave|toContain|toInclude|resolves|rejects)",
        r"|\brequire\.[A-Z]\w*\s*\(",
        r"|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(",
        r"|\b(?:raises|warns)\s*\(",
        r"|\.should\b",
        r"|#\[should_panic",
    ))
});

static EXACT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"assert_eq|assert_ne|[aA]ssert\w*Equal|assertIs\b|==",
        r"|\.(?:toBe|toEqual|toStrictEqual|toMatchObject|toHaveLength)\s*\(",
        r"|\.(?:Equal|Equals|EqualValues|EqualError|Exactly|Same|Len|ElementsMatch|JSONEq)\s*\(",
        r"|\b(?:deepEqual|strictEqual|deepStrictEqual)\b|assert_snapshot|assert_called_(?:once_)?with",
    ))
});

static TRIVIAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\bassert\w*!?[\s(.]*(?:\w+\s*\()?(?:\s*t\s*,)?\s*(?:true|True|1|not False|!false)\s*(?:[),;].*)?$",
        r"|\bexpect\s*\(\s*(?:true|1)\s*\)\s*\.",
    ))
});

static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^\s*(?:async\s+)?def\s+test\w*\s*\(",
        r"|#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck)\b",
        r#"|^\s*(?:it|test)(?:\.\w+(?:\([^)]*\))?)?\s*\(\s*["'`]"#,
        r"|^func\s+(?:Test|Fuzz)\w*\s*\(",
        r"|@(?:Test|ParameterizedTest)\b",
    ))
});

static SKIP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"@(?:pytest\.mark\.|unittest\.|mark\.)?(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b",
        r"|\bmark\.(?:skip|skipif|xfail)\b",
        r"|\bpytest\.(?:skip|xfail|importorskip)\s*\(",
        r"|\.skipTest\s*\(|\bSkipTest\b|\bcollect_ignore\w*\b",
        r"|\b(?:it|test|describe|context|suite)(?:\.\w+)?\.(?:skip|skipIf|todo|only|fixme|fails|failing)\b",
        r"|\b(?:xit|xtest|xdescribe|xcontext|fit|fdescribe)\s*\(",
        r"|#\[ignore\b|#\[cfg_attr\(.*\bignore\b|#\[cfg\((?:any\(\)|FALSE|false)\)\]",
        r"|\b[tbf]\.Skip(?:f|Now)?\s*\(",
        r"|@(?:Disabled|Ignore)\b",
    ))
});

static GO_BUILD_IGNORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^//(?:go:build|\s*\+build)\s+(?:ignore|never)\b"));

static ROW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^(?:[-+]?\d|["'`]|[(\[{&]+\s*(?:[-+]?\d|\w+:\s*["'\d]|["'`])|#\[case\b|pytest\.param\().*[,\])]$"#,
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_of_the_four_languages_are_known() {
        use Strength::{Exact, Loose};
        for (line, strength) in [
            ("assert x", Loose),
            ("    assert x == 3", Exact),
            ("assert(x)", Loose),
            ("self.assertTrue(x)", Loose),
            ("self.assertEqual(a, 3)", Exact),
            ("mock.assert_called_once_with(3)", Exact),
            ("with pytest.raises(ValueError):", Loose),
            ("np.testing.assert_allclose(a, b)", Loose),
            ("expect(x).toBe(3);", Exact),
            ("expect(x).toBeTruthy();", Loose),
            ("  .toEqual({a: 1})", Exact),
            ("assert.deepEqual(a, b)", Exact),
            ("await expect(f()).rejects.toThrow()", Loose),
            ("assert!(x.is_ok());", Loose),
            ("assert_eq!(x, 3);", Exact),
            ("prop_assert!(x < 3);", Loose),
            ("insta::assert_snapshot!(x);", Exact),
            ("#[should_panic(expected = \"x\")]", Loose),
            ("t.Errorf(\"got %v\", x)", Loose),
            ("require.NoError(t, err)", Loose),
            ("assert.Equal(t, 3, x)", Exact),
        ] {
            assert_eq!(assertion(line), Some(strength), "{line}");
        }
    }

    #[test]
    fn what_asserts_nothing_is_no_assertion() {
        for line in [
            "# assert x",
            "// assert!(x);",
            "* expect(x)",
            "import assert from 'assert';",
            "from x import assert_that",
            "use pretty_assertions::assert_eq;",
            "let x = y.expect(\"open\");",
            "const fs = require('fs')",
            "assert True",
            "assert!(true);",
            "assert!(true, \"why\");",
            "self.assertTrue(True)",
            "assert.True(t, true)",
            "expect(true).toBe(true);",
            "assert_eq!(1, 1);",
            "self.assertEqual(x, x)",
            "assertion = 3",
            "x = reassert",
        ] {
            assert_eq!(assertion(line), None, "{line}");
        }
    }

    #[test]
    fn tests_are_known_by_their_first_line() {
        for line in [
            "def test_a():",
            "    async def test_b(self):",
            "#[test]",
            "    #[tokio::test(flavor = \"x\")]",
            "it('works', () => {",
            "  test.each([1])(\"x\", f)",
            "test(`x`, f)",
            "func TestX(t *testing.T) {",
        ] {
            assert!(test_start(line), "{line}");
        }
        for line in ["def helper():", "# def test_a():", "submit('x')", "func Test", "#[cfg(test)]"] {
            assert!(!test_start(line), "{line}");
        }
    }

    #[test]
    fn skips_are_known() {
        for line in [
            "@pytest.mark.skip",
            "@pytest.mark.xfail(reason=\"x\")",
            "pytestmark = pytest.mark.skipif(True)",
            "@unittest.skipIf(x, \"y\")",
            "pytest.skip(\"later\")",
            "self.skipTest(\"x\")",
            "collect_ignore = [\"a.py\"]",
            "it.skip('x', f)",
            "describe.only('x', f)",
            "test.concurrent.skip('x')",
            "xit('x', f)",
            "#[ignore = \"slow\"]",
            "#[cfg_attr(not(x), ignore)]",
            "t.Skip(\"x\")",
            "t.SkipNow()",
            "//go:build ignore",
        ] {
            assert!(skip(line), "{line}");
        }
        for line in [
            "# @pytest.mark.skip",
            "skipped = 3",
            "iter.skip(1)",
            "it('skips', f)",
            "//go:build linux",
            "fit = 3",
        ] {
            assert!(!skip(line), "{line}");
        }
    }

    #[test]
    fn rows_of_tables_are_known() {
        for line in [
            "(1, 2),",
            "    (\"a\", 3),",
            "{name: \"x\", want: 3},",
            "42,",
            "\"text\",",
            "[1, 2],",
            "#[case(1, 2)]",
            "pytest.param(1, 2),",
        ] {
            assert!(table_row(line), "{line}");
        }
        for line in ["f(x),", "// (1, 2),", "(x, y),", "assert_eq!(a, 1),", "}", "1 + x"] {
            assert!(!table_row(line), "{line}");
        }
    }
}
