//! `architecture-drift`: the sources import what the intended architecture lets them (`modes.md` §5.10). Advice.
//!
//! A rule is a line such as ``- `core` must not call `ui` `` or ``- `cli` may call `core`, `store` ``. Those of the
//! first version of the file hold as well as those of the newest, so that taking one out changes nothing.

use std::collections::BTreeSet;

use peers_code::{Import, Language, Source};
use peers_model::check::{self, Args};
use peers_model::limits;

use super::step_advice::advised;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{PLAN, Written, written};
use crate::report::{Finding, Report, Verdict};
use crate::reviews::Reviews;
use crate::scan::{Which, answer, at_line, nothing_to_scan, scan};

pub(crate) const CHECK: Check = Check {
    name: check::ARCHITECTURE_DRIFT.name,
    about: "No source imports what ARCHITECTURE.intended.md says that it must not call (advice)",
    args: check::ARCHITECTURE_DRIFT.args,
    run: |cx, args: &Args| advised(args, judge(cx).unwrap_or_else(Report::from)),
};

const INTENDED: &str = "ARCHITECTURE.intended.md";
/// What a line has that is a rule, and whether it forbids what it names or all else.
const PHRASES: [(&str, bool); 6] = [
    ("must not call", true),
    ("may not call", true),
    ("must never call", true),
    ("may only call", false),
    ("may call only", false),
    ("may call", false),
];

/// The parts of a dotted name, of a path or of a module, as they are compared.
type Parts = Vec<String>;

/// What one part of the program must not call, or all that it may call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    of: String,
    forbids: bool,
    named: Vec<String>,
}

fn judge(cx: &CheckCx) -> Result<Report, CouldNot> {
    let now = match written(cx, INTENDED)? {
        Written::Text(text) => Ok(text),
        Written::Not(why) => Err(why),
    };
    let first = first_version(cx)?;
    let mut findings = Vec::new();
    if let Err(why) = now {
        findings.push(Finding::at(INTENDED, None, "intended", why, None));
    }
    let mut rules: Vec<Rule> = Vec::new();
    for text in first.iter().chain(now.iter()) {
        for (line, text) in (1..).zip(text.lines()) {
            match rule(text) {
                Some(Ok(rule)) if !rules.contains(&rule) => rules.push(rule),
                Some(Err(())) => {
                    let what = "a rule names both sides in backticks: - `a` must not call `b`";
                    findings.push(Finding::at(INTENDED, at_line(line), "rule", what, None));
                }
                Some(Ok(_)) | None => {}
            }
        }
    }
    if rules.is_empty() {
        let mut report =
            Report::new(Verdict::Fail, format!("{INTENDED} says of no part what it must not call"));
        report.findings = findings;
        return Ok(report);
    }
    let scan = scan(cx, Which::Sources, &|path: &str, source: &Source<'_>| {
        let imports = source.imports().into_iter();
        imports.map(|import| (import.line, targets(path, source.language(), &import))).collect::<Vec<_>>()
    })?;
    let files = scan.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let components: BTreeSet<&str> =
        rules.iter().flat_map(|rule| rule.named.iter().chain([&rule.of])).map(String::as_str).collect();
    for component in &components {
        if !scan.found.iter().any(|(path, _)| holds(&parts_of(path), component)) {
            let what = format!("`{component}` is no part of the sources: its rules judge nothing");
            findings.push(Finding::at(INTENDED, None, "unknown-part", &what, None));
        }
    }
    let mut amendments = None;
    for (path, imports) in &scan.found {
        let from = parts_of(path);
        for rule in rules.iter().filter(|rule| holds(&from, &rule.of)) {
            for (line, to) in imports {
                let Some(called) = broken(rule, to, &components) else { continue };
                let amended = match &amendments {
                    Some(known) => known,
                    None => amendments.insert(reviewed_amendments(cx)?),
                };
                let names = |text: &String| {
                    let named = in_backticks(text);
                    named.contains(&rule.of) && named.iter().any(|name| name == called)
                };
                if !amended.iter().any(names) {
                    let what =
                        format!("`{}` imports of `{called}`, which its rules do not let it call", rule.of);
                    findings.push(Finding::at(path, at_line(*line), "drift", &what, None));
                }
            }
        }
    }
    findings.dedup();
    let mut report = answer(files, findings, scan.unreadable, false);
    report.count("rules", rules.len());
    report.hint = (report.verdict == Verdict::Fail).then(|| {
        format!("a line of `## Architecture Amendment` in {PLAN} that names both parts in backticks excuses one, once another peer committed `Peers-Review: {PLAN}@<blob>#L<line>`")
    });
    Ok(report)
}

/// The text of the file as it came into the history.
fn first_version(cx: &CheckCx) -> Result<Option<String>, CouldNot> {
    let mut first = cx.base().cloned().filter(|base| {
        cx.facts().is_ok_and(|facts| facts.file_id(base, INTENDED).is_ok_and(|id| id.is_some()))
    });
    if first.is_none() {
        cx.each_new_file(|commit, file| {
            if file.path == INTENDED {
                first.get_or_insert_with(|| commit.clone());
            }
        })?;
    }
    let Some(first) = first else { return Ok(None) };
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    Ok(String::from_utf8(cx.read_at(&first, INTENDED, cap)?).ok())
}

