//! What a check says, and how it is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use peers_model::{CommitId, exit};
use peers_sys::term;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cx::CouldNot;

/// Findings shown by default (`--limit`).
pub const DEFAULT_LIMIT: usize = 50;
/// Terminal cells of one line.
const LINE: usize = 400;
/// Notes shown.
const NOTES: usize = 20;

/// The answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The policy holds.
    Pass,
    /// The policy is violated.
    Fail,
    /// Advice.
    Warn,
    /// There was nothing to look at; the summary says why.
    Skip,
    /// It could not be measured.
    Error,
}

impl Verdict {
    /// The exit code of `peers check`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass | Self::Warn | Self::Skip => exit::OK,
            Self::Fail => exit::NEGATIVE,
            Self::Error => exit::INVALID,
        }
    }

    /// The word of the first line.
    fn shown(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::Warn => "WARN",
            Self::Skip => "skipped",
            Self::Error => "ERROR",
        }
    }
}

/// One thing that a check points at. All texts are fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A file, or `commit 1a2b3c4d` where a commit as a whole is meant.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u64>,
    /// Which rule, one word.
    pub kind: &'static str,
    /// What is wrong, one line.
    pub message: String,
    /// The commit concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

impl Finding {
    /// About a commit as a whole.
    #[must_use]
    pub fn about(commit: &CommitId, kind: &'static str, message: &str) -> Self {
        Self::at(&format!("commit {}", commit.short()), None, kind, message, Some(commit))
    }

    /// About a place in a file.
    #[must_use]
    pub fn at(
        path: &str,
        line: Option<u64>,
        kind: &'static str,
        message: &str,
        commit: Option<&CommitId>,
    ) -> Self {
        Self {
            path: term::line(path, 200),
            line,
            kind,
            message: term::line(message, LINE),
            commit: commit.cloned(),
        }
    }
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// Why, in a few words; for an error, what could not be measured.
    pub summary: String,
    /// What it points at.
    pub findings: Vec<Finding>,
    /// Numbers by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// The next step.
    pub hint: Option<String>,
}

impl Report {
    /// An answer without findings.
    #[must_use]
    pub fn new(verdict: Verdict, summary: impl Into<String>) -> Self {
        Self {
            verdict,
            summary: summary.into(),
            findings: Vec::new(),
            counts: BTreeMap::new(),
            notes: Vec::new(),
            hint: None,
        }
    }

    pub(crate) fn count(&mut self, name: &'static str, n: usize) {
        self.counts.insert(name, u64::try_from(n).unwrap_or(u64::MAX));
    }
}

impl From<CouldNot> for Report {
    fn from(why: CouldNot) -> Self {
        Self { hint: why.hint, ..Self::new(Verdict::Error, why.what) }
    }
}

/// A report with what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The name of the check.
    pub check: String,
    /// What it says.
    pub report: Report,
    /// History up to here was not looked at.
    pub base: Option<CommitId>,
    /// The commit that was judged; absent when none could be found.
    pub head: Option<CommitId>,
    /// SHA-256 (hex) of everything that the answer depends on; absent when that is not known.
    pub inputs_digest: Option<String>,
    /// Wall time.
    pub took: Duration,
}

