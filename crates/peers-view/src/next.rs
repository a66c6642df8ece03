//! What an operator does next, and what a run's last lines say.

mod peer;

pub(crate) use peer::out;

use peers_core::test_output::cause;
use peers_model::Usd;
use peers_model::outcome::{BudgetKind, StopReason};
use peers_store::runs::RunRecord;
use peers_sys::term;

use crate::attention::{Spelling, is_alarming};
use crate::budget::Amount;
use crate::converge::unproved;
use crate::liveness::Liveness;
use crate::loopview::{LoopView, REFUSED};
use crate::notable::{HookRow, LOOK, WeakenedRow};
use crate::peers::PeerRow;
use crate::setup::Setup;
use crate::sourced::Sourced;
use crate::words::{self, count, count_of};

/// Terminal cells of what a gate said.
const CAUSE: usize = 160;
/// Missing things that the end of a run names.
const MISSING: usize = 5;
/// Rows of one kind that must not be overlooked, in a view that is no report.
const NOTABLE: usize = 5;

/// What to do next.
#[derive(Debug)]
enum Step {
    /// Start a run, for one thing.
    Run(String),
    /// Something that a run is not part of.
    Other(String),
}

/// What to do next, one sentence; `None` while a loop runs, and where nothing is asked.
#[must_use]
pub fn next_step(view: &LoopView) -> Option<String> {
    let refused = view.alerts.iter().any(|alert| alert.kind == REFUSED);
    if let Some(spelling) = &view.told_by_name {
        if let Some(step) = by_name(view, spelling) {
            let start = refused && spelling.start() == view.attention.top.action;
            return Some(if start {
                format!("see to what a start would refuse for (alert); then: {step}")
            } else {
                step
            });
        }
        return Some(spelling.reworded(&in_words(view, refused)?));
    }
    in_words(view, refused)
}

/// The action, as every view of the controller has it; nothing where that is to look at such a view, or where a
/// command is not enough.
fn by_name(view: &LoopView, spelling: &Spelling) -> Option<String> {
    let action = view.attention.top.action.as_deref().filter(|action| !spelling.is_look(action))?;
    if view.gone && apart(view).is_some() {
        return None;
    }
    let steps: Vec<String> = action.split(", then ").map(|step| format!("`{step}`")).collect();
    let steps = steps.join(", then ");
    Some(if view.attention.is_standing() { steps } else { format!("{}: {steps}", view.attention.top.why) })
}

fn in_words(view: &LoopView, refused: bool) -> Option<String> {
    Some(match next(view)? {
        Step::Run(step) if refused => {
            format!("see to what `peers run` would refuse for (alert); then: {step}")
        }
        Step::Run(step) | Step::Other(step) => step,
    })
}

