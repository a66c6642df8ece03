//! What `peers gates test` found when it was last called: a copy for `complete`, views and a check.

use peers_model::{CommitId, Timestamp, TreeId, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError};
use crate::store::StoreError;
use crate::{accept, json, layout};

/// The newest version of the file.
const VERSION: u32 = 1;

/// `gates-test.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Version.
    v: u32,
    /// The commit in which faults were planted.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// The goals and the configuration that were in force: [`crate::accept::together`].
    pub accepted: String,
    /// When.
    pub at: Timestamp,
    /// What chose the faults.
    pub seed: u32,
    /// Faults of which it is known whether they were noticed.
    pub judged: u64,
    /// Those that some gate noticed.
    pub noticed: u64,
}

impl Planted {
    /// Of so many faults `judged`, and `noticed`.
    #[must_use]
    pub fn new(
        (head, tree, accepted): (CommitId, TreeId, String),
        at: Timestamp,
        seed: u32,
        (judged, noticed): (u64, u64),
    ) -> Self {
        Self { v: VERSION, head, tree, accepted, at, seed, judged, noticed }
    }
}

/// Reads the copy; `None` where there is none, or where other goals are accepted now: it says nothing of those.
///
/// # Errors
/// [`StoreError`] where it cannot be used.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Planted>, StoreError> {
    let now = accept::read(disk)?.map(|accepted| accept::together(&accepted.digests)).unwrap_or_default();
    Ok(newest(disk)?.filter(|planted| planted.accepted == now))
}

fn newest<D: Disk>(disk: &mut D) -> Result<Option<Planted>, StoreError> {
    json::read(
        disk,
        layout::store::PLANTED,
        (limits::STORE_FILE, VERSION),
        "`peers gates test` writes it anew",
    )
}

/// Writes the copy. Losing it costs the figure until the gates are tested again.
///
/// # Errors
/// [`DiskError`].
pub fn write<D: Disk>(disk: &mut D, planted: &Planted) -> Result<(), DiskError> {
    let bytes = serde_json::to_vec(planted).unwrap_or_default();
    disk.publish(Area::Store, layout::store::PLANTED, &bytes, false)
}
