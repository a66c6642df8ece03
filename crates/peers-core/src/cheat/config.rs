//! Files that decide what the gates demand, and the numbers in them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::diff::{FileDiff, FileStatus};

/// How a file relates to the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigKind {
    /// It configures a test runner, a linter, a type checker or coverage, and nothing else.
    Gate,
    /// It does so among other things.
    Mixed,
}

/// Whether a path is such a file.
pub(super) fn config_kind(path: &str) -> Option<ConfigKind> {
    const GATE: [&str; 39] = [
        "pytest.ini",
        ".coveragerc",
        "ruff.toml",
        ".ruff.toml",
        "mypy.ini",
        ".mypy.ini",
        "pyrightconfig.json",
        ".flake8",
        ".pylintrc",
        "pylintrc",
        "clippy.toml",
        ".clippy.toml",
        "rustfmt.toml",
        ".rustfmt.toml",
        "deny.toml",
        "nextest.toml",
        "tarpaulin.toml",
        ".tarpaulin.toml",
        "mutants.toml",
        "biome.json",
        "biome.jsonc",
        ".eslintignore",
        ".nycrc",
        ".nycrc.json",
        ".c8rc.json",
        ".mocharc.json",
        ".mocharc.yml",
        ".mocharc.js",
        ".mocharc.cjs",
        "codecov.yml",
        ".codecov.yml",
        "codecov.yaml",
        ".golangci.yml",
        ".golangci.yaml",
        ".golangci.toml",
        "staticcheck.conf",
        ".prettierrc",
        "karma.conf.js",
        "tslint.json",
    ];
    const GATE_STEMS: [&str; 6] =
        ["jest.config", "vitest.config", "playwright.config", "eslint.config", ".eslintrc", "cypress.config"];
    const MIXED: [&str; 11] = [
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "noxfile.py",
        "package.json",
        "Cargo.toml",
        "Makefile",
        "makefile",
        "justfile",
        "Taskfile.yml",
        ".gitlab-ci.yml",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem =
        GATE_STEMS.iter().any(|s| name.strip_prefix(s).is_some_and(|r| r.is_empty() || r.starts_with('.')));
    let script_config = name.strip_prefix("tsconfig").is_some_and(|r| r.strip_suffix(".json").is_some());
    if GATE.contains(&name) || stem || script_config {
        Some(ConfigKind::Gate)
    } else if MIXED.contains(&name) || path.starts_with(".github/workflows/") {
        Some(ConfigKind::Mixed)
    } else {
        None
    }
}

/// A number in a config file that now demands less.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lowered {
    pub(super) key: String,
    pub(super) from: String,
    /// `None`: it is gone.
    pub(super) to: Option<String>,
}

/// The thresholds of a config file that were lowered or removed.
pub(super) fn lowered(file: &FileDiff) -> Vec<Lowered> {
    let before = numbers(&file.hunks_removed);
    let mut after = numbers(&file.hunks_added);
    let mut found = Vec::new();
    for (key, old) in before {
        let mut new = after.remove(&key).unwrap_or_default();
        let mut gone: Vec<String> = Vec::new();
        for value in old {
            match new.iter().position(|v| *v == value) {
                Some(same) => drop(new.remove(same)),
                None => gone.push(value),
            }
        }
        let more_is_weaker = HIGHER_IS_WEAKER.contains(&key.as_str());
        let mut new = new.into_iter();
        for from in gone {
            let to = new.next();
            let weaker = match (from.parse::<f64>(), to.as_ref().map(|t| t.parse::<f64>())) {
                (Ok(a), Some(Ok(b))) => {
                    if more_is_weaker {
                        b > a
                    } else {
                        b < a
                    }
                }
                (_, None) => true,
                (_, Some(_)) => false,
            };
            if weaker {
                found.push(Lowered { key: key.clone(), from, to });
            }
        }
    }
    found
}

/// Whether nothing but numbers of known keys changed; [`lowered`] judges those.
pub(super) fn only_numbers(file: &FileDiff) -> bool {
    let mut lines =
        file.hunks_removed.iter().chain(&file.hunks_added).filter(|l| !l.trim().is_empty()).peekable();
    !file.binary && lines.peek().is_some() && lines.all(|l| !numbers(std::slice::from_ref(l)).is_empty())
}

/// Whether the change of a config file loosens something by its words: more is ignored, a command
/// that tests is another one, failures are allowed.
pub(super) fn loosened(file: &FileDiff) -> bool {
    let says = |lines: &[String], what: &Regex| lines.iter().any(|l| what.is_match(l));
    let added = file.hunks_added.iter().filter(|l| !file.hunks_removed.contains(l));
    let removed =
        file.hunks_removed.iter().filter(|l| !file.hunks_added.contains(l)).cloned().collect::<Vec<_>>();
    let added = added.cloned().collect::<Vec<_>>();
    says(&added, &LOOSENS) || (file.status != FileStatus::Added && says(&removed, &DEMANDS))
}

/// Keys whose number is a demand: less is weaker.
const LOWER_IS_WEAKER: [&str; 15] = [
    "fail_under",
    "fail-under",
    "cov-fail-under",
    "fail-under-lines",
    "fail-under-branches",
    "fail-under-functions",
    "min_coverage",
    "min-coverage",
    "minimum_coverage",
    "coverage_threshold",
    "branches",
    "functions",
    "lines",
    "statements",
    "threshold",
];

