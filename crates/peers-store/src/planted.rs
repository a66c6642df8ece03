//! What `peers gates test` found when it was last called: a copy for `complete`, views and a check.

use peers_model::{CommitId, Timestamp, TreeId, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError};
use crate::store::StoreError;
use crate::{json, layout};

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
        (head, tree): (CommitId, TreeId),
        at: Timestamp,
        seed: u32,
        (judged, noticed): (u64, u64),
    ) -> Self {
        Self { v: VERSION, head, tree, at, seed, judged, noticed }
    }
}

/// Reads the copy; `None` where there is none.
///
/// # Errors
/// [`StoreError`] where it cannot be used.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Planted>, StoreError> {
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
