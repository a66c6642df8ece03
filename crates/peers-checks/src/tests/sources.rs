//! Checks that read source code: each situation in each language that it applies to.

use super::World;
use crate::{Outcome, Verdict};

/// A project with these files, checked.
fn check(name: &str, flags: &[&str], files: &[(&str, &str)]) -> Outcome {
    let world = World::new();
    world.commit("files", files);
    world.check_with(name, flags)
}

/// Verdict and the lines of the findings.
#[track_caller]
fn same(name: &str, files: &[(&str, &str)], verdict: Verdict, findings: &[&str]) {
    let outcome = check(name, &[], files);
    let found: Vec<String> = outcome
        .report
        .findings
        .iter()
        .map(|f| {
            format!("{}:{} {}", f.path, f.line.map_or("-".to_owned(), |line| line.to_string()), f.message)
        })
        .collect();
    assert_eq!((outcome.report.verdict, found.join("\n")), (verdict, findings.join("\n")), "{files:?}");
}

const PASS: Verdict = Verdict::Pass;
const FAIL: Verdict = Verdict::Fail;
const WARN: Verdict = Verdict::Warn;

const LONG: &str = "The build machines have no display, and the code under test is unchanged";

#[test]
fn row_03_a_skip_with_a_concrete_reason_passes() {
    let python = format!(
        "import pytest\n@pytest.mark.skip(reason='{LONG}')\ndef test_a(): pass\n\
         @pytest.mark.skipif(win, reason='win only')\ndef test_b(): pass\n@pytest.mark.skip\ndef helper(): pass\n"
    );
    let rust = format!("#[test]\n#[ignore = \"{LONG}\"]\nfn a() {{}}\n#[test]\n#[cfg(unix)]\nfn b() {{}}\n");
    let javascript =
        format!("// {LONG}\ntest.skip('a', () => {{}});\ntest('b', {{ skip: '{LONG}' }}, () => {{}});\n");
    let go = format!(
        "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {{ t.Skip(\"{LONG}\") }}\n\
         func TestB(t *testing.T) {{ if testing.Short() {{ t.Skip() }} }}\n"
    );
    let typed = format!("// {LONG}\ntest.skip('a', (): void => {{}});\nit.skipIf(win)('b', () => {{}});\n");
    for (path, text) in [
        ("tests/test_a.py", python),
        ("tests/a.rs", rust),
        ("a.test.js", javascript),
        ("a.test.ts", typed.clone()),
        ("a.test.tsx", typed),
        ("a_test.go", go),
    ] {
        same("skip-reasons", &[(path, &text)], PASS, &[]);
    }
    same("skip-reasons", &[("a.py", "x = 1\n")], PASS, &[]);
}

#[test]
fn row_04_each_skip_without_a_reason_is_listed() {
    let python = "import pytest\npytestmark = [pytest.mark.skip(reason='TODO'), pytest.mark.slow]\n\
                  @pytest.mark.skip(reason='later, todo, flaky, broken')\ndef test_a(): pass\n\
                  @pytest.mark.xfail\ndef test_b(): pass\n@pytest.mark.skip\ndef test_c(): pass\n\
                  @pytest.mark.skip(reason='')\ndef test_d(): pass\n";
    same(
        "skip-reasons",
        &[("test_a.py", python)],
        FAIL,
        &[
            "test_a.py:2 the whole file: `pytest.mark.skip(reason='TODO')` has a reason of 4 characters, of 20",
            "test_a.py:3 test_a: `@pytest.mark.skip(reason='later, todo, flaky, broken')` has a reason that tells nothing",
            "test_a.py:5 test_b: `@pytest.mark.xfail` has no reason",
            "test_a.py:7 test_c: `@pytest.mark.skip` has no reason",
            "test_a.py:9 test_d: `@pytest.mark.skip(reason='')` has no reason",
        ],
    );
    same(
        "skip-reasons",
        &[(
            "src/lib.rs",
            "#[cfg(test)]\nmod tests {\n    #[test]\n    #[ignore]\n    fn a() {}\n    #[test]\n    #[ignore = \"slow\"]\n    fn b() {}\n}\n",
        )],
        FAIL,
        &[
            "src/lib.rs:4 tests::a: `#[ignore]` has no reason",
            "src/lib.rs:7 tests::b: `#[ignore = \"slow\"]` has a reason of 4 characters, of 20",
        ],
    );
    same(
        "skip-reasons",
        &[(
            "a.spec.ts",
            "it.skip('a', () => {});\nit.only('b', () => {});\nxdescribe('c', () => {});\nit.todo('d');\nprocess.exit(0);\n",
        )],
        FAIL,
        &[
            "a.spec.ts:1 a: `it.skip` has no reason",
            "a.spec.ts:2 b: `it.only` lets no other test run",
            "a.spec.ts:3 c: `xdescribe` has no reason",
            "a.spec.ts:4 d: `it.todo` has no reason",
        ],
    );
    same(
        "skip-reasons",
        &[(
            "a_test.go",
            "package a\nfunc TestA(t *testing.T) { t.SkipNow() }\nfunc TestB(t *testing.T) { t.Skip(\"wip\") }\n",
        )],
        FAIL,
        &[
            "a_test.go:2 TestA: `t.SkipNow()` has no reason",
            "a_test.go:3 TestB: `t.Skip(\"wip\")` has a reason of 3 characters, of 20",
        ],
    );
}

