//! `resolve-size`: a fix is small enough to be read (`modes.md` §3.1).

use std::collections::BTreeMap;

use peers_core::classify_path::PathKind;
use peers_model::bug::{MIN_REASON, reason_chars};
use peers_model::check::{self, Args};
use peers_model::claim::CommitClaims;
use peers_model::trailer::{Message, json_objects};
use peers_model::{BugId, CommitId};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const CHECK: Check = Check {
    name: check::RESOLVE_SIZE.name,
    about: "Each fix of a bug is small enough to be read",
    args: check::RESOLVE_SIZE.args,
    run,
};

fn run(cx: &CheckCx, args: &Args) -> Report {
    let number = |name| u64::try_from(args.number(&check::RESOLVE_SIZE, name)).unwrap_or(u64::MAX);
    judge(cx, number("per-path"), number("per-bug")).unwrap_or_else(Report::from)
}

fn judge(cx: &CheckCx, per_path: u64, per_bug: u64) -> Result<Report, CouldNot> {
    if cx.base().is_none() {
        let mut report = Report::new(Verdict::Fail, "there is no base to begin at");
        report.hint = Some("name one: `--base REF`".to_owned());
        return Ok(report);
    }
    let (facts, mut resolves) = (cx.facts()?, 0_usize);
    let fail = |e| CouldNot::git("compare a fix with what was before", &e);
    let mut findings: Vec<(CommitId, String, Finding)> = Vec::new();
    let mut sums: BTreeMap<BugId, (u64, CommitId)> = BTreeMap::new();
    let mut waived: Vec<(String, String)> = Vec::new();
    for commit in cx.commits()? {
        let message = Message::parse(&commit.message);
        // A waiver is newer than what it excuses.
        for (short, path) in waivers(&message) {
            waived.push((short.clone(), path.clone()));
            findings.retain(|(id, at, _)| !(id.as_str().starts_with(&short) && *at == path));
        }
        let bugs = CommitClaims::read(&commit.message).bugs.into_unverified();
        if bugs.resolutions.is_empty() {
            continue;
        }
        resolves += 1;
        let Some(parent) = commit.parents.first() else { continue };
        let before = facts.tree_of(parent).map_err(fail)?;
        let mut sum = 0;
        for change in
            facts.diff_trees(&before, &commit.tree).map_err(fail)?.iter().filter(|change| !change.binary)
        {
            let lines = change.added.saturating_add(change.deleted);
            // Tests may say as much about a fix as they like, within reason.
            let of_tests =
                peers_code::is_test(&change.path) || cx.tests().classify(&change.path) == PathKind::Test;
            let most = if of_tests { per_path.saturating_mul(2) } else { per_path };
            sum += if of_tests { 0 } else { lines };
            if lines > most {
                let what = format!("{lines} lines in one commit that resolves a bug, of {most}");
                let finding = Finding::at(&change.path, None, "large-fix", &what, Some(&commit.id));
                findings.push((commit.id.clone(), change.path.clone(), finding));
            }
        }
        for resolution in &bugs.resolutions {
            let (all, last) = sums.entry(resolution.id.clone()).or_insert((0, commit.id.clone()));
            *all += sum;
            *last = commit.id.clone();
        }
    }
    let mut findings: Vec<Finding> = findings.into_iter().map(|(_, _, finding)| finding).collect();
    for (bug, (lines, commit)) in sums {
        let excused = waived
            .iter()
            .any(|(short, path)| commit.as_str().starts_with(short.as_str()) && path == bug.as_str());
        if lines > per_bug && !excused {
            let what = format!("{lines} lines resolve {bug}, of {per_bug}");
            findings.push(Finding::about(&commit, "large-fix", &what));
        }
    }
    let summary = match (resolves, findings.len()) {
        (0, _) => "no commit resolves a bug".to_owned(),
        (n, 0) => format!("{n} commits that resolve bugs are small"),
        (_, n) => format!("{n} too large"),
    };
    let mut report = Report::new(if findings.is_empty() { Verdict::Pass } else { Verdict::Fail }, summary);
    report.count("resolves", resolves);
    report.hint = (!findings.is_empty()).then(|| {
        format!(
            "a later commit excuses one by `Diff-Size-Waive: <8 digits of the commit>:<path, or the bug>`, `Peer:` and JSON \
             `{{\"reason\": \"...\"}}` of at least {MIN_REASON} characters"
        )
    });
    report.findings = findings;
    Ok(report)
}

/// The commits and paths that a message excuses: signed, and with a reason.
fn waivers(message: &Message<'_>) -> Vec<(String, String)> {
    let reason = json_objects(message.body).into_iter().find_map(|object| {
        let value = object.get("reason")?.as_str()?.to_owned();
        (reason_chars(&value) >= MIN_REASON).then_some(value)
    });
    if reason.is_none() || message.trailers.last("Peer").is_none() {
        return Vec::new();
    }
    let each = message.trailers.all("Diff-Size-Waive").filter_map(|value| value.split_once(':'));
    each.filter(|(short, _)| short.len() >= 8)
        .map(|(short, path)| (short.to_owned(), path.trim().to_owned()))
        .collect()
}
