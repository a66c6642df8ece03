//! Everything an agent must not do: rewritten history, broken control files, a missing git directory.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::step::{EditGoals, GitPart, Leave, MoveGit};

const GARBAGE: &[u8] = b"\x00\xff not git \xfe\n";

/// The git directory of the work tree, through a `gitdir:` file if need be.
pub(crate) fn git_dir(cwd: &Path) -> io::Result<PathBuf> {
    let dot = cwd.join(".git");
    if dot.is_dir() {
        return Ok(dot);
    }
    let text = fs::read_to_string(&dot)?;
    let path = text.trim().strip_prefix("gitdir:").map(str::trim);
    path.map(|path| cwd.join(path))
        .ok_or_else(|| io::Error::other(".git is neither a directory nor a gitdir file"))
}

/// Removes `.git`, directory or file.
pub(crate) fn delete_git(cwd: &Path) -> io::Result<()> {
    let dot = cwd.join(".git");
    if fs::symlink_metadata(&dot)?.is_dir() { fs::remove_dir_all(dot) } else { fs::remove_file(dot) }
}

/// Moves `.git` away and leaves something in its place.
pub(crate) fn move_git(cwd: &Path, what: &MoveGit) -> io::Result<PathBuf> {
    let dot = cwd.join(".git");
    let to = target(cwd, what.to.as_deref(), "git-moved");
    fs::rename(&dot, &to)?;
    match what.leave {
        Leave::Nothing => {}
        Leave::File => fs::write(&dot, format!("gitdir: {}\n", to.display()))?,
        Leave::Symlink => symlink(&to, &dot)?,
    }
    Ok(to)
}

/// Moves `.peers` away and leaves a symbolic link.
pub(crate) fn symlink_peers(cwd: &Path, to: Option<&str>) -> io::Result<PathBuf> {
    let peers = cwd.join(".peers");
    let to = target(cwd, to, "peers-moved");
    fs::rename(&peers, &to)?;
    symlink(&to, &peers)?;
    Ok(to)
}

/// `to`, else a name beside the working folder.
fn target(cwd: &Path, to: Option<&str>, suffix: &str) -> PathBuf {
    if let Some(to) = to {
        return cwd.join(to);
    }
    let mut name = cwd.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{suffix}"));
    cwd.parent().unwrap_or(cwd).join(name)
}

/// Damages one part of the git directory.
pub(crate) fn corrupt_git(cwd: &Path, part: GitPart) -> io::Result<()> {
    let git = git_dir(cwd)?;
    match part {
        GitPart::Head => fs::write(git.join("HEAD"), GARBAGE),
        GitPart::Index => fs::write(git.join("index"), GARBAGE),
        GitPart::Config => fs::write(git.join("config"), GARBAGE),
        GitPart::IndexLock => fs::write(git.join("index.lock"), b""),
        GitPart::Ref => {
            let head = fs::read_to_string(git.join("HEAD"))?;
            let name = head.trim().strip_prefix("ref:").map_or("HEAD", str::trim);
            fs::write(git.join(name), GARBAGE)
        }
        GitPart::MergeHead => {
            let head = fs::read_to_string(git.join("HEAD"))?;
            let commit = match head.trim().strip_prefix("ref:") {
                Some(name) => fs::read(git.join(name.trim()))?,
                None => head.into_bytes(),
            };
            fs::write(git.join("MERGE_MODE"), b"")?;
            fs::write(git.join("MERGE_MSG"), b"Merge something\n")?;
            fs::write(git.join("MERGE_HEAD"), commit)
        }
        GitPart::Objects => {
            for directory in fs::read_dir(git.join("objects"))? {
                let directory = directory?;
                if directory.file_name().len() == 2 {
                    for object in fs::read_dir(directory.path())? {
                        replace(&object?.path())?;
                    }
                }
            }
            Ok(())
        }
    }
}

/// Objects are read-only files, so a new one takes their place.
fn replace(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    fs::write(path, GARBAGE)
}

/// Changes a control file. The texts are final.
pub(crate) fn edit_goals(cwd: &Path, edit: &EditGoals) -> io::Result<PathBuf> {
    let path = cwd.join(edit.file.as_deref().unwrap_or(".peers/goals.yaml"));
    let old = fs::read_to_string(&path).unwrap_or_default();
    let mut new = edit.text.clone().unwrap_or(old);
    if let Some(from) = &edit.from {
        if !new.contains(from) {
            return Err(io::Error::other(format!("{} does not contain `{from}`", path.display())));
        }
        new = new.replace(from, edit.to.as_deref().unwrap_or_default());
    }
    if let Some(append) = &edit.append {
        new.push_str(append);
    }
    if edit.text.is_none() && edit.from.is_none() && edit.append.is_none() {
        new.push_str("# edited by a peer\n");
    }
    fs::write(&path, new)?;
    Ok(path)
}
