//! The log: one line of JSON per request that ended.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use peers_model::{PeerName, RunId, Timestamp, limits};
use peers_sys::{AppendLog, FileError, SafeDir};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::reason::{Reason, Verdict};

/// The log is moved aside, over the one moved before, when it is as long as this.
const ROTATED: u64 = 64 * limits::MIB;
/// Lines about requests without a tunnel that are written in one second.
const DENIALS: u32 = 50;
const SECOND: Duration = Duration::from_secs(1);

/// One request that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// When it ended.
    pub ts: Timestamp,
    /// The run.
    pub run: RunId,
    /// The number of the connection in this process.
    pub conn: u64,
    /// Whose socket was used.
    pub peer: Option<PeerName>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The host that was asked for, as written where it is not allowed.
    pub host: Option<String>,
    /// The port that was asked for.
    pub port: Option<u16>,
    /// The address that was connected to.
    pub addr: Option<IpAddr>,
    /// The host that the TLS handshake named.
    pub sni: Option<String>,
    /// Bytes to the host.
    pub up: u64,
    /// Bytes from the host.
    pub down: u64,
    /// From its acceptance to its end.
    pub ms: u64,
}

/// A line in place of others that came too fast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppressed {
    /// When it was written.
    pub ts: Timestamp,
    /// The run.
    pub run: RunId,
    /// Lines that were not written.
    pub suppressed: u64,
}

#[derive(Debug)]
pub(crate) struct Log {
    dir: SafeDir,
    file: AppendLog,
    run: RunId,
    second: Option<Instant>,
    denials: u32,
    suppressed: u64,
    warned: bool,
}

impl Log {
    /// `path` is absolute; the file is made if it is missing.
    pub(crate) fn open(path: &Path, run: RunId) -> Result<Self, FileError> {
        let dir = SafeDir::open_root(path.parent().unwrap_or(path))?;
        let mut file = AppendLog::open(&dir, path.file_name().unwrap_or_default())?;
        file.drop_torn_tail()?;
        Ok(Self { dir, file, run, second: None, denials: 0, suppressed: 0, warned: false })
    }

    /// Writes a line. `now` is its time on the clock that counts denials per second, `line.ts` that for people.
    pub(crate) fn write(&mut self, line: &LogLine, now: Instant) {
        if self.second.is_none_or(|second| now.duration_since(second) >= SECOND) {
            self.flush(line.ts);
            (self.second, self.denials) = (Some(now), 0);
        }
        if line.verdict != Verdict::Allow {
            if self.denials == DENIALS {
                self.suppressed += 1;
                return;
            }
            self.denials += 1;
        }
        self.append(line);
    }

    /// Says how many lines were suppressed since it last did.
    pub(crate) fn flush(&mut self, ts: Timestamp) {
        let suppressed = std::mem::take(&mut self.suppressed);
        if suppressed > 0 {
            self.append(&Suppressed { ts, run: self.run.clone(), suppressed });
        }
    }

    fn append(&mut self, line: &impl Serialize) {
        let written = serde_json::to_vec(line).map_err(|error| error.to_string()).and_then(|bytes| {
            self.rotate().and_then(|()| self.file.append(&bytes)).map_err(|error| error.to_string())
        });
        // The proxy goes on without its log: what it allows does not depend on it.
        if let Err(error) = written
            && !std::mem::replace(&mut self.warned, true)
        {
            tracing::warn!(%error, "the egress log has gaps");
        }
    }

    fn rotate(&mut self) -> Result<(), FileError> {
        if self.file.len() < ROTATED {
            return Ok(());
        }
        let name = self.file.path().file_name().unwrap_or_default().to_owned();
        let mut aside = name.clone();
        aside.push(".1");
        self.dir.rename(&name, &aside)?;
        self.file = AppendLog::open(&self.dir, &name)?;
        Ok(())
    }
}
