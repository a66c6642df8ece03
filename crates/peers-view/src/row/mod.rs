//! One loop in one line of a list: what it does, what it needs, what it cost.
//!
//! A row is read from the snapshot, what lies behind it, the newest run record and a few KiB of the journal's
//! end, never from the whole journal and never from git; so a thousand of them are read in a second. What
//! cannot be read is `null` with a warning.

mod asked;
mod build;
mod meters;
mod source;
mod tail;

use std::collections::BTreeMap;

use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp};
use peers_store::Disk;
use serde::Serialize;

use crate::advice::Attention;
use crate::gates::GateFact;
use crate::liveness::{Liveness, Lock, outcome};
use build::Parts;
use source::{Again, FilesPart, JournalPart, RunPart};

pub use asked::{Adrift, HeadFact, Listed, RowAsked, Unknown};
pub use meters::{Cost, Meter, Meters};
pub use tail::{LastEvent, RecentTick};
pub(crate) use tail::{lines, tag};

/// How a loop stands, as the registry has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum LoopState {
    Fresh,
    Running,
    Stopped,
    Crashed,
    Unknown,
}

impl LoopState {
    /// The word in files and views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Crashed => "crashed",
            Self::Unknown => "unknown",
        }
    }

    /// State and outcome of a loop, by the table of stop reasons. A command that holds the lock counts as
    /// alive.
    #[must_use]
    pub fn of(live: Option<&Liveness>) -> (Self, Option<&'static str>) {
        match live {
            None => (Self::Unknown, None),
            Some(Liveness::Running { .. } | Liveness::Command { .. }) => (Self::Running, None),
            Some(Liveness::Fresh) => (Self::Fresh, None),
            Some(Liveness::Stopped { reason, .. }) => match outcome(reason) {
                "error" => (Self::Crashed, Some("error")),
                word => (Self::Stopped, Some(word)),
            },
            Some(Liveness::Crashed { how, .. }) => (Self::Crashed, Some(how.outcome())),
        }
    }
}

/// One loop. Every field that is absent is not known; `warnings` say why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopRow {
    /// The project's name.
    pub name: String,
    /// The top of its repository.
    pub path: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How it stands.
    pub state: LoopState,
    /// How it ended, one word.
    pub outcome: Option<String>,
    /// The loop that runs was started by the controller.
    pub managed: bool,
    /// `host` or `container`.
    pub kind: Option<String>,
    /// The current or last run.
    pub run_id: Option<RunId>,
    /// The process of the loop that runs.
    pub pid: Option<u32>,
    /// How long it has run.
    pub uptime_s: Option<u64>,
    /// What it asks of its operator.
    pub attention: Attention,
    /// The mode; none in this version.
    pub mode: Option<String>,
    /// What it does now: `turn`, `gates`, `waiting`, `between`, `command`, or how it stands.
    pub phase: &'static str,
    /// The tick that is open, else the newest.
    pub iteration: Option<TickNo>,
    /// Ticks completed, ever.
    pub ticks: Option<TickNo>,
    /// Whose turn is open, else who is next.
    pub current_peer: Option<PeerName>,
    /// How long the turn has been open.
    pub tick_age_s: Option<u64>,
    /// The newest ticks, oldest first.
    pub recent: Option<Vec<RecentTick>>,
    /// Gates and reviews.
    pub gates: Option<Gates>,
    /// How far it is.
    pub convergence: Option<Convergence>,
    /// The plan; none in this version.
    pub plan: Option<()>,
    /// The bugs that are open.
    pub bugs: Option<peers_core::bugs::Counts>,
    /// What it cost.
    pub cost: Option<Cost>,
    /// What of its caps is used up.
    pub budget: Option<Meters>,
    /// Its peers.
    pub peers: Option<Vec<PeerCell>>,
    /// The newest commit.
    pub last_commit: Option<LastCommit>,
    /// The newest record.
    pub last_event: Option<LastEvent>,
    /// Which programs.
    pub versions: Versions,
    /// What could not be read, and what else is wrong with the sources.
    pub warnings: Vec<RowWarning>,
    /// The directory in which the newest run worked.
    #[serde(skip)]
    pub workdir: Option<String>,
}

/// Gates and reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gates {
    /// Hard goals.
    pub hard: HardGates,
    /// Soft goals.
    pub soft: SoftGates,
}

