//! `peers-ctl report`: several loops in one document, what needs somebody first.

use peers_model::Timestamp;
use serde::Serialize;

use super::one::{Report, document, report_markdown};
use crate::advice::Attention;
use crate::fleet::FleetWarning;
use crate::json;
use crate::markdown::{Document, code};
use crate::row::{LoopRow, LoopState};

/// What a report of several loops is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportHead {
    /// When it was made.
    pub generated_at: Timestamp,
    /// The directory of the controller's files.
    pub config_dir: String,
    /// Which projects were asked for.
    pub scope: String,
    /// What is wrong besides what the loops say themselves.
    pub warnings: Vec<FleetWarning>,
}

/// One loop of them.
#[derive(Debug, Clone, Copy)]
pub struct ReportEntry<'a> {
    /// Its row.
    pub row: &'a LoopRow,
    /// All of it.
    pub report: &'a Report,
    /// What the operator noted.
    pub notes: &'a str,
    /// Its `README.md`.
    pub readme: &'a Found,
    /// The log of the controller.
    pub log: &'a Found,
}

/// Whether a file is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "path", rename_all = "kebab-case")]
pub enum Found {
    /// It is, and where.
    Present(String),
    /// It is not.
    Missing,
    /// Something is in its place that is not read.
    Unsafe,
}

impl Found {
    fn words(&self) -> String {
        match self {
            Self::Present(path) => format!("present: {}", code(path, 120)),
            Self::Missing => "missing".to_owned(),
            Self::Unsafe => "**unsafe**".to_owned(),
        }
    }
}

/// The report for people. Foreign texts stand in code spans.
#[must_use]
pub fn reports_markdown(head: &ReportHead, entries: &[ReportEntry<'_>]) -> String {
    let mut doc = Document::title("peers-ctl report");
    doc.paragraph(&format!(
        "Made {}, of {}, from {}.",
        head.generated_at,
        code(&head.scope, 200),
        code(&head.config_dir, 300)
    ));
    let rows = entries.iter().map(|entry| row(entry));
    let titles = ["project", "needs", "state", "ticks", "blocking", "last tick", "readme", "controller log"];
    doc.table(&titles, rows);
    let own = head.warnings.iter().map(|warning| {
        let of = warning.project.as_deref().map(|name| format!("{}: ", code(name, 64))).unwrap_or_default();
        format!("{of}{}", code(&warning.message, 300))
    });
    let of_rows = entries.iter().flat_map(|entry| {
        let name = code(&entry.row.name, 64);
        entry.row.warnings.iter().map(move |warning| format!("{name}: {}", code(&warning.message, 300)))
    });
    let warnings: Vec<String> = own.chain(of_rows).collect();
    if !warnings.is_empty() {
        doc.section("Warnings");
        for warning in &warnings {
            doc.item(warning);
        }
    }
    let mut out = doc.finish();
    for entry in entries {
        let mut doc = Document::default();
        doc.section(&code(&entry.row.name, 64));
        let top = &entry.row.attention.top;
        doc.paragraph(&format!("**{}**: {}", top.level.word(), code(&top.why, 300)));
        if !entry.notes.is_empty() {
            doc.paragraph(&format!("Notes: {}", code(entry.notes, 2000)));
        }
        out.push_str(&doc.finish());
        // Its own title is said; its sections are below this one.
        for line in report_markdown(entry.report).lines().skip(1) {
            if line.starts_with("## ") {
                out.push('#');
            }
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn row(entry: &ReportEntry<'_>) -> Vec<String> {
    let row = entry.row;
    let state = match (row.state, row.outcome.as_deref()) {
        (LoopState::Stopped | LoopState::Crashed, Some(outcome)) => {
            format!("{} ({outcome})", row.state.word())
        }
        (state, _) => state.word().to_owned(),
    };
    let last = row.recent.iter().flatten().last();
    vec![
        code(&row.name, 64),
        row.attention.level().word().to_owned(),
        state,
        row.ticks.map_or_else(|| "?".to_owned(), |ticks| ticks.to_string()),
        row.bugs.map_or_else(|| "?".to_owned(), |bugs| bugs.blocking.to_string()),
        last.map_or_else(|| "-".to_owned(), |tick| tick.ts.to_string()),
        entry.readme.words(),
        entry.log.words(),
    ]
}

/// The report for programs, schema `peers-ctl.report/1`: each project's `report` is as `peers report --json`.
#[must_use]
pub fn reports_json(head: &ReportHead, entries: &[ReportEntry<'_>]) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        scope: &'a str,
        config_dir: &'a str,
        projects: Vec<One<'a>>,
    }
    #[derive(Serialize)]
    struct One<'a> {
        name: &'a str,
        path: &'a str,
        state: LoopState,
        outcome: Option<&'a str>,
        attention: &'a Attention,
        notes: &'a str,
        readme: &'a Found,
        controller_log: &'a Found,
        report: serde_json::Value,
    }
    let one = |entry: &ReportEntry<'_>| serde_json::to_value(document(entry.report)).unwrap_or_default();
    let projects = entries.iter().map(|entry| One {
        name: &entry.row.name,
        path: &entry.row.path,
        state: entry.row.state,
        outcome: entry.row.outcome.as_deref(),
        attention: &entry.row.attention,
        notes: entry.notes,
        readme: entry.readme,
        controller_log: entry.log,
        report: one(entry),
    });
    let data = Data { scope: &head.scope, config_dir: &head.config_dir, projects: projects.collect() };
    json::enveloped("peers-ctl.report/1", head.generated_at, data, &head.warnings)
}
