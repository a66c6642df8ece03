//! What a line demands, and whether another one still does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use peers_model::weakening::Weakened;
use regex::Regex;

use super::{Kind, Lines, among, pattern};

/// Keys whose number is a demand: less is weaker.
const DEMANDED: &str = "fail_under fail-under cov-fail-under fail-under-lines fail-under-branches
    fail-under-functions min_coverage min-coverage minimum_coverage coverage_threshold branches functions lines
    statements threshold";
/// Keys whose number is an allowance: more is weaker.
const ALLOWED: &str = "max-warnings max_warnings max-complexity max_complexity cognitive-complexity-threshold
    too-many-arguments-threshold too-many-lines-threshold type-complexity-threshold retries reruns allowed-failures
    max-issues-per-linter";

/// What calls a runner, or says that a target always does.
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
        r"|^\.PHONY\b.*\b(?:tests?|check|verify|lint|ci)\b",
    ))
});

/// Not the calling of a runner: fetching it, naming it.
static NO_CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:install|uses:|add\s+-D|--save-dev|requirements)\b|^\s*-?\s*name:|^\s*(?:deps|requires)\s*=",
    )
});

/// Behind a runner: what makes it leave something out, run nothing, or fail unheard.
static NARROWS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\s(?:-k|-m|--lib|--bins|--doc|--no-run|--skip|--exclude|--ignore\S*|--deselect\S*|--collect-only|--co",
        r"|-run|-short|--testPathIgnorePatterns\S*|--testNamePattern\S*|-t|--grep|--exit-zero|--dry-run",
        r"|--passWithNoTests|-DskipTests\S*|-x\s+test|\|\s*(?:cat|tee)|&)(?:[\s=\x22']|$)",
    ))
});

/// Before a runner: what does not call it.
static SILENCES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s@\x22'])(?:exit\s+0\b|(?:echo|printf|true|exit|#)(?:\s[^&;|]*)?$)"));

/// A script of a package that tests, with its name.
static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#""(?:pre|post)?(?:test|tests|lint|typecheck|type-check|check|coverage|ci|verify|e2e|validate)(?:[:-][\w:.-]*)?""#,
        r#"\s*:\s*"(?:[^"\\]|\\.)*""#,
    ))
});

/// What lets something through, where it came.
static LOOSENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)^\s*["']?(?:extend[-_])?(?:per-file-)?ignores?["']?\s*[:=]"#,
        r"|\b(?:ignore_errors|ignore_outcome|ignore_missing_imports|disable_error_code|norecursedirs|exclude_lines|omit)\b",
        r"|\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\bif:\s*(?:\$\{\{\s*)?false\b",
        r"|\|\|\s*(?:true|:|exit 0|echo|/bin/true)(?:\W|$)|;\s*(?:true|:|exit 0|echo\b[^|&;]*)\s*[\x22']?,?\s*$|\bset \+e\b",
        r"|--(?:ignore|deselect|no-verify|passWithNoTests|exit-zero|exclude-pattern|collect-only|noconftest)\b",
        r"|--(?:testPathIgnorePatterns|continue-on-collection-errors|suppress-no-test-exit-code)\b",
        r"|\baddopts\b.*[\s\x22'](?:-[kmpo]\b|--co\b)|\bPYTEST_ADDOPTS\b|\bcollect_ignore\b|\btestPathIgnorePatterns\b",
        r"|\bpassWithNoTests\b\W*true|\ballowOnly\b\W*true|\bdangerouslyIgnoreUnhandledErrors\b|\btestRunner\b",
        r#"|=\s*(?:\{\s*level\s*=\s*)?["']allow["']|["']off["']"#,
        r"|\bskipTests\b|\bmaven\.test\.skip\b|test\.?failure\.?ignore|\bignoreFailures\b\W*true|\bWILL_FAIL\b",
        r"|^\s+[@+-]*\s*(?:(?:/bin/|/usr/bin/)?true|:|exit\s+0)\s*;?\s*$",
        r"|^[\w-]*(?:test|check|lint|verify|ci)[\w-]*\s*:+[^=;]*;\s*[@+-]*\s*(?:true|:|exit\s+0|echo\b.*)?\s*$",
        r"|^[\w-]*(?:test|check|lint|verify|ci)[\w-]*\s*:+\s*[@+-]+\s*:?\s*$",
        r"|^\.IGNORE\b|^\s*(?:export\s+)?(?:MAKEFLAGS|GNUMAKEFLAGS)\s*[:+?]?=.*(?:\s-*\w*[iknqt]|ignore-errors|dry-run|touch|question)",
        r"|\bDISABLED\s+(?:TRUE|ON|1)\b|\bexclude\b.*\bTests?\b",
        r#"|["'](?:jest|vitest|mocha|ava|tap|eslint|typescript|c8|nyc)["']\s*:\s*["'](?:file|link|npm|portal|git):"#,
    ))
});

