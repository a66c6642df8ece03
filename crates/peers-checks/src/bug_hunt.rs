//! `peers bug-hunt`: the ledger for people. The same code as the check `bug-ledger`.

use std::time::Duration;

use peers_core::bugs::Summary;
use peers_model::bug::Severity;
use peers_sys::{clock, term};

use crate::checks::bug_ledger;
use crate::cx::{CheckCx, CouldNot};
use crate::ledger::{self, LedgerReading};
use crate::report::{Finding, Outcome, Report, Verdict};

/// `bug-hunt gate`: no open bug that blocks.
#[must_use]
pub fn gate(cx: &CheckCx) -> Outcome {
    answer("bug-hunt gate", cx, |cx| bug_ledger::judge(cx, Severity::Med))
}

/// `bug-hunt gate-tdd`: every blocking bug that is fixed has a reproducing test older than its fix.
#[must_use]
pub fn gate_tdd(cx: &CheckCx) -> Outcome {
    answer("bug-hunt gate-tdd", cx, |cx| Ok(tdd(&ledger::read(cx)?)))
}

/// The order of reproducers and fixes, for that and for the check `tdd-order`.
pub(crate) fn tdd(reading: &LedgerReading) -> Report {
    let defects = reading.ledger.gate_tdd();
    let mut report = if defects.is_empty() {
        let reproduced = reading.ledger.bugs.values().filter(|bug| bug.reproduced).count();
        Report::new(
            Verdict::Pass,
            format!("every blocking bug that is fixed was reproduced first; {reproduced} reproduced"),
        )
    } else {
        let mut report = Report::new(
            Verdict::Fail,
            match defects.len() {
                1 => "1 fixed bug was not reproduced first".to_owned(),
                n => format!("{n} fixed bugs were not reproduced first"),
            },
        );
        report.hint = Some(
            "a test that fails comes first, in a commit with `Bug-Reproduce: <id>`; where none can exist: `Bug-Reproduce-Waive: <id>`"
                .to_owned(),
        );
        report
    };
    for (id, defect) in &defects {
        let Some(bug) = reading.ledger.bugs.get(id) else { continue };
        let fix = bug.resolution.as_ref().map_or(&bug.reported_in, |resolution| &resolution.commit);
        let message = format!("{id}: {defect} (fixed in {})", fix.short());
        report.findings.push(Finding::about(fix, "not-reproduced", &message));
    }
    bug_ledger::numbers(&mut report, reading);
    report
}

fn answer(name: &str, cx: &CheckCx, judge: impl Fn(&CheckCx) -> Result<Report, CouldNot>) -> Outcome {
    let begun = clock::mono();
    let report = judge(cx).unwrap_or_else(Report::from);
    let took: Duration = clock::mono().since(begun);
    Outcome {
        check: name.to_owned(),
        report,
        base: cx.base().cloned(),
        head: Some(cx.head().clone()),
        inputs_digest: None,
        took,
    }
}

/// `bug-hunt summary`: the whole ledger in numbers and lines.
///
/// # Errors
/// [`CouldNot`] when the history or an existing record cannot be read.
pub fn summary(cx: &CheckCx) -> Result<Summary, CouldNot> {
    let reading = ledger::read(cx)?;
    let mut summary = reading.ledger.summary();
    if !reading.attributed && reading.unattributed > 0 {
        summary
            .warnings
            .push("there is no trusted store, so reviews of another's work do not count".to_owned());
    }
    Ok(summary)
}

/// The text form of a summary, fit for a terminal. Ends in a newline.
#[must_use]
pub fn summary_text(summary: &Summary) -> String {
    term::block(&summary.to_string()).into_owned()
}

/// The JSON form of a summary: keys sorted, two blanks of indent, a newline at the end. What could
/// steer a terminal is escaped, so nothing is lost.
///
/// # Errors
/// [`CouldNot`] when it cannot be serialised, which this data cannot cause.
pub fn summary_json(summary: &Summary) -> Result<String, CouldNot> {
    use std::fmt::Write as _;
    let text = summary.to_json().map_err(|e| CouldNot::new(format!("the summary cannot be written: {e}")))?;
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Only strings can hold such a character, so an escape is always in its place.
        if c != '\n' && (c.is_control() || term::invisible(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    Ok(out)
}
