//! A loop that does not run: what its ending asks for, by the table of stop reasons.

use peers_core::budget;
use peers_core::test_output::cause;
use peers_model::config::UsdMode;
use peers_model::outcome::{ApiClass, BudgetKind, ErrorKind, StopReason};
use peers_model::{GoalId, PeerName, Timestamp, Usd, login};
use peers_sys::term;

use super::{Cause, Facts, Level, Spelling};
use crate::budget::{Amount, BudgetRow};
use crate::diagnostic::stop_detail;
use crate::liveness::Liveness;

/// Terminal cells of the command of a gate.
const COMMAND: usize = 60;
/// Terminal cells of what is kept of a stop.
const DETAIL: usize = 200;

/// How urgent an ending is, by the table of stop reasons alone.
pub(crate) fn level_of(live: &Liveness) -> Level {
    match live {
        Liveness::Running { .. } | Liveness::Command { .. } => Level::Ok,
        Liveness::Fresh => Level::Idle,
        Liveness::Crashed { .. } => Level::Act,
        Liveness::Stopped { reason, .. } => match reason {
            StopReason::Complete => Level::Done,
            StopReason::MaxTicks => Level::Watch,
            StopReason::Drained | StopReason::Interrupted(_) | StopReason::LockHeld => Level::Idle,
            StopReason::GoalMutation(_)
            | StopReason::Tamper(_)
            | StopReason::Budget(_)
            | StopReason::StuckGate(_)
            | StopReason::StuckSkeptic
            | StopReason::StuckIdle
            | StopReason::ParkedBlocked
            | StopReason::ParkedProof
            | StopReason::Unjudged(_)
            | StopReason::PeerUnavailable(_)
            | StopReason::AllPeersDegraded
            | StopReason::Error(_) => Level::Act,
        },
    }
}

/// Somebody has to find out what happened before anything else.
pub(crate) fn is_alarming(live: &Liveness) -> bool {
    matches!(live, Liveness::Stopped { reason: StopReason::GoalMutation(_) | StopReason::Tamper(_), .. })
}

/// It comes before all that a start would refuse for: it has to be looked at, or says the same.
pub(super) fn is_first(live: &Liveness) -> bool {
    let full = StopReason::Error(ErrorKind::DiskFull);
    is_alarming(live) || matches!(live, Liveness::Stopped { reason, .. } if *reason == full)
}

/// How a loop stands that does not run.
pub(super) fn base(facts: &Facts<'_>, live: &Liveness) -> Cause {
    match live {
        Liveness::Running { .. } => super::running::base(facts, live),
        Liveness::Command { command, .. } => Cause {
            level: Level::Ok,
            code: "command",
            why: format!("`peers {command}` is at work"),
            since: None,
            action: None,
        },
        Liveness::Fresh => Cause {
            level: Level::Idle,
            code: "fresh",
            why: "no run yet".to_owned(),
            since: None,
            action: facts.spelling.start(),
        },
        Liveness::Crashed { how, turn, since, .. } => {
            let turn = turn
                .as_ref()
                .map(|turn| format!(" in tick {} of {}", turn.tick, turn.peer))
                .unwrap_or_default();
            Cause {
                level: Level::Act,
                code: "crashed",
                why: format!("crashed{turn}: {}", how.words()),
                since: Some(*since),
                action: if facts.gone { there(facts) } else { facts.spelling.start() },
            }
        }
        Liveness::Stopped { reason, detail, at, .. } => ended(facts, live, (reason, detail, *at)),
    }
}

fn ended(facts: &Facts<'_>, live: &Liveness, (reason, detail, at): (&StopReason, &str, Timestamp)) -> Cause {
    // The operator has decided what becomes of it; only what is alarming stays so.
    let level = if facts.decided && !is_alarming(live) { Level::Idle } else { level_of(live) };
    let action = match level {
        Level::Idle if facts.decided => facts.spelling.start(),
        _ if facts.gone && !is_alarming(live) && *reason != StopReason::Complete => there(facts),
        _ => next(facts, reason),
    };
    Cause { level, code: code(reason), why: why(facts, reason, detail), since: Some(at), action }
}

/// Where the run worked is gone: `peers` says what can be done about that, which is more than one command.
fn there(facts: &Facts<'_>) -> Option<String> {
    match facts.spelling {
        Spelling::Ctl { .. } => facts.spelling.either(("status", ""), "status"),
        Spelling::Loop { .. } => Some("peers status".to_owned()),
    }
}

