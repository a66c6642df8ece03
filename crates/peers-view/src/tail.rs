//! What the end of the journal shows: the newest ticks, the newest record, and what must not be overlooked.

use std::ops::ControlFlow;

use peers_model::record::{Line, MirrorRestored, OperatorOp, Record};
use peers_model::{PeerName, RunId, TickNo, Timestamp, limits};
use peers_store::Disk;
use peers_store::journal::JournalError;
use peers_sys::digest::sha256_hex;
use serde::Serialize;

use crate::backwards::{self, Piece, Window, tag};
use crate::notable::{self, Collector, Notable};
use crate::ticks::TickRow;
use crate::watch;

/// Ticks in a row of a list.
const RECENT: usize = 8;

/// How much of a loop is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What a row of a list shows.
    #[default]
    Row,
    /// Everything, with so many of the newest ticks.
    Whole { ticks: usize },
}

impl Depth {
    fn ticks(self) -> usize {
        match self {
            Self::Row => RECENT,
            Self::Whole { ticks } => ticks,
        }
    }

    fn window(self) -> Window {
        match self {
            Self::Row => Window { first: 64 * limits::KIB, most: 2 * limits::MIB },
            Self::Whole { .. } => Window { first: 256 * limits::KIB, most: notable::LOOK },
        }
    }
}

/// The end of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JournalTail {
    /// The newest ticks, oldest first.
    pub ticks: Vec<TickRow>,
    /// Number of the last record; 0 when there is none.
    pub records: u64,
    /// Lines in the part that was looked through which cannot be read.
    pub unreadable: u64,
    /// Bytes of an unfinished last line. A running loop may be writing it.
    pub torn: u64,
    /// The newest record of the part that was looked through which does not continue the one before it.
    pub broken: Option<u64>,
    /// The newest record; absent when there is none, or when it cannot be read.
    #[serde(skip)]
    pub(crate) last: Option<LastEvent>,
    /// The newest line is there and cannot be read.
    #[serde(skip)]
    pub(crate) ends_unreadable: bool,
    /// When the mirror was found changed last: in which run, and in which tick.
    #[serde(skip)]
    pub(crate) mirror: Option<(Option<RunId>, Timestamp, Option<TickNo>)>,
    /// The newest run that was landed or undone, and when.
    #[serde(skip)]
    pub(crate) decided: Option<(RunId, Timestamp)>,
}

impl JournalTail {
    /// That a record does not continue the one before it.
    pub(crate) fn seam(&self) -> Option<String> {
        let seq = self.broken?;
        Some(format!("the journal is damaged: record {seq} does not continue the one before it"))
    }
}

/// The newest record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastEvent {
    /// When.
    pub ts: Timestamp,
    /// Whom it is about, if it is about a peer.
    pub peer: Option<PeerName>,
    /// Its tag.
    pub kind: &'static str,
    /// For people, one line. Untrusted text in parts.
    pub text: String,
}

impl LastEvent {
    fn of(line: &Line) -> Self {
        let peer = line.record.peer().cloned();
        Self { ts: line.ts, peer, kind: line.record.event(), text: watch::text(line) }
    }
}

/// Reads the end of the journal whose newest segment is `newest`; at the whole depth also what must not be
/// overlooked. The chain is checked only as far as ticks are looked for: the fold does the rest.
pub(crate) fn read<D: Disk>(
    disk: &mut D,
    newest: u32,
    depth: Depth,
) -> Result<(JournalTail, Notable), JournalError> {
    let mut found = Found { depth, ..Found::default() };
    let end = backwards::pieces(disk, newest, depth.window(), |piece| found.take(piece))?;
    let Found { mut tail, notable: lines, .. } = found;
    tail.torn = end.torn;
    tail.ticks.reverse();
    let mut collector = Collector::default();
    for line in lines.iter().rev() {
        line.record.tell(line, &mut collector);
    }
    Ok((tail, Notable { cut: end.cut, ..collector.finish() }))
}

#[derive(Default)]
struct Found {
    depth: Depth,
    /// The ticks in it stand newest first.
    tail: JournalTail,
    /// The line that was taken last is the oldest so far: its number and the hash that it continues.
    after: Option<(u64, String)>,
    /// Some line was seen.
    begun: bool,
    /// There are enough ticks.
    enough: bool,
    /// Records for what must not be overlooked, newest first.
    notable: Vec<Line>,
}

impl Found {
    fn take(&mut self, piece: &Piece<'_>) -> ControlFlow<()> {
        for text in piece.lines.iter().rev() {
            self.line(text);
        }
        self.enough = self.tail.ticks.len() >= self.depth.ticks();
        match self.depth {
            Depth::Row if self.enough => ControlFlow::Break(()),
            Depth::Row | Depth::Whole { .. } => ControlFlow::Continue(()),
        }
    }

    fn line(&mut self, text: &[u8]) {
        let newest = !std::mem::replace(&mut self.begun, true);
        let tag = tag(text);
        let matters = match self.depth {
            Depth::Row => {
                let tick = tag == Some(b"tick") && self.tail.ticks.len() < RECENT;
                newest || tick || matches!(tag, Some(b"mirror-restored" | b"operator"))
            }
            Depth::Whole { .. } => !self.enough || notable::matters(tag),
        };
        if !matters {
            return;
        }
        let Ok(line) = Line::read(text) else {
            self.tail.ends_unreadable |= newest;
            self.tail.unreadable += u64::from(!self.enough);
            self.after = None;
            return;
        };
        if newest {
            self.tail.last = Some(LastEvent::of(&line));
        }
        if !self.enough {
            self.look(&line, text);
        }
        if self.depth != Depth::Row && notable::matters(tag) {
            self.notable.push(line);
        }
    }

    /// Takes a record of the part that is looked through; the newest of each kind comes first.
    fn look(&mut self, line: &Line, text: &[u8]) {
        let tail = &mut self.tail;
        if self.depth != Depth::Row {
            if let Some((seq, prev)) = self.after.take()
                && (seq != line.seq.saturating_add(1) || prev != sha256_hex(text))
            {
                tail.broken.get_or_insert(seq);
            }
            self.after = Some((line.seq, line.prev.clone()));
        }
        if tail.records == 0 {
            tail.records = line.seq;
        }
        if let Record::Tick(tick) = &line.record {
            if tail.ticks.len() < self.depth.ticks() {
                tail.ticks.push(TickRow::of(line.ts, line.run_id.as_ref(), tick));
            }
        } else if let Record::MirrorRestored(restored) = &line.record
            && !is_lost(restored)
        {
            tail.mirror.get_or_insert((line.run_id.clone(), line.ts, restored.tick));
        } else if let Record::Operator(operator) = &line.record
            && let OperatorOp::Landed { run, .. } | OperatorOp::Undone { run, .. } = &operator.op
        {
            tail.decided.get_or_insert((run.clone(), line.ts));
        }
    }
}

/// A mirror that was not there before a run has been lost, with all of `.peers/` perhaps: nobody wrote anything into
/// it.
fn is_lost(restored: &MirrorRestored) -> bool {
    restored.tick.is_none() && restored.what == "was missing"
}
