//! Turns that make the tests easier instead of the product better.
//!
//! [`judge`] looks at what a turn changed, as our own diff saw it. A turn of tests alone needs a
//! reason; a turn that weakens tests or gates gets one warning, and no reason of its own helps.

mod cargo;
mod commands;
mod config;
mod diff;
mod groups;
mod hiding;
mod idioms;
mod measure;
mod numbers;
mod places;
mod pytest;
mod reach;
mod runnable;
mod rust_modules;
mod strip;
#[cfg(test)]
mod tests;
mod verdict;
mod words;

pub use diff::{Change, ChangedLine, FileDiff, FileStatus, TurnDiff, Uncommitted};
pub use measure::{OfTurn, Weakening, is_measured, weakenings, weakenings_of_turn, weakenings_since};
pub use verdict::{
    CheatContext, CheatVerdict, MIN_JUSTIFICATION, TAKEN_OVER, WEAKENED, green_by_test_edits, judge,
    judge_unfinished, weakened_words,
};
