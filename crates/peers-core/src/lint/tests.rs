//! Tests of `lint`.

use peers_model::goal::{Goal, GoalEntry, GoalsFile, check_goals};
use proptest::prelude::*;
use serde_json::json;

use super::shell::program;
use super::{Warning, goals, not_in_checkouts, shell};

/// The kinds of warnings about gates that are given as `(id, more keys)`.
fn about(entries: &[(&str, serde_json::Value)]) -> Vec<Warning> {
    goals(&checked(entries))
}

fn checked(entries: &[(&str, serde_json::Value)]) -> Vec<Goal> {
    let entries = entries.iter().map(|(id, more)| {
        let mut entry = json!({"id": id, "type": "hard"});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        serde_json::from_value::<GoalEntry>(entry).unwrap()
    });
    let file = GoalsFile { goals: Some(entries.collect()), phases: Vec::new(), settle: Vec::new() };
    check_goals(file, 2, &["self-review"]).unwrap()
}

fn kinds(cmd: &str, pass_when: &str) -> Vec<&'static str> {
    about(&[("gate", json!({"cmd": cmd, "pass_when": pass_when}))]).iter().map(|w| w.kind).collect()
}

fn of_command(cmd: &str) -> Vec<&'static str> {
    kinds(cmd, "exit_code == 0")
}

#[test]
fn a_command_whose_exit_code_says_nothing_is_warned_of() {
    for (cmd, kind) in [
        ("make test || true", "forced"),
        ("make test || :", "forced"),
        ("make test||true", "forced"),
        ("make test || exit 0", "forced"),
        ("make test || /bin/true", "forced"),
        ("make test || echo failed", "forced"),
        ("a && b || true", "forced"),
        ("( make test || true )", "forced"),
        ("{ make test || true; }", "forced"),
        ("make test; true", "ends-green"),
        ("make test\ntrue\n", "ends-green"),
        ("make test; exit 0", "ends-green"),
        ("make test; echo done", "ends-green"),
        ("make test # really\n:", "ends-green"),
        ("true", "nothing-runs"),
        (":", "nothing-runs"),
        ("echo all tests passed", "nothing-runs"),
        ("exit 0", "nothing-runs"),
        ("cd web; true", "nothing-runs"),
        ("make test &", "background"),
        ("make test & ", "background"),
        ("make test | tee log", "pipe"),
        ("make test 2>&1 | tee log", "pipe"),
        ("make test | sort | tail -5", "pipe"),
        ("make test; make lint", "lost-exit"),
        ("cargo test\ncargo clippy", "lost-exit"),
        ("npm ci && npm test; npm run lint", "lost-exit"),
        ("sh t/a.sh\nsh t/b.sh\n", "lost-exit"),
        ("./a.sh; ./b.sh", "lost-exit"),
        ("(sh a.sh; sh b.sh)", "lost-exit"),
        ("python3 check.py; pytest -q", "lost-exit"),
        ("pnpm lint; pnpm test", "lost-exit"),
        ("uv run ruff check .; uv run pytest", "lost-exit"),
        ("npx tsc; npx vitest run", "lost-exit"),
        ("gradle test; gradle check", "lost-exit"),
        ("for t in t/*.sh; do sh $t; done", "lost-exit"),
        ("for t in a b\ndo\n  (cd $t && make test)\ndone\nmake lint", "lost-exit"),
        ("while read t; do ./run \"$t\"; done < list", "lost-exit"),
        ("for t in a b; do sh $t; done; echo done", "ends-green"),
        ("out=$(cargo test); echo $out", "ends-green"),
        ("cargo test || { echo failed; }", "forced"),
        ("make test || exit 0; ./more", "early-exit"),
    ] {
        assert_eq!(of_command(cmd), [kind], "{cmd}");
    }
}

#[test]
fn an_honest_command_is_not_warned_of() {
    for cmd in [
        "make test",
        "false",
        "echo '|| true' && make test",
        "make test NAME='x || true'",
        "make test \"|| true\"",
        "make test # || true",
        "grep -c '; true' file",
        "grep '| tee' file",
        "make test || false",
        "make test || exit 1",
        "rm -f out || true; make test",
        "(rm out || true) && make test",
        "true && make test",
        "make test && true",
        "make test && echo ok",
        "set -e; make lint; make test",
        "set -eu\nmake lint\nmake test\ntrue",
        "set -euo pipefail; make test | tee log",
        "bash -o pipefail -c 'make test | tee log'",
        "bash -euo pipefail -c 'make lint; make test | tee log'",
        "make test 2>&1",
        "make test >/dev/null 2>&1",
        "make test > log & wait $!",
        "server & make test",
        "git grep -l TODO | xargs -r false",
        "make test | grep -q passed",
        "make test | awk '/FAIL/ {exit 1}'",
        "echo x | ./program",
        "! grep -r TODO src",
        "! true",
        "make test; code=$?; echo done; exit $code",
        "test -z \"$(gofmt -l . || true)\"",
        "x=`cat y || true`; make $x",
        "if make test; then echo ok; else exit 1; fi",
        "for f in a b; do ./$f || exit 1; done; true",
        "for f in a b; do sh $f || exit 1; done",
        "for f in a b; do sh $f || failed=1; done; exit $failed",
        "for i in 1 2 3; do make test && exit 0; done; exit 1",
        "set -e; for f in a b; do sh $f; done",
        "set -e\nsh a.sh\nfor f in a b; do\n  sh $f\ndone\necho done",
        "bash -ec 'echo x'; make test",
        "for f in a b; do set -e; sh $f; done",
        "while ! nc -z localhost 5432; do sleep 1; done; make test",
        "sh a.sh && sh b.sh && echo ok",
        "sh a.sh || exit 1; true",
        "cargo test || { echo failed; exit 1; }",
        "cargo test && { echo ok; }",
        "mkdir -p out; rm -f x; cp a b; make test",
        ". venv/bin/activate; pytest",
        "sh -c 'echo x'; make test",
        "pnpm install; pnpm test",
        "for x in a; echo; done",
        "cat <<EOF | sh\ntrue\nEOF",
        "f() { true; }; f",
        "echo \"unclosed",
        "make test |& tee log",
        "make test '&> log'",
        "cd web; make test",
        "export A=1; make test",
        "A=true make test",
    ] {
        assert_eq!(of_command(cmd), Vec::<&str>::new(), "{cmd}");
    }
    // Whoever looks at the output does not need the exit code.
    assert_eq!(
        kinds("make test || true", "regex('0 failures', stdout) and 'ok' in stdout"),
        Vec::<&str>::new()
    );
}

