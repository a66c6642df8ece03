//! The journal from its end: the one reader of what was written last.

use std::ops::ControlFlow;

use peers_model::limits;
use peers_store::journal::{self, JournalError};
use peers_store::{Area, Disk, layout};

/// A record's tag stands within so many bytes of its start.
const ENVELOPE: usize = 512;
/// Most bytes of a piece, unless a single line is longer.
const LARGEST: u64 = 4 * limits::MIB;

/// Bytes that are looked at: first, and in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) first: u64,
    pub(crate) most: u64,
}

/// Whole lines that follow each other, oldest first and without their line ends.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) segment: u32,
    /// Where the first of them begins in the segment.
    pub(crate) start: u64,
    pub(crate) lines: Vec<&'a [u8]>,
}

/// What is known of the journal's end besides its lines.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Bytes behind the last line end.
    pub(crate) torn: u64,
    /// Older lines were not looked at for want of room.
    pub(crate) cut: bool,
}

/// The newest segment; 0 where there is none.
///
/// # Errors
/// [`JournalError`].
pub(crate) fn newest<D: Disk>(disk: &mut D) -> Result<u32, JournalError> {
    Ok(journal::segments(disk)?.last().copied().unwrap_or_default())
}

/// Gives the end of the journal piece by piece, the newest one first, until `take` breaks off. `newest` is the
/// newest segment.
///
/// # Errors
/// [`JournalError::Disk`].
pub(crate) fn pieces<D: Disk>(
    disk: &mut D,
    newest: u32,
    Window { first, most }: Window,
    mut take: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> Result<End, JournalError> {
    let mut end = End::default();
    let (mut left, mut window) = (most, first);
    for segment in (1..=newest).rev() {
        let path = layout::segment(segment);
        let mut start = disk.len(Area::Store, &path)?.unwrap_or_default();
        // What lies behind `start` and was not given out; but for the first look it ends in a line end.
        let mut held: Vec<u8> = Vec::new();
        let mut ended = false;
        while start > 0 {
            let size = window.min(start).min(left);
            if size == 0 {
                end.cut = true;
                return Ok(end);
            }
            (start, left) = (start - size, left - size);
            window = window.saturating_mul(2).min(LARGEST.max(first));
            let mut bytes = disk.read_at(Area::Store, &path, start, size)?;
            bytes.append(&mut held);
            if !ended {
                let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                if whole == 0 && start > 0 {
                    held = bytes;
                    continue;
                }
                if segment == newest {
                    end.torn = u64::try_from(bytes.len() - whole).unwrap_or(u64::MAX);
                }
                bytes.truncate(whole);
                ended = true;
            }
            // Without the segment's beginning the first line may be cut.
            let begin = match bytes.iter().position(|b| *b == b'\n') {
                Some(at) if start > 0 => at + 1,
                _ => 0,
            };
            let (cut, whole) = bytes.split_at(begin);
            if let Some(text) = whole.strip_suffix(b"\n") {
                let start = start + u64::try_from(begin).unwrap_or(u64::MAX);
                let lines = text.split(|b| *b == b'\n').collect();
                if take(&Piece { segment, start, lines }).is_break() {
                    return Ok(end);
                }
            }
            held = cut.to_vec();
        }
    }
    Ok(end)
}

/// The tag of a record, as it is written. In a text of a record every quote is escaped, so none of it looks
/// like the tag, and the envelope before it holds no text of anybody.
pub(crate) fn tag(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"event\":\"";
    let head = line.get(..ENVELOPE).unwrap_or(line);
    let start = head.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let rest = head.get(start..)?;
    rest.get(..rest.iter().position(|b| *b == b'"')?)
}
