//! Signals that reach the process they are meant for, or nobody.
//!
//! A single process is signalled through a [`ProcHandle`], which the kernel ties to one process for
//! good. A group is signalled by number, which is only right while its leader is not yet reaped
//! ([`crate::spawn::Child`] keeps that rule for our children).

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use rustix::io::Errno;
use thiserror::Error;

#[cfg(target_os = "linux")]
use crate::identity::{BootId, IdentityError, stat};
use crate::identity::{Pid, ProcIdentity};

/// The signals that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `SIGHUP`.
    Hup,
    /// `SIGINT`.
    Int,
    /// `SIGQUIT`.
    Quit,
    /// `SIGUSR1`: a running loop stops after its tick.
    Usr1,
    /// `SIGTERM`.
    Term,
    /// `SIGKILL`.
    Kill,
}

/// Why a signal was not sent.
#[derive(Debug, Error)]
pub enum SignalError {
    /// The process, or the whole group, has ended.
    #[error("signal {pid}: it has ended")]
    Gone {
        /// The process or group.
        pid: Pid,
    },
    /// The pid belongs to another process now.
    #[error("signal {pid}: the pid belongs to another process now")]
    Reused {
        /// The pid.
        pid: Pid,
    },
    /// Nothing is known that would tell the process from a later one with its pid.
    #[error("signal {pid}: its identity cannot be verified")]
    Unverified {
        /// The pid.
        pid: Pid,
    },
    /// The group is our own, or its number would mean everybody.
    #[error("signal group {pgid}: it is ours or not a group")]
    Refused {
        /// The group.
        pgid: Pid,
    },
    /// The process, or all of the group, belongs to another user.
    #[error("signal {pid}: permission denied")]
    Denied {
        /// The process or group.
        pid: Pid,
    },
    /// Anything else.
    #[error("signal {pid}")]
    System {
        /// The process or group.
        pid: Pid,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Sends `signal` to exactly the process that `identity` names.
///
/// # Errors
/// [`SignalError::Gone`], [`SignalError::Reused`] and [`SignalError::Unverified`] mean that nobody
/// was signalled.
pub fn signal_verified(identity: &ProcIdentity, signal: Signal) -> Result<(), SignalError> {
    ProcHandle::open(identity)?.send(signal)
}

/// Ends this process as `kill -9` does: nothing is cleaned up, nobody is told.
pub fn kill_self() -> ! {
    let _dies = rustix::process::kill_process(Pid::of_self().raw(), Signal::Kill.raw());
    loop {
        std::thread::park();
    }
}

/// Lets every signal through to this thread, and to what it starts. What a program is started by may have blocked
/// some, and a child has what its parent has.
///
/// # Errors
/// When the system does not allow it.
pub fn unblock_all() -> io::Result<()> {
    nix::sys::signal::SigSet::empty().thread_set_mask().map_err(io::Error::from)
}

/// Starts something from this thread that no signal is blocked for, while this process has some blocked.
///
/// # Errors
/// When the system does not allow it, before `start`.
pub fn with_none_blocked<R>(start: impl FnOnce() -> R) -> io::Result<R> {
    let before = nix::sys::signal::SigSet::thread_get_mask()?;
    unblock_all()?;
    let started = start();
    before.thread_set_mask()?;
    Ok(started)
}

/// Ends this process by SIGTERM when its parent ends, as long as that is the process of this number.
///
/// # Errors
/// When the system does not allow it.
#[cfg(target_os = "linux")]
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let now = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    // It may have ended before.
    if now.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        rustix::process::kill_process(Pid::of_self().raw(), rustix::process::Signal::TERM)?;
    }
    Ok(())
}

/// This system has no way to be told of the end of a parent.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn end_with_parent(_parent: u32) -> io::Result<()> {
    Ok(())
}

/// Stops this process, as Ctrl-Z does, until somebody continues it.
pub fn stop_self() {
    // Nobody but the kernel can refuse that, and it does not.
    let _stopped = rustix::process::kill_process(Pid::of_self().raw(), rustix::process::Signal::STOP);
}

