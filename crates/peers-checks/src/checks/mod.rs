//! One file for each check.

pub(crate) mod api_stable;
pub(crate) mod bug_ledger;
pub(crate) mod checkoff;
pub(crate) mod codemap;
pub(crate) mod commented_code;
pub(crate) mod contracts;
pub(crate) mod deps_justified;
pub(crate) mod docs;
pub(crate) mod idle;
pub(crate) mod mock_in_impl;
pub(crate) mod mutation_sample;
pub(crate) mod no_secrets;
pub(crate) mod notes;
pub(crate) mod plan;
pub(crate) mod resolve_size;
pub(crate) mod self_review;
pub(crate) mod skip_reasons;
pub(crate) mod streak;
pub(crate) mod three_class;
