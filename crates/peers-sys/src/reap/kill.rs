//! Killing until nothing is left, and reaping by pid.

use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::hunt::hunt;
use super::{Guard, Orphans, Pids, ProcTable, ReapError, SweepReport, identities};
use crate::identity::{Pid, ProcIdentity};
use crate::signal::{ProcHandle, Signal, SignalError};
use crate::spawn::{RawExit, live};

/// How long one round waits for what it killed before it looks again: what does not die at once may
/// have started something else before.
const ROUND: Duration = Duration::from_millis(50);

/// Handles held at a time; a fork bomb must not use up our descriptors.
const HANDLES: usize = 64;

/// Kills what `targets` lists, again and again, until nothing is left or `deadline` has passed;
/// reaps what of it was adopted by us.
///
/// `SIGKILL` goes to verified processes only, never to those that `guard` spares. A leader in
/// `guard.ending` is a target only if it is listed.
///
/// # Errors
/// [`ReapError`] of `targets`, or if processes cannot be listed.
pub fn tear_down(
    targets: impl FnMut() -> Result<Vec<ProcIdentity>, ReapError>,
    guard: Guard<'_>,
    deadline: Duration,
) -> Result<SweepReport, ReapError> {
    tear_down_with(targets, |_, _| Pids::new(), guard, Orphans::Leave, deadline)
}

/// Reaps, each by its pid, our dead children that nobody tracks; returns their pids.
///
/// # Errors
/// [`ReapError::List`] if processes cannot be listed.
pub fn reap_zombies(tracked: &[Pid]) -> Result<Vec<Pid>, ReapError> {
    // Under the lock, so that no child is between its start and its entry.
    let live = live::lock();
    Ok(reap_untracked(&ProcTable::scan()?, tracked, &live))
}

/// As [`tear_down`]; `related` picks further targets in a listing that cannot be older than a child
/// of ours, since it is made under the lock of the live ones. `orphans` says whether that includes
/// all that is below us.
pub(super) fn tear_down_with(
    mut targets: impl FnMut() -> Result<Vec<ProcIdentity>, ReapError>,
    related: impl Fn(&ProcTable, &Pids) -> Pids,
    guard: Guard<'_>,
    orphans: Orphans,
    deadline: Duration,
) -> Result<SweepReport, ReapError> {
    let end = Instant::now().checked_add(deadline);
    let mut killed = Pids::new();
    let mut quiet = Quiet::default();
    loop {
        let round = Round::strike(&targets()?, &related, guard)?;
        killed.extend(&round.killed);
        let left = end.map_or(ROUND, |end| end.saturating_duration_since(Instant::now()));
        let enough = quiet.enough(&round);
        if enough || left.is_zero() {
            let survivors = round.left;
            killed.retain(|pid| !survivors.contains(pid));
            return Ok(SweepReport {
                killed: killed.into_iter().collect(),
                restless: !enough && survivors.is_empty(),
                survivors,
            });
        }
        if orphans == Orphans::Kill && round.is_busy() {
            killed.extend(hunt(guard, &round.ended, left.min(ROUND)));
        }
        round.wait(left.min(ROUND));
    }
}

/// How sure we are that nothing is left.
///
/// A process that forks and ends, over and over, can slip through any single listing. Below us it
/// leaves a zombie that only we can reap, so a listing without one is worth a lot. Elsewhere it only
/// leaves listings in which something vanished, as other people's processes do as well.
#[derive(Debug, Default)]
struct Quiet(u32);

impl Quiet {
    const WHOLE: u32 = 10;
    const TORN: u32 = 1;
    const ENOUGH: u32 = 20;

    fn enough(&mut self, round: &Round) -> bool {
        if round.is_busy() {
            self.0 = 0;
        } else {
            self.0 += if round.torn { Self::TORN } else { Self::WHOLE };
        }
        self.0 >= Self::ENOUGH
    }
}

