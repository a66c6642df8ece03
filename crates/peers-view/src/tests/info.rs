//! `peers info`.

use peers_store::load::{load_config, load_goals};
use serde_json::Value;

use super::is_harmless;
use crate::{Accounting, Colour, Confinement, Info, Lock, info_json, info_text, keys};

const CONFIG: &str = "peers:
- name: claude
  argv: [claude, -p, --output-format, stream-json]
  model: large
- name: codex
  argv: [codex, exec, --json, '-']
  role: recovery
health: {idle_timeout_s: 1800, absolute_max_runtime_s: 14400}
budget: {max_iterations: 50, max_usd: 12.5}
";

const GOALS: &str = "goals:
- id: tests-pass
  type: hard
  cmd: cargo test
  pass_when: exit_code == 0
  tree: live
- id: reviewed
  type: hard
  check: self-review
- id: docs-read
  type: soft
  reviewer: both
  prompt: Read the docs.
  review_interval: 2
";

fn with<T>(use_it: impl FnOnce(&Info<'_>) -> T) -> T {
    let config = load_config(CONFIG).unwrap();
    let goals = load_goals(GOALS, 2, &["self-review"]).unwrap();
    let warnings = ["goal `x`: \u{1b}[31mred".to_owned()];
    let accounting = [
        Accounting { missing: Some("--verbose".into()), ..Accounting::default() },
        Accounting { tokens: true, remedy: Some("set its `model`".into()), ..Accounting::default() },
    ];
    use_it(&Info {
        target: "/home/ann/repo",
        config: &config,
        given: &keys(CONFIG),
        goals: &goals,
        warnings: &warnings,
        lock: &Lock::Free,
        confinement: Confinement::Unconfined,
        accounting: &accounting,
        accept_digest: None,
        set: &[],
    })
}

#[test]
fn every_value_in_force_is_said() {
    let text = with(|info| info_text(info, Colour::Plain));
    let expected = "target:    /home/ann/repo
lock:      not held
sandbox:   unconfined: peers run without a sandbox
peers:     2
 - claude (tool=claude, prompt_mode=stdin, role=default, model=large)
     claude -p --output-format stream-json
     tokens, cost and limits stay unknown: `--verbose` is missing in argv
 - codex (tool=codex, prompt_mode=stdin, role=recovery)
     codex exec --json -
     tokens and limits are known, cost is not
config:    driver orchestrator (default), comm git (default),
           max_retries 1 (default), recovery_interval 8 (default),
           on_peer_unavailable auto: halt with 2 peers (default),
           rate_limit_max_wait_s 21600 (default), prices built-in (default)
budget:    max_iterations 50, max_runtime_s 21600 (default),
           max_wall_s null (default), deadline null (default),
           max_consecutive_failures 5 (default), max_tokens null (default),
           max_usd $12.50, max_usd_mode auto (default),
           max_tokens_since_progress null (default),
           max_usd_since_progress null (default), per_peer none (default)
           max_usd is hard (auto: how the peers are billed is unknown, and a cap
           must hold)
health:    idle_timeout_s 1800, absolute_max_runtime_s 14400,
           hang_kill_s null (default), buf_cap_bytes 2097152 (default),
           error_patterns built-in (default), halt_patterns built-in (default)
goals.*:   timeout_s 120 (default), convergence_n 3 (default),
           stuck_halt_after 5 (default), idle_halt_after 3 (default),
           trial_s 600 (default), stuck_halt_gates tests-pass (default),
           soft_consensus_required true (default), env [] (default),
           parallel one per processor, at most 4 (default),
           strict_tree false (default)
skeptic:   enabled true (default), rounds 1 (default), max_attempts 3 (default)
setup:     commands [] (default), paths [] (default)
verify:    timeout_s 120, as goals.* (default), commands [] (default)
hooks:     pre_turn [] (default), post_turn [] (default), pre_gate [] (default),
           post_gate [] (default), converge [] (default), halt [] (default)
more:      pipeline_gates false (default), bug_hunt.test_globs [] (default),
           prompt.max_bytes 65536 (default),
           observability.tee_stream true (default)
goals:     3 (2 hard, 1 soft)
 - tests-pass (hard, live only): cargo test | pass_when exit_code == 0
 - reviewed (hard): check self-review
 - docs-read (soft): reviewer=both, consensus_needed=1, asked at most every 2 ticks
warning:   goal `x`: red
warning:   claude runs claude without `--verbose`: its tokens, cost and limits stay unknown, so `max_usd` does not bind it; add it to its argv
warning:   codex (codex): its cost stays unknown, so `max_usd` does not bind it; set its `model`
";
    assert_eq!(text, expected);
}

#[test]
fn the_json_has_the_same_and_a_schema() {
    let text = with(info_json);
    assert!(is_harmless(&text));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "peers.info/1");
    assert_eq!(json["peers"][1]["role"], "recovery");
    assert_eq!(json["goals"][0]["goal"]["run"]["cmd"], "cargo test");
    assert_eq!(json["max_usd_mode_effective"], "hard");
    assert_eq!(json["settings"]["budget.max_usd"], serde_json::json!({"value": 12.5, "default": false}));
    assert_eq!(json["settings"]["skeptic.rounds"], serde_json::json!({"value": 1, "default": true}));
    assert_eq!(json["budget"]["max_usd"], 12.5);
    assert_eq!(json["peers"][0]["accounting"]["missing"], "--verbose");
    assert_eq!((&json["doubts"][1]["loud"], json["doubts"].as_array().unwrap().len()), (&true.into(), 2));
}

