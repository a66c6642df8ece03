//! What the loop is doing, in one line.

use std::time::Duration;

use peers_model::outcome::StopReason;
use peers_model::{Timestamp, time};

use crate::advice::{Level, level_of};
use crate::closing;
use crate::diagnostic::stop_detail;
use crate::liveness::{Liveness, OpenTurn};
use crate::loopview::{LoopView, Silence};
use crate::page::Tone;
use crate::sourced::Sourced;
use crate::words::{ago, ahead, clock, duration_ms};

/// A silence of a peer that is worth a word, milliseconds.
const SILENT_MS: u64 = 10_000;

/// How a time in the past is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// `2m ago`, for who looks now.
    Ago,
    /// The time itself, for what is kept.
    Absolute,
}

/// What the loop does while no turn is open and no gate runs.
fn between_turns(view: &LoopView) -> String {
    let peers = view.core.value().map(|core| core.peers.as_slice()).unwrap_or_default();
    let waits: Vec<String> = peers
        .iter()
        .filter_map(|peer| {
            let (until, why) = peer.waiting(view.at)?;
            Some(format!("{} waits for its service until {} ({why})", peer.name, ahead(view.at, until)))
        })
        .collect();
    if waits.is_empty() {
        return ", between turns: a look at the repository".to_owned();
    }
    format!(", between turns: {}", waits.join(", "))
}

/// `, gates since 16:05 UTC (1m 3s), on what tick 4 of ann left`.
fn gates_words(view: &LoopView, since: Option<Timestamp>, turn: Option<&OpenTurn>) -> String {
    let Some(since) = since else { return String::new() };
    let clock = clock(view.at, since);
    let on =
        turn.map(|turn| format!(", on what tick {} of {} left", turn.tick, turn.peer)).unwrap_or_default();
    format!(", gates since {clock} ({}){on}", whole_seconds(view.at.since(since)))
}

/// Milliseconds of something that goes on say nothing.
fn whole_seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        "0s".to_owned()
    } else {
        time::human(Duration::from_secs(time.as_secs()))
    }
}

/// How long the peer has been silent, where that is worth a word.
fn silence_words(view: &LoopView) -> String {
    let Some(Silence { ms, limit_ms }) = view.silence.filter(|silence| silence.ms >= SILENT_MS) else {
        return String::new();
    };
    let limit = limit_ms.map(|limit| format!(" (ended after {})", duration_ms(limit))).unwrap_or_default();
    format!(", silent for {}{limit}", duration_ms(ms - ms % 1000))
}

/// What the loop is doing, one line and its tone.
pub(crate) fn live_words(view: &LoopView, when: Stamp) -> (Tone, String) {
    let live = match &view.liveness {
        Sourced::Fresh(live) | Sourced::Stale { value: live, .. } => live,
        Sourced::Missing => return (Tone::Care, "not known".to_owned()),
        Sourced::Unreadable(why) => return (Tone::Bad, format!("not known: {why}")),
    };
    let tone = match level_of(live) {
        Level::Done => Tone::Good,
        Level::Ok | Level::Idle => Tone::Strong,
        Level::Watch => Tone::Care,
        Level::Act => Tone::Bad,
    };
    let text = match live {
        Liveness::Running { pid, run_id, since, turn, gates_since } => {
            let since = since.map(|since| format!(" for {}", time::human(view.at.since(since))));
            let doing = match turn {
                _ if gates_since.is_some() => gates_words(view, *gates_since, turn.as_ref()),
                Some(turn) => {
                    let kind = if turn.skeptic { " as skeptic" } else { "" };
                    let since = time::human(view.at.since(turn.since));
                    let silence = silence_words(view);
                    format!(", tick {} of {}{kind} for {since}{silence}", turn.tick, turn.peer)
                }
                None => between_turns(view),
            };
            let text = format!("running{}{doing}", since.unwrap_or_default());
            let pid = pid.map(|pid| format!("process {pid}"));
            let run = run_id.as_ref().map(|run| format!("run {run}"));
            let who: Vec<String> = run.into_iter().chain(pid).collect();
            if who.is_empty() { text } else { format!("{text} ({})", who.join(", ")) }
        }
        Liveness::Command { pid, command } => {
            let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
            format!("`peers {command}` is at work{pid}")
        }
        Liveness::Fresh => "no run yet".to_owned(),
        Liveness::Stopped { reason, detail, at, exit_code } => {
            let detail = closing::said(view, reason).unwrap_or_else(|| stop_detail(Some(reason), detail));
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            let spent = match reason {
                StopReason::Budget(kind) => closing::spent(*kind, view),
                _ => None,
            };
            let spent = spent.map(|spent| format!(", {spent}")).unwrap_or_default();
            let at = match when {
                Stamp::Ago => ago(view.at, *at),
                Stamp::Absolute => at.to_string(),
            };
            format!("stopped {at}, {reason}{spent}{detail} (exit {exit_code})")
        }
        Liveness::Crashed { run_id, since, how, turn } => {
            let turn =
                turn.as_ref().map(|t| format!(" in tick {} of {}", t.tick, t.peer)).unwrap_or_default();
            let since = match when {
                Stamp::Ago => ago(view.at, *since),
                Stamp::Absolute => since.to_string(),
            };
            format!("crashed{turn}: run {run_id} began {since} and never ended; {}", how.words())
        }
    };
    (tone, text)
}
