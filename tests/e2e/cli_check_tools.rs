//! Checks that run programs of the project, with a runner of the project's own.

use serde_json::json;

use crate::support::World;

/// A runner: each line of `tests/list` is a test, that fails where `src/a.txt` has it; what it writes is its report.
const RUNNER: &str = r#"test -f ready || { echo no setup >&2; exit 9; }
mode=$(cat tests/mode 2>/dev/null)
test "$mode" = quit && exit 0
code=0
{
    echo '<testsuite>'
    while read -r name; do
        echo "<testcase name='$name'>"
        grep -q "$name" src/a.txt && { echo '<failure/>'; code=1; }
        echo '</testcase>'
    done < tests/list
    echo '</testsuite>'
} > out.xml
test "$mode" = lie && exit 0
exit $code
"#;

/// With a green report of the runner in the commit, which says nothing of it.
fn project() -> World {
    let world = World::repo();
    world.write("tests/run.sh", RUNNER);
    world.write("tests/list", "test_one\ntest_two\n");
    world.write("src/a.txt", "fine\n");
    world.write("out.xml", "<testsuite><testcase name='test_one'/></testsuite>\n");
    world.commit("A project");
    world.set_up("true");
    world.accept_config(
        "setup: {commands: [{cmd: touch ready}]}\nchecks: {test_command: sh tests/run.sh, test_report: out.xml}\n",
    );
    world
}

#[test]
fn tests_run_in_a_clean_checkout_and_only_their_own_report_counts() {
    let world = project();
    world.write("src/a.txt", "test_one\n");
    world.peers(&["check", "tests"]).exits(0).out_has("tests: pass (2 tests pass)");
    for (path, text, code, says) in [
        ("src/a.txt", "test_one\n", 1, "  test_one: failed: it fails\n"),
        ("tests/mode", "lie", 1, "exits 0, and its report names tests that failed"),
        ("tests/mode", "quit", 3, "exit 0, and it left no report"),
    ] {
        world.write(path, text);
        world.commit("Change it");
        world.peers(&["check", "tests", "--retry", "0"]).exits(code).out_has(says);
    }
    world.write("tests/mode", "none");
    world.write("tests/list", "");
    world.commit("Remove the tests");
    world.peers(&["check", "tests", "--retry=0"]).exits(1).out_has("ran no test");
    world.peers(&["check", "lint", "--cmd", "grep -q fine src/a.txt"]).exits(1);
    world.peers(&["check", "types", "--cmd", "no-such-program-here"]).exits(3);
    assert!(!world.at("ready").exists(), "nothing ran in the work tree");
}

#[test]
fn row_23_a_test_that_passed_where_peers_was_set_up_and_fails_now_is_lost() {
    let world = project();
    let base = world.head();
    world.write("src/a.txt", "test_two\n");
    world.commit("Break it");
    let lost = world.peers(&["check", "no-regression", "--base", &base]).exits(1);
    lost.out_has(
        "no-regression: FAIL (1 of 2 tests are lost)\n  test_two: lost: it passed at the base, and fails",
    );
    world.write("src/a.txt", "fine again\n");
    world.commit("Mend it");
    world.peers(&["check", "no-regression", "--base", &base]).exits(0);
    World::bare().peers(&["check", "no-regression"]).exits(3);
}

#[test]
fn row_57_a_baseline_that_a_peer_writes_or_moves_has_no_effect() {
    let world = project();
    let turn = json!([
        {"write": {"path": "src/a.txt", "text": "test_two\n"}},
        {"write": {"path": ".peers/baseline.json", "text": "{\"tests\": [\"test_one\"]}"}},
        {"commit": "Break it"},
        {"shell": {"run": "git tag -f peers-baseline", "expect": 0}},
        {"handoff": "Done"},
    ]);
    world.script("ann", &json!({"as": "plain", "after": "repeat", "turns": [turn]}).to_string());
    world.peers(&["run", "--max-ticks", "1"]);
    assert_eq!(world.records("tick").len(), 1);
    world.peers(&["check", "no-regression"]).exits(1).out_has("test_two: lost: it passed at the base");
}

#[test]
fn row_13_the_test_of_a_fix_is_run_without_it_and_with_it() {
    let report = "Report it\n\n## Bug-Report\n{\"id\": \"B1\", \"severity\": \"med\", \"title\": \"It breaks\"}\n\nBug-Report: B1\n";
    let fix = "Fix it\n\n## Bug-Resolution\n{\"resolves\": \"B1\", \"status\": \"fixed\", \"note\": \"done\"}\n\nBug-Resolves: B1\n";
    let show = "Show it\n\nBug-Reproduce: B1\n";
    for (broken, code) in [("test_new", 0), ("nothing", 1)] {
        let world = project();
        world.commit(report);
        world.write("src/a.txt", broken);
        world.write("tests/list", "test_one\ntest_new\n");
        world.commit(show);
        world.write("src/a.txt", "fine\n");
        world.commit(fix);
        world.peers(&["check", "tdd-order"]).exits(code);
        world.peers(&["check", "tdd-order", "--no-execute"]).exits(0);
    }
}
