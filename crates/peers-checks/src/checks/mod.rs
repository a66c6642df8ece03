//! One file for each check.

pub(crate) mod bug_ledger;
pub(crate) mod self_review;
