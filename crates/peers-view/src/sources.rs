//! What a view is made of, and what of it has to be read again.

use peers_core::state::State;
use peers_model::config::Config;
use peers_model::goal::{CHECK_NAMES, GoalKind};
use peers_model::{RunId, Timestamp, limits};
use peers_store::journal::{self, Journal, JournalError, Position};
use peers_store::load::Source;
use peers_store::runs::{self, RunRecord};
use peers_store::store::Folded;
use peers_store::{Area, Disk, Fingerprint, StoreError, accept, artifacts, layout, load, store};
use serde::Deserialize;

use crate::backwards;
use crate::liveness::Lock;
use crate::loopview::Alert;
use crate::notable::Notable;
use crate::setup::{self, Setup};
use crate::sourced::Sourced;
use crate::tail::{self, Depth, JournalTail};
use crate::words::{self, chain};

/// Without a snapshot, a journal of more bytes than these is not read for a row.
const WHOLE: u64 = 16 * limits::MIB;

/// What lies before the snapshot is looked at in a journal of so many bytes at most.
const CHECKED: u64 = limits::MIB / 2;

/// The journal: its fold, and its end.
#[derive(Debug, Default)]
pub(crate) struct JournalPart {
    /// The newest segment, as it was when all of it had been read.
    segment: u32,
    print: Option<Fingerprint>,
    /// Which file it is, and how much of it was read.
    known: Option<((u64, u64), u64)>,
    /// Where the fold stands, if it stands at the end.
    at: Option<Position>,
    pub(crate) state: Sourced<State>,
    /// What is wrong with it.
    pub(crate) damage: Option<String>,
    pub(crate) tail: Sourced<JournalTail>,
    /// What must not be overlooked; missing where only a row was asked for.
    pub(crate) notable: Sourced<Notable>,
    /// Records that were taken from the snapshot and not read again.
    pub(crate) unverified: u64,
}

impl JournalPart {
    /// Reads it for a whole view, with so many of the newest ticks.
    pub(crate) fn whole<D: Disk>(disk: &mut D, ticks: usize, alerts: &mut Vec<Alert>) -> Self {
        let (state, unverified) = read_state(disk, alerts);
        let depth = Depth::Whole { ticks };
        let read = backwards::newest(disk).and_then(|newest| tail::read(disk, newest, depth));
        let (tail, notable) = match read {
            Ok((tail, notable)) => (Sourced::Fresh(tail), Sourced::Fresh(notable)),
            Err(error) => (Sourced::Unreadable(chain(&error)), Sourced::Unreadable(chain(&error))),
        };
        let seam = tail.value().and_then(JournalTail::seam);
        let damage = state.why().map(str::to_owned).or(seam);
        Self { state, damage, tail, notable, unverified, ..Self::default() }
    }

