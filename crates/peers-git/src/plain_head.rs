//! Where HEAD is, by a few looks at files, for who looks at many repositories.

use std::path::Path;

use peers_model::CommitId;
use peers_sys::dir::{FileStat, SafeDir};

/// Most of a file that says where HEAD is, bytes.
const HEAD: u64 = 4096;
/// Most of `packed-refs`, bytes.
const PACKED: u64 = 256 * 1024;

/// HEAD of a repository that is as simple as most are: what would be another one if HEAD were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainHead {
    head: Option<Vec<u8>>,
    /// Where it leads; `None` where no file has that commit.
    pub commit: Option<CommitId>,
    packed: Option<FileStat>,
}

impl PlainHead {
    /// HEAD of the repository at `dir`. `None` where it is not so simple, as in a linked worktree: then git has to be
    /// asked.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        Self::within(&SafeDir::open_shared(dir).ok()?.subdir(".git").ok()?)
    }

    /// The same, of a `.git` directory.
    #[must_use]
    pub fn within(git: &SafeDir) -> Option<Self> {
        let head = git.read_opt("HEAD", HEAD).ok()?;
        let text = String::from_utf8_lossy(head.as_deref()?).trim().to_owned();
        let commit = match text.strip_prefix("ref: ") {
            Some(name) => match git.parent_of(name).and_then(|(dir, name)| dir.read_opt(name, HEAD)) {
                Ok(Some(commit)) => Some(commit),
                Ok(None) => packed(git, name),
                // The directory of a branch whose reference is packed need not be there.
                Err(error) if error.is_not_found() => packed(git, name),
                Err(_) => return None,
            },
            None => head.clone(),
        };
        let commit = commit.and_then(|bytes| CommitId::new(String::from_utf8_lossy(&bytes).trim()).ok());
        Some(Self { head, commit, packed: git.stat("packed-refs").ok()? })
    }
}

/// A reference as `packed-refs` has it.
fn packed(git: &SafeDir, name: &str) -> Option<Vec<u8>> {
    let text = git.read_opt("packed-refs", PACKED).ok()??;
    let line = text
        .split(|byte| *byte == b'\n')
        .find(|line| line.strip_suffix(name.as_bytes()).is_some_and(|rest| rest.ends_with(b" ")))?;
    line.split(|byte| *byte == b' ').next().map(<[u8]>::to_vec)
}
