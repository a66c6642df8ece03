//! All that a loop asks of its operator, put in order.
//!
//! The most urgent stands for the loop; the others are listed. What is not known here causes nothing, but for one
//! thing: that it is not known whether the loop lives.

use peers_model::command::{Command, Step};
use peers_model::outcome::StopReason;
use peers_model::record::MoveKind;

use super::cause::{Advice, Attention, Level};
use super::facts::Facts;
use super::{caps, running, stopped};
use crate::liveness::Liveness;
use crate::words;

/// So little space is left that a loop may stop for it soon, bytes.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;
/// So long a loop may be not known of before somebody has to look, milliseconds.
const UNKNOWN_MS: u64 = 120_000;

/// The code of a project that has no `.peers/`.
pub(crate) const NOT_SET_UP: &str = "not-set-up";
/// What is said where somebody holds the lock of older systems: nothing of what it says of itself.
pub(crate) const FOREIGN_LOCK: &str = "another process holds `.peers/run.lock`, the lock of an older version, which agents can hold too: start is blocked until it is released";

/// What the loop asks of its operator.
pub(crate) fn attention(facts: &Facts<'_>) -> Attention {
    if facts.asked.listed.bare {
        return Attention::of(vec![not_set_up()], facts.spelling);
    }
    // Among equals the first one stands for the loop, so that comes first what has to be seen to first.
    let mut found: Vec<Advice> = damage(facts).into_iter().collect();
    let live = facts.live.value().copied();
    let idle = !matches!(live, Some(Liveness::Running { .. } | Liveness::Command { .. }));
    if idle {
        found.extend(cut_short(facts));
    }
    let base = match live {
        Some(live) => running::base(facts, live).or_else(|| stopped::base(facts, live)),
        None => Some(unknown(facts)),
    };
    // Whatever is typed next fails for these; but that somebody meddled is looked at first.
    let files = files(facts, base.as_ref().map(|base| base.code).unwrap_or_default());
    let alarm = live.is_some_and(stopped::is_alarming);
    let (before, after) = if idle && !alarm { (files, None) } else { (None, files) };
    let starts = before.is_none() && live.is_none_or(|live| stopped::starts(facts, live));
    found.extend(before);
    if idle && starts {
        found.extend(refused(facts, base.as_ref()));
        found.extend(live.and_then(|live| caps::exhausted(facts, live)));
    }
    found.extend(base);
    found.extend(live.into_iter().flat_map(|live| running::causes(facts, live)));
    found.extend(foreign_lock(facts));
    found.extend(mirror(facts));
    found.extend(after);
    found.extend(space(facts, idle));
    let complete = matches!(live, Some(Liveness::Stopped { reason: StopReason::Complete, .. }));
    if idle && !starts && !complete {
        found.extend(refused(facts, None));
    }
    Attention::of(found, facts.spelling)
}

/// Nothing is there that could be asked about.
fn not_set_up() -> Advice {
    let advice = Advice::new(Level::Act, NOT_SET_UP, "it is not set up: it has no `.peers/`");
    advice.then(Step::of(Command::peers("init")).say(" sets it up"))
}

/// Nobody can say whether it runs.
fn unknown(facts: &Facts<'_>) -> Advice {
    let unknown = facts.asked.listed.unknown.as_ref();
    let why = facts.live.why().unwrap_or("nothing checked it");
    let since = unknown.and_then(|unknown| unknown.since);
    // Who does not say since when has no memory, and would never tell.
    let fresh = since.is_some_and(|since| facts.now.since(since).as_millis() <= u128::from(UNKNOWN_MS));
    let why = if unknown.is_some_and(|unknown| unknown.nobody) {
        format!("{why}, and no loop runs")
    } else {
        format!("it is not known whether the loop runs: {why}")
    };
    let level = if fresh { Level::Watch } else { Level::Act };
    Advice::new(level, "unknown", why).since(since).then(Step::of(Command::doctor()))
}

fn damage(facts: &Facts<'_>) -> Option<Advice> {
    let why = format!("the journal is damaged: {}", facts.damage?);
    let check = Step::of(Command::peers("state check")).say(" reads all of the journal, which is damaged");
    Some(Advice::new(Level::Act, "journal-damaged", why).then(check))
}

fn mirror(facts: &Facts<'_>) -> Option<Advice> {
    let (at, tick) = facts.mirror?;
    let when = tick.map_or_else(|| "while no loop ran".to_owned(), |tick| format!("in tick {tick}"));
    let why = format!("`.peers/log/runs.jsonl` was changed {when}; peers restored it from the journal");
    let advice = Advice::new(Level::Act, "mirror-changed", why);
    Some(advice.since(Some(at)).then(Step::of(Command::report())))
}

