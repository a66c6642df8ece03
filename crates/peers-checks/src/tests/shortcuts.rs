//! `no-shortcuts`, and whether what is judged is all that is there.

use super::World;
use super::plan::blob;
use crate::{CheckCx, Verdict};

const PASS: Verdict = Verdict::Pass;
const FAIL: Verdict = Verdict::Fail;

/// The verdict for a project with these files.
fn says(files: &[(&str, &str)]) -> Verdict {
    let world = World::new();
    world.commit("files", files);
    world.check("no-shortcuts").report.verdict
}

#[test]
fn row_66_what_is_not_done_is_told_in_sources_as_a_whole_word() {
    for (path, text, due) in [
        ("pkg/a.py", "x = 1  # TODO\n", FAIL),
        ("pkg/a.py", "# todo: the rest\nx = 1\n", FAIL),
        ("pkg/a.py", "# STUBBORN, and no todo of ours\nx = 1\n", PASS),
        ("pkg/a.py", "x = 'TODO'\n", PASS),
        ("pkg/a.py", "class A:\n    def m(self): raise NotImplementedError\n", FAIL),
        ("pkg/a.py", "class A(Protocol):\n    def m(self): raise NotImplementedError\n", PASS),
        ("pkg/a.py", "class A(ABC):\n    def m(self): raise NotImplementedError()\n", PASS),
        ("src/a.ts", concat!("/* one\n * FIX", "ME two\n */\nlet a = 1;\n"), FAIL),
        ("src/a.ts", "// STUBBORN\nlet a = 1;\n", PASS),
        ("src/a.js", "// TODO\nlet a = 1;\n", FAIL),
        ("src/a.tsx", "let a = <b>TODO</b>;\n", PASS),
        ("src/a.rs", "/// HACK\nfn f() { g(); }\n", FAIL),
        ("src/a.rs", "// TODO_LIST\nfn f() { g(); }\n", PASS),
        ("a.go", concat!("package a\n\n// X", "XX\nvar b = 1\n"), FAIL),
        ("a.go", "package a\n\n// A placeholder for names\nvar b = 1\n", PASS),
    ] {
        assert_eq!(says(&[(path, text)]), due, "{text}");
    }
    for (path, text) in [
        ("tests/test_a.py", "# TODO\ndef test_a(): assert f()\n"),
        ("a.test.js", "// TODO\ntest('a', () => {});\n"),
        ("tests/a.rs", "// TODO\n#[test]\nfn a() {}\n"),
        ("a_test.go", "package a\n// TODO\nfunc TestA(t *testing.T) {}\n"),
    ] {
        assert_eq!(says(&[("pkg/b.py", "x = 1\n"), (path, text)]), PASS, "{path}");
    }
    let within = "fn f() { g(); }\n#[cfg(test)]\nmod tests {\n    // TODO\n    fn help() { todo!() }\n}\n";
    assert_eq!(says(&[("src/a.rs", within)]), PASS);
    assert_eq!(says(&[("src/a.rs", &within.replace("cfg(test)", "cfg(testing)"))]), FAIL);
}

#[test]
fn row_68_statements_that_say_so_are_told_in_each_language() {
    for (path, text) in [
        ("pkg/a.py", "def f():\n    raise NotImplementedError('later')\n"),
        ("src/a.rs", "fn f() -> u8 { todo!() }\n"),
        ("src/a.rs", "fn f() -> u8 { unimplemented!(\"later\") }\n"),
        ("src/a.ts", "function f(): void { throw new Error(\"not implemented\"); }\n"),
        ("src/a.js", "function f() { throw new Error('not implemented'); }\n"),
        ("a.go", "package a\nfunc f() { panic(\"TODO\") }\n"),
        ("a.go", "package a\nfunc f() { panic(\"not implemented\") }\n"),
    ] {
        assert_eq!(says(&[(path, text)]), FAIL, "{text}");
    }
}

