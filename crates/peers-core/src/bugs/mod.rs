//! The bug ledger: what the commits of a project say about bugs, and what of it counts.
//!
//! There is no file beside the history. [`Ledger::read`] folds commits, oldest first; every commit
//! message is a claim, and who made a commit comes from the caller, never from the message.

mod counts;
mod ledger;
mod standing;
mod summary;
#[cfg(test)]
mod tests;

pub use counts::{Counts, OpenBugs};
pub use ledger::{
    Author, BlockingReport, Ledger, LedgerCommit, PathTouched, blocking_reports, blocking_reports_in,
};
pub use standing::{Bug, BugEvent, BugStatus, Disposition, LedgerVerdict, OpenReason, Resolution, TddDefect};
pub use summary::{HistoryLine, ReportLine, Summary};
