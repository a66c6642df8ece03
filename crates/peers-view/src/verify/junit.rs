//! JUnit XML, as continuous integration systems read it.
//!
//! There is no standard; this is the dialect that Jenkins' xUnit plugin publishes a schema of, with which
//! the tests validate it.

use std::fmt::Write as _;

use peers_core::test_output::tails;

use super::report::NO_RECORD;
use super::xml::{escaped, text};
use super::{Answer, RowState, VerifyReport, VerifyRow};

/// The report as JUnit XML: a suite of the hard goals, and one of the commands if there are any.
#[must_use]
pub fn verify_junit(report: &VerifyReport) -> String {
    let timed = report.at.is_some();
    let mut hard = Suite::new("hard goals", "peers.hard", timed);
    for row in &report.hard {
        hard.row(row);
    }
    for gate in report.left_out() {
        hard.skipped(gate.as_str(), "exempt", "tree: live, so it is not proved in a clean checkout");
    }
    for gate in &report.recordless {
        hard.skipped(gate.as_str(), "no-record", NO_RECORD);
    }
    hard.unasked(&report.unasked.hard);
    if report.answer() == Answer::NothingToCheck {
        hard.nothing();
    }
    let mut suites = vec![hard];
    if !(report.extra.is_empty() && report.unasked.extra.is_empty()) {
        let mut extra = Suite::new("verify commands", "peers.verify", timed);
        for row in &report.extra {
            extra.row(row);
        }
        extra.unasked(&report.unasked.extra);
        suites.push(extra);
    }
    let sum = |of: fn(&Suite) -> u64| suites.iter().map(of).sum::<u64>();
    let time = time(timed, sum(|suite| suite.ms));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"peers verify\" tests=\"{}\" failures=\"{}\" errors=\"{}\"{time}>\n",
        sum(|suite| suite.tests),
        sum(|suite| suite.failures),
        sum(|suite| suite.errors),
    );
    for suite in &suites {
        out.push_str(&suite.finish(report));
    }
    out.push_str("</testsuites>\n");
    out
}

struct Suite {
    name: &'static str,
    class: &'static str,
    timed: bool,
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
    ms: u64,
    cases: String,
}

impl Suite {
    fn new(name: &'static str, class: &'static str, timed: bool) -> Self {
        Self { name, class, timed, tests: 0, failures: 0, errors: 0, skipped: 0, ms: 0, cases: String::new() }
    }

    fn case(&mut self, name: &str, time: &str, body: &str) {
        self.tests += 1;
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            self.cases,
            "    <testcase name=\"{}\" classname=\"{}\"{time}>{body}</testcase>",
            escaped(name),
            self.class
        );
    }

    fn row(&mut self, row: &VerifyRow) {
        let element = match row.state {
            RowState::Pass => None,
            RowState::Fail | RowState::Timeout => {
                self.failures += 1;
                Some("failure")
            }
            RowState::Error => {
                self.errors += 1;
                Some("error")
            }
            RowState::Skipped => {
                self.skipped += 1;
                Some("skipped")
            }
        };
        self.ms = self.ms.saturating_add(row.duration_ms);
        let mut body = String::new();
        if let Some(element) = element {
            let _ = write!(
                body,
                "\n      <{element} type=\"{}\" message=\"{}\">{}</{element}>\n    ",
                row.state.word(),
                escaped(&row.cause()),
                text(&row.diagnostic)
            );
        }
        if let Some((_, out, err)) = tails(&row.diagnostic) {
            for (stream, said) in [("system-out", out), ("system-err", err)] {
                if !said.is_empty() {
                    let _ = write!(body, "  <{stream}>{}</{stream}>\n    ", text(said));
                }
            }
        }
        self.case(&row.name, &time(self.timed, row.duration_ms), &body);
    }

    /// One that did not run; the words are ours.
    fn skipped(&mut self, name: &str, kind: &str, why: &str) {
        self.skipped += 1;
        self.case(name, "", &format!("<skipped type=\"{kind}\" message=\"{why}\"/>"));
    }

    fn unasked(&mut self, names: &[String]) {
        for name in names {
            self.skipped(name, "only", "left out by --only");
        }
    }

    /// Zero tests look like success.
    fn nothing(&mut self) {
        self.failures += 1;
        let body = "<failure type=\"nothing-to-check\" message=\"no hard goal and no verify command\"/>";
        self.case("nothing to check", "", body);
    }

    fn finish(&self, report: &VerifyReport) -> String {
        let at = report.at.map(|at| format!(" timestamp=\"{at}\"")).unwrap_or_default();
        let mut out = format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"{}{at}>\n    <properties>\n",
            self.name,
            self.tests,
            self.failures,
            self.errors,
            self.skipped,
            time(self.timed, self.ms)
        );
        let properties = [
            ("head", report.head.to_string()),
            ("tree", report.tree.to_string()),
            ("dirty", report.dirty.to_string()),
            ("pristine", report.pristine.to_string()),
            ("goals", report.digests.goals.clone()),
            ("config", report.digests.config.clone()),
            ("accept_digest", report.accept_digest.clone()),
            ("whole", report.unasked.is_empty().to_string()),
            ("beside", report.beside.to_string()),
            (
                "dirtied_count",
                report.dirtied.as_ref().map_or("unknown".to_owned(), |paths| paths.len().to_string()),
            ),
        ];
        let caveats = report.caveats().into_iter().map(|caveat| ("caveat", caveat));
        for (name, value) in properties.into_iter().chain(caveats) {
            let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&value));
        }
        let _ = writeln!(out, "    </properties>\n{}  </testsuite>", self.cases);
        out
    }
}

/// An attribute in seconds.
fn time(timed: bool, ms: u64) -> String {
    if timed { format!(" time=\"{}.{:03}\"", ms / 1000, ms % 1000) } else { String::new() }
}
