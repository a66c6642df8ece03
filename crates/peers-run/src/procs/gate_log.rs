//! The full output of a gate on disk.

use std::io::Write;

use peers_sys::dir::WriteMode;
use peers_sys::{FileError, SafeDir};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 64 * 1024;

/// A log that comes into being with its first byte. That it cannot be written is one warning.
pub(super) struct GateLog {
    peers: Option<SafeDir>,
    dir: &'static str,
    name: String,
    left: u64,
    waiting: Vec<u8>,
    out: Option<Box<dyn Write>>,
    mode: WriteMode,
}

impl GateLog {
    /// `dir` is below `peers`; without `peers` nothing is written.
    pub(super) fn new(peers: Option<&SafeDir>, dir: &'static str, name: String, cap: u64) -> Self {
        let peers = peers.and_then(|peers| peers.try_clone().ok());
        Self { peers, dir, name, left: cap, waiting: Vec::new(), out: None, mode: WriteMode::Truncate }
    }

    /// Adds bytes that hold no secret.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.peers.is_none() || self.left == 0 || bytes.is_empty() {
            return;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.waiting.extend_from_slice(taken);
        self.left = self.left.saturating_sub(u64::try_from(taken.len()).unwrap_or(u64::MAX));
        if self.left == 0 {
            self.waiting.extend_from_slice(b"\n[peers: the log ends here, it has reached its limit]\n");
        }
        if self.waiting.len() >= BUFFER || self.left == 0 {
            self.flush();
        }
    }

    /// What is there already stays: it is of an earlier attempt.
    pub(super) fn go_on(&mut self) {
        self.mode = WriteMode::Append;
    }

    /// Says that another attempt begins.
    pub(super) fn attempt(&mut self, number: u8) {
        self.write(format!("\n[peers: attempt {number}]\n").as_bytes());
    }

    /// Writes what was gathered.
    pub(super) fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let written = match self.out() {
            Ok(None) => return,
            Ok(Some(out)) => out.write_all(&waiting).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::warn!(file = self.name, error, "the output of a gate is not kept");
            self.peers = None;
        }
    }

    fn out(&mut self) -> Result<Option<&mut Box<dyn Write>>, FileError> {
        if self.out.is_none() {
            let Some(peers) = &self.peers else { return Ok(None) };
            let file = peers.create_path(self.dir)?.create_file_for_write(&self.name, self.mode)?;
            self.out = Some(Box::new(file));
        }
        Ok(self.out.as_mut())
    }
}

impl Drop for GateLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &tempfile::TempDir, cap: u64) -> GateLog {
        let peers = SafeDir::open_root(dir.path()).unwrap();
        GateLog::new(Some(&peers), "log/gates", "g.log".into(), cap)
    }

    fn text(dir: &tempfile::TempDir) -> String {
        std::fs::read_to_string(dir.path().join("log/gates/g.log")).unwrap()
    }

    #[test]
    fn a_silent_gate_leaves_no_log() {
        let dir = tempfile::tempdir().unwrap();
        drop(log(&dir, 100));
        assert!(!dir.path().join("log").exists());
    }

    #[test]
    fn a_log_starts_anew_and_stops_at_its_cap() {
        let dir = tempfile::tempdir().unwrap();
        log(&dir, 100).write(b"older");
        let mut second = log(&dir, 6);
        second.write(b"abcd");
        second.write(b"efgh");
        second.write(b"ijkl");
        drop(second);
        assert_eq!(text(&dir), "abcdef\n[peers: the log ends here, it has reached its limit]\n");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log"), "in the way").unwrap();
        let mut log = log(&dir, 1 << 20);
        log.write(&vec![b'x'; BUFFER]);
        assert!(log.peers.is_none());
    }
}
