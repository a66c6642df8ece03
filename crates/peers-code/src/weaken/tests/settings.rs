//! Files that configure gates.

use super::found;

/// Whether a change of a configuration file lets something through.
fn loosens(path: &'static str, removed: &[&str], added: &[&str]) -> bool {
    let text = |lines: &[&str]| -> &'static str { lines.join("\n").leak() };
    !found(path, text(removed), text(added)).is_empty()
}

fn new(path: &'static str, lines: &[&str]) -> bool {
    let file = super::changed(path, None, Some(&lines.join("\n")));
    !super::weaker(&[file]).found.is_empty()
}

#[test]
fn words_that_let_things_through_are_seen() {
    for (path, added) in [
        ("pyproject.toml", "ignore = [\"E501\"]"),
        ("pyproject.toml", "\"extend-ignore\": [1]"),
        ("setup.cfg", "per-file-ignores = x"),
        ("setup.cfg", "omit = tests/*"),
        (".github/workflows/ci.yml", "        continue-on-error: true"),
        (".github/workflows/ci.yml", "    if: ${{ false }}"),
        ("Makefile", "test: ; pytest || true"),
        ("Cargo.toml", "unwrap_used = \"allow\""),
        ("eslint.config.js", "\"no-undef\": \"off\""),
        ("pyproject.toml", "addopts = -q -k fast "),
        (".npmrc", "script-shell=/bin/true"),
        (".npmrc", "ignore-scripts=true"),
        ("rust-toolchain.toml", "path = \"tools\""),
        ("rust-toolchain", "toolchain = { path = \"tools\" }"),
        ("go.mod", "ignore ./internal"),
        ("vitest.config.ts", "exclude: ['src/hard/**'],"),
        ("vite.config.ts", "    exclude: [...configDefaults.exclude, 'src/hard.test.ts'],"),
        ("jest.config.js", "testPathIgnorePatterns: ['hard'],"),
        ("package.json", "\"jest\": {\"passWithNoTests\": true}"),
        ("package.json", "\"jest\": \"file:./fake\""),
        ("pom.xml", "<skipTests>true</skipTests>"),
        ("CMakeLists.txt", "set_tests_properties(a PROPERTIES WILL_FAIL TRUE)"),
    ] {
        assert!(loosens(path, &[], &[added]), "{path}: {added}");
    }
    for (path, added) in [
        ("package.json", "dependencies = [\"x\"]"),
        ("package.json", "name = \"ignored\""),
        ("package.json", "\"test\": \"jest\""),
        ("pyproject.toml", "addopts = -q"),
        ("vite.config.ts", "exclude: ['**/node_modules/**', 'dist'],"),
        (".npmrc", "registry=https://example.invalid"),
        ("rust-toolchain.toml", "channel = \"1.95\""),
        ("Makefile", "# pytest || true"),
    ] {
        assert!(!loosens(path, &[], &[added]), "{path}: {added}");
    }
}

#[test]
fn patterns_over_several_lines_are_seen() {
    assert!(loosens("vitest.config.ts", &[], &["exclude: [", "  'src/hard/**',", "],"]));
    assert!(!loosens("vite.config.ts", &[], &["exclude: [", "  '**/dist/**',", "],", "globals: 'x',"]));
}

#[test]
fn taking_a_demand_away_is_seen() {
    for (path, removed) in [
        ("Cargo.toml", "unwrap_used = \"deny\""),
        ("package.json", "  \"test\": \"jest --ci\","),
        ("pyproject.toml", "strict = true"),
        ("pyproject.toml", "addopts = --strict-markers"),
        ("CMakeLists.txt", "enable_testing()"),
    ] {
        assert!(loosens(path, &[removed], &[]), "{removed}");
        assert!(!loosens(path, &[removed], &[removed]), "a moved line is no change");
    }
}

#[test]
fn recipes_that_test_nothing_any_more_are_seen() {
    for (removed, added) in [
        ("\tpytest", "\ttrue"),
        ("\tpytest", "\t-pytest"),
        ("\tpytest", "\t@-pytest"),
        ("\tpytest", "\tpytest || true"),
        ("\tpytest", "\tpytest || :"),
        ("\tpytest", "\tpytest; true"),
        ("\tpytest", "\t@:"),
        ("\tpytest", "\t@echo ok"),
        ("\tpytest", "\tpytest -k easy"),
        ("\tcargo test --workspace", "\tcargo test"),
        ("\tcargo test", "\tcargo test --no-run"),
        ("\tgo test ./...", "\tgo test ./easy"),
        ("\t./run.sh", "\t-./run.sh"),
        ("\t./run.sh", "\ttrue"),
        ("\tpytest", ""),
        ("", "test: ; @true"),
        ("", "test:;"),
        ("", "test: @:"),
        ("", ".IGNORE:"),
        ("", "MAKEFLAGS += -i"),
        ("", "SHELL := /bin/true"),
        (".PHONY: test", ""),
    ] {
        assert!(loosens("Makefile", &[removed], &[added]), "{removed:?} -> {added:?}");
    }
}

