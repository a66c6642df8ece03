//! A loop that does not run: what its ending asks for, by the table of stop reasons.

use peers_model::command::{Command, Step};
use peers_model::outcome::{BudgetKind, ErrorKind, StopReason};
use peers_model::{GoalId, Timestamp};
use peers_sys::term;

use super::cause::{Advice, Level};
use super::facts::{Facts, replay};
use super::{again, caps, peer};
use crate::diagnostic::stop_detail;
use crate::gates::GateRow;
use crate::liveness::{CrashKind, Liveness, OpenTurn};
use crate::ticks::TickRow;

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
            | StopReason::StuckPhase
            | StopReason::Checkpoint
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
fn is_first(live: &Liveness) -> bool {
    let full = StopReason::Error(ErrorKind::DiskFull);
    is_alarming(live) || matches!(live, Liveness::Stopped { reason, .. } if *reason == full)
}

/// Whether what comes next is a start, so that what a start would refuse for comes before it.
pub(super) fn starts(facts: &Facts<'_>, live: &Liveness) -> bool {
    match live {
        Liveness::Stopped { reason: StopReason::Budget(kind), .. } => caps::starts(facts, *kind),
        Liveness::Stopped { reason, .. } => *reason != StopReason::Complete && !is_first(live),
        Liveness::Fresh | Liveness::Crashed { .. } => true,
        Liveness::Running { .. } | Liveness::Command { .. } => false,
    }
}

/// How a loop stands that does not run. Without its branch nothing else helps.
pub(super) fn base(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    let base = standing(facts, live)?;
    let Some((what, back)) = facts.asked.lost.as_ref().filter(|_| !is_alarming(live)) else {
        return Some(base);
    };
    let later = base.steps.into_iter().map(Step::spoken);
    let steps = [Step::from(format!("{what}; ")).join(back.clone())].into_iter().chain(later).collect();
    Some(Advice { why: format!("{}; {what}", base.why), steps, ..base })
}

fn standing(facts: &Facts<'_>, live: &Liveness) -> Option<Advice> {
    Some(match live {
        Liveness::Running { .. } => return None,
        Liveness::Command { command, .. } => {
            Advice::new(Level::Ok, "command", format!("`peers {command}` is at work"))
        }
        Liveness::Fresh => Advice::new(Level::Idle, "fresh", "no run yet")
            .then(Step::from("start with ").run(Command::run())),
        Liveness::Crashed { how, turn, since, .. } => crashed(facts, *how, turn.as_ref()).since(Some(*since)),
        Liveness::Stopped { reason, detail, at, .. } => ended(facts, live, (reason, detail, *at)),
    })
}

/// A run that died is taken up; a turn that is open is taken up as it began.
fn crashed(facts: &Facts<'_>, how: CrashKind, turn: Option<&OpenTurn>) -> Advice {
    let on = turn.map(|turn| format!(" in tick {} of {}", turn.tick, turn.peer)).unwrap_or_default();
    let advice = Advice::new(Level::Act, "crashed", format!("crashed{on}: {}", how.words()));
    if facts.gone {
        return advice.steps(without_worktree(facts, turn.is_some()));
    }
    let there = if facts.apart.is_some() { " where it worked" } else { "" };
    let run = facts.as_it_was(Command::run(), facts.is_dry() && turn.is_some());
    advice.then(Step::of(run).say(format!(" goes on{there}: the journal knows where it stopped")))
}

fn ended(facts: &Facts<'_>, live: &Liveness, (reason, detail, at): (&StopReason, &str, Timestamp)) -> Advice {
    let advice = |level| Advice::new(level, code(reason), why(facts, reason, detail)).since(Some(at));
    // The operator has decided what becomes of it; only what is alarming stays so.
    if facts.decided && !is_alarming(live) {
        return advice(Level::Idle);
    }
    let advice = advice(level_of(live));
    if facts.gone && !is_alarming(live) && *reason != StopReason::Complete {
        let open = facts.core.is_some_and(|core| core.open.is_some());
        return advice.steps(without_worktree(facts, open));
    }
    if let StopReason::PeerUnavailable(name) = reason {
        let peer::Remedy { steps, until } = peer::remedy(name, facts, Some(facts.resume()));
        return advice.steps(steps).until(until);
    }
    advice.steps(next(facts, reason, detail))
}

/// What can be done about a run whose worktree somebody removed.
fn without_worktree(facts: &Facts<'_>, open: bool) -> Vec<Step> {
    let run = facts.run;
    let branch = run.and_then(|run| run.branch.as_deref());
    if let (true, Some(run), Some(_)) = (open, run, facts.apart) {
        let dry = if facts.is_dry() { " --dry-run" } else { "" };
        let again = run.worktree_again(facts.project);
        let line = format!("{again} && peers -C \"$d\" run{dry}");
        let gone = "the worktree in which its turn began is gone; make it again, and it is taken up there: ";
        return vec![Step::from(gone).run(Command::Line(line))];
    }
    let prune = Command::git("worktree prune");
    let again = Command::run().with("--worktree");
    let forget = " makes git forget the worktree, and ";
    let on = |branch: &str| match &facts.asked.lost {
        Some(_) => Step::default(),
        None => Step::from(format!("what it committed is on `{}`, and ", term::inline(branch))),
    };
    // A later run in the same worktree did not make its branch, but works on it all the same.
    vec![
        match branch.filter(|_| !facts.decided) {
            Some(branch) => on(branch)
                .run(Command::peers("land"))
                .say(" merges it; ")
                .mention(prune)
                .say(forget)
                .mention(again),
            None => Step::of(prune).say(forget).run(again),
        }
        .say(" makes a new one"),
    ]
}

