//! `delivery`, `concerns`, `honesty-audit`, `honesty-audit-extra`: what peers write down about their own work
//! (`modes.md` §5.8, §5.9).

use std::collections::{BTreeMap, BTreeSet};

use peers_core::classify_path::PathKind;
use peers_core::plan::{Mark, Plan, Step};
use peers_git::Origin;
use peers_model::check::{self, Args};
use peers_model::{CommitId, PeerName};

use crate::attribution::Writer;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Written, at_head, frozen, steps, written};
use crate::report::{Finding, Report, Verdict};
use crate::reviews::Reviews;

const DELIVERY_FILE: &str = "DELIVERY.md";
pub(super) const CONCERNS_FILE: &str = "CONCERNS.md";
const HONESTY_FILE: &str = "HONESTY_AUDIT.md";
/// Words of a part of the audit are more than this.
const PART: usize = 5;
const PARTS: [&str; 3] = ["Weakest part", "Likely uncaught bug", "Skipped or shortcut"];

pub(crate) const DELIVERY: Check = Check {
    name: check::DELIVERY.name,
    about: "DELIVERY.md says of each step which commit did it, how it is tested, and why it is right",
    args: check::DELIVERY.args,
    run: |cx, _| match at_head(cx) {
        Ok(plan) => delivery(cx, &plan).unwrap_or_else(Report::from),
        Err(report) => *report,
    },
};

pub(crate) const CONCERNS: Check = Check {
    name: check::CONCERNS.name,
    about: "CONCERNS.md holds concerns, and each is addressed or accepted by the operator",
    args: check::CONCERNS.args,
    run: |cx, _| concerns(cx).unwrap_or_else(Report::from),
};

pub(crate) const HONESTY: Check = Check {
    name: check::HONESTY_AUDIT.name,
    about: "HONESTY_AUDIT.md has a section of each peer, written by that peer after the last change of the code",
    args: check::HONESTY_AUDIT.args,
    run: |cx, _| honesty(cx).unwrap_or_else(Report::from),
};

pub(crate) const HONESTY_EXTRA: Check = Check {
    name: check::HONESTY_AUDIT_EXTRA.name,
    about: "The further peer that the plan names (`honesty_audit_peer`) has its section in HONESTY_AUDIT.md",
    args: check::HONESTY_AUDIT_EXTRA.args,
    run: |cx, args| honesty_extra(cx, args).unwrap_or_else(Report::from),
};

/// The text of one of these files, or the failure that it is not there.
pub(super) fn text(cx: &CheckCx, path: &str) -> Result<Result<String, Report>, CouldNot> {
    Ok(match written(cx, path)? {
        Written::Text(text) => Ok(text),
        Written::Not(why) => Err(Report::new(Verdict::Fail, format!("{path} {why}"))),
    })
}

pub(super) fn failed_if(findings: Vec<Finding>, good: String, bad: String) -> Report {
    let mut report =
        if findings.is_empty() { Report::new(Verdict::Pass, good) } else { Report::new(Verdict::Fail, bad) };
    report.findings = findings;
    report
}

/// A section of a document: a heading of one level, and the lines below it up to the next of its level or above.
#[derive(Debug)]
pub(super) struct Section<'t> {
    pub(super) title: &'t str,
    /// The line of the heading, from 1.
    pub(super) line: usize,
    /// The lines below it, with their numbers.
    pub(super) body: Vec<(usize, &'t str)>,
}

/// The sections of a level (2 for `##`), outside of fenced blocks.
pub(super) fn sections<'t>(lines: &[(usize, &'t str)], level: usize) -> Vec<Section<'t>> {
    let mut found: Vec<Section<'t>> = Vec::new();
    let (mut open, mut fenced) = (false, false);
    for (line, text) in lines {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let hashes = text.bytes().take_while(|b| *b == b'#').count();
        let title = text.get(hashes..).filter(|rest| rest.starts_with(' ')).filter(|_| !fenced);
        match title {
            Some(title) if hashes == level => {
                found.push(Section { title: title.trim(), line: *line, body: Vec::new() });
                open = true;
            }
            Some(_) if hashes > 0 && hashes < level => open = false,
            _ if open => {
                if let Some(section) = found.last_mut() {
                    section.body.push((*line, text));
                }
            }
            _ => {}
        }
    }
    found
}

