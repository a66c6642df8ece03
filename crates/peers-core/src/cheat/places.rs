//! Whether a runner finds the tests of a file, by its path.

use std::collections::BTreeSet;

use super::diff::{FileDiff, FileStatus};
use super::runnable::is_build_constraint;
use super::rust_modules::Modules;
use crate::classify_path::{is_code_test_dir, is_script, is_test_dir, is_test_word};

/// How surely tests in a file are run. Tests that move to another file are kept only where they
/// are found as surely as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// By name: 0 not at all, 1 perhaps, 2 always, 3 always and below a directory of tests.
    found: u8,
    /// Which rule finds it; two rules may belong to two runs.
    rule: u8,
}

impl Place {
    /// No runner finds it by itself.
    pub(super) fn is_hidden(self) -> bool {
        self.found == 0
    }

    /// Whether a test that was at `self` is kept when it comes to `other`.
    pub(super) fn is_kept_at(self, other: Self) -> bool {
        self.found == 0 || (other.found >= self.found && (self.found < 2 || self.rule == other.rule))
    }
}

const HIDDEN: Place = Place { found: 0, rule: 0 };
const PERHAPS: Place = Place { found: 1, rule: 0 };
const FOUND: Place = Place { found: 2, rule: 0 };

/// Where the tests of a changed file are.
pub(super) fn place(file: &FileDiff, modules: &Modules) -> Place {
    let mut parts: Vec<&str> = file.path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    let name = parts.pop().unwrap_or_default();
    let Some((stem, extension)) = name.rsplit_once('.') else { return PERHAPS };
    let place = match extension.to_ascii_lowercase().as_str() {
        "py" | "pyi" => python(stem, &parts),
        "rs" => rust(file, &parts, modules),
        "go" => go(file, stem, &parts),
        "rb" => ruby(stem, &parts),
        "java" | "kt" | "scala" | "groovy" => java(stem),
        "php" => if_named(stem.ends_with("Test")),
        "exs" | "dart" => if_named(stem.ends_with("_test")),
        "bats" | "swift" | "cs" | "c" | "cc" | "cpp" | "cxx" => FOUND,
        extension if is_script(extension) => script(stem, &parts),
        _ => PERHAPS,
    };
    if file.conditional && place.found > 1 { PERHAPS } else { place }
}

fn if_named(named: bool) -> Place {
    if named { FOUND } else { HIDDEN }
}

fn in_tests(parts: &[&str]) -> bool {
    parts.iter().any(|p| is_test_dir(p) || is_code_test_dir(p))
}

/// What most runners never look into.
fn is_left_out(part: &str) -> bool {
    matches!(part, "node_modules" | "dist" | "build" | "venv" | "vendor") || part.starts_with('.')
}

fn python(stem: &str, parts: &[&str]) -> Place {
    if parts.iter().any(|p| is_left_out(p)) {
        return HIDDEN;
    }
    if stem.starts_with("test_") || stem.ends_with("_test") {
        return Place { found: if in_tests(parts) { 3 } else { 2 }, rule: 0 };
    }
    // The pattern of `unittest`, which Django uses too.
    if stem.starts_with("test") { PERHAPS } else { HIDDEN }
}

fn script(stem: &str, parts: &[&str]) -> Place {
    if parts.iter().any(|p| is_left_out(p)) {
        return HIDDEN;
    }
    if stem.split('.').skip(1).any(is_test_word) || parts.contains(&"__tests__") {
        return FOUND;
    }
    // Some runners take all of a directory.
    if in_tests(parts) { PERHAPS } else { HIDDEN }
}

fn ruby(stem: &str, parts: &[&str]) -> Place {
    let found = if in_tests(parts) { 3 } else { 2 };
    if stem.ends_with("_spec") {
        Place { found, rule: 1 }
    } else if stem.ends_with("_test") || stem.starts_with("test_") {
        Place { found, rule: 2 }
    } else {
        HIDDEN
    }
}

fn java(stem: &str) -> Place {
    if stem.ends_with("IT") || stem.ends_with("ITCase") {
        return Place { found: 2, rule: 1 };
    }
    let named = ["Test", "Tests", "TestCase", "Spec"].iter().any(|end| stem.ends_with(end));
    if named || stem.starts_with("Test") { FOUND } else { PERHAPS }
}

fn go(file: &FileDiff, stem: &str, parts: &[&str]) -> Place {
    const CONDITIONS: [&str; 33] = [
        "aix",
        "android",
        "darwin",
        "dragonfly",
        "freebsd",
        "illumos",
        "ios",
        "js",
        "linux",
        "netbsd",
        "openbsd",
        "plan9",
        "solaris",
        "wasip1",
        "windows",
        "386",
        "amd64",
        "arm",
        "arm64",
        "loong64",
        "mips",
        "mips64",
        "mips64le",
        "mipsle",
        "ppc64",
        "ppc64le",
        "riscv64",
        "s390x",
        "wasm",
        "zos",
        "nacl",
        "hurd",
        "sparc64",
    ];
    let unseen = |name: &str| name.starts_with(['.', '_']);
    let Some(name) = stem.strip_suffix("_test") else { return HIDDEN };
    if unseen(stem) || parts.iter().any(|p| unseen(p) || matches!(*p, "testdata" | "vendor")) {
        return HIDDEN;
    }
    let lines = match file.status {
        FileStatus::Added => Some(&file.hunks_added),
        FileStatus::Deleted => Some(&file.hunks_removed),
        FileStatus::Modified => None,
    };
    let constrained = lines.is_some_and(|lines| lines.iter().any(|l| is_build_constraint(l)));
    let suffix = name.rsplit_once('_').is_some_and(|(_, last)| CONDITIONS.contains(&last));
    if constrained || suffix { PERHAPS } else { FOUND }
}

