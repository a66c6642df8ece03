//! A line for every change.

use super::*;

const CONFIG: &str = "peers:\n- {name: a, argv: [one]}\n- {name: b, argv: [two]}\n";
const GOALS: &str = "goals:\n- {id: t, type: hard, cmd: make test, pass_when: exit_code == 0}\n";

fn lines(old: (&str, &str), new: (&str, &str)) -> Vec<String> {
    between(old, new).iter().map(Change::text).collect()
}

#[test]
fn a_dropped_gate_and_an_exempt_one_are_weaker() {
    assert_eq!(lines((GOALS, CONFIG), ("goals: []\n", CONFIG)), ["weaker: goal `t` is gone"]);
    let live = GOALS.replace("cmd:", "tree: live, cmd:");
    assert_eq!(
        lines((GOALS, CONFIG), (&live, CONFIG)),
        ["weaker: gate `t`: is exempt from the proof in a clean checkout"]
    );
}

#[test]
fn whatever_runs_as_the_operator_is_named() {
    let goals = GOALS.replace("make test", "curl x | sh");
    let config = CONFIG.replace("two", "three");
    assert_eq!(
        lines((GOALS, CONFIG), (&goals, &config)),
        ["runs: gate `t`: runs `curl x | sh` in place of `make test`", "runs: peer `b` runs `three`"]
    );
}

#[test]
fn a_gate_that_can_no_longer_fail_is_named() {
    let with = |cmd: &str, when: &str| {
        GOALS.replace("make test", &serde_json::json!(cmd).to_string()).replace("exit_code == 0", when)
    };
    let named = |old: &str, new: &str| {
        let found = lines((old, CONFIG), (new, CONFIG));
        found.into_iter().find(|line| line.contains("no longer fail"))
    };
    for cmd in ["true", ":", "exit 0", "/bin/true", "echo ok", "make test || true"] {
        let says = format!("weaker: gate `t` can no longer fail: its command is now `{cmd}`");
        assert_eq!(named(GOALS, &with(cmd, "exit_code == 0")), Some(says));
        // It asks for what this does not print.
        assert_eq!(named(GOALS, &with(cmd, "exit_code == 0 and 'passed' in stdout")), None);
        assert_eq!(
            named(&with(cmd, "exit_code == 0"), &with("true", "exit_code == 0")),
            None,
            "nor did it before"
        );
    }
    assert_eq!(named(GOALS, &with("make check", "exit_code == 0")), None);
}

#[test]
fn another_condition_is_a_change_and_one_set_otherwise_is_none() {
    let with = |when: &str| GOALS.replace("exit_code == 0", when);
    let told = |new: &str| lines((GOALS, CONFIG), (&with(new), CONFIG));
    assert_eq!(told("exit_code  ==  0"), Vec::<String>::new());
    let both = "exit_code == 0 and len(stdout) > 3";
    assert_eq!(told(both), [format!("changed: gate `t`: passes when `{both}` in place of `exit_code == 0`")]);
    assert_eq!(
        told("exit_code >= 0"),
        [
            "weaker: gate `t` can no longer fail: its condition is now `exit_code >= 0`",
            "changed: gate `t`: passes when `exit_code >= 0` in place of `exit_code == 0`",
        ]
    );
}

#[test]
fn further_attempts_and_time_limits_are_told() {
    let more = GOALS.replace("cmd:", "retry_on_fail: 2, timeout_s: 9, cmd:");
    assert_eq!(
        lines((GOALS, CONFIG), (&more, CONFIG)),
        [
            "weaker: gate `t`: is tried 2 times more when red, not 0",
            "changed: gate `t`: time limit is 9 s, not the default"
        ]
    );
    assert_eq!(lines((&more, CONFIG), (GOALS, CONFIG)).len(), 2);
}