/// Lines whose removal takes a demand away.
static DEMANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)=\s*(?:\{\s*level\s*=\s*)?["'](?:deny|forbid)["']"#,
        r"|\b(?:strict|disallow_\w+|warn_return_any)\s*[:=]\s*true",
        r"|\b(?:enable_testing|add_test|gtest_discover_tests|catch_discover_tests)\s*\(|\brustflags\s*=|^\s*(?:default-)?members\s*=|^\s*[\x22']?addopts\b",
        r"|^\s*set\s+-\w*e|\bpipefail\b",
    ))
});

/// What npm runs scripts with, how cargo builds and runs, a toolchain from a directory, packages that Go leaves out.
static STANDS_IN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^\.(?:npmrc|yarnrc|yarnrc\.yml) \s*(?:script-shell|scriptShell|shell|ignore-scripts|node-options)\s*[:=\s]",
        r#"|^rust-toolchain(?:\.toml)? .*\bpath["']?\s*=|^go\.mod \s*ignore "#,
        r"|^config(?:\.toml)? .*\b(?:runner|rustflags|rustdocflags|rustc|rustdoc|rustc(?:-workspace)?-wrapper)\s*=",
    ))
});

/// Whether a demand is gone or says less, or something is let through.
pub(super) fn fewer(lines: &Lines<'_>, kind: Kind) -> bool {
    let (before, after) = (demands(&lines.removed, kind), demands(&lines.added, kind));
    let named = |line: &String| STANDS_IN.is_match(&format!("{} {line}", lines.name));
    let let_through: BTreeSet<&str> = lines.removed.iter().flat_map(|line| loosening(line)).collect();
    before.iter().any(|old| !after.iter().any(|new| keeps(new, old, kind)))
        || lines.added.iter().flat_map(|line| loosening(line)).any(|words| !let_through.contains(words))
        || lines.added.iter().any(|line| named(line) || (kind == Kind::Make && forgives(line, lines)))
        || collects_less(lines)
}

fn loosening(line: &str) -> impl Iterator<Item = &str> {
    LOOSENS.find_iter(line).map(|words| words.as_str().trim())
}

/// What in these lines demands something.
fn demands(lines: &[String], kind: Kind) -> Vec<&str> {
    let calls = |line: &str| {
        matches!(kind, Kind::Make | Kind::Commands) && RUNNER.is_match(line) && !NO_CALL.is_match(line)
    };
    let scripts = lines.iter().filter(|_| kind == Kind::Scripts).flat_map(|line| SCRIPT.find_iter(line));
    // What npm writes into a new package demands nothing.
    let scripts =
        scripts.map(|script| script.as_str()).filter(|script| !script.contains("no test specified"));
    let others = lines.iter().map(String::as_str).filter(|line| calls(line) || DEMANDS.is_match(line));
    scripts.chain(others).collect()
}

/// Whether a demand says all that another one said, and leaves out no more.
fn keeps(new: &str, old: &str, kind: Kind) -> bool {
    match (is_narrow(old), is_narrow(new)) {
        (true, false) => RUNNER.is_match(new),
        (false, true) => false,
        _ => words(old, kind).is_subset(&words(new, kind)),
    }
}

