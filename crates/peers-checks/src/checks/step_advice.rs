//! `step-size`, `test-ratio`, `claim-vs-diff`, `confidence`: whether each done step is what its plan says
//! (`modes.md` §5.10). Advice.

use std::collections::BTreeSet;

use peers_code::{MAX_BYTES, Source, is_source, is_test};
use peers_core::plan::{Mark, Plan, Step};
use peers_model::check::{self, Args};
use peers_model::{CommitId, TreeId};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Named, about, at_head, frozen, named, steps};
use crate::report::{Finding, Report, Verdict};

pub(crate) const SIZE: Check = Check {
    name: check::STEP_SIZE.name,
    about: "The commit of each done step adds some code (advice)",
    args: check::STEP_SIZE.args,
    run: |cx, args| {
        let least = args.number(&check::STEP_SIZE, "min");
        each_step(cx, args, &|step, id| {
            if step.trivial_step || step.pure_documentation {
                return Ok(None);
            }
            let (code, _) = added(cx, id)?;
            let small = code < least;
            Ok(small.then(|| about(step, "small", &format!("added {code} lines of code, of {least}"))))
        })
    },
};

pub(crate) const RATIO: Check = Check {
    name: check::TEST_RATIO.name,
    about: "The commit of each done step adds tests beside its code (advice)",
    args: check::TEST_RATIO.args,
    run: |cx, args| {
        let least = args.hundredths(&check::TEST_RATIO, "ratio");
        each_step(cx, args, &|step, id| {
            if step.pure_refactor || step.pure_documentation {
                return Ok(None);
            }
            let (code, tests) = added(cx, id)?;
            let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
            let few = count(tests).saturating_mul(100) < count(code).saturating_mul(least);
            let what = format!("added {tests} lines of tests for {code} lines of code");
            Ok(few.then(|| about(step, "untested", &what)))
        })
    },
};

pub(crate) const CLAIM: Check = Check {
    name: check::CLAIM_VS_DIFF.name,
    about: "The commit of each done step has a word in common with the step (advice)",
    args: check::CLAIM_VS_DIFF.args,
    run: |cx, args| each_step(cx, args, &|step, id| claim(cx, step, id)),
};

pub(crate) const CONFIDENCE: Check = Check {
    name: check::CONFIDENCE.name,
    about: "Where the plan asks for it, each done step says that its author is sure, 4 of 5 at least (advice)",
    args: check::CONFIDENCE.args,
    run: |cx, args| match (frozen(cx), at_head(cx)) {
        (Err(why), _) => why.into(),
        (Ok(frozen), _) if !frozen.meta.confidence_calibration => {
            Report::new(Verdict::Skip, "the plan does not ask for it (`confidence_calibration`)")
        }
        (Ok(_), Err(report)) => advised(args, *report),
        (Ok(_), Ok(plan)) => {
            let findings = done(&plan).filter_map(|step| match step.confidence {
                None => Some(about(step, "no-confidence", "does not say how sure its author is")),
                Some(n) if n < 4 => Some(about(step, "unsure", &format!("its author is sure at {n}/5"))),
                Some(_) => None,
            });
            answer(args, &plan, findings.collect())
        }
    },
};

/// A failure as advice, unless it was asked to be strict.
pub(super) fn advised(args: &Args, mut report: Report) -> Report {
    if report.verdict == Verdict::Fail && !args.is_asked("strict") {
        report.verdict = Verdict::Warn;
    }
    report
}

fn done(plan: &Plan) -> impl Iterator<Item = &Step> {
    plan.steps.iter().filter(|step| step.mark == Mark::Done)
}

/// Says what there is to say of a done step and its commit.
type Ask<'a> = dyn Fn(&Step, &CommitId) -> Result<Option<Finding>, CouldNot> + 'a;

/// Asks of each done step with its commit whether something is to be said of it.
fn each_step(cx: &CheckCx, args: &Args, ask: &Ask<'_>) -> Report {
    let plan = match at_head(cx) {
        Ok(plan) => plan,
        Err(report) => return advised(args, *report),
    };
    let judge = || -> Result<Report, CouldNot> {
        let commits = cx.commits()?;
        let mut findings = Vec::new();
        for step in done(&plan) {
            match named(step, commits.iter().map(|commit| &commit.id)) {
                Named::Commit(id) => findings.extend(ask(step, &id)?),
                Named::Nothing => findings.push(about(step, "no-commit", "is done and names no commit")),
                Named::Unknown => {
                    findings.push(about(step, "unknown-commit", "names no commit since the base"));
                }
            }
        }
        Ok(answer(args, &plan, findings))
    };
    judge().unwrap_or_else(Report::from)
}

