//! What a loop saw at HEAD when it last looked: a copy for views that have no time to read the history.

use peers_core::bugs::Counts;
use peers_core::plan::Progress;
use peers_model::{CommitId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError};
use crate::store::StoreError;
use crate::{json, layout};

/// The newest version of the file.
const VERSION: u32 = 1;

/// `bugs.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Version.
    pub v: u32,
    /// The commit at which they were counted.
    pub head: CommitId,
    /// The first line of its message, where a turn made it. Untrusted text.
    #[serde(default)]
    pub subject: Option<String>,
    /// Since when HEAD is there, as far as the loop saw.
    pub since: Timestamp,
    /// When.
    pub at: Timestamp,
    /// How many.
    pub counts: Counts,
    /// How far the plan is there, where turns are given out by one.
    #[serde(default)]
    pub plan: Option<Progress>,
}

impl Counted {
    /// Of these bugs and this plan, at this commit. What was known of it stays known.
    #[must_use]
    pub fn new(
        head: CommitId,
        subject: Option<String>,
        at: Timestamp,
        (counts, plan): (Counts, Option<Progress>),
        before: Option<Self>,
    ) -> Self {
        let before = before.filter(|before| before.head == head);
        let since = before.as_ref().map_or(at, |before| before.since);
        let subject = subject.or_else(|| before.and_then(|before| before.subject));
        Self { v: VERSION, head, subject, since, at, counts, plan }
    }
}

/// Reads the copy; `None` where there is none.
///
/// # Errors
/// [`StoreError`] where it cannot be used.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Counted>, StoreError> {
    json::read(disk, layout::store::BUGS, (limits::STORE_FILE, VERSION), "the next turn writes it anew")
}

/// Writes the copy. Losing it costs a view its numbers until the next turn.
///
/// # Errors
/// [`DiskError`].
pub fn write<D: Disk>(disk: &mut D, counted: &Counted) -> Result<(), DiskError> {
    let bytes = serde_json::to_vec(counted).unwrap_or_default();
    disk.publish(Area::Store, layout::store::BUGS, &bytes, false)
}
