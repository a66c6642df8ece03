//! `peers init` at the final path.

use std::path::{Path, PathBuf};

use peers_place::PlaceError;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;

use super::super::report::InitReport;
use super::super::{Existing, InitOptions, ScaffoldError, fault, init};
use super::ProjectOptions;

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
    init(&init_options(path, existing, options, false), env)
}

fn init_options(path: &Path, existing: Existing, options: &ProjectOptions, dry_run: bool) -> InitOptions {
    InitOptions {
        target: path.to_owned(),
        existing,
        dry_run,
        driver: options.driver,
        language: options.language,
        gates: options.gates.clone(),
        modes: options.modes.clone(),
        agents: options.agents.clone(),
        task: options.task.clone(),
        plan: options.planned.clone(),
        settings: options.settings.clone(),
        ..InitOptions::default()
    }
}
