//! Which runners a project has, by its files, and how each is started.

use std::collections::BTreeSet;

use peers_code::{Language, is_test};
use peers_model::{CommitId, command};
use peers_sys::term;
use serde_json::Value;

use crate::cx::{CheckCx, CouldNot};
use crate::manifests::is_foreign;

/// Bytes of a manifest.
const MANIFEST: usize = 1024 * 1024;
/// Bytes of a source file.
const SOURCE: usize = 4 * 1024 * 1024;

/// In which form the results of single tests are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    JUnit,
    Jest,
    Mocha,
    Libtest,
    Go,
    /// Not at all: the exit code says everything.
    None,
}

/// A command that runs tests, and how it tells of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) name: &'static str,
    pub(crate) cmd: String,
    pub(crate) form: Form,
    /// Where in the checkout the report is, if not where we said.
    pub(crate) report: Option<String>,
    /// What stands before the names of its tests, if they do not tell where in the checkout it ran.
    pub(crate) prefix: String,
}

impl Runner {
    fn new(name: &'static str, form: Form, cmd: impl Into<String>) -> Self {
        Self { name, cmd: cmd.into(), form, report: None, prefix: String::new() }
    }

    /// In this directory, whose name ends with `/`, or at the top.
    fn below(mut self, dir: &str) -> Self {
        if !dir.is_empty() {
            self.cmd = format!("cd {} && {}", command::word(dir), self.cmd);
            if matches!(self.form, Form::JUnit | Form::Libtest) {
                dir.clone_into(&mut self.prefix);
            }
        }
        self
    }
}

/// A project may bring its interpreter along, where `setup` made it.
const PYTEST: &str = "for python in .venv/bin/python venv/bin/python python3 python; do \
    command -v \"$python\" >/dev/null 2>&1 && \
    exec \"$python\" -m pytest -q -p no:cacheprovider --junit-xml=\"$PEERS_REPORT\"; done; exit 127";

/// The runners of a commit. The operator's own command stands for all of them.
///
/// # Errors
/// [`CouldNot`] when there is none, or one that is not known.
pub(crate) fn detect(cx: &CheckCx, commit: &CommitId) -> Result<Vec<Runner>, CouldNot> {
    let settings = cx.settings();
    if let Some(cmd) = &settings.test_command {
        let form = if settings.test_report.is_some() { Form::JUnit } else { Form::None };
        return Ok(vec![Runner {
            report: settings.test_report.clone(),
            ..Runner::new("the command", form, cmd)
        }]);
    }
    let files = cx.files_at(commit)?;
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut found = Vec::new();
    nothing_planted(paths.iter().copied())?;
    of_rust(cx, commit, &paths, &mut found)?;
    let modules = homes(&paths, &["go.mod"]);
    let outer = outermost(&modules);
    for dir in &modules {
        // `./...` ends where another module begins.
        let home = |path: &str| modules.iter().rev().find(|dir| path.starts_with(**dir)) == Some(dir);
        if outer.contains(dir) || paths.iter().any(|path| path.ends_with("_test.go") && home(path)) {
            found.push(Runner::new("go test", Form::Go, "exec go test -json ./...").below(dir));
        }
    }
    of_node(cx, commit, &paths, &mut found)?;
    let tests: Vec<&str> = paths.iter().copied().filter(|path| is_of_pytest(path)).collect();
    if !tests.is_empty() {
        let mut dirs = outermost(&homes(&paths, &OF_PYTHON));
        dirs.retain(|dir| tests.iter().any(|test| test.starts_with(dir)));
        for dir in if dirs.is_empty() { vec![""] } else { dirs } {
            found.push(Runner::new("pytest", Form::JUnit, PYTEST).below(dir));
        }
    }
    if found.is_empty() {
        return Err(CouldNot {
            what: "no test runner is known for this project".to_owned(),
            hint: Some(HINT.to_owned()),
        });
    }
    Ok(found)
}

/// Files that make a directory the one in which pytest is run.
const OF_PYTHON: [&str; 5] = ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"];

/// Whether pytest finds tests in it, by its name; helpers of other tests have others.
pub(super) fn is_of_pytest(path: &str) -> bool {
    let name = path.rsplit('/').next().and_then(|name| name.strip_suffix(".py"));
    name.is_some_and(|name| name.starts_with("test_") || name.ends_with("_test"))
}