    /// Reads what is new. Returns whether something is.
    pub(crate) fn update<D: Disk>(&mut self, disk: &mut D, again: Again) -> bool {
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
    pub(crate) fn segment(&self) -> Option<String> {
        (self.segment > 0).then(|| layout::segment(self.segment))
    }

    /// Goes on from where the fold stands.
    fn go_on<D: Disk>(&mut self, disk: &mut D) -> bool {
        let (Some(at), Sourced::Fresh(state)) = (self.at.take(), &mut self.state) else { return false };
        let read = Journal::open(disk, &at, false, |read| store::apply(state, &read.line));
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
            Ok(Folded { state, at, .. }) => {
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
                part.state = read_state(disk, &mut Vec::new()).0;
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

fn tail<D: Disk>(disk: &mut D, segment: u32) -> Sourced<JournalTail> {
    match tail::read(disk, segment, Depth::Row) {
        Ok((tail, _)) => Sourced::Fresh(tail),
        Err(error) => Sourced::Unreadable(chain(&error)),
    }
}

/// The newest run record.
#[derive(Debug, Default)]
pub(crate) struct RunPart {
    /// The lock as it was when it was read.
    lock: Option<Lock>,
    name: String,
    print: Option<Fingerprint>,
    pub(crate) record: Sourced<RunRecord>,
}

impl RunPart {
    /// Reads it again where it, the lock or the journal changed: nothing else brings a new one.
    pub(crate) fn update<D: Disk>(
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
pub(crate) enum Again {
    /// No.
    Once,
    /// Yes: it is noted how each file looks.
    More,
}

/// The operator's files, and what was accepted of them.
#[derive(Debug, Default)]
pub(crate) struct FilesPart {
    prints: Option<[Option<Fingerprint>; 4]>,
    pub(crate) config: Sourced<Config>,
    pub(crate) setup: Setup,
    /// How many hard and how many soft goals there are, if somebody asked.
    pub(crate) goals: Option<[u64; 2]>,
}

impl FilesPart {
    pub(crate) fn update<D: Disk>(&mut self, disk: &mut D, again: Again) {
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
        (self.setup, self.goals) = (Setup::default(), None);
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
                self.setup = setup::read(disk, self.config.value());
            }
            return;
        }
        self.config = read_config(disk);
        self.setup = setup::read(disk, self.config.value());
    }
}

impl FilesPart {
    /// Counts the goals that a first run would begin with: those that are accepted, else those of the file.
    pub(crate) fn count_goals<D: Disk>(&mut self, disk: &mut D) {
        let name = layout::peers::GOALS;
        let accepted = accept::read_bytes(disk, name).ok().flatten();
        let Some(bytes) = accepted.or_else(|| disk.read(Area::Peers, name, limits::CONFIG).ok().flatten())
        else {
            return;
        };
        let peers = self.config.value().map_or(2, |config| config.peers.len());
        let text = load::decode(Source::Goals, &bytes);
        let goals = text.and_then(|text| load::load_goals(text, peers, &CHECK_NAMES));
        self.goals = goals.ok().map(|goals| {
            let soft = goals.iter().filter(|goal| matches!(goal.kind, GoalKind::Soft(_))).count();
            [goals.len() - soft, soft].map(|n| u64::try_from(n).unwrap_or(u64::MAX))
        });
    }
}

/// Whether the newest run was landed or undone since it began. That may be recorded for an earlier run, which
/// made the branch.
pub(crate) fn decided<D: Disk>(disk: &mut D, tail: Option<&JournalTail>, newest: Option<&RunRecord>) -> bool {
    let (Some((of, at)), Some(newest)) = (tail.and_then(|tail| tail.decided.as_ref()), newest) else {
        return false;
    };
    let same_branch = |other: Option<RunRecord>| {
        newest.branch.is_some() && other.is_some_and(|o| o.branch == newest.branch)
    };
    *at >= newest.started_at && (*of == newest.run_id || same_branch(runs::get(disk, of).ok().flatten()))
}

/// When the peer whose turn is open last printed something. Agents can write there, so this is for people only.
pub(crate) fn heard<D: Disk>(disk: &mut D, state: &State) -> Option<Timestamp> {
    let open = state.open.as_ref()?;
    let stamps = [".stream.jsonl", ".stream.err.jsonl"].iter().filter_map(|suffix| {
        let name = artifacts::tick_file(open.started.tick, open.started.peer.as_str(), suffix);
        let print = disk.fingerprint(Area::Peers, &format!("{}/{name}", layout::peers::LOG_PEERS)).ok()??;
        Some(Timestamp::from_millis(i64::try_from(print.changed / 1_000_000).ok()?))
    });
    stamps.max()
}

/// The snapshot file.
#[derive(Debug, Deserialize)]
struct Snapshot {
    at: Position,
    state: State,
}

/// The fold of the journal; what the snapshot says where that is broken. Also the number of records that
/// came from the snapshot unread.
pub(crate) fn read_state<D: Disk>(disk: &mut D, alerts: &mut Vec<Alert>) -> (Sourced<State>, u64) {
    let error = match store::read_state_at(disk, u64::MAX) {
        Ok(Folded { state, unread, .. }) if unread > 0 => return (Sourced::Fresh(state), unread),
        read => read,
    };
    // The snapshot did not help, or something is wrong behind it.
    let snapshot = snapshot(disk);
    let wrong = match &snapshot {
        Err(why) => Some(why.clone()),
        Ok(Some(Snapshot { at, .. })) if matches!(journal::holds(disk, at), Ok(false)) => {
            Some(format!("stands at record {}, which the journal does not have like that", at.seq))
        }
        Ok(_) => None,
    };
    if let Some(why) = &wrong {
        let text = format!("snapshot.json {why}; the state was folded from the journal");
        alerts.push(Alert { kind: "snapshot", text });
    }
    match (error, snapshot) {
        (Ok(Folded { state, .. }), _) => (Sourced::Fresh(state), 0),
        (Err(error), Ok(Some(Snapshot { at, state }))) if matches!(journal::holds(disk, &at), Ok(true)) => {
            (Sourced::Stale { value: up_to_damage(disk, &at, state), why: chain(&error) }, at.seq)
        }
        (Err(error), _) => (Sourced::Unreadable(chain(&error)), 0),
    }
}

/// What can still be folded behind a snapshot.
fn up_to_damage<D: Disk>(disk: &mut D, from: &Position, mut state: State) -> State {
    let mut last = state.clone();
    // The error is known: it is why we are here.
    let _broken = Journal::open(disk, from, false, |read| {
        store::apply(&mut state, &read.line)?;
        last.clone_from(&state);
        Ok::<(), StoreError>(())
    });
    last
}

fn snapshot<D: Disk>(disk: &mut D) -> Result<Option<Snapshot>, String> {
    let read = disk.read(Area::Store, layout::store::SNAPSHOT, limits::STATE).map_err(|e| e.detail)?;
    let Some(bytes) = read else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("is damaged ({error})"))
}

pub(crate) fn read_runs<D: Disk>(disk: &mut D, alerts: &mut Vec<Alert>) -> Result<Vec<RunRecord>, String> {
    let (records, bad) = runs::list(disk).map_err(|error| chain(&error))?;
    if !bad.is_empty() {
        let text = format!("run records that cannot be read: {}", words::list(&bad, 5));
        alerts.push(Alert { kind: "run-records", text });
    }
    Ok(records)
}

/// The accepted configuration.
pub(crate) fn read_config<D: Disk>(disk: &mut D) -> Sourced<Config> {
    let read = accept::read_bytes(disk, layout::peers::CONFIG).map_err(|error| chain(&error));
    Sourced::from_read(read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(None) };
        let text = load::decode(Source::Config, &bytes).map_err(|error| error.to_string())?;
        load::load_config(text).map(Some).map_err(|error| error.to_string())
    }))
}

/// Why a fold ended.
pub(crate) enum Stop {
    /// All that was wanted is there.
    Enough,
    Store(StoreError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Store(error.into())
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
