//! Where the git directory of a turn lies, and what is remembered of it across a crash.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use peers_model::CommitId;
use peers_sys::dir::{FileError, SafeDir};
use serde::{Deserialize, Serialize};

use super::layout::weigh;
use super::mounts::Module;
use super::nested::Nested;
use crate::error::GitError;
use crate::files;
use crate::known::Generation;

/// Written last when one is made, and removed first when it is thrown away: without it there is no turn.
const STATE: &str = "turn-git.json";
const STATE_CAP: u64 = 32 << 20;
const VERSION: u32 = 1;
/// Holds `.git` and, in [`OWN`], what is ours.
const TURN: &str = "turn-git";
/// Files of ours beside the `.git` of the turn. Nothing in a sandbox can write them.
const OWN: &str = "own";
/// Git directories of failed turns.
const ASIDE: &str = "turn-git-aside";
/// So many of them are kept, and so many bytes of them together.
const KEPT: usize = 3;
const KEPT_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
/// Names in a directory of ours.
const MAX_NAMES: usize = 10_000;

/// What is remembered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    v: u32,
    /// The full name of the run's branch; absent when `HEAD` is detached.
    pub(super) branch: Option<String>,
    /// Where it was when the turn began.
    pub(super) tip: CommitId,
    /// Git directories deeper in the work tree when the turn began.
    pub(super) nested: Vec<Nested>,
    /// Submodules that were checked out.
    pub(super) modules: Vec<Module>,
    /// Commits known by the end of this generation are not the turn's. Set by the first harvest.
    pub(super) before: Option<Generation>,
}

impl State {
    pub(super) fn new(branch: Option<&str>, tip: &CommitId) -> Self {
        Self {
            v: VERSION,
            branch: branch.map(str::to_owned),
            tip: tip.clone(),
            nested: Vec::new(),
            modules: Vec::new(),
            before: None,
        }
    }
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
        let corrupt = |detail: String| GitError::Corrupt {
            what: format!("`{}`", scratch.path().join(STATE).display()),
            detail,
        };
        let state: State = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
        if state.v != VERSION {
            return Err(corrupt(format!("version {}, not {VERSION}", state.v)));
        }
        Self::new(scratch, state).map(Some)
    }

    pub(super) fn new(scratch: &SafeDir, state: State) -> Result<Self, GitError> {
        let dir = files::canonical(scratch.path())?.join(TURN);
        Ok(Self { scratch: scratch.try_clone().map_err(file)?, dir, state })
    }

    /// The git directory as agents write it. Hostile after a turn.
    #[must_use]
    pub fn git_dir(&self) -> PathBuf {
        self.dir.join(".git")
    }

    /// The commit that the run's branch was at when the turn began.
    #[must_use]
    pub fn tip(&self) -> &CommitId {
        &self.state.tip
    }

    /// Throws it away, with all that the turn left in it.
    ///
    /// # Errors
    /// [`GitError::Io`] when the record of it cannot be removed. Files that cannot be removed stay until the
    /// next one is made.
    pub fn discard(self) -> Result<(), GitError> {
        self.forget()?;
        // The next one that is made tries again.
        let _left = self.scratch.remove_tree(TURN);
        Ok(())
    }

    /// The directory that `.git` lies in.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of ours.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.dir.join(OWN).join(name)
    }

    /// Makes the place for a new one. What is left there of an older one has no record, so nothing waits in it.
    pub(super) fn clear(&self) -> Result<(), GitError> {
        if self.scratch.remove_tree(TURN).is_err() {
            let hex = files::random_hex().map_err(|source| GitError::io(&self.dir, source))?;
            // Files of another user, which we cannot remove but can move out of the way.
            self.scratch.rename(TURN, format!("{TURN}-left-{hex}")).map_err(file)?;
        }
        for dir in ["", OWN, ".git"] {
            files::ensure_dir(&self.dir.join(dir))?;
        }
        Ok(())
    }

    /// Writes down what is remembered.
    pub(super) fn save(&self) -> Result<(), GitError> {
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|error| GitError::io(self.scratch.path().join(STATE), io::Error::other(error)))?;
        self.scratch.publish(STATE, &bytes).map_err(file)
    }

    fn forget(&self) -> Result<(), GitError> {
        self.scratch.remove_file(STATE).map(drop).map_err(file)
    }

    /// Keeps the directory for people instead of throwing it away. Returns where it is; nothing when it is too
    /// large to be kept.
    pub(super) fn set_aside(self, label: &str) -> Result<Option<PathBuf>, GitError> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let label: String = label.chars().take(100).map(plain).collect();
        let aside = self.scratch.create_subdir(ASIDE).map_err(file)?;
        let mut names = names(&aside)?;
        let next = names.first().and_then(|name| number(name)).map_or(1, |number| number.saturating_add(1));
        if self.scratch.stat(TURN).map_err(file)?.is_some() {
            let name = format!("{next:06}-{label}");
            self.scratch.rename_into(TURN, &aside, &name).map_err(file)?;
            names.insert(0, name);
        }
        self.forget()?;
        let mut total = 0_u64;
        for (n, name) in names.iter().enumerate() {
            let disk =
                weigh(&self.scratch.path().join(ASIDE).join(name)).map_or(u64::MAX, |weight| weight.disk);
            total = total.saturating_add(disk);
            if n >= KEPT || total > KEPT_BYTES {
                // Tried again with the next one.
                let _left = aside.remove_tree(name);
            }
        }
        // Moved before a crash it has the newest number and our label.
        let ours = names.first().filter(|name| name.get(7..) == Some(label.as_str()));
        let kept = ours.filter(|name| matches!(aside.stat(name.as_str()), Ok(Some(_))));
        Ok(kept.map(|name| self.scratch.path().join(ASIDE).join(name)))
    }
}

/// What was set aside, the newest first.
fn names(aside: &SafeDir) -> Result<Vec<String>, GitError> {
    let listed = aside.list(MAX_NAMES).map_err(file)?;
    let text = |name: &OsStr| name.to_str().filter(|name| number(name).is_some()).map(str::to_owned);
    let mut names: Vec<String> = listed.entries.iter().filter_map(|entry| text(&entry.name)).collect();
    names.sort_by_key(|name| std::cmp::Reverse(number(name)));
    Ok(names)
}

fn number(name: &str) -> Option<u64> {
    name.split_once('-')?.0.parse().ok()
}

/// A file of ours that cannot be read or written.
pub(super) fn file(error: FileError) -> GitError {
    let path = error.path().to_owned();
    if error.is_disk_full() {
        return GitError::DiskFull { what: format!("`{}`", path.display()) };
    }
    GitError::Io { path, source: io::Error::other(error) }
}
