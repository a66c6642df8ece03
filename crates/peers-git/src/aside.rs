//! Moving out of git's sight what is replaced and cannot be copied.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::GitError;
use crate::files;
use crate::ids;

/// Where lies what was in the way: in the git directory that all work trees share, since that of one of them
/// goes with it.
const ASIDE: &str = "peers-aside";
/// What the name of the file ends with that holds the path of the thing beside it.
const PATH: &str = ".path";
/// Attempts at a name that nobody has taken.
const ATTEMPTS: usize = 20;

/// Moves something of a git directory or a work tree, which lies at `shown` from the top of the work tree, to where git
/// does not look: for what must
/// not be destroyed and cannot be copied. There it has a name of our own with `label` in it, and a file of the same
/// name with `.path` at its end holds the old name. Returns where it is, from the git directory that all work trees
/// share; nothing when nothing was there.
///
/// # Errors
/// [`GitError::Io`] when it cannot be moved.
pub(crate) fn keep(
    common_dir: &Path,
    path: &Path,
    shown: &Path,
    label: &str,
) -> Result<Option<String>, GitError> {
    let old = shown.as_os_str().as_bytes();
    let (Some(parent), Some(leaf)) = (path.parent(), path.file_name()) else {
        return Err(GitError::io(path, Errno::INVAL));
    };
    let dir = match files::open_dir(parent) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        dir => dir.map_err(|source| GitError::io(parent, source))?,
    };
    let move_to = |into: &OwnedFd, name: &str| {
        let act = || rustix::fs::renameat_with(&dir, leaf, into, name, RenameFlags::NOREPLACE);
        match files::allowed(&dir, leaf, act) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(GitError::io(path, error)),
        }
    };
    let at = common_dir.join(ASIDE);
    let fail = |source| GitError::io(&at, source);
    let into = directory(common_dir).map_err(fail)?;
    // The name of the thing may be as long as a name can be, or made to mislead whoever reads it.
    let hash = ids::hex(&Sha256::digest(old));
    let mut name = format!("kept-{label}-{}", hash.get(..12).unwrap_or(&hash));
    for _ in 0..ATTEMPTS {
        let note = format!("{name}{PATH}");
        if files::lstat_at(&into, name.as_bytes()).map_err(fail)?.is_none()
            && write_note(&into, &note, old).map_err(fail)?
        {
            let moved = move_to(&into, &name);
            if !matches!(moved, Ok(true)) {
                // It says where something is that is not there.
                let _ = rustix::fs::unlinkat(&into, &note, AtFlags::empty());
            }
            return Ok(moved?.then(|| format!("{ASIDE}/{name}")));
        }
        name = format!("kept-{label}-{}", files::random_hex().map_err(fail)?);
    }
    Err(GitError::Exists { what: format!("`{ASIDE}/{name}`") })
}

/// The directory for what is moved aside. What has its name and is none gets another name.
fn directory(common_dir: &Path) -> std::io::Result<OwnedFd> {
    let git = files::open_dir(common_dir)?;
    let act = || match rustix::fs::mkdirat(&git, ASIDE, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    };
    let make = || files::allowed(&git, OsStr::new(ASIDE), act);
    make()?;
    if files::lstat_at(&git, ASIDE.as_bytes())?.is_some_and(|stat| files::kind(&stat) != FileType::Directory)
    {
        let other = format!("{ASIDE}-{}", files::random_hex()?);
        let act = || rustix::fs::renameat_with(&git, ASIDE, &git, other.as_str(), RenameFlags::NOREPLACE);
        files::allowed(&git, OsStr::new(ASIDE), act)?;
        make()?;
    }
    files::open_writable_dir(&git, ASIDE.as_bytes())
}

/// Writes a new file; `false` when something has the name.
fn write_note(dir: &OwnedFd, name: &str, path: &[u8]) -> std::io::Result<bool> {
    let mut file = match files::create_new_at(dir, name, 0o666) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        made => made?,
    };
    file.write_all(path)?;
    file.write_all(b"\n")?;
    Ok(true)
}
