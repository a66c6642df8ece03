//! Is a git directory made of plain files and directories?
//!
//! The library opens files of the git directory without looking: a FIFO as `HEAD` would stop us for
//! ever, a symlink as `logs/HEAD` would append to a file of the operator, a sparse file of a terabyte
//! would be read into memory. So every place that the library touches is looked at first. Places that
//! only git itself uses (hooks, rr-cache, …) are none of our business here.

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

/// Files of a git directory that the library reads, with the most that they may hold, and the one that every commit
/// writes.
const FILES: &[(&str, u64)] = &[
    ("HEAD", 64 * KIB),
    ("ORIG_HEAD", 64 * KIB),
    ("COMMIT_EDITMSG", u64::MAX),
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

/// Looks at everything but the objects.
pub(crate) fn check(git_dir: &Path, common_dir: &Path) -> Result<(), RepoError> {
    look(git_dir, common_dir)?;
    for config in [common_dir.join("config"), git_dir.join("config.worktree")] {
        if let Some((path, found)) = gitconfig::unsafe_include(&config) {
            return Err(RepoError::Unsafe { path, found });
        }
    }
    Ok(())
}

fn refuse<T>(path: &Path, found: impl Into<String>) -> Result<T, RepoError> {
    Err(RepoError::Unsafe { path: path.to_owned(), found: found.into() })
}

fn look(git_dir: &Path, common_dir: &Path) -> Result<(), RepoError> {
    for (name, cap) in FILES {
        plain_file(&git_dir.join(name), *cap)?;
    }
    for (name, cap) in COMMON_FILES {
        plain_file(&common_dir.join(name), *cap)?;
    }
    for name in ["refs", "objects", "info", "logs", "objects/info", "objects/pack"] {
        plain_dir(&common_dir.join(name))?;
    }
    // Logs are many where references are few: those of branches that are gone.
    let (mut refs, mut logs) = (MAX_REFS, MAX_REFS);
    for dir in [git_dir, common_dir] {
        sweep(&dir.join("refs"), true, &mut refs)?;
        sweep(&dir.join("logs"), false, &mut logs)?;
        if git_dir == common_dir {
            break;
        }
    }
    Ok(())
}

/// Looks for loose objects that the library would read for ever (libgit2 1.9, its issue 7342).
pub(crate) fn check_streams(objects: &Path) -> Result<(), RepoError> {
    let cut = peers_sys::zlib::cut_short_object(objects).map_err(|source| RepoError::io(objects, source))?;
    cut.map_or(Ok(()), |path| refuse(&path, "an object that is cut short"))
}

/// Looks at the object store: fan-out directories, packs, and the stores that it borrows from.
pub(crate) fn check_objects(common_dir: &Path) -> Result<(), RepoError> {
    let mut todo = vec![(common_dir.join("objects"), 0)];
    while let Some((objects, depth)) = todo.pop() {
        check_store(&objects)?;
        let alternates = objects.join("info/alternates");
        plain_file(&alternates, 64 * KIB)?;
        let Ok(files::Small::Bytes(bytes)) = files::read_small(&alternates, 64 * KIB) else { continue };
        if depth >= 5 {
            return refuse(&alternates, "a chain of too many stores");
        }
        for line in String::from_utf8_lossy(&bytes).lines().take(32) {
            if !line.is_empty() && !line.starts_with('#') {
                todo.push((objects.join(line), depth + 1));
            }
        }
    }
    Ok(())
}

fn check_store(objects: &Path) -> Result<(), RepoError> {
    let io = |source: io::Error| RepoError::io(objects, source);
    let Some(dir) = open_plain(objects)? else { return Ok(()) };
    let Some(listed) = files::list(&dir, MAX_BESIDE).map_err(io)? else { return crowded(objects) };
    for (name, kind) in listed.into_iter().filter(|(name, _)| is_of_store(name)) {
        let path = join(objects, &name);
        if kind != FileType::Directory {
            return require(&path, kind, FileType::Directory);
        }
        let entries = match listings::list(&dir, &name, 1_000_000) {
            // git removes those that it emptied.
            Err(source) if source.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|source| RepoError::io(&path, source))?,
        };
        let Some(entries) = entries else { return crowded(&path) };
        for (leaf, kind) in entries.iter() {
            let layered = name == b"info" || name == b"pack" && leaf == b"multi-pack-index.d";
            if *kind != FileType::RegularFile && !(layered && *kind == FileType::Directory) {
                require(&join(&path, leaf), *kind, FileType::RegularFile)?;
            }
        }
    }
    Ok(())
}

