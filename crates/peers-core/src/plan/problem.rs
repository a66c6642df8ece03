//! What is wrong or doubtful in a plan, with its line.

use serde::Serialize;

/// Errors, and doubts, that are told; more are counted.
pub const PROBLEMS: usize = 200;
/// Characters of foreign text that a message repeats.
const SHOWN: usize = 60;

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, from 1. What concerns the whole file stands at line 1.
    pub line: usize,
    /// What it is, and what to write.
    pub message: String,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    errors: Kept,
    warnings: Kept,
}

#[derive(Debug, Default)]
struct Kept {
    problems: Vec<Problem>,
    more: usize,
}

impl Report {
    pub(super) fn error(&mut self, line: usize, message: impl Into<String>) {
        self.errors.add(line, message);
    }

    pub(super) fn warn(&mut self, line: usize, message: impl Into<String>) {
        self.warnings.add(line, message);
    }

    /// Errors and warnings, each in the order of the file.
    pub(super) fn finish(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.errors.sorted(), self.warnings.sorted())
    }
}

impl Kept {
    fn add(&mut self, line: usize, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(Problem { line, message: message.into() });
        } else {
            self.more += 1;
        }
    }

    fn sorted(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.more > 0 {
            let line = self.problems.last().map_or(1, |problem| problem.line);
            self.problems.push(Problem { line, message: format!("and {} more of these", self.more) });
        }
        self.problems
    }
}

/// Foreign text as a message repeats it: short, and without anything that moves a cursor.
pub(super) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown: String =
        chars.by_ref().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}