/// Goals or configuration that no start takes. `told`: the code of what is said of the loop anyway.
fn files(facts: &Facts<'_>, told: &str) -> Option<Advice> {
    if told == "goal-mutation" {
        return None;
    }
    let goals = |verb| Command::peers(verb).at(facts.setup.dir.as_deref());
    if !facts.broken.is_empty() {
        let why = format!("no start takes {}", words::listed(facts.broken));
        let correct = Step::from(format!("correct {} (", facts.broken.join(" and ")));
        let advice = Advice::new(Level::Act, "unreadable-files", why);
        return Some(advice.then(correct.run(goals("goals lint")).say(" says what is wrong)")));
    }
    let fresh = told == "fresh";
    if facts.setup.placeholder && fresh {
        let why = "the gate is still a placeholder: put your test command in its place";
        let replace = "replace the gate `placeholder-replace-me` in .peers/goals.yaml by your test command (";
        let advice = Advice::new(Level::Act, "placeholder", why);
        return Some(advice.then(Step::from(replace).run(goals("goals edit")).say(")")));
    }
    if facts.setup.unaccepted.is_empty() {
        return None;
    }
    let files: Vec<String> = facts.setup.unaccepted.iter().map(|file| format!(".peers/{file}")).collect();
    let names = facts.setup.unaccepted.join(" and ");
    let (why, look) = if facts.setup.never {
        (format!("{} were never accepted in this clone", words::listed(&files)), format!("review {names} ("))
    } else {
        let why = format!("{} changed and the change was not accepted", words::listed(&files));
        (why, format!("look at what changed in {names} ("))
    };
    let look = Step::from(look);
    let accept = Step::default().mention(goals("goals accept"));
    // Before the first run there may be nothing to restore.
    let accept = if fresh { accept } else { accept.say(" or ").mention(goals("goals restore")) };
    let advice = Advice::new(Level::Act, "unaccepted", why);
    Some(advice.then(look.run(goals("goals diff")).say(")")).then(accept))
}

fn space(facts: &Facts<'_>, idle: bool) -> Option<Advice> {
    let free = facts.asked.free_bytes.filter(|free| *free < LITTLE_SPACE)?;
    let at = facts.asked.full.as_ref().map(|_| " for its trusted store").unwrap_or_default();
    let why = format!("only {} of disk space are free{at}", words::bytes(free));
    let advice = Advice::new(Level::Act, "disk-low", why).then(stopped::space(facts));
    Some(if idle { advice.then(Step::of(facts.start())) } else { advice })
}

/// Somebody holds a lock that lies where agents write. Which process it says it is says nothing.
fn foreign_lock(facts: &Facts<'_>) -> Option<Advice> {
    let words = vec!["fuser".to_owned(), "-v".to_owned()];
    let holder = Command::Tool { words, place: Some("/.peers/run.lock") };
    let advice = Advice::new(Level::Act, "foreign-lock", FOREIGN_LOCK);
    facts.asked.foreign_lock.then(|| advice.then(Step::of(holder)))
}

/// A landing or an undo that did not come to its end.
fn cut_short(facts: &Facts<'_>) -> Option<Advice> {
    let moving = facts.moving?;
    let (what, command) = match moving.kind {
        MoveKind::Land => ("a landing", Command::peers("land")),
        MoveKind::Undo => ("an undo", Command::peers("undo").with(moving.run.as_str())),
    };
    let finish = Step::of(command).say(format!(" finishes {what} that was cut short"));
    Some(Advice::new(Level::Act, "cut-short", format!("{what} was cut short")).then(finish))
}

/// What a start would refuse for. `base`: what comes once that is seen to.
fn refused(facts: &Facts<'_>, base: Option<&Advice>) -> Option<Advice> {
    let first = facts.asked.refusals.first()?;
    let more = match facts.asked.refusals.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let see = Step::of(Command::doctor()).say(" shows what prevents a start; fix that");
    let advice = Advice::new(
        Level::Act,
        "refused",
        format!("a start would refuse: {}{more}", facts.spelling.tell(first)),
    )
    .then(see);
    let later = base.map(|base| base.steps.clone()).unwrap_or_default();
    Some(later.into_iter().fold(advice, |advice, step| advice.then(step.spoken())))
}
