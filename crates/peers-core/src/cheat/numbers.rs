//! Numbers in configuration that demand something.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::config::is_known;
use super::diff::FileDiff;
use super::idioms::pattern;

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
    if !is_known(&file.path) {
        return Vec::new();
    }
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

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"([A-Za-z][A-Za-z0-9_-]*)["']?(?:\s*[:=]\s*|\s+)["']?(-?\d{1,12}(?:\.\d{1,6})?)"#)
});

#[cfg(test)]
mod tests {
    use super::super::diff::FileStatus;
    use super::*;

    fn change(path: &str, removed: &[&str], added: &[&str]) -> FileDiff {
        let own = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect();
        FileDiff::text(path, FileStatus::Modified, own(removed), own(added))
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
}
