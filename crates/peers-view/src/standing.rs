//! How a loop stands by the fold of its journal.

use peers_core::budget::Caps;
use peers_core::state::{State, WarningEntry};
use peers_core::turns;
use peers_model::config::Config;
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp};
use peers_store::runs::RunRecord;
use serde::Serialize;

use crate::budget::{self, BudgetView};
use crate::converge::{self, ConvergeView};
use crate::facts::{GitFacts, Here, Paths};
use crate::gates::{self, GateRow};
use crate::liveness::OpenTurn;
use crate::peers::{self, PeerRow};
use crate::soft::{self, SoftRow};
use crate::sourced::Sourced;

/// Warnings in a view.
const WARNINGS: usize = 20;

/// What the fold of the journal says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Core {
    /// Ticks completed, ever.
    pub ticks: TickNo,
    /// The current or last run.
    pub run: Option<RunBrief>,
    /// Who has the turn.
    pub turn: Option<PeerName>,
    /// The turn that is open.
    pub open: Option<OpenTurn>,
    /// HEAD: of the repository where somebody looked, else as last recorded.
    pub head: Option<CommitId>,
    /// Its branch.
    pub branch: Option<String>,
    /// Nothing is uncommitted, if that is known: while a turn runs nobody looks.
    pub clean: Option<bool>,
    /// The first uncommitted paths, if somebody looked. Untrusted text.
    pub dirty: Vec<String>,
    /// How many uncommitted paths were counted, if somebody looked.
    pub dirty_count: Option<u64>,
    /// There are more than were counted.
    pub dirty_more: bool,
    /// The first of the uncommitted paths that only `.git/info/exclude` ignores. Untrusted text.
    pub excluded: Vec<String>,
    /// How many of these were counted.
    pub excluded_count: u64,
    /// Where the run works.
    pub workdir: Option<String>,
    /// Hard goals.
    pub gates: Vec<GateRow>,
    /// Soft goals.
    pub soft: Vec<SoftRow>,
    /// Peers.
    pub peers: Vec<PeerRow>,
    /// The budget.
    pub budget: BudgetView,
    /// What is missing for `complete`.
    pub converge: ConvergeView,
    /// The newest warnings, oldest first. Untrusted text.
    pub warnings: Vec<WarningEntry>,
    /// Warnings that the next prompt will carry.
    pub warnings_waiting: usize,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunBrief {
    /// Its id.
    pub id: RunId,
    /// When it began.
    pub started_at: Timestamp,
    /// Ticks that it completed.
    pub ticks: u64,
    /// It ended.
    pub ended: bool,
    /// It puts each turn back.
    pub dry_run: bool,
}

pub(crate) fn core(
    state: &State,
    git: Option<&GitFacts>,
    config: &Sourced<Config>,
    record: Option<&RunRecord>,
    now: Timestamp,
) -> Core {
    let here = Here::new(state, git);
    let gates = gates::rows(state, &here);
    let soft = soft::rows(state, git);
    let soft_required = config.value().is_none_or(|config| config.goals.soft_consensus_required);
    let caps = config.clone().map(|config| caps(config, record).in_force(state, now));
    let turn = peers::next(state, caps.value(), now);
    let idle_after = config.value().map_or(0, |config| config.goals.idle_halt_after);
    let idle_limit = caps.value().map_or(0, |caps| turns::idle_limit(idle_after, caps, state));
    let converge = converge::view(state, &here, &gates, &soft, soft_required, idle_limit);
    let excess = state.warnings_history.len().saturating_sub(WARNINGS);
    let dirty = git.and_then(|git| git.dirty.clone());
    let Paths { first: excluded, count: excluded_count, more: _ } =
        git.map(|git| git.excluded.clone()).unwrap_or_default();
    Core {
        ticks: state.ticks,
        run: state.run.as_ref().map(|run| RunBrief {
            id: run.id.clone(),
            started_at: run.started_at,
            ticks: run.ticks,
            ended: run.ended,
            dry_run: state.rules.dry_run,
        }),
        turn: turn.clone(),
        open: OpenTurn::of(state),
        head: here.head.clone(),
        branch: match git {
            Some(git) => git.branch.clone(),
            None => state.branch.clone(),
        },
        clean: here.clean,
        dirty_count: dirty.as_ref().map(|dirty| dirty.count),
        dirty_more: dirty.as_ref().is_some_and(|dirty| dirty.more),
        dirty: dirty.map(|dirty| dirty.first).unwrap_or_default(),
        excluded,
        excluded_count,
        workdir: record.map(|record| record.workdir.clone()),
        peers: peers::rows(state, turn.as_ref(), caps.value()),
        budget: BudgetView {
            // What a run measures stands still when it has ended; what was set for a time runs out all the same.
            set: budget::set_by_hand(state, now),
            ..budget::view(state, caps, record.and_then(|record| record.ended_at).unwrap_or(now))
        },
        converge,
        gates,
        soft,
        warnings: state.warnings_history.iter().skip(excess).cloned().collect(),
        warnings_waiting: state.warnings.len(),
    }
}

/// The caps of the configuration, with the one that the newest run was given on its command line.
pub(crate) fn caps(config: Config, record: Option<&RunRecord>) -> Caps {
    Caps::new(config.budget).given(record.and_then(RunRecord::given_usd))
}
