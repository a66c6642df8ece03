//! What a run's last lines say.

use peers_core::test_output::cause;
use peers_model::command::Step;
use peers_model::outcome::{BudgetKind, StopReason};
use peers_sys::term;

use crate::advice::{self, Spelling};
use crate::converge::{planted_words, unproved};
use crate::liveness::Liveness;
use crate::loopview::LoopView;
use crate::notable::{HookRow, LOOK, WeakenedRow};
use crate::sourced::Sourced;
use crate::words::{self, count, count_of};

/// Terminal cells of what a gate said.
const CAUSE: usize = 160;
/// Missing things that the end of a run names.
const MISSING: usize = 5;
/// Rows of one kind that must not be overlooked, in a view that is no report.
const NOTABLE: usize = 5;

/// What to do next, one sentence; `None` where nothing is asked.
#[must_use]
pub fn next_step(view: &LoopView) -> Option<String> {
    view.attention.top.next.clone()
}

/// `1h 2m of 1h`: what was spent of the cap that ended the run.
pub(crate) fn spent(kind: BudgetKind, view: &LoopView) -> Option<String> {
    let budget = &view.core.value()?.budget;
    let row = budget.rows.iter().find(|row| row.key == advice::key(kind))?;
    Some(format!("{} of {}", row.words(), row.cap?.words()))
}

/// What the gate that a run stopped for said, in short, and where the whole of it is.
pub(crate) fn said(view: &LoopView, reason: &StopReason) -> Option<String> {
    let (StopReason::StuckGate(id) | StopReason::Unjudged(id)) = reason else { return None };
    let gate = view.core.value()?.gates.iter().find(|gate| gate.id == *id)?;
    // What it says now; another verdict since then is no reason for this stop.
    let cause = gate.cause();
    if cause.is_empty() || !matches!(gate.state, "fail" | "timeout" | "error" | "proof-failed") {
        return None;
    }
    let cause = term::line(&cause, CAUSE);
    let Some(log) = &gate.log else { return Some(cause) };
    let log = view.apart().map_or_else(|| log.clone(), |dir| format!("{dir}/{log}"));
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
            lines
                .push(view.says("and {} more before that; `peers report` {}", &[&count(older, what), lists]));
        }
    }
    lines.extend(found.hooks.iter().map(HookRow::words));
    if found.cut {
        lines.push(view.says(
            "only the last {} of the journal were looked through for accepted goals and weakened tests; `peers report` reads all of it",
            &[&words::bytes(LOOK)],
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
        let unproved = view.core.value().and_then(|core| unproved(&core.converge));
        unproved.into_iter().chain(view.planted.as_ref().map(planted_words)).collect()
    } else {
        missing_lines(&missing(view), &view.spelling)
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
pub(crate) fn missing_lines(missing: &[String], spelling: &Spelling) -> Vec<String> {
    if missing.is_empty() {
        return Vec::new();
    }
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let mut lines = vec![format!("{} {verb} missing for `complete`:", count_of(missing, "thing"))];
    lines.extend(missing.iter().take(MISSING).map(|text| format!("  - {text}")));
    if missing.len() > MISSING {
        let more = (missing.len() - MISSING).to_string();
        let rest = Step::text("  - and {} more; `peers status` lists them", &[&more]);
        lines.push(spelling.tell(&rest));
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