#[test]
fn row_05_a_test_file_that_cannot_be_read_fails() {
    for (path, text) in [
        ("test_a.py", "def test_a(:\n"),
        ("a.test.ts", "test('a', () => {\n"),
        ("a.test.js", "test('a', () => {\n"),
        ("a.test.tsx", "test('a', () => <b>);\n"),
        ("tests/a.rs", "#[test] fn a( {\n"),
        ("a_test.go", "package a\nfunc TestA(\n"),
    ] {
        let outcome = check("skip-reasons", &[], &[(path, text)]);
        assert_eq!(outcome.report.verdict, FAIL, "{path}");
        assert_eq!(outcome.report.findings[0].kind, "unreadable", "{path}");
    }
}

#[test]
fn row_05_what_could_not_be_read_at_the_base_is_read_around_until_it_grows() {
    let mut world = World::new();
    let odd = "def test_a(): assert f()\nx = = 1\n";
    world.commit("odd", &[("tests/test_a.py", odd)]);
    assert_eq!(world.check("skip-reasons").report.verdict, FAIL, "without a base of it");
    world.base_here();
    for (text, due, why) in [
        (odd.to_owned(), PASS, "as it was"),
        (format!("{odd}y = = 2\n"), FAIL, "more of it"),
        (format!("{odd}@pytest.mark.skip\ndef test_b(): assert f()\n"), FAIL, "a skip beside it is seen"),
        ("def test_a(): assert f()\n".to_owned(), PASS, "mended"),
    ] {
        world.commit("now", &[("tests/test_a.py", &text)]);
        assert_eq!(world.check("skip-reasons").report.verdict, due, "{why}");
    }
}

/// A source of so many lines in each language, which may fail, at a path that its test is about.
fn long(path: &str, lines: usize) -> String {
    let (head, line) = match path.rsplit('.').next() {
        Some("py") => ("def f(): raise ValueError\n", "x = 1\n"),
        Some("rs") => ("fn f() { panic!() }\n", "const X: u8 = 1;\n"),
        Some("go") => ("package a\nfunc f() { panic(1) }\n", "var x = 1\n"),
        _ => ("function f() { throw new Error(); }\n", "let x = 1;\n"),
    };
    format!("{head}{}", line.repeat(lines))
}

