//! Whether a process tree waits for nothing but itself.
//!
//! Silence is not death: an agent may compute, or wait for an answer. A tree is *still* when no thread of
//! it runs or is blocked in a call that waits for input or output, and no byte lies unread or unsent on
//! one of its connections: every thread waits for another one, for a child, or for time to pass. Signs
//! of life only keep it alive, and what cannot be read counts as one.

use std::collections::BTreeSet;
use std::fs;

use nix::libc;

use super::table::ProcTable;
use super::{Pids, adopted_orphans};
use crate::identity::Pid;

/// Threads looked at in one tree.
const THREADS: usize = 4096;
/// Open files looked at in one tree.
const FILES: usize = 16_384;

/// What a look at a tree found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stillness {
    /// Nothing in it runs or waits for anything from outside.
    Still,
    /// A sign of life, or something that cannot be told; which, for people.
    Alive(String),
}

/// Looks at the tree and the session of `leader`, and at what was adopted by us.
///
/// Linux alone can tell; elsewhere every tree is alive.
#[must_use]
pub fn stillness(leader: Pid) -> Stillness {
    let unknown = |what: &str| Stillness::Alive(format!("{what} cannot be read"));
    let Ok(table) = ProcTable::scan() else { return unknown("the list of processes") };
    let mut tree = table.trees(&[leader]);
    let Ok(adopted) = adopted_orphans(&[]) else { return unknown("what it left behind") };
    tree.extend(adopted.into_iter().map(|identity| identity.pid));
    tree.retain(|pid| table.alive(*pid).is_some());
    if tree.is_empty() {
        return unknown("its process");
    }
    let mut threads = 0;
    for pid in &tree {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return unknown("its threads") };
        for task in tasks {
            threads += 1;
            if threads > THREADS {
                return Stillness::Alive(format!("it has more than {THREADS} threads"));
            }
            let Ok(task) = task else { return unknown("its threads") };
            if let Some(alive) = sign(&task.path()) {
                return Stillness::Alive(format!("process {pid}: {alive}"));
            }
        }
    }
    match connections(&tree) {
        None => unknown("its connections"),
        Some(true) => Stillness::Alive("bytes wait on one of its connections".to_owned()),
        Some(false) => Stillness::Still,
    }
}

/// The sign of life of one thread.
fn sign(task: &std::path::Path) -> Option<String> {
    let state = fs::read_to_string(task.join("stat")).ok().and_then(|stat| {
        // The name stands in parentheses and may hold anything.
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.bytes().next())
    });
    match state {
        Some(b'Z' | b'X') => return None,
        // Who stopped it may make it go on, and what it would wait for cannot be told.
        Some(b'T' | b't') => return Some("a thread is stopped".to_owned()),
        Some(b'S') => {}
        Some(other) => return Some(format!("a thread is in state {}", char::from(other))),
        None => return Some("a thread cannot be read".to_owned()),
    }
    let Ok(call) = fs::read_to_string(task.join("syscall")) else {
        return Some("what a thread waits for cannot be read".to_owned());
    };
    let number = call.split_whitespace().next().unwrap_or_default();
    match number.parse::<libc::c_long>() {
        Ok(number) if waits_for_itself(number) => None,
        Ok(number) => Some(format!("a thread waits in system call {number}")),
        Err(_) => Some("a thread runs".to_owned()),
    }
}

