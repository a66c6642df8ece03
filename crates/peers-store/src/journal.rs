//! The append-only, hash-chained journal.
//!
//! Each line holds the SHA-256 of the bytes of the line before it: that finds a torn tail and
//! accidental damage, and lets a proof be exported. It is no signature: whoever can write the file
//! can write a whole new chain.

use peers_model::record::{LINE_VERSION, Line, Record};
use peers_model::{RunId, Timestamp, limits};
use peers_sys::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::disk::{Area, Disk, DiskError, DiskErrorKind};
use crate::layout;

/// How the names of segments end.
const SEGMENT_SUFFIX: &str = ".jsonl";

/// A place in the journal: just behind a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// Segment number.
    pub segment: u32,
    /// Bytes from the start of the segment.
    pub offset: u64,
    /// Number of the last line; 0 at the very start.
    pub seq: u64,
    /// SHA-256 of the last line without its newline; empty at the very start.
    pub hash: String,
}

/// Why the journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The file system said no.
    #[error("journal: {0}")]
    Disk(#[from] DiskError),
    /// A line that is damaged, or does not continue the one before.
    #[error("journal: {file} line {line} {what}")]
    Damaged {
        /// Which segment.
        file: String,
        /// Which line of it, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The segments are not those that were written: one is missing, or something else lies among them.
    #[error("journal: {file} {what}")]
    Segments {
        /// Which file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// Written by a newer program.
    #[error(
        "journal: {file} line {line} has format {found}, this program reads up to {LINE_VERSION}; use the newer program"
    )]
    Newer {
        /// Which segment.
        file: String,
        /// Which line.
        line: u64,
        /// Its version.
        found: u32,
    },
    /// A record that the program wants to write is too long.
    #[error("journal: a record of {size} bytes is longer than {max}", max = limits::JOURNAL_LINE)]
    TooLong {
        /// Its size.
        size: usize,
    },
}

/// The open journal: where the next line goes.
#[derive(Debug, Clone)]
pub struct Journal {
    at: Position,
    /// Length of a torn last line that was found, this time.
    torn: Option<u64>,
    /// Its bytes, until it is cut off.
    tail: Vec<u8>,
}

/// A line with its bytes' end.
#[derive(Debug, Clone)]
pub struct Read {
    /// The line.
    pub line: Line,
    /// Just behind it.
    pub end: Position,
}

impl Journal {
    /// Finds the end by reading everything behind `from`, and hands each line to `each`. With `repair`
    /// a torn last line is cut off as by [`Journal::mend`]; without, it is merely not read.
    ///
    /// # Errors
    /// [`JournalError`]; also whatever `each` returns.
    pub fn open<D: Disk, E: From<JournalError>>(
        disk: &mut D,
        from: &Position,
        repair: bool,
        mut each: impl FnMut(Read) -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::read_on(disk, from, repair, &mut each)
    }

    // Compiled once, not for each function that is handed the lines.
    fn read_on<D: Disk, E: From<JournalError>>(
        disk: &mut D,
        from: &Position,
        repair: bool,
        each: &mut dyn FnMut(Read) -> Result<(), E>,
    ) -> Result<Self, E> {
        let segments = segments(disk).map_err(E::from)?;
        let mut at = from.clone();
        let mut torn = None;
        let mut torn_tail = Vec::new();
        let last = segments.last().copied().unwrap_or(0);
        for number in segments.iter().copied().filter(|n| *n >= from.segment) {
            if number != at.segment {
                at = Position { segment: number, offset: 0, ..at };
            }
            let path = layout::segment(number);
            let tail = scan(disk, &path, &mut at, each)?;
            let Some(bytes) = tail else { continue };
            if number != last {
                let what = "is torn, but another segment follows".to_owned();
                return Err(E::from(JournalError::Damaged {
                    file: path,
                    line: line_number(disk, &at),
                    what,
                }));
            }
            torn = Some(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            torn_tail = bytes;
        }
        let mut journal = Self { at, torn, tail: torn_tail };
        if repair {
            journal.mend(disk).map_err(E::from)?;
        }
        Ok(journal)
    }

    /// Cuts off a torn last line, which is kept as `journal/torn-<seq>`. Only the holder of the run lock
    /// may.
    ///
    /// # Errors
    /// [`JournalError::Disk`].
    pub fn mend<D: Disk>(&mut self, disk: &mut D) -> Result<(), JournalError> {
        let bytes = std::mem::take(&mut self.tail);
        if bytes.is_empty() {
            return Ok(());
        }
        let path = layout::segment(self.at.segment);
        let aside = format!("{}/torn-{}", layout::store::JOURNAL, self.at.seq + 1);
        disk.publish(Area::Store, &aside, &bytes, true)?;
        disk.truncate(Area::Store, &path, self.at.offset)?;
        disk.sync(Area::Store, &path)?;
        Ok(())
    }

    /// Where the next line goes.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.at
    }

