//! The loop around the engine: brings what happened, one thing at a time, until it has stopped.

use std::future::ready;
use std::io;
use std::time::Duration;

use peers_core::machine::{Event, StopRequest};
use peers_model::outcome::StopReason;
use peers_sys::clock;
use tokio::task::{LocalSet, yield_now};

use crate::engine::Engine;
use crate::inputs::Signals;
use crate::ports::{Procs, World};
use crate::procs::{Arriving, RealProcs};

/// After a signal hooks may take so long.
const FAREWELL: Duration = Duration::from_secs(5);
/// A hook that is told to end has ended by then.
const ENDING: Duration = Duration::from_secs(8);
/// How often [`unless_interrupted`] asks.
const POLL: Duration = Duration::from_millis(50);

/// Feeds the engine until it has stopped and nothing that it started runs any more.
///
/// The engine is started already. Answers that wait come first; between any two of them signals are
/// looked at, so a long chain of them can be stopped.
pub async fn drive<W: World<Procs = RealProcs>>(
    engine: &mut Engine<W>,
    arriving: &mut Arriving,
    signals: &mut Signals,
) -> StopReason {
    let hooks = engine.world().procs().hook_news();
    loop {
        engine.after_hooks();
        if let Some(reason) = engine.stopped().cloned() {
            let finished = engine.world().procs().finish();
            finished.await;
            engine.wind_up();
            last_hooks(engine, signals, &reason).await;
            return reason;
        }
        if let Some(request) = waiting(signals).await {
            engine.feed(Event::Stop(request));
        } else if let Some(event) = engine.next_pending() {
            engine.feed(event);
        } else {
            // All arms can be dropped at any await: what was not taken stays where it is.
            let event = tokio::select! {
                biased;
                request = signals.next() => Event::Stop(request),
                () = hooks.changed() => continue,
                Some(event) = arriving.recv() => event,
            };
            engine.feed(event);
        }
    }
}

/// Runs the hook of the end and waits for it and for those before it: for as long as they may take, and after
/// a signal for a few seconds.
async fn last_hooks<W: World<Procs = RealProcs>>(
    engine: &mut Engine<W>,
    signals: &mut Signals,
    reason: &StopReason,
) {
    engine.last_hook();
    let hooks = engine.world().procs().hook_news();
    let mut until = matches!(reason, StopReason::Interrupted(_)).then(|| clock::mono().plus(FAREWELL));
    while engine.world().procs().hooks_run() {
        let left = until.map(|until| until.since(clock::mono()));
        // All arms can be dropped at any await.
        tokio::select! {
            biased;
            request = signals.next() => match request {
                StopRequest::AfterTick => {}
                StopRequest::Graceful(_) => until = until.or_else(|| Some(clock::mono().plus(FAREWELL))),
                StopRequest::Now(_) => break,
            },
            () = hooks.changed() => {}
            () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() => break,
        }
    }
    if engine.world().procs().hooks_run() {
        engine.world().procs().end_hooks();
        if tokio::time::timeout(ENDING, hooks.idle()).await.is_err() {
            tracing::warn!("a hook still runs that was told to end");
        }
    }
    engine.after_hooks();
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

/// Asks `poll` again and again until it has something; `None` once a signal that ends programs has come, or
/// `patience` is over.
///
/// # Errors
/// When no handler can be set.
pub fn unless_interrupted<T>(
    patience: Duration,
    mut poll: impl FnMut() -> Option<T>,
) -> io::Result<Option<T>> {
    on_this_thread(async {
        let mut signals = Signals::take()?;
        let until = tokio::time::Instant::now() + patience;
        loop {
            if let Some(found) = poll() {
                return Ok(Some(found));
            }
            // All arms can be dropped at any await and asked again.
            tokio::select! {
                request = signals.next() => if request != StopRequest::AfterTick { return Ok(None) },
                () = tokio::time::sleep_until(until) => return Ok(None),
                () = tokio::time::sleep(POLL) => {}
            }
        }
    })?
}
