//! Files that decide what the gates demand.

use std::collections::{BTreeMap, BTreeSet};

use super::cargo;
use super::commands;
use super::diff::{FileDiff, FileStatus, TurnDiff};
use super::numbers::only_numbers;
pub(super) use super::numbers::{Lowered, lowered};
use super::pytest;
use super::words;
use crate::classify_path::has_extension;

/// How a file relates to the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigKind {
    /// It configures a test runner, a linter, a type checker or coverage, and nothing else.
    Gate,
    /// It does so among other things.
    Mixed,
    /// Commands that test are called in it.
    Commands(Commands),
    /// Cargo's manifest.
    CargoManifest,
    /// How cargo builds and runs.
    CargoConfig,
    /// It is run before anything else is.
    Startup,
}

/// Files of commands, by how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commands {
    /// Recipes below targets.
    Make,
    /// JSON with an object of scripts.
    Scripts,
    /// Anything else.
    Lines,
}

/// Whether a path is such a file.
pub(super) fn is_known(path: &str) -> bool {
    config_kind(path).is_some()
}

pub(super) fn config_kind(path: &str) -> Option<ConfigKind> {
    use ConfigKind::{CargoConfig, CargoManifest, Gate, Mixed, Startup};
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let begins = |stems: &[&str]| {
        stems.iter().any(|s| name.strip_prefix(s).is_some_and(|r| r.is_empty() || r.starts_with('.')))
    };
    let script_config = name.strip_prefix("tsconfig").is_some_and(|r| has_extension(r, &["json"]));
    if GATE.contains(&name) || begins(&GATE_STEMS) || script_config {
        return Some(Gate);
    }
    if matches!(name, "sitecustomize.py" | "usercustomize.py")
        || has_extension(name, &["pth"])
        || is_runner_of_python(path)
    {
        return Some(Startup);
    }
    if dir.split('/').next_back() == Some(".cargo") && matches!(name, "config" | "config.toml") {
        return Some(CargoConfig);
    }
    let kind = match name {
        "Cargo.toml" => CargoManifest,
        "package.json" | "composer.json" | "deno.json" | "deno.jsonc" => {
            ConfigKind::Commands(Commands::Scripts)
        }
        "GNUmakefile" | "Makefile" | "makefile" | "justfile" | "Justfile" | ".justfile" => {
            ConfigKind::Commands(Commands::Make)
        }
        _ if MIXED.contains(&name) || begins(&["vite.config"]) => Mixed,
        _ if calls_commands(path, name) => ConfigKind::Commands(Commands::Lines),
        _ => return None,
    };
    Some(kind)
}

const GATE: [&str; 49] = [
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
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
    ".mocharc.yaml",
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
    "phpunit.xml",
    "phpunit.xml.dist",
    ".rspec",
    ".rubocop.yml",
    ".simplecov",
    ".bunfig.toml",
];

const GATE_STEMS: [&str; 8] = [
    "jest.config",
    "vitest.config",
    "vitest.workspace",
    "playwright.config",
    "eslint.config",
    ".eslintrc",
    "cypress.config",
    ".swiftlint",
];

const MIXED: [&str; 16] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "gradle.properties",
    "CMakeLists.txt",
    "mix.exs",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// Whether `python -m` takes this for a test runner: it looks in the current directory first.
fn is_runner_of_python(path: &str) -> bool {
    const RUNNERS: [&str; 7] = ["pytest", "_pytest", "unittest", "coverage", "nose2", "tox", "nox"];
    let module = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix("/__main__.py"));
    module.or_else(|| path.strip_suffix(".py")).is_some_and(|module| RUNNERS.contains(&module))
}

/// Whether `make` takes this, where the makefile does not say `.PHONY`, for a target that is made already.
fn is_a_target(path: &str) -> bool {
    matches!(path, "test" | "tests" | "check" | "verify" | "lint" | "ci")
}