#[test]
fn row_06_a_long_source_with_tests_of_three_kinds_passes_and_a_short_one_needs_none() {
    for (source, test, text) in [
        (
            "pkg/box.py",
            "tests/test_box.py",
            "def test_opens(): assert open(1)\ndef test_empty(): assert not open(0)\ndef test_fails():\n    with pytest.raises(ValueError): open(2)\n",
        ),
        (
            "src/box.js",
            "src/box.test.js",
            "test('opens', () => { expect(open(1)).toBe(1); });\ntest('empty box', () => { expect(open(0)).toBe(0); });\ntest('fails', () => { expect(() => open(2)).toThrow(); });\n",
        ),
        (
            "src/box.ts",
            "src/box.test.ts",
            "test('opens', () => { expect(open(1)).toBe(1); });\ntest('empty box', () => { expect(open(0)).toBe(0); });\ntest('fails', async () => { await expect(open(2)).rejects.toThrow(); });\n",
        ),
        (
            "src/box.rs",
            "tests/box.rs",
            "#[test]\nfn opens() { assert!(open(1)); }\n#[test]\nfn empty() { assert!(!open(0)); }\n#[test]\nfn fails() { open(2).unwrap_err(); }\n",
        ),
        (
            "a/box.go",
            "a/box_test.go",
            "package a\nfunc TestOpens(t *testing.T) { if !open(1) { t.Fatal() } }\nfunc TestEmpty(t *testing.T) { if open(0) { t.Fatal(0) } }\nfunc TestFails(t *testing.T) { if err := open(2); err == nil { t.Fatal(2) } }\n",
        ),
    ] {
        same("three-class", &[(source, &long(source, 60)), (test, text)], PASS, &[]);
        let short = long(source, 30);
        same("three-class", &[(source, &short)], PASS, &[]);
        let none =
            format!("{source}:- {} lines, and no test is about them", long(source, 60).lines().count());
        same("three-class", &[(source, &long(source, 60))], FAIL, &[&none]);
    }
}

#[test]
fn row_07_the_words_of_one_name_are_not_tests_of_three_kinds() {
    let source = long("a.py", 60);
    for (test, missing) in [
        ("def test_invalid_admin_token(): assert f('x') is False\n", "happy, edge, sad"),
        ("def test_works(): assert f('x')\ndef test_fails(): assert f('y')\n", "edge, sad"),
        (
            "def test_works(): assert f('x')\ndef test_empty(): pass\ndef test_error():\n    with pytest.raises(E): f()\n",
            "edge",
        ),
    ] {
        let due = format!("a.py:- no test of the kind {missing}");
        same("three-class", &[("a.py", &source), ("test_a.py", test)], FAIL, &[&due]);
    }
    let copied = "def test_works():\n    with pytest.raises(E): f()\ndef test_empty():\n    with pytest.raises(E): f()\ndef test_ok(): assert f(1)\n";
    same(
        "three-class",
        &[("a.py", &source), ("test_a.py", copied)],
        FAIL,
        &["a.py:- its tests of three kinds assert the same things"],
    );
    // What a test in Go asserts is the condition under which it fails.
    let go = |guards: [&str; 3]| {
        let test = |(name, guard)| {
            format!("func Test{name}(t *testing.T) {{ if err := {guard} {{ t.Errorf(\"%v\", err) }} }}\n")
        };
        let tests: String = ["Works", "Empty", "Error"].into_iter().zip(guards).map(test).collect();
        format!("package a\n\nimport \"testing\"\n\n{tests}")
    };
    let source = long("a.go", 60);
    for (guards, verdict) in [
        (["f(1); err != nil", "f(0); err != nil", "f(-1); err == nil"], PASS),
        (["f(1); err == nil", "f(1); err == nil", "f(1); err == nil"], FAIL),
    ] {
        let files = [("a.go", source.as_str()), ("a_test.go", &go(guards))];
        assert_eq!(check("three-class", &[], &files).report.verdict, verdict, "{guards:?}");
    }
}

#[test]
fn row_07_one_name_with_words_of_three_kinds_is_one_test_in_each_language() {
    for (source, test, text) in [
        (
            "src/a.js",
            "src/a.test.js",
            "test('invalid admin token', () => { expect(f('x')).toBe(false); });\n",
        ),
        (
            "src/a.ts",
            "src/a.test.ts",
            "test('invalid admin token', () => { expect(f('x')).toBe(false); });\n",
        ),
        ("src/a.rs", "tests/a.rs", "#[test]\nfn invalid_admin_token() { assert!(!f(1)); }\n"),
        (
            "a/a.go",
            "a/a_test.go",
            "package a\nfunc TestInvalidAdminToken(t *testing.T) { if f(1) { t.Fatal() } }\n",
        ),
    ] {
        let due = format!("{source}:- no test of the kind happy, edge, sad");
        same("three-class", &[(source, &long(source, 60)), (test, text)], FAIL, &[&due]);
    }
}

