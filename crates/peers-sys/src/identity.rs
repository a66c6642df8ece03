//! Who a process is: its pid, and what makes that pid more than a number.
//!
//! A pid is recycled; a pid with its start time and the boot it belongs to is not. Everything that
//! signals a process it did not just start goes through [`ProcIdentity`].

mod pid;
pub(crate) mod stat;

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use pid::{InvalidPid, Pid};

/// The variable by which a loop in a container of its own knows its keeper.
pub(crate) const KEEPER: &str = "PEERS_KEEPER";

/// A process, told apart from every later process that gets the same pid.
///
/// The optional fields are always filled on Linux. Elsewhere they are `None`, and a process without
/// them is never signalled by its identity alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcIdentity {
    /// The process id.
    pub pid: Pid,
    /// Clock ticks between boot and the start of the process; unchanged by `exec`.
    pub start_time: Option<u64>,
    /// The boot in which `pid` and `start_time` mean something.
    pub boot_id: Option<BootId>,
    /// The process group, at the time of reading.
    pub pgid: Option<Pid>,
    /// The session, at the time of reading.
    pub session: Option<Pid>,
}

/// The kernel's name for the time between two starts of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(String);

/// Why a process could not be identified.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// There is no such process.
    #[error("find process {pid}")]
    Gone {
        /// The pid that was asked for.
        pid: Pid,
    },
    /// The kernel's file about it could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The kernel's file about it does not look as documented.
    #[error("understand {path}")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl BootId {
    /// The boot this process runs in; `None` where the system does not name it.
    #[must_use]
    pub fn current() -> Option<Self> {
        crate::clock::boot_id().map(|id| Self(id.to_owned()))
    }

    /// The text, a UUID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ProcIdentity {
    /// This process.
    ///
    /// # Errors
    /// [`IdentityError`] if `/proc` cannot be read on Linux.
    pub fn of_self() -> Result<Self, IdentityError> {
        Self::of(Pid::of_self())
    }

    /// The process that has `pid` now, zombies included.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] if there is none, the others if `/proc` is unreadable.
    #[cfg(target_os = "linux")]
    pub fn of(pid: Pid) -> Result<Self, IdentityError> {
        Ok(Self::from_stat(&stat::read(pid)?, BootId::current()))
    }

    /// The process that has `pid` now; nothing is known that would tell it from a later one.
    ///
    /// # Errors
    /// None on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn of(pid: Pid) -> Result<Self, IdentityError> {
        Ok(Self { pid, start_time: None, boot_id: None, pgid: None, session: None })
    }

    pub(crate) fn from_stat(stat: &stat::ProcStat, boot_id: Option<BootId>) -> Self {
        Self {
            pid: stat.pid,
            start_time: Some(stat.start_time),
            boot_id,
            pgid: stat.pgid,
            session: stat.session,
        }
    }
}

/// Whether exactly this process still runs: same boot, same start time, not a zombie.
///
/// An identity without start time or boot is never alive where the system could have told them.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_alive(identity: &ProcIdentity) -> bool {
    let ProcIdentity { pid, start_time: Some(start_time), boot_id: Some(boot_id), .. } = identity else {
        return false;
    };
    BootId::current().is_some_and(|now| now == *boot_id)
        && stat::read(*pid).is_ok_and(|now| now.start_time == *start_time && !now.is_dead())
}

/// What the kernel says of an open file is shorter, in bytes.
#[cfg(target_os = "linux")]
const FDINFO: u64 = 16 * 1024;

/// Whether process `pid` holds the lock of this very file (`flock`, exclusive). Having the file open is not enough,
/// nor is standing in it. False where that cannot be looked at, as for a process of another user. Nothing is asked of
/// a file system that may never answer, whatever that process has open.
#[cfg(target_os = "linux")]
#[must_use]
pub fn has_locked(pid: Pid, file: crate::dir::FileId) -> bool {
    let dir = std::path::Path::new("/proc").join(pid.to_string());
    let Ok(open) = std::fs::read_dir(dir.join("fdinfo")) else { return false };
    open.flatten().any(|entry| {
        is_locked_there(&entry.path(), file.ino) && is_file(&dir.join("fd").join(entry.file_name()), file)
    })
}

/// Whether this very descriptor has a lock of a file with this number: the kernel names none that another descriptor
/// of the same file has.
#[cfg(target_os = "linux")]
fn is_locked_there(fdinfo: &std::path::Path, ino: u64) -> bool {
    use std::io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(fdinfo).and_then(|file| file.take(FDINFO).read_to_string(&mut text));
    // `lock:	1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF`, see proc_pid_fdinfo(5).
    let ino = format!(":{ino}");
    read.is_ok()
        && text.lines().filter_map(|line| line.strip_prefix("lock:")).any(|lock| {
            let words: Vec<&str> = lock.split_whitespace().collect();
            words.contains(&"FLOCK")
                && words.contains(&"WRITE")
                && words.iter().any(|word| word.ends_with(&ino))
        })
}