/// Calls that wait for another thread, a child, a signal, or time, and for nothing from outside.
///
/// `restart_syscall` is none: a stop makes it of a sleep, but of a `poll` as well.
fn waits_for_itself(number: libc::c_long) -> bool {
    OWN.contains(&number)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const PAUSE: libc::c_long = libc::SYS_pause;
/// Newer architectures have no such call.
#[cfg(all(target_os = "linux", not(target_arch = "x86_64")))]
const PAUSE: libc::c_long = libc::SYS_rt_sigsuspend;

#[cfg(target_os = "linux")]
const OWN: &[libc::c_long] = &[
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_yield,
    PAUSE,
];
#[cfg(not(target_os = "linux"))]
const OWN: &[libc::c_long] = &[];

/// Whether bytes wait on an established TCP connection of the tree; `None` where that cannot be read.
fn connections(tree: &Pids) -> Option<bool> {
    let mut sockets = BTreeSet::new();
    let mut files = 0;
    for pid in tree {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()? {
            files += 1;
            if files > FILES {
                return None;
            }
            // A file that was closed in between is none.
            let Ok(target) = fs::read_link(entry.ok()?.path()) else { continue };
            let inode = target
                .to_str()
                .and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok());
            sockets.extend(inode);
        }
    }
    if sockets.is_empty() {
        return Some(false);
    }
    for pid in tree {
        for name in ["tcp", "tcp6"] {
            match fs::read_to_string(format!("/proc/{pid}/net/{name}")) {
                Ok(text) if text.lines().skip(1).any(|line| has_bytes(line, &sockets)) => return Some(true),
                Ok(_) => {}
                // A kernel without that family has no such file.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
    }
    Some(false)
}

/// Whether a line of `/proc/net/tcp` is an established connection of ours with bytes in a queue.
fn has_bytes(line: &str, sockets: &BTreeSet<u64>) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, state, queues, _, _, _, _, inode, ..] = fields.as_slice() else { return false };
    let ours = inode.parse().is_ok_and(|inode: u64| sockets.contains(&inode));
    ours && *state == "01" && queues.bytes().any(|byte| byte != b'0' && byte != b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_with_bytes_counts_for_an_established_connection_of_ours() {
        let line = |state: &str, queues: &str, inode: u64| {
            format!(
                "   1: 0100007F:1F90 0100007F:D431 {state} {queues} 00:00000000 00000000  1000        0 {inode} 1 0"
            )
        };
        let ours: BTreeSet<u64> = [77].into();
        assert!(has_bytes(&line("01", "00000000:0000000A", 77), &ours));
        assert!(has_bytes(&line("01", "00000100:00000000", 77), &ours));
        assert!(!has_bytes(&line("01", "00000000:00000000", 77), &ours));
        assert!(!has_bytes(&line("0A", "00000000:0000000A", 77), &ours), "it only listens");
        assert!(!has_bytes(&line("01", "00000000:0000000A", 78), &ours), "somebody else's");
        assert!(!has_bytes("", &ours));
    }

    #[test]
    fn what_is_not_there_or_runs_is_alive() {
        assert!(matches!(stillness(Pid::new(i32::MAX).unwrap()), Stillness::Alive(_)));
        // This very thread runs while it looks.
        assert!(matches!(stillness(Pid::of_self()), Stillness::Alive(_)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn waiting_for_a_lock_a_child_or_time_is_waiting_for_itself() {
        for call in [libc::SYS_futex, libc::SYS_wait4, libc::SYS_clock_nanosleep] {
            assert!(waits_for_itself(call));
        }
        for call in [libc::SYS_read, libc::SYS_recvfrom, libc::SYS_ppoll, libc::SYS_epoll_pwait, -1] {
            assert!(!waits_for_itself(call));
        }
        assert!(!waits_for_itself(libc::SYS_restart_syscall), "of what call it is the rest is not known");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_was_stopped_or_is_traced_is_alive() {
        let task = tempfile::tempdir().unwrap();
        let sign_of = |state: &str, call: libc::c_long| {
            fs::write(task.path().join("stat"), format!("7 (a) S) {state} 1 7 7 0 -1")).unwrap();
            fs::write(task.path().join("syscall"), format!("{call} 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2"))
                .unwrap();
            sign(task.path())
        };
        assert_eq!(sign_of("S", libc::SYS_clock_nanosleep), None);
        assert_eq!(sign_of("Z", libc::SYS_read), None, "it is dead");
        for state in ["T", "t"] {
            assert_eq!(sign_of(state, libc::SYS_clock_nanosleep).as_deref(), Some("a thread is stopped"));
        }
        assert!(sign_of("R", libc::SYS_clock_nanosleep).is_some());
        assert!(sign_of("S", libc::SYS_restart_syscall).is_some());
    }
}