/// The word of a stop reason, without what it is about.
fn code(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Complete => "complete",
        StopReason::MaxTicks => "max-ticks",
        StopReason::Drained => "drained",
        StopReason::Budget(_) => "budget",
        StopReason::StuckGate(_) | StopReason::StuckSkeptic | StopReason::StuckIdle => "stuck",
        StopReason::ParkedBlocked | StopReason::ParkedProof => "parked",
        StopReason::Unjudged(_) => "unjudged",
        StopReason::PeerUnavailable(_) | StopReason::AllPeersDegraded => "peer-unavailable",
        StopReason::GoalMutation(_) => "goal-mutation",
        StopReason::Tamper(_) => "tamper",
        StopReason::Interrupted(_) => "interrupted",
        StopReason::Error(_) => "error",
        StopReason::LockHeld => "lock-held",
    }
}

fn why(facts: &Facts<'_>, reason: &StopReason, detail: &str) -> String {
    let said = match reason {
        StopReason::Budget(kind) => spent(facts, *kind).map(|said| match cap_of(facts, *kind) {
            Some(Room::Left) => format!("{said}: raised since, and not started"),
            Some(Room::Used) | None => said,
        }),
        StopReason::StuckGate(id) | StopReason::Unjudged(id) => {
            let gates = facts.core.map(|core| core.gates.as_slice()).unwrap_or_default();
            let gate = gates.iter().find(|gate| gate.id == *id).map(|gate| cause(&gate.diagnostic));
            let said =
                gate.filter(|said| !said.is_empty()).unwrap_or_else(|| stop_detail(Some(reason), detail));
            let known = facts.gate.filter(|gate| gate.id == *id);
            Some(match known.and_then(|gate| gate.command.as_deref()) {
                // Ours, but of any length, and what follows is worth more than its end.
                Some(command) => format!("`{}`: {said}", term::line(command, COMMAND)),
                None => said,
            })
        }
        // What to write stands on the second line.
        StopReason::ParkedProof => detail.lines().next().map(str::to_owned),
        _ => Some(detail.to_owned()),
    };
    let said = said.map(|said| term::line(&said, DETAIL)).filter(|said| !said.is_empty());
    match said {
        Some(said) => format!("{reason}: {said}"),
        None => reason.to_string(),
    }
}

/// `6h 1m of 6h`.
fn spent(facts: &Facts<'_>, kind: BudgetKind) -> Option<String> {
    let row = facts
        .core?
        .budget
        .rows
        .iter()
        .find(|row| row.peer.is_none() && Some(row.key.as_str()) == key(kind))?;
    Some(format!("{} of {}", row.words(), row.cap?.words()))
}

/// The key of a cap below `budget`.
fn key(kind: BudgetKind) -> Option<&'static str> {
    match kind {
        BudgetKind::MaxIterations => Some("max_iterations"),
        BudgetKind::MaxRuntime => Some("max_runtime_s"),
        BudgetKind::MaxWall => Some("max_wall_s"),
        BudgetKind::MaxConsecutiveFailures => Some("max_consecutive_failures"),
        BudgetKind::MaxTokens => Some("max_tokens"),
        BudgetKind::MaxUsd => Some("max_usd"),
        BudgetKind::Deadline | BudgetKind::PerPeer | BudgetKind::NoProgress => None,
    }
}

/// The command that comes after an ending.
fn next(facts: &Facts<'_>, reason: &StopReason) -> Option<String> {
    let spelling = facts.spelling;
    match reason {
        StopReason::Complete => home(facts),
        StopReason::MaxTicks
        | StopReason::Drained
        | StopReason::Interrupted(_)
        | StopReason::Error(ErrorKind::Io | ErrorKind::Git | ErrorKind::Internal) => spelling.start(),
        StopReason::LockHeld => None,
        StopReason::Budget(kind) => raise(facts, *kind),
        StopReason::StuckGate(id) => Some(then(&read(facts, id)?, &spelling.start()?)),
        StopReason::AllPeersDegraded => failed(facts),
        StopReason::StuckSkeptic => {
            let tick = facts.ticks.iter().rev().find(|tick| tick.skeptic.is_some())?.tick;
            spelling.either(("replay", &format!("--from-tick {tick}")), &format!("replay {tick}"))
        }
        StopReason::Unjudged(id) => spelling.peers(&format!("verify --only {}", term::quoted(id.as_str()))),
        StopReason::ParkedBlocked => blocked(facts),
        StopReason::ParkedProof => Some(then(&spelling.peers("goals edit --config")?, &spelling.resume()?)),
        StopReason::PeerUnavailable(peer) => {
            let newest = facts.ticks.iter().rev().find(|tick| tick.peer == *peer);
            match newest.map(|tick| tick.api) {
                // Only its account is in the way, and that can be asked.
                Some(ApiClass::Auth) => login(facts, peer).or_else(|| spelling.ask()),
                Some(ApiClass::Quota) | None => spelling.ask(),
                // The limit ends by itself.
                Some(ApiClass::Transient | ApiClass::UsageCap) => spelling.resume(),
                Some(ApiClass::None | ApiClass::Other) => spelling.doctor(),
            }
        }
        StopReason::GoalMutation(_) => Some(then(&spelling.peers("goals restore")?, &spelling.resume()?)),
        StopReason::StuckIdle | StopReason::Tamper(_) => spelling.either(("report", ""), "report"),
        StopReason::Error(ErrorKind::DiskFull) => space(facts),
    }
}

