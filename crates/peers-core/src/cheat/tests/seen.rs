//! Ways to weaken tests that must be seen.

use super::*;

/// What is found in a turn that also changes the product.
fn found(mut files: Vec<FileDiff>) -> Vec<Weakening> {
    files.push(changed("src/product.txt", &["a"], &["b"]));
    weakenings(&turn(files))
}

const PY: &str =
    "import m\n\ndef test_a():\n    x = m.f()\n    assert x == 1\n\ndef test_b():\n    assert m.g() == 2\n";
const RS: &str = "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        assert_eq!(1, f());\n    }\n}\n";
const JS: &str = "import { f } from './f';\nit('a', () => {\n  expect(f()).toBe(1);\n});\n";
const GO: &str = "package a\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error(\"x\")\n\t}\n}\n";
const RB: &str = "describe A do\n  it \"works\" do\n    expect(f).to eq 1\n  end\nend\n";

#[test]
fn tests_that_are_commented_out_are_lost() {
    let lost = [
        ("tests/test_a.py", PY, PY.replace("def test_b", "\"\"\"\ndef test_b") + "\"\"\"\n"),
        ("tests/test_a.py", PY, PY.replace("    assert m.g() == 2", "    \"assert m.g() == 2\"")),
        ("src/a.test.ts", JS, JS.replace("it(", "/*\nit(") + "*/\n"),
        ("src/a.test.ts", JS, JS.replace("it(", "const _ = `\nit(") + "`;\n"),
        ("a_test.go", GO, GO.replace("func", "/*\nfunc") + "*/\n"),
        (
            "tests/a.rs",
            "#[test]\nfn a() {\n    assert!(f());\n}\n",
            "/*\n#[test]\nfn a() {\n    assert!(f());\n}\n*/\n".into(),
        ),
        ("src/a.rs", RS, RS.replace("    #[test]", "    /* #[test]").replace("    }\n}", "    } */\n}")),
        ("spec/a_spec.rb", RB, RB.replace("  it ", "=begin\n  it ").replace("\nend\n", "\n=end\nend\n")),
        ("spec/a_spec.rb", RB, format!("__END__\n{RB}")),
    ];
    for (path, old, new) in lost {
        assert!(!found(edited(path, old, &new)).is_empty(), "{path}:\n{new}");
    }
}

#[test]
fn tests_that_end_before_they_begin_are_lost() {
    let lost = [
        ("tests/test_a.py", PY, PY.replace("    x = m.f()", "    return\n    x = m.f()")),
        ("tests/test_a.py", PY, PY.replace("    assert m.g()", "    if False:\n        assert m.g()")),
        ("tests/test_a.py", PY, format!("if __name__ == '__main__':\n    {}", PY.replace('\n', "\n    "))),
        ("tests/test_a.py", PY, format!("def unused():\n    {}", PY.replace('\n', "\n    "))),
        ("tests/test_a.py", PY, format!("{PY}\ndef test_b():\n    pass\n")),
        ("src/a.test.ts", JS, JS.replace("  expect", "  return;\n  expect")),
        ("src/a.test.ts", JS, JS.replace("=> {\n", "=> { return;\n")),
        ("src/a.test.ts", JS, JS.replace("it(", "if (false) {\nit(") + "}\n"),
        ("a_test.go", GO, GO.replace("\tif", "\treturn\n\tif")),
        ("a_test.go", GO, GO.replace("\tif", "\tt.Skip(\"later\")\n\tif")),
        ("src/a.rs", RS, RS.replace("        assert", "        return;\n        assert")),
        (
            "src/a.rs",
            RS,
            RS.replace("        assert", "        if false {\n        assert")
                .replace("    }\n}", "    }\n}\n}"),
        ),
        ("spec/a_spec.rb", RB, RB.replace("    expect", "    next\n    expect")),
    ];
    for (path, old, new) in lost {
        assert!(!found(edited(path, old, &new)).is_empty(), "{path}:\n{new}");
    }
}

