//! What the operator accepted: the digests, and the bytes behind them.

use std::collections::BTreeMap;

use peers_model::record::Digests;
use peers_model::{GoalId, Timestamp, limits};
use peers_sys::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::contracts::Pins;
use crate::disk::{Area, Disk};
use crate::store::StoreError;
use crate::{json, layout};

/// The newest version of `accepted.json`.
const VERSION: u32 = 1;

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
    /// The modes that the goals were made from, what is required first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<AcceptedMode>,
    /// What of a plan is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contracts: Option<Pins>,
}

/// A mode as it was when its goals were accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedMode {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// The digest of its files.
    pub sha256: String,
    /// Its gates: one that is dropped or changed is accepted with a note alone.
    pub gates: Vec<GoalId>,
    /// All of its files, where its gates may need some; they lie below [`layout::store::ACCEPTED_MODES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Modes to accept.
#[derive(Debug, Clone, Default)]
pub struct NewModes {
    /// The modes, what is required first.
    pub modes: Vec<AcceptedMode>,
    /// The bytes of the files that they name, by mode and path.
    pub files: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

fn of_mode(mode: &str, file: &str) -> String {
    format!("{}/{mode}/{file}", layout::store::ACCEPTED_MODES)
}

/// The files of a mode as they were accepted. Whether they still are is for the reader of the digest to say.
///
/// # Errors
/// [`StoreError`], also where one is gone.
pub fn read_mode<D: Disk>(
    disk: &mut D,
    mode: &AcceptedMode,
) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
    let mut files = BTreeMap::new();
    for file in &mode.files {
        let path = of_mode(&mode.name, file);
        let bytes = disk.read(Area::Store, &path, limits::STORE_FILE)?;
        let gone = || StoreError::File { path, what: "is missing".to_owned(), remedy: None };
        files.insert(file.clone(), bytes.ok_or_else(gone)?);
    }
    Ok(files)
}

/// The digests of a pair of files.
#[must_use]
pub fn digests(goals: &[u8], config: &[u8]) -> Digests {
    Digests { goals: sha256_hex(goals), config: sha256_hex(config) }
}

/// One digest over both files, by which people name an acceptance on a machine without its store.
#[must_use]
pub fn together(digests: &Digests) -> String {
    let Digests { goals, config } = digests;
    sha256_hex(format!("peers acceptance 1\ngoals.yaml {goals}\nconfig.yaml {config}\n").as_bytes())
}

/// What `goals accept` mends.
const REMEDY: &str = "review the files and run `peers goals accept`";

/// Reads what was accepted; `None` when nothing was.
///
/// # Errors
/// [`StoreError`] when the file is there and damaged, or of a newer program.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Accepted>, StoreError> {
    json::read(disk, layout::store::ACCEPTED, (limits::STORE_FILE, VERSION), REMEDY)
}

/// The accepted bytes of `goals.yaml` or `config.yaml`; `None` when nothing was accepted.
///
/// # Errors
/// [`StoreError`], also when they are gone or not what was accepted.
pub fn read_bytes<D: Disk>(disk: &mut D, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let path = format!("{}/{name}", layout::store::ACCEPTED_DIR);
    let bytes = disk.read(Area::Store, &path, limits::CONFIG)?;
    let Some(Accepted { digests, .. }) = read(disk)? else { return Ok(bytes) };
    let due = if name == layout::peers::GOALS { digests.goals } else { digests.config };
    let what = match &bytes {
        None => "is missing",
        Some(bytes) if sha256_hex(bytes) != due => "differs from the accepted file (its digest changed)",
        Some(_) => return Ok(bytes),
    };
    Err(StoreError::File { path, what: what.to_owned(), remedy: Some(REMEDY) })
}

/// Whether everything about the acceptance can be read and fits together.
///
/// # Errors
/// [`StoreError`] naming the first file that does not; accepting anew mends all but one of a newer program.
pub fn sound<D: Disk>(disk: &mut D) -> Result<(), StoreError> {
    if read(disk)?.is_some() {
        for name in [layout::peers::GOALS, layout::peers::CONFIG] {
            read_bytes(disk, name)?;
        }
    }
    Ok(())
}

/// Accepts these bytes; the modes stay those that were accepted before. The digests come last, so that a crash leaves the old acceptance in force. A file of
/// an old acceptance that cannot be read is kept aside.
///
/// # Errors
/// [`StoreError`]; one of a newer program is left alone.
pub fn write<D: Disk>(
    disk: &mut D,
    goals: &[u8],
    config: &[u8],
    at: Timestamp,
    by: &str,
    note: Option<&str>,
) -> Result<Accepted, StoreError> {
    write_with(disk, (goals, config), (at, by, note), None)
}

/// [`write()`] with the modes that the goals were made from.
///
/// # Errors
/// As there.
pub fn write_with<D: Disk>(
    disk: &mut D,
    (goals, config): (&[u8], &[u8]),
    (at, by, note): (Timestamp, &str, Option<&str>),
    modes: Option<NewModes>,
) -> Result<Accepted, StoreError> {
    let before = match read(disk) {
        Ok(before) => before,
        Err(error @ StoreError::Newer { .. }) => return Err(error),
        Err(_damaged) => {
            keep_aside(disk, layout::store::ACCEPTED)?;
            None
        }
    };
    let contracts = before.as_ref().and_then(|before| before.contracts.clone());
    let NewModes { modes, files } = modes.unwrap_or_else(|| NewModes {
        modes: before.map(|before| before.modes).unwrap_or_default(),
        files: BTreeMap::new(),
    });
    for (mode, files) in &files {
        for (file, bytes) in files {
            disk.publish(Area::Store, &of_mode(mode, file), bytes, true)?;
        }
    }
    for (name, bytes) in [(layout::peers::GOALS, goals), (layout::peers::CONFIG, config)] {
        let path = format!("{}/{name}", layout::store::ACCEPTED_DIR);
        if disk.read(Area::Store, &path, limits::CONFIG).is_err() {
            // Where its directory should be there may be something else.
            keep_aside(disk, &path).or_else(|_| keep_aside(disk, layout::store::ACCEPTED_DIR))?;
        }
        disk.publish(Area::Store, &path, bytes, true)?;
    }
    let accepted = Accepted {
        v: VERSION,
        digests: digests(goals, config),
        at,
        by: by.to_owned(),
        note: note.map(str::to_owned),
        modes,
        contracts,
    };
    publish(disk, &accepted)?;
    Ok(accepted)
}

/// Pins what is frozen of a plan, beside what was accepted.
pub(crate) fn pin<D: Disk>(disk: &mut D, pins: Pins) -> Result<(), StoreError> {
    let Some(accepted) = read(disk)? else {
        let what = "is missing, so nothing can be frozen beside it".to_owned();
        return Err(StoreError::File { path: layout::store::ACCEPTED.into(), what, remedy: Some(REMEDY) });
    };
    publish(disk, &Accepted { contracts: Some(pins), ..accepted })
}

fn publish<D: Disk>(disk: &mut D, accepted: &Accepted) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec_pretty(accepted).map_err(|e| StoreError::File {
        path: layout::store::ACCEPTED.into(),
        what: format!("cannot be written: {e}"),
        remedy: None,
    })?;
    Ok(disk.publish(Area::Store, layout::store::ACCEPTED, &bytes, true)?)
}

fn keep_aside<D: Disk>(disk: &mut D, path: &str) -> Result<(), StoreError> {
    let free = json::free_beside(disk, path)?;
    Ok(disk.rename(Area::Store, path, &free)?)
}
