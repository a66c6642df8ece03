//! Whose turn it is.

use std::time::Duration;

use peers_model::config::Role;
use peers_model::record::{PeerRule, WaitCause};
use peers_model::{PeerName, TickNo, Timestamp};

use crate::budget::{self, Caps};
use crate::state::{MOST_REVERTED, PeerState, State};

/// The answer of [`choose`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This peer, at this index.
    Peer(usize, PeerName),
    /// Every peer that could go waits; the first may go then.
    Wait(Timestamp),
    /// No peer can go.
    Nobody,
}

fn recovery_due(state: &State, peer: &PeerName, ticks: TickNo) -> bool {
    let Some(health) = state.peers.get(peer) else { return false };
    if health.recovery_due {
        return true;
    }
    let interval = u64::from(state.rules.recovery_interval);
    let since = health.recovery_cooldown.or(health.degraded_at).unwrap_or_default();
    interval > 0 && ticks.0.saturating_sub(since.0) >= interval
}

fn can_go(state: &State, peer: &PeerName) -> bool {
    !is_blocked(state, peer) && is_able(state, peer)
}

/// Whether a peer could go but for something that it says is in its way, of which others may have cleared some.
fn may_be_free(state: &State, peer: &PeerName) -> bool {
    let blocked = state.peers.get(peer).and_then(|health| health.blocked.as_ref());
    is_able(state, peer) && blocked.is_some_and(|blocked| blocked.changes > 0)
}

/// Whether a peer says that something is in its way, and too little has changed since.
fn is_blocked(state: &State, peer: &PeerName) -> bool {
    state.peers.get(peer).is_some_and(|health| health.blocked.is_some())
}

/// Whether no peer can have a turn, and one of them could if it did not say that something is in its way.
#[must_use]
pub fn all_blocked(state: &State) -> bool {
    let peers = || state.rules.peers.iter().map(|rule| &rule.name);
    !peers().any(|peer| can_go(state, peer)) && peers().any(|peer| is_able(state, peer))
}

fn is_able(state: &State, peer: &PeerName) -> bool {
    match state.peers.get(peer).map(|h| h.state).unwrap_or_default() {
        PeerState::Healthy => true,
        PeerState::Degraded => recovery_due(state, peer, state.ticks),
        PeerState::Halted | PeerState::Unavailable => false,
    }
}

/// Whether a peer may have a turn in this run, now or later.
pub(crate) fn may_ever_go(state: &State, peer: &PeerName) -> bool {
    let Some(health) = state.peers.get(peer) else { return true };
    match health.state {
        PeerState::Healthy => true,
        PeerState::Degraded => health.recovery_due || state.rules.recovery_interval > 0,
        PeerState::Halted | PeerState::Unavailable => false,
    }
}

/// Chooses the next peer: the first from the turn index on that can go now. A spare (`role:
/// recovery`) goes only while no other peer can.
#[must_use]
pub fn choose(state: &State, now: Timestamp) -> Choice {
    choose_within(state, now, |_| true)
}

/// Like [`choose`], among the peers that `may` go. A spare goes also where no other peer may.
#[must_use]
pub fn choose_within(state: &State, now: Timestamp, may: impl Fn(&PeerName) -> bool) -> Choice {
    let first = choose_among(state, now, |peer| can_go(state, peer) && may(peer), |_| true);
    if matches!(first, Choice::Peer(..)) {
        return first;
    }
    // Rather than that nobody has a turn, who said that it is blocked is asked again; a spare of them only where
    // no other peer is able.
    let rules = || state.rules.peers.iter();
    let others = rules().any(|p| p.role != Role::Recovery && is_able(state, &p.name) && may(&p.name));
    let is_spare = |peer: &PeerName| rules().any(|p| p.name == *peer && p.role == Role::Recovery);
    let again = |peer: &PeerName| may_be_free(state, peer) && may(peer) && !(others && is_spare(peer));
    match (first, choose_among(state, now, again, |_| true)) {
        (_, chosen @ Choice::Peer(..)) => chosen,
        (Choice::Wait(one), Choice::Wait(other)) => Choice::Wait(one.min(other)),
        (wait @ Choice::Wait(_), _) | (_, wait) => wait,
    }
}

/// Like [`choose`], but prefers a peer for which `preferred` holds; falls back to any other.
#[must_use]
pub fn choose_preferring(
    state: &State,
    now: Timestamp,
    may: impl Fn(&PeerName) -> bool,
    preferred: impl Fn(&PeerName) -> bool,
) -> Choice {
    match choose_among(state, now, |peer| can_go(state, peer) && may(peer), &preferred) {
        chosen @ Choice::Peer(..) => chosen,
        Choice::Wait(_) | Choice::Nobody => choose_within(state, now, may),
    }
}

/// Whether somebody is `asked` for who could go if it did not say that something is in its way.
#[must_use]
pub fn asked_is_blocked(state: &State, asked: impl Fn(&PeerName) -> bool) -> bool {
    let mut peers = state.rules.peers.iter().map(|rule| &rule.name).filter(|peer| asked(peer));
    peers.any(|peer| is_blocked(state, peer) && is_able(state, peer))
}

