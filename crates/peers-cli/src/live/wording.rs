//! The sentences of the live view.

use std::time::Duration;

use peers_console::output::counted;
use peers_core::converge;
use peers_core::state::{PeerState, State};
use peers_model::command::{Command, Step};
use peers_model::record::{TickOutcome, TickRecord};
use peers_model::time::human;
use peers_model::verdict::{Judged, Place};
use peers_model::{GoalId, Mono, PeerName, Usd};
use peers_run::procs::{self, LiveGates, LiveHook, LivePeer, Progress};
use peers_sys::{clock, term};

use super::Doing;

/// Cells of a diagnostic in a line.
const DIAGNOSTIC: usize = 160;
/// Cells of the reason of a failure.
const COMPLAINT: usize = 200;
/// Lines of a tail that are echoed, of standard output and of standard error.
const TAILS: (usize, usize) = (50, 25);

/// The first lines: where agents work, and what holds them.
pub(super) fn start(state: &State) -> Vec<Step> {
    let branch = match &state.branch {
        Some(branch) => format!("branch `{branch}`"),
        None => "a detached HEAD".to_owned(),
    };
    let run = state.run.as_ref();
    let at = run.map(|run| format!(" at {}", run.base.short())).unwrap_or_default();
    let id = run.map(|run| format!("run {}: ", run.id)).unwrap_or_default();
    let peers: Vec<&str> = state.rules.peers.iter().map(|peer| peer.name.as_str()).collect();
    let peers = match &peers[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    };
    // Commits that no branch holds are lost to whoever switches away from them.
    let hint = if state.branch.is_none() && !state.rules.dry_run {
        Step::from("; no branch will hold their commits: `peers run --branch NAME` makes one")
    } else {
        Step::default()
    };
    let dry = if state.rules.dry_run { " (dry run: each turn is put back)" } else { "" };
    vec![
        Step::from(format!("{id}{peers} work on {branch}{at}{dry}")).join(hint),
        peers_view::wall_words(run.map(|run| run.sandbox.as_str()).unwrap_or_default()).into(),
    ]
}

/// `ann is unavailable: its service does not know it`.
pub(super) fn worse(peer: &PeerName, state: PeerState, reason: &str) -> String {
    format!("{peer} is {}: {}", state.word(), term::line(reason, 200))
}

/// `trial in a clean checkout: 1 of 2 gates green in 3s; not green: lint`.
pub(super) fn trial(verdicts: &[Judged], took_ms: u64) -> String {
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let others: Vec<String> =
        verdicts.iter().filter(|j| !j.verdict.is_pass()).map(|j| j.goal.to_string()).collect();
    let counted = (n(verdicts.len() - others.len()), n(verdicts.len()));
    format!("trial in a clean checkout: {}", peers_view::gates_green(counted, took_ms, &others))
}

/// `3 of 4 gates green in 850ms; not green: lint`. Gates that had their verdict already count too.
pub(super) fn gates_done(state: &State, verdicts: &[Judged], took_ms: u64, place: Place) -> String {
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    if place == Place::Pristine {
        let green = verdicts.iter().filter(|judged| judged.verdict.is_pass()).count();
        let before = verdicts.first().map(|judged| converge::proved(state, &judged.at)).unwrap_or_default();
        let before = before.iter().filter(|id| verdicts.iter().all(|judged| judged.goal != **id)).count();
        let known = if before == 0 {
            String::new()
        } else {
            format!(" ({before} of them proved before at this tree)")
        };
        let counted = (n(green + before), n(verdicts.len() + before));
        return format!(
            "proof in a clean checkout: {}{known}",
            peers_view::gates_green(counted, took_ms, &[])
        );
    }
    let gates = &state.rules.gates;
    let is_green = |id: &GoalId| {
        let new = verdicts.iter().find(|judged| judged.goal == *id);
        let known = || state.board.gates.get(id).and_then(|standing| standing.last.as_ref());
        new.or_else(known).is_some_and(|judged| judged.verdict.is_pass())
    };
    let others: Vec<String> =
        gates.iter().map(|gate| &gate.id).filter(|id| !is_green(id)).map(ToString::to_string).collect();
    peers_view::gates_green((n(gates.len() - others.len()), n(gates.len())), took_ms, &others)
}

/// A gate that has another answer than before, or a first one that is not green.
pub(super) fn turned(judged: &Judged, turned: bool) -> String {
    let word = match judged.verdict.word() {
        "pass" => "green",
        "fail" => "red",
        "timeout" => "red (time limit)",
        _ => "not judged",
    };
    let is = if turned { "turned" } else { "is" };
    let diagnostic = peers_view::cause(judged.verdict.diagnostic());
    if diagnostic.is_empty() {
        return format!("  {} {is} {word}", judged.goal);
    }
    format!("  {} {is} {word}: {}", judged.goal, term::line(&diagnostic, DIAGNOSTIC))
}

