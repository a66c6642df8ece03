//! `peers deinit`.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use peers_model::exit;
use peers_modes::hooks;
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_sys::clock;
use peers_sys::dir::{FileError, Kind, SafeDir};
use peers_sys::env::Env;

use super::error::shown;
use super::host::{self, Did, HostHooks};
use super::report::{Action, DeinitReport, Steps};
use super::{ScaffoldError, backup, ignore, target};

/// What `deinit` is to do.
#[derive(Debug, Clone)]
pub struct DeinitOptions {
    /// The top of the work tree.
    pub target: PathBuf,
    /// Also remove what lies outside the repository, and the backups in it.
    pub purge: bool,
    /// Remove nothing, say what would be removed.
    pub dry_run: bool,
}

/// Takes away what [`super::init`] laid down. The trusted store stays unless it is purged, so that a later
/// `init` goes on with it.
///
/// # Errors
/// [`ScaffoldError`], whose exit code says which rule refused; nothing was removed then, unless a file
/// operation failed half-way. An ignore file that cannot be read is left as it is, with a note.
pub fn deinit(options: &DeinitOptions, env: &Env) -> Result<DeinitReport, ScaffoldError> {
    let place = Place::locate(&options.target, env)?;
    let work = place.open_work()?;
    let has_peers_dir = match work.stat(PEERS_DIR)?.map(|stat| stat.kind) {
        None => false,
        Some(Kind::Dir) => true,
        Some(Kind::Symlink) => return Err(ScaffoldError::Link { name: PEERS_DIR }),
        Some(Kind::File | Kind::Special) => return Err(ScaffoldError::not_ours()),
    };
    place.refuse_held()?;
    let mut steps = Steps::new(options.dry_run);
    let repo = match target::repository(place.work_dir()) {
        Ok(repo) => repo.ok(),
        Err(ScaffoldError::Outside { .. }) => None,
        // Taking ourselves away must work there too.
        Err(error) => {
            steps.note(format!("the repository is left alone: {error}"));
            None
        }
    };
    let ignored = ignore::Ignored::look(&work, repo.as_ref(), &mut steps);
    let targets = if options.purge { targets(&place)? } else { Vec::new() };
    // Held to the end, so that no run starts on half of it.
    let has_store = place.view_store().map_err(PlaceError::from)?.is_some();
    let lock = if has_store && !options.dry_run { Some(place.lock("deinit")?) } else { None };
    if has_peers_dir {
        steps.act(Action::Remove, ".peers/", || Ok(work.remove_tree(PEERS_DIR).map(drop)?))?;
    }
    ignored.remove(&work, repo.as_ref(), clock::now(), &mut steps)?;
    if options.purge {
        for name in backup::backups(&work)? {
            steps.act(Action::Remove, name.clone(), || Ok(work.remove_tree(&name).map(drop)?))?;
        }
        for Target { what, parent, name } in targets {
            steps.act(Action::Remove, what, || Ok(parent.remove_tree(&name).map(drop)?))?;
        }
    } else if has_store && !options.dry_run {
        steps.note("the trusted store stays; a later `peers init` goes on with it, `peers deinit --purge` removes it");
    }
    drop(lock);
    let mut host =
        host::apply(HostHooks::Uninstall, &hooks::Tool::ALL, (place.work_dir(), env), options.dry_run);
    host.retain(|hook| hook.did != Did::Noop);
    if steps.changes.is_empty() && host.iter().all(|hook| hook.did == Did::Skipped) {
        let message = format!("{} is not set up for peers", shown(place.work_dir()));
        return Err(ScaffoldError::plain(exit::NEGATIVE, message));
    }
    Ok(DeinitReport {
        dry_run: options.dry_run,
        store: place.store_dir().to_owned(),
        host,
        changes: steps.changes,
        notes: steps.notes,
    })
}

/// A directory of ours outside the repository.
struct Target {
    what: &'static str,
    parent: SafeDir,
    name: OsString,
}

/// Those that are there, opened before anything is removed.
fn targets(place: &Place) -> Result<Vec<Target>, ScaffoldError> {
    let mut found = Vec::new();
    for (what, path) in [
        ("the cache", place.cache_dir()),
        ("the agents' own data", place.cli_data_dir()),
        ("the trusted store", place.store_dir()),
    ] {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let parent = match SafeDir::open_root(parent) {
            Ok(parent) => parent,
            Err(FileError::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if parent.stat(name)?.is_some() {
            found.push(Target { what, parent, name: name.to_owned() });
        }
    }
    Ok(found)
}