fn choose_among(
    state: &State,
    now: Timestamp,
    may: impl Fn(&PeerName) -> bool,
    accept: impl Fn(&PeerName) -> bool,
) -> Choice {
    let peers = &state.rules.peers;
    let n = peers.len();
    let order: Vec<usize> = (0..n).map(|k| (state.turn_index + k) % n.max(1)).collect();
    let able: Vec<usize> =
        order.into_iter().filter(|i| peers.get(*i).is_some_and(|p| may(&p.name))).collect();
    let is_spare = |i: &usize| peers.get(*i).is_some_and(|p| p.role == Role::Recovery);
    let pool: Vec<usize> = if able.iter().any(|i| !is_spare(i)) {
        able.into_iter().filter(|i| !is_spare(i)).collect()
    } else {
        able
    };
    let mut earliest: Option<Timestamp> = None;
    for i in &pool {
        let Some(peer) = peers.get(*i).filter(|p| accept(&p.name)) else { continue };
        match state.peers.get(&peer.name).and_then(|h| h.not_before).filter(|t| *t > now) {
            None => return Choice::Peer(*i, peer.name.clone()),
            Some(until) => earliest = Some(earliest.map_or(until, |e| e.min(until))),
        }
    }
    earliest.map_or(Choice::Nobody, Choice::Wait)
}

/// Who waits longer than `most` and why, where all who can go and are `asked` for do. A minute is left for what
/// is added to a named time so that not all come back at once.
#[must_use]
pub fn waits_too_long(
    state: &State,
    now: Timestamp,
    most: Duration,
    asked: impl Fn(&PeerName) -> bool,
) -> Option<(PeerName, String)> {
    let latest = now.plus(most.saturating_add(Duration::from_mins(1)));
    let waits = |peer: &PeerName| {
        let health = state.peers.get(peer)?;
        Some((health.not_before.filter(|at| *at > latest)?, peer.clone(), health.waits_for))
    };
    let goes = |peer: &PeerName| can_go(state, peer) || may_be_free(state, peer);
    let able = || state.rules.peers.iter().map(|rule| &rule.name).filter(|peer| goes(peer) && asked(peer));
    if !able().all(|peer| waits(peer).is_some()) {
        return None;
    }
    let (at, peer, cause) = able().filter_map(waits).min_by_key(|(at, ..)| *at)?;
    let word = cause.map_or("wait", WaitCause::word);
    let why = format!(
        "its {word} lasts until {at}, longer than `rate_limit_max_wait_s` allows, and no other peer can go"
    );
    Some((peer, why))
}

/// Who is degraded and has its recovery turn while everybody else waits: its interval is counted in turns of
/// others, of which there are none then. One that failed its newest recovery turn does not.
#[must_use]
pub fn recovers_meanwhile(
    state: &State,
    now: Timestamp,
    may: impl Fn(&PeerName) -> bool,
) -> Option<PeerName> {
    let due = |peer: &PeerName| {
        let health = state.peers.get(peer)?;
        let free = health.blocked.is_none() && health.not_before.is_none_or(|until| until <= now);
        let first = health.state == PeerState::Degraded && health.recovery_cooldown.is_none();
        // Who weakened tests stays out as long as it was meant to.
        (first && free && health.failed_cheating < MOST_REVERTED && may(peer)).then(|| peer.clone())
    };
    let peers = state.rules.peers.iter().filter(|rule| rule.role != Role::Recovery);
    peers.map(|rule| &rule.name).find_map(due).filter(|_| state.rules.recovery_interval > 0)
}

/// What each peer is waiting for or why it is out, for people; nothing of those who only wait for their turn.
#[must_use]
pub fn why_not(state: &State, now: Timestamp) -> String {
    let why = |peer: &PeerName| {
        let health = state.peers.get(peer)?;
        let waits = health.not_before.is_some_and(|until| until > now);
        Some(match health.state {
            _ if health.blocked.is_some() => format!("{peer} says that it is blocked"),
            PeerState::Halted | PeerState::Unavailable | PeerState::Degraded if !waits => {
                format!("{peer} is {}", health.state.word())
            }
            _ if waits => {
                format!("{peer} waits for the end of its {}", health.waits_for.unwrap_or_default().word())
            }
            _ => return None,
        })
    };
    state.rules.peers.iter().filter_map(|rule| why(&rule.name)).collect::<Vec<_>>().join(", ")
}

/// After how many ticks in a row without progress the run stops; 0 = never. Each peer that may go, now or later,
/// has `goals.idle_halt_after` of them. `caps` are those in force.
#[must_use]
pub fn idle_limit(idle_after: u32, caps: &Caps, state: &State) -> u32 {
    let goes = |rule: &&PeerRule| {
        let peer = &rule.name;
        may_ever_go(state, peer)
            && budget::may_go(caps, state, peer)
            && budget::short(caps, state, peer).is_none()
    };
    let going: Vec<&PeerRule> = state.rules.peers.iter().filter(goes).collect();
    let regular = going.iter().filter(|rule| rule.role != Role::Recovery).count();
    let peers = u32::try_from(if regular == 0 { going.len() } else { regular }).unwrap_or(u32::MAX);
    idle_after.saturating_mul(peers.max(1))
}

/// Whether no peer is left that could ever go in this run.
#[must_use]
pub fn all_down(state: &State) -> bool {
    !state.rules.peers.is_empty()
        && state.rules.peers.iter().all(|p| {
            let health = state.peers.get(&p.name);
            health.is_some_and(|h| h.state != PeerState::Healthy && !h.recovery_due)
        })
}
