//! `no-skipped-tests`: what leaves tests out, in their code and in the configuration of their runners.

use super::World;
use super::suite::{ERROR, FAIL, PASS, TEST_PY, exit, project, pytest, python, run, run_with};
use crate::Outcome;

/// The answer about skips, where the runner reports these.
fn skips(world: &World, told: &[&str]) -> Outcome {
    run(world, "no-skipped-tests", vec![pytest(told), pytest(&["test_a"])])
}

#[test]
fn row_70_each_way_to_leave_a_test_out_is_found_and_what_only_looks_like_it_is_not() {
    for (path, text, due) in [
        ("tests/test_b.py", "@pytest.mark.skip\ndef test_b(): pass\n", FAIL),
        ("tests/test_b.py", "@pytest.mark.xfail\ndef test_b(): pass\n", FAIL),
        ("tests/test_b.py", "pytestmark = [pytest.mark.skip]\ndef test_b(): pass\n", FAIL),
        (
            "tests/test_b.py",
            "class B(TestCase):\n    @unittest.skip('x')\n    def test_b(self): pass\n",
            FAIL,
        ),
        ("tests/test_b.py", "def test_b():\n    pytest.skip()\n", FAIL),
        ("b.test.js", "xit('b', () => {});\n", FAIL),
        ("b.test.js", "it.only('b', () => {});\n", FAIL),
        ("b.test.js", "describe.only('b', () => {});\n", FAIL),
        ("b.test.js", "test.concurrent.only('b', () => {});\n", FAIL),
        ("b.test.js", "test.only.each([1])('b', () => {});\n", FAIL),
        ("b.test.js", "fit('b', () => {});\n", FAIL),
        ("b.test.js", "test('b', { only: true }, () => {});\n", FAIL),
        ("b.test.js", "test('b', { only: false }, () => {});\n", PASS),
        ("b.spec.ts", "test.describe.only('b', () => {});\n", FAIL),
        ("tests/b.rs", "#[test]\n#[ignore]\nfn b() {}\n", FAIL),
        ("b_test.go", "package b\nfunc TestB(t *testing.T) { t.Skip() }\n", FAIL),
        ("b_test.go", "//go:build slow\n\npackage b\nfunc TestB(t *testing.T) { f() }\n", FAIL),
        ("tests/b.rs", "#![cfg(feature = \"slow\")]\n#[test]\nfn b() {}\n", FAIL),
        (
            "src/b.rs",
            "#[cfg(all(test, feature = \"slow\"))]\nmod tests {\n    #[test]\n    fn b() {}\n}\n",
            FAIL,
        ),
        ("src/b.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n", PASS),
        ("tests/test_b.py", "def test_b():\n    sys.exit(0)\n", PASS),
        ("b.test.js", "process.exit(0);\nmaxit('b', () => {});\n", PASS),
        ("src/b.py", "@pytest.mark.skip\ndef b(): pass\n", PASS),
    ] {
        let mut world = python();
        world.base_here();
        world.commit("more", &[(path, text)]);
        let report = run_with(&world, "no-skipped-tests", &["--no-runner"], vec![pytest(&["test_a"])]).report;
        assert_eq!(report.verdict, due, "{text}: {report:?}");
    }
    let mut world = python();
    world.base_here();
    assert_eq!(skips(&world, &["-test_a"]).report.verdict, FAIL, "only the runner tells of it");
    assert_eq!(skips(&world, &["test_a"]).report.verdict, PASS);
    assert_eq!(run(&world, "no-skipped-tests", vec![exit(0, None, b"")]).report.verdict, ERROR);
}

