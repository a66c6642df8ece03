//! What is at the target, and whether it may become a project.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use peers_git::{PeerRepo, RepoError};
use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_store::layout::store::{JOURNAL, PROJECT};
use peers_sys::dir::{FileError, Kind, SafeDir};
use peers_sys::env::Env;

use super::super::error::{quoted, shown};
use super::super::settings::configure;
use super::super::{Existing, ScaffoldError, gates, target, task};
use super::ProjectOptions;
use super::aside::is_aside;
use super::asked::Asked;
use super::fill::{README, SPEC, readme};
use super::setup;

/// Names of a directory that are looked at to see whether it is empty.
const NAMES: usize = 100;

/// What is there.
#[derive(Debug)]
pub(super) enum Site {
    /// Nothing of that name.
    New { parent: SafeDir, name: OsString, path: PathBuf },
    /// A directory.
    There { path: PathBuf, work: SafeDir, git: Git, existing: Existing },
}

/// How far its history is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Git {
    /// It is no repository.
    Absent,
    /// It is one without a commit.
    Unborn,
    /// It has a commit.
    Born,
}

/// Looks, and refuses where it must. Writes nothing.
pub(super) fn look(options: &ProjectOptions, asked: &Asked, env: &Env) -> Result<Site, ScaffoldError> {
    let target = &options.target;
    match target.canonicalize() {
        Ok(path) => there(&path, options, asked, env),
        Err(error) if error.kind() == ErrorKind::NotFound => new(options, asked, env),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(not_a_directory(target)),
        Err(source) => Err(FileError::Io { path: target.clone(), op: "look at", source }.into()),
    }
}

fn new(options: &ProjectOptions, asked: &Asked, env: &Env) -> Result<Site, ScaffoldError> {
    let target = options.target.as_path();
    let name = target.file_name().ok_or_else(|| no_parent(target))?;
    let parent = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|_| no_parent(parent))?;
    let path = parent.join(name);
    let parent = SafeDir::open_shared(parent)?;
    if parent.stat(name)?.is_some() {
        // A link that leads nowhere.
        return Err(not_a_directory(&path));
    }
    target::allowed(&path, env)?;
    refuse_nested(&path, parent.path())?;
    configure(None, &options.agents.tools(env), &options.settings)?;
    gates::of_nothing(&options.gates, asked.modes.as_ref(), options.language, &path)?;
    freezable(asked)?;
    if !options.overwrite_peers
        && let Some(store) = setup::store_of(&path, env)?
    {
        return Err(ScaffoldError::refused(
            exit::REFUSED,
            format!("the trusted store {} belongs to an earlier project at {}", shown(&store), shown(&path)),
            "put the directory back, or let `--overwrite-peers` move that history aside and start over",
        ));
    }
    Ok(Site::New { parent, name: name.to_owned(), path })
}

fn there(path: &Path, options: &ProjectOptions, asked: &Asked, env: &Env) -> Result<Site, ScaffoldError> {
    let spec = asked.spec.as_deref();
    let Ok(work) = SafeDir::open_shared(path) else { return Err(not_a_directory(path)) };
    let path = target::admitted(path, env)?;
    let git = git(&path, &work)?;
    if git != Git::Born {
        if git == Git::Absent {
            refuse_nested(&path, &path)?;
        }
        if has_files(&work, spec)? && !options.into_nonempty {
            let unborn = "commit what belongs to it, or let `--into-nonempty` put all that is there into the first commit";
            return Err(not_empty(&path, if git == Git::Unborn { unborn } else { INTO_NONEMPTY }));
        }
        check_files(&work, spec)?;
    } else if let Some(spec) = spec
        && work.read_opt(SPEC, limits::CONFIG).ok().flatten().as_deref() != Some(spec.as_bytes())
    {
        return Err(ScaffoldError::refused(
            exit::USAGE,
            format!("{} has a history of its own, and --spec writes SPEC.md for a new one", shown(&path)),
            "write SPEC.md yourself and commit it",
        ));
    }
    let existing = existing(&path, &work, git, options, env)?;
    if git == Git::Absent {
        if let Some(task) = &options.task {
            task::refuse_other(&work, task)?;
        }
        configure(None, &options.agents.tools(env), &options.settings)?;
        gates::goals(&options.gates, asked.modes.as_ref(), options.language, &work)?;
        freezable(asked)?;
    } else {
        setup::would(&path, existing, options, env)?;
    }
    Ok(Site::There { path, work, git, existing })
}

/// Refuses a plan that freezes files where there is no commit with them.
fn freezable(asked: &Asked) -> Result<(), ScaffoldError> {
    asked.planned.as_ref().map_or(Ok(()), |plan| plan.collect(None).map(drop))
}

/// Refuses to make a repository at `path` in another one, which `start` lies in.
fn refuse_nested(path: &Path, start: &Path) -> Result<(), ScaffoldError> {
    let Some(top) = PeerRepo::find_top(start) else { return Ok(()) };
    if top == path {
        // A repository that git does not take for one.
        return Err(ScaffoldError::Outside { path: path.to_owned(), top: Some(top) });
    }
    let message = format!("{} lies inside the repository {}", shown(path), shown(&top));
    let hint = "`peers-ctl new {}` sets that one up; for a repository of its own, run `git init` there first";
    Err(ScaffoldError::refused(exit::INVALID, message, Step::text(hint, &[&top.to_string_lossy()])))
}