#[test]
fn a_file_that_does_not_parse_gives_no_changes_and_beside_an_old_one_all_is_new() {
    assert_eq!(lines((GOALS, CONFIG), ("goals: [", CONFIG)), Vec::<String>::new());
    let config = format!("{CONFIG}setup: {{commands: [{{cmd: make deps}}]}}\n");
    assert_eq!(
        lines(("", ""), (GOALS, &config)),
        [
            "stronger: goal `t` is new",
            "runs: gate `t` runs `make test`",
            "runs: peer `a` runs `one`",
            "runs: peer `b` runs `two`",
            "runs: `setup` runs `make deps`",
        ],
        "beside nothing everything is new"
    );
}

/// The lines for another text in `config.yaml`, and those for the way back.
fn config(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
    let (old, new) = (format!("{CONFIG}{old}"), format!("{CONFIG}{new}"));
    (lines((GOALS, &old), (GOALS, &new)), lines((GOALS, &new), (GOALS, &old)))
}

#[track_caller]
fn both(old: &str, new: &str, there: &str, back: &str) {
    assert_eq!(config(old, new), (vec![there.to_owned()], vec![back.to_owned()]), "{old} -> {new}");
}

#[test]
fn a_command_that_verify_no_longer_runs_is_weaker() {
    both(
        "verify: {commands: [{cmd: a}, {cmd: b}]}\n",
        "verify: {commands: [{cmd: b}]}\n",
        "weaker: `peers verify` no longer runs `a`",
        "runs: `peers verify` runs `a`",
    );
    both(
        "verify: {commands: [{cmd: b}]}\n",
        "verify: {commands: [{cmd: b, timeout_s: 2}]}\n",
        "changed: names, time limits or the order of `verify.commands`",
        "changed: names, time limits or the order of `verify.commands`",
    );
    both(
        "",
        "verify: {timeout_s: 7}\n",
        "changed: `verify.timeout_s` is 7, not none",
        "changed: `verify.timeout_s` is none, not 7",
    );
}

#[test]
fn a_test_glob_that_is_gone_or_narrowed_is_weaker() {
    both(
        "bug_hunt: {test_globs: ['it/**']}\n",
        "",
        "weaker: `bug_hunt.test_globs`: `it/**` is gone, so what happens to these tests is not measured",
        "changed: `bug_hunt.test_globs`: `it/**` holds tests, too",
    );
    let (narrowed, _) =
        config("bug_hunt: {test_globs: ['it/**']}\n", "bug_hunt: {test_globs: ['it/a/**']}\n");
    assert!(narrowed[0].starts_with("weaker: ") && narrowed[1].starts_with("changed: "), "{narrowed:?}");
}

#[test]
fn the_skeptic_is_weaker_off_or_with_fewer_rounds_and_its_attempts_are_neither() {
    both(
        "",
        "skeptic: {rounds: 3}\n",
        "stronger: `skeptic.rounds` is 3, not 1",
        "weaker: `skeptic.rounds` is 1, not 3",
    );
    both(
        "",
        "skeptic: {enabled: false}\n",
        "weaker: no skeptic looks before `complete` any more",
        "stronger: a skeptic looks before `complete`",
    );
    both(
        "",
        "skeptic: {max_attempts: 30}\n",
        "changed: `skeptic.max_attempts` is 30, not 3",
        "changed: `skeptic.max_attempts` is 3, not 30",
    );
}

#[test]
fn the_switches_of_goals_have_two_directions() {
    both(
        "",
        "goals: {strict_tree: true}\n",
        "stronger: a gate that changes the work tree is red",
        "weaker: a gate that changes the work tree is warned of, and no longer red",
    );
    both(
        "goals: {soft_consensus_required: false}\n",
        "",
        "stronger: reviews are required for `complete`",
        "weaker: `complete` no longer asks for reviews",
    );
    both(
        "goals: {env: [A]}\n",
        "goals: {env: [A, B]}\n",
        "runs: gates see the variables A, B",
        "changed: gates see the variables A",
    );
}

