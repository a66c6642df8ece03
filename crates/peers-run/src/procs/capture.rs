//! The beginning and the end of a stream, in bounded memory.

use std::collections::VecDeque;
use std::fmt::Write as _;

const KIB: usize = 1024;

/// Keeps the first and the last bytes of whatever is pushed.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
}

impl Capture {
    /// Keeps `head` bytes of the beginning and `tail` bytes of the end.
    #[must_use]
    pub fn new(head: usize, tail: usize) -> Self {
        Self { head: Vec::new(), head_cap: head, tail: VecDeque::new(), tail_cap: tail, total: 0 }
    }

    /// Keeps `cap` bytes altogether, mostly of the end: that is where a conversation says how it went.
    #[must_use]
    pub fn mostly_tail(cap: usize) -> Self {
        let head = (64 * KIB).min(cap / 4);
        Self::new(head, cap - head)
    }

    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = self.head_cap.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        // Of more than fits only the end can stay.
        let rest = rest.get(rest.len().saturating_sub(self.tail_cap)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Whether something between beginning and end was dropped.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.dropped() > 0
    }

    /// The beginning as it is kept.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// What is kept, as text: bytes that are no UTF-8 are replaced, and a line says what is missing.
    #[must_use]
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        let dropped = self.dropped();
        if dropped == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let mut text = String::from_utf8_lossy(whole_end(&self.head)).into_owned();
        // Writing to a string cannot fail.
        let _infallible = write!(text, "\n[peers: {dropped} bytes left out]\n");
        text.push_str(&String::from_utf8_lossy(whole_start(&[front, back].concat())));
        text
    }

    /// At most the last `max` bytes of what is kept, as text.
    #[must_use]
    pub fn last(&self, max: usize) -> String {
        let from_tail = self.tail.len().min(max);
        let from_head = if self.truncated() { 0 } else { self.head.len().min(max - from_tail) };
        let mut bytes = Vec::with_capacity(from_head + from_tail);
        bytes.extend_from_slice(self.head.get(self.head.len() - from_head..).unwrap_or_default());
        bytes.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        String::from_utf8_lossy(whole_start(&bytes)).into_owned()
    }

    fn dropped(&self) -> u64 {
        let kept = u64::try_from(self.head.len() + self.tail.len()).unwrap_or(u64::MAX);
        self.total.saturating_sub(kept)
    }
}

/// Without the rest of a character whose beginning was cut away.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count();
    bytes.get(cut..).unwrap_or_default()
}

/// Without the beginning of a character whose rest was cut away.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(3);
    let last = bytes.get(from..).unwrap_or_default();
    match last.iter().rposition(|b| *b & 0xc0 != 0x80) {
        Some(at)
            if last
                .get(at..)
                .is_some_and(|c| std::str::from_utf8(c).is_err_and(|e| e.error_len().is_none())) =>
        {
            bytes.get(..from + at).unwrap_or_default()
        }
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut capture = Capture::new(4, 8);
        for chunk in [&b"ab"[..], b"cdef", b"", b"gh"] {
            capture.push(chunk);
        }
        assert_eq!((capture.text().as_str(), capture.truncated()), ("abcdefgh", false));
        assert_eq!(capture.last(3), "fgh");
        assert_eq!(capture.last(100), "abcdefgh");
    }

    #[test]
    fn of_a_long_stream_beginning_and_end_stay() {
        let mut capture = Capture::new(3, 4);
        capture.push(b"0123456789");
        capture.push(b"ab");
        assert_eq!(capture.text(), "012\n[peers: 5 bytes left out]\n89ab");
        assert!(capture.truncated());
        assert_eq!((capture.last(2).as_str(), capture.last(99).as_str()), ("ab", "89ab"));
    }

    #[test]
    fn one_chunk_far_beyond_the_cap_costs_no_more_than_the_cap() {
        let mut capture = Capture::mostly_tail(64 * KIB);
        capture.push(&vec![b'x'; 8 * 1024 * KIB]);
        capture.push(b"end");
        assert_eq!(capture.head.len() + capture.tail.len(), 64 * KIB);
        assert!(capture.text().ends_with("end"));
    }

    #[test]
    fn a_character_that_is_split_over_two_chunks_stays_intact() {
        let mut capture = Capture::new(2, 8);
        capture.push(b"a\xc3");
        capture.push(b"\xa4b\xff");
        assert_eq!(capture.text(), "aäb\u{fffd}");
    }

    #[test]
    fn characters_at_the_cut_are_left_out_whole() {
        let mut capture = Capture::new(2, 3);
        capture.push("aä----ßx".as_bytes());
        assert_eq!(capture.text(), "a\n[peers: 5 bytes left out]\nßx");
        let mut capture = Capture::new(1, 2);
        capture.push("a----ßx".as_bytes());
        assert_eq!(capture.text(), "a\n[peers: 5 bytes left out]\nx");
    }
}
