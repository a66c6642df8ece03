//! `docs-present`, `docs-sections`, `docs-converged`: the documents of a described project (`modes.md` §6).

use std::collections::BTreeSet;

use peers_core::bugs::Author;
use peers_model::check::{self, Args};

use crate::attribution::Whose;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const PRESENT: Check = Check {
    name: check::DOCS_PRESENT.name,
    about: "SPEC.md, ARCHITECTURE.md and DESIGN.md are there and say something",
    args: check::DOCS_PRESENT.args,
    run: |cx, _| present(cx).unwrap_or_else(Report::from),
};

pub(crate) const SECTIONS: Check = Check {
    name: check::DOCS_SECTIONS.name,
    about: "They have the sections that a reader looks for",
    args: check::DOCS_SECTIONS.args,
    run: |cx, _| sections(cx).unwrap_or_else(Report::from),
};

pub(crate) const CONVERGED: Check = Check {
    name: check::DOCS_CONVERGED.name,
    about: "The newest changes to them are small: their authors agree",
    args: check::DOCS_CONVERGED.args,
    run: |cx, args: &Args| {
        converged(cx, args.number(&check::DOCS_CONVERGED, "n")).unwrap_or_else(Report::from)
    },
};

/// Each document with the sections that it has to have.
const DOCS: [(&str, &[&str]); 3] = [
    ("SPEC.md", &["Threat Model", "Invariants", "API"]),
    ("ARCHITECTURE.md", &["Components", "Data Flow"]),
    ("DESIGN.md", &["Decisions", "Tradeoffs"]),
];
/// Bytes that a document has at least.
const MIN_BYTES: usize = 500;
/// Characters that a section has at least.
const MIN_SECTION: usize = 50;
/// Bytes of a document that are read.
const MOST: usize = 2 * 1024 * 1024;
/// Lines that make a change more than a touch.
const SUBSTANTIAL: u64 = 100;

/// A document, or what stands in its place.
fn document(cx: &CheckCx, name: &'static str) -> Result<Result<String, Finding>, CouldNot> {
    let bad = |what: &str| Ok(Err(Finding::at(name, None, "document", what, None)));
    let found = cx.facts()?.read_blob(cx.head(), name, MOST);
    let blob = match found {
        Ok(Some(blob)) => blob,
        Ok(None) => return bad("is not there"),
        Err(peers_git::GitError::TooLarge { .. }) => return bad("is too large"),
        Err(error) => return Err(CouldNot::git("read a document", &error)),
    };
    if !matches!(blob.mode, 0o100_644 | 0o100_755) {
        return bad("is not a regular file");
    }
    match String::from_utf8(blob.bytes) {
        Ok(text) => Ok(Ok(text)),
        Err(_) => bad("is not UTF-8"),
    }
}

fn present(cx: &CheckCx) -> Result<Report, CouldNot> {
    let mut findings = Vec::new();
    for (name, _) in DOCS {
        match document(cx, name)? {
            Ok(text) if text.len() < MIN_BYTES => {
                let what = format!("has {} bytes, of {MIN_BYTES}", text.len());
                findings.push(Finding::at(name, None, "document", &what, None));
            }
            Ok(text) => findings.extend(padding(name, &text)),
            Err(finding) => findings.push(finding),
        }
    }
    Ok(answer(findings, "all three documents are there"))
}

/// A document that says the same again and again.
fn padding(name: &str, text: &str) -> Option<Finding> {
    const SENTENCE: usize = 20;
    let sentences: Vec<String> = text
        .split(['.', '\n'])
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|part| part.len() >= SENTENCE)
        .collect();
    let distinct = sentences.iter().collect::<BTreeSet<_>>().len();
    let repeated = sentences.len() - distinct;
    // At a fifth of them it is padding.
    (repeated * 5 >= sentences.len().max(1) && repeated > 0).then(|| {
        let what = format!("{repeated} of {} sentences stand there already", sentences.len());
        Finding::at(name, None, "padding", &what, None)
    })
}

fn sections(cx: &CheckCx) -> Result<Report, CouldNot> {
    let mut findings = Vec::new();
    for (name, due) in DOCS {
        let text = match document(cx, name)? {
            Ok(text) => text,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        for section in due {
            let body = peers_model::trailer::sections(&text, section).next();
            let said = body.map(|body| body.trim().chars().count());
            let what = match said {
                None => format!("has no section `## {section}`"),
                Some(said) if said < MIN_SECTION => {
                    format!("its section `## {section}` has {said} characters, of {MIN_SECTION}")
                }
                Some(_) => continue,
            };
            findings.push(Finding::at(name, None, "section", &what, None));
        }
    }
    Ok(answer(findings, "each document has its sections"))
}

/// The newest commits that touch the documents change little: one of each peer where peers are known, else so many.
fn converged(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let whose = cx.attribution_if_any()?.map(|attribution| Whose::new(cx, attribution)).transpose()?;
    let facts = cx.facts()?;
    let fail = |e| CouldNot::git("compare the documents", &e);
    let (mut small, mut peers, mut findings) = (0_usize, BTreeSet::new(), Vec::new());
    for commit in cx.commits()?.iter().rev() {
        let Some(parent) = commit.parents.first() else { break };
        let before = facts.tree_of(parent).map_err(fail)?;
        let changes = facts.diff_trees(&before, &commit.tree).map_err(fail)?;
        let of_docs: Vec<_> =
            changes.iter().filter(|change| DOCS.iter().any(|(name, _)| change.path == *name)).collect();
        if of_docs.is_empty() {
            continue;
        }
        let (added, deleted) =
            of_docs.iter().fold((0, 0), |(a, d), change| (a + change.added, d + change.deleted));
        let text =
            facts.diff_text(&before, &commit.tree, |path| DOCS.iter().any(|(name, _)| path == *name), MOST);
        let heading = text.map_err(fail)?.text.lines().any(|line| line.starts_with("+## "));
        let what = if added >= SUBSTANTIAL {
            Some(format!("adds {added} lines"))
        } else if deleted * 2 >= added + deleted && deleted > 0 {
            Some(format!("takes {deleted} lines away and adds {added}"))
        } else if heading {
            Some("adds a section".to_owned())
        } else {
            None
        };
        if let Some(what) = what {
            findings.push(Finding::about(
                &commit.id,
                "substantial",
                &format!("this change to the documents {what}"),
            ));
            break;
        }
        match whose.as_ref().map(|whose| whose.author(&commit.id)) {
            Some(Author::Peer(peer)) => small += usize::from(peers.insert(peer)),
            Some(_) => {}
            None => small += 1,
        }
        if small >= least {
            return Ok(Report::new(
                Verdict::Pass,
                format!("the newest {small} changes to the documents are small"),
            ));
        }
    }
    let mut report = answer(findings, "");
    report.verdict = Verdict::Fail;
    report.summary = format!("{small} of {least} small changes in a row, each of another peer");
    Ok(report)
}

fn answer(findings: Vec<Finding>, good: &str) -> Report {
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, good),
        1 => Report::new(Verdict::Fail, "1 finding"),
        n => Report::new(Verdict::Fail, format!("{n} findings")),
    };
    report.findings = findings;
    report
}
