//! Writing files below one directory, handle by handle, never through a symlink.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::objects::forbidden_name;

/// A directory that files are written below.
pub(crate) struct Place {
    top: OwnedFd,
    /// The directory used last: neighbours come one after the other.
    last: Option<(Vec<u8>, OwnedFd)>,
    /// `.peers` at the top is not to be touched.
    guarded: bool,
}

/// What stands in the way of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A directory with other files in it.
    Directory,
}

/// One thing to write.
pub(crate) enum Content<'b> {
    File {
        bytes: &'b [u8],
        executable: bool,
    },
    Link {
        target: &'b [u8],
    },
    /// An empty directory, for a submodule.
    Dir,
}

impl Place {
    /// Below the agents' work tree: our own directory there is out of bounds.
    pub(crate) fn work_tree(path: &Path) -> Result<Self, GitError> {
        Self::open(path, true)
    }

    /// Below a directory of ours.
    pub(crate) fn ours(path: &Path) -> Result<Self, GitError> {
        Self::open(path, false)
    }

    fn open(path: &Path, guarded: bool) -> Result<Self, GitError> {
        let path = files::canonical(path)?;
        let top = files::open_dir(&path).map_err(|source| GitError::io(&path, source))?;
        Ok(Self { top, last: None, guarded })
    }

    /// Puts `content` at `path`, replacing a file or symlink there. Parents that are no directories are
    /// replaced too.
    pub(crate) fn write(
        &mut self,
        path: &[u8],
        content: &Content<'_>,
    ) -> Result<Result<Stat, Obstacle>, GitError> {
        let (parent, name) = self.split(path)?;
        let fail = |error: io::Error| GitError::io(Path::new(OsStr::from_bytes(path)), error);
        let Some(dir) = self.enter(parent, true).map_err(fail)? else {
            return Err(fail(io::ErrorKind::NotFound.into()));
        };
        if clear(dir, name, matches!(content, Content::Dir)).map_err(fail)? == Cleared::Blocked {
            return Ok(Err(Obstacle::Directory));
        }
        let leaf = OsStr::from_bytes(name);
        match content {
            Content::File { bytes, executable } => {
                let mode = if *executable { 0o777 } else { 0o666 };
                let mut file = files::create_new_at(dir, leaf, mode).map_err(fail)?;
                file.write_all(bytes).map_err(fail)?;
                rustix::fs::fstat(&file).map(Ok).map_err(|e| fail(e.into()))
            }
            Content::Link { target } => {
                rustix::fs::symlinkat(OsStr::from_bytes(target), dir, leaf).map_err(|e| fail(e.into()))?;
                let stat = rustix::fs::statat(dir, leaf, AtFlags::SYMLINK_NOFOLLOW);
                stat.map(Ok).map_err(|e| fail(e.into()))
            }
            Content::Dir => {
                match rustix::fs::mkdirat(dir, leaf, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(fail(error.into())),
                }
                let stat = rustix::fs::statat(dir, leaf, AtFlags::SYMLINK_NOFOLLOW);
                stat.map(Ok).map_err(|e| fail(e.into()))
            }
        }
    }

    /// Removes the file or symlink at `path`, and directories that became empty by it. Something that is
    /// not there, or is a directory with files in it, stays as it is.
    pub(crate) fn remove(&mut self, path: &[u8]) -> Result<Result<(), Obstacle>, GitError> {
        let (parent, name) = self.split(path)?;
        let fail = |error: io::Error| GitError::io(Path::new(OsStr::from_bytes(path)), error);
        let Some(dir) = self.enter(parent, false).map_err(fail)? else { return Ok(Ok(())) };
        if clear(dir, name, false).map_err(fail)? == Cleared::Blocked {
            return Ok(Err(Obstacle::Directory));
        }
        self.prune(parent).map_err(fail)?;
        Ok(Ok(()))
    }

    /// Removes whatever is at `path`, a whole directory included. Below a directory of ours any name may
    /// have been left behind, `.git` too.
    pub(crate) fn remove_all(&mut self, path: &[u8]) -> Result<(), GitError> {
        let plain = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
        let (parent, name) = if self.guarded || !path.split(|b| *b == b'/').all(plain) {
            self.split(path)?
        } else {
            parent_and_name(path)
        };
        let fail = |error: io::Error| GitError::io(Path::new(OsStr::from_bytes(path)), error);
        let Some(dir) = self.enter(parent, false).map_err(fail)? else { return Ok(()) };
        files::remove_tree_at(dir, name).map_err(fail)?;
        self.last = None;
        Ok(())
    }

    /// A path as parent and name, every component checked.
    fn split<'p>(&self, path: &'p [u8]) -> Result<(&'p [u8], &'p [u8]), GitError> {
        check_path(path)?;
        let first = path.split(|b| *b == b'/').next().unwrap_or_default();
        if self.guarded && first.eq_ignore_ascii_case(b".peers") {
            return Err(GitError::Unsafe { path: clean_bytes(path), why: "it lies in `.peers`" });
        }
        Ok(parent_and_name(path))
    }

    /// The handle of a directory below the top; `None` when it is not there and is not to be made.
    fn enter(&mut self, path: &[u8], create: bool) -> io::Result<Option<&OwnedFd>> {
        if path.is_empty() {
            return Ok(Some(&self.top));
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            self.last = None;
            let mut current: Option<OwnedFd> = None;
            for part in path.split(|b| *b == b'/') {
                let here = current.as_ref().unwrap_or(&self.top);
                match step(here, part, create)? {
                    Some(next) => current = Some(next),
                    None => return Ok(None),
                }
            }
            self.last = current.map(|fd| (path.to_vec(), fd));
        }
        Ok(self.last.as_ref().map(|(_, fd)| fd))
    }

    /// Removes `path` and its parents as long as they are empty.
    fn prune(&mut self, path: &[u8]) -> io::Result<()> {
        let mut path = path;
        while !path.is_empty() {
            let (parent, name) = parent_and_name(path);
            let Some(dir) = self.enter(parent, false)? else { return Ok(()) };
            match rustix::fs::unlinkat(dir, OsStr::from_bytes(name), AtFlags::REMOVEDIR) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            path = parent;
        }
        Ok(())
    }
}

