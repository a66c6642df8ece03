//! Which lines of a file are there for its tests.

use std::ops::RangeInclusive;

use crate::mutate::is_for_tests;
use crate::source::{Source, line};

impl Source<'_> {
    /// The lines of tests, and of modules that are built for tests alone.
    #[must_use]
    pub fn test_lines(&self) -> Vec<RangeInclusive<usize>> {
        let mut found: Vec<_> = self.tests().0.iter().map(|test| test.line..=test.end).collect();
        self.walk(|node| {
            let of_tests = node.kind() == "mod_item" && is_for_tests(node, self.text());
            if of_tests {
                found.push(line(node)..=node.end_position().row + 1);
            }
            !of_tests
        });
        found
    }
}
