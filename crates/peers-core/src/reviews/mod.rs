//! The review ledger: which soft goals are green.
//!
//! A review belongs to a scope, the digest of what the goal is about. Once somebody other than its
//! author changes that, it says nothing any more. Who reviewed is known from the turn, never from
//! the message.

mod status;
#[cfg(test)]
mod tests;
mod verdict;

pub use status::{
    Ingested, PeerTally, RosterEntry, SoftReview, SoftStatus, eligible, ingest, scope_changed, void,
};
pub use verdict::{SoftVerdict, objected, pending, satisfied};
