//! How far a run is beyond gates and reviews: its phase, its plan, its quiet ticks. Data and its fold.
//!
//! What follows from it is in [`crate::phases`].

use peers_model::record::{Rules, TickRecord, TickStarted};
use peers_model::step::Quiet;
use serde::{Deserialize, Serialize};

use crate::steps::StepBook;

/// Ticks at the end in which the gates of `settle` stay green.
const SETTLED: u32 = 2;

/// How far a run is in its phases, its plan and its quiet ticks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Course {
    /// Index of the phase.
    #[serde(default)]
    pub phase: usize,
    /// Turns of it that did not bring its artifact.
    #[serde(default)]
    pub tries: u32,
    /// The loop stopped for the operator before the last phase.
    #[serde(default)]
    pub checkpointed: bool,
    /// The steps.
    #[serde(default)]
    pub book: StepBook,
    /// The quiet ticks.
    #[serde(default)]
    pub calm: Calm,
}

/// Ticks in a row with every gate green.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", content = "ticks", rename_all = "kebab-case")]
pub enum Calm {
    /// So many; as many as the plan asks for lead on.
    Green(u32),
    /// Then so many in which the gates of `settle` were green too.
    Settling(u32),
}

impl Default for Calm {
    fn default() -> Self {
        Self::Green(0)
    }
}

impl Calm {
    /// After one more tick.
    #[must_use]
    pub fn after(self, quiet_ticks: u32, seen: Quiet) -> Self {
        match (self, seen) {
            (_, Quiet::Red) | (Self::Green(_), Quiet::Unsettled) => Self::Green(0),
            (Self::Green(ticks), Quiet::Green) if ticks.saturating_add(1) >= quiet_ticks => Self::Settling(0),
            (Self::Green(ticks), Quiet::Green) => Self::Green(ticks.saturating_add(1)),
            (Self::Settling(_), Quiet::Unsettled) => Self::Settling(0),
            (Self::Settling(ticks), Quiet::Green) => Self::Settling(ticks.saturating_add(1)),
        }
    }

    /// Ticks that are missing.
    #[must_use]
    pub fn left(self, quiet_ticks: u32) -> u32 {
        match self {
            Self::Green(ticks) => quiet_ticks.saturating_sub(ticks).saturating_add(SETTLED),
            Self::Settling(ticks) => SETTLED.saturating_sub(ticks),
        }
    }
}

impl Course {
    /// Takes a turn in; `counts` is false where it counts for nobody. Whether it got on by that.
    pub(crate) fn after(
        &mut self,
        rules: &Rules,
        started: &TickStarted,
        tick: &TickRecord,
        counts: bool,
    ) -> bool {
        let (Some(rules), Some(asked)) = (rules.course.as_deref(), started.course.as_deref()) else {
            return false;
        };
        let moved = tick.course.as_deref().cloned().unwrap_or_default();
        let before = self.clone();
        if asked.phase.as_ref() == rules.phases.get(self.phase) && asked.phase.is_some() {
            if moved.delivered {
                self.phase = self.phase.saturating_add(1);
                self.tries = 0;
            } else if counts && !rules.is_endless(self.phase) {
                self.tries = self.tries.saturating_add(1);
            }
        }
        self.book.after(started, tick);
        if let Some(seen) = asked.seen.filter(|_| counts) {
            self.calm = self.calm.after(rules.quiet_ticks, seen);
        }
        let quieter = asked.seen == Some(Quiet::Green) && self.calm != before.calm;
        self.phase > before.phase || self.book != before.book || quieter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_76_gates_stay_green_for_as_long_as_the_plan_asks_and_then_two_ticks_more() {
        use Quiet::{Green, Red, Unsettled};
        let fold = |seen: &[Quiet]| seen.iter().fold(Calm::default(), |calm, seen| calm.after(5, *seen));
        let green = [Green; 9];
        for (seen, due) in [
            (&green[..4], Calm::Green(4)),
            (&green[..5], Calm::Settling(0)),
            (&green[..7], Calm::Settling(2)),
            // A gate of `settle` is red: before, all begins anew; later, the two ticks do.
            (&[Green, Green, Green, Green, Unsettled], Calm::Green(0)),
            (&[Green, Green, Green, Green, Green, Green, Unsettled], Calm::Settling(0)),
            // Another one, a blocking bug say.
            (&[Green, Green, Green, Green, Green, Green, Red], Calm::Green(0)),
        ] {
            assert_eq!(fold(seen), due, "{seen:?}");
        }
        assert_eq!(
            [fold(&green[..4]).left(5), fold(&green[..5]).left(5), fold(&green[..7]).left(5)],
            [3, 2, 0]
        );
    }
}
