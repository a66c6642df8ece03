//! Files that tell git what not to look at.

use super::diff::FileDiff;
use crate::classify_path::{PathKind, classify, has_extension, is_code, is_test_dir};

/// Whether a path is such a file.
pub(super) fn is_known(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some(".gitignore" | ".gitattributes"))
}

/// Whether a turn hides tests by it.
pub(super) fn hides_tests(file: &FileDiff) -> bool {
    let (dir, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let new = |line: &&String| !file.hunks_removed.contains(line);
    match name {
        ".gitignore" => {
            let shows = |lines: &[String]| {
                lines
                    .iter()
                    .filter_map(|l| l.trim().strip_prefix('!'))
                    .filter(|p| means_tests(dir, p))
                    .count()
            };
            file.hunks_added.iter().filter(new).any(|l| {
                let line = l.trim();
                !line.starts_with(['#', '!']) && means_tests(dir, line)
            }) || shows(&file.hunks_removed) > shows(&file.hunks_added)
        }
        ".gitattributes" => file.hunks_added.iter().filter(new).any(|line| {
            let mut words = line.split_whitespace();
            let Some(pattern) = words.next().filter(|p| !p.starts_with('#')) else { return false };
            let mut words = words.peekable();
            let any = words.peek().is_some();
            let changes = |word: &str| {
                ["filter=", "working-tree-encoding="].iter().any(|w| word.starts_with(w))
                    || matches!(word, "export-ignore" | "export-subst")
            };
            let hides = |word: &str| matches!(word, "binary" | "-diff" | "-text" | "diff=");
            let tests = means_tests(dir, pattern);
            any && words.any(|w| {
                (changes(w) && (tests || pattern == "*")) || (hides(w) && tests && !is_data(pattern))
            })
        }),
        _ => false,
    }
}

fn is_data(pattern: &str) -> bool {
    has_extension(pattern, &["snap", "json", "txt", "bin", "png"])
}

/// Whether a pattern, in a file of this directory, means tests.
fn means_tests(dir: &str, pattern: &str) -> bool {
    let pattern = pattern.trim().trim_end_matches('/');
    let everything = matches!(pattern.trim_start_matches('/'), "*" | "**" | "**/*" | "*.*");
    if pattern.is_empty() {
        return false;
    }
    if everything {
        return dir.is_empty() || classify(&format!("{dir}/x")) == PathKind::Test;
    }
    let mut parts: Vec<&str> = pattern.split('/').filter(|p| !matches!(*p, "" | "." | "**")).collect();
    // What runs leave behind is no test.
    let leftovers =
        ["__pycache__", "node_modules", "target", ".pytest_cache", "out", "output", "tmp", "snapshots"];
    if parts.iter().any(|p| leftovers.contains(p) || has_extension(p, &["pyc", "log"])) {
        return false;
    }
    let Some(last) = parts.pop() else { return false };
    let named = |part: &str| is_test_dir(part) || matches!(part, "spec" | "specs");
    if named(last) {
        return true;
    }
    // A pattern for one generated file among the tests is usual; one for code is not.
    let name = last.replace('*', "x");
    let code = is_code(&name) || has_extension(&name, &["snap"]);
    let among_tests = parts.iter().any(|p| named(p)) || classify(&format!("{dir}/{name}")) == PathKind::Test;
    (code || last == "*") && (among_tests || classify(&name) == PathKind::Test)
}

#[cfg(test)]
mod tests {
    use super::super::diff::FileStatus;
    use super::*;

    fn hides(path: &str, removed: &[&str], added: &[&str]) -> bool {
        let own = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect();
        hides_tests(&FileDiff::text(path, FileStatus::Modified, own(removed), own(added)))
    }

    #[test]
    fn patterns_that_mean_tests_are_seen() {
        for added in [
            "tests/",
            "/tests",
            "tests/*",
            "**/tests/**",
            "test_*.py",
            "*_test.go",
            "src/**/*.test.ts",
            "tests/test_hard.py",
            "spec",
            "*.snap",
            "*",
        ] {
            assert!(hides(".gitignore", &[], &[added]), "{added}");
        }
        assert!(hides(".gitignore", &["!tests/test_a.py"], &[]));
        assert!(hides("tests/.gitignore", &[], &["*"]));
        assert!(hides("tests/.gitignore", &[], &["hard.py"]));
        for added in [
            "tests/** filter=x",
            "*_test.go export-ignore",
            "* filter=x",
            "test_*.py -diff",
            "tests/*.py binary",
        ] {
            assert!(hides(".gitattributes", &[], &[added]), "{added}");
        }
    }

    #[test]
    fn what_runs_leave_behind_may_be_hidden() {
        for added in [
            "target/",
            ".pytest_cache/",
            "*.pyc",
            "test-results/",
            "playwright-report/",
            "*.test",
            "/coverage",
            "tests/__pycache__/",
            "tests/output/",
            "tests/tmp/x.py",
            "tests/report.json",
            "# tests/",
            "!tests/",
            "*.log",
            "junit.xml",
            "TestResults/",
            "build",
        ] {
            assert!(!hides(".gitignore", &[], &[added]), "{added}");
        }
        assert!(!hides(".gitignore", &["tests/"], &["tests/", "x"]));
        assert!(!hides("target/.gitignore", &[], &["*"]));
        for added in [
            "* text=auto",
            "*.sh text eol=lf",
            "tests/data/*.bin binary",
            "*.snap -diff",
            "# tests/* filter=x",
            "*.png filter=lfs",
        ] {
            assert!(!hides(".gitattributes", &[], &[added]), "{added}");
        }
    }
}