fn next(view: &LoopView) -> Option<Step> {
    let gone = view.gone && apart(view).is_some();
    let files = unaccepted(view);
    let step = match view.liveness.value()? {
        Liveness::Running { .. } | Liveness::Command { .. } => return None,
        live if files.is_some() => {
            let tampered = match live {
                Liveness::Stopped { reason: reason @ StopReason::Tamper(_), .. } => reason.next_step(),
                _ => None,
            };
            let both = |files: String| match tampered {
                Some(step) => format!("{step}; and {files}"),
                None => files,
            };
            return files.map(both).map(Step::Other);
        }
        Liveness::Fresh => return Some(before_the_first_run(view)),
        Liveness::Crashed { turn, .. } => return Some(after_a_crash(turn.is_some(), view)),
        // The operator has decided what becomes of it; only what is alarming stays so.
        live @ Liveness::Stopped { .. } if decided(view) && !is_alarming(live) => {
            return None;
        }
        Liveness::Stopped { reason: StopReason::Complete, .. } => return home(view).map(Step::Other),
        Liveness::Stopped { .. } if gone => {
            let open = view.core.value().is_some_and(|core| core.open.is_some());
            return Some(if open { after_a_crash(true, view) } else { without_worktree(view) });
        }
        Liveness::Stopped { reason: StopReason::MaxTicks, .. } => {
            let or = match home(view) {
                Some(_) => "; `peers land` takes home what is there",
                None => ", or leave it as it is",
            };
            return Some(Step::Run(format!("{}{or}", goes_on(view))));
        }
        // The files of that work tree changed, not those here.
        Liveness::Stopped { reason: StopReason::GoalMutation(file), .. } if apart(view).is_some() => {
            restore_or_accept(file, apart(view))
        }
        // Those here were restored or accepted since.
        Liveness::Stopped { reason: StopReason::GoalMutation(_), .. } => {
            return (!decided(view)).then(|| Step::Run(goes_on(view)));
        }
        Liveness::Stopped { reason: StopReason::Budget(BudgetKind::MaxUsd), .. } => {
            return Some(Step::Run(more_money(view)));
        }
        Liveness::Stopped { reason: StopReason::Budget(kind), .. } => budget(*kind, view),
        Liveness::Stopped { reason: StopReason::PeerUnavailable(name), .. } => peer::unavailable(name, view),
        // The operator has said that it is seen to.
        Liveness::Stopped { reason: StopReason::ParkedBlocked, .. } if nobody_is_blocked(view) => {
            return Some(Step::Run(goes_on(view)));
        }
        Liveness::Stopped { reason: StopReason::ParkedBlocked, .. } => peer::blocked(view),
        Liveness::Stopped { reason, .. } => match reason.next_step() {
            Some(step) => step.to_owned(),
            // It was told to stop, and goes on when it is told to.
            None if matches!(reason, StopReason::Interrupted(_)) => {
                return Some(Step::Run(goes_on(view)));
            }
            None => return elsewhere(view).map(|command| Step::Run(format!("to go on: `{command}`"))),
        },
    };
    Some(match elsewhere(view) {
        // How to go on is said once, as the command that does it.
        Some(command) if step.contains("then run again") => {
            Step::Run(step.replace("then run again", &format!("then `{command}`")))
        }
        Some(command) => match step.strip_prefix("run again") {
            Some(rest) => Step::Run(format!("`{command}` goes on{rest}")),
            None => Step::Run(format!("{step}; to go on: `{command}`")),
        },
        None if runs_again(view) => Step::Run(step),
        None => Step::Other(step),
    })
}

/// What to do about goals or configuration that are not what was accepted: no start takes them.
fn unaccepted(view: &LoopView) -> Option<String> {
    let Setup { placeholder, unaccepted, broken, dir } = &view.setup;
    let dir = dir.as_deref();
    let live = view.liveness.value();
    // Of the files of another work tree these say nothing.
    let in_a_turn = (dir.is_some() || apart(view).is_none())
        && matches!(live, Some(Liveness::Stopped { reason: StopReason::GoalMutation(_), .. }));
    if !broken.is_empty() {
        let above = dir.map(|dir| format!("{dir}/")).unwrap_or_default();
        let places: Vec<String> = broken.iter().map(|file| format!("{above}{}", file.words())).collect();
        let correct = format!("correct {}", places.join(" and "));
        return Some(if in_a_turn {
            format!("put back what was accepted (`peers{} goals restore`), or {correct}", at(dir))
        } else {
            correct
        });
    }
    // The gate of a new file is replaced first.
    let fresh = matches!(live, Some(Liveness::Fresh));
    if unaccepted.is_empty() || (*placeholder && fresh) {
        return None;
    }
    let files = unaccepted.join(" and ");
    if in_a_turn {
        return Some(restore_or_accept(&files, dir));
    }
    let at = at(dir);
    // Before the first run there may be nothing to restore.
    let or = if fresh { String::new() } else { format!(" or `peers{at} goals restore`") };
    Some(format!(
        "look at what changed in {files} (`peers{at} goals diff`), then `peers{at} goals accept`{or}"
    ))
}

