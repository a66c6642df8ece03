//! Is a git directory made of plain files and directories?
//!
//! The library opens files of the git directory without looking: a FIFO as `HEAD` would stop us for
//! ever, a symlink as `logs/HEAD` would append to a file of the operator, a sparse file of a terabyte
//! would be read into memory. So every place that the library touches is looked at first. Places that
//! only git itself uses (hooks, rr-cache, …) are none of our business here.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::error::RepoError;
use crate::files;
use crate::gitconfig::{self, CONFIG_CAP};
use crate::listings;
use crate::refs;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Files of a git directory that the library reads, with the most that they may hold.
const FILES: &[(&str, u64)] = &[
    ("HEAD", 64 * KIB),
    ("ORIG_HEAD", 64 * KIB),
    ("commondir", 64 * KIB),
    ("gitdir", 64 * KIB),
    ("config.worktree", CONFIG_CAP),
    ("index", 512 * MIB),
];

/// The same for the directory shared by all worktrees.
const COMMON_FILES: &[(&str, u64)] = &[
    ("config", CONFIG_CAP),
    ("packed-refs", 128 * MIB),
    ("shallow", 16 * MIB),
    ("info/grafts", 16 * MIB),
    ("info/attributes", MIB),
    ("info/exclude", MIB),
    ("objects/info/alternates", 64 * KIB),
    ("objects/info/commit-graph", 2048 * MIB),
];

/// A loose reference longer than this is not one.
const REF_CAP: u64 = 64 * KIB;
/// References looked at before giving up, and as many reflogs.
pub(crate) const MAX_REFS: usize = if cfg!(test) { 1_000 } else { 200_000 };
/// Entries of an object store itself.
const MAX_BESIDE: usize = if cfg!(test) { 1_000 } else { 10_000 };
/// Directories of references within each other, and how long the way to one may be.
const MAX_DEPTH: usize = 200;
const MAX_WAY: usize = 2_000;

/// What is wrong with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It is something else than it must be.
    Kind(&'static str),
    /// It is larger than sane.
    TooLarge(u64),
    /// It lies deeper than anything that is looked at.
    Deep,
    /// There is more in it than is looked at. Nothing says that it is wrong.
    Crowded,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(what) => f.write_str(what),
            Self::TooLarge(cap) => write!(f, "larger than {cap} bytes"),
            Self::Deep => write!(f, "deeper than {MAX_DEPTH} directories"),
            Self::Crowded => f.write_str("crowded beyond reason"),
        }
    }
}

/// What becomes of a place that is not as it must be: an error, or a line in a list.
type Sink<'s> = &'s mut dyn FnMut(PathBuf, Fault) -> Result<(), RepoError>;

/// The files that are looked at, references and logs aside.
pub(crate) fn files_of(git_dir: &Path, common_dir: &Path) -> Vec<PathBuf> {
    let own = FILES.iter().map(|(name, _)| git_dir.join(name));
    own.chain(COMMON_FILES.iter().map(|(name, _)| common_dir.join(name))).collect()
}

/// Looks at everything but the objects.
pub(crate) fn check(git_dir: &Path, common_dir: &Path) -> Result<(), RepoError> {
    look(git_dir, common_dir, &mut refuse)?;
    for config in [common_dir.join("config"), git_dir.join("config.worktree")] {
        if let Some((path, found)) = gitconfig::unsafe_include(&config) {
            return Err(RepoError::Unsafe { path, found });
        }
    }
    Ok(())
}

