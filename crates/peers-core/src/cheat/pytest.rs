//! What pytest is told to collect.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::config::Changed;
use super::idioms::pattern;
use crate::classify_path::{PathKind, classify};

static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\s*["']?(testpaths|python_files|python_functions|python_classes|addopts)["']?\s*[:=]\s*(.*)$"#,
    )
});

static ITEM: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s+(?:["'][^"']*["'],?|[\w./*:=-]+|-\S.*)\s*$"#));

/// Whether fewer tests are collected, or less is asked of them.
pub(super) fn narrowed(lines: &Changed<'_>) -> bool {
    if !matches!(
        lines.name,
        "pyproject.toml"
            | "setup.cfg"
            | "tox.ini"
            | "pytest.ini"
            | ".pytest.ini"
            | "pytest.toml"
            | ".pytest.toml"
    ) {
        return false;
    }
    let (before, after) = (Settings::of(&lines.removed), Settings::of(&lines.added));
    ["testpaths", "python_files", "python_functions", "python_classes"]
        .into_iter()
        .any(|key| collects_less(key, before.words(key).as_ref(), after.words(key).as_ref()))
        || asks_less(&before, &after)
}

/// What the settings of one side say, as words.
struct Settings {
    said: Vec<(String, String)>,
    /// Items of lists whose key is in no changed line.
    loose: Vec<String>,
}

impl Settings {
    fn of(lines: &[&str]) -> Self {
        let mut found = Self { said: Vec::new(), loose: Vec::new() };
        let mut key: Option<String> = None;
        for line in lines {
            let words = |text: &str| -> Vec<String> {
                let cut = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"' | '\'');
                text.split(cut).filter(|w| !w.is_empty()).map(str::to_owned).collect()
            };
            if let Some(captures) = SETTING.captures(line)
                && let (Some(name), Some(value)) = (captures.get(1), captures.get(2))
            {
                key = Some(name.as_str().to_owned());
                found.said.push((name.as_str().to_owned(), String::new()));
                found.said.extend(words(value.as_str()).into_iter().map(|w| (name.as_str().to_owned(), w)));
            } else if ITEM.is_match(line) {
                match &key {
                    Some(key) => found.said.extend(words(line).into_iter().map(|w| (key.clone(), w))),
                    None => found.loose.extend(words(line)),
                }
            } else {
                key = None;
            }
        }
        found
    }

    /// The words of a setting; `None` when it is not in these lines.
    fn words(&self, key: &str) -> Option<BTreeSet<&str>> {
        let said = self.said.iter().filter(|(k, _)| k == key).map(|(_, word)| word.as_str());
        let mut words: BTreeSet<&str> = said.collect();
        words.remove("").then_some(words)
    }
}

fn collects_less(key: &str, before: Option<&BTreeSet<&str>>, after: Option<&BTreeSet<&str>>) -> bool {
    // Without a setting pytest looks everywhere, under its usual names.
    let Some(after) = after else { return false };
    if before.is_some_and(|before| !before.is_subset(after)) {
        return !after.contains(".");
    }
    if before.is_some() {
        return false;
    }
    let usual = |words: &[&str]| words.iter().any(|word| after.contains(word));
    match key {
        "testpaths" => !after.iter().any(|path| is_whole(path)),
        "python_files" => !usual(&["test_*.py", "test*.py", "*.py", "test_*", "*test*.py"]),
        "python_functions" => !usual(&["test", "test_", "test*", "test_*", "*"]),
        _ => !usual(&["Test", "Test*", "*"]),
    }
}

/// Whether a path of tests is all of a directory of tests.
fn is_whole(path: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    matches!(last, "tests" | "test" | "testing" | "." | "src") || !path.contains('/')
}

fn asks_less(before: &Settings, after: &Settings) -> bool {
    let options = |settings: &Settings| -> BTreeSet<String> {
        let said = settings.words("addopts").unwrap_or_default().into_iter().map(str::to_owned);
        // Numbers are judged elsewhere.
        said.chain(settings.loose.iter().cloned())
            .map(|w| w.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned())
            .collect()
    };
    let selects = |word: &str| {
        matches!(word, "-k" | "-m" | "-p" | "-o" | "--co" | "--collect-only" | "--noconftest")
            || ["-k", "--ignore", "--deselect", "-pno:"].iter().any(|with| word.starts_with(with))
    };
    let (old, new) = (options(before), options(after));
    let fewer_places = before.loose.iter().any(|word| {
        !after.loose.contains(word)
            && classify(&format!("{}/x.py", word.trim_end_matches('/'))) == PathKind::Test
    });
    let set = |settings: &Settings| settings.words("addopts").is_some();
    let dropped = set(before) && old.iter().any(|word| !word.is_empty() && !new.contains(word));
    new.difference(&old).any(|word| selects(word)) || dropped || fewer_places
}

#[cfg(test)]
mod tests {
    use super::super::diff::{FileDiff, FileStatus};
    use super::*;

    fn weaker(removed: &[&str], added: &[&str]) -> bool {
        let own = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect();
        let file = FileDiff::text("pyproject.toml", FileStatus::Modified, own(removed), own(added));
        narrowed(&Changed::of(&file))
    }

    #[test]
    fn collecting_less_is_seen() {
        for (removed, added) in [
            (&[][..], &["python_files = \"check_*.py\""][..]),
            (&[], &["python_functions = [\"check_\"]"]),
            (&[], &["python_classes = Check"]),
            (&["testpaths = [\"tests\", \"e2e\"]"], &["testpaths = [\"tests\"]"]),
            (&[], &["testpaths = [\"tests/easy\"]"]),
            (&["    \"tests/hard\","], &[]),
            (&["addopts = \"-q\""], &["addopts = \"-q -k 'not hard'\""]),
            (&[], &["addopts = [\"-m\", \"not slow\"]"]),
            (&[], &["addopts = \"-p no:cacheprovider\""]),
            (&[], &["addopts = [", "    \"--ignore=tests/hard\",", "]"]),
            (&[], &["    \"--deselect=tests/a.py::test_b\","]),
            (&["addopts = \"--strict-markers -q\""], &["addopts = \"-q\""]),
            (&["addopts = \"-q\""], &[]),
        ] {
            assert!(weaker(removed, added), "{removed:?} -> {added:?}");
        }
    }

    #[test]
    fn collecting_as_much_or_more_is_silent() {
        for (removed, added) in [
            (&[][..], &["testpaths = [\"tests\"]"][..]),
            (&[], &["testpaths = tests"]),
            (&["testpaths = [\"tests\"]"], &["testpaths = [\"tests\", \"e2e\"]"]),
            (&["testpaths = [\"tests\"]"], &[]),
            (&[], &["python_files = \"test_*.py *_test.py\""]),
            (&[], &["addopts = \"-q --strict-markers\""]),
            (&["addopts = \"-q\""], &["addopts = \"-q --strict-markers\""]),
            (&["addopts = \"--cov-fail-under=80\""], &["addopts = \"--cov-fail-under=90\""]),
            (&["    \"requests\","], &["    \"httpx\","]),
            (&["version = \"1\""], &["version = \"2\""]),
        ] {
            assert!(!weaker(removed, added), "{removed:?} -> {added:?}");
        }
    }
}