/// The directories of the project that hold one of these files, in order, each with the `/` behind it.
fn homes<'p>(paths: &BTreeSet<&'p str>, names: &[&str]) -> BTreeSet<&'p str> {
    let parts = paths.iter().map(|path| path.split_at(path.rfind('/').map_or(0, |at| at + 1)));
    parts.filter(|(dir, name)| names.contains(name) && !is_foreign(dir)).map(|(dir, _)| dir).collect()
}

/// Those that are not below another one: the top alone, where it is among them.
fn outermost<'p>(dirs: &BTreeSet<&'p str>) -> Vec<&'p str> {
    let inside = |dir: &str| dirs.iter().any(|above| *above != dir && dir.starts_with(above));
    dirs.iter().copied().filter(|dir| !inside(dir)).collect()
}

/// Refuses a commit with a file in one of the places where programs are that `setup` installs, or in place of one.
///
/// # Errors
/// [`CouldNot`] that names it.
pub(crate) fn nothing_planted<'p>(mut paths: impl Iterator<Item = &'p str>) -> Result<(), CouldNot> {
    let is_planted = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        let at = parts.iter().position(|part| matches!(*part, ".venv" | "venv" | "node_modules"));
        at.is_some_and(|at| matches!(parts.get(at + 1), None | Some(&("bin" | ".bin" | "Scripts"))))
    };
    let Some(planted) = paths.find(|path| is_planted(path)) else { return Ok(()) };
    Err(CouldNot {
        what: format!("`{}` is in the commit, where a program is looked for", term::line(planted, 200)),
        hint: Some(format!("take it out of the commit, for `setup` to make it, or {HINT}")),
    })
}

