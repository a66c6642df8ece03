//! Why a synchronous effect gave no answer, and what the machine is told of it.

use peers_core::machine::Event;
use peers_model::outcome::{ErrorKind, TamperKind};
use peers_store::{DiskError, DiskErrorKind, StoreError};

use super::composing::Unread;
use crate::notes::Unsealed;
use crate::ports::RepoFailure;

/// Why a synchronous effect gave no answer.
pub(super) enum Failure {
    Git(String),
    DiskFull(String),
    Tampered(TamperKind, String),
    Store(StoreError),
}

impl From<RepoFailure> for Failure {
    fn from(failure: RepoFailure) -> Self {
        match failure {
            RepoFailure::Git(detail) => Self::Git(detail),
            RepoFailure::DiskFull(detail) => Self::DiskFull(detail),
            RepoFailure::Weakened(detail) => Self::Tampered(TamperKind::History, detail),
            failure @ RepoFailure::Tampered { .. } => Self::Tampered(TamperKind::Git, failure.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        Self::Store(error.into())
    }
}

impl From<Unread> for Failure {
    fn from(error: Unread) -> Self {
        match error {
            Unread::Repo(failure) => failure.into(),
            Unread::Disk(error) => error.into(),
        }
    }
}

impl From<Unsealed> for Failure {
    fn from(unsealed: Unsealed) -> Self {
        match unsealed {
            Unsealed::Changed(file) => Self::Tampered(
                TamperKind::Store,
                format!("{file} in the trusted store is not what was sealed"),
            ),
            Unsealed::Disk(error) => error.into(),
        }
    }
}

impl Failure {
    /// A repository that cannot be read is the lesser news when somebody touched the control plane. Of the
    /// repository itself the failure says more.
    pub(super) fn or_tamper(failure: RepoFailure, tamper: Option<(TamperKind, String)>) -> Self {
        match tamper {
            Some((TamperKind::Git, _)) if matches!(failure, RepoFailure::Tampered { .. }) => failure.into(),
            Some((kind, detail)) => Self::Tampered(kind, detail),
            None => failure.into(),
        }
    }

    pub(super) fn event(self) -> Event {
        match self {
            Self::Git(detail) => Event::Failed { kind: ErrorKind::Git, detail },
            Self::DiskFull(detail) => Event::Failed { kind: ErrorKind::DiskFull, detail },
            Self::Tampered(kind, detail) => Event::Tampered { kind, detail },
            Self::Store(error) => {
                let kind = match error.disk().map(|d| d.kind) {
                    Some(DiskErrorKind::Full) => ErrorKind::DiskFull,
                    _ => ErrorKind::Io,
                };
                Event::Failed { kind, detail: error.to_string() }
            }
        }
    }
}
