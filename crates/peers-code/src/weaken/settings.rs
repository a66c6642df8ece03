//! Files that decide what the gates demand, and files that hide tests from git: what in them demands less than before.
//!
//! Lines are compared, not meaning: a line that is on both sides says nothing, wherever it stands.

mod commands;
mod hiding;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use peers_model::weakening::{Weakened, Weakening};
use regex::Regex;

use super::{ChangedFile, Side};

pub(super) use hiding::in_tests;

/// How a file relates to the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It configures a test runner, a linter, a type checker or coverage, and nothing else.
    Gate,
    /// It does so among other things.
    Mixed,
    /// Commands that test are called in it: in recipes below targets.
    Make,
    /// The same, in an object of scripts.
    Scripts,
    /// The same, in lines.
    Lines,
    /// Cargo's manifest.
    Manifest,
    /// How cargo builds and runs.
    CargoConfig,
    /// It is run before anything else is.
    Startup,
}

const GATE: &str = "pytest.ini .pytest.ini pytest.toml .pytest.toml .coveragerc ruff.toml .ruff.toml mypy.ini
    .mypy.ini pyrightconfig.json .flake8 .pylintrc pylintrc clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml
    deny.toml nextest.toml tarpaulin.toml .tarpaulin.toml mutants.toml biome.json biome.jsonc .eslintignore .nycrc
    .nycrc.json .c8rc.json .mocharc.json .mocharc.yml .mocharc.yaml .mocharc.js .mocharc.cjs codecov.yml .codecov.yml
    codecov.yaml .golangci.yml .golangci.yaml .golangci.toml staticcheck.conf .prettierrc karma.conf.js tslint.json
    phpunit.xml phpunit.xml.dist .rspec .rubocop.yml .simplecov .bunfig.toml";
/// With any ending.
const GATE_STEMS: &str =
    "jest.config vitest.config vitest.workspace playwright.config eslint.config .eslintrc
    cypress.config .swiftlint tsconfig";
const MIXED: &str = "pyproject.toml setup.cfg setup.py .npmrc .yarnrc .yarnrc.yml bunfig.toml go.mod pom.xml
    build.gradle build.gradle.kts gradle.properties CMakeLists.txt mix.exs rust-toolchain rust-toolchain.toml";
const SCRIPTS: &str = "package.json composer.json deno.json deno.jsonc";
const MAKE: &str = "GNUmakefile Makefile makefile justfile Justfile .justfile";
const LINES: &str = "tox.ini noxfile.py Taskfile.yml Taskfile.yaml Rakefile .gitlab-ci.yml .travis.yml
    azure-pipelines.yml Jenkinsfile bitbucket-pipelines.yml .pre-commit-config.yaml turbo.json nx.json Earthfile
    pre-commit lefthook.yml";
/// Modules that `python -m` takes for a test runner: it looks in the current directory first.
const RUNNERS: &str = "pytest _pytest unittest coverage nose2 tox nox";
/// Files that `make` takes, where the makefile does not say `.PHONY`, for targets that are made already.
const TARGETS: &str = "test tests check verify lint ci";
/// Keys whose number is a demand: less is weaker.
const DEMANDED: &str = "fail_under fail-under cov-fail-under fail-under-lines fail-under-branches
    fail-under-functions min_coverage min-coverage minimum_coverage coverage_threshold branches functions lines
    statements threshold";
/// Keys whose number is an allowance: more is weaker.
const ALLOWED: &str = "max-warnings max_warnings max-complexity max_complexity cognitive-complexity-threshold
    too-many-arguments-threshold too-many-lines-threshold type-complexity-threshold retries reruns allowed-failures
    max-issues-per-linter";

