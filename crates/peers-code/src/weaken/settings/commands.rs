//! Commands that test: in makefiles, scripts of packages, pipelines and shell scripts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::{Kind, Lines, among, pattern};

static RUNNER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:pytest|py\.test|unittest|nosetests|tox|nox|ruff|mypy|pyright|flake8|pylint|bandit",
        r"|jest|vitest|mocha|ava|playwright|cypress|eslint|tsc|biome|rspec|rubocop|minitest|phpunit|phpstan",
        r"|ctest|bats|shellcheck|golangci-lint|staticcheck|nextest|tarpaulin|miri",
        r"|cargo\s+(?:\+\S+\s+)?(?:test|clippy|check|fmt|deny|nextest|llvm-cov)|go\s+(?:test|vet)",
        r"|(?:npm|pnpm|yarn|bun|deno)\s+(?:run\s+)?(?:test|lint|check|typecheck|ci)\S*|node\s+--test",
        r"|(?:mvn|mvnw|gradle|gradlew)\b[^|;&]*\b(?:test|verify|check)|dotnet\s+test|swift\s+test|mix\s+test",
        r"|dart\s+test|flutter\s+test|rake\s+(?:test|spec)|make\s+\S*(?:test|check|lint)\S*)\b",
        r"|\S*/\S*test\S*\.(?:sh|py|js)\b|\$\(MAKE\)\s+\S*(?:test|check)\S*",
    ))
});

/// Not the calling of a runner: fetching it, naming it.
static NO_CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:install|uses:|add\s+-D|--save-dev|requirements)\b|^\s*-?\s*name:|^\s*(?:deps|requires)\s*=",
    )
});

/// What makes a runner look at all there is, or take nothing lightly.
static STRICT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:^|\s)(?:\./\.\.\.|--all|--workspace|--all-targets|--all-features|--locked|--strict\S*|--check|--ci",
        r"|-race|--cov\S*|-W\s*error|--max-warnings\S*|-D\s*warnings|-Dwarnings|set\s+-\w*e\w*|pipefail)(?:\s|$)",
    ))
});

/// What makes a runner leave something out, or run nothing.
static NARROWS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\s(?:-k|-m|--lib|--bins|--doc|--no-run|--skip|--exclude|--ignore\S*|--deselect\S*|--collect-only|--co",
        r"|-run|-short|--testPathIgnorePatterns\S*|--testNamePattern\S*|-t|--grep|--exit-zero|--dry-run|--passWithNoTests",
        r"|-DskipTests\S*|-x\s+test)(?:[\s=\x22']|$)",
    ))
});

static TRIVIAL_RECIPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^\s+[@+-]*\s*(?:(?:/bin/|/usr/bin/)?true|:|exit\s+0)\s*;?\s*$",
        r"|^[\w-]*(?:test|check|lint|verify|ci)[\w-]*\s*:+[^=;]*;\s*[@+-]*\s*(?:true|:|exit\s+0|echo\b.*)?\s*$",
        r"|^[\w-]*(?:test|check|lint|verify|ci)[\w-]*\s*:+\s*[@+-]+\s*:?\s*$",
        r"|^\.IGNORE\b|^\s*(?:export\s+)?(?:MAKEFLAGS|GNUMAKEFLAGS)\s*[:+?]?=.*(?:\s-*\w*[iknqt]|ignore-errors|dry-run|touch|question)",
    ))
});

static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#""((?:pre|post)?(?:test|tests|lint|typecheck|type-check|check|coverage|ci|verify|e2e|validate)(?:[:-][\w:.-]*)?)""#,
        r#"\s*:\s*"((?:[^"\\]|\\.)*)""#,
    ))
});

static LETS_PASS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\|\|\s*(?:true|:|exit 0|echo|node -e)|;\s*(?:true|:|exit 0|echo\b.*)\s*$|^\s*(?:true|:|exit 0|echo\b.*)\s*$",
        r"|--passWithNoTests|--exit-zero|\|\s*(?:cat|tee)\b|&\s*$|^\s*#",
    ))
});

