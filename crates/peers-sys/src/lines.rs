//! Reading a file of lines as a stream, with a cap per line and none on the file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::dir::{FileError, SafeDir, io_error};

const BUFFER: usize = 64 * 1024;

/// The lines of a file from some offset on.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<ReadAt>,
    path: PathBuf,
    cap: u64,
    offset: u64,
    line: Vec<u8>,
}

/// One line, without its `\n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'l> {
    /// A complete line.
    Whole {
        /// Where it begins in the file.
        offset: u64,
        /// Its bytes.
        bytes: &'l [u8],
    },
    /// A line beyond the cap, skipped.
    TooLong {
        /// Where it begins in the file.
        offset: u64,
        /// Its length, the line end included.
        len: u64,
    },
    /// The last line without its end: a writer is at work or crashed.
    Torn {
        /// Where it begins in the file.
        offset: u64,
        /// The bytes that are there.
        bytes: &'l [u8],
    },
}

impl SafeDir {
    /// The lines of `name`, each at most `cap` bytes.
    ///
    /// # Errors
    /// [`FileError::NotFound`], and those with [`FileError::is_unsafe`].
    pub fn lines(&self, name: impl AsRef<OsStr>, cap: u64) -> Result<Lines, FileError> {
        let name = name.as_ref();
        Ok(Lines::new(self.open_read(name)?, self.full(name), 0, cap))
    }
}

impl Lines {
    /// The lines of an open file from `offset` on, whatever its own position is; `path` is for messages.
    pub(crate) fn new(file: File, path: PathBuf, offset: u64, cap: u64) -> Self {
        let reader = BufReader::with_capacity(BUFFER, ReadAt { file, offset });
        Self { reader, path, cap, offset, line: Vec::new() }
    }

    /// The next line, `None` at the end of the file. Lines appended later are seen by calling again,
    /// except behind a torn one.
    ///
    /// # Errors
    /// [`FileError::Io`].
    #[expect(clippy::should_implement_trait, reason = "the line borrows the buffer")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, FileError> {
        let failed = |e| io_error(&self.path, "read", e);
        self.line.clear();
        let limit = self.cap.saturating_add(1);
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut self.line).map_err(failed)?;
        let mut len = u64::try_from(read).unwrap_or(u64::MAX);
        let offset = self.offset;
        let line = if len == 0 {
            None
        } else if self.line.last() == Some(&b'\n') {
            self.line.pop();
            Some(Line::Whole { offset, bytes: &self.line })
        } else if len == limit {
            let rest = self.reader.skip_until(b'\n').map_err(failed)?;
            len = len.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX));
            Some(Line::TooLong { offset, len })
        } else {
            Some(Line::Torn { offset, bytes: &self.line })
        };
        self.offset = offset.saturating_add(len);
        Ok(line)
    }

    /// Where the next line begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// Reads at a position of its own: a duplicated handle shares the position with whoever appends.
#[derive(Debug)]
struct ReadAt {
    file: File,
    offset: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.offset)?;
        self.offset = self.offset.saturating_add(u64::try_from(read).unwrap_or(0));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8], cap: u64) -> Lines {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("log"), content).unwrap();
        SafeDir::open_root(tmp.path()).unwrap().lines("log", cap).unwrap()
    }

    #[test]
    fn lines_come_with_their_offsets_and_a_torn_end_is_told() {
        let mut lines = lines(b"ab\n\ncd", 10);
        assert_eq!(lines.next().unwrap(), Some(Line::Whole { offset: 0, bytes: b"ab" }));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole { offset: 3, bytes: b"" }));
        assert_eq!(lines.next().unwrap(), Some(Line::Torn { offset: 4, bytes: b"cd" }));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.offset(), 6);
    }

    #[test]
    fn a_line_of_exactly_the_cap_is_whole_and_one_more_byte_is_too_long() {
        let mut lines = lines(b"abcd\nabcde\nabcdefghij\nx\n", 4);
        assert_eq!(lines.next().unwrap(), Some(Line::Whole { offset: 0, bytes: b"abcd" }));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong { offset: 5, len: 6 }));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong { offset: 11, len: 11 }));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole { offset: 22, bytes: b"x" }));
        assert_eq!(lines.next().unwrap(), None);
    }
}