/// The first places, at most `limit`, that [`check`] or [`check_objects`] would refuse, but for stores that
/// are borrowed from.
pub(crate) fn offenders(
    git_dir: &Path,
    common_dir: &Path,
    limit: usize,
) -> Result<Vec<(PathBuf, Fault)>, RepoError> {
    let mut found = Vec::new();
    let mut note = |path: PathBuf, fault: Fault| {
        if found.len() < limit {
            found.push((path, fault));
        }
        Ok(())
    };
    look(git_dir, common_dir, &mut note)?;
    check_store(&common_dir.join("objects"), &mut note)?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn refuse(path: PathBuf, fault: Fault) -> Result<(), RepoError> {
    Err(RepoError::Unsafe { path, found: fault.to_string() })
}

fn look(git_dir: &Path, common_dir: &Path, bad: Sink<'_>) -> Result<(), RepoError> {
    for (name, cap) in FILES {
        plain_file(&git_dir.join(name), *cap, bad)?;
    }
    for (name, cap) in COMMON_FILES {
        plain_file(&common_dir.join(name), *cap, bad)?;
    }
    for name in ["refs", "objects", "info", "logs", "objects/info", "objects/pack"] {
        plain_dir(&common_dir.join(name), bad)?;
    }
    // Logs are many where references are few: those of branches that are gone.
    let (mut refs, mut logs) = (MAX_REFS, MAX_REFS);
    for dir in [git_dir, common_dir] {
        sweep(&dir.join("refs"), true, &mut refs, bad)?;
        sweep(&dir.join("logs"), false, &mut logs, bad)?;
        if git_dir == common_dir {
            break;
        }
    }
    Ok(())
}

/// Looks at the object store: fan-out directories, packs, and the stores that it borrows from.
pub(crate) fn check_objects(common_dir: &Path) -> Result<(), RepoError> {
    let mut todo = vec![(common_dir.join("objects"), 0)];
    while let Some((objects, depth)) = todo.pop() {
        check_store(&objects, &mut refuse)?;
        let alternates = objects.join("info/alternates");
        plain_file(&alternates, 64 * KIB, &mut refuse)?;
        let Ok(files::Small::Bytes(bytes)) = files::read_small(&alternates, 64 * KIB) else { continue };
        if depth >= 5 {
            return Err(RepoError::Unsafe { path: alternates, found: "a chain of too many stores".into() });
        }
        for line in String::from_utf8_lossy(&bytes).lines().take(32) {
            if !line.is_empty() && !line.starts_with('#') {
                todo.push((objects.join(line), depth + 1));
            }
        }
    }
    Ok(())
}

fn check_store(objects: &Path, bad: Sink<'_>) -> Result<(), RepoError> {
    let io = |source: io::Error| RepoError::io(objects, source);
    let dir = match files::open_dir(objects) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return match files::lstat(objects) {
                Ok(Some(stat)) if files::kind(&stat) != FileType::Directory => plain_dir(objects, bad),
                _ => Err(io(source)),
            };
        }
    };
    let Some(listed) = files::list(&dir, MAX_BESIDE).map_err(io)? else { return crowded(objects, bad) };
    for (name, kind) in listed {
        if !is_of_store(&name) {
            continue;
        }
        let path = join(objects, &name);
        if kind != FileType::Directory {
            require(&path, kind, FileType::Directory, bad)?;
            continue;
        }
        let entries =
            listings::list(&dir, &name, 1_000_000).map_err(|source| RepoError::io(&path, source))?;
        let Some(entries) = entries else {
            crowded(&path, bad)?;
            continue;
        };
        for (leaf, kind) in entries.iter() {
            if *kind != FileType::RegularFile && !(name == b"info" && *kind == FileType::Directory) {
                require(&join(&path, leaf), *kind, FileType::RegularFile, bad)?;
            }
        }
    }
    Ok(())
}

/// What belongs into an object store itself.
pub(crate) fn is_of_store(name: &[u8]) -> bool {
    let fan_out = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
    fan_out || name == b"pack" || name == b"info"
}

/// Every leaf is a regular file, every inner node a directory.
fn sweep(top: &Path, sizes: bool, budget: &mut usize, bad: Sink<'_>) -> Result<(), RepoError> {
    let dir = match files::open_dir(top) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return match files::lstat(top) {
                Ok(Some(stat)) if files::kind(&stat) != FileType::Directory => plain_dir(top, bad),
                _ => Err(RepoError::io(top, source)),
            };
        }
    };
    let mut levels: Vec<Level> = Level::look(dir, top.to_owned(), sizes, budget, bad)?.into_iter().collect();
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { return Ok(()) };
        let Some(name) = level.inner.pop() else {
            levels.pop();
            continue;
        };
        let path = join(&level.path, &name);
        let way = path.as_os_str().len().saturating_sub(top.as_os_str().len());
        if depth >= MAX_DEPTH || way > MAX_WAY {
            bad(path, Fault::Deep)?;
            continue;
        }
        let fd = files::open_dir_at(&level.dir, &name).map_err(|source| RepoError::io(&path, source))?;
        levels.extend(Level::look(fd, path, sizes, budget, bad)?);
    }
}

