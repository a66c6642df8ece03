//! The rows of many loops, read together, again and again.

use std::collections::BTreeMap;

use peers_console::error::CommandError;
use peers_console::rows::Watched;
use peers_fleet::observe::{PathSeen, Probe};
use peers_fleet::refresh::Seen;
use peers_fleet::registry::{Outcome, State, Warning};
use peers_fleet::{ConfigDir, Project, ProjectName};
use peers_run::place::Homes;
use peers_view::{FleetWarning, Listed, LoopRow, Spelling, Unknown};

use crate::ctl::Ctl;

/// The rows of the projects that are meant.
#[derive(Debug, Default)]
pub(crate) struct Board {
    watched: BTreeMap<ProjectName, (String, Watched)>,
}

/// Threads that read rows together.
const THREADS: usize = 4;
/// Fewer rows than this are not worth a thread.
const FEW: usize = 16;

/// A row to be read.
struct Job<'a> {
    one: &'a Seen,
    watched: Watched,
    row: Option<LoopRow>,
}

/// What a look at many loops gave.
#[derive(Debug)]
pub(crate) struct Looked {
    /// The rows, in the order of the registry.
    pub(crate) rows: Vec<LoopRow>,
    /// What was seen of each, in the same order.
    pub(crate) seen: Vec<Seen>,
    /// What is odd about the registry.
    pub(crate) warnings: Vec<Warning>,
}

impl Board {
    /// Looks at them now.
    pub(crate) fn rows(
        &mut self,
        ctl: &Ctl,
        config: &ConfigDir,
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<Looked, CommandError> {
        let (seen, warnings) = ctl.seen(config, wanted)?;
        self.watched.retain(|name, _| seen.iter().any(|one| one.project.name == *name));
        let rows = self.all(ctl, &seen);
        Ok(Looked { rows, seen, warnings })
    }

    /// The rows of all, read by a few threads.
    fn all(&mut self, ctl: &Ctl, seen: &[Seen]) -> Vec<LoopRow> {
        let homes = Homes::of(&ctl.env).ok();
        let mut jobs: Vec<Job<'_>> = seen
            .iter()
            .map(|one| {
                let Project { name, path, .. } = &one.project;
                let known = self.watched.remove(name).filter(|(known, _)| known == path);
                let (_, watched) = known.unwrap_or_else(|| {
                    (path.clone(), Watched::new(path.as_str(), one.project.project_id.clone()))
                });
                Job { one, watched, row: None }
            })
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let share = jobs.len().div_ceil(threads).max(FEW);
        std::thread::scope(|scope| {
            for jobs in jobs.chunks_mut(share) {
                scope.spawn(|| {
                    for Job { one, watched, row } in jobs {
                        *row = Some(watched.row(
                            &ctl.env,
                            homes.as_ref(),
                            listed(one),
                            spelling(ctl, &one.project),
                        ));
                    }
                });
            }
        });
        let mut rows = Vec::with_capacity(jobs.len());
        for Job { one, watched, row } in jobs {
            self.watched.insert(one.project.name.clone(), (one.project.path.clone(), watched));
            rows.extend(row);
        }
        rows
    }
}

/// What the registry says of a project.
fn listed(one: &Seen) -> Listed {
    let Seen { project, seen, change: _ } = one;
    let runtime = project.runtime.as_ref();
    let why = match (&seen.path, &seen.probe) {
        (PathSeen::Missing, _) if project.state != State::Running => {
            Some("its directory is not there".to_owned())
        }
        (_, Probe::NoAnswer(why)) if project.state == State::Unknown => Some(why.clone()),
        _ if project.state == State::Unknown => Some("nobody could look".to_owned()),
        _ => None,
    };
    let killed = project.last_exit.as_ref().filter(|exit| {
        project.outcome == Some(Outcome::Operator)
            && exit.signal == Some(9)
            && project.state == State::Stopped
    });
    Listed {
        name: project.name.to_string(),
        path: project.path.clone(),
        labels: project.labels.clone(),
        managed: runtime.is_some_and(|runtime| !runtime.peers_bin.is_empty()),
        kind: runtime.map(|_| "host".to_owned()),
        killed: killed.and_then(|exit| Some((exit.run_id.clone()?, exit.ts))),
        unknown: why.map(|why| Unknown {
            since: project.state_since.filter(|_| project.state == State::Unknown),
            outcome: project.outcome.map(|outcome| outcome.word().to_owned()),
            why,
        }),
    }
}

/// How the commands of a project are spelt for whoever gave this one.
pub(crate) fn spelling(ctl: &Ctl, project: &Project) -> Spelling {
    Spelling::Ctl {
        name: project.name.to_string(),
        dir: project.path.clone(),
        config_dir: ctl.config_dir.as_ref().map(|dir| dir.to_string_lossy().into_owned()),
    }
}

/// A warning about the registry as the views have it.
pub(crate) fn warning(warning: &Warning) -> FleetWarning {
    let Warning { code, project, message } = warning;
    FleetWarning { code: (*code).to_owned(), message: message.clone(), project: project.clone() }
}