#[test]
fn row_08_a_marker_says_in_each_language_what_the_tests_of_a_module_are_about() {
    for (source, test, text) in [
        (
            "src/a.js",
            "tests/other.test.js",
            "// kind: happy, edge, sad\nimport { f } from '../src/a';\ntest('wrong', () => { expect(f(1)).toBe(1); });\ntest('bad', () => { expect(f(2)).toBe(2); });\ntest('unknown', () => { expect(f(3)).toBe(3); });\n",
        ),
        (
            "src/a.ts",
            "tests/other.test.ts",
            "// kind: happy, edge, sad\nimport { f } from '../src/a';\ntest('wrong', () => { expect(f(1)).toBe(1); });\ntest('bad', () => { expect(f(2)).toBe(2); });\ntest('unknown', () => { expect(f(3)).toBe(3); });\n",
        ),
        (
            "src/a.rs",
            "tests/other.rs",
            "// kind: happy, edge, sad\nuse pkg::a::f;\n#[test]\nfn wrong() { assert!(f(1)); }\n#[test]\nfn bad() { assert!(f(2)); }\n#[test]\nfn unknown() { assert!(f(3)); }\n",
        ),
        (
            "a/a.go",
            "a/other_test.go",
            "package a\n\n// kind: happy, edge, sad\n\nfunc TestWrong(t *testing.T) { if f(1) { t.Fatal(1) } }\nfunc TestBad(t *testing.T) { if f(2) { t.Fatal(2) } }\nfunc TestUnknown(t *testing.T) { if f(3) { t.Fatal(3) } }\n",
        ),
    ] {
        same("three-class", &[(source, &long(source, 60)), (test, text)], PASS, &[]);
        let plain = text.replace("// kind: happy, edge, sad\n", "");
        assert_eq!(
            check("three-class", &[], &[(source, &long(source, 60)), (test, &plain)]).report.verdict,
            FAIL,
            "{test}"
        );
    }
}

#[test]
fn row_08_a_test_that_imports_the_module_may_say_what_it_is_about() {
    let source = long("a.py", 60);
    let tests = "# kind: happy, edge, sad\nfrom pkg import a\ndef test_one(): assert a.f(1)\ndef test_wrong(): assert a.f(2)\ndef test_bad(): assert a.f(3)\ndef test_unknown(): assert a.f(4)\n";
    same("three-class", &[("pkg/a.py", &source), ("tests/test_other.py", tests)], PASS, &[]);
}

#[test]
fn what_a_package_passes_on_is_tested_by_its_name() {
    let body = "    let a = 1;\n".repeat(60);
    let source = format!("impl Display for Version {{\n  fn fmt(&self) {{\n{body}  }}\n}}\n");
    let tests = "use x::Version;\n#[test]\nfn one() { assert!(Version(1)); }\n#[test]\nfn empty() { assert!(Version(2)); }\n#[test]\nfn fails() { assert!(Version(3).is_err()); }\n";
    let files = |tests| [("src/display.rs", source.as_str()), ("tests/all.rs", tests)];
    assert_eq!(check("three-class", &[], &files(tests)).report.verdict, PASS);
    assert_eq!(check("three-class", &[], &files(&tests.replace("Version", "Other"))).report.verdict, FAIL);
    let index = format!("module.exports = function () {{\n{}}};\n", "  f();\n".repeat(60));
    let tests = "var parse = require('../');\ntest('one', t => { t.equal(parse(1), 1); });\ntest('empty', t => { t.equal(parse(2), 1); });\ntest('fails', t => { t.throws(() => parse(3)); });\n";
    assert_eq!(check("three-class", &[], &[("index.js", &index), ("test/a.js", tests)]).report.verdict, PASS);
}

