//! `tdd-order`: a test that fails comes before the fix, and passes with it (`modes.md` §3.1).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use peers_core::bugs::Bug;
use peers_core::classify_path::PathKind;
use peers_model::CommitId;
use peers_model::check::{self, Args};

use crate::bug_hunt;
use crate::check::Check;
use crate::checks::suite::limit;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};
use crate::runners::{Answer, Suite, Told, leaf};
use crate::{history, ledger};

pub(crate) const CHECK: Check = Check {
    name: check::TDD_ORDER.name,
    about: "Each blocking bug that is fixed had a test that failed before and passes since",
    args: check::TDD_ORDER.args,
    run: |cx, args| judge(cx, args).unwrap_or_else(Report::from),
};

/// Bytes of a test file.
const TEST: usize = 8 * 1024 * 1024;

fn judge(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let reading = ledger::read(cx)?;
    let mut report = bug_hunt::tdd(&reading);
    if !args.is_on("execute") || report.verdict != Verdict::Pass {
        return Ok(report);
    }
    let mut suites = Suites { cx, limit: limit(args, &check::TDD_ORDER), ran: BTreeMap::new() };
    let mut executed = 0;
    for bug in reading.ledger.bugs.values() {
        // Waived ones and those that do not block have none.
        let (Some(reproducer), Some(fix)) = (bug.tdd_reproducer.as_ref(), &bug.resolution) else { continue };
        executed += 1;
        if let Some(what) = suites.defect(reproducer, &fix.commit)? {
            report.findings.push(finding(bug, &fix.commit, what));
        }
    }
    report.count("executed", executed);
    if report.findings.is_empty() {
        report.summary = format!("{}; {executed} tried", report.summary);
    } else {
        report.verdict = Verdict::Fail;
        report.summary = format!("{} of {executed} reproducers do not show the bug", report.findings.len());
    }
    Ok(report)
}

fn finding(bug: &Bug, fix: &CommitId, what: &str) -> Finding {
    Finding::about(fix, "not-reproduced", &format!("{}: {what} (fixed in {})", bug.id, fix.short()))
}

/// Runs of the tests of commits, each once.
struct Suites<'a> {
    cx: &'a CheckCx,
    limit: Duration,
    ran: BTreeMap<CommitId, BTreeMap<String, Answer>>,
}

impl Suites<'_> {
    /// What is wrong with a reproducer: some test of it has to fail at the parent of the fix, and pass at the fix.
    fn defect(&mut self, reproducer: &CommitId, fix: &CommitId) -> Result<Option<&'static str>, CouldNot> {
        let facts = self.cx.facts()?;
        let fail = |e| CouldNot::git("read the commit of a fix", &e);
        let Some(parent) = facts.commit(fix).map_err(fail)?.parents.first().cloned() else {
            return Ok(Some("its fix has no parent"));
        };
        let texts = self.tests_of(reproducer)?;
        let of_it = |test: &str| {
            let name = leaf(test);
            !name.is_empty() && texts.iter().any(|text| text.contains(name))
        };
        let red: BTreeSet<String> = self
            .run(&parent)?
            .iter()
            .filter(|(test, answer)| **answer == Answer::Failed && of_it(test))
            .map(|(test, _)| test.clone())
            .collect();
        if red.is_empty() {
            return Ok(Some("no test of its reproducer fails without the fix"));
        }
        let fixed = self.run(fix)?;
        let green = red.iter().any(|test| fixed.get(test) == Some(&Answer::Passed));
        Ok((!green).then_some("no test of its reproducer passes with the fix"))
    }

    fn run(&mut self, commit: &CommitId) -> Result<&BTreeMap<String, Answer>, CouldNot> {
        if !self.ran.contains_key(commit) {
            let tests = match Suite::of(self.cx, commit, self.limit, 2)? {
                Told::Suite(suite) if suite.blind => {
                    return Err(CouldNot {
                        what: "the test command tells nothing of single tests".to_owned(),
                        hint: Some("set `checks.test_report` by `peers goals edit --config`".to_owned()),
                    });
                }
                Told::Suite(suite) => suite.tests,
                Told::NoRunner(why) => return Err(why),
            };
            self.ran.insert(commit.clone(), tests);
        }
        self.ran.get(commit).ok_or_else(|| CouldNot::new("the run of the tests is lost"))
    }

    /// The test files that the reproducer changed, as they stand there.
    fn tests_of(&self, reproducer: &CommitId) -> Result<Vec<String>, CouldNot> {
        let facts = self.cx.facts()?;
        let fail = |e| CouldNot::git("read the commit of a reproducer", &e);
        let commit = facts.commit(reproducer).map_err(fail)?;
        let touched = history::touched(&facts, &commit).map_err(fail)?;
        let mut found = Vec::new();
        let tests = self.cx.tests();
        for path in touched.into_iter().filter(|path| tests.classify(path) == PathKind::Test) {
            // One that it removed shows nothing.
            if let Some(blob) = facts.read_blob(reproducer, &path, TEST).map_err(fail)? {
                found.push(String::from_utf8_lossy(&blob.bytes).into_owned());
            }
        }
        Ok(found)
    }
}
