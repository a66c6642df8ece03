//! `state.json` and the small texts below `.peers/`: for people and old scripts, never read back.

use std::fmt::Write as _;

use peers_core::state::{PeerHealth, State};
use peers_model::Timestamp;
use peers_model::outcome::StopReason;
use serde_json::{Map, Value, json};

use crate::disk::{Area, Disk, DiskError};
use crate::journal::Position;
use crate::layout;

/// The state under the names that scripts know, version 3.
#[must_use]
pub fn state_json(state: &State, at: &Position) -> Value {
    let peers: Map<String, Value> = state.peers.iter().map(|(n, h)| (n.to_string(), peer(h))).collect();
    let goals: Map<String, Value> = state
        .board
        .gates
        .iter()
        .filter_map(|(id, s)| {
            let judged = s.last.as_ref()?;
            let row = json!({"state": judged.verdict.word(), "diagnostic": judged.verdict.diagnostic(),
                "duration_ms": judged.duration_ms, "head": judged.at.head, "tree": judged.at.tree});
            Some((id.to_string(), row))
        })
        .collect();
    let stuck: Map<String, Value> =
        state.board.gates.iter().map(|(id, s)| (id.to_string(), json!(s.reds))).collect();
    let roles: Map<String, Value> =
        state.rules.peers.iter().map(|p| (p.name.to_string(), json!(p.role))).collect();
    json!({
        "schema_version": 3,
        "at": at,
        "run_id": state.run.as_ref().map(|r| &r.id),
        "iteration": state.ticks,
        "turn_index": state.turn_index,
        "peer_order": state.rules.peers.iter().map(|p| &p.name).collect::<Vec<_>>(),
        "peer_roles": roles,
        "consecutive_clean_ticks": state.clean_ticks,
        "budget": {
            "spent_iterations": state.spent.iterations,
            "spent_runtime_s": (state.spent.peer_ms + state.spent.gate_ms) / 1000,
            "peer_s": state.spent.peer_ms / 1000,
            "gate_s": state.spent.gate_ms / 1000,
            "wasted_runtime_s": state.spent.wasted_ms / 1000,
            "consecutive_failures": state.spent.consecutive_failures,
            "spent_tokens": state.spent.tokens,
            "spent_usd": state.spent.usd,
            "ticks_of_unknown_cost": state.spent.unknown_usage,
        },
        "goals_status": goals,
        "stuck_counter": stuck,
        "soft_status": state.soft,
        "skeptic": state.skeptic,
        "peers": peers,
        "warnings": state.warnings,
        "warnings_history": state.warnings_history,
        "dirty_worktree": state.dirty,
        "phase": peers_core::phases::words(state),
        "open_tick": state.open.as_ref().map(|o| o.started.tick),
        "last_exit": state.last_exit,
    })
}

fn peer(health: &PeerHealth) -> Value {
    let halves = health.recent_half_fails();
    json!({
        "state": health.state,
        "consecutive_fails": health.consecutive_fails,
        "recent_fails": f64::from(halves) / 2.0,
        "recent_runs": health.recent.iter().map(|h| f64::from(*h) / 2.0).collect::<Vec<_>>(),
        "last_run": health.last_run,
        "degraded_reason": health.degraded_reason,
        "degraded_at_iter": health.degraded_at,
        "recovery_cooldown_iter": health.recovery_cooldown,
        "failed_cheating": health.failed_cheating,
        "anti_cheat_prewarned": health.prewarned,
        "not_before": health.not_before,
        "tokens": health.tokens,
        "usd": health.usd,
        "ticks": health.ticks,
    })
}

/// Writes `state.json`.
///
/// # Errors
/// [`DiskError`].
pub fn write_state<D: Disk>(disk: &mut D, state: &State, at: &Position) -> Result<(), DiskError> {
    let mut value = state_json(state, at);
    value.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    disk.publish(Area::Peers, layout::peers::STATE, text.as_bytes(), false)
}

/// Writes the text form of a stop reason, for people and old scripts.
///
/// # Errors
/// [`DiskError`].
pub fn write_stop_reason<D: Disk>(disk: &mut D, reason: &StopReason, at: Timestamp) -> Result<(), DiskError> {
    disk.publish(Area::Peers, layout::peers::STOP_REASON, format!("{reason} {at}\n").as_bytes(), false)
}

/// Writes `HALTED.md`, unless one is there.
///
/// # Errors
/// [`DiskError`].
pub fn write_halted<D: Disk>(disk: &mut D, state: &State) -> Result<(), DiskError> {
    if disk.len(Area::Peers, layout::peers::HALTED)?.is_some() {
        return Ok(());
    }
    let mut text = format!(
        "# No peer is left\n\nStopped after tick {}.\n\n| peer | state | recent failures | why |\n|---|---|---|---|\n",
        state.ticks
    );
    for (name, health) in &state.peers {
        let why = health.degraded_reason.as_deref().unwrap_or("").replace('|', "\\|").replace('\n', " ");
        let halves = f64::from(health.recent_half_fails()) / 2.0;
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {name} | {} | {halves:.1} | {why} |", health.state.word());
    }
    text.push_str("\nFix the cause (log in, install the CLI, raise a limit), then run again: a new run gives every peer another turn.\n");
    disk.publish(Area::Peers, layout::peers::HALTED, text.as_bytes(), false)
}
