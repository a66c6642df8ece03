//! Run records: one file for each `peers run`, made at boot, finished at exit.

use peers_core::budget::GivenUsd;
use std::collections::BTreeMap;

use peers_model::PeerName;
use peers_model::command::NO_HOOKS;
use peers_model::outcome::StopReason;
use peers_model::record::{Digests, ExitProof};
use peers_model::{CommitId, RunId, RunRequest, Timestamp, limits};
use peers_sys::term::quoted;
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError, DiskErrorKind};
use crate::store::StoreError;
use crate::{json, layout};

/// The newest version of the file.
const VERSION: u32 = 1;
/// How the names of records end.
const SUFFIX: &str = ".json";

/// `runs/<run_id>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field says what it is; docs/formats/run-record.md explains them")]
pub struct RunRecord {
    pub v: u32,
    pub run_id: RunId,
    pub argv: Vec<String>,
    #[serde(default)]
    pub request: RunRequest,
    pub version: String,
    pub sandbox: String,
    pub tier: u8,
    /// How each peer comes to its model: by the auth proxy (`proxy`), or by a login that it has itself (`mounted`).
    /// Empty without a wall.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<PeerName, String>,
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
    #[serde(default)]
    pub ready_at: Option<Timestamp>,
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

/// The number of SIGKILL.
const KILL: i32 = 9;

impl RunRecord {
    /// Whether the record alone can say that the run ended, though the journal holds it open, or does not know it
    /// (`named`). Everything else that ends a run stands in the journal first; not that its operator had it killed, or
    /// that the journal could not be written.
    #[must_use]
    pub fn says_more_than_the_journal(&self, named: bool) -> bool {
        match self.reason {
            Some(StopReason::Interrupted(_)) => named && self.signal == Some(KILL),
            Some(StopReason::Error(_)) => true,
            _ => false,
        }
    }

    /// The cap of money that the run was given on its command line.
    #[must_use]
    pub fn given_usd(&self) -> Option<GivenUsd> {
        let RunRequest { max_usd, max_usd_since, .. } = self.request;
        max_usd.map(|usd| GivenUsd { usd, at: max_usd_since.unwrap_or(self.started_at) })
    }

