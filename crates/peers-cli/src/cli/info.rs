//! `peers info`.

use std::process::ExitCode;

use peers_model::config::{Budget, Config, Driver, PeerSpec};
use peers_model::goal::{GateRun, Goal, GoalKind, TreeChoice};
use peers_model::review::SoftRule;
use peers_run::boot::{self, Loaded};
use peers_run::place::{Holder, Place};
use peers_sys::term;
use serde::Serialize as _;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::error::CommandError;

/// Show what is configured; run nothing
///
/// Checks goals and config as `run` does and prints what is in effect.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let holder = place.holder()?;
    if args.json {
        cx.out.json("peers.info/1", &document(&place, &loaded, holder.as_ref()))?;
    } else {
        cx.out.data(&text(&place, &loaded, holder.as_ref()))?;
    }
    let changed = loaded.unaccepted();
    if !changed.is_empty() {
        cx.out.talk(&format!("note: {} changed since it was accepted; `peers goals diff` shows it", changed.join(" and ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(place: &Place, loaded: &Loaded, holder: Option<&Holder>) -> String {
    let Config { driver, comm, peers, health, budget, goals: settings, skeptic, .. } = &loaded.config;
    let mut lines = vec![
        format!("target: {}", term::inline(&place.work_dir().to_string_lossy())),
        format!("store: {}", term::inline(&place.store_dir().to_string_lossy())),
        format!("lock: {}", holder.map_or("free".to_owned(), |holder| format!("held ({holder})"))),
        "sandbox: none (unconfined)".to_owned(),
        format!("driver: {}", word(driver)),
        format!("comm: {}", word(comm)),
        format!("peers: {}", peers.len()),
    ];
    for peer in peers {
        lines.extend(peer_lines(peer));
    }
    lines.push(budget_line(budget));
    lines.push(format!(
        "health: idle≤{}s, abs≤{}s, buf_cap={} bytes",
        health.idle_timeout_s, health.absolute_max_runtime_s, health.buf_cap_bytes
    ));
    let rounds = if skeptic.enabled { skeptic.rounds.to_string() } else { "off".to_owned() };
    lines.push(format!(
        "complete: reviews {}, skeptic rounds {rounds}",
        if settings.soft_consensus_required { "required" } else { "not required" }
    ));
    let hard = loaded.goals.iter().filter(|goal| matches!(goal.kind, GoalKind::Hard(_))).count();
    let total = loaded.goals.len();
    lines.push(format!("goals: {total} ({hard} hard, {} soft)", total - hard));
    lines.extend(loaded.goals.iter().map(goal_line));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn peer_lines(peer: &PeerSpec) -> Vec<String> {
    let mut first = format!(
        " - {} (tool={}, prompt_mode={}, role={}",
        peer.name,
        term::inline(peer.tool_name()),
        word(&peer.prompt_mode),
        word(&peer.role)
    );
    for (key, value) in [("model", &peer.model), ("reasoning", &peer.reasoning), ("provider", &peer.provider)] {
        if let Some(value) = value {
            first.push_str(&format!(", {key}={}", term::inline(value)));
        }
    }
    first.push(')');
    vec![first, format!("   argv: {}", term::inline(&peer.argv.join(" ")))]
}

fn budget_line(budget: &Budget) -> String {
    let shown = |limit: Option<String>| limit.unwrap_or_else(|| "∞".to_owned());
    let mut parts = vec![
        format!("iterations≤{}", shown(budget.max_iterations.map(|n| n.to_string()))),
        format!("runtime≤{}s", shown(budget.max_runtime_s.map(|n| n.to_string()))),
    ];
    parts.extend(budget.max_wall_s.map(|n| format!("wall≤{n}s")));
    parts.extend(budget.max_consecutive_failures.map(|n| format!("failures in a row≤{n}")));
    parts.extend(budget.max_tokens.map(|n| format!("tokens≤{n}")));
    let caps = peers_core::budget::Caps::new(budget.clone());
    parts.extend(budget.max_usd.map(|usd| format!("USD≤{}", usd.0)));
    let mut line = format!("budget: {}", parts.join(", "));
    if budget.max_usd.is_some() {
        line.push_str(&format!(" max_usd_mode={} ({})", word(&caps.usd_mode), caps.usd_mode_reason));
    }
    line
}

fn goal_line(goal: &Goal) -> String {
    match &goal.kind {
        GoalKind::Hard(hard) => {
            let what = match &hard.run {
                GateRun::Shell { cmd, pass_when } => format!("cmd: {} | pass_when: {}", term::line(cmd, 80), term::line(pass_when, 80)),
                GateRun::Check { name, args } => format!("check: {}", term::line(&[&[name.clone()], args.as_slice()].concat().join(" "), 80)),
            };
            let live = if hard.tree == TreeChoice::Live { ", tree: live, not proved in a clean checkout" } else { "" };
            format!(" - {} (hard{live}) {what}", goal.id)
        }
        GoalKind::Soft(soft) => {
            let rule = match soft.rule {
                SoftRule::Other { needed } => format!("reviewer=other, consensus_needed={needed}"),
                SoftRule::Both { needed } => format!("reviewer=both, consensus_needed={needed}"),
                SoftRule::Alternating { needed } => format!("reviewer=alternating, consensus_needed={needed}"),
                SoftRule::Quorum { pass, of } => format!("reviewer=quorum, quorum={pass}/{of}"),
            };
            format!(" - {} (soft) {rule}", goal.id)
        }
    }
}

/// The word that a value has in the file.
fn word<T: serde::Serialize>(value: &T) -> String {
    value.serialize(serde_json::value::Serializer).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn document(place: &Place, loaded: &Loaded, holder: Option<&Holder>) -> Value {
    let Config { driver, comm, peers, health, budget, goals: settings, skeptic, .. } = &loaded.config;
    let _: &Driver = driver;
    let peers: Vec<Value> = peers
        .iter()
        .map(|peer| {
            json!({"name": peer.name, "tool": peer.tool_name(), "argv": peer.argv, "prompt_mode": peer.prompt_mode,
                "role": peer.role, "model": peer.model, "reasoning": peer.reasoning, "provider": peer.provider})
        })
        .collect();
    let goals: Vec<Value> = loaded
        .goals
        .iter()
        .map(|goal| match &goal.kind {
            GoalKind::Hard(hard) => {
                let mut value = json!({"id": goal.id, "type": "hard", "timeout_s": hard.timeout_s, "tree": hard.tree,
                    "retry_on_fail": hard.retries});
                if let Value::Object(map) = &mut value {
                    match &hard.run {
                        GateRun::Shell { cmd, pass_when } => {
                            map.insert("cmd".to_owned(), json!(cmd));
                            map.insert("pass_when".to_owned(), json!(pass_when));
                        }
                        GateRun::Check { name, args } => {
                            map.insert("check".to_owned(), json!(name));
                            map.insert("args".to_owned(), json!(args));
                        }
                    }
                }
                value
            }
            GoalKind::Soft(soft) => json!({"id": goal.id, "type": "soft", "rule": soft.rule, "every": soft.every,
                "paths": soft.paths}),
        })
        .collect();
    let caps = peers_core::budget::Caps::new(budget.clone());
    json!({
        "target": place.work_dir().to_string_lossy(),
        "project": place.id(),
        "store": place.store_dir().to_string_lossy(),
        "lock": {"held": holder.is_some(), "run_id": holder.and_then(|h| h.run_id.clone()), "pid": holder.and_then(|h| h.pid)},
        "sandbox": "none",
        "driver": driver,
        "comm": comm,
        "peers": peers,
        "budget": {
            "max_iterations": budget.max_iterations, "max_runtime_s": budget.max_runtime_s,
            "max_wall_s": budget.max_wall_s, "max_consecutive_failures": budget.max_consecutive_failures,
            "max_tokens": budget.max_tokens, "max_usd": budget.max_usd.map(|usd| usd.0),
            "max_usd_mode": caps.usd_mode, "max_usd_mode_reason": caps.usd_mode_reason,
        },
        "health": {"idle_timeout_s": health.idle_timeout_s, "absolute_max_runtime_s": health.absolute_max_runtime_s,
            "buf_cap_bytes": health.buf_cap_bytes},
        "soft_consensus_required": settings.soft_consensus_required,
        "skeptic": skeptic,
        "goals": goals,
        "digests": loaded.digests,
        "accepted": loaded.unaccepted().is_empty(),
    })
}
