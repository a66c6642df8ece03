//! For people: standard output, `.peers/VERIFY.md`, and the summary of a job.

use peers_model::GoalId;
use peers_sys::term;

use super::report::{NO_RECORD, REWRITTEN};
use super::{VerifyReport, VerifyRow};
use crate::words;

/// Cells of a diagnostic in a table.
const DIAGNOSTIC: usize = 200;
/// Cells of a name in a table.
const NAME: usize = 120;
/// Paths that the gates made dirty.
const SHOWN: usize = 10;

/// The report as Markdown.
#[must_use]
pub fn verify_markdown(report: &VerifyReport) -> String {
    let state = match (report.pristine, report.dirty) {
        (true, _) => "a clean checkout",
        (false, true) => "the work tree, with uncommitted changes",
        (false, false) => "the work tree, clean",
    };
    let at = report.at.map(|at| format!("At {at}, ")).unwrap_or_default();
    let mut lines = vec![
        format!("# peers verify — {}\n", escaped(&report.dir, NAME)),
        format!("**Result:** {}\n", report.result()),
        format!("{at}HEAD {}, tree {}: {state}.", report.head, report.tree),
        format!(
            "Goals {}, config {}, both (`--accept-digest`) {}.",
            report.digests.goals, report.digests.config, report.accept_digest
        ),
    ];
    if !report.unasked.is_empty() {
        let names: Vec<String> = report.unasked.hard.iter().chain(&report.unasked.extra).cloned().collect();
        lines.push(format!("\n**No whole verification:** `--only` left out {}", named(&names)));
    }
    if report.beside {
        lines.push(
            "\nA loop works in this repository at the same time: the tree may have moved under the gates."
                .to_owned(),
        );
    }
    if report.is_empty() {
        lines.push(
            "\nThere is nothing to check: no hard goal and no verify command (`--allow-empty` lets that pass)."
                .to_owned(),
        );
    }
    for (heading, first, rows) in
        [("Hard goals", "id", &report.hard), ("Verify commands", "name", &report.extra)]
    {
        lines.extend(table(heading, first, rows, report.at.is_some()));
    }
    if !report.exempt.is_empty() {
        let names: Vec<&str> = report.exempt.iter().map(GoalId::as_str).collect();
        lines.push(format!(
            "\nNot proved in a clean checkout, by `tree: live`: {} ({})",
            words::count_of(&names, "gate"),
            names.join(", ")
        ));
    }
    if !report.recordless.is_empty() {
        let (first, rest) = NO_RECORD.split_at(1);
        lines.push(format!("\n{}{rest}: {}", first.to_uppercase(), report.recordless_names()));
    }
    match &report.dirtied {
        Ok(paths) if paths.is_empty() => {}
        Ok(paths) => lines.push(format!("\nThe gates changed the work tree: {}", named(paths))),
        Err(_) if report.pristine => {}
        Err(why) => lines.push(format!("\nWhether the gates changed the work tree is not known: {why}")),
    }
    if !report.rewritten.is_empty() {
        let (begin, rest) = REWRITTEN.split_at(1);
        lines.push(format!("\n{}{rest}: {}", begin.to_uppercase(), named(&report.rewritten)));
    }
    lines.join("\n") + "\n"
}

fn table(heading: &str, first: &str, rows: &[VerifyRow], timed: bool) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let (head, rule) = if timed { (" duration (ms) |", "---|") } else { ("", "") };
    let mut lines = vec![
        format!("\n## {heading}\n\n| {first} | state |{head} diagnostic |"),
        format!("|---|---|{rule}---|"),
    ];
    for row in rows {
        let duration = if timed { format!(" {} |", row.duration_ms) } else { String::new() };
        lines.push(format!(
            "| {} | {} |{duration} {} |",
            escaped(&row.name, NAME),
            row.state.word(),
            escaped(&row.cause(), DIAGNOSTIC)
        ));
    }
    lines
}

/// The first of them.
fn named(paths: &[String]) -> String {
    let mut shown: Vec<String> = paths.iter().take(SHOWN).map(|path| escaped(path, NAME)).collect();
    if let more @ 1.. = paths.len().saturating_sub(SHOWN) {
        let last = shown.pop().unwrap_or_default();
        shown.push(format!("{last} and {more} more"));
    }
    shown.join(", ")
}

/// Foreign text on one line, in which nothing means anything to a reader of Markdown or HTML.
pub(super) fn escaped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for c in term::line(text, width).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}
