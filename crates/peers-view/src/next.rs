//! What an operator does next, and what a run's last lines say.

use peers_model::Usd;
use peers_model::outcome::{BudgetKind, StopReason};

use crate::budget::Amount;
use crate::liveness::{Attention, Liveness, attention};
use crate::loopview::{LoopView, REFUSED};
use crate::notable::{LOOK, WeakenedRow};
use crate::sourced::Sourced;
use crate::words::{self, count, count_of};

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
    Some(match next(view)? {
        Step::Run(step) if refused => {
            format!("see to what `peers run` would refuse for (alert); then: {step}")
        }
        Step::Run(step) | Step::Other(step) => step,
    })
}

fn next(view: &LoopView) -> Option<Step> {
    let gone = view.gone && apart(view).is_some();
    let step = match view.liveness.value()? {
        Liveness::Running { .. } | Liveness::Command { .. } => return None,
        Liveness::Fresh => return Some(before_the_first_run(view)),
        Liveness::Crashed { turn, .. } => return Some(after_a_crash(turn.is_some(), view)),
        // The operator has decided what becomes of it; only what is alarming stays so.
        live @ Liveness::Stopped { .. } if decided(view) && attention(live) != Attention::Alarm => {
            return None;
        }
        Liveness::Stopped { reason: StopReason::Complete, .. } => return home(view).map(Step::Other),
        Liveness::Stopped { .. } if gone => {
            let open = view.core.value().is_some_and(|core| core.open.is_some());
            return Some(if open { after_a_crash(true, view) } else { without_worktree(view) });
        }
        Liveness::Stopped { reason: StopReason::Budget(BudgetKind::MaxUsd), .. } => {
            return Some(Step::Run(more_money(view)));
        }
        Liveness::Stopped { reason: StopReason::Budget(kind), .. } => budget(*kind, view),
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
        Some(command) => Step::Run(format!("{step}; to go on: `{command}`")),
        None if runs_again(view) => Step::Run(step),
        None => Step::Other(step),
    })
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
        | StopReason::Unjudged(_)
        | StopReason::PeerUnavailable(_)
        | StopReason::AllPeersDegraded
        | StopReason::Error(_) => true,
        StopReason::Complete
        | StopReason::Drained
        | StopReason::Budget(
            BudgetKind::MaxIterations
            | BudgetKind::MaxRuntime
            | BudgetKind::MaxTokens
            | BudgetKind::NoProgress,
        )
        | StopReason::StuckSkeptic
        | StopReason::ParkedProof
        | StopReason::GoalMutation(_)
        | StopReason::Tamper(_)
        | StopReason::LockHeld => false,
    }
}

/// The command that goes on with a run that was interrupted, as it was.
fn goes_on(view: &LoopView) -> String {
    let flag = if is_dry(view) { " --dry-run" } else { "" };
    let at = apart(view).map(|dir| format!(" -C {}", words::shell_word(dir))).unwrap_or_default();
    format!("`peers{at} run{flag}` goes on")
}