pub(super) fn numbered(text: &str) -> Vec<(usize, &str)> {
    (1..).zip(text.lines()).collect()
}

pub(super) fn at(path: &str, line: usize, kind: &'static str, what: &str) -> Finding {
    Finding::at(path, u64::try_from(line).ok(), kind, what, None)
}

/// The first value of a field `- **Name:** value` or `name: value`, with its line.
fn field<'t>(section: &Section<'t>, name: &str) -> Option<(usize, &'t str)> {
    section.body.iter().find_map(|(line, text)| {
        let bare = text.trim_start_matches(['-', '*', ' ']);
        let (key, value) = bare.split_once(':')?;
        let fits = key.trim_matches(['*', ' ']).eq_ignore_ascii_case(name);
        fits.then(|| (*line, value.trim_start_matches('*').trim()))
    })
}

fn delivery(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let text = match text(cx, DELIVERY_FILE)? {
        Ok(text) => text,
        Err(report) => return Ok(report),
    };
    let lines = numbered(&text);
    let sections = sections(&lines, 2);
    let mut findings = Vec::new();
    for step in &plan.steps {
        let head = format!("[{}]", step.id);
        match sections.iter().find(|section| section.title.starts_with(&head)) {
            None => {
                let what = format!("no section `## {head} ...`");
                findings.push(Finding::at(DELIVERY_FILE, None, "missing-step", &what, None));
            }
            Some(section) => findings.extend(undelivered(step, section)),
        }
    }
    let n = plan.steps.len();
    let bad = format!("{DELIVERY_FILE} is not complete");
    let mut report = failed_if(findings, format!("{} delivered", steps(n)), bad);
    report.count("steps", n);
    Ok(report)
}

/// What the section of a step lacks.
fn undelivered(step: &Step, section: &Section<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["Commit", "Tests", "Justification"] {
        match field(section, name) {
            None => findings.push(at(
                DELIVERY_FILE,
                section.line,
                "missing-field",
                &format!("{}: no `- **{name}:**`", step.id),
            )),
            Some((line, "")) => {
                findings.push(at(DELIVERY_FILE, line, "blank", &format!("{}: `{name}` is blank", step.id)));
            }
            Some((line, value)) if name == "Commit" && step.mark == Mark::Done => {
                let said = value.trim_matches('`');
                let due = step.sha.as_deref().unwrap_or_default();
                let same =
                    said.len() >= 7 && due.len() >= 7 && (said.starts_with(due) || due.starts_with(said));
                if !same {
                    let what = format!("{}: its commit is `{said}` here and `{due}` in the plan", step.id);
                    findings.push(at(DELIVERY_FILE, line, "other-commit", &what));
                }
            }
            Some(_) => {}
        }
    }
    findings
}

/// How a concern stands, as its author wrote it.
enum Status<'t> {
    Open,
    Addressed(&'t str),
    Accepted,
    Other,
}

fn status(value: &str) -> Status<'_> {
    let commit = value.strip_prefix("addressed").and_then(|rest| {
        let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
        inner.trim().strip_prefix("commit:").map(|sha| sha.trim().trim_matches('`'))
    });
    let reason = value.strip_prefix("[USER-ACK]").and_then(|rest| {
        let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
        inner.trim().strip_prefix("reason:").map(str::trim).filter(|reason| !reason.is_empty())
    });
    match (value, commit, reason) {
        ("open", ..) => Status::Open,
        (_, Some(commit), _) => Status::Addressed(commit),
        (.., Some(_)) => Status::Accepted,
        _ => Status::Other,
    }
}

fn concerns(cx: &CheckCx) -> Result<Report, CouldNot> {
    let text = match text(cx, CONCERNS_FILE)? {
        Ok(text) => text,
        Err(report) => return Ok(report),
    };
    let lines = numbered(&text);
    let found: Vec<Section<'_>> =
        sections(&lines, 2).into_iter().filter(|section| section.title.starts_with("Concern ")).collect();
    if found.is_empty() {
        let mut report = Report::new(Verdict::Fail, format!("{CONCERNS_FILE} holds no concern"));
        report.hint =
            Some("a review that finds nothing to doubt was none: `## Concern <id> — <summary>`".to_owned());
        return Ok(report);
    }
    let reviews = Reviews::read(cx)?;
    let origins = reviews.origins(cx.head(), CONCERNS_FILE)?;
    let mut findings = Vec::new();
    for section in &found {
        findings.extend(unresolved(cx, &reviews, &origins, section)?);
    }
    let raised: BTreeSet<&str> =
        found.iter().filter_map(|section| field(section, "raised-tick")).map(|(_, tick)| tick).collect();
    let n = found.len();
    let bad = format!("{} of {n} concerns not resolved", findings.len());
    let mut report = failed_if(findings, format!("{n} concerns resolved"), bad);
    if report.verdict == Verdict::Pass && n > 1 && raised.len() < 2 {
        report.verdict = Verdict::Warn;
        report.summary = format!("{n} concerns resolved, all of them raised in one tick");
    }
    report.count("concerns", n);
    Ok(report)
}

