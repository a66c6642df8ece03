//! The end of the journal, read leanly: of each record only what a row shows.

use std::io::BufRead as _;

use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{Line, OperatorOp, Record, SkepticVerdict, TickOutcome};
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp, Tokens, Usd, limits};
use peers_store::{Area, Disk, DiskError, layout};
use serde::{Deserialize, Serialize};

use crate::death::Death;
use crate::ticks::TickRow;
use crate::watch;

/// Ticks in a row.
pub(crate) const RECENT: usize = 8;
/// So much of the journal's end is read at a time; most often one or two are enough.
const CHUNK: u64 = 64 * limits::KIB;
/// So much of it is looked through at most.
const MOST: u64 = 2 * limits::MIB;
/// A record's tag stands within so many bytes of its start.
const ENVELOPE: usize = 512;

/// One of the newest ticks, as a row shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecentTick {
    /// Its number.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// How its process ended, one word.
    pub class: String,
    /// It was a valid handoff.
    pub success: bool,
    /// What it cost, or unknown.
    pub usd: Option<Usd>,
    /// When it ended.
    #[serde(skip)]
    pub ts: Timestamp,
    /// What it meant.
    #[serde(skip)]
    pub outcome: TickOutcome,
    /// What it used, or unknown.
    #[serde(skip)]
    pub tokens: Option<Tokens>,
    /// How long the peer and the gates of it took, milliseconds.
    #[serde(skip)]
    pub ms: u64,
    /// Its commits, oldest first.
    #[serde(skip)]
    pub commits: Vec<CommitId>,
    /// What it said as a skeptic.
    #[serde(skip)]
    pub skeptic: Option<SkepticVerdict>,
    /// How its process ended.
    #[serde(skip)]
    pub(crate) ended: ExitClass,
    /// What its service said.
    #[serde(skip)]
    pub(crate) api: ApiClass,
    /// When a limit of its service ends, as that said.
    #[serde(skip)]
    pub(crate) resets_at: Option<Timestamp>,
    /// Why it was no success. Untrusted text.
    #[serde(skip)]
    pub(crate) reason: Option<String>,
    /// How it died, if it did.
    #[serde(skip)]
    pub(crate) death: Option<Death>,
    /// In which run.
    #[serde(skip)]
    pub(crate) run_id: Option<RunId>,
}

impl RecentTick {
    /// It was a failure: one that counts for nobody is none.
    pub(crate) fn failed(&self) -> bool {
        !self.success && !self.outcome.is_neutral()
    }

    pub(crate) fn of(row: &TickRow) -> Self {
        Self {
            tick: row.tick,
            peer: row.peer.clone(),
            class: row.classification.clone(),
            success: row.success,
            usd: row.usd,
            ts: row.ts,
            outcome: row.outcome,
            tokens: row.tokens,
            ms: row.duration_ms.saturating_add(row.gate_ms),
            commits: row.commits.clone(),
            skeptic: row.skeptic,
            ended: row.end.0,
            api: row.end.1,
            resets_at: row.resets_at,
            reason: row.reason.clone(),
            death: row.death.clone(),
            run_id: row.run_id.clone(),
        }
    }
}

/// The newest record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastEvent {
    /// When.
    pub ts: Timestamp,
    /// Whom it is about, if it is about a peer.
    pub peer: Option<PeerName>,
    /// Its tag.
    pub kind: &'static str,
    /// For people, one line. Untrusted text in parts.
    pub text: String,
}

impl LastEvent {
    fn of(line: &Line) -> Self {
        let peer = match &line.record {
            Record::TickStarted(tick) => Some(tick.peer.clone()),
            Record::Tick(tick) => Some(tick.peer.clone()),
            Record::Cooling(cooling) => Some(cooling.peer.clone()),
            Record::RunStarted(_)
            | Record::PeerSpawned(_)
            | Record::TurnEnded(_)
            | Record::CorrectionPlanned(_)
            | Record::Gates(_)
            | Record::Proof(_)
            | Record::Trial(_)
            | Record::CommitsSeen(_)
            | Record::Operator(_)
            | Record::MirrorRestored(_)
            | Record::HookFailed(_)
            | Record::Checkpoint(_)
            | Record::Exit(_) => None,
        };
        Self { ts: line.ts, peer, kind: line.record.event(), text: watch::text(line) }
    }
}

/// What the end of the journal shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The newest ticks, oldest first.
    pub(crate) ticks: Vec<RecentTick>,
    /// The newest record; absent when there is none.
    pub(crate) last: Option<LastEvent>,
    /// The newest line is there and cannot be read.
    pub(crate) unreadable: bool,
    /// When the mirror was found changed last: in which run, and in which tick.
    pub(crate) mirror: Option<(Option<RunId>, Timestamp, Option<TickNo>)>,
    /// The newest run that was landed or undone, and when.
    pub(crate) decided: Option<(RunId, Timestamp)>,
}

/// A `tick` record, without what is not shown.
#[derive(Deserialize)]
struct Lean {
    ts: Timestamp,
    run_id: Option<RunId>,
    iteration: TickNo,
    peer: PeerName,
    outcome: TickOutcome,
    success: bool,
    classification: String,
    exit: LeanExit,
    #[serde(default)]
    gate_ms: u64,
    #[serde(default)]
    commits: Vec<CommitId>,
    #[serde(default)]
    skeptic: Option<SkepticVerdict>,
    #[serde(default)]
    soft_fail_reason: Option<String>,
}

