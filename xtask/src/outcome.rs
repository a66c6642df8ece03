//! How a chore ends.

use std::error::Error;

/// What a chore may fail with. Chores talk to a developer, so a sentence is enough.
pub(crate) type Failure = Box<dyn Error>;

/// How a chore ended when it could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to complain about.
    Ok,
    /// The chore measured something and the answer is negative.
    Negative,
}
