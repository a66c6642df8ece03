//! Moving the old control directory and the old store files aside.

use std::path::{Path, PathBuf};

use peers_model::Timestamp;
use peers_place::PEERS_DIR;
use peers_store::layout::store;
use peers_sys::dir::{FileMode, Kind, SafeDir};
use peers_sys::term;
use peers_sys::term::quoted;

use super::ScaffoldError;
use super::report::{Action, Steps};

/// Backups of the control directory that are kept.
const KEPT: usize = 3;
const PREFIX: &str = ".peers.bak-";
/// Files and directories of the store that belong to a run's history.
const HISTORY: [&str; 11] = [
    store::JOURNAL,
    store::SNAPSHOT,
    store::ACCEPTED,
    store::ACCEPTED_DIR,
    store::RUNS,
    store::COMMANDS,
    "baselines",
    "verdicts.json",
    "contracts",
    "notes",
    "egress.json",
];
/// Those that belong to the repository itself.
const IDENTITY: [&str; 2] = [store::PROJECT, "git"];

/// How much of a store is moved aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The history of runs; the store stays this repository's.
    History,
    /// Everything: it was another repository's.
    Whole,
}

/// Where the backups of one start over lie, if they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    /// The work tree.
    work: PathBuf,
    /// The trusted store.
    store: PathBuf,
    /// Of the control directory.
    peers: Option<String>,
    /// Of the history in the store.
    history: Option<String>,
}

impl Copies {
    pub(super) fn named(work: &Path, store: &Path, stamp: &str) -> Self {
        Self {
            work: work.to_owned(),
            store: store.to_owned(),
            peers: Some(format!("{PREFIX}{stamp}")),
            history: Some(format!("bak-{stamp}")),
        }
    }

    /// Those of them that were made; `None` when none was.
    pub(super) fn there(mut self) -> Option<Self> {
        let made = |dir: &Path, name: &str| {
            SafeDir::open_shared(dir).is_ok_and(|dir| matches!(dir.stat(name), Ok(Some(_))))
        };
        self.peers = self.peers.filter(|name| made(&self.work, name));
        self.history = self.history.filter(|name| made(&self.store, name));
        (self.peers.is_some() || self.history.is_some()).then_some(self)
    }

    /// Where they lie, one sentence.
    pub(super) fn words(&self) -> String {
        let shown = |path: PathBuf| term::inline(&path.to_string_lossy());
        let peers =
            self.peers.as_ref().map(|name| format!("the old .peers in {}", shown(self.work.join(name))));
        let history = self
            .history
            .as_ref()
            .map(|name| format!("the history so far in {}", shown(self.store.join(name))));
        let parts: Vec<String> = peers.into_iter().chain(history).collect();
        format!("kept: {}", parts.join(", "))
    }

    /// The commands that put everything back as it was.
    pub(super) fn back(&self) -> String {
        let word = |path: PathBuf| quoted(&path.to_string_lossy());
        let peers = self.peers.as_ref().map(|name| {
            let (now, old) = (word(self.work.join(PEERS_DIR)), word(self.work.join(name)));
            format!("rm -rf {now} && mv {old} {now}")
        });
        let history = self.history.as_ref().map(|name| {
            let (store, old) = (word(self.store.clone()), word(self.store.join(name)));
            format!("cp -a {old}/. {store}/")
        });
        peers.into_iter().chain(history).collect::<Vec<_>>().join(" && ")
    }
}

/// A name for a backup that none of these directories has yet.
pub(super) fn stamp(dirs: &[(&SafeDir, &str)], now: Timestamp) -> Result<String, ScaffoldError> {
    let mut at = now;
    loop {
        let name = compact(at);
        let mut taken = false;
        for (dir, prefix) in dirs {
            taken |= dir.stat(format!("{prefix}{name}"))?.is_some();
        }
        if !taken {
            return Ok(name);
        }
        at = at.plus(std::time::Duration::from_secs(1));
    }
}

