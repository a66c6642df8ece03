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
/// References and reflogs looked at before giving up.
const MAX_REFS: usize = 200_000;

/// Looks at everything but the objects.
pub(crate) fn check(git_dir: &Path, common_dir: &Path) -> Result<(), RepoError> {
    for (name, cap) in FILES {
        plain_file(&git_dir.join(name), *cap)?;
    }
    for (name, cap) in COMMON_FILES {
        plain_file(&common_dir.join(name), *cap)?;
    }
    for name in ["refs", "objects", "info", "logs", "objects/info", "objects/pack"] {
        plain_dir(&common_dir.join(name))?;
    }
    let config = common_dir.join("config");
    for config in [config.as_path(), &git_dir.join("config.worktree")] {
        if let Some((path, found)) = gitconfig::unsafe_include(config) {
            return Err(RepoError::Unsafe { path, found });
        }
    }
    let mut budget = MAX_REFS;
    for dir in [git_dir, common_dir] {
        for name in ["refs", "logs"] {
            sweep(&dir.join(name), name == "refs", &mut budget)?;
        }
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
        check_store(&objects)?;
        let alternates = objects.join("info/alternates");
        plain_file(&alternates, 64 * KIB)?;
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

fn check_store(objects: &Path) -> Result<(), RepoError> {
    let io = |source: io::Error| RepoError::io(objects, source);
    let dir = match files::open_dir(objects) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io(source)),
    };
    for (name, kind) in files::list(&dir, 10_000).map_err(io)?.ok_or_else(|| crowded(objects))? {
        let fan_out = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        if !fan_out && name != b"pack" && name != b"info" {
            continue;
        }
        let path = join(objects, &name);
        require(&path, kind, FileType::Directory)?;
        let inner = files::open_dir_at(&dir, &name).map_err(|source| RepoError::io(&path, source))?;
        let entries = files::list(&inner, 1_000_000).map_err(|source| RepoError::io(&path, source))?;
        for (leaf, kind) in entries.ok_or_else(|| crowded(&path))? {
            if kind != FileType::RegularFile && !(name == b"info" && kind == FileType::Directory) {
                require(&join(&path, &leaf), kind, FileType::RegularFile)?;
            }
        }
    }
    Ok(())
}

/// Every leaf is a regular file, every inner node a directory.
fn sweep(top: &Path, sizes: bool, budget: &mut usize) -> Result<(), RepoError> {
    let dir = match files::open_dir(top) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            plain_dir(top)?;
            return Err(RepoError::io(top, source));
        }
    };
    let mut stack: Vec<(OwnedFd, PathBuf)> = vec![(dir, top.to_owned())];
    while let Some((dir, path)) = stack.pop() {
        let io = |source: io::Error| RepoError::io(&path, source);
        let entries = files::list(&dir, *budget).map_err(io)?.ok_or_else(|| crowded(&path))?;
        *budget = budget.saturating_sub(entries.len());
        for (name, kind) in entries {
            let inner = join(&path, &name);
            match kind {
                FileType::Directory => {
                    if stack.len() > 500 {
                        return Err(crowded(&inner));
                    }
                    let fd =
                        files::open_dir_at(&dir, &name).map_err(|source| RepoError::io(&inner, source))?;
                    stack.push((fd, inner));
                }
                FileType::RegularFile if sizes => {
                    let stat = files::lstat_at(&dir, &name).map_err(io)?;
                    if stat.is_some_and(|stat| files::size(&stat) > REF_CAP) {
                        return Err(RepoError::Unsafe { path: inner, found: "too large".to_owned() });
                    }
                }
                other => require(&inner, other, FileType::RegularFile)?,
            }
        }
    }
    Ok(())
}

/// Files that lock references. What cannot be read has none.
pub(crate) fn locks(git_dir: &Path, common_dir: &Path) -> Vec<PathBuf> {
    const MOST: usize = 1000;
    let single = [git_dir.join("HEAD.lock"), common_dir.join("packed-refs.lock")];
    let mut found: Vec<PathBuf> =
        single.into_iter().filter(|path| matches!(files::lstat(path), Ok(Some(_)))).collect();
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
                found.push(join(&dir, &name));
            }
        }
        if found.len() >= MOST {
            break;
        }
    }
    found.truncate(MOST);
    found
}

fn plain_file(path: &Path, cap: u64) -> Result<(), RepoError> {
    let Some(stat) = files::lstat(path).map_err(|source| RepoError::io(path, source))? else {
        return Ok(());
    };
    require(path, files::kind(&stat), FileType::RegularFile)?;
    if files::size(&stat) > cap {
        return Err(RepoError::Unsafe { path: path.to_owned(), found: format!("larger than {cap} bytes") });
    }
    Ok(())
}

fn plain_dir(path: &Path) -> Result<(), RepoError> {
    match files::lstat(path).map_err(|source| RepoError::io(path, source))? {
        Some(stat) => require(path, files::kind(&stat), FileType::Directory),
        None => Ok(()),
    }
}

fn require(path: &Path, found: FileType, wanted: FileType) -> Result<(), RepoError> {
    if found == wanted {
        return Ok(());
    }
    Err(RepoError::Unsafe { path: path.to_owned(), found: files::kind_text(found).to_owned() })
}

fn crowded(path: &Path) -> RepoError {
    RepoError::Unsafe { path: path.to_owned(), found: "crowded beyond reason".to_owned() }
}

fn join(dir: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    dir.join(std::ffi::OsStr::from_bytes(name))
}
