//! Ticks as rows, and the newest of them from the end of the journal.

use peers_model::config::Role;
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{
    CorrectionKind, Line, MirrorRestored, Record, SkepticVerdict, TickOutcome, TickRecord,
};
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp, Tokens, Usd, limits};
use peers_store::{Area, Disk, DiskError, journal, layout};
use peers_sys::digest::sha256_hex;
use peers_sys::term;
use serde::Serialize;

use crate::death::Death;
use crate::diagnostic::complaint;
use crate::why_failed;
use crate::words;

/// So much of the journal's end is looked through for ticks.
const TAIL: u64 = 16 * limits::MIB;
/// Terminal cells of a warning.
const WARNING: usize = 300;
/// So much is read at first; most often it is enough.
const FIRST: u64 = 256 * limits::KIB;

/// One tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each field is the one of the same name in the tick record")]
#[expect(clippy::struct_excessive_bools, reason = "a flat row, as the record is")]
pub struct TickRow {
    pub tick: TickNo,
    /// When it ended.
    pub ts: Timestamp,
    pub run_id: Option<RunId>,
    pub peer: PeerName,
    pub role: Role,
    pub outcome: TickOutcome,
    pub success: bool,
    pub classification: String,
    /// Why it was no success. Untrusted text.
    pub reason: Option<String>,
    pub duration_ms: u64,
    pub gate_ms: u64,
    pub head_before: CommitId,
    pub head_after: CommitId,
    /// New commits of the peer.
    pub commits: Vec<CommitId>,
    pub corrected: Option<CorrectionKind>,
    pub salvage: Option<String>,
    pub skeptic: Option<SkepticVerdict>,
    pub dirty: bool,
    pub recovered: bool,
    pub rescued: bool,
    /// Tokens, or unknown.
    pub tokens: Option<Tokens>,
    /// Money, or unknown.
    pub usd: Option<Usd>,
    /// What is known of both is a lower bound.
    pub at_least: bool,
    /// Warnings that it left.
    pub warnings: usize,
    /// Guarded files of `.git` that it changed. Untrusted text.
    pub git_tampered: Vec<String>,
    /// How its process ended, and what its service said.
    #[serde(skip)]
    pub(crate) end: (ExitClass, ApiClass),
    /// How it died, if it did.
    #[serde(skip)]
    pub(crate) death: Option<Death>,
    /// When a limit of its service ends, as that said.
    #[serde(skip)]
    pub(crate) resets_at: Option<Timestamp>,
    /// The last line of its standard error, where the process failed. Untrusted text.
    pub complaint: Option<String>,
}

impl TickRow {
    pub(crate) fn of(ts: Timestamp, run_id: Option<&RunId>, tick: &TickRecord) -> Self {
        Self {
            tick: tick.iteration,
            ts,
            run_id: run_id.cloned(),
            peer: tick.peer.clone(),
            role: tick.role,
            outcome: tick.outcome,
            success: tick.success,
            classification: tick.classification.clone(),
            reason: why_failed(tick),
            duration_ms: tick.exit.duration_ms,
            gate_ms: tick.gate_ms,
            head_before: tick.head_before.clone(),
            head_after: tick.head_after.clone(),
            commits: tick.commits.clone(),
            corrected: tick.corrected,
            salvage: tick.salvage.clone(),
            skeptic: tick.skeptic,
            dirty: tick.dirty,
            recovered: tick.recovered,
            rescued: tick.rescued,
            tokens: tick.exit.usage.tokens,
            usd: tick.exit.usage.usd,
            at_least: tick.exit.at_least,
            warnings: tick.warnings_emitted.len(),
            git_tampered: tick.git_tampered.clone(),
            end: (tick.exit.class, tick.exit.api),
            death: Death::of(
                tick.exit.class,
                (tick.exit.signal, tick.exit.code),
                tick.soft_fail_reason.as_deref(),
            ),
            resets_at: tick.exit.resets_at,
            complaint: complaint(tick),
        }
    }

    /// `handoff`, `no-handoff` and so on, with what else happened.
    pub(crate) fn result(&self) -> String {
        let mut text = outcome_word(self.outcome).to_owned();
        if let Some(kind) = self.corrected {
            text.push_str(match kind {
                CorrectionKind::Revert => ", reverted",
                CorrectionKind::RestoreHistory => ", history restored",
                CorrectionKind::RestoreBranch => ", branch restored",
                CorrectionKind::Reset => ", reset",
            });
        }
        match self.skeptic {
            Some(SkepticVerdict::Clean) => text.push_str(", skeptic: clean"),
            Some(SkepticVerdict::Found) => text.push_str(", skeptic: found something"),
            Some(SkepticVerdict::Missing) => text.push_str(", skeptic: no verdict"),
            None => {}
        }
        for (set, word) in [
            (self.recovered, ", recovered"),
            (self.rescued, ", rescued"),
            (self.dirty, ", left the tree dirty"),
        ] {
            if set {
                text.push_str(word);
            }
        }
        text
    }

    /// It was a failure: one that counts for nobody is none.
    pub(crate) fn failed(&self) -> bool {
        !self.success && !self.outcome.is_neutral()
    }

    /// What it cost, as far as known.
    pub(crate) fn cost(&self) -> String {
        let least = |known: String| words::at_least(Some(known), self.at_least);
        let tokens = self.tokens.map(|tokens| least(format!("{} tokens", words::thousands(tokens.0))));
        match (tokens, self.usd.map(|usd| least(usd.to_string()))) {
            (None, None) => "cost unknown".to_owned(),
            (Some(tokens), None) => format!("{tokens}, cost unknown"),
            (None, Some(usd)) => usd,
            (Some(tokens), Some(usd)) => format!("{tokens}, {usd}"),
        }
    }
}