#[test]
fn row_66_what_the_base_had_stays_and_may_move_but_not_grow() {
    let mut world = World::new();
    world.commit("old", &[("pkg/a.py", "# TODO one\nx = 1\n")]);
    world.base_here();
    assert_eq!(world.check("no-shortcuts").report.verdict, PASS);
    for (file, text, due) in [
        ("pkg/a.py", "y = 1\n# TODO one\nx = 1\n", PASS),
        ("pkg/a.py", "# TODO one, or two\nx = 1\n", FAIL),
        ("pkg/a.py", "# TODO one\nx = 1\n", PASS),
        ("pkg/b.py", "# TODO one\n", FAIL),
    ] {
        world.commit("change", &[(file, text)]);
        assert_eq!(world.check("no-shortcuts").report.verdict, due, "{text}");
    }
    let outcome = world.check("no-shortcuts");
    assert_eq!(outcome.report.findings[0].path, "pkg/b.py", "the new one of two is named");
    world.commit("move", &[("pkg/a.py", "x = 1\n")]);
    assert_eq!(world.check("no-shortcuts").report.verdict, PASS, "moved to another file");
    assert_eq!(world.check_with("no-shortcuts", &["--words", "one"]).report.verdict, PASS);
    world.commit("own", &[("pkg/c.py", "# LATER\n")]);
    assert_eq!(world.check_with("no-shortcuts", &["--words", "LATER"]).report.verdict, FAIL);
}

#[test]
fn row_67_a_justified_marker_needs_the_review_of_another_peer() {
    const MARKED: &str = "x = 1\ny = 2  # TODO JUSTIFIED: the library has no other way\nz = 3\n";
    let reviewed = |by: &[&str], before: Option<(&str, &str)>| {
        let mut world = World::running();
        world.turn_with("claude", "write", &[("pkg/a.py", MARKED)]);
        if let Some((peer, text)) = before {
            world.turn_with(peer, "edit", &[("pkg/a.py", text)]);
        }
        for peer in by {
            let claim = format!("pkg/a.py@{}", blob(&world, "pkg/a.py"));
            world.turn(peer, &format!("review\n\nPeers-Review: {claim}\n"));
        }
        world.check("no-shortcuts").report.verdict
    };
    let (trivial, other) = (MARKED.replace("# TODO", "#  TODO"), MARKED.replace("z = 3", "z = 4"));
    assert_eq!(reviewed(&[], None), FAIL, "alone");
    assert_eq!(reviewed(&["codex"], None), PASS);
    assert_eq!(reviewed(&["claude"], None), FAIL, "of its own");
    assert_eq!(reviewed(&["codex"], Some(("codex", &trivial))), FAIL, "who edited the line is its author");
    assert_eq!(reviewed(&["claude"], Some(("codex", &other))), FAIL, "an edit beside it makes no review");
    assert_eq!(reviewed(&["codex"], Some(("codex", &other))), PASS, "who edited other lines may review");
    let mut world = World::running();
    world.turn_with("claude", "write", &[("pkg/a.py", "# TODO\nx = 1\n")]);
    let claim = format!("pkg/a.py@{}", blob(&world, "pkg/a.py"));
    world.turn("codex", &format!("review\n\nPeers-Review: {claim}\n"));
    assert_eq!(world.check("no-shortcuts").report.verdict, FAIL, "a review without a reason");
    world.turn_with("claude", "write", &[("pkg/a.py", MARKED)]);
    assert_eq!(
        world.without_store("no-shortcuts").report.verdict,
        Verdict::Error,
        "nobody knows who reviewed"
    );
}

#[test]
fn the_work_tree_is_compared_by_the_control_directory() {
    let world = World::new();
    let says = |world: &World| {
        let asked = crate::Asked { control: Some(world.control()), ..world.asked() };
        let cx = CheckCx::open(asked, Some(&mut world.disk())).unwrap();
        crate::run("clean-worktree", &cx, &[]).unwrap().report
    };
    assert_eq!(says(&world).verdict, PASS);
    std::fs::write(world.work.join("a.txt"), "two\n").unwrap();
    std::fs::write(world.work.join("b.txt"), "new\n").unwrap();
    let report = says(&world);
    let named: Vec<&str> = report.findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!((report.verdict, named), (FAIL, vec!["a.txt", "b.txt"]));
    assert_eq!(world.check("clean-worktree").report.verdict, Verdict::Error, "without one nothing is told");
}

#[test]
fn history_that_lost_a_commit_is_not_intact() {
    let mut world = World::running();
    assert_eq!(world.check("history-intact").report.verdict, PASS);
    let made = world.turn_with("claude", "work", &[("src/a.py", "x = 1\n")]);
    assert_eq!(world.check("history-intact").report.verdict, PASS);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    world.commit("other", &[("b.txt", "x\n")]);
    let report = world.check("history-intact").report;
    assert_eq!((report.verdict, report.findings[0].commit.as_ref()), (FAIL, Some(&made)));
    world.start_run(Vec::new());
    assert_eq!(world.check("history-intact").report.verdict, PASS, "where a new run begins is known");
    assert_eq!(world.without_store("history-intact").report.verdict, Verdict::Error);
}
