//! Taking hold of the process of a loop, to signal it (ADR 0030).
//!
//! It is whoever holds the run lock and says so in it, looked at through a process handle: the same boot, the same
//! start time, and the lock itself in that very process; having the file open is not enough. A number alone is never
//! signalled.

use std::ops::ControlFlow;
use std::time::Duration;

use peers_model::exit;
use peers_place::{Holder, Place};
use peers_store::layout;
use peers_sys::clock;
use peers_sys::identity::{has_locked, lock_holder};
use peers_sys::signal::{ProcHandle, Signal, SignalError};

use crate::boot::Finding;

/// A process that dies is seen to have closed the lock before that is free, or says its name a little late.
const SETTLING: Duration = Duration::from_millis(300);
/// How often the lock is looked at meanwhile.
pub const LOOK: Duration = Duration::from_millis(50);

/// Takes hold of the process that holds the run lock. `look` says who does, or breaks with what else is there when
/// no loop does. `who` names the loop in messages.
///
/// # Errors
/// A [`Finding`]: those of `look`, exit 4 while the loop is only about to start, 5 where its process cannot be
/// verified.
pub fn grasp<N>(
    who: &str,
    place: &Place,
    mut look: impl FnMut() -> Result<ControlFlow<N, Holder>, Finding>,
) -> Result<ControlFlow<N, (Holder, ProcHandle)>, Finding> {
    let until = clock::mono().plus(SETTLING);
    loop {
        let holder = match look()? {
            ControlFlow::Break(nobody) => return Ok(ControlFlow::Break(nobody)),
            ControlFlow::Continue(holder) => holder,
        };
        match hold(who, place, &holder) {
            Ok(handle) => return Ok(ControlFlow::Continue((holder, handle))),
            Err(finding) if clock::mono() >= until => return Err(finding),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// A handle on the process that holds the run lock, once it is known that it does.
fn hold(who: &str, place: &Place, holder: &Holder) -> Result<ProcHandle, Finding> {
    let dir = place.view_store()?;
    let lock = dir.and_then(|dir| dir.stat(layout::store::RUN_LOCK).ok().flatten()).map(|stat| stat.id);
    let unverified = |why: &str| {
        let holds = lock.and_then(lock_holder);
        let holds = holds.map_or_else(
            || "end it where it was started".to_owned(),
            |pid| format!("process {pid} holds the lock: look what it is, and end that"),
        );
        Finding::new(
            exit::REFUSED,
            format!("{who} runs, and which process it is cannot be verified: {why}"),
            format!("no process was signalled; {holds}"),
        )
    };
    if holder.command.is_some() || holder.starting {
        return Err(Finding::new(
            exit::CONFLICT,
            format!("{who} is about to start: {holder}"),
            "stop it again in a moment",
        ));
    }
    let identity =
        holder.identity.as_ref().ok_or_else(|| unverified("it does not say enough of itself in the lock"))?;
    let handle = ProcHandle::open(identity).map_err(|error| match error {
        SignalError::Gone { .. } | SignalError::Reused { .. } => {
            unverified("the process that the lock names is gone")
        }
        error => unverified(&error.to_string()),
    })?;
    // Whoever could write into the lock could have named somebody else.
    if !lock.is_some_and(|lock| has_locked(identity.pid, lock)) {
        return Err(unverified(&format!("process {} does not hold the lock", identity.pid)));
    }
    Ok(handle)
}

/// Signals the process. One that ended meanwhile is no error.
///
/// # Errors
/// A [`Finding`], exit 5, where the system does not allow it.
pub fn tell(handle: &ProcHandle, signal: Signal) -> Result<(), Finding> {
    match handle.send(signal) {
        Ok(()) | Err(SignalError::Gone { .. }) => Ok(()),
        Err(error) => Err(Finding::new(
            exit::REFUSED,
            error.to_string(),
            "it belongs to another user: stop it as that one",
        )),
    }
}

/// Tells a loop to end its turn at once, whether or not it was told to end before.
///
/// # Errors
/// As [`tell`].
pub fn hurry(handle: &ProcHandle) -> Result<(), Finding> {
    // Two of a kind could reach it as one.
    tell(handle, Signal::Term)?;
    tell(handle, Signal::Int)
}

/// Waits up to `within` for the end of the process; true if it came.
///
/// # Errors
/// A [`Finding`], exit 70, where that cannot be waited for.
pub fn ended(handle: &ProcHandle, within: Duration) -> Result<bool, Finding> {
    handle
        .wait_ended(within)
        .map_err(|error| Finding::plain(exit::BUG, format!("wait for the loop to end: {error}")))
}