#[test]
fn recipes_that_test_as_much_or_more_are_silent() {
    for (removed, added) in [
        ("\tpytest", "\tpytest -q"),
        ("\tpytest", "\tpython -m pytest"),
        ("\tcargo test", "\tcargo test --workspace"),
        ("", "\t@echo done"),
        ("", "\t-rm -rf build"),
        ("", "SHELL := /bin/bash"),
        ("", "test: build"),
        ("\tpip install pytest", ""),
        (".PHONY: test", ".PHONY: test build"),
    ] {
        assert!(!loosens("Makefile", &[removed], &[added]), "{removed:?} -> {added:?}");
    }
}

#[test]
fn scripts_of_a_package_are_read_wherever_they_stand() {
    for (removed, added) in [
        ("{\"scripts\":{\"test\":\"jest\"}}", "{\"scripts\":{\"test\":\"true\"}}"),
        ("  \"test\": \"jest\",", "  \"test\": \"jest || true\","),
        ("  \"test\": \"jest\",", "  \"test\": \"jest --passWithNoTests\","),
        ("  \"test\": \"jest\",", "  \"test\": \"jest; exit 0\","),
        ("  \"test\": \"jest\",", "  \"test\": \"exit 0\","),
        ("  \"test\": \"jest\",", "  \"test\": \"jest | cat\","),
        ("  \"test\": \"jest\",", "  \"test\": \"jest -t easy\","),
        ("  \"test\": \"jest\",", "  \"test\": \"echo jest\","),
        ("  \"test\": \"jest\",", "  \"test\": \"jest; echo ok\","),
        ("  \"test:unit\": \"jest\",", ""),
        ("  \"lint\": \"eslint . --max-warnings 0\",", "  \"lint\": \"eslint .\","),
    ] {
        assert!(loosens("package.json", &[removed], &[added]), "{removed} -> {added}");
    }
    for (removed, added) in [
        ("{\"scripts\":{\"test\":\"jest\"}}", "{\"scripts\":{\"test\":\"jest\",\"build\":\"tsc\"}}"),
        ("  \"test\": \"jest\",", "  \"test\": \"jest --ci\","),
        ("  \"test\": \"echo \\\"Error: no test specified\\\" && exit 1\"", "  \"test\": \"vitest run\""),
        ("  \"version\": \"1\",", "  \"version\": \"2\","),
        ("", "  \"test\": \"node --test\","),
    ] {
        assert!(!loosens("package.json", &[removed], &[added]), "{removed} -> {added}");
    }
}

#[test]
fn pipelines_and_scripts_that_call_less_are_seen() {
    for (path, removed, added) in [
        (".github/workflows/ci.yml", "      - run: cargo test --all", ""),
        (".github/workflows/ci.yml", "      - run: cargo test --all", "      - run: cargo test"),
        ("run_tests.sh", "pytest", "echo ok"),
        ("run_tests.sh", "set -e", ""),
        ("run_tests.sh", "pytest", "exit 0; pytest"),
        ("run_tests.sh", "pytest", "pytest &"),
        ("run_tests.sh", "pytest tests/unit tests/e2e", "pytest tests/unit"),
        ("run_tests.sh", "pytest", "make --version"),
        ("tox.ini", "commands = pytest", "commands = true"),
        ("noxfile.py", "    session.run(\"pytest\")", ""),
    ] {
        assert!(loosens(path, &[removed], &[added]), "{path}: {removed} -> {added}");
    }
    for (path, removed, added) in [
        (".github/workflows/ci.yml", "      - name: Run pytest", ""),
        (".github/workflows/ci.yml", "      - run: pip install pytest", ""),
        (".github/workflows/ci.yml", "      - run: pytest", "      - run: pytest -q"),
        ("run_tests.sh", "pytest", "python -m pytest"),
        ("run_tests.sh", "poetry run pytest -x", "uv run pytest"),
        ("run_tests.sh", "pytest -k easy", "pytest"),
        ("run_tests.sh", "set -e", "set -euo pipefail"),
        ("tox.ini", "deps = pytest", "deps = pytest>8"),
    ] {
        assert!(!loosens(path, &[removed], &[added]), "{path}: {removed} -> {added}");
    }
}

