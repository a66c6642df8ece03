//! `no-shortcuts`: nothing in the sources says that it is not done (`modes.md` §5.9).

use std::collections::BTreeMap;

use peers_code::Source;
use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::reviews::Reviews;
use crate::scan::{Scan, Which, answer, at_line, nothing_to_scan, scan, scan_at};

pub(crate) const CHECK: Check = Check {
    name: check::NO_SHORTCUTS.name,
    about: "No comment and no statement of the sources says that something is not done",
    args: check::NO_SHORTCUTS.args,
    run: |cx, args: &Args| judge(cx, &args.words(&check::NO_SHORTCUTS, "words")).unwrap_or_else(Report::from),
};

/// What stands before the reason of an author, in a comment of the same line.
const JUSTIFIED: &str = "JUSTIFIED:";

/// A place that says that something is not done.
#[derive(Debug, Clone)]
struct Marker {
    line: usize,
    /// The text of its line.
    content: String,
    /// What says so.
    what: String,
    justified: bool,
}

fn judge(cx: &CheckCx, words: &[&str]) -> Result<Report, CouldNot> {
    let ask = |_: &str, source: &Source<'_>| markers(source, words);
    let scan = scan(cx, Which::Sources, &ask)?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let new = match cx.base() {
        Some(base) if scan.found.iter().any(|(_, found)| !found.is_empty()) => {
            without_old(&scan, &scan_at(cx, base, Which::Sources, &ask)?)
        }
        _ => scan.found.iter().flat_map(|(path, found)| found.iter().map(move |m| (path, m))).collect(),
    };
    let plain = new.iter().any(|(_, marker)| !marker.justified);
    let mut reviews = None;
    let mut findings = Vec::new();
    for (path, marker) in new {
        let mut what = marker.what.clone();
        if marker.justified {
            // Without a record nobody can have reviewed it, which alone is no failure.
            if reviews.is_none() {
                reviews = match Reviews::read(cx) {
                    Err(why) if !plain => return Err(why),
                    read => Some(read.ok()),
                };
            }
            let reviewed = reviews.as_ref().and_then(Option::as_ref);
            if let Some(reviews) = reviewed
                && reviews.is_reviewed(path, marker.line..=marker.line)?
            {
                continue;
            }
            what.push_str(" is justified, and no other peer reviewed it");
        }
        findings.push(Finding::at(path, at_line(marker.line), "shortcut", &what, None));
    }
    let mut report = answer(files, findings, scan.unreadable, false);
    report.hint = (report.counts.get("findings").is_some_and(|n| *n > 0)).then(|| {
        "do what is left, or say `JUSTIFIED: <why it stays>` in a comment of the line and have another peer commit \
         `Peers-Review: <path>@<blob>#L<line>`"
            .to_owned()
    });
    Ok(report)
}

/// The markers that the base has not. A line that moved is the same line; there may be no more of one than before.
fn without_old<'a>(scan: &'a Scan<Vec<Marker>>, base: &Scan<Vec<Marker>>) -> Vec<(&'a String, &'a Marker)> {
    let mut old: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, found) in &base.found {
        for marker in found {
            old.entry(&marker.content).or_default().push(path);
        }
    }
    let mut new: Vec<_> =
        scan.found.iter().flat_map(|(path, found)| found.iter().map(move |marker| (path, marker))).collect();
    // What stayed in its file first, so that of two the one that is new is named.
    new.retain(|(path, marker)| {
        let Some(paths) = old.get_mut(marker.content.as_str()) else { return true };
        let at = paths.iter().position(|known| known == path);
        at.map(|at| paths.remove(at)).is_none()
    });
    new.retain(|(_, marker)| old.get_mut(marker.content.as_str()).and_then(Vec::pop).is_none());
    new
}

fn markers(source: &Source<'_>, words: &[&str]) -> Vec<Marker> {
    let tests = source.test_lines();
    let lines: Vec<&str> = source.text().lines().collect();
    let content = |line: usize| {
        line.checked_sub(1).and_then(|at| lines.get(at)).map_or("", |text| text.trim()).to_owned()
    };
    let comments = source.comments();
    let is_justified = |line: usize| {
        let on_line = comments.iter().filter(|comment| (comment.line..=comment.end).contains(&line));
        on_line.into_iter().any(|comment| {
            let text = comment.text.lines().nth(line - comment.line).unwrap_or_default();
            let reason = text.split_once(JUSTIFIED).map(|(_, reason)| reason);
            reason.is_some_and(|reason| reason.chars().any(char::is_alphanumeric))
        })
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    for comment in &comments {
        for (line, text) in (comment.line..).zip(comment.text.lines()) {
            found.extend(word_of(text, words).map(|word| (line, format!("`{word}` in a comment"))));
        }
    }
    let unfinished = source.undone().1.into_iter().filter(|place| !place.declares);
    found.extend(unfinished.map(|place| (place.line, format!("`{}`", place.code))));
    found.sort();
    found
        .into_iter()
        .filter(|(line, _)| !tests.iter().any(|test| test.contains(line)))
        .map(|(line, what)| Marker { line, content: content(line), what, justified: is_justified(line) })
        .collect()
}

/// The word that a line of a comment has as a whole word: in capitals, or in any letters where it begins the line and
/// a colon or a parenthesis follows.
fn word_of<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let bare = text.trim_start_matches(|c: char| !is_part(c));
    let leads = |word: &str| {
        let head = bare.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word));
        head.is_some() && bare.get(word.len()..).is_some_and(|rest| rest.starts_with([':', '(']))
    };
    let whole = |word: &str| text.split(|c| !is_part(c)).any(|found| found == word);
    words.iter().copied().find(|word| whole(word) || leads(word))
}
