//! A bounded, incremental line splitter.

/// One line without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes of the line, or its first `cap` bytes when it is `cut`.
    pub bytes: &'a [u8],
    /// The line was longer than the cap; the rest was dropped.
    pub cut: bool,
}

/// Splits a byte stream into lines, holding at most `cap` bytes of an unfinished one.
///
/// The lines do not depend on how the stream is split into chunks.
#[derive(Debug)]
pub struct LineSplitter {
    cap: usize,
    held: Vec<u8>,
    open: bool,
    cut: bool,
}

impl LineSplitter {
    /// A splitter that keeps at most `cap` bytes of one line.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self { cap, held: Vec::new(), open: false, cut: false }
    }

    /// Takes the next bytes of the stream and hands each finished line to `line`.
    pub fn feed(&mut self, mut chunk: &[u8], mut line: impl FnMut(Line<'_>)) {
        while let Some(at) = line_feed(chunk) {
            let (head, tail) = chunk.split_at(at);
            chunk = tail.get(1..).unwrap_or_default();
            if self.open {
                self.hold(head);
                line(Line { bytes: &self.held, cut: self.cut });
                self.reset();
            } else {
                let kept = head.get(..self.cap).unwrap_or(head);
                line(Line { bytes: kept, cut: kept.len() < head.len() });
            }
        }
        if !chunk.is_empty() {
            self.open = true;
            self.hold(chunk);
        }
    }

    /// The unfinished line, if there is one.
    #[must_use]
    pub fn tail(&self) -> Option<Line<'_>> {
        self.open.then_some(Line { bytes: &self.held, cut: self.cut })
    }

    /// How many bytes of the unfinished line it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Hands out the unfinished line as the last one. Call it when the stream has ended.
    pub fn finish(&mut self, mut line: impl FnMut(Line<'_>)) {
        if self.open {
            line(Line { bytes: &self.held, cut: self.cut });
            self.reset();
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.cap.saturating_sub(self.held.len());
        let kept = bytes.get(..room).unwrap_or(bytes);
        self.held.extend_from_slice(kept);
        self.cut |= kept.len() < bytes.len();
    }

    fn reset(&mut self) {
        // One huge line must not pin its buffer for the rest of the run.
        if self.held.capacity() > 256 * 1024 {
            self.held = Vec::new();
        } else {
            self.held.clear();
        }
        self.open = false;
        self.cut = false;
    }
}

/// The place of the first line feed. `contains` searches a word at a time, `position` does not.
fn line_feed(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 128;
    let block = bytes.chunks(BLOCK).position(|block| block.contains(&b'\n'))?;
    let start = block * BLOCK;
    let within = bytes.get(start..)?.iter().position(|&byte| byte == b'\n')?;
    Some(start + within)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(cap: usize, chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut splitter = LineSplitter::new(cap);
        let mut out = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |line| out.push((line.bytes.to_vec(), line.cut)));
        }
        splitter.finish(|line| out.push((line.bytes.to_vec(), line.cut)));
        out
    }

    #[test]
    fn an_unterminated_tail_is_a_line_and_nothing_after_a_line_feed_is_none() {
        assert_eq!(split(99, &[b"a\nb"]), [(b"a".to_vec(), false), (b"b".to_vec(), false)]);
        assert_eq!(split(99, &[b"a\n"]), [(b"a".to_vec(), false)]);
        assert_eq!(split(99, &[b"\n\n"]), [(vec![], false), (vec![], false)]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let want = [(b"abc".to_vec(), true), (b"xy".to_vec(), false)];
        assert_eq!(split(3, &[b"abcdef\nxy"]), want);
        assert_eq!(split(3, &[b"ab", b"cd", b"ef\n", b"xy"]), want);
    }

    #[test]
    fn an_endless_line_holds_no_more_than_the_cap() {
        let mut splitter = LineSplitter::new(1000);
        for _ in 0..1000 {
            splitter.feed(&[b'x'; 8192], |_| panic!("no line feed was sent"));
        }
        assert!(splitter.held.capacity() <= 2000, "{}", splitter.held.capacity());
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunks(
            bytes in prop::collection::vec(prop::sample::select(vec![b'\n', b'a', b'b', 0xff]), 0..200),
            cuts in prop::collection::vec(0usize..200, 0..8),
            cap in 1usize..12,
        ) {
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(split(cap, &chunks), split(cap, &[&bytes]));
        }
    }
}