/// Keys whose number is an allowance: more is weaker.
const HIGHER_IS_WEAKER: [&str; 12] = [
    "max-warnings",
    "max_warnings",
    "max-complexity",
    "max_complexity",
    "cognitive-complexity-threshold",
    "too-many-arguments-threshold",
    "too-many-lines-threshold",
    "type-complexity-threshold",
    "retries",
    "reruns",
    "allowed-failures",
    "max-issues-per-linter",
];

/// The numbers of known keys, in order, by key.
fn numbers(lines: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        for captures in NUMBER.captures_iter(line) {
            let (Some(key), Some(value)) = (captures.get(1), captures.get(2)) else { continue };
            let key = key.as_str().to_ascii_lowercase();
            if LOWER_IS_WEAKER.contains(&key.as_str()) || HIGHER_IS_WEAKER.contains(&key.as_str()) {
                found.entry(key).or_default().push(value.as_str().to_owned());
            }
        }
    }
    found
}

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles each of them")]
fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"([A-Za-z][A-Za-z0-9_-]*)["']?(?:\s*[:=]\s*|\s+)["']?(-?\d{1,12}(?:\.\d{1,6})?)"#)
});

/// Words that let something through.
static LOOSENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)^\s*["']?(?:extend[-_])?(?:per-file-)?ignores?["']?\s*[:=]"#,
        r"|\b(?:ignore_errors|ignore_missing_imports|disable_error_code|norecursedirs|exclude_lines|omit)\b",
        r"|\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\|\|\s*(?:true|:|exit 0)",
        r"|--(?:ignore|deselect|no-verify|passWithNoTests|exit-zero)\b|\baddopts\b.*\s-[km]\s",
        r#"|=\s*(?:\{\s*level\s*=\s*)?["']allow["']|["']off["']|\bcollect_ignore\b|testPathIgnorePatterns"#,
    ))
});

/// Lines whose removal takes a demand away.
static DEMANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)=\s*(?:\{\s*level\s*=\s*)?["'](?:deny|forbid)["']"#,
        r#"|^\s*["'](?:test|lint|typecheck|check|coverage)(?::\w+)?["']\s*:\s*["']"#,
        r"|\b(?:strict|disallow_\w+|warn_return_any)\s*[:=]\s*true|\b(?:addopts|testpaths)\b",
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, removed: &[&str], added: &[&str]) -> FileDiff {
        let own = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect();
        FileDiff::text(path, FileStatus::Modified, own(removed), own(added))
    }

    #[test]
    fn files_are_known_by_name() {
        for path in [
            "pytest.ini",
            "a/clippy.toml",
            ".eslintrc.json",
            ".eslintrc",
            "jest.config.ts",
            "tsconfig.build.json",
        ] {
            assert_eq!(config_kind(path), Some(ConfigKind::Gate), "{path}");
        }
        for path in ["pyproject.toml", "crates/x/Cargo.toml", ".github/workflows/ci.yml", "package.json"] {
            assert_eq!(config_kind(path), Some(ConfigKind::Mixed), "{path}");
        }
        for path in ["config.toml", "src/jest.configuration.ts", "tsconfig.ts"] {
            assert_eq!(config_kind(path), None, "{path}");
        }
    }

    #[test]
    fn a_lowered_demand_and_a_raised_allowance_are_seen() {
        for (removed, added, weaker) in [
            ("fail_under = 90", "fail_under = 80", true),
            ("fail_under = 80", "fail_under = 90", false),
            ("fail_under = 80", "fail_under = 80 ", false),
            ("fail_under = 80", "", true),
            ("", "fail_under = 80", false),
            ("addopts = --cov-fail-under=90", "addopts = --cov-fail-under 85", true),
            ("  \"branches\": 90.5,", "  \"branches\": 90,", true),
            ("max-warnings = 0", "max-warnings = 5", true),
            ("max-warnings = 5", "max-warnings = 0", false),
            ("port = 90", "port = 80", false),
        ] {
            assert_eq!(
                !lowered(&change("pyproject.toml", &[removed], &[added])).is_empty(),
                weaker,
                "{removed} -> {added}"
            );
        }
    }

    #[test]
    fn words_that_let_things_through_are_seen() {
        for added in [
            "ignore = [\"E501\"]",
            "\"extend-ignore\": [1]",
            "per-file-ignores = x",
            "omit = tests/*",
            "        continue-on-error: true",
            "test: ; pytest || true",
            "unwrap_used = \"allow\"",
            "\"no-undef\": \"off\"",
            "addopts = -q -k fast ",
        ] {
            assert!(loosened(&change("pyproject.toml", &[], &[added])), "{added}");
        }
        for added in ["dependencies = [\"x\"]", "name = \"ignored\"", "\"test\": \"jest\"", "addopts = -q"] {
            assert!(!loosened(&change("package.json", &[], &[added])), "{added}");
        }
    }

    #[test]
    fn taking_a_demand_away_is_seen() {
        for removed in [
            "unwrap_used = \"deny\"",
            "  \"test\": \"jest --ci\",",
            "strict = true",
            "addopts = --strict-markers",
        ] {
            assert!(loosened(&change("Cargo.toml", &[removed], &[])), "{removed}");
            assert!(!loosened(&change("Cargo.toml", &[removed], &[removed])), "a moved line is no change");
        }
    }
}
