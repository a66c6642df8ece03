//! The registry brought up to what can be seen: look at all, decide, write once, clear away what died.
//!
//! Nothing is locked while projects are looked at. What was decided is written only where the registry still says
//! what it was decided from.

use std::fmt::Write as _;

use peers_model::{RunId, Timestamp};
use peers_place::Homes;
use peers_run::boot::Finding;
use peers_sys::clock;
use peers_sys::env::Env;

use crate::config::ConfigDir;
use crate::ground::Ground;
use crate::observe::Observation;
use crate::reconcile::{Transition, reconcile};
use crate::registry::{self, Loaded, Project, ProjectName, Registry, State};
use crate::stop;

/// Threads that look together.
const THREADS: usize = 4;
/// Fewer projects than this are not worth a thread.
const FEW: usize = 64;

/// The code of the warning that a look ended processes.
pub const LEFTOVERS_ENDED: &str = "leftovers-ended";

/// A project as it was seen, and what changed in the registry by that.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The project, as the registry has it now.
    pub project: Project,
    /// What was seen.
    pub seen: Observation,
    /// What changed.
    pub change: Option<Change>,
}

/// A state that turned out to be another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Which project.
    pub name: ProjectName,
    /// What the registry said.
    pub from: State,
    /// What it says now.
    pub to: Transition,
    /// When it was seen.
    pub at: Timestamp,
    /// Processes that were left of a run that died, and were ended.
    pub swept: Vec<u32>,
}

impl Change {
    /// `billing: running -> stopped (converged): run ... ended: complete`, for people.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}: {}", self.name, self.nameless())
    }

    /// The same without the name.
    #[must_use]
    pub fn nameless(&self) -> String {
        let mut text = self.to.words(self.from);
        if !self.swept.is_empty() {
            let pids: Vec<String> = self.swept.iter().map(ToString::to_string).collect();
            let _infallible = write!(text, "; ended what was left of it: {}", pids.join(", "));
        }
        text
    }
}

/// The projects that `wanted` names as the registry has them: nobody looks.
///
/// # Errors
/// A [`Finding`] when the registry cannot be read.
pub fn as_it_is(
    config: &ConfigDir,
    wanted: impl Fn(&Project) -> bool,
) -> Result<(Vec<Seen>, Vec<registry::Warning>), Finding> {
    let Loaded { registry, warnings } = registry::load(config)?;
    let of = |project: &Project| Seen { project: project.clone(), seen: Observation::none(), change: None };
    Ok((registry.projects().filter(|project| wanted(project)).map(of).collect(), warnings))
}

/// Looks at the projects that `wanted` names, and brings the registry up to it. Where it cannot be written, what
/// was seen is given all the same, with a warning.
///
/// # Errors
/// A [`Finding`] when the registry cannot be read.
pub fn refresh(
    config: &ConfigDir,
    env: &Env,
    wanted: impl Fn(&Project) -> bool,
) -> Result<(Vec<Seen>, Vec<registry::Warning>), Finding> {
    let Loaded { registry, warnings } = registry::load(config)?;
    let (all, more) = refresh_known(config, env, &registry, wanted, |_| None);
    Ok((all, [warnings, more].concat()))
}

/// That a look ended processes, which nobody who looks would think of.
fn ended_too(name: &ProjectName, run: &RunId, swept: &[u32]) -> Option<registry::Warning> {
    let pids: Vec<String> = swept.iter().map(u32::to_string).collect();
    (!pids.is_empty()).then(|| registry::Warning {
        code: LEFTOVERS_ENDED,
        project: Some(name.to_string()),
        message: format!(
            "run {run} of {name} died, and what it had left was ended: process {}",
            pids.join(", ")
        ),
    })
}

/// Does the same with each of many by up to four threads, of which each takes at least `few`.
pub fn shared<T: Send>(all: &mut [T], few: usize, each: impl Fn(&mut T) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let share = all.len().div_ceil(threads).max(few).max(1);
    std::thread::scope(|scope| {
        for part in all.chunks_mut(share) {
            scope.spawn(|| part.iter_mut().for_each(&each));
        }
    });
}

/// [`refresh`] for who looks again and again: with the registry as it was read, and with what was seen before of
/// projects of which nothing has changed since.
pub fn refresh_known(
    config: &ConfigDir,
    env: &Env,
    registry: &Registry,
    wanted: impl Fn(&Project) -> bool,
    known: impl Fn(&Project) -> Option<Observation>,
) -> (Vec<Seen>, Vec<registry::Warning>) {
    let mut warnings = Vec::new();
    let now = clock::now();
    let homes = Homes::of(env).ok();
    let mut all: Vec<Seen> = registry
        .projects()
        .filter(|project| wanted(project))
        .map(|project| Seen { project: project.clone(), seen: Observation::none(), change: None })
        .collect();
    let mut unseen = Vec::new();
    for one in &mut all {
        match known(&one.project) {
            Some(seen) => one.seen = seen,
            None => unseen.push(one),
        }
    }
    shared(&mut unseen, FEW, |one| one.seen = Observation::below(&one.project, env, homes.as_ref()));
    let mut changes: Vec<(usize, Transition)> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        changes.extend(reconcile(&one.project, &one.seen, now).map(|change| (at, change)));
    }
    if changes.is_empty() || registry.newer.is_some() {
        return (all, warnings);
    }
    let written = registry::edit(config, |registry| {
        let mut written = Vec::new();
        for (at, change) in &changes {
            let Some(one) = all.get(*at) else { continue };
            let Some(project) = registry.get_mut(&one.project.name) else { continue };
            // Somebody else was faster, and may know more.
            if *project == one.project {
                change.apply(project, now);
                written.push((*at, change.clone(), project.clone()));
            }
        }
        Ok(written)
    });
    let written = match written {
        Ok(written) => written,
        Err(finding) => {
            warnings.push(registry::Warning {
                code: "not-written",
                project: None,
                message: format!("could not record what was seen: {}", finding.message),
            });
            let applied = changes.iter().filter_map(|(at, change)| {
                let mut project = all.get(*at)?.project.clone();
                change.apply(&mut project, now);
                // Nobody is ended by what is not noted down.
                Some((*at, Transition { leftovers: None, ..change.clone() }, project))
            });
            applied.collect()
        }
    };
    for (at, change, project) in written {
        let Some(one) = all.get_mut(at) else { continue };
        let mut swept = Vec::new();
        if let Some(run) = &change.leftovers
            && let Ok(ground) = Ground::of(&project, env, homes.as_ref())
        {
            // What cannot be listed is looked for again by the next start.
            swept = stop::sweep(&ground.place, run).unwrap_or_default();
            warnings.extend(ended_too(&project.name, run, &swept));
        }
        let from = one.project.state;
        one.project = project;
        one.change = Some(Change { name: one.project.name.clone(), from, to: change, at: now, swept });
    }
    (all, warnings)
}
