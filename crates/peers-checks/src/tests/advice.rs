//! Checks that advise: what they say, and that they fail nothing unless they are strict.

use peers_model::CommitId;

use super::World;
use super::plan::{META, blob, plan, plan_with, step};
use crate::Verdict;

const PASS: Verdict = Verdict::Pass;
const WARN: Verdict = Verdict::Warn;

/// What a check says, which is a failure exactly where it is strict.
#[track_caller]
fn advises(world: &World, check: &str, due: Verdict) {
    let outcome = world.check(check);
    assert_eq!((outcome.report.verdict, outcome.exit_code()), (due, 0), "{check}: {}", outcome.text(9));
    let strict = world.check_with(check, &["--strict"]);
    assert_eq!(strict.exit_code(), u8::from(due == WARN), "{check}");
}

/// A plan with one done step that says more of itself, done by a commit with these files.
fn done(more: &str, files: &[(&str, &str)]) -> World {
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    let made = world.turn_with("claude", "do 1", files);
    let text = plan(&[&format!("{}{more}", step(1, "x", Some(&made)))]);
    world.turn_with("codex", "check off", &[("PLAN.md", &text)]);
    world
}

/// So many lines of code and of comments, in each language.
fn code(n: usize) -> [(&'static str, String); 4] {
    [
        ("src/s1.py", "# a comment\n\nx = f()\n".replacen("x = f()\n", &"x = f()\n".repeat(n), 1)),
        ("src/s1.js", format!("// a comment\n\n{}", "f();\n".repeat(n))),
        ("src/s1.rs", format!("// a comment\n\n{}", "const A: u8 = 1;\n".repeat(n))),
        ("s1.go", format!("package a // a comment\n{}", "var a = 1\n".repeat(n.saturating_sub(1)))),
    ]
}

fn tests(path: &str, n: usize) -> (&'static str, String) {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("py") => ("tests/test_s1.py", "x = f()\n".repeat(n)),
        Some("js") => ("s1.test.js", "f();\n".repeat(n)),
        Some("rs") => ("tests/s1.rs", "const A: u8 = 1;\n".repeat(n)),
        _ => ("s1_test.go", format!("package a\n{}", "var a = 1\n".repeat(n.saturating_sub(1)))),
    }
}

#[test]
fn row_73_a_step_adds_some_code_and_tests_beside_it() {
    for n in [3, 10] {
        for (path, text) in code(n) {
            let world = done("", &[(path, &text)]);
            advises(&world, "step-size", if n == 3 { WARN } else { PASS });
        }
    }
    for more in ["\n  - trivial_step: true", "\n  - pure_documentation: true"] {
        advises(&done(more, &[("src/s1.py", "x = 1\n")]), "step-size", PASS);
    }
    for (path, text) in code(10) {
        for (lines, due) in [(2, WARN), (5, PASS)] {
            let (test, tests) = tests(path, lines);
            advises(&done("", &[(path, &text), (test, &tests)]), "test-ratio", due);
        }
        advises(&done("\n  - pure_refactor: true", &[(path, &text)]), "test-ratio", PASS);
    }
    advises(&done("", &[("README.md", "text\n")]), "test-ratio", PASS);
    let within = format!(
        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        "const A: u8 = 1;\n".repeat(10),
        "    f!();\n".repeat(6)
    );
    advises(&done("", &[("src/s1.rs", &within)]), "test-ratio", PASS);
    let world = done("", &[("src/s1.py", &"x = f()\n".repeat(10)), ("tests/test_a.py", "x = 1\n")]);
    assert_eq!(world.check_with("test-ratio", &["--ratio", "0.1"]).report.verdict, PASS);
    assert_eq!(world.check_with("step-size", &["--min", "11"]).report.verdict, WARN);
}

#[test]
fn row_74_texts_that_say_nothing_are_warned_of() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    assert_eq!(world.check("test-skepsis").report.verdict, Verdict::Skip);
    let good = "- the test of src/s1.rs never tries a file that ends inside of a quoted field";
    for (text, due) in [
        ("- looks fine", WARN),
        ("- LGTM, all of the tests of src/s1.rs are there and each has its assertion", WARN),
        ("- src/s1.rs is hardly tested", WARN),
        ("- the test of the parser never tries a file that ends inside of a field", WARN),
        (good, PASS),
    ] {
        world.turn_with("codex", "doubt", &[("TEST_SKEPSIS.md", &format!("{text}\n"))]);
        advises(&world, "test-skepsis", due);
    }
    for (text, due) in [
        ("- **Justification:** it should work\n", WARN),
        ("- **Justification:** It PROBABLY holds\n", WARN),
        ("- **Justification:** an improbably long line is refused\n", PASS),
    ] {
        world.turn_with("claude", "deliver", &[("DELIVERY.md", text)]);
        advises(&world, "weasel", due);
    }
}

