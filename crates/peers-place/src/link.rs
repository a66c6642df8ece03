//! Linked worktrees whose link to their repository broke, as when that was moved.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_git::RepoError;
use peers_model::ProjectId;
use peers_store::runs::RunRecord;
use peers_store::{FsDisk, project, runs};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::term;
use peers_sys::term::quoted;

use super::error::PlaceError;

/// Stores looked at when a repository seems to have been moved.
pub(crate) const MAX_STORES: usize = 2000;
/// A file that names a git directory is shorter.
const LINK: u64 = 16 * 1024;

/// Whether a directory is a linked worktree whose `.git` file names a git directory that is gone.
#[must_use]
pub fn is_cut_off(dir: &Path) -> bool {
    let Ok(Some(bytes)) = SafeDir::open_shared(dir).and_then(|dir| dir.read_opt(".git", LINK)) else {
        return false;
    };
    let Some(target) = bytes.strip_prefix(b"gitdir: ") else { return false };
    let target = dir.join(OsStr::from_bytes(target.trim_ascii_end()));
    matches!(target.try_exists(), Ok(false))
}

/// The worktrees of these runs that do not find their repository any more, with the command that mends it.
#[must_use]
pub fn cut_off(records: &[RunRecord], project: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for record in records.iter().rev() {
        let dir = PathBuf::from(&record.workdir);
        if !found.iter().any(|(known, _)| *known == dir) && is_cut_off(&dir) {
            let command = repair(Some(project), &dir);
            found.push((dir, command));
        }
    }
    found
}

/// The command that connects a linked worktree with its repository again.
fn repair(project: Option<&Path>, dir: &Path) -> String {
    let word = |path: &Path| quoted(&path.to_string_lossy());
    let project = project.map_or_else(|| "PROJECT".to_owned(), word);
    format!("git -C {project} worktree repair {}", word(dir))
}

/// Message and hint for a linked worktree that does not find its repository; nothing for other errors.
pub(super) fn problem(error: &RepoError, project: Option<&Path>) -> Option<(String, String)> {
    let RepoError::Redirected { path, .. } = error else { return None };
    if !is_cut_off(path) {
        return None;
    }
    let message = format!("{}, which is gone", chain(error));
    let command = repair(project, path);
    let hint = match project {
        Some(_) => format!("the repository was moved: `{command}` connects this worktree with it again"),
        None => format!(
            "if the repository was moved to PROJECT: `{command}` connects this worktree with it again"
        ),
    };
    Some((message, hint))
}

/// The same for a directory whose project is not known yet: the store that knows a run in it names that.
pub(super) fn error(error: RepoError, env: &Env) -> PlaceError {
    let RepoError::Redirected { path, .. } = &error else { return error.into() };
    let project = project_of(path, env);
    match problem(&error, project.as_deref()) {
        Some((message, hint)) => PlaceError::CutOff { message: term::line(&message, 1000), hint },
        None => error.into(),
    }
}

/// The project whose run worked in a directory, if it is where its store says.
fn project_of(dir: &Path, env: &Env) -> Option<PathBuf> {
    let stores = SafeDir::open_shared(env.state_home()?.join("peers")).ok()?;
    let names = stores.list(MAX_STORES).ok()?.entries.into_iter().map(|entry| entry.name);
    let here = dir.to_string_lossy();
    names.filter(|name| name.to_str().is_some_and(|name| ProjectId::new(name).is_ok())).find_map(|name| {
        let mut disk = FsDisk::new(stores.subdir(&name).ok()?, None);
        let project = PathBuf::from(project::read(&mut disk).ok()??.path);
        let (records, _) = runs::list(&mut disk).ok()?;
        let known = records.iter().any(|record| record.workdir == here);
        (known && project.join(".git").exists()).then_some(project)
    })
}