    /// Bytes that were cut off at open.
    #[must_use]
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// Appends records as lines in one write and syncs them (a lone `peer-spawned` waits for the next
    /// sync). Returns the bytes, for the mirror. On
    /// error nothing counts as appended.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn append<D: Disk>(
        &mut self,
        disk: &mut D,
        ts: Timestamp,
        run_id: Option<&RunId>,
        records: &[Record],
    ) -> Result<Vec<u8>, JournalError> {
        let path = layout::segment(self.at.segment.max(1));
        let mut at = self.at.clone();
        at.segment = at.segment.max(1);
        let mut bytes = Vec::new();
        for record in records {
            let line = Line {
                v: LINE_VERSION,
                seq: at.seq + 1,
                ts,
                run_id: run_id.cloned(),
                prev: at.hash.clone(),
                record: record.clone(),
            };
            let text = serde_json::to_vec(&line).map_err(|e| JournalError::Damaged {
                file: path.clone(),
                line: line.seq,
                what: format!("cannot be written as JSON: {e}"),
            })?;
            if u64::try_from(text.len()).unwrap_or(u64::MAX) >= limits::JOURNAL_LINE {
                return Err(JournalError::TooLong { size: text.len() });
            }
            at.seq = line.seq;
            at.hash = sha256_hex(&text);
            bytes.extend_from_slice(&text);
            bytes.push(b'\n');
        }
        self.own_alone(disk, &path)?;
        at.offset += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        disk.append(Area::Store, &path, &bytes)?;
        // A `peer-spawned` announces no effect: the process is there, and its environment marker finds
        // it. It becomes durable with the next record; a crash of the machine ends the process as well.
        let announces = records.iter().any(|r| !matches!(r, Record::PeerSpawned(_)));
        if announces && let Err(error) = disk.sync(Area::Store, &path) {
            // What is not synced did not happen: take it back, so that a retry cannot write it twice.
            let _restored = disk.truncate(Area::Store, &path, self.at.offset);
            return Err(error.into());
        }
        self.at = at;
        Ok(bytes)
    }

    /// Nobody else appends. What somebody did append is kept aside and cut off, so that our own records
    /// can still be read.
    fn own_alone<D: Disk>(&self, disk: &mut D, path: &str) -> Result<(), JournalError> {
        let len = disk.len(Area::Store, path)?.unwrap_or(0);
        match len.cmp(&self.at.offset) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(JournalError::Damaged {
                file: path.to_owned(),
                line: self.at.seq,
                what: "is shorter than what peers wrote: it was truncated".to_owned(),
            }),
            std::cmp::Ordering::Greater => {
                let foreign = disk.read_at(
                    Area::Store,
                    path,
                    self.at.offset,
                    limits::JOURNAL_LINE.min(len - self.at.offset),
                )?;
                let aside = format!("{}/foreign-{}", layout::store::JOURNAL, self.at.seq + 1);
                disk.publish(Area::Store, &aside, &foreign, true)?;
                disk.truncate(Area::Store, path, self.at.offset)?;
                Ok(())
            }
        }
    }

    /// Starts a new segment; the next record must be a checkpoint.
    pub fn rotate(&mut self) {
        self.at.segment = self.at.segment.max(1) + 1;
        self.at.offset = 0;
    }

    /// Whether the segment is long enough to be rotated.
    #[must_use]
    pub fn wants_rotation(&self) -> bool {
        self.at.offset >= limits::JOURNAL_SEGMENT
    }
}

