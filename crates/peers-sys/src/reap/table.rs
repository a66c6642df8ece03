//! One listing of `/proc`, and who is related to whom in it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use peers_model::{RunId, TickNo};

use super::{Guard, ITERATION_MARKER, Pids, RUN_MARKER, ReapError};
use crate::identity::stat::{self, ProcStat};
use crate::identity::{IdentityError, Pid};

/// How often an empty environment is read, and the pause after each time.
const READINGS: u8 = 3;
const EXECUTING: Duration = Duration::from_millis(1);
/// More than the kernel lets arguments and environment have together by default.
const ENVIRON_CAP: u64 = 8 * 1024 * 1024;

/// What ran at about one moment. A listing is not atomic: see [`super::tear_down`].
#[derive(Debug, Default)]
pub(super) struct ProcTable {
    rows: BTreeMap<Pid, ProcStat>,
    children: BTreeMap<Pid, Vec<Pid>>,
    torn: bool,
}

impl ProcTable {
    pub(super) fn scan() -> Result<Self, ReapError> {
        let list = |source| ReapError::List { source };
        let (mut rows, mut torn) = (Vec::new(), false);
        for entry in std::fs::read_dir("/proc").map_err(list)? {
            let name = entry.map_err(list)?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.and_then(Pid::new) else { continue };
            match stat::read(pid) {
                Ok(row) => rows.push(row),
                Err(IdentityError::Gone { .. }) => torn = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { torn, ..Self::of(rows) })
    }

    /// Whether a process ended between its listing and its reading.
    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }

    fn of(rows: Vec<ProcStat>) -> Self {
        let mut table = Self::default();
        for row in rows {
            if let Some(parent) = row.parent {
                table.children.entry(parent).or_default().push(row.pid);
            }
            table.rows.insert(row.pid, row);
        }
        table
    }

    /// The row of a process that is listed and not dead.
    pub(super) fn alive(&self, pid: Pid) -> Option<&ProcStat> {
        self.rows.get(&pid).filter(|row| !row.is_dead())
    }

    pub(super) fn children_of(&self, pid: Pid) -> &[Pid] {
        self.children.get(&pid).map_or(&[], Vec::as_slice)
    }

    /// The leaders whose session is not theirs to keep: they are dead, or ending.
    pub(super) fn ended(&self, guard: Guard<'_>, live: &Pids) -> Pids {
        let leaders = live.iter().chain(guard.tracked).copied();
        let dead = leaders.filter(|pid| self.rows.get(pid).is_some_and(ProcStat::is_dead));
        dead.chain(guard.ending.iter().copied()).collect()
    }

    /// Direct children that are dead and wait to be reaped.
    pub(super) fn zombies_of(&self, pid: Pid) -> impl Iterator<Item = Pid> {
        let children = self.children_of(pid).iter().copied();
        children.filter(|child| self.rows.get(child).is_some_and(ProcStat::is_dead))
    }

    /// All that is below `roots`, without them.
    pub(super) fn below(&self, roots: &[Pid]) -> Pids {
        let mut found = Pids::new();
        let mut open = roots.to_vec();
        while let Some(pid) = open.pop() {
            // A listing can be torn: a cycle in it must not hold us.
            open.extend(self.children_of(pid).iter().filter(|child| found.insert(**child)));
        }
        found
    }

    /// Living processes that began at `since` or later and belong to the init process, or to that of a user's
    /// session.
    pub(super) fn orphans(&self, since: u64) -> impl Iterator<Item = Pid> {
        let init = Pid::new(1);
        let of_init = move |pid: Option<Pid>| pid.is_none() || pid == init;
        let rows = self.rows.values().filter(move |row| !row.is_dead() && row.start_time >= since);
        rows.filter(move |row| {
            of_init(row.parent)
                || row.parent.is_some_and(|parent| {
                    let above = self.rows.get(&parent);
                    above.is_some_and(|above| of_init(above.parent)) && is_systemd(parent)
                })
        })
        .map(|row| row.pid)
    }

