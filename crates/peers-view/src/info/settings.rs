//! Every setting of the configuration, with the value in effect and whether the file has it.

use std::collections::BTreeSet;

use peers_model::PeerName;
use peers_model::config::{Config, Hook, OnPeerUnavailable, PeerBudget};
use peers_sys::yaml;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::words::{count, count_of};

/// Texts of a list that are named.
const NAMED: usize = 8;

/// The keys that a configuration file has, such as `goals.timeout_s`; entries of lists are not looked
/// into.
#[must_use]
pub fn keys(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // A file that cannot be read is said by whoever loads it.
    if let Ok(Value::Object(map)) = yaml::from_str("config.yaml", text) {
        for (key, value) in &map {
            for inner in value.as_object().into_iter().flat_map(Map::keys) {
                found.insert(format!("{key}.{inner}"));
            }
            found.insert(key.clone());
        }
    }
    found
}

/// Settings that are shown together.
pub(super) struct Group {
    /// What stands before them.
    pub(super) label: &'static str,
    /// In the order of the documentation.
    pub(super) settings: Vec<Setting>,
}

/// One setting.
pub(super) struct Setting {
    /// Its key, such as `goals.timeout_s`.
    pub(super) key: &'static str,
    value: Value,
    /// What stands in place of the value, where that says more.
    words: Option<String>,
}

impl Setting {
    /// `timeout_s 120 (default)`. The group says what comes before the last part of the key.
    pub(super) fn shown(&self, group: &Group, given: &BTreeSet<String>) -> String {
        let short = group.label.strip_suffix(".*").unwrap_or(group.label);
        let key = self.key.strip_prefix(short).and_then(|key| key.strip_prefix('.')).unwrap_or(self.key);
        let value = self.words.clone().unwrap_or_else(|| plain(&self.value));
        let from = if given.contains(self.key) { "" } else { " (default)" };
        format!("{key} {value}{from}")
    }
}

/// A value as the file has it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Null => "null".to_owned(),
        Value::Array(all) => list(all.iter().map(plain)),
        other => other.to_string(),
    }
}

/// `[a, b]`, with the number of those that are left out.
fn list(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let named: Vec<String> = all.take(NAMED).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("[{}{more}]", named.join(", "))
}

fn setting(key: &'static str, value: impl Serialize) -> Setting {
    // Our own types serialise.
    Setting { key, value: serde_json::to_value(value).unwrap_or_default(), words: None }
}

fn said(key: &'static str, value: impl Serialize, words: Option<String>) -> Setting {
    Setting { words, ..setting(key, value) }
}

/// All of them but the peers.
pub(super) fn groups(config: &Config) -> Vec<Group> {
    let Config { driver, comm, peers, max_retries, recovery_interval, on_peer_unavailable, .. } = config;
    let longest = config.rate_limit_max_wait_s;
    let decided = (*on_peer_unavailable == OnPeerUnavailable::Auto).then(|| {
        format!("auto: {} with {} peers", if peers.len() > 2 { "continue" } else { "halt" }, peers.len())
    });
    let first = vec![
        setting("driver", driver),
        setting("comm", comm),
        setting("max_retries", max_retries),
        setting("recovery_interval", recovery_interval),
        said("on_peer_unavailable", on_peer_unavailable, decided),
        setting("rate_limit_max_wait_s", longest),
        said("prices", &config.prices, Some(prices(config))),
    ];
    vec![
        Group { label: "config", settings: first },
        Group { label: "budget", settings: budget(config) },
        Group { label: "health", settings: health(config) },
        Group { label: "goals.*", settings: gates(config) },
        Group { label: "skeptic", settings: skeptic(config) },
        Group { label: "setup", settings: setup(config) },
        Group { label: "verify", settings: verify(config) },
        Group { label: "hooks", settings: hooks(config) },
        Group {
            label: "more",
            settings: vec![
                setting("pipeline_gates", config.pipeline_gates),
                setting("bug_hunt.test_globs", &config.bug_hunt.test_globs),
                setting("prompt.max_bytes", config.prompt.max_bytes),
                setting("observability.tee_stream", config.observability.tee_stream),
            ],
        },
    ]
}

/// The models whose prices the operator set.
fn prices(config: &Config) -> String {
    if config.prices.is_empty() {
        return "built-in".to_owned();
    }
    format!("built-in, and for {}", list(config.prices.keys().cloned().collect::<Vec<_>>().into_iter()))
}

