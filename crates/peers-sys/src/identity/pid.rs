//! Process numbers that are safe to hand to the kernel.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A process id, greater than zero: it never means "my group" or "everybody" to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct Pid(rustix::process::Pid);

/// A number that no process can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is not a process id")]
pub struct InvalidPid(pub i32);

impl Pid {
    /// A pid from a positive number.
    #[must_use]
    pub fn new(number: i32) -> Option<Self> {
        if number > 0 { rustix::process::Pid::from_raw(number).map(Self) } else { None }
    }

    /// This process.
    #[must_use]
    pub fn of_self() -> Self {
        Self(rustix::process::getpid())
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0.as_raw_pid()
    }

    /// Whether this is the first process of its pid namespace.
    #[must_use]
    pub const fn is_init(self) -> bool {
        self.get() == 1
    }

    pub(crate) const fn raw(self) -> rustix::process::Pid {
        self.0
    }

    /// A pid that came from the kernel.
    pub(crate) const fn from_raw(raw: rustix::process::Pid) -> Self {
        Self(raw)
    }
}

impl PartialOrd for Pid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pid({})", self.get())
    }
}

impl TryFrom<i32> for Pid {
    type Error = InvalidPid;

    fn try_from(number: i32) -> Result<Self, InvalidPid> {
        Self::new(number).ok_or(InvalidPid(number))
    }
}

impl From<Pid> for i32 {
    fn from(pid: Pid) -> Self {
        pid.get()
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_special_meaning_to_kill_are_not_pids() {
        assert_eq!(Pid::new(0), None);
        assert_eq!(Pid::new(-1), None);
        assert!(serde_json::from_str::<Pid>("0").is_err());
        assert_eq!(serde_json::from_str::<Pid>("7").unwrap().get(), 7);
    }
}