#[test]
fn tests_of_rust_that_are_no_longer_compiled_are_lost() {
    for new in [
        RS.replace("#[cfg(test)]", "#[cfg(any())]"),
        RS.replace("#[cfg(test)]", "#[cfg(all(test, feature = \"never\"))]"),
        RS.replace("#[cfg(test)]", "#[cfg(\n    all(test, feature = \"never\")\n)]"),
        RS.replace("#[cfg(test)]", "#[cfg(test)]\n#[cfg(feature = \"never\")]"),
        RS.replace("    #[test]", "    #[cfg(feature = \"never\")]\n    #[test]"),
        RS.replace("    #[test]", "    #![cfg(feature = \"never\")]\n    #[test]"),
        RS.replace("    #[test]", "    #[cfg_attr(feature = \"never\", test)]"),
        RS.replace("#[cfg(test)]", "#[cfg(not(test))]"),
    ] {
        let found = found(edited("src/a.rs", RS, &new));
        assert!(found.contains(&Weakening::Tests { path: "src/a.rs".into(), lost: 1 }), "{new}: {found:?}");
    }
    let whole = "#[test]\nfn a() {\n    assert!(f());\n}\n";
    assert!(
        !found(edited("tests/a.rs", whole, &format!("#![cfg(feature = \"never\")]\n{whole}"))).is_empty()
    );
    assert!(!found(edited("src/checks.rs", whole, "")).is_empty(), "a test outside of a module of tests");
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
        let orphan = Weakening::Orphan { path: "src/b.rs".into(), module: "tests".into() };
        assert_eq!(found(edited("src/b.rs", old, new)), [orphan], "{new}");
    }
    let main = "mod a;\nmod b;\n";
    assert_eq!(found(edited("tests/it/main.rs", main, "mod a;\n")).len(), 1);
}

#[test]
fn files_of_tests_that_are_emptied_or_deleted_are_lost() {
    let whole = "use super::*;\n#[test]\nfn a() {\n    assert!(f());\n}\n";
    for path in
        ["src/b/tests.rs", "src/tests.rs", "src/b_test.rs", "src/b_tests.rs", "src/test.rs", "tests/it/b.rs"]
    {
        assert!(!found(edited(path, whole, "")).is_empty(), "{path}");
        assert!(!found(rewritten(path, FileStatus::Deleted, whole, "")).is_empty(), "{path}");
    }
    for (path, whole) in [
        ("spec/a_spec.rb", RB),
        ("Tests/AppTests/A.swift", "func testA() {\n    XCTAssertEqual(f(), 1)\n}\n"),
        ("src/test/java/ATest.java", "@Test\nvoid a() { assertEquals(1, f()); }\n"),
        ("App.Tests/A.cs", "[Fact]\npublic void A() { Assert.Equal(1, f()); }\n"),
    ] {
        assert!(!found(rewritten(path, FileStatus::Deleted, whole, "")).is_empty(), "{path}");
    }
}

#[test]
fn tests_in_a_file_that_no_runner_collects_are_lost() {
    for (from, to, text) in [
        ("tests/test_a.py", "tests/a_disabled.py", PY),
        ("tests/test_a.py", "tests/test_a.py.txt", PY),
        ("tests/test_a.py", "attic/test_a.py", PY),
        ("src/a.test.ts", "src/a.tests.off.ts", JS),
        ("a_test.go", "a_testing.go", GO),
        ("tests/a.rs", "tests/old/a.rs", "#[test]\nfn a() { assert!(f()); }\n"),
        ("src/a/tests.rs", "src/a/old_tests.rs", "#[test]\nfn a() { assert!(f()); }\n"),
    ] {
        assert!(!found(renamed(from, to, text, text)).is_empty(), "{from} -> {to}");
    }
    let constrained = format!("//go:build never_here\n\n{GO}");
    assert!(!found(renamed("a_test.go", "b_test.go", GO, &constrained)).is_empty());
    assert!(!found(edited("a_test.go", GO, &constrained)).is_empty());
    assert!(!found(edited("a_test.go", GO, &format!("//go:build ignore\n\n{GO}"))).is_empty());
}

#[test]
fn a_deleted_file_is_not_paid_for_by_another_one_of_the_same_size() {
    let filler = "def test_x():\n    y = 1\n    assert y\n\ndef test_z():\n    assert str(1)\n";
    let found = found(renamed("tests/test_a.py", "tests/test_filler.py", PY, filler));
    assert!(found.contains(&Weakening::Tests { path: "tests/test_a.py".into(), lost: 2 }), "{found:?}");
}

#[test]
fn a_lost_test_is_not_paid_for_by_a_new_one_in_another_file() {
    let test = |name: &str| format!("#[test]\n#[ignore]\nfn {name}() {{\n    run();\n}}\n");
    let mut files = edited("tests/a.rs", &test("hard"), "");
    files.extend(edited("tests/b.rs", "", &test("easy")));
    let found = found(files);
    assert!(found.contains(&Weakening::Tests { path: "tests/a.rs".into(), lost: 1 }), "{found:?}");
}

#[test]
fn assertions_in_a_helper_that_nothing_calls_are_lost() {
    let moved = "    assert x == 1\n";
    let mut files = edited("tests/test_a.py", PY, &PY.replace(moved, ""));
    files.extend(edited("tests/helpers.py", "", &format!("def check(x):\n{moved}")));
    assert_eq!(found(files), [Weakening::Assertions { path: "tests/test_a.py".into(), lost: 1 }]);
}

