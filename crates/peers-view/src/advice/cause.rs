//! Advice, and what a view shows of it.

use peers_model::Timestamp;
use peers_model::command::{Piece, Step};
use serde::{Deserialize, Serialize};

use super::spelling::{Spelling, Typed};

/// How urgent something is, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Somebody has to do something.
    Act,
    /// Look when there is time.
    Watch,
    /// It works.
    Ok,
    /// It is done.
    Done,
    /// Nothing is asked of anybody.
    Idle,
}

impl Level {
    /// The word in views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Watch => "watch",
            Self::Ok => "ok",
            Self::Done => "done",
            Self::Idle => "idle",
        }
    }
}

/// What to do about one thing, before anybody spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advice {
    /// How urgent it is.
    pub(crate) level: Level,
    /// What it is, one word.
    pub(crate) code: &'static str,
    /// For people, one line. Untrusted text in parts.
    pub(crate) why: String,
    /// Since when, if that is known.
    pub(crate) since: Option<Timestamp>,
    /// What comes next, one after the other.
    pub(crate) steps: Vec<Step>,
    /// Before then there is nothing to do but to wait.
    pub(crate) wait_until: Option<Timestamp>,
}

impl Advice {
    pub(crate) fn new(level: Level, code: &'static str, why: impl Into<String>) -> Self {
        Self { level, code, why: why.into(), since: None, steps: Vec::new(), wait_until: None }
    }

    /// The same with what comes next.
    pub(crate) fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// The same with these steps.
    pub(crate) fn steps(self, steps: Vec<Step>) -> Self {
        Self { steps, ..self }
    }

    pub(crate) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    pub(crate) fn until(self, wait_until: Option<Timestamp>) -> Self {
        Self { wait_until, ..self }
    }

    /// Only commands, and no word of what they are for.
    fn is_bare(&self) -> bool {
        self.steps.iter().flat_map(Step::pieces).all(|piece| !matches!(piece, Piece::Words(_)))
    }

    fn spelt(self, spelling: &Spelling) -> Cause {
        let action = spelling.typed(&self.steps);
        let said: Vec<String> = self.steps.iter().filter_map(|step| spelling.said(step)).collect();
        let next = match said.join(", then ") {
            none if none.is_empty() => None,
            bare if self.is_bare() => Some(format!("{}: {bare}", self.why)),
            said => Some(said),
        };
        let Self { level, code, why, since, steps, wait_until } = self;
        let commands = spelling.commands(&steps);
        Cause { level, code, why, since, action, commands, next, wait_until }
    }
}

/// One thing that a loop asks of its operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// How urgent it is.
    pub level: Level,
    /// What it is, one word.
    pub code: &'static str,
    /// For people, one line. Untrusted text in parts.
    pub why: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// What is typed next: a line for a POSIX shell, or several with `, then ` between them; absent where nothing
    /// helps.
    pub action: Option<String>,
    /// The same command by command, as they are run; empty where one of them cannot be.
    #[serde(skip)]
    pub commands: Vec<Typed>,
    /// The same as one sentence, which may say more.
    #[serde(skip)]
    pub next: Option<String>,
    /// Before then there is nothing to do but to wait.
    #[serde(skip)]
    pub wait_until: Option<Timestamp>,
}

/// What a loop asks of its operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// The most urgent.
    #[serde(flatten)]
    pub top: Cause,
    /// Further ones that are urgent, the most urgent first.
    pub others: Vec<Cause>,
}

impl Default for Attention {
    /// Nothing is known and nothing asked.
    fn default() -> Self {
        let nothing = Advice::new(Level::Idle, "nothing", "");
        Self { top: nothing.spelt(&Spelling::default()), others: Vec::new() }
    }
}

impl Attention {
    /// How urgent it is.
    #[must_use]
    pub fn level(&self) -> Level {
        self.top.level
    }

    /// Of all advice, the first of which stands for the loop among those that are as urgent.
    pub(crate) fn of(mut all: Vec<Advice>, spelling: &Spelling) -> Self {
        all.sort_by_key(|advice| advice.level);
        let mut all = all.into_iter().map(|advice| advice.spelt(spelling));
        let top = all.next().unwrap_or_else(|| Self::default().top);
        let others = all.filter(|cause| cause.level < Level::Ok).collect();
        Self { top, others }
    }
}
