//! The children of this process that are not reaped yet.
//!
//! A sweep runs beside whatever starts the next child. Since both hold this lock for the moment that
//! matters, a child is known to be ours before a sweep can take it for an orphan.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::identity::Pid;

static LIVE: Mutex<BTreeSet<Pid>> = Mutex::new(BTreeSet::new());

/// The set; held for milliseconds only.
pub(crate) fn lock() -> MutexGuard<'static, BTreeSet<Pid>> {
    // Nobody leaves the set half changed, so a panic elsewhere does not spoil it.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