/// The word of a stop reason, without what it is about.
fn code(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Complete => "complete",
        StopReason::MaxTicks => "max-ticks",
        StopReason::Drained => "drained",
        StopReason::Budget(_) => "budget",
        StopReason::StuckGate(_)
        | StopReason::StuckSkeptic
        | StopReason::StuckIdle
        | StopReason::StuckPhase => "stuck",
        StopReason::Checkpoint => "checkpoint",
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
        StopReason::Budget(BudgetKind::MaxConsecutiveFailures)
        | StopReason::PeerUnavailable(_)
        | StopReason::AllPeersDegraded => {
            let again = again::again(facts.ticks).into_iter();
            let spent = match reason {
                StopReason::Budget(kind) => caps::spent(facts, *kind),
                _ => Some(detail.to_owned()).filter(|detail| !detail.is_empty()),
            };
            Some(again.chain(spent).collect::<Vec<_>>().join("; "))
        }
        StopReason::Budget(kind) => caps::spent(facts, *kind),
        StopReason::StuckGate(id) | StopReason::Unjudged(id) => {
            let gates = facts.core.map(|core| core.gates.as_slice()).unwrap_or_default();
            let gate = gates.iter().find(|gate| gate.id == *id).map(GateRow::cause);
            let said =
                gate.filter(|said| !said.is_empty()).unwrap_or_else(|| stop_detail(Some(reason), detail));
            let known = facts.gate.filter(|gate| gate.id == *id);
            Some(match known.and_then(|gate| gate.command.as_deref()) {
                // Ours, but of any length, and what follows is worth more than its end.
                Some(command) => format!("`{}`: {said}", term::line(command, COMMAND)),
                None => said,
            })
        }
        // What to do stands on the second line.
        StopReason::ParkedProof | StopReason::Tamper(_) => detail.lines().next().map(str::to_owned),
        _ => Some(detail.to_owned()),
    };
    let said = said.map(|said| term::line(&said, DETAIL)).filter(|said| !said.is_empty());
    match said {
        Some(said) => format!("{reason}: {said}"),
        None => reason.to_string(),
    }
}

/// What comes after an ending.
fn next(facts: &Facts<'_>, reason: &StopReason, detail: &str) -> Vec<Step> {
    let goes_on = |more: &str| vec![Step::of(facts.start()).say(format!(" goes on{more}"))];
    let later = || Step::default().mention(facts.resume());
    match reason {
        StopReason::Complete => home(facts).into_iter().collect(),
        StopReason::MaxTicks => match home(facts) {
            Some(_) => vec![
                Step::of(facts.start())
                    .say(" goes on; ")
                    .mention(Command::peers("land"))
                    .say(" merges what it has"),
            ],
            None => goes_on(", or leave it as it is"),
        },
        StopReason::Drained | StopReason::Interrupted(_) => goes_on(""),
        StopReason::LockHeld => vec![
            Step::from("wait for the other loop, or stop it (")
                .mention(Command::either("stop", "stop"))
                .say(")"),
        ],
        StopReason::Budget(kind) => caps::reached(facts, *kind),
        StopReason::StuckGate(id) if is_refuted(facts, id) => vec![
            Step::from("see what it lacks in a clean checkout (").run(read(facts, id)).say(")"),
            set_up().spoken(),
            later(),
        ],
        StopReason::StuckGate(id) => vec![
            Step::from("read what it printed (")
                .run(read(facts, id))
                .say(") and help or change the goal (")
                .mention(Command::peers("goals edit"))
                .say(")"),
            Step::default().mention(facts.start()),
        ],
        StopReason::StuckSkeptic => {
            let tick = facts.ticks.iter().rev().find(|tick| tick.skeptic.is_some());
            let look = |tick: &TickRow| Step::from("read the last ticks with ").run(replay(tick.tick));
            tick.map(|tick| look(tick).say("; the skeptic gave no usable verdict")).into_iter().collect()
        }
        StopReason::StuckIdle => vec![
            Step::from("see what is missing (").run(Command::report()).say("), help or change the goals"),
            later(),
        ],
        StopReason::StuckPhase => vec![
            Step::from("see what the turns left (")
                .run(Command::report())
                .say("), and help: the file counts when a turn commits it"),
            later(),
        ],
        StopReason::Checkpoint => {
            vec![Step::from("review what the phases left"), Step::of(facts.resume())]
        }
        StopReason::ParkedBlocked if detail.starts_with("only blocked steps") => vec![
            Step::from("unblock the steps and mark them as open, or accept that they stay blocked (")
                .mention(Command::named("ack-block").with("STEP-n").with("--reason").with("TEXT"))
                .say(")"),
            later(),
        ],
        StopReason::ParkedBlocked => peer::blocked(facts),
        StopReason::ParkedProof => vec![set_up(), Step::of(facts.resume())],
        StopReason::Unjudged(id) => vec![
            Step::from("fix the gate's command or its tool (").run(judge(id)).say(" judges it again)"),
            later(),
        ],
        // With its time in `ended`.
        StopReason::PeerUnavailable(peer) => peer::remedy(peer, facts, Some(facts.resume())).steps,
        StopReason::AllPeersDegraded => vec![
            Step::from("read .peers/HALTED.md and why turns fail (")
                .run(facts.replay(TickRow::failed))
                .say("), fix the cause"),
            later(),
        ],
        StopReason::GoalMutation(file) => mutated(facts, file),
        StopReason::Tamper(_) => {
            let step = match detail.split_once('\n') {
                Some((_, way)) => Step::from(term::inline(way)).say(" (").mention(facts.start()).say("); "),
                None => Step::from("find out who changed it before you run again; "),
            };
            vec![step.run(Command::report()).say(" names the tick")]
        }
        StopReason::Error(ErrorKind::DiskFull) => vec![space(facts), Step::of(facts.start())],
        StopReason::Error(ErrorKind::Sandbox) => {
            vec![Step::of(facts.start()).say(": the next start says what is missing")]
        }
        StopReason::Error(ErrorKind::Io | ErrorKind::Git | ErrorKind::Internal) => {
            goes_on(": the journal knows where it stopped; if it repeats, report it")
        }
    }
}

