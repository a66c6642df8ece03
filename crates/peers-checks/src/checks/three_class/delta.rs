//! The same of the tests that each done step of `PLAN.md` added (`--delta`).

use std::collections::BTreeSet;

use peers_code::{MAX_BYTES, Source, is_source, is_test};
use peers_core::plan::{Mark, Plan, Step};
use peers_model::{CommitId, TreeId};

use super::{CLASSES, Class, classes};
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Named, about, at_head, named, steps};
use crate::report::{Finding, Report, Verdict};
use crate::scan::ends_with_rs;

/// A test by what it is called and what it does.
type Known = BTreeSet<(String, String)>;

pub(super) fn run(cx: &CheckCx) -> Report {
    match at_head(cx) {
        Ok(plan) => judge(cx, &plan).unwrap_or_else(Report::from),
        Err(report) => *report,
    }
}

fn judge(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let done: Vec<&Step> = plan.steps.iter().filter(|step| step.mark == Mark::Done).collect();
    if done.is_empty() {
        return Ok(Report::new(Verdict::Pass, "no step is done yet"));
    }
    let commits = cx.commits()?;
    let (mut findings, mut notes, mut judged) = (Vec::new(), Vec::new(), 0_usize);
    for step in done.iter().copied() {
        if step.trivial_step || step.pure_documentation || step.pure_refactor {
            continue;
        }
        match named(step, commits.iter().map(|commit| &commit.id)) {
            Named::Nothing => notes.push(format!("{} names no commit yet", step.id)),
            Named::Unknown => findings.push(about(step, "unknown-commit", "names no commit since the base")),
            Named::Commit(id) => {
                judged += 1;
                findings.extend(defect(cx, step, &id)?);
            }
        }
    }
    let mut report = if findings.is_empty() {
        Report::new(Verdict::Pass, format!("{} added tests of three kinds", steps(judged)))
    } else {
        Report::new(Verdict::Fail, format!("{} without tests of three kinds", steps(findings.len())))
    };
    report.count("done", done.len());
    report.count("judged", judged);
    report.findings = findings;
    report.notes = notes;
    Ok(report)
}

/// What the tests lack that the commit of a step added.
fn defect(cx: &CheckCx, step: &Step, id: &CommitId) -> Result<Option<Finding>, CouldNot> {
    let (facts, fail) = (cx.facts()?, |e| CouldNot::git("read the commit of a step", &e));
    let commit = facts.commit(id).map_err(fail)?;
    let Some(parent) = commit.parents.first() else {
        return Ok(Some(about(step, "no-tests", "names a commit without a parent")));
    };
    let before = facts.tree_of(parent).map_err(fail)?;
    let roots = &cx.settings().layout;
    let (mut kinds, mut asserts) = (BTreeSet::new(), BTreeSet::new());
    for path in facts.changed_paths(&before, &commit.tree).map_err(fail)? {
        if !(is_test(&path) || ends_with_rs(&path) && is_source(&path, roots)) {
            continue;
        }
        let mut known = Known::new();
        each_test(cx, &before, &path, &mut |name, body, _, _| {
            known.insert((name.to_owned(), body.to_owned()));
        })?;
        each_test(cx, &commit.tree, &path, &mut |name, body, of, asserted| {
            if !asserted.is_empty() && !known.contains(&(name.to_owned(), body.to_owned())) {
                kinds.extend(of);
                asserts.insert(asserted.to_vec());
            }
        })?;
    }
    if asserts.is_empty() {
        return Ok(Some(about(step, "no-tests", "added no test that asserts something")));
    }
    let missing: Vec<&str> =
        CLASSES.iter().filter(|(class, _)| !kinds.contains(class)).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        let what = format!("added no test of the kind {}", missing.join(", "));
        return Ok(Some(about(step, "class", &what)));
    }
    // One body that was copied is one test.
    let copied = asserts.len() < CLASSES.len();
    Ok(copied.then(|| about(step, "class", "added tests of three kinds that assert the same things")))
}

/// Hears of a test: its file, its name, its classes, what it asserts.
type Told<'a> = dyn FnMut(&str, &str, BTreeSet<Class>, &[String]) + 'a;

/// Tells each test of a file: its name, its body, its kinds, what it asserts. Nothing where there is no such file.
fn each_test(cx: &CheckCx, tree: &TreeId, path: &str, tell: &mut Told<'_>) -> Result<(), CouldNot> {
    let blob = cx.facts()?.read_blob_of(tree, path, MAX_BYTES + 1);
    let Some(blob) = blob.map_err(|e| CouldNot::git("read a test", &e))? else { return Ok(()) };
    let source = Source::parse(path, &blob.bytes)
        .map_err(|why| CouldNot::new(format!("{}: {why}", peers_sys::term::line(path, 200))))?;
    for test in source.tests().0 {
        let body = source.text().get(test.body.clone()).unwrap_or_default();
        tell(&test.path, body, classes(&test, body), &test.asserts);
    }
    Ok(())
}
