//! Files that tell git what not to look at.

use super::{Lines, among, has_extension, split};
use crate::layout::is_test;

/// Whether a path is such a file.
pub(super) fn is_known(path: &str) -> bool {
    matches!(split(path).1, ".gitignore" | ".gitattributes")
}

/// Whether a file lies where all is tests, or is called as they are.
pub(in crate::weaken) fn in_tests(path: &str) -> bool {
    const DIRS: &str = "tests Tests test __tests__ __snapshots__ testdata spec specs";
    is_test(path) || split(path).0.split('/').any(|dir| among(DIRS, dir))
}

/// Whether tests are hidden by it that were not before.
pub(super) fn hides_tests(lines: &Lines<'_>) -> bool {
    let dir = split(lines.path).0;
    match lines.name {
        ".gitignore" => {
            let shown = |lines: &[&str]| {
                let shown = lines.iter().filter_map(|line| line.trim().strip_prefix('!'));
                shown.filter(|pattern| means_tests(dir, pattern)).count()
            };
            let hidden = |line: &&str| !line.trim().starts_with('!') && means_tests(dir, line);
            lines.added.iter().any(hidden) || shown(&lines.removed) > shown(&lines.added)
        }
        ".gitattributes" => lines.added.iter().any(|line| {
            let mut words = line.split_whitespace();
            let Some(pattern) = words.next() else { return false };
            let changes = |word: &str| {
                word.starts_with("filter=")
                    || word.starts_with("working-tree-encoding=")
                    || among("export-ignore export-subst", word)
            };
            let data = ["snap", "json", "txt", "bin", "png"].iter().any(|end| has_extension(pattern, end));
            let tests = means_tests(dir, pattern);
            words.any(|word| {
                (changes(word) && (tests || pattern == "*"))
                    || (among("binary -diff -text diff=", word) && tests && !data)
            })
        }),
        _ => false,
    }
}

/// Whether a pattern, in a file of this directory, means tests.
fn means_tests(dir: &str, pattern: &str) -> bool {
    // What runs leave behind is no test.
    const LEFTOVERS: &str = "__pycache__ node_modules target .pytest_cache out output tmp snapshots";
    let pattern = pattern.trim().trim_end_matches('/');
    if among("* ** **/* *.*", pattern.trim_start_matches('/')) {
        return dir.is_empty() || in_tests(&format!("{dir}/x"));
    }
    let parts: Vec<&str> = pattern.split('/').filter(|part| !matches!(*part, "" | "." | "**")).collect();
    let left =
        |part: &&str| among(LEFTOVERS, part) || has_extension(part, "pyc") || has_extension(part, "log");
    let Some((last, above)) = parts.split_last().filter(|_| !parts.iter().any(left)) else {
        return false;
    };
    if in_tests(&format!("{last}/x")) {
        return true;
    }
    // A pattern for one generated file among the tests is usual; one for code is not.
    let name = last.replace('*', "x");
    let code = crate::Language::of(&name).is_some()
        || super::super::is_other_code(&name)
        || has_extension(&name, "snap");
    let above = above.join("/");
    let among_tests = in_tests(&format!("{above}/{name}")) || in_tests(&format!("{dir}/{name}"));
    (code && (among_tests || has_extension(&name, "snap"))) || (*last == "*" && among_tests)
}
