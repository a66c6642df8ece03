//! Tests that no runner finds any more, and what is no test that anybody can read.

use super::*;
use crate::weaken::{Inline, Weaker};

const PY: &str = "import m\n\n\ndef test_a():\n    assert m.f() == 1\n";
const RS: &str = "#[test]\nfn a() {\n    assert!(f());\n}\n";
const JS: &str = "it('a', () => {\n  expect(f()).toBe(1);\n});\n";
const GO: &str = "package a\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error(1)\n\t}\n}\n";
const RB: &str = "it \"works\" do\n  expect(f).to eq 1\nend\n";

fn moved(from: &str, to: &str, text: &str) -> Vec<Weakening> {
    weaker(&[changed(from, Some(text), None), changed(to, None, Some(text))]).found
}

#[test]
fn a_name_that_no_runner_looks_for_keeps_no_test() {
    for (from, to, text) in [
        ("tests/test_a.py", "tests/a.py", PY),
        ("tests/test_a.py", "tests/old_test_a.py", PY),
        ("tests/test_a.py", "tests/test_a.py.txt", PY),
        ("tests/test_a.py", "test_a.py", PY),
        ("tests/test_a.py", "tests/.old/test_a.py", PY),
        ("pkg/a_test.py", "pkg/a_tests.py", PY),
        ("pkg/a_test.go", "pkg/a_windows_test.go", GO),
        ("pkg/a_test.go", "pkg/testdata/a_test.go", GO),
        ("pkg/a_test.go", "pkg/_a_test.go", GO),
        ("pkg/a_test.go", "test/a.go", GO),
        ("src/a.test.ts", "tests/a.ts", JS),
        ("src/a.test.ts", "src/a.tests.off.ts", JS),
        ("src/a.test.ts", "node_modules/a.test.ts", JS),
        ("tests/a.rs", "tests/testdata/a.rs", RS),
        ("tests/a.rs", "tests/old/a.rs", RS),
        ("src/a/tests.rs", "src/a/old_tests.rs", RS),
        ("spec/a_spec.rb", "attic/a_spec.txt", "other"),
    ] {
        let seen = moved(from, to, text);
        if text == "other" {
            let gone = [changed(from, Some(RB), None), changed(to, None, Some(text))];
            assert_eq!(weaker(&gone).found, [Weakened::Tests { lost: 1 }.at(from)]);
        } else {
            assert!(!seen.is_empty(), "{from} -> {to}");
        }
    }
}

#[test]
fn a_name_that_the_same_rule_finds_keeps_its_tests() {
    for (from, to, text) in [
        ("tests/test_a.py", "tests/unit/test_b.py", PY),
        ("tests/test_a.py", "tests/a_test.py", PY),
        ("pkg/test_a.py", "tests/test_a.py", PY),
        ("tests/helpers.py", "tests/support.py", "def check(x):\n    assert x\n"),
        ("pkg/a_test.go", "other/b_test.go", GO),
        ("pkg/a_linux_test.go", "pkg/a_windows_test.go", GO),
        ("src/a.test.ts", "tests/a.spec.tsx", JS),
        ("src/a.test.js", "src/a.test.ts", JS),
        ("tests/a.js", "tests/b.js", JS),
        ("tests/a.rs", "tests/a/main.rs", RS),
        ("spec/a_spec.rb", "spec/b/a_spec.rb", RB),
        (".hidden/test_a.py", ".hidden/test_b.py", PY),
        ("a/x.snap", "b/x.snap", "one"),
    ] {
        assert_eq!(moved(from, to, text), [], "{from} -> {to}");
    }
}

