//! Records of what an operator did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Digests, Rules};
use crate::Timestamp;
use crate::ids::{BugId, CommitId, PeerName, RunId, TickNo};

/// Record `operator`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorRecord {
    /// What was done.
    #[serde(flatten)]
    pub op: OperatorOp,
    /// Login name of who did it.
    pub by: String,
}

/// What an operator can do to a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum OperatorOp {
    /// New goals or config were accepted.
    Accepted {
        /// The digests before.
        old: Digests,
        /// The digests now.
        new: Digests,
        /// Why.
        note: Option<String>,
        /// The new rules, when a loop took them over while it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Box<Rules>>,
    },
    /// Spent counters were zeroed, and caps that an operator had set are those of the configuration again.
    BudgetReset,
    /// Caps were set over those of the configuration.
    BudgetSet {
        /// Which, each with its value.
        caps: Vec<CapSet>,
        /// They hold before this instant; without one until they are set anew or reset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// What kept peers from their turns counts as dealt with: nobody is blocked any more, and who was out has
    /// a recovery turn.
    Resumed,
    /// A bug, a concern or a weakening was acknowledged.
    Ack {
        /// What.
        target: AckTarget,
        /// Why.
        reason: String,
    },
    /// The store was attached to a repository that moved.
    StoreAttached {
        /// The path that the store knew.
        old_path: String,
    },
    /// The branch was set back to the base of a run.
    Undone {
        /// Which run.
        run: RunId,
        /// The tip that was left.
        from: CommitId,
        /// The base.
        to: CommitId,
        /// Where the tip is kept.
        salvage: String,
    },
    /// A run's branch was landed.
    Landed {
        /// Which run.
        run: RunId,
        /// Into which branch.
        into: String,
        /// The new tip.
        commit: CommitId,
    },
    /// A branch is about to be moved by a landing or an undo.
    Moving(BranchMove),
    /// That move is done, or nothing of it was.
    Moved,
    /// Contracts were frozen or amended, or a blocked step was acknowledged.
    Contract(ContractRecord),
}

/// What an operator did to the frozen plan and its commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractRecord {
    /// What.
    pub contract: ContractAct,
    /// Why.
    pub reason: String,
    /// What changed, by name: values before and after, the step and its text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub change: BTreeMap<String, String>,
    /// Digest of the pins that hold since.
    pub state: String,
}

/// What can be done to contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContractAct {
    /// They were frozen.
    Init,
    /// A command was replaced.
    Amend,
    /// A blocked step no longer keeps the plan from being complete.
    AckBlock,
    /// It does again.
    Unblock,
}

impl ContractAct {
    /// The word, as written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Amend => "amend",
            Self::AckBlock => "ack-block",
            Self::Unblock => "unblock",
        }
    }
}

/// A cap that an operator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapSet {
    /// Which.
    pub cap: Cap,
    /// Its value, above zero, in the unit of the cap.
    pub value: u64,
}

/// The caps of everybody together that an operator may set while the configuration stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// Ticks, over all runs.
    MaxIterations,
    /// Run time of peers and gates, seconds, over all runs.
    MaxRuntimeS,
    /// Wall time of one run, seconds.
    MaxWallS,
    /// Failed turns in a row.
    MaxConsecutiveFailures,
    /// Tokens, over all runs.
    MaxTokens,
    /// Millionths of a dollar, over all runs.
    MaxUsd,
}

impl Cap {
    /// The key below `budget` in the configuration.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::MaxIterations => "max_iterations",
            Self::MaxRuntimeS => "max_runtime_s",
            Self::MaxWallS => "max_wall_s",
            Self::MaxConsecutiveFailures => "max_consecutive_failures",
            Self::MaxTokens => "max_tokens",
            Self::MaxUsd => "max_usd",
        }
    }
}

/// A branch that is about to be moved, so that a crash in between can be finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMove {
    /// On whose behalf.
    pub kind: MoveKind,
    /// Which run.
    pub run: RunId,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Where it is.
    pub from: CommitId,
    /// Where it will be.
    pub to: CommitId,
    /// The work tree that has it checked out; absent when none has.
    pub workdir: Option<String>,
}

/// Why a branch is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveKind {
    /// `peers land`: recorded as landed when it is done.
    Land,
    /// `peers undo`: recorded as undone before it is begun.
    Undo,
}

/// What an `ack` is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "kebab-case")]
pub enum AckTarget {
    /// A bug report.
    Bug(BugId),
    /// A concern of a peer.
    Concern(String),
    /// A turn that weakened tests.
    Weakening(TickNo),
    /// What a peer said is in its way.
    Blocked(PeerName),
}
