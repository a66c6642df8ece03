//! A loop that runs: what does not go as it should.

use std::time::Duration;

use peers_core::state::PeerState;
use peers_core::test_output::cause;
use peers_model::outcome::BudgetKind;
use peers_model::record::SkepticVerdict;
use peers_model::{Timestamp, time};

use super::stopped::more;
use super::{Cause, Facts, Level};
use crate::budget::BudgetRow;
use crate::gates::REDS;
use crate::liveness::Liveness;
use crate::loopview::Core;
use crate::row::RecentTick;
use crate::words::{self, count, duration_ms};

/// So many failures in a row are.
const FAILURES: u64 = 2;
/// So much of a cap is, per cent.
const NEAR: u64 = 80;
/// So long without a commit is, milliseconds.
const NO_COMMIT_MS: u64 = 45 * 60 * 1000;
/// A silence of a peer that is worth a word, milliseconds.
const QUIET_MS: u128 = 60_000;
/// A silence that is worth a look, milliseconds.
const SILENT_MS: u128 = 10 * 60 * 1000;
/// Fewer ticks say nothing about what one takes.
const KNOWN: usize = 3;
/// Terminal cells of a foreign text.
const SAID: usize = 160;

/// That it runs, and at what.
pub(super) fn base(facts: &Facts<'_>, live: &Liveness) -> Cause {
    let Liveness::Running { pid, since, turn, gates_since, .. } = live else {
        return super::stopped::base(facts, live);
    };
    if facts.gone {
        return adrift(facts, *pid);
    }
    let why = match (turn, gates_since) {
        (_, Some(at)) => format!("gates for {}", human(facts.now, *at)),
        (Some(turn), None) => {
            let kind = if turn.skeptic { " as skeptic" } else { "" };
            let quiet = quiet(facts, turn.since);
            format!("tick {} of {}{kind} for {}{quiet}", turn.tick, turn.peer, human(facts.now, turn.since))
        }
        (None, None) => "between turns".to_owned(),
    };
    Cause { level: Level::Ok, code: "running", why, since: *since, action: None }
}

/// It runs where nobody sees what it does.
fn adrift(facts: &Facts<'_>, pid: Option<u32>) -> Cause {
    let process = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    Cause {
        level: Level::Act,
        code: "directory-gone",
        why: format!("it runs{process}, and its directory is gone"),
        since: None,
        action: facts.spelling.stop(),
    }
}

/// `, silent for 5m (ended after 30m)`, where its peer is silent for long.
fn quiet(facts: &Facts<'_>, since: Timestamp) -> String {
    let Some(moved) = facts.moved.map(|moved| moved.max(since)) else { return String::new() };
    if facts.now.since(moved).as_millis() < QUIET_MS {
        return String::new();
    }
    let limit = facts.idle_ms.map(|limit| format!(" (ended after {})", duration_ms(limit)));
    format!(", silent for {}{}", human(facts.now, moved), limit.unwrap_or_default())
}

fn human(now: Timestamp, then: Timestamp) -> String {
    time::human(Duration::from_secs(now.since(then).as_secs()))
}

/// What is to be said of a loop that runs, the most urgent first.
pub(super) fn causes(facts: &Facts<'_>, live: &Liveness) -> Vec<Cause> {
    let Liveness::Running { since, .. } = live else { return Vec::new() };
    let mut found = Vec::new();
    found.extend(drift(facts));
    let silent = silent(facts, live);
    let quiet = if silent.is_none() { silent_peer(facts, live) } else { None };
    found.extend(silent);
    found.extend(quiet);
    if let Some(core) = facts.core {
        found.extend(red_gates(facts, core));
        found.extend(failures(facts, core));
        found.extend(standstill(facts, core));
        found.extend(peers(facts, core));
        found.extend(caps(facts, core));
        found.extend(no_commit(facts, *since));
        found.extend(split(facts, core));
        found.extend(reopened(facts, *since));
    }
    found
}

/// Another program than this one runs it.
fn drift(facts: &Facts<'_>) -> Option<Cause> {
    let (loops, ours) = (facts.run?.version.as_str(), facts.version);
    if loops == ours {
        return None;
    }
    // Before 1.0 the second number is the one that breaks things.
    let major = |version: &str| {
        let mut parts = version.split('.');
        let first = parts.next().unwrap_or_default().to_owned();
        let second = parts.next().filter(|_| first == "0").map(str::to_owned);
        (first, second)
    };
    let level = if major(loops) == major(ours) { Level::Watch } else { Level::Act };
    Some(Cause {
        level,
        code: "version-drift",
        why: format!("the loop runs version {loops}, this program is {ours}"),
        since: None,
        action: facts.spelling.either(("restart", ""), "status"),
    })
}

