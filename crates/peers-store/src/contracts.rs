//! The frozen plan and its commands: content in the trusted store, pins in `accepted.json`, copies for readers
//! in `.peers/`. `docs/formats/store.md` describes the files.
//!
//! The pins say what was frozen, and the newest record of the journal says which pins hold: neither can be
//! replaced alone. Nothing here decides what a difference means.

use std::collections::BTreeMap;

use peers_model::limits;
use peers_sys::digest::sha256_hex;
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk};
use crate::layout::{peers, store};
use crate::store::StoreError;
use crate::{accept, layout};

/// The largest frozen file, in bytes.
pub const FILE_CAP: u64 = 1024 * 1024;
/// The most frozen files.
pub const FILES: usize = 256;

/// What to do about contracts that do not fit their pins.
const REMEDY: &str = "restore the file from a copy, or freeze the command anew with `peers-ctl amend`";

/// Digests (SHA-256, hex) of what was frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// `PLAN.original.md`.
    pub plan: String,
    /// `acceptance.sh`.
    pub acceptance: String,
    /// `e2e.sh`; absent where the plan names no such command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2e: Option<String>,
    /// Frozen files of the repository, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Pins {
    /// One digest over all of them, as records name it.
    #[must_use]
    pub fn state(&self) -> String {
        let Self { plan, acceptance, e2e, files } = self;
        let e2e = e2e.iter().map(|digest| format!("e2e {digest}\n"));
        let files = files.iter().map(|(path, digest)| format!("file {digest} {path:?}\n"));
        let rest: String = e2e.chain(files).collect();
        let text = format!("peers contracts 1\nplan {plan}\nacceptance {acceptance}\n{rest}");
        sha256_hex(text.as_bytes())
    }
}

/// What was frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// The plan, as accepted.
    pub plan: Vec<u8>,
    /// The script that passes when the feature is there.
    pub acceptance: Vec<u8>,
    /// The script that tries it as a user does.
    pub e2e: Option<Vec<u8>>,
    /// Files that are laid over each checkout in which a script runs, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Frozen {
    /// The digests of all this.
    #[must_use]
    pub fn pins(&self) -> Pins {
        Pins {
            plan: sha256_hex(&self.plan),
            acceptance: sha256_hex(&self.acceptance),
            e2e: self.e2e.as_deref().map(sha256_hex),
            files: self.files.iter().map(|(path, bytes)| (path.clone(), sha256_hex(bytes))).collect(),
        }
    }

    /// Each file of the contracts with the name of its copy below `.peers/`.
    fn copies(&self) -> Vec<(String, &[u8])> {
        let mut all: Vec<(String, &[u8])> = vec![(peers::PLAN_ORIGINAL.to_owned(), &self.plan)];
        all.push((format!("{}/{ACCEPTANCE}", peers::CONTRACTS), &self.acceptance));
        all.extend(self.e2e.as_deref().map(|e2e| (format!("{}/{E2E}", peers::CONTRACTS), e2e)));
        let files = self.files.iter();
        all.extend(
            files.map(|(path, bytes)| (format!("{}/files/{path}", peers::CONTRACTS), bytes.as_slice())),
        );
        all
    }
}

const PLAN: &str = "PLAN.original.md";
const ACCEPTANCE: &str = "acceptance.sh";
const E2E: &str = "e2e.sh";

fn stored(name: &str) -> String {
    format!("{}/{name}", store::CONTRACTS)
}

/// The script that runs a command of a plan.
#[must_use]
pub fn script(command: &str) -> Vec<u8> {
    format!("#!/bin/sh\nset -e\n{command}\n").into_bytes()
}

/// The command of a script that [`script`] made.
#[must_use]
pub fn command(script: &[u8]) -> Option<&str> {
    std::str::from_utf8(script).ok()?.strip_prefix("#!/bin/sh\nset -e\n").map(str::trim_end)
}