/// What belongs into an object store itself.
fn is_of_store(name: &[u8]) -> bool {
    let fan_out = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
    fan_out || name == b"pack" || name == b"info"
}

/// Every leaf is a regular file, every inner node a directory.
fn sweep(top: &Path, sizes: bool, budget: &mut usize) -> Result<(), RepoError> {
    let Some(dir) = open_plain(top)? else { return Ok(()) };
    let mut levels = vec![Level::look(dir, top.to_owned(), sizes, budget)?];
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
            return refuse(&path, format!("deeper than {MAX_DEPTH} directories"));
        }
        let fd = files::open_dir_at(&level.dir, &name).map_err(|source| RepoError::io(&path, source))?;
        levels.push(Level::look(fd, path, sizes, budget)?);
    }
}

/// A directory of references, and those in it that were not looked at yet.
struct Level {
    dir: OwnedFd,
    path: PathBuf,
    inner: Vec<Vec<u8>>,
}

impl Level {
    fn look(dir: OwnedFd, path: PathBuf, sizes: bool, budget: &mut usize) -> Result<Self, RepoError> {
        let io = |source: io::Error| RepoError::io(&path, source);
        let Some(entries) = files::list(&dir, *budget).map_err(io)? else { return crowded(&path) };
        *budget = budget.saturating_sub(entries.len());
        let mut inner = Vec::new();
        for (name, kind) in entries {
            match kind {
                FileType::Directory => inner.push(name),
                FileType::RegularFile if sizes => {
                    let stat = files::lstat_at(&dir, &name).map_err(io)?;
                    if stat.is_some_and(|stat| files::size(&stat) > REF_CAP) {
                        return refuse(&join(&path, &name), format!("larger than {REF_CAP} bytes"));
                    }
                }
                other => require(&join(&path, &name), other, FileType::RegularFile)?,
            }
        }
        Ok(Self { dir, path, inner })
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
            if kind == FileType::Directory && !name.ends_with(b".lock") {
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

fn plain_file(path: &Path, cap: u64) -> Result<(), RepoError> {
    let Some(stat) = files::lstat(path).map_err(|source| RepoError::io(path, source))? else {
        return Ok(());
    };
    let kind = files::kind(&stat);
    if kind == FileType::RegularFile && files::size(&stat) > cap {
        return refuse(path, format!("larger than {cap} bytes"));
    }
    require(path, kind, FileType::RegularFile)
}

/// A directory, if something is there.
fn open_plain(path: &Path) -> Result<Option<OwnedFd>, RepoError> {
    match files::open_dir(path) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // What is no directory is said to be what it is.
        Err(source) => plain_dir(path).and(Err(RepoError::io(path, source))),
    }
}

fn plain_dir(path: &Path) -> Result<(), RepoError> {
    let stat = files::lstat(path).map_err(|source| RepoError::io(path, source))?;
    stat.map_or(Ok(()), |stat| require(path, files::kind(&stat), FileType::Directory))
}

fn require(path: &Path, found: FileType, wanted: FileType) -> Result<(), RepoError> {
    if found == wanted { Ok(()) } else { refuse(path, files::kind_text(found)) }
}

fn crowded<T>(path: &Path) -> Result<T, RepoError> {
    refuse(path, "crowded beyond reason")
}

fn join(dir: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    dir.join(std::ffi::OsStr::from_bytes(name))
}
