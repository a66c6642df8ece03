//! The command that the relay is for.

use std::io;
use std::path::PathBuf;

use peers_sys::loopback;
use peers_sys::signal::Signal;
use peers_sys::spawn::{Child, RawExit, Spawn, SpawnError, WaitError};
use thiserror::Error;
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::ports::serve;

/// Signals that the command gets in our place.
const PASSED: [(i32, Signal); 5] =
    [(1, Signal::Hup), (2, Signal::Int), (3, Signal::Quit), (10, Signal::Usr1), (15, Signal::Term)];

/// Why a command was not run to its end behind a relay.
#[derive(Debug, Error)]
pub enum RelayError {
    /// There is no runtime, or signals cannot be taken over.
    #[error("set up the relay")]
    Setup(#[source] io::Error),
    /// A port of 127.0.0.1 cannot be had.
    #[error("listen on the ports of the relay")]
    Ports(#[source] io::Error),
    /// The loopback interface is down and stays so.
    #[error("bring the loopback interface up")]
    Loopback(#[source] io::Error),
    /// The command was not started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// Its end could not be learned.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Opens the relay, runs `command` on our own three streams, and gives its exit. Signals that ask this process for
/// something go to the group of the command. What is left of that group is killed after its exit.
///
/// Ports are open before the command starts. To be called on the main thread, with no other thread there: the command
/// is killed when this one ends.
///
/// # Errors
/// [`RelayError`]; no process of the command's group is left behind.
pub fn run(maps: &[(u16, PathBuf)], command: &Spawn) -> Result<RawExit, RelayError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(RelayError::Setup)?;
    runtime.block_on(async {
        if !loopback::is_up() {
            loopback::bring_up().map_err(RelayError::Loopback)?;
        }
        let relay = serve(maps.to_vec()).map_err(RelayError::Ports)?;
        // Before the command is there, so that none is missed.
        let mut signals = signals().map_err(RelayError::Setup)?;
        let mut child = command.start_in_place()?;
        let waited = loop {
            // Both arms are cancel-safe.
            tokio::select! {
                ended = ended(&mut child) => break ended,
                Some(signal) = signals.recv() => {
                    // One that has just ended needs none.
                    let _gone = child.pass_on(signal);
                }
            }
        };
        drop(relay);
        // As long as the leader is not reaped this reaches its group or nobody.
        let _empty = child.sweep_group(Signal::Kill);
        waited?;
        Ok(child.reap()?)
    })
}

fn signals() -> io::Result<mpsc::Receiver<Signal>> {
    let (tell, told) = mpsc::channel(PASSED.len());
    for (number, passed) in PASSED {
        let mut stream = signal(SignalKind::from_raw(number))?;
        let tell = tell.clone();
        tokio::spawn(
            async move { while stream.recv().await.is_some() && tell.send(passed).await.is_ok() {} },
        );
    }
    Ok(told)
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "its replacement is an unsafe function; this one is unsound only for a type that gives away or closes its \
              descriptor, which `OwnedFd` cannot while it is owned here"
)]
async fn ended(child: &mut Child) -> Result<(), WaitError> {
    let pid = child.pid();
    let readable = async {
        let pidfd = child.pidfd().try_clone_to_owned()?;
        let watched = AsyncFd::with_interest(pidfd, Interest::READABLE)?;
        watched.readable().await.map(|_ready| ())
    };
    readable.await.map_err(|source: io::Error| WaitError::System { pid, source })
}

/// Without a descriptor to wait for, it is looked for now and then.
#[cfg(not(target_os = "linux"))]
async fn ended(child: &mut Child) -> Result<(), WaitError> {
    while child.exited_nowait()?.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}