fn budget(config: &Config) -> Vec<Setting> {
    let budget = &config.budget;
    let dollars = budget.max_usd.map(|usd| usd.0.to_string());
    let own = |(name, cap): (&PeerName, &PeerBudget)| {
        let tokens = cap.max_tokens.map(|most| count(most.get(), "token"));
        let usd = cap.max_usd.map(|most| most.0.to_string());
        let caps: Vec<_> = [tokens, usd].into_iter().flatten().collect();
        format!("{name} {}", if caps.is_empty() { "no cap".to_owned() } else { caps.join(" and ") })
    };
    let per_peer = match budget.per_peer.iter().map(own).collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        some => some.join(", "),
    };
    vec![
        setting("budget.max_iterations", budget.max_iterations),
        setting("budget.max_runtime_s", budget.max_runtime_s),
        setting("budget.max_wall_s", budget.max_wall_s),
        setting("budget.deadline", budget.deadline),
        setting("budget.max_consecutive_failures", budget.max_consecutive_failures),
        setting("budget.max_tokens", budget.max_tokens),
        said("budget.max_usd", budget.max_usd, dollars),
        setting("budget.max_usd_mode", budget.max_usd_mode),
        setting("budget.max_tokens_since_progress", budget.max_tokens_since_progress),
        said(
            "budget.max_usd_since_progress",
            budget.max_usd_since_progress,
            budget.max_usd_since_progress.map(|usd| usd.0.to_string()),
        ),
        said("budget.per_peer", &budget.per_peer, Some(per_peer)),
    ]
}

fn health(config: &Config) -> Vec<Setting> {
    let health = &config.health;
    // Patterns are long; the JSON form has them.
    let patterns = |list: &Option<Vec<String>>| {
        Some(list.as_ref().map_or_else(|| "built-in".to_owned(), |list| count_of(list, "pattern")))
    };
    vec![
        setting("health.idle_timeout_s", health.idle_timeout_s),
        setting("health.absolute_max_runtime_s", health.absolute_max_runtime_s),
        setting("health.hang_kill_s", health.hang_kill_s),
        setting("health.buf_cap_bytes", health.buf_cap_bytes),
        said("health.error_patterns", &health.error_patterns, patterns(&health.error_patterns)),
        said("health.halt_patterns", &health.halt_patterns, patterns(&health.halt_patterns)),
    ]
}

fn gates(config: &Config) -> Vec<Setting> {
    let goals = &config.goals;
    let watched = goals.stuck_halt_gates.is_none().then(|| "tests-pass".to_owned());
    let parallel = goals.parallel.is_none().then(|| "one per processor, at most 4".to_owned());
    vec![
        setting("goals.timeout_s", goals.timeout_s),
        setting("goals.convergence_n", goals.convergence_n),
        setting("goals.stuck_halt_after", goals.stuck_halt_after),
        setting("goals.idle_halt_after", goals.idle_halt_after),
        setting("goals.trial_s", goals.trial_s),
        said("goals.stuck_halt_gates", &goals.stuck_halt_gates, watched),
        setting("goals.soft_consensus_required", goals.soft_consensus_required),
        setting("goals.env", &goals.env),
        said("goals.parallel", goals.parallel, parallel),
        setting("goals.strict_tree", goals.strict_tree),
    ]
}

fn skeptic(config: &Config) -> Vec<Setting> {
    let skeptic = &config.skeptic;
    vec![
        setting("skeptic.enabled", skeptic.enabled),
        setting("skeptic.rounds", skeptic.rounds),
        setting("skeptic.max_attempts", skeptic.max_attempts),
    ]
}

fn setup(config: &Config) -> Vec<Setting> {
    let setup = &config.setup;
    let commands: Vec<Value> = setup
        .commands
        .iter()
        .map(|command| json!({"cmd": command.cmd, "timeout_s": command.timeout_s}))
        .collect();
    let names = setup.commands.iter().map(|command| command.cmd.clone());
    vec![said("setup.commands", commands, Some(list(names))), setting("setup.paths", &setup.paths)]
}

fn hooks(config: &Config) -> Vec<Setting> {
    let one = |hook| {
        let key = match hook {
            Hook::PreTurn => "hooks.pre_turn",
            Hook::PostTurn => "hooks.post_turn",
            Hook::PreGate => "hooks.pre_gate",
            Hook::PostGate => "hooks.post_gate",
            Hook::Converge => "hooks.converge",
            Hook::Halt => "hooks.halt",
        };
        let commands = config.hooks.of(hook);
        said(key, commands, Some(list(commands.iter().map(|command| command.cmd.join(" ")))))
    };
    Hook::ALL.into_iter().map(one).collect()
}

fn verify(config: &Config) -> Vec<Setting> {
    let verify = &config.verify;
    let limit = verify.timeout_s.is_none().then(|| format!("{}, as goals.*", config.goals.timeout_s));
    let commands: Vec<Value> = verify
        .commands
        .iter()
        .map(|command| json!({"name": command.name, "cmd": command.cmd, "timeout_s": command.timeout_s}))
        .collect();
    let names =
        verify.commands.iter().map(|command| command.name.clone().unwrap_or_else(|| command.cmd.clone()));
    vec![
        said("verify.timeout_s", verify.timeout_s, limit),
        said("verify.commands", commands, Some(list(names))),
    ]
}

/// For programs: `{key: {value, default}}`.
pub(super) fn json(config: &Config, given: &BTreeSet<String>) -> Value {
    let all = groups(config).into_iter().flat_map(|group| group.settings);
    let entry = |setting: Setting| {
        let default = !given.contains(setting.key);
        (setting.key.to_owned(), json!({"value": setting.value, "default": default}))
    };
    Value::Object(all.map(entry).collect())
}