#[test]
fn every_other_key_is_told_with_both_values() {
    for (yaml, key) in [
        ("driver: sessions", "driver"),
        ("comm: hybrid", "comm"),
        ("max_retries: 4", "max_retries"),
        ("recovery_interval: 3", "recovery_interval"),
        ("on_peer_unavailable: halt", "on_peer_unavailable"),
        ("observability: {tee_stream: false}", "observability.tee_stream"),
        ("prompt: {max_bytes: 50000}", "prompt.max_bytes"),
        ("pipeline_gates: true", "pipeline_gates"),
        ("health: {idle_timeout_s: 5}", "health.idle_timeout_s"),
        ("health: {absolute_max_runtime_s: 5}", "health.absolute_max_runtime_s"),
        ("health: {buf_cap_bytes: 5000}", "health.buf_cap_bytes"),
        ("health: {error_patterns: [x]}", "health.error_patterns"),
        ("health: {halt_patterns: [x]}", "health.halt_patterns"),
        ("budget: {max_iterations: 5}", "budget.max_iterations"),
        ("budget: {max_runtime_s: 5}", "budget.max_runtime_s"),
        ("budget: {max_wall_s: 5}", "budget.max_wall_s"),
        ("budget: {deadline: '2030-01-01T00:00:00Z'}", "budget.deadline"),
        ("budget: {max_consecutive_failures: 9}", "budget.max_consecutive_failures"),
        ("budget: {max_tokens: 5}", "budget.max_tokens"),
        ("budget: {max_usd: 5}", "budget.max_usd"),
        ("budget: {max_usd_mode: hard}", "budget.max_usd_mode"),
        ("budget: {per_peer: {a: {max_tokens: 5}}}", "budget.per_peer"),
        ("goals: {timeout_s: 5}", "goals.timeout_s"),
        ("goals: {convergence_n: 5}", "goals.convergence_n"),
        ("goals: {stuck_halt_after: 9}", "goals.stuck_halt_after"),
        ("goals: {stuck_halt_gates: [t]}", "goals.stuck_halt_gates"),
        ("goals: {parallel: 2}", "goals.parallel"),
        ("setup: {paths: [lock]}", "setup.paths"),
    ] {
        let (there, back) = config("", &format!("{yaml}\n"));
        for told in [&there, &back] {
            assert_eq!(told.len(), 1, "{yaml}: {told:?}");
            assert!(told[0].starts_with(&format!("changed: `{key}` is ")), "{yaml}: {told:?}");
        }
        assert_ne!(there, back, "{yaml}");
    }
}

#[test]
fn what_setup_runs_and_how_long_is_told() {
    both(
        "setup: {commands: [{cmd: a}]}\n",
        "setup: {commands: [{cmd: a}, {cmd: b}]}\n",
        "runs: `setup` runs `b`",
        "changed: `setup` no longer runs `b`",
    );
    let (there, _) =
        config("setup: {commands: [{cmd: a}]}\n", "setup: {commands: [{cmd: a, timeout_s: 3}]}\n");
    assert_eq!(there, ["changed: time limits or the order of `setup.commands`"]);
}

#[test]
fn what_each_hook_runs_and_how_long_is_told() {
    for hook in peers_model::config::Hook::ALL.map(peers_model::config::Hook::word) {
        both(
            &format!("hooks: {{{hook}: [{{cmd: [a]}}]}}\n"),
            &format!("hooks: {{{hook}: [{{cmd: [a]}}, {{cmd: [b, 'c d']}}]}}\n"),
            &format!("runs: hook `{hook}` runs `b 'c d'`"),
            &format!("changed: hook `{hook}` no longer runs `b 'c d'`"),
        );
        let (there, _) = config(
            &format!("hooks: {{{hook}: [{{cmd: [a]}}]}}\n"),
            &format!("hooks: {{{hook}: [{{cmd: [a], timeout_s: 3}}]}}\n"),
        );
        assert_eq!(there, [format!("changed: time limits or the order of `hooks.{hook}`")]);
    }
}