#[test]
fn tests_that_are_switched_off_are_seen() {
    for added in [
        &["test = false"][..],
        &["[lib]", "test = false"],
        &["autotests = false"],
        &["harness = false"],
        &["doctest = false"],
        &["[[test]]", "name = \"a\"", "harness = false"],
        &["[[test]]", "required-features = [\"x\"]"],
        &["lib = { test = false }"],
    ] {
        assert!(loosens("Cargo.toml", &[], added), "{added:?}");
    }
    assert!(loosens("Cargo.toml", &["members = [\"a\", \"b\"]"], &["members = [\"a\"]"]));
}

#[test]
fn other_changes_of_the_manifest_are_silent() {
    for added in [
        &["[[bench]]", "name = \"speed\"", "harness = false"][..],
        &["[[bin]]", "required-features = [\"x\"]"],
        &["test = true"],
        &["latest = false"],
        &["serde = \"1\""],
        &["[[test]]", "name = \"b\""],
    ] {
        assert!(!loosens("Cargo.toml", &[], added), "{added:?}");
    }
    assert!(!loosens("Cargo.toml", &["members = [\"a\"]"], &["members = [\"a\", \"b\"]"]));
    assert!(!loosens("Cargo.toml", &["members = [\"a\"]"], &["members = [", "    \"a\",", "]"]));
}

#[test]
fn another_runner_or_other_flags_are_seen() {
    for added in [
        "runner = \"true\"",
        "rustflags = [\"--cfg\", \"x\"]",
        "build.rustflags = \"-Awarnings\"",
        "rustc-wrapper = \"x\"",
    ] {
        assert!(loosens(".cargo/config.toml", &[], &[added]), "{added}");
    }
    assert!(loosens(".cargo/config.toml", &["rustflags = [\"-Dwarnings\"]"], &[]));
    assert!(!loosens(".cargo/config.toml", &[], &["[alias]", "xtask = \"run -p xtask --\""]));
}

#[test]
fn collecting_less_is_seen() {
    for (removed, added) in [
        (&[][..], &["python_files = \"check_*.py\""][..]),
        (&[], &["python_functions = [\"check_\"]"]),
        (&[], &["python_classes = Check"]),
        (&["testpaths = [\"tests\", \"e2e\"]"], &["testpaths = [\"tests\"]"]),
        (&[], &["testpaths = [\"tests/easy\"]"]),
        (
            &["testpaths = [", "    \"tests\",", "    \"e2e\",", "]"],
            &["testpaths = [", "    \"tests\",", "]"],
        ),
        (&["addopts = \"-q\""], &["addopts = \"-q -k 'not hard'\""]),
        (&[], &["addopts = [\"-m\", \"not slow\"]"]),
        (&[], &["addopts = \"-p no:cacheprovider\""]),
        (&[], &["addopts = [", "    \"--ignore=tests/hard\",", "]"]),
        (&[], &["    \"--deselect=tests/a.py::test_b\","]),
        (&["addopts = \"--strict-markers -q\""], &["addopts = \"-q\""]),
        (&["addopts = \"-q\""], &[]),
    ] {
        assert!(loosens("pyproject.toml", removed, added), "{removed:?} -> {added:?}");
    }
}

#[test]
fn collecting_as_much_or_more_is_silent() {
    for (removed, added) in [
        (&[][..], &["testpaths = [\"tests\"]"][..]),
        (&[], &["testpaths = tests"]),
        (&["testpaths = [\"tests\"]"], &["testpaths = [\"tests\", \"e2e\"]"]),
        (&["testpaths = [\"tests\"]"], &[]),
        (&[], &["python_files = \"test_*.py *_test.py\""]),
        (&[], &["addopts = \"-q --strict-markers\""]),
        (&["addopts = \"-q\""], &["addopts = \"-q --strict-markers\""]),
        (&["addopts = \"-m 'not slow'\""], &["addopts = \"-m 'not slow' --strict-markers\""]),
        (&["testpaths = [\"tests\"]"], &["testpaths = [", "    \"tests\",", "    \"e2e\",", "]"]),
        (&["addopts = \"--cov-fail-under=80\""], &["addopts = \"--cov-fail-under=90\""]),
        (&["    \"requests\","], &["    \"httpx\","]),
        (&["version = \"1\""], &["version = \"2\""]),
    ] {
        assert!(!loosens("pyproject.toml", removed, added), "{removed:?} -> {added:?}");
    }
}