/// What is frozen; `None` where nothing ever was.
///
/// # Errors
/// [`StoreError`] when a pin or a file cannot be read, or a file is not what was pinned.
pub fn read<D: Disk>(disk: &mut D) -> Result<Option<Frozen>, StoreError> {
    let Some(Pins { plan, acceptance, e2e, files }) = accept::read(disk)?.and_then(|all| all.contracts)
    else {
        return Ok(None);
    };
    Ok(Some(Frozen {
        plan: pinned(disk, PLAN, &plan, limits::CONFIG)?,
        acceptance: pinned(disk, ACCEPTANCE, &acceptance, FILE_CAP)?,
        e2e: e2e.map(|digest| pinned(disk, E2E, &digest, FILE_CAP)).transpose()?,
        files: files
            .into_iter()
            .map(|(path, digest)| {
                Ok((path.clone(), pinned(disk, &format!("files/{path}"), &digest, FILE_CAP)?))
            })
            .collect::<Result<_, StoreError>>()?,
    }))
}

fn pinned<D: Disk>(disk: &mut D, name: &str, due: &str, cap: u64) -> Result<Vec<u8>, StoreError> {
    let path = stored(name);
    let what = match disk.read(Area::Store, &path, cap)? {
        None => "is missing",
        Some(bytes) if sha256_hex(&bytes) == due => return Ok(bytes),
        Some(_) => "is not what was frozen (its digest changed)",
    };
    Err(StoreError::File { path, what: what.to_owned(), remedy: Some(REMEDY) })
}

/// Freezes this: the files first, the pins last. A crash in between leaves the old pins, which then do not fit.
///
/// # Errors
/// [`StoreError`], also where goals and configuration were never accepted.
pub fn write<D: Disk>(disk: &mut D, frozen: &Frozen) -> Result<(), StoreError> {
    let Frozen { plan, acceptance, e2e, files } = frozen;
    let mut put = |name: &str, bytes: &[u8]| disk.publish(Area::Store, &stored(name), bytes, true);
    put(PLAN, plan)?;
    put(ACCEPTANCE, acceptance)?;
    if let Some(e2e) = e2e {
        put(E2E, e2e)?;
    }
    for (path, bytes) in files {
        put(&format!("files/{path}"), bytes)?;
    }
    accept::pin(disk, frozen.pins())
}

/// The copies below `.peers/` that are not what is frozen: the path of each, and how it differs.
///
/// # Errors
/// [`StoreError`] only where that place as a whole cannot be read.
pub fn differences<D: Disk>(
    disk: &mut D,
    frozen: &Frozen,
) -> Result<Vec<(String, &'static str)>, StoreError> {
    let mut found = Vec::new();
    for (path, due) in frozen.copies() {
        let cap = u64::try_from(due.len()).unwrap_or(u64::MAX);
        let how = match disk.read(Area::Peers, &path, cap) {
            Ok(None) => "is missing",
            Ok(Some(bytes)) if bytes == due => continue,
            // A link, another kind of file, or one that is longer.
            Ok(Some(_)) | Err(_) => "is not what was frozen",
        };
        found.push((path, how));
    }
    Ok(found)
}

/// Writes the copies for readers that are not what is frozen. Returns their paths.
///
/// # Errors
/// [`StoreError`] when one cannot be written.
pub fn restore_copies<D: Disk>(disk: &mut D, frozen: &Frozen) -> Result<Vec<String>, StoreError> {
    let differing = differences(disk, frozen)?;
    let mut restored = Vec::new();
    for (path, bytes) in frozen.copies() {
        if differing.iter().any(|(known, _)| *known == path) {
            disk.publish_read_only(Area::Peers, &path, bytes)?;
            restored.push(path);
        }
    }
    Ok(restored)
}

/// Whether a path of the repository may be frozen: plain parts, none of git's or ours.
#[must_use]
pub fn may_freeze(path: &str) -> bool {
    let ours = |part: &str| part.eq_ignore_ascii_case(".git") || matches!(part, "" | "." | "..");
    !path.is_empty()
        && path.len() <= 1024
        && !path.contains(['\0', '\n'])
        && !path.split('/').any(ours)
        && path.split('/').next() != Some(layout::PEERS_DIR)
}