/// Numbers of the segments, from 1 without gaps. Whatever else has the name of a segment is an error: what
/// is not read must not look as if it had been.
///
/// # Errors
/// [`JournalError::Disk`] for a segment that is no plain file, [`JournalError::Segments`].
pub fn segments<D: Disk>(disk: &mut D) -> Result<Vec<u32>, JournalError> {
    let dir = layout::store::JOURNAL;
    if let Some(name) =
        disk.irregular(Area::Store, dir)?.into_iter().find(|name| name.ends_with(SEGMENT_SUFFIX))
    {
        return Err(JournalError::Disk(DiskError {
            kind: DiskErrorKind::Unsafe,
            op: "read",
            area: Area::Store,
            path: format!("{dir}/{name}"),
            detail: "it is not a regular file; inspect it and move it away".to_owned(),
        }));
    }
    let mut numbers: Vec<u32> = Vec::new();
    for name in disk.list(Area::Store, dir)? {
        let Some(stem) = name.strip_suffix(SEGMENT_SUFFIX) else { continue };
        let file = format!("{dir}/{name}");
        match stem.parse::<u32>() {
            Ok(number) if number > 0 && layout::segment(number) == file => numbers.push(number),
            _ => {
                let what = "is not the name of a segment".to_owned();
                return Err(JournalError::Segments { file: peers_sys::term::inline(&file), what });
            }
        }
    }
    numbers.sort_unstable();
    match (1..).zip(&numbers).find(|(due, number)| due != *number) {
        None => Ok(numbers),
        Some((due, _)) => Err(JournalError::Segments {
            file: layout::segment(due),
            what: "is missing, but another segment follows".to_owned(),
        }),
    }
}

/// Whether `at` is a place that this journal really has: its segment is long enough and the line
/// that ends there has that hash.
///
/// # Errors
/// [`JournalError::Disk`].
pub fn holds<D: Disk>(disk: &mut D, at: &Position) -> Result<bool, JournalError> {
    if at.seq == 0 {
        return Ok(at.offset == 0 && at.hash.is_empty());
    }
    let path = layout::segment(at.segment);
    if disk.len(Area::Store, &path)?.is_none_or(|len| len < at.offset) || at.offset == 0 {
        return Ok(false);
    }
    let mut window = 64 * limits::KIB;
    loop {
        let start = at.offset.saturating_sub(window);
        let bytes = disk.read_at(Area::Store, &path, start, at.offset - start)?;
        let Some((b'\n', body)) = bytes.split_last() else { return Ok(false) };
        match body.iter().rposition(|b| *b == b'\n') {
            Some(newline) => return Ok(sha256_hex(body.get(newline + 1..).unwrap_or_default()) == at.hash),
            None if start == 0 => return Ok(sha256_hex(body) == at.hash),
            None if window > 2 * limits::JOURNAL_LINE => return Ok(false),
            None => window *= 4,
        }
    }
}

