//! Catching what forks and ends faster than `/proc` can be listed.
//!
//! When a process below us ends, its children become ours in the same moment. So while a chain of
//! processes that fork and end is alive, one of our direct children belongs to it, and the kernel
//! lists those alone in microseconds. The kill then only has to come before the next fork.

use std::time::{Duration, Instant};

use super::kill::reap;
use super::{Guard, Pids};
use crate::identity::Pid;
use crate::signal::Signal;
use crate::spawn::{RawExit, live};

/// How long nothing new may happen before the hunt is left to the next listing.
const STALLED: Duration = Duration::from_millis(2);

/// How a process ends that the kill was in time for.
const KILLED: RawExit = RawExit::Signal(9);

/// Kills and reaps our untracked direct children until there is none, nothing happens any more, or
/// `limit` has passed. Returns the pids of those that were killed.
///
/// The sessions of leaders in `ended` are not spared.
pub(super) fn hunt(guard: Guard<'_>, ended: &Pids, limit: Duration) -> Pids {
    let began = Instant::now();
    let mut progress = began;
    let mut killed = Pids::new();
    while began.elapsed() < limit && progress.elapsed() < STALLED {
        // Anew each time, since starting a child waits for the lock.
        let live = live::lock();
        let quarry = untracked_children(guard, ended, &live);
        if quarry.is_empty() {
            break;
        }
        for pid in quarry {
            // By number, though unverified: a child keeps it until it is reaped, which nobody else
            // does while we hold the lock.
            let shot = rustix::process::kill_process(pid.raw(), Signal::Kill.raw()).is_ok();
            if shot && killed.insert(pid) {
                progress = Instant::now();
            }
            if let Some(exit) = reap(pid) {
                progress = Instant::now();
                if exit != KILLED {
                    killed.remove(&pid);
                }
            }
        }
        drop(live);
        std::thread::yield_now();
    }
    killed
}

fn untracked_children(guard: Guard<'_>, ended: &Pids, live: &Pids) -> Vec<Pid> {
    let leader = |pid: Pid| live.contains(&pid) || guard.tracked.contains(&pid);
    let spared = |pid: Pid| {
        // A session whose leader is outside of our namespace has no number here.
        let session = nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(pid.get()))).ok();
        let session = session.and_then(|session| Pid::new(session.as_raw()));
        leader(pid) || session.is_some_and(|s| leader(s) && !ended.contains(&s))
    };
    direct_children().into_iter().filter(|pid| !spared(*pid)).collect()
}

/// The children of our first thread, to which the kernel gives all orphans; none where the kernel
/// does not list them.
fn direct_children() -> Vec<Pid> {
    let me = Pid::of_self();
    let text = std::fs::read_to_string(format!("/proc/self/task/{me}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok().and_then(Pid::new)).collect()
}
