//! All tests of a commit, run once.

use std::time::Duration;

use peers_model::CommitId;

use super::adapter::{Form, HINT, Runner, detect};
use super::report::{self, Answer, Tests};
use crate::cx::{CheckCx, CouldNot, RanEnd};
use crate::report::{Finding, Report, Verdict};
use crate::tools::{Tool, ToolRan};

/// Lines of output that are shown.
const LINES: usize = 20;
/// Exit codes of a shell that found no program, or none that it may run.
pub(crate) const NO_PROGRAM: [i32; 2] = [126, 127];

/// What the runners of a commit told.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    /// Each test, by its name.
    pub(crate) tests: Tests,
    /// What is wrong with the run as a whole, if anything.
    pub(crate) defects: Vec<String>,
    /// A runner tells nothing of single tests.
    pub(crate) blind: bool,
    /// The end of the output of those that failed.
    pub(crate) tail: Vec<String>,
}

/// Whether there is something to run.
#[derive(Debug)]
pub(crate) enum Told {
    Suite(Suite),
    /// The commit has no runner that is known, for this reason.
    NoRunner(CouldNot),
}

impl Suite {
    /// Runs the tests of a commit in clean checkouts. `attempts` at most for a runner that tells nothing.
    ///
    /// # Errors
    /// [`CouldNot`] for a runner that cannot be started, does not end in time, or leaves no report that can be read.
    pub(crate) fn of(
        cx: &CheckCx,
        commit: &CommitId,
        limit: Duration,
        attempts: usize,
    ) -> Result<Told, CouldNot> {
        let runners = match detect(cx, commit) {
            Ok(runners) => runners,
            Err(why) => return Ok(Told::NoRunner(why)),
        };
        let mut suite = Self::default();
        for runner in &runners {
            let mut left = attempts.max(1);
            loop {
                left -= 1;
                match suite.run(cx, runner, commit, limit) {
                    Ok(()) => break,
                    Err(why) if left == 0 => return Err(why),
                    Err(_) => {}
                }
            }
        }
        Ok(Told::Suite(suite))
    }

    fn run(
        &mut self,
        cx: &CheckCx,
        runner: &Runner,
        head: &CommitId,
        limit: Duration,
    ) -> Result<(), CouldNot> {
        let name = runner.name;
        let ran = cx.tool(&Tool { cmd: &runner.cmd, report: runner.report.as_deref(), head, limit })?;
        let lost = |why: String| {
            let tail = ran.tail(3).join(" | ");
            let said = if tail.is_empty() { String::new() } else { format!(" ({tail})") };
            let hint = format!(
                "let `setup` install what it needs, name in `gates.read` of your sandbox.yaml what lies outside of \
                 the repository, or {HINT}"
            );
            CouldNot { what: format!("{name}: {why}{said}"), hint: Some(hint) }
        };
        let code = match ran.end {
            RanEnd::Exit(code) if NO_PROGRAM.contains(&code) => {
                return Err(lost(format!("a program is missing: exit {code}")));
            }
            RanEnd::Exit(code) => code,
            RanEnd::Timeout => return Err(lost(format!("no end within {} s", limit.as_secs()))),
            RanEnd::Signal => return Err(lost("a signal ended it".to_owned())),
        };
        if ran.cut {
            return Err(lost("it says more than is read".to_owned()));
        }
        let mut tail = ran.tail(LINES);
        let told = read(runner.form, &ran).map_err(|why| lost(format!("exit {code}, and {why}")))?;
        match told {
            None => {
                self.blind = true;
                if code != 0 {
                    self.defects.push(format!("{name} exits {code}"));
                }
            }
            Some(tests) => {
                if runner.form == Form::Go {
                    // Its lines are events, of the tests that passed, too.
                    let said = report::go_said(&ran.stdout, &tests);
                    tail = said.get(said.len().saturating_sub(LINES)..).unwrap_or_default().to_vec();
                    tail.extend(ToolRan { stdout: Vec::new(), ..ran }.tail(LINES));
                }
                let failed = tests.values().any(|answer| *answer == Answer::Failed);
                if tests.is_empty() {
                    self.defects.push(format!("{name} ran no test"));
                } else if code != 0 && !failed {
                    self.defects
                        .push(format!("{name} exits {code}, and its report names no test that failed"));
                } else if code == 0 && failed {
                    self.defects.push(format!("{name} exits 0, and its report names tests that failed"));
                }
                for (name, answer) in tests {
                    report::add(&mut self.tests, format!("{}{name}", runner.prefix), answer);
                }
            }
        }
        if code != 0 {
            self.tail.append(&mut tail);
        }
        Ok(())
    }

    /// The tests with this answer.
    pub(crate) fn with(&self, answer: Answer) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, told)| **told == answer).map(|(name, _)| name.as_str())
    }

    /// Whether all of it is well.
    pub(crate) fn is_green(&self) -> bool {
        self.defects.is_empty() && self.with(Answer::Failed).next().is_none()
    }

    /// As the answer of a check.
    pub(crate) fn report(&self) -> Report {
        let (passed, skipped) = (self.with(Answer::Passed).count(), self.with(Answer::Skipped).count());
        let failed: Vec<&str> = self.with(Answer::Failed).collect();
        let mut report = if self.is_green() {
            let said = if self.blind {
                "the test command passes".to_owned()
            } else {
                format!("{passed} tests pass")
            };
            Report::new(Verdict::Pass, said)
        } else if failed.is_empty() {
            Report::new(Verdict::Fail, self.defects.join("; "))
        } else {
            Report::new(Verdict::Fail, format!("{} of {} tests fail", failed.len(), self.tests.len()))
        };
        report.count("passed", passed);
        report.count("failed", failed.len());
        report.count("skipped", skipped);
        report.findings =
            failed.iter().map(|name| Finding::at(name, None, "failed", "it fails", None)).collect();
        if !report.findings.is_empty() {
            report.notes.extend(self.defects.iter().cloned());
        }
        report.notes.extend(self.tail.iter().cloned());
        report
    }
}

/// What is told of each test, or nothing where the form has no place for it.
fn read(form: Form, ran: &ToolRan) -> Result<Option<Tests>, String> {
    let file = || ran.report.as_deref().ok_or_else(|| "it left no report".to_owned());
    let bad = |why: String| format!("its report cannot be read: {why}");
    match form {
        Form::JUnit => report::junit(file()?, &ran.top).map_err(bad).map(Some),
        Form::Jest => report::jest(file()?, &ran.top).map_err(bad).map(Some),
        Form::Mocha => report::mocha(file()?, &ran.top).map_err(bad).map(Some),
        Form::Libtest => report::libtest(&ran.stdout).map(Some),
        Form::Go => report::go(&ran.stdout).map(Some),
        Form::None => Ok(None),
    }
}
