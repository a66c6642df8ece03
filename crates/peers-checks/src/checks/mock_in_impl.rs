//! `mock-in-impl`: libraries of test doubles have no place in the product (`modes.md` §5.10).

use peers_code::Import;
use peers_model::check;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::scan::{Which, answer, at_line, nothing_to_scan, scan};

pub(crate) const CHECK: Check = Check {
    name: check::MOCK_IN_IMPL.name,
    about: "No source imports a library of test doubles (advice)",
    args: check::MOCK_IN_IMPL.args,
    run: |cx, args| judge(cx, !args.is_asked("strict")).unwrap_or_else(Report::from),
};

const LIBRARIES: [&str; 17] = [
    "unittest.mock",
    "mock",
    "pytest_mock",
    "pytest",
    "responses",
    "sinon",
    "jest",
    "@jest/globals",
    "vitest",
    "nock",
    "testdouble",
    "mockall",
    "mockito",
    "wiremock",
    "github.com/stretchr/testify/mock",
    "go.uber.org/mock/gomock",
    "github.com/golang/mock/gomock",
];

fn judge(cx: &CheckCx, advice: bool) -> Result<Report, CouldNot> {
    let scan = scan(cx, Which::Sources, &|_, source| {
        let tests = source.tests().0;
        // The modules of tests in Rust begin before their first test.
        let first = tests.iter().map(|test| test.line).min().unwrap_or(usize::MAX);
        let rust = source.language() == peers_code::Language::Rust;
        let imports = source.imports().into_iter();
        let outside = imports.filter(|import| !rust || import.line < first.saturating_sub(10));
        outside.filter(is_of_tests).collect::<Vec<Import>>()
    })?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let mut findings = Vec::new();
    for (path, imports) in &scan.found {
        findings.extend(imports.iter().map(|import| {
            let what = format!("imports `{}`", import.module);
            Finding::at(path, at_line(import.line), "mock", &what, None)
        }));
    }
    Ok(answer(files, findings, scan.unreadable, advice))
}

/// One of the libraries, or a module of it.
fn is_of_tests(import: &Import) -> bool {
    let from = format!("{}.{}", import.module, import.names.first().map_or("", String::as_str));
    LIBRARIES.iter().any(|library| {
        let below = import.module.strip_prefix(library);
        let module = below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '/']));
        module || from == *library
    })
}