/// A turn changed files of the operator's.
fn mutated(facts: &Facts<'_>, file: &str) -> Vec<Step> {
    let files_in = facts.setup.dir.as_deref();
    // Where another work tree was looked at, these are not the files that changed.
    let seen = files_in.is_some() || facts.apart.is_none();
    let at = files_in.or(facts.apart);
    let goals = |verb| Command::peers(verb).at(at);
    let then = Step::of(facts.resume());
    if seen && !facts.broken.is_empty() {
        let correct = format!("), or correct {}", facts.broken.join(" and "));
        return vec![
            Step::from("restore the accepted files (").run(goals("goals restore")).say(correct),
            then,
        ];
    }
    if seen && facts.setup.unaccepted.is_empty() {
        return if facts.decided { Vec::new() } else { vec![then.say(" goes on")] };
    }
    let files = if seen { facts.setup.unaccepted.join(" and ") } else { file.to_owned() };
    vec![
        Step::from(format!("put {files} back ("))
            .run(goals("goals restore"))
            .say("), or look at what changed (")
            .mention(goals("goals diff"))
            .say(") and keep it (")
            .mention(goals("goals accept"))
            .say(")"),
        then,
    ]
}

/// Looks where there is room to be made.
pub(super) fn space(facts: &Facts<'_>) -> Step {
    let look = |place| Command::Tool { words: vec!["df".to_owned(), "-h".to_owned()], place };
    let command = match &facts.asked.full {
        Some(full) => look(None).with_peers(full),
        None => look(Some("")),
    };
    Step::from("free some disk space (").run(command).say(")")
}

/// Takes a finished branch home, where there is one with something on it. Of a dry run nothing is there.
fn home(facts: &Facts<'_>) -> Option<Step> {
    let run = facts.run.filter(|run| run.own_branch && !facts.is_dry())?;
    let branch = run.branch.as_deref()?;
    if facts.decided || (run.base.is_some() && run.base == run.head) {
        return None;
    }
    Some(Step::of(Command::peers("land")).say(format!(" takes the branch `{}` home", term::inline(branch))))
}

/// Lets a gate pass in a clean checkout that passes in the work tree.
fn set_up() -> Step {
    Step::from("add the `setup` commands that a clean checkout needs (")
        .run(Command::peers("goals edit --config"))
        .say("), or mark the gate `tree: live` in goals.yaml")
}

/// Whether it is green in the work tree and red in a clean checkout.
fn is_refuted(facts: &Facts<'_>, id: &GoalId) -> bool {
    facts
        .core
        .is_some_and(|core| core.gates.iter().any(|gate| gate.id == *id && gate.state == "proof-failed"))
}

/// Shows all that a gate printed; without that, runs it again where it is red.
pub(super) fn read(facts: &Facts<'_>, id: &GoalId) -> Command {
    if is_refuted(facts, id) {
        return Command::peers("verify --pristine");
    }
    let log = facts.gate.filter(|gate| gate.id == *id).and_then(|gate| gate.log.as_deref());
    log.filter(|log| term::inline(log) == *log).map_or_else(|| judge(id), |log| Command::tool(&["less", log]))
}

fn judge(id: &GoalId) -> Command {
    Command::peers("verify").with("--only").with(id.as_str())
}
