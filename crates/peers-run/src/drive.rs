//! The loop around the engine: brings what happened, one thing at a time, until it has stopped.

use std::future::ready;
use std::io;

use peers_core::machine::{Event, StopRequest};
use peers_model::outcome::StopReason;
use tokio::task::{LocalSet, yield_now};

use crate::engine::Engine;
use crate::inputs::Signals;
use crate::ports::World;
use crate::procs::{Arriving, RealProcs};

/// Feeds the engine until it has stopped and nothing that it started runs any more.
///
/// The engine is started already. Answers that wait come first; between any two of them signals are
/// looked at, so a long chain of them can be stopped.
pub async fn drive<W: World<Procs = RealProcs>>(
    engine: &mut Engine<W>,
    arriving: &mut Arriving,
    signals: &mut Signals,
) -> StopReason {
    loop {
        if let Some(reason) = engine.stopped().cloned() {
            let finished = engine.world().procs().finish();
            finished.await;
            return reason;
        }
        if let Some(request) = waiting(signals).await {
            engine.feed(Event::Stop(request));
        } else if let Some(event) = engine.next_pending() {
            engine.feed(event);
        } else {
            // Both arms can be dropped at any await: what was not taken stays where it is.
            let event = tokio::select! {
                biased;
                request = signals.next() => Event::Stop(request),
                Some(event) = arriving.recv() => event,
            };
            engine.feed(event);
        }
    }
}

/// A signal that has come already.
async fn waiting(signals: &mut Signals) -> Option<StopRequest> {
    // Lets the runtime see what the kernel has for us.
    yield_now().await;
    tokio::select! {
        biased;
        request = signals.next() => Some(request),
        () = ready(()) => None,
    }
}

/// Runs `future` on this thread, with all that [`RealProcs`] needs around it. The thread must live
/// as long as what is started on it: children end with it.
///
/// # Errors
/// When the runtime cannot be built.
pub fn on_this_thread<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = LocalSet::new().block_on(&runtime, future);
    // A disk that hangs must not keep the process alive.
    runtime.shutdown_background();
    Ok(result)
}
