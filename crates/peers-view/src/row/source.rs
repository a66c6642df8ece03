//! What a row is made of, and what of it has to be read again.

use peers_core::state::State;
use peers_model::config::Config;
use peers_model::{RunId, Timestamp, limits};
use peers_store::journal::{self, Journal, Position};
use peers_store::load::Source;
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, Disk, Fingerprint, StoreError, accept, artifacts, layout, load, store};

use super::tail::Tail;
use crate::liveness::Lock;
use crate::loopview;
use crate::setup;
use crate::sourced::Sourced;
use crate::words::chain;

/// Without a snapshot, a journal of more bytes than these is not read for a row.
const WHOLE: u64 = 16 * limits::MIB;

/// What lies before the snapshot is looked at in a journal of so many bytes at most.
const CHECKED: u64 = limits::MIB / 2;

/// The journal: its fold, and its end.
#[derive(Debug)]
pub(super) struct JournalPart {
    /// The newest segment, as it was when all of it had been read.
    segment: u32,
    print: Option<Fingerprint>,
    /// Which file it is, and how much of it was read.
    known: Option<((u64, u64), u64)>,
    /// Where the fold stands, if it stands at the end.
    at: Option<Position>,
    pub(super) state: Sourced<State>,
    /// What is wrong with it.
    pub(super) damage: Option<String>,
    pub(super) tail: Sourced<Tail>,
}

impl Default for JournalPart {
    fn default() -> Self {
        Self {
            segment: 0,
            print: None,
            known: None,
            at: None,
            state: Sourced::Missing,
            damage: None,
            tail: Sourced::Missing,
        }
    }
}

impl JournalPart {
    /// Reads what is new. Returns whether something is.
    pub(super) fn update<D: Disk>(&mut self, disk: &mut D, again: Again) -> bool {
        if self.segment > 0 {
            let print = disk.fingerprint(Area::Store, &layout::segment(self.segment)).ok().flatten();
            let next = disk.len(Area::Store, &layout::segment(self.segment + 1));
            if print.is_some() && print == self.print && matches!(next, Ok(None)) {
                return false;
            }
            // The same file, longer: what was read of it stands.
            let grown =
                print.zip(self.known).is_some_and(|(now, (id, size))| now.id == id && now.size >= size);
            if grown && self.go_on(disk) {
                return true;
            }
        }
        *self = Self::read(disk, again);
        true
    }

    /// The newest segment, as a path in the store.
    pub(super) fn segment(&self) -> Option<String> {
        (self.segment > 0).then(|| layout::segment(self.segment))
    }

    /// Goes on from where the fold stands.
    fn go_on<D: Disk>(&mut self, disk: &mut D) -> bool {
        let (Some(at), Sourced::Fresh(state)) = (self.at.take(), &mut self.state) else { return false };
        let read = Journal::open(disk, &at, false, |read| {
            let line = &read.line;
            let applied = state.apply(line.ts, line.run_id.as_ref(), &line.record);
            applied.map_err(|source| StoreError::Illegal { seq: line.seq, source })
        });
        let Ok(journal) = read else { return false };
        self.stand_at(disk, journal.position().clone(), Again::More);
        self.tail = tail(disk, self.segment);
        true
    }

    /// The fold has come to `at`.
    fn stand_at<D: Disk>(&mut self, disk: &mut D, at: Position, again: Again) {
        self.segment = at.segment;
        if again == Again::Once {
            return;
        }
        let print = disk.fingerprint(Area::Store, &layout::segment(at.segment)).ok().flatten();
        self.known = print.map(|print| (print.id, at.offset));
        // What is longer already has to be looked at again.
        self.print = print.filter(|print| print.size == at.offset);
        self.at = Some(at);
    }

    fn read<D: Disk>(disk: &mut D, again: Again) -> Self {
        let mut part = Self::default();
        match store::read_state_at(disk, WHOLE) {
            Ok((state, at)) => {
                part.state = Sourced::Fresh(state);
                if at.segment == 1 && at.offset <= CHECKED {
                    part.damage = journal::chained(disk, at.offset).err().map(|error| chain(&error));
                }
                part.stand_at(disk, at, again);
                part.tail = tail(disk, part.segment);
                return part;
            }
            // It is whole as far as anybody knows, and too long to be read for a row.
            Err(error @ StoreError::File { .. }) => part.state = Sourced::Unreadable(chain(&error)),
            Err(error) => {
                part.state = loopview::read_state(disk, &mut Vec::new()).0;
                part.damage = Some(chain(&error));
            }
        }
        match newest(disk) {
            Ok((segment, print)) => {
                (part.segment, part.print) = (segment, print);
                part.tail = tail(disk, segment);
            }
            Err(why) => part.tail = Sourced::Unreadable(why),
        }
        part
    }
}

/// The newest segment and how it looks; 0 where there is none.
fn newest<D: Disk>(disk: &mut D) -> Result<(u32, Option<Fingerprint>), String> {
    let segments = journal::segments(disk).map_err(|error| chain(&error))?;
    let Some(segment) = segments.last().copied() else { return Ok((0, None)) };
    let print = disk.fingerprint(Area::Store, &layout::segment(segment)).map_err(|error| chain(&error))?;
    Ok((segment, print))
}

fn tail<D: Disk>(disk: &mut D, segment: u32) -> Sourced<Tail> {
    match Tail::read(disk, segment) {
        Ok(tail) => Sourced::Fresh(tail),
        Err(error) => Sourced::Unreadable(chain(&error)),
    }
}

