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

/// Whether a line asserts something, and how much. Comments, imports, what holds always and what is
/// switched off are no assertions.
pub(super) fn assertion(line: &str) -> Option<Strength> {
    let line = line.trim();
    if is_comment(line)
        || IMPORT.is_match(line)
        || !ASSERTION.is_match(line)
        || SWITCHED_OFF.is_match(line)
        || is_trivial(line)
    {
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

/// Whether a line of test code takes a hand in the run itself: which tests are collected, what
/// their outcome is, or when the process ends.
pub(super) fn hook(line: &str) -> bool {
    let line = line.trim();
    !is_comment(line) && HOOK.is_match(line)
}

/// Whether a line is an expected value or a case of a table: literals and a comma.
pub(super) fn table_row(line: &str) -> bool {
    let line = line.trim();
    !is_comment(line) && ROW.is_match(line) && !ARM.is_match(line) && assertion(line).is_none()
}

/// Whether a line looks like anything of the above but a row.
pub(super) fn tells(line: &str) -> bool {
    [&*ASSERTION, &*TEST, &*SKIP, &*HOOK].iter().any(|p| p.is_match(line))
}

fn is_comment(line: &str) -> bool {
    let hash = line.starts_with('#') && !["#[", "#expect(", "#require("].iter().any(|c| line.starts_with(c));
    hash || ["//", "/*", "* ", "--", "<!--"].iter().any(|c| line.starts_with(c)) || line == "*"
}

/// Whether an assertion holds whatever the product does: `assert true`, `assert_eq!(1, 1)`.
fn is_trivial(line: &str) -> bool {
    if TRIVIAL.is_match(line) {
        return true;
    }
    if let Some(sides) = line.strip_prefix("assert ").and_then(|claim| claim.split_once("=="))
        && sides.0.trim() == sides.1.trim()
    {
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
pub(super) fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

static IMPORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:import|from|use|pub use|export)\b"));

static ASSERTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:debug_|prop_)?assert(?:_?[A-Za-z]\w*)?(?:!|\s*\(|\.\w+\s*\()",
        r"|\bassert\s+[^\s=]|^(?:assert|refute)_\w+\s+\S|\brefute(?:_\w+)?[\s(]|\bAssert\.\w+\s*\(",
        r"|(?:^|[^.\w])expect\s*[({]|\bis_expected\b",
        r"|\.(?:toBe|toEqual|toStrictEqual|toMatch|toThrow|toHave|toContain|toInclude|resolves|rejects)",
        r"|\brequire\.[A-Z]\w*\s*\(",
        r"|\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(",
        r"|\b(?:raises|warns)\s*\(|\bXCT(?:Assert|Fail)\w*\s*\(|#(?:expect|require)\(",
        r"|\b(?:EXPECT|ASSERT)_\w+\s*\(|\b(?:CHECK|REQUIRE)(?:_\w+)?\s*\(",
        r"|\.should\b|\.Should\(|\.(?:must|wont)_\w+",
        r"|#\[should_panic",
    ))
});

/// What looks like an assertion and is never come to.
static SWITCHED_OFF: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:if\s*\(?\s*(?:False|false|0)\b|(?:false|0)\s*&&|(?:False|0)\s+and\b",
        r"|(?:true|1)\s*\|\||(?:True|1)\s+or\b|lambda\b)",
    ))
});

static EXACT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"assert_eq|assert_ne|[aA]ssert\w*Equal|assertIs\b|==|\bAssert\.(?:Equal|AreEqual|Same)\b",
        r"|\.(?:toBe|toEqual|toStrictEqual|toMatchObject|toHaveLength)\s*\(",
        r"|\.(?:Equal|Equals|EqualValues|EqualError|Exactly|Same|Len|ElementsMatch|JSONEq)\s*\(",
        r"|\b(?:deepEqual|strictEqual|deepStrictEqual)\b|assert_snapshot|assert_called_(?:once_)?with",
        r"|\.to\s+eq\b|\bmust_equal\b|\b(?:EXPECT|ASSERT)_(?:STR|FLOAT_|DOUBLE_)?EQ\b|assertSame\b",
    ))
});

static TRIVIAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:\b(?:debug_|prop_)?assert|\b(?:XCTA|A|a)ssert(?:True|That|_true))(?:!|\.(?:True|ok|isTrue|is_true))?",
        r"[\s(]*(?:t\s*,\s*)?(?:true|True|1|not False|!false)\s*(?:[),;].*)?$",
        r"|\bexpect\s*\(\s*(?:true|1)\s*\)\s*\.|\bassert\b.*(?:\bor\s+(?:True|1)|\|\|\s*true)\b",
    ))
});

static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^\s*(?:async\s+)?def\s+test\w*\s*(?:\(|$)",
        r"|#\[(?:\w+::)*(?:test|Test|rstest|test_case|quickcheck|wasm_bindgen_test)\b",
        r#"|^\s*(?:it|test|specify|scenario|testWidgets)(?:\.\w+(?:\([^)]*\))?)?\s*\(?\s*["'`]"#,
        r"|^func\s+(?:\([^)]*\)\s*Test|Test|Fuzz|Example)(?:[^a-z\s(]\w*)?\s*\(",
        r"|^\s*(?:\w+\s+)*(?:func|function)\s+test\w*\s*\(",
        r#"|@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b|^\s*@test\s+["']"#,
        r"|^\s*\[(?:Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b",
        r"|^\s*(?:TYPED_)?(?:TEST(?:_F|_P|_CASE)?|SCENARIO|BOOST_AUTO_TEST_CASE)\s*\(",
    ))
});

static SKIP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"@(?:pytest\.mark\.|unittest\.|mark\.)?(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b",
        r"|\bmark\.(?:skip|skipif|xfail)\b",
        r"|\bpytest\.(?:skip|xfail|importorskip)\s*\(|\b__test__\s*=\s*False\b",
        r"|\bexcept\b[^:]*\bAssertionError\b|\bsuppress\([^)]*\b(?:AssertionError|Exception|BaseException)\b",
        r"|\.skipTest\s*\(|\bSkipTest\b|\bcollect_ignore\w*\b",
        r"|\b(?:it|test|describe|context|suite)(?:\.\w+)?\.(?:skip|skipIf|runIf|todo|only|fixme|fails|failing)\b",
        r"|\b(?:xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe)\s*[(\s]\s*[\x22'`]|\{\s*(?:skip|todo):\s*[^f\s]",
        r"|#\[ignore\b|#\[cfg_attr\(.*\bignore\b|#!?\[cfg\((?:any\(\)|FALSE|false)\)\]",
        r"|\b[tbf]\.Skip(?:f|Now)?\s*\(|\bXCTSkip|\.disabled\(|\bGTEST_SKIP\b|\bDISABLED_\w+",
        r"|@(?:Disabled|Ignore)\b|\bassumeTrue\s*\(\s*false|\bmarkTest(?:Skipped|Incomplete)\s*\(",
        r"|^\s*\[Ignore\b|\bSkip\s*=\s*\x22|@(?:module)?tag\s+:?skip\b",
        r"|^\s*(?:skip|pending)(?:\s+[\x22']|\s*$)|,\s*(?::skip\b|skip:\s*(?:true|[\x22']))",
    ))
});

static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\bpytest_(?:collection_modifyitems|ignore_collect|collect_file|collect_directory|pycollect_\w+",
        r"|itemcollected|deselected|runtest_protocol|runtest_call|pyfunc_call|report_teststatus",
        r"|cmdline_(?:main|parse|preparse)|load_initial_conftests|runtestloop)\b",
        r"|\bcollect_ignore\w*\b|\.exitstatus\s*=[^=]|\.outcome\s*=\s*[\x22\x27]|\.wasxfail\s*=[^=]|^def\s+load_tests\b",
        r"|\bTestCase\.\w+\s*=[^=]",
        r"|\bos\._exit\s*\(|\bpytest\.exit\s*\(|\bsys\.exit\s*\(\s*0?\s*\)|\bSystem\.exit\s*\(\s*0",
        r"|\bprocess\.exit\s*\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0|\bos\.Exit\s*\(\s*0|\bprocess::exit\s*\(\s*0",
        r"|\bexit!",
    ))
});

