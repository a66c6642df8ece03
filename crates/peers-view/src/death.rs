//! How a turn died, so that it can be compared with another one.

use peers_model::outcome::ExitClass;

use crate::diagnostic::known_reason;

/// How a turn died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Death {
    /// Its process was killed by a signal that was not ours.
    Signal(i32),
    /// It failed with this reason. Untrusted text.
    Error(String),
    /// Its process ended with this exit code, and nothing else is known.
    Code(i32),
}

impl Death {
    /// How a turn that failed died, as far as that can be told apart.
    pub(crate) fn of(
        class: ExitClass,
        (signal, code): (Option<i32>, Option<i32>),
        reason: Option<&str>,
    ) -> Option<Self> {
        match (class, signal) {
            (ExitClass::Signal, Some(signal)) => Some(Self::Signal(signal)),
            _ => match known_reason(reason) {
                Some(reason) => Some(Self::Error(reason.to_owned())),
                None => code.filter(|code| *code != 0).map(Self::Code),
            },
        }
    }
}