fn git(path: &Path, work: &SafeDir) -> Result<Git, ScaffoldError> {
    if work.stat(".git")?.is_none() {
        return match PeerRepo::open(path) {
            Err(error @ RepoError::Bare { .. }) => Err(ScaffoldError::Repo(error)),
            _ => Ok(Git::Absent),
        };
    }
    let repo = PeerRepo::open(path).map_err(ScaffoldError::Repo)?;
    let unborn = repo.preflight().iter().any(|error| matches!(error, RepoError::Unborn { .. }));
    Ok(if unborn { Git::Unborn } else { Git::Born })
}

/// Whether there is anything but what is ours to make.
fn has_files(work: &SafeDir, spec: Option<&str>) -> Result<bool, ScaffoldError> {
    let listing = work.list(NAMES)?;
    let readme = readme(work.path().file_name().unwrap_or_default());
    let says = |file: &str, text: &str| {
        work.read_opt(file, limits::CONFIG).is_ok_and(|found| found.as_deref() == Some(text.as_bytes()))
    };
    // A call that was cut short may have written the two files.
    let ours = |name: &std::ffi::OsStr| {
        name == ".git"
            || is_aside(name, "git".as_ref())
            || (name == README && says(README, &readme))
            || (name == SPEC && spec.is_some_and(|spec| says(SPEC, spec)))
    };
    Ok(listing.truncated || listing.entries.iter().any(|entry| !ours(&entry.name)))
}

/// The two files that may be written: what is there stays, and nothing is written through a link.
fn check_files(work: &SafeDir, spec: Option<&str>) -> Result<(), ScaffoldError> {
    let path = |name: &str| work.path().join(name);
    match work.stat(README)?.map(|stat| stat.kind) {
        None | Some(Kind::File) => {}
        Some(Kind::Symlink) => return Err(FileError::Symlink { path: path(README) }.into()),
        Some(Kind::Dir | Kind::Special) => {
            return Err(FileError::NotRegular { path: path(README), expected: "a regular file" }.into());
        }
    }
    let Some(spec) = spec else { return Ok(()) };
    match work.read_opt(SPEC, limits::CONFIG) {
        Ok(None) => Ok(()),
        Ok(Some(bytes)) if bytes == spec.as_bytes() => Ok(()),
        Ok(Some(_)) | Err(FileError::TooLarge { .. }) => {
            let message = format!("{} exists with other content", shown(&path(SPEC)));
            let hint = "leave `--spec` out, or move the file out of the way";
            Err(ScaffoldError::refused(exit::CONFLICT, message, hint))
        }
        Err(error) => Err(error.into()),
    }
}

/// What is to be done about a control directory. One whose set-up was cut short before anything ran on it is
/// completed; a finished one is somebody's.
fn existing(
    path: &Path,
    work: &SafeDir,
    git: Git,
    options: &ProjectOptions,
    env: &Env,
) -> Result<Existing, ScaffoldError> {
    if options.overwrite_peers {
        return Ok(Existing::Force);
    }
    match work.stat(PEERS_DIR)?.map(|stat| stat.kind) {
        None => return Ok(Existing::Refuse),
        Some(Kind::Dir) if git != Git::Absent => {}
        Some(Kind::Symlink) => return Err(ScaffoldError::Link { name: PEERS_DIR }),
        Some(Kind::Dir | Kind::File | Kind::Special) => {
            return Err(set_up_already(path));
        }
    }
    let place = Place::locate(path, env)?;
    match place.view_store().map_err(PlaceError::from)? {
        // Goals and configuration came along with a clone.
        None if place.is_cloned() => return Ok(Existing::Refuse),
        None => return Err(place.no_store(true).into()),
        Some(store) if store.stat(PROJECT)?.is_none() && place.is_cloned() => return Ok(Existing::Refuse),
        Some(store) if store.stat(JOURNAL)?.is_some() => {
            return Err(set_up_already(path));
        }
        Some(_) => {}
    }
    let report = setup::would(path, Existing::Upgrade, options, env).map_err(|error| match error {
        // What is asked for would not get into what is there.
        ScaffoldError::Refused { exit, message, hint: None } => {
            ScaffoldError::refused(exit, message, registered_or_anew(path))
        }
        other => other,
    })?;
    if report.changes.is_empty() {
        return Err(set_up_already(path));
    }
    Ok(Existing::Upgrade)
}

/// What helps with a directory that has files and no repository.
pub(super) const INTO_NONEMPTY: &str =
    "`--into-nonempty` makes a repository of it, with all that is there in the first commit";

/// It has files, and no commit.
pub(super) fn not_empty(path: &Path, hint: &'static str) -> ScaffoldError {
    ScaffoldError::refused(exit::CONFLICT, format!("{} is not empty", shown(path)), hint)
}

fn not_a_directory(path: &Path) -> ScaffoldError {
    let message = format!("{} is not a directory", shown(path));
    ScaffoldError::refused(exit::USAGE, message, "name a directory, or a name that is free")
}

/// The directory that it would be in is not there.
fn no_parent(path: &Path) -> ScaffoldError {
    let hint = format!("`mkdir -p {}` makes it", quoted(path));
    ScaffoldError::refused(exit::USAGE, format!("{} does not exist", shown(path)), hint)
}

fn set_up_already(path: &Path) -> ScaffoldError {
    let message = format!("{} is set up for peers already", shown(path));
    ScaffoldError::refused(exit::CONFLICT, message, registered_or_anew(path))
}

/// What helps with a repository that is set up already.
fn registered_or_anew(path: &Path) -> Step {
    let hint = "`peers-ctl add {}` registers it as it is; `--overwrite-peers` moves its `.peers` aside and starts over";
    Step::text(hint, &[&path.to_string_lossy()])
}