/// Sends `signal` to every process of group `pgid`.
///
/// The caller vouches for the number: the leader is a child of ours that is not reaped yet.
///
/// # Errors
/// [`SignalError::Refused`] for our own group and for group 1 (to the kernel, minus one is
/// everybody), [`SignalError::Gone`] if the group has no member.
pub fn signal_group(pgid: Pid, signal: Signal) -> Result<(), SignalError> {
    if pgid.is_init() || own_group() == Some(pgid) {
        return Err(SignalError::Refused { pgid });
    }
    rustix::process::kill_process_group(pgid.raw(), signal.raw())
        .map_err(|errno| SignalError::from_errno(pgid, errno))
}

/// A hold on one process: what is done through it can never hit a later one with the same pid.
#[derive(Debug)]
#[cfg(target_os = "linux")]
pub struct ProcHandle {
    pid: Pid,
    fd: OwnedFd,
}

/// This system has no way to hold on to a process that is not a child.
#[derive(Debug)]
#[cfg(not(target_os = "linux"))]
pub struct ProcHandle(std::convert::Infallible);

#[cfg(target_os = "linux")]
impl ProcHandle {
    /// Takes hold of the process that `identity` names.
    ///
    /// # Errors
    /// [`SignalError::Gone`] (zombies included), [`SignalError::Reused`] or
    /// [`SignalError::Unverified`].
    pub fn open(identity: &ProcIdentity) -> Result<Self, SignalError> {
        let pid = identity.pid;
        let (Some(start_time), Some(boot_id)) = (identity.start_time, &identity.boot_id) else {
            return Err(SignalError::Unverified { pid });
        };
        match BootId::current() {
            Some(now) if now == *boot_id => {}
            Some(_) => return Err(SignalError::Gone { pid }),
            None => return Err(SignalError::Unverified { pid }),
        }
        // In this order: the start time is read after the descriptor has pinned a process. Were
        // that an older one that died in between, the start time read would be a later one.
        let fd = open_pidfd(pid)?;
        match stat::read(pid) {
            Ok(now) if now.start_time != start_time => Err(SignalError::Reused { pid }),
            Ok(now) if now.is_dead() => Err(SignalError::Gone { pid }),
            Ok(_) => Ok(Self { pid, fd }),
            Err(IdentityError::Gone { .. }) => Err(SignalError::Gone { pid }),
            Err(_) => Err(SignalError::Unverified { pid }),
        }
    }

    /// Sends `signal`.
    ///
    /// # Errors
    /// [`SignalError::Gone`] once it has been reaped, [`SignalError::Denied`].
    pub fn send(&self, signal: Signal) -> Result<(), SignalError> {
        send_through(self.fd.as_fd(), self.pid, signal)
    }

    /// Waits up to `timeout` for its end; true if it came.
    ///
    /// # Errors
    /// Those of `poll`.
    pub fn wait_ended(&self, timeout: Duration) -> io::Result<bool> {
        wait_readable(self.fd.as_fd(), Some(timeout))
    }
}

#[cfg(not(target_os = "linux"))]
impl ProcHandle {
    /// Refuses: no process can be verified on this system.
    ///
    /// # Errors
    /// Always [`SignalError::Unverified`].
    pub fn open(identity: &ProcIdentity) -> Result<Self, SignalError> {
        Err(SignalError::Unverified { pid: identity.pid })
    }

    /// Never called, since there is no handle.
    ///
    /// # Errors
    /// None.
    pub fn send(&self, _signal: Signal) -> Result<(), SignalError> {
        match self.0 {}
    }

    /// Never called, since there is no handle.
    ///
    /// # Errors
    /// None.
    pub fn wait_ended(&self, _timeout: Duration) -> io::Result<bool> {
        match self.0 {}
    }
}