#[test]
fn row_06_what_tests_of_real_projects_look_like() {
    // Failures by a helper in another file, ends by the values that are tried, names through the package alone.
    for (source, tests) in [
        (
            (
                "src/eval.rs",
                "use crate::{Version, Req};\npub(crate) fn matches(req: &Req, of: &Version) -> Result<bool, Error> {\nLINES    Err(Error)\n}\n",
            ),
            vec![
                (
                    "tests/util/mod.rs",
                    "pub fn version_err(text: &str) -> Error {\n    Version::parse(text).unwrap_err()\n}\n",
                ),
                (
                    "tests/version.rs",
                    "use pkg::Version;\n#[test]\nfn test_new() {\n    assert_eq!(version(\"1\"), 1);\n}\n#[test]\nfn test_parse() {\n    assert_eq!(version_err(\"x\").to_string(), \"x\");\n}\n#[test]\nfn test_more() {\n    assert_eq!(version(\"\"), 0);\n}\n",
                ),
            ],
        ),
        (
            (
                "src/error.rs",
                "use crate::parse::Error;\nimpl Display for Error {\n    fn fmt(&self) -> Result {\nLINES    panic!()\n    }\n}\n",
            ),
            vec![
                (
                    "tests/util/mod.rs",
                    "pub fn version_err(text: &str) -> Error {\n    Version::parse(text).unwrap_err()\n}\n",
                ),
                (
                    "tests/version.rs",
                    "mod util;\n#[test]\nfn test_new() {\n    assert_eq!(version(\"1\"), 1);\n}\n#[test]\nfn test_parse() {\n    assert_eq!(version_err(\"x\").to_string(), \"x\");\n}\n#[test]\nfn test_more() {\n    assert_eq!(version(\"\"), 0);\n}\n",
                ),
            ],
        ),
        (
            ("src/pkg/decorators.py", "def command(f):\nLINES    raise TypeError(f)\n"),
            vec![
                (
                    "tests/helpers.py",
                    "def rejects(f):\n    with pytest.raises(TypeError):\n        command(f)\n",
                ),
                (
                    "tests/test_basic.py",
                    "import pkg\n\ndef test_one():\n    assert pkg.command(1) == 1\n\ndef test_two():\n    rejects(3)\n\ndef test_three():\n    assert pkg.command('') == 2\n",
                ),
            ],
        ),
        (
            (
                "lib/parse.js",
                "module.exports = function parse(text) {\nLINES  throw new TypeError(text);\n};\n",
            ),
            vec![
                ("test/util.js", "function rejects(text) {\n  assert.throws(() => qs.parse(text));\n}\n"),
                (
                    "test/all.js",
                    "const qs = require('../lib/parse');\ntest('a', () => { assert.equal(qs.parse('a'), 1); });\ntest('b', () => { rejects('b'); });\ntest('c', () => { assert.equal(qs.parse([]), 0); });\n",
                ),
            ],
        ),
        (
            (
                "a/parse.go",
                "package a\n\nfunc Parse(text string) error {\nLINES\treturn errors.New(text)\n}\n",
            ),
            vec![
                (
                    "a/util_test.go",
                    "package a\n\nfunc rejects(t *testing.T, text string) {\n\tif err := Parse(text); err == nil {\n\t\tt.Fatal(text)\n\t}\n\trequire.Error(t, Parse(text))\n}\n",
                ),
                (
                    "a/all_test.go",
                    "package a\n\nfunc TestA(t *testing.T) {\n\tassert.Equal(t, Parse(\"a\"), 1)\n}\n\nfunc TestB(t *testing.T) {\n\trejects(t, \"b\")\n\tassert.True(t, true)\n}\n\nfunc TestC(t *testing.T) {\n\tassert.Equal(t, Parse(\"\"), 2)\n}\n",
                ),
            ],
        ),
    ] {
        let line = match source.0.rsplit('.').next() {
            Some("rs") => "    let a = 1;\n",
            Some("py") => "    a = 1\n",
            Some("go") => "\ta := 1\n",
            _ => "  let a = 1;\n",
        };
        let text = source.1.replace("LINES", &line.repeat(60));
        let files = |tests: &[(&'static str, &'static str)]| {
            let mut files = vec![(source.0, text.clone())];
            files.extend(tests.iter().map(|(path, text)| (*path, (*text).to_owned())));
            files
        };
        let judged = |files: &[(&str, String)]| {
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            check("three-class", &[], &files).report
        };
        let report = judged(&files(&tests));
        assert_eq!(report.verdict, PASS, "{}: {:?}", source.0, report.findings);
        // Without the helper nothing says that something fails.
        assert_eq!(judged(&files(&tests[1..])).verdict, FAIL, "{}", source.0);
    }
    // What cannot fail needs no test of a failure.
    let tests = ("test_a.py", "def test_one(): assert f(1)\ndef test_empty(): assert f(2)\n");
    assert_eq!(check("three-class", &[], &[("a.py", &"x = 1\n".repeat(60)), tests]).report.verdict, PASS);
    assert_eq!(check("three-class", &[], &[("a.py", &long("a.py", 60)), tests]).report.verdict, FAIL);
}

