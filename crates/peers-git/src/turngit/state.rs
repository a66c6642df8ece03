//! Where the git directory of a turn lies, and what is remembered of it across a crash.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use peers_model::CommitId;
use peers_sys::dir::{FileError, SafeDir};
use serde::{Deserialize, Serialize};

use super::layout::weigh;
use crate::error::GitError;
use crate::files;
use crate::known::Generation;

/// Written last when one is made, and removed first when it is thrown away: without it there is no turn.
const STATE: &str = "turn-git.json";
const STATE_CAP: u64 = 128 << 20;
const VERSION: u32 = 1;
/// Holds `.git` and, in [`OWN`], what is ours: nothing in a sandbox can write that.
const TURN: &str = "turn-git";
const OWN: &str = "own";
/// Git directories of failed turns: so many are kept, and so many bytes of them together.
const ASIDE: &str = "turn-git-aside";
const KEPT: usize = 3;
const KEPT_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
const MAX_NAMES: usize = 10_000;

/// What is remembered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    v: u32,
    /// The full name of the run's branch; absent when `HEAD` is detached.
    pub(super) branch: Option<String>,
    /// Where it was when the turn began.
    pub(super) tip: CommitId,
    /// The references that the turn was shown, names and hashes.
    pub(super) refs: BTreeMap<String, String>,
    /// The edge of the history that it was shown, as lines.
    pub(super) shallow: String,
    /// Git directories deeper in the work tree when the turn began.
    pub(super) nested: Vec<Nested>,
    /// Git directories of the submodules that were checked out.
    pub(super) modules: Vec<PathBuf>,
    /// Commits known by the end of this generation are not the turn's. Set by the first harvest.
    pub(super) before: Option<Generation>,
}

/// Something of the name `.git` below the top of the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nested {
    /// Its path from the top.
    pub(super) path: Vec<u8>,
    pub(super) is_dir: bool,
    /// What is in it, of a small file.
    pub(super) text: Option<Vec<u8>>,
}

/// The git directory of a turn.
#[derive(Debug)]
pub struct TurnGit {
    scratch: SafeDir,
    dir: PathBuf,
    pub(super) state: State,
}

impl TurnGit {
    /// Opens the one that was made in `scratch` and neither published nor discarded, if there is one.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] for a record that this version cannot read, [`GitError::Io`].
    pub fn find(scratch: &SafeDir) -> Result<Option<Self>, GitError> {
        let Some(bytes) = scratch.read_opt(STATE, STATE_CAP).map_err(file)? else { return Ok(None) };
        let state = serde_json::from_slice(&bytes).ok().filter(|state: &State| state.v == VERSION);
        let state = state.ok_or_else(|| GitError::Corrupt {
            what: format!("`{}`", scratch.path().join(STATE).display()),
            detail: "not a record of a turn that this version can read".to_owned(),
        })?;
        Self::new(scratch, state).map(Some)
    }

    /// Makes the place for a new one. What is left there of an older one has no record, so nothing waits in it.
    pub(super) fn begin(scratch: &SafeDir, branch: Option<String>, tip: &CommitId) -> Result<Self, GitError> {
        let state = State {
            v: VERSION,
            branch,
            tip: tip.clone(),
            refs: BTreeMap::new(),
            shallow: String::new(),
            nested: Vec::new(),
            modules: Vec::new(),
            before: None,
        };
        let turn = Self::new(scratch, state)?;
        if scratch.remove_tree(TURN).is_err() {
            let hex = files::random_hex().map_err(|source| GitError::io(&turn.dir, source))?;
            // Files of another user, which we cannot remove but can move out of the way.
            scratch.rename(TURN, format!("{TURN}-left-{hex}")).map_err(file)?;
        }
        for dir in ["", OWN, ".git"] {
            files::ensure_dir(&turn.dir.join(dir))?;
        }
        Ok(turn)
    }

    fn new(scratch: &SafeDir, state: State) -> Result<Self, GitError> {
        let dir = files::canonical(scratch.path())?.join(TURN);
        Ok(Self { scratch: scratch.try_clone().map_err(file)?, dir, state })
    }

    /// The git directory as agents write it. Hostile after a turn.
    #[must_use]
    pub fn git_dir(&self) -> PathBuf {
        self.dir.join(".git")
    }

    /// The directory that `.git` lies in.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of ours.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.dir.join(OWN).join(name)
    }

    /// Writes down what is remembered.
    pub(super) fn save(&self) -> Result<(), GitError> {
        let fail = |error| GitError::io(self.scratch.path().join(STATE), io::Error::other(error));
        self.scratch.publish(STATE, &serde_json::to_vec(&self.state).map_err(fail)?).map_err(file)
    }

    /// Throws it away, with all that the turn left in it.
    ///
    /// # Errors
    /// [`GitError::Io`] when the record of it cannot be removed. Files that cannot be removed stay until the
    /// next one is made.
    pub fn discard(self) -> Result<(), GitError> {
        self.scratch.remove_file(STATE).map_err(file)?;
        // The next one that is made tries again.
        let _left = self.scratch.remove_tree(TURN);
        Ok(())
    }

    /// Keeps the directory for people instead of throwing it away. Returns where it is; nothing when it is too
    /// large to be kept.
    pub(super) fn set_aside(self, label: &str) -> Result<Option<PathBuf>, GitError> {
        let aside = self.scratch.create_subdir(ASIDE).map_err(file)?;
        let listed = aside.list(MAX_NAMES).map_err(file)?.entries;
        let mut names: Vec<String> =
            listed.iter().filter_map(|e| e.name.to_str().map(str::to_owned)).collect();
        names.sort_by_key(|name| std::cmp::Reverse(number(name)));
        let next = names.first().map_or(1, |newest| number(newest).saturating_add(1));
        if self.scratch.stat(TURN).map_err(file)?.is_some() {
            let name = format!("{next:06}-{label}");
            self.scratch.rename_into(TURN, &aside, &name).map_err(file)?;
            names.insert(0, name);
        }
        self.discard()?;
        let mut total = 0_u64;
        for (n, name) in names.iter().enumerate() {
            let disk = weigh(&aside.path().join(name)).unwrap_or(u64::MAX);
            total = total.saturating_add(disk);
            if n >= KEPT || total > KEPT_BYTES {
                // Tried again with the next one.
                let _left = aside.remove_tree(name);
            }
        }
        // One that was moved before a crash has the newest number and our label.
        let ours =
            names.first().filter(|name| name.get(7..) == Some(label)).map(|name| aside.path().join(name));
        Ok(ours.filter(|dir| dir.exists()))
    }
}

fn number(name: &str) -> u64 {
    name.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

/// A file of ours that cannot be read or written.
fn file(error: FileError) -> GitError {
    let path = error.path().to_owned();
    if error.is_disk_full() {
        return GitError::DiskFull { what: format!("`{}`", path.display()) };
    }
    GitError::Io { path, source: io::Error::other(error) }
}