/// Hard goals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HardGates {
    /// Green at what the loop last measured.
    pub green: u64,
    /// All.
    pub total: u64,
    /// Those that are red for several ticks in a row.
    pub stuck: Vec<StuckGate>,
}

/// A gate that stays red.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StuckGate {
    /// Which.
    pub id: GoalId,
    /// Ticks in a row.
    pub ticks: u32,
}

/// Soft goals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SoftGates {
    /// With the reviews that they need.
    pub green: u64,
    /// All.
    pub total: u64,
}

/// How far a loop is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Convergence {
    /// Clean ticks in a row.
    pub clean: u32,
    /// Clean ticks that are asked for, if that is known.
    pub needed: Option<u32>,
    /// The first thing that is missing, one word; `complete` where nothing is.
    pub phase: &'static str,
}

/// One peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeerCell {
    /// Its name.
    pub name: PeerName,
    /// Its tool.
    pub tool: String,
    /// Its model, where the configuration names one.
    pub model: Option<String>,
    /// `healthy`, `degraded`, `halted` or `unavailable`.
    pub state: &'static str,
    /// Failed attempts of its current turn.
    pub fails: u32,
    /// Why it is not healthy. Untrusted text.
    pub unavailable_reason: Option<String>,
    /// Until when it waits.
    pub resets_at: Option<Timestamp>,
}

/// The newest commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastCommit {
    /// Its id.
    pub sha: CommitId,
    /// First line of its message, where somebody looked. Untrusted text.
    pub subject: Option<String>,
    /// Whose it is, as far as the newest ticks tell.
    pub peer: Option<PeerName>,
    /// How old it is, as far as known.
    pub age_s: Option<u64>,
}

/// Which programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// That of the newest run.
    #[serde(rename = "loop")]
    pub of_loop: Option<String>,
}

/// Something wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowWarning {
    /// Which, one word.
    pub code: &'static str,
    /// For people. Untrusted text in parts.
    pub message: String,
}

impl LoopRow {
    /// Reads one row. Writes nothing. Nothing here fails: what cannot be read says so.
    pub fn read<D: Disk>(disk: &mut D, asked: &RowAsked) -> Self {
        RowReader::default().row(disk, asked, Again::Once)
    }

    /// The row of a loop that nobody could look at: only what was brought is in it.
    #[must_use]
    pub fn unseen(asked: &RowAsked) -> Self {
        let RowReader { journal, run, files, gate: _ } = &RowReader::default();
        Parts { asked, journal, record: &run.record, files, gate: None, heard: None, decided: false }.row()
    }
}

/// Reads the rows of one loop again and again: what did not change costs a look at its file.
#[derive(Debug, Default)]
pub struct RowReader {
    journal: JournalPart,
    run: RunPart,
    files: FilesPart,
    /// The gate that is in the way.
    gate: Option<GateFact>,
}

impl RowReader {
    /// The row as it is now.
    pub fn read<D: Disk>(&mut self, disk: &mut D, asked: &RowAsked) -> LoopRow {
        self.row(disk, asked, Again::More)
    }

    /// The newest segment of the journal, once it was read.
    #[must_use]
    pub fn segment(&self) -> Option<String> {
        self.journal.segment()
    }

    fn row<D: Disk>(&mut self, disk: &mut D, asked: &RowAsked, again: Again) -> LoopRow {
        let Self { journal, run, files, gate } = self;
        let moved = journal.update(disk, again);
        let known = journal.state.value().and_then(|state| state.run.as_ref()).map(|run| &run.id);
        run.update(disk, (known, moved), &asked.lock);
        files.update(disk, again);
        if moved {
            let here = asked.listed.path.as_str();
            let work = run.record.value().map_or(here, |record| record.workdir.as_str());
            *gate =
                journal.state.value().and_then(|state| crate::gates::in_the_way(disk, state, (work, here)));
        }
        let held = matches!(asked.lock, Lock::Held { .. });
        let state = journal.state.value();
        let heard = asked.heard.or_else(|| source::heard(disk, state.filter(|_| held)?));
        let decided = source::decided(disk, journal.tail.value(), run.record.value());
        Parts { asked, journal, record: &run.record, files, gate: gate.as_ref(), heard, decided }.row()
    }
}
