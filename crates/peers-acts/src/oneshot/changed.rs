//! What gates leave behind in the work tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_git::{ControlDir, DirtyFile, DirtyStatus};
use peers_model::{CommitId, TreeId};
use peers_sys::SafeDir;
use peers_sys::dir::{FileId, Kind};

/// Uncommitted paths that are compared before and after the gates; with more of them nobody can tell.
const COMPARED: usize = 10_000;
/// Files of the commit that are named where they were written and put back.
const NAMED: usize = 1000;
/// The work tree could not be looked at.
const UNSEEN: &str = "git could not look at it";

/// Paths that the gates made dirty, or why that is not known.
pub type Dirtied = Result<Vec<String>, &'static str>;

/// The uncommitted paths at one time.
pub(super) struct Before {
    files: Option<Vec<DirtyFile>>,
    /// The work tree as a tree, where files of the commit were changed already.
    content: Option<TreeId>,
}

impl Before {
    /// For a note only: where anything is in the way there is none.
    pub(super) fn look(control: &ControlDir, work_dir: &Path, head: &CommitId) -> Self {
        Self { files: control.dirty_files(work_dir, head, COMPARED + 1).ok(), content: None }
    }

    /// The same, with the content of files of the commit that are changed already.
    pub(super) fn with_content(control: &ControlDir, work_dir: &Path, head: &CommitId) -> Self {
        let mut before = Self::look(control, work_dir, head);
        if before.files.as_ref().is_some_and(|files| files.iter().any(is_of_commit)) {
            before.content = control.store_work_tree(work_dir, head).ok();
        }
        before
    }

    /// Whether files of the commit are not what they were. Where nobody can tell, they are not.
    pub(super) fn files_changed(&self, control: &ControlDir, work_dir: &Path, head: &CommitId) -> bool {
        let Some(before) = &self.files else { return true };
        let Ok(after) = control.dirty_files(work_dir, head, COMPARED + 1) else { return true };
        let of_commit = |files: &[DirtyFile]| -> Vec<DirtyFile> {
            files.iter().filter(|file| is_of_commit(file)).cloned().collect()
        };
        let was = of_commit(before);
        if before.len().max(after.len()) > COMPARED || was != of_commit(&after) {
            return true;
        }
        if was.is_empty() {
            return false;
        }
        // The same paths; their content tells.
        let now = control.store_work_tree(work_dir, head).ok();
        let (Some(before), Some(now)) = (&self.content, &now) else { return true };
        let Ok(changed) = control.facts().changed_paths(before, now) else { return true };
        was.iter().any(|file| changed.contains(&file.path))
    }

    /// The paths that are dirty now and were not.
    pub(super) fn changed(&self, control: &ControlDir, work_dir: &Path, head: &CommitId) -> Dirtied {
        let before = self.files.as_ref().ok_or(UNSEEN)?;
        let after = control.dirty_files(work_dir, head, COMPARED + 1).map_err(|_| UNSEEN)?;
        added(before, after)
    }
}

/// The files of the commit as the kernel knows them: one that is written and put back is another one.
pub(super) struct Stamps {
    /// Of a commit with too many nobody can tell.
    paths: Option<Vec<Vec<u8>>>,
    now: Option<Vec<Stamp>>,
}

/// Which file, and its last change of any kind; nothing where there is no file.
type Stamp = Option<(FileId, i64)>;

/// Files of the commit that were written.
pub(super) struct Written {
    /// Some of them, for people.
    pub(super) paths: Vec<String>,
}

impl Stamps {
    pub(super) fn look(control: &ControlDir, work_dir: &Path, head: &CommitId) -> Self {
        let paths = control.facts().paths_of_files(head).ok();
        let now = paths.as_ref().and_then(|paths| stamps(work_dir, paths));
        Self { paths, now }
    }

    /// What was written since the last look. Where nobody can tell, something was.
    pub(super) fn written(&mut self, work_dir: &Path) -> Option<Written> {
        let Some(paths) = &self.paths else { return Some(Written { paths: Vec::new() }) };
        let now = stamps(work_dir, paths);
        let before = std::mem::replace(&mut self.now, now);
        let (Some(before), Some(now)) = (before, &self.now) else {
            return Some(Written { paths: Vec::new() });
        };
        if before == *now {
            return None;
        }
        let differ = before.iter().zip(now).zip(paths).filter(|((before, now), _)| before != now);
        let named = differ.take(NAMED).map(|(_, path)| String::from_utf8_lossy(path).into_owned());
        Some(Written { paths: named.collect() })
    }
}

/// The stamps of these paths, which are sorted, so that each directory is opened once.
fn stamps(work_dir: &Path, paths: &[Vec<u8>]) -> Option<Vec<Stamp>> {
    let top = SafeDir::open_shared(work_dir).ok()?;
    // The way to the file before, each with its directory, where it is one.
    let mut way: Vec<(&[u8], Option<SafeDir>)> = Vec::new();
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let name = names.pop()?;
        let same = way.iter().zip(&names).take_while(|((was, _), now)| was == *now).count();
        way.truncate(same);
        for name in names.into_iter().skip(same) {
            let above = way.last().map_or(Some(&top), |(_, dir)| dir.as_ref());
            let dir = above.and_then(|above| above.subdir(OsStr::from_bytes(name)).ok());
            way.push((name, dir));
        }
        let dir = way.last().map_or(Some(&top), |(_, dir)| dir.as_ref());
        let stat = dir.and_then(|dir| dir.stat(OsStr::from_bytes(name)).ok().flatten());
        // What lies in a directory that stands there is no file of the commit.
        let stat = stat.filter(|stat| stat.kind != Kind::Dir);
        found.push(stat.map(|stat| (stat.id, stat.changed_ns)));
    }
    Some(found)
}

fn is_of_commit(file: &DirtyFile) -> bool {
    file.status != DirtyStatus::Added
}

/// What is in `after` alone. Of a list that was cut nobody knows what it lacks.
fn added(before: &[DirtyFile], after: Vec<DirtyFile>) -> Dirtied {
    if before.len().max(after.len()) > COMPARED {
        return Err("more than 10,000 paths are uncommitted");
    }
    // Both are sorted by their paths.
    let known = |file: &DirtyFile| {
        let from = before.partition_point(|b| b.path < file.path);
        before.iter().skip(from).take_while(|b| b.path == file.path).any(|b| b == file)
    };
    Ok(after.into_iter().filter(|file| !known(file)).map(|file| file.path).collect())
}

#[cfg(test)]
mod tests {
    use peers_git::DirtyStatus;

    use super::*;

    fn files(n: usize) -> Vec<DirtyFile> {
        (0..n).map(|n| DirtyFile { status: DirtyStatus::Added, path: format!("{n:06}") }).collect()
    }

    #[test]
    fn what_the_gates_changed_is_told_exactly_or_not_at_all() {
        assert_eq!(added(&files(2), files(2)), Ok(Vec::new()));
        assert_eq!(added(&files(1), files(3)), Ok(vec!["000001".to_owned(), "000002".to_owned()]));
        assert_eq!(added(&files(0), files(COMPARED)).map(|paths| paths.len()), Ok(COMPARED));
        let mut changed = files(2);
        changed[1].status = DirtyStatus::Deleted;
        assert_eq!(added(&files(2), changed), Ok(vec!["000001".to_owned()]));
        // Of a list that was cut nobody knows what it lacks.
        assert!(added(&files(COMPARED + 1), files(COMPARED + 1)).is_err());
        assert!(added(&files(COMPARED + 1), files(1)).is_err() && added(&[], files(COMPARED + 1)).is_err());
    }
}