#[derive(Deserialize)]
struct LeanExit {
    class: ExitClass,
    api: ApiClass,
    code: Option<i32>,
    signal: Option<i32>,
    #[serde(default)]
    resets_at: Option<Timestamp>,
    duration_ms: u64,
    #[serde(default)]
    usage: peers_model::outcome::Usage,
}

impl From<Lean> for RecentTick {
    fn from(tick: Lean) -> Self {
        Self {
            tick: tick.iteration,
            peer: tick.peer,
            class: tick.classification,
            success: tick.success,
            usd: tick.exit.usage.usd,
            ts: tick.ts,
            outcome: tick.outcome,
            tokens: tick.exit.usage.tokens,
            ms: tick.exit.duration_ms.saturating_add(tick.gate_ms),
            commits: tick.commits,
            skeptic: tick.skeptic,
            ended: tick.exit.class,
            api: tick.exit.api,
            resets_at: tick.exit.resets_at,
            death: Death::of(
                tick.exit.class,
                (tick.exit.signal, tick.exit.code),
                tick.soft_fail_reason.as_deref(),
            ),
            reason: tick.soft_fail_reason,
            run_id: tick.run_id,
        }
    }
}

impl Tail {
    /// Reads the end of the journal whose newest segment is `newest`, backwards until there are enough ticks.
    pub(crate) fn read<D: Disk>(disk: &mut D, newest: u32) -> Result<Self, DiskError> {
        let mut found = Self::default();
        let mut left = MOST;
        for number in (1..=newest).rev() {
            let path = layout::segment(number);
            let Some(len) = disk.len(Area::Store, &path)? else { break };
            let (mut bytes, mut start) = (Vec::new(), len);
            while start > 0 && left > 0 {
                let size = CHUNK.min(start).min(left);
                start -= size;
                left -= size;
                let mut chunk = disk.read_at(Area::Store, &path, start, size)?;
                chunk.append(&mut bytes);
                bytes = chunk;
                let ticks = lines(&bytes).into_iter().filter(|line| tag(line) == Some(b"tick")).count();
                if ticks + found.ticks.len() > RECENT {
                    break;
                }
            }
            found.take(Self::part(&bytes, start > 0, number == newest));
            if found.ticks.len() >= RECENT || left == 0 {
                break;
            }
        }
        let excess = found.ticks.len().saturating_sub(RECENT);
        found.ticks.drain(..excess);
        Ok(found)
    }

    /// Puts what an older segment says before what is known.
    fn take(&mut self, older: Self) {
        let Self { mut ticks, last, unreadable, mirror, decided } = older;
        ticks.append(&mut self.ticks);
        self.ticks = ticks;
        self.last = self.last.take().or(last);
        self.unreadable |= unreadable;
        self.mirror = self.mirror.take().or(mirror);
        self.decided = self.decided.take().or(decided);
    }

    fn part(bytes: &[u8], starts_inside: bool, is_end: bool) -> Self {
        let mut part = Self::default();
        let lines = lines(bytes);
        let lines = lines.get(usize::from(starts_inside)..).unwrap_or_default();
        for line in lines.iter().rev() {
            match tag(line) {
                Some(b"tick") if part.ticks.len() < RECENT => {
                    part.ticks.extend(serde_json::from_slice::<Lean>(line).ok().map(RecentTick::from));
                }
                Some(b"mirror-restored" | b"operator") => {
                    if let Ok(line) = serde_json::from_slice::<Line>(line) {
                        part.rare(&line);
                    }
                }
                _ => {}
            }
        }
        part.ticks.reverse();
        if let Some(newest) = lines.last().filter(|_| is_end) {
            match serde_json::from_slice::<Line>(newest) {
                Ok(line) => part.last = Some(LastEvent::of(&line)),
                Err(_) => part.unreadable = true,
            }
        }
        part
    }

    fn rare(&mut self, line: &Line) {
        // The newest of each counts, and comes first.
        if let Record::MirrorRestored(restored) = &line.record {
            if crate::ticks::is_lost(restored) {
                return;
            }
            self.mirror.get_or_insert((line.run_id.clone(), line.ts, restored.tick));
        } else if let Record::Operator(operator) = &line.record
            && let OperatorOp::Landed { run, .. } | OperatorOp::Undone { run, .. } = &operator.op
        {
            self.decided.get_or_insert((run.clone(), line.ts));
        }
    }
}

/// The whole lines. What follows the last line end is no line, or not yet.
pub(crate) fn lines(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    loop {
        let mut rest = bytes;
        // Reading from memory does not fail.
        let Ok(len) = rest.skip_until(b'\n') else { return lines };
        match bytes.get(..len).and_then(|line| line.strip_suffix(b"\n")) {
            Some(line) => lines.push(line),
            None => return lines,
        }
        bytes = rest;
    }
}

/// The tag of a record, as it is written. In a text of a record every quote is escaped, so none of it looks
/// like the tag, and the envelope before it holds no text of anybody.
pub(crate) fn tag(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"event\":\"";
    let head = line.get(..ENVELOPE).unwrap_or(line);
    let start = head.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let rest = head.get(start..)?;
    rest.get(..rest.iter().position(|b| *b == b'"')?)
}