#[test]
fn modules_of_tests_that_nothing_declares_any_more_are_lost() {
    let old = "mod a;\n#[cfg(test)]\nmod tests;\n";
    for new in [
        "mod a;\n",
        "mod a;\n// mod tests;\n",
        "mod a;\n#[cfg(any())]\nmod tests;\n",
        "mod a;\n#[cfg(all(test, feature = \"never\"))]\nmod tests;\n",
    ] {
        let orphan = Weakened::Orphan { module: "tests".into() }.at("src/b.rs");
        assert_eq!(weaker(&[changed("src/b.rs", Some(old), Some(new))]).found, [orphan], "{new}");
    }
    for files in [
        vec![
            changed("src/b.rs", Some("mod tests;\n"), Some("")),
            changed("src/b/tests.rs", Some("fn f() {}\n"), None),
        ],
        vec![changed("src/b.rs", Some("mod tests;\n"), Some("#[cfg(test)]\nmod tests;\n"))],
        vec![changed("src/b.rs", Some("mod tests;\n"), Some("#[cfg(all(test, unix))]\nmod tests;\n"))],
        vec![changed("src/b.rs", Some("mod tests;\n"), Some("mod tests {}\n"))],
        vec![
            changed("src/b.rs", Some("mod tests;\n"), None),
            changed("src/b/mod.rs", None, Some("mod tests;\n")),
        ],
        vec![
            changed(
                "src/a.rs",
                Some(&format!("#[cfg(test)]\nmod tests {{\n{RS}}}\n")),
                Some("#[cfg(test)]\nmod tests;\n"),
            ),
            changed("src/a/tests.rs", None, Some(RS)),
        ],
        vec![
            changed("tests/a.rs", Some(RS), None),
            changed("tests/it/a.rs", None, Some(RS)),
            changed("tests/it/main.rs", Some("mod b;\n"), Some("mod a;\nmod b;\n")),
        ],
    ] {
        assert_eq!(weaker(&files).found, [], "{files:?}");
    }
}

#[test]
fn tests_under_what_never_holds_are_lost() {
    for (path, old, new) in [
        ("tests/test_a.py", PY, "if False:\n    def test_a():\n        assert m.f() == 1\n"),
        ("tests/test_a.py", PY, "if __name__ == '__main__':\n    def test_a():\n        assert m.f() == 1\n"),
        ("src/a.test.ts", JS, "if (false) {\n  it('a', () => {\n    expect(f()).toBe(1);\n  });\n}\n"),
        ("tests/a.rs", RS, "#![cfg(feature = \"never\")]\n#[test]\nfn a() {\n    assert!(f());\n}\n"),
        ("tests/a.rs", RS, "#[cfg_attr(feature = \"never\", test)]\nfn a() {\n    assert!(f());\n}\n"),
        ("src/checks.rs", RS, ""),
    ] {
        assert!(!weaker(&[changed(path, Some(old), Some(new))]).found.is_empty(), "{new}");
    }
}

#[test]
fn a_hand_in_the_run_of_the_tests_is_seen() {
    for (path, text) in [
        ("tests/conftest.py", "def pytest_ignore_collect(collection_path):\n    return True\n"),
        ("conftest.py", "collect_ignore_glob = ['*']\n"),
        ("tests/test_a.py", "import os\nos._exit(0)\n"),
        ("tests/test_a.py", "def f(report):\n    report.outcome = 'passed'\n"),
        ("src/a.test.ts", "process.exit(0);\n"),
        ("a_test.go", "package a\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"),
    ] {
        let hook = Weakened::Hook.at(path);
        assert!(weaker(&[changed(path, None, Some(text))]).found.contains(&hook), "{text}");
        assert!(weaker(&[changed(path, Some(""), Some(text))]).found.contains(&hook), "{text}");
    }
    for (path, text) in [
        ("conftest.py", "import pytest\n\n\n@pytest.fixture\ndef db():\n    return 1\n"),
        ("tests/test_a.py", "def test_a():\n    # os._exit(0)\n    assert run('os._exit(0)') == 1\n"),
        ("a_test.go", "package a\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n"),
        ("src/main.py", "import os\nos._exit(0)\n"),
    ] {
        assert_eq!(weaker(&[changed(path, None, Some(text))]).found, [], "{text}");
    }
}

