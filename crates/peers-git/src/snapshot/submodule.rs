//! Which commit a submodule's directory has checked out, and what is in that, read without opening it as
//! a repository.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ObjectType, Odb, Oid};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::files;
use crate::hygiene;
use crate::objects;

/// The commit that the repository in `dir` has checked out; `None` when there is none, or it cannot be
/// told. It is only compared with what the parent records.
pub(crate) fn checked_out(dir: &OwnedFd) -> Option<Oid> {
    let git = git_dir(dir)?;
    let mut name = b"HEAD".to_vec();
    for _ in 0..5 {
        let text = small(&git, &name, 4096).or_else(|| packed(&git, &name))?;
        let text = text.trim_ascii();
        match text.strip_prefix(b"ref: ") {
            Some(target) => {
                let sane = target.starts_with(b"refs/")
                    && target.split(|b| *b == b'/').all(|part| !part.is_empty() && part != b"..");
                name = sane.then(|| target.to_vec())?;
            }
            None => {
                return std::str::from_utf8(text)
                    .ok()
                    .filter(|t| t.len() == 40)
                    .and_then(|t| Oid::from_str(t).ok());
            }
        }
    }
    None
}

/// The objects of the repository in `dir`, and the tree of one of its commits; `None` when they cannot be
/// read, or are not plain files.
pub(crate) struct Committed {
    pub(crate) odb: Odb<'static>,
    pub(crate) tree: Oid,
    /// The store is reached through it.
    _git: OwnedFd,
}

impl Committed {
    pub(crate) fn open(dir: &OwnedFd, commit: Oid) -> Option<Self> {
        let git = git_dir(dir)?;
        let path = format!("/dev/fd/{}", git.as_raw_fd());
        hygiene::check_objects(Path::new(&path)).ok()?;
        let odb = Odb::new().ok()?;
        odb.add_disk_alternate(&format!("{path}/objects")).ok()?;
        let (size, kind) = odb.read_header(commit).ok()?;
        if kind != ObjectType::Commit || size > objects::META_CAP {
            return None;
        }
        let tree = objects::parse_commit(odb.read(commit).ok()?.data())?.tree;
        Some(Self { odb, tree, _git: git })
    }
}

fn git_dir(dir: &OwnedFd) -> Option<OwnedFd> {
    let stat = files::lstat_at(dir, b".git").ok()??;
    match files::kind(&stat) {
        FileType::Directory => files::open_dir_at(dir, b".git").ok(),
        FileType::RegularFile => {
            let text = small(dir, b".git", 16 * 1024)?;
            let path = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = Path::new(OsStr::from_bytes(path));
            if path.is_absolute() {
                rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()
            } else {
                rustix::fs::openat(dir, path, flags, Mode::empty()).ok()
            }
        }
        _ => None,
    }
}

fn packed(git: &OwnedFd, name: &[u8]) -> Option<Vec<u8>> {
    small(git, b"packed-refs", 16 << 20)?
        .split(|b| *b == b'\n')
        .find_map(|line| line.strip_suffix(name)?.strip_suffix(b" ").map(<[u8]>::to_vec))
}

fn small<Fd: AsFd>(dir: Fd, name: &[u8], cap: u64) -> Option<Vec<u8>> {
    files::read_small_at(dir, name, cap).ok()?.bytes()
}
