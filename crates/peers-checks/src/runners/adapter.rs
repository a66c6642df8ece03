//! Which runners a project has, by its files, and how each is started.

use std::collections::BTreeSet;

use peers_code::{Language, is_test};
use peers_model::CommitId;
use serde_json::Value;

use crate::cx::{CheckCx, CouldNot};

/// Bytes of a manifest.
const MANIFEST: usize = 1024 * 1024;

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
}

impl Runner {
    fn new(name: &'static str, form: Form, cmd: impl Into<String>) -> Self {
        Self { name, cmd: cmd.into(), form, report: None }
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
    let has_tests = |of| paths.iter().any(|path| is_test(path) && Language::of(path) == Some(of));
    // The names by which pytest finds files; helpers of other tests have others.
    let of_pytest = |path: &str| {
        let name = path.rsplit('/').next().and_then(|name| name.strip_suffix(".py"));
        name.is_some_and(|name| name.starts_with("test_") || name.ends_with("_test"))
    };
    let mut found = Vec::new();
    if paths.contains("Cargo.toml") {
        found.push(Runner::new("cargo test", Form::Libtest, "exec cargo test --no-fail-fast 2>&1"));
    }
    if paths.contains("go.mod") {
        found.push(Runner::new("go test", Form::Go, "exec go test -json ./..."));
    }
    if paths.contains("package.json") && has_tests(Language::JavaScript) {
        found.push(node(&cx.read_at(commit, "package.json", MANIFEST)?)?);
    }
    if paths.iter().any(|path| of_pytest(path)) {
        found.push(Runner::new("pytest", Form::JUnit, PYTEST));
    }
    if found.is_empty() {
        return Err(CouldNot {
            what: "no test runner is known for this project".to_owned(),
            hint: Some(HINT.to_owned()),
        });
    }
    Ok(found)
}

pub(crate) const HINT: &str =
    "set `checks.test_command` and, for a JUnit report, `checks.test_report` in config.yaml";

/// The runner that a `package.json` names: in its script `test`, else among its dependencies.
fn node(manifest: &[u8]) -> Result<Runner, CouldNot> {
    let bad = |what: &str| CouldNot { what: what.to_owned(), hint: Some(HINT.to_owned()) };
    let manifest: Value = serde_json::from_slice(manifest).map_err(|_| bad("package.json is no JSON"))?;
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = script.split_whitespace().collect();
    let depends = |name: &str| {
        ["dependencies", "devDependencies"]
            .iter()
            .any(|of| manifest.get(of).is_some_and(|of| of.get(name).is_some()))
    };
    let named = ["vitest", "jest", "mocha"].into_iter().find(|name| words.contains(name));
    let on_nodes_own = words.starts_with(&["node"]) && words.contains(&"--test");
    let known =
        named.or_else(|| ["vitest", "jest", "mocha"].into_iter().find(|name| !on_nodes_own && depends(name)));
    Ok(match known {
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
