//! One file for each check.

pub(crate) mod bug_ledger;
pub(crate) mod commented_code;
pub(crate) mod idle;
pub(crate) mod mock_in_impl;
pub(crate) mod self_review;
pub(crate) mod skip_reasons;
pub(crate) mod three_class;