/// The words of a demand. How a runner is started does not matter, unless it is a script with a name; nor do numbers,
/// which are judged by themselves, and flags of one letter.
fn words(demand: &str, kind: Kind) -> BTreeSet<&str> {
    let call = RUNNER.find(demand).filter(|_| kind != Kind::Scripts).map_or(0, |call| call.start());
    let words =
        demand.get(call..).unwrap_or(demand).split(|c: char| c.is_whitespace() || "\"'`{}[],".contains(c));
    let words = words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    words.filter(|word| !matches!(word.as_bytes(), [] | [b'-', _])).collect()
}

/// Whether a command that tests is told to leave something out, or is not called at all.
fn is_narrow(command: &str) -> bool {
    let (start, end) = RUNNER.find(command).map_or((0, 0), |runner| (runner.start(), runner.end()));
    command.get(end..).is_some_and(|after| NARROWS.is_match(after))
        || command.get(..start).is_some_and(|before| SILENCES.is_match(before))
}

/// Whether a line of a makefile lets a recipe fail, or has something else than a shell run all recipes.
fn forgives(line: &str, lines: &Lines<'_>) -> bool {
    let bare = |line: &str| line.trim().trim_start_matches(['@', '+', '-', ' ']).to_owned();
    let failed =
        line.starts_with(['\t', ' ']) && line.trim_start_matches(['\t', ' ', '@', '+']).starts_with('-');
    let shell = line.trim().strip_prefix("SHELL").map(str::trim_end);
    shell.is_some_and(|shell| !shell.ends_with("sh"))
        || (failed && (RUNNER.is_match(line) || lines.removed.iter().any(|old| bare(old) == bare(line))))
}

/// Whether pytest looks for fewer tests. Without a setting it looks everywhere, under its usual names.
fn collects_less(lines: &Lines<'_>) -> bool {
    const KEYS: [&str; 4] = ["testpaths", "python_files", "python_functions", "python_classes"];
    let told = |lines: &'_ [String], key: &str| -> Option<BTreeSet<String>> {
        let mut settings = lines.iter().filter_map(|line| line.split_once(['=', ':']));
        let (_, said) = settings.find(|(name, _)| name.trim().trim_matches(['"', '\'']) == key)?;
        let words = words(said, Kind::Scripts).into_iter().map(str::to_owned);
        Some(words.collect()).filter(|words: &BTreeSet<String>| !words.is_empty())
    };
    // As good as the usual value: `test_*.py`, `Test`, a directory at the top.
    let usual = |key: &str, word: &str| match key {
        "testpaths" => !word.trim_end_matches('/').contains('/'),
        _ => among("test tests", &word.trim_end_matches(".py").replace(['*', '_'], "").to_lowercase()),
    };
    KEYS.iter().any(|key| match (told(&lines.removed, key), told(&lines.added, key)) {
        (_, None) => false,
        (Some(before), Some(after)) => !before.is_subset(&after),
        (None, Some(after)) => !after.iter().any(|word| usual(key, word)),
    })
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"([A-Za-z][A-Za-z0-9_-]*)["']?(?:\s*[:=]\s*|\s+)["']?(-?\d{1,12}(?:\.\d{1,6})?)"#)
});

/// The numbers of known keys, in order, by key.
pub(super) fn numbers(lines: &[String]) -> BTreeMap<String, Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for captures in lines.iter().flat_map(|line| NUMBER.captures_iter(line)) {
        let (Some(key), Some(value)) = (captures.get(1), captures.get(2)) else { continue };
        let key = key.as_str().to_ascii_lowercase();
        if among(DEMANDED, &key) || among(ALLOWED, &key) {
            found.entry(key).or_default().push(value.as_str());
        }
    }
    found
}

/// The thresholds that were lowered or removed.
pub(super) fn lowered(lines: &Lines<'_>) -> Vec<Weakened> {
    let mut after = numbers(&lines.added);
    let mut out = Vec::new();
    for (key, old) in numbers(&lines.removed) {
        let mut new = after.remove(&key).unwrap_or_default().into_iter();
        for from in old {
            let to = new.next();
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            let weaker = match to {
                None => true,
                Some(to) if among(ALLOWED, &key) => number(to) > number(from),
                Some(to) => number(to) < number(from),
            };
            if weaker {
                let (key, from, to) = (key.clone(), from.to_owned(), to.map(str::to_owned));
                out.push(Weakened::Threshold { key, from, to });
            }
        }
    }
    out
}
