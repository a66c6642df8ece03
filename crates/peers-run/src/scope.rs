//! What a soft goal is about: globs over paths.

use peers_core::classify_path::{PathKind, classify};
use regex::Regex;

/// A set of paths.
#[derive(Debug)]
pub(crate) struct Scope {
    globs: Vec<Regex>,
}

impl Scope {
    /// From globs with `*`, `**` and `?`; none = every file that is no documentation. A glob that
    /// cannot be compiled takes every path: too wide makes reviews stale too often, never too seldom.
    pub(crate) fn new(globs: &[String]) -> Self {
        let compile = |g: &String| Regex::new(&pattern(g)).or_else(|_| Regex::new("")).ok();
        Self { globs: globs.iter().filter_map(compile).collect() }
    }

    /// Whether the path is in it.
    pub(crate) fn holds(&self, path: &str) -> bool {
        match classify(path) {
            PathKind::Control => false,
            PathKind::Doc if self.globs.is_empty() => false,
            PathKind::Doc | PathKind::Test | PathKind::Source => {
                self.globs.is_empty() || self.globs.iter().any(|g| g.is_match(path))
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
        assert!(scope(&["src"]).holds("src/a.rs"));
        assert!(scope(&["**/*.py"]).holds("x.py"));
        assert!(!scope(&["src/*.rs"]).holds("src/a/b.rs"));
        assert!(scope(&["docs/**"]).holds("docs/a.md"), "named documentation counts");
        assert!(!scope(&[]).holds("README.md"));
        assert!(!scope(&["**"]).holds(".peers/config.yaml"));
    }
}
