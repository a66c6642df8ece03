//! Who is in the registry: projects are added, and taken out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use peers_model::command::Step;
use peers_model::exit;
use peers_place::{Place, unusable};
use peers_run::boot::Finding;
use peers_sys::dir::Kind;
use peers_sys::env::Env;
use peers_sys::{clock, term};

use crate::config::ConfigDir;
use crate::ground::Ground;
use crate::observe::{Observation, Probe, path_id};
use crate::oplock::OpLock;
use crate::reconcile::reconcile;
use crate::registry::{self, Entry, Project, ProjectName, State};
use crate::runlog;
use crate::start::{project, unknown};

/// A project to be added.
#[derive(Debug, Clone)]
pub struct Addition {
    /// The top of its work tree.
    pub path: PathBuf,
    /// What it is to be called; else as its directory is.
    pub name: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Notes.
    pub notes: String,
    /// One of this name that does not run gives way.
    pub replace: bool,
}

/// The name that a directory gives.
///
/// # Errors
/// A [`Finding`], exit 2, where no name can be made of it.
pub fn name_of(path: &std::path::Path, told: Option<&str>) -> Result<ProjectName, Finding> {
    if let Some(told) = told {
        return ProjectName::new(told).map_err(|invalid| Finding::plain(exit::USAGE, invalid.to_string()));
    }
    let base = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ProjectName::new(base).map_err(|invalid| {
        Finding::new(exit::USAGE, invalid.to_string(), "call it by another name: --name NAME")
    })
}

/// Whether a project of this name could be added; for who is about to make one.
///
/// # Errors
/// A [`Finding`]: exit 4 where the name is taken.
pub fn free(config: &ConfigDir, name: &ProjectName, replace: bool) -> Result<(), Finding> {
    match registry::load(config)?.registry.get(name) {
        Some(known) => taken(known, replace),
        None => Ok(()),
    }
}

fn taken(known: &Project, replace: bool) -> Result<(), Finding> {
    let path = term::inline(&known.path);
    if !replace {
        return Err(Finding::new(
            exit::CONFLICT,
            format!("there is a project `{}` already: {path}", known.name),
            "choose another name with --name, or take that one out with `peers-ctl remove`",
        ));
    }
    if matches!(known.state, State::Running | State::Unknown) {
        return Err(Finding::new(
            exit::CONFLICT,
            format!("`{}` ({path}) is {} and is not replaced", known.name, known.state.word()),
            Step::text("`peers-ctl stop {}` first", &[known.name.as_str()]),
        ));
    }
    Ok(())
}

/// Adds a project. Nothing of it is changed.
///
/// # Errors
/// A [`Finding`]: exit 2 for a path that is no directory or a bad name, 3 for one that is no repository, 4 where
/// name or directory are known already.
pub fn add(config: &ConfigDir, env: &Env, addition: &Addition) -> Result<Project, Finding> {
    let Addition { path, name, labels, notes, replace } = addition;
    let shown = term::inline(&path.to_string_lossy());
    let real = path.canonicalize().map_err(|error| {
        Finding::new(exit::USAGE, format!("{shown} cannot be found: {error}"), "name the top of a repository")
    })?;
    let Ok(dir) = peers_sys::SafeDir::open_shared(&real) else {
        return Err(Finding::new(
            exit::USAGE,
            format!("{shown} is not a directory"),
            "name the top of a repository",
        ));
    };
    let name = name_of(&real, name.as_deref())?;
    if let Some(why) = unusable(&real) {
        return Err(Finding::plain(exit::INVALID, format!("{shown} {why}; a repository cannot lie there")));
    }
    let git = dir.stat(".git").map_err(|error| Finding::from(&error))?;
    if !git.is_some_and(|git| matches!(git.kind, Kind::Dir | Kind::File)) {
        return Err(Finding::new(
            exit::INVALID,
            format!("{shown} is not the top of a git work tree"),
            Step::text("`peers-ctl new {}` makes a repository and sets it up", &[&path.to_string_lossy()]),
        ));
    }
    // Also for the trusted store: one inside of the repository is refused here already.
    let place = Place::locate(&real, env)?;
    let id = path_id(place.work_dir());
    let project = Project {
        labels: labels.clone(),
        notes: notes.clone(),
        project_id: Some(place.id().clone()),
        ..Project::new(name.clone(), &real, id, clock::now())
    };
    project.check().map_err(|invalid| Finding::plain(exit::USAGE, invalid.to_string()))?;
    registry::edit(config, |registry| {
        // What is replaced is one of this very name.
        let same = |known: &&Project| {
            let again = *replace && known.name == name;
            !again && (known.path == project.path || (id.is_some() && known.path_id == id))
        };
        if let Some(known) = registry.projects().find(same) {
            return Err(Finding::new(
                exit::CONFLICT,
                format!("{shown} is registered already, as `{}`", known.name),
                "one name for a repository is enough; `peers-ctl list` shows it",
            ));
        }
        if let Some(known) = registry.get(&name) {
            taken(known, *replace)?;
        }
        match registry.get_mut(&name) {
            Some(known) => *known = project.clone(),
            None => registry.entries.push(Entry::Known(Box::new(project.clone()))),
        }
        Ok(())
    })?;
    runlog::create(&config.logs()?, &project.log_name())?;
    Ok(project)
}

/// Takes a project out of the registry. Returns what it was.
///
/// # Errors
/// A [`Finding`]: exit 4 where its loop runs, or nobody knows whether it does, unless `force`.
pub fn remove(
    config: &ConfigDir,
    env: &Env,
    name: &ProjectName,
    force: bool,
    purge_logs: bool,
    wait: Duration,
) -> Result<Project, Finding> {
    let known = project(config, name)?;
    // A repository that was moved away, or broke, may have somebody who works in it all the same.
    let ground = Ground::of_one(&known, env).ok();
    let _op = match &ground {
        Some(Ground { place, .. }) if place.view_store().is_ok_and(|store| store.is_some()) => {
            Some(OpLock::take(place, &format!("peers-ctl remove {name}"), wait)?)
        }
        _ => None,
    };
    let known = project(config, name)?;
    let seen = Observation { operation: None, ..Observation::of(&known, env) };
    let state = reconcile(&known, &seen, clock::now()).map_or(known.state, |change| change.state);
    // Without a store no loop can have begun since, and the one that the registry knows is gone.
    let no_store = ground.is_some_and(|ground| ground.place.view_store().is_ok_and(|store| store.is_none()));
    let over = no_store && !seen.alive && known.runtime.as_ref().is_some_and(|runtime| runtime.pid.is_some());
    let nobody_knows = matches!(seen.probe, Probe::NoAnswer(_)) && !over;
    if !force && ((state == State::Running && !over) || nobody_knows) {
        let (what, hint) = if nobody_knows {
            ("cannot tell whether it runs", Step::from("--force removes it anyway"))
        } else {
            (
                "its loop runs",
                Step::text(
                    "`peers-ctl stop {}` first; --force removes it and lets the loop go on",
                    &[name.as_str()],
                ),
            )
        };
        return Err(Finding::new(exit::CONFLICT, format!("{name} is not removed: {what}"), hint));
    }
    registry::edit(config, |registry| {
        if registry.get(name).is_none() {
            return Err(unknown(name.as_str(), registry));
        }
        registry.entries.retain(|entry| entry.project().is_none_or(|project| project.name != *name));
        Ok(())
    })?;
    if purge_logs && let Some(logs) = config.logs_if_any()? {
        for log in runlog::names(&known.log_name()) {
            logs.remove_file(&log).map_err(|error| Finding::from(&error))?;
        }
    }
    Ok(known)
}