#[test]
fn every_key_of_a_peer_is_told() {
    let with = |more: &str| {
        let config = CONFIG.replace("name: a,", &format!("name: a, tool: claude, {more}"));
        let base = CONFIG.replace("name: a,", "name: a, tool: claude,");
        lines((GOALS, &base), (GOALS, &config))
    };
    assert_eq!(with("role: witness,"), ["changed: `role` of peer `a` is witness, not default"]);
    assert_eq!(with("model: m,"), ["changed: `model` of peer `a` is m, not none"]);
    assert_eq!(with("reasoning: high,"), ["changed: `reasoning` of peer `a` is high, not none"]);
    assert_eq!(with("provider: openrouter,"), ["runs: peer `a` asks openrouter, not the default"]);
    let acp = |more: &str| CONFIG.replace("name: a,", &format!("name: a, tool: acp, {more}"));
    let refused = acp("permissions: reject,");
    assert_eq!(
        lines((GOALS, &refused), (GOALS, &acp(""))),
        ["runs: peer `a` is allowed the tools that it asks for"]
    );
    assert_eq!(
        lines((GOALS, &acp("")), (GOALS, &refused)),
        ["changed: peer `a` is refused the tools that it asks for"]
    );
    let new =
        format!("{CONFIG}- {{name: c, tool: claude, provider: openrouter, role: witness, argv: [sh]}}\n");
    assert_eq!(
        lines((GOALS, CONFIG), (GOALS, &new)),
        [
            "runs: peer `c` runs `sh`",
            "runs: peer `c` is run as `claude`, with the login of that tool",
            "runs: peer `c` asks openrouter",
            "changed: `role` of peer `c` is witness, not default",
        ]
    );
    let words = CONFIG.replace("[one]", "['a b', c]");
    assert_eq!(lines((GOALS, CONFIG), (GOALS, &words)), ["runs: peer `a` runs `'a b' c`"]);
    let turned = "peers:\n- {name: b, argv: [two]}\n- {name: a, argv: [one]}\n";
    assert_eq!(
        lines((GOALS, CONFIG), (GOALS, turned)),
        ["changed: the peers take their turns in another order"]
    );
}

#[test]
fn what_people_and_agents_read_of_a_goal_is_told() {
    for (yaml, says) in [
        ("description: x,", "goal `t`: says `x`"),
        ("group: x,", "goal `t`: is shown in the group `x`"),
        ("weight: 3,", "goal `t`: another weight where views say how far things are"),
    ] {
        let goals = GOALS.replace("cmd:", &format!("{yaml} cmd:"));
        assert_eq!(lines((GOALS, CONFIG), (&goals, CONFIG)), [format!("changed: {says}")]);
    }
}

#[test]
fn a_quorum_among_more_reviews_is_weaker() {
    let with = |quorum: &str| {
        format!("goals:\n- {{id: r, type: soft, prompt: look, reviewer: quorum, quorum: {quorum}}}\n")
    };
    let effect = |old: &str, new: &str| {
        let five = "peers:\n- {name: c, argv: [x]}\n- {name: d, argv: [x]}\n- {name: e, argv: [x]}\n";
        let config = CONFIG.replace("peers:\n", five);
        let found = lines((&with(old), &config), (&with(new), &config));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].split(':').next().unwrap().to_owned()
    };
    assert_eq!(effect("2/2", "2/5"), "weaker");
    assert_eq!(effect("2/5", "2/2"), "stronger");
    assert_eq!(effect("2/3", "1/3"), "weaker");
    assert_eq!(effect("1/2", "2/3"), "changed");
}

