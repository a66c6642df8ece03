//! What a soft goal is about, and what an ignore file hides: globs over paths.

use regex::{Regex, RegexBuilder};

use crate::classify_path::{PathKind, classify};

/// What the operator wants, in his words: a document, but one that reviews are about.
const TASK: &str = "TASK.md";

/// One glob with `*`, `**` and `?`. A directory means everything below it.
#[derive(Debug, Clone)]
pub struct Glob(Regex);

impl Glob {
    /// A glob that cannot be compiled takes every path.
    #[must_use]
    pub fn new(glob: &str) -> Option<Self> {
        // A name may hold a line break.
        RegexBuilder::new(&pattern(glob))
            .dot_matches_new_line(true)
            .build()
            .or_else(|_| Regex::new(""))
            .ok()
            .map(Self)
    }

    /// Whether it takes the path or a directory above it.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// A set of paths.
#[derive(Debug, Clone)]
pub struct Scope {
    globs: Vec<Glob>,
}

impl Scope {
    /// From globs; none = every file that is no documentation, and the task. One that cannot be compiled takes every
    /// path: too wide makes reviews stale too often, never too seldom.
    #[must_use]
    pub fn new(globs: &[String]) -> Self {
        Self { globs: globs.iter().filter_map(|glob| Glob::new(glob)).collect() }
    }

    /// Whether the path is in it.
    #[must_use]
    pub fn holds(&self, path: &str) -> bool {
        match classify(path) {
            PathKind::Control => false,
            PathKind::Doc if self.globs.is_empty() => path == TASK,
            PathKind::Doc | PathKind::Test | PathKind::Source => {
                self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(path))
            }
        }
    }
}

fn pattern(glob: &str) -> String {
    let mut out = String::from("^");
    let mut rest = glob.trim_start_matches("./");
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = after;
        } else {
            match c {
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c => out.push_str(&regex::escape(&c.to_string())),
            }
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    // A directory means everything below it.
    out.push_str("(?:/.*)?$");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_hold_what_people_expect() {
        let scope = |g: &[&str]| Scope::new(&g.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert!(scope(&["src/**"]).holds("src/a/b.rs"));
        assert!(scope(&["src"]).holds("src/a.rs") && !scope(&["src"]).holds("srcs/a.rs"));
        assert!(scope(&["**/*.py"]).holds("x.py") && scope(&["**/*.py"]).holds("a/b/x.py"));
        assert!(!scope(&["src/*.rs"]).holds("src/a/b.rs") && scope(&["./src/?.rs"]).holds("src/a.rs"));
        assert!(scope(&["docs/**"]).holds("docs/a.md"), "named documentation counts");
        assert!(!scope(&[]).holds("README.md") && scope(&[]).holds("src/a.rs"));
        assert!(
            scope(&[]).holds("TASK.md") && !scope(&[]).holds("docs/TASK.md"),
            "another task, another review"
        );
        assert!(!scope(&["**"]).holds(".peers/config.yaml"));
        for glob in ["src/**", "src", "**/*.py", "src/*/*.py"] {
            assert!(scope(&[glob]).holds("src/x\ny/bad.py"), "{glob}");
        }
    }
}
