//! `peers info`: the configuration and the goals in force, nothing run.

mod settings;

use std::collections::BTreeSet;

use peers_core::budget::Caps;
use peers_model::config::{Budget, Config, PeerSpec, Permissions};
use peers_model::goal::{GateRun, Goal, GoalKind, TreeChoice};
use peers_model::review::SoftRule;
use peers_sys::term;
use serde::Serialize;
use serde_json::{Value, json};

use crate::accounting::{Accounting, doubts};
use crate::budget::CapSetByHand;
use crate::json;
use crate::liveness::{Confinement, Lock};
use crate::page::{Cell, Colour, Page, Tone, faint, plain};

pub use self::settings::keys;

/// Terminal cells of a command line.
const COMMAND: usize = 160;
/// Terminal cells of a line of settings, behind their name.
const WIDTH: usize = 69;

/// What is in force.
#[derive(Debug, Clone)]
pub struct Info<'a> {
    /// The repository.
    pub target: &'a str,
    /// The configuration.
    pub config: &'a Config,
    /// The keys that its file has, as [`keys`] finds them.
    pub given: &'a BTreeSet<String>,
    /// The goals.
    pub goals: &'a [Goal],
    /// What is allowed and yet most likely not meant.
    pub warnings: &'a [String],
    /// What a look at the run lock showed.
    pub lock: &'a Lock,
    /// Whether peers are confined.
    pub confinement: Confinement,
    /// What will be known of the use of each peer, in the order of the configuration.
    pub accounting: &'a [Accounting],
    /// The digest of what was accepted, if the files are that.
    pub accept_digest: Option<&'a str>,
    /// The caps that the operator set over the configuration.
    pub set: &'a [CapSetByHand],
}

/// For a terminal. Ends in a newline.
#[must_use]
pub fn info_text(info: &Info<'_>, colour: Colour) -> String {
    info_page(info).text(colour)
}

/// The same as lines.
#[must_use]
pub fn info_page(info: &Info<'_>) -> Page {
    let Info { target, config, given, goals, warnings, lock, confinement, accounting, accept_digest, set } =
        info;
    let mut page = Page::new();
    page.field("target", Tone::Plain, target);
    page.field("lock", Tone::Plain, lock_words(lock));
    page.field("sandbox", Tone::Care, confinement.words());
    if let Some(digest) = accept_digest {
        page.field("digest", Tone::Plain, digest);
    }
    page.field("peers", Tone::Plain, config.peers.len().to_string());
    for (at, peer) in config.peers.iter().enumerate() {
        page.say(format!(" - {}", peer_words(peer)));
        page.line(&[faint("     "), Cell::cut(Tone::Faint, peer.argv.join(" "), COMMAND)]);
        if let Some(known) = accounting.get(at) {
            let tone = if known.missing.is_some() { Tone::Care } else { Tone::Faint };
            page.line(&[faint("     "), Cell::new(tone, known.words())]);
        }
    }
    for group in settings::groups(config) {
        let shown = group.settings.iter().map(|setting| setting.shown(&group, given)).collect();
        fold(&mut page, group.label, ", ", shown);
        if group.label == "budget" && config.budget.max_usd.is_some() {
            let caps = Caps::new(config.budget.clone());
            let mode = format!("max_usd is {} ({})", lower(&caps.usd_mode), caps.usd_mode_reason);
            fold(&mut page, "", " ", mode.split(' ').map(str::to_owned).collect());
        }
        if group.label == "budget" && !set.is_empty() {
            let told = set.iter().map(CapSetByHand::words).collect();
            fold(&mut page, "raised", ", ", told);
        }
    }
    let hard = goals.iter().filter(|goal| matches!(goal.kind, GoalKind::Hard(_))).count();
    page.field("goals", Tone::Plain, format!("{} ({hard} hard, {} soft)", goals.len(), goals.len() - hard));
    for goal in *goals {
        page.line(&[plain(" - "), Cell::cut(Tone::Plain, goal_words(goal), COMMAND)]);
    }
    for warning in *warnings {
        page.field("warning", Tone::Care, warning);
    }
    for doubt in doubts(config, accounting, None) {
        let (name, tone) = if doubt.loud { ("warning", Tone::Bad) } else { ("note", Tone::Care) };
        page.field(name, tone, &doubt.text);
    }
    page
}

