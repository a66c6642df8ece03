//! `plan-complete`, `plan-preserved`, `plan-traceable`, `no-unresolved-blocks` (`modes.md` §5.9).

use std::collections::BTreeMap;

use peers_core::plan::{Mark, Meta, Plan, Step};
use peers_model::{CommitId, check};

use crate::attribution::{Whose, Writer};
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Named, PLAN, Touches, about, at_head, frozen, named, steps};
use crate::report::{Finding, Report, Verdict};

pub(crate) const COMPLETE: Check = Check {
    name: check::PLAN_COMPLETE.name,
    about: "Each step of PLAN.md is done, or its block is acknowledged",
    args: check::PLAN_COMPLETE.args,
    run: |cx, _| answered(at_head(cx).map(|plan| complete(cx, &plan))),
};

pub(crate) const BLOCKS: Check = Check {
    name: check::NO_UNRESOLVED_BLOCKS.name,
    about: "Each blocked step of PLAN.md was acknowledged by the operator",
    args: check::NO_UNRESOLVED_BLOCKS.args,
    run: |cx, _| answered(at_head(cx).map(|plan| blocks(cx, &plan))),
};

pub(crate) const PRESERVED: Check = Check {
    name: check::PLAN_PRESERVED.name,
    about: "PLAN.md still says what was frozen: marks, commits, confidence and notes alone may change",
    args: check::PLAN_PRESERVED.args,
    run: |cx, _| answered(at_head(cx).map(|plan| preserved(cx, &plan))),
};

pub(crate) const TRACEABLE: Check = Check {
    name: check::PLAN_TRACEABLE.name,
    about: "Each done step names its commit, which changed the files of the step",
    args: check::PLAN_TRACEABLE.args,
    run: |cx, _| answered(at_head(cx).map(|plan| traceable(cx, &plan))),
};

fn answered(answer: Result<Result<Report, CouldNot>, Box<Report>>) -> Report {
    answer.map_or_else(|report| *report, |report| report.unwrap_or_else(Report::from))
}

/// Findings make a failure.
fn judged(findings: Vec<Finding>, good: String, bad: &str) -> Report {
    let mut report = if findings.is_empty() {
        Report::new(Verdict::Pass, good)
    } else {
        Report::new(Verdict::Fail, format!("{} {bad}", steps(findings.len())))
    };
    report.findings = findings;
    report
}

/// What keeps a blocked step from counting as acknowledged.
fn unacknowledged(cx: &CheckCx, step: &Step) -> Result<Option<Finding>, CouldNot> {
    let acknowledged = || -> Result<bool, CouldNot> {
        Ok(cx.attribution().map_err(CouldNot::clone)?.is_block_acknowledged(step))
    };
    Ok(match step.mark {
        Mark::Blocked => Some(about(step, "blocked", "is blocked")),
        Mark::BlockedAck if !acknowledged()? => Some(about(
            step,
            "unacknowledged",
            "says that its block is acknowledged, and no record of the operator says so",
        )),
        Mark::BlockedAck | Mark::Open | Mark::Done | Mark::Partial => None,
    })
}

fn complete(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let mut findings = Vec::new();
    for step in &plan.steps {
        findings.extend(match step.mark {
            Mark::Done => None,
            Mark::Open => Some(about(step, "open", "is open")),
            Mark::Partial => Some(about(step, "partial", "is only partly done")),
            Mark::Blocked | Mark::BlockedAck => unacknowledged(cx, step)?,
        });
    }
    let n = plan.steps.len();
    let mut report = judged(findings, format!("{} done or acknowledged", steps(n)), "not done");
    report.count("steps", n);
    Ok(report)
}

fn blocks(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let mut findings = Vec::new();
    for step in &plan.steps {
        findings.extend(unacknowledged(cx, step)?);
    }
    let any = !findings.is_empty();
    let mut report = judged(findings, "no step is blocked without an acknowledgement".to_owned(), "blocked");
    report.hint = any.then(|| {
        "remove the obstacle, or let the operator accept it: `peers-ctl ack-block NAME STEP-n --reason TEXT`"
            .to_owned()
    });
    Ok(report)
}