    /// The leaders, all that is in their sessions, and all that is below either.
    pub(super) fn trees(&self, leaders: &[Pid]) -> Pids {
        let mut roots = leaders.to_vec();
        let members = self.rows.values().filter(|row| row.session.is_some_and(|s| leaders.contains(&s)));
        roots.extend(members.map(|row| row.pid));
        let mut found = self.below(&roots);
        found.extend(roots);
        found
    }

    /// Who must not be touched: ourselves, our ancestors, the tracked and `live` leaders, and, of
    /// those leaders that live, the trees.
    ///
    /// What is left of a dead leader's session is its leftovers, even while it is not reaped.
    pub(super) fn spared(&self, guard: Guard<'_>, live: &Pids) -> Pids {
        let Guard { tracked, ending } = guard;
        let leaders = live.iter().chain(tracked).copied().filter(|pid| !ending.contains(pid));
        let (alive, dead): (Vec<Pid>, Vec<Pid>) = leaders.partition(|pid| self.alive(*pid).is_some());
        let mut spared = self.trees(&alive);
        spared.extend(dead);
        spared.extend(Pid::new(1));
        let mut next = Some(Pid::of_self());
        while let Some(pid) = next.take() {
            if spared.insert(pid) {
                next = self.rows.get(&pid).and_then(|row| row.parent);
            }
        }
        spared
    }

    /// The living processes of our user that carry the marker and are `wanted`, which is asked
    /// before anything is read.
    pub(super) fn marked(
        &self,
        run_id: &RunId,
        iteration: Option<TickNo>,
        since: Option<u64>,
        wanted: impl Fn(Pid) -> bool,
    ) -> Pids {
        let user = rustix::process::geteuid().as_raw();
        let run = format!("{RUN_MARKER}={run_id}");
        let iteration = iteration.map(|n| format!("{ITERATION_MARKER}={n}"));
        let carries = |pid: Pid| {
            read_environ(pid, user).is_some_and(|environ| {
                has_entry(&environ, &run) && iteration.as_ref().is_none_or(|i| has_entry(&environ, i))
            })
        };
        let rows = self.rows.values().filter(|row| !row.is_dead());
        rows.filter(|row| since.is_none_or(|since| row.start_time >= since))
            .map(|row| row.pid)
            .filter(|pid| wanted(*pid) && carries(*pid))
            .collect()
    }
}

/// The manager of a user's session, which orphans of it go to.
fn is_systemd(pid: Pid) -> bool {
    std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"systemd\n")
}

/// The environment a process was started with; `None` if it is not of our user, has gone, or may
/// not be looked at.
fn read_environ(pid: Pid, user: u32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..READINGS {
        let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
        if file.metadata().ok()?.uid() != user {
            return None;
        }
        file.take(ENVIRON_CAP).read_to_end(&mut bytes).ok()?;
        if !bytes.is_empty() {
            break;
        }
        // One that is just executing a program has no environment for a moment.
        std::thread::sleep(EXECUTING);
    }
    Some(bytes)
}