#[test]
fn a_condition_that_is_no_condition_is_warned_of() {
    for (pass_when, kind) in [
        ("exit_code >= 0", "always-true"),
        ("exit_code == exit_code", "always-true"),
        ("exit_code < 0", "always-false"),
        ("not regex('FAIL', stdout)", "passes-unrun"),
        ("regex('FAIL', stdout) == None", "passes-unrun"),
        ("'FAIL' not in stdout + stderr", "passes-unrun"),
        ("stdout == ''", "passes-unrun"),
        ("exit_code != 0", "passes-unrun"),
    ] {
        assert_eq!(kinds("make test", pass_when), [kind], "{pass_when}");
    }
    for pass_when in [
        "exit_code == 0",
        "exit_code == 0 and not regex('FAIL', stdout)",
        "exit_code == 0 and regex('[1-9][0-9]* passed', stdout)",
        "exit_code == 1",
        "exit_code == 0 and json('cov.json').pct >= 80",
        "json('cov.json').pct >= 80",
        "'passed' in stdout",
        "json('cov.json').pct >= 80 and exit_code != 127 and exit_code < 2",
        "json('cov.json').pct >= 80 and 'total' in stdout",
        "exit_code == 0 and int(stdout) < 5",
        "exit_code == 0 or exit_code == 1 and 'ok' in stdout",
        "regex('passed', stdout) and not regex('FAIL', stdout)",
    ] {
        assert_eq!(kinds("make test", pass_when), Vec::<&str>::new(), "{pass_when}");
    }
}

proptest! {
    #[test]
    fn any_mix_of_shell_is_looked_at_without_a_panic(text in "[a-z \"'`$(){}|&;<>\\\\\n#!=-]{0,80}") {
        drop(shell::flaw(&text));
    }
}

#[test]
fn the_program_that_a_command_begins_with_is_found_where_the_shell_would_look() {
    for (cmd, path) in [
        (".venv/bin/pytest -q", Some(".venv/bin/pytest")),
        ("./build/test", Some("build/test")),
        ("cd web && CI=1 node_modules/.bin/vitest run", Some("web/node_modules/.bin/vitest")),
        ("set -e; (cd a; cd b; ../x/y)", None),
        // What comes before it may make it.
        ("make && ./build/test", None),
        ("python3 -m venv .venv && .venv/bin/pytest", None),
        ("pytest", None),
        ("/usr/bin/make", None),
        ("~/bin/test", None),
        ("$HOME/bin/test", None),
        ("cd \"$D\" && ./test", None),
        ("", None),
    ] {
        assert_eq!(program(cmd).and_then(|program| program.path()).as_deref(), path, "{cmd}");
    }
}

#[test]
fn a_gate_whose_program_no_clean_checkout_has_is_warned_of() {
    let goals = checked(&[
        ("tests-pass", json!({"cmd": ".venv/bin/pytest", "pass_when": "exit_code == 0"})),
        ("built", json!({"cmd": "./out/test", "pass_when": "exit_code == 0", "cwd": "sub"})),
        ("live", json!({"cmd": ".venv/bin/pytest", "pass_when": "exit_code == 0", "tree": "live"})),
        ("committed", json!({"cmd": "./test.sh", "pass_when": "exit_code == 0"})),
    ]);
    let ignored = |path: &str| match path {
        ".venv/bin/pytest" => Some(".venv".to_owned()),
        "sub/out/test" => Some("sub/out".to_owned()),
        _ => None,
    };
    let found = not_in_checkouts(&goals, &ignored, Some("python3 -m venv .venv"));
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "goal `tests-pass`: `.venv/bin/pytest` lies in `.venv`, which git ignores, so a clean checkout does not have it; write `setup` into .peers/config.yaml, for instance `python3 -m venv .venv`",
            "goal `built`: `sub/out/test` lies in `sub/out`, which git ignores, so a clean checkout does not have it; write `setup` into .peers/config.yaml, with the command that makes `sub/out/test`",
        ]
    );
}
