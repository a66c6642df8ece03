//! Files that decide what the gates demand: what in them demands less than before.
//!
//! Lines are compared, not meaning: one that is on both sides says nothing, wherever it stands. A list over several lines is
//! one.

mod demands;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use peers_model::weakening::{Weakened, Weakening};
use regex::Regex;

use super::{ChangedFile, Side};

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
    Commands,
    /// It is run before anything else is.
    Startup,
}

const GATE: &str = "pytest.ini .pytest.ini pytest.toml .pytest.toml .coveragerc ruff.toml .ruff.toml mypy.ini
    .mypy.ini pyrightconfig.json .flake8 .pylintrc pylintrc clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml
    deny.toml nextest.toml tarpaulin.toml .tarpaulin.toml mutants.toml biome.json biome.jsonc .eslintignore .nycrc
    .nycrc.json .c8rc.json .mocharc.json .mocharc.yml .mocharc.yaml .mocharc.js .mocharc.cjs codecov.yml .codecov.yml
    codecov.yaml .golangci.yml .golangci.yaml .golangci.toml staticcheck.conf .prettierrc karma.conf.js tslint.json
    phpunit.xml phpunit.xml.dist .rspec .rubocop.yml .simplecov .bunfig.toml";
/// Files that configure more than gates, and files with commands.
const FILES: [(Kind, &str); 4] = [
    (
        Kind::Mixed,
        "pyproject.toml setup.cfg setup.py .npmrc .yarnrc .yarnrc.yml bunfig.toml go.mod pom.xml build.gradle
        build.gradle.kts gradle.properties CMakeLists.txt mix.exs rust-toolchain rust-toolchain.toml Cargo.toml",
    ),
    (Kind::Scripts, "package.json composer.json deno.json deno.jsonc"),
    (Kind::Make, "GNUmakefile Makefile makefile justfile Justfile .justfile"),
    (
        Kind::Commands,
        "tox.ini noxfile.py Taskfile.yml Taskfile.yaml Rakefile .gitlab-ci.yml .travis.yml azure-pipelines.yml
        Jenkinsfile bitbucket-pipelines.yml .pre-commit-config.yaml turbo.json nx.json Earthfile pre-commit
        lefthook.yml",
    ),
];
/// The same, with any ending.
const STEMS: [(Kind, &str); 2] = [
    (
        Kind::Gate,
        "jest.config vitest.config vitest.workspace playwright.config eslint.config .eslintrc cypress.config
        .swiftlint tsconfig",
    ),
    (Kind::Mixed, "vite.config"),
];
/// Modules that `python -m` takes for a test runner: it looks in the current directory first.
const RUNNERS: &str = "pytest _pytest unittest coverage nose2 tox nox";
/// Files that `make` takes, where the makefile does not say `.PHONY`, for targets that are made already.
const TARGETS: &str = "test tests check verify lint ci";