/// Whether a word is one of those of a list.
pub(super) fn among(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles each of them")]
pub(super) fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

/// Whether a path is a file of either sort.
pub(super) fn is_known(path: &str) -> bool {
    kind(path).is_some() || hiding::is_known(path)
}

fn kind(path: &str) -> Option<Kind> {
    let (dir, name) = split(path);
    let stem = |list: &str| {
        list.split_whitespace()
            .any(|stem| name.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let module = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix("/__main__.py"));
    let module = module.or_else(|| path.strip_suffix(".py"));
    Some(match name {
        _ if among(GATE, name) || (stem(GATE_STEMS) && !name.ends_with("tsconfig.ts")) => Kind::Gate,
        "sitecustomize.py" | "usercustomize.py" => Kind::Startup,
        _ if has_extension(name, "pth") || module.is_some_and(|module| among(RUNNERS, module)) => {
            Kind::Startup
        }
        "config" | "config.toml" if split(dir).1 == ".cargo" => Kind::CargoConfig,
        "Cargo.toml" => Kind::Manifest,
        _ if among(SCRIPTS, name) => Kind::Scripts,
        _ if among(MAKE, name) => Kind::Make,
        _ if among(MIXED, name) || stem("vite.config") => Kind::Mixed,
        _ if among(LINES, name) || among(TARGETS, path) || is_script(path, name) => Kind::Lines,
        _ => return None,
    })
}

/// Pipelines, and shell scripts that are called after what they do.
fn is_script(path: &str, name: &str) -> bool {
    let below = |dirs: &[&str]| dirs.iter().any(|dir| path.starts_with(dir));
    let shell = name.strip_suffix(".sh");
    let stem = shell.or_else(|| (!name.contains('.')).then_some(name));
    let tests = |stem: &str| stem.split(['-', '_']).any(|word| word == "runtests" || among(TARGETS, word));
    below(&[".github/workflows/", ".circleci/"])
        || (stem.is_some_and(tests) && (shell.is_some() || below(&["scripts/", "script/", "bin/"])))
}

fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end == extension)
}

/// The directory and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// What a file of these says on either side, and the lines, without comments, that only one side has.
struct Lines<'f> {
    path: &'f str,
    name: &'f str,
    before: Option<&'f str>,
    after: Option<&'f str>,
    removed: Vec<&'f str>,
    added: Vec<&'f str>,
}

impl<'f> Lines<'f> {
    fn of(file: &'f ChangedFile) -> Option<Self> {
        if matches!((&file.before, &file.after), (Side::Unread, _) | (_, Side::Unread)) {
            return None;
        }
        let (before, after) = (file.before.text(), file.after.text());
        let lacking = |text: Option<&'f str>, other: Option<&'f str>| {
            let there: BTreeSet<&str> = other.unwrap_or_default().lines().map(str::trim).collect();
            let said = |line: &&str| !is_comment(line) && !there.contains(line.trim());
            text.unwrap_or_default().lines().filter(said).collect()
        };
        let (removed, added) = (lacking(before, after), lacking(after, before));
        Some(Self { path: &file.path, name: split(&file.path).1, before, after, removed, added })
    }

