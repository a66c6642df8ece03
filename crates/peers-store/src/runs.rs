//! Run records: one file for each `peers run`, made at boot, finished at exit.

use peers_model::outcome::StopReason;
use peers_model::record::{Digests, ExitProof};
use peers_model::{CommitId, RunId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::layout;
use crate::store::StoreError;

/// `runs/<run_id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field says what it is; docs/formats/run-record.md explains them")]
pub struct RunRecord {
    pub v: u32,
    pub run_id: RunId,
    pub argv: Vec<String>,
    pub version: String,
    pub sandbox: String,
    pub tier: u8,
    pub digests: Digests,
    pub branch: Option<String>,
    pub workdir: String,
    pub own_branch: bool,
    pub into: Option<String>,
    pub base: Option<CommitId>,
    pub pid: u32,
    pub starttime: Option<u64>,
    pub boot_id: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<StopReason>,
    pub detail: String,
    pub exit_code: Option<u8>,
    pub signal: Option<i32>,
    pub iteration: u64,
    pub ticks_in_run: u64,
    pub head: Option<CommitId>,
    pub proof: Option<ExitProof>,
    pub redactions: u64,
}

/// Writes a record.
///
/// # Errors
/// [`StoreError`].
pub fn write<D: Disk>(disk: &mut D, record: &RunRecord) -> Result<(), StoreError> {
    let path = layout::run_record(&record.run_id);
    let bytes = serde_json::to_vec_pretty(record)
        .map_err(|e| StoreError::File { path: path.clone(), what: format!("cannot be written: {e}") })?;
    disk.publish(Area::Store, &path, &bytes, true)?;
    Ok(())
}

/// All readable records, oldest first, and the names of those that cannot be read.
///
/// # Errors
/// [`StoreError`].
pub fn list<D: Disk>(disk: &mut D) -> Result<(Vec<RunRecord>, Vec<String>), StoreError> {
    let mut records = Vec::new();
    let mut bad = Vec::new();
    for name in disk.list(Area::Store, layout::store::RUNS)? {
        if name.strip_suffix(".json").is_none() {
            continue;
        }
        let path = format!("{}/{name}", layout::store::RUNS);
        let read = disk.read(Area::Store, &path, limits::STORE_FILE).ok().flatten();
        match read.and_then(|b| serde_json::from_slice::<RunRecord>(&b).ok()) {
            Some(record) => records.push(record),
            None => bad.push(name),
        }
    }
    records.sort_by(|a, b| (a.started_at, &a.run_id).cmp(&(b.started_at, &b.run_id)));
    Ok((records, bad))
}

/// Removes the oldest finished records beyond the limit.
///
/// # Errors
/// [`StoreError`].
pub fn prune<D: Disk>(disk: &mut D) -> Result<(), StoreError> {
    let (records, _) = list(disk)?;
    let excess = records.len().saturating_sub(limits::RUN_RECORDS);
    for record in records.iter().filter(|r| r.ended_at.is_some()).take(excess) {
        disk.remove(Area::Store, &layout::run_record(&record.run_id))?;
    }
    Ok(())
}
