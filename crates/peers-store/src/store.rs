//! The store as a whole: journal, fold, attribution, snapshot, mirror.

mod mirror;
mod witness;

use peers_core::apply::IllegalRecord;
use peers_core::state::State;
use peers_model::command::Step;
use peers_model::record::{CheckpointRecord, Line, MirrorRestored, Record};
use peers_model::{RunId, TickNo, Timestamp, limits};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::authors::Authors;
use crate::disk::{Area, Disk, DiskError, Fingerprint};
use crate::journal::{self, Journal, JournalError, Position};
use crate::{json, layout};
use mirror::Aside;
use witness::Witnesses;

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
        /// What is wrong.
        what: String,
        /// What to do about it: one of our own sentences.
        remedy: Option<&'static str>,
    },
    /// A file of the store has a format that this program does not know.
    #[error("{path} in the trusted store was written by a newer program (version {found}); use that program")]
    Newer {
        /// Which.
        path: String,
        /// Its version.
        found: u64,
    },
    /// The journal ends before what a copy of it knows: records were lost.
    #[error(
        "the journal ends at record {seq}, but {knows}: records were lost, and peers keeps the rest unchanged"
    )]
    Lost {
        /// Its last record.
        seq: u64,
        /// Who knows what.
        knows: String,
        /// Where the records can come from.
        from: String,
        /// What else it may be.
        instead: &'static str,
    },
    /// The journal has another record where the snapshot was made.
    #[error(
        "record {seq} of the journal is not the one that snapshot.json was made from: one of the two was replaced"
    )]
    Forked {
        /// Where the snapshot stands.
        seq: u64,
    },
    /// The program wanted to write a record that cannot follow. A bug of ours; nothing was written.
    #[error("refused to write an impossible record: {0}")]
    Refused(IllegalRecord),
}

impl StoreError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<Step> {
        match self {
            Self::File { remedy, .. } => remedy.map(Step::from),
            Self::Journal(JournalError::Damaged { .. }) => Some("the journal is evidence and is not repaired by guessing: restore the file from a copy, or set the store aside with `peers init --force`".into()),
            Self::Journal(JournalError::Segments { .. }) => Some("the journal is evidence and is not repaired by guessing: restore the directory from a copy, or set the store aside with `peers init --force`".into()),
            Self::Lost { from, instead, .. } => Some(Step::text("{}, or set the store aside with `peers init --force`{}", &[from, instead])),
            Self::Forked { .. } => Some("restore both from a copy, or set the store aside with `peers init --force` (if the journal is known to be right, remove snapshot.json)".into()),
            _ => match self.disk().map(|disk| disk.kind) {
                Some(crate::DiskErrorKind::NoArea) => Some("run `peers init`".into()),
                Some(crate::DiskErrorKind::Full) => Some("free some space, then run it again".into()),
                _ => None,
            },
        }
    }

    /// The disk error behind it, if it is one.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::Disk(error) | Self::Journal(JournalError::Disk(error)) => Some(error),
            Self::Journal(_)
            | Self::Illegal { .. }
            | Self::File { .. }
            | Self::Newer { .. }
            | Self::Lost { .. }
            | Self::Forked { .. }
            | Self::Refused(_) => None,
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
    /// [`StoreError`]; nothing was written then.
    pub fn open(mut disk: D) -> Result<(Self, OpenReport), StoreError> {
        let mut report = OpenReport::default();
        let snapshot = match read_snapshot(&mut disk) {
            Ok(snapshot) => snapshot,
            Err(error @ StoreError::Newer { .. }) => return Err(error),
            Err(error) => {
                report.snapshot = Some(error.to_string());
                None
            }
        };
        let mut witnesses = Witnesses::hear(&mut disk, snapshot.as_ref())?;
        let (journal, state, authors) = fold(&mut disk, Some(&mut witnesses))?;
        witnesses.agree(&mut disk, journal.position(), &state)?;
        report.torn = journal.torn();
        let mut store = Self { disk, journal, state, authors, mirror: None, mirror_broken: false };
        report.mirror = store.mend_mirror(Aside::Longer, |disk, at| witnesses.mirror(disk, at))?;
        store.journal.mend(&mut store.disk)?;
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
            remedy: None,
        })?;
        self.journal.rotate();
        let record = Record::Checkpoint(CheckpointRecord { state });
        self.journal.append(&mut self.disk, ts, run_id, &[record])?;
        // The mirror shows the newest segment.
        self.mirror_broken = true;
        self.check_mirror().map(drop)
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
            remedy: None,
        })?;
        self.disk.publish(Area::Store, layout::store::SNAPSHOT, &bytes, false)?;
        Ok(())
    }

    /// The record for a mirror that was rewritten.
    #[must_use]
    pub fn mirror_restored(tick: Option<TickNo>, what: &str) -> Record {
        Record::MirrorRestored(MirrorRestored { tick, what: what.to_owned() })
    }
}

