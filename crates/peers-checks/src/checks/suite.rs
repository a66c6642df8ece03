//! `tests`, `lint`, `types`: programs of the project, each in a clean checkout of the commit (`modes.md` §2.6).

use std::time::Duration;

use peers_code::{Language, is_source};
use peers_model::check::{self, Args, CheckSpec};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot, RanEnd};
use crate::report::{Report, Verdict};
use crate::runners::{NO_PROGRAM, Suite, Told, nothing_planted};
use crate::scan::nothing_to_scan;
use crate::tools::Tool;

/// Lines of output that are shown.
const LINES: usize = 20;
/// Bytes of a manifest that is looked through.
const MANIFEST: usize = 1024 * 1024;

pub(crate) const TESTS: Check = Check {
    name: check::TESTS.name,
    about: "All tests pass in a clean checkout",
    args: check::TESTS.args,
    run: |cx, args| tests(cx, args).unwrap_or_else(Report::from),
};

pub(crate) const LINT: Check = Check {
    name: check::LINT.name,
    about: "The linters of the project find nothing",
    args: check::LINT.args,
    run: |cx, args| tools(cx, args, &check::LINT, linters).unwrap_or_else(Report::from),
};

pub(crate) const TYPES: Check = Check {
    name: check::TYPES.name,
    about: "The types fit, by the compilers and type checkers of the project",
    args: check::TYPES.args,
    run: |cx, args| tools(cx, args, &check::TYPES, checkers).unwrap_or_else(Report::from),
};

pub(crate) fn limit(args: &Args, spec: &CheckSpec) -> Duration {
    Duration::from_secs(u64::try_from(args.number(spec, "timeout")).unwrap_or(u64::MAX))
}

fn tests(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let (limit, retries) = (limit(args, &check::TESTS), args.number(&check::TESTS, "retry"));
    let mut left = retries;
    loop {
        let suite = match Suite::of(cx, cx.head(), limit, left + 1)? {
            Told::Suite(suite) => suite,
            Told::NoRunner(why) => return Err(why),
        };
        if suite.is_green() || left == 0 {
            let mut report = suite.report();
            if suite.is_green() && left < retries {
                report.notes.push(format!(
                    "red at first: {} of {} runs failed",
                    retries - left,
                    retries - left + 1
                ));
            }
            return Ok(report);
        }
        left -= 1;
    }
}

/// A tool, and what it is called.
type Found = (&'static str, String);

fn tools(
    cx: &CheckCx,
    args: &Args,
    spec: &CheckSpec,
    detect: fn(&Project<'_>, Language) -> Option<Found>,
) -> Result<Report, CouldNot> {
    let found = if let Some(cmd) = args.value("cmd") {
        vec![("the command", cmd.to_owned())]
    } else {
        let project = Project::read(cx)?;
        nothing_planted(project.files.iter().map(String::as_str))?;
        if let Some(report) = nothing_to_scan(cx, project.languages.len()) {
            return Ok(report);
        }
        project.languages.iter().filter_map(|language| detect(&project, *language)).collect()
    };
    if found.is_empty() {
        return Err(CouldNot {
            what: "no tool is known for this project".to_owned(),
            hint: Some(format!("name one: `args: [--cmd, 'make {}']` in goals.yaml", spec.name)),
        });
    }
    let limit = limit(args, spec);
    let mut report = Report::new(Verdict::Pass, String::new());
    let mut said = Vec::new();
    for (name, cmd) in found {
        let ran = cx.tool(&Tool { cmd: &cmd, report: None, head: cx.head(), limit })?;
        let (verdict, what) = match ran.end {
            RanEnd::Exit(0) => (Verdict::Pass, "finds nothing".to_owned()),
            RanEnd::Exit(code) if NO_PROGRAM.contains(&code) => {
                (Verdict::Error, format!("cannot be run: exit {code}"))
            }
            RanEnd::Exit(code) => (Verdict::Fail, format!("exits {code}")),
            RanEnd::Timeout => (Verdict::Error, format!("did not end within {} s", limit.as_secs())),
            RanEnd::Signal => (Verdict::Error, "was ended by a signal".to_owned()),
        };
        said.push(format!("{name} {what}"));
        if verdict != Verdict::Pass {
            report.notes.extend(ran.tail(LINES));
            // What could not be measured weighs more than what was found.
            if report.verdict != Verdict::Error {
                report.verdict = verdict;
            }
        }
    }
    report.summary = said.join("; ");
    Ok(report)
}

/// What a project has, by its files.
struct Project<'a> {
    cx: &'a CheckCx,
    /// Of its sources.
    languages: Vec<Language>,
    files: Vec<String>,
}

impl<'a> Project<'a> {
    fn read(cx: &'a CheckCx) -> Result<Self, CouldNot> {
        let (mut languages, mut files) = (Vec::new(), Vec::new());
        for file in cx.files()? {
            if let Some(language) = Language::of(&file.path)
                && is_source(&file.path, &cx.settings().layout)
                && !languages.contains(&language)
            {
                languages.push(language);
            }
            files.push(file.path);
        }
        Ok(Self { cx, languages, files })
    }

    /// Whether it has one of these files at its top, by the beginning of its name.
    fn has(&self, names: &[&str]) -> bool {
        let mut top = self.files.iter().filter(|file| !file.contains('/'));
        top.any(|file| names.iter().any(|name| file.starts_with(name)))
    }

    fn configures(&self, table: &str) -> bool {
        let read = || self.cx.read_at(self.cx.head(), PYPROJECT, MANIFEST).ok();
        let text = self.has(&[PYPROJECT]).then(read).flatten().unwrap_or_default();
        String::from_utf8_lossy(&text).contains(table)
    }
}

const PYPROJECT: &str = "pyproject.toml";

/// A program of Python, from an environment that `setup` made or from the search path.
fn of_python(name: &str, args: &str) -> String {
    format!(
        "for dir in .venv/bin venv/bin; do [ -x \"$dir/{name}\" ] && exec \"$dir/{name}\" {args}; done; exec {name} {args}"
    )
}

fn linters(project: &Project<'_>, language: Language) -> Option<Found> {
    Some(match language {
        Language::Python => ("ruff", of_python("ruff", "check .")),
        Language::JavaScript if project.has(&["biome.json"]) => {
            ("biome", "exec node_modules/.bin/biome lint .".to_owned())
        }
        Language::JavaScript if project.has(&["eslint.config.", ".eslintrc"]) => {
            ("eslint", "exec node_modules/.bin/eslint .".to_owned())
        }
        Language::JavaScript => return None,
        Language::Rust => ("clippy", "exec cargo clippy --all-targets -- -D warnings".to_owned()),
        Language::Go => (
            "go vet and gofmt",
            "go vet ./... && found=$(gofmt -l .) && { echo \"$found\"; [ -z \"$found\" ]; }".to_owned(),
        ),
    })
}

fn checkers(project: &Project<'_>, language: Language) -> Option<Found> {
    Some(match language {
        Language::Python if project.has(&["pyrightconfig.json"]) || project.configures("[tool.pyright") => {
            ("pyright", of_python("pyright", ""))
        }
        Language::Python => ("mypy", of_python("mypy", ".")),
        Language::JavaScript if project.has(&["tsconfig.json"]) => {
            ("tsc", "exec node_modules/.bin/tsc --noEmit".to_owned())
        }
        Language::JavaScript => return None,
        Language::Rust => ("cargo check", "exec cargo check --all-targets".to_owned()),
        Language::Go => ("go build", "exec go build ./...".to_owned()),
    })
}