/// What to do about files that a turn changed. They lie below `dir`, where that is not the directory that was
/// asked about.
fn restore_or_accept(files: &str, dir: Option<&str>) -> String {
    let at = at(dir);
    format!(
        "put {files} back (`peers{at} goals restore`), or look at what changed (`peers{at} goals diff`) and keep it (`peers{at} goals accept`)"
    )
}

/// The option that points a command at this directory.
fn at(dir: Option<&str>) -> String {
    dir.map(|dir| format!(" -C {}", words::quoted(dir))).unwrap_or_default()
}

/// Whether the next step of the reason why the newest run stopped is to run again, once something is
/// seen to.
fn runs_again(view: &LoopView) -> bool {
    let Some(Liveness::Stopped { reason, .. }) = view.liveness.value() else { return false };
    match reason {
        StopReason::MaxTicks
        | StopReason::Interrupted(_)
        | StopReason::Budget(BudgetKind::MaxWall | BudgetKind::MaxConsecutiveFailures | BudgetKind::MaxUsd)
        | StopReason::StuckGate(_)
        | StopReason::StuckIdle
        | StopReason::Unjudged(_)
        | StopReason::ParkedBlocked
        | StopReason::ParkedProof
        | StopReason::PeerUnavailable(_)
        | StopReason::AllPeersDegraded
        | StopReason::Error(_) => true,
        StopReason::Complete
        | StopReason::Drained
        | StopReason::Budget(
            BudgetKind::MaxIterations
            | BudgetKind::MaxRuntime
            | BudgetKind::MaxTokens
            | BudgetKind::Deadline
            | BudgetKind::PerPeer
            | BudgetKind::NoProgress,
        )
        | StopReason::StuckSkeptic
        | StopReason::GoalMutation(_)
        | StopReason::Tamper(_)
        | StopReason::LockHeld => false,
    }
}

/// Whether no peer says any more that something is in its way.
fn nobody_is_blocked(view: &LoopView) -> bool {
    view.core.value().is_some_and(|core| core.peers.iter().all(|peer| peer.blocked_on.is_none()))
}

/// What the command that goes on needs so that the run is as it was: a cap of money holds for one start.
fn flags(dry: bool, view: &LoopView) -> String {
    let usd = view.run.value().and_then(RunRecord::given_usd).map(|given| given.usd);
    // One that was raised since is not to come back.
    let rows = view.core.value().map(|core| core.budget.rows.as_slice()).unwrap_or_default();
    let row = rows.iter().find(|row| row.peer.is_none() && row.key == "max_usd");
    let held = row.and_then(|row| row.cap);
    let usd = usd.filter(|usd| held.is_none_or(|held| held == Amount::Usd(*usd)));
    let usd =
        usd.map(|usd| format!(" --max-usd {}", usd.to_string().trim_start_matches('$').replace(',', "")));
    format!("{}{}", if dry { " --dry-run" } else { "" }, usd.unwrap_or_default())
}

/// The command that goes on with a run that was interrupted, as it was.
fn goes_on(view: &LoopView) -> String {
    let flag = flags(is_dry(view), view);
    format!("`peers{} run{flag}` goes on", at(apart(view)))
}

/// Where and how the run that crashed goes on. A turn that is open is taken up as it began.
fn after_a_crash(open: bool, view: &LoopView) -> Step {
    let flag = flags(is_dry(view) && open, view);
    let dir = apart(view);
    Step::Run(match (dir, view.gone, open) {
        (None, ..) => format!("`peers run{flag}` goes on: the journal knows where it stopped"),
        (Some(dir), false, _) => {
            let dir = words::quoted(dir);
            format!("`peers -C {dir} run{flag}` goes on where it worked: the journal knows where it stopped")
        }
        (Some(dir), true, true) => format!(
            "the worktree in which its turn began is gone; make it again, and it is taken up there: `{} && peers -C \"$d\" run{flag}`",
            remade(dir, view)
        ),
        (Some(_), true, false) => return without_worktree(view),
    })
}