/// The directories of [`stamp`] for a work tree and, if there is one, a store.
pub(super) fn places<'a>(work: &'a SafeDir, store: Option<&'a SafeDir>) -> Vec<(&'a SafeDir, &'static str)> {
    std::iter::once((work, PREFIX)).chain(store.map(|store| (store, "bak-"))).collect()
}

/// `20250102T030405Z`.
fn compact(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or_default();
    format!("{}Z", seconds.replace(['-', ':', 'Z'], ""))
}

/// Renames `.peers` to `.peers.bak-<stamp>`.
pub(super) fn control_dir(work: &SafeDir, stamp: &str, steps: &mut Steps) -> Result<(), ScaffoldError> {
    let name = format!("{PREFIX}{stamp}");
    steps.act(Action::Move, format!(".peers -> {name}"), || {
        work.rename(PEERS_DIR, &name)?;
        // The copy must not make the work tree dirty, whatever `.gitignore` says.
        work.subdir(&name)?.publish_mode(".gitignore", b"*\n", FileMode::Private)?;
        Ok(())
    })
}

/// Removes the oldest backups, once everything else is done: until then the newest may be needed. Those
/// of set-ups that were never finished go first, so that trying again and again pushes out nothing of worth.
pub(super) fn prune(work: &SafeDir, store: Option<&SafeDir>, steps: &mut Steps) -> Result<(), ScaffoldError> {
    let mut old = backups(work)?;
    // In a dry run the new one is not there yet.
    let (newest, kept) = if steps.dry_run() { (None, KEPT - 1) } else { (old.pop(), KEPT) };
    let finished = |name: &String| {
        let stamp = name.strip_prefix(PREFIX).unwrap_or_default();
        let copy = format!("bak-{stamp}/{}", store::ACCEPTED);
        store
            .and_then(|store| store.parent_of(&copy).ok())
            .is_some_and(|(dir, name)| matches!(dir.stat(name), Ok(Some(_))))
    };
    // Stable: else they stay in the order of their age.
    old.sort_by_key(finished);
    let too_many = (old.len() + usize::from(newest.is_some())).saturating_sub(kept);
    for oldest in old.into_iter().take(too_many) {
        steps.act(Action::Remove, oldest.clone(), || {
            work.remove_tree(&oldest)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// The backups in a work tree, oldest first.
pub(super) fn backups(work: &SafeDir) -> Result<Vec<String>, ScaffoldError> {
    let ours = |name: &str| {
        name.strip_prefix(PREFIX).is_some_and(|stamp| {
            stamp.len() == 16
                && stamp.bytes().zip(b"00000000T000000Z").all(|(have, want)| match want {
                    b'0' => have.is_ascii_digit(),
                    other => have == *other,
                })
        })
    };
    let entries = work.list(usize::MAX)?.entries.into_iter().filter(|entry| entry.kind == Kind::Dir);
    Ok(entries.filter_map(|entry| entry.name.into_string().ok()).filter(|name| ours(name)).collect())
}

/// Moves store files to `bak-<stamp>/` in the store. Returns whether there were any.
pub(super) fn store_files(
    store: &SafeDir,
    stamp: &str,
    extent: Extent,
    steps: &mut Steps,
) -> Result<bool, ScaffoldError> {
    let name = format!("bak-{stamp}");
    let mut moved = false;
    let identity: &[&str] = match extent {
        Extent::History => &[],
        Extent::Whole => &IDENTITY,
    };
    for item in HISTORY.iter().chain(identity) {
        if store.stat(item)?.is_none() {
            continue;
        }
        steps.act(Action::Move, format!("{item} -> {name}/ in the trusted store"), || {
            store.rename_into(item, &store.create_subdir(&name)?, item)?;
            Ok(())
        })?;
        moved = true;
    }
    Ok(moved)
}
