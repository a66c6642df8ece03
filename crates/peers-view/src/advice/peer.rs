//! What helps a peer, by what was the matter.

use peers_core::apply::bounded;
use peers_core::state::PeerState;
use peers_model::command::{Command, Step};
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::WaitCause;
use peers_model::{PeerName, Timestamp, login};

use super::facts::{Facts, replay};
use crate::liveness::Liveness;
use crate::peers::PeerRow;
use crate::ticks::TickRow;
use crate::words;

/// Characters of why a peer has no turns.
const WHY: usize = 200;

/// A failure among the last turns of a peer.
const FAILED: u32 = 2;

/// What helps: what is done, and before when there is nothing to do.
pub(super) struct Remedy {
    pub(super) steps: Vec<Step>,
    pub(super) until: Option<Timestamp>,
}

/// The peers that have no turns, each with why and what helps it: a run may go on, and end well, without
/// them. Whom the run stopped for is in its reason and in the next step.
pub(crate) fn out(facts: &Facts<'_>) -> Vec<String> {
    let Some(live) = facts.live.value() else { return Vec::new() };
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
                let help = told(facts, &remedy(peer, facts, None).steps);
                return Some(format!("{peer} has no turns{since}, it needs its operator{why}; {help}"));
            }
            _ if reason.is_none() => return None,
            PeerState::Degraded | PeerState::Halted if reason != Some(&StopReason::AllPeersDegraded) => {
                return Some(format!("{peer} had no turns{since}, it is {}{why}", row.state.word()));
            }
            PeerState::Healthy | PeerState::Degraded | PeerState::Halted => {}
        }
        if let Some((until, why)) = row.waiting(facts.now) {
            let until = words::ahead(facts.now, until);
            return Some(format!("{peer} had no turns{since}, it waits until {until} ({why})"));
        }
        if let Some(says) = row.blocked(said) {
            let acked = told(facts, &[Step::of(ack(peer.as_str(), "TEXT"))]);
            return (reason != Some(&StopReason::ParkedBlocked))
                .then(|| format!("{peer} {says}; once that is seen to: {acked}"));
        }
        useless(row, facts)
    };
    facts.peers().iter().filter_map(one).collect()
}

/// How to get a peer back that needs its operator, one sentence.
pub(crate) fn back(row: &PeerRow, facts: &Facts<'_>) -> String {
    if row.blocked_on.is_some() {
        return told(facts, &blocked(facts));
    }
    told(facts, &remedy(&row.name, facts, Some(facts.resume())).steps)
}

fn told(facts: &Facts<'_>, steps: &[Step]) -> String {
    steps.iter().filter_map(|step| facts.spelling.said(step)).collect::<Vec<_>>().join(", then ")
}

/// Words of somebody else beside commands of ours: in quotes, and nothing in them looks like a command.
fn said(words: &str) -> String {
    format!("\"{}\"", bounded(&words.replace(['`', '"'], "'"), WHY))
}

/// That a peer which still has its turns failed in every one of the last.
fn useless(row: &PeerRow, facts: &Facts<'_>) -> Option<String> {
    let turns = row.recent.len();
    if turns < 2 || row.recent.iter().any(|turn| *turn != FAILED) {
        return None;
    }
    let newest = facts.ticks.iter().rev().find(|tick| tick.peer == row.name && tick.failed());
    let (tick, why) = match (newest, &row.last) {
        (Some(tick), _) => (tick.tick, tick.reason.as_deref()),
        (None, Some(last)) => (last.tick, last.soft_fail_reason.as_deref()),
        (None, None) => return None,
    };
    let why = why.map(|why| format!(": {}", said(why))).unwrap_or_default();
    let see = told(facts, &[Step::of(replay(tick))]);
    Some(format!("{} failed in each of its last {turns} turns{why}; see {see}", row.name))
}

/// What helps `peer`, and then, if anything, `run`.
pub(super) fn remedy(peer: &PeerName, facts: &Facts<'_>, run: Option<Command>) -> Remedy {
    let row = facts.peer(peer);
    let newest = facts.ticks.iter().rev().find(|tick| tick.peer == *peer);
    let edit = || Command::peers("goals edit --config");
    // The loop goes on by a command that is typed, or later, once what was typed has shown that it can.
    let later = |step: Step| {
        std::iter::once(step).chain(run.clone().map(|run| Step::default().mention(run))).collect()
    };
    let steps = match trouble(row, newest) {
        Trouble::Login => log_in(peer, row, run),
        Trouble::Credit => later(
            Step::from(format!("buy credit for the account of `{peer}`, or give it another model or tool ("))
                .mention(edit())
                .say("), ask it for a word with ")
                .run(Command::doctor_live()),
        ),
        Trouble::Refused(cause) => return wait(peer, facts, (cause, newest), run),
        Trouble::Program => later(
            Step::from(format!("install the program of `{peer}`, or correct its `argv` ("))
                .mention(edit())
                .say("), until ")
                .run(Command::doctor())
                .say(" finds it"),
        ),
        Trouble::Unknown => {
            let look = Step::from(format!("check why `{peer}` failed ("));
            later(match newest {
                Some(tick) => look.mention(replay(tick.tick)).say(", ").run(Command::doctor()).say(")"),
                None => look.run(Command::doctor_live()).say(")"),
            })
        }
    };
    Remedy { steps, until: None }
}