    /// The commands that make its worktree again which somebody removed by hand, whether git has forgotten it since or
    /// not. They work in any directory; `project` is the repository's.
    #[must_use]
    pub fn worktree_again(&self, project: &str) -> String {
        let (dir, project) = (quoted(&self.workdir), quoted(project));
        let (flag, at) = match (&self.branch, &self.head) {
            (Some(branch), _) => ("", quoted(branch)),
            (None, Some(head)) => ("--detach ", head.to_string()),
            (None, None) => ("--detach ", "HEAD".to_owned()),
        };
        format!(
            "d={dir}; git -C {project} {NO_HOOKS} worktree add -f {flag}\"$d\" {at} && peers -C \"$d\" init --upgrade"
        )
    }
}

/// Writes a record.
///
/// # Errors
/// [`StoreError`].
pub fn write<D: Disk>(disk: &mut D, record: &RunRecord) -> Result<(), StoreError> {
    let path = layout::run_record(&record.run_id);
    let bytes = serde_json::to_vec_pretty(record).map_err(|e| StoreError::File {
        path: path.clone(),
        what: format!("cannot be written: {e}"),
        remedy: None,
    })?;
    disk.publish(Area::Store, &path, &bytes, true)?;
    Ok(())
}

/// All readable records, oldest first, and the names of those that cannot be read. For looking; whoever
/// decides by what is there asks [`all`].
///
/// # Errors
/// [`StoreError`].
pub fn list<D: Disk>(disk: &mut D) -> Result<(Vec<RunRecord>, Vec<String>), StoreError> {
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    for name in names(disk)? {
        match read(disk, &name) {
            Ok(Some(record)) => records.push(record),
            Ok(None) | Err(_) => bad.push(name),
        }
    }
    bad.extend(irregular(disk)?);
    records.sort_by(|a, b| (a.started_at, &a.run_id).cmp(&(b.started_at, &b.run_id)));
    Ok((records, bad))
}

/// Whether a run was ever recorded, readable or not.
///
/// # Errors
/// [`StoreError`] where the directory cannot be read.
pub fn any<D: Disk>(disk: &mut D) -> Result<bool, StoreError> {
    Ok(!names(disk)?.is_empty() || !irregular(disk)?.is_empty())
}

/// The record of the run that the journal names last; the newest one where it names none. For who goes by what that
/// run was asked.
///
/// # Errors
/// [`StoreError`] where it cannot be read, or is not there though the journal names that run.
pub fn last<D: Disk>(disk: &mut D) -> Result<Option<RunRecord>, StoreError> {
    let named = crate::store::read_state(disk).ok().and_then(|state| state.run).map(|run| run.id);
    let Some(id) = named else { return Ok(list(disk)?.0.pop()) };
    let what = "is missing, and the journal names this run last; restore it from a copy";
    let missing = || StoreError::File { path: layout::run_record(&id), what: what.to_owned(), remedy: None };
    get(disk, &id)?.ok_or_else(missing).map(Some)
}

/// All records, oldest first: one that cannot be read is an error, since it may be the one that matters.
///
/// # Errors
/// [`StoreError`] naming the file.
pub fn all<D: Disk>(disk: &mut D) -> Result<Vec<RunRecord>, StoreError> {
    if let Some(name) = irregular(disk)?.into_iter().next() {
        return Err(StoreError::Disk(DiskError {
            kind: DiskErrorKind::Unsafe,
            op: "read",
            area: Area::Store,
            path: format!("{}/{name}", layout::store::RUNS),
            detail: "it is not a regular file; inspect it and move it away".to_owned(),
        }));
    }
    let mut records = Vec::new();
    for name in names(disk)? {
        records.extend(read(disk, &name)?);
    }
    records.sort_by(|a, b| (a.started_at, &a.run_id).cmp(&(b.started_at, &b.run_id)));
    Ok(records)
}

/// The record of one run; `None` where there is none.
///
/// # Errors
/// [`StoreError`] naming the file.
pub fn get<D: Disk>(disk: &mut D, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
    read(disk, &format!("{id}{SUFFIX}"))
}

/// The newest record, without a look into the others: the one of `known`, the run that the journal names last,
/// or one that was written later. For looking.
///
/// # Errors
/// [`StoreError`] also where that record cannot be read.
pub fn newest<D: Disk>(disk: &mut D, known: Option<&RunId>) -> Result<Option<RunRecord>, StoreError> {
    let known = known.map(|id| format!("{id}{SUFFIX}"));
    let written = disk.newest(Area::Store, layout::store::RUNS, SUFFIX)?;
    let written = written.filter(|name| Some(name) != known.as_ref());
    let mut records = Vec::new();
    for name in known.iter().chain(&written) {
        records.extend(read(disk, name)?);
    }
    Ok(records.into_iter().max_by(|a, b| (a.started_at, &a.run_id).cmp(&(b.started_at, &b.run_id))))
}

fn read<D: Disk>(disk: &mut D, name: &str) -> Result<Option<RunRecord>, StoreError> {
    let path = format!("{}/{name}", layout::store::RUNS);
    let advice = "restore it from a copy, or move it away: what it says of its run is lost then";
    let record: Option<RunRecord> = json::read(disk, &path, (limits::STORE_FILE, VERSION), advice)?;
    match record {
        Some(record) if layout::run_record(&record.run_id) != path => Err(StoreError::File {
            path,
            what: format!("is the record of run {}, under another name", record.run_id),
            remedy: Some("move it away"),
        }),
        other => Ok(other),
    }
}

fn names<D: Disk>(disk: &mut D) -> Result<Vec<String>, StoreError> {
    let mut names = disk.list(Area::Store, layout::store::RUNS)?;
    names.retain(|name| name.ends_with(SUFFIX));
    Ok(names)
}

/// What has the name of a record and is no plain file.
fn irregular<D: Disk>(disk: &mut D) -> Result<Vec<String>, StoreError> {
    let mut names = disk.irregular(Area::Store, layout::store::RUNS)?;
    names.retain(|name| name.ends_with(SUFFIX));
    Ok(names)
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
