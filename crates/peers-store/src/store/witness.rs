//! What survives of the journal elsewhere: a journal that was lost or cut must not pass for a young one.
//!
//! Snapshot and run records lie in the trusted store, and what they know counts. The mirror lies where
//! agents write: whatever it says of records that the journal lacks may be made up by one of them, so it
//! forbids nothing, but beside a journal without any record. No turn was ever taken by that one.
//!
//! A crash can leave every copy *behind* the journal: a record is synced before the snapshot, a run record
//! or the mirror tell of it. The one exception is a lone `peer-spawned`, which is not synced by itself, so
//! that a power cut can keep it in the mirror alone. Whoever knows more than that has seen records which
//! the journal no longer has.

use peers_core::state::State;
use peers_model::record::{Line, Record};
use peers_model::{RunId, limits};

use super::{Snapshot, StoreError};
use crate::disk::{Area, Disk, DiskError};
use crate::journal::{self, Position};
use crate::{layout, runs};

/// What the copies say, read before the journal: a loop that writes meanwhile only ever adds to that.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    /// Where the snapshot stands.
    pub(super) snapshot: Option<Position>,
    /// The run record that counts most ticks.
    run: Option<(RunId, u64)>,
    /// Whether the journal has exactly what the snapshot was made from.
    seen: bool,
}

impl Witnesses {
    /// Asks snapshot and run records.
    pub(super) fn hear<D: Disk>(disk: &mut D, snapshot: Option<&Snapshot>) -> Result<Self, StoreError> {
        let (records, _) = runs::list(disk)?;
        let run = records.into_iter().map(|record| (record.run_id, record.iteration));
        Ok(Self {
            snapshot: snapshot.map(|snapshot| snapshot.at.clone()),
            run: run.max_by_key(|(_, ticks)| *ticks),
            seen: false,
        })
    }

    /// Takes the end of a line of the journal.
    pub(super) fn pass(&mut self, end: &Position) {
        self.seen |= self.snapshot.as_ref() == Some(end);
    }

    /// Whether the journal, as it was read, lacks what they know.
    pub(super) fn agree<D: Disk>(
        &self,
        disk: &mut D,
        at: &Position,
        state: &State,
    ) -> Result<(), StoreError> {
        if let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.seq > at.seq) {
            return Err(self.lost(disk, at, format!("{} knows {}", layout::store::SNAPSHOT, snapshot.seq)));
        }
        if let Some((run, ticks)) = self.run.as_ref().filter(|(_, ticks)| *ticks > state.ticks.0) {
            let knows = format!(
                "{} counts {ticks} ticks where the journal has {}",
                layout::run_record(run),
                state.ticks
            );
            return Err(self.lost(disk, at, knows));
        }
        match &self.snapshot {
            Some(snapshot) if snapshot.seq > 0 && !self.seen => Err(StoreError::Forked { seq: snapshot.seq }),
            _ => Ok(()),
        }
    }

    /// What the mirror has that the journal lacks, in words. An error where that is everything.
    pub(super) fn mirror<D: Disk>(&self, disk: &mut D, at: &Position) -> Result<Option<String>, StoreError> {
        let Some(chain) = Chain::of_mirror(disk, at, self.snapshot.as_ref())?.filter(Chain::ahead) else {
            return Ok(None);
        };
        if at.seq == 0 && chain.first == 1 {
            return Err(self.lost(disk, at, format!("{MIRROR} knows {}", chain.last)));
        }
        let first = chain.first.max(at.seq.saturating_add(1));
        Ok(Some(format!("had records {first} to {} that the journal does not have", chain.last)))
    }

    fn lost<D: Disk>(&self, disk: &mut D, at: &Position, knows: String) -> StoreError {
        // A mirror that cannot be read helps nobody.
        let chain = Chain::of_mirror(disk, at, self.snapshot.as_ref()).ok().flatten().filter(Chain::ahead);
        let (from, instead) = match (chain, &self.snapshot) {
            (Some(Chain { first, last, confirmed: true, rest: Some(0), .. }), Some(snapshot))
                if last == snapshot.seq =>
            {
                let segment = layout::segment(snapshot.segment);
                let full = |area, path| disk.locate(area, path).map(|path| word(&path.to_string_lossy()));
                let mirror = full(Area::Peers, layout::peers::MIRROR);
                let command =
                    mirror.zip(full(Area::Store, &segment)).map_or_else(String::new, |(from, to)| {
                        format!(" (`mkdir -p \"$(dirname {to})\" && cp {from} {to}`)")
                    });
                (
                    format!(
                        "copy {MIRROR} to {segment} in the trusted store{command}: it holds the records {first} to {last} and agrees with the snapshot"
                    ),
                    "",
                )
            }
            (Some(Chain { first, last, .. }), _) => (
                format!(
                    "restore the directory journal/ of the trusted store from a copy; {MIRROR} holds the records {first} to {last}, but agents can write there: check it first"
                ),
                " (if nothing of the journal is missing, move that file away)",
            ),
            (None, _) => ("restore the directory journal/ of the trusted store from a copy".to_owned(), ""),
        };
        StoreError::Lost { seq: at.seq, knows, from, instead }
    }
}

