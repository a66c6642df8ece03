//! `bug-ledger`: no open bug of at least a severity.

use peers_core::bugs::{Bug, LedgerVerdict};
use peers_model::bug::Severity;
use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::ledger::{self, LedgerReading};
use crate::report::{Finding, Report, Verdict};

pub(crate) const CHECK: Check = Check {
    name: check::BUG_LEDGER.name,
    about: "No bug that the commits report is open",
    args: check::BUG_LEDGER.args,
    run,
};

fn run(cx: &CheckCx, args: &Args) -> Report {
    let least = args.value("min-severity").and_then(Severity::parse).unwrap_or(Severity::Med);
    judge(cx, least).unwrap_or_else(Report::from)
}

/// The gate, for the check and for `bug-hunt gate`.
pub(crate) fn judge(cx: &CheckCx, least: Severity) -> Result<Report, CouldNot> {
    let reading = ledger::read(cx)?;
    let ledger = &reading.ledger;
    let open = ledger.open_from(least);
    let worse = if least == Severity::Crit { String::new() } else { " or worse".to_owned() };
    let bugs = |n: usize| if n == 1 { "1 bug".to_owned() } else { format!("{n} bugs") };
    let mut report = match ledger.gate(least) {
        LedgerVerdict::Pass => Report::new(
            Verdict::Pass,
            format!("no open bug of severity {least}{worse}; {} reported", ledger.bugs.len()),
        ),
        LedgerVerdict::Fail(_) => {
            let mut report = Report::new(
                Verdict::Fail,
                format!("{} of severity {least}{worse} {}", bugs(open.len()), are_open(open.len())),
            );
            report.hint = Some(
                "fix it in a commit with `Bug-Resolves: <id>`; crit and high need another peer's `Bug-Verified: <id>`"
                    .to_owned(),
            );
            report
        }
        LedgerVerdict::Unjudged(ids) => {
            let mut report = Report::new(
                Verdict::Error,
                format!(
                    "whether {} {} open depends on who made commits that the loop did not see arrive",
                    bugs(ids.len()),
                    is(ids.len())
                ),
            );
            report.hint = cx.attribution().err().map(|why| why.what.clone());
            report
        }
    };
    report.findings = open.iter().map(|bug| finding(bug)).collect();
    numbers(&mut report, &reading);
    Ok(report)
}

fn are_open(n: usize) -> &'static str {
    if n == 1 { "is open" } else { "are open" }
}

fn is(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Numbers and notes that every answer about the ledger has.
pub(crate) fn numbers(report: &mut Report, reading: &LedgerReading) {
    let LedgerReading { ledger, commits, unattributed, attributed } = reading;
    report.count("commits", *commits);
    report.count("total", ledger.bugs.len());
    report.count("open_blocking", ledger.blocking_open().len());
    for severity in Severity::ALL {
        let open = ledger.bugs.values().filter(|bug| bug.open.is_some() && bug.severity == severity).count();
        report.count(severity.as_str(), open);
    }
    report.count("unattributed", *unattributed);
    if !attributed && *unattributed > 0 {
        report.notes.push("there is no trusted store, so reviews of another's work do not count".to_owned());
    }
    report.notes.extend(ledger.warnings.iter().cloned());
}

/// A bug as a finding.
fn finding(bug: &Bug) -> Finding {
    let (path, line) = place(bug);
    let reason = bug.open.as_ref().map(ToString::to_string).unwrap_or_default();
    let message = format!(
        "{}: {} ({reason}; reported by {} in {})",
        bug.id,
        bug.title,
        bug.found_by,
        bug.reported_in.short()
    );
    let path = path.unwrap_or_else(|| format!("commit {}", bug.reported_in.short()));
    Finding::at(&path, line, bug.severity.as_str(), &message, Some(&bug.reported_in))
}

/// File and line, as far as the report names them.
fn place(bug: &Bug) -> (Option<String>, Option<u64>) {
    let location = bug.location.as_deref().unwrap_or_default();
    let (named, line) = match location.rsplit_once(':') {
        Some((path, line)) => match line.parse() {
            Ok(line) => (path, Some(line)),
            Err(_) => (location, None),
        },
        None => (location, None),
    };
    let file = bug.file.as_deref().unwrap_or(named);
    let line = line.filter(|_| file == named);
    ((!file.trim().is_empty()).then(|| file.to_owned()), line)
}