/// Looks where there is room to be made, and goes on.
pub(super) fn space(facts: &Facts<'_>) -> Option<String> {
    let look = facts.spelling.space(facts.full)?;
    Some(match facts.spelling.start() {
        Some(start) => then(&look, &start),
        None => look,
    })
}

/// Takes a finished branch home, where there is one with something on it.
fn home(facts: &Facts<'_>) -> Option<String> {
    let dry = facts.core.and_then(|core| core.run.as_ref()).is_some_and(|run| run.dry_run);
    let run = facts.run.filter(|run| run.own_branch && run.branch.is_some() && !dry)?;
    if facts.decided || (run.base.is_some() && run.base == run.head) {
        return None;
    }
    facts.spelling.peers("land")
}

/// Shows all that a gate printed; without that, runs it again.
pub(super) fn read(facts: &Facts<'_>, id: &GoalId) -> Option<String> {
    let log = facts.gate.filter(|gate| gate.id == *id).and_then(|gate| gate.log.as_deref());
    let shown = log.and_then(super::spelling::show);
    shown.or_else(|| facts.spelling.peers(&format!("verify --only {}", term::quoted(id.as_str()))))
}

/// One step after the other.
fn then(first: &str, second: &str) -> String {
    format!("{first}, then {second}")
}

/// Shows the last turn that failed; without one, looks whether peers can have turns at all.
fn failed(facts: &Facts<'_>) -> Option<String> {
    let spelling = facts.spelling;
    match facts.ticks.iter().rev().find(|tick| tick.failed()) {
        Some(failed) => {
            let tick = failed.tick;
            spelling.either(("replay", &format!("--from-tick {tick}")), &format!("replay {tick}"))
        }
        None => spelling.doctor(),
    }
}

/// Logs a peer in, and goes on.
fn login(facts: &Facts<'_>, peer: &PeerName) -> Option<String> {
    let row = facts.core?.peers.iter().find(|row| row.name == *peer)?;
    Some(then(login::typed(&row.tool)?, &facts.spelling.resume()?))
}

/// Says that what was in the way of the peers is seen to, and goes on.
fn blocked(facts: &Facts<'_>) -> Option<String> {
    let spelling = facts.spelling;
    if let Spelling::Ctl { .. } = spelling {
        return spelling.resume();
    }
    let peers = facts.core.map(|core| core.peers.as_slice()).unwrap_or_default();
    let mut commands: Vec<String> = Vec::new();
    for peer in peers.iter().filter(|peer| peer.blocked_on.is_some()) {
        commands.push(spelling.peers(&format!("ack blocked:{} --reason 'seen to'", peer.name))?);
    }
    commands.push(spelling.start()?);
    Some(commands.join(" && "))
}

/// Whether a cap that was reached is reached still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Used,
    Left,
}

/// How a cap that counts over all runs stands now; `None` for one that does not.
fn cap_of(facts: &Facts<'_>, kind: BudgetKind) -> Option<Room> {
    match kind {
        BudgetKind::MaxIterations | BudgetKind::MaxRuntime | BudgetKind::MaxTokens | BudgetKind::MaxUsd => {}
        BudgetKind::MaxWall
        | BudgetKind::MaxConsecutiveFailures
        | BudgetKind::Deadline
        | BudgetKind::PerPeer
        | BudgetKind::NoProgress => return None,
    }
    let rows = facts.core.map(|core| core.budget.rows.as_slice()).unwrap_or_default();
    let row = rows.iter().find(|row| row.peer.is_none() && Some(row.key.as_str()) == key(kind));
    let used = row.is_none_or(|row| row.percent().is_some_and(|percent| percent >= 100));
    Some(if used { Room::Used } else { Room::Left })
}

