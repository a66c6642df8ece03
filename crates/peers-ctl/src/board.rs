//! The rows of many loops, read together, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_console::rows::{Marks, Watched};
use peers_fleet::observe::{Observation, PathSeen, Probe};
use peers_fleet::refresh::{self, Seen};
use peers_fleet::registry::{self, Loaded, Outcome, RuntimeKind, Stamp, State, Warning};
use peers_fleet::{ConfigDir, Project, ProjectName};
use peers_model::{Mono, RunId, Timestamp, exit};
use peers_place::{Homes, Place};
use peers_store::FsDisk;
use peers_sys::clock;
use peers_view::{Asked, FleetWarning, Listed, LoopRow, LoopState, Spelling, Unknown};

use crate::ctl::{Ctl, failed};

/// The rows of the projects that are meant.
#[derive(Debug, Default)]
pub(crate) struct Board {
    watched: BTreeMap<ProjectName, One>,
    /// It looks again and again, and keeps what it saw.
    again: bool,
    /// Loops that run are not looked at anew either as long as nothing begins there, but for so long alone.
    runs: Option<Duration>,
    /// It was looked what rests, for the look that follows.
    marked: bool,
    registry: Option<(Stamp, Loaded)>,
}

/// A project that is watched.
#[derive(Debug)]
struct One {
    path: String,
    watched: Watched,
    /// As it looked before this look.
    marks: Option<Marks>,
    kept: Option<Kept>,
}

/// What was seen of a project in which nothing goes on. As long as nothing begins there, it is looked at anew only
/// now and then.
#[derive(Debug)]
struct Kept {
    project: Project,
    seen: Observation,
    row: LoopRow,
    marks: Marks,
    /// When it was looked at, and until when that is kept.
    at: Mono,
    until: Mono,
}

/// So long a project in which nothing goes on is not looked at anew, as long as nothing begins there.
const REST: Duration = Duration::from_secs(45);
/// The same of a loop that runs, for who looks all day: one look costs milliseconds.
const RUNS: Duration = Duration::from_secs(30);
/// A little of it each is looked at in every frame.
const SPREAD: u64 = 16;

/// Fewer rows than this are not worth a thread.
const FEW: usize = 16;

