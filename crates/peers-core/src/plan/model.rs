//! What a plan says.

use peers_model::{PeerName, StepId};
use serde::{Deserialize, Serialize};

/// A plan without an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The name of the feature.
    pub title: String,
    /// What is said of all of it.
    pub meta: Meta,
    /// What is to be done, in the order of the file. Ids are 1 to n, each once.
    pub steps: Vec<Step>,
}

impl Plan {
    /// How many steps are how far, as the file says.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let n = |wanted: fn(Mark) -> bool| {
            u64::try_from(self.steps.iter().filter(|step| wanted(step.mark)).count()).unwrap_or(u64::MAX)
        };
        Progress {
            done: n(|mark| mark == Mark::Done),
            partial: n(|mark| mark == Mark::Partial),
            blocked: n(|mark| matches!(mark, Mark::Blocked | Mark::BlockedAck)),
            total: n(|_| true),
        }
    }
}

/// How many steps of a plan are how far. Claims: what proves a step is its gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words say it")]
pub struct Progress {
    pub done: u64,
    pub partial: u64,
    /// Whether the operator knows of it or not.
    pub blocked: u64,
    pub total: u64,
}

/// What is said of the whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// What the feature is used through; at least one, each once.
    pub surfaces: Vec<Surface>,
    /// The shell command that passes when the feature is there.
    pub acceptance: String,
    /// The shell command that tries it as a user does. Always there with [`Surface::Web`] and [`Surface::Gui`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e2e: Option<String>,
    /// Globs of files whose content is frozen with the commands.
    pub acceptance_files: Vec<String>,
    /// Ticks in a row that every gate has to be green; at least 1.
    pub convergence_n: u32,
    /// Whether mutants are tried.
    pub mutation_testing: bool,
    /// Whether each done step says how sure its author is.
    pub confidence_calibration: bool,
    /// Who audits besides the two that always do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honesty_audit_peer: Option<PeerName>,
}

impl Meta {
    /// Ticks in a row, unless the plan says otherwise.
    pub const CONVERGENCE_N: u32 = 5;
}

/// What a feature is used through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// A command line.
    Cli,
    /// A browser.
    Web,
    /// Other code.
    Lib,
    /// Windows of a desktop.
    Gui,
}

impl Surface {
    pub(super) const ALL: [Self; 4] = [Self::Cli, Self::Web, Self::Lib, Self::Gui];

    /// The word of the plan.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Web => "web",
            Self::Lib => "lib",
            Self::Gui => "gui",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its number.
    pub id: StepId,
    /// How far it is, as the file says.
    pub mark: Mark,
    /// What is to be done.
    pub text: String,
    /// The commit that is said to have done it: 7 to 40 lower-case hex digits. A claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
    /// Files that it changes.
    pub touches: Vec<String>,
    /// Steps that come first.
    pub depends: Vec<StepId>,
    /// Too small to be measured: needs no files, and no size.
    pub trivial_step: bool,
    /// Changes no code: needs no files.
    pub pure_documentation: bool,
    /// Changes no behaviour: needs no tests of its own.
    pub pure_refactor: bool,
    /// How sure its author is, of 5. A claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u8>,
    /// Why it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// What somebody wanted to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The shell command that passes when this step is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// The line of the file that it begins in, from 1.
    pub line: usize,
}

/// How far a step is, as a plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Nobody said anything.
    Open,
    /// It is done.
    Done,
    /// Some of it is done.
    Partial,
    /// It cannot be done.
    Blocked,
    /// The operator knows that it cannot be done.
    BlockedAck,
}

impl Mark {
    pub(super) const ALL: [Self; 5] =
        [Self::Open, Self::Done, Self::Partial, Self::Blocked, Self::BlockedAck];

    /// What stands between the brackets.
    #[must_use]
    pub fn written(self) -> &'static str {
        match self {
            Self::Open => " ",
            Self::Done => "x",
            Self::Partial => "PARTIAL",
            Self::Blocked => "BLOCKED",
            Self::BlockedAck => "BLOCKED-ACK",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.written() == text).or((text == "X").then_some(Self::Done))
    }
}