/// Refuses what cannot be the path of a file on a disk.
pub(crate) fn check_path(path: &[u8]) -> Result<(), GitError> {
    let refuse = |why| Err(GitError::Unsafe { path: clean_bytes(path), why });
    if path.len() > 4096 {
        return refuse("the path is too long");
    }
    for part in path.split(|b| *b == b'/') {
        if forbidden_name(part) {
            return refuse("it is not a name for a file of a work tree");
        }
        if part.len() > 255 {
            return refuse("a name is too long");
        }
    }
    Ok(())
}

pub(crate) fn parent_and_name(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(slash) => (path.get(..slash).unwrap_or(&[]), path.get(slash + 1..).unwrap_or(&[])),
        None => (&[], path),
    }
}

/// Into `name`; with `create` it is made, in place of a file or symlink if need be.
fn step(dir: &OwnedFd, name: &[u8], create: bool) -> io::Result<Option<OwnedFd>> {
    match files::open_dir_at(dir, name) {
        Ok(fd) => return Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) if !create => return Ok(None),
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
            rustix::fs::unlinkat(dir, OsStr::from_bytes(name), AtFlags::empty())?;
        }
        Err(error) => return Err(error.into()),
    }
    match rustix::fs::mkdirat(dir, OsStr::from_bytes(name), Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => Ok(Some(files::open_dir_at(dir, name)?)),
        Err(error) => Err(error.into()),
    }
}

#[derive(PartialEq, Eq)]
enum Cleared {
    Free,
    Blocked,
}

/// Makes the place free. An empty directory goes too; a full one blocks.
fn clear(dir: &OwnedFd, name: &[u8], keep_dir: bool) -> io::Result<Cleared> {
    let Some(stat) = files::lstat_at(dir, name)? else { return Ok(Cleared::Free) };
    let leaf = OsStr::from_bytes(name);
    if files::kind(&stat) != FileType::Directory {
        rustix::fs::unlinkat(dir, leaf, AtFlags::empty())?;
        return Ok(Cleared::Free);
    }
    if keep_dir {
        return Ok(Cleared::Free);
    }
    match rustix::fs::unlinkat(dir, leaf, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(Cleared::Free),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => Ok(Cleared::Blocked),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &'static [u8]) -> Content<'static> {
        Content::File { bytes, executable: false }
    }

    #[test]
    fn a_symlinked_parent_is_replaced_and_its_target_untouched() {
        let outside = tempfile::tempdir().unwrap();
        let top = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), top.path().join("dir")).unwrap();
        let mut place = Place::work_tree(top.path()).unwrap();
        place.write(b"dir/a", &file(b"x")).unwrap().unwrap();
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(std::fs::read(top.path().join("dir/a")).unwrap(), b"x");
    }

    #[test]
    fn a_symlink_at_the_leaf_is_replaced_not_followed() {
        let outside = tempfile::NamedTempFile::new().unwrap();
        let top = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), top.path().join("a")).unwrap();
        let mut place = Place::work_tree(top.path()).unwrap();
        place.write(b"a", &file(b"x")).unwrap().unwrap();
        assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
        assert!(!top.path().join("a").is_symlink());
    }

    #[test]
    fn paths_out_of_bounds_are_refused() {
        let top = tempfile::tempdir().unwrap();
        let mut place = Place::work_tree(top.path()).unwrap();
        for bad in [
            &b"../a"[..],
            b"a/../b",
            b".git/config",
            b"x/.GIT/y",
            b"/etc/x",
            b"",
            b"a//b",
            b".peers/x",
            b".Peers",
        ] {
            assert!(matches!(place.write(bad, &file(b"")), Err(GitError::Unsafe { .. })), "{bad:?}");
            assert!(matches!(place.remove(bad), Err(GitError::Unsafe { .. })), "{bad:?}");
        }
        assert!(place.write(b"a/.peers/x", &file(b"")).is_ok(), "only the one at the top is ours");
    }

    #[test]
    fn removing_a_file_prunes_empty_directories_and_spares_full_ones() {
        let top = tempfile::tempdir().unwrap();
        let mut place = Place::work_tree(top.path()).unwrap();
        place.write(b"a/b/c", &file(b"")).unwrap().unwrap();
        place.write(b"a/d", &file(b"")).unwrap().unwrap();
        place.remove(b"a/b/c").unwrap().unwrap();
        assert!(!top.path().join("a/b").exists() && top.path().join("a/d").exists());
        assert_eq!(place.remove(b"a").unwrap(), Err(Obstacle::Directory));
        place.remove(b"not/there").unwrap().unwrap();
    }
}
