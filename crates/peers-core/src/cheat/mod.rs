//! Turns that make the tests easier instead of the product better.
//!
//! [`judge`] looks at what a turn changed, as our own diff saw it. A turn of tests alone needs a
//! reason; a turn that weakens tests or gates gets one warning, and no reason of its own helps.

mod config;
mod diff;
mod idioms;
mod measure;
#[cfg(test)]
mod tests;
mod verdict;

pub use diff::{Change, ChangedLine, FileDiff, FileStatus, TurnDiff};
pub use measure::{Weakening, weakenings};
pub use verdict::{CheatContext, CheatVerdict, MIN_JUSTIFICATION, green_by_test_edits, judge};
