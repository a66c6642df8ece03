//! A child that was started, up to its reaping.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};
use thiserror::Error;

use super::{SpawnError, live};
use crate::identity::{Pid, ProcIdentity};
use crate::signal::{Signal, SignalError, signal_group};
#[cfg(target_os = "linux")]
use crate::signal::{open_pidfd, send_through, wait_readable};
use crate::stub::{Mark, StubFailure};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RawExit {
    /// It returned this code, 0 to 255.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Why an exit could not be learned.
#[derive(Debug, Error)]
pub enum WaitError {
    /// It has not ended yet.
    #[error("reap {pid}: it still runs")]
    Running {
        /// The child.
        pid: Pid,
    },
    /// Somebody else in this process reaped it, or `SIGCHLD` is ignored; its exit is lost.
    #[error("wait for {pid}: another thread reaped it")]
    Stolen {
        /// The child.
        pid: Pid,
    },
    /// Anything else.
    #[error("wait for {pid}")]
    System {
        /// The child.
        pid: Pid,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A child of ours. Dropped before it is reaped, it is killed with its group.
///
/// The order at its end: [`Child::terminate`], five seconds, [`Child::kill`]; once
/// [`Child::exited_nowait`] answers, [`Child::sweep_group`] and a sweep of what left the group;
/// [`Child::reap`] last.
#[derive(Debug)]
pub struct Child {
    identity: ProcIdentity,
    mark: Mark,
    #[cfg(target_os = "linux")]
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    reaped: Option<RawExit>,
    /// Somebody else reaped it: its numbers may belong to another process.
    stolen: bool,
    /// It keeps a container, and was not asked yet to end that at once.
    keeps: AtomicBool,
}

impl Child {
    /// Takes over a process that was just spawned; kills it if it cannot be watched.
    pub(super) fn adopt(
        mut process: std::process::Child,
        mark: Mark,
        (program, kept): (&OsStr, bool),
        live: &mut BTreeSet<Pid>,
    ) -> Result<Self, SpawnError> {
        match Self::watch(&mut process, mark, program) {
            Ok(mut child) => {
                live.insert(child.identity.pid);
                child.keeps = kept.into();
                Ok(child)
            }
            Err(error) => {
                // Both fail only if it has gone already, which is what they are for.
                let _gone = process.kill();
                let _gone = process.wait();
                Err(error)
            }
        }
    }

    fn watch(process: &mut std::process::Child, mark: Mark, program: &OsStr) -> Result<Self, SpawnError> {
        let pid = Pid::from_raw(rustix::process::Pid::from_child(process));
        #[cfg(target_os = "linux")]
        let pidfd =
            open_pidfd(pid).map_err(|source| SpawnError::Watch { program: program.to_owned(), source })?;
        let seen = ProcIdentity::of(pid)
            .map_err(|source| SpawnError::Identify { program: program.to_owned(), source })?;
        // The stub may not have reached its `setsid`: what was seen could be our own group. What it
        // will be is known, and until then nothing has that group, so a signal to it hits nobody.
        let identity = ProcIdentity { pgid: Some(pid), session: Some(pid), ..seen };
        Ok(Self {
            identity,
            mark,
            #[cfg(target_os = "linux")]
            pidfd,
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            reaped: None,
            stolen: false,
            keeps: false.into(),
        })
    }

    /// The pid, which is also the group and the session.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.identity.pid
    }

    /// The identity, for the journal.
    #[must_use]
    pub fn identity(&self) -> &ProcIdentity {
        &self.identity
    }

    /// A descriptor that becomes readable once the child has ended.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The write end of its standard input, once, if it was asked for.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// The read end of its standard output, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// The read end of its standard error, once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// How it ended, if it has; it stays a zombie.
    ///
    /// # Errors
    /// [`WaitError::Stolen`] or [`WaitError::System`].
    pub fn exited_nowait(&mut self) -> Result<Option<RawExit>, WaitError> {
        if let Some(exit) = self.reaped {
            return Ok(Some(exit));
        }
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Blocks up to `timeout` until it has ended; it stays a zombie. `None` waits for ever.
    ///
    /// # Errors
    /// [`WaitError::Stolen`] or [`WaitError::System`].
    pub fn wait_exited(&mut self, timeout: Option<Duration>) -> Result<Option<RawExit>, WaitError> {
        if self.reaped.is_none() {
            self.block(timeout)?;
        }
        self.exited_nowait()
    }

    /// Reaps it. From then on its numbers may belong to others, and nothing is signalled any more.
    ///
    /// # Errors
    /// [`WaitError::Running`] if it has not ended; nothing is changed then.
    pub fn reap(&mut self) -> Result<RawExit, WaitError> {
        if let Some(exit) = self.reaped {
            return Ok(exit);
        }
        // Under the lock: neither listed nor reaped, it would look like an orphan's zombie.
        let mut live = live::lock();
        let found = self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        let pid = self.pid();
        if !matches!(found, Ok(None)) {
            live.remove(&pid);
        }
        let exit = found?.ok_or(WaitError::Running { pid })?;
        self.reaped = Some(exit);
        Ok(exit)
    }

    /// Sends `signal` to every process of its group, also when it has ended itself.
    ///
    /// # Errors
    /// [`SignalError::Gone`] if the group has no member or the child was reaped.
    pub fn sweep_group(&self, signal: Signal) -> Result<(), SignalError> {
        let pid = self.pid();
        if self.reaped.is_some() || self.stolen {
            return Err(SignalError::Gone { pid });
        }
        signal_group(pid, signal)
    }

    /// Asks its group to end; the child alone, if it has no group yet.
    ///
    /// # Errors
    /// [`SignalError::Gone`] if it was reaped.
    pub fn terminate(&self) -> Result<(), SignalError> {
        self.pass_on(Signal::Term)
    }

    /// Sends `signal` to its group; to the child alone, if it has no group yet.
    ///
    /// # Errors
    /// [`SignalError::Gone`] if it was reaped.
    pub fn pass_on(&self, signal: Signal) -> Result<(), SignalError> {
        match self.sweep_group(signal) {
            Err(SignalError::Gone { .. }) => self.signal_leader(signal),
            other => other,
        }
    }

    /// Kills its group, and the child itself wherever it is. One that keeps a container is asked first to end that at
    /// once and to clear it away, which it does within a second; the next call kills it.
    ///
    /// # Errors
    /// [`SignalError::Gone`] if it was reaped.
    pub fn kill(&self) -> Result<(), SignalError> {
        if self.keeps.swap(false, Ordering::Relaxed) {
            return self.signal_leader(Signal::Usr1);
        }
        let group = self.sweep_group(Signal::Kill);
        match self.signal_leader(Signal::Kill) {
            Ok(()) => Ok(()),
            Err(error) => group.map_err(|_| error),
        }
    }

    /// Why the program was never run, if that is what `exit` means. `stderr` is the beginning of
    /// what the child wrote there.
    #[must_use]
    pub fn stub_failure(&self, exit: RawExit, stderr: &[u8]) -> Option<StubFailure> {
        self.mark.failure(exit, stderr)
    }

    /// What recognises a [`StubFailure`] after the child itself is gone.
    #[must_use]
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    fn wait(&mut self, options: WaitIdOptions) -> Result<Option<RawExit>, WaitError> {
        let pid = self.pid();
        loop {
            match waitid(self.wait_id(), options) {
                Ok(status) => return Ok(status.as_ref().and_then(RawExit::of)),
                Err(Errno::INTR) => {}
                Err(Errno::CHILD) => {
                    self.stolen = true;
                    return Err(WaitError::Stolen { pid });
                }
                Err(errno) => return Err(WaitError::System { pid, source: errno.into() }),
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Child {
    fn wait_id(&self) -> WaitId<'_> {
        WaitId::PidFd(self.pidfd.as_fd())
    }

    fn block(&mut self, timeout: Option<Duration>) -> Result<(), WaitError> {
        let pid = self.pid();
        match wait_readable(self.pidfd.as_fd(), timeout) {
            Ok(_) => Ok(()),
            Err(source) => Err(WaitError::System { pid, source }),
        }
    }

    fn signal_leader(&self, signal: Signal) -> Result<(), SignalError> {
        send_through(self.pidfd.as_fd(), self.pid(), signal)
    }
}

/// Without descriptors for processes, pids do: of a child that is not reaped they are safe.
#[cfg(not(target_os = "linux"))]
impl Child {
    fn wait_id(&self) -> WaitId<'_> {
        WaitId::Pid(self.pid().raw())
    }

    fn block(&mut self, timeout: Option<Duration>) -> Result<(), WaitError> {
        let began = std::time::Instant::now();
        while self.exited_nowait()?.is_none() && timeout.is_none_or(|t| began.elapsed() < t) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn signal_leader(&self, signal: Signal) -> Result<(), SignalError> {
        let pid = self.pid();
        if self.reaped.is_some() || self.stolen {
            return Err(SignalError::Gone { pid });
        }
        rustix::process::kill_process(pid.raw(), signal.raw())
            .map_err(|errno| SignalError::from_errno(pid, errno))
    }
}

impl Drop for Child {
    /// No agent outlives the one who watches it. The zombie is left to [`crate::reap`].
    fn drop(&mut self) {
        if self.reaped.is_none() {
            // It may have ended on its own; there is nobody to tell anything else.
            let _ended = self.kill();
            if self.reap().is_err() {
                live::lock().remove(&self.pid());
            }
        }
    }
}

impl RawExit {
    pub(crate) fn of(status: &WaitIdStatus) -> Option<Self> {
        let code = status.exit_status().map(Self::Code);
        code.or_else(|| status.terminating_signal().map(Self::Signal))
    }
}
