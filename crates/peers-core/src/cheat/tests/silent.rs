//! Changes that weaken nothing and must not be charged.

use super::*;

fn silent(what: &str, files: Vec<FileDiff>) {
    assert_eq!(weakenings(&turn(files)), [], "{what}");
}

const PY: &str = "import m\n\ndef test_a():\n    x = m.f()\n    assert x == 1\n";
const RS: &str = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() {\n        assert_eq!(1, f());\n    }\n}\n";

#[test]
fn new_tests_are_no_weakening() {
    silent("python", edited("tests/test_a.py", PY, &format!("{PY}\ndef test_b():\n    assert m.g()\n")));
    silent("a file", rewritten("tests/test_b.py", FileStatus::Added, "", PY));
    silent("rust", edited("src/a.rs", "fn f() {}\n", RS));
    silent("a file of rust", rewritten("src/a.rs", FileStatus::Added, "", RS));
    let conditional = RS.replace("#[cfg(test)]", "#[cfg(all(test, unix))]");
    silent("rust under a condition", edited("src/a.rs", "fn f() {}\n", &conditional));
    silent(
        "rust on our systems",
        edited("src/a.rs", RS, &RS.replace("#[cfg(test)]", "#[cfg(all(test, unix))]")),
    );
    let unix = RS.replace(
        "    #[test]",
        "    #[cfg(unix)]\n    #[test]\n    fn b() {\n        assert!(f());\n    }\n    #[test]",
    );
    silent("one test under a condition", edited("src/a.rs", RS, &unix));
    let module = "mod a;\n#[cfg(test)]\nmod tests;\n";
    silent("a module", edited("src/b.rs", "mod a;\n", module));
    let go = "//go:build linux\n\npackage a\n\nfunc TestA(t *testing.T) {\n\tt.Skip()\n}\n";
    silent("go, for one system", rewritten("a_linux_test.go", FileStatus::Added, "", go));
    let skipping = "@pytest.mark.skipif(WINDOWS, reason=\"no sockets\")\ndef test_b():\n    assert f()\n";
    silent("a new file with a mark", rewritten("tests/test_c.py", FileStatus::Added, "", skipping));
    let documented =
        PY.replace("def test_a():\n", "def test_a():\n    \"\"\"It is one.\n\n    Always.\n    \"\"\"\n");
    silent("a description", edited("tests/test_a.py", PY, &documented));
    silent("a comment", edited("tests/test_a.py", PY, &format!("# assert nothing\n{PY}")));
}

#[test]
fn rewritten_tests_that_assert_as_much_are_no_weakening() {
    silent("another name", edited("tests/test_a.py", PY, &PY.replace("test_a", "test_one")));
    silent("another value", edited("tests/test_a.py", PY, &PY.replace("== 1", "== 2")));
    let class = "import m\n\nclass TestA:\n    def test_a(self):\n        x = m.f()\n        assert x == 1\n";
    silent("in a class", edited("tests/test_a.py", PY, class));
    silent("other blanks", edited("src/a.rs", RS, &RS.replace("    ", "\t")));
    let js = "it('a', () => {\n  expect(f()).toBe(1);\n});\n";
    silent("in a group", edited("src/a.test.ts", js, &format!("describe('x', () => {{\n{js}}});\n")));
    let loop_of =
        "it('a', () => {\n  for (const x of y) {\n    if (!x) continue;\n    expect(x).toBe(1);\n  }\n});\n";
    silent("in a loop", edited("src/a.test.ts", js, loop_of));
    let early = "func TestA(t *testing.T) {\n\tif err != nil {\n\t\treturn\n\t}\n\tt.Error(1)\n}\n";
    let go = "func TestA(t *testing.T) {\n\tt.Error(1)\n}\n";
    silent("a return under a condition", edited("a_test.go", go, early));
}