/// Why a concern is not resolved.
fn unresolved(
    cx: &CheckCx,
    reviews: &Reviews<'_>,
    origins: &[Origin],
    section: &Section<'_>,
) -> Result<Option<Finding>, CouldNot> {
    let id = section.title.trim_start_matches("Concern ").split_whitespace().next().unwrap_or_default();
    let bad = |line, kind, what: String| Ok(Some(at(CONCERNS_FILE, line, kind, &format!("{id}: {what}"))));
    if field(section, "raised-tick").is_none() {
        return bad(section.line, "malformed", "no `raised-tick:`".to_owned());
    }
    let Some((line, value)) = field(section, "status") else {
        return bad(section.line, "malformed", "no `status:`".to_owned());
    };
    match status(value) {
        Status::Open => bad(line, "open", "is open".to_owned()),
        Status::Other => bad(
            line,
            "malformed",
            "its status is none of `open`, `addressed (commit: <sha>)`, `[USER-ACK] (reason: ...)`"
                .to_owned(),
        ),
        Status::Accepted if cx.attribution().map_err(CouldNot::clone)?.concerns().contains(id) => Ok(None),
        Status::Accepted => bad(
            line,
            "unacknowledged",
            format!("no record of the operator accepts it: `peers ack concern:{id} --reason TEXT`"),
        ),
        Status::Addressed(sha) => {
            let fitting =
                reviews.commits().iter().find(|commit| sha.len() >= 7 && commit.id.as_str().starts_with(sha));
            let Some(fix) = fitting else {
                return bad(
                    line,
                    "unknown-commit",
                    "it names no commit of this history since the base".to_owned(),
                );
            };
            let writer = |line: usize| {
                line.checked_sub(1).and_then(|at| origins.get(at)).map(|line| reviews.writer(line))
            };
            let (raised, said, fixed) = (writer(section.line), writer(line), reviews.whose().writer(&fix.id));
            match (raised, said) {
                (Some(Writer::Unknown) | None, _) | (_, Some(Writer::Unknown) | None) => {
                    bad(line, "unattributed", "nobody saw who wrote it".to_owned())
                }
                (_, Some(said @ Writer::Peer(_))) if said == fixed => {
                    bad(line, "self-resolved", "who fixed it marked it as addressed".to_owned())
                }
                (Some(raised), Some(said)) if said != raised && said != Writer::Operator => bad(
                    line,
                    "self-resolved",
                    "not the peer that raised it marked it as addressed".to_owned(),
                ),
                _ => Ok(None),
            }
        }
    }
}

pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// The parts of a section of the audit that are missing or say nothing.
fn hollow(section: &Section<'_>) -> Vec<Finding> {
    let parts = sections(&section.body, 3);
    let mut findings = Vec::new();
    for name in PARTS {
        let bad =
            |line, what| at(HONESTY_FILE, line, "part", &format!("{}: `### {name}` {what}", section.title));
        match parts.iter().find(|part| part.title.eq_ignore_ascii_case(name)) {
            None => findings.push(bad(section.line, "is missing")),
            Some(part) if words(&said(part)) <= PART => findings.push(bad(part.line, "says next to nothing")),
            Some(_) => {}
        }
    }
    findings
}