fn answer(args: &Args, plan: &Plan, findings: Vec<Finding>) -> Report {
    let n = done(plan).count();
    let mut report = match (n, findings.len()) {
        (0, _) => Report::new(Verdict::Pass, "no step is done yet"),
        (n, 0) => Report::new(Verdict::Pass, format!("nothing to say of {} done", steps(n))),
        (n, said) => Report::new(Verdict::Fail, format!("{said} to say of {} done", steps(n))),
    };
    report.count("done", n);
    report.findings = findings;
    advised(args, report)
}

/// Lines of code and lines of tests that a commit adds, without blank lines and comments.
fn added(cx: &CheckCx, id: &CommitId) -> Result<(usize, usize), CouldNot> {
    let (facts, fail) = (cx.facts()?, |e| CouldNot::git("read the commit of a step", &e));
    let commit = facts.commit(id).map_err(fail)?;
    let parent = commit.parents.first().map(|parent| facts.tree_of(parent)).transpose().map_err(fail)?;
    let roots = &cx.settings().layout;
    let wanted = |path: &str| is_test(path) || is_source(path, roots);
    let (mut code, mut tests) = (0, 0);
    for (path, lines) in facts.new_lines(parent.as_ref(), &commit.tree, wanted).map_err(fail)? {
        let (of_code, of_tests) = sorted(cx, &commit.tree, &path, &lines)?;
        code += of_code;
        tests += of_tests;
    }
    Ok((code, tests))
}

fn sorted(
    cx: &CheckCx,
    tree: &TreeId,
    path: &str,
    lines: &BTreeSet<usize>,
) -> Result<(usize, usize), CouldNot> {
    let blob = cx.facts()?.read_blob_of(tree, path, MAX_BYTES);
    let Some(blob) = blob.map_err(|e| CouldNot::git("read a file of a step", &e))? else { return Ok((0, 0)) };
    let Ok(source) = Source::parse_loosely(path, &blob.bytes) else { return Ok((0, 0)) };
    let comments: Vec<_> = source.comments().into_iter().filter(|comment| comment.alone).collect();
    let of_tests = source.test_lines();
    let (mut code, mut tests) = (0, 0);
    for (line, text) in (1..).zip(source.text().lines()) {
        let comment = comments.iter().any(|comment| (comment.line..=comment.end).contains(&line));
        if text.trim().is_empty() || comment || !lines.contains(&line) {
            continue;
        }
        if is_test(path) || of_tests.iter().any(|test| test.contains(&line)) {
            tests += 1;
        } else {
            code += 1;
        }
    }
    Ok((code, tests))
}

/// Words that say nothing of what was done.
const COMMON: [&str; 16] = [
    "that", "this", "with", "from", "into", "when", "then", "than", "have", "will", "each", "some", "make",
    "code", "step", "also",
];

fn claim(cx: &CheckCx, step: &Step, id: &CommitId) -> Result<Option<Finding>, CouldNot> {
    let (facts, fail) = (cx.facts()?, |e| CouldNot::git("read the commit of a step", &e));
    let commit = facts.commit(id).map_err(fail)?;
    let parent = commit.parents.first().map(|parent| facts.tree_of(parent)).transpose().map_err(fail)?;
    let changed = facts.new_files(parent.as_ref(), &commit.tree).map_err(fail)?;
    let mut did = words(commit.message.lines().next().unwrap_or_default());
    for file in changed {
        did.extend(words(&file.path));
    }
    let said = words(&step.text);
    let shares =
        said.iter().any(|word| did.iter().any(|other| other.starts_with(word) || word.starts_with(other)));
    let what = "names a commit whose subject and files have no word in common with it";
    Ok((!said.is_empty() && !shares).then(|| about(step, "other-work", what)))
}

/// The words of a text that may tell something, in small letters.
fn words(text: &str) -> BTreeSet<String> {
    let each = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    each.filter(|word| word.chars().count() >= 4 && !COMMON.contains(&word.as_str())).collect()
}
