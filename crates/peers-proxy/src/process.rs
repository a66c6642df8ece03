//! A proxy as a process of its own: its walls, its signals, its end.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use peers_model::PeerName;
use peers_sys::FileError;
use peers_sys::confine::{self, Confine, Files, Filter};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::auth::{NoRoots, PolicyError as AuthPolicyError};
use crate::egress::PolicyError;
use crate::listen::{BindError, Endpoint};

/// What a name service and its libraries read.
const SYSTEM: [&str; 5] = ["/usr", "/lib", "/lib64", "/etc", "/run/systemd/resolve"];
/// Files of `/etc` that may be links to elsewhere.
const RESOLVING: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"];

/// Why a proxy does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// There is no runtime, or signals or memory cannot be taken care of.
    #[error("set up the proxy")]
    Setup(#[from] io::Error),
    /// The policy of the egress proxy cannot be used.
    #[error(transparent)]
    Egress(#[from] PolicyError),
    /// The policy of the auth proxy cannot be used.
    #[error(transparent)]
    Auth(#[from] AuthPolicyError),
    /// No certificates.
    #[error(transparent)]
    Roots(#[from] NoRoots),
    /// The log cannot be opened.
    #[error("open the log")]
    Log(#[source] FileError),
    /// A socket cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The process cannot confine itself.
    #[error("confine the proxy ({step})")]
    Walls {
        /// What failed.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// When a proxy ends, besides SIGTERM and SIGINT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Then alone.
    OfSignals,
    /// Also at the end of its standard input: with whoever holds the other end.
    OfStdin,
}

/// A proxy whose sockets are open and whose walls stand. Clients wait until [`Proxy::run`].
pub struct Proxy {
    process: Process,
    endpoints: Vec<Endpoint>,
    reload: Box<dyn FnMut()>,
    serve: Box<dyn FnOnce(Shutdown) -> Task>,
    served: Vec<(PeerName, Vec<String>)>,
    lifetime: Lifetime,
}

pub(crate) type Shutdown = Pin<Box<dyn Future<Output = ()>>>;
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What makes a [`Proxy`] one kind or the other.
pub(crate) struct Parts {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Reads the policy again. Says itself what is wrong with it.
    pub(crate) reload: Box<dyn FnMut()>,
    pub(crate) serve: Box<dyn FnOnce(Shutdown) -> Task>,
    /// What it reads and writes later on, besides what the system needs.
    pub(crate) files: Files,
    /// The services that each peer may ask.
    pub(crate) served: Vec<(PeerName, Vec<String>)>,
    pub(crate) lifetime: Lifetime,
}

/// The process before it has a socket.
pub(crate) struct Process {
    runtime: Runtime,
    hangup: Signal,
    ends: Ends,
    /// Counts on its own.
    again: Ends,
}

struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Process {
    /// To be called while there is one thread.
    pub(crate) fn new() -> io::Result<Self> {
        confine::hide_memory()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let within = runtime.enter();
        let (hangup, ends, again) = (signal(SignalKind::hangup())?, Ends::new()?, Ends::new()?);
        drop(within);
        Ok(Self { runtime, hangup, ends, again })
    }

    /// Opens what has to be opened within the runtime, then puts the walls up.
    pub(crate) fn open(self, open: impl FnOnce() -> Result<Parts, StartError>) -> Result<Proxy, StartError> {
        let within = self.runtime.enter();
        let Parts { endpoints, reload, serve, files, served, lifetime } = open()?;
        drop(within);
        wall_in(files)?;
        Ok(Proxy { process: self, endpoints, reload, serve, served, lifetime })
    }
}

impl Proxy {
    /// Where it listens, in the order in which that was asked for; of a port 0 the one that the system chose.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The services that each peer may ask, as the policy and the credentials are now.
    #[must_use]
    pub fn served(&self) -> &[(PeerName, Vec<String>)] {
        &self.served
    }

    /// Serves until SIGTERM or SIGINT; a second one ends it at once. SIGHUP reads the policy again.
    pub fn run(self) {
        let Self { process, endpoints: _, served: _, mut reload, serve, lifetime } = self;
        let Process { runtime, mut hangup, mut ends, mut again } = process;
        let (closed, close) = oneshot::channel();
        // Kept: a sender that is dropped would look like the end of the input.
        let _open = match lifetime {
            Lifetime::OfSignals => Some(closed),
            Lifetime::OfStdin => {
                std::thread::spawn(move || drain_stdin(closed));
                None
            }
        };
        let shutdown = async move {
            tokio::pin!(close);
            loop {
                // All arms are cancel-safe.
                tokio::select! {
                    Some(()) = hangup.recv() => reload(),
                    () = ends.next() => return,
                    _end = &mut close => return,
                }
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = serve(Box::pin(shutdown)) => {}
                () = async { again.next().await; again.next().await } => {}
            }
        });
        // A name service may still be asked in a thread of the runtime.
        runtime.shutdown_background();
    }
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _told = self.terminate.recv() => {}
            _told = self.interrupt.recv() => {}
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

fn drain_stdin(closed: oneshot::Sender<()>) {
    let mut piece = [0; 256];
    loop {
        match io::stdin().read(&mut piece) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    // The proxy may have ended before.
    let _unheard = closed.send(());
}

/// Sees only these files from now on, and makes no calls of the kernel that no proxy needs.
fn wall_in(mut files: Files) -> Result<(), StartError> {
    let links = RESOLVING.iter().filter_map(|path| Path::new(path).canonicalize().ok());
    let beside = links.filter_map(|real| real.parent().map(Path::to_owned));
    files.read.extend(SYSTEM.into_iter().map(PathBuf::from).chain(beside));
    let files = if confine::has_landlock() {
        Some(files)
    } else {
        tracing::warn!("this kernel has no Landlock: the proxy is not kept from your files");
        None
    };
    let walls = Confine { files, filter: cfg!(target_os = "linux").then_some(Filter::Strict), apart: false };
    walls.apply().map_err(|(step, source)| StartError::Walls { step, source })
}
