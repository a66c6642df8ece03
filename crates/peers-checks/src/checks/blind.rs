//! `blind-review`: who reviewed a step had not seen what its author says of it (`modes.md` §5.5).
//!
//! Judged by what the loop took out of the drop boxes and sealed, and when, by the journal. Files of the repository
//! play no part, but for the mismatches that a reviewer files there.

use std::collections::{BTreeMap, BTreeSet};

use peers_core::plan::{Mark, Plan, Step};
use peers_model::step::SealedNote;
use peers_model::{CommitId, PeerName, check, limits};

use super::notes::{CONCERNS_FILE, at, failed_if, numbered};
use crate::attribution::{Attribution, Whose, Writer};
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Named, Written, about, at_head, frozen, named, steps, written};
use crate::report::{Finding, Report};

/// Words of a note at least.
const NOTE: u32 = 20;
/// What a reviewer writes who reads something else in the code than its author says.
const MISMATCH: &str = "[BLIND-REVIEW-MISMATCH]";

pub(crate) const CHECK: Check = Check {
    name: check::BLIND_REVIEW.name,
    about: "Each step was reviewed by a peer that had not seen what its author says of it, and they agree",
    args: check::BLIND_REVIEW.args,
    run: |cx, _| match at_head(cx) {
        Ok(plan) => judge(cx, &plan).unwrap_or_else(Report::from),
        Err(report) => *report,
    },
};

fn judge(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let original = frozen(cx)?;
    let attribution = cx.attribution().map_err(CouldNot::clone)?;
    let was_done = |step: &Step| original.steps.iter().any(|old| old.id == step.id && old.mark == Mark::Done);
    let done: Vec<&Step> =
        plan.steps.iter().filter(|step| step.mark == Mark::Done && !was_done(step)).collect();
    let mut findings = Vec::new();
    for step in &done {
        findings.extend(defect(cx, attribution, step)?);
    }
    match written(cx, CONCERNS_FILE)? {
        Written::Text(text) => findings.extend(
            numbered(&text)
                .iter()
                .filter(|(_, text)| files_mismatch(text))
                .map(|(line, text)| at(CONCERNS_FILE, *line, "mismatch", text.trim())),
        ),
        Written::Not("is missing") => {}
        Written::Not(why) => findings.push(Finding::at(CONCERNS_FILE, None, "note", why, None)),
    }
    findings.extend(erased(cx, attribution)?);
    let hidden =
        attribution.sandbox().is_some_and(|sandbox| sandbox != "none" && !sandbox.starts_with("none "));
    let blindness = if hidden { "" } else { "; not blind: no sandbox hides the notes from the reviewer" };
    let mut report = failed_if(
        findings,
        format!(
            "{} with sealed notes of author and reviewer, and no mismatch is filed{blindness}",
            steps(done.len())
        ),
        format!("sealed notes are missing, or a mismatch is filed{blindness}"),
    );
    report.count("done", done.len());
    let never = |finding: &Finding| matches!(finding.kind, "no-notes" | "no-review");
    report.hint = report.findings.iter().any(never).then(|| {
        "uncheck the step: the loop then gives it out, and seals the notes of its author and its reviewers".to_owned()
    });
    Ok(report)
}

/// What the sealed notes of a done step lack.
fn defect(cx: &CheckCx, attribution: &Attribution, step: &Step) -> Result<Option<Finding>, CouldNot> {
    let bad = |kind, what: &str| Ok(Some(about(step, kind, what)));
    let Some(pair) = attribution.notes(step.id) else {
        return bad("no-notes", "is done, and no notes of an author were ever sealed");
    };
    let (author, handed_in) = (&pair.author, &pair.handed_in);
    if handed_in.words < NOTE {
        return bad("short", &format!("has {} words of its author, of {NOTE}", handed_in.words));
    }
    let same = |note: &SealedNote| note.base == handed_in.base && note.head == handed_in.head;
    let before = |tick| pair.revealed.is_none_or(|revealed| tick < revealed);
    let by_others = || pair.reviews.iter().filter(|(peer, ..)| peer != author);
    let Some((reviewer, ..)) =
        by_others().find(|(_, tick, note)| same(note) && before(*tick) && note.words >= NOTE)
    else {
        return bad(
            "no-review",
            &format!(
                "has no review of {NOTE} words by another than {author}, sealed before the notes were shown"
            ),
        );
    };
    if let Some(damaged) = &pair.damaged {
        return Err(CouldNot::new(format!("notes/{damaged} in the trusted store is not what was sealed")));
    }
    in_range(cx, step, handed_in, reviewer)
}