pub(super) fn said(section: &Section<'_>) -> String {
    section.body.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn honesty(cx: &CheckCx) -> Result<Report, CouldNot> {
    let text = match text(cx, HONESTY_FILE)? {
        Ok(text) => text,
        Err(report) => return Ok(report),
    };
    let reviews = Reviews::read(cx)?;
    let origins = reviews.origins(cx.head(), HONESTY_FILE)?;
    let lines = numbered(&text);
    let found = sections(&lines, 2);
    let mut findings = Vec::new();
    let mut texts: BTreeMap<String, &str> = BTreeMap::new();
    let mut of_peers = BTreeSet::new();
    for section in &found {
        let peer = PeerName::new(section.title.to_ascii_lowercase()).ok();
        let configured = cx.peers().iter().find(|peer| peer.as_str().eq_ignore_ascii_case(section.title));
        let Some(peer) = configured.cloned().or(peer) else {
            findings.push(at(
                HONESTY_FILE,
                section.line,
                "no-peer",
                &format!("`{}` is not a peer", section.title),
            ));
            continue;
        };
        findings.extend(hollow(section));
        findings.extend(foreign(&reviews, &origins, section, &peer));
        if let Some(other) = texts.insert(said(section), section.title) {
            findings.push(at(
                HONESTY_FILE,
                section.line,
                "copied",
                &format!("{} says what {other} says", section.title),
            ));
        }
        of_peers.insert(peer);
    }
    for peer in cx.peers().iter().filter(|peer| !of_peers.contains(peer)) {
        findings.push(Finding::at(
            HONESTY_FILE,
            None,
            "missing-peer",
            &format!("no section `## {peer}`"),
            None,
        ));
    }
    if of_peers.len() < 2 {
        findings.push(Finding::at(HONESTY_FILE, None, "missing-peer", "fewer than two peers audit", None));
    }
    if findings.is_empty()
        && let Some(commit) = newer_change(cx, &reviews)?
    {
        let what = "changed the code after the audit was written";
        findings.push(Finding::about(&commit, "outdated", what));
    }
    let n = of_peers.len();
    let mut report =
        failed_if(findings, format!("{n} peers audit themselves"), format!("{HONESTY_FILE} is not complete"));
    report.count("peers", n);
    Ok(report)
}

/// Lines of a section that another one than its peer wrote.
fn foreign(
    reviews: &Reviews<'_>,
    origins: &[Origin],
    section: &Section<'_>,
    peer: &PeerName,
) -> Option<Finding> {
    let own = Writer::Peer(peer.clone());
    let written = section.body.iter().filter(|(_, text)| !text.trim().is_empty());
    let other = written.map(|(line, _)| *line).find(|line| {
        let origin = line.checked_sub(1).and_then(|at| origins.get(at));
        origin.is_none_or(|origin| reviews.writer(origin) != own)
    })?;
    Some(at(HONESTY_FILE, other, "foreign", &format!("{}: not written by that peer", section.title)))
}

/// The newest commit that changed code after the newest change of the audit.
fn newer_change(cx: &CheckCx, reviews: &Reviews<'_>) -> Result<Option<CommitId>, CouldNot> {
    let facts = cx.facts()?;
    let fail = |e| CouldNot::git("read what a commit changed", &e);
    for commit in reviews.commits().iter().rev() {
        let Some(parent) = commit.parents.first() else { continue };
        let before = facts.tree_of(parent).map_err(fail)?;
        let changed = facts.changed_paths(&before, &commit.tree).map_err(fail)?;
        if changed.iter().any(|path| path == HONESTY_FILE) {
            return Ok(None);
        }
        if changed.iter().any(|path| cx.tests().classify(path) == PathKind::Source) {
            return Ok(Some(commit.id.clone()));
        }
    }
    Ok(None)
}

fn honesty_extra(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let Some(peer) = frozen(cx)?.meta.honesty_audit_peer else {
        return Ok(Report::new(Verdict::Skip, "the plan names no `honesty_audit_peer`"));
    };
    let bad = if args.is_asked("strict") { Verdict::Fail } else { Verdict::Warn };
    let text = match text(cx, HONESTY_FILE)? {
        Ok(text) => text,
        Err(report) => return Ok(Report { verdict: bad, ..report }),
    };
    let lines = numbered(&text);
    let found = sections(&lines, 2);
    let section = found.iter().find(|section| section.title.eq_ignore_ascii_case(peer.as_str()));
    let findings = match section {
        None => {
            vec![Finding::at(HONESTY_FILE, None, "missing-peer", &format!("no section `## {peer}`"), None)]
        }
        Some(section) => hollow(section),
    };
    let mut report =
        failed_if(findings, format!("{peer} audits too"), format!("the audit of {peer} is not complete"));
    if report.verdict == Verdict::Fail {
        report.verdict = bad;
    }
    Ok(report)
}
