//! Tests of `lint`.

use peers_model::goal::{GoalEntry, GoalsFile, check_goals};
use proptest::prelude::*;
use serde_json::json;

use super::{Warning, goals, shell};

/// The kinds of warnings about gates that are given as `(id, more keys)`.
fn about(entries: &[(&str, serde_json::Value)]) -> Vec<Warning> {
    let entries = entries.iter().map(|(id, more)| {
        let mut entry = json!({"id": id, "type": "hard"});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        serde_json::from_value::<GoalEntry>(entry).unwrap()
    });
    let file = GoalsFile { goals: Some(entries.collect()) };
    goals(&check_goals(file, 2, &["self-review"]).unwrap())
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
        ("sh -c 'make test || true'", "forced"),
        ("cd web && bash -c \"make test || true\"", "forced"),
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
        ("make test &> log", "background"),
        ("make test &>> log; make lint", "background"),
        ("make test | tee log", "pipe"),
        ("make test 2>&1 | tee log", "pipe"),
        ("make test | sort | tail -5", "pipe"),
        ("make test | sed 's/a/b/'", "pipe"),
        ("make test; make lint", "lost-exit"),
        ("cargo test\ncargo clippy", "lost-exit"),
        ("npm ci && npm test; npm run lint", "lost-exit"),
        ("set -e; set +e; ./a; ./b", "errexit-off"),
        ("set +e\n./a\n./b", "errexit-off"),
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
        "! grep -r FIXME src",
        "! true",
        "make test; code=$?; echo done; exit $code",
        "test -z \"$(gofmt -l . || true)\"",
        "x=`cat y || true`; make $x",
        "if make test; then echo ok; else exit 1; fi",
        "for f in a b; do ./$f || exit 1; done; true",
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
        ("regex('passed', stdout) != None", "text-alone"),
        ("'passed' in stdout", "text-alone"),
        ("stdout.strip().endswith('OK')", "text-alone"),
    ] {
        assert_eq!(kinds("make test", pass_when), [kind], "{pass_when}");
    }
    for pass_when in [
        "exit_code == 0",
        "exit_code == 0 and not regex('FAIL', stdout)",
        "exit_code == 0 and regex('[1-9][0-9]* passed', stdout)",
        "exit_code == 1",
        "json('cov.json').pct >= 80",
        "int(stdout) < 5",
        "regex('passed', stdout) and not regex('FAIL', stdout)",
        "stdout.strip() == '0'",
    ] {
        assert_eq!(kinds("make test", pass_when), Vec::<&str>::new(), "{pass_when}");
    }
}

#[test]
fn limits_and_repetitions_that_prove_nothing_are_warned_of() {
    let gate = |more: serde_json::Value| {
        let mut gate = json!({"cmd": "make test", "pass_when": "exit_code == 0"});
        for (key, value) in more.as_object().unwrap() {
            gate[key] = value.clone();
        }
        gate
    };
    let kinds = |entries: &[(&str, serde_json::Value)]| {
        about(entries).iter().map(|w| (w.goal.clone(), w.kind)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[("a", gate(json!({"timeout_s": 1})))]), [("a".into(), "short-timeout")]);
    assert_eq!(kinds(&[("a", gate(json!({"timeout_s": 5})))]), []);
    let lint = json!({"cmd": "cargo clippy -- -D warnings", "retry_on_fail": 2});
    assert_eq!(kinds(&[("a", gate(lint))]), [("a".into(), "retried-lint")]);
    assert_eq!(
        kinds(&[("lint-clean", gate(json!({"retry_on_fail": 1})))]),
        [("lint-clean".into(), "retried-lint")]
    );
    assert_eq!(kinds(&[("a", gate(json!({"retry_on_fail": 2})))]), []);
    let same =
        [("tests-pass", gate(json!({}))), ("tests-again", gate(json!({"pass_when": "0 == exit_code"})))];
    assert_eq!(kinds(&same), [("tests-again".into(), "twice")]);
    assert_eq!(kinds(&[("tests-pass", gate(json!({}))), ("other", gate(json!({})))]), []);
    let other = gate(json!({"pass_when": "exit_code == 0 and stderr == ''"}));
    assert_eq!(kinds(&[("tests-pass", gate(json!({}))), ("tests-quiet", other)]), []);
}

#[test]
fn a_warning_says_what_why_and_what_to_write() {
    let warning = about(&[("gate", json!({"cmd": "make test | tee log", "pass_when": "exit_code == 0"}))]);
    let text = warning.first().unwrap().to_string();
    assert_eq!(
        text,
        "goal `gate`: `cmd` ends in a pipe into `tee`, so the exit code is that of the filter, not of the command before it; leave the pipe out (peers keeps all output), or `bash -o pipefail -c '…'`"
    );
}

proptest! {
    #[test]
    fn any_command_is_looked_at_without_a_panic(text in any::<String>()) {
        drop(shell::flaws(&text));
    }

    #[test]
    fn any_mix_of_shell_is_looked_at_without_a_panic(text in "[a-z \"'`$(){}|&;<>\\\\\n#!=-]{0,80}") {
        drop(shell::flaws(&text));
    }
}