#[test]
fn a_hand_in_the_run_of_the_tests_is_seen() {
    for (path, line) in [
        ("tests/conftest.py", "def pytest_ignore_collect(collection_path): return True"),
        ("conftest.py", "collect_ignore_glob = ['*']"),
        ("src/a.test.ts", "process.exit(0);"),
        ("tests/a.rs", "fn main() {}"),
    ] {
        let text = format!("{line}\n");
        let hook = Weakening::Hook { path: path.into() };
        assert!(found(edited(path, "", &text)).contains(&hook), "{line}");
        if !line.starts_with("fn main") {
            assert!(found(rewritten(path, FileStatus::Added, "", &text)).contains(&hook), "{line}");
        }
    }
    for path in ["sitecustomize.py", "src/usercustomize.py", "evil.pth"] {
        assert_eq!(found(vec![new(path, &["import os"])]), [Weakening::GateConfig { path: path.into() }]);
    }
}

#[test]
fn what_stands_in_for_a_runner_is_seen() {
    for path in ["pytest.py", "unittest.py", "pytest/__main__.py", "_pytest/__init__.py", "test", "check"] {
        for lines in [&["raise SystemExit(0)"][..], &[]] {
            let seen = found(vec![new(path, lines)]);
            assert_eq!(seen, [Weakening::GateConfig { path: path.into() }], "{lines:?}");
        }
    }
    for path in ["src/pytest.py", "unittest/helpers.py", "docs/test", "pytest_extra.py", "tests.txt"] {
        assert_eq!(found(vec![new(path, &["x = 1"])]), [], "{path}");
    }
}

#[test]
fn a_file_that_is_read_instead_of_another_is_seen() {
    for (path, line) in [
        ("GNUmakefile", "test: easy"),
        ("makefile", "all:"),
        ("pytest.ini", "[pytest]"),
        ("internal/go.mod", "module x"),
    ] {
        assert_eq!(found(vec![new(path, &[line])]), [Weakening::GateConfig { path: path.into() }]);
    }
    assert_eq!(found(vec![new("pytest.ini", &[])]), [Weakening::GateConfig { path: "pytest.ini".into() }]);
}

#[test]
fn tests_that_are_hidden_from_git_are_seen() {
    for (path, line) in [(".gitignore", "tests/hard/test_*.py"), (".gitattributes", "tests/** filter=empty")]
    {
        assert_eq!(found(vec![changed(path, &[], &[line])]), [Weakening::Hidden { path: path.into() }]);
    }
}

#[test]
fn what_can_no_longer_be_read_is_seen() {
    let unreadable = |path: &str| [Weakening::Unreadable { path: path.into() }];
    for status in [FileStatus::Modified, FileStatus::Deleted] {
        for path in ["tests/test_a.py", "src/a.rs", "Makefile", "package.json", "conftest.py", ".gitignore"] {
            assert_eq!(found(vec![FileDiff::opaque(path, status)]), unreadable(path), "{path}");
        }
    }
    for path in ["conftest.py", "GNUmakefile", "sitecustomize.py"] {
        assert_eq!(found(vec![FileDiff::opaque(path, FileStatus::Added)]), unreadable(path), "{path}");
    }
}

#[test]
fn a_text_that_is_too_large_to_read_hides_nothing() {
    let line = [ChangedLine { number: 3, text: "x".into() }];
    let (unread, short) = (Change { text: "", lines: &line }, Change { text: "fn f() {}\n", lines: &[] });
    for (path, entries) in [("src/a.rs", 2), ("tests/a.rs", 1), ("tests/test_a.py", 1)] {
        let files = FileDiff::divided(path, FileStatus::Modified, unread, short);
        assert_eq!(files.len(), entries);
        assert_eq!(found(files), [Weakening::Unreadable { path: path.into() }]);
    }
}

#[test]
fn what_lay_in_the_work_tree_before_is_not_charged() {
    let weaker = |path: &str| changed(path, &["    assert f() == 3"], &[]);
    let diff = turn(vec![weaker("tests/test_a.py"), weaker("tests/test_b.py")]);
    let since = turn(vec![weaker("tests/test_b.py")]);
    assert_eq!(
        weakenings_since(&diff, &since),
        [Weakening::Assertions { path: "tests/test_b.py".into(), lost: 1 }]
    );
    assert_eq!(weakenings_since(&turn(vec![]), &since), [], "what did not get into a commit stands nowhere");
    assert_eq!(weakenings_since(&diff, &diff).len(), 2);
}
