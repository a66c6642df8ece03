//! Steps of a plan as the loop gives them out: who works on which, and what was handed in about it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{CommitId, GoalId};

/// The number of a step, written `STEP-n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId(u32);

impl StepId {
    /// The step of this number; there is no step 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The number, from 1.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "STEP-{}", self.0)
    }
}

impl FromStr for StepId {
    type Err = ();

    /// Reads `STEP-n` as it is written by [`fmt::Display`], and nothing else.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix("STEP-").ok_or(())?;
        let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let number = if plain { digits.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(())
    }
}

impl Serialize for StepId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepId {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader)?;
        text.parse().map_err(|()| serde::de::Error::custom("a step is written `STEP-n`"))
    }
}

/// What a peer does about a step in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepRole {
    /// Writes it, and hands in notes.
    Implement,
    /// Reads the commits alone, and hands in what they do.
    Review,
    /// Has seen both notes, and checks the step off or says what is wrong.
    Compare,
}

impl StepRole {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Compare => "compare",
        }
    }

    /// What is handed in at the end of such a turn.
    #[must_use]
    pub fn part(self) -> Option<NotePart> {
        match self {
            Self::Implement => Some(NotePart::Impl),
            Self::Review => Some(NotePart::Review),
            Self::Compare => None,
        }
    }
}

/// The work of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWork {
    /// Which step.
    pub step: StepId,
    /// As what.
    pub role: StepRole,
    /// HEAD before anything was done about the step.
    pub base: CommitId,
    /// HEAD when its implementer handed it in; absent while it is implemented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
}

/// Which of the notes about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotePart {
    /// What its implementer says.
    Impl,
    /// What its reviewer read in the commits.
    Review,
}

impl NotePart {
    /// The name of its file, without `.md`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Impl => "impl",
            Self::Review => "review",
        }
    }
}

/// Notes that were taken out of a drop box and put into the trusted store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedNote {
    /// About which step.
    pub step: StepId,
    /// Which of them.
    pub part: NotePart,
    /// The commits that it is about: after this one,
    pub base: CommitId,
    /// up to this one.
    pub head: CommitId,
    /// Words in it.
    pub words: u32,
    /// SHA-256 (hex) of the file in the store.
    pub sha256: String,
    /// The file, below `notes/` in the store.
    pub file: String,
}

/// What was asked of a turn beyond gates and reviews: part of `tick-started`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseAsked {
    /// The phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The step and the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<StepWork>,
    /// How the gates stood before it; absent where a run does not wait for quiet ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Quiet>,
}

/// How all gates together stand at one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quiet {
    /// All are green.
    Green,
    /// Only gates of `settle` are not.
    Unsettled,
    /// Another one is not.
    Red,
}

/// What a turn brought beyond gates and reviews: part of `tick`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseMoved {
    /// The artifact of the phase is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// Notes that were handed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<SealedNote>,
    /// The step was checked off by its reviewer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked_off: bool,
}

/// Phases and quiet ticks as far as folding needs them: part of the frozen rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseRules {
    /// The phases by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
    /// The last phase has no artifact, so that it does not end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_ended: bool,
    /// The gates that have to stay green at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settle: Vec<GoalId>,
    /// Ticks in a row that all gates have to be green before.
    #[serde(default)]
    pub quiet_ticks: u32,
}

impl CourseRules {
    /// Whether this phase, by its index, has no artifact that ends it.
    #[must_use]
    pub fn is_endless(&self, phase: usize) -> bool {
        self.open_ended && phase.saturating_add(1) == self.phases.len()
    }
}