/// Whether a word is one of those of a list.
pub(super) fn among(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles each of them")]
pub(super) fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

/// Whether a path is such a file.
pub(super) fn is_known(path: &str) -> bool {
    kind(path).is_some()
}

fn kind(path: &str) -> Option<Kind> {
    let (dir, name) = split(path);
    let module = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix("/__main__.py"));
    let module = module.or_else(|| path.strip_suffix(".py"));
    if matches!(name, "sitecustomize.py" | "usercustomize.py")
        || has_extension(name, "pth")
        || module.is_some_and(|module| among(RUNNERS, module))
    {
        return Some(Kind::Startup);
    }
    let of_cargo = split(dir).1 == ".cargo" && matches!(name, "config" | "config.toml");
    let begins = |stem: &str| {
        let rest = name.strip_prefix(stem).filter(|_| name != "tsconfig.ts");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let named = FILES.iter().find(|(_, names)| among(names, name));
    let named = named.or_else(|| STEMS.iter().find(|(_, stems)| stems.split_whitespace().any(begins)));
    match named {
        _ if among(GATE, name) => Some(Kind::Gate),
        Some((kind, _)) => Some(*kind),
        None if of_cargo => Some(Kind::Mixed),
        None => (among(TARGETS, path) || is_script(path, name)).then_some(Kind::Commands),
    }
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

/// What a file of these says on either side, and the lines that only one side has.
struct Lines<'f> {
    path: &'f str,
    name: &'f str,
    before: Option<&'f str>,
    after: Option<&'f str>,
    removed: Vec<String>,
    added: Vec<String>,
}

impl<'f> Lines<'f> {
    fn of(file: &'f ChangedFile) -> Option<Self> {
        if matches!((&file.before, &file.after), (Side::Unread, _) | (_, Side::Unread)) {
            return None;
        }
        let (before, after) = (file.before.text(), file.after.text());
        let name = split(&file.path).1;
        // There a line goes on in those below that stand further in.
        let is_ini = has_extension(name, "ini") || has_extension(name, "cfg");
        let all = |text: Option<&str>| whole_lines(text.unwrap_or_default(), is_ini);
        let lacking = |here: &[String], there: &[String]| -> Vec<String> {
            let there: BTreeSet<&str> = there.iter().map(|line| line.trim()).collect();
            here.iter().filter(|line| !there.contains(line.trim())).cloned().collect()
        };
        let (old, new) = (all(before), all(after));
        let (removed, added) = (lacking(&old, &new), lacking(&new, &old));
        Some(Self { path: &file.path, name, before, after, removed, added })
    }

    fn is_new(&self) -> bool {
        self.before.is_none()
    }
}

/// The lines of a text that are neither empty nor comments; a list over several is one.
fn whole_lines(text: &str, is_ini: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = 0_usize;
    for line in text.lines() {
        let said = line.trim();
        if said.is_empty() || ["#", ";", "//"].iter().any(|mark| said.starts_with(mark)) {
            continue;
        }
        match out.last_mut().filter(|_| open > 0 || (is_ini && line.starts_with([' ', '\t']))) {
            Some(last) => last.extend([" ", said]),
            None => out.push(line.to_owned()),
        }
        open = (open + line.matches('[').count()).saturating_sub(line.matches(']').count());
    }
    out
}

/// What all these files demand less than before.
pub(super) fn weaker(files: &[ChangedFile], out: &mut Vec<Weakening>) {
    for file in files {
        let Some((lines, kind)) = Lines::of(file).zip(kind(&file.path)) else { continue };
        out.extend(demands::lowered(&lines).into_iter().map(|what| what.at(&file.path)));
        if is_weaker(&lines, kind, files) {
            out.push(Weakened::GateConfig.at(&file.path));
        }
    }
}

/// Whether a change lets something through that was demanded before.
fn is_weaker(lines: &Lines<'_>, kind: Kind, files: &[ChangedFile]) -> bool {
    // An empty file can do that too.
    if lines.is_new() && (kind == Kind::Startup || takes_a_place(lines, files)) {
        return true;
    }
    let renamed = |other: &ChangedFile| {
        split(&other.path).0 == split(lines.path).0
            && other.before == Side::Absent
            && self::kind(&other.path) == Some(kind)
            && other.after.text() == lines.before
    };
    if lines.after.is_none() && files.iter().any(renamed) {
        return false;
    }
    match kind {
        Kind::Startup => lines.after.is_some() && lines.before != lines.after,
        Kind::Gate if !lines.is_new() => lines
            .removed
            .iter()
            .chain(&lines.added)
            .any(|line| demands::numbers(std::slice::from_ref(line)).is_empty()),
        _ => demands::fewer(lines, kind) || manifest_loosened(lines) || leaves_out(lines),
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

static SWITCHED_OFF: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s{,.])(test|autotests|harness|doctest)\s*=\s*false\b"));

/// Whether tests of a package of Rust are switched off.
fn manifest_loosened(lines: &Lines<'_>) -> bool {
    let mut section = "";
    let mut lines_after = lines.after.filter(|_| lines.name == "Cargo.toml").unwrap_or_default().lines();
    lines_after.any(|whole| {
        let line = whole.trim();
        if line.starts_with('[') {
            section = line;
        }
        // Benchmarks bring harnesses of their own.
        let of_a_bench = section.starts_with("[[bench]]") || section.starts_with("[[example]]");
        let of_no_test = of_a_bench || section.starts_with("[[bin]]");
        let key = SWITCHED_OFF.captures(line).and_then(|found| found.get(1));
        let off = key.is_some_and(|key| !(of_a_bench || (of_no_test && key.as_str() == "doctest")));
        (off || (line.starts_with("required-features") && !of_no_test))
            && lines.added.iter().any(|added| added == whole)
    })
}

static LEFT_OUT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b(?:exclude|testIgnore|excludeSpecPattern|modulePathIgnorePatterns)\b[^\[]*:(.*)")
});

/// Whether a configuration of a script runner leaves out more than what is not the project's own.
fn leaves_out(lines: &Lines<'_>) -> bool {
    const OTHERS: &str = "node_modules dist build coverage .git .next exclude testIgnore";
    let runs = ["jest", "vite", "playwright", "cypress"].iter().any(|runner| lines.name.starts_with(runner));
    let is_own = |path: &str| {
        let first = path.split('/').find(|part| !matches!(*part, "" | "." | "**" | "*" | "<rootDir>"));
        first.is_some_and(|first| !among(OTHERS, first))
    };
    let lists = lines.added.iter().filter_map(|line| LEFT_OUT.captures(line)?.get(1));
    runs && lists.into_iter().any(|list| list.as_str().split(['"', '\'', '`']).skip(1).step_by(2).any(is_own))
}