/// One listing, dealt with.
#[derive(Default)]
struct Round {
    /// Processes that the signal was sent to.
    killed: Vec<Pid>,
    /// Processes that lived when they were looked at.
    left: Vec<Pid>,
    handles: Vec<ProcHandle>,
    /// Leaders that no longer spare their session.
    ended: Pids,
    /// Whether orphans of ours had ended.
    reaped: bool,
    /// Whether processes vanished from the listing while it was made.
    torn: bool,
}

impl Round {
    fn strike(
        listed: &[ProcIdentity],
        related: impl Fn(&ProcTable, &Pids) -> Pids,
        guard: Guard<'_>,
    ) -> Result<Self, ReapError> {
        let live = live::lock();
        let table = ProcTable::scan()?;
        let mut round = Self {
            torn: table.is_torn(),
            ended: table.ended(guard, &live),
            reaped: !reap_untracked(&table, guard.tracked, &live).is_empty(),
            ..Self::default()
        };
        let mut done = table.spared(guard, &live);
        for identity in identities(&table, &related(&table, &live)).iter().chain(listed) {
            if done.insert(identity.pid) {
                round.kill(identity);
            }
        }
        Ok(round)
    }

    fn is_busy(&self) -> bool {
        !self.left.is_empty() || self.reaped
    }

    fn kill(&mut self, identity: &ProcIdentity) {
        let handle = match ProcHandle::open(identity) {
            Ok(handle) => handle,
            Err(SignalError::Gone { .. } | SignalError::Reused { .. }) => return,
            Err(_) => return self.left.push(identity.pid),
        };
        match handle.send(Signal::Kill) {
            Ok(()) => self.killed.push(identity.pid),
            Err(SignalError::Gone { .. }) => return,
            // Another user's process: not ours to kill, but to be reported.
            Err(_) => {}
        }
        self.left.push(identity.pid);
        if self.handles.len() < HANDLES {
            self.handles.push(handle);
        }
    }

    /// Waits until those that were killed have ended, or `slice` is over.
    fn wait(&self, slice: Duration) {
        if self.left.is_empty() {
            return;
        }
        let end = Instant::now().checked_add(slice);
        let left = || end.map_or(slice, |end| end.saturating_duration_since(Instant::now()));
        let waited: io::Result<Vec<bool>> =
            self.handles.iter().map(|handle| handle.wait_ended(left())).collect();
        if waited.is_err() || self.handles.is_empty() {
            // Nothing to wait on: the next listing tells, but it must not come at once.
            std::thread::sleep(left());
        }
    }
}

fn reap_untracked(table: &ProcTable, tracked: &[Pid], live: &Pids) -> Vec<Pid> {
    let zombies = table.zombies_of(Pid::of_self());
    zombies.filter(|pid| !live.contains(pid) && !tracked.contains(pid) && reap(*pid).is_some()).collect()
}

/// How the zombie had ended; `None` if it was not ours to reap, or not yet.
pub(super) fn reap(pid: Pid) -> Option<RawExit> {
    loop {
        match waitid(WaitId::Pid(pid.raw()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(status) => return status.as_ref().and_then(RawExit::of),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_until_enough(round: &Round) -> Option<u32> {
        let mut quiet = Quiet::default();
        (1..100).find(|_| quiet.enough(round))
    }

    #[test]
    fn two_whole_listings_or_many_torn_ones_prove_that_nothing_is_left() {
        let whole = Round::default();
        assert_eq!(rounds_until_enough(&whole), Some(2));
        let torn = Round { torn: true, ..Round::default() };
        assert_eq!(rounds_until_enough(&torn), Some(20));
    }

    #[test]
    fn a_living_process_or_a_fresh_zombie_disproves_it() {
        let living = Round { left: vec![Pid::of_self()], ..Round::default() };
        assert_eq!(rounds_until_enough(&living), None);
        let zombie = Round { reaped: true, ..Round::default() };
        assert_eq!(rounds_until_enough(&zombie), None);
        let mut quiet = Quiet::default();
        assert!(!quiet.enough(&Round::default()));
        assert!(!quiet.enough(&zombie), "it starts again");
        assert!(!quiet.enough(&Round::default()));
        assert!(quiet.enough(&Round::default()));
    }
}
