//! Signals that ask a program to end, for one that has no runtime: it is told instead of being ended.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

/// The number under which [`Interrupts`] tells of SIGTSTP.
pub const SUSPEND: i32 = 20;

/// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end this process; whoever has this is told.
#[derive(Debug)]
pub struct Interrupts {
    told: Receiver<i32>,
}

impl Interrupts {
    /// Takes these signals over. To be called while this is the only thread: those that are started later
    /// leave the signals alone too.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub fn take() -> io::Result<Self> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT])
    }

    /// The same, and of SIGTSTP ([`SUSPEND`]), for a program that puts the terminal back before it stops.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub fn take_with_suspend() -> io::Result<Self> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGTSTP])
    }

    fn of(signals: &[Signal]) -> io::Result<Self> {
        let mut set = SigSet::empty();
        for signal in signals {
            set.add(*signal);
        }
        set.thread_block().map_err(io::Error::from)?;
        let (tell, told) = channel();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while let Ok(signal) = set.wait() {
                // Nobody listens any more: the process is at its end.
                if tell.send(i32::from(signal_number(signal))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { told })
    }

    /// Waits up to `timeout`, and gives the signal that came, if one did.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<i32> {
        match self.told.recv_timeout(timeout) {
            Ok(signal) => Some(signal),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

fn signal_number(signal: Signal) -> u8 {
    match signal {
        Signal::SIGHUP => 1,
        Signal::SIGINT => 2,
        Signal::SIGQUIT => 3,
        Signal::SIGTSTP => 20,
        _ => 15,
    }
}
