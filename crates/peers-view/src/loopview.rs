//! Everything about one loop: the one model behind every view.

use peers_model::config::Config;
use peers_model::{PeerName, Timestamp, exit};
use peers_store::planted::Planted;
use peers_store::project::Project;
use peers_store::runs::RunRecord;
use serde::Serialize;

use crate::advice::{Attention, Spelling};
use crate::bugs::BugsView;
use crate::liveness::{Confinement, Liveness};
use crate::notable::{LandedRow, Notable, UndoneRow};
use crate::setup::Setup;
use crate::sourced::Sourced;
use crate::tail::JournalTail;

pub(crate) use crate::standing::Core;

/// The kind of an alert about what a start would refuse for.
pub(crate) const REFUSED: &str = "refused";
/// The kind of an alert about a peer that has no turns.
pub(crate) const PEER: &str = "peer";
/// The kind of an alert that nobody can have a turn now.
pub(crate) const WAITING: &str = "waiting";

/// Everything about one loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopView {
    /// When it was read.
    pub at: Timestamp,
    /// Which repository.
    pub project: Sourced<Project>,
    /// Whether a loop runs.
    pub liveness: Sourced<Liveness>,
    /// The newest run.
    pub run: Sourced<RunRecord>,
    /// Whether its peers are confined.
    pub confinement: Confinement,
    /// What the journal amounts to.
    #[serde(rename = "loop")]
    pub core: Sourced<Core>,
    /// The bug ledger, if somebody read it.
    pub bugs: Sourced<BugsView>,
    /// The end of the journal.
    pub journal: Sourced<JournalTail>,
    /// Records that were taken from the snapshot and not read again.
    pub unverified: u64,
    /// What must not be overlooked.
    pub notable: Sourced<Notable>,
    /// The newest run's branch was landed since.
    pub landed: Option<LandedRow>,
    /// The newest run was undone since.
    pub undone: Option<UndoneRow>,
    /// What planted faults showed of the gates at the commit of HEAD.
    pub planted: Option<Planted>,
    /// What the operator's files say, and whether they are accepted.
    pub setup: Setup,
    /// The directory that was asked about.
    pub here: Option<String>,
    /// The directory in which the newest run worked is not there any more.
    pub gone: bool,
    /// How long the peer whose turn is open has been silent.
    pub silence: Option<Silence>,
    /// What is wrong with the sources.
    pub alerts: Vec<Alert>,
    /// What is accepted of the configuration.
    #[serde(skip)]
    pub(crate) config: Sourced<InForce>,
    /// How many hard and how many soft goals a first run would begin with, if that is known.
    #[serde(skip)]
    pub(crate) goals: Option<[u64; 2]>,
    /// What is wrong with the journal.
    #[serde(skip)]
    pub(crate) damage: Option<String>,
    /// What it asks of its operator.
    #[serde(skip)]
    pub attention: Attention,
    /// How its reader types commands.
    #[serde(skip)]
    pub(crate) spelling: Spelling,
}

/// What a view shows of the configuration by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InForce {
    /// Clean ticks that `complete` asks for.
    pub(crate) needed: u32,
    /// Milliseconds of silence after which a peer is ended.
    pub(crate) idle_ms: u64,
    /// The models that it names.
    pub(crate) models: Vec<(PeerName, Option<String>)>,
}

impl InForce {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            needed: config.goals.convergence_n.get(),
            idle_ms: u64::from(config.health.idle_timeout_s.get()) * 1000,
            models: config.peers.iter().map(|spec| (spec.name.clone(), spec.model.clone())).collect(),
        }
    }
}

/// A silence, and how long it may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Silence {
    /// Milliseconds without a byte.
    pub ms: u64,
    /// Milliseconds after which the process is ended.
    pub limit_ms: Option<u64>,
}

/// Something wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// Which, one word.
    pub kind: &'static str,
    /// For people.
    pub text: String,
}

impl Alert {
    /// Whether it says what to type.
    pub(crate) fn has_commands(&self) -> bool {
        matches!(self.kind, REFUSED | PEER)
    }

    /// Whether something is wrong; a wait ends by itself.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind != WAITING
    }
}

impl LoopView {
    /// Where the newest run worked, if that is not the directory that was asked about.
    pub(crate) fn apart(&self) -> Option<&str> {
        let workdir = self.core.value()?.workdir.as_deref()?;
        let here =
            self.here.as_deref().or_else(|| self.project.value().map(|project| project.path.as_str()))?;
        (workdir != here).then_some(workdir)
    }

    /// The exit code of a command that shows it: 1 before the first run, 3 when the journal cannot be
    /// read or is seen to be damaged, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (&self.core, &self.liveness) {
            (Sourced::Unreadable(_) | Sourced::Stale { .. }, _) | (_, Sourced::Unreadable(_)) => {
                exit::INVALID
            }
            _ if self.journal.value().is_some_and(|tail| tail.broken.is_some()) => exit::INVALID,
            (_, Sourced::Fresh(Liveness::Fresh)) => exit::NEGATIVE,
            _ => exit::OK,
        }
    }
}