/// A row to be read.
struct Job<'a> {
    seen: &'a Seen,
    one: One,
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
    /// One for who looks again and again.
    pub(crate) fn live() -> Self {
        Self { again: true, ..Self::default() }
    }

    /// The same for who looks all day at loops that run: what happens without a record, such as a commit within a
    /// turn, is seen some seconds later.
    pub(crate) fn lasting() -> Self {
        Self { runs: Some(RUNS), ..Self::live() }
    }

    /// The registry, read again where it was written since.
    pub(crate) fn registry(&mut self, config: &ConfigDir) -> Result<&Loaded, CommandError> {
        let stamp = registry::stamp(config).map_err(failed)?;
        match &mut self.registry {
            Some((known, _)) if *known == stamp => {}
            slot => *slot = Some((stamp, registry::load(config).map_err(failed)?)),
        }
        let Some((_, loaded)) = &self.registry else {
            return Err(CommandError::new(exit::BUG, "the registry disappeared while it was read"));
        };
        Ok(loaded)
    }

    /// Whether nothing has begun anywhere since the last look: the rows would be the same.
    pub(crate) fn rests(&mut self, config: &ConfigDir) -> Result<bool, CommandError> {
        let before = self.registry.as_ref().map(|(stamp, _)| stamp.clone());
        self.registry(config)?;
        self.mark();
        let same = self.registry.as_ref().map(|(stamp, _)| stamp) == before.as_ref();
        let rests = same && self.watched.values().all(|one| one.kept.is_some());
        // What was looked at is for a look that follows at once.
        self.marked = !rests;
        Ok(rests)
    }

    /// Forgets what was kept of projects in which something has begun, or of which it was kept for long enough.
    fn mark(&mut self) {
        let now = clock::mono();
        for one in self.watched.values_mut() {
            // Before anything else is looked at: what begins meanwhile is seen by the next look.
            one.marks = if self.again { one.watched.marks() } else { None };
            let marks = one.marks.as_ref();
            one.kept = one.kept.take().filter(|kept| now < kept.until && Some(&kept.marks) == marks);
        }
    }

    /// Looks at them now.
    pub(crate) fn rows(
        &mut self,
        ctl: &Ctl,
        config: &ConfigDir,
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<Looked, CommandError> {
        let (seen, warnings) =
            if ctl.as_it_is { ctl.seen(config, wanted)? } else { self.seen(ctl, config, wanted)? };
        if self.watched.len() > seen.len() {
            let names: BTreeSet<&ProjectName> = seen.iter().map(|one| &one.project.name).collect();
            self.watched.retain(|name, _| names.contains(name));
        }
        let rows = self.all(ctl, &seen);
        Ok(Looked { rows, seen, warnings })
    }

    fn seen(
        &mut self,
        ctl: &Ctl,
        config: &ConfigDir,
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<(Vec<Seen>, Vec<Warning>), CommandError> {
        self.registry(config)?;
        if !std::mem::take(&mut self.marked) {
            self.mark();
        }
        let Self { watched, registry: Some((_, Loaded { registry, warnings })), .. } = self else {
            return Ok((Vec::new(), Vec::new()));
        };
        let known = |project: &Project| {
            let kept = watched.get(&project.name)?.kept.as_ref()?;
            (kept.project == *project).then(|| kept.seen.clone())
        };
        let (seen, more) = refresh::refresh_known(config, &ctl.env, registry, wanted, known);
        Ok((seen, [warnings.clone(), more].concat()))
    }

    /// The rows of all, read by a few threads.
    fn all(&mut self, ctl: &Ctl, seen: &[Seen]) -> Vec<LoopRow> {
        let homes = Homes::of(&ctl.env).ok();
        let mut jobs: Vec<Job<'_>> = seen.iter().map(|seen| self.job(seen)).collect();
        let mut open: Vec<&mut Job<'_>> = jobs.iter_mut().filter(|job| job.row.is_none()).collect();
        let runs = self.runs;
        refresh::shared(&mut open, FEW, |job| {
            let spelling = spelling(ctl, &job.seen.project);
            let row = job.one.watched.row(&ctl.env, homes.as_ref(), listed(job.seen), spelling);
            job.one.kept = job.one.marks.take().and_then(|marks| job.keep(&row, marks, runs));
            job.row = Some(row);
        });
        let mut rows = Vec::with_capacity(jobs.len());
        for Job { seen, one, row } in jobs {
            self.watched.insert(seen.project.name.clone(), one);
            rows.extend(row);
        }
        rows
    }

    /// A row to be read, or one that was.
    fn job<'a>(&mut self, seen: &'a Seen) -> Job<'a> {
        let Project { name, path, project_id, .. } = &seen.project;
        let known = self.watched.remove(name).filter(|known| known.path == *path);
        let mut one = known.unwrap_or_else(|| One {
            path: path.clone(),
            watched: Watched::new(path.as_str(), project_id.clone()),
            marks: None,
            kept: None,
        });
        one.kept = one.kept.filter(|kept| kept.project == seen.project);
        let row = one.kept.as_ref().map(Kept::now);
        Job { seen, one, row }
    }
}

impl Kept {
    /// Its row with the times in it as they are by now.
    fn now(&self) -> LoopRow {
        let passed = clock::mono().since(self.at).as_secs();
        let mut row = self.row.clone();
        let commit = row.last_commit.as_mut().map(|commit| &mut commit.age_s);
        for age in [Some(&mut row.uptime_s), Some(&mut row.tick_age_s), commit].into_iter().flatten() {
            *age = age.map(|age| age.saturating_add(passed));
        }
        row
    }
}

impl Job<'_> {
    /// What is kept of a project in which nothing goes on. `marks`: as they were before it was looked at.
    fn keep(&self, row: &LoopRow, marks: Marks, runs: Option<Duration>) -> Option<Kept> {
        let Seen { project, seen, change: _ } = self.seen;
        let at = clock::mono();
        let runs = runs.filter(|_| {
            row.state == LoopState::Running && seen.operation.is_none() && seen.path == PathSeen::Same
        });
        let idle = seen.probe == Probe::Dead && seen.operation.is_none() && seen.path == PathSeen::Same;
        let still = matches!(row.state, LoopState::Fresh | LoopState::Stopped | LoopState::Crashed);
        let rests = idle && still && project.runtime.is_none();
        let rest = runs.or(rests.then_some(REST))?;
        let spread =
            project.name.as_str().bytes().fold(0_u64, |sum, byte| sum * 31 % 8191 + u64::from(byte)) % SPREAD;
        Some(Kept {
            project: project.clone(),
            seen: seen.clone(),
            row: row.clone(),
            marks,
            at,
            until: at.plus(rest + Duration::from_secs(spread)),
        })
    }
}