/// The rule of a line, if it has the words of one.
fn rule(text: &str) -> Option<Result<Rule, ()>> {
    let (before, after, forbids) = PHRASES.iter().find_map(|(phrase, forbids)| {
        let (before, after) = text.split_once(phrase)?;
        Some((before, after, *forbids))
    })?;
    let of = in_backticks(before).pop();
    let named = in_backticks(after);
    Some(of.filter(|_| !named.is_empty()).map(|of| Rule { of, forbids, named }).ok_or(()))
}

fn in_backticks(text: &str) -> Vec<String> {
    let each = text.split('`').skip(1).step_by(2);
    each.filter(|name| !parts(name).is_empty()).map(str::to_owned).collect()
}

/// The part that an import calls against a rule.
fn broken<'r>(rule: &'r Rule, to: &[Parts], components: &BTreeSet<&'r str>) -> Option<&'r str> {
    let calls = |name: &&str| to.iter().any(|to| holds(to, name));
    let inside = calls(&rule.of.as_str());
    if rule.forbids {
        return rule.named.iter().map(String::as_str).find(calls);
    }
    let listed = |name: &&str| rule.named.iter().any(|named| named == name) || *name == rule.of;
    if inside || rule.named.iter().any(|name| calls(&name.as_str())) {
        return None;
    }
    components.iter().copied().filter(|name| !listed(name)).find(calls)
}

/// Whether something belongs to a component: the parts of its name stand in it one behind another.
fn holds(of: &[String], component: &str) -> bool {
    let named = parts(component);
    !named.is_empty() && of.windows(named.len()).any(|window| window == named)
}

fn parts(name: &str) -> Parts {
    let each = name.split(['/', '.', ':']).filter(|part| !part.is_empty() && *part != "src");
    each.map(|part| part.replace('-', "_")).collect()
}

/// The parts of the module that a file is.
fn parts_of(path: &str) -> Parts {
    parts(&peers_code::module_name(path))
}

/// What an import may mean: the module, and what is taken of it.
fn targets(path: &str, language: Language, import: &Import) -> Vec<Parts> {
    let own = || {
        let dirs = path.rsplit_once('/').map_or("", |(dirs, _)| dirs);
        parts(dirs)
    };
    let module = import.module.as_str();
    let base = match language {
        Language::Python => {
            let dots = module.len() - module.trim_start_matches('.').len();
            if dots == 0 { parts(module) } else { above(own(), dots - 1, parts(module)) }
        }
        Language::JavaScript if module.starts_with('.') => {
            let ups = module.split('/').filter(|part| *part == "..").count();
            let stem = module.rsplit_once('/').map_or(module, |(_, name)| name);
            let ends = if stem.contains('.') {
                module.rsplit_once('.').map_or(module, |(module, _)| module)
            } else {
                module
            };
            above(own(), ups, parts(ends))
        }
        Language::Rust => {
            let named = parts(module);
            let ups = named.iter().take_while(|part| *part == "super").count();
            let first = named.first().map(String::as_str);
            let rest = named.iter().skip_while(|part| matches!(part.as_str(), "super" | "self" | "crate"));
            let rest: Parts = rest.cloned().collect();
            match first {
                Some("crate") => {
                    let top = path.split_once("src/").map_or("", |(top, _)| top);
                    above(parts(top), 0, rest)
                }
                Some("super" | "self") => above(parts_of(path), ups, rest),
                _ => rest,
            }
        }
        Language::JavaScript | Language::Go => parts(module),
    };
    let of_names = import.names.iter().map(|name| above(base.clone(), 0, parts(name)));
    let mut all: Vec<Parts> = of_names.collect();
    all.push(base);
    all
}

/// So many levels above a place, and down from there.
fn above(mut place: Parts, levels: usize, down: Parts) -> Parts {
    place.truncate(place.len().saturating_sub(levels));
    place.extend(down);
    place
}

/// The lines of amendments of the plan that another peer than their author reviewed.
fn reviewed_amendments(cx: &CheckCx) -> Result<Vec<String>, CouldNot> {
    let Written::Text(text) = written(cx, PLAN)? else { return Ok(Vec::new()) };
    let mut open = false;
    let mut said = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("## ") {
            open = text.trim_end() == "## Architecture Amendment";
        } else if open && !text.trim().is_empty() || text.starts_with("Architecture-Amendment:") {
            said.push((line, text.to_owned()));
        }
    }
    if said.is_empty() {
        return Ok(Vec::new());
    }
    let reviews = Reviews::read(cx)?;
    let mut reviewed = Vec::new();
    for (line, text) in said {
        if reviews.is_reviewed(PLAN, line..=line)? {
            reviewed.push(text);
        }
    }
    Ok(reviewed)
}