/// Pipelines, task runners and scripts that are called after what they do.
fn calls_commands(path: &str, name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "tox.ini",
        "noxfile.py",
        "Taskfile.yml",
        "Taskfile.yaml",
        "Rakefile",
        ".gitlab-ci.yml",
        ".travis.yml",
        "azure-pipelines.yml",
        "Jenkinsfile",
        "bitbucket-pipelines.yml",
        ".pre-commit-config.yaml",
        "turbo.json",
        "nx.json",
        "Earthfile",
        "pre-commit",
        "lefthook.yml",
    ];
    let pipeline = path.starts_with(".github/workflows/") || path.starts_with(".circleci/");
    let stem = name.strip_suffix(".sh").or_else(|| (!name.contains('.')).then_some(name));
    let script = stem.is_some_and(|stem| {
        let words = || stem.split(['-', '_']);
        words().any(|w| matches!(w, "test" | "tests" | "runtests" | "check" | "ci" | "verify" | "lint"))
            && (has_extension(name, &["sh"])
                || path.starts_with("scripts/")
                || path.starts_with("script/")
                || path.starts_with("bin/"))
    });
    NAMES.contains(&name) || pipeline || script || is_a_target(path)
}

/// What else a turn did, to be asked for each file.
pub(super) struct Around<'a> {
    /// New and deleted files of configuration, by directory.
    beside: BTreeMap<&'a str, Vec<&'a FileDiff>>,
    /// New files of Go.
    new_go: BTreeSet<&'a str>,
}

impl<'a> Around<'a> {
    pub(super) fn of(diff: &'a TurnDiff) -> Self {
        let mut found = Self { beside: BTreeMap::new(), new_go: BTreeSet::new() };
        for file in &diff.files {
            if file.status != FileStatus::Modified && is_known(&file.path) {
                found.beside.entry(split(&file.path).0).or_default().push(file);
            }
            if file.status == FileStatus::Added && has_extension(&file.path, &["go"]) {
                found.new_go.insert(&file.path);
            }
        }
        found
    }

    fn beside(&self, path: &str) -> impl Iterator<Item = &&'a FileDiff> {
        self.beside.get(split(path).0).into_iter().flatten()
    }
}

/// The directory and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether the change of a file lets something through that was demanded before.
pub(super) fn is_weaker(file: &FileDiff, around: &Around<'_>) -> bool {
    let Some(kind) = config_kind(&file.path) else { return false };
    // An empty file can do that too.
    if takes_a_place(file, around) || (kind == ConfigKind::Startup && file.status == FileStatus::Added) {
        return true;
    }
    if file.weight() == 0 {
        return false;
    }
    let renamed = |other: &FileDiff| {
        other.status == FileStatus::Added
            && config_kind(&other.path) == Some(kind)
            && other.hunks_added == file.hunks_removed
    };
    if file.status == FileStatus::Deleted && around.beside(&file.path).any(|other| renamed(other)) {
        return false;
    }
    match (kind, file.status) {
        (ConfigKind::Startup, FileStatus::Added | FileStatus::Modified) => true,
        (ConfigKind::Startup, FileStatus::Deleted) => false,
        (ConfigKind::Gate, FileStatus::Modified | FileStatus::Deleted) => {
            !only_numbers(file) && !only_comments(file)
        }
        (ConfigKind::Gate, FileStatus::Added)
        | (
            ConfigKind::Mixed | ConfigKind::Commands(_) | ConfigKind::CargoManifest | ConfigKind::CargoConfig,
            _,
        ) => loosened(file, kind),
    }
}

/// Whether the change of a config file loosens something by its words: more is ignored, a command
/// that tests is another one, failures are allowed.
pub(super) fn loosened(file: &FileDiff, kind: ConfigKind) -> bool {
    let lines = Changed::of(file);
    let by_kind = match kind {
        ConfigKind::Commands(how) => commands::loosened(&lines, how),
        ConfigKind::CargoManifest => cargo::manifest_loosened(&lines),
        ConfigKind::CargoConfig => cargo::config_loosened(&lines),
        ConfigKind::Gate | ConfigKind::Mixed | ConfigKind::Startup => false,
    };
    by_kind || pytest::narrowed(&lines) || words::loosened(&lines)
}

