//! The section `## Steps`.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Mark, Step};
use super::problem::{Report, shown};
use super::{graph, line, meta};
use peers_model::StepId;

/// Steps of one plan.
pub const STEPS: usize = 1000;

const FORM: &str = "write `- [ ] [STEP-1] what to do`";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Touches,
    Depends,
    TrivialStep,
    PureDocumentation,
    PureRefactor,
    Confidence,
    Rationale,
    Notes,
    Accept,
}

impl Key {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "touches" => Self::Touches,
            "depends" => Self::Depends,
            "trivial_step" | "trivial" => Self::TrivialStep,
            "pure_documentation" => Self::PureDocumentation,
            "pure_refactor" => Self::PureRefactor,
            "confidence" => Self::Confidence,
            "rationale" => Self::Rationale,
            "notes" => Self::Notes,
            "accept" => Self::Accept,
            _ => return None,
        })
    }
}

/// What the lines said so far.
#[derive(Debug, Default)]
pub(super) struct StepLines {
    drafts: Vec<Draft>,
    ids: BTreeMap<StepId, usize>,
    /// Where the next key belongs.
    under: Under,
    /// A step has an id that cannot be read, so what is said of missing ones would be wrong.
    unread: bool,
    too_many: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Under {
    #[default]
    Nothing,
    /// The last draft.
    Step,
    /// A step that is told as an error, with all that it has.
    Broken,
}

/// A step and where its keys stand.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) step: Step,
    seen: BTreeMap<Key, usize>,
}

impl Draft {
    /// The line of what comes first.
    pub(super) fn depends_at(&self) -> usize {
        self.seen.get(&Key::Depends).copied().unwrap_or(self.step.line)
    }
}

impl StepLines {
    pub(super) fn line(&mut self, number: usize, line: &str, report: &mut Report) {
        let indented = line.starts_with(char::is_whitespace);
        let body = line.trim_start();
        let step = body.contains("] [STEP-");
        let item = body.strip_prefix(['-', '*', '+']);
        if !item.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '['])) {
            return self.prose(number, body, indented, report);
        }
        let untabbed;
        let body = if line.contains('\t') {
            report.error(number, "a tab: indent and separate with blanks");
            untabbed = body.replace('\t', " ");
            &untabbed
        } else {
            body
        };
        if indented && step {
            report.error(number, "a step is not indented");
        }
        if !indented || step {
            self.step(number, body, report);
        } else if let Some(rest) = body.strip_prefix('-') {
            self.key(number, rest.trim_start(), report);
        } else {
            report.warn(number, format!("`{}` is not read: write `- key: value`", shown(body)));
        }
    }

    /// What is neither a step nor a key of one is for people, unless it is only written wrongly.
    fn prose(&self, number: usize, body: &str, indented: bool, report: &mut Report) {
        if body.contains("] [STEP-") {
            report.warn(number, format!("this names a step and is none: {FORM}"));
        }
        if indented
            && self.under != Under::Nothing
            && let Some((word, _)) = line::pair(body)
            && Key::read(word).is_some()
        {
            report.warn(number, format!("this is not read: write `- {word}: ...`"));
        }
    }

    fn step(&mut self, number: usize, body: &str, report: &mut Report) {
        self.under = Under::Broken;
        let Some((mark, rest)) = body.strip_prefix("- [").and_then(|rest| rest.split_once(']')) else {
            // Where no step is meant, none is missing.
            self.unread |= body.contains("STEP-");
            return report.error(number, format!("`{}` is not a step: {FORM}", shown(body)));
        };
        let Some((id, text)) = rest.strip_prefix(" [").and_then(|rest| rest.split_once(']')) else {
            self.unread |= rest.contains("STEP-");
            return report.error(number, format!("`{}` is not a step: {FORM}", shown(body)));
        };
        let Ok(id) = id.parse::<StepId>() else {
            self.unread = true;
            let message =
                format!("`[{}]` is not an id: `[STEP-n]`, n from 1, without leading zeros", shown(id));
            return report.error(number, message);
        };
        let mark = Mark::read(mark).unwrap_or_else(|| {
            let known = "a blank, `x`, `PARTIAL`, `BLOCKED` or `BLOCKED-ACK`";
            report.error(number, format!("`[{}]` is not a mark: {known}", shown(mark)));
            Mark::Open
        });
        if self.drafts.len() >= STEPS {
            if !std::mem::replace(&mut self.too_many, true) {
                report.error(number, format!("a plan has at most {STEPS} steps"));
            }
            return;
        }
        if !text.is_empty() && !text.starts_with(' ') {
            report.error(number, format!("a blank is missing behind `[{id}]`"));
        }
        let (text, sha) = split_sha(text.trim());
        if text.is_empty() {
            report.error(number, format!("{id} does not say what to do"));
        }
        if let Some(first) = self.ids.get(&id) {
            report.error(number, format!("{id} stands in line {first} already"));
        } else {
            self.ids.insert(id, number);
        }
        let step = Step {
            id,
            mark,
            text: text.to_owned(),
            sha: sha.map(str::to_owned),
            touches: Vec::new(),
            depends: Vec::new(),
            trivial_step: false,
            pure_documentation: false,
            pure_refactor: false,
            confidence: None,
            rationale: None,
            notes: None,
            accept: None,
            line: number,
        };
        self.drafts.push(Draft { step, seen: BTreeMap::new() });
        self.under = Under::Step;
    }

    /// One `key: value` below a step.
    fn key(&mut self, number: usize, body: &str, report: &mut Report) {
        let Some((word, value)) = line::pair(body) else {
            return report.warn(number, format!("`{}` is not `key: value`: it is not read", shown(body)));
        };
        let draft = match self.under {
            Under::Step => self.drafts.last_mut(),
            Under::Broken => return,
            Under::Nothing => None,
        };
        let Some(Draft { step, seen }) = draft else {
            return report.error(number, format!("`{}` stands above the first step", shown(word)));
        };
        let Some(key) = Key::read(word) else {
            return report.warn(number, format!("unknown key `{}`: it is not read", shown(word)));
        };
        if let Some(first) = seen.get(&key) {
            return report.error(number, format!("{} has `{word}` in line {first} already", step.id));
        }
        seen.insert(key, number);
        let text = || (!value.is_empty()).then(|| value.to_owned());
        match key {
            Key::Touches => touches(step, number, value, report),
            Key::Depends => depends(step, number, value, report),
            Key::TrivialStep => step.trivial_step = meta::switch(number, word, value, report),
            Key::PureDocumentation => step.pure_documentation = meta::switch(number, word, value, report),
            Key::PureRefactor => step.pure_refactor = meta::switch(number, word, value, report),
            Key::Confidence => {
                step.confidence = value.strip_suffix("/5").and_then(|n| n.parse().ok()).filter(|n| *n <= 5);
                if step.confidence.is_none() {
                    report.error(number, format!("`confidence` is `N/5`, not `{}`", shown(value)));
                }
            }
            Key::Rationale => step.rationale = text(),
            Key::Notes => step.notes = text(),
            Key::Accept => step.accept = meta::command(number, word, value, report),
        }
    }

    /// The whole section, which begins at `line`. `calibrated` says whether steps say how sure their authors are.
    pub(super) fn finish(self, line: usize, calibrated: Option<bool>, report: &mut Report) -> Vec<Step> {
        let Self { drafts, ids, under, unread, too_many } = self;
        if under == Under::Nothing {
            report.error(line, format!("no step: {FORM}"));
        }
        for Draft { step, seen } in &drafts {
            if step.touches.is_empty() && !step.trivial_step && !step.pure_documentation {
                let at = seen.get(&Key::Touches).copied().unwrap_or(step.line);
                let message = format!(
                    "{} says no files: `- touches: a, b`, unless it is `trivial_step` or `pure_documentation`",
                    step.id
                );
                report.error(at, message);
            }
            if let Some(at) = seen.get(&Key::Confidence)
                && step.confidence.is_some()
                && calibrated == Some(false)
            {
                report.warn(*at, "`confidence` is read with `confidence_calibration: true` only");
            }
        }
        if !unread && !too_many {
            gaps(&ids, report);
            graph::check(&drafts, &ids, report);
        }
        drafts.into_iter().map(|draft| draft.step).collect()
    }
}

