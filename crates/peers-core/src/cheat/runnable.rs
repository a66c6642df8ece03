//! The lines of a file that are run as tests, to be compared with those of another version.

use std::collections::BTreeMap;

use super::diff::ChangedLine;
use super::idioms::{tells, test_start};
use super::reach::unreached;
use super::strip::{Language, Line, strip};
use crate::classify_path::{PathKind, RustLine, rust_lines};

/// What each line of a text is for, and what of it is run.
pub(super) struct Census {
    parts: Vec<RustLine>,
    /// The line as it is run; empty when it is not.
    run: Vec<String>,
}

impl Census {
    /// Of a whole text in a file of this kind.
    pub(super) fn of(language: Language, kind: PathKind, text: &str) -> Self {
        let lines = strip(language, text);
        let whole = kind == PathKind::Test;
        let mut parts = match language {
            Language::Rust => rust_lines(text, whole),
            Language::Python
            | Language::Ruby
            | Language::Elixir
            | Language::Script
            | Language::Go
            | Language::Braces
            | Language::C
            | Language::Shell => vec![RustLine::Test; lines.len()],
        };
        if language == Language::Go && lines.iter().any(|l| is_build_constraint(&l.code)) {
            parts.fill(RustLine::Conditional);
        }
        let dead = unreached(language, &lines);
        let run = lines.into_iter().zip(dead).map(|(l, dead)| if dead { String::new() } else { said(l) });
        let mut run: Vec<String> = run.collect();
        name_marks(&mut run);
        Self { parts, run }
    }

    /// The part of a line, from 1.
    fn part(&self, number: usize) -> RustLine {
        let at = number.checked_sub(1).and_then(|n| self.parts.get(n));
        at.copied().unwrap_or(RustLine::Rest)
    }

    /// The changed lines that are no tests.
    pub(super) fn rest(&self, changed: &[ChangedLine]) -> Vec<String> {
        let rest = changed.iter().filter(|l| self.part(l.number) == RustLine::Rest);
        rest.map(|l| l.text.clone()).collect()
    }

    /// How many of the changed lines are tests, under a condition or not.
    pub(super) fn changed(&self, changed: &[ChangedLine], conditional: bool) -> u64 {
        let part = part_of(conditional);
        u64::try_from(changed.iter().filter(|l| self.part(l.number) == part).count()).unwrap_or(u64::MAX)
    }

    /// Lines that are run as tests here and not there, and the other way round.
    pub(super) fn difference(&self, other: &Self, conditional: bool) -> (Vec<String>, Vec<String>) {
        (self.lacking(other, conditional), other.lacking(self, conditional))
    }

    fn lacking(&self, other: &Self, conditional: bool) -> Vec<String> {
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        for line in other.runs(conditional) {
            *left.entry(normal(line)).or_default() += 1;
        }
        self.runs(conditional)
            .filter(|line| match left.get_mut(&normal(line)) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    false
                }
                Some(_) | None => true,
            })
            .map(str::to_owned)
            .collect()
    }

    fn runs(&self, conditional: bool) -> impl Iterator<Item = &str> {
        let part = part_of(conditional);
        let lines =
            self.parts.iter().zip(&self.run).filter(move |(p, line)| **p == part && !line.trim().is_empty());
        lines.map(|(_, line)| line.as_str())
    }
}

fn part_of(conditional: bool) -> RustLine {
    if conditional { RustLine::Conditional } else { RustLine::Test }
}

/// Writes the name of a test behind the mark that makes it one: a mark alone is like any other.
fn name_marks(lines: &mut [String]) {
    let is_mark = |line: &str| ["#[", "@", "["].iter().any(|c| line.trim_start().starts_with(c));
    let mut name = String::new();
    for line in lines.iter_mut().rev().filter(|l| !l.trim().is_empty()) {
        if !is_mark(line) {
            line.trim().split(['(', '{']).next().unwrap_or_default().trim_end().clone_into(&mut name);
        } else if test_start(line) {
            line.push(' ');
            line.push_str(&name);
        }
    }
}

/// A line as it speaks to us: what only a string says is not said.
fn said(line: Line) -> String {
    let Line { code, bare } = line;
    if code != bare && tells(&code) && !tells(&bare) { bare } else { code }
}

/// Whether a line of Go says under which condition the file is compiled.
pub(super) fn is_build_constraint(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//go:build") || line.starts_with("// +build")
}

/// A line whose place within the file does not matter.
pub(super) fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
