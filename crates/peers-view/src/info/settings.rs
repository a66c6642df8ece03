//! Every setting of the configuration, with the value in effect and whether the file has it.

use std::collections::BTreeSet;

use peers_model::PeerName;
use peers_model::config::{Config, Hook, OnPeerUnavailable, PeerBudget, PositiveUsd, VerifyCommand};
use peers_model::keys::{self, Key, Shape};
use peers_sys::yaml;
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
    pub(super) key: String,
    value: Value,
    /// What stands in place of the value, where that says more.
    words: Option<String>,
}

impl Setting {
    /// `timeout_s 120 (default)`. The group says what comes before the last part of the key.
    pub(super) fn shown(&self, group: &Group, given: &BTreeSet<String>) -> String {
        let short = group.label.strip_suffix(".*").unwrap_or(group.label);
        let key = self.key.strip_prefix(short).and_then(|key| key.strip_prefix('.')).unwrap_or(&self.key);
        let value = self.words.clone().unwrap_or_else(|| plain(&self.value));
        let from = if given.contains(&self.key) { "" } else { " (default)" };
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

/// The groups, with the mapping whose keys each shows; the first and the last have none of their own.
const GROUPS: [(&str, &str); 9] = [
    ("config", ""),
    ("budget", "budget"),
    ("health", "health"),
    ("goals.*", "goals"),
    ("skeptic", "skeptic"),
    ("setup", "setup"),
    ("verify", "verify"),
    ("hooks", "hooks"),
    ("more", ""),
];

/// All keys that are declared, but the peers.
pub(super) fn groups(config: &Config) -> Vec<Group> {
    let mut groups = GROUPS.map(|(label, _)| Group { label, settings: Vec::new() });
    // Our own types serialise.
    let values = serde_json::to_value(config).unwrap_or_default();
    for key in keys::of::<Config>().keys.iter().filter(|key| !matches!(key.name, "peers" | "tools")) {
        let label = match GROUPS.iter().find(|(_, table)| *table == key.name) {
            Some((label, _)) => label,
            None if matches!(key.shape, Shape::Table(_)) || key.name == "pipeline_gates" => "more",
            None => "config",
        };
        let Some(group) = groups.iter_mut().find(|group| group.label == label) else { continue };
        let value = values.get(key.name);
        match &key.shape {
            Shape::Table(table) => group.settings.extend(table.keys.iter().map(|inner| {
                let value = value.and_then(|value| value.get(inner.name));
                setting(format!("{}.{}", key.name, inner.name), inner, value, config)
            })),
            _ => group.settings.push(setting(key.name.to_owned(), key, value, config)),
        }
    }
    groups.into()
}

fn setting(path: String, key: &Key, value: Option<&Value>, config: &Config) -> Setting {
    let value = value.cloned().or_else(|| key.default.map(|default| default())).unwrap_or_default();
    let words = words(&path, config);
    Setting { key: path, value, words }
}

/// What stands in place of a value, where that says more.
fn words(key: &str, config: &Config) -> Option<String> {
    let Config { budget, health, goals, setup, verify, .. } = config;
    let dollars = |usd: Option<PositiveUsd>| usd.map(|usd| usd.0.to_string());
    // Patterns are long; the JSON form has them.
    let patterns = |list: &Option<Vec<String>>| {
        Some(list.as_ref().map_or_else(|| "built-in".to_owned(), |list| count_of(list, "pattern")))
    };
    match key {
        "on_peer_unavailable" if config.on_peer_unavailable == OnPeerUnavailable::Auto => {
            let peers = config.peers.len();
            Some(format!("auto: {} with {peers} peers", if peers > 2 { "continue" } else { "halt" }))
        }
        "prices" => Some(prices(config)),
        "budget.max_usd" => dollars(budget.max_usd),
        "budget.max_usd_since_progress" => dollars(budget.max_usd_since_progress),
        "budget.per_peer" => Some(per_peer(config)),
        "health.error_patterns" => patterns(&health.error_patterns),
        "health.halt_patterns" => patterns(&health.halt_patterns),
        "goals.stuck_halt_gates" if goals.stuck_halt_gates.is_none() => Some("tests-pass".to_owned()),
        "goals.parallel" if goals.parallel.is_none() => Some("one per processor, at most 4".to_owned()),
        "setup.commands" => Some(list(setup.commands.iter().map(|command| command.cmd.clone()))),
        "verify.timeout_s" if verify.timeout_s.is_none() => Some(format!("{}, as goals.*", goals.timeout_s)),
        "verify.commands" => {
            let name = |command: &VerifyCommand| command.name.clone().unwrap_or_else(|| command.cmd.clone());
            Some(list(verify.commands.iter().map(name)))
        }
        _ => {
            let hook = Hook::ALL.into_iter().find(|hook| key.strip_prefix("hooks.") == Some(hook.word()))?;
            Some(list(config.hooks.of(hook).iter().map(|command| command.cmd.join(" "))))
        }
    }
}

/// The models whose prices the operator set.
fn prices(config: &Config) -> String {
    if config.prices.is_empty() {
        return "built-in".to_owned();
    }
    format!("built-in, and for {}", list(config.prices.keys().cloned().collect::<Vec<_>>().into_iter()))
}

fn per_peer(config: &Config) -> String {
    let own = |(name, cap): (&PeerName, &PeerBudget)| {
        let tokens = cap.max_tokens.map(|most| count(most.get(), "token"));
        let usd = cap.max_usd.map(|most| most.0.to_string());
        let caps: Vec<_> = [tokens, usd].into_iter().flatten().collect();
        format!("{name} {}", if caps.is_empty() { "no cap".to_owned() } else { caps.join(" and ") })
    };
    match config.budget.per_peer.iter().map(own).collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        some => some.join(", "),
    }
}

/// For programs: `{key: {value, default}}`.
pub(super) fn json(config: &Config, given: &BTreeSet<String>) -> Value {
    let all = groups(config).into_iter().flat_map(|group| group.settings);
    let entry = |setting: Setting| {
        let default = !given.contains(&setting.key);
        (setting.key.clone(), json!({"value": setting.value, "default": default}))
    };
    Value::Object(all.map(entry).collect())
}
