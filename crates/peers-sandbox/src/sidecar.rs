//! A helper beside a sandbox, such as a proxy: a child that serves sockets until it is ended.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use peers_sys::identity::ProcIdentity;
use peers_sys::signal::{ProcHandle, Signal, SignalError};
use peers_sys::spawn::{Child, RawExit, Spawn, SpawnError, Stdin, StubProgram};
use peers_sys::{FileError, SafeDir, term};
use thiserror::Error;

/// How the line begins by which a helper says that its sockets are open.
const READY: &str = "ready";
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// What was said last on standard error is waited for so long after the exit.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes of standard error that are kept, from its end.
const KEPT: usize = 4096;
/// Bytes of the first line that are read.
const LINE: u64 = 64 * 1024;

/// A helper to be started.
#[derive(Debug, Clone)]
pub struct SidecarSpec {
    /// The stub that becomes the program.
    pub stub: StubProgram,
    /// The program, absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The directory for its sockets, absolute, made private if it is missing. Short: a socket's path has at most 107
    /// bytes.
    pub scratch: PathBuf,
    /// It must be ready within this time.
    pub patience: Duration,
}

/// Why there is no helper. None is left behind.
#[derive(Debug, Error)]
pub enum SidecarError {
    /// Its directory is not safe or cannot be made.
    #[error(transparent)]
    Scratch(#[from] FileError),
    /// It was not started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// There is no thread to watch it.
    #[error("watch the helper {}", program.display())]
    Thread {
        /// Its program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It ended before it was ready.
    #[error("the helper {} ended before it was ready: {}", program.display(), end.said)]
    Died {
        /// Its program.
        program: PathBuf,
        /// How it ended.
        end: SidecarEnd,
    },
    /// It was not ready in time, and was ended.
    #[error("the helper {} was not ready within {} s", program.display(), patience.as_secs())]
    Late {
        /// Its program.
        program: PathBuf,
        /// The time that it had.
        patience: Duration,
    },
}

/// How a helper ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarEnd {
    /// Its exit; absent if that could not be learned.
    pub exit: Option<RawExit>,
    /// What it said last on standard error, in one printable line.
    pub said: String,
}

/// A helper that is ready. Dropped, it is ended: it may have something to bring to its end, such as a login that is being
/// renewed.
///
/// It dies with this process: the thread that started it lives as long as it does. Its standard input is a pipe that
/// is open as long as this is there.
#[derive(Debug)]
pub struct Sidecar {
    scratch: PathBuf,
    identity: ProcIdentity,
    told: String,
    state: Arc<State>,
    keeper: Option<JoinHandle<()>>,
    stdin: Option<ChildStdin>,
}

#[derive(Debug, Default)]
struct State {
    end: Mutex<Option<SidecarEnd>>,
    ended: Condvar,
}

/// What the threads beside a helper tell its starter, in this order.
enum Event {
    Started(Box<ProcIdentity>, Option<ChildStdin>),
    NotStarted(SpawnError),
    Ready(String),
    Ended(SidecarEnd),
}

impl Sidecar {
    /// Starts a helper and waits until it is ready: until its first line begins with `ready`. `on_end` is called once,
    /// on another thread, when it has ended, whoever ended it.
    ///
    /// # Errors
    /// [`SidecarError`].
    pub fn start(
        spec: &SidecarSpec,
        on_end: impl FnOnce(&SidecarEnd) + Send + 'static,
    ) -> Result<Self, SidecarError> {
        let SidecarSpec { stub, program, args, env, scratch, patience } = spec;
        drop(SafeDir::create_root(scratch)?);
        let mut spawn = Spawn::new(stub.clone(), program, scratch);
        (spawn.args, spawn.env, spawn.stdin) = (args.clone(), env.clone(), Stdin::Piped);
        let (tell, told) = channel();
        let state = Arc::new(State::default());
        let keep = {
            let state = Arc::clone(&state);
            move || keep(&spawn, &tell, &state, on_end)
        };
        let keeper = thread::Builder::new().name("sidecar".to_owned()).spawn(keep);
        let keeper = keeper.map_err(|source| SidecarError::Thread { program: program.clone(), source })?;
        let (identity, stdin) = match told.recv() {
            Ok(Event::Started(identity, stdin)) => (*identity, stdin),
            Ok(Event::NotStarted(error)) => return Err(error.into()),
            Ok(Event::Ready(_) | Event::Ended(_)) | Err(_) => return Err(late(spec)),
        };
        let (scratch, keeper) = (scratch.clone(), Some(keeper));
        let mut sidecar = Self { scratch, identity, told: String::new(), state, keeper, stdin };
        match told.recv_timeout(*patience) {
            Ok(Event::Ready(line)) => {
                sidecar.told = line;
                Ok(sidecar)
            }
            Ok(Event::Ended(end)) => Err(SidecarError::Died { program: program.clone(), end }),
            Ok(Event::Started(..) | Event::NotStarted(_)) | Err(_) => Err(late(spec)),
        }
    }

