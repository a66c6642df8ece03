//! What helps a peer that the run stopped for, by what was the matter.

use peers_core::apply::bounded;
use peers_core::state::PeerState;
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::WaitCause;
use peers_model::{PeerName, login};

use crate::liveness::Liveness;
use crate::loopview::LoopView;
use crate::peers::PeerRow;
use crate::words;

/// Characters of why a peer has no turns.
const WHY: usize = 200;

/// A failure among the last turns of a peer.
const FAILED: u32 = 2;

/// What was the matter.
enum Trouble {
    Login,
    Credit,
    /// Its service refuses it for longer than a run may wait.
    Refused(WaitCause),
    Program,
    Unknown,
}

/// How to get back `peer`, for which the run stopped.
pub(super) fn unavailable(peer: &PeerName, view: &LoopView) -> String {
    remedy(peer, view, ", then run again")
}

/// The peers that have no turns, each with why and what helps it: a run may go on, and end well, without
/// them. Whom the run stopped for is in its reason and in the next step.
pub(crate) fn out(view: &LoopView) -> Vec<String> {
    let (Some(live), Some(core)) = (view.liveness.value(), view.core.value()) else { return Vec::new() };
    let reason = if let Liveness::Stopped { reason, .. } = live { Some(reason) } else { None };
    let one = |row: &PeerRow| {
        if reason == Some(&StopReason::PeerUnavailable(row.name.clone())) {
            return None;
        }
        let peer = &row.name;
        let since = row.last.as_ref().map(|last| format!(" after tick {}", last.tick)).unwrap_or_default();
        let why = row.reason.as_deref().map(|why| format!(": {}", said(why))).unwrap_or_default();
        match row.state {
            PeerState::Unavailable => {
                let help = remedy(peer, view, "");
                return Some(format!("{peer} has no turns{since}, it needs its operator{why}; {help}"));
            }
            _ if reason.is_none() => return None,
            PeerState::Degraded | PeerState::Halted if reason != Some(&StopReason::AllPeersDegraded) => {
                return Some(format!("{peer} had no turns{since}, it is {}{why}", row.state.word()));
            }
            PeerState::Healthy | PeerState::Degraded | PeerState::Halted => {}
        }
        if let Some((until, why)) = row.waiting(view.at) {
            let until = words::ahead(view.at, until);
            return Some(format!("{peer} had no turns{since}, it waits until {until} ({why})"));
        }
        if let Some(says) = row.blocked(said) {
            let ack = format!("`peers ack blocked:{peer} --reason TEXT`");
            return (reason != Some(&StopReason::ParkedBlocked))
                .then(|| format!("{peer} {says}; once that is seen to: {ack}"));
        }
        useless(row, view)
    };
    core.peers.iter().filter_map(one).collect()
}

/// Words of somebody else beside commands of ours: in quotes, and nothing in them looks like a command.
fn said(words: &str) -> String {
    format!("\"{}\"", bounded(&words.replace(['`', '"'], "'"), WHY))
}

/// That a peer which still has its turns failed in every one of the last.
fn useless(row: &PeerRow, view: &LoopView) -> Option<String> {
    let turns = row.recent.len();
    if turns < 2 || row.recent.iter().any(|turn| *turn != FAILED) {
        return None;
    }
    let ticks = view.journal.value().map(|tail| tail.ticks.as_slice()).unwrap_or_default();
    let newest = ticks.iter().rev().find(|tick| tick.peer == row.name && tick.failed());
    let (tick, why) = match (newest, &row.last) {
        (Some(tick), _) => (tick.tick, tick.reason.as_deref()),
        (None, Some(last)) => (last.tick, last.soft_fail_reason.as_deref()),
        (None, None) => return None,
    };
    let why = why.map(|why| format!(": {}", said(why))).unwrap_or_default();
    Some(format!("{} failed in each of its last {turns} turns{why}; see `peers replay {tick}`", row.name))
}

/// What helps `peer`; `then` follows what the operator does.
fn remedy(peer: &PeerName, view: &LoopView, then: &str) -> String {
    let row = view.core.value().and_then(|core| core.peers.iter().find(|row| row.name == *peer));
    let ticks = view.journal.value().map(|tail| tail.ticks.as_slice()).unwrap_or_default();
    let newest = ticks.iter().rev().find(|tick| tick.peer == *peer);
    let waits = row.and_then(|row| row.waits_for);
    let trouble = match (newest.map(|tick| tick.end), waits) {
        (Some((ExitClass::SpawnFail, _)), _) => Trouble::Program,
        (Some((_, ApiClass::Auth)), _) => Trouble::Login,
        (Some((_, ApiClass::Quota)), _) => Trouble::Credit,
        (_, Some(cause)) => Trouble::Refused(cause),
        (Some((_, ApiClass::UsageCap)), None) => Trouble::Refused(WaitCause::UsageCap),
        (Some((_, ApiClass::Transient)), None) => Trouble::Refused(WaitCause::RateLimit),
        (Some((_, ApiClass::None | ApiClass::Other)) | None, None) => Trouble::Unknown,
    };
    match trouble {
        Trouble::Login => {
            let how = row.and_then(|row| login::how(&row.tool));
            let how = how.unwrap_or("as its tool has it, or by a key in its environment");
            format!("log `{peer}` in ({how}), ask it for a word with `peers doctor --live`{then}")
        }
        Trouble::Credit => format!(
            "buy credit for the account of `{peer}`, or give it another model or tool (`peers goals edit --config`){then}"
        ),
        Trouble::Refused(cause) => {
            let word = cause.word();
            let until =
                row.and_then(|row| row.waits_until).or_else(|| newest.and_then(|tick| tick.resets_at));
            let after = until.filter(|until| *until > view.at).map_or_else(
                || format!("wait until the {word} of `{peer}` is over"),
                |until| {
                    format!(
                        "wait until {}, when the {word} of `{peer}` is over",
                        words::clock(view.at, until)
                    )
                },
            );
            format!(
                "{after}{then}; or raise `rate_limit_max_wait_s` in .peers/config.yaml (then `peers goals accept`), and a run waits that long by itself"
            )
        }
        Trouble::Program => format!(
            "install the program of `{peer}`, or correct its `argv` (`peers goals edit --config`), until `peers doctor` finds it{then}"
        ),
        Trouble::Unknown => {
            let replay = newest
                .map_or_else(|| "peers status".to_owned(), |tick| format!("peers replay {}", tick.tick));
            format!("see what was the matter with `{peer}` (`{replay}`, `peers doctor`){then}")
        }
    }
}

/// How peers go on that say that something is in their way.
pub(super) fn blocked(view: &LoopView) -> String {
    let peers = view.core.value().map(|core| core.peers.as_slice()).unwrap_or_default();
    let blocked: Vec<&str> =
        peers.iter().filter(|peer| peer.blocked_on.is_some()).map(|peer| peer.name.as_str()).collect();
    let (them, acks) = match blocked.as_slice() {
        [] => ("the peers", "`peers ack blocked:PEER --reason TEXT`".to_owned()),
        [one] => (*one, format!("`peers ack blocked:{one} --reason TEXT`")),
        more => {
            let acks = more.iter().map(|peer| format!("`peers ack blocked:{peer} --reason TEXT`"));
            ("them", acks.collect::<Vec<_>>().join(", "))
        }
    };
    format!("see to what is in the way of {them} (`peers status`) and say so ({acks}), then run again")
}