/// The commit that the step names is one of those that were reviewed.
fn in_range(
    cx: &CheckCx,
    step: &Step,
    note: &SealedNote,
    reviewer: &PeerName,
) -> Result<Option<Finding>, CouldNot> {
    let range = cx.ids(Some(&note.base), &note.head)?;
    let all: Vec<CommitId> = cx.commits()?.into_iter().map(|commit| commit.id).collect();
    match named(step, all.iter()) {
        Named::Commit(id) if range.contains(&id) => Ok(None),
        Named::Commit(id) => {
            let (base, head) = (note.base.short(), note.head.short());
            let what = format!("names {}, and {reviewer} reviewed {base}..{head}", id.short());
            Ok(Some(about(step, "other-range", &what)))
        }
        // `plan-traceable` tells it.
        Named::Nothing | Named::Unknown => Ok(None),
    }
}

/// The mismatches that somebody took out who had not filed them: only who filed one says that it is settled, or the
/// operator.
fn erased(cx: &CheckCx, attribution: &Attribution) -> Result<Vec<Finding>, CouldNot> {
    let facts = cx.facts()?;
    let whose = Whose::new(cx, attribution)?;
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let (mut id, mut filed) = (None, BTreeMap::<String, Writer>::new());
    let mut erased = BTreeMap::new();
    let commits = cx.commits()?.into_iter().map(|commit| commit.id);
    for commit in cx.base().cloned().into_iter().chain(commits) {
        let now = facts
            .file_id(&commit, CONCERNS_FILE)
            .map_err(|e| CouldNot::git(&format!("look for {CONCERNS_FILE}"), &e))?;
        if std::mem::replace(&mut id, now.clone()) == now {
            continue;
        }
        let bytes = now.map(|_| cx.read_at(&commit, CONCERNS_FILE, cap)).transpose()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let there: BTreeSet<&str> = text.lines().filter(|line| files_mismatch(line)).map(str::trim).collect();
        let writer = whose.writer(&commit);
        filed.retain(|line, by| {
            let stays = there.contains(line.as_str());
            if !stays && writer != Writer::Operator && (writer != *by || writer == Writer::Unknown) {
                erased.insert(line.clone(), commit.clone());
            }
            stays
        });
        for line in there {
            erased.remove(line);
            filed.entry(line.to_owned()).or_insert_with(|| writer.clone());
        }
    }
    let told = |(line, by): (String, CommitId)| {
        let what = format!("{} took out what another had filed: {line}", by.short());
        Finding::at(CONCERNS_FILE, None, "erased", &what, None)
    };
    Ok(erased.into_iter().map(told).collect())
}

/// Whether a line files a mismatch: the marker begins it, behind marks of quotes, lists, headings and emphasis, and
/// what follows it is nothing, or says something. Elsewhere, and with a full stop alone behind it, it is mentioned.
fn files_mismatch(line: &str) -> bool {
    let mut rest = line.trim_start();
    loop {
        let bare = rest.trim_start_matches(['>', '#', '-', '*', '+', '`', '_', ' ', '\t']);
        let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = match digits.strip_prefix(['.', ')']) {
            Some(after) if digits.len() < bare.len() => after,
            _ => bare,
        };
        if rest == bare {
            break;
        }
    }
    let Some(after) = rest.strip_prefix(MISMATCH) else { return false };
    let after = after.trim_matches(['`', '*', '_', ' ', '\t']);
    after.is_empty() || after.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_62_and_63_a_marker_is_filed_where_it_leads_a_line_and_mentioned_elsewhere() {
        for filed in [
            "[BLIND-REVIEW-MISMATCH] the cache is never cleared",
            "- [BLIND-REVIEW-MISMATCH] x",
            "3. [BLIND-REVIEW-MISMATCH] x",
            "## [BLIND-REVIEW-MISMATCH] x",
            "> > [BLIND-REVIEW-MISMATCH] x",
            "**[BLIND-REVIEW-MISMATCH]** x",
            "`[BLIND-REVIEW-MISMATCH]` the cache is never cleared",
            "[BLIND-REVIEW-MISMATCH]",
            "` [BLIND-REVIEW-MISMATCH] `",
        ] {
            assert!(files_mismatch(filed), "{filed}");
        }
        for mentioned in [
            "no line with [BLIND-REVIEW-MISMATCH] was needed",
            "`[BLIND-REVIEW-MISMATCH]`.",
            "see the marker `[BLIND-REVIEW-MISMATCH]`",
            "",
        ] {
            assert!(!files_mismatch(mentioned), "{mentioned}");
        }
    }
}
