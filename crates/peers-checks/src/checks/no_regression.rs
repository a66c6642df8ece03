//! `no-regression`: what passed at the base passes now (`modes.md` §3.1).
//!
//! The baseline is the base itself: its tests run in a clean checkout of it, as those of the head do. So there is
//! nothing that could be forged, and both are measured by the same programs.

use std::collections::{BTreeMap, BTreeSet};

use peers_code::{Source, is_test};
use peers_model::CommitId;
use peers_model::check::{self, Args};
use peers_model::trailer::Message;

use crate::check::Check;
use crate::checks::suite::limit;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};
use crate::runners::{Answer, Suite, Told, leaf};
use crate::scan::{Which, scan_at};

pub(crate) const CHECK: Check = Check {
    name: check::NO_REGRESSION.name,
    about: "Each test that passed at the base still passes",
    args: check::NO_REGRESSION.args,
    run: |cx, args| judge(cx, args).unwrap_or_else(Report::from),
};

/// Flakes from which on nothing that a run says can be relied on.
const STORM: usize = 5;
/// Percent of its lines that a renamed test keeps at least.
const ALIKE: usize = 80;
/// Attempts at a run that tells nothing.
const ATTEMPTS: usize = 2;
const TRAILER: &str = "Test-Rename";

fn judge(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let base = base_of(cx)?;
    let limit = limit(args, &check::NO_REGRESSION);
    let baseline: BTreeSet<String> = match Suite::of(cx, base, limit, ATTEMPTS)? {
        Told::Suite(suite) if suite.blind => {
            return Err(CouldNot {
                what: "the test command tells nothing of single tests".to_owned(),
                hint: Some(
                    "have it write a JUnit report, and set `checks.test_report` by `peers goals edit --config`".to_owned(),
                ),
            });
        }
        Told::Suite(suite) => suite.with(Answer::Passed).map(str::to_owned).collect(),
        // Tests that nobody can run are not none.
        Told::NoRunner(why) if cx.files_at(base)?.iter().any(|file| is_test(&file.path)) => return Err(why),
        Told::NoRunner(_) => BTreeSet::new(),
    };
    if baseline.is_empty() {
        return Ok(Report::new(Verdict::Pass, "no test passed at the base, so none can be lost"));
    }
    let run = || match Suite::of(cx, cx.head(), limit, ATTEMPTS)? {
        Told::Suite(suite) => Ok(suite),
        Told::NoRunner(why) => Err(why),
    };
    let now = run()?;
    let passes = |suite: &Suite, test: &str| suite.tests.get(test) == Some(&Answer::Passed);
    let mut lost: Vec<&String> = baseline.iter().filter(|test| !passes(&now, test)).collect();
    let renamed = if lost.is_empty() { BTreeMap::new() } else { renames(cx, base, &now, &baseline)? };
    lost.retain(|test| !renamed.contains_key(*test));
    let mut flakes: Vec<String> = Vec::new();
    for _ in 0..args.number(&check::NO_REGRESSION, "confirm") {
        if lost.is_empty() {
            break;
        }
        let again = run()?;
        let (flaky, red) = lost.into_iter().partition::<Vec<_>, _>(|test| passes(&again, test));
        flakes.extend(flaky.into_iter().cloned());
        lost = red;
    }
    let mut report = if lost.is_empty() {
        Report::new(Verdict::Pass, format!("{} tests that passed at the base still pass", baseline.len()))
    } else {
        let mut report =
            Report::new(Verdict::Fail, format!("{} of {} tests are lost", lost.len(), baseline.len()));
        report.hint = Some(format!("a test that got another name needs `{TRAILER}: old -> new` in a commit"));
        report
    };
    report.count("baseline", baseline.len());
    report.count("lost", lost.len());
    report.count("flaky", flakes.len());
    report.findings = lost
        .iter()
        .map(|test| {
            let what = match now.tests.get(test.as_str()) {
                Some(Answer::Failed) => "it passed at the base, and fails",
                Some(Answer::Skipped) => "it passed at the base, and is skipped",
                Some(Answer::Passed) => "it passed at the base, and not every time now",
                None => "it passed at the base, and is gone",
            };
            Finding::at(test, None, "lost", what, None)
        })
        .collect();
    if flakes.len() >= STORM {
        report.notes.push(format!("FLAKE STORM: {} tests were red and then green", flakes.len()));
    }
    report.notes.extend(flakes.iter().map(|test| format!("flaky, red and then green: {test}")));
    Ok(report)
}

/// The commit at which the work began.
///
/// # Errors
/// [`CouldNot`] where none is recorded.
pub(crate) fn base_of(cx: &CheckCx) -> Result<&CommitId, CouldNot> {
    cx.base().ok_or_else(|| CouldNot {
        what: "no base is recorded, so nobody knows what held there".to_owned(),
        hint: Some("run it where `peers init` made a trusted store, or name one: `--base REF`".to_owned()),
    })
}

/// Tests of the base that pass now under another name which a commit tells, with much the same body.
fn renames(
    cx: &CheckCx,
    base: &CommitId,
    now: &Suite,
    baseline: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, CouldNot> {
    let mut told = BTreeMap::new();
    for commit in cx.commits()? {
        for value in Message::parse(&commit.message).trailers.all(TRAILER) {
            if let Some((old, new)) = value.split_once(" -> ") {
                told.insert(old.trim().to_owned(), new.trim().to_owned());
            }
        }
    }
    told.retain(|old, new| {
        baseline.contains(old) && !baseline.contains(new) && now.tests.get(new) == Some(&Answer::Passed)
    });
    if told.is_empty() {
        return Ok(told);
    }
    let (before, after) = (bodies(cx, base)?, bodies(cx, cx.head())?);
    let of = |bodies: &BTreeMap<String, Vec<String>>, test: &str| {
        bodies.get(leaf(test)).cloned().unwrap_or_default()
    };
    told.retain(|old, new| {
        of(&before, old).iter().any(|old| of(&after, new).iter().any(|new| alike(old, new)))
    });
    Ok(told)
}

/// The bodies of all tests of a commit, by the last part of their names.
fn bodies(cx: &CheckCx, commit: &CommitId) -> Result<BTreeMap<String, Vec<String>>, CouldNot> {
    let ask = |_: &str, source: &Source<'_>| {
        let (tests, _) = source.tests();
        let body = |range: std::ops::Range<usize>| source.text().get(range).unwrap_or_default().to_owned();
        tests.into_iter().map(|test| (leaf(&test.path).to_owned(), body(test.body))).collect::<Vec<_>>()
    };
    let mut bodies: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, body) in
        scan_at(cx, commit, Which::Tests, &ask)?.found.into_iter().flat_map(|(_, found)| found)
    {
        bodies.entry(name).or_default().push(body);
    }
    Ok(bodies)
}

fn alike(old: &str, new: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let (old, new) = (lines(old), lines(new));
    let most = old.len().max(new.len());
    let kept = old.iter().filter(|line| new.contains(line)).count();
    most > 0 && kept * 100 >= most * ALIKE
}
