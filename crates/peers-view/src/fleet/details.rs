//! `peers-ctl dashboard --project`: one loop in more detail.

use std::ops::ControlFlow;

use peers_model::outcome::StopReason;
use peers_model::record::{Line, Record};
use peers_model::{PeerName, TickNo, Timestamp};
use peers_store::Disk;
use serde::Serialize;

use super::all::{cost_cell, gates_cell};
use super::list::tone;
use crate::backwards::{self, Window, tag};
use crate::bugs::BugsView;
use crate::json;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::row::LoopRow;
use crate::sourced::Sourced;
use crate::words::{self, ago, count};

/// Ticks and endings of runs that are shown.
const PASSED: usize = 8;
/// So much of the journal's end is looked through for them.
const LOOK: u64 = 2 * peers_model::limits::MIB;
/// Bugs that are shown.
const BUGS: usize = 12;
/// Terminal cells of a foreign text.
const TEXT: usize = 160;

/// What happened to a loop: a tick, or the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Passed {
    /// A tick.
    Tick {
        /// Its number.
        tick: TickNo,
        /// When it ended.
        ts: Timestamp,
        /// Whose.
        peer: PeerName,
        /// How its process ended, one word.
        class: String,
        /// What it meant, one word.
        result: String,
        /// Why it was no success. Untrusted text.
        reason: Option<String>,
        /// What matched, where its end comes from that. Untrusted text.
        pattern: Option<String>,
    },
    /// A run ended.
    Exit {
        /// When.
        ts: Timestamp,
        /// Why.
        reason: StopReason,
        /// Ticks that it completed.
        ticks: u64,
    },
}

impl Passed {
    fn of(line: &Line) -> Option<Self> {
        if let Record::Tick(tick) = &line.record {
            return Some(Self::Tick {
                tick: tick.iteration,
                ts: line.ts,
                peer: tick.peer.clone(),
                class: tick.classification.clone(),
                result: crate::ticks::outcome_word(tick.outcome).to_owned(),
                reason: crate::why_failed(tick),
                pattern: tick.exit.matched.as_ref().map(|matched| matched.pattern.clone()),
            });
        }
        if let Record::Exit(exit) = &line.record {
            return Some(Self::Exit { ts: line.ts, reason: exit.reason.clone(), ticks: exit.ticks_in_run });
        }
        None
    }

    /// The newest, oldest first, from the end of the journal.
    pub fn read<D: Disk>(disk: &mut D) -> Sourced<Vec<Self>> {
        let mut found = Vec::new();
        let window = Window { first: LOOK, most: LOOK };
        let read = backwards::newest(disk).and_then(|newest| {
            backwards::pieces(disk, newest, window, |piece| {
                for text in
                    piece.lines.iter().rev().filter(|text| matches!(tag(text), Some(b"tick" | b"exit")))
                {
                    if found.len() == PASSED {
                        return ControlFlow::Break(());
                    }
                    let line = Line::read(text).ok();
                    found.extend(line.as_ref().and_then(Self::of));
                }
                ControlFlow::Continue(())
            })
        });
        found.reverse();
        match read {
            Ok(_) => Sourced::Fresh(found),
            Err(error) => Sourced::Unreadable(words::chain(&error)),
        }
    }
}

/// What is shown of one loop besides its row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectDetails {
    /// What the operator noted.
    pub notes: String,
    /// The newest ticks and endings, oldest first.
    pub passed: Sourced<Vec<Passed>>,
    /// Its bugs, if somebody read them.
    pub bugs: Sourced<BugsView>,
}

/// One loop for programs, schema `peers-ctl.dashboard/1`: `data` has `project` and what else is shown of it.
#[must_use]
pub fn project_json(row: &LoopRow, details: &ProjectDetails, now: Timestamp) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        project: &'a LoopRow,
        #[serde(flatten)]
        details: &'a ProjectDetails,
    }
    json::enveloped("peers-ctl.dashboard/1", now, Data { project: row, details }, &row.warnings)
}

/// One loop for people. Ends in a newline.
#[must_use]
pub fn project_text(row: &LoopRow, details: &ProjectDetails, now: Timestamp, colour: Colour) -> String {
    let mut page = Page::new();
    head(&mut page, row, details, now);
    passed(&mut page, &details.passed, now);
    bugs(&mut page, &details.bugs);
    for warning in &row.warnings {
        page.tell(Tone::Care, format!("warning: {}: {}", warning.code, warning.message));
    }
    page.text(colour)
}