/// `tick 3 codex: handoff, 2f31ab90, 12s`.
pub(super) fn tick(tick: &TickRecord, skeptic: bool) -> Step {
    let outcome = match tick.outcome {
        TickOutcome::Handoff => "handoff",
        TickOutcome::NoHandoff => "no-handoff",
        TickOutcome::Blocked => "blocked",
        TickOutcome::Corrected => "taken back",
        TickOutcome::PeerFailed
        | TickOutcome::RateLimited
        | TickOutcome::UsageCapped
        | TickOutcome::NeedsOperator
        | TickOutcome::Interrupted => tick.classification.as_str(),
    };
    let commit = tick.commits.last().map_or("no-new-commit", |commit| commit.short());
    let mut parts =
        vec![outcome.to_owned(), commit.to_owned(), human(Duration::from_millis(tick.exit.duration_ms))];
    let tokens = || tick.exit.usage.tokens.map(|tokens| counted(tokens.0, "token"));
    let used = tick.exit.usage.usd.filter(|usd| *usd > Usd::ZERO).map(|usd| usd.to_string()).or_else(tokens);
    let least = if tick.exit.at_least { "at least " } else { "" };
    parts.extend(used.map(|used| format!("{least}{used}")));
    let part = if skeptic { " (skeptic)" } else { "" };
    let mut said = vec![format!("tick {} {}{part}: {}", tick.iteration, tick.peer, parts.join(", "))];
    if !tick.success {
        said.extend(peers_view::why_failed(tick).map(|reason| term::line(&reason, COMPLAINT)));
    }
    // The stream or the gates may have told the same.
    let told = |complaint: &String| said.iter().any(|text| text.contains(complaint.as_str()));
    let complaint = peers_view::complaint(tick).filter(|complaint| !told(complaint));
    said.extend(complaint.map(|text| text.replace('`', "'")));
    let said = Step::from(said.join("; "));
    if tick.success {
        return said;
    }
    said.say("; see ").mention(Command::peers("replay").with(&tick.iteration.to_string()))
}

/// The last lines of a peer's output, for `--verbose`.
pub(super) fn tails(tick: &TickRecord) -> Vec<String> {
    let echo = |mark: &'static str, text: &str, most: usize| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(most);
        lines.iter().skip(from).map(|line| format!("  {mark} {}", term::inline(line))).collect()
    };
    let mut lines = echo("out|", &tick.exit.stdout_tail, TAILS.0);
    lines.extend(echo("err|", &tick.exit.stderr_tail, TAILS.1));
    lines
}

/// The line that is drawn again and again.
pub(super) fn live(progress: &Progress, doing: &Doing) -> String {
    let now = clock::mono();
    let what = match progress.now() {
        Some(procs::Live::Peer(live)) => peer(&live, doing.skeptic, now),
        Some(procs::Live::Hook(live)) => hook(&live, now),
        Some(procs::Live::Gates(live)) => format!("{} · {}", doing.what(), gates(&live, now)),
        None => match doing.waiting {
            Some(until) => {
                let now = clock::now();
                format!("waiting until {} · {} left", peers_view::clock(now, until), human(until.since(now)))
            }
            None => "looking at the repository".to_owned(),
        },
    };
    if doing.spend.is_empty() { what } else { format!("{what} · {}", doing.spend) }
}

fn peer(live: &LivePeer, skeptic: bool, now: Mono) -> String {
    let LivePeer { tick, peer, since, heard, bytes: _, last } = live;
    let part = if skeptic { " (skeptic)" } else { "" };
    let mut parts = vec![format!("tick {tick}"), format!("{peer}{part}"), seconds(now.since(*since))];
    let quiet = now.since(*heard);
    if quiet >= Duration::from_secs(10) {
        parts.push(format!("quiet for {}", seconds(quiet)));
    }
    if !last.is_empty() {
        parts.push(last.clone());
    }
    parts.join(" · ")
}

/// `hook pre_turn · 3s · /home/me/bin/note`.
fn hook(live: &LiveHook, now: Mono) -> String {
    let LiveHook { hook, program, since } = live;
    format!("hook {} · {} · {program}", hook.word(), seconds(now.since(*since)))
}

/// `2 of 5 done · 12s · tests-pass`, or `0 of 5 done · 12s · setup: npm ci`.
pub(super) fn gates(live: &LiveGates, now: Mono) -> String {
    let LiveGates { since, of, done, running, setup } = live;
    let names: Vec<&str> = running.iter().map(GoalId::as_str).collect();
    let mut parts = vec![format!("{done} of {of} done"), seconds(now.since(*since))];
    if !names.is_empty() {
        parts.push(names.join(", "));
    }
    parts.extend(setup.as_ref().map(|command| format!("setup: {command}")));
    parts.join(" · ")
}

/// Whole seconds: milliseconds would flicker.
fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) { "0s".to_owned() } else { human(Duration::from_secs(time.as_secs())) }
}