/// The workspaces of cargo, and crates beside them that have tests.
fn of_rust(
    cx: &CheckCx,
    commit: &CommitId,
    paths: &BTreeSet<&str>,
    found: &mut Vec<Runner>,
) -> Result<(), CouldNot> {
    let dirs = homes(paths, &["Cargo.toml"]);
    let manifest = |dir: &str| -> Result<toml::Table, CouldNot> {
        let path = format!("{dir}Cargo.toml");
        let text = String::from_utf8(cx.read_at(commit, &path, MANIFEST)?).unwrap_or_default();
        let bad = |_| CouldNot::new(format!("{} is no TOML", term::line(&path, 200)));
        text.parse().map_err(bad)
    };
    let has_tests = |dir: &str| -> Result<bool, CouldNot> {
        for path in
            paths.iter().filter(|path| path.starts_with(dir) && Language::of(path) == Some(Language::Rust))
        {
            if is_test(path) || contains(&cx.read_at(commit, path, SOURCE)?, b"test]") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    for top in outermost(&dirs) {
        let cmd = "exec cargo test --workspace --no-fail-fast 2>&1";
        found.push(Runner::new("cargo test", Form::Libtest, cmd).below(top));
        let inner: Vec<&str> =
            dirs.iter().copied().filter(|dir| *dir != top && dir.starts_with(top)).collect();
        if inner.is_empty() {
            continue;
        }
        let manifest_of_top = manifest(top)?;
        let workspace = manifest_of_top.get("workspace");
        let left_out = workspace.and_then(|of| of.get("exclude")).and_then(toml::Value::as_array);
        let left_out: Vec<&str> = left_out.into_iter().flatten().filter_map(toml::Value::as_str).collect();
        for dir in inner {
            let name = dir.strip_prefix(top).unwrap_or(dir).trim_end_matches('/');
            let is_out = left_out.iter().any(|out| {
                let rest = name.strip_prefix(out.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            let own = workspace.is_none() || is_out || manifest(dir)?.contains_key("workspace");
            if own && has_tests(dir)? {
                let cmd = "exec cargo test --no-fail-fast 2>&1";
                found.push(Runner::new("cargo test", Form::Libtest, cmd).below(dir));
            }
        }
    }
    Ok(())
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|part| part == what)
}

/// The runner that the manifest at the top names; where it names none, those of the packages below that have tests.
fn of_node(
    cx: &CheckCx,
    commit: &CommitId,
    paths: &BTreeSet<&str>,
    found: &mut Vec<Runner>,
) -> Result<(), CouldNot> {
    let of_node = |path: &&&str| is_test(path) && Language::of(path) == Some(Language::JavaScript);
    let tests: Vec<&str> = paths.iter().filter(of_node).copied().collect();
    let mut dirs = homes(paths, &["package.json"]);
    if tests.is_empty() || dirs.is_empty() {
        return Ok(());
    }
    let runner = |dir: &str| -> Result<Runner, CouldNot> {
        let path = format!("{dir}package.json");
        Ok(node(&path, &cx.read_at(commit, &path, MANIFEST)?)?.below(dir))
    };
    if dirs.remove("") {
        match runner("") {
            Ok(runner) => {
                found.push(runner);
                return Ok(());
            }
            // It may only hold together those that have the tests.
            Err(why) if !tests.iter().all(|test| dirs.iter().any(|dir| test.starts_with(dir))) => {
                return Err(why);
            }
            Err(_) => {}
        }
    }
    for dir in outermost(&dirs) {
        if tests.iter().any(|test| test.starts_with(dir)) {
            found.push(runner(dir)?);
        }
    }
    Ok(())
}

pub(crate) const HINT: &str =
    "set `checks.test_command` and, for a JUnit report, `checks.test_report` by `peers goals edit --config`";

/// What the runners are called that need a package, and that package.
const KNOWN: [(&str, &str); 4] =
    [("vitest", "vitest"), ("jest", "jest"), ("mocha", "mocha"), ("playwright", "@playwright/test")];

/// The runner that a `package.json` names: in its script `test`, else among its dependencies.
fn node(path: &str, manifest: &[u8]) -> Result<Runner, CouldNot> {
    let bad = |what: &str| CouldNot {
        what: what.replace("package.json", &term::line(path, 200)),
        hint: Some(HINT.to_owned()),
    };
    let manifest: Value = serde_json::from_slice(manifest).map_err(|_| bad("package.json is no JSON"))?;
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = script.split_whitespace().collect();
    let depends = |name: &str| {
        ["dependencies", "devDependencies"]
            .iter()
            .any(|of| manifest.get(of).is_some_and(|of| of.get(name).is_some()))
    };
    let named = KNOWN.into_iter().find(|(name, _)| words.contains(name));
    let on_nodes_own = words.starts_with(&["node"]) && words.contains(&"--test");
    let known = named.or_else(|| KNOWN.into_iter().find(|(_, package)| !on_nodes_own && depends(package)));
    Ok(match known.map(|(name, _)| name) {
        Some("vitest") => Runner::new(
            "vitest",
            Form::Jest,
            "exec node_modules/.bin/vitest run --reporter=json --outputFile=\"$PEERS_REPORT\"",
        ),
        Some("jest") => Runner::new(
            "jest",
            Form::Jest,
            "exec node_modules/.bin/jest --ci --json --outputFile=\"$PEERS_REPORT\"",
        ),
        Some("playwright") => Runner::new(
            "playwright",
            Form::JUnit,
            "PLAYWRIGHT_JUNIT_OUTPUT_NAME=\"$PEERS_REPORT\" exec node_modules/.bin/playwright test --reporter=junit",
        ),
        Some(_) => Runner::new(
            "mocha",
            Form::Mocha,
            "exec node_modules/.bin/mocha --reporter json --reporter-option output=\"$PEERS_REPORT\"",
        ),
        None if on_nodes_own => {
            let plain =
                |word: &&str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./*=,".contains(&b));
            if !words.iter().all(plain) || words.iter().any(|word| word.contains("reporter")) {
                return Err(bad("the script `test` of package.json is more than a call of `node --test`"));
            }
            let rest: Vec<&str> = words.into_iter().skip(1).filter(|word| *word != "--test").collect();
            let cmd = format!(
                "exec node --test --test-reporter=junit --test-reporter-destination=\"$PEERS_REPORT\" {}",
                rest.join(" ")
            );
            Runner::new("node --test", Form::JUnit, cmd.trim_end())
        }
        None => return Err(bad("package.json names no test runner that is known")),
    })
}
