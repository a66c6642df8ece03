//! `no-skipped-tests`: no test is left out that was not left out at the base (`modes.md` §5.9).

use std::collections::BTreeMap;

use peers_code::Source;
use peers_model::CommitId;
use peers_model::check::{self, Args};
use peers_sys::digest;

use crate::check::Check;
use crate::checks::no_regression::base_of;
use crate::checks::suite::limit;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};
use crate::reviews::Reviews;
use crate::runners::{Answer, LeftOut, Suite, Told, newly_left_out};
use crate::scan::{Scan, Which, answer, at_line, scan_at};

pub(crate) const CHECK: Check = Check {
    name: check::NO_SKIPPED_TESTS.name,
    about: "No test is left out that the base did not leave out",
    args: check::NO_SKIPPED_TESTS.args,
    run: |cx, args| judge(cx, args).unwrap_or_else(Report::from),
};

/// What a line directly above a marker says that is to stay.
const REASON: &str = "SKIP-REASON:";

/// A marker.
#[derive(Debug)]
struct Marker {
    line: usize,
    text: String,
    target: String,
    /// The line above it gives a reason.
    reasoned: bool,
    /// What makes it the same wherever its lines went.
    signature: String,
}

fn markers(cx: &CheckCx, commit: &CommitId) -> Result<Scan<Vec<Marker>>, CouldNot> {
    scan_at(cx, commit, Which::Tests, &|path: &str, source: &Source<'_>| {
        let lines: Vec<&str> = source.text().lines().collect();
        let (tests, skips) = source.tests();
        skips
            .into_iter()
            .map(|skip| {
                // A call within a test is about that test.
                let around = tests.iter().find(|test| (test.line..=test.end).contains(&skip.line));
                let guarded = match around {
                    Some(test) if skip.guarded.is_empty() => test.body.clone(),
                    _ => skip.guarded.clone(),
                };
                let body = source.text().get(guarded).unwrap_or_default();
                let body = digest::sha256_hex(body.as_bytes());
                let above = skip.line.checked_sub(2).and_then(|above| lines.get(above));
                Marker {
                    line: skip.line,
                    reasoned: above.is_some_and(|above| above.contains(REASON)),
                    signature: format!("{path}\0{:?}\0{}\0{}\0{body}", skip.kind, skip.target, skip.marker),
                    text: skip.marker,
                    target: skip.target,
                }
            })
            .collect()
    })
}

fn judge(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let base = base_of(cx)?;
    let mut old: BTreeMap<String, usize> = BTreeMap::new();
    let before = markers(cx, base)?;
    for marker in before.found.iter().flat_map(|(_, markers)| markers) {
        *old.entry(marker.signature.clone()).or_default() += 1;
    }
    let now = markers(cx, cx.head())?;
    let files = now.files();
    let mut findings = Vec::new();
    let mut reviews = None;
    // Whether a reason is excuse enough: what is wrong with it, if anything.
    let mut excuse = |path: &str, line: usize, reasoned: bool| -> Result<Option<&str>, CouldNot> {
        if !reasoned {
            return Ok(Some("was not there at the base"));
        }
        let reviews = match &reviews {
            Some(reviews) => reviews,
            None => reviews.insert(Reviews::read(cx)?),
        };
        let reviewed = reviews.is_reviewed(path, line - 1..=line)?;
        Ok((!reviewed).then_some("has a reason that no other peer reviewed"))
    };
    for (path, marker) in now.found.iter().flat_map(|(path, markers)| markers.iter().map(move |m| (path, m)))
    {
        if let Some(left) = old.get_mut(&marker.signature).filter(|left| **left > 0) {
            *left -= 1;
            continue;
        }
        let Some(what) = excuse(path, marker.line, marker.reasoned)? else { continue };
        let target = if marker.target.is_empty() { "the whole file" } else { &marker.target };
        let message = format!("{target}: `{}` {what}", marker.text);
        findings.push(Finding::at(path, at_line(marker.line), "skipped", &message, None));
    }
    let (left_out, unreadable) = newly_left_out(cx, base)?;
    for LeftOut { path, line, what, above } in left_out {
        if excuse(&path, line, above.contains(REASON))?.is_some() {
            findings.push(Finding::at(&path, at_line(line), "left-out", &what, None));
        }
    }
    if args.is_on("runner") {
        findings.extend(told_by_the_runner(cx, args, base, &now)?);
    }
    let unreadable = now.unreadable.into_iter().chain(unreadable).collect();
    let mut report = answer(files, findings, unreadable, false);
    report.hint = (report.verdict == Verdict::Fail).then(|| {
        format!(
            "let the test run; where it cannot, a line `{REASON} ...` above the marker and another peer's \
             `Peers-Review: <path>@<blob>#L<a>-<b>`"
        )
    });
    Ok(report)
}

/// Tests that the runner skips now and did not at the base, and of which no marker speaks.
fn told_by_the_runner(
    cx: &CheckCx,
    args: &Args,
    base: &CommitId,
    now: &Scan<Vec<Marker>>,
) -> Result<Vec<Finding>, CouldNot> {
    let limit = limit(args, &check::NO_SKIPPED_TESTS);
    let skipped = |commit: &CommitId| -> Result<Vec<String>, CouldNot> {
        Ok(match Suite::of(cx, commit, limit, 2)? {
            Told::Suite(suite) => suite.with(Answer::Skipped).map(str::to_owned).collect(),
            Told::NoRunner(_) => Vec::new(),
        })
    };
    let told = skipped(cx.head())?;
    let known = if told.is_empty() { Vec::new() } else { skipped(base)? };
    let marked = |test: &str| {
        now.found.iter().any(|(path, markers)| {
            let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
            markers.iter().any(|marker| {
                let name = marker.target.rsplit([':', '.']).next().unwrap_or_default();
                let name = if name.is_empty() { stem } else { name };
                test.split([':', '.', '>', '/', '[']).any(|part| part.trim() == name)
            })
        })
    };
    let new = told.iter().filter(|test| !known.contains(test) && !marked(test));
    Ok(new
        .map(|test| Finding::at(test, None, "skipped", "the runner skips it, and did not at the base", None))
        .collect())
}
