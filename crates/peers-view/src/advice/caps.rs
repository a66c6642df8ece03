//! Caps of the budget: what they are called, whether they are used up, and how they are raised.

use peers_core::budget;
use peers_model::Usd;
use peers_model::command::{Command, Step};
use peers_model::config::UsdMode;
use peers_model::outcome::{BudgetKind, StopReason};

use super::cause::{Advice, Level};
use super::facts::Facts;
use crate::budget::{Amount, BudgetRow};
use crate::liveness::Liveness;
use crate::ticks::TickRow;

/// Those that count over all runs and that one command raises.
const RAISED: [BudgetKind; 4] =
    [BudgetKind::MaxIterations, BudgetKind::MaxRuntime, BudgetKind::MaxTokens, BudgetKind::MaxUsd];

const OR_NOT: &str = ", or leave it as it is";

/// The key of a cap below `budget`.
pub(crate) fn key(kind: BudgetKind) -> &'static str {
    match kind {
        BudgetKind::MaxIterations => "max_iterations",
        BudgetKind::MaxRuntime => "max_runtime_s",
        BudgetKind::MaxWall => "max_wall_s",
        BudgetKind::Deadline => "deadline",
        BudgetKind::PerPeer => "per_peer",
        BudgetKind::MaxConsecutiveFailures => "max_consecutive_failures",
        BudgetKind::MaxTokens => "max_tokens",
        BudgetKind::MaxUsd => "max_usd",
        BudgetKind::NoProgress => "no_progress",
    }
}

/// Whether a cap that counts over all runs has room again.
fn has_room(facts: &Facts<'_>, kind: BudgetKind) -> bool {
    let row = facts.cap(key(kind)).and_then(BudgetRow::percent);
    RAISED.contains(&kind) && facts.cap(key(kind)).is_some() && row.is_none_or(|percent| percent < 100)
}

/// Whether a loop that stopped for this cap is just started again.
pub(super) fn starts(facts: &Facts<'_>, kind: BudgetKind) -> bool {
    matches!(kind, BudgetKind::MaxWall | BudgetKind::MaxConsecutiveFailures) || has_room(facts, kind)
}

/// `6h 1m of 6h`.
pub(super) fn spent(facts: &Facts<'_>, kind: BudgetKind) -> Option<String> {
    let row = facts.cap(key(kind))?;
    let said = format!("{} of {}", row.words(), row.cap?.words());
    Some(if has_room(facts, kind) { format!("{said}: raised since, and not started") } else { said })
}

/// What to do once this cap is reached.
pub(super) fn reached(facts: &Facts<'_>, kind: BudgetKind) -> Vec<Step> {
    match kind {
        _ if has_room(facts, kind) => vec![Step::of(facts.resume()).say(" goes on")],
        BudgetKind::MaxWall => {
            vec![Step::of(facts.resume()).say(" goes on: this time is counted anew for each run")]
        }
        BudgetKind::MaxConsecutiveFailures => vec![
            Step::from("find out why the last turns failed (").run(facts.replay(TickRow::failed)).say(")"),
            Step::default().mention(facts.resume()).say(": a new run counts anew"),
        ],
        BudgetKind::MaxUsd | BudgetKind::MaxIterations | BudgetKind::MaxRuntime | BudgetKind::MaxTokens => {
            raise(facts, kind)
        }
        BudgetKind::Deadline => vec![
            Step::from("set a later `budget.deadline` in .peers/config.yaml, or none (").run(edit()).say(")"),
            later(facts),
        ],
        BudgetKind::PerPeer => vec![
            Step::from(format!(
                "raise `budget.{}` in .peers/config.yaml (",
                full(facts, key(kind), |row| row.peer.is_some())
            ))
            .run(edit())
            .say(")"),
            later(facts),
        ],
        BudgetKind::NoProgress => vec![
            Step::from("see what the last turns were spent on (")
                .run(Command::report())
                .say(") and help them on"),
            Step::from(format!(
                "raise `budget.{}` in .peers/config.yaml (",
                full(facts, "max_usd_since_progress", |row| row.key.ends_with("_since_progress"))
            ))
            .mention(edit())
            .say(")"),
            later(facts),
        ],
    }
}

/// What follows once there is more.
fn later(facts: &Facts<'_>) -> Step {
    Step::default().mention(facts.resume()).say(OR_NOT)
}