/// Tells the numbers that are left out.
fn gaps(ids: &BTreeMap<StepId, usize>, report: &mut Report) {
    let mut before = 0_u32;
    for (id, line) in ids {
        let number = id.number();
        let missing = match number - before {
            0 | 1 => None,
            2 => Some(format!("STEP-{}", before + 1)),
            _ => Some(format!("STEP-{} to STEP-{}", before + 1, number - 1)),
        };
        if let Some(missing) = missing {
            report.error(*line, format!("no {missing}: ids begin at 1 and leave nothing out"));
        }
        before = number;
    }
}

fn touches(step: &mut Step, number: usize, value: &str, report: &mut Report) {
    for path in line::list(value) {
        if line::outside(path) {
            let message =
                format!("`{}`: files are relative to the top of the repository, without `..`", shown(path));
            report.warn(number, message);
        }
        step.touches.push(path.to_owned());
    }
}

fn depends(step: &mut Step, number: usize, value: &str, report: &mut Report) {
    let mut known = BTreeSet::new();
    for word in line::list(value) {
        match word.parse::<StepId>() {
            Ok(id) if !known.insert(id) => {}
            Ok(id) => step.depends.push(id),
            Err(()) => {
                report.error(number, format!("`{}` is not a step: `depends: [STEP-1, STEP-2]`", shown(word)));
            }
        }
    }
}

/// The text without the commit at its end.
fn split_sha(text: &str) -> (&str, Option<&str>) {
    let split = || {
        let (before, sha) = text.strip_suffix(')')?.rsplit_once('(')?;
        let hex = sha.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let apart = before.is_empty() || before.ends_with(' ');
        (hex && apart && (7..=40).contains(&sha.len())).then_some((before.trim_end(), Some(sha)))
    };
    split().unwrap_or((text, None))
}