#[test]
fn row_69_a_body_that_does_nothing_fails_and_a_declaration_does_not() {
    same(
        "no-empty-bodies",
        &[(
            "pkg/a.py",
            "def f(): pass\ndef g(): ...\ndef h():\n    \"Doc.\"\nclass A: pass\nclass B(Base): pass\n\
             class P(Protocol):\n    def m(self): ...\nclass C(ABC):\n    @abstractmethod\n    def m(self): pass\nclass E(ValueError): pass\n",
        )],
        FAIL,
        &[
            "pkg/a.py:1 `f` does nothing",
            "pkg/a.py:2 `g` does nothing",
            "pkg/a.py:3 `h` does nothing",
            "pkg/a.py:5 `A` does nothing",
            "pkg/a.py:6 `B` does nothing",
        ],
    );
    same(
        "no-empty-bodies",
        &[(
            "src/a.ts",
            "function f() {}\nclass A { constructor(private a: number) {} m() {} n(): void { g(); } }\ninterface I { m(): void }\ndeclare function d(): void;\nabstract class B { abstract m(): void; }\n",
        )],
        FAIL,
        &["src/a.ts:1 `f` does nothing", "src/a.ts:2 `m` does nothing"],
    );
    same(
        "no-empty-bodies",
        &[("src/a.js", "function f() {}\nclass A { m() {} }\nconst g = () => h();\n")],
        FAIL,
        &["src/a.js:1 `f` does nothing", "src/a.js:2 `m` does nothing"],
    );
    same(
        "no-empty-bodies",
        &[(
            "src/a.rs",
            "fn f() {}\nimpl Mark for A {}\nimpl Drop for A { fn drop(&mut self) {} }\ntrait T { fn m(&self); }\nfn main() {}\n#[cfg(test)]\nmod tests { #[test] fn a() {} }\n",
        )],
        FAIL,
        &["src/a.rs:1 `f` does nothing"],
    );
    same(
        "no-empty-bodies",
        &[("a.go", "package a\nfunc f() {}\nfunc main() {}\nfunc g() { h() }\n")],
        FAIL,
        &["a.go:2 `f` does nothing"],
    );
}

#[test]
fn row_69_what_the_base_had_may_stay_and_no_more_of_it() {
    for (path, top, body) in [
        ("pkg/a.py", "", "def NAME(): pass\n"),
        ("src/a.js", "", "function NAME() {}\n"),
        ("src/a.ts", "", "function NAME(): void {}\n"),
        ("src/a.rs", "", "fn NAME() {}\n"),
        ("a.go", "package a\n", "func NAME() {}\n"),
    ] {
        let of = |names: &[&str]| {
            format!("{top}{}", names.iter().map(|name| body.replace("NAME", name)).collect::<String>())
        };
        let mut world = World::new();
        world.commit("before", &[(path, &of(&["close"]))]);
        world.base_here();
        for (names, due) in
            [(&["close"][..], PASS), (&["close", "open"], FAIL), (&["open"], FAIL), (&["close"], PASS)]
        {
            world.commit("now", &[(path, &of(names))]);
            assert_eq!(world.check("no-empty-bodies").report.verdict, due, "{path}: {names:?}");
        }
        let elsewhere = path.replace("a.", "b.");
        world.commit("copied", &[(&elsewhere, &of(&["close"]))]);
        assert_eq!(world.check("no-empty-bodies").report.verdict, FAIL, "{elsewhere}");
    }
}

