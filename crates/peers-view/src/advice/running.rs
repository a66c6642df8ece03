//! A loop that runs: what does not go as it should.

use std::time::Duration;

use peers_core::state::PeerState;
use peers_model::command::{Command, Step};
use peers_model::record::SkepticVerdict;
use peers_model::{Timestamp, time};

use super::cause::{Advice, Level};
use super::facts::{Facts, replay};
use super::stopped::read;
use super::{again, caps};
use crate::budget::BudgetRow;
use crate::gates::REDS;
use crate::liveness::Liveness;
use crate::standing::Core;
use crate::ticks::TickRow;
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
pub(super) fn base(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    let Liveness::Running { pid, since, turn, gates_since, .. } = live else { return None };
    if facts.gone {
        return Some(adrift(*pid));
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
    Some(Advice::new(Level::Ok, "running", why).since(*since))
}

/// It runs where nobody sees what it does.
fn adrift(pid: Option<u32>) -> Advice {
    let process = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    let why = format!("it runs{process}, and its directory is gone");
    Advice::new(Level::Act, "directory-gone", why).then(Step::of(Command::named("stop")))
}

/// `, silent for 5m (ended after 30m)`, where its peer is silent for long.
fn quiet(facts: &Facts<'_>, since: Timestamp) -> String {
    let Some(moved) = facts.moved.map(|moved| moved.max(since)) else { return String::new() };
    if facts.now.since(moved).as_millis() < QUIET_MS {
        return String::new();
    }
    let limit = facts.config.map(|config| format!(" (ended after {})", duration_ms(config.idle_ms)));
    format!(", silent for {}{}", human(facts.now, moved), limit.unwrap_or_default())
}

fn human(now: Timestamp, then: Timestamp) -> String {
    time::human(Duration::from_secs(now.since(then).as_secs()))
}

/// What is to be said of a loop that runs, the most urgent first.
pub(super) fn causes(facts: &Facts<'_>, live: &Liveness) -> Vec<Advice> {
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
        found.extend(standstill(core));
        found.extend(peers(facts, core));
        found.extend(near(facts, core));
        found.extend(no_commit(facts, *since));
        found.extend(split(core));
        found.extend(reopened(facts, *since));
    }
    found
}

/// Another program than this one runs it.
fn drift(facts: &Facts<'_>) -> Option<Advice> {
    let (loops, ours) = (facts.run?.version.as_str(), facts.asked.version.as_str());
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
    let why = format!("the loop runs version {loops}, this program is {ours}");
    let advice = Advice::new(level, "version-drift", why);
    Some(if facts.spelling.is_by_name() {
        advice.then(Step::of(Command::named("restart")))
    } else {
        advice.then(Step::of(Command::peers("stop"))).then(Step::of(facts.start()))
    })
}

/// The peer that has the turn has been silent for long, or one was ended for that in its newest turn: what it does can
/// be looked at.
fn silent_peer(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    let Liveness::Running { turn, since, .. } = live else { return None };
    let cause = |why: String, since: Timestamp| {
        let advice = Advice::new(Level::Watch, "peer-silent", why).since(Some(since));
        advice.then(Step::of(Command::either("watch", "peek")))
    };
    if let Some(turn) = turn {
        let moved = facts.moved?.max(turn.since);
        if facts.now.since(moved).as_millis() >= SILENT_MS {
            let limit =
                facts.config.map(|config| format!(" (it is ended after {})", duration_ms(config.idle_ms)));
            let quiet = human(facts.now, moved);
            return Some(cause(
                format!("{} has printed nothing for {quiet}{}", turn.peer, limit.unwrap_or_default()),
                moved,
            ));
        }
    }
    let ended = |tick: &&TickRow| {
        let newest = facts.ticks.iter().rev().find(|other| other.peer == tick.peer);
        let this_run = since.is_none_or(|since| tick.ts >= since);
        tick.classification == "idle-timeout"
            && this_run
            && newest.is_some_and(|newest| newest.tick == tick.tick)
    };
    let tick = facts.ticks.iter().rev().find(ended)?;
    Some(cause(format!("{} was ended for its silence in tick {}", tick.peer, tick.tick), tick.ts))
}

