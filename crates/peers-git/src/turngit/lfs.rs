//! Files of git-lfs that a turn stored. Without them its commits hold pointers to nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_sys::digest::Sha256;
use rustix::fs::{AtFlags, CWD, FileType};

use crate::error::{GitError, clean_bytes};
use crate::files;

/// Entries of one directory.
const MAX_ENTRIES: usize = 1_000_000;

/// Copies those that are new into the checkout. Returns those that do not have the content that their name says.
pub(super) fn copy(turn: &Path, common_dir: &Path) -> Result<Vec<String>, GitError> {
    let mut refused = Vec::new();
    let fail = |source: io::Error| GitError::io(turn, source);
    // None were stored, or it is a link to somewhere else.
    let inner = |dir: OwnedFd, name: &[u8]| files::open_dir_at(dir, name).ok();
    let top = files::open_dir(turn).map_err(fail)?;
    let Some(dir) = inner(top, b"lfs").and_then(|dir| inner(dir, b"objects")) else { return Ok(refused) };
    let mut todo = vec![(dir, PathBuf::new())];
    while let Some((dir, way)) = todo.pop() {
        for (name, kind) in files::list(&dir, MAX_ENTRIES).map_err(fail)?.unwrap_or_default() {
            let at = way.join(OsStr::from_bytes(&name));
            if kind == FileType::Directory && at.components().count() < 3 {
                todo.push((files::open_dir_at(&dir, &name).map_err(|error| fail(error.into()))?, at));
            } else if kind == FileType::RegularFile
                && place_of(&name).is_some_and(|place| place == at)
                && !copy_one(&dir, &name, &common_dir.join("lfs/objects").join(way.as_path()))?
            {
                refused.push(clean_bytes(&name));
            }
        }
    }
    Ok(refused)
}

/// Where the content of a hash lies.
fn place_of(name: &[u8]) -> Option<PathBuf> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() == 64)?;
    Some([name.get(..2)?, name.get(2..4)?, name].iter().collect())
}

/// Whether it has the right content, or was there before.
fn copy_one(dir: &OwnedFd, name: &[u8], place: &Path) -> Result<bool, GitError> {
    let target = place.join(OsStr::from_bytes(name));
    let fail = |source: io::Error| GitError::io(&target, source);
    if files::lstat(&target).map_err(fail)?.is_some() {
        return Ok(true);
    }
    std::fs::create_dir_all(place).map_err(fail)?;
    let temp = place.join(format!(".peers-{}.tmp", files::random_hex().map_err(fail)?));
    let copied = || -> io::Result<bool> {
        let (mut from, _) = files::open_regular(dir, name)?;
        io::copy(&mut from, &mut files::create_new(&temp)?)?;
        let mut hash = Sha256::new();
        io::copy(&mut File::open(&temp)?, &mut hash)?;
        if hash.finish_hex().as_bytes() != name {
            return Ok(false);
        }
        rustix::fs::renameat(CWD, &temp, CWD, &target)?;
        Ok(true)
    };
    let done = copied();
    if !matches!(done, Ok(true)) {
        // It may not exist; there is nothing better to do about it.
        let _ = rustix::fs::unlinkat(CWD, &temp, AtFlags::empty());
    }
    done.map_err(fail)
}
