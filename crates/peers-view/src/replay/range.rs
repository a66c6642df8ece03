//! `peers-ctl replay`: many ticks, one after the other.

use std::collections::VecDeque;

use peers_model::outcome::StopReason;
use peers_model::reader::RecordReader;
use peers_model::record::{ExitRecord, Line, TickRecord};
use peers_model::{PeerName, RunId, TickNo, Timestamp};
use peers_store::Disk;
use peers_store::Position;
use peers_store::journal::{Journal, JournalError};
use serde::Serialize;

use crate::json;
use crate::page::{Cell, Colour, Page, Tone, faint};
use crate::ticks::TickRow;
use crate::words::{count, duration_ms, thousands};

/// Ticks of a range that are kept, the newest.
const TICKS: usize = 10_000;

/// Which ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeAsked {
    /// From this one on.
    pub from: Option<TickNo>,
    /// Up to this one.
    pub to: Option<TickNo>,
    /// Those of one peer alone.
    pub peer: Option<PeerName>,
    /// Those whose process ended in one way alone, such as `idle-timeout`.
    pub class: Option<String>,
    /// Those that failed alone: one that counts for nobody is no failure.
    pub failed: bool,
}

impl RangeAsked {
    fn takes(&self, tick: &TickRecord) -> bool {
        self.covers(tick.iteration)
            && self.peer.as_ref().is_none_or(|peer| *peer == tick.peer)
            && self.class.as_ref().is_none_or(|class| *class == tick.classification)
            && (!self.failed || (!tick.success && !tick.outcome.is_neutral()))
    }

    fn covers(&self, tick: TickNo) -> bool {
        self.from.is_none_or(|from| from <= tick) && self.to.is_none_or(|to| tick <= to)
    }
}

/// Many ticks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplayRange {
    /// Ticks and ends of runs, oldest first.
    pub items: VecDeque<RangeItem>,
    /// Ticks of the journal, whether they are asked for or not.
    pub ticks: u64,
    /// Of those that are asked for, older ones that are left out.
    pub left_out: u64,
}

/// A tick, or the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RangeItem {
    /// A tick.
    Tick(Box<RangeTick>),
    /// A run ended behind the last tick of it.
    Exit {
        /// When.
        ts: Timestamp,
        /// Which.
        run_id: Option<RunId>,
        /// Why.
        reason: StopReason,
        /// Ticks that it completed.
        ticks: u64,
    },
}

/// One tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RangeTick {
    /// What its record says.
    #[serde(flatten)]
    pub row: TickRow,
    /// Its tool.
    pub tool: String,
    /// The peer's health after it. Untrusted text.
    pub peer_state_after: String,
}

/// Reads the ticks that are asked for, and how the runs ended in between.
///
/// # Errors
/// [`JournalError`] when the journal is damaged.
pub fn replay_range<D: Disk>(disk: &mut D, asked: &RangeAsked) -> Result<ReplayRange, JournalError> {
    let mut taking = Taking { range: ReplayRange::default(), newest: None, asked };
    Journal::open(disk, &Position::default(), false, |read| {
        read.line.record.tell(&read.line, &mut taking);
        Ok::<(), JournalError>(())
    })?;
    Ok(taking.range)
}

struct Taking<'a> {
    range: ReplayRange,
    /// The newest tick, whether it is asked for or not.
    newest: Option<TickNo>,
    asked: &'a RangeAsked,
}

impl Taking<'_> {
    fn push(&mut self, item: RangeItem) {
        let range = &mut self.range;
        range.items.push_back(item);
        if range.items.len() > TICKS {
            let gone = range.items.pop_front();
            range.left_out += u64::from(matches!(gone, Some(RangeItem::Tick(_))));
        }
    }
}

impl<'l> RecordReader<&'l Line> for Taking<'_> {
    fn tick(&mut self, line: &'l Line, tick: &TickRecord) {
        self.range.ticks += 1;
        self.newest = Some(tick.iteration);
        if self.asked.takes(tick) {
            let row = TickRow::of(line.ts, line.run_id.as_ref(), tick);
            let (tool, peer_state_after) = (tick.tool.clone(), tick.peer_state_after.clone());
            self.push(RangeItem::Tick(Box::new(RangeTick { row, tool, peer_state_after })));
        }
    }

    fn exit(&mut self, line: &'l Line, exit: &ExitRecord) {
        if self.newest.is_some_and(|tick| self.asked.covers(tick)) {
            self.push(RangeItem::Exit {
                ts: line.ts,
                run_id: line.run_id.clone(),
                reason: exit.reason.clone(),
                ticks: exit.ticks_in_run,
            });
        }
    }
}

impl ReplayRange {
    /// The ticks that are kept.
    pub fn shown(&self) -> impl Iterator<Item = &RangeTick> {
        self.items.iter().filter_map(|item| match item {
            RangeItem::Tick(tick) => Some(tick.as_ref()),
            RangeItem::Exit { .. } => None,
        })
    }
}

/// The ticks for programs, schema `peers-ctl.replay/1`.
#[must_use]
pub fn replay_range_json(range: &ReplayRange, now: Timestamp) -> String {
    json::enveloped("peers-ctl.replay/1", now, range, [(); 0])
}

/// The ticks for people, one block for each. `more` gives further text about a tick, such as its prompt or what
/// changed; it is made harmless here. Ends in a newline.
#[must_use]
pub fn replay_range_text(
    range: &ReplayRange,
    colour: Colour,
    mut more: impl FnMut(&RangeTick) -> Option<String>,
) -> String {
    let mut page = Page::new();
    let shown = u64::try_from(range.shown().count()).unwrap_or(u64::MAX);
    let all = count(range.ticks, "tick");
    page.tell(Tone::Strong, format!("{} of {all}", thousands(shown)));
    if range.left_out > 0 {
        page.tell(Tone::Care, format!("{} before these are left out", count(range.left_out, "tick")));
    }
    for item in &range.items {
        page.blank();
        match item {
            RangeItem::Tick(tick) => {
                block(&mut page, tick);
                for line in more(tick).unwrap_or_default().lines() {
                    page.line(&[faint("  | "), Cell::whole(Tone::Plain, line)]);
                }
            }
            RangeItem::Exit { ts, run_id, reason, ticks } => {
                let run = run_id.as_ref().map(|run| format!("run {run} ")).unwrap_or_default();
                let text = format!("{run}ended {ts}: {reason} after {}", count(*ticks, "tick"));
                page.tell(Tone::Strong, text);
            }
        }
    }
    page.text(colour)
}

fn block(page: &mut Page, tick: &RangeTick) {
    let RangeTick { row, tool, peer_state_after } = tick;
    let tone = if row.success { Tone::Good } else { Tone::Care };
    page.field("tick", Tone::Strong, format!("{} of {} ({tool}), ended {}", row.tick, row.peer, row.ts));
    page.field("result", tone, row.result());
    page.field("process", Tone::Plain, format!("{}, {}", row.classification, duration_ms(row.duration_ms)));
    if let Some(reason) = &row.reason {
        page.field("because", Tone::Care, reason);
    }
    let head = if row.head_before == row.head_after {
        format!("{} (unchanged)", row.head_after.short())
    } else {
        format!("{} -> {}", row.head_before.short(), row.head_after.short())
    };
    page.field("head", Tone::Plain, head);
    page.field("cost", Tone::Plain, row.cost());
    page.field("peer", Tone::Plain, format!("{peer_state_after} after it"));
}
