//! `no-empty-bodies` and `stub-returns`: functions that do nothing yet (`modes.md` §5.9, §5.10).

use std::collections::BTreeMap;

use peers_code::{Idle, Source};
use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::scan::{Which, answer, at_line, nothing_to_scan, scan, scan_at};

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
    let ask = |_: &str, source: &Source<'_>| {
        let tests = source.tests().0;
        let of_test = |idle: &Idle| tests.iter().any(|test| (test.line..=test.end).contains(&idle.line));
        source.undone().0.into_iter().filter(|idle| !idle.declares && !of_test(idle)).collect::<Vec<_>>()
    };
    let scan = scan(cx, Which::Sources, &ask)?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let told = |idle: &Idle| Some((idle.line, defect(idle)?));
    let mut found: Vec<(&String, usize, String)> = Vec::new();
    for (path, idle) in &scan.found {
        found.extend(idle.iter().filter_map(told).map(|(line, what)| (path, line, what)));
    }
    // What the base had may stay in its file; there may be no more of it.
    let mut old: BTreeMap<(String, String), usize> = BTreeMap::new();
    if let Some(base) = cx.base().filter(|_| !found.is_empty()) {
        for (path, idle) in scan_at(cx, base, Which::Sources, &ask)?.found {
            for (_, what) in idle.iter().filter_map(told) {
                *old.entry((path.clone(), what)).or_default() += 1;
            }
        }
    }
    found.retain(|(path, _, what)| {
        let left = old.get_mut(&((*path).clone(), what.clone())).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_none()
    });
    let findings =
        found.into_iter().map(|(path, line, what)| Finding::at(path, at_line(line), kind, &what, None));
    let findings = findings.collect();
    Ok(answer(files, findings, scan.unreadable, advice))
}

fn empty(idle: &Idle) -> Option<String> {
    idle.returns.is_none().then(|| format!("`{}` does nothing", idle.name))
}

fn stub(idle: &Idle) -> Option<String> {
    let returns = idle.returns.as_deref()?;
    Some(format!("`{}` only returns `{returns}`", idle.name))
}