/// Whether a command that tests is gone, looks at less, or may fail.
pub(super) fn loosened(lines: &Lines<'_>, how: Kind) -> bool {
    match how {
        Kind::Scripts => scripts_loosened(lines),
        Kind::Make => recipes_loosened(lines) || calls_fewer(lines),
        _ => calls_fewer(lines),
    }
}

fn calls_fewer(lines: &Lines<'_>) -> bool {
    let calls = |lines: &[&str]| -> Vec<String> {
        let calls = lines.iter().filter(|l| RUNNER.is_match(l) && !NO_CALL.is_match(l));
        calls.map(|l| (*l).to_owned()).collect()
    };
    let (before, after) = (calls(&lines.removed), calls(&lines.added));
    let runners = |lines: &[String]| lines.iter().map(|l| RUNNER.find_iter(l).count()).sum::<usize>();
    let narrow = |lines: &[String]| lines.iter().filter(|l| is_narrow(l)).count();
    let said = |lines: &[&str]| lines.iter().filter(|l| STRICT.is_match(l)).count();
    let replaced = !before.is_empty();
    runners(&before) > runners(&after)
        || (replaced && said(&lines.removed) > said(&lines.added))
        || (replaced && narrow(&after) > narrow(&before))
        || (said(&lines.removed) > said(&lines.added) && lines.removed.iter().any(|l| l.contains("set -")))
}

/// Whether a command that tests is told to leave something out. What stands before it is told to
/// something else.
fn is_narrow(command: &str) -> bool {
    let after = RUNNER.find(command).and_then(|runner| command.get(runner.end()..));
    NARROWS.is_match(after.unwrap_or(command))
}

fn recipes_loosened(lines: &Lines<'_>) -> bool {
    let bare = |line: &str| line.trim().trim_start_matches(['@', '+', '-', ' ']).to_owned();
    let forgives = |line: &str| {
        let mark = line.trim_start();
        let marks: String = mark.chars().take_while(|c| matches!(c, '@' | '+' | '-' | ' ')).collect();
        line.starts_with(['\t', ' '])
            && marks.contains('-')
            && (RUNNER.is_match(line) || lines.removed.iter().any(|r| bare(r) == bare(line)))
    };
    let other_shell = |line: &str| {
        let value =
            line.trim().strip_prefix("SHELL").map(|rest| rest.trim_start_matches([' ', ':', '?', '=']));
        value.is_some_and(|shell| !shell.trim_end().ends_with("sh"))
    };
    let phony = |lines: &[&str]| lines.iter().filter(|l| l.starts_with(".PHONY") && names_a_check(l)).count();
    lines.added.iter().any(|l| TRIVIAL_RECIPE.is_match(l) || forgives(l) || other_shell(l))
        || phony(&lines.removed) > phony(&lines.added)
}

fn names_a_check(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric()).any(|word| among(super::TARGETS, word))
}

fn scripts_loosened(lines: &Lines<'_>) -> bool {
    let scripts = |lines: &[&str]| -> BTreeMap<String, String> {
        let found = lines.iter().flat_map(|l| SCRIPT.captures_iter(l));
        found.filter_map(|c| Some((c.get(1)?.as_str().to_owned(), c.get(2)?.as_str().to_owned()))).collect()
    };
    let (before, after) = (scripts(&lines.removed), scripts(&lines.added));
    let gone_or_less = before.iter().any(|(key, old)| {
        // What npm writes into a new package.
        if old.contains("no test specified") {
            return false;
        }
        let Some(new) = after.get(key) else { return true };
        let words: Vec<&str> = new.split_whitespace().collect();
        let lost = old.split_whitespace().any(|word| !words.contains(&word));
        lost || (LETS_PASS.is_match(new) && !LETS_PASS.is_match(old)) || (is_narrow(new) && !is_narrow(old))
    });
    gone_or_less
        || after
            .iter()
            .any(|(key, new)| !before.contains_key(key) && new.contains("||") && LETS_PASS.is_match(new))
}