#[test]
fn tests_that_move_to_where_they_are_run_are_no_weakening() {
    silent("a name", renamed("tests/test_a.py", "tests/test_b.py", PY, PY));
    silent("a directory", renamed("tests/test_a.py", "tests/unit/test_a.py", PY, PY));
    silent("into the tests", renamed("pkg/test_a.py", "tests/test_a.py", PY, PY));
    silent(
        "a helper",
        renamed(
            "tests/helpers.py",
            "tests/support.py",
            "def check(x):\n    assert x\n",
            "def check(x):\n    assert x\n",
        ),
    );
    let js = "it('a', () => {\n  expect(f()).toBe(1);\n});\n";
    silent("an extension", renamed("src/a.test.js", "src/a.test.ts", js, js));
    let go = "package a\nfunc TestA(t *testing.T) {\n\tt.Error(1)\n}\n";
    silent("go", renamed("a_test.go", "b_test.go", go, go));
    let rb = "it \"works\" do\n  expect(f).to eq 1\nend\n";
    silent("ruby", renamed("spec/a_spec.rb", "spec/b/a_spec.rb", rb, rb));

    let mut out = edited("src/a.rs", RS, "fn f() {}\n#[cfg(test)]\nmod tests;\n");
    out.extend(rewritten(
        "src/a/tests.rs",
        FileStatus::Added,
        "",
        "use super::*;\n#[test]\nfn a() {\n    assert_eq!(1, f());\n}\n",
    ));
    silent("a module of its own", out);

    let tests = "#[test]\nfn a() {\n    assert!(f());\n}\n";
    let mut merged = renamed("tests/a.rs", "tests/it/a.rs", tests, tests);
    merged.extend(edited("tests/it/main.rs", "mod b;\n", "mod a;\nmod b;\n"));
    silent("one target of several", merged);

    let mut dropped = edited("src/lib.rs", "mod a;\nmod b;\n", "mod b;\n");
    dropped.extend(rewritten("src/a.rs", FileStatus::Deleted, "fn f() {}\n", ""));
    silent("a module that is gone", dropped);
}

#[test]
fn assertions_in_a_helper_that_is_called_are_kept() {
    let mut files = edited("tests/test_a.py", PY, &PY.replace("    assert x == 1", "    check(x)"));
    files.extend(edited("tests/helpers.py", "", "def check(x):\n    assert x == 1\n"));
    silent("a helper", files);
}

#[test]
fn configuration_that_demands_as_much_or_more_is_no_weakening() {
    for (path, lines) in [
        ("jest.config.js", &["module.exports = { testEnvironment: 'node' };"][..]),
        ("vitest.config.ts", &["exclude: ['**/node_modules/**'],"]),
        ("pytest.ini", &["[pytest]", "testpaths = tests", "addopts = --strict-markers"]),
        ("Makefile", &["test:", "\tpytest"]),
        (".cargo/config.toml", &["[alias]", "xtask = \"run -p xtask --\""]),
        ("package.json", &["{\"scripts\": {\"test\": \"jest\"}}"]),
        (".npmrc", &["save-exact=true"]),
        ("conftest.py", &["import pytest", "@pytest.fixture", "def db():", "    return 1"]),
        (".gitignore", &["target/", ".pytest_cache/", "*.pyc"]),
        (".gitattributes", &["* text=auto"]),
        ("clippy.toml", &["msrv = \"1.80\""]),
    ] {
        silent(path, vec![new(path, lines)]);
    }
    for (path, removed, added) in [
        ("Cargo.toml", "", "serde = \"1\""),
        ("package.json", "\"version\": \"1\",", "\"version\": \"2\","),
        ("pyproject.toml", "testpaths = [\"tests\"]", "testpaths = [\"tests\", \"e2e\"]"),
        ("Makefile", "\tcargo test", "\tcargo test --workspace"),
        ("pytest.ini", "", "# why"),
        ("ruff.toml", "# old", "# new"),
        (".github/workflows/ci.yml", "      - run: pytest", "      - run: pytest --strict-markers"),
    ] {
        silent(path, vec![changed(path, &[removed], &[added])]);
    }
    silent(
        "another name",
        vec![gone("makefile", &["test:", "\tpytest"]), new("GNUmakefile", &["test:", "\tpytest"])],
    );
    silent("a module", vec![new("tools/go.mod", &["module tools"]), new("tools/main.go", &["package main"])]);
}

#[test]
fn new_files_that_cannot_be_read_weaken_nothing() {
    for path in ["tests/test_new.py", "tests/a.rs", "src/a.rs"] {
        silent(path, vec![FileDiff::opaque(path, FileStatus::Added)]);
    }
    silent("data", vec![FileDiff::opaque("tests/data.bin", FileStatus::Modified)]);
}

#[test]
fn a_snapshot_that_only_moves_is_no_weakening() {
    silent("moved", vec![gone("a/x.snap", &["one"]), new("b/x.snap", &["one"])]);
    assert_eq!(weakenings(&turn(vec![gone("a/x.snap", &["one"]), new("b/x.snap", &["two"])])).len(), 1);
}
