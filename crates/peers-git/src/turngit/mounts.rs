//! What has to be mounted for a turn, as plain data, and the places for it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::Odb;
use serde::{Deserialize, Serialize};

use super::config::Settings;
use super::nested::Nested;
use super::state::TurnGit;
use crate::error::GitError;
use crate::files::{self, Small};
use crate::repo::PeerRepo;
use crate::worktree::path_bytes;

/// Where things of ours are seen inside. Object stores: `objects`, `objects.1`, ...
const INSIDE: &str = "/run/peers";
/// Stores that a store borrows from, and how far that may go.
const MAX_STORES: usize = 32;
const STORE_FILE: u64 = 64 * 1024;

/// Something that is mounted for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMount {
    /// Where it is.
    pub outside: PathBuf,
    /// Where the turn sees it.
    pub inside: PathBuf,
    /// What the turn may do with it.
    pub access: MountAccess,
}

/// What a turn may do with something mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountAccess {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

impl TurnMount {
    fn read(outside: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        Self { outside: outside.into(), inside: inside.into(), access: MountAccess::Read }
    }
}

/// A submodule that is checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Module {
    /// Its git directory.
    pub(super) git_dir: PathBuf,
}

/// The checkout's object store and all that it borrows from.
#[derive(Debug)]
pub(super) struct Stores(Vec<PathBuf>);

impl Stores {
    pub(super) fn of(checkout: &PeerRepo) -> Result<Self, GitError> {
        let mut found = vec![files::canonical(&checkout.objects_dir())?];
        let mut at = 0;
        while let Some(store) = found.get(at).cloned() {
            at += 1;
            let file = store.join("info/alternates");
            let text = files::read_small(&file, STORE_FILE).map_err(|source| GitError::io(&file, source))?;
            let Small::Bytes(text) = text else { continue };
            for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
                // What is not there cannot be borrowed from.
                let Ok(other) = files::canonical(&store.join(OsStr::from_bytes(line))) else { continue };
                if !found.contains(&other) {
                    found.push(other);
                }
            }
            if found.len() > MAX_STORES {
                let what = format!("the number of stores that `{}` borrows from", store.display());
                return Err(GitError::TooLarge { what, cap: MAX_STORES.to_string() });
            }
        }
        Ok(Self(found))
    }

    fn inside(n: usize) -> PathBuf {
        Path::new(INSIDE).join(if n == 0 { "objects".to_owned() } else { format!("objects.{n}") })
    }

    /// `objects/info/alternates` as a turn has it.
    pub(super) fn seen_inside(&self) -> Vec<u8> {
        let lines = (0..self.0.len()).map(|n| format!("{}\n", Self::inside(n).display()));
        lines.collect::<String>().into_bytes()
    }

    /// The same for us.
    pub(super) fn seen_outside(&self) -> Result<Vec<u8>, GitError> {
        let mut out = Vec::new();
        for store in &self.0 {
            out.extend_from_slice(&path_bytes(store)?);
            out.push(b'\n');
        }
        Ok(out)
    }
}

/// Mounts are listed in the order in which they are to be made.
pub(super) fn list(
    turn: &TurnGit,
    checkout: &PeerRepo,
    stores: &Stores,
    nested: &[Nested],
) -> Result<(Vec<TurnMount>, Vec<Module>), GitError> {
    let (work, dot_git) = (checkout.work_dir(), checkout.work_dir().join(".git"));
    let linked = checkout.git_dir() != dot_git;
    let seen = if linked { Path::new(INSIDE).join("git") } else { dot_git.clone() };
    let access = MountAccess::Write;
    let mut mounts = vec![TurnMount { outside: turn.git_dir(), inside: seen.clone(), access }];
    if linked {
        let name = turn.own("gitfile");
        files::replace(&name, &[b"gitdir: ", seen.as_os_str().as_bytes(), b"\n"].concat())?;
        mounts.push(TurnMount::read(name, &dot_git));
    }
    let empty = turn.own("empty");
    files::replace(&empty, b"")?;
    for (n, store) in stores.0.iter().enumerate() {
        let inside = Stores::inside(n);
        mounts.push(TurnMount::read(store, &inside));
        // The stores named in it are mounted by themselves, and are not where it says.
        if matches!(files::lstat(&store.join("info/alternates")), Ok(Some(_))) {
            mounts.push(TurnMount::read(&empty, inside.join("info/alternates")));
        }
    }
    let lfs = checkout.common_dir().join("lfs");
    if lfs.is_dir() {
        mounts.push(TurnMount::read(files::canonical(&lfs)?, Path::new(INSIDE).join("lfs")));
    }
    let mut modules = Vec::new();
    let mut mounted = HashSet::new();
    for entry in nested {
        let at = work.join(OsStr::from_bytes(&entry.path));
        if entry.is_dir() {
            mounts.push(TurnMount::read(&at, &at));
        } else if let Some(git_dir) = entry.names(work).filter(|dir| dir.starts_with(checkout.common_dir()))
            && mounted.insert(git_dir.clone())
        {
            // Where a directory of a turn hides the one that it lies in, there must be a place for it.
            if let Ok(rest) = git_dir.strip_prefix(&dot_git) {
                std::fs::create_dir_all(turn.git_dir().join(rest))
                    .map_err(|source| GitError::io(turn.git_dir().join(rest), source))?;
            }
            let config = git_dir.join("config");
            mounts.push(TurnMount::read(&git_dir, &git_dir));
            if config.is_file() {
                let filtered = turn.own(&format!("module-{}.config", modules.len()));
                files::replace(&filtered, Settings::of_file(&config)?.for_submodule().as_bytes())?;
                mounts.push(TurnMount::read(filtered, config));
            }
            modules.push(Module { git_dir });
        }
    }
    Ok((mounts, modules))
}

/// The objects of the submodules that were checked out.
pub(super) fn odb_of(modules: &[Module]) -> Result<Odb<'static>, GitError> {
    let fail = |source| GitError::library("open the objects of submodules", source);
    let odb = Odb::new().map_err(fail)?;
    for module in modules {
        if let Some(path) = module.git_dir.join("objects").to_str() {
            odb.add_disk_alternate(path).map_err(fail)?;
        }
    }
    Ok(odb)
}