fn rust(file: &FileDiff, parts: &[&str], modules: &Modules) -> Place {
    if parts.iter().any(|p| matches!(*p, "testdata" | "fixtures")) {
        return HIDDEN;
    }
    if file.status != FileStatus::Added || modules.is_reached(&file.path) { FOUND } else { PERHAPS }
}

/// The names that appear in added lines of files that a runner finds, as something that is called.
pub(super) fn called<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in lines {
        for (at, _) in line.match_indices(['(', '!']) {
            let before = line.get(..at).unwrap_or_default();
            let start = before
                .rfind(|c: char| !c.is_alphanumeric() && c != '_')
                .map_or(0, |i| i + before.get(i..).and_then(|r| r.chars().next()).map_or(1, char::len_utf8));
            if let Some(name) = before.get(start..).filter(|n| !n.is_empty()) {
                found.insert(name);
            }
        }
    }
    found
}

/// The names that lines define.
pub(super) fn defined<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in lines {
        let mut words =
            line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').filter(|w| !w.is_empty());
        while let Some(word) = words.next() {
            let defines =
                matches!(word, "def" | "fn" | "func" | "fun" | "function" | "const" | "let" | "macro_rules");
            if defines && let Some(name) = words.next() {
                found.insert(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Place {
        let file = FileDiff::text(path, FileStatus::Modified, Vec::new(), Vec::new());
        place(&file, &Modules::default())
    }

    #[test]
    fn a_name_that_no_runner_looks_for_keeps_no_test() {
        for (from, to) in [
            ("tests/test_a.py", "tests/a.py"),
            ("tests/test_a.py", "tests/old_test_a.py"),
            ("tests/test_a.py", "test_a.py"),
            ("tests/test_a.py", "tests/.old/test_a.py"),
            ("pkg/a_test.py", "pkg/a_tests.py"),
            ("pkg/a_test.go", "pkg/a_windows_test.go"),
            ("pkg/a_test.go", "pkg/testdata/a_test.go"),
            ("pkg/a_test.go", "pkg/_a_test.go"),
            ("pkg/a_test.go", "test/a.go"),
            ("src/a.test.ts", "tests/a.ts"),
            ("src/a.test.ts", "node_modules/a.test.ts"),
            ("spec/a_spec.rb", "spec/a.rb"),
            ("spec/a_spec.rb", "spec/a_test.rb"),
            ("src/test/java/ATest.java", "src/test/java/A.java"),
            ("src/test/java/ATest.java", "src/test/java/AIT.java"),
            ("test/ATest.php", "test/A.php"),
            ("test/a_test.exs", "test/a.exs"),
            ("tests/a.rs", "tests/testdata/a.rs"),
        ] {
            assert!(!at(from).is_kept_at(at(to)), "{from} -> {to}");
        }
    }

    #[test]
    fn a_name_that_the_same_rule_finds_keeps_its_tests() {
        for (from, to) in [
            ("tests/test_a.py", "tests/unit/test_b.py"),
            ("tests/test_a.py", "tests/a_test.py"),
            ("pkg/test_a.py", "tests/test_a.py"),
            ("tests/helpers.py", "tests/support.py"),
            ("tests/helpers.py", "tests/test_a.py"),
            ("pkg/a_test.go", "other/b_test.go"),
            ("pkg/a_linux_test.go", "pkg/a_windows_test.go"),
            ("src/a.test.ts", "tests/a.spec.tsx"),
            ("tests/a.js", "tests/b.js"),
            ("lib/a_spec.rb", "spec/a_spec.rb"),
            ("src/ATest.java", "src/BTests.java"),
            ("tests/a.rs", "src/a.rs"),
            ("Tests/A.swift", "Tests/B.swift"),
        ] {
            assert!(at(from).is_kept_at(at(to)), "{from} -> {to}");
        }
    }

    #[test]
    fn a_new_go_file_under_a_build_constraint_keeps_no_test() {
        let file = |status, line: &str| {
            let lines = vec![line.to_owned()];
            let file = FileDiff::text("a_test.go", status, Vec::new(), lines);
            place(&file, &Modules::default())
        };
        assert!(at("a_test.go").is_kept_at(file(FileStatus::Added, "package a")));
        assert!(!at("a_test.go").is_kept_at(file(FileStatus::Added, "//go:build integration")));
    }

    #[test]
    fn names_that_are_called_and_defined_are_found() {
        let lines = ["    check_all(x, y.z(1))", "assert_same!(a)", "é(1)"];
        assert_eq!(called(lines.into_iter()), ["check_all", "z", "assert_same", "é"].into());
        let lines = ["async def check_all(x):", "const same = (a) => {", "x = 1"];
        assert_eq!(defined(lines.into_iter()), ["check_all", "same"].into());
    }
}