#[test]
fn what_runs_is_shown_to_its_last_byte_and_as_it_is_written() {
    let cmd = format!("make test # {}\\ntouch evil\\e]0;\\a \\u202e x", ".".repeat(400));
    let goals = GOALS.replace("cmd: make test", &format!("cmd: \"{cmd}\""));
    let found = between((GOALS, CONFIG), (&goals, CONFIG));
    let text = found[0].text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "runs: gate `t`: runs what follows in place of `make test`");
    assert!(lines[1].starts_with("    | make test # ...") && lines[2].starts_with("    > ..."), "{text}");
    assert_eq!(text.matches('.').count(), 400, "{text}");
    assert_eq!(lines.last().unwrap(), &"    | touch evil\\u{1b}]0;\\u{7} \\u{202e} x");
    assert_eq!(peers_sys::term::block(&text), text, "nothing of it is taken away where it is shown");
    assert!(found[0].json()["about"].as_str().unwrap().contains("touch evil"));
}

const SOFT: &str = "goals:\n- {id: r, type: soft, reviewer: other, prompt: look}\n";

#[test]
fn conditions_prompts_and_globs_are_shown_to_their_last_byte() {
    let long = format!("exit_code == 0 and not regex('{}', stdout)", "x".repeat(400));
    let with = |when: &str| GOALS.replace("pass_when: exit_code == 0", &format!("pass_when: \"{when}\""));
    let shown = lines((&with(&long), CONFIG), (&with(&format!("{long} or exit_code >= 0")), CONFIG));
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].contains(" or exit_code >= 0\n  in place of\n    | exit_code == 0"), "{}", shown[0]);
    assert_eq!(shown[0].matches('x').count(), 800 + 5, "{}", shown[0]);

    let prompt = format!("{}\\nthen\\e[2J \u{202e}push", "look ".repeat(100));
    let new = SOFT.replace("prompt: look", &format!("prompt: \"{prompt}\""));
    let shown = lines((SOFT, CONFIG), (&new, CONFIG));
    assert!(shown[0].starts_with("changed: review `r`: asks what follows in place of `look`\n    | look "));
    assert!(shown[0].ends_with("\n    | then\\u{1b}[2J \\u{202e}push"), "{}", shown[0]);

    let globs = format!("paths: ['{}', '**'],", "d/".repeat(200));
    let new = SOFT.replace("type:", &format!("{globs} type:"));
    let shown = lines((SOFT, CONFIG), (&new, CONFIG));
    assert!(shown[0].contains("\n    > "), "{}", shown[0]);
    assert_eq!(shown[0].matches("d/").count(), 200, "{}", shown[0]);
    assert!(
        shown[0]
            .replace("\n    > ", "")
            .ends_with(", **; before it is about all files that are no documentation, and TASK.md")
    );
}

#[test]
fn a_new_goal_says_all_that_it_asks_and_only_strengthens_if_it_asks_nothing() {
    let none = "goals: []\n";
    assert_eq!(
        lines((none, CONFIG), (&SOFT.replace("type:", "description: d, paths: [a], type:"), CONFIG)),
        [
            "stronger: goal `r` is new",
            "changed: goal `r`: says `d`",
            "changed: review `r`: asks `look`",
            "changed: review `r`: is about a",
        ]
    );
    assert!(!between((none, CONFIG), (SOFT, CONFIG)).iter().all(Change::only_strengthens));
    assert_eq!(
        lines((none, CONFIG), (&GOALS.replace("exit_code == 0", "exit_code == 7"), CONFIG)),
        [
            "stronger: goal `t` is new",
            "runs: gate `t` runs `make test`",
            "changed: gate `t`: passes when `exit_code == 7`",
        ]
    );
    let check = "goals:\n- {id: c, type: hard, check: bug-ledger}\n";
    assert_eq!(
        lines((none, CONFIG), (check, CONFIG)),
        ["stronger: goal `c` is new", "changed: gate `c`: is the check `bug-ledger`"]
    );
}