fn head(page: &mut Page, row: &LoopRow, details: &ProjectDetails, now: Timestamp) {
    let ended = row.outcome.as_deref().map(|outcome| format!(" ({outcome})")).unwrap_or_default();
    let pid = row.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    page.field("name", Tone::Strong, &row.name);
    page.field("state", Tone::Plain, format!("{}{ended}{pid}", row.state_word()));
    let top = &row.attention.top;
    page.field(top.level.word(), tone(row), &top.why);
    if let Some(action) = &top.action {
        page.whole("action", Tone::Care, action);
    }
    for other in &row.attention.others {
        let then = other.action.as_deref().map(|action| format!(" → {action}")).unwrap_or_default();
        page.whole(other.level.word(), Tone::Plain, format!("{}{then}", other.why));
    }
    page.whole("path", Tone::Plain, &row.path);
    if !details.notes.is_empty() {
        page.field("notes", Tone::Plain, &details.notes);
    }
    if !row.labels.is_empty() {
        let labels: Vec<String> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        page.field("labels", Tone::Plain, labels.join(", "));
    }
    let ticks = row.ticks.map_or_else(|| "?".to_owned(), |ticks| ticks.to_string());
    page.field("ticks", Tone::Plain, ticks);
    page.field("gates", Tone::Plain, gates_cell(row));
    page.field("cost", Tone::Plain, cost_cell(row));
    if let Some(budget) = &row.budget {
        let meters = [
            ("ticks", budget.iterations),
            ("run time", budget.runtime_s),
            ("tokens", budget.tokens),
            ("money", budget.usd),
        ];
        let used: Vec<String> =
            meters.iter().filter_map(|(name, meter)| Some(format!("{name} {}%", meter.pct?))).collect();
        if !used.is_empty() {
            page.field("used", Tone::Plain, used.join(", "));
        }
    }
    for peer in row.peers.iter().flatten() {
        let until = peer.resets_at.map(|until| format!(", waits until {}", words::ahead(now, until)));
        let why = peer.unavailable_reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{} ({}) {}{}{why}", peer.name, peer.tool, peer.state, until.unwrap_or_default());
        page.field("peer", Tone::Plain, text);
    }
    if let Some(commit) = &row.last_commit {
        let by = commit.peer.as_ref().map(|peer| format!(" by {peer}")).unwrap_or_default();
        let subject = commit.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
        page.field("commit", Tone::Plain, format!("{}{by}{subject}", commit.sha.short()));
    }
}

fn passed(page: &mut Page, passed: &Sourced<Vec<Passed>>, now: Timestamp) {
    if let Some(why) = passed.why() {
        page.field("ticks", Tone::Bad, format!("unreadable: {why}"));
    }
    let passed = passed.value().map(Vec::as_slice).unwrap_or_default();
    if passed.is_empty() {
        return;
    }
    page.heading("what it did last");
    let rows = passed.iter().rev().map(|one| match one {
        Passed::Tick { tick, ts, peer, class, result, reason, pattern } => {
            let said: Vec<&str> = [reason.as_deref(), pattern.as_deref()].into_iter().flatten().collect();
            vec![
                faint(ago(now, *ts)),
                plain(format!("tick {tick}")),
                plain(peer.as_str()),
                plain(class),
                Cell::new(if result == "handoff" { Tone::Good } else { Tone::Care }, result),
                Cell::cut(Tone::Plain, said.join("; "), TEXT),
            ]
        }
        Passed::Exit { ts, reason, ticks } => vec![
            faint(ago(now, *ts)),
            Cell::new(Tone::Strong, "end"),
            Cell::cut(Tone::Strong, reason.to_string(), TEXT),
            plain(format!("after {}", count(*ticks, "tick"))),
        ],
    });
    page.table(2, rows);
}

fn bugs(page: &mut Page, bugs: &Sourced<BugsView>) {
    if let Some(why) = bugs.why() {
        page.field("bugs", Tone::Bad, format!("unreadable: {why}"));
    }
    let Some(bugs) = bugs.value() else { return };
    page.blank();
    let open = u64::try_from(bugs.open).unwrap_or(u64::MAX);
    let title = format!("{} open, {} of them blocking", count(open, "bug"), bugs.blocking);
    page.tell(Tone::Strong, title);
    page.table(
        2,
        bugs.rows.iter().filter(|bug| bug.open.is_some()).take(BUGS).map(|bug| {
            vec![
                plain(bug.severity.as_str()),
                plain(bug.id.as_str()),
                faint(bug.open.unwrap_or_default()),
                Cell::cut(Tone::Plain, &bug.title, TEXT),
            ]
        }),
    );
}