    fn is_new(&self) -> bool {
        self.before.is_none()
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    ["#", ";", "//"].iter().any(|mark| line.starts_with(mark))
}

/// What all these files demand less than before, and what they hide.
pub(super) fn weaker(files: &[ChangedFile], out: &mut Vec<Weakening>) {
    for file in files {
        let Some(lines) = Lines::of(file) else { continue };
        if hiding::hides_tests(&lines) {
            out.push(Weakened::Hidden.at(&file.path));
        }
        if let Some(kind) = kind(&file.path) {
            out.extend(lowered(&lines).map(|what| what.at(&file.path)));
            if is_weaker(&lines, kind, files) {
                out.push(Weakened::GateConfig.at(&file.path));
            }
        }
    }
}

/// Whether a change lets something through that was demanded before.
fn is_weaker(lines: &Lines<'_>, kind: Kind, files: &[ChangedFile]) -> bool {
    let beside = |other: &&ChangedFile| split(&other.path).0 == split(lines.path).0;
    // An empty file can do that too.
    if lines.is_new() && (kind == Kind::Startup || takes_a_place(lines, files)) {
        return true;
    }
    let renamed = |other: &ChangedFile| {
        other.before == Side::Absent
            && self::kind(&other.path) == Some(kind)
            && other.after.text() == lines.before
    };
    if lines.before == lines.after || (lines.after.is_none() && files.iter().filter(beside).any(renamed)) {
        return false;
    }
    match kind {
        Kind::Startup => lines.after.is_some(),
        Kind::Gate if !lines.is_new() => {
            let mut changed = lines.removed.iter().chain(&lines.added).filter(|line| !line.trim().is_empty());
            changed.any(|line| numbers(line).is_empty())
        }
        _ => loosened(lines, kind),
    }
}

/// Whether a new file is read instead of one that stays: another name of the makefile, a configuration that says
/// nothing, a module that takes a directory out of the tests of the whole; or is taken for what a target of the makefile
/// would make.
fn takes_a_place(lines: &Lines<'_>, files: &[ChangedFile]) -> bool {
    let dir = split(lines.path).0;
    match lines.name {
        "GNUmakefile" | "makefile" => !files.iter().any(|file| {
            let (of, name) = split(&file.path);
            of == dir && file.after == Side::Absent && among("GNUmakefile makefile Makefile", name)
        }),
        "pytest.ini" | ".pytest.ini" | "pytest.toml" | ".pytest.toml" => {
            !lines.after.is_some_and(|text| text.contains('='))
        }
        "go.mod" if !dir.is_empty() => !files.iter().any(|file| {
            let below = file.path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'));
            below && file.before == Side::Absent && has_extension(&file.path, "go")
        }),
        _ => among(TARGETS, lines.path),
    }
}

/// Whether the words of a file loosen something: more is ignored, a command that tests is another one, failures are
/// allowed.
fn loosened(lines: &Lines<'_>, kind: Kind) -> bool {
    let by_kind = match kind {
        Kind::Make | Kind::Scripts | Kind::Lines => commands::loosened(lines, kind),
        Kind::Manifest => manifest_loosened(lines),
        Kind::CargoConfig => lines.added.iter().chain(&lines.removed).any(|line| CARGO_RUNS.is_match(line)),
        Kind::Gate | Kind::Mixed | Kind::Startup => false,
    };
    by_kind || collects_less(lines) || words_loosened(lines)
}

static CARGO_RUNS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[\s{,.])(?:runner|rustflags|rustdocflags|rustc|rustdoc|rustc-wrapper|rustc-workspace-wrapper)\s*=",
    )
});
static SWITCHED_OFF: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s{,.])(test|autotests|harness|doctest)\s*=\s*false\b"));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["'`]([^"'`]*)["'`]"#));

/// Whether tests of a package are switched off, or members of a workspace left out.
fn manifest_loosened(lines: &Lines<'_>) -> bool {
    let mut section = "";
    for line in lines.after.unwrap_or_default().lines() {
        let (whole, line) = (line, line.trim());
        if line.starts_with('[') {
            section = line;
        }
        // Benchmarks bring harnesses of their own.
        let of_a_bench = section.starts_with("[[bench]]") || section.starts_with("[[example]]");
        let of_no_test = of_a_bench || section.starts_with("[[bin]]");
        let key = SWITCHED_OFF.captures(line).and_then(|found| found.get(1));
        let off = key.is_some_and(|key| !(of_a_bench || (of_no_test && key.as_str() == "doctest")));
        if lines.added.contains(&whole) && (off || (line.starts_with("required-features") && !of_no_test)) {
            return true;
        }
    }
    let members = |lines: &[&str]| -> BTreeSet<String> {
        let named = lines.iter().filter(|line| {
            ["members", "default-members"].iter().any(|key| line.trim_start().starts_with(key))
        });
        named.flat_map(|line| quoted(line)).map(str::to_owned).collect()
    };
    let (before, after) = (members(&lines.removed), members(&lines.added));
    !after.is_empty() && !before.is_subset(&after)
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    QUOTED.captures_iter(line).filter_map(|found| Some(found.get(1)?.as_str()))
}

static LOOSENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)^\s*["']?(?:extend[-_])?(?:per-file-)?ignores?["']?\s*[:=]"#,
        r"|\b(?:ignore_errors|ignore_outcome|ignore_missing_imports|disable_error_code|norecursedirs|exclude_lines|omit)\b",
        r"|\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\bif:\s*(?:\$\{\{\s*)?false\b",
        r"|\|\|\s*(?:true|:|exit 0|echo|/bin/true)(?:\W|$)|;\s*(?:true|:|exit 0)\s*[\x22']?,?\s*$|\bset \+e\b",
        r"|--(?:ignore|deselect|no-verify|passWithNoTests|exit-zero|exclude-pattern|collect-only|noconftest)\b",
        r"|--(?:testPathIgnorePatterns|continue-on-collection-errors|suppress-no-test-exit-code)\b",
        r"|\baddopts\b.*\s-[km]\s|\bPYTEST_ADDOPTS\b|\bcollect_ignore\b|\btestPathIgnorePatterns\b",
        r"|\bpassWithNoTests\b\W*true|\ballowOnly\b\W*true|\bdangerouslyIgnoreUnhandledErrors\b|\btestRunner\b",
        r#"|=\s*(?:\{\s*level\s*=\s*)?["']allow["']|["']off["']"#,
        r"|\bskipTests\b|\bmaven\.test\.skip\b|test\.?failure\.?ignore|\bignoreFailures\b\W*true|\bWILL_FAIL\b",
        r"|\bDISABLED\s+(?:TRUE|ON|1)\b|\bexclude\b.*\bTests?\b",
        r#"|["'](?:jest|vitest|mocha|ava|tap|eslint|typescript|c8|nyc)["']\s*:\s*["'](?:file|link|npm|portal|git):"#,
    ))
});

/// Lines whose removal takes a demand away.
static DEMANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)=\s*(?:\{\s*level\s*=\s*)?["'](?:deny|forbid)["']"#,
        r"|\b(?:strict|disallow_\w+|warn_return_any)\s*[:=]\s*true",
        r"|\b(?:enable_testing|add_test|gtest_discover_tests|catch_discover_tests)\s*\(",
    ))
});

/// What npm runs scripts with, a toolchain from a directory, packages that Go leaves out.
static STANDS_IN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^\.(?:npmrc|yarnrc|yarnrc\.yml) \s*(?:script-shell|scriptShell|shell|ignore-scripts|node-options)\s*[:=\s]",
        r#"|^rust-toolchain(?:\.toml)? .*\bpath["']?\s*=|^go\.mod \s*ignore "#,
    ))
});

/// Whether words came that let something through, or words went that demand something.
fn words_loosened(lines: &Lines<'_>) -> bool {
    let says = |lines: &[&str], what: &Regex| lines.iter().any(|line| what.is_match(line));
    says(&lines.added, &LOOSENS)
        || (!lines.is_new() && says(&lines.removed, &DEMANDS))
        || lines.added.iter().any(|line| STANDS_IN.is_match(&format!("{} {line}", lines.name)))
        || leaves_out(lines)
}

/// Whether a configuration of a script runner leaves out more than what is not the project's own.
fn leaves_out(lines: &Lines<'_>) -> bool {
    const KEYS: [&str; 4] = ["exclude", "testIgnore", "excludeSpecPattern", "modulePathIgnorePatterns"];
    const OTHERS: &str = "node_modules dist build coverage .git .next exclude testIgnore";
    if !["jest", "vite", "playwright", "cypress"].iter().any(|runner| lines.name.starts_with(runner)) {
        return false;
    }
    let is_own = |path: &str| {
        let first = path.split('/').find(|part| !matches!(*part, "" | "." | "**" | "*" | "<rootDir>"));
        first.is_some_and(|first| !among(OTHERS, first))
    };
    let mut within = false;
    lines.added.iter().any(|line| {
        let words = line.trim();
        let looks = within || KEYS.iter().any(|key| words.trim_start_matches(['"', '\'']).starts_with(key));
        within = looks && !words.contains(']');
        looks && quoted(words).any(is_own)
    })
}

