//! The store as a whole: journal, fold, attribution, snapshot, mirror.

use peers_core::apply::IllegalRecord;
use peers_core::state::State;
use peers_model::record::{CheckpointRecord, MirrorRestored, Record};
use peers_model::{RunId, TickNo, Timestamp, limits};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::authors::Authors;
use crate::disk::{Area, Disk, DiskError, Fingerprint};
use crate::journal::{self, Journal, JournalError, Position};
use crate::layout;

/// Why the store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The file system said no.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The journal reads, but its records do not follow from each other.
    #[error("journal record {seq}: {source}")]
    Illegal {
        /// Its number.
        seq: u64,
        /// What does not follow.
        #[source]
        source: IllegalRecord,
    },
    /// A file of the store is not what it should be.
    #[error("{path} in the trusted store {what}")]
    File {
        /// Which.
        path: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// The program wanted to write a record that cannot follow. A bug of ours; nothing was written.
    #[error("refused to write an impossible record: {0}")]
    Refused(IllegalRecord),
}

impl StoreError {
    /// The disk error behind it, if it is one.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::Disk(error) | Self::Journal(JournalError::Disk(error)) => Some(error),
            Self::Journal(_) | Self::Illegal { .. } | Self::File { .. } | Self::Refused(_) => None,
        }
    }
}

/// What was found and mended when the store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Bytes of a torn last line that were cut off and kept aside.
    pub torn: Option<u64>,
    /// What was wrong with the snapshot, which was not needed.
    pub snapshot: Option<String>,
    /// The mirror differed and was rewritten.
    pub mirror: Option<String>,
}

/// The snapshot file.
#[derive(Debug, Serialize, Deserialize)]
struct Snapshot {
    v: u32,
    at: Position,
    state: State,
}

/// The snapshot's version.
const SNAPSHOT_VERSION: u32 = 1;

/// The open store.
#[derive(Debug)]
pub struct Store<D> {
    disk: D,
    journal: Journal,
    state: State,
    authors: Authors,
    mirror: Option<Fingerprint>,
    mirror_broken: bool,
}

impl<D: Disk> Store<D> {
    /// Opens the store for writing: reads and checks the whole journal, folds it, cuts off a torn
    /// last line. The caller holds the run lock.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(mut disk: D) -> Result<(Self, OpenReport), StoreError> {
        let (journal, state, authors) = fold(&mut disk, true)?;
        let mut report = OpenReport { torn: journal.torn(), ..OpenReport::default() };
        match read_snapshot(&mut disk) {
            Ok(Some(snapshot)) if snapshot.at.seq > journal.position().seq => {
                report.snapshot = Some("was ahead of the journal".into());
            }
            Ok(_) => {}
            Err(StoreError::File { what, .. }) if what.contains("newer") => {
                return Err(StoreError::File { path: layout::store::SNAPSHOT.into(), what });
            }
            Err(error) => report.snapshot = Some(error.to_string()),
        }
        let mut store = Self { disk, journal, state, authors, mirror: None, mirror_broken: false };
        report.mirror = store.check_mirror()?;
        Ok((store, report))
    }

    /// The folded state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Attribution.
    #[must_use]
    pub fn authors(&self) -> &Authors {
        &self.authors
    }

    /// The disk, for what has no method of its own.
    pub fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Where the next line goes.
    #[must_use]
    pub fn position(&self) -> &Position {
        self.journal.position()
    }

    /// Makes records durable and folds them in. All or nothing. The mirror follows, best effort.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was appended and the state is unchanged.
    pub fn append(
        &mut self,
        ts: Timestamp,
        run_id: Option<&RunId>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        // Folded first, on a copy: a record that cannot be applied must not be written.
        let mut state = self.state.clone();
        for record in records {
            state.apply(ts, run_id, record).map_err(StoreError::Refused)?;
        }
        let bytes = self.journal.append(&mut self.disk, ts, run_id, records)?;
        self.state = state;
        for record in records {
            self.authors.take(record);
        }
        self.extend_mirror(&bytes);
        if self.journal.wants_rotation() {
            self.rotate(ts, run_id)?;
        }
        Ok(())
    }

    fn rotate(&mut self, ts: Timestamp, run_id: Option<&RunId>) -> Result<(), StoreError> {
        let state = serde_json::to_value(&self.state).map_err(|e| StoreError::File {
            path: layout::store::JOURNAL.into(),
            what: format!("cannot rotate: {e}"),
        })?;
        self.journal.rotate();
        let record = Record::Checkpoint(CheckpointRecord { state });
        self.journal.append(&mut self.disk, ts, run_id, &[record])?;
        // The mirror shows the newest segment.
        let at = self.journal.position().clone();
        self.rewrite_mirror(&at)?;
        self.mirror = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR)?;
        Ok(())
    }

    /// Writes the snapshot. A cache: losing it costs time only.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn write_snapshot(&mut self) -> Result<(), StoreError> {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            v: u32,
            at: &'a Position,
            state: &'a State,
        }
        let snapshot = Borrowed { v: SNAPSHOT_VERSION, at: self.journal.position(), state: &self.state };
        let bytes = serde_json::to_vec(&snapshot).map_err(|e| StoreError::File {
            path: layout::store::SNAPSHOT.into(),
            what: format!("cannot be written: {e}"),
        })?;
        self.disk.publish(Area::Store, layout::store::SNAPSHOT, &bytes, false)?;
        Ok(())
    }

    fn extend_mirror(&mut self, bytes: &[u8]) {
        // The mirror is for people; the journal is safe, so a failure here must not stop the loop.
        // It is rewritten as a whole when it is next found to differ.
        let done = self.disk.append(Area::Peers, layout::peers::MIRROR, bytes);
        self.mirror_broken |= done.is_err();
        self.mirror = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR).unwrap_or(None);
    }

    /// Compares the mirror with the current segment and rewrites it when it differs. Returns what
    /// differed. Cheap while nobody has touched the file.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn check_mirror(&mut self) -> Result<Option<String>, StoreError> {
        let path = layout::peers::MIRROR;
        let now = self.disk.fingerprint(Area::Peers, path)?;
        if now.is_some() && now == self.mirror && !self.mirror_broken {
            return Ok(None);
        }
        let at = self.journal.position().clone();
        let what = match now {
            None if at.seq == 0 => None,
            None => Some("was missing"),
            Some(found) if found.size != at.offset => Some("had another length"),
            Some(_) if self.mirror_differs(&at)? => Some("had other content"),
            Some(_) => None,
        };
        if what.is_some() {
            self.rewrite_mirror(&at)?;
        }
        self.mirror_broken = false;
        self.mirror = self.disk.fingerprint(Area::Peers, path)?;
        // A journal that was never written leaves the empty file that `init` made.
        Ok(what.filter(|_| at.seq > 0).map(str::to_owned))
    }

    /// The record for a mirror that was rewritten.
    #[must_use]
    pub fn mirror_restored(tick: Option<TickNo>, what: &str) -> Record {
        Record::MirrorRestored(MirrorRestored { tick, what: what.to_owned() })
    }

    fn mirror_differs(&mut self, at: &Position) -> Result<bool, StoreError> {
        const CHUNK: u64 = 4 * limits::MIB;
        let segment = layout::segment(at.segment);
        let mut offset = 0;
        while offset < at.offset {
            let len = CHUNK.min(at.offset - offset);
            let truth = self.disk.read_at(Area::Store, &segment, offset, len)?;
            if truth != self.disk.read_at(Area::Peers, layout::peers::MIRROR, offset, len)? {
                return Ok(true);
            }
            offset += len;
        }
        Ok(false)
    }

    fn rewrite_mirror(&mut self, at: &Position) -> Result<(), StoreError> {
        let bytes = if at.seq == 0 {
            Vec::new()
        } else {
            self.disk.read_at(Area::Store, &layout::segment(at.segment), 0, at.offset)?
        };
        self.disk.publish(Area::Peers, layout::peers::MIRROR, &bytes, false)?;
        Ok(())
    }
}