/// Where, what stood there at the base, what stands there now, and what is told of it behind the path.
const CONFIGURED: &[(&str, &str, &str, &str)] = &[
    (
        "pytest.ini",
        "",
        "[pytest]\naddopts = -q\n  -k 'not slow' --ignore=tests/slow\n",
        "2 addopts: `-k not slow` was not there at the base; pytest.ini:3 addopts: `--ignore=tests/slow`",
    ),
    ("pytest.ini", "[pytest]\naddopts = -k x\n", "[pytest]\naddopts = -q -k x\n", ""),
    ("pytest.ini", "", "[other]\naddopts = -k x\n", ""),
    ("tox.ini", "", "[pytest]\nnorecursedirs = slow\n", "2 norecursedirs: `slow`"),
    (
        "setup.cfg",
        "",
        "[tool:pytest]\naddopts = --deselect tests/test_a.py::test_a\n",
        "2 addopts: `--deselect tests/test_a.py::test_a`",
    ),
    (
        "pyproject.toml",
        "",
        "[tool.pytest.ini_options]\naddopts = [\"-m\", \"not slow\"]\n",
        "2 addopts: `-m not slow`",
    ),
    ("pyproject.toml", "", "[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n", ""),
    (
        "pyproject.toml",
        "",
        "[tool.pytest.ini_options]\ntestpaths = [\"tests/fast\"]\n",
        "2 testpaths: nothing but `tests/fast` is chosen",
    ),
    (
        "pyproject.toml",
        "[tool.pytest.ini_options]\npython_files = [\"a.py\", \"b.py\"]\n",
        "[tool.pytest.ini_options]\npython_files = [\"b.py\"]\n",
        "2 python_files: `a.py` was chosen at the base",
    ),
    ("tests/conftest.py", "", "import os\ncollect_ignore = ['test_a.py']\n", "2 collect_ignore: `test_a.py`"),
    (
        "tests/conftest.py",
        "collect_ignore = []\n",
        "collect_ignore = []\nif slow:\n    collect_ignore.append('test_a.py')\n",
        "3 collect_ignore: `test_a.py`",
    ),
    (
        "package.json",
        "",
        "{\n \"jest\": {\n  \"testPathIgnorePatterns\": [\"/node_modules/\", \"/{node_modules,a.test}/\"]}}\n",
        "3 testPathIgnorePatterns: `/{node_modules,a.test}/` was not there at the base",
    ),
    (
        "package.json",
        "{\"scripts\": {\"test\": \"vitest run\"}}",
        "{\"scripts\": {\"test\": \"vitest run --exclude a.test.js\"}}",
        "1 scripts.test: `--exclude a.test.js`",
    ),
    ("package.json", "", "{\"scripts\": {\"test\": \"make -k test\"}}", ""),
    (
        "package.json",
        "{\"scripts\": {\"test\": \"node --test\"}}",
        "{\"scripts\": {\"test\": \"node --test tests/b.test.js\"}}",
        "1 scripts.test paths: nothing but `tests/b.test.js` is chosen, as it was not at the base",
    ),
    (
        "package.json",
        "{\"scripts\": {\"test\": \"vitest run\"}}",
        "{\"scripts\": {\"test\": \"eslint . && vitest run --config ./vitest.config.ts\"}}",
        "",
    ),
    (
        "jest.config.js",
        "",
        "module.exports = {\n  testMatch: ['**/b.test.js'],\n};\n",
        "2 testMatch: nothing but `**/b.test.js`",
    ),
    (
        "vitest.config.ts",
        "",
        "export default defineConfig({ test: {\n  coverage: { exclude: ['src/x'] },\n  exclude: [...configDefaults.exclude, 'a.test.js'],\n} });\n",
        "3 exclude: `a.test.js`",
    ),
    (".mocharc.yml", "", "ignore:\n  - a.test.js\n", "2 ignore: `a.test.js`"),
    (
        ".mocharc.json",
        "",
        "{\"grep\": \"fast\", \"invert\": true}",
        "1 grep: `fast` was not there at the base; .mocharc.json:1 invert",
    ),
    ("playwright.config.ts", "", "export default { testIgnore: /slow/ };\n", "1 testIgnore: `/slow/`"),
    (
        "Cargo.toml",
        "[package]\nname = \"a\"\n",
        "[package]\nname = \"a\"\nautotests = false\n[lib]\ndoctest = false\n[[test]]\nname = \"b\"\ntest = false\n",
        "3 package: `autotests = false` was not there at the base; Cargo.toml:5 lib: `doctest = false` was not there at the base; Cargo.toml:8 test.b: `test = false`",
    ),
    (
        "Cargo.toml",
        "[[test]]\nname = \"b\"\n",
        "[[test]]\nname = \"b\"\nrequired-features = [\"slow\"]\n",
        "3 test.b: `required-features`",
    ),
    (
        "Cargo.toml",
        "[workspace]\nmembers = [\"a\"]\n",
        "[workspace]\nmembers = [\"a\"]\nexclude = [\"b\"]\n",
        "3 workspace.exclude: `b`",
    ),
    ("node_modules/x/jest.config.js", "", "module.exports = { testMatch: ['x'] };\n", ""),
    ("pyproject.toml", "", "[tool\n", "0 "),
];

#[test]
fn row_70_what_the_configuration_of_a_runner_leaves_out_is_told_where_the_base_did_not() {
    let says = |files: &[(&str, &str)], now: &[(&str, &str)]| {
        let mut world = project(&[TEST_PY, ("a.test.js", "test('a', () => {});\n")]);
        world.commit("more", files);
        world.base_here();
        world.commit("settings", now);
        let report = run_with(&world, "no-skipped-tests", &["--no-runner"], vec![pytest(&["test_a"])]).report;
        let found =
            report.findings.iter().map(|f| format!("{}:{} {}", f.path, f.line.unwrap_or(0), f.message));
        assert_eq!(report.verdict, if report.findings.is_empty() { PASS } else { FAIL });
        found.collect::<Vec<_>>().join("; ")
    };
    for (path, before, now, due) in CONFIGURED.iter().copied() {
        let told = says(&[(path, before)], &[(path, now)]);
        let due = if due.is_empty() { String::new() } else { format!("{path}:{due}") };
        assert!(told.starts_with(&due) && told.is_empty() == due.is_empty(), "{now}: {told}");
        assert!(!due.is_empty() || told.is_empty(), "{now}: {told}");
    }
    // A file that only moves its settings leaves nothing more out.
    let settings = "[pytest]\naddopts = -k x\n";
    assert_eq!(says(&[("pytest.ini", settings)], &[("pytest.ini", ""), ("tox.ini", settings)]), "");
}