/// The peer that has the turn has been silent for long, or one was ended for that in its newest turn: what it does can
/// be looked at.
fn silent_peer(facts: &Facts<'_>, live: &Liveness) -> Option<Cause> {
    let Liveness::Running { turn, since, .. } = live else { return None };
    let cause = |why: String, since: Timestamp| Cause {
        level: Level::Watch,
        code: "peer-silent",
        why,
        since: Some(since),
        action: facts.spelling.either(("peek", ""), "watch"),
    };
    if let Some(turn) = turn {
        let moved = facts.moved?.max(turn.since);
        if facts.now.since(moved).as_millis() >= SILENT_MS {
            let limit = facts.idle_ms.map(|limit| format!(" (it is ended after {})", duration_ms(limit)));
            let quiet = human(facts.now, moved);
            return Some(cause(
                format!("{} has printed nothing for {quiet}{}", turn.peer, limit.unwrap_or_default()),
                moved,
            ));
        }
    }
    let ended = |tick: &&RecentTick| {
        let newest = facts.ticks.iter().rev().find(|other| other.peer == tick.peer);
        let this_run = since.is_none_or(|since| tick.ts >= since);
        tick.class == "idle-timeout" && this_run && newest.is_some_and(|newest| newest.tick == tick.tick)
    };
    let tick = facts.ticks.iter().rev().find(ended)?;
    Some(cause(format!("{} was ended for its silence in tick {}", tick.peer, tick.tick), tick.ts))
}

/// Neither the journal nor the peer moves.
fn silent(facts: &Facts<'_>, live: &Liveness) -> Option<Cause> {
    let Liveness::Running { turn, gates_since, .. } = live else { return None };
    let limit = facts.idle_ms?.saturating_mul(2);
    let waits =
        facts.core.is_some_and(|core| core.peers.iter().any(|peer| peer.waiting(facts.now).is_some()));
    if turn.is_none() && waits {
        return None;
    }
    let moved = facts.moved?.max(gates_since.unwrap_or_default());
    let quiet = u64::try_from(facts.now.since(moved).as_millis()).unwrap_or(u64::MAX);
    (quiet > limit).then(|| Cause {
        level: Level::Act,
        code: "silent",
        why: format!(
            "neither the journal nor a peer's output moved for {} (a peer is ended after {})",
            duration_ms(quiet - quiet % 1000),
            duration_ms(limit / 2)
        ),
        since: Some(moved),
        action: facts.spelling.either(("logs", ""), "watch"),
    })
}

/// It will stop soon unless something gets on.
fn standstill(facts: &Facts<'_>, core: &Core) -> Option<Cause> {
    let standstill = core.converge.standstill?;
    let missing: Vec<&str> = core.converge.missing.iter().map(|missing| missing.text.as_str()).collect();
    Some(Cause {
        level: Level::Watch,
        code: "standstill",
        why: format!("{}; {}", standstill.words(), peers_sys::term::line(&missing.join("; "), SAID)),
        since: None,
        action: facts.spelling.either(("report", ""), "report"),
    })
}

fn red_gates(facts: &Facts<'_>, core: &Core) -> Option<Cause> {
    let red = || core.gates.iter().filter(|gate| gate.reds >= REDS);
    let worst = red().max_by_key(|gate| gate.reds)?;
    let others = match red().count() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", count(u64::try_from(n - 1).unwrap_or(u64::MAX), "gate")),
    };
    let said = peers_sys::term::line(&cause(&worst.diagnostic), SAID);
    let said = if said.is_empty() { said } else { format!(": {said}") };
    Some(Cause {
        level: Level::Watch,
        code: "gate-red",
        why: format!("{} is red for {}{others}{said}", worst.id, count(worst.reds.into(), "tick")),
        since: None,
        action: super::stopped::read(facts, &worst.id),
    })
}

fn failures(facts: &Facts<'_>, core: &Core) -> Option<Cause> {
    let row = core.budget.rows.iter().find(|row| row.key == "max_consecutive_failures")?;
    let n = row.spent.raw();
    if n < FAILURES {
        return None;
    }
    let tick = facts.ticks.iter().rev().find(|tick| tick.failed());
    let cap = row.cap.map(|cap| format!(" (the loop stops at {})", cap.words())).unwrap_or_default();
    Some(Cause {
        level: Level::Watch,
        code: "failures",
        why: format!("{} failed in a row{cap}", count(n, "turn")),
        since: tick.map(|tick| tick.ts),
        action: match tick {
            Some(tick) => {
                let n = tick.tick;
                facts.spelling.either(("replay", &format!("--from-tick {n}")), &format!("replay {n}"))
            }
            None => facts.spelling.either(("status", ""), "status"),
        },
    })
}

fn peers(facts: &Facts<'_>, core: &Core) -> Vec<Cause> {
    let mut found = Vec::new();
    for peer in &core.peers {
        let name = &peer.name;
        let reason = peer.reason.as_deref().map(|why| format!(": {}", peers_sys::term::line(why, SAID)));
        let reason = reason.unwrap_or_default();
        let status = || facts.spelling.either(("status", ""), "status");
        if let Some((until, why)) = peer.waiting(facts.now) {
            found.push(Cause {
                level: Level::Watch,
                code: "peer-waiting",
                why: format!("{name} waits until {} ({why})", words::ahead(facts.now, until)),
                since: None,
                // It ends by itself.
                action: None,
            });
        }
        let (word, says, action) = match peer.state {
            PeerState::Healthy => continue,
            PeerState::Degraded => ("peer-degraded", "is degraded", status()),
            PeerState::Halted => ("peer-halted", "has no turns in this run", status()),
            PeerState::Unavailable => ("peer-unavailable", "needs its operator", facts.spelling.ask()),
        };
        found.push(Cause {
            level: Level::Watch,
            code: word,
            why: format!("{name} {says}{reason}"),
            since: None,
            action,
        });
    }
    found
}

