//! `deps-justified`: who adds a dependency says why (`modes.md` §3.1).

use std::collections::{BTreeMap, BTreeSet};

use peers_model::CommitId;
use peers_model::bug::reason_chars;
use peers_model::check::{self, Args};
use peers_model::trailer::Message;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::manifests;
use crate::report::{Finding, Report, Verdict};

pub(crate) const CHECK: Check = Check {
    name: check::DEPS_JUSTIFIED.name,
    about: "Each new dependency is justified in a commit",
    args: check::DEPS_JUSTIFIED.args,
    run,
};

/// A larger manifest is no manifest.
const MOST: usize = 2 * 1024 * 1024;

fn run(cx: &CheckCx, args: &Args) -> Report {
    judge(cx, args.number(&check::DEPS_JUSTIFIED, "min-reason")).unwrap_or_else(Report::from)
}

fn judge(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let Some(base) = cx.base() else {
        let mut report = Report::new(Verdict::Error, "there is no base to compare with");
        report.hint = Some("name one: `--base REF`".to_owned());
        return Ok(report);
    };
    let mut findings = Vec::new();
    let before = declared(cx, base, &mut Vec::new())?;
    let now = declared(cx, cx.head(), &mut findings)?;
    let mut justified: BTreeMap<String, usize> = BTreeMap::new();
    for commit in cx.commits()? {
        for value in Message::parse(&commit.message).trailers.all("Dependency-Justification") {
            let (name, reason) = value.split_once([' ', ':']).unwrap_or((value, ""));
            let said = reason_chars(reason.trim_start_matches([':', '-', ' ']));
            let longest = justified.entry(manifests::normal(name.trim_end_matches(':'))).or_default();
            *longest = said.max(*longest);
        }
    }
    let mut added = 0;
    for (path, names) in &now {
        let none = BTreeSet::new();
        let known = before.get(path).unwrap_or(&none);
        // Moved from one manifest to another it is no new one.
        let elsewhere = |name: &String| before.values().any(|names| names.contains(name));
        for name in names.difference(known).filter(|name| !elsewhere(name)) {
            added += 1;
            match justified.get(name) {
                Some(said) if *said >= least => {}
                Some(said) => {
                    let what = format!("`{name}` is new, and its reason has {said} characters, of {least}");
                    findings.push(Finding::at(path, None, "dependency", &what, None));
                }
                None => {
                    findings.push(Finding::at(
                        path,
                        None,
                        "dependency",
                        &format!("`{name}` is new, and no commit says why"),
                        None,
                    ));
                }
            }
        }
    }
    let summary = match (added, findings.len()) {
        (0, 0) => "no new dependency".to_owned(),
        (n, 0) => format!("{n} new dependencies, all justified"),
        (_, bad) => format!("{bad} without a justification"),
    };
    let mut report = Report::new(if findings.is_empty() { Verdict::Pass } else { Verdict::Fail }, summary);
    report.count("manifests", now.len());
    report.count("added", added);
    report.hint = (!findings.is_empty())
        .then(|| format!("commit with the trailer `Dependency-Justification: NAME REASON`, at least {least} characters of reason"));
    report.findings = findings;
    Ok(report)
}

/// What each manifest of a commit declares, by path; one that cannot be read is a finding.
fn declared(
    cx: &CheckCx,
    commit: &CommitId,
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<String, BTreeSet<String>>, CouldNot> {
    let facts = cx.facts()?;
    let fail = |e| CouldNot::git("read the manifests", &e);
    let mut all = BTreeMap::new();
    for file in
        facts.list_tree(commit).map_err(fail)?.into_iter().filter(|file| manifests::is_one(&file.path))
    {
        let bytes = facts.read_object(&file.id, MOST).map_err(fail)?;
        match manifests::names(&file.path, &bytes) {
            Ok(names) => drop(all.insert(file.path, names)),
            Err(why) => findings.push(Finding::at(&file.path, None, "unreadable", &why, None)),
        }
    }
    Ok(all)
}