static SETTING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\s*["']?(testpaths|python_files|python_functions|python_classes|addopts)["']?\s*[:=]\s*(.*)$"#,
    )
});
static ITEM: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s+(?:["'][^"']*["'],?|[\w./*:=-]+|-\S.*)\s*$"#));

/// What pytest is told, by key.
type Told<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

fn told(text: Option<&str>) -> Told<'_> {
    let mut out = Told::new();
    let mut key = None;
    for line in text.unwrap_or_default().lines().filter(|line| !is_comment(line)) {
        let mut said = line;
        if let Some(found) = SETTING.captures(line)
            && let (Some(name), Some(value)) = (found.get(1), found.get(2))
        {
            (key, said) = (Some(name.as_str()), value.as_str());
        } else if !ITEM.is_match(line) {
            key = None;
        }
        if let Some(key) = key {
            let cut = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"' | '\'');
            out.entry(key).or_default().extend(said.split(cut).filter(|word| !word.is_empty()));
        }
    }
    out
}

/// Whether pytest collects fewer tests, or less is asked of them.
fn collects_less(lines: &Lines<'_>) -> bool {
    const FILES: &str = "pyproject.toml setup.cfg tox.ini pytest.ini .pytest.ini pytest.toml .pytest.toml";
    // Where a key is not set, what is as good as its usual value.
    const USUAL: [(&str, &str); 4] = [
        ("testpaths", "tests test testing . src"),
        ("python_files", "test_*.py test*.py *.py test_* *test*.py"),
        ("python_functions", "test test_ test* test_* *"),
        ("python_classes", "Test Test* *"),
    ];
    if !among(FILES, lines.name) {
        return false;
    }
    let (before, after) = (told(lines.before), told(lines.after));
    let narrower = |(key, usual): (&str, &str)| match (before.get(key), after.get(key)) {
        // Without a setting pytest looks everywhere, under its usual names.
        (_, None) => false,
        (Some(before), Some(after)) => !before.is_subset(after) && !after.contains("."),
        (None, Some(after)) => !after.iter().any(|word| {
            let last = split(word.trim_end_matches('/')).1;
            among(usual, if key == "testpaths" { last } else { word })
                || (key == "testpaths" && !word.contains('/'))
        }),
    };
    // Numbers are judged elsewhere.
    let bare = |word: &&str| word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
    let options = |told: &Told<'_>| -> BTreeSet<String> {
        told.get("addopts").into_iter().flatten().map(bare).collect()
    };
    let selects = |word: &String| {
        among("-k -m -p -o --co --collect-only --noconftest", word)
            || ["-k", "--ignore", "--deselect", "-pno:"].iter().any(|with| word.starts_with(with))
    };
    let (old, new) = (options(&before), options(&after));
    USUAL.into_iter().any(narrower) || new.difference(&old).any(selects) || !old.is_subset(&new)
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"([A-Za-z][A-Za-z0-9_-]*)["']?(?:\s*[:=]\s*|\s+)["']?(-?\d{1,12}(?:\.\d{1,6})?)"#)
});

/// The numbers of known keys, in order, by key.
fn numbers(text: &str) -> BTreeMap<String, Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for captures in text.lines().flat_map(|line| NUMBER.captures_iter(line)) {
        let (Some(key), Some(value)) = (captures.get(1), captures.get(2)) else { continue };
        let key = key.as_str().to_ascii_lowercase();
        if among(DEMANDED, &key) || among(ALLOWED, &key) {
            found.entry(key).or_default().push(value.as_str());
        }
    }
    found
}

/// The thresholds that were lowered or removed.
fn lowered(lines: &Lines<'_>) -> impl Iterator<Item = Weakened> {
    let mut after = numbers(&lines.added.join("\n")).into_iter().map(owned).collect::<BTreeMap<_, _>>();
    let before: Vec<(String, Vec<String>)> =
        numbers(&lines.removed.join("\n")).into_iter().map(owned).collect();
    before.into_iter().flat_map(move |(key, old)| {
        let mut new = after.remove(&key).unwrap_or_default();
        let mut gone = Vec::new();
        for value in old {
            match new.iter().position(|other| *other == value) {
                Some(same) => drop(new.remove(same)),
                None => gone.push(value),
            }
        }
        let more_is_weaker = among(ALLOWED, &key);
        let mut new = new.into_iter();
        let weaker = gone.into_iter().filter_map(move |from| {
            let to = new.next();
            let number = |text: &String| text.parse::<f64>().ok();
            let weaker = match &to {
                None => true,
                Some(to) if more_is_weaker => number(to) > number(&from),
                Some(to) => number(to) < number(&from),
            };
            weaker.then(|| Weakened::Threshold { key: key.clone(), from, to })
        });
        weaker.collect::<Vec<_>>()
    })
}

fn owned((key, values): (String, Vec<&str>)) -> (String, Vec<String>) {
    (key, values.into_iter().map(str::to_owned).collect())
}