/// The budget that is used up of a loop that stopped for something else: its next start is refused for that.
pub(super) fn exhausted(facts: &Facts<'_>, live: &Liveness) -> Option<Cause> {
    match live {
        Liveness::Crashed { .. } => {}
        Liveness::Stopped { reason, .. }
            if !matches!(reason, StopReason::Complete | StopReason::Budget(_)) => {}
        _ => return None,
    }
    let core = facts.core?;
    let hard = core.budget.usd_mode == Some(UsdMode::Hard);
    // A cap that one run was given is no cap of the next.
    let given = facts.run.is_some_and(|run| run.given_usd().is_some());
    let kinds =
        [BudgetKind::MaxIterations, BudgetKind::MaxRuntime, BudgetKind::MaxTokens, BudgetKind::MaxUsd];
    let row_of =
        |kind| core.budget.rows.iter().find(|row| row.peer.is_none() && Some(row.key.as_str()) == key(kind));
    kinds.into_iter().filter(|kind| *kind != BudgetKind::MaxUsd || (hard && !given)).find_map(|kind| {
        let row = row_of(kind).filter(|_| cap_of(facts, kind) == Some(Room::Used))?;
        let cap = row.cap?.words();
        Some(Cause {
            level: Level::Act,
            code: "budget",
            why: format!(
                "a start would refuse: the budget is used up, {}: {} of {cap}",
                row.name,
                row.words()
            ),
            since: None,
            action: raise(facts, kind),
        })
    })
}

/// Raises the cap that was reached; where it was raised already, goes on.
fn raise(facts: &Facts<'_>, kind: BudgetKind) -> Option<String> {
    let spelling = facts.spelling;
    let rows = facts.core.map(|core| core.budget.rows.as_slice()).unwrap_or_default();
    let row = rows.iter().find(|row| row.peer.is_none() && Some(row.key.as_str()) == key(kind));
    let reached = cap_of(facts, kind) != Some(Room::Left);
    match kind {
        // Counted anew for each run.
        BudgetKind::MaxWall => spelling.resume(),
        BudgetKind::MaxConsecutiveFailures => failed(facts),
        BudgetKind::MaxIterations | BudgetKind::MaxRuntime | BudgetKind::MaxTokens | BudgetKind::MaxUsd
            if !reached =>
        {
            spelling.resume()
        }
        BudgetKind::MaxIterations | BudgetKind::MaxRuntime | BudgetKind::MaxTokens | BudgetKind::MaxUsd => {
            let raise = more(spelling, kind, row)?;
            Some(match spelling {
                Spelling::Ctl { .. } => then(&raise, &spelling.resume()?),
                Spelling::Loop { .. } => raise,
            })
        }
        BudgetKind::Deadline | BudgetKind::PerPeer => spelling.peers("goals edit --config"),
        BudgetKind::NoProgress => spelling.either(("report", ""), "report"),
    }
}

/// The command that gives more of what ran out.
pub(super) fn more(spelling: &Spelling, kind: BudgetKind, row: Option<&BudgetRow>) -> Option<String> {
    let raw = |amount: Amount| match amount {
        Amount::Millis(ms) => ms / 1000,
        other => other.raw(),
    };
    let (cap, spent) = (row.and_then(|row| row.cap), row.map_or(0, |row| raw(row.spent)));
    match (spelling, cap) {
        (Spelling::Ctl { .. }, _) => {
            let more = budget::more(kind, cap.map(raw), spent)?;
            spelling.either(("budget raise", &more), "")
        }
        // A cap of money can be given to one run alone; it counts over all of them.
        (Spelling::Loop { .. }, Some(Amount::Usd(cap))) => {
            let most = Usd::from_micros(cap.as_micros().max(spent));
            let half = whole(Usd::from_micros(cap.as_micros() / 2)).max(1);
            spelling.peers(&format!("run --max-usd {}", whole(most).saturating_add(half)))
        }
        (Spelling::Loop { .. }, _) => spelling.peers("goals edit --config"),
    }
}

/// In whole dollars, rounded up.
fn whole(usd: Usd) -> u64 {
    usd.as_micros().div_ceil(1_000_000)
}