fn caps(facts: &Facts<'_>, core: &Core) -> Vec<Cause> {
    let mut found = Vec::new();
    for row in &core.budget.rows {
        // Failures have a cause of their own.
        if row.key == "max_consecutive_failures" {
            continue;
        }
        let action = || {
            kind(row).map_or_else(
                || facts.spelling.peers("goals edit --config"),
                |kind| more(facts.spelling, kind, Some(row)),
            )
        };
        let (Some(percent), Some(cap)) = (row.percent(), row.cap) else { continue };
        let spent = format!("{} of {}", row.words(), cap.words());
        let (word, why) = if percent >= NEAR {
            ("cap-near", format!("{percent}% of its {}: {spent}", row.name))
        } else if projected(facts, core, row) {
            ("cap-ahead", format!("its {} will not last until it can be complete: {spent}", row.name))
        } else {
            continue;
        };
        found.push(Cause { level: Level::Watch, code: word, why, since: None, action: action() });
    }
    found
}

/// Which cap of everybody a row is about, where it can be raised by a command.
fn kind(row: &BudgetRow) -> Option<BudgetKind> {
    match row.key.as_str() {
        "max_iterations" => Some(BudgetKind::MaxIterations),
        "max_runtime_s" => Some(BudgetKind::MaxRuntime),
        "max_tokens" => Some(BudgetKind::MaxTokens),
        "max_usd" => Some(BudgetKind::MaxUsd),
        _ => None,
    }
}

/// Whether the cap is reached before the loop can be complete, if each further tick were clean and took what
/// the last ones took.
fn projected(facts: &Facts<'_>, core: &Core, row: &BudgetRow) -> bool {
    let (Some(cap), Some(needed)) = (row.cap, facts.needed) else { return false };
    let left =
        u64::from(needed.saturating_sub(core.converge.clean_ticks)).max(u64::from(!core.converge.complete));
    let each = |of: fn(&crate::row::RecentTick) -> Option<u64>| {
        let known: Vec<u64> = facts.ticks.iter().filter_map(of).collect();
        let n = u64::try_from(known.len()).ok().filter(|_| known.len() >= KNOWN)?;
        known.into_iter().fold(0, u64::saturating_add).checked_div(n)
    };
    let one = match row.key.as_str() {
        "max_iterations" => Some(1),
        "max_runtime_s" => each(|tick| Some(tick.ms)),
        "max_tokens" => each(|tick| Some(tick.tokens?.0)),
        "max_usd" => each(|tick| Some(tick.usd?.as_micros())),
        _ => None,
    };
    one.is_some_and(|one| row.spent.raw().saturating_add(one.saturating_mul(left)) > cap.raw())
}

/// Nothing is committed for long, by the records of the loop: the time of a commit is what its author says.
fn no_commit(facts: &Facts<'_>, began: Option<Timestamp>) -> Option<Cause> {
    let began = began?;
    let newest = facts.ticks.iter().rev().find(|tick| !tick.commits.is_empty()).map(|tick| tick.ts);
    // Older ticks than these are not known: it is as long at least.
    let oldest = facts.ticks.first().map(|tick| tick.ts);
    let last = newest.or(oldest).unwrap_or(began).max(began);
    let mut took: Vec<u64> = facts.ticks.iter().map(|tick| tick.ms).collect();
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    let passed = u64::try_from(facts.now.since(last).as_millis()).unwrap_or(u64::MAX);
    (passed > NO_COMMIT_MS.max(median.saturating_mul(3))).then(|| Cause {
        level: Level::Watch,
        code: "no-commit",
        why: format!("no commit for {}", human(facts.now, last)),
        since: Some(last),
        action: facts.spelling.either(("peek", ""), "watch"),
    })
}

fn split(facts: &Facts<'_>, core: &Core) -> Option<Cause> {
    let split: Vec<String> = core.soft.iter().filter(|row| row.split).map(|row| row.id.to_string()).collect();
    (!split.is_empty()).then(|| Cause {
        level: Level::Watch,
        code: "review-split",
        why: format!("reviewers disagree about {}", words::list(&split, 3)),
        since: None,
        action: facts.spelling.either(("review", ""), "status"),
    })
}

/// The newest skeptic found something.
fn reopened(facts: &Facts<'_>, began: Option<Timestamp>) -> Option<Cause> {
    let newest = facts.ticks.iter().rev().find(|tick| tick.skeptic.is_some())?;
    (Some(newest.ts) >= began && newest.skeptic == Some(SkepticVerdict::Found)).then(|| Cause {
        level: Level::Watch,
        code: "reopened",
        why: format!("{} as skeptic of tick {} found something", newest.peer, newest.tick),
        since: Some(newest.ts),
        action: facts.spelling.peers("bug-hunt summary"),
    })
}
