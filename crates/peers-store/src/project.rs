//! Which repository a store belongs to.

use peers_model::{CommitId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::store::StoreError;
use crate::{json, layout};

/// The newest version of the file.
const VERSION: u32 = 1;

/// `project.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Version.
    pub v: u32,
    /// Canonical path of the repository.
    pub path: String,
    /// Device of its directory.
    pub dev: u64,
    /// Inode of its directory.
    pub ino: u64,
    /// When the store was made.
    pub created_at: Timestamp,
    /// The commit that HEAD named then, or that the first run began at: history before it is the operator's.
    pub base: Option<CommitId>,
}

/// Reads it; `None` when the store is not there yet.
///
/// # Errors
/// [`StoreError`] when the file is there and damaged, or of a newer program.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Project>, StoreError> {
    let advice = "restore it from a copy, or start over with `peers init --force`";
    json::read(disk, layout::store::PROJECT, (limits::STORE_FILE, VERSION), advice)
}

/// Writes it.
///
/// # Errors
/// [`StoreError`].
pub fn write<D: Disk>(disk: &mut D, project: &Project) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec_pretty(project).map_err(|e| StoreError::File {
        path: layout::store::PROJECT.into(),
        what: format!("cannot be written: {e}"),
        remedy: None,
    })?;
    disk.publish(Area::Store, layout::store::PROJECT, &bytes, true)?;
    Ok(())
}