/// Lines that are only on one side.
pub(super) struct Changed<'a> {
    pub(super) name: &'a str,
    pub(super) status: FileStatus,
    pub(super) removed: Vec<&'a str>,
    pub(super) added: Vec<&'a str>,
}

impl<'a> Changed<'a> {
    pub(super) fn of(file: &'a FileDiff) -> Self {
        let without = |lines: &'a [String], others: &[String]| {
            let others: BTreeSet<&str> = others.iter().map(|l| l.trim()).collect();
            lines
                .iter()
                .map(String::as_str)
                .filter(|l| !others.contains(l.trim()) && !is_comment(l))
                .collect()
        };
        Self {
            name: file.path.rsplit('/').next().unwrap_or(&file.path),
            status: file.status,
            removed: without(&file.hunks_removed, &file.hunks_added),
            added: without(&file.hunks_added, &file.hunks_removed),
        }
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    ["#", ";", "//"].iter().any(|mark| line.starts_with(mark))
}

fn only_comments(file: &FileDiff) -> bool {
    let mut lines = file.hunks_removed.iter().chain(&file.hunks_added);
    !file.binary && lines.all(|l| l.trim().is_empty() || is_comment(l))
}

/// Whether a new file is read instead of one that stays: another name of the makefile, a
/// configuration that says nothing, a module that takes a directory out of the tests of the whole; or
/// is taken for what a target of the makefile would make.
fn takes_a_place(file: &FileDiff, around: &Around<'_>) -> bool {
    if file.status != FileStatus::Added {
        return false;
    }
    let (dir, name) = split(&file.path);
    match name {
        "GNUmakefile" | "makefile" => !around.beside(&file.path).any(|f| {
            f.status == FileStatus::Deleted
                && matches!(split(&f.path).1, "GNUmakefile" | "makefile" | "Makefile")
        }),
        "pytest.ini" | ".pytest.ini" | "pytest.toml" | ".pytest.toml" => {
            !file.hunks_added.iter().any(|l| l.contains('='))
        }
        "go.mod" if !dir.is_empty() => {
            let below = format!("{dir}/");
            let next = around.new_go.range(below.as_str()..).next();
            !next.is_some_and(|path| path.starts_with(&below))
        }
        _ => is_a_target(&file.path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name() {
        use ConfigKind::{CargoConfig, CargoManifest, Gate, Mixed, Startup};
        for (kind, paths) in [
            (Gate, &["pytest.ini", "a/clippy.toml", ".eslintrc.json", ".eslintrc", "jest.config.ts"][..]),
            (Gate, &["tsconfig.build.json", ".rspec", "vitest.config.mts"]),
            (Mixed, &["pyproject.toml", ".npmrc", "vite.config.ts", "sub/go.mod"]),
            (CargoManifest, &["crates/x/Cargo.toml"]),
            (CargoConfig, &[".cargo/config.toml", "crates/x/.cargo/config"]),
            (Startup, &["sitecustomize.py", "src/usercustomize.py", "x.pth"]),
            (ConfigKind::Commands(Commands::Make), &["GNUmakefile", "makefile", "a/Makefile", "justfile"]),
            (ConfigKind::Commands(Commands::Scripts), &["package.json"]),
            (ConfigKind::Commands(Commands::Lines), &[".github/workflows/ci.yml", "run_tests.sh", "tox.ini"]),
            (ConfigKind::Commands(Commands::Lines), &["scripts/check", "ci/test.sh"]),
        ] {
            for path in paths {
                assert_eq!(config_kind(path), Some(kind), "{path}");
            }
        }
        for path in ["config.toml", "src/jest.configuration.ts", "tsconfig.ts", "src/check", "src/latest.sh"]
        {
            assert_eq!(config_kind(path), None, "{path}");
        }
    }
}