/// The commands that make the worktree of the newest run again, as `peers run` names them.
fn remade(dir: &str, view: &LoopView) -> String {
    let dir = words::quoted(dir);
    let project = view.project.value().map_or(".", |project| project.path.as_str());
    let project = words::quoted(project);
    let run = view.run.value();
    let (flag, at) = match (run.and_then(|run| run.branch.as_deref()), run.and_then(|run| run.head.as_ref()))
    {
        (Some(branch), _) => ("", words::quoted(branch)),
        (None, Some(head)) => ("--detach ", head.to_string()),
        (None, None) => ("--detach ", "HEAD".to_owned()),
    };
    format!("d={dir}; git -C {project} worktree add -f {flag}\"$d\" {at} && peers -C \"$d\" init --upgrade")
}

/// What can be done about a run whose worktree somebody removed.
fn without_worktree(view: &LoopView) -> Step {
    const AGAIN: &str =
        "`git worktree prune` makes git forget the worktree, and `peers run --worktree` makes a new one";
    // A later run in the same worktree did not make its branch, but works on it all the same.
    let branch = view.run.value().and_then(|run| run.branch.as_deref());
    match branch.filter(|_| !decided(view)) {
        Some(branch) => Step::Other(format!(
            "what it committed is on `{branch}`, and `peers land` takes that home; {AGAIN}"
        )),
        None => Step::Run(AGAIN.to_owned()),
    }
}

/// The command that goes on where the newest run worked, if that is not the directory that was asked
/// about.
pub(crate) fn elsewhere(view: &LoopView) -> Option<String> {
    // Who only looked must not be led to a run that commits.
    let flag = if is_dry(view) { " --dry-run" } else { "" };
    apart(view).map(|dir| format!("peers -C {} run{flag}", words::quoted(dir)))
}

/// Whether the newest run was a dry run.
fn is_dry(view: &LoopView) -> bool {
    view.core.value().and_then(|core| core.run.as_ref()).is_some_and(|run| run.dry_run)
}

/// Where the newest run worked, if that is not the directory that was asked about.
pub(crate) fn apart(view: &LoopView) -> Option<&str> {
    let workdir = view.core.value()?.workdir.as_deref()?;
    let here = view.here.as_deref().or_else(|| view.project.value().map(|project| project.path.as_str()))?;
    (workdir != here).then_some(workdir)
}

/// Whether the newest run was landed or undone.
pub(crate) fn decided(view: &LoopView) -> bool {
    view.landed.is_some() || view.undone.is_some()
}

fn home(view: &LoopView) -> Option<String> {
    // Of a dry run nothing is there to take home.
    let run = view.run.value().filter(|run| run.own_branch && !is_dry(view))?;
    // Where it committed nothing, there is nothing to take either.
    if run.base.is_some() && run.base == run.head {
        return None;
    }
    let branch = run.branch.as_deref()?;
    Some(format!("`peers land` takes the branch `{branch}` home"))
}

fn before_the_first_run(view: &LoopView) -> Step {
    if view.setup.placeholder {
        return Step::Other("replace the gate `placeholder-replace-me` in .peers/goals.yaml by your test command, then `peers goals accept`"
            .to_owned());
    }
    Step::Run("start with `peers run`".to_owned())
}