/// What a turn is warned of, one line each, fit for a terminal: `warning: TEXT`.
pub fn warnings(tick: &TickRecord) -> impl Iterator<Item = String> {
    tick.warnings_emitted.iter().map(|text| format!("warning: {}", term::line(text, WARNING)))
}

/// The word for an outcome.
pub(crate) fn outcome_word(outcome: TickOutcome) -> &'static str {
    match outcome {
        TickOutcome::Handoff => "handoff",
        TickOutcome::NoHandoff => "no-handoff",
        TickOutcome::Corrected => "corrected",
        TickOutcome::PeerFailed => "peer-failed",
        TickOutcome::RateLimited => "rate-limited",
        TickOutcome::UsageCapped => "usage-capped",
        TickOutcome::Blocked => "blocked",
        TickOutcome::NeedsOperator => "needs-operator",
        TickOutcome::Interrupted => "interrupted",
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
    /// When the last record was written.
    #[serde(skip)]
    pub(crate) last: Option<Timestamp>,
    /// When the mirror was found changed last: in which run, and in which tick.
    #[serde(skip)]
    pub(crate) mirror: Option<(Option<RunId>, Timestamp, Option<TickNo>)>,
}

/// The numbers of the segments of the journal.
pub(crate) fn segments<D: Disk>(disk: &mut D) -> Result<Vec<u32>, DiskError> {
    journal::segments(disk).map_err(|error| match error {
        journal::JournalError::Disk(error) => error,
        // Listing fails in no other way.
        other => DiskError {
            kind: peers_store::DiskErrorKind::Io,
            op: "list",
            area: Area::Store,
            path: layout::store::JOURNAL.to_owned(),
            detail: other.to_string(),
        },
    })
}

/// Reads the end of the journal until `wanted` ticks are found, backwards through its segments. The
/// chain is not checked here: the fold does that.
pub(crate) fn tail<D: Disk>(disk: &mut D, wanted: usize) -> Result<JournalTail, DiskError> {
    let segments = segments(disk)?;
    let mut found = JournalTail::default();
    let mut budget = TAIL;
    let mut window = FIRST;
    for (nth, number) in segments.iter().rev().enumerate() {
        let path = layout::segment(*number);
        let len = disk.len(Area::Store, &path)?.unwrap_or_default();
        // Everything of the segment behind `start` is known; the next window ends there.
        loop {
            let size = window.min(len).min(budget);
            let start = len - size;
            let bytes = disk.read_at(Area::Store, &path, start, size)?;
            let part = Part::read(&bytes, start > 0, nth == 0);
            let enough = part.ticks.len() + found.ticks.len() >= wanted;
            if start == 0 || enough || size == budget {
                found.take(part, nth == 0);
                budget = budget.saturating_sub(size);
                break;
            }
            window = window.saturating_mul(8);
        }
        if found.ticks.len() >= wanted || budget == 0 {
            break;
        }
    }
    let excess = found.ticks.len().saturating_sub(wanted);
    found.ticks.drain(..excess);
    Ok(found)
}

/// The lines of a piece of a segment.
#[derive(Default)]
struct Part {
    ticks: Vec<TickRow>,
    last_seq: u64,
    unreadable: u64,
    torn: u64,
    broken: Option<u64>,
    last: Option<Timestamp>,
    mirror: Option<(Option<RunId>, Timestamp, Option<TickNo>)>,
}

impl Part {
    fn read(bytes: &[u8], starts_inside: bool, is_end: bool) -> Self {
        let mut part = Self::default();
        let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
        // What follows the last newline is no line, or not yet.
        let rest = lines.pop().unwrap_or_default();
        if is_end {
            part.torn = u64::try_from(rest.len()).unwrap_or(u64::MAX);
        }
        // Number and hash of the line before.
        let mut before: Option<(u64, String)> = None;
        for bytes in lines.into_iter().skip(usize::from(starts_inside)) {
            let Ok(line) = serde_json::from_slice::<Line>(bytes) else {
                part.unreadable += 1;
                before = None;
                continue;
            };
            if let Some((seq, hash)) = &before
                && (line.seq != seq.saturating_add(1) || line.prev != *hash)
            {
                part.broken = Some(line.seq);
            }
            before = Some((line.seq, sha256_hex(bytes)));
            part.last_seq = line.seq;
            part.last = Some(line.ts);
            if let Record::Tick(tick) = &line.record {
                part.ticks.push(TickRow::of(line.ts, line.run_id.as_ref(), tick));
            } else if let Record::MirrorRestored(restored) = &line.record
                && !is_lost(restored)
            {
                part.mirror = Some((line.run_id.clone(), line.ts, restored.tick));
            }
        }
        part
    }
}

/// A mirror that was not there before a run has been lost, with all of `.peers/` perhaps: nobody wrote anything into
/// it.
pub(crate) fn is_lost(restored: &MirrorRestored) -> bool {
    restored.tick.is_none() && restored.what == "was missing"
}

impl JournalTail {
    /// Puts the part of an older segment before what is there.
    fn take(&mut self, part: Part, newest: bool) {
        let Part { mut ticks, last_seq, unreadable, torn, broken, last, mirror } = part;
        ticks.append(&mut self.ticks);
        self.ticks = ticks;
        self.unreadable += unreadable;
        self.broken = self.broken.or(broken);
        self.last = self.last.or(last);
        self.mirror = self.mirror.take().or(mirror);
        if newest {
            self.torn = torn;
        }
        if self.records == 0 {
            self.records = last_seq;
        }
    }
}
