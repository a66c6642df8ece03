//! How long a run has got nowhere: the count behind `stuck:idle`.
//!
//! Counted is progress, not redness. A tick gets on when something of it is new in this run: its files, more
//! green gates than ever, a passing review of content that its peer had not passed, a blocking bug opened or
//! closed, a skeptic who found nothing. So a loop that is green and idle stops as surely as one that is red.

use std::collections::VecDeque;

use peers_model::TreeId;
use peers_model::record::{SkepticVerdict, TickRecord};
use serde::{Deserialize, Serialize};

/// While every gate is green in the work tree, new files alone hold `stuck:idle` off for so many times as many
/// ticks at most: edits that nobody asked for are no progress.
const EDITS: u32 = 4;
/// Marks that are kept; the oldest go. A loop that repeats itself does so within fewer.
const MARKS: usize = 1000;

/// What this run has reached, and for how many ticks it has reached nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standstill {
    /// Ticks in a row without progress. Those that count for nobody are left out.
    pub ticks: u32,
    /// Ticks in a row that at most left new files, while every gate was green in the work tree.
    pub edits: u32,
    /// Most gates that were green together in the work tree.
    greens: u32,
    /// Most gates that were green in a proof run.
    proved: u32,
    /// Blocking bugs that were ever reported, as of the newest tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reported: Option<u32>,
    /// Blocking bugs that were ever closed, as of the newest tick.
    closed: u32,
    /// Trees, passing reviews and clean skeptics that were there.
    marks: VecDeque<String>,
}

/// A review that passes, and what it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed<'a> {
    pub(crate) goal: &'a str,
    pub(crate) scope: &'a str,
}

impl Standstill {
    /// Whether the run is to stop: `limit` is the number of ticks, 0 = never.
    #[must_use]
    pub fn is_over(&self, limit: u32) -> bool {
        limit > 0 && (self.ticks >= limit || self.edits >= limit.saturating_mul(EDITS))
    }

    /// For how many ticks it has got nowhere, and after how many it stops, once half of these have passed.
    #[must_use]
    pub fn near(&self, limit: u32) -> Option<(u32, u32)> {
        let counts = [(self.ticks, limit), (self.edits, limit.saturating_mul(EDITS))];
        counts.into_iter().find(|(ticks, of)| *ticks > 0 && *of > 0 && *ticks >= of.div_ceil(2))
    }

    /// The run as it would stand after one more tick that gets nowhere.
    #[must_use]
    pub fn one_more(&self) -> Self {
        Self { ticks: self.ticks.saturating_add(1), edits: self.edits.saturating_add(1), ..self.clone() }
    }

    /// The operator did something: whoever was at a loss is asked anew.
    pub(crate) fn forgive(&mut self) {
        self.ticks = 0;
        self.edits = 0;
    }

    /// The gates are others now: how many of the old ones were green says nothing of them.
    pub(crate) fn other_gates(&mut self) {
        self.forgive();
        self.greens = 0;
        self.proved = 0;
    }

    /// Files that are there when a turn begins are none of its doing.
    pub(crate) fn saw(&mut self, content: &TreeId) {
        self.is_new(format!("files {content}"));
    }

    /// Takes a tick in. `passed` are the reviews of it that count and pass; `counts` is false where it counts for
    /// nobody.
    pub(crate) fn after<'a>(
        &mut self,
        tick: &TickRecord,
        passed: impl IntoIterator<Item = Passed<'a>>,
        counts: bool,
    ) {
        let files = tick.content_after.as_ref().unwrap_or(&tick.tree_after);
        let edited = self.is_new(format!("files {files}"));
        let mut more = false;
        for Passed { goal, scope } in passed {
            more |= self.is_new(format!("pass {goal} {} {scope}", tick.peer));
        }
        if tick.skeptic == Some(SkepticVerdict::Clean) && !tick.tree_changed {
            more |= self.is_new(format!("skeptic {} {}", tick.peer, tick.tree_after));
        }
        // Bugs that are older than the run are none of its first tick's.
        let before = self.reported.replace(tick.bugs_reported);
        more |= tick.blocking_report && before.is_none_or(|known| tick.bugs_reported > known);
        more |= before.is_some() && tick.bugs_closed > self.closed;
        self.closed = self.closed.max(tick.bugs_closed);
        if counts {
            self.ticks = self.ticks.saturating_add(1);
            self.edits = self.edits.saturating_add(1);
        }
        if edited {
            self.ticks = 0;
        }
        if more {
            self.forgive();
        }
    }

    /// Takes in how many of all gates are green in the work tree.
    pub(crate) fn green(&mut self, green: u32, of: usize) {
        if green > self.greens {
            self.greens = green;
            self.forgive();
        }
        if usize::try_from(green).is_ok_and(|green| green < of) {
            // Something is to be done, and who does it edits.
            self.edits = 0;
        }
    }

    /// Takes in how many gates are proved at a tree.
    pub(crate) fn proof(&mut self, green: usize) {
        let green = u32::try_from(green).unwrap_or(u32::MAX);
        if green > self.proved {
            self.proved = green;
            self.forgive();
        }
    }

    /// Whether a mark was not there yet; it is from now on.
    fn is_new(&mut self, mark: String) -> bool {
        if self.marks.contains(&mark) {
            return false;
        }
        self.marks.push_back(mark);
        while self.marks.len() > MARKS {
            self.marks.pop_front();
        }
        true
    }
}