fn budget(kind: BudgetKind, view: &LoopView) -> String {
    let raise = |key: &str| {
        format!(
            "raise `budget.{key}` in .peers/config.yaml (then `peers goals accept`), or leave it as it is"
        )
    };
    match kind {
        BudgetKind::MaxWall => "run again: this time is counted anew for each run".to_owned(),
        BudgetKind::MaxConsecutiveFailures => {
            let ticks = view.journal.value().map(|tail| tail.ticks.as_slice()).unwrap_or_default();
            let newest = ticks.iter().rev().find(|tick| tick.failed());
            let replay =
                newest.map_or("peers status".to_owned(), |tick| format!("peers replay {}", tick.tick));
            format!("find out why the last turns failed (`{replay}`), then run again: a new run counts anew")
        }
        BudgetKind::MaxUsd
        | BudgetKind::MaxIterations
        | BudgetKind::MaxRuntime
        | BudgetKind::MaxTokens => raise(key(kind)),
        BudgetKind::NoProgress => {
            let rows = view.core.value().map(|core| core.budget.rows.as_slice()).unwrap_or_default();
            let reached = rows.iter().find(|row| {
                row.key.ends_with("_since_progress") && row.percent() >= Some(100)
            });
            let key = reached.map_or("max_usd_since_progress", |row| row.key.as_str());
            format!("see what the last turns were spent on (`peers report`) and help them on, then {}", raise(key))
        }
        BudgetKind::PerPeer => {
            let rows = view.core.value().map(|core| core.budget.rows.as_slice()).unwrap_or_default();
            let reached = rows.iter().filter(|row| row.peer.is_some() && row.percent() >= Some(100));
            let keys: Vec<&str> = reached.map(|row| row.key.as_str()).collect();
            raise(&if keys.is_empty() { key(kind).to_owned() } else { keys.join("` or `budget.") })
        }
        BudgetKind::Deadline => {
            "set a later `budget.deadline` in .peers/config.yaml, or none (then `peers goals accept`), or leave it as it is"
                .to_owned()
        }
    }
}

/// The money cap counts over all runs, so the next one has to be above what is spent.
fn more_money(view: &LoopView) -> String {
    let at = apart(view).map(|dir| format!(" -C {}", words::quoted(dir))).unwrap_or_default();
    let core = view.core.value();
    let row = core.and_then(|core| core.budget.rows.iter().find(|row| row.key == "max_usd"));
    let amounts = row.and_then(|row| match (row.spent, row.cap) {
        (Amount::Usd(spent), Some(Amount::Usd(cap))) => Some((spent, row.words(), cap)),
        _ => None,
    });
    let or = "raise `budget.max_usd` in .peers/config.yaml (then `peers goals accept`), or leave it as it is";
    let Some((spent, said, cap)) = amounts else {
        return format!("go on with a higher `--max-usd`, or {or}");
    };
    let twice = Usd::from_micros(spent.max(cap).as_micros().saturating_mul(2)).to_string();
    format!(
        "{said} are spent over all runs, and the cap was {cap}: name one above that, such as `peers{at} run --max-usd {}`; or {or}",
        twice.trim_start_matches('$')
    )
}

/// The key of a cap.
fn key(kind: BudgetKind) -> &'static str {
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

/// `1h 2m of 1h`: what was spent of the cap that ended the run.
pub(crate) fn spent(kind: BudgetKind, view: &LoopView) -> Option<String> {
    let budget = &view.core.value()?.budget;
    let row = budget.rows.iter().find(|row| row.key == key(kind))?;
    Some(format!("{} of {}", row.words(), row.cap?.words()))
}

/// What the gate that a run stopped for said, in short, and where the whole of it is.
pub(crate) fn said(view: &LoopView, reason: &StopReason) -> Option<String> {
    let (StopReason::StuckGate(id) | StopReason::Unjudged(id)) = reason else { return None };
    let gate = view.core.value()?.gates.iter().find(|gate| gate.id == *id)?;
    // What it says now; another verdict since then is no reason for this stop.
    let cause = cause(&gate.diagnostic);
    if cause.is_empty() || !matches!(gate.state, "fail" | "timeout" | "error") {
        return None;
    }
    let cause = term::line(&cause, CAUSE);
    let Some(log) = &gate.log else { return Some(cause) };
    let log = apart(view).map_or_else(|| log.clone(), |dir| format!("{dir}/{log}"));
    Some(format!("{cause}; its output: {log}"))
}