fn has_entry(environ: &[u8], entry: &str) -> bool {
    environ.split(|b| *b == 0).any(|e| e == entry.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::new(number).unwrap()
    }

    fn pids(numbers: &[i32]) -> Pids {
        numbers.iter().copied().map(pid).collect()
    }

    /// A living process `(pid, parent, session)`.
    fn row((number, parent, session): (i32, i32, i32)) -> ProcStat {
        ProcStat {
            pid: pid(number),
            parent: Pid::new(parent),
            pgid: Pid::new(session),
            session: Pid::new(session),
            state: b'S',
            threads: 1,
            start_time: 5,
        }
    }

    fn table(rows: &[(i32, i32, i32)]) -> ProcTable {
        ProcTable::of(rows.iter().copied().map(row).collect())
    }

    #[test]
    fn a_leaders_tree_includes_its_sessions_orphans_and_their_children() {
        // 10 leads; 11 below it in a session of its own; 12 left the tree, but not the session.
        let table = table(&[(10, 2, 10), (11, 10, 11), (12, 2, 10), (13, 12, 13), (14, 2, 14)]);
        assert_eq!(table.trees(&[pid(10)]), pids(&[10, 11, 12, 13]));
        assert_eq!(table.below(&[pid(10)]), pids(&[11]));
    }

    #[test]
    fn an_orphan_belongs_to_the_init_process_and_began_late_enough() {
        // 10 lost its parent, 12 has one, 13 lives outside of our view, 14 began before.
        let mut rows: Vec<ProcStat> =
            [(1, 0, 1), (10, 1, 10), (11, 5000, 11), (12, 11, 12), (13, 0, 13), (14, 1, 14)].map(row).into();
        for row in &mut rows {
            row.start_time = if [1, 14].contains(&row.pid.get()) { 4 } else { 5 };
        }
        let found: Pids = ProcTable::of(rows).orphans(5).collect();
        assert_eq!(found, pids(&[10, 13]));
    }

    #[test]
    fn a_torn_listing_with_a_cycle_is_walked_once() {
        let table = table(&[(10, 11, 10), (11, 10, 10)]);
        assert_eq!(table.below(&[pid(10)]), pids(&[10, 11]));
    }

    #[test]
    fn an_ending_leader_is_not_spared_although_it_lives() {
        let table = table(&[(10, 2, 10), (11, 10, 10), (20, 2, 20), (21, 20, 21)]);
        let guard = Guard { tracked: &[], ending: &[pid(10)] };
        let spared = table.spared(guard, &pids(&[10, 20]));
        assert!(spared.is_superset(&pids(&[1, 20, 21])));
        assert!(spared.is_disjoint(&pids(&[10, 11])));
    }

    #[test]
    fn a_tracked_leader_is_spared_with_its_tree() {
        let table = table(&[(10, 2, 10), (11, 10, 11), (12, 2, 12)]);
        let spared = table.spared(Guard { tracked: &[pid(10)], ending: &[] }, &Pids::new());
        assert!(spared.is_superset(&pids(&[10, 11])));
        assert!(!spared.contains(&pid(12)));
    }

    #[test]
    fn a_dead_leader_spares_itself_alone() {
        let mut table = table(&[(10, 2, 10), (11, 2, 10)]);
        table.rows.get_mut(&pid(10)).unwrap().state = b'Z';
        let spared = table.spared(Guard::default(), &pids(&[10]));
        assert!(spared.contains(&pid(10)));
        assert!(!spared.contains(&pid(11)), "in its session");
    }

    #[test]
    fn we_and_all_our_ancestors_are_spared() {
        let me = Pid::of_self();
        let table = table(&[(me.get(), 3, 3), (3, 2, 3), (2, 1, 2), (1, 0, 1), (4, 2, 4)]);
        let spared = table.spared(Guard::default(), &Pids::new());
        assert_eq!(spared, [me, pid(3), pid(2), pid(1)].into_iter().collect());
    }

    #[test]
    fn a_marker_is_a_whole_entry() {
        let environ = b"A=1\0PEERS_ITERATION=12\0B=PEERS_ITERATION=1\0";
        assert!(has_entry(environ, "PEERS_ITERATION=12"));
        assert!(!has_entry(environ, "PEERS_ITERATION=1"));
    }

    #[test]
    fn nothing_is_read_of_a_process_that_is_older_or_not_wanted() {
        let me = Pid::of_self();
        let table = table(&[(me.get(), 1, 1)]);
        let run = RunId::new("0123456789abcdef").unwrap();
        let never = |_| panic!("asked for a process that is too old");
        assert_eq!(table.marked(&run, None, Some(6), never), Pids::new());
        assert_eq!(table.marked(&run, None, Some(5), |_| false), Pids::new());
    }
}
