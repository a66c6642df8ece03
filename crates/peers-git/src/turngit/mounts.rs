//! What has to be mounted for a turn, as plain data, and the places for it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::config;
use super::nested;
use super::state::TurnGit;
use crate::bare;
use crate::error::GitError;
use crate::files;
use crate::repo::PeerRepo;

/// Where things of ours are seen inside. Object stores: `objects`, `objects.1`, ...
const INSIDE: &str = "/run/peers";

/// Something that is mounted for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMount {
    /// Where it is.
    pub outside: PathBuf,
    /// Where the turn sees it.
    pub inside: PathBuf,
    /// Whether the turn may write to it.
    pub writable: bool,
}

impl TurnMount {
    fn read(outside: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        Self { outside: outside.into(), inside: inside.into(), writable: false }
    }
}

/// The checkout's object store and all that it borrows from: where they are, and where a turn sees them.
pub(super) fn stores(checkout: &PeerRepo) -> Result<Vec<(PathBuf, PathBuf)>, GitError> {
    let inside = |n: usize| if n == 0 { "objects".to_owned() } else { format!("objects.{n}") };
    let seen = |(n, store)| (store, Path::new(INSIDE).join(inside(n)));
    Ok(bare::stores_of(checkout)?.into_iter().enumerate().map(seen).collect())
}

/// Mounts in the order in which they are to be made. Remembers the submodules.
pub(super) fn list(
    turn: &mut TurnGit,
    checkout: &PeerRepo,
    stores: &[(PathBuf, PathBuf)],
) -> Result<Vec<TurnMount>, GitError> {
    let (work, dot_git) = (checkout.work_dir(), checkout.work_dir().join(".git"));
    let linked = checkout.git_dir() != dot_git;
    let seen = if linked { Path::new(INSIDE).join("git") } else { dot_git.clone() };
    let mut mounts = vec![TurnMount { outside: turn.git_dir(), inside: seen.clone(), writable: true }];
    if linked {
        let file = turn.own("gitfile");
        files::replace(&file, format!("gitdir: {}\n", seen.display()).as_bytes())?;
        mounts.push(TurnMount::read(file, &dot_git));
    }
    let empty = turn.own("empty");
    files::replace(&empty, b"")?;
    for (store, inside) in stores {
        mounts.push(TurnMount::read(store, inside));
        // The stores named in it are mounted by themselves, and are not where it says.
        if matches!(files::lstat(&store.join("info/alternates")), Ok(Some(_))) {
            mounts.push(TurnMount::read(&empty, inside.join("info/alternates")));
        }
    }
    if let Ok(lfs) = files::canonical(&checkout.common_dir().join("lfs")) {
        mounts.push(TurnMount::read(lfs, Path::new(INSIDE).join("lfs")));
    }
    let mut modules: Vec<PathBuf> = Vec::new();
    for entry in &turn.state.nested {
        if entry.is_dir {
            let at = work.join(OsStr::from_bytes(&entry.path));
            mounts.push(TurnMount::read(&at, at.clone()));
        } else {
            let places = [checkout.common_dir(), checkout.git_dir()].map(|dir| dir.join("modules"));
            let is_one = |dir: &PathBuf| {
                places.iter().any(|place| dir != place && dir.starts_with(place)) && !modules.contains(dir)
            };
            let named = nested::named(entry, work).filter(is_one);
            modules.extend(named);
        }
    }
    // One lies in another where submodules have submodules.
    modules.sort();
    for (n, git_dir) in modules.iter().enumerate() {
        // The directory of the turn hides the one that it lies in, so there must be a place for it.
        if let Ok(rest) = git_dir.strip_prefix(&dot_git) {
            let place = turn.git_dir().join(rest);
            std::fs::create_dir_all(&place).map_err(|source| GitError::io(place, source))?;
        }
        let (filtered, config) = (turn.own(&format!("module-{n}.config")), git_dir.join("config"));
        files::replace(&filtered, config::for_submodule(&config)?.as_bytes())?;
        mounts.extend([TurnMount::read(git_dir, git_dir), TurnMount::read(filtered, config)]);
    }
    turn.state.modules = modules;
    Ok(mounts)
}
