//! `contracts`, `acceptance`, `e2e`: what was frozen with a plan, and what it says (`modes.md` §5.3).

use std::time::Duration;

use peers_model::check::{self, Args, CheckSpec};

use crate::check::Check;
use crate::cx::{CheckCx, Contract, CouldNot, RanEnd};
use crate::report::{Finding, Report, Verdict};
use crate::runners::NO_PROGRAM;

pub(crate) const CONTRACTS: Check = Check {
    name: check::CONTRACTS.name,
    about: "What was frozen with the plan is as it was, and so are the copies in .peers/",
    args: check::CONTRACTS.args,
    run: |cx, _| unchanged(cx).unwrap_or_else(Report::from),
};

pub(crate) const ACCEPTANCE: Check = Check {
    name: check::ACCEPTANCE.name,
    about: "The frozen acceptance command passes in a clean checkout",
    args: check::ACCEPTANCE.args,
    run: |cx, args| runs(cx, args, &check::ACCEPTANCE).unwrap_or_else(Report::from),
};

pub(crate) const E2E: Check = Check {
    name: check::E2E.name,
    about: "The frozen end-to-end command passes in a clean checkout",
    args: check::E2E.args,
    run: |cx, args| runs(cx, args, &check::E2E).unwrap_or_else(Report::from),
};

/// What the copies say that differ.
fn tampered(cx: &CheckCx) -> Result<Vec<Finding>, CouldNot> {
    let (_, differences) = cx.frozen()?;
    let finding = |(path, how): &(String, &'static str)| {
        Finding::at(
            &format!(".peers/{path}"),
            None,
            "tamper:contracts",
            &format!("{how}; it decides nothing"),
            None,
        )
    };
    Ok(differences.iter().map(finding).collect())
}

fn unchanged(cx: &CheckCx) -> Result<Report, CouldNot> {
    let findings = tampered(cx)?;
    let (frozen, _) = cx.frozen()?;
    let files = 2 + usize::from(frozen.e2e.is_some()) + frozen.files.len();
    let mut report = if findings.is_empty() {
        Report::new(Verdict::Pass, format!("{files} frozen files are as they were"))
    } else {
        Report::new(Verdict::Fail, "copies of what is frozen were changed; the loop writes them again")
    };
    report.count("files", files);
    report.findings = findings;
    Ok(report)
}

fn runs(cx: &CheckCx, args: &Args, spec: &CheckSpec) -> Result<Report, CouldNot> {
    let (frozen, _) = cx.frozen()?;
    let script =
        if spec.name == check::E2E.name { frozen.e2e.as_deref() } else { Some(&frozen.acceptance[..]) };
    let Some(script) = script else {
        return Ok(Report::new(Verdict::Skip, "the frozen plan names no end-to-end command"));
    };
    let seconds = u64::try_from(args.number(spec, "timeout")).unwrap_or(u64::MAX);
    let timeout = Duration::from_secs(seconds);
    let contract = Contract { name: spec.name, script, files: &frozen.files, head: cx.head(), timeout };
    let ran = cx.run_contract(&contract)?;
    let mut report = match ran.end {
        RanEnd::Exit(0) => Report::new(Verdict::Pass, "the frozen command passes"),
        RanEnd::Exit(code) if NO_PROGRAM.contains(&code) => {
            let mut report =
                Report::new(Verdict::Error, format!("the frozen command cannot be run: exit {code}"));
            report.hint =
                Some("install what it needs, or declare `setup` by `peers goals edit --config`".to_owned());
            report
        }
        RanEnd::Exit(code) => Report::new(Verdict::Fail, format!("the frozen command exits {code}")),
        RanEnd::Timeout => {
            Report::new(Verdict::Fail, format!("the frozen command did not end within {seconds} s"))
        }
        RanEnd::Signal => Report::new(Verdict::Fail, "a signal ended the frozen command"),
    };
    if report.verdict != Verdict::Pass {
        report.notes = ran.tail;
    }
    report.findings = tampered(cx)?;
    Ok(report)
}