impl Outcome {
    /// The answer of a check that had nothing to stand on.
    #[must_use]
    pub fn could_not(check: &str, why: CouldNot) -> Self {
        Self {
            check: check.to_owned(),
            report: why.into(),
            base: None,
            head: None,
            inputs_digest: None,
            took: Duration::ZERO,
        }
    }

    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.report.verdict.exit_code()
    }

    /// The text form: the answer, at most `limit` findings, notes, the next step. Ends in a newline.
    #[must_use]
    pub fn text(&self, limit: usize) -> String {
        let Report { verdict, summary, findings, counts: _, notes, hint } = &self.report;
        let mut out = format!("{}: {} ({})\n", self.check, verdict.shown(), term::line(summary, LINE));
        for Finding { path, line, kind, message, commit: _ } in findings.iter().take(limit) {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(out, "  {path}{line}: {kind}: {message}");
        }
        if findings.len() > limit {
            let _ = writeln!(out, "  and {} more", findings.len() - limit);
        }
        for note in notes.iter().take(NOTES) {
            let _ = writeln!(out, "  note: {}", term::line(note, LINE));
        }
        if notes.len() > NOTES {
            let _ = writeln!(out, "  note: and {} more notes", notes.len() - NOTES);
        }
        if let Some(hint) = hint {
            let _ = writeln!(out, "  hint: {}", term::line(hint, LINE));
        }
        out
    }

    /// The machine-readable form with at most `limit` findings, one line without its end.
    #[must_use]
    pub fn json(&self, limit: usize) -> String {
        let Report { verdict, summary, findings, counts, notes, hint } = &self.report;
        let notes: Vec<String> = notes.iter().take(NOTES).map(|note| term::line(note, LINE)).collect();
        let mut value = json!({
            "schema": "peers.check/1",
            "check": self.check,
            "verdict": verdict,
            "message": term::line(summary, LINE),
            "findings": findings.iter().take(limit).collect::<Vec<_>>(),
            "findings_left_out": findings.len().saturating_sub(limit),
            "counts": counts,
            "notes": notes,
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "base": self.base,
            "head": self.head,
            "inputs_digest": self.inputs_digest,
        });
        if let (Some(hint), Value::Object(map)) = (hint, &mut value) {
            map.insert("hint".to_owned(), json!(term::line(hint, LINE)));
        }
        value.sort_all_objects();
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdict: Verdict) -> Outcome {
        let mut report = Report::new(verdict, "two things");
        let commit = CommitId::new("a".repeat(40)).unwrap();
        report.findings.push(Finding::at("src/a.rs", Some(3), "stub", "\u{1b}[31mred\nline", None));
        report.findings.push(Finding::about(&commit, "unattributed", "the loop did not see it arrive"));
        report.notes.push("a \u{202e}note".into());
        report.hint = Some("do this".into());
        Outcome { report, head: Some(commit), ..Outcome::could_not("x", CouldNot::new("")) }
    }

    #[test]
    fn the_text_has_a_verdict_findings_and_a_hint_last() {
        let text = outcome(Verdict::Fail).text(50);
        assert_eq!(
            text,
            "x: FAIL (two things)\n  src/a.rs:3: stub: red line\n  commit aaaaaaaa: unattributed: the loop did not see it arrive\n  \
             note: a note\n  hint: do this\n"
        );
    }

    #[test]
    fn findings_above_the_limit_are_counted() {
        let text = outcome(Verdict::Fail).text(1);
        assert!(text.contains("  and 1 more\n") && !text.contains("unattributed"), "{text}");
        let json: Value = serde_json::from_str(&outcome(Verdict::Fail).json(1)).unwrap();
        assert_eq!(json["findings_left_out"], 1);
    }

    #[test]
    fn the_json_has_every_field_of_the_contract() {
        let json: Value = serde_json::from_str(&outcome(Verdict::Fail).json(50)).unwrap();
        for key in ["check", "verdict", "findings", "counts", "duration_ms", "base", "head", "inputs_digest"]
        {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["verdict"], "fail");
        assert_eq!(json["findings"][0]["line"], 3);
        assert_eq!(json["findings"][0]["message"], "red line");
        assert_eq!(json["findings"][1]["commit"], "a".repeat(40));
        assert!(json["findings"][0].get("commit").is_none());
    }

    #[test]
    fn each_verdict_has_its_exit_code_and_word() {
        for (verdict, code, word) in [
            (Verdict::Pass, 0, "x: pass ("),
            (Verdict::Fail, 1, "x: FAIL ("),
            (Verdict::Warn, 0, "x: WARN ("),
            (Verdict::Skip, 0, "x: skipped ("),
            (Verdict::Error, 3, "x: ERROR ("),
        ] {
            assert_eq!(verdict.exit_code(), code);
            assert!(outcome(verdict).text(50).starts_with(word));
        }
    }
}