/// What a reader needs: state, attribution, and whether a torn tail was seen. Writes nothing.
///
/// # Errors
/// [`StoreError`].
pub fn read<D: Disk>(disk: &mut D) -> Result<(State, Authors, OpenReport), StoreError> {
    let mut authors = Authors::default();
    let (state, report, _) = read_each(disk, |line| authors.take(&line.record))?;
    Ok((state, authors, report))
}

/// Reads the whole journal without the lock, line by line, and asks its copies whether it is whole.
///
/// # Errors
/// [`StoreError`], also when a copy of the journal knows more than the journal.
pub fn read_each<D: Disk>(
    disk: &mut D,
    mut each: impl FnMut(&Line),
) -> Result<(State, OpenReport, Position), StoreError> {
    // The copies are read first: the journal only ever grows.
    let snapshot = match read_snapshot(disk) {
        Err(error @ StoreError::Newer { .. }) => return Err(error),
        read => read.ok().flatten(),
    };
    let mut witnesses = Witnesses::hear(disk, snapshot.as_ref())?;
    let mut state = State::new();
    let journal = Journal::open(disk, &Position::default(), false, |read| {
        each(&read.line);
        witnesses.pass(&read.end);
        apply(&mut state, &read.line)
    })?;
    witnesses.agree(disk, journal.position(), &state)?;
    whole(disk, &witnesses, journal.position())?;
    Ok((state, OpenReport { torn: journal.torn(), ..OpenReport::default() }, journal.position().clone()))
}

/// Whether the mirror knows no more than the journal, which a running loop may have extended meanwhile.
fn whole<D: Disk>(disk: &mut D, witnesses: &Witnesses, at: &Position) -> Result<(), StoreError> {
    let Err(lost @ StoreError::Lost { .. }) = witnesses.mirror(disk, at) else { return Ok(()) };
    let now = Journal::open(disk, at, false, |_| Ok::<(), StoreError>(()))?;
    if now.position() == at { Err(lost) } else { Ok(()) }
}

/// State alone, from the snapshot and the journal's tail; falls back to the whole journal.
///
/// # Errors
/// [`StoreError`], also when the journal ends before the snapshot.
pub fn read_state<D: Disk>(disk: &mut D) -> Result<State, StoreError> {
    read_state_at(disk, u64::MAX).map(|folded| folded.state)
}

/// A state and where it comes from.
#[derive(Debug)]
pub struct Folded {
    /// The fold of the journal.
    pub state: State,
    /// The end of what was read.
    pub at: Position,
    /// Records that were taken from the snapshot and not read.
    pub unread: u64,
}

