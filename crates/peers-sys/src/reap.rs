//! Leftovers: finding, killing and reaping what a child of ours leaves behind.
//!
//! Two nets. The *marker*: everything we start carries the run and the iteration in its environment,
//! and so does what it starts, unless it takes care not to. The *tree*: a process whose parent ends
//! is adopted by us, since we are a subreaper ([`become_subreaper`]); so whatever it does, it stays
//! below us. What is tracked is spared by both: each child from [`crate::spawn`] that is not reaped
//! yet, and what else the caller names; while it lives, also all that is below it or in its session.
//!
//! All children of this process should come from [`crate::spawn`]: any other looks like an orphan.
//! Nothing here waits for "any child", which would steal exits from whoever waits for them.

mod hunt;
mod kill;
mod still;
mod table;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use peers_model::{RunId, TickNo};
use thiserror::Error;

pub use kill::{reap_zombies, tear_down};
pub use still::{Stillness, stillness};
use table::ProcTable;

use crate::identity::{BootId, IdentityError, Pid, ProcIdentity};
use crate::spawn::live;

/// The variable that holds the run's id in every process of a run.
pub const RUN_MARKER: &str = "PEERS_RUN_ID";
/// The variable that holds the number of the tick.
pub const ITERATION_MARKER: &str = "PEERS_ITERATION";

/// How long [`sweep_tick`] goes on.
pub const SWEEP_DEADLINE: Duration = Duration::from_secs(5);

/// Why leftovers could not be looked for.
#[derive(Debug, Error)]
pub enum ReapError {
    /// `/proc` could not be listed.
    #[error("list processes")]
    List {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process could not be identified: our own, or one whose file cannot be read.
    #[error("identify processes")]
    Identity(#[from] IdentityError),
    /// The kernel refused to make us a subreaper.
    #[error("adopt orphaned processes")]
    Subreaper {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What a sweep did. Survivors are worth a warning; in strict mode they fail the tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct SweepReport {
    /// Processes that were killed and are gone.
    pub killed: Vec<Pid>,
    /// Processes that still ran at the deadline.
    pub survivors: Vec<Pid>,
    /// No process was seen to survive, but up to the deadline there was always another one that had
    /// just ended, so something may still be starting them.
    pub restless: bool,
}

/// Who is spared. Ourselves, our ancestors and the first process of the namespace always are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guard<'a> {
    /// Leaders to be spared, besides the children that [`crate::spawn`] knows; while they live, also
    /// what is below them or in their session. What has left both is spared by nobody.
    pub tracked: &'a [Pid],
    /// Children from [`crate::spawn`] that are not spared although they are not reaped yet, since
    /// they are being ended. Any other pid is ignored.
    pub ending: &'a [Pid],
}

/// What to do about processes below us that nobody tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// Kill them.
    Kill,
    /// Leave them: a peer is alive, and they may be its own background jobs.
    Leave,
}

/// A sweep in full; [`sweep_tick`] is the usual one.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    /// The run whose marker is looked for.
    pub run_id: &'a RunId,
    /// The tick whose marker is looked for; `None` for the whole run.
    pub iteration: Option<TickNo>,
    /// Clock ticks since boot; the environment of older processes is not read. See
    /// [`ProcIdentity::start_time`].
    pub since: Option<u64>,
    /// Who is spared. All that is below `ending` or in its session is killed, whatever its marker.
    pub guard: Guard<'a>,
    /// Whether the second net is used.
    pub orphans: Orphans,
    /// How long to go on.
    pub deadline: Duration,
}

/// The marker as environment variables.
#[must_use]
pub fn marker_env(run_id: &RunId, iteration: TickNo) -> [(OsString, OsString); 2] {
    [(RUN_MARKER.into(), run_id.as_str().into()), (ITERATION_MARKER.into(), iteration.to_string().into())]
}

/// Makes orphans below us our children, from now on. Not inherited by children.
///
/// # Errors
/// [`ReapError::Subreaper`]; elsewhere than on Linux always.
pub fn become_subreaper() -> Result<(), ReapError> {
    #[cfg(target_os = "linux")]
    let result = rustix::process::set_child_subreaper(Some(Pid::of_self().raw())).map_err(io::Error::from);
    #[cfg(not(target_os = "linux"))]
    let result: io::Result<()> = Err(io::ErrorKind::Unsupported.into());
    result.map_err(|source| ReapError::Subreaper { source })
}

/// Kills and reaps what a tick left behind: both nets, five seconds.
///
/// It blocks until all is gone. `tracked` is spared, as are all children that are not reaped yet.
///
/// # Errors
/// [`ReapError`] if leftovers could not be looked for.
pub fn sweep_tick(
    run_id: &RunId,
    iteration: Option<TickNo>,
    tracked: &[Pid],
) -> Result<SweepReport, ReapError> {
    let sweep = Sweep {
        run_id,
        iteration,
        since: ProcIdentity::of_self()?.start_time,
        guard: Guard { tracked, ending: &[] },
        orphans: Orphans::Kill,
        deadline: SWEEP_DEADLINE,
    };
    sweep.run()
}

impl Sweep<'_> {
    /// Kills and reaps until nothing is left, or the deadline has passed.
    ///
    /// # Errors
    /// [`ReapError`] if leftovers could not be looked for.
    pub fn run(&self) -> Result<SweepReport, ReapError> {
        let Self { run_id, iteration, since, guard, orphans, deadline } = *self;
        let related = |table: &ProcTable, live: &Pids| {
            // A leader that is reaped may have left its number to somebody else.
            let ending: Vec<Pid> = guard.ending.iter().copied().filter(|pid| live.contains(pid)).collect();
            let mut found = table.trees(&ending);
            if orphans == Orphans::Kill {
                found.extend(table.below(&[Pid::of_self()]));
            }
            found
        };
        // Not under the lock: to read an environment is to read a foreign process's memory, which
        // can take as long as it likes. So only what no relation settles is read.
        let list = || {
            let table = ProcTable::scan()?;
            let live = live::lock().clone();
            let mut settled = table.spared(guard, &live);
            settled.extend(related(&table, &live));
            let marked = table.marked(run_id, iteration, since, |pid| !settled.contains(&pid));
            Ok(identities(&table, &marked))
        };
        kill::tear_down_with(list, related, guard, orphans, deadline)
    }
}