/// Neither the journal nor the peer moves.
fn silent(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    let Liveness::Running { turn, gates_since, .. } = live else { return None };
    let limit = facts.config?.idle_ms.saturating_mul(2);
    let waits =
        facts.core.is_some_and(|core| core.peers.iter().any(|peer| peer.waiting(facts.now).is_some()));
    if turn.is_none() && waits {
        return None;
    }
    let moved = facts.moved?.max(gates_since.unwrap_or_default());
    let quiet = u64::try_from(facts.now.since(moved).as_millis()).unwrap_or(u64::MAX);
    let why = format!(
        "neither the journal nor a peer's output moved for {} (a peer is ended after {})",
        duration_ms(quiet - quiet % 1000),
        duration_ms(limit / 2)
    );
    let advice = Advice::new(Level::Act, "silent", why).since(Some(moved));
    (quiet > limit).then(|| advice.then(Step::of(Command::either("watch", "logs"))))
}

/// It will stop soon unless something gets on.
fn standstill(core: &Core) -> Option<Advice> {
    let standstill = core.converge.standstill?;
    let missing: Vec<&str> = core.converge.missing.iter().map(|missing| missing.text.as_str()).collect();
    let why = format!("{}; {}", standstill.words(), peers_sys::term::line(&missing.join("; "), SAID));
    Some(Advice::new(Level::Watch, "standstill", why).then(Step::of(Command::report())))
}

fn red_gates(facts: &Facts<'_>, core: &Core) -> Option<Advice> {
    let red = || core.gates.iter().filter(|gate| gate.reds >= REDS);
    let worst = red().max_by_key(|gate| gate.reds)?;
    let others = match red().count() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", count(u64::try_from(n - 1).unwrap_or(u64::MAX), "gate")),
    };
    let said = peers_sys::term::line(&worst.cause(), SAID);
    let said = if said.is_empty() { said } else { format!(": {said}") };
    let why = format!("{} is red for {}{others}{said}", worst.id, count(worst.reds.into(), "tick"));
    Some(Advice::new(Level::Watch, "gate-red", why).then(Step::of(read(facts, &worst.id))))
}

fn failures(facts: &Facts<'_>, core: &Core) -> Option<Advice> {
    let row = core.budget.rows.iter().find(|row| row.key == "max_consecutive_failures");
    let in_a_row = row.filter(|row| row.spent.raw() >= FAILURES).map(|row| {
        let cap = row.cap.map(|cap| format!(" (the loop stops at {})", cap.words())).unwrap_or_default();
        format!("{} failed in a row{cap}", count(row.spent.raw(), "turn"))
    });
    let why: Vec<String> = in_a_row.into_iter().chain(again::again(facts.ticks)).collect();
    if why.is_empty() {
        return None;
    }
    let tick = facts.ticks.iter().rev().find(|tick| tick.failed());
    let advice = Advice::new(Level::Watch, "failures", why.join("; ")).since(tick.map(|tick| tick.ts));
    Some(advice.then(Step::of(tick.map_or_else(Command::doctor, |tick| replay(tick.tick)))))
}

fn peers(facts: &Facts<'_>, core: &Core) -> Vec<Advice> {
    let mut found = Vec::new();
    for peer in &core.peers {
        let name = &peer.name;
        let reason = peer.reason.as_deref().map(|why| format!(": {}", peers_sys::term::line(why, SAID)));
        let reason = reason.unwrap_or_default();
        if let Some((until, why)) = peer.waiting(facts.now) {
            let why = format!("{name} waits until {} ({why})", words::ahead(facts.now, until));
            // It ends by itself.
            found.push(Advice::new(Level::Watch, "peer-waiting", why).until(Some(until)));
        }
        let look = || facts.replay(|tick| tick.peer == *name && tick.failed());
        let (word, says, command) = match peer.state {
            PeerState::Healthy => continue,
            PeerState::Degraded => ("peer-degraded", "is degraded", look()),
            PeerState::Halted => ("peer-halted", "has no turns in this run", look()),
            PeerState::Unavailable => ("peer-unavailable", "needs its operator", Command::doctor_live()),
        };
        let why = format!("{name} {says}{reason}");
        found.push(Advice::new(Level::Watch, word, why).then(Step::of(command)));
    }
    found
}

