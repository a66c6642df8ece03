//! Git directories deeper in the work tree. The filters of one that a turn made would run in the next turn's
//! `git status`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_model::CommitId;
use rustix::fs::FileType;

use super::layout::put;
use super::state::Nested;
use crate::aside;
use crate::checkout::open_below;
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::place::parent_and_name;
use crate::repo::PeerRepo;

/// A `.git` file is read up to here.
const FILE_CAP: u64 = 16 * 1024;

/// A git directory that a turn made in the work tree, or a file that names one. It was moved out of git's sight; the
/// files beside it stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedGit {
    /// Where it was, from the top of the work tree, cleaned for people.
    pub path: String,
    /// Where it is, from the git directory that all work trees share.
    pub aside: String,
    /// It was another file before the turn, and that is there again.
    pub restored: bool,
}

/// The directory that a `.git` file names, without links; nothing where there is none.
pub(super) fn named(entry: &Nested, work_dir: &Path) -> Option<PathBuf> {
    let target = entry.text.as_ref()?.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    let (parent, _) = parent_and_name(&entry.path);
    let at = work_dir.join(OsStr::from_bytes(parent)).join(OsStr::from_bytes(target));
    files::canonical(&at).ok().filter(|dir| dir.is_dir())
}

/// What lies at these paths of the work tree.
pub(super) fn look(paths: Vec<Vec<u8>>, work: &Path) -> Result<Vec<Nested>, GitError> {
    let mut found = Vec::new();
    for path in paths {
        let fail = |source| GitError::io(work.join(OsStr::from_bytes(&path)), source);
        let dir = open_below(work, parent_and_name(&path).0)?;
        let Some(stat) = files::lstat_at(&dir, b".git").map_err(fail)? else { continue };
        let text = files::read_small_at(&dir, b".git", FILE_CAP).map_err(fail)?.bytes();
        found.push(Nested { path, is_dir: files::kind(&stat) == FileType::Directory, text });
    }
    Ok(found)
}

/// The git directories deeper in the work tree, before somebody works there who gets none of his own.
#[derive(Debug)]
pub struct NestedSeen {
    pub(super) before: Vec<Nested>,
    pub(super) tip: CommitId,
}

impl NestedSeen {
    /// Looks; where the work tree was compared with a commit of the same tree last, what that found.
    ///
    /// # Errors
    /// As [`ControlDir::tree_state`].
    pub fn look(control: &ControlDir, checkout: &PeerRepo, tip: &CommitId) -> Result<Self, GitError> {
        let work = checkout.work_dir();
        Ok(Self { before: look(control.nested_seen(work, tip)?, work)?, tip: tip.clone() })
    }

    /// Moves aside what was not there then.
    ///
    /// # Errors
    /// As [`ControlDir::tree_state`]; [`GitError::Io`].
    pub fn settle(
        &self,
        control: &ControlDir,
        checkout: &PeerRepo,
        label: &str,
    ) -> Result<Vec<NestedGit>, GitError> {
        let work = checkout.work_dir();
        let mut done = Vec::new();
        for found in look(control.nested_git(work, &self.tip)?, work)? {
            if self.before.contains(&found) {
                continue;
            }
            let shown = Path::new(OsStr::from_bytes(&found.path));
            let Some(aside) = aside::keep(checkout.common_dir(), &work.join(shown), shown, label)? else {
                continue;
            };
            let before = self.before.iter().find(|before| before.path == found.path);
            let text = before.and_then(|before| before.text.as_ref());
            if let Some(text) = text {
                let parent = open_below(work, parent_and_name(&found.path).0)?;
                put(&parent, ".git", text).map_err(|source| GitError::io(work.join(shown), source))?;
            }
            done.push(NestedGit { path: clean_bytes(&found.path), aside, restored: text.is_some() });
        }
        Ok(done)
    }
}
