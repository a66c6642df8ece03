//! Peers: health, last turn, cost.

use peers_core::state::{LastRun, PeerState, State};
use peers_model::config::Role;
use peers_model::{PeerName, TickNo, Timestamp, Tokens, Usd};
use serde::Serialize;

/// One peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeerRow {
    /// Its name.
    pub name: PeerName,
    /// Its tool.
    pub tool: String,
    /// Its part.
    pub role: Role,
    /// Its standing.
    pub state: PeerState,
    /// It has the next turn, or the open one.
    pub has_turn: bool,
    /// Its turns.
    pub ticks: u64,
    /// Failures among its last five turns, in halves: work without a handoff is one half.
    pub recent_half_fails: u32,
    /// Failed attempts of the current turn.
    pub consecutive_fails: u32,
    /// Its last turn. Untrusted text in it.
    pub last: Option<LastRun>,
    /// Why it is not healthy. Untrusted text.
    pub reason: Option<String>,
    /// Since which tick.
    pub since: Option<TickNo>,
    /// It waits until then.
    pub waits_until: Option<Timestamp>,
    /// Turns of it that were reverted since its last clean handoff.
    pub reverted: u32,
    /// It was warned about a test-only turn.
    pub prewarned: bool,
    /// Tokens of all its turns, as far as known.
    pub tokens: Tokens,
    /// Money of all its turns, as far as known.
    pub usd: Usd,
}

/// The peers in config order.
pub(crate) fn rows(state: &State) -> Vec<PeerRow> {
    let turn = match &state.open {
        Some(open) => Some(&open.started.peer),
        None => state.turn_peer(),
    };
    let row = |rule: &peers_model::record::PeerRule| {
        let health = state.health(&rule.name);
        PeerRow {
            name: rule.name.clone(),
            tool: rule.tool.clone(),
            role: rule.role,
            state: health.state,
            has_turn: turn == Some(&rule.name),
            ticks: health.ticks,
            recent_half_fails: health.recent_half_fails(),
            consecutive_fails: health.consecutive_fails,
            last: health.last_run,
            reason: health.degraded_reason,
            since: health.degraded_at,
            waits_until: health.not_before,
            reverted: health.failed_cheating,
            prewarned: health.prewarned,
            tokens: health.tokens,
            usd: health.usd,
        }
    };
    state.rules.peers.iter().map(row).collect()
}

impl PeerRow {
    /// `1.5`.
    pub(crate) fn recent_fails(&self) -> String {
        let half = if self.recent_half_fails.is_multiple_of(2) { "" } else { ".5" };
        format!("{}{half}", self.recent_half_fails / 2)
    }
}
