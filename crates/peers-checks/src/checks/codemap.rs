//! `codemap-*`, `agents-in-sync`, `architecture-grounded`: the map of the public surface is true (`modes.md` §7).

use std::collections::{BTreeMap, BTreeSet};

use peers_code::Entry;
use peers_model::check;

use crate::check::Check;
use crate::codemap::{self, AGENTS, MAP, Said};
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const GROUNDED: Check = Check {
    name: check::CODEMAP_GROUNDED.name,
    about: "Each entry of CODEMAP.yaml is there, of its kind, in its file, at its line",
    args: check::CODEMAP_GROUNDED.args,
    run: |cx, _| judge(cx, grounded).unwrap_or_else(Report::from),
};

pub(crate) const SIGNATURES: Check = Check {
    name: check::CODEMAP_SIGNATURES.name,
    about: "Each entry of CODEMAP.yaml names the parameters that the code has",
    args: check::CODEMAP_SIGNATURES.args,
    run: |cx, _| judge(cx, signatures).unwrap_or_else(Report::from),
};

pub(crate) const COMPLETE: Check = Check {
    name: check::CODEMAP_COMPLETE.name,
    about: "Each public name stands in CODEMAP.yaml",
    args: check::CODEMAP_COMPLETE.args,
    run: |cx, _| judge(cx, complete).unwrap_or_else(Report::from),
};

pub(crate) const SUMMARIES: Check = Check {
    name: check::CODEMAP_SUMMARIES.name,
    about: "Each entry of CODEMAP.yaml has a summary that says something",
    args: check::CODEMAP_SUMMARIES.args,
    run: |cx, _| judge(cx, summaries).unwrap_or_else(Report::from),
};

pub(crate) const AGENTS_IN_SYNC: Check = Check {
    name: check::AGENTS_IN_SYNC.name,
    about: "The text for agents is what `peers agents-doc` makes of CODEMAP.yaml",
    args: check::AGENTS_IN_SYNC.args,
    run: |cx, _| in_sync(cx).unwrap_or_else(Report::from),
};

pub(crate) const ARCHITECTURE: Check = Check {
    name: check::ARCHITECTURE_GROUNDED.name,
    about: "What ARCHITECTURE.md names is there, and each subsystem is named",
    args: check::ARCHITECTURE_GROUNDED.args,
    run: |cx, _| architecture(cx).unwrap_or_else(Report::from),
};

/// What a summary must have: words, and more of them than the name has.
const LEAST_WORDS: usize = 5;
/// Bytes of a document that are read.
const MOST: usize = 2 * 1024 * 1024;
/// What stands in the place of something that is still to be written.
const PLACEHOLDERS: [&str; 8] = ["todo", "tbd", "fixme", "xxx", "...", "n/a", "wip", "lorem ipsum"];

/// The map, and what is really there.
struct Both {
    said: Vec<Said>,
    real: BTreeMap<String, Entry>,
    unreadable: Vec<(String, String)>,
}

/// A finding about an entry.
fn at(said: &Said, kind: &'static str, what: &str) -> Finding {
    Finding::at(MAP, None, kind, &format!("`{}` {what}", said.id), None)
}

fn judge(cx: &CheckCx, find: fn(&Both) -> Vec<Finding>) -> Result<Report, CouldNot> {
    let said = match codemap::said(cx)? {
        Ok(said) => said,
        Err(why) => return Ok(no_map(&why)),
    };
    let map = codemap::real(cx, cx.head())?;
    if map.entries.is_empty() && map.unreadable.is_empty() {
        return Ok(crate::scan::nothing_to_scan(cx, 0)
            .unwrap_or_else(|| Report::new(Verdict::Fail, "no source file: nothing to compare with")));
    }
    let real = map.entries.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
    let both = Both { said, real, unreadable: map.unreadable };
    let findings = find(&both);
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, format!("{} entries", both.said.len())),
        n => Report::new(Verdict::Fail, format!("{n} found in {} entries", both.said.len())),
    };
    report.count("entries", both.said.len());
    report.hint = (!findings.is_empty()).then(refresh_hint);
    report.findings = findings;
    Ok(report)
}

fn refresh_hint() -> String {
    "`peers codemap refresh` puts ids, kinds, files, lines and signatures right and keeps the summaries"
        .to_owned()
}

fn no_map(why: &str) -> Report {
    let mut report = Report::new(Verdict::Fail, format!("{MAP} {why}"));
    report.hint = Some(refresh_hint());
    report
}

fn grounded(both: &Both) -> Vec<Finding> {
    let mut findings = Vec::new();
    for said in &both.said {
        let Some(entry) = both.real.get(&said.id) else {
            findings.push(at(said, "unknown", "is not a public name of the sources"));
            continue;
        };
        let kind = codemap::kind_of(entry);
        if said.kind != kind {
            findings.push(at(said, "kind", &format!("is a {kind}, not a {}", said.kind)));
        }
        if said.file != entry.file {
            findings.push(at(said, "file", &format!("is in {}, not in {}", entry.file, said.file)));
        } else if usize::try_from(said.line) != Ok(entry.line) {
            findings.push(at(said, "line", &format!("is in line {}, not in {}", entry.line, said.line)));
        }
    }
    findings
}