/// For programs, schema `peers.info/1`.
#[must_use]
pub fn info_json(info: &Info<'_>) -> String {
    let Info { target, config, given, goals, warnings, lock, confinement, accounting, accept_digest, set } =
        info;
    let caps = Caps::new(config.budget.clone());
    let peers: Vec<Value> = config
        .peers
        .iter()
        .enumerate()
        .map(|(at, peer)| {
            json!({"name": peer.name, "tool": peer.tool_name(), "prompt_mode": peer.prompt_mode, "role": peer.role,
                "model": peer.model, "reasoning": peer.reasoning, "provider": peer.provider,
                "permissions": permissions(peer), "argv": peer.argv,
                "accounting": accounting.get(at)})
        })
        .collect();
    let value = json!({
        "target": target,
        "driver": config.driver,
        "comm": config.comm,
        "lock": lock_words(lock),
        "confinement": confinement,
        "peers": peers,
        "budget": config.budget,
        "budget_defaults": Budget::default(),
        "max_usd_mode_effective": caps.usd_mode,
        "max_usd_mode_reason": caps.usd_mode_reason,
        "health": {
            "idle_timeout_s": config.health.idle_timeout_s,
            "absolute_max_runtime_s": config.health.absolute_max_runtime_s,
            "buf_cap_bytes": config.health.buf_cap_bytes,
        },
        "settings": settings::json(config, given),
        "max_retries": config.max_retries,
        "recovery_interval": config.recovery_interval,
        "skeptic": config.skeptic,
        "goals": goals.iter().map(goal_json).collect::<Vec<_>>(),
        "warnings": warnings,
        "accept_digest": accept_digest,
        "budget_set": set,
        "doubts": doubts(config, accounting, None),
    });
    json::document("peers.info/1", &value)
}