fn near(facts: &Facts<'_>, core: &Core) -> Vec<Advice> {
    let mut found = Vec::new();
    for row in &core.budget.rows {
        // Failures have a cause of their own.
        if row.key == "max_consecutive_failures" {
            continue;
        }
        let (Some(percent), Some(cap)) = (row.percent(), row.cap) else { continue };
        let spent = format!("{} of {}", row.words(), cap.words());
        let (word, why) = if percent >= NEAR {
            ("cap-near", format!("{percent}% of its {}: {spent}", row.name))
        } else if projected(facts, core, row) {
            ("cap-ahead", format!("its {} will not last until it can be complete: {spent}", row.name))
        } else {
            continue;
        };
        let raise = Step::of(caps::ahead(facts, row));
        found.push(Advice::new(Level::Watch, word, why).then(raise));
    }
    found
}

/// Whether the cap is reached before the loop can be complete, if each further tick were clean and took what
/// the last ones took.
fn projected(facts: &Facts<'_>, core: &Core, row: &BudgetRow) -> bool {
    let (Some(cap), Some(config)) = (row.cap, facts.config) else { return false };
    let left = u64::from(config.needed.saturating_sub(core.converge.clean_ticks))
        .max(u64::from(!core.converge.complete));
    let each = |of: fn(&TickRow) -> Option<u64>| {
        let known: Vec<u64> = facts.ticks.iter().filter_map(of).collect();
        let n = u64::try_from(known.len()).ok().filter(|_| known.len() >= KNOWN)?;
        known.into_iter().fold(0, u64::saturating_add).checked_div(n)
    };
    let one = match row.key.as_str() {
        "max_iterations" => Some(1),
        "max_runtime_s" => each(|tick| Some(tick.took_ms())),
        "max_tokens" => each(|tick| Some(tick.tokens?.0)),
        "max_usd" => each(|tick| Some(tick.usd?.as_micros())),
        _ => None,
    };
    one.is_some_and(|one| row.spent.raw().saturating_add(one.saturating_mul(left)) > cap.raw())
}

/// Nothing is committed for long, by the records of the loop: the time of a commit is what its author says.
fn no_commit(facts: &Facts<'_>, began: Option<Timestamp>) -> Option<Advice> {
    let began = began?;
    let newest = facts.ticks.iter().rev().find(|tick| !tick.commits.is_empty()).map(|tick| tick.ts);
    // Older ticks than these are not known: it is as long at least.
    let oldest = facts.ticks.first().map(|tick| tick.ts);
    let last = newest.or(oldest).unwrap_or(began).max(began);
    let mut took: Vec<u64> = facts.ticks.iter().map(TickRow::took_ms).collect();
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    let passed = u64::try_from(facts.now.since(last).as_millis()).unwrap_or(u64::MAX);
    let why = format!("no commit for {}", human(facts.now, last));
    let advice = Advice::new(Level::Watch, "no-commit", why).since(Some(last));
    let long = passed > NO_COMMIT_MS.max(median.saturating_mul(3));
    long.then(|| advice.then(Step::of(Command::either("watch", "peek"))))
}

fn split(core: &Core) -> Option<Advice> {
    let split: Vec<String> = core.soft.iter().filter(|row| row.split).map(|row| row.id.to_string()).collect();
    let why = format!("reviewers disagree about {}", words::list(&split, 3));
    let look = Step::of(Command::either("report", "review"));
    (!split.is_empty()).then(|| Advice::new(Level::Watch, "review-split", why).then(look))
}

/// The newest skeptic found something.
fn reopened(facts: &Facts<'_>, began: Option<Timestamp>) -> Option<Advice> {
    let newest = facts.ticks.iter().rev().find(|tick| tick.skeptic.is_some())?;
    let why = format!("{} as skeptic of tick {} found something", newest.peer, newest.tick);
    let advice = Advice::new(Level::Watch, "reopened", why).since(Some(newest.ts));
    let found = Some(newest.ts) >= began && newest.skeptic == Some(SkepticVerdict::Found);
    found.then(|| advice.then(Step::of(Command::peers("bug-hunt summary"))))
}