fn signatures(both: &Both) -> Vec<Finding> {
    let mut findings = Vec::new();
    for said in &both.said {
        // What is not there is told by the check beside.
        let Some(real) = both.real.get(&said.id).and_then(|entry| entry.signature.as_deref()) else {
            continue;
        };
        let (is, says) = (codemap::params(real), said.signature.as_deref().map(codemap::params));
        if says.as_ref() != Some(&is) {
            let says = said.signature.as_deref().unwrap_or("nothing");
            findings.push(at(said, "signature", &format!("is `{real}`; the map says {says}")));
        }
    }
    findings
}

fn complete(both: &Both) -> Vec<Finding> {
    let listed: BTreeSet<&str> = both.said.iter().map(|said| said.id.as_str()).collect();
    let missing = both.real.values().filter(|entry| !listed.contains(entry.id.as_str()));
    let missing = missing.map(|entry| {
        let line = u64::try_from(entry.line).ok();
        Finding::at(&entry.file, line, "missing", &format!("`{}` is not in the map", entry.id), None)
    });
    let unreadable = both.unreadable.iter();
    missing.chain(unreadable.map(|(path, why)| Finding::at(path, None, "unreadable", why, None))).collect()
}

fn summaries(both: &Both) -> Vec<Finding> {
    let bad = both.said.iter().filter_map(|said| Some((said, empty(said)?)));
    bad.map(|(said, why)| at(said, "summary", why)).collect()
}

/// Why a summary says nothing.
fn empty(said: &Said) -> Option<&'static str> {
    let summary = said.summary.as_deref().unwrap_or_default().trim().to_lowercase();
    let words: Vec<&str> =
        summary.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Some("has no summary");
    }
    if PLACEHOLDERS.iter().any(|word| summary == *word || summary.starts_with(&format!("{word}:"))) {
        return Some("has a placeholder for a summary");
    }
    let name = said.id.to_lowercase();
    let fillers = ["the", "a", "an", "of", "for", "and", "to", "is", "it", "this", said.kind.as_str()];
    if words.len() < LEAST_WORDS {
        return Some("has a summary of fewer than five words");
    }
    let says = words.iter().any(|word| !name.contains(word) && !fillers.contains(word));
    (!says).then_some("has a summary that only repeats its name")
}

fn in_sync(cx: &CheckCx) -> Result<Report, CouldNot> {
    let said = match codemap::said(cx)? {
        Ok(said) => said,
        Err(why) => return Ok(no_map(&why)),
    };
    let due = codemap::rendered(&said);
    let mut report = match codemap::text_at(cx, AGENTS, MOST)? {
        Ok(text) if text == due => {
            return Ok(Report::new(Verdict::Pass, format!("{AGENTS} is true to {MAP}")));
        }
        Ok(_) => Report::new(Verdict::Fail, format!("{AGENTS} is not what {MAP} gives")),
        Err(why) => Report::new(Verdict::Fail, format!("{AGENTS} {why}")),
    };
    report.hint = Some("`peers agents-doc` writes it anew; commit it".to_owned());
    Ok(report)
}

fn architecture(cx: &CheckCx) -> Result<Report, CouldNot> {
    const DOC: &str = "ARCHITECTURE.md";
    let said = match codemap::said(cx)? {
        Ok(said) => said,
        Err(why) => return Ok(no_map(&why)),
    };
    let text = match codemap::text_at(cx, DOC, MOST)? {
        Ok(text) => text,
        Err(why) => return Ok(Report::new(Verdict::Fail, format!("{DOC} {why}"))),
    };
    let ids: BTreeSet<&str> = said.iter().map(|said| said.id.as_str()).collect();
    let (mut findings, mut anchored, mut fenced) = (Vec::new(), BTreeSet::new(), false);
    for (at, line) in text.lines().enumerate() {
        let number = u64::try_from(at + 1).ok();
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for part in line.split("[[").skip(1) {
            let Some((id, _)) = part.split_once("]]") else { continue };
            if ids.contains(id) {
                anchored.insert(id);
            } else {
                let what = format!("`{id}` is not in {MAP}");
                findings.push(Finding::at(DOC, number, "anchor", &what, None));
            }
        }
        let lower = line.to_lowercase();
        if ["todo", "tbd", "to be written", "placeholder"].iter().any(|word| lower.contains(word)) {
            findings.push(Finding::at(DOC, number, "placeholder", "this is still to be written", None));
        }
    }
    // A subsystem is a directory of modules, or a module beside them.
    let subsystems: BTreeSet<String> =
        said.iter().filter(|said| said.kind == "module").map(|said| subsystem(&said.id)).collect();
    for subsystem in &subsystems {
        let below = format!("{subsystem}.");
        if !anchored.iter().any(|id| id == subsystem || id.starts_with(&below)) {
            let what = format!(
                "the subsystem `{subsystem}` is named nowhere as `[[{subsystem}]]` or by what is in it"
            );
            findings.push(Finding::at(DOC, None, "subsystem", &what, None));
        }
    }
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, format!("{} subsystems, each named", subsystems.len())),
        n => Report::new(Verdict::Fail, format!("{n} found")),
    };
    report.findings = findings;
    Ok(report)
}

/// The first two names of a module: package and what is in it.
fn subsystem(id: &str) -> String {
    id.split('.').take(2).collect::<Vec<_>>().join(".")
}