fn preserved(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let original = frozen(cx)?;
    let mut findings = Vec::new();
    let mut top = |what: &str| findings.push(Finding::at(PLAN, Some(1), "changed", what, None));
    if plan.title != original.title {
        top("its title is not the frozen one");
    }
    if plan.meta != original.meta {
        top(&format!("`## Meta` is not the frozen one: {}", differing_meta(&plan.meta, &original.meta)));
    }
    let now: BTreeMap<_, _> = plan.steps.iter().map(|step| (step.id, step)).collect();
    for step in &original.steps {
        match now.get(&step.id) {
            None => {
                let what = format!("{} of the frozen plan is gone", step.id);
                findings.push(Finding::at(PLAN, None, "missing", &what, None));
            }
            Some(now) => {
                let differing = differing_step(now, step);
                if !differing.is_empty() {
                    let what = format!("has another {} than the frozen plan", differing.join(", "));
                    findings.push(about(now, "changed", &what));
                }
            }
        }
    }
    let added = plan.steps.len().saturating_sub(original.steps.len());
    let mut report = if findings.is_empty() {
        Report::new(Verdict::Pass, format!("{} kept, {added} added", steps(original.steps.len())))
    } else {
        Report::new(Verdict::Fail, format!("{PLAN} is not what was frozen"))
    };
    report.count("steps", original.steps.len());
    report.count("added", added);
    report.hint = (!findings.is_empty())
        .then(|| "the frozen plan is .peers/PLAN.original.md; only the operator changes it".to_owned());
    report.findings = findings;
    Ok(report)
}

/// The keys of `## Meta` that differ.
fn differing_meta(now: &Meta, original: &Meta) -> String {
    let Meta {
        surfaces,
        acceptance,
        e2e,
        acceptance_files,
        convergence_n,
        mutation_testing,
        confidence_calibration,
        honesty_audit_peer,
    } = original;
    let differing = [
        ("surfaces", now.surfaces != *surfaces),
        ("acceptance", now.acceptance != *acceptance),
        ("e2e", now.e2e != *e2e),
        ("acceptance_files", now.acceptance_files != *acceptance_files),
        ("convergence_n", now.convergence_n != *convergence_n),
        ("mutation_testing", now.mutation_testing != *mutation_testing),
        ("confidence_calibration", now.confidence_calibration != *confidence_calibration),
        ("honesty_audit_peer", now.honesty_audit_peer != *honesty_audit_peer),
    ];
    differing.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect::<Vec<_>>().join(", ")
}

/// What of a step differs that only the operator may change.
fn differing_step(now: &Step, original: &Step) -> Vec<&'static str> {
    let Step {
        id: _,
        mark: _,
        text,
        sha: _,
        touches,
        depends,
        trivial_step,
        pure_documentation,
        pure_refactor,
        confidence: _,
        rationale: _,
        notes: _,
        accept,
        line: _,
    } = original;
    let differing = [
        ("text", now.text != *text),
        ("touches", now.touches != *touches),
        ("depends", now.depends != *depends),
        ("trivial_step", now.trivial_step != *trivial_step),
        ("pure_documentation", now.pure_documentation != *pure_documentation),
        ("pure_refactor", now.pure_refactor != *pure_refactor),
        ("accept", now.accept != *accept),
    ];
    differing.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
}

fn traceable(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let done: Vec<&Step> = plan.steps.iter().filter(|step| step.mark == Mark::Done).collect();
    if done.is_empty() {
        return Ok(Report::new(Verdict::Pass, "no step is done yet"));
    }
    let whose = Whose::new(cx, cx.attribution().map_err(CouldNot::clone)?)?;
    let commits = cx.commits()?;
    let mut taken: BTreeMap<CommitId, &Step> = BTreeMap::new();
    let mut findings = Vec::new();
    for step in &done {
        let id = match named(step, commits.iter().map(|commit| &commit.id)) {
            Named::Commit(id) => id,
            Named::Nothing => {
                findings.push(about(
                    step,
                    "no-commit",
                    "is done and names no commit: `(sha)` at the end of its line",
                ));
                continue;
            }
            Named::Unknown => {
                findings.push(about(
                    step,
                    "unknown-commit",
                    "names no commit of this history since the base",
                ));
                continue;
            }
        };
        if let Some(other) = taken.insert(id.clone(), step) {
            findings.push(about(step, "shared-commit", &format!("names the commit of {} too", other.id)));
        }
        if whose.writer(&id) == Writer::Unknown {
            findings.push(about(step, "unattributed", "names a commit that nobody saw arrive"));
        }
        if !step.touches.is_empty() && !meets(cx, &id, &Touches::of(step))? {
            findings.push(about(step, "other-files", "names a commit that changed none of its `touches`"));
        }
    }
    let mut report = judged(findings, format!("{} traced to commits", steps(done.len())), "not traced");
    report.count("done", done.len());
    Ok(report)
}

/// Whether a commit changed one of the files.
fn meets(cx: &CheckCx, id: &CommitId, touches: &Touches) -> Result<bool, CouldNot> {
    let (facts, fail) = (cx.facts()?, |e| CouldNot::git("read the commit of a step", &e));
    let commit = facts.commit(id).map_err(fail)?;
    let parent = commit.parents.first().map(|parent| facts.tree_of(parent)).transpose().map_err(fail)?;
    let changed = match parent {
        Some(parent) => facts.changed_paths(&parent, &commit.tree).map_err(fail)?,
        None => facts.list_tree(id).map_err(fail)?.into_iter().map(|file| file.path).collect(),
    };
    Ok(changed.iter().any(|path| touches.holds(path)))
}