/// A word of a command line.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The mirror, for people.
const MIRROR: &str = ".peers/log/runs.jsonl";

/// Lines of the mirror that continue each other, from its first on.
#[derive(Debug, Default)]
struct Chain {
    first: u64,
    last: u64,
    /// The journal that it was compared with ends there.
    end: u64,
    /// It continues that journal, or overlaps with its end.
    attached: bool,
    /// It has what the snapshot was made from.
    confirmed: bool,
    /// Behind the journal's end there is more than the process of a peer.
    more: bool,
    /// Bytes of the file behind it; absent when one of its lines does not continue it.
    rest: Option<usize>,
}

impl Chain {
    fn ahead(&self) -> bool {
        self.attached && self.more && self.last > self.end
    }

    fn of_mirror<D: Disk>(
        disk: &mut D,
        end: &Position,
        snapshot: Option<&Position>,
    ) -> Result<Option<Self>, DiskError> {
        const CHUNK: u64 = 4 * limits::MIB;
        // A segment ends with the first line behind its size.
        const MOST: u64 = limits::JOURNAL_SEGMENT + 2 * limits::JOURNAL_LINE;
        let mut chain: Option<Self> = None;
        let mut at = Position::default();
        let mut pending: Vec<u8> = Vec::new();
        let mut next = 0;
        while next < MOST {
            let bytes = disk.read_at(Area::Peers, layout::peers::MIRROR, next, CHUNK)?;
            if bytes.is_empty() {
                break;
            }
            next += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            pending.extend_from_slice(&bytes);
            let mut done = 0;
            while let Some(len) = pending.get(done..).and_then(|rest| rest.iter().position(|b| *b == b'\n')) {
                let text = pending.get(done..done + len).unwrap_or_default();
                done += len + 1;
                let Some(line) = line(&mut at, text, chain.is_none()) else { return Ok(chain) };
                let chain = chain.get_or_insert_with(|| Self::from(&line, end));
                chain.take(&line, &at, end, snapshot);
            }
            pending.drain(..done);
        }
        if let Some(chain) = &mut chain {
            chain.rest = Some(pending.len() + usize::from(next >= MOST));
        }
        Ok(chain)
    }

    fn from(line: &Line, end: &Position) -> Self {
        let attached = match line.seq.checked_sub(1) {
            Some(before) if before == end.seq => line.prev == end.hash,
            // Whole segments are gone; each but the first begins like this.
            Some(before) if before > end.seq => matches!(line.record, Record::Checkpoint(_)),
            _ => false,
        };
        Self { first: line.seq, end: end.seq, attached, ..Self::default() }
    }

    fn take(&mut self, line: &Line, at: &Position, end: &Position, snapshot: Option<&Position>) {
        self.last = line.seq;
        self.attached |= at.seq == end.seq && at.hash == end.hash;
        self.confirmed |= snapshot.is_some_and(|known| known.seq == at.seq && known.hash == at.hash);
        self.more |= line.seq > end.seq && !matches!(line.record, Record::PeerSpawned(_));
    }
}

/// The line, if it continues the one before; the first one need not.
fn line(at: &mut Position, text: &[u8], first: bool) -> Option<Line> {
    if first {
        let line = Line::read(text).ok()?;
        *at = Position { seq: line.seq.checked_sub(1)?, hash: line.prev, ..Position::default() };
    }
    let line = journal::check(layout::peers::MIRROR, at, text).ok()?;
    at.seq = line.seq;
    at.hash = peers_sys::digest::sha256_hex(text);
    Some(line)
}