/// The newest run record.
#[derive(Debug)]
pub(super) struct RunPart {
    /// The lock as it was when it was read.
    lock: Option<Lock>,
    name: String,
    print: Option<Fingerprint>,
    pub(super) record: Sourced<RunRecord>,
}

impl Default for RunPart {
    fn default() -> Self {
        Self { lock: None, name: String::new(), print: None, record: Sourced::Missing }
    }
}

impl RunPart {
    /// Reads it again where it, the lock or the journal changed: nothing else brings a new one.
    pub(super) fn update<D: Disk>(
        &mut self,
        disk: &mut D,
        (known, moved): (Option<&RunId>, bool),
        lock: &Lock,
    ) {
        // A record of a run that has ended does not change any more.
        let ended = matches!(&self.record, Sourced::Fresh(record) if record.ended_at.is_some());
        if !moved
            && self.lock.as_ref() == Some(lock)
            && (ended
                || self.name.is_empty()
                || matches!(disk.fingerprint(Area::Store, &self.name), Ok(p) if p == self.print))
        {
            return;
        }
        self.lock = Some(lock.clone());
        self.record = Sourced::from_read(runs::newest(disk, known).map_err(|error| chain(&error)));
        self.name = self.record.value().map(|record| layout::run_record(&record.run_id)).unwrap_or_default();
        self.print = match self.name.as_str() {
            "" => None,
            name => disk.fingerprint(Area::Store, name).ok().flatten(),
        };
    }
}

/// Whether what is read is kept for another look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// No.
    Once,
    /// Yes: it is noted how each file looks.
    More,
}

/// The operator's files, and what was accepted of them.
#[derive(Debug)]
pub(super) struct FilesPart {
    prints: Option<[Option<Fingerprint>; 4]>,
    pub(super) config: Sourced<Config>,
    pub(super) placeholder: bool,
    pub(super) unaccepted: Vec<&'static str>,
    pub(super) broken: Vec<String>,
}

impl Default for FilesPart {
    fn default() -> Self {
        let config = Sourced::Missing;
        Self { prints: None, config, placeholder: false, unaccepted: Vec::new(), broken: Vec::new() }
    }
}

impl FilesPart {
    pub(super) fn update<D: Disk>(&mut self, disk: &mut D, again: Again) {
        let accepted = format!("{}/{}", layout::store::ACCEPTED_DIR, layout::peers::CONFIG);
        let prints = [
            (Area::Store, layout::store::ACCEPTED),
            (Area::Store, accepted.as_str()),
            (Area::Peers, layout::peers::GOALS),
            (Area::Peers, layout::peers::CONFIG),
        ]
        .map(|(area, path)| match again {
            Again::Once => None,
            Again::More => disk.fingerprint(area, path).ok().flatten(),
        });
        if again == Again::More && self.prints == Some(prints) {
            return;
        }
        self.prints = Some(prints);
        (self.placeholder, self.unaccepted, self.broken) = (false, Vec::new(), Vec::new());
        let mut read = |name| disk.read(Area::Peers, name, limits::CONFIG).ok().flatten();
        let (goals, settings) = (read(layout::peers::GOALS), read(layout::peers::CONFIG));
        let was = accept::read(disk).ok().flatten();
        // Files that were accepted as they are were read and found good then.
        if let (Some(goals), Some(settings), Some(was)) = (&goals, &settings, was)
            && was.digests == accept::digests(goals, settings)
            && let Ok(text) = load::decode(Source::Config, settings)
        {
            let config = load::load_accepted_config(text).map(Some).map_err(|error| error.to_string());
            self.config = Sourced::from_read(config);
            if String::from_utf8_lossy(goals).contains(setup::PLACEHOLDER) {
                self.placeholder = setup::read(disk, self.config.value()).placeholder;
            }
            return;
        }
        self.config = loopview::read_config(disk);
        let found = setup::read(disk, self.config.value());
        self.placeholder = found.placeholder;
        self.unaccepted = found.unaccepted;
        self.broken = found.broken.iter().map(setup::Broken::words).collect();
    }
}

/// Whether the newest run was landed or undone since it began. That may be recorded for an earlier run, which
/// made the branch.
pub(super) fn decided<D: Disk>(disk: &mut D, tail: Option<&Tail>, newest: Option<&RunRecord>) -> bool {
    let (Some((of, at)), Some(newest)) = (tail.and_then(|tail| tail.decided.as_ref()), newest) else {
        return false;
    };
    let same_branch = |other: Option<RunRecord>| {
        newest.branch.is_some() && other.is_some_and(|o| o.branch == newest.branch)
    };
    *at >= newest.started_at && (*of == newest.run_id || same_branch(runs::get(disk, of).ok().flatten()))
}

/// When the peer whose turn is open last printed something. Agents can write there, so this is for people only.
pub(super) fn heard<D: Disk>(disk: &mut D, state: &State) -> Option<Timestamp> {
    let open = state.open.as_ref()?;
    let stamps = [".stream.jsonl", ".stream.err.jsonl"].iter().filter_map(|suffix| {
        let name = artifacts::tick_file(open.started.tick, open.started.peer.as_str(), suffix);
        let print = disk.fingerprint(Area::Peers, &format!("{}/{name}", layout::peers::LOG_PEERS)).ok()??;
        Some(Timestamp::from_millis(i64::try_from(print.changed / 1_000_000).ok()?))
    });
    stamps.max()
}