/// What the gate that a run stopped for said, labelled; nothing where no gate is the reason. `detail` is
/// what the run kept of it, for where there is no view.
#[must_use]
pub fn red_gate(view: Option<&LoopView>, reason: &StopReason, detail: &str) -> Option<String> {
    let is = match reason {
        StopReason::StuckGate(id) => format!("{id} is red"),
        StopReason::Unjudged(id) => format!("{id} could not be judged"),
        _ => return None,
    };
    let said = view.and_then(|view| said(view, reason)).unwrap_or_else(|| term::line(&cause(detail), CAUSE));
    Some(if said.is_empty() { is } else { format!("{is}: {said}") })
}

/// How to get a peer back that needs its operator, one sentence.
pub(crate) fn back(row: &PeerRow, view: &LoopView) -> String {
    if row.blocked_on.is_some() { peer::blocked(view) } else { peer::unavailable(&row.name, view) }
}

/// What must not be overlooked, one line each.
pub(crate) fn notable(view: &LoopView) -> Vec<String> {
    let Sourced::Fresh(found) = &view.notable else { return Vec::new() };
    let accepted = found.accepted.iter().map(|row| format!("goals or config {}", row.words()));
    let standing = found.weakened.iter().filter(|row| !row.acknowledged);
    let (accepted, weakened): (Vec<_>, Vec<_>) =
        (accepted.collect(), standing.map(WeakenedRow::words).collect());
    let mut lines = Vec::new();
    for (rows, unnamed, what) in
        [(accepted, found.accepted_left_out, "acceptance"), (weakened, found.weakened_left_out, "weakening")]
    {
        let skip = rows.len().saturating_sub(NOTABLE);
        lines.extend(rows.into_iter().skip(skip));
        let older = unnamed.saturating_add(u64::try_from(skip).unwrap_or(u64::MAX));
        if older > 0 {
            let lists = if unnamed == 0 { "lists them" } else { "lists the newest of them" };
            lines.push(format!("and {} more before that; `peers report` {lists}", count(older, what)));
        }
    }
    lines.extend(found.hooks.iter().map(HookRow::words));
    if found.cut {
        lines.push(format!(
            "only the last {} of the journal were looked through for accepted goals and weakened tests; `peers report` reads all of it",
            words::bytes(LOOK)
        ));
    }
    lines
}

/// The last lines of a run, before its stop reason: what is missing, or was left out of the proof; what the
/// operator must not overlook.
#[must_use]
pub fn closing(view: &LoopView) -> Vec<String> {
    let complete =
        matches!(view.liveness.value(), Some(Liveness::Stopped { reason: StopReason::Complete, .. }));
    let mut lines = if complete {
        view.core.value().and_then(|core| unproved(&core.converge)).into_iter().collect()
    } else {
        missing_lines(&missing(view))
    };
    lines.extend(
        view.core.value().and_then(|core| core.budget.uncounted()).map(|text| format!("warning: {text}")),
    );
    lines.extend(notable_lines(&notable(view)));
    let told = view.alerts.iter().filter(|alert| alert.has_commands());
    lines.extend(told.map(|alert| format!("alert: {}", alert.text)));
    lines
}

/// What is missing for `complete`, in words.
pub(crate) fn missing(view: &LoopView) -> Vec<String> {
    let missing = view.core.value().map(|core| core.converge.missing.as_slice()).unwrap_or_default();
    missing.iter().map(|missing| missing.text.clone()).collect()
}

/// A short list of what is missing.
pub(crate) fn missing_lines(missing: &[String]) -> Vec<String> {
    if missing.is_empty() {
        return Vec::new();
    }
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let mut lines = vec![format!("{} {verb} missing for `complete`:", count_of(missing, "thing"))];
    lines.extend(missing.iter().take(MISSING).map(|text| format!("  - {text}")));
    if missing.len() > MISSING {
        lines.push(format!("  - and {} more; `peers status` lists them", missing.len() - MISSING));
    }
    lines
}

/// The list of what must not be overlooked.
pub(crate) fn notable_lines(notable: &[String]) -> Vec<String> {
    if notable.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["look at this before you trust the result:".to_owned()];
    lines.extend(notable.iter().map(|line| format!("  - {line}")));
    lines
}
