//! Which files of a project are its sources, and which its tests: one answer for all checks (`modes.md` §2.3).

use crate::language::Language;

/// Directories in which nothing is a source of the project.
const NOT_SOURCE: [&str; 18] = [
    "tests",
    "test",
    "testing",
    "bench",
    "benches",
    "benchmarks",
    "docs",
    "doc",
    "examples",
    "tools",
    "vendor",
    "third_party",
    "node_modules",
    "build",
    "dist",
    "target",
    ".git",
    ".peers",
];

/// Whether a file holds tests, by its path. In Rust tests also stand in modules of source files.
#[must_use]
pub fn is_test(path: &str) -> bool {
    let Some(language) = Language::of(path) else { return false };
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dirs = dirs.split('/');
    match language {
        Language::Python => {
            name.starts_with("test_")
                || name.ends_with("_test.py")
                || name == "conftest.py"
                || dirs.any(|dir| dir == "tests" || dir == "test")
        }
        Language::JavaScript => {
            names_test(name) || dirs.any(|dir| matches!(dir, "__tests__" | "test" | "tests"))
        }
        Language::Rust => dirs.any(|dir| dir == "tests"),
        Language::Go => name.ends_with("_test.go"),
    }
}

/// Whether a script is a test by its name alone: `a.test.ts`, `a.e2e-spec.ts`, `a.cy.js`.
pub(crate) fn names_test(name: &str) -> bool {
    const ENDS: [&str; 4] = ["-test", "-spec", "_test", "_spec"];
    let mut words = name.rsplit('.').skip(1).collect::<Vec<_>>().into_iter().rev().skip(1);
    words.any(|word| matches!(word, "test" | "spec" | "cy") || ENDS.iter().any(|end| word.ends_with(end)))
}

/// Whether a file is a source of the project, as far as its path tells: not a test, and not below a directory that
/// holds other things. `roots` are the directories that the operator named; without them the rule of the language
/// holds.
#[must_use]
pub fn is_source(path: &str, roots: &[String]) -> bool {
    let Some(language) = Language::of(path) else { return false };
    if is_test(path) {
        return false;
    }
    let below = |root: &String| {
        let root = root.trim_end_matches('/');
        root == "." || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
    };
    if !roots.is_empty() {
        return roots.iter().any(below);
    }
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    // Declarations describe what is elsewhere.
    let mut ends = name.rsplit('.');
    let declares = match ends.next() {
        Some("ts" | "mts" | "cts") => ends.next() == Some("d"),
        end => end == Some("pyi"),
    };
    let builds = matches!(name, "setup.py" | "build.rs" | "noxfile.py")
        || (language == Language::JavaScript && dirs.is_empty() && name.contains(".config."));
    !declares && !builds && !dirs.split('/').any(|dir| NOT_SOURCE.contains(&dir))
}

/// The dotted name of the module that a file is, below the root of its sources: `src/a/b.py` is `a.b`.
#[must_use]
pub fn module_name(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut parts: Vec<&str> = stem.split('/').filter(|part| *part != "src").collect();
    if parts.len() > 1 && matches!(parts.last(), Some(&("__init__" | "mod" | "index" | "lib" | "main"))) {
        parts.pop();
    }
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_sources_are_told_apart_in_each_language() {
        for (path, source, test) in [
            ("pkg/a.py", true, false),
            ("src/pkg/a.py", true, false),
            ("tests/helper.py", false, true),
            ("pkg/test_a.py", false, true),
            ("pkg/a_test.py", false, true),
            ("conftest.py", false, true),
            ("setup.py", false, false),
            ("docs/conf.py", false, false),
            ("src/a.ts", true, false),
            ("src/a.test.ts", false, true),
            ("src/__tests__/a.js", false, true),
            ("src/a.e2e-spec.ts", false, true),
            ("cypress/a.cy.js", false, true),
            ("test.js", true, false),
            ("index.js", true, false),
            ("vite.config.ts", false, false),
            ("dist/a.js", false, false),
            ("src/a.d.ts", false, false),
            ("crates/x/src/lib.rs", true, false),
            ("crates/x/tests/a.rs", false, true),
            ("build.rs", false, false),
            ("benches/a.rs", false, false),
            ("pkg/a.go", true, false),
            ("pkg/a_test.go", false, true),
            ("vendor/x/a.go", false, false),
            ("README.md", false, false),
        ] {
            assert_eq!((is_source(path, &[]), is_test(path)), (source, test), "{path}");
        }
        assert!(is_source("tools/a.py", &["tools".to_owned()]));
        assert!(!is_source("toolsmith/a.py", &["tools".to_owned()]));
    }

    #[test]
    fn a_module_is_named_after_its_file() {
        for (path, due) in [
            ("src/pkg/a.py", "pkg.a"),
            ("pkg/__init__.py", "pkg"),
            ("src/lib.rs", "lib"),
            ("crates/x/src/a/mod.rs", "crates.x.a"),
            ("a.go", "a"),
            ("src/index.ts", "index"),
        ] {
            assert_eq!(module_name(path), due, "{path}");
        }
    }
}