/// A directory of references, and those in it that were not looked at yet.
struct Level {
    dir: OwnedFd,
    path: PathBuf,
    inner: Vec<Vec<u8>>,
}

impl Level {
    /// `None` for one with more in it than is looked at.
    fn look(
        dir: OwnedFd,
        path: PathBuf,
        sizes: bool,
        budget: &mut usize,
        bad: Sink<'_>,
    ) -> Result<Option<Self>, RepoError> {
        let io = |source: io::Error| RepoError::io(&path, source);
        let Some(entries) = files::list(&dir, *budget).map_err(io)? else {
            crowded(&path, bad)?;
            return Ok(None);
        };
        *budget = budget.saturating_sub(entries.len());
        let mut inner = Vec::new();
        for (name, kind) in entries {
            match kind {
                FileType::Directory => inner.push(name),
                FileType::RegularFile if sizes => {
                    let stat = files::lstat_at(&dir, &name).map_err(io)?;
                    if stat.is_some_and(|stat| files::size(&stat) > REF_CAP) {
                        bad(join(&path, &name), Fault::TooLarge(REF_CAP))?;
                    }
                }
                other => require(&join(&path, &name), other, FileType::RegularFile, bad)?,
            }
        }
        Ok(Some(Self { dir, path, inner }))
    }
}

/// Files that lock references, those that are wanted of them. What cannot be read has none.
pub(crate) fn locks(
    git_dir: &Path,
    common_dir: &Path,
    branch: Option<&str>,
    wanted: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    const MOST: usize = if cfg!(test) { 100 } else { 1000 };
    // The branch also where the others are too many.
    let branch = branch.filter(|branch| refs::check_name(branch).is_ok());
    let branch = branch.map(|branch| common_dir.join(format!("{branch}.lock")));
    let single =
        [git_dir.join("HEAD.lock"), common_dir.join("packed-refs.lock")].into_iter().chain(branch.clone());
    let is_there = |path: &PathBuf| matches!(files::lstat(path), Ok(Some(_)));
    let mut found: Vec<PathBuf> = single.filter(|path| wanted(path) && is_there(path)).collect();
    let mut budget = MAX_REFS;
    let mut todo = vec![common_dir.join("refs")];
    if git_dir != common_dir {
        todo.push(git_dir.join("refs"));
    }
    while let Some(dir) = todo.pop() {
        let Ok(fd) = files::open_dir(&dir) else { continue };
        let Ok(Some(entries)) = files::list(&fd, budget) else { continue };
        budget = budget.saturating_sub(entries.len());
        for (name, kind) in entries {
            if kind == FileType::Directory {
                todo.push(join(&dir, &name));
            } else if name.ends_with(b".lock") {
                let lock = join(&dir, &name);
                if found.len() < MOST && branch.as_ref() != Some(&lock) && wanted(&lock) {
                    found.push(lock);
                }
            }
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

fn plain_file(path: &Path, cap: u64, bad: Sink<'_>) -> Result<(), RepoError> {
    let Some(stat) = files::lstat(path).map_err(|source| RepoError::io(path, source))? else {
        return Ok(());
    };
    let kind = files::kind(&stat);
    if kind == FileType::RegularFile && files::size(&stat) > cap {
        return bad(path.to_owned(), Fault::TooLarge(cap));
    }
    require(path, kind, FileType::RegularFile, bad)
}

fn plain_dir(path: &Path, bad: Sink<'_>) -> Result<(), RepoError> {
    match files::lstat(path).map_err(|source| RepoError::io(path, source))? {
        Some(stat) => require(path, files::kind(&stat), FileType::Directory, bad),
        None => Ok(()),
    }
}

fn require(path: &Path, found: FileType, wanted: FileType, bad: Sink<'_>) -> Result<(), RepoError> {
    if found == wanted {
        return Ok(());
    }
    bad(path.to_owned(), Fault::Kind(files::kind_text(found)))
}

fn crowded(path: &Path, bad: Sink<'_>) -> Result<(), RepoError> {
    bad(path.to_owned(), Fault::Crowded)
}

fn join(dir: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    dir.join(std::ffi::OsStr::from_bytes(name))
}
