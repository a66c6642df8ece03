//! Append-only files of lines: the journal, mirrors and logs of ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::dir::{FileError, SafeDir, io_error};
use crate::lines::Lines;

const SCAN: usize = 64 * 1024;

/// An append-only file with one writer, who holds the lock that belongs to it.
///
/// Either a record is in the file as a whole or it is not: a write that fails half-way is taken back.
/// Only a crash can leave a torn last line, see [`AppendLog::drop_torn_tail`].
#[derive(Debug)]
pub struct AppendLog {
    file: File,
    path: PathBuf,
    len: u64,
    /// A failed write that could not be taken back yet.
    dirty: bool,
    line: Vec<u8>,
}

impl AppendLog {
    /// Opens `name` in `dir`, made with mode 0600 when it is missing.
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn open(dir: &SafeDir, name: impl AsRef<OsStr>) -> Result<Self, FileError> {
        let name = name.as_ref();
        let (file, stat) = dir.open_regular(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        if stat.size == 0 {
            // It may be new: records in a file without a durable name would be lost with it.
            dir.sync()?;
        }
        Ok(Self { file, path: dir.full(name), len: stat.size, dirty: false, line: Vec::new() })
    }

    /// Appends `record` in one write and returns its offset. A missing final `\n` is added. Not synced.
    ///
    /// # Errors
    /// [`FileError::Io`]; nothing of the record is in the file then.
    pub fn append(&mut self, record: &[u8]) -> Result<u64, FileError> {
        if self.dirty {
            self.take_back()?;
        }
        let bytes = if record.last() == Some(&b'\n') {
            record
        } else {
            self.line.clear();
            self.line.extend_from_slice(record);
            self.line.push(b'\n');
            &self.line
        };
        let written = loop {
            match self.file.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let error = match written {
            Ok(n) if n == bytes.len() => {
                let offset = self.len;
                self.len = offset.saturating_add(len);
                return Ok(offset);
            }
            // A regular file takes less than was asked for only when there is no room for more.
            Ok(_) => io::Error::new(io::ErrorKind::StorageFull, "short write"),
            Err(e) => e,
        };
        self.dirty = true;
        // When this fails too, the next append tries again before it writes.
        drop(self.take_back());
        Err(io_error(&self.path, "append to", error))
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// [`FileError::Io`]; what was appended since the last sync may or may not survive then, and the
    /// caller must stop.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.file.sync_data().map_err(|e| io_error(&self.path, "sync", e))
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The display path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts the file to `len` bytes, whoever wrote what follows; a greater length changes nothing.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn truncate(&mut self, len: u64) -> Result<(), FileError> {
        let there = self.file.metadata().map_err(|e| io_error(&self.path, "look at", e))?.len();
        if len < there {
            self.len = len;
            self.take_back()?;
        }
        Ok(())
    }

    /// Where the last line begins if it lacks its end.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn torn_tail(&self) -> Result<Option<u64>, FileError> {
        let mut block = vec![0; SCAN];
        let mut end = self.len;
        while end > 0 {
            let start = end.saturating_sub(u64::try_from(SCAN).unwrap_or(0));
            let size = usize::try_from(end - start).unwrap_or(SCAN);
            let block = block.get_mut(..size).unwrap_or_default();
            self.file.read_exact_at(block, start).map_err(|e| io_error(&self.path, "read", e))?;
            if let Some(at) = block.iter().rposition(|&b| b == b'\n') {
                let line = start.saturating_add(u64::try_from(at).unwrap_or(0)).saturating_add(1);
                return Ok((line < self.len).then_some(line));
            }
            end = start;
        }
        Ok((self.len > 0).then_some(0))
    }

    /// Removes a torn last line, which a crashed writer left. Returns its length, 0 when there is none.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn drop_torn_tail(&mut self) -> Result<u64, FileError> {
        let Some(start) = self.torn_tail()? else { return Ok(0) };
        let torn = self.len - start;
        self.truncate(start)?;
        Ok(torn)
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// [`FileError::Io`], also when the file ends before.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), FileError> {
        self.file.read_exact_at(buf, offset).map_err(|e| io_error(&self.path, "read", e))
    }

    /// The lines from `offset` on, each at most `cap` bytes.
    ///
    /// # Errors
    /// [`FileError::Io`] when no descriptor is left.
    pub fn lines(&self, offset: u64, cap: u64) -> Result<Lines, FileError> {
        let file = self.file.try_clone().map_err(|e| io_error(&self.path, "duplicate", e))?;
        Ok(Lines::new(file, self.path.clone(), offset, cap))
    }

    fn take_back(&mut self) -> Result<(), FileError> {
        self.file.set_len(self.len).map_err(|e| io_error(&self.path, "truncate", e))?;
        self.dirty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Line;
    use crate::testing;

    fn log() -> (tempfile::TempDir, AppendLog) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::open_root(tmp.path()).unwrap();
        let log = AppendLog::open(&dir, "journal").unwrap();
        (tmp, log)
    }

    fn content(tmp: &tempfile::TempDir) -> Vec<u8> {
        std::fs::read(tmp.path().join("journal")).unwrap()
    }

    #[test]
    fn every_record_ends_in_a_newline_and_knows_its_offset() {
        let (tmp, mut log) = log();
        assert!(log.is_empty());
        assert_eq!(log.append(b"one").unwrap(), 0);
        assert_eq!(log.append(b"two\n").unwrap(), 4);
        log.sync().unwrap();
        assert_eq!(log.len(), 8);
        assert_eq!(content(&tmp), b"one\ntwo\n");
        let mut two = [0; 3];
        log.read_at(4, &mut two).unwrap();
        assert_eq!(&two, b"two");
        assert!(log.read_at(6, &mut two).is_err());
    }

    #[test]
    fn opening_again_goes_on_at_the_end() {
        let (tmp, mut log) = log();
        log.append(b"one").unwrap();
        let mut again = AppendLog::open(&SafeDir::open_root(tmp.path()).unwrap(), "journal").unwrap();
        assert_eq!(again.append(b"two").unwrap(), 4);
        assert_eq!(content(&tmp), b"one\ntwo\n");
    }

    #[test]
    fn reading_lines_does_not_move_the_writer() {
        let (tmp, mut log) = log();
        log.append(b"one").unwrap();
        log.append(b"two").unwrap();
        let mut lines = log.lines(4, 100).unwrap();
        assert_eq!(lines.next().unwrap(), Some(Line::Whole { offset: 4, bytes: b"two" }));
        log.append(b"three").unwrap();
        assert_eq!(content(&tmp), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_torn_tail_is_found_and_dropped() {
        let (tmp, mut log) = log();
        assert_eq!(log.torn_tail().unwrap(), None);
        log.append(b"one").unwrap();
        assert_eq!(log.torn_tail().unwrap(), None);
        let torn = format!("one\n{}", "x".repeat(200_000));
        std::fs::write(tmp.path().join("journal"), &torn).unwrap();
        let mut log = AppendLog::open(&SafeDir::open_root(tmp.path()).unwrap(), "journal").unwrap();
        assert_eq!(log.torn_tail().unwrap(), Some(4));
        assert_eq!(log.drop_torn_tail().unwrap(), 200_000);
        assert_eq!(log.drop_torn_tail().unwrap(), 0);
        assert_eq!(content(&tmp), b"one\n");
    }

    #[test]
    fn a_file_that_is_one_torn_line_is_dropped_whole() {
        let (tmp, _) = log();
        std::fs::write(tmp.path().join("journal"), b"{\"half").unwrap();
        let mut log = AppendLog::open(&SafeDir::open_root(tmp.path()).unwrap(), "journal").unwrap();
        assert_eq!(log.drop_torn_tail().unwrap(), 6);
        assert!(log.is_empty() && content(&tmp).is_empty());
    }

    #[test]
    fn truncating_never_lengthens() {
        let (tmp, mut log) = log();
        log.append(b"one").unwrap();
        log.append(b"two").unwrap();
        log.truncate(100).unwrap();
        assert_eq!(log.len(), 8);
        log.truncate(4).unwrap();
        assert_eq!(log.append(b"new").unwrap(), 4);
        assert_eq!(content(&tmp), b"one\nnew\n");
    }

    #[test]
    fn a_short_write_is_taken_back_and_writing_goes_on() {
        let Some(place) = testing::in_child("append::tests::a_short_write_is_taken_back_and_writing_goes_on")
        else {
            return;
        };
        let dir = SafeDir::open_root(&place).unwrap();
        let mut log = AppendLog::open(&dir, "journal").unwrap();
        log.append(b"kept").unwrap();
        let full = testing::with_file_size_limit(20, || log.append(&[b'x'; 100]).unwrap_err());
        assert!(full.is_disk_full(), "{full}");
        assert_eq!(dir.read("journal", 1000).unwrap(), b"kept\n");
        log.append(b"next").unwrap();
        assert_eq!(dir.read("journal", 1000).unwrap(), b"kept\nnext\n");
    }
}