#[test]
fn row_72_stubs_mocks_and_commented_code_are_a_warning_unless_it_is_strict() {
    for (path, text) in [
        ("pkg/a.py", "def f(): return {}\n"),
        ("a.py", "def f(): return {}\n"),
        ("src/a.js", "export function f() { return null; }\n"),
        ("src/a.rs", "pub fn f() -> Option<u8> { None }\n"),
        ("a.go", "package a\nfunc F() error { return nil }\n"),
    ] {
        let outcome = check("stub-returns", &[], &[(path, text)]);
        assert_eq!((outcome.report.verdict, outcome.exit_code()), (WARN, 0), "{path}");
        let outcome = check("stub-returns", &["--strict"], &[(path, text)]);
        assert_eq!((outcome.report.verdict, outcome.exit_code()), (FAIL, 1), "{path}");
    }
    for (path, text, due) in [
        ("pkg/a.py", "from unittest.mock import patch\n", WARN),
        ("pkg/a.py", "from unittest import mock\n", WARN),
        ("pkg/a.py", "import mockingbird\n", PASS),
        ("src/a.ts", "import sinon from 'sinon';\n", WARN),
        ("src/a.rs", "use mockall::automock;\n", WARN),
        (
            "src/a.rs",
            "#[cfg(test)]\nmod tests {\n    use mockall::automock;\n    #[test]\n    fn a() {}\n}\n",
            PASS,
        ),
        ("a.go", "package a\nimport \"github.com/stretchr/testify/mock\"\n", WARN),
        ("a.go", "package a\nimport \"os\"\n", PASS),
    ] {
        assert_eq!(check("mock-in-impl", &[], &[(path, text)]).report.verdict, due, "{text}");
    }
    let tests = [("pkg/a.py", "x = 1\n"), ("tests/test_a.py", "from unittest import mock\n")];
    assert_eq!(check("mock-in-impl", &[], &tests).report.verdict, PASS);
}

#[test]
fn row_72_comments_that_are_code_are_told_from_prose() {
    for (path, text, due) in [
        ("a.py", "x = 1\n# def f(a):\n#     if a:\n#         g(a)\n#     return a\n#\n# y = f(2)\n", WARN),
        (
            "a.py",
            "# Copyright 2026 The Authors.\n# Licensed under the MIT License (the \"License\");\n# you may not use this file except in compliance.\n# See the file LICENSE.\nx = 1\n",
            PASS,
        ),
        (
            "a.py",
            "# First it reads the file, then it looks\n# at each line of it; if there is none,\n# the answer is empty. For the rest see\n# the documentation of the module.\nx = 1\n",
            PASS,
        ),
        ("src/a.js", "// const a = f(1);\n// if (a) {\n//   g(a);\n// }\nlet b;\n", WARN),
        ("src/a.rs", "// let a = f(1);\n// if a {\n//     g(a);\n// }\nfn b() { c(); }\n", WARN),
        ("src/a.rs", "/// ```\n/// let a = f(1);\n/// g(a);\n/// h(a);\n/// ```\nfn b() { c(); }\n", PASS),
        ("a.go", "package a\n\n// a := f(1)\n// if a {\n// \tg(a)\n// }\nvar b = 1\n", WARN),
        ("a.go", "package a\n\n// a := f(1)\n// g(a)\nvar b = 1\n", PASS),
    ] {
        assert_eq!(check("commented-code", &[], &[(path, text)]).report.verdict, due, "{path} {text}");
    }
}

#[test]
fn a_check_that_finds_nothing_to_look_at_never_passes_silently() {
    for name in ["three-class", "no-empty-bodies", "stub-returns", "commented-code", "mock-in-impl"] {
        let outcome = check(name, &[], &[("README.md", "x\n")]);
        assert_eq!(outcome.report.verdict, FAIL, "{name}");
        assert!(outcome.report.hint.unwrap().contains("checks.layout"), "{name}");
    }
}

#[test]
fn work_that_is_not_committed_changes_no_answer() {
    let world = World::new();
    world.commit("files", &[("pkg/a.py", "def f(): return g()\n")]);
    std::fs::write(world.work.join("pkg/b.py"), "def f(): pass\n").unwrap();
    std::fs::write(world.work.join("pkg/a.py"), "def f(): pass\n").unwrap();
    assert_eq!(world.check("no-empty-bodies").report.verdict, PASS);
}

#[test]
fn the_operator_says_where_sources_are_and_that_there_may_be_none() {
    let mut world = World::new();
    assert_eq!(world.check("no-empty-bodies").report.verdict, Verdict::Fail);
    world.accept_config("checks: {allow_empty: true}\n");
    assert_eq!(world.check("no-empty-bodies").report.verdict, Verdict::Skip);
    world.commit("code", &[("src/a.py", "def f():\n    pass\n"), ("scripts/b.py", "x = 1\n")]);
    assert_eq!(world.check("no-empty-bodies").report.verdict, Verdict::Fail);
    world.accept_config("checks: {layout: [scripts]}\n");
    assert_eq!(world.check("no-empty-bodies").report.verdict, Verdict::Pass);
}
