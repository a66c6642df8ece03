//! `peers info`.

use super::*;
use std::fmt::Write as _;

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
    insta::assert_snapshot!(with(|info| info_text(info, Colour::Plain)));
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
    let known = |tokens, money| Accounting { tokens, money, ..Accounting::default() };
    let vague = Accounting { vague: true, ..known(true, true) };
    assert_eq!(vague.words(), "tokens, cost and limits are known as far as the agent tells them");
    let (plain, half, all) = (known(false, false), known(true, false), known(true, true));
    let switch = Accounting { missing: Some("--json".into()), ..plain.clone() };
    let mut page = String::new();
    for (budget, usd, of) in [
        ("{}", None, [&plain, &plain]),
        ("{max_usd: 1, max_usd_mode: 'off'}", None, [&plain, &plain]),
        ("{}", Some(5), [&plain, &all]),
        ("{max_usd: 1, max_tokens: 9}", None, [&plain, &half]),
        (
            "{max_usd_mode: 'off', max_usd: 1, max_usd_since_progress: 1, max_tokens_since_progress: 9}",
            None,
            [&plain, &half],
        ),
        ("{per_peer: {a: {max_tokens: 9, max_usd: 1}, b: {max_usd: 1}}}", None, [&plain, &half]),
        ("{per_peer: {a: {max_tokens: 9, max_usd: 1}, b: {max_usd: 1}}}", None, [&all, &all]),
        ("{max_usd_mode: warn, per_peer: {b: {max_usd: 1}}}", None, [&plain, &all]),
        ("{max_usd_mode: 'off', per_peer: {b: {max_usd: 1}}}", None, [&plain, &all]),
        ("{}", None, [&switch, &all]),
    ] {
        let config = load_config(&format!(
            "peers:\n- {{name: a, argv: [x]}}\n- {{name: b, argv: [y]}}\nbudget: {budget}\n"
        ));
        let found =
            crate::doubts(&config.unwrap(), &of.map(Clone::clone), usd.map(peers_model::Usd::from_micros));
        let words = of.map(Accounting::words).join(" | ");
        let _ = writeln!(page, "{budget} {}\n  {words}", if usd.is_some() { "--max-usd" } else { "" });
        for doubt in found {
            let _ = writeln!(page, "  {}: {}", if doubt.loud { "loud" } else { "note" }, doubt.text);
        }
    }
    insta::assert_snapshot!(page);
}