#[test]
fn row_71_a_setting_that_leaves_tests_out_needs_a_reason_that_another_peer_reviewed() {
    let mut world = python();
    world.base_here();
    world.start_run(Vec::new());
    let path = "pytest.ini";
    let says = |world: &World| skips(world, &["test_a"]).report.verdict;
    world.turn_with("claude", "s", &[(path, "[pytest]\n# SKIP-REASON: no display there\naddopts = -k x\n")]);
    assert_eq!(says(&world), FAIL, "a reason alone");
    let blob = world.git(&["rev-parse", &format!("HEAD:{path}")]);
    let review = format!("review\n\nPeers-Review: {path}@{}#L2-3\n", blob.trim());
    world.turn("claude", &review);
    assert_eq!(says(&world), FAIL, "a review by its author");
    world.turn("codex", &review);
    assert_eq!(says(&world), PASS);
}

#[test]
fn row_71_a_skip_of_the_base_stays_allowed_as_long_as_its_test_is_the_same() {
    let skip = |above: &str, name: &str, body: &str| {
        format!("{above}@pytest.mark.skip\ndef {name}():\n    assert {body}\n")
    };
    let path = "tests/test_b.py";
    let mut world = project(&[TEST_PY, (path, &skip("", "test_b", "f() == 1"))]);
    world.base_here();
    world.start_run(Vec::new());
    let says = |world: &World| skips(world, &["test_a", "-test_b"]).report.verdict;
    assert_eq!(says(&world), PASS, "it was there");
    world.turn_with("claude", "shift", &[(path, &skip("import pytest\n\n\n", "test_b", "f() == 1"))]);
    assert_eq!(says(&world), PASS, "its lines moved");
    world.turn_with("claude", "edit", &[(path, &skip("", "test_b", "f() == 2"))]);
    assert_eq!(says(&world), FAIL, "another body");
    let more = skip("", "test_b", "f() == 1") + &skip("", "test_c", "g() == 1");
    world.turn_with("claude", "add", &[(path, &more)]);
    assert_eq!(says(&world), FAIL, "a new one");

    let reasoned =
        skip("", "test_b", "f() == 1") + &skip("# SKIP-REASON: no display there\n", "test_c", "g() == 1");
    world.turn_with("claude", "reason", &[(path, &reasoned)]);
    assert_eq!(says(&world), FAIL, "a reason alone");
    let blob = world.git(&["rev-parse", &format!("HEAD:{path}")]);
    let review = format!("review\n\nPeers-Review: {path}@{}#L4-5\n", blob.trim());
    world.turn("claude", &review);
    assert_eq!(says(&world), FAIL, "a review by its author");
    world.turn("codex", &review);
    assert_eq!(says(&world), PASS, "a reason and a review");
}

#[test]
fn row_71_a_skip_of_the_base_stays_allowed_in_each_language() {
    for (path, top, skip) in [
        ("b.test.js", "", "it.skip('NAME', () => { expect(BODY); });\n"),
        ("b.test.ts", "", "it.skip('NAME', (): void => { expect(BODY); });\n"),
        ("tests/b.rs", "", "#[test]\n#[ignore = \"slow\"]\nfn NAME() { assert!(BODY); }\n"),
        ("b_test.go", "package b\n", "func TestNAME(t *testing.T) { t.Skip(); f(BODY) }\n"),
    ] {
        let of = |name: &str, body: &str| skip.replace("NAME", name).replace("BODY", body);
        let mut world = python();
        world.commit("before", &[(path, &format!("{top}{}", of("B", "1")))]);
        world.base_here();
        for (text, due, why) in [
            (of("B", "1"), PASS, "it was there"),
            (format!("\n\n{}", of("B", "1")), PASS, "its lines moved"),
            (of("B", "2"), FAIL, "another body"),
            (of("B", "1") + &of("C", "1"), FAIL, "a new one"),
        ] {
            world.commit("now", &[(path, &format!("{top}{text}"))]);
            let flags = ["--no-runner"];
            let told = run_with(&world, "no-skipped-tests", &flags, vec![pytest(&["test_a"])]).report;
            assert_eq!(told.verdict, due, "{path}: {why}");
        }
    }
}
