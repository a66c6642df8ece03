//! Operator commands for a running loop: dropped as files, taken at the next tick boundary.

use peers_model::record::{OperatorOp, OperatorRecord};
use peers_model::{Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::layout;
use crate::store::StoreError;

/// `commands/<id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Version.
    pub v: u32,
    /// What is asked.
    pub op: OperatorOp,
    /// Login name of who asks.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// Drops a command. `id` sorts by time and is unique.
///
/// # Errors
/// [`StoreError`].
pub fn drop_command<D: Disk>(disk: &mut D, id: &str, command: &Command) -> Result<(), StoreError> {
    let path = format!("{}/{id}.json", layout::store::COMMANDS);
    let bytes = serde_json::to_vec(command)
        .map_err(|e| StoreError::File { path: path.clone(), what: format!("cannot be written: {e}") })?;
    disk.publish(Area::Store, &path, &bytes, true)?;
    Ok(())
}

/// What waits, in order: file name and record. A file that cannot be read is moved aside, so that
/// it neither blocks nor vanishes.
///
/// # Errors
/// [`StoreError`].
pub fn waiting<D: Disk>(disk: &mut D) -> Result<Vec<(String, OperatorRecord)>, StoreError> {
    let mut found = Vec::new();
    for name in disk.list(Area::Store, layout::store::COMMANDS)? {
        if name.strip_suffix(".json").is_none() {
            continue;
        }
        let path = format!("{}/{name}", layout::store::COMMANDS);
        let read = disk.read(Area::Store, &path, limits::STORE_FILE)?;
        match read.and_then(|b| serde_json::from_slice::<Command>(&b).ok()) {
            Some(command) => found.push((name, OperatorRecord { op: command.op, by: command.by })),
            None => disk.rename(Area::Store, &path, &format!("{path}.bad"))?,
        }
    }
    Ok(found)
}

/// Removes recorded commands.
///
/// # Errors
/// [`StoreError`].
pub fn remove<D: Disk>(disk: &mut D, names: &[String]) -> Result<(), StoreError> {
    for name in names {
        disk.remove(Area::Store, &format!("{}/{name}", layout::store::COMMANDS))?;
    }
    Ok(())
}