#[cfg(target_os = "linux")]
impl AsFd for ProcHandle {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Signal {
    pub(crate) fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Hup => rustix::process::Signal::HUP,
            Self::Int => rustix::process::Signal::INT,
            Self::Quit => rustix::process::Signal::QUIT,
            Self::Usr1 => rustix::process::Signal::USR1,
            Self::Term => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
        }
    }
}

impl SignalError {
    pub(crate) fn from_errno(pid: Pid, errno: Errno) -> Self {
        match errno {
            Errno::SRCH => Self::Gone { pid },
            Errno::PERM => Self::Denied { pid },
            other => Self::System { pid, source: other.into() },
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn open_pidfd(pid: Pid) -> Result<OwnedFd, SignalError> {
    use rustix::process::{PidfdFlags, pidfd_open};
    match pidfd_open(pid.raw(), PidfdFlags::empty()) {
        Ok(fd) => Ok(fd),
        // The number is a thread of another process now; which error says so depends on the kernel.
        Err(Errno::INVAL | Errno::NOENT) => Err(SignalError::Reused { pid }),
        Err(errno) => Err(SignalError::from_errno(pid, errno)),
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn send_through(fd: BorrowedFd<'_>, pid: Pid, signal: Signal) -> Result<(), SignalError> {
    rustix::process::pidfd_send_signal(fd, signal.raw()).map_err(|errno| SignalError::from_errno(pid, errno))
}

/// Waits until `fd` is readable; false if `timeout` came first. `None` waits for ever.
#[cfg(target_os = "linux")]
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let end = timeout.and_then(|t| Instant::now().checked_add(t));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Runs `child` while the keyboard's interrupt and quit are left to a program that has the terminal, as an
/// editor does: to this process they never come. Meant for a process that runs no other thread; what the
/// standard library spawns gets no blocked signals.
///
/// # Errors
/// When signals cannot be blocked, before `child`.
pub fn beside_keyboard<R>(child: impl FnOnce() -> R) -> io::Result<R> {
    use nix::sys::signal::{SigSet, Signal};
    let keys = [Signal::SIGINT, Signal::SIGQUIT];
    let (mut set, before) = (SigSet::empty(), SigSet::thread_get_mask()?);
    for key in keys {
        set.add(key);
    }
    set.thread_block()?;
    let ended = child();
    for key in keys {
        // One of our own makes sure that the wait ends; with what came meanwhile it is one and the same.
        if nix::sys::signal::kill(nix::unistd::Pid::this(), key).is_ok() {
            let mut one = SigSet::empty();
            one.add(key);
            let _taken = one.wait();
        }
    }
    before.thread_set_mask()?;
    Ok(ended)
}

/// Our process group; none that has a number where its leader is outside of our namespace. (The call of
/// `rustix` has no way to say that.)
fn own_group() -> Option<Pid> {
    Pid::new(nix::unistd::getpgrp().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_everybody_nor_our_own_group_can_be_signalled() {
        let init = Pid::new(1).unwrap();
        assert!(matches!(signal_group(init, Signal::Usr1), Err(SignalError::Refused { .. })));
        let ours = own_group().unwrap();
        assert!(matches!(signal_group(ours, Signal::Usr1), Err(SignalError::Refused { .. })));
    }

    #[test]
    fn a_group_that_does_not_exist_is_gone() {
        let nobody = Pid::new(i32::MAX).unwrap();
        assert!(matches!(signal_group(nobody, Signal::Usr1), Err(SignalError::Gone { .. })));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_of_another_boot_is_gone() {
        let mut me = ProcIdentity::of_self().unwrap();
        me.boot_id = Some(serde_json::from_str("\"another\"").unwrap());
        assert!(matches!(ProcHandle::open(&me), Err(SignalError::Gone { .. })));
    }

    #[test]
    fn an_identity_without_a_start_time_is_not_signalled() {
        let mut me = ProcIdentity::of_self().unwrap();
        me.start_time = None;
        assert!(matches!(signal_verified(&me, Signal::Usr1), Err(SignalError::Unverified { .. })));
    }
}