/// [`read_state`] with the end of what was read, from which it can be gone on. Without a snapshot that fits,
/// a journal of more than `most` bytes is not read.
///
/// # Errors
/// As [`read_state`]; [`StoreError::File`] about the snapshot for a journal that is too long.
pub fn read_state_at<D: Disk>(disk: &mut D, most: u64) -> Result<Folded, StoreError> {
    // The copies are read first: the journal only ever grows.
    let snapshot = read_snapshot(disk).ok().flatten();
    if let Some(Snapshot { at, .. }) = &snapshot
        && journal::holds(disk, at)?
        && let Some(Snapshot { at, mut state, .. }) = snapshot
    {
        let journal = Journal::open(disk, &at, false, |read| apply(&mut state, &read.line))?;
        return Ok(Folded { state, at: journal.position().clone(), unread: at.seq });
    }
    if most < u64::MAX {
        let mut size: u64 = 0;
        for number in journal::segments(disk)? {
            size = size.saturating_add(disk.len(Area::Store, &layout::segment(number))?.unwrap_or(0));
        }
        if size > most {
            return Err(StoreError::File {
                path: layout::store::SNAPSHOT.into(),
                what: "is missing or does not fit the journal, which is too long for a quick look".to_owned(),
                remedy: Some("`peers state rebuild` makes it anew"),
            });
        }
    }
    let mut witnesses = Witnesses::hear(disk, snapshot.as_ref())?;
    let (journal, state, _) = fold(disk, Some(&mut witnesses))?;
    witnesses.agree(disk, journal.position(), &state)?;
    Ok(Folded { state, at: journal.position().clone(), unread: 0 })
}

/// Compares the snapshot with a fold of the whole journal. `None` = they agree or there is no
/// snapshot; else what differs.
///
/// # Errors
/// [`StoreError`] when the journal itself is damaged, or ends before what a copy of it knows.
pub fn compare_snapshot<D: Disk>(disk: &mut D) -> Result<Option<String>, StoreError> {
    let (snapshot, differs) = match read_snapshot(disk) {
        Ok(snapshot) => (snapshot, None),
        Err(error @ StoreError::Newer { .. }) => return Err(error),
        Err(error) => (None, Some(error.to_string())),
    };
    let mut witnesses = Witnesses::hear(disk, snapshot.as_ref())?;
    let (journal, state, _) = fold(disk, Some(&mut witnesses))?;
    witnesses.agree(disk, journal.position(), &state)?;
    whole(disk, &witnesses, journal.position())?;
    let Some(snapshot) = snapshot else { return Ok(differs) };
    let mut caught_up = snapshot.state;
    Journal::open(disk, &snapshot.at, false, |read| {
        if read.end.seq <= journal.position().seq {
            apply(&mut caught_up, &read.line)?;
        }
        Ok::<(), StoreError>(())
    })?;
    Ok((caught_up != state).then(|| "differs from the fold of the journal".into()))
}

fn fold<D: Disk>(
    disk: &mut D,
    mut witnesses: Option<&mut Witnesses>,
) -> Result<(Journal, State, Authors), StoreError> {
    let mut state = State::new();
    let mut authors = Authors::default();
    let journal = Journal::open(disk, &Position::default(), false, |read| {
        authors.take(&read.line.record);
        if let Some(witnesses) = &mut witnesses {
            witnesses.pass(&read.end);
        }
        apply(&mut state, &read.line)
    })?;
    Ok((journal, state, authors))
}

/// Applies what one line says.
///
/// # Errors
/// [`StoreError::Illegal`] for a record that does not fit the state.
pub fn apply(state: &mut State, line: &Line) -> Result<(), StoreError> {
    state
        .apply(line.ts, line.run_id.as_ref(), &line.record)
        .map_err(|source| StoreError::Illegal { seq: line.seq, source })
}

fn read_snapshot<D: Disk>(disk: &mut D) -> Result<Option<Snapshot>, StoreError> {
    json::read(
        disk,
        layout::store::SNAPSHOT,
        (limits::STATE, SNAPSHOT_VERSION),
        "it is rebuilt from the journal",
    )
}