#[test]
fn every_key_of_a_new_file_is_shown_and_what_the_file_sets_is_no_default() {
    const TEMPLATE: &str = include_str!("../../../../templates/config.yaml");
    let config = load_config(TEMPLATE).unwrap();
    let given = keys(TEMPLATE);
    assert!(given.len() > 20, "{given:?}");
    let goals = load_goals(GOALS, 2, &["self-review"]).unwrap();
    let info = Info {
        target: "/repo",
        config: &config,
        given: &given,
        goals: &goals,
        warnings: &[],
        lock: &Lock::Free,
        confinement: Confinement::Unconfined,
        accounting: &[],
        accept_digest: None,
        set: &[],
    };
    let json: Value = serde_json::from_str(&info_json(&info)).unwrap();
    let settings = json["settings"].as_object().unwrap();
    let inner = |key: &&String| given.iter().any(|other| other.starts_with(&format!("{key}.")));
    for key in given.iter().filter(|key| !inner(key) && *key != "peers") {
        assert_eq!(settings[key]["default"], false, "{key}");
    }
    assert_eq!(settings["goals.timeout_s"]["value"], config.goals.timeout_s.get());
    let text = info_text(&info, Colour::Plain);
    for key in settings.keys() {
        let last = key.rsplit('.').next().unwrap();
        assert!(text.contains(&format!("{last} ")), "{key} is missing: {text}");
    }
    let settings = |line: &&str| !line.starts_with("     ") || line.starts_with("           ");
    assert!(
        text.lines().filter(settings).filter(|line| !line.starts_with(" - ")).all(|line| line.len() <= 80)
    );
}

#[test]
fn a_cap_is_said_to_bind_nobody_only_where_it_is_set_and_holds() {
    let known = |tokens, money, missing: Option<&str>| Accounting {
        tokens,
        money,
        missing: missing.map(str::to_owned),
        ..Accounting::default()
    };
    let vague = Accounting { vague: true, ..known(true, true, None) };
    assert_eq!(vague.words(), "tokens, cost and limits are known as far as the agent tells them");
    let said = |budget: &str, usd: Option<u64>, accounting: [Accounting; 2]| -> Vec<String> {
        let config = load_config(&format!(
            "peers:\n- {{name: a, argv: [x]}}\n- {{name: b, argv: [y]}}\nbudget: {budget}\n"
        ));
        let usd = usd.map(peers_model::Usd::from_micros);
        let found = crate::doubts(&config.unwrap(), &accounting, usd);
        found
            .iter()
            .map(|doubt| format!("{}: {}", if doubt.loud { "loud" } else { "note" }, doubt.text))
            .collect()
    };
    let plain = || known(false, false, None);
    assert_eq!(said("{}", None, [plain(), plain()]), Vec::<String>::new());
    assert_eq!(said("{max_usd: 1, max_usd_mode: 'off'}", None, [plain(), plain()]), Vec::<String>::new());
    assert_eq!(said("{}", Some(5), [plain(), known(true, true, None)]).len(), 1);
    assert_eq!(
        said("{max_usd: 1, max_tokens: 9}", None, [plain(), known(true, false, None)]),
        [
            "loud: a (a): its tokens, cost and limits stay unknown, so `max_usd` and `max_tokens` do not bind it",
            "loud: b (b): its cost stays unknown, so `max_usd` does not bind it",
        ]
    );
    assert_eq!(
        said(
            "{max_usd_mode: 'off', max_usd: 1, max_usd_since_progress: 1, max_tokens_since_progress: 9}",
            None,
            [plain(), known(true, false, None)]
        ),
        [
            "loud: a (a): its tokens, cost and limits stay unknown, so `max_usd_since_progress` and `max_tokens_since_progress` do not bind it",
            "loud: b (b): its cost stays unknown, so `max_usd_since_progress` does not bind it",
        ]
    );
    let own = "{per_peer: {a: {max_tokens: 9, max_usd: 1}, b: {max_usd: 1}}}";
    assert_eq!(
        said(own, None, [plain(), known(true, false, None)]),
        [
            "loud: a (a): its tokens, cost and limits stay unknown, so `budget.per_peer.a.max_usd` and `budget.per_peer.a.max_tokens` do not bind it",
            "loud: b (b): its cost stays unknown, so `budget.per_peer.b.max_usd` does not bind it",
        ]
    );
    assert_eq!(said(own, None, [known(true, true, None), known(true, true, None)]), Vec::<String>::new());
    for mode in ["warn", "off"] {
        assert_eq!(
            said(
                &format!("{{max_usd_mode: '{mode}', per_peer: {{b: {{max_usd: 1}}}}}}"),
                None,
                [plain(), known(true, true, None)]
            ),
            [format!(
                "loud: `budget.per_peer.b.max_usd` does not bind: `max_usd_mode` is `{mode}`, it binds in `hard` alone"
            )]
        );
    }
    assert_eq!(
        said("{}", None, [known(false, false, Some("--json")), known(true, true, None)]),
        ["note: a runs a without `--json`: its tokens, cost and limits stay unknown; add it to its argv"]
    );
}
