//! Git directories deeper in the work tree. The filters of one that a turn made would run in the next turn's
//! `git status`.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::layout::put;
use super::state::TurnGit;
use crate::aside;
use crate::checkout::open_below;
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files::{self, Small};
use crate::place::parent_and_name;
use crate::repo::PeerRepo;

/// A `.git` file is read up to here.
const FILE_CAP: u64 = 16 * 1024;

/// Something of the name `.git` below the top of the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nested {
    /// Its path from the top.
    pub(super) path: Vec<u8>,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    Dir,
    /// A file, and what is in it.
    File(Vec<u8>),
    /// A link, a FIFO, a file too large to name a directory.
    Other,
}

/// A git directory that a turn made in the work tree, or a file that names one, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedGit {
    /// Its path from the top of the work tree, cleaned for people.
    pub path: String,
    /// What was done about it. The files beside it stay.
    pub done: NestedMove,
}

/// What was done about a git directory that a turn left deeper in the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NestedMove {
    /// Moved out of git's sight: where it is, from the git directory that all work trees share.
    Aside(String),
    /// It was a file before the turn too. Moved, and the old one is there again.
    Restored(String),
}

impl Nested {
    pub(super) fn is_dir(&self) -> bool {
        self.what == What::Dir
    }

    /// The directory that a `.git` file names, without links; nothing where there is none.
    pub(super) fn names(&self, work_dir: &Path) -> Option<PathBuf> {
        let What::File(text) = &self.what else { return None };
        let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
        let (parent, _) = parent_and_name(&self.path);
        let at = work_dir.join(OsStr::from_bytes(parent)).join(OsStr::from_bytes(target));
        files::canonical(&at).ok().filter(|dir| dir.is_dir())
    }
}

fn parent_of(work_dir: &Path, path: &[u8]) -> Result<OwnedFd, GitError> {
    open_below(work_dir, parent_and_name(path).0)
}

/// All that lie in the work tree now, outside of ignored directories.
pub(super) fn look(control: &ControlDir, turn: &TurnGit, work_dir: &Path) -> Result<Vec<Nested>, GitError> {
    let mut found = Vec::new();
    for path in control.nested_git(work_dir, turn.tip())? {
        let fail = |source| GitError::io(work_dir.join(OsStr::from_bytes(&path)), source);
        let dir = parent_of(work_dir, &path)?;
        let Some(stat) = files::lstat_at(&dir, b".git").map_err(fail)? else { continue };
        let what = match files::kind(&stat) {
            FileType::Directory => What::Dir,
            FileType::RegularFile => match files::read_small_at(&dir, b".git", FILE_CAP).map_err(fail)? {
                Small::Bytes(text) => What::File(text),
                _ => What::Other,
            },
            _ => What::Other,
        };
        found.push(Nested { path, what });
    }
    Ok(found)
}

/// Moves aside what was not there when the turn began.
pub(super) fn settle(
    control: &ControlDir,
    turn: &TurnGit,
    checkout: &PeerRepo,
    label: &str,
) -> Result<Vec<NestedGit>, GitError> {
    let work = checkout.work_dir();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let label: String = label.chars().take(60).map(plain).collect();
    let mut done = Vec::new();
    for found in look(control, turn, work)? {
        if turn.state.nested.contains(&found) {
            continue;
        }
        let shown = Path::new(OsStr::from_bytes(&found.path));
        let Some(kept) = aside::keep(checkout.common_dir(), &work.join(shown), shown, &label)? else {
            continue;
        };
        let before = turn.state.nested.iter().find(|nested| nested.path == found.path);
        let move_of = match before.map(|nested| &nested.what) {
            Some(What::File(text)) => {
                let fail = |source| GitError::io(work.join(shown), source);
                put(&parent_of(work, &found.path)?, ".git", text).map_err(fail)?;
                NestedMove::Restored(kept)
            }
            _ => NestedMove::Aside(kept),
        };
        done.push(NestedGit { path: clean_bytes(&found.path), done: move_of });
    }
    Ok(done)
}
