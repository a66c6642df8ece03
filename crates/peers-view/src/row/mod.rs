//! One loop in one line of a list: what it does, what it needs, what it cost. It is what a view shows at the
//! depth of a row; what cannot be read is `null` with a warning.

mod meters;
mod of;

use std::collections::BTreeMap;

use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, Usd};
use serde::{Serialize, Serializer};

use crate::advice::{self, Attention};
use crate::liveness::Liveness;
use crate::tail::LastEvent;
use crate::ticks::TickRow;

pub use meters::{Cost, Meter, Meters};

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
            Some(Liveness::Stopped { reason, .. }) => match reason.outcome() {
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
    #[serde(serialize_with = "recent")]
    pub recent: Option<Vec<TickRow>>,
    /// Gates and reviews.
    pub gates: Option<Gates>,
    /// How far it is.
    pub convergence: Option<Convergence>,
    /// How far its plan is; absent without one.
    pub plan: Option<peers_core::plan::Progress>,
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

/// Of the newest ticks what a row has for programs.
#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn recent<S: Serializer>(ticks: &Option<Vec<TickRow>>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Recent<'a> {
        tick: TickNo,
        peer: &'a PeerName,
        class: &'a str,
        success: bool,
        usd: Option<Usd>,
    }
    let rows = ticks.as_ref().map(|ticks| {
        let row = ticks.iter().map(|tick| Recent {
            tick: tick.tick,
            peer: &tick.peer,
            class: &tick.classification,
            success: tick.success,
            usd: tick.usd,
        });
        row.collect::<Vec<_>>()
    });
    rows.serialize(serializer)
}

/// How a project stands that has no `.peers/`, for people.
pub const NOT_SET_UP: &str = "not set up";

impl LoopRow {
    /// How it stands, for people.
    pub(crate) fn state_word(&self) -> &'static str {
        if self.attention.top.code == advice::NOT_SET_UP { NOT_SET_UP } else { self.state.word() }
    }
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