/// The living processes of our user whose environment carries the marker, ourselves and our
/// ancestors included.
///
/// Processes started before `since` (clock ticks since boot) are not looked at.
///
/// # Errors
/// [`ReapError::List`] or [`ReapError::Identity`].
pub fn marked(
    run_id: &RunId,
    iteration: Option<TickNo>,
    since: Option<u64>,
) -> Result<Vec<ProcIdentity>, ReapError> {
    let table = ProcTable::scan()?;
    Ok(identities(&table, &table.marked(run_id, iteration, since, |_| true)))
}

/// The living processes below `pid`, without itself.
///
/// # Errors
/// [`ReapError::List`] or [`ReapError::Identity`].
pub fn descendants(pid: Pid) -> Result<Vec<ProcIdentity>, ReapError> {
    let table = ProcTable::scan()?;
    Ok(identities(&table, &table.below(&[pid])))
}

/// Our living direct children that nobody tracks: orphans that we adopted.
///
/// # Errors
/// [`ReapError::List`] or [`ReapError::Identity`].
pub fn adopted_orphans(tracked: &[Pid]) -> Result<Vec<ProcIdentity>, ReapError> {
    let table = ProcTable::scan()?;
    let spared = table.spared(Guard { tracked, ending: &[] }, &live::lock().clone());
    let children = table.children_of(Pid::of_self());
    Ok(identities(&table, children.iter().filter(|pid| !spared.contains(pid))))
}

/// Living orphans of our user that began at `since` (clock ticks since boot) or later, work in one of `dirs`,
/// and do not carry the marker of `run_id`: they may be what a killed run left and nobody can tell.
///
/// A shell or an editor of the operator is none: somebody but the init process is its parent.
///
/// # Errors
/// [`ReapError::List`] or [`ReapError::Identity`].
pub fn strays(dirs: &[PathBuf], run_id: &RunId, since: u64) -> Result<Vec<ProcIdentity>, ReapError> {
    let table = ProcTable::scan()?;
    let spared = table.spared(Guard::default(), &live::lock().clone());
    let orphans: Pids = table.orphans(since).filter(|pid| !spared.contains(pid)).collect();
    let marked = table.marked(run_id, None, Some(since), |pid| orphans.contains(&pid));
    let there = |pid: &Pid| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        cwd.is_ok_and(|cwd| dirs.iter().any(|dir| cwd.starts_with(dir)))
    };
    let found: Vec<Pid> = orphans.into_iter().filter(|pid| !marked.contains(pid) && there(pid)).collect();
    Ok(identities(&table, &found))
}

/// The identities of those of `pids` that live.
fn identities<'a>(table: &ProcTable, pids: impl IntoIterator<Item = &'a Pid>) -> Vec<ProcIdentity> {
    let boot_id = BootId::current();
    let alive = pids.into_iter().filter_map(|pid| table.alive(*pid));
    alive.map(|stat| ProcIdentity::from_stat(stat, boot_id.clone())).collect()
}

type Pids = BTreeSet<Pid>;