/// What a reader needs: state, attribution, and whether a torn tail was seen. Writes nothing.
///
/// # Errors
/// [`StoreError`].
pub fn read<D: Disk>(disk: &mut D) -> Result<(State, Authors, OpenReport), StoreError> {
    let (journal, state, authors) = fold(disk, false)?;
    Ok((state, authors, OpenReport { torn: journal.torn(), ..OpenReport::default() }))
}

/// State alone, from the snapshot and the journal's tail; falls back to the whole journal.
///
/// # Errors
/// [`StoreError`].
pub fn read_state<D: Disk>(disk: &mut D) -> Result<State, StoreError> {
    if let Ok(Some(snapshot)) = read_snapshot(disk)
        && journal::holds(disk, &snapshot.at)?
    {
        let mut state = snapshot.state;
        let from = snapshot.at;
        Journal::open(disk, &from, false, |read| apply(&mut state, &read.line))?;
        return Ok(state);
    }
    let (_, state, _) = fold(disk, false)?;
    Ok(state)
}

/// Compares the snapshot with a fold of the whole journal. `None` = they agree or there is no
/// snapshot; else what differs.
///
/// # Errors
/// [`StoreError`] when the journal itself is damaged.
pub fn compare_snapshot<D: Disk>(disk: &mut D) -> Result<Option<String>, StoreError> {
    let (journal, state, _) = fold(disk, false)?;
    let snapshot = match read_snapshot(disk) {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(error.to_string())),
    };
    if snapshot.at.seq > journal.position().seq || !journal::holds(disk, &snapshot.at)? {
        return Ok(Some("stands at a place that the journal does not have".into()));
    }
    let mut caught_up = snapshot.state;
    Journal::open(disk, &snapshot.at, false, |read| apply(&mut caught_up, &read.line))?;
    Ok((caught_up != state).then(|| "differs from the fold of the journal".into()))
}

fn fold<D: Disk>(disk: &mut D, repair: bool) -> Result<(Journal, State, Authors), StoreError> {
    let mut state = State::new();
    let mut authors = Authors::default();
    let journal = Journal::open(disk, &Position::default(), repair, |read| {
        authors.take(&read.line.record);
        apply(&mut state, &read.line)
    })?;
    Ok((journal, state, authors))
}

fn apply(state: &mut State, line: &peers_model::record::Line) -> Result<(), StoreError> {
    state
        .apply(line.ts, line.run_id.as_ref(), &line.record)
        .map_err(|source| StoreError::Illegal { seq: line.seq, source })
}

fn read_snapshot<D: Disk>(disk: &mut D) -> Result<Option<Snapshot>, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let path = layout::store::SNAPSHOT;
    let bad = |what: String| StoreError::File { path: path.into(), what };
    let Some(bytes) = disk.read(Area::Store, path, limits::STATE)? else { return Ok(None) };
    let version: Version = serde_json::from_slice(&bytes)
        .map_err(|e| bad(format!("is damaged ({e}); it is rebuilt from the journal")))?;
    if version.v > SNAPSHOT_VERSION {
        return Err(bad(format!("was written by a newer program (version {}); use that program", version.v)));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|e| bad(format!("is damaged ({e}); it is rebuilt from the journal")))
}