/// Where and how the run that crashed goes on. A turn that is open is taken up as it began.
fn after_a_crash(open: bool, view: &LoopView) -> Step {
    let flag = if is_dry(view) && open { " --dry-run" } else { "" };
    let dir = apart(view);
    Step::Run(match (dir, view.gone, open) {
        (None, ..) => format!("`peers run{flag}` goes on: the journal knows where it stopped"),
        (Some(dir), false, _) => {
            let dir = words::shell_word(dir);
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
    let dir = words::shell_word(dir);
    let project = view.project.value().map_or(".", |project| project.path.as_str());
    let project = words::shell_word(project);
    let run = view.run.value();
    let (flag, at) = match (run.and_then(|run| run.branch.as_deref()), run.and_then(|run| run.head.as_ref()))
    {
        (Some(branch), _) => ("", words::shell_word(branch)),
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
    apart(view).map(|dir| format!("peers -C {} run{flag}", words::shell_word(dir)))
}

/// Whether the newest run was a dry run.
fn is_dry(view: &LoopView) -> bool {
    view.core.value().and_then(|core| core.run.as_ref()).is_some_and(|run| run.dry_run)
}

/// Where the newest run worked, if that is not the directory that was asked about.
fn apart(view: &LoopView) -> Option<&str> {
    let workdir = view.core.value()?.workdir.as_deref()?;
    let here = view.here.as_deref().or_else(|| view.project.value().map(|project| project.path.as_str()))?;
    (workdir != here).then_some(workdir)
}

/// Whether the newest run was landed or undone.
fn decided(view: &LoopView) -> bool {
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
    if !view.setup.unaccepted.is_empty() {
        let files = view.setup.unaccepted.join(" and ");
        return Step::Other(format!(
            "look at what changed in {files} (`peers goals diff`), then `peers goals accept`"
        ));
    }
    Step::Run("start with `peers run`".to_owned())
}

fn budget(kind: BudgetKind, view: &LoopView) -> String {
    let raise = |key: &str| {
        format!(
            "raise `budget.{key}` in .peers/config.yaml (then `peers goals accept`), or take what is there"
        )
    };
    match kind {
        BudgetKind::MaxWall => "run again: this time is counted anew for each run".to_owned(),
        BudgetKind::MaxConsecutiveFailures => {
            let ticks = view.journal.value().map(|tail| tail.ticks.as_slice()).unwrap_or_default();
            let newest = ticks.iter().rev().find(|tick| !tick.success);
            let replay =
                newest.map_or("peers status".to_owned(), |tick| format!("peers replay {}", tick.tick));
            format!("find out why the last turns failed (`{replay}`), then run again: a new run counts anew")
        }
        BudgetKind::MaxUsd
        | BudgetKind::MaxIterations
        | BudgetKind::MaxRuntime
        | BudgetKind::MaxTokens
        | BudgetKind::NoProgress => raise(key(kind)),
    }
}

/// The money cap counts over all runs, so the next one has to be above what is spent.
fn more_money(view: &LoopView) -> String {
    let at = apart(view).map(|dir| format!(" -C {}", words::shell_word(dir))).unwrap_or_default();
    let core = view.core.value();
    let row = core.and_then(|core| core.budget.rows.iter().find(|row| row.key == "max_usd"));
    let amounts = row.and_then(|row| match (row.spent, row.cap) {
        (Amount::Usd(spent), Some(Amount::Usd(cap))) => Some((spent, cap)),
        _ => None,
    });
    let or =
        "raise `budget.max_usd` in .peers/config.yaml (then `peers goals accept`), or take what is there";
    let Some((spent, cap)) = amounts else {
        return format!("go on with a higher `--max-usd`, or {or}");
    };
    let twice = Usd::from_micros(spent.max(cap).as_micros().saturating_mul(2)).to_string();
    format!(
        "{spent} are spent over all runs, and the cap was {cap}: name one above that, such as `peers{at} run --max-usd {}`; or {or}",
        twice.trim_start_matches('$')
    )
}

/// The key of a cap.
fn key(kind: BudgetKind) -> &'static str {
    match kind {
        BudgetKind::MaxIterations => "max_iterations",
        BudgetKind::MaxRuntime => "max_runtime_s",
        BudgetKind::MaxWall => "max_wall_s",
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
    let least = if budget.is_least(row) { "at least " } else { "" };
    Some(format!("{least}{} of {}", row.spent.words(), row.cap?.words()))
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
    if found.cut {
        lines.push(format!(
            "only the last {} of the journal were looked through for accepted goals and weakened tests; `peers report` reads all of it",
            words::bytes(LOOK)
        ));
    }
    lines
}

/// The last lines of a run, before its stop reason: what is missing, what the operator must not
/// overlook.
#[must_use]
pub fn closing(view: &LoopView) -> Vec<String> {
    let complete =
        matches!(view.liveness.value(), Some(Liveness::Stopped { reason: StopReason::Complete, .. }));
    let mut lines = if complete { Vec::new() } else { missing_lines(&missing(view)) };
    lines.extend(
        view.core.value().and_then(|core| core.budget.uncounted()).map(|text| format!("warning: {text}")),
    );
    lines.extend(notable_lines(&notable(view)));
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
