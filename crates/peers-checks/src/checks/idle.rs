//! `no-empty-bodies` and `stub-returns`: functions that do nothing yet (`modes.md` §5.9, §5.10).

use peers_code::Idle;
use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::scan::{Which, answer, at_line, nothing_to_scan, scan};

pub(crate) const NO_EMPTY_BODIES: Check = Check {
    name: check::NO_EMPTY_BODIES.name,
    about: "No function and no class of the sources is without a body",
    args: check::NO_EMPTY_BODIES.args,
    run: |cx, _| judge(cx, false, "empty", &empty).unwrap_or_else(Report::from),
};

pub(crate) const STUB_RETURNS: Check = Check {
    name: check::STUB_RETURNS.name,
    about: "No function of the sources only returns a constant (advice)",
    args: check::STUB_RETURNS.args,
    run: |cx, args: &Args| judge(cx, !args.is_asked("strict"), "stub", &stub).unwrap_or_else(Report::from),
};

fn judge(
    cx: &CheckCx,
    advice: bool,
    kind: &'static str,
    defect: &dyn Fn(&Idle) -> Option<String>,
) -> Result<Report, CouldNot> {
    let scan = scan(cx, Which::Sources, &|_, source| {
        let tests = source.tests().0;
        let of_test = |idle: &Idle| tests.iter().any(|test| (test.line..=test.end).contains(&idle.line));
        source.undone().0.into_iter().filter(|idle| !idle.declares && !of_test(idle)).collect::<Vec<_>>()
    })?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let mut findings = Vec::new();
    for (path, idle) in &scan.found {
        let found = idle.iter().filter_map(|idle| Some((idle.line, defect(idle)?)));
        findings.extend(found.map(|(line, what)| Finding::at(path, at_line(line), kind, &what, None)));
    }
    Ok(answer(files, findings, scan.unreadable, advice))
}

fn empty(idle: &Idle) -> Option<String> {
    idle.returns.is_none().then(|| format!("`{}` does nothing", idle.name))
}

fn stub(idle: &Idle) -> Option<String> {
    let returns = idle.returns.as_deref()?;
    Some(format!("`{}` only returns `{returns}`", idle.name))
}
