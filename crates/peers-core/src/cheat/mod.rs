//! Turns that make the tests easier instead of the product better.
//!
//! What a turn weakened comes in as numbers. [`judge`] says what becomes of it: a turn of tests alone needs a reason; a
//! turn that weakens tests or gates gets one warning, and no reason of its own helps.

mod diff;
#[cfg(test)]
mod tests;
mod verdict;

pub use diff::{FileDiff, OfTurn, TurnDiff, Uncommitted};
pub use verdict::{
    CheatContext, CheatVerdict, MIN_JUSTIFICATION, TAKEN_OVER, WEAKENED, green_by_test_edits, judge,
    judge_unfinished, weakened_words,
};