/// A field whose pieces stay whole and go on in further lines.
fn fold(page: &mut Page, name: &str, between: &str, pieces: Vec<String>) {
    let mut lines: Vec<String> = Vec::new();
    let last = pieces.len().saturating_sub(1);
    for (at, piece) in pieces.into_iter().enumerate() {
        let piece = if at == last { piece } else { piece + between.trim_end() };
        match lines.last_mut() {
            Some(line) if term::width(line) + 1 + term::width(&piece) <= WIDTH => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    for (at, line) in lines.iter().enumerate() {
        if at == 0 && !name.is_empty() {
            page.field(name, Tone::Plain, line);
        } else {
            page.line(&[Cell::blank(11), plain(line)]);
        }
    }
}

/// The word that the file has for a value.
fn lower(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn lock_words(lock: &Lock) -> String {
    match lock {
        Lock::Held { pid, run_id } => {
            let run = run_id.as_ref().map(|run| format!(" by run {run}")).unwrap_or_default();
            let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
            format!("held{run}{pid}")
        }
        Lock::Command { pid, command } => {
            let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
            format!("held by `peers {command}`{pid}")
        }
        Lock::Free => "not held".to_owned(),
        Lock::Unreadable(why) => format!("not known: {why}"),
    }
}

fn peer_words(peer: &PeerSpec) -> String {
    let mut parts = vec![
        format!("tool={}", peer.tool_name()),
        format!("prompt_mode={}", lower(&peer.prompt_mode)),
        format!("role={}", lower(&peer.role)),
    ];
    for (key, value) in [("model", &peer.model), ("reasoning", &peer.reasoning), ("provider", &peer.provider)]
    {
        if let Some(value) = value {
            parts.push(format!("{key}={value}"));
        }
    }
    if let Some(permissions) = permissions(peer) {
        parts.push(format!("permissions={}", lower(&permissions)));
    }
    format!("{} ({})", peer.name, parts.join(", "))
}

/// What an agent is answered that asks; others ask nobody.
fn permissions(peer: &PeerSpec) -> Option<Permissions> {
    (peer.tool_name() == "acp").then(|| peer.permissions.unwrap_or_default())
}

fn run_words(run: &GateRun) -> String {
    match run {
        GateRun::Shell { cmd, pass_when } => format!("{cmd} | pass_when {pass_when}"),
        GateRun::Check { name, args } if args.is_empty() => format!("check {name}"),
        GateRun::Check { name, args } => format!("check {name} {}", args.join(" ")),
    }
}

fn run_json(run: &GateRun) -> Value {
    match run {
        GateRun::Shell { cmd, pass_when } => json!({"cmd": cmd, "pass_when": pass_when}),
        GateRun::Check { name, args } => json!({"check": name, "args": args}),
    }
}

fn goal_words(goal: &Goal) -> String {
    match &goal.kind {
        GoalKind::Hard(hard) => {
            let run = run_words(&hard.run);
            let list =
                |word: &str, of: &[String]| (!of.is_empty()).then(|| format!("{word} {}", of.join(", ")));
            let needs: Vec<String> = hard.needs.iter().map(ToString::to_string).collect();
            let more: Vec<String> = [
                (hard.tree == TreeChoice::Live).then(|| "live only".to_owned()),
                hard.in_copy().then(|| "in a copy".to_owned()),
                hard.cacheable.then(|| "cacheable".to_owned()),
                hard.serial.then(|| "serial".to_owned()),
                list("needs", &needs),
                list("paths", &hard.paths),
                list("env", &hard.env),
                hard.cwd.as_ref().map(|cwd| format!("in {cwd}")),
                goal.group.as_ref().map(|group| format!("group {group}")),
            ]
            .into_iter()
            .flatten()
            .collect();
            let more = [vec![String::new()], more].concat().join(", ");
            format!("{} (hard{more}): {run}", goal.id)
        }
        GoalKind::Soft(soft) => {
            let rule = match soft.rule {
                SoftRule::Other { needed } => format!("reviewer=other, consensus_needed={needed}"),
                SoftRule::Both { needed } => format!("reviewer=both, consensus_needed={needed}"),
                SoftRule::Alternating { needed } => {
                    format!("reviewer=alternating, consensus_needed={needed}")
                }
                SoftRule::Quorum { pass, of } => format!("reviewer=quorum, quorum={pass}/{of}"),
            };
            let check = soft.check.as_ref().map(|check| format!(", with {}", run_words(&check.run)));
            let check = check.unwrap_or_default();
            match soft.every {
                1 => format!("{} (soft): {rule}, asked every tick{check}", goal.id),
                every => format!("{} (soft): {rule}, asked at most every {every} ticks{check}", goal.id),
            }
        }
    }
}

fn goal_json(goal: &Goal) -> Value {
    let (kind, more) = match &goal.kind {
        GoalKind::Hard(hard) => (
            "hard",
            json!({
                "run": run_json(&hard.run),
                "tree": hard.tree,
                "retries": hard.retries,
                "timeout_s": hard.timeout_s,
                "cacheable": hard.cacheable,
                "expensive": hard.expensive,
                "serial": hard.serial,
                "needs": hard.needs,
                "paths": hard.paths,
                "env": hard.env,
                "cwd": hard.cwd,
            }),
        ),
        GoalKind::Soft(soft) => {
            let check = soft.check.as_ref().map(|check| run_json(&check.run));
            ("soft", json!({"rule": soft.rule, "every": soft.every, "paths": soft.paths, "check": check}))
        }
    };
    json!({
        "id": goal.id,
        "description": goal.description,
        "group": goal.group,
        "weight": goal.weight,
        "type": kind,
        "goal": more,
    })
}
