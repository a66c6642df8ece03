//! A directory beside its place, in which something is made whole before it gets there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

use peers_model::Timestamp;
use peers_sys::dir::{FileError, Kind, SafeDir};
use peers_sys::lock::{Acquired, FileLock, Probe, Sharing};

use super::super::{ScaffoldError, fault};
use super::site::{INTO_NONEMPTY, not_empty};

/// Between the name and the random digits.
const WORD: &[u8] = b".peers-new-";
/// Bytes of the name that are repeated, so that there is room for the rest.
const NAME: usize = 200;
const DIGITS: usize = 16;
/// What is made.
const TREE: &str = "tree";
/// Held for as long as its maker lives.
const LOCK: &str = "lock";
/// Without the lock: what is younger may have a maker that has not come to it yet.
const AGE: Duration = Duration::from_mins(10);
/// Names that are looked at.
const NAMES: usize = 100_000;

/// A private directory (0700) with the one that is made.
#[derive(Debug)]
pub(super) struct Aside {
    beside: SafeDir,
    name: OsString,
    tree: SafeDir,
    _lock: FileLock,
}

impl Aside {
    /// Makes it in `beside`, for what will be `name`.
    pub(super) fn make(beside: &SafeDir, name: &OsStr) -> Result<Self, ScaffoldError> {
        let beside = beside.try_clone()?;
        fault::at("make aside")?;
        let digits = peers_sys::rand::hex::<{ DIGITS / 2 }>().map_err(|source| FileError::Io {
            path: beside.path().to_owned(),
            op: "draw a name in",
            source,
        })?;
        let mut aside = prefix(name);
        aside.extend_from_slice(digits.as_bytes());
        let aside = OsString::from_vec(aside);
        let outer = beside.create_subdir(&aside)?;
        let made = fault::at("lock aside").and_then(|()| {
            let lock = match FileLock::acquire(&outer, LOCK, Sharing::Exclusive, Duration::ZERO)? {
                Acquired::Held(lock) => lock,
                Acquired::Busy { .. } => {
                    return Err(FileError::AlreadyExists { path: outer.path().to_owned() }.into());
                }
            };
            fault::at("make the tree")?;
            Ok((lock, outer.make_shared_subdir(TREE)?))
        });
        match made {
            Ok((lock, tree)) => Ok(Self { beside, name: aside, tree, _lock: lock }),
            Err(error) => {
                remove(&beside, &aside);
                Err(error)
            }
        }
    }

    /// What is made.
    pub(super) fn tree(&self) -> &SafeDir {
        &self.tree
    }

    /// Puts it into its place, which must be free.
    pub(super) fn place(&self, into: &SafeDir, name: &OsStr) -> Result<(), ScaffoldError> {
        let outer = self.beside.subdir(&self.name)?;
        match outer.rename_new_into(TREE, into, name) {
            Err(FileError::AlreadyExists { path }) => Err(not_empty(&path, INTO_NONEMPTY)),
            placed => Ok(placed?),
        }
    }

    /// Removes it with all that is still in it. What cannot be removed now is swept away later.
    pub(super) fn remove(&self) {
        remove(&self.beside, &self.name);
    }
}

fn remove(beside: &SafeDir, name: &OsStr) {
    if let Err(error) = beside.remove_tree(name) {
        tracing::debug!(%error, "a directory that was built aside is left");
    }
}

/// Removes what calls for this name left when they were killed. Best effort: it is in nobody's way.
pub(super) fn sweep(beside: &SafeDir, name: &OsStr, now: Timestamp) {
    let Ok(listing) = beside.list(NAMES) else { return };
    for entry in listing.entries {
        if entry.kind != Kind::Dir || !is_aside(&entry.name, name) {
            continue;
        }
        let Ok(Some(stat)) = beside.stat(&entry.name) else { continue };
        let Ok(dir) = beside.subdir(&entry.name) else { continue };
        let dead = match FileLock::probe_shared(&dir, LOCK) {
            Ok(Probe::Free { .. }) => true,
            Ok(Probe::Missing) => now.since(stat.modified()) > AGE,
            Ok(Probe::Held { .. }) | Err(_) => false,
        };
        if dead && let Err(error) = beside.remove_tree(&entry.name) {
            tracing::debug!(%error, "what a killed call left stays");
        }
    }
}

/// Whether a name is one that [`Aside::make`] gives for `name`.
pub(super) fn is_aside(found: &OsStr, name: &OsStr) -> bool {
    found.as_bytes().strip_prefix(prefix(name).as_slice()).is_some_and(|digits| {
        digits.len() == DIGITS && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn prefix(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    [b".", name.get(..NAME).unwrap_or(name), WORD].concat()
}