/// The keys of the caps that are used up, of those that fit; `usual` where none is known.
fn full(facts: &Facts<'_>, usual: &str, fits: impl Fn(&BudgetRow) -> bool) -> String {
    let rows = facts.core.map(|core| core.budget.rows.as_slice()).unwrap_or_default();
    let full = rows.iter().filter(|row| fits(row) && row.percent() >= Some(100));
    let keys: Vec<&str> = full.map(|row| row.key.as_str()).collect();
    if keys.is_empty() { usual.to_owned() } else { keys.join("` or `budget.") }
}

fn edit() -> Command {
    Command::peers("goals edit --config")
}

fn raise(facts: &Facts<'_>, kind: BudgetKind) -> Vec<Step> {
    let row = facts.cap(key(kind));
    let said = row.and_then(|row| Some(format!("{} of {} are used up: ", row.words(), row.cap?.words())));
    let said = Step::from(said.unwrap_or_default());
    let more = more(facts, kind).unwrap_or_else(edit);
    if facts.spelling.is_by_name() {
        return vec![said.say("raise the cap (").run(more).say(")"), Step::of(facts.resume()).say(OR_NOT)];
    }
    let by_file = |step: Step| step.say(format!("raise `budget.{}` in .peers/config.yaml (", key(kind)));
    let step = if more == edit() {
        by_file(said).run(edit())
    } else {
        by_file(said.run(more).say(" goes on; or ")).mention(edit())
    };
    vec![step.say(")"), later(facts)]
}

/// The command that gives more of what ran out; nothing where only its file does.
pub(super) fn more(facts: &Facts<'_>, kind: BudgetKind) -> Option<Command> {
    let raw = |amount: Amount| match amount {
        Amount::Millis(ms) => ms / 1000,
        other => other.raw(),
    };
    let row = facts.cap(key(kind));
    let (cap, spent) = (row.and_then(|row| row.cap), row.map_or(0, |row| raw(row.spent)));
    if facts.spelling.is_by_name() {
        let (option, more) = budget::more(kind, cap.map(raw), spent)?;
        return Some(Command::named("budget raise").with_ctl(option).with_ctl(&more));
    }
    // A cap of money can be given to one run alone; it counts over all of them.
    let Some(Amount::Usd(cap)) = cap else { return None };
    let most = Usd::from_micros(cap.as_micros().max(spent));
    let half = whole(Usd::from_micros(cap.as_micros() / 2)).max(1);
    let usd = whole(most).saturating_add(half).to_string();
    let run = Command::run().at(facts.apart);
    let run = if facts.is_dry() { run.with_peers("--dry-run") } else { run };
    Some(run.with_peers("--max-usd").with_peers(&usd))
}

/// In whole dollars, rounded up.
fn whole(usd: Usd) -> u64 {
    usd.as_micros().div_ceil(1_000_000)
}

/// The budget that is used up of a loop that stopped for something else: its next start is refused for that.
pub(super) fn exhausted(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    match live {
        Liveness::Crashed { .. } => {}
        Liveness::Stopped { reason, .. }
            if !matches!(reason, StopReason::Complete | StopReason::Budget(_)) => {}
        _ => return None,
    }
    let hard = facts.core?.budget.usd_mode == Some(UsdMode::Hard);
    // A cap that one run was given is no cap of the next.
    let given = facts.run.is_some_and(|run| run.given_usd().is_some());
    let counts = |kind: &BudgetKind| *kind != BudgetKind::MaxUsd || (hard && !given);
    RAISED.into_iter().filter(counts).find_map(|kind| {
        let row = facts.cap(key(kind)).filter(|row| row.percent() >= Some(100))?;
        let (name, spent, cap) = (&row.name, row.words(), row.cap?.words());
        let why = format!("a start would refuse: the budget is used up, {name}: {spent} of {cap}");
        Some(Advice::new(Level::Act, "budget", why).steps(raise(facts, kind)))
    })
}

/// Which cap of everybody a row is about, where it can be raised by a command.
pub(super) fn raised(row: &BudgetRow) -> Option<BudgetKind> {
    RAISED.into_iter().find(|kind| row.peer.is_none() && row.key == key(*kind))
}

/// Raises the cap of a loop that runs.
pub(super) fn ahead(facts: &Facts<'_>, row: &BudgetRow) -> Command {
    let kind = raised(row).filter(|_| facts.spelling.is_by_name());
    kind.and_then(|kind| more(facts, kind)).unwrap_or_else(edit)
}
