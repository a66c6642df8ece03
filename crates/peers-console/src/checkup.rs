//! What a look at a project found, in words.

use peers_acts::doctor::{Answer, Check, Level, Report};
use peers_model::outcome::classification;
use peers_sys::term;
use peers_view::{Cell, Page, Spelling, Tone};
use serde_json::json;

/// The same with commands as whoever reads it types them.
#[must_use]
pub fn spelt(mut report: Report, spelling: &Spelling) -> Report {
    for fix in report.checks.iter_mut().filter_map(|check| check.fix.as_mut()) {
        *fix = spelling.tell(fix).into();
    }
    report
}

/// What was looked at, as a table for people, with what mends each finding.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut rows = Vec::new();
    for Check { about, level, message, fix, .. } in &report.checks {
        // A file that cannot be read is quoted in the lines below the first.
        let mut lines = message.lines().map(|line| term::line(line, 1000));
        let first = lines.next().unwrap_or_default();
        rows.push(vec![level.word().to_owned(), about.clone(), first]);
        let below = |text: String| vec![String::new(), String::new(), text];
        rows.extend(lines.map(below));
        rows.extend(fix.as_ref().map(|fix| below(format!("-> {fix}"))));
    }
    let count = |level: Level| report.checks.iter().filter(|check| check.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let of = |n: usize, noun: &str| crate::output::counted(u64::try_from(n).unwrap_or(u64::MAX), noun);
    format!("{}{}, {}\n", crate::output::table(&rows), of(errors, "error"), of(warnings, "warning"))
}

/// The same as lines.
#[must_use]
pub fn page(report: &Report) -> Page {
    let cell = |text: &str| Cell::new(Tone::Plain, text);
    let mut rows = Vec::new();
    for Check { about, level, message, fix, .. } in &report.checks {
        let tone = match level {
            Level::Error => Tone::Bad,
            Level::Warning => Tone::Care,
            Level::Ok => Tone::Good,
        };
        let mut lines = message.lines();
        rows.push(vec![Cell::new(tone, level.word()), cell(about), cell(lines.next().unwrap_or_default())]);
        rows.extend(lines.map(|line| vec![cell(""), cell(""), cell(line)]));
        let fix = fix.as_ref().map(|fix| format!("-> {fix}"));
        rows.extend(fix.map(|fix| vec![cell(""), cell(""), Cell::whole(Tone::Strong, fix)]));
    }
    let mut page = Page::default();
    page.table(1, rows);
    page
}

/// The same for programs.
#[must_use]
pub fn as_json(report: &Report) -> serde_json::Value {
    let answers: Vec<_> = report
        .answers
        .iter()
        .map(|Answer { peer, exit }| match exit {
            Ok(exit) => json!({
                "peer": peer,
                "classification": classification(exit.class, exit.api),
                "model": exit.model,
                "tokens": exit.usage.tokens,
                "usd": exit.usage.usd,
                "at_least": exit.at_least,
                "duration_ms": exit.duration_ms,
            }),
            Err(why) => json!({"peer": peer, "classification": null, "error": why}),
        })
        .collect();
    json!({"checks": report.checks, "answers": answers, "exit_code": report.exit_code()})
}
