//! How it came about.

use super::TEXT;
use crate::diagnostic::stop_detail;
use crate::history::History;
use crate::markdown::{Document, code};
use crate::words::{count, count_of, duration_ms};

/// The timeline, what was put back or undone, how runs ended, what the operator did.
pub(super) fn section(doc: &mut Document, history: &History) {
    doc.section("Timeline");
    let shown = history.timeline.len();
    doc.paragraph(&format!(
        "{} in {}; the last {shown}, newest first.",
        count(history.ticks, "tick"),
        count(history.runs, "run")
    ));
    let rows: Vec<Vec<String>> = history
        .timeline
        .iter()
        .rev()
        .map(|tick| {
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
        })
        .collect();
    doc.table(&["tick", "ended", "peer", "result", "commits", "took", "cost", "why no success"], &rows);
    corrections(doc, history);
    doc.section("How runs ended");
    let rows: Vec<Vec<String>> = history
        .exits
        .iter()
        .rev()
        .map(|exit| {
            vec![
                exit.ts.to_string(),
                exit.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                exit.reason
                    .as_ref()
                    .map_or_else(|| "killed or lost".to_owned(), |r| code(&r.to_string(), 80)),
                count(exit.ticks_in_run, "tick"),
                code(&stop_detail(exit.reason.as_ref(), &exit.detail), TEXT),
            ]
        })
        .collect();
    doc.table(&["when", "run", "reason", "ticks", "detail"], &rows);
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
    let rows: Vec<Vec<String>> = history
        .corrections
        .iter()
        .rev()
        .map(|row| {
            let kind = match row.kind {
                peers_model::record::CorrectionKind::Revert => "reverted",
                peers_model::record::CorrectionKind::RestoreHistory => "history restored",
                peers_model::record::CorrectionKind::RestoreBranch => "branch restored",
                peers_model::record::CorrectionKind::Reset => "reset",
            };
            let commit = |id: Option<&peers_model::CommitId>| {
                id.map(|id| format!("`{}`", id.short())).unwrap_or_default()
            };
            vec![
                row.tick.to_string(),
                row.peer.to_string(),
                kind.to_owned(),
                commit(row.from.as_ref()),
                commit(row.to.as_ref()),
                row.salvage.as_deref().map_or_else(|| "nothing kept".to_owned(), |s| code(s, 80)),
                code(&row.reason, TEXT),
            ]
        })
        .collect();
    doc.table(&["tick", "peer", "what", "from", "back to", "kept as", "why"], &rows);
    doc.paragraph("What is kept comes back with `peers salvage restore`.");
}