static GO_BUILD_IGNORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^//(?:go:build|\s*\+build)\s+(?:ignore|never)\b"));

/// An arm of a match over numbers, which looks like a row.
static ARM: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[-\d.=|\s]+=>\s*[A-Za-z_&(]"));

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
            ("assert_equal 3, x", Exact),
            ("expect(x).to eq 3", Exact),
            ("expect { f }.to raise_error", Loose),
            ("XCTAssertEqual(x, 3)", Exact),
            ("#expect(x == 3)", Exact),
            ("EXPECT_EQ(x, 3);", Exact),
            ("REQUIRE(x);", Loose),
            ("Assert.Equal(3, x);", Exact),
            ("$this->assertSame(3, x);", Exact),
            ("refute x", Loose),
            ("assert_eq!(1, f());", Exact),
            ("assert.Equal(t, 1, f())", Exact),
            ("self.assertEqual(1, f())", Exact),
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
            "assert 1 == 1",
            "assert f() == 3 or True",
            "if False: assert x",
            "false && expect(x).toBe(1);",
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
            "func (s *Suite) TestX() {",
            "it \"works\" do",
            "  def test_a",
            "test \"works\" do",
            "    func testLogin() throws {",
            "public function testLogin(): void",
            "[Fact]",
            "TEST_F(A, B) {",
            "@test \"works\" {",
        ] {
            assert!(test_start(line), "{line}");
        }
        for line in [
            "def helper():",
            "# def test_a():",
            "submit('x')",
            "func Test",
            "func Testify(t *testing.T) {",
            "#[cfg(test)]",
            "func contest() {",
        ] {
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
            "__test__ = False",
            "except AssertionError:",
            "with suppress(Exception):",
            "test('x', { skip: true }, f)",
            "xit \"works\" do",
            "    skip \"later\"",
            "it \"x\", skip: true do",
            "@tag :skip",
            "throw XCTSkip()",
            "TEST(A, DISABLED_B) {",
            "[Fact(Skip = \"later\")]",
            "$this->markTestSkipped();",
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
            "except ValueError:",
            "test('x', { skip: false }, f)",
            "let pending = 3;",
        ] {
            assert!(!skip(line), "{line}");
        }
    }

    #[test]
    fn a_hand_in_the_run_is_known() {
        for line in [
            "def pytest_collection_modifyitems(config, items):",
            "def pytest_ignore_collect(path):",
            "collect_ignore = ['a.py']",
            "    os._exit(0)",
            "    session.exitstatus = 0",
            "    rep.outcome = 'passed'",
            "def load_tests(loader, tests, pattern):",
            "unittest.TestCase.assertEqual = lambda *a: None",
            "process.exit(0);",
            "\tos.Exit(0)",
            "std::process::exit(0);",
            "at_exit { exit! }",
        ] {
            assert!(hook(line), "{line}");
        }
        for line in [
            "# os._exit(0)",
            "def pytest_sessionfinish(session, exitstatus):",
            "def pytest_configure(config):",
            "if rep.outcome == 'passed':",
            "tick.outcome = TickOutcome::Handoff;",
            "def pytest_sessionfinish(session, exitstatus=0):",
            "\tos.Exit(m.Run())",
            "sys.exit(main())",
            "process.exit(1)",
        ] {
            assert!(!hook(line), "{line}");
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
        for line in ["f(x),", "// (1, 2),", "(x, y),", "assert_eq!(a, 1),", "}", "1 + x", "1 | 2 => f(3),"] {
            assert!(!table_row(line), "{line}");
        }
    }
}
