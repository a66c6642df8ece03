//! Committed symbolic links that lead out of the checkout: what they lead to is in no commit.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_model::CommitId;

use crate::blob;
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::objects::{self, MODE_LINK};

/// Links that are told of: a commit may hold a million of them.
const MOST: usize = 100;
/// Longest target of a link.
const TARGET_CAP: usize = 4096;

/// A link of a commit, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutwardLink {
    path: Vec<u8>,
    target: Vec<u8>,
}

/// Both as an agent may have chosen them, made printable.
impl fmt::Display for OutwardLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` -> `{}`", clean_bytes(&self.path), clean_bytes(&self.target))
    }
}

impl ControlDir {
    /// The links of a commit that lead out of `dir`, its clean checkout: by an absolute target, by more `..`
    /// than there are directories above, or by way of another link. Not those that `may_stay`, and the first
    /// hundred at most.
    ///
    /// # Errors
    /// [`GitError::NotFound`], [`GitError::Corrupt`], [`GitError::Io`].
    pub fn outward_links(
        &self,
        commit: &CommitId,
        dir: &Path,
        mut may_stay: impl FnMut(&OutwardLink) -> bool,
    ) -> Result<Vec<OutwardLink>, GitError> {
        let dir = files::canonical(dir)?;
        let top = files::open_dir(&dir).map_err(|source| GitError::io(&dir, source))?;
        let odb = objects::odb(&self.repo)?;
        let mut found = Vec::new();
        for leaf in blob::leaves(&odb, objects::commit_tree(&self.repo, commit)?)? {
            if leaf.mode != MODE_LINK {
                continue;
            }
            let target = blob::read_capped(&odb, leaf.id, &leaf.path, TARGET_CAP)?;
            if leaves_by_words(&leaf.path, &target) || leaves_in_fact(&top, &dir, &leaf.path, &target) {
                let link = OutwardLink { path: leaf.path, target };
                if !may_stay(&link) {
                    found.push(link);
                }
            }
            if found.len() == MOST {
                break;
            }
        }
        Ok(found)
    }

    /// Whether a commit has this very link.
    ///
    /// # Errors
    /// As [`ControlDir::outward_links`].
    pub fn has_link(&self, commit: &CommitId, link: &OutwardLink) -> Result<bool, GitError> {
        let odb = objects::odb(&self.repo)?;
        let found = blob::find(&odb, objects::commit_tree(&self.repo, commit)?, &link.path)?;
        let Some(entry) = found.filter(|entry| entry.mode == MODE_LINK) else { return Ok(false) };
        Ok(blob::read_capped(&odb, entry.id, &link.path, TARGET_CAP)? == link.target)
    }
}

/// Whether the target of the link at `path` names something outside, read as a text.
fn leaves_by_words(path: &[u8], target: &[u8]) -> bool {
    if target.first() == Some(&b'/') {
        return true;
    }
    let mut depth = path.split(|b| *b == b'/').count().saturating_sub(1);
    for part in target.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

/// Whether following the link leaves the directory: a directory on its way may be a link itself.
#[cfg(target_os = "linux")]
fn leaves_in_fact(top: &OwnedFd, dir: &Path, path: &[u8], target: &[u8]) -> bool {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let open = || {
        rustix::fs::openat2(
            top,
            OsStr::from_bytes(path),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    };
    match rustix::io::retry_on_intr(open) {
        Err(Errno::XDEV) => true,
        // An old kernel, a filter that does not know the call, a race with a rename elsewhere.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => leaves_by_look(dir, path, target),
        // What leads nowhere, or in circles, leads to nothing outside either.
        Ok(_) | Err(_) => false,
    }
}

#[cfg(not(target_os = "linux"))]
fn leaves_in_fact(_top: &OwnedFd, dir: &Path, path: &[u8], target: &[u8]) -> bool {
    leaves_by_look(dir, path, target)
}

/// The same without help of the kernel. Of what leads nowhere nothing is known when it goes up.
fn leaves_by_look(dir: &Path, path: &[u8], target: &[u8]) -> bool {
    match dir.join(OsStr::from_bytes(path)).canonicalize() {
        Ok(real) => !real.starts_with(dir),
        Err(_) => target.split(|b| *b == b'/').any(|part| part == b".."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_steps_up_than_directories_above_lead_out() {
        for (path, target, out) in [
            ("l", "/etc/passwd", true),
            ("l", "..", true),
            ("l", "../x", true),
            ("a/l", "..", false),
            ("a/l", "../x/./y", false),
            ("a/l", "../../x", true),
            ("a/b/l", "c/../../../x", false),
            ("a/b/l", "c/../../../../x", true),
            ("l", "x//y", false),
        ] {
            assert_eq!(leaves_by_words(path.as_bytes(), target.as_bytes()), out, "{path} -> {target}");
        }
    }

    #[test]
    fn a_link_on_the_way_of_a_link_is_seen_with_and_without_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("tree/a/b/c")).unwrap();
        let root = dir.path().join("tree").canonicalize().unwrap();
        std::fs::write(dir.path().join("outside"), "x").unwrap();
        let link = |at: &str, to: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        // By its words this one stays inside: `a/b/s/../../../outside` is `outside` of the tree's top.
        link("a/b/s", "../..");
        link("a/b/l", "s/../outside");
        link("a/b/in", "s/a/b/c");
        let top = files::open_dir(&root).unwrap();
        assert!(!leaves_by_words(b"a/b/l", b"s/../outside"));
        for (path, target, out) in
            [("a/b/l", "s/../outside", true), ("a/b/in", "s/a/b/c", false), ("a/b/s", "../..", false)]
        {
            let (path, target) = (path.as_bytes(), target.as_bytes());
            assert_eq!(leaves_in_fact(&top, &root, path, target), out, "{}", clean_bytes(path));
            assert_eq!(leaves_by_look(&root, path, target), out, "{}", clean_bytes(path));
        }
    }
}
