//! `skip-reasons`: a test that is left out says why (`modes.md` §3.1).

use peers_code::{Skip, SkipKind};
use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};
use crate::scan::{Which, answer, at_line, scan};

pub(crate) const CHECK: Check = Check {
    name: check::SKIP_REASONS.name,
    about: "Each test that is skipped, or may fail, says why",
    args: check::SKIP_REASONS.args,
    run,
};

/// Words that tell nothing by themselves.
const GENERIC: [&str; 22] = [
    "todo",
    "fixme",
    "broken",
    "flaky",
    "later",
    "skip",
    "skipped",
    "wip",
    "tbd",
    "xfail",
    "test",
    "tests",
    "na",
    "fail",
    "fails",
    "failing",
    "tmp",
    "temp",
    "temporary",
    "n",
    "a",
    "disabled",
];

fn run(cx: &CheckCx, args: &Args) -> Report {
    judge(cx, args.number(&check::SKIP_REASONS, "min-len")).unwrap_or_else(Report::from)
}

fn judge(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let scan = scan(cx, Which::Tests, &|_, source| source.tests().1)?;
    let files = scan.files();
    if files == 0 {
        return Ok(Report::new(Verdict::Pass, "no test file"));
    }
    let findings = scan
        .found
        .iter()
        .flat_map(|(path, skips)| skips.iter().filter_map(move |skip| defect(path, skip, least)))
        .collect();
    let mut report = answer(files, findings, scan.unreadable, false);
    report.hint = (report.verdict == Verdict::Fail).then(|| {
        format!("say in at least {least} characters why it is safe not to run the test, or let it run")
    });
    Ok(report)
}

fn defect(path: &str, skip: &Skip, least: usize) -> Option<Finding> {
    let reason = skip.reason.as_deref().unwrap_or_default().trim();
    let what = match skip.kind {
        SkipKind::Only => "lets no other test run".to_owned(),
        // A condition is a reason by itself where the language has no place for one.
        SkipKind::Conditional if !reason.is_empty() || !is_pytest(skip) => return None,
        SkipKind::Conditional => "has no reason".to_owned(),
        SkipKind::Skip | SkipKind::MayFail => match reason.chars().count() {
            0 => "has no reason".to_owned(),
            n if n < least => format!("has a reason of {n} characters, of {least}"),
            _ if is_generic(reason) => "has a reason that tells nothing".to_owned(),
            _ => return None,
        },
    };
    let target = if skip.target.is_empty() { "the whole file" } else { &skip.target };
    Some(Finding::at(path, at_line(skip.line), "skip", &format!("{target}: `{}` {what}", skip.marker), None))
}

/// Whether the condition stands in a decorator, which takes a reason.
fn is_pytest(skip: &Skip) -> bool {
    skip.marker.starts_with('@') || skip.marker.starts_with("pytest.mark")
}

fn is_generic(reason: &str) -> bool {
    let mut words = reason.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| GENERIC.contains(&word.to_lowercase().as_str()))
}
