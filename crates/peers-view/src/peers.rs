//! Peers: health, last turn, cost.

use peers_core::budget::{self, Caps};
use peers_core::state::{LastRun, PeerState, State};
use peers_core::turns::{self, Choice};
use peers_model::config::Role;
use peers_model::record::WaitCause;
use peers_model::{PeerName, TickNo, Timestamp, Tokens, Usd};
use serde::Serialize;

use crate::diagnostic::known_reason;

/// One peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "a flat row for programs")]
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
    /// Each of its last five turns: 0 success, 1 work without a handoff, 2 failure.
    #[serde(skip)]
    pub(crate) recent: Vec<u32>,
    /// Failed attempts of the current turn.
    pub consecutive_fails: u32,
    /// Its last turn. Untrusted text in it.
    pub last: Option<LastRun>,
    /// Why it is not healthy. Untrusted text.
    pub reason: Option<String>,
    /// Since which tick.
    pub since: Option<TickNo>,
    /// It reached a cap of its own and takes no more turns.
    pub capped: bool,
    /// It is passed over: less is left of a cap than its turn usually costs.
    pub passed_over: Option<String>,
    /// It has no turn before then.
    #[serde(rename = "not_before")]
    pub waits_until: Option<Timestamp>,
    /// Why it waits.
    pub waits_for: Option<WaitCause>,
    /// What it says is in its way. Untrusted text.
    pub blocked_on: Option<String>,
    /// In which tick it said so.
    pub blocked_at: Option<TickNo>,
    /// After so many more turns of others that get something done it is asked again.
    pub asked_after: Option<u32>,
    /// Turns of it that were reverted since its last clean handoff.
    pub reverted: u32,
    /// It was warned about a test-only turn.
    pub prewarned: bool,
    /// Tokens of all its turns; `None` where nothing is known of them.
    pub tokens: Option<Tokens>,
    /// It used at least these tokens: of some turns it is not known.
    pub tokens_at_least: bool,
    /// Money of all its turns; `None` where nothing is known of it.
    pub usd: Option<Usd>,
    /// It cost at least this money: of some turns it is not known.
    pub usd_at_least: bool,
}

/// Who has the next turn: one that reached its own cap, or waits, is passed over. Nobody where none may go now.
pub(crate) fn next(state: &State, caps: Option<&Caps>, now: Timestamp) -> Option<PeerName> {
    let first = state.turn_peer()?;
    let may = |peer: &PeerName| {
        caps.is_none_or(|caps| {
            budget::may_go(caps, state, peer) && budget::short(caps, state, peer).is_none()
        })
    };
    let waits = state.peers.get(first).and_then(|health| health.not_before).is_some_and(|until| until > now);
    let health = state.health(first);
    if may(first) && !waits && health.state == PeerState::Healthy && health.blocked.is_none() {
        return Some(first.clone());
    }
    match turns::choose_within(state, now, may) {
        Choice::Peer(_, peer) => Some(peer),
        Choice::Wait(_) | Choice::Nobody => None,
    }
}

/// The peers in config order; `next` has the turn where none is open.
pub(crate) fn rows(state: &State, next: Option<&PeerName>, caps: Option<&Caps>) -> Vec<PeerRow> {
    let turn = state.open.as_ref().map(|open| &open.started.peer).or(next);
    let row = |rule: &peers_model::record::PeerRule| {
        let health = state.health(&rule.name);
        let asked_after = health.asked_after();
        PeerRow {
            name: rule.name.clone(),
            tool: rule.tool.clone(),
            role: rule.role,
            state: health.state,
            has_turn: turn == Some(&rule.name),
            ticks: health.ticks,
            recent_half_fails: health.recent_half_fails(),
            recent: health.recent.iter().map(|turn| u32::from(*turn)).collect(),
            consecutive_fails: health.consecutive_fails,
            last: health.last_run,
            reason: health.degraded_reason,
            since: health.degraded_at,
            capped: caps.is_some_and(|caps| !budget::may_go(caps, state, &rule.name)),
            passed_over: caps
                .filter(|caps| budget::may_go(caps, state, &rule.name))
                .and_then(|caps| budget::short(caps, state, &rule.name))
                .map(|(_, why)| why),
            waits_until: health.not_before,
            waits_for: health.waits_for,
            asked_after,
            blocked_at: health.blocked.as_ref().map(|blocked| blocked.tick),
            blocked_on: health.blocked.map(|blocked| blocked.on),
            reverted: health.failed_cheating,
            prewarned: health.prewarned,
            tokens: Some(health.tokens).filter(|tokens| health.vague_tokens == 0 || tokens.0 > 0),
            tokens_at_least: health.vague_tokens > 0,
            usd: Some(health.usd).filter(|usd| health.vague_usd == 0 || *usd > Usd::ZERO),
            usd_at_least: health.vague_usd > 0,
        }
    };
    state.rules.peers.iter().map(row).collect()
}

impl PeerRow {
    /// Until when it waits, and why; `None` where it does not.
    pub(crate) fn waiting(&self, now: Timestamp) -> Option<(Timestamp, &'static str)> {
        let until = self.waits_until.filter(|until| *until > now)?;
        Some((until, self.waits_for.unwrap_or_default().word()))
    }

    /// `says since tick 3 that it is blocked: no database`; `said` makes of its words what is shown of them.
    pub(crate) fn blocked(&self, said: impl Fn(&str) -> String) -> Option<String> {
        let on = said(self.blocked_on.as_ref()?);
        let since = self.blocked_at.map(|tick| format!(" since tick {tick}")).unwrap_or_default();
        Some(format!("says{since} that it is blocked: {on}"))
    }

    /// Why its last turn was no success, unless something else that is said of it tells the same.
    pub(crate) fn why_last(&self, now: Timestamp) -> Option<&str> {
        let why = known_reason(self.last.as_ref()?.soft_fail_reason.as_deref())?;
        let ill = self.reason.as_deref().filter(|_| self.state != PeerState::Healthy);
        let told = self.waiting(now).is_some()
            || self.blocked_on.as_deref().is_some_and(|on| why.contains(on))
            || ill.is_some_and(|reason| reason.contains(why));
        (!told).then_some(why)
    }

    /// `of its last 3 turns 1 failed, 1 left work without a handoff`; `None` where all went well.
    pub(crate) fn recent_fails(&self) -> Option<String> {
        let ill = self.reason.as_deref().filter(|_| self.state != PeerState::Healthy);
        if ill.is_some_and(|reason| reason.starts_with("its last ")) {
            // That tells it, and why.
            return None;
        }
        let of = |kind: u32| self.recent.iter().filter(|turn| **turn == kind).count();
        let (unfinished, failed) = (of(1), of(2));
        let said = [(failed, "failed"), (unfinished, "left work without a handoff")];
        let said = said.iter().filter(|(n, _)| *n > 0);
        let turns = self.recent.len();
        if turns == 1 {
            return said.map(|(_, what)| format!("its last turn {what}")).next();
        }
        let said: Vec<String> = said.map(|(n, what)| format!("{n} {what}")).collect();
        (!said.is_empty()).then(|| format!("of its last {turns} turns {}", said.join(", ")))
    }
}
