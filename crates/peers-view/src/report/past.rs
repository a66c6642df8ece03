//! How it came about.

use peers_store::runs::RunRecord;

use crate::diagnostic::stop_detail;
use crate::history::History;
use crate::markdown::{Document, code};
use crate::ticks::corrected;
use crate::words::{count, count_of, duration_ms, quoted};

/// Terminal cells of a diagnostic or reason.
pub(super) const TEXT: usize = 120;
/// Reviews in a report.
const REVIEWS: usize = 50;
/// Runs of which a report says how they began, the newest.
const STARTS: usize = 10;

/// The timeline, what was put back or undone, how runs ended, what the operator did.
pub(super) fn section(doc: &mut Document, history: &History) {
    doc.section("Timeline");
    let shown = history.timeline.len();
    doc.paragraph(&format!(
        "{} in {}; the last {shown}, newest first.",
        count(history.ticks, "tick"),
        count(history.runs, "run")
    ));
    doc.table(
        &["tick", "ended", "peer", "result", "commits", "took", "cost", "why no success"],
        history.timeline.iter().rev().map(|tick| {
            let commits = match tick.commits.last() {
                None => "no commit".to_owned(),
                Some(last) => format!("{}, `{}`", count_of(&tick.commits, "commit"), last.short()),
            };
            vec![
                tick.tick.to_string(),
                tick.ts.to_string(),
                tick.peer.to_string(),
                tick.result(),
                commits,
                duration_ms(tick.duration_ms),
                tick.cost(),
                code(tick.reason.as_deref().unwrap_or_default(), TEXT),
            ]
        }),
    );
    reviews(doc, history);
    corrections(doc, history);
    accepted(doc, history);
    doc.section("How runs ended");
    doc.table(
        &["when", "run", "reason", "ticks", "detail"],
        history.exits.iter().rev().map(|exit| {
            vec![
                exit.ts.to_string(),
                exit.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                exit.reason
                    .as_ref()
                    .map_or_else(|| "killed or lost".to_owned(), |r| code(&r.to_string(), 80)),
                count(exit.ticks_in_run, "tick"),
                code(&stop_detail(exit.reason.as_ref(), &exit.detail), TEXT),
            ]
        }),
    );
    if history.proofs > 0 {
        let (all, passed) = (history.proofs, history.proofs_passed);
        doc.paragraph(&format!("{} in a clean checkout, {passed} of them green.", count(all, "proof")));
    }
    if !history.operator.is_empty() {
        doc.section("What the operator did");
        for row in history.operator.iter().rev() {
            doc.item(&format!("{} {}: {}", row.ts, code(&row.by, 40), code(&row.what, TEXT)));
        }
    }
}

/// What reviewers said, those who object first.
fn reviews(doc: &mut Document, history: &History) {
    if history.reviews.is_empty() {
        return;
    }
    doc.section("What reviewers said");
    let (against, passed): (Vec<_>, Vec<_>) = history.reviews.iter().rev().partition(|row| !row.pass);
    doc.paragraph(&format!(
        "{} kept, {} of them against; {} differed from what another peer had said last.",
        count_of(&[&against[..], &passed[..]].concat(), "review"),
        against.len(),
        history.reviews.iter().filter(|row| row.dissents).count()
    ));
    doc.table(
        &["goal", "tick", "reviewer", "answer", "in", "notes"],
        against.into_iter().chain(passed).take(REVIEWS).map(|row| {
            let answer = match (row.pass, row.dissents) {
                (true, false) => "pass",
                (true, true) => "pass, another said fail",
                (false, false) => "**fail**",
                (false, true) => "**fail**, another said pass",
            };
            vec![
                row.goal.to_string(),
                row.tick.to_string(),
                row.peer.to_string(),
                answer.to_owned(),
                format!("`{}`", row.sha.short()),
                code(&row.notes, TEXT),
            ]
        }),
    );
}

/// How what is accepted came to be so.
fn accepted(doc: &mut Document, history: &History) {
    if history.accepted.is_empty() {
        return;
    }
    doc.section("What was accepted");
    doc.table(
        &["when", "by", "what changed", "goals", "config", "why"],
        history.accepted.iter().rev().map(|row| {
            vec![
                row.ts.to_string(),
                code(&row.by, 40),
                code(&row.what, TEXT),
                digest(&row.digests.goals),
                digest(&row.digests.config),
                code(row.note.as_deref().unwrap_or_default(), TEXT),
            ]
        }),
    );
}

/// The beginning of a digest.
fn digest(digest: &str) -> String {
    code(digest.get(..12).unwrap_or(digest), 12)
}

/// What is needed to do the same again.
pub(super) fn again(doc: &mut Document, history: &History, newest: Option<&RunRecord>) {
    let starts = &history.starts;
    if starts.is_empty() {
        return;
    }
    doc.section("To do the same again");
    let rows = starts.iter().rev().take(STARTS).map(|start| {
        let run = newest.filter(|run| Some(&run.run_id) == start.run_id.as_ref());
        let argv: Vec<String> = run.iter().flat_map(|run| &run.argv).map(|word| quoted(word)).collect();
        vec![
            start.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            code(&start.version, 40),
            code(&start.sandbox, 40),
            format!("`{}`", start.head.short()),
            code(start.branch.as_deref().unwrap_or_default(), 80),
            digest(&start.digests.goals),
            digest(&start.digests.config),
            code(&argv.join(" "), 300),
        ]
    });
    doc.table(&["run", "version", "sandbox", "from", "branch", "goals", "config", "command"], rows);
    let digests = &starts.back().map(|start| &start.digests).filter(|digests| !digests.goals.is_empty());
    if let Some(digests) = digests {
        doc.paragraph(&format!(
            "What the newest run began with has the digests {} (goals) and {} (config); `peers verify --accept-digest {}` asks for just that.",
            code(&digests.goals, 64),
            code(&digests.config, 64),
            peers_store::accept::together(digests)
        ));
    }
}

fn corrections(doc: &mut Document, history: &History) {
    if history.git_tampered > 0 || history.mirror_restored > 0 {
        doc.section("What was put back");
        if history.git_tampered > 0 {
            let ticks = count(history.git_tampered, "tick");
            doc.item(&format!("guarded files of the git directory, after {ticks}"));
        }
        if history.mirror_restored > 0 {
            doc.item(&format!("the mirror of the journal, {}", count(history.mirror_restored, "time")));
        }
    }
    if history.corrections.is_empty() {
        return;
    }
    doc.section("What was undone");
    doc.table(
        &["tick", "peer", "what", "from", "back to", "kept as", "why"],
        history.corrections.iter().rev().map(|row| {
            let commit = |id: Option<&peers_model::CommitId>| {
                id.map(|id| format!("`{}`", id.short())).unwrap_or_default()
            };
            vec![
                row.tick.to_string(),
                row.peer.to_string(),
                corrected(row.kind).to_owned(),
                commit(row.from.as_ref()),
                commit(row.to.as_ref()),
                row.salvage.as_deref().map_or_else(|| "nothing kept".to_owned(), |s| code(s, 80)),
                code(&row.reason, TEXT),
            ]
        }),
    );
    doc.paragraph("What is kept comes back with `peers salvage restore`.");
}