#[test]
fn row_74_more_than_three_steps_are_stitched_together() {
    let steps = |done: u32| {
        let each: Vec<String> = (1..=6).map(|n| step(n, if n <= done { "x" } else { " " }, None)).collect();
        plan(&each.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut world = World::frozen(&steps(0));
    let stitch =
        |n: u32, words: usize| format!("## Stitch {n} — STEP-1..STEP-3\n{}\n", "word ".repeat(words));
    for (done, text, due) in [
        (3, String::new(), PASS),
        (4, String::new(), WARN),
        (4, stitch(1, 5), WARN),
        (4, stitch(1, 20), PASS),
        (6, stitch(1, 20), WARN),
        (6, format!("{}{}", stitch(1, 20), stitch(2, 20)), PASS),
    ] {
        world.turn_with("codex", "go on", &[("PLAN.md", &steps(done)), ("STITCH.md", &text)]);
        advises(&world, "stitch", due);
    }
}

#[test]
fn row_74_a_step_and_its_commit_speak_of_the_same_thing() {
    let claim = |text: &str, subject: &str, path: &str| {
        let line = |mark: &str, sha: Option<&CommitId>| step(1, mark, sha).replace("do 1", text);
        let mut world = World::frozen(&plan(&[&line(" ", None)]));
        let made = world.turn_with("claude", subject, &[(path, "x\n")]);
        world.turn_with("codex", "check off", &[("PLAN.md", &plan(&[&line("x", Some(&made))]))]);
        world
    };
    for (subject, path, due) in [
        ("tidy up", "src/other.rs", WARN),
        ("Export each row", "src/other.rs", PASS),
        ("tidy up", "src/export.rs", PASS),
        ("work with this code", "src/other.rs", WARN),
    ] {
        advises(&claim("Exporting rows with this", subject, path), "claim-vs-diff", due);
    }
    let none = World::new();
    for check in ["step-size", "test-ratio", "claim-vs-diff", "stitch"] {
        advises(&none, check, WARN);
    }
    let world = World::frozen(&plan(&[&step(1, "x", Some(&CommitId::new("e".repeat(40)).unwrap()))]));
    assert_eq!(world.kinds("claim-vs-diff"), ["unknown-commit"]);
}

#[test]
fn row_74_and_75_who_is_not_sure_is_told_where_the_plan_asks_for_it() {
    let with =
        |meta: &str, more: &str| World::frozen(&plan_with(meta, &[&format!("{}{more}", step(1, "x", None))]));
    let asks = format!("{META}confidence_calibration: true\n");
    assert_eq!(with(META, "").says("confidence"), Verdict::Skip);
    for (more, due) in [("", WARN), ("\n  - confidence: 3/5", WARN), ("\n  - confidence: 4/5", PASS)] {
        advises(&with(&asks, more), "confidence", due);
    }
}

/// Two parts in each language: `ui`, and `core`, which imports it or something else.
fn importing(ui: bool) -> [(&'static str, &'static str, String); 6] {
    let what = if ui { "ui" } else { "other" };
    [
        ("pkg/core/a.py", "pkg/ui/b.py", format!("from pkg.{what} import b\n")),
        ("pkg/core/a.py", "pkg/ui/b.py", format!("from ..{what} import b\n")),
        ("pkg/core/a.py", "pkg/ui/b.py", format!("from pkg import {what}\n")),
        ("src/core/a.ts", "src/ui/b.ts", format!("import {{ b }} from '../{what}/b.js';\n")),
        ("src/core/a.rs", "src/ui/b.rs", format!("use crate::{what}::b;\n")),
        ("core/a.go", "ui/b.go", format!("package core\nimport \"example.com/x/{what}\"\n")),
    ]
}

#[test]
fn row_74_imports_that_the_intended_architecture_forbids_are_warned_of() {
    const FILE: &str = "ARCHITECTURE.intended.md";
    for (rule, drifts) in [("- `core` must not call `ui`\n", true), ("- `ui` must not call `core`\n", false)]
    {
        for ui in [true, false] {
            for (core, other, text) in importing(ui) {
                let world = World::new();
                let filler = if core.starts_with("core/") { "package ui\n" } else { "" };
                world.commit("files", &[(FILE, rule), (core, &text), (other, filler)]);
                advises(&world, "architecture-drift", if ui && drifts { WARN } else { PASS });
            }
        }
    }
    let world = |rules: &str| {
        let world = World::new();
        let files = [("pkg/core/a.py", "import pkg.ui\n"), ("pkg/ui/b.py", ""), ("pkg/store/c.py", "")];
        world.commit("files", &files);
        world.commit("intended", &[(FILE, rules)]);
        world
    };
    for (rules, due) in [
        ("", WARN),
        ("- core must not call ui\n", WARN),
        ("- `core` must not call `store`\n", PASS),
        ("- `core` must not call `net`\n", WARN),
        ("- `core` may call `ui`\n- `ui` may call `store`\n", PASS),
        ("- `core` may call `store`\n- `ui` may call `store`\n", WARN),
    ] {
        advises(&world(rules), "architecture-drift", due);
    }
    let kept = world("- `core` must not call `ui`\n");
    kept.commit("weaken", &[(FILE, "- `core` must not call `store`\n")]);
    advises(&kept, "architecture-drift", WARN);
    let missing = World::new();
    missing.commit("files", &[("pkg/a.py", "x = 1\n")]);
    advises(&missing, "architecture-drift", WARN);
}

#[test]
fn row_74_an_amendment_of_the_architecture_needs_the_review_of_another_peer() {
    let mut world = World::frozen(&plan(&[&step(1, " ", None)]));
    let files = [
        ("ARCHITECTURE.intended.md", "- `core` must not call `ui`\n"),
        ("pkg/core/a.py", "import pkg.ui\n"),
        ("pkg/ui/b.py", ""),
    ];
    world.turn_with("claude", "build", &files);
    let amended =
        format!("{}## Architecture Amendment\n`core` shows errors in `ui`\n", plan(&[&step(1, " ", None)]));
    world.turn_with("claude", "amend", &[("PLAN.md", &amended)]);
    advises(&world, "architecture-drift", WARN);
    for (peer, due) in [("claude", WARN), ("codex", PASS)] {
        let claim = format!("review\n\nPeers-Review: PLAN.md@{}\n", blob(&world, "PLAN.md"));
        world.turn(peer, &claim);
        advises(&world, "architecture-drift", due);
    }
}