/// What the registry says of a project.
pub(crate) fn listed(one: &Seen) -> Listed {
    let project = &one.project;
    let runtime = project.runtime.as_ref();
    let why = unknown(one);
    Listed {
        name: project.name.to_string(),
        path: project.path.clone(),
        labels: project.labels.clone(),
        managed: runtime.is_some_and(|runtime| !runtime.peers_bin.is_empty()),
        kind: runtime.map(|runtime| match runtime.kind {
            RuntimeKind::Host => "host".to_owned(),
            RuntimeKind::Container => "container".to_owned(),
        }),
        killed: killed(project),
        adrift: crate::adrift::of(&one.seen),
        bare: one.seen.bare,
        unknown: why.map(|why| Unknown {
            since: project.state_since.filter(|_| project.state == State::Unknown),
            outcome: project.outcome.map(|outcome| outcome.word().to_owned()),
            nobody: one.seen.path == PathSeen::Missing
                && matches!(one.seen.probe, Probe::Dead | Probe::Command(_))
                && !one.seen.alive,
            why,
        }),
    }
}

/// A loop opened for reading: where it lies, its journal, and what is asked of it.
pub(crate) fn opened(ctl: &Ctl, one: &Seen) -> Result<(Place, FsDisk, Asked), CommandError> {
    crate::adrift::refuse(&one.project, &one.seen)?;
    peers_fleet::start::located(&one.project, &ctl.env).map_err(failed)?;
    let cx = ctl.cx(&one.project);
    let (place, mut disk) = cx.view()?;
    let mut asked = cx.asked_with_refusals(&place, &mut disk);
    asked.listed = listed(one);
    Ok((place, disk, asked))
}

/// The run that its operator had killed, and when.
fn killed(project: &Project) -> Option<(RunId, Timestamp)> {
    let killed = project.last_exit.as_ref().filter(|exit| {
        project.outcome == Some(Outcome::Operator)
            && exit.signal == Some(9)
            && project.state == State::Stopped
    });
    killed.and_then(|exit| Some((exit.run_id.clone()?, exit.ts)))
}

/// Why nobody knows whether its loop runs.
pub(crate) fn unknown(one: &Seen) -> Option<String> {
    let Seen { project, seen, change: _ } = one;
    match (&seen.path, &seen.probe) {
        (PathSeen::Missing, _) if project.state != State::Running => {
            Some("its directory is missing".to_owned())
        }
        (_, Probe::NoAnswer(why)) if project.state == State::Unknown => Some(why.clone()),
        _ if project.state == State::Unknown && seen.alive => {
            let pid = project.runtime.as_ref().and_then(|runtime| runtime.pid).unwrap_or_default();
            Some(format!("process {pid}, which was started for it, is alive and does not hold the run lock"))
        }
        _ if project.state == State::Unknown => Some("its state could not be read".to_owned()),
        _ => None,
    }
}

/// How the commands of a project are spelt for whoever gave this one.
pub(crate) fn spelling(ctl: &Ctl, project: &Project) -> Spelling {
    Spelling::Ctl {
        name: project.name.to_string(),
        dir: project.path.clone(),
        config_dir: named(ctl.config_dir.as_deref()),
    }
}

/// The directory that the command line names, as it works from everywhere.
pub(crate) fn named(config_dir: Option<&Path>) -> Option<String> {
    let dir = config_dir?;
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    Some(dir.to_string_lossy().into_owned())
}

/// A warning about the registry as the views have it.
pub(crate) fn warning(warning: &Warning) -> FleetWarning {
    let Warning { code, project, message } = warning;
    FleetWarning { code: (*code).to_owned(), message: message.clone(), project: project.clone() }
}
