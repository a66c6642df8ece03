//! Tests of reading the two files, the shipped ones included.

mod described;
mod docs;
mod effects;
mod texts;
use peers_model::config::Permissions;
use peers_model::goal::GoalKind;

use super::*;
use crate::schema::Described;

const CHECKS: [&str; 2] = ["self-review", "bug-ledger"];

/// The smallest configuration that is valid, eight lines long.
const CONFIG: &str = "\
peers:
  - name: one
    argv: [\"true\"]
  - name: two
    argv: [\"true\"]
# end
";

fn config(extra: &str) -> LoadError {
    load_config(&format!("{CONFIG}{extra}")).unwrap_err()
}

fn goals(text: &str) -> LoadError {
    load_goals(text, 2, &CHECKS).unwrap_err()
}

fn only(error: &LoadError) -> &Problem {
    assert_eq!(error.problems().len(), 1, "{error}");
    error.problems().first().unwrap()
}

fn template(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../templates/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The template with its commented examples made real. Examples are indented, prose is not.
fn uncommented(text: &str, of: &[&str]) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        match line.trim_start().strip_prefix("# ") {
            Some(rest) if indent > 0 && of.iter().any(|key| rest.trim_start().starts_with(key)) => {
                format!("{}{rest}", " ".repeat(indent))
            }
            _ => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_config_template_is_valid_and_holds_the_two_peers() {
    let config = load_config(&template("config.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let argv: Vec<_> = config.peers.iter().map(|peer| peer.argv.join(" ")).collect();
    assert_eq!(
        argv,
        [
            "claude -p --dangerously-skip-permissions --output-format stream-json --verbose",
            "codex exec --json --dangerously-bypass-approvals-and-sandbox -",
        ]
    );
    assert_eq!(config.health.idle_timeout_s.get(), 1800);
    assert_eq!(config.health.absolute_max_runtime_s.get(), 14_400);
}

#[test]
fn the_values_shown_in_the_config_template_are_the_defaults() {
    let shown = load_config(&template("config.yaml")).unwrap();
    let bare = load_config(CONFIG).unwrap();
    let but_peers_and_timeouts = |mut config: Config| {
        config.peers.clear();
        config.health.idle_timeout_s = std::num::NonZeroU32::MIN;
        config.health.absolute_max_runtime_s = std::num::NonZeroU32::MIN;
        format!("{config:#?}")
    };
    assert_eq!(but_peers_and_timeouts(shown), but_peers_and_timeouts(bare));
}

/// The keys that stand commented out in a template, each with the template in which it, with what belongs to
/// it, does not. A commented key stands one blank behind its `#`, what belongs to it further in.
fn each_uncommented(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let comment = |line: &str| {
        let (indent, rest) = line.split_once("# ")?;
        indent.trim().is_empty().then(|| (indent.to_owned(), rest.to_owned()))
    };
    let is_key = |rest: &str| {
        let key = rest.trim_start_matches("- ").split(':').next().unwrap_or_default();
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        // `false: without the reviews` is prose.
        plain && rest.contains(':') && !matches!(key, "true" | "false")
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((indent, rest)) = comment(line).filter(|(_, rest)| is_key(rest)) else { continue };
        let mut text: Vec<String> = lines[..at].iter().map(|line| (*line).to_owned()).collect();
        text.push(format!("{indent}{rest}"));
        let mut more = lines[at + 1..].iter().peekable();
        while let Some((_, rest)) =
            more.peek().and_then(|line| comment(line)).filter(|(_, r)| r.starts_with(' '))
        {
            text.push(format!("{indent}{rest}"));
            more.next();
        }
        text.extend(more.map(|line| (*line).to_owned()));
        found.push((rest, text.join("\n")));
    }
    found
}

#[test]
fn each_commented_key_of_the_config_template_is_valid_by_the_loader_and_by_the_schema() {
    let found = each_uncommented(&template("config.yaml"));
    for (key, text) in &found {
        load_config(text).unwrap_or_else(|e| panic!("{key}: {e}"));
        assert!(described::whole(Described::Config, text), "{key}");
    }
    let is_there = |key: &str| found.iter().any(|(line, _)| line.starts_with(key));
    for key in [
        "rate_limit_max_wait_s:",
        "hang_kill_s:",
        "max_usd_since_progress:",
        "max_tokens_since_progress:",
        "per_peer:",
        "prices:",
        "hooks:",
        "- name: opencode",
        "- name: gamma",
        "model:",
        "error_patterns:",
        "halt_patterns:",
    ] {
        assert!(is_there(key), "{key}: {found:?}");
    }
    let of = |key: &str| {
        let (_, text) = found.iter().find(|(line, _)| line.starts_with(key)).unwrap();
        load_config(text).unwrap()
    };
    assert_eq!(of("error_patterns:").health.error_patterns.map(|list| list.len()), Some(3));
    assert_eq!(of("halt_patterns:").health.halt_patterns.map(|list| list.len()), Some(6));
    assert_eq!(of("- name: gamma").peers[2].permissions, Some(Permissions::Reject));
    assert_eq!(of("hooks:").hooks.halt.len(), 1);
    assert_eq!(of("prices:").prices.len(), 1);
    assert!(of("max_usd_since_progress:").budget.max_usd_since_progress.is_some());
    // What is shown as the default is that.
    assert_eq!(of("rate_limit_max_wait_s:").rate_limit_max_wait_s, of("model:").rate_limit_max_wait_s);
}

#[test]
fn every_key_of_a_configuration_stands_in_its_template() {
    fn keys(schema: &serde_json::Value, out: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(map) => {
                if let Some(serde_json::Value::Object(of)) = map.get("properties") {
                    out.extend(of.keys().cloned());
                }
                map.values().for_each(|value| keys(value, out));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|value| keys(value, out)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    keys(&Described::Config.schema(), &mut all);
    assert!(all.len() > 40, "{all:?}");
    let text = template("config.yaml");
    // The older form of `peers`, and what an entry of a price has for few models.
    let left_out = ["tools", "cache_write"];
    let missing: Vec<_> =
        all.iter().filter(|key| !left_out.contains(&key.as_str()) && !text.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_goals_template_is_valid_and_cannot_complete_as_it_is() {
    let goals = load_goals(&template("goals.yaml"), 2, &CHECKS).unwrap_or_else(|e| panic!("{e}"));
    let hard: Vec<_> = goals
        .iter()
        .filter(|goal| matches!(goal.kind, GoalKind::Hard(_)))
        .map(|goal| goal.id.as_str())
        .collect();
    let shipped: std::collections::BTreeSet<_> = goal::SHIPPED_GATES.into_iter().collect();
    assert_eq!(hard.into_iter().collect::<std::collections::BTreeSet<_>>(), shipped);
    let soft = goals.iter().filter(|goal| matches!(goal.kind, GoalKind::Soft(_))).count();
    assert_eq!(soft, 3);
    assert_eq!(goal_warnings(&goals), Vec::<String>::new());
}

#[test]
fn the_commented_gates_of_the_goals_template_are_valid_too() {
    let text = uncommented(
        &template("goals.yaml"),
        &[
            "- id:",
            "type: ",
            "description: The",
            "cmd: c",
            "cmd: n",
            "pass_when:",
            "timeout_s: 1",
            "reviewer: o",
            "review_interval: 1",
            "prompt: |",
            "Read TASK.md",
            "missing or does",
        ],
    );
    let goals = load_goals(&text, 2, &CHECKS).unwrap_or_else(|e| panic!("{e}"));
    assert!(goals.iter().any(|goal| goal.id.as_str() == "tests-pass"));
    assert!(goals.iter().any(|goal| goal.id.as_str() == "coverage"));
    assert!(goals.iter().any(|goal| goal.id.as_str() == "task-done" && goal.gate().is_none()));
}

#[test]
fn empty_goals_are_no_goals() {
    for text in ["", "goals:\n", "goals: []", "goals: null"] {
        assert_eq!(load_goals(text, 2, &CHECKS).unwrap(), []);
    }
}

#[test]
fn phases_that_make_no_sense_are_told_with_their_line() {
    let gate = "goals:\n- {id: a, type: hard, cmd: x, pass_when: exit_code == 0}\n";
    for (text, line, word) in [
        ("settle: [b]\n", 3, "`settle` names `b`"),
        ("phases: [{name: x, prompt: p}, {name: y, prompt: p}]\n", 3, "phase `x` has no `artifact`"),
        ("phases: [{name: x, prompt: p, artifact: A.md}, {name: x, prompt: p}]\n", 3, "stands twice"),
        ("phases: [{name: x, prompt: p, artifact: A.md, steps: true}]\n", 3, "`steps` is for the last phase"),
        ("phases: [{name: x, prompt: p, artifact: a/B.md}]\n", 3, "no plain name"),
    ] {
        let error = load_goals(&format!("{gate}{text}"), 2, &CHECKS).unwrap_err();
        let told = error.to_string();
        assert!(told.contains(word) && told.contains(&format!("line {line}")), "{text}: {told}");
    }
    let text = format!(
        "{gate}phases: [{{name: x, prompt: p, artifact: A.md}}, {{name: y, prompt: p, steps: true}}]\nsettle: [a]\n"
    );
    load_goals(&text, 2, &CHECKS).unwrap_or_else(|e| panic!("{e}"));
    let course = load_course(&text).unwrap();
    assert!(course.has_steps() && course.settle.len() == 1 && course.phases.len() == 2);
}

#[test]
fn each_broken_text_gives_one_error_with_its_line() {
    for (extra, line, word) in [
        ("observability: {tee_stream: 'false'}\n", 7, "without quotes"),
        ("skeptic:\n  enabled: 1\n", 8, "`true` or `false`"),
        ("budget:\n  max_iterations: true\n", 8, "whole number"),
        ("budget:\n  max_usd: .nan\n", 8, ""),
        ("budget:\n  max_usd: -1\n", 8, "above zero"),
        ("goals:\n  timeout_s: 0\n", 8, ""),
        ("goals:\n  timeout_s: 1.5\n", 8, "whole number"),
        ("buget: {}\n", 7, "did you mean `budget`?"),
        ("max_retries: 1\nmax_retries: 2\n", 8, "duplicate key `max_retries`"),
        ("driver: hook\n", 7, "unknown value of `driver`: `hook`\n"),
        ("\tdriver: hooks\n", 7, ""),
        ("goals:\n\ttimeout_s: 5\n", 8, ""),
    ] {
        let error = config(extra);
        assert_eq!(only(&error).line, Some(line), "{extra:?}: {error}");
        assert!(error.to_string().contains(word), "{extra:?}: {error}");
    }
}

#[test]
fn what_makes_no_sense_is_reported_all_at_once_with_lines_and_carets() {
    let text = "\
# a comment that says name: one
peers:
  - name: one
    argv: [\"\"]
  - name: \"two\" # the other
    argv: [x, \"{PROMPT}\"]
  - {name: one, argv: [y]}
";
    let error = load_config(text).unwrap_err();
    let lines: Vec<_> = error.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(4), Some(6), Some(7)], "{error}");
    let first = error.problems().first().unwrap();
    assert_eq!(first.snippet, "3 |   - name: one\n4 |     argv: [\"\"]\n  |           ^");
    let shown = error.to_string();
    assert!(
        shown.starts_with("config error: .peers/config.yaml line 4: peers[0] (one): `argv` is empty"),
        "{shown}"
    );
    assert_eq!(shown.matches("config error: ").count(), 3, "{shown}");
}

#[test]
fn patterns_that_cannot_be_used_are_named_with_their_line() {
    let error = config(
        "health:\n  halt_patterns:\n  - fine\n  - '(?=x)y'\n  - '['\n  - 'x*'\n  error_patterns: ['(a)\\1']\n",
    );
    let found: Vec<_> = error.problems().iter().map(|p| (p.line.unwrap_or(0), p.message.as_str())).collect();
    let [look, open, all, back] = found.as_slice() else { panic!("{error}") };
    assert!(look.0 == 10 && look.1.starts_with("health.halt_patterns[1]: uses look-around"), "{error}");
    assert!(open.0 == 11 && open.1.contains("unclosed character class"), "{error}");
    assert!(all.0 == 12 && all.1.contains("matches the empty line"), "{error}");
    assert!(back.0 == 13 && back.1.contains("back-reference"), "{error}");
}

#[test]
fn an_unusable_expression_is_pointed_into() {
    let text = "\
goals:
- type: hard
  id: tests-pass
  cmd: make
  pass_when: exit_code == 0 and nonsense > 1
- id: other
  type: hard
  cmd: |
    id: tests-pass
  pass_when: >
    not exit_code
";
    let error = goals(text);
    let [plain, folded] = error.problems() else { panic!("{error}") };
    assert_eq!(plain.line, Some(5), "{error}");
    let source: Vec<_> = plain.snippet.lines().collect();
    let caret = source[2].find('^').unwrap();
    assert!(source[1].get(caret..).is_some_and(|rest| rest.starts_with("nonsense")), "{}", plain.snippet);
    assert_eq!(folded.line, Some(10), "{error}");
    assert!(folded.message.contains("goal `other`: `pass_when`, character "), "{error}");
}

#[test]
fn goals_that_make_no_sense_are_found_by_id_and_key() {
    let text = "\
goals:
  - id: a
    type: hard
    cmd: 'true'
    pass_when: exit_code == 0
    prompt: |
      cmd: not a key
      reviewer: not a key either
  - id: b
    type: soft
    prompt: look
    reviewer: quorum
    quorum: 3/2
  - id: c
    type: hard
    check: self-reviw
  - id: a
    type: hard
    check: bug-ledger
  - {id: d, type: hard, cmd: x}
";
    let error = goals(text);
    let lines: Vec<_> = error.problems().iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(6), Some(13), Some(16), Some(17), Some(20)], "{error}");
    let shown = error.to_string();
    assert!(shown.contains("goals error: .peers/goals.yaml line 13: goal `b`: "), "{shown}");
    assert!(shown.contains("hint: did you mean `self-review`?"), "{shown}");
}

#[test]
fn a_condition_that_yaml_takes_apart_is_told_how_to_stand() {
    let goal =
        |condition: &str| format!("goals:\n- id: a\n  type: hard\n  cmd: x\n  pass_when: {condition}\n");
    for condition in [
        "'passed' in stdout",
        "exit_code == 0 and regex('failed: 0', stdout)",
        "exit_code == 0 and regex('x #y', stdout)",
        r#""regex('\d+ passed', stdout) != None""#,
    ] {
        let error = goals(&goal(condition));
        let problem = only(&error);
        assert_eq!(problem.line, Some(5), "{error}");
        assert!(problem.remedy.as_ref().unwrap().contains("`pass_when: >-`"), "{error}");
        // As the hint says, it stands.
        let plain = condition.trim_matches('"');
        load_goals(&goal(&format!(">-\n    {plain}")), 2, &CHECKS).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn every_mistake_is_told_in_one_go_in_the_order_of_the_file() {
    let text = "\
peers:
  - name: one
    argv: [x]
    colour: red
  - name: 2
    argv: x
    rol: default
  - name: three
    argv: [\"{PROMPT}\"]
budget:
  max_usd: '5'
  max_usd: 6
  max_iterations: 0
  max_tokens: no
health: {hang_s: 3, error_patterns: ['[', ok]}
notify: {on: [complete]}
skeptik: {}
goals:
  soft_consensus_required: 'false'
";
    let error = load_config(text).unwrap_err();
    let found: Vec<_> = error.problems().iter().map(|p| (p.line.unwrap_or(0), p.message.as_str())).collect();
    let expected = [
        (4, "unknown key `colour`"),
        (6, "`peers[1].argv` must be a list (`- entry`), found the text `x`"),
        (7, "unknown key `rol`"),
        (
            9,
            "peers[2] (three): has a prompt placeholder in `argv`, but `prompt_mode: stdin`; set `prompt_mode: argv-substitute` or `file`, or remove it",
        ),
        (
            11,
            "`budget.max_usd` must be an amount of dollars above zero, found the text `5`; write it without quotes",
        ),
        (12, "duplicate key `max_usd`"),
        (13, "`budget.max_iterations` must be a whole number of at least 1, found the number `0`"),
        (14, "`budget.max_tokens` must be a whole number of at least 1, found `no`, which is `false`"),
        (15, "unknown key `hang_s`"),
        (15, "health.error_patterns[0]: is not a usable regular expression: unclosed character class"),
        (16, "unknown key `notify`"),
        (17, "unknown key `skeptik`"),
        (
            19,
            "`goals.soft_consensus_required` must be `true` or `false`, found the text `false`; write it without quotes",
        ),
    ];
    assert_eq!(found, expected, "{error}");
    let hints: Vec<_> = error.problems().iter().filter_map(|p| p.remedy.as_deref()).collect();
    for says in [
        "did you mean `role`?",
        "did you mean `skeptic`?",
        "the first one stands in line 11; keep one of them",
        "this version has no `notify` yet: act on the exit code of `peers run`",
    ] {
        assert!(hints.contains(&says), "{says}: {hints:?}");
    }
    let carets: Vec<_> =
        error.problems().iter().map(|p| p.snippet.lines().last().unwrap_or_default()).collect();
    assert!(carets.iter().all(|line| line.ends_with('^')), "{carets:?}");
}

#[test]
fn every_mistake_of_the_goals_is_told_in_one_go_with_its_goal() {
    let text = "\
goals:
- id: a
  type: hard
  cmd: make
  pass_when: exit_code == 0 and nonsense
- id: B
  type: hrad
  check: self-review
- id: c
  type: hard
  check: self-reviw
  timeout_s: true
- id: d
  type: hard
  check: bug-ledgr
  cachable: true
- type: soft
  reviewer: others
- id: e
  type: hard
";
    let error = goals(text);
    let found: Vec<_> = error.problems().iter().map(|p| (p.line.unwrap_or(0), p.message.as_str())).collect();
    let expected = [
        (5, "goal `a`: `pass_when`: there is no name `nonsense`"),
        (
            6,
            "goal `B`: `goals[1].id`: `B` is not a valid goal id: a lower-case letter or digit, then at most 63 of `a-z 0-9 . _ -`; not 7 or more hex digits alone, which look like a commit",
        ),
        (7, "goal `B`: unknown value of `goals[1].type`: `hrad`"),
        (12, "goal `c`: `goals[2].timeout_s` must be a whole number of at least 1, found `true`"),
        (16, "goal `d`: unknown key `cachable`"),
        (17, "missing key `id` in `goals[4]`"),
        (18, "unknown value of `goals[4].reviewer`: `others`"),
        (20, "goal `e`: a hard goal needs `cmd` or `check`"),
    ];
    let short: Vec<_> =
        found.iter().map(|(line, text)| (*line, text.split("; known").next().unwrap_or(text))).collect();
    for (got, want) in short.iter().zip(expected) {
        assert_eq!(got.0, want.0, "{error}");
        assert!(
            want.0 == 5 && got.1.starts_with("goal `a`: `pass_when`: ") || *got == want,
            "{got:?} {want:?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{error}");
}

#[test]
fn a_hook_is_a_program_with_arguments_and_a_limit() {
    let with = |hooks: &str| {
        load_config(&format!("peers:\n- {{name: a, argv: [x]}}\n- {{name: b, argv: [x]}}\nhooks: {hooks}\n"))
    };
    let config = with("{pre_turn: [{cmd: [a, '']}, {cmd: [b], timeout_s: 3}]}").unwrap();
    let found: Vec<_> =
        config.hooks.pre_turn.iter().map(|one| (one.cmd.len(), one.timeout_s.get())).collect();
    assert_eq!(found, [(2, 30), (1, 3)]);
    for (hooks, says) in [
        ("{halt: [{cmd: []}]}", "needs at least 1 entry, has 0"),
        ("{halt: [{cmd: [' ', x]}]}", "hooks.halt[0]: `cmd` names no program"),
        ("{halt: [{cmd: touch x}]}", "`hooks.halt[0].cmd` must be a list"),
        ("{halt: [{cmd: [x], timeout_s: 0}]}", "must be a whole number of at least 1"),
        ("{halt: {cmd: [x]}}", "`hooks.halt` must be a list"),
        ("{on_stop: []}", "unknown key `on_stop`"),
    ] {
        let error = with(hooks).unwrap_err();
        assert_eq!(error.problems()[0].line, Some(4), "{error}");
        assert!(error.to_string().contains(says), "{hooks}: {error}");
    }
}

#[test]
fn a_tools_map_becomes_peers_in_the_order_of_the_file() {
    let text = "tools:\n  codex: {argv: [codex, exec]}\n  claude:\n    argv: [claude, -p]\n    model: opus\n";
    let config = load_config(text).unwrap_or_else(|e| panic!("{e}"));
    let peers: Vec<_> =
        config.peers.iter().map(|p| (p.name.as_str(), p.tool_name(), p.model.as_deref())).collect();
    assert_eq!(peers, [("codex", "codex", None), ("claude", "claude", Some("opus"))]);
    for (text, line, says) in [
        ("tools: {claude: {argv: [a]}}\n", Some(1), "needs at least two peers, has 1"),
        ("tools: {a: {argv: [a]}, b: {argv: [b], role: recovery}}\n", Some(1), "unknown key `role`"),
        (
            "tools: {a: {argv: [a]}, b: {argv: [b], model: m}}\n",
            Some(1),
            "`model` works for the tools claude",
        ),
        ("tools: {a b: {argv: [a]}, c: {argv: [b]}}\n", Some(1), "`a b` is not a peer name"),
        ("tools: {a: {argv: [a]}, a: {argv: [b]}}\n", Some(1), "duplicate key `a`"),
        ("tools: {a: {argv: [a]}, log: {argv: [b]}}\n", Some(1), "`log` is a reserved name"),
        ("tools: {a: {argv: [a]}, b: {argv: []}}\n", Some(1), "needs at least 1 entry, has 0"),
        ("tools: [a, b]\n", Some(1), "`tools` must be a mapping"),
        ("driver: hooks\n", None, "missing key `peers`"),
    ] {
        let error = load_config(text).unwrap_err();
        assert!(
            error.problems().iter().any(|p| p.line == line && p.message.contains(says)),
            "{text}: {error}"
        );
    }
    let both = config_text("tools: {a: {argv: [a]}, b: {argv: [b]}}\n");
    let error = load_config(&both).unwrap_err();
    assert_eq!(only(&error).message, "`peers` and `tools` are two forms of the same; keep one of them");
    assert_eq!(only(&error).line, Some(7));
}

#[test]
fn each_field_of_a_tool_is_that_of_its_peer() {
    let fields = "argv: [codex, '{PROMPT}'], prompt_mode: argv-substitute, model: m, reasoning: high, provider: openai";
    let tools =
        load_config(&format!("tools: {{codex: {{{fields}}}, claude: {{argv: [claude]}}}}\n")).unwrap();
    let list = format!("peers: [{{name: codex, {fields}}}, {{name: claude, argv: [claude]}}]\n");
    let peers = load_config(&list).unwrap();
    let asked = load_config("tools: {acp: {argv: [x], permissions: reject}, claude: {argv: [claude]}}\n");
    assert_eq!(asked.unwrap().peers[0].permissions, Some(Permissions::Reject));
    for (a, b) in tools.peers.iter().zip(&peers.peers) {
        assert_eq!(
            (&a.argv, a.prompt_mode, &a.model, &a.reasoning, &a.provider),
            (&b.argv, b.prompt_mode, &b.model, &b.reasoning, &b.provider)
        );
        assert_eq!((&a.name, a.tool_name(), a.role), (&b.name, b.tool_name(), b.role));
    }
}

#[test]
fn caps_of_a_peer_name_one_that_is_there() {
    let error = config("budget:\n  per_peer:\n    one: {max_usd: 3}\n    tow: {max_tokens: 5}\n");
    let problem = only(&error);
    assert_eq!(
        (problem.line, problem.message.as_str()),
        (Some(10), "budget.per_peer.tow: no peer has this name")
    );
    let sound = load_config(&config_text("budget:\n  per_peer: {one: {max_usd: 3}}\n")).unwrap();
    assert_eq!(sound.budget.per_peer.len(), 1);
}

fn config_text(extra: &str) -> String {
    format!("{CONFIG}{extra}")
}

#[test]
fn gates_that_cannot_turn_red_are_warned_of() {
    let text = "\
goals:
- {id: a, type: hard, cmd: 'make || true', pass_when: exit_code == 0}
- {id: b, type: hard, cmd: make, pass_when: exit_code == 0 or True}
- {id: c, type: hard, cmd: 'make || true', pass_when: \"'ok' in stdout and not regex('FAIL', stdout)\"}
";
    let warnings = goal_warnings(&load_goals(text, 2, &CHECKS).unwrap_or_else(|e| panic!("{e}")));
    let [forced, constant] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(forced.contains("`a`") && forced.contains("|| true"));
    assert!(constant.contains("`b`"));
}

#[test]
fn arguments_that_a_check_does_not_know_are_told_with_their_line() {
    for args in ["[--all]", "[--head, HEAD~3]", "['--min-severity']", "[--min-severity, awful]", "[now]"] {
        let text = format!("goals:\n- id: a\n  type: hard\n  check: bug-ledger\n  args: {args}\n");
        let error = goals(&text);
        let problem = only(&error);
        assert!(problem.line == Some(5) && problem.message.contains("bug-ledger: "), "{problem:?}");
    }
    let text = "goals:\n- {id: a, type: hard, check: bug-ledger, args: [--min-severity, high]}\n";
    assert_eq!(load_goals(text, 2, &CHECKS).unwrap().len(), 1);
}

#[test]
fn what_can_never_be_run_is_told_with_its_line() {
    let long = "x".repeat(131_072);
    for (extra, line, says) in [
        (
            "verify: {commands: [{cmd: \"a\\0b\"}]}\n".to_owned(),
            7,
            "`verify.commands[0].cmd` has a NUL character",
        ),
        (
            format!("verify: {{commands: [{{cmd: {long}}}]}}\n"),
            7,
            "`verify.commands[0].cmd` is 131072 bytes long",
        ),
        (
            "goals: {env: [A=1]}\n".to_owned(),
            7,
            "`goals.env[0]`: `A=1` is not the name of an environment variable",
        ),
        ("goals: {env: ['']}\n".to_owned(), 7, "`goals.env[0]` is not the name of an environment variable"),
    ] {
        let error = config(&extra);
        let problem = only(&error);
        assert!(problem.message.contains(says), "{error}");
        assert_eq!(problem.line, Some(line), "{error}");
    }
    let argv = CONFIG.replacen("[\"true\"]", "[\"true\", \"a\\0\"]", 1);
    let error = load_config(&argv).unwrap_err();
    assert!(only(&error).message.contains("`peers[0].argv[1]` has a NUL character"), "{error}");
    assert_eq!(only(&error).line, Some(3));
}

#[test]
fn goals_that_can_never_work_are_told_with_their_line() {
    for (entry, says) in [
        ("type: hard, cmd: \"a\\0\", pass_when: exit_code == 0", "`cmd` has a NUL character"),
        ("type: hard, check: self-review, args: [\"\\0\"]", "an entry of `args` has a NUL"),
        ("type: hard, cmd: x, pass_when: exit_code == 0, args: [y]", "`args` belongs to `check`"),
        ("type: soft, prompt: p, reviewer: other, paths: ['']", "is empty; remove it"),
        (
            "type: soft, prompt: p, reviewer: other, paths: ['src/*.{py,js}']",
            "write one glob for each choice",
        ),
        (
            "type: hard, cmd: x, pass_when: exit_code == 0, tree: live, cacheable: true",
            "a kept answer would be the last word on it",
        ),
        (
            "type: soft, prompt: p, reviewer: other, paths: [../x]",
            "`../x` in `paths` leads out of the repository",
        ),
        ("type: soft, prompt: p, reviewer: other, paths: [/etc]", "`/etc` in `paths` is absolute"),
    ] {
        let error = goals(&format!("goals:\n- {{id: x, {entry}}}\n"));
        assert!(only(&error).message.contains(says), "{error}");
        assert_eq!(only(&error).line, Some(2), "{error}");
    }
}