/// Whether each of the first `len` bytes' lines of the first segment continues the one before it. Nothing else of
/// them is looked at, so this costs little; a line of a newer program says nothing.
///
/// # Errors
/// [`JournalError::Damaged`] for the first that does not.
pub fn chained<D: Disk>(disk: &mut D, len: u64) -> Result<(), JournalError> {
    #[derive(Deserialize)]
    struct Link<'a> {
        v: u32,
        #[serde(borrow)]
        prev: std::borrow::Cow<'a, str>,
    }
    let path = layout::segment(1);
    let bytes = disk.read_at(Area::Store, &path, 0, len)?;
    let mut hash = String::new();
    for (n, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Link<'_>>(text) {
            Ok(Link { v, .. }) if v > LINE_VERSION => return Ok(()),
            Ok(Link { prev, .. }) if prev == hash => {}
            read => {
                let what = match read {
                    Ok(_) => "does not continue the line before it (hash chain broken)".to_owned(),
                    Err(error) => format!("is not a record this version can read ({error})"),
                };
                return Err(JournalError::Damaged { file: path, line: n, what });
            }
        }
        hash = sha256_hex(text);
    }
    Ok(())
}

/// Reads a segment from `at` on. Returns the bytes of a torn last line.
fn scan<D: Disk, E: From<JournalError>>(
    disk: &mut D,
    path: &str,
    at: &mut Position,
    each: &mut dyn FnMut(Read) -> Result<(), E>,
) -> Result<Option<Vec<u8>>, E> {
    const CHUNK: u64 = 4 * limits::MIB;
    let mut pending: Vec<u8> = Vec::new();
    let mut next = at.offset;
    loop {
        let chunk = disk.read_at(Area::Store, path, next, CHUNK).map_err(|e| E::from(e.into()))?;
        if chunk.is_empty() {
            break;
        }
        next += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        pending.extend_from_slice(&chunk);
        let mut done = 0;
        while let Some(end) = pending.get(done..).and_then(|rest| rest.iter().position(|b| *b == b'\n')) {
            let text = pending.get(done..done + end).unwrap_or_default();
            let line = check(path, at, text).map_err(|mut error| {
                number(&mut error, line_number(disk, at));
                E::from(error)
            })?;
            at.seq = line.seq;
            at.hash = sha256_hex(text);
            at.offset += u64::try_from(end + 1).unwrap_or(u64::MAX);
            done += end + 1;
            each(Read { line, end: at.clone() })?;
        }
        pending.drain(..done);
        if u64::try_from(pending.len()).unwrap_or(u64::MAX) > limits::JOURNAL_LINE {
            let what = format!("is longer than {} bytes", limits::JOURNAL_LINE);
            return Err(E::from(JournalError::Damaged {
                file: path.into(),
                line: line_number(disk, at),
                what,
            }));
        }
    }
    Ok((!pending.is_empty()).then_some(pending))
}

fn number(error: &mut JournalError, n: u64) {
    if let JournalError::Damaged { line, .. } | JournalError::Newer { line, .. } = error {
        *line = n;
    }
}

/// The line behind `at`, if that is what `text` is. An error does not know its number.
pub(crate) fn check(path: &str, at: &Position, text: &[u8]) -> Result<Line, JournalError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let damaged = |what: String| JournalError::Damaged { file: path.into(), line: 0, what };
    let parsed = match Line::read(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            if let Ok(Version { v }) = serde_json::from_slice::<Version>(text)
                && v > LINE_VERSION
            {
                return Err(JournalError::Newer { file: path.into(), line: 0, found: v });
            }
            return Err(damaged(format!("is not a record this version can read ({error})")));
        }
    };
    if parsed.v > LINE_VERSION {
        return Err(JournalError::Newer { file: path.into(), line: 0, found: parsed.v });
    }
    if parsed.seq != at.seq + 1 {
        return Err(damaged(format!("has number {}, but {} is next", parsed.seq, at.seq + 1)));
    }
    if parsed.prev != at.hash {
        return Err(damaged("does not continue the line before it (hash chain broken)".into()));
    }
    Ok(parsed)
}

/// The line of its file that starts at `at`, from 1. Reads the file; only for messages.
fn line_number<D: Disk>(disk: &mut D, at: &Position) -> u64 {
    let bytes = disk.read_at(Area::Store, &layout::segment(at.segment), 0, at.offset).unwrap_or_default();
    bytes.iter().fold(1, |n, b| n + u64::from(*b == b'\n'))
}
