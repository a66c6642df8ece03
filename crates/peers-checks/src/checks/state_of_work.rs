//! `clean-worktree` and `history-intact`: what is judged is what is there, and nothing of it went away
//! (`modes.md` §2.1, §2.7).

use std::collections::BTreeSet;

use peers_git::DirtyStatus;
use peers_model::check;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const CLEAN: Check = Check {
    name: check::CLEAN_WORKTREE.name,
    about: "The work tree is what the commit says",
    args: check::CLEAN_WORKTREE.args,
    run: |cx, _| clean(cx).unwrap_or_else(Report::from),
};

pub(crate) const INTACT: Check = Check {
    name: check::HISTORY_INTACT.name,
    about: "The base, and each commit that the newest run saw and kept, is in the history",
    args: check::HISTORY_INTACT.args,
    run: |cx, _| intact(cx).unwrap_or_else(Report::from),
};

/// Files that are named.
const MOST: usize = 1000;

fn clean(cx: &CheckCx) -> Result<Report, CouldNot> {
    let findings: Vec<Finding> = cx
        .uncommitted(MOST)?
        .iter()
        .map(|file| {
            let what = match file.status {
                DirtyStatus::Added => "is not committed",
                DirtyStatus::Modified => "has changes that are not committed",
                DirtyStatus::Deleted => "is deleted, and the commit has it",
            };
            Finding::at(&file.path, None, "uncommitted", what, None)
        })
        .collect();
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, "nothing is uncommitted"),
        n => Report::new(Verdict::Fail, format!("{n} of the work tree not committed")),
    };
    report.hint = (!findings.is_empty()).then(|| "commit it, or name it in .gitignore".to_owned());
    report.count("files", findings.len());
    report.findings = findings;
    Ok(report)
}

fn intact(cx: &CheckCx) -> Result<Report, CouldNot> {
    let attribution = cx.attribution().map_err(CouldNot::clone)?;
    let facts = cx.facts()?;
    let reaches = |commit| facts.is_ancestor(commit, cx.head());
    let known: BTreeSet<_> = attribution.kept().iter().chain(cx.base()).collect();
    let mut findings = Vec::new();
    for commit in &known {
        let there =
            facts.has(commit) && reaches(commit).map_err(|e| CouldNot::git("follow the history", &e))?;
        if !there {
            findings.push(Finding::about(commit, "lost", "is no longer in the history"));
        }
    }
    let n = known.len();
    if n == 0 {
        return Err(CouldNot::new("there is no base and no record of a commit to look for"));
    }
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, format!("all {n} commits that were seen are there")),
        lost => Report::new(Verdict::Fail, format!("{lost} of {n} commits that were seen are gone")),
    };
    report.hint = (!findings.is_empty()).then(|| {
        "`peers salvage list` shows what peers kept of it; history is never rewritten in a run".to_owned()
    });
    report.count("commits", n);
    report.findings = findings;
    Ok(report)
}