/// What was the matter.
enum Trouble {
    Login,
    Credit,
    /// Its service refuses it for longer than a run may wait.
    Refused(WaitCause),
    Program,
    Unknown,
}

fn trouble(row: Option<&PeerRow>, newest: Option<&TickRow>) -> Trouble {
    match (newest.map(|tick| tick.end), row.and_then(|row| row.waits_for)) {
        (Some((ExitClass::SpawnFail, _)), _) => Trouble::Program,
        (Some((_, ApiClass::Auth)), _) => Trouble::Login,
        (Some((_, ApiClass::Quota)), _) => Trouble::Credit,
        (_, Some(cause)) => Trouble::Refused(cause),
        (Some((_, ApiClass::UsageCap)), None) => Trouble::Refused(WaitCause::UsageCap),
        (Some((_, ApiClass::Transient)), None) => Trouble::Refused(WaitCause::RateLimit),
        (Some((_, ApiClass::None | ApiClass::Other)) | None, None) => Trouble::Unknown,
    }
}

fn log_in(peer: &PeerName, row: Option<&PeerRow>, run: Option<Command>) -> Vec<Step> {
    let step = Step::from(format!("log `{peer}` in ("));
    let Some(how) = row.and_then(|row| login::of(&row.tool)) else {
        let step = step.say("as its tool has it, or by a key in its environment), ask it for a word with ");
        let run = run.map(|run| Step::default().mention(run));
        return std::iter::once(step.run(Command::doctor_live())).chain(run).collect();
    };
    let mut step = match how.typed {
        [_, _, ..] => step.say("start "),
        _ => step,
    };
    for (n, typed) in how.typed.iter().enumerate() {
        let line = Command::Line((*typed).to_owned());
        // What follows is typed within the program, and is no command of a shell.
        step = if n == 0 { step.run(line) } else { step.say(" and type ").mention(line) };
    }
    let keys = how.keys.map(|keys| format!(", or set {keys}")).unwrap_or_default();
    let step = step.say(format!("{keys}), ask it for a word with ")).mention(Command::doctor_live());
    std::iter::once(step).chain(run.map(Step::of)).collect()
}

/// The limit ends by itself.
fn wait(
    peer: &PeerName,
    facts: &Facts<'_>,
    (cause, newest): (WaitCause, Option<&TickRow>),
    run: Option<Command>,
) -> Remedy {
    let row = facts.peer(peer);
    let until = row.and_then(|row| row.waits_until).or_else(|| newest.and_then(|tick| tick.resets_at));
    let until = until.filter(|until| *until > facts.now);
    let over = format!("the {} of `{peer}` is over", cause.word());
    let wait = match until {
        Some(until) => format!("wait until {}, when {over}", words::clock(facts.now, until)),
        None => format!("wait until {over}"),
    };
    let or = |step: Step| {
        step.say("; or raise `rate_limit_max_wait_s` in .peers/config.yaml (")
            .mention(Command::peers("goals edit --config"))
            .say("), and a run waits that long by itself")
    };
    let steps = match run {
        Some(run) => vec![Step::from(wait), or(Step::of(run))],
        None => vec![or(Step::from(wait))],
    };
    Remedy { steps, until }
}

fn ack(peer: &str, reason: &str) -> Command {
    Command::peers("ack").with(&format!("blocked:{peer}")).with("--reason").with(reason)
}

/// How peers go on that say that something is in their way.
pub(super) fn blocked(facts: &Facts<'_>) -> Vec<Step> {
    let blocked = facts.peers().iter().filter(|peer| peer.blocked_on.is_some());
    let blocked: Vec<&str> = blocked.map(|peer| peer.name.as_str()).collect();
    let run = Step::of(facts.resume());
    let step = Step::from("clear what blocks ");
    let mut step = match blocked.as_slice() {
        // The operator has said that it is seen to.
        [] => return vec![run.say(" goes on")],
        [one] => step.say(*one),
        _ => step.say("them"),
    };
    // By name a start that goes on says it too.
    if facts.spelling.is_by_name() {
        return vec![step.say(" (").mention(Command::status()).say(")"), run];
    }
    step = step.say(" (").mention(Command::status()).say(") and say so (");
    for (n, peer) in blocked.iter().enumerate() {
        step = if n == 0 { step } else { step.say(", ") };
        step = step.run(ack(peer, "seen to"));
    }
    vec![step.say(")"), run]
}
