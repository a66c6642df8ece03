//! Verdicts: three answers, always about an exact tree.

use serde::{Deserialize, Serialize};

use crate::ids::{CommitId, GoalId, TreeId};

/// What a verdict is about: the committed head and the content of the work tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TreeKey {
    /// The commit that HEAD named.
    pub head: CommitId,
    /// The tree of all files that git would commit (ignored ones excluded). Equal to the tree of
    /// `head` exactly when the work tree is clean.
    pub tree: TreeId,
}

/// Where a gate ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the operator's work tree.
    Live,
    /// In a kept copy of the committed tree.
    GateTree,
    /// In a fresh checkout that was made for this run alone.
    Pristine,
}

/// The answer of a gate. Could-not-judge is its own answer: never green, never the peer's failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Verdict {
    /// The gate passed.
    Pass,
    /// The gate failed.
    Fail {
        /// What it said, bounded by [`crate::limits::DIAGNOSTIC`]. Untrusted text.
        diagnostic: String,
    },
    /// The gate ran into its time limit.
    Timeout {
        /// What it said so far.
        diagnostic: String,
    },
    /// The gate could not be judged.
    Error {
        /// Why not.
        diagnostic: String,
    },
    /// The gate did not run, since one that it needs is not green. Neither red nor green of itself.
    Skipped {
        /// Which one.
        diagnostic: String,
    },
}

impl Verdict {
    /// Whether the gate is green.
    #[must_use]
    pub fn is_pass(&self) -> bool {
        matches!(self, Self::Pass)
    }

    /// Whether the gate gave a negative answer (could-not-judge and skipped are none).
    #[must_use]
    pub fn is_red(&self) -> bool {
        matches!(self, Self::Fail { .. } | Self::Timeout { .. })
    }

    /// Whether the gate did not run for another's sake.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped { .. })
    }

    /// Whether the gate could not be judged.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error { .. })
    }

    /// The diagnostic; empty for a pass.
    #[must_use]
    pub fn diagnostic(&self) -> &str {
        match self {
            Self::Pass => "",
            Self::Fail { diagnostic }
            | Self::Timeout { diagnostic }
            | Self::Error { diagnostic }
            | Self::Skipped { diagnostic } => diagnostic,
        }
    }

    /// The word that files and views show.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail { .. } => "fail",
            Self::Timeout { .. } => "timeout",
            Self::Error { .. } => "error",
            Self::Skipped { .. } => "skipped",
        }
    }
}

/// A verdict with its circumstances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Which gate.
    pub goal: GoalId,
    /// At which tree.
    pub at: TreeKey,
    /// Where it ran.
    pub place: Place,
    /// The answer.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How often it was tried; 0 when it did not run.
    pub attempts: u8,
    /// Wall time of all attempts together, milliseconds.
    pub duration_ms: u64,
    /// Processes that outlived the gate and were ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leaked: u32,
    /// Exit code of the last attempt; absent when a signal ended it, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It did not run: a kept green answer about the same things was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// It did not run: a command of `setup` failed in its tree, which may have causes outside of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub setup_failed: bool,
    /// Digest of the manifests and lock files of that commit, where it ran in a clean checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
}

impl Judged {
    /// A verdict without any circumstances.
    #[must_use]
    pub fn new(goal: GoalId, at: TreeKey, place: Place, verdict: Verdict) -> Self {
        Self {
            goal,
            at,
            place,
            verdict,
            attempts: 0,
            duration_ms: 0,
            leaked: 0,
            exit_code: None,
            signal: None,
            cached: false,
            setup_failed: false,
            manifests: None,
        }
    }

    /// Green, but not at the first attempt.
    #[must_use]
    pub fn is_flaky(&self) -> bool {
        self.verdict.is_pass() && self.attempts > 1
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
