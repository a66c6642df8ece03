//! One controller at a time is about a project: it holds the op lock in the project's trusted store, which all
//! registries that know the project share.

use std::time::Duration;

use peers_model::{Timestamp, exit};
use peers_place::Place;
use peers_run::boot::Finding;
use peers_store::layout;
use peers_sys::dir::{FileId, SafeDir};
use peers_sys::identity::Pid;
use peers_sys::lock::{Acquired, FileLock, Probe, Sharing};
use peers_sys::{clock, term};
use serde::{Deserialize, Serialize};

/// So long one who has taken it is waited for to say its name.
const SETTLING: Duration = Duration::from_millis(500);
/// A start, and a stop without a grace of its own, take less.
const LONG: Duration = Duration::from_mins(1);
/// How often it is tried meanwhile.
const LOOK: Duration = Duration::from_millis(10);
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

/// What came of trying to take it.
enum Tried {
    /// It is held.
    Taken(OpLock),
    /// Somebody else has it, who says so.
    Refused(Finding),
    /// Somebody else has it, and nobody knows who.
    Unnamed,
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
        let mut patience = wait.max(PATIENCE);
        // Who has just taken it says its name a little later.
        let until = clock::mono().plus(patience + SETTLING);
        loop {
            let found = Self::try_in(store, op, patience)?;
            match found {
                Tried::Taken(lock) => return Ok(lock),
                Tried::Refused(finding) => return Err(finding),
                Tried::Unnamed if clock::mono() < until => patience = LOOK,
                Tried::Unnamed => return Err(unnamed(store)),
            }
        }
    }

    fn try_in(store: &SafeDir, op: &str, patience: Duration) -> Result<Tried, Finding> {
        let acquired = FileLock::acquire(store, layout::store::OP_LOCK, Sharing::Exclusive, patience)
            .map_err(|error| Finding::from(&error))?;
        Ok(match acquired {
            Acquired::Held(mut lock) => {
                let operation = Operation { pid: std::process::id(), op: op.to_owned(), since: clock::now() };
                let text = serde_json::to_string(&operation).unwrap_or_default();
                // For whoever waits; what cannot be written is not told.
                let _untold = lock.write(format!("{text}\n").as_bytes());
                Tried::Taken(Self { _lock: lock })
            }
            Acquired::Busy { content } => {
                if let Some(operation) = said_by_its_holder(store, &content) {
                    let hint = if clock::now().since(operation.since) <= LONG {
                        "it is done in a moment; --wait-lock 30s waits for it".to_owned()
                    } else {
                        format!(
                            "a stop with a long --grace takes so long; else process {} hangs, and keeps everybody out until it is ended",
                            operation.pid
                        )
                    };
                    Tried::Refused(Finding::new(exit::CONFLICT, operation.to_string(), hint))
                } else {
                    Tried::Unnamed
                }
            }
        })
    }

    /// Who holds it, if somebody does, and what for where that is the one who says it. The look itself is a shared
    /// lock for an instant.
    ///
    /// # Errors
    /// A [`Finding`] when it cannot be looked at.
    pub fn holder(store: &SafeDir) -> Result<Option<Option<Operation>>, Finding> {
        let probe =
            FileLock::probe_shared(store, layout::store::OP_LOCK).map_err(|error| Finding::from(&error))?;
        Ok(match probe {
            Probe::Held { content } => Some(said_by_its_holder(store, &content)),
            Probe::Free { .. } | Probe::Missing => None,
        })
    }
}

/// That somebody has it who is no controller, or hangs before it says so.
fn unnamed(store: &SafeDir) -> Finding {
    let who = lock_id(store).and_then(peers_sys::identity::lock_holder);
    let who =
        who.map_or_else(|| "a process that is not visible here".to_owned(), |pid| format!("process {pid}"));
    let path = store.path().join(layout::store::OP_LOCK);
    Finding::new(
        exit::CONFLICT,
        format!(
            "{who} holds the lock of controllers and does not say what for: {}",
            term::inline(&path.to_string_lossy())
        ),
        "a controller says so in an instant, and is done in a moment: --wait-lock 30s waits for it; a process that is none keeps everybody out until it is ended",
    )
}

/// What the lock says, where the process that it names holds it: what the one before it left says nothing of this
/// one, and anybody can write.
fn said_by_its_holder(store: &SafeDir, content: &[u8]) -> Option<Operation> {
    let operation: Operation = serde_json::from_slice(content).ok()?;
    if !cfg!(target_os = "linux") {
        return Some(operation);
    }
    let pid = i32::try_from(operation.pid).ok().and_then(Pid::new)?;
    peers_sys::identity::has_locked(pid, lock_id(store)?).then_some(operation)
}

fn lock_id(store: &SafeDir) -> Option<FileId> {
    Some(store.stat(layout::store::OP_LOCK).ok()??.id)
}
