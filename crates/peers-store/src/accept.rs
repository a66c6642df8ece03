//! What the operator accepted: the digests, and the bytes behind them.

use peers_model::record::Digests;
use peers_model::{Timestamp, limits};
use peers_sys::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::layout;
use crate::store::StoreError;

/// `accepted.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Version.
    pub v: u32,
    /// The digests.
    #[serde(flatten)]
    pub digests: Digests,
    /// When.
    pub at: Timestamp,
    /// Login name of who did it.
    pub by: String,
    /// Why.
    pub note: Option<String>,
}

/// The digests of a pair of files.
#[must_use]
pub fn digests(goals: &[u8], config: &[u8]) -> Digests {
    Digests { goals: sha256_hex(goals), config: sha256_hex(config) }
}

/// Reads what was accepted; `None` when nothing was.
///
/// # Errors
/// [`StoreError`] when the file is there and damaged.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Accepted>, StoreError> {
    let path = layout::store::ACCEPTED;
    let Some(bytes) = disk.read(Area::Store, path, limits::STORE_FILE)? else { return Ok(None) };
    let accepted: Accepted = serde_json::from_slice(&bytes).map_err(|e| StoreError::File {
        path: path.into(),
        what: format!("is damaged ({e}); review the files and run `peers goals accept`"),
    })?;
    Ok(Some(accepted))
}

/// The accepted bytes of `goals.yaml` or `config.yaml`, for `goals diff`.
///
/// # Errors
/// [`StoreError`].
pub fn read_bytes<D: Disk>(disk: &mut D, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(disk.read(Area::Store, &format!("{}/{name}", layout::store::ACCEPTED_DIR), limits::CONFIG)?)
}

/// Accepts these bytes. The digests come last, so that a crash leaves the old acceptance in force.
///
/// # Errors
/// [`StoreError`].
pub fn write<D: Disk>(
    disk: &mut D,
    goals: &[u8],
    config: &[u8],
    at: Timestamp,
    by: &str,
    note: Option<&str>,
) -> Result<Accepted, StoreError> {
    for (name, bytes) in [(layout::peers::GOALS, goals), (layout::peers::CONFIG, config)] {
        disk.publish(Area::Store, &format!("{}/{name}", layout::store::ACCEPTED_DIR), bytes, true)?;
    }
    let accepted = Accepted {
        v: 1,
        digests: digests(goals, config),
        at,
        by: by.to_owned(),
        note: note.map(str::to_owned),
    };
    let bytes = serde_json::to_vec_pretty(&accepted).map_err(|e| StoreError::File {
        path: layout::store::ACCEPTED.into(),
        what: format!("cannot be written: {e}"),
    })?;
    disk.publish(Area::Store, layout::store::ACCEPTED, &bytes, true)?;
    Ok(accepted)
}
