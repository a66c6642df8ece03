//! `peers init` at the final path, taken back when it fails half-way.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peers_git::{Author, PeerRepo};
use peers_model::limits::MIB;
use peers_place::anchor::BASELINE;
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_sys::clock;
use peers_sys::dir::{FileError, FileMode, SafeDir};
use peers_sys::env::Env;

use super::super::ignore::GITIGNORE;
use super::super::report::InitReport;
use super::super::{Existing, InitOptions, ScaffoldError, fault, init};
use super::error::ProjectError;
use super::{ProjectOptions, shown};

/// Names of a control directory that are looked at.
const NAMES: usize = 10_000;

/// What `init` would do, or why it would refuse.
pub(super) fn would(
    path: &Path,
    existing: Existing,
    options: &ProjectOptions,
    env: &Env,
) -> Result<InitReport, ScaffoldError> {
    init(&init_options(path, existing, options, true), env)
}

/// The trusted store of a path where nothing is, if there is one.
pub(super) fn store_of(path: &Path, env: &Env) -> Result<Option<PathBuf>, ScaffoldError> {
    let stores = env.state_home().ok_or(PlaceError::NoHome)?.join("peers");
    let store = stores.join(peers_place::project_id(path).as_str());
    let there =
        SafeDir::open_shared(&stores).and_then(|dir| dir.stat(peers_place::project_id(path).as_str()));
    match there {
        Ok(found) => Ok(found.map(|_| store)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sets it up.
pub(super) fn run(
    path: &Path,
    existing: Existing,
    options: &ProjectOptions,
    env: &Env,
) -> Result<InitReport, ScaffoldError> {
    fault::at("set up")?;
    let before = Before::look(path, env)?;
    init(&init_options(path, existing, options, false), env)
        .map_err(|error| before.take_back(existing, error))
}

fn init_options(path: &Path, existing: Existing, options: &ProjectOptions, dry_run: bool) -> InitOptions {
    InitOptions {
        target: path.to_owned(),
        existing,
        dry_run,
        driver: options.driver,
        language: options.language,
        gates: options.gates.clone(),
        no_commit: false,
        settings: options.settings.clone(),
        agents: Vec::new(),
        task: None,
        install: false,
    }
}

/// What was there before.
struct Before {
    place: Place,
    work: SafeDir,
    /// The names in `.peers/`, where it was there.
    peers: Option<BTreeSet<OsString>>,
    store: bool,
    tagged: bool,
    /// `.gitignore` and its permissions.
    ignore: Option<(Vec<u8>, u32)>,
}

impl Before {
    fn look(path: &Path, env: &Env) -> Result<Self, ScaffoldError> {
        let place = Place::locate(path, env)?;
        let work = place.open_work()?;
        let peers = match work.stat(PEERS_DIR)? {
            Some(_) => Some(names(&work.subdir(PEERS_DIR)?)?),
            None => None,
        };
        let store = place.view_store().map_err(PlaceError::from)?.is_some();
        let tagged = PeerRepo::open(path).is_ok_and(|repo| tag(&repo).is_some());
        // A link is not written through, so there is nothing to put back.
        let ignore = match (work.stat(GITIGNORE)?, work.read_opt(GITIGNORE, MIB)) {
            (Some(stat), Ok(Some(bytes))) => Some((bytes, stat.mode)),
            _ => None,
        };
        Ok(Self { place, work, peers, store, tagged, ignore })
    }

    /// The error, after all that was made is gone.
    fn take_back(self, existing: Existing, error: ScaffoldError) -> ScaffoldError {
        // What was moved aside is told by the error, and what was there is completed by the next call.
        if existing != Existing::Refuse && self.peers.is_some() {
            return error;
        }
        let mut left = Vec::new();
        let mut done = |what: &Path, done: bool| {
            if !done {
                left.push(shown(what));
            }
        };
        let work = self.place.work_dir();
        done(&work.join(PEERS_DIR), self.peers_as_it_was().is_ok());
        if !self.tagged
            && let Ok(repo) = PeerRepo::open(work)
            && let Some(at) = tag(&repo)
        {
            let who = Author::new("peers-init", "peers-init@local", clock::now());
            done(&work.join(format!("refs/tags/{BASELINE}")), repo.untag(BASELINE, &at, &who).is_ok());
        }
        done(&work.join(GITIGNORE), self.ignore_as_it_was());
        if !self.store {
            let store = self.place.store_dir();
            let removed = match (store.parent().map(SafeDir::open_shared), store.file_name()) {
                (Some(Ok(stores)), Some(name)) => stores.remove_tree(name).is_ok(),
                _ => true,
            };
            done(store, removed);
        }
        if left.is_empty() {
            error
        } else {
            ProjectError::Left { what: left, source: Box::new(error) }.into()
        }
    }

    fn peers_as_it_was(&self) -> Result<(), FileError> {
        let Some(before) = &self.peers else { return self.work.remove_tree(PEERS_DIR).map(drop) };
        // A clone brought it along: what it has stays.
        let peers = self.work.subdir(PEERS_DIR)?;
        for name in names(&peers)?.difference(before) {
            peers.remove_tree(name)?;
        }
        Ok(())
    }

    fn ignore_as_it_was(&self) -> bool {
        let now = self.work.read_opt(GITIGNORE, MIB);
        match (&self.ignore, now) {
            (Some((old, _)), Ok(Some(now))) if *old == now => true,
            (Some((old, mode)), Ok(_)) => self.work.publish_mode(GITIGNORE, old, FileMode::As(*mode)).is_ok(),
            (None, Ok(Some(_))) => self.work.remove_file(GITIGNORE).is_ok(),
            (None, Ok(None)) => true,
            // A link, which was there before.
            (_, Err(error)) => error.is_unsafe(),
        }
    }
}

fn names(dir: &SafeDir) -> Result<BTreeSet<OsString>, FileError> {
    Ok(dir.list(NAMES)?.entries.into_iter().map(|entry| entry.name).collect())
}

fn tag(repo: &PeerRepo) -> Option<peers_model::CommitId> {
    repo.facts().reference(&format!("refs/tags/{BASELINE}")).ok().flatten()
}