#[test]
fn a_lowered_demand_and_a_raised_allowance_are_seen() {
    for (removed, added, weaker) in [
        ("fail_under = 90", "fail_under = 80", true),
        ("fail_under = 80", "fail_under = 90", false),
        ("fail_under = 80", "fail_under = 80 ", false),
        ("fail_under = 80", "", true),
        ("", "fail_under = 80", false),
        ("addopts = --cov-fail-under=90", "addopts = --cov-fail-under 85", true),
        ("  \"branches\": 90.5,", "  \"branches\": 90,", true),
        ("max-warnings = 0", "max-warnings = 5", true),
        ("max-warnings = 5", "max-warnings = 0", false),
        ("port = 90", "port = 80", false),
    ] {
        assert_eq!(loosens("pyproject.toml", &[removed], &[added]), weaker, "{removed} -> {added}");
    }
}

#[test]
fn what_stands_in_for_a_runner_is_seen() {
    for path in ["pytest.py", "unittest.py", "pytest/__main__.py", "_pytest/__init__.py", "test", "check"] {
        assert!(new(path, &["raise SystemExit(0)"]) && new(path, &[]), "{path}");
    }
    for path in ["sitecustomize.py", "src/usercustomize.py", "evil.pth"] {
        assert!(new(path, &["import os"]), "{path}");
    }
    for path in ["src/pytest.py", "unittest/helpers.py", "docs/test", "pytest_extra.py", "tests.txt"] {
        assert!(!new(path, &["x = 1"]), "{path}");
    }
}

#[test]
fn a_file_that_is_read_instead_of_another_is_seen() {
    for (path, line) in [
        ("GNUmakefile", "test: easy"),
        ("makefile", "all:"),
        ("pytest.ini", "[pytest]"),
        ("pytest.ini", ""),
        ("internal/go.mod", "module x"),
    ] {
        assert!(new(path, &[line]), "{path}");
    }
    let make = "test:\n\tpytest\n";
    let renamed =
        [super::changed("makefile", Some(make), None), super::changed("GNUmakefile", None, Some(make))];
    assert_eq!(super::weaker(&renamed).found, []);
    let module = |path, text| super::changed(path, None, Some(text));
    let tools = [module("tools/go.mod", "module tools\n"), module("tools/main.go", "package main\n")];
    assert_eq!(super::weaker(&tools).found, []);
}

#[test]
fn edited_configuration_of_a_gate_is_seen_and_setting_one_up_is_not() {
    assert!(loosens("ruff.toml", &["a = 1"], &["b = 1"]));
    assert!(!loosens("ruff.toml", &["# old", "a = 1"], &["# new", "a = 1"]), "a comment");
    assert!(new("pytest.ini", &["addopts = --ignore=tests/hard"]));
    let gone = super::changed("clippy.toml", Some("x = 1\n"), None);
    assert_eq!(super::weaker(&[gone]).found.len(), 1);
    for (path, lines) in [
        ("eslint.config.js", &["export default [];"][..]),
        ("jest.config.js", &["module.exports = { testEnvironment: 'node' };"]),
        ("vitest.config.ts", &["exclude: ['**/node_modules/**'],"]),
        ("pytest.ini", &["[pytest]", "testpaths = tests", "addopts = --strict-markers"]),
        ("Makefile", &["test:", "\tpytest"]),
        (".cargo/config.toml", &["[alias]", "xtask = \"run -p xtask --\""]),
        ("package.json", &["{\"scripts\": {\"test\": \"jest\"}}"]),
        (".npmrc", &["save-exact=true"]),
        ("clippy.toml", &["msrv = \"1.80\""]),
    ] {
        assert!(!new(path, lines), "{path}");
    }
}

#[test]
fn a_lowered_number_is_named_with_its_key() {
    let seen = found(".coveragerc", "fail_under = 90\n", "fail_under = 70\n");
    assert_eq!(
        seen.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["`fail_under` from 90 to 70 in .coveragerc"]
    );
    let seen = found("pyproject.toml", "fail_under = 90\n", "x = 1\n");
    assert_eq!(seen[0].to_string(), "`fail_under` 90 removed from pyproject.toml");
}

#[test]
fn files_are_known_by_name() {
    for path in [
        "a/clippy.toml",
        ".eslintrc.json",
        ".eslintrc",
        "tsconfig.build.json",
        "vitest.config.mts",
        "sub/go.mod",
        "crates/x/.cargo/config",
        "a/Makefile",
        "run_tests.sh",
        "scripts/check",
        "ci/test.sh",
        ".github/workflows/a.yml",
    ] {
        assert!(super::super::is_measured(path), "{path}");
    }
    for path in
        ["config.toml", "src/jest.configuration.ts", "tsconfig.ts", "src/check", "src/latest.sh", "a.md"]
    {
        assert!(!super::super::is_measured(path), "{path}");
    }
}