/// Whether this descriptor leads to the file, by what the kernel has of it at hand.
#[cfg(target_os = "linux")]
fn is_file(descriptor: &std::path::Path, file: crate::dir::FileId) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    // Follows the link, which leads to what is open, whatever it was called.
    let stat = statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::INO);
    stat.is_ok_and(|stat| {
        (makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino) == (file.dev, file.ino)
    })
}

/// The process that [`has_locked`] finds for this file, of all that may be looked at.
#[cfg(target_os = "linux")]
#[must_use]
pub fn lock_holder(file: crate::dir::FileId) -> Option<Pid> {
    let all = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::new);
    pids.into_iter().find(|pid| has_locked(*pid, file))
}

/// Whether process `pid` holds the lock of this file: nobody can tell here.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn has_locked(_pid: Pid, _file: crate::dir::FileId) -> bool {
    false
}

/// The process that holds the lock of this file: nobody can tell here.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn lock_holder(_file: crate::dir::FileId) -> Option<Pid> {
    None
}

/// Whether some process has this pid; the system tells no more.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_alive(identity: &ProcIdentity) -> bool {
    match rustix::process::test_kill_process(identity.pid.raw()) {
        Ok(()) => true,
        Err(errno) => errno == rustix::io::Errno::PERM,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_no_other_with_its_pid_is() {
        let me = ProcIdentity::of_self().unwrap();
        assert!(is_alive(&me));
        let later = ProcIdentity { start_time: me.start_time.map(|t| t + 1), ..me.clone() };
        assert!(!is_alive(&later), "another start time is another process");
        let elsewhen = ProcIdentity { boot_id: Some(BootId("another".to_owned())), ..me.clone() };
        assert!(!is_alive(&elsewhen), "another boot is another process");
        let unknown = ProcIdentity { start_time: None, ..me };
        assert!(!is_alive(&unknown), "what cannot be verified is not claimed");
    }

    #[test]
    fn who_has_a_lock_open_does_not_hold_it() {
        use crate::lock::{Acquired, FileLock, Sharing};
        let tmp = tempfile::tempdir().unwrap();
        let dir = crate::SafeDir::open_root(tmp.path()).unwrap();
        let me = Pid::of_self();
        let take =
            || FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, std::time::Duration::ZERO).unwrap();
        let lock = take();
        assert!(matches!(lock, Acquired::Held(_)));
        let id = dir.stat("run.lock").unwrap().unwrap().id;
        assert!(has_locked(me, id));
        assert_eq!(lock_holder(id), Some(me));
        drop(lock);
        let _open = std::fs::File::open(tmp.path().join("run.lock")).unwrap();
        assert!(!has_locked(me, id));
        assert_eq!(lock_holder(id), None);
        let shared = std::fs::File::open(tmp.path().join("run.lock")).unwrap();
        shared.lock_shared().unwrap();
        assert!(!has_locked(me, id), "a look that shares it for an instant is no holder");
        drop(shared);
        drop(take());
    }

    #[test]
    fn a_pid_that_nobody_has_is_gone() {
        let pid = Pid::new(i32::MAX).unwrap();
        assert!(matches!(ProcIdentity::of(pid), Err(IdentityError::Gone { .. })));
    }

    #[test]
    fn an_identity_survives_the_journal() {
        let me = ProcIdentity::of_self().unwrap();
        let text = serde_json::to_string(&me).unwrap();
        assert_eq!(serde_json::from_str::<ProcIdentity>(&text).unwrap(), me);
    }
}
impl ProcIdentity {
    /// One word that names this process and no other one; absent where too little is known of it.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        let Self { pid, start_time, boot_id, .. } = self;
        Some(format!("{pid}.{}.{}", (*start_time)?, boot_id.as_ref()?))
    }

    /// The process that such a word names. Whether it is there is not looked at.
    #[must_use]
    pub fn of_label(label: &str) -> Option<Self> {
        let mut parts = label.splitn(3, '.');
        let pid = Pid::new(parts.next()?.parse().ok()?)?;
        let start_time = Some(parts.next()?.parse().ok()?);
        let boot_id = Some(BootId(parts.next()?.to_owned()));
        Some(Self { pid, start_time, boot_id, pgid: None, session: None })
    }

    /// Who this process is for whoever looks from outside: the keeper of its container, which passes signals on and
    /// holds its lock as well; else itself. Absent where the system does not tell.
    #[must_use]
    pub fn known_as() -> Option<Self> {
        keeper().or_else(|| Self::of_self().ok())
    }

    /// The process id of that one.
    #[must_use]
    pub fn known_pid() -> u32 {
        let pid = keeper().and_then(|keeper| u32::try_from(keeper.pid.get()).ok());
        pid.unwrap_or_else(std::process::id)
    }
}

/// Whether this process is a loop in a container of its own.
#[must_use]
pub fn is_kept_loop() -> bool {
    keeper().is_some()
}

fn keeper() -> Option<ProcIdentity> {
    ProcIdentity::of_label(std::env::var_os(KEEPER)?.to_str()?)
}