#[test]
fn what_can_no_longer_be_read_is_seen_and_what_never_could_be_is_not() {
    let file = |path: &str, before, after| ChangedFile { path: path.to_owned(), before, after, told: false };
    let text = || Side::Text("x = 1\n".to_owned());
    for path in ["tests/test_a.py", "src/a.rs", "tests/a.rs", "Makefile", "package.json", "conftest.py"] {
        for (before, after) in
            [(text(), Side::Unread), (Side::Unread, Side::Unread), (Side::Unread, Side::Absent)]
        {
            let found = weaker(&[file(path, before, after)]).found;
            assert!(found.contains(&Weakened::Unreadable.at(path)), "{path}: {found:?}");
        }
    }
    for path in ["conftest.py", "GNUmakefile", "sitecustomize.py"] {
        assert!(!weaker(&[file(path, Side::Absent, Side::Unread)]).found.is_empty(), "{path}");
    }
    for path in ["tests/test_new.py", "tests/a.rs", "src/a.rs"] {
        assert_eq!(weaker(&[file(path, Side::Absent, Side::Unread)]).found, [], "{path}");
    }
    assert_eq!(weaker(&[file("tests/data.bin", Side::Unread, Side::Unread)]).found, []);
    let broken = || Side::Text("def test_a(:\n".to_owned());
    assert_eq!(weaker(&[file("tests/test_a.py", broken(), broken())]).found, []);
}

#[test]
fn a_deleted_test_is_lost_even_where_by_its_name_no_runner_finds_it() {
    let gone = weaker(&[changed(".hidden/tests/test_a.py", Some(PY), None)]).found;
    assert_eq!(gone, [Weakened::Tests { lost: 1 }.at(".hidden/tests/test_a.py")]);
}

#[test]
fn stored_outputs_that_are_written_anew_are_weaker_and_new_ones_are_not() {
    let path = "src/snapshots/a.snap";
    let of = |before, after| weaker(&[changed(path, before, after)]).found;
    assert_eq!(of(Some("old\n"), Some("new\n")), [Weakened::Snapshot.at(path)]);
    assert_eq!(of(Some("old\n"), None), [Weakened::Snapshot.at(path)]);
    assert_eq!(of(None, Some("new\n")), []);
    assert_eq!(of(Some("old\n"), Some("old\nmore\n")), []);
}

#[test]
fn a_test_of_the_operators_is_one_whatever_it_is_called() {
    let told = |file: ChangedFile| ChangedFile { told: true, ..file };
    let fewer = "import m\n\n\ndef test_a():\n    m.f()\n";
    let seen = weaker(&[told(changed("checks/a_verify.py", Some(PY), Some(fewer)))]).found;
    assert_eq!(seen, [Weakened::Assertions { lost: 1 }.at("checks/a_verify.py")]);
    let gone = told(changed("checks/a_verify.py", Some(PY), None));
    let came = changed("checks/a.py", None, Some(PY));
    assert_eq!(weaker(&[gone.clone(), told(came.clone())]).found, []);
    assert_eq!(weaker(&[gone, came]).found.len(), 1, "nobody says that these are tests");
}

#[test]
fn changed_lines_of_rust_are_told_apart_into_tests_and_the_rest() {
    let old = "fn f() {}\n\n/// Of f.\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        assert_eq!(f(), ());\n    }\n}\n";
    let tests = old.replace("assert_eq!(f(), ());", "f();\n        f();");
    let both = tests.replace("fn f() {}", "fn f() { }");
    let of = |new: &str| weaker(&[changed("src/a.rs", Some(old), Some(new))]).inline;
    let inline = |tests, rest| [Inline { path: "src/a.rs".into(), tests, rest }];
    assert_eq!(of(&tests), inline((2, 1), (0, 0)));
    assert_eq!(of(&both), inline((2, 1), (1, 1)));
    assert_eq!(of(&old.replace("fn f() {}", "fn f() { }")), []);
    assert_eq!(weaker(&[changed("tests/a.rs", Some(RS), None)]).inline, [], "all of it is tests");
    assert_eq!(weaker(&[]), Weaker::default());
}
