//! `test-skepsis`, `stitch`, `weasel`: whether what peers write of their work says something (`modes.md` §5.10).
//! Advice.

use peers_core::plan::Mark;
use peers_model::check::{self, Args};

use super::notes::{at, numbered, said, sections, words};
use super::step_advice::advised;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{PLAN, Written, at_head, steps, written};
use crate::report::{Finding, Report, Verdict};

pub(crate) const SKEPSIS: Check = Check {
    name: check::TEST_SKEPSIS.name,
    about: "Each doubt of TEST_SKEPSIS.md names a place and says something (advice)",
    args: check::TEST_SKEPSIS.args,
    run: |cx, args| skepsis(cx, args).unwrap_or_else(Report::from),
};

pub(crate) const STITCH: Check = Check {
    name: check::STITCH.name,
    about: "STITCH.md says how each three done steps fit together (advice)",
    args: check::STITCH.args,
    run: |cx, args| stitch(cx, args).unwrap_or_else(Report::from),
};

pub(crate) const WEASEL: Check = Check {
    name: check::WEASEL.name,
    about: "PLAN.md and DELIVERY.md say what is so, not what may be (advice)",
    args: check::WEASEL.args,
    run: |cx, args| weasel(cx, args).unwrap_or_else(Report::from),
};

const SKEPSIS_FILE: &str = "TEST_SKEPSIS.md";
const STITCH_FILE: &str = "STITCH.md";
const DELIVERY_FILE: &str = "DELIVERY.md";
/// Words of a doubt.
const DOUBT: usize = 10;
/// Words of a stitch.
const STITCHED: usize = 20;
/// Done steps of one stitch.
const OF_STITCH: usize = 3;

const BOILERPLATE: [&str; 8] =
    ["looks fine", "looks good", "lgtm", "passes", "it works", "works as expected", "no issues", "all good"];

const WEASELS: [&str; 10] = [
    "should work",
    "appears to",
    "probably",
    "i think",
    "seems to",
    "we believe",
    "i believe",
    "looks like it",
    "might work",
    "hopefully",
];

fn advice(args: &Args, findings: Vec<Finding>, good: String) -> Report {
    let mut report = match findings.len() {
        0 => Report::new(Verdict::Pass, good),
        n => Report::new(Verdict::Fail, format!("{n} found")),
    };
    report.findings = findings;
    advised(args, report)
}

fn skepsis(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let text = match written(cx, SKEPSIS_FILE)? {
        Written::Text(text) => text,
        Written::Not("is missing") => String::new(),
        Written::Not(why) => {
            return Ok(advice(args, vec![Finding::at(SKEPSIS_FILE, None, "note", why, None)], String::new()));
        }
    };
    let doubts: Vec<(usize, &str)> = numbered(&text)
        .into_iter()
        .filter_map(|(line, text)| Some((line, text.trim_start().strip_prefix(['-', '*'])?.trim())))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    if doubts.is_empty() {
        return Ok(Report::new(Verdict::Skip, format!("{SKEPSIS_FILE} has no doubt yet: none was due")));
    }
    let defect = |text: &str| {
        let lower = text.to_lowercase();
        let phrase = BOILERPLATE.iter().find(|phrase| has_phrase(&lower, phrase));
        let place = lower.contains("src/")
            || lower
                .split_once("line ")
                .is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
        match (phrase, words(text)) {
            (Some(phrase), _) => Some(format!("says `{phrase}`")),
            (None, n) if n < DOUBT => Some(format!("has {n} words, of {DOUBT}")),
            (None, _) if !place => Some("names no place: `src/...` or `line N`".to_owned()),
            (None, _) => None,
        }
    };
    let findings = doubts
        .iter()
        .filter_map(|(line, text)| Some(at(SKEPSIS_FILE, *line, "hollow", &defect(text)?)))
        .collect();
    Ok(advice(args, findings, format!("{} doubts name places", doubts.len())))
}

fn stitch(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let plan = match at_head(cx) {
        Ok(plan) => plan,
        Err(report) => return Ok(advised(args, *report)),
    };
    let done = plan.steps.iter().filter(|step| step.mark == Mark::Done).count();
    if done <= OF_STITCH {
        return Ok(Report::new(Verdict::Pass, format!("{} done: none is due yet", steps(done))));
    }
    let mut findings = Vec::new();
    let text = match written(cx, STITCH_FILE)? {
        Written::Text(text) => text,
        Written::Not(why) => {
            findings.push(Finding::at(STITCH_FILE, None, "note", why, None));
            String::new()
        }
    };
    let lines = numbered(&text);
    let found: Vec<_> =
        sections(&lines, 2).into_iter().filter(|section| section.title.starts_with("Stitch ")).collect();
    for section in &found {
        let n = words(&said(section));
        if n < STITCHED {
            let what = format!("`{}` has {n} words, of {STITCHED}", section.title);
            findings.push(at(STITCH_FILE, section.line, "hollow", &what));
        }
    }
    let due = done / OF_STITCH;
    if findings.is_empty() && found.len() < due {
        let what = format!("{} of {due} sections `## Stitch <n> — STEP-a..STEP-b`", found.len());
        findings.push(Finding::at(STITCH_FILE, None, "missing", &what, None));
    }
    Ok(advice(args, findings, format!("{} stitches of {}", found.len(), steps(done))))
}

fn weasel(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let (mut findings, mut read) = (Vec::new(), 0);
    for path in [PLAN, DELIVERY_FILE] {
        let text = match written(cx, path)? {
            Written::Text(text) => text,
            Written::Not("is missing") => continue,
            Written::Not(why) => {
                findings.push(Finding::at(path, None, "note", why, None));
                continue;
            }
        };
        read += 1;
        for (line, text) in numbered(&text) {
            let lower = text.to_lowercase();
            let phrase = WEASELS.iter().find(|phrase| has_phrase(&lower, phrase));
            findings.extend(phrase.map(|phrase| at(path, line, "weasel", &format!("says `{phrase}`"))));
        }
    }
    if read == 0 && findings.is_empty() {
        return Ok(Report::new(Verdict::Skip, format!("there is neither {PLAN} nor {DELIVERY_FILE}")));
    }
    Ok(advice(args, findings, "says what is so".to_owned()))
}

/// Whether a text has a phrase as whole words. Both in small letters.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        format!(" {} ", words.join(" "))
    };
    plain(text).contains(&plain(phrase))
}
