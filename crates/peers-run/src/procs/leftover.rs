//! What a child leaves behind, and the quick way to know that it left nothing.
//!
//! As a subreaper we adopt whatever outlives its parent, so a leftover is a direct child of ours
//! that we did not start. The kernel lists direct children in one small file; only when a stranger
//! is among them the whole of `/proc` is searched.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use peers_model::{GoalId, RunId, TickNo};
use peers_sys::SafeDir;
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::reap::{self, Guard, Orphans, Sweep, SweepReport};

/// Threads of ours, and bytes of one list.
const THREADS: usize = 1024;
const LIST: u64 = 1024 * 1024;
/// More than the kernel lets arguments and environment have together by default.
const ENVIRON: u64 = 8 * 1024 * 1024;

/// Who belongs to us.
#[derive(Debug)]
pub(super) struct Kin {
    run: RunId,
    /// A run that no process carries: to sweep by descent alone.
    nobody: RunId,
    subreaper: bool,
    /// When we started, in clock ticks since boot.
    since: Option<u64>,
    ours: RefCell<BTreeSet<i32>>,
}

/// A child of ours, as long as it is not reaped.
#[derive(Debug)]
pub(super) struct Known {
    kin: Rc<Kin>,
    pid: i32,
}

/// What was cleared away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cleared {
    /// Processes that were ended.
    pub(super) killed: u32,
    /// Processes that could not be ended.
    pub(super) survivors: Vec<u32>,
}

impl Kin {
    /// `subreaper`: [`reap::become_subreaper`] has succeeded.
    pub(super) fn new(run: RunId, subreaper: bool) -> Self {
        let nobody = peers_sys::rand::hex::<8>().ok().and_then(|hex| RunId::new(hex).ok());
        let since = ProcIdentity::of_self().ok().and_then(|me| me.start_time);
        Self {
            nobody: nobody.unwrap_or_else(|| run.clone()),
            run,
            subreaper,
            since,
            ours: RefCell::default(),
        }
    }

    /// Remembers a child until the handle is dropped.
    pub(super) fn know(self: &Rc<Self>, pid: Pid) -> Known {
        self.ours.borrow_mut().insert(pid.get());
        Known { kin: Rc::clone(self), pid: pid.get() }
    }

    /// Whether somebody may be left that we did not start: surely not if false.
    pub(super) fn strangers(&self) -> bool {
        !self.subreaper || direct_children().is_none_or(|all| !all.is_subset(&self.ours.borrow()))
    }

    /// Whether orphans end up with us.
    pub(super) fn adopts(&self) -> bool {
        self.subreaper
    }

    /// Ends all that a peer's or a gate's turn left, its own tree included; nobody else runs.
    pub(super) async fn clear(&self, tick: TickNo, ending: Option<Pid>, limit: Duration) -> Cleared {
        let orphans = if self.subreaper { Orphans::Kill } else { Orphans::Leave };
        self.sweep(self.run.clone(), Some(tick), ending, orphans, limit).await
    }

    /// Ends the tree and the session of one child, and nothing else.
    pub(super) async fn clear_tree(&self, leader: Pid, limit: Duration) -> Cleared {
        self.sweep(self.nobody.clone(), None, Some(leader), Orphans::Leave, limit).await
    }

    async fn sweep(
        &self,
        run: RunId,
        tick: Option<TickNo>,
        ending: Option<Pid>,
        orphans: Orphans,
        deadline: Duration,
    ) -> Cleared {
        let since = self.since;
        let work = move || {
            let ending: Vec<Pid> = ending.into_iter().collect();
            let guard = Guard { tracked: &[], ending: &ending };
            Sweep { run_id: &run, iteration: tick, since, guard, orphans, deadline }.run()
        };
        // It waits for what it kills.
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(report)) => report.into(),
            Ok(Err(error)) => {
                tracing::warn!(%error, "leftover processes were not looked for");
                Cleared::default()
            }
            Err(error) => {
                tracing::error!(%error, "the search for leftover processes broke off");
                Cleared::default()
            }
        }
    }

    /// Reaps what died after we adopted it; agents start many short-lived helpers.
    pub(super) async fn reap_adopted(&self) {
        if self.subreaper && self.strangers() {
            // What cannot be reaped now is tried again.
            let _reaped = tokio::task::spawn_blocking(|| reap::reap_zombies(&[])).await;
        }
    }

    /// How many leftovers each gate of a batch has; those without a trace of their gate under none.
    pub(super) fn owners(&self, tick: TickNo) -> BTreeMap<Option<GoalId>, u32> {
        let found = if self.subreaper {
            reap::adopted_orphans(&[])
        } else {
            reap::marked(&self.run, Some(tick), self.since)
        };
        let mut owners = BTreeMap::new();
        for identity in found.unwrap_or_default() {
            let count: &mut u32 = owners.entry(goal_of(identity.pid)).or_default();
            *count = count.saturating_add(1);
        }
        owners
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.kin.ours.borrow_mut().remove(&self.pid);
    }
}

impl Cleared {
    pub(super) fn add(&mut self, other: Self) {
        self.killed = self.killed.saturating_add(other.killed);
        self.survivors.extend(other.survivors);
    }
}

impl From<SweepReport> for Cleared {
    fn from(report: SweepReport) -> Self {
        Self {
            killed: u32::try_from(report.killed.len()).unwrap_or(u32::MAX),
            survivors: report.survivors.into_iter().map(number).collect(),
        }
    }
}

/// A pid as records hold it.
pub(super) fn number(pid: Pid) -> u32 {
    u32::try_from(pid.get()).unwrap_or(0)
}

/// Our direct children; `None` where the kernel does not list them.
fn direct_children() -> Option<BTreeSet<i32>> {
    let tasks = SafeDir::open_shared("/proc/self/task").ok()?;
    let listing = tasks.list(THREADS).ok().filter(|listing| !listing.truncated)?;
    let mut all = BTreeSet::new();
    for thread in listing.entries {
        // A thread that ended meanwhile gave its children to another one: not to be relied on then.
        let list = tasks.subdir(&thread.name).and_then(|dir| dir.read("children", LIST)).ok()?;
        let text = String::from_utf8(list).ok()?;
        for word in text.split_ascii_whitespace() {
            all.insert(word.parse().ok()?);
        }
    }
    Some(all)
}

/// The gate that a process was started for, by its environment.
fn goal_of(pid: Pid) -> Option<GoalId> {
    let dir = SafeDir::open_shared(PathBuf::from(format!("/proc/{pid}"))).ok()?;
    let environ = dir.read("environ", ENVIRON).ok()?;
    let value = environ.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(b"PEERS_GOAL_ID="))?;
    GoalId::new(std::str::from_utf8(value).ok()?).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_our_children() {
        let mut child =
            std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(direct_children().unwrap().contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!direct_children().unwrap().contains(&pid));
    }

    #[test]
    fn a_process_tells_its_gate() {
        let piped = std::process::Stdio::piped;
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "echo ready; read line"])
            .env("PEERS_GOAL_ID", "tests-pass")
            .stdin(piped())
            .stdout(piped())
            .spawn()
            .unwrap();
        // Its environment can be read once it runs its program.
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let pid = Pid::new(i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(goal_of(pid), GoalId::new("tests-pass").ok());
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