    /// The path of its socket of this name.
    #[must_use]
    pub fn socket(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// The directory of its sockets, to be bound into a sandbox.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// The line by which it said that it is ready.
    #[must_use]
    pub fn told(&self) -> &str {
        &self.told
    }

    /// The process, for the record of the run.
    #[must_use]
    pub fn identity(&self) -> &ProcIdentity {
        &self.identity
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<SidecarEnd> {
        self.state.lock().clone()
    }

    /// Waits for its end, at most so long.
    #[must_use]
    pub fn wait_ended(&self, limit: Duration) -> Option<SidecarEnd> {
        let waited = self.state.ended.wait_timeout_while(self.state.lock(), limit, |end| end.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Has it read its policy again.
    ///
    /// # Errors
    /// [`SignalError::Gone`] if it has ended.
    pub fn reload(&self) -> Result<(), SignalError> {
        self.signal(Signal::Hup)
    }

    /// Ends it: SIGTERM, and SIGKILL after five seconds.
    #[must_use]
    pub fn end(mut self) -> Option<SidecarEnd> {
        self.ending()
    }

    fn ending(&mut self) -> Option<SidecarEnd> {
        drop(self.stdin.take());
        // One that has ended already needs no signal.
        let _gone = self.signal(Signal::Term);
        self.wait_ended(GRACE).or_else(|| {
            let _gone = self.signal(Signal::Kill);
            self.wait_ended(GRACE)
        })
    }

    fn signal(&self, signal: Signal) -> Result<(), SignalError> {
        ProcHandle::open(&self.identity)?.send(signal)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // How it ended is nobody's business any more.
            let _end = self.ending();
        }
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked has let go of its child, which kills it.
            let _panicked = keeper.join();
        }
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Option<SidecarEnd>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late(spec: &SidecarSpec) -> SidecarError {
    SidecarError::Late { program: spec.program.clone(), patience: spec.patience }
}

/// Starts the child and stays with it to its end: the kernel would kill it with this thread.
fn keep(spawn: &Spawn, tell: &Sender<Event>, state: &State, on_end: impl FnOnce(&SidecarEnd)) {
    let mut child = match spawn.start() {
        Ok(child) => child,
        Err(error) => {
            // Whoever asked waits for this.
            let _heard = tell.send(Event::NotStarted(error));
            return;
        }
    };
    let stdin = child.take_stdin();
    let _heard = tell.send(Event::Started(Box::new(child.identity().clone()), stdin));
    if let Some(stdout) = child.take_stdout() {
        let tell = tell.clone();
        thread::spawn(move || listen(stdout, &tell));
    }
    let said = child.take_stderr().map(tail);
    let end = SidecarEnd { exit: exit(&mut child), said: said.map(|said| last(&said)).unwrap_or_default() };
    *state.lock() = Some(end.clone());
    state.ended.notify_all();
    on_end(&end);
    // Only a starter that still waits for readiness hears it.
    let _heard = tell.send(Event::Ended(end));
}

fn exit(child: &mut Child) -> Option<RawExit> {
    let waited = child.wait_exited(None);
    // As long as the leader is not reaped this reaches its group or nobody.
    let _empty = child.sweep_group(Signal::Kill);
    waited.and_then(|_| child.reap()).ok()
}

/// Tells of the first line, and reads on, so that the child never waits for a reader.
fn listen(stdout: impl Read, tell: &Sender<Event>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    let read = stdout.by_ref().take(LINE).read_until(b'\n', &mut line);
    let ready = line.starts_with(READY.as_bytes()) && line.ends_with(b"\n");
    if let (true, Ok(_), Ok(line)) = (ready, read, String::from_utf8(line)) {
        // The starter may have given up.
        let _heard = tell.send(Event::Ready(line));
    }
    // An error is its end as well.
    let _ended = std::io::copy(&mut stdout, &mut std::io::sink());
}

/// Reads to the end and gives what came last.
fn tail(mut stderr: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), vec![0; KEPT]);
        loop {
            let count = match stderr.read(&mut piece) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
            };
            kept.extend(piece.iter().take(count));
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
        }
        // Nobody listens when the drain is over.
        let _heard = tell.send(kept);
    });
    told
}

fn last(told: &Receiver<Vec<u8>>) -> String {
    match told.recv_timeout(DRAIN) {
        Ok(bytes) => term::line(String::from_utf8_lossy(&bytes).trim(), KEPT),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => String::new(),
    }
}
