//! One controller at a time is about a project: it holds the op lock in the project's trusted store, which all
//! registries that know the project share.

use std::time::Duration;

use peers_model::{Timestamp, exit};
use peers_run::boot::Finding;
use peers_run::place::Place;
use peers_store::layout;
use peers_sys::dir::SafeDir;
use peers_sys::lock::{Acquired, FileLock, Probe, Sharing};
use peers_sys::{clock, term};
use serde::{Deserialize, Serialize};

/// A look at the lock holds it for an instant: a taker tries for this long at least.
const PATIENCE: Duration = Duration::from_millis(500);

/// Who holds the op lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its process.
    pub pid: u32,
    /// What it does, such as `start`.
    pub op: String,
    /// Since when.
    pub since: Timestamp,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, op, since } = self;
        write!(f, "`{}` in progress by process {pid} since {since}", term::line(op, 40))
    }
}

/// The held lock.
#[derive(Debug)]
pub struct OpLock {
    _lock: FileLock,
}

impl OpLock {
    /// Takes it for `op`, waiting up to `wait` for somebody else to be done.
    ///
    /// # Errors
    /// A [`Finding`], exit 4, that names who holds it.
    pub fn take(place: &Place, op: &str, wait: Duration) -> Result<Self, Finding> {
        let Some(store) = place.open_store()? else {
            let has_peers = place.open_peers()?.is_some();
            return Err(place.no_store(has_peers).into());
        };
        Self::take_in(&store, op, wait)
    }

    fn take_in(store: &SafeDir, op: &str, wait: Duration) -> Result<Self, Finding> {
        let patience = wait.max(PATIENCE);
        let acquired = FileLock::acquire(store, layout::store::OP_LOCK, Sharing::Exclusive, patience)
            .map_err(|error| Finding::from(&error))?;
        match acquired {
            Acquired::Held(mut lock) => {
                let operation = Operation { pid: std::process::id(), op: op.to_owned(), since: clock::now() };
                let text = serde_json::to_string(&operation).unwrap_or_default();
                // For whoever waits; what cannot be written is not told.
                let _untold = lock.write(format!("{text}\n").as_bytes());
                Ok(Self { _lock: lock })
            }
            Acquired::Busy { content } => {
                let what = read(&content)
                    .map_or_else(|| "another controller is at work".to_owned(), |op| op.to_string());
                Err(Finding::new(
                    exit::CONFLICT,
                    what,
                    "it is done in a moment; --wait-lock 30s waits for it",
                ))
            }
        }
    }

    /// Who holds it, if somebody does. The look itself is a shared lock for an instant.
    ///
    /// # Errors
    /// A [`Finding`] when it cannot be looked at.
    pub fn holder(store: &SafeDir) -> Result<Option<Option<Operation>>, Finding> {
        let probe =
            FileLock::probe_shared(store, layout::store::OP_LOCK).map_err(|error| Finding::from(&error))?;
        Ok(match probe {
            Probe::Held { content } => Some(read(&content)),
            Probe::Free { .. } | Probe::Missing => None,
        })
    }
}

fn read(content: &[u8]) -> Option<Operation> {
    serde_json::from_slice(content).ok()
}
