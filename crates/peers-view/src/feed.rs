//! Following the journal while it grows.
//!
//! The place in it is the end of the last whole line that was given out. An unfinished line is left
//! for the next look, a new segment is gone over to once the old one is read to its end, and a journal
//! that became shorter than what was read is said to be another one. Memory is bounded by one look.

use std::ops::ControlFlow;

use peers_model::limits;
use peers_model::record::{LINE_VERSION, Line};
use peers_store::{Area, Disk, DiskError, JournalError, journal, layout};
use peers_sys::digest::sha256_hex;

use crate::backwards::{self, Window};

/// So much is read in one look, unless a single line is longer.
const LOOK: u64 = 4 * limits::MIB;

/// A place in the journal from which it is followed.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    segment: u32,
    offset: u64,
    /// Number and hash of the last line, as far as known.
    last: Option<(u64, String)>,
    /// Within a line that is longer than any record: bytes of it so far.
    skipping: u64,
}

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedItem {
    /// A record.
    Line(Box<Line>),
    /// A line that cannot be read, or does not follow the one before.
    Unreadable {
        /// Its segment.
        segment: u32,
        /// Where it begins, in bytes.
        offset: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The journal is not the one that was followed: it begins anew.
    Replaced,
}

/// The result of one look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Polled {
    /// What came, in order.
    pub items: Vec<FeedItem>,
    /// There is more already: look again without waiting.
    pub more: bool,
}

impl Feed {
    /// From `lines` records before the end; fewer when they are long.
    ///
    /// # Errors
    /// [`JournalError::Disk`].
    pub fn tail<D: Disk>(disk: &mut D, lines: usize) -> Result<Self, JournalError> {
        let newest = backwards::newest(disk)?;
        let (mut feed, mut left) = (Self { segment: newest, ..Self::default() }, lines);
        let window = Window { first: LOOK, most: LOOK };
        backwards::pieces(disk, newest, window, |piece| {
            let skip = piece.lines.len().saturating_sub(left);
            let bytes: usize = piece.lines.iter().take(skip).map(|line| line.len() + 1).sum();
            feed.segment = piece.segment;
            feed.offset = piece.start + u64::try_from(bytes).unwrap_or(u64::MAX);
            left -= piece.lines.len() - skip;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(feed)
    }

    /// Reads what has come since. Gives at most a few megabytes at a time.
    ///
    /// # Errors
    /// [`JournalError::Disk`]; the place is unchanged then.
    pub fn poll<D: Disk>(&mut self, disk: &mut D) -> Result<Polled, JournalError> {
        let mut polled = Polled::default();
        let segments = journal::segments(disk)?;
        if segments.is_empty() {
            if self.segment > 0 {
                *self = Self::default();
                polled.items.push(FeedItem::Replaced);
            }
            return Ok(polled);
        }
        if self.segment == 0 {
            self.segment = segments.first().copied().unwrap_or_default();
        }
        let len = disk.len(Area::Store, &layout::segment(self.segment))?;
        if len.is_none_or(|len| len < self.offset) {
            let first = segments.first().copied().unwrap_or_default();
            *self = Self { segment: first, ..Self::default() };
            polled.items.push(FeedItem::Replaced);
            polled.more = true;
            return Ok(polled);
        }
        let read = self.read(disk, &mut polled)?;
        if read > 0 {
            polled.more = read >= LOOK || segments.iter().any(|number| *number > self.segment);
            return Ok(polled);
        }
        // Nothing new here; is there a newer segment?
        if let Some(next) = segments.into_iter().find(|number| *number > self.segment) {
            // The loop may have written the last line of the old one just before.
            if self.read(disk, &mut polled)? == 0 {
                self.segment = next;
                self.offset = 0;
                self.skipping = 0;
            }
            polled.more = true;
        }
        Ok(polled)
    }

    /// Takes whole lines from the place on; gives the bytes that it went forward.
    fn read<D: Disk>(&mut self, disk: &mut D, polled: &mut Polled) -> Result<u64, DiskError> {
        let path = layout::segment(self.segment);
        let mut window = LOOK;
        let begun = self.offset;
        loop {
            let bytes = disk.read_at(Area::Store, &path, self.offset, window)?;
            let got = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            let Some(newline) = bytes.iter().rposition(|b| *b == b'\n') else {
                if got < window {
                    return Ok(self.offset - begun);
                }
                if window <= limits::JOURNAL_LINE {
                    window = limits::JOURNAL_LINE + 1;
                    continue;
                }
                // No record is so long. What is there goes; the line's end will come or not.
                self.skipping = self.skipping.saturating_add(got);
                self.offset += got;
                return Ok(self.offset - begun);
            };
            let mut at = 0;
            for text in bytes.get(..newline).unwrap_or_default().split(|b| *b == b'\n') {
                let start = self.offset + u64::try_from(at).unwrap_or(u64::MAX);
                let item = self.line(text, start);
                polled.items.push(item);
                at += text.len() + 1;
            }
            self.offset += u64::try_from(at).unwrap_or(u64::MAX);
            return Ok(self.offset - begun);
        }
    }

    fn line(&mut self, text: &[u8], start: u64) -> FeedItem {
        let unreadable = |offset, why: String| FeedItem::Unreadable { segment: self.segment, offset, why };
        if self.skipping > 0 {
            let offset = start.saturating_sub(self.skipping);
            self.skipping = 0;
            self.last = None;
            return unreadable(offset, format!("is longer than {} bytes", limits::JOURNAL_LINE));
        }
        let line = match Line::read(text) {
            Ok(line) if line.v <= LINE_VERSION => line,
            Ok(line) => {
                self.last = None;
                return unreadable(start, format!("has format {}, newer than this program", line.v));
            }
            Err(error) => {
                self.last = None;
                return unreadable(start, format!("is not a record that this program can read ({error})"));
            }
        };
        let broken = match &self.last {
            Some((seq, _)) if line.seq != seq.saturating_add(1) => {
                Some(format!("has number {}, but {} is next", line.seq, seq.saturating_add(1)))
            }
            Some((_, hash)) if line.prev != *hash => {
                Some("does not continue the line before it (hash chain broken)".to_owned())
            }
            _ => None,
        };
        self.last = Some((line.seq, sha256_hex(text)));
        match broken {
            Some(why) => FeedItem::Unreadable { segment: self.segment, offset: start, why },
            None => FeedItem::Line(Box::new(line)),
        }
    }
}
