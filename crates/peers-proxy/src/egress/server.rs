//! The server: its sockets, its connections, and its end.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use peers_model::{PeerName, RunId};
use peers_sys::dir::Kind;
use peers_sys::{FileError, SafeDir};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::limits::Limits;
use super::log::Log;
use super::policy::Policy;
use super::shared::Shared;
use super::{connection, local};

/// Tunnels have so long to end when the server stops.
const GRACE: Duration = Duration::from_secs(1);
/// Between attempts to accept, when the system has no descriptor left.
const RECOVERY: Duration = Duration::from_millis(100);

/// What a server needs to know.
#[derive(Debug)]
pub struct Options {
    /// The run that it serves.
    pub run: RunId,
    /// Its sockets.
    pub listen: Vec<Listen>,
    /// The allow-list.
    pub policy: Policy,
    /// The file for [`LogLine`](super::LogLine)s, an absolute path.
    pub log: PathBuf,
    /// Limits for all sockets together.
    pub limits: Limits,
}

/// One socket and what is behind it.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Where it listens.
    pub at: Endpoint,
    /// What it serves.
    pub serves: Serves,
}

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A unix socket, an absolute path of at most 107 bytes. Its directory becomes private (0700); a socket that is
    /// already there is replaced.
    Unix(PathBuf),
    /// A port of 127.0.0.1; 0 lets the system choose.
    Loopback(u16),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Loopback(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

/// What a socket serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// The proxy, to this peer.
    Proxy(Option<PeerName>),
    /// One port of 127.0.0.1, as the operator listed it in `local_ports`.
    LocalPort(u16),
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum BindError {
    /// The log cannot be opened, or a directory of a socket is not safe.
    #[error(transparent)]
    File(#[from] FileError),
    /// A socket cannot be had.
    #[error("listen at {at}")]
    Listen {
        /// Where.
        at: Endpoint,
        /// What the system reports.
        #[source]
        source: io::Error,
    },
}

/// A server whose sockets are open. Clients wait until [`Server::run`].
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    sockets: Vec<(Socket, Serves)>,
}

/// Changes a running server.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// Serves until `shutdown` is ready.
///
/// # Errors
/// As [`Server::bind`].
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), BindError> {
    Server::bind(options)?.run(shutdown).await;
    Ok(())
}

impl Server {
    /// Opens the sockets and the log. To be called within a runtime.
    ///
    /// # Errors
    /// [`BindError`]; no socket is open then.
    pub fn bind(options: Options) -> Result<Self, BindError> {
        let Options { run, listen, policy, log, limits } = options;
        let log = Log::open(&log, run.clone())?;
        let bind = |Listen { at, serves }| Socket::bind(at).map(|socket| (socket, serves));
        let sockets = listen.into_iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { shared: Arc::new(Shared::new(run, policy, limits, log)), sockets })
    }

    /// The handle that changes this server while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { shared: self.shared.clone() }
    }

    /// The addresses of those sockets that are ports, in the order of [`Options::listen`].
    #[must_use]
    pub fn ports(&self) -> Vec<SocketAddr> {
        let port = |(socket, _): &(Socket, Serves)| match socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            Socket::Unix(_) => None,
        };
        self.sockets.iter().filter_map(port).collect()
    }

    /// Serves until `shutdown` is ready. Tunnels that are open then are closed and logged.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { shared, sockets } = self;
        let mut listeners = JoinSet::new();
        for (socket, serves) in sockets {
            listeners.spawn(listen(shared.clone(), socket, serves));
        }
        shutdown.await;
        shared.stop();
        while let Some(ended) = listeners.join_next().await {
            complain(ended);
        }
        shared.flush_log();
    }
}

impl Handle {
    /// Takes a new allow-list. Tunnels to hosts that it no longer allows are closed. Names are resolved as before.
    pub fn reload(&self, policy: Policy) {
        self.shared.reload(policy);
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Socket {
    fn bind(at: Endpoint) -> Result<Self, BindError> {
        let bound = match &at {
            Endpoint::Unix(path) => {
                make_room(path)?;
                UnixListener::bind(path).map(Self::Unix)
            }
            Endpoint::Loopback(port) => bind_loopback(*port).map(Self::Tcp),
        };
        bound.map_err(|source| BindError::Listen { at, source })
    }

    async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Only latency is lost without it.
                let _delayed = stream.set_nodelay(true);
                Box::new(stream)
            }
        })
    }
}

/// A listener on a port of 127.0.0.1.
pub(crate) fn bind_loopback(port: u16) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Makes the directory of a socket private, and removes a socket that an ended process left there.
fn make_room(path: &Path) -> Result<(), FileError> {
    let dir = path.parent().unwrap_or(path);
    let private =
        SafeDir::open_root(dir.parent().unwrap_or(dir))?.subdir(dir.file_name().unwrap_or_default())?;
    let name = path.file_name().unwrap_or_default();
    if private.stat(name)?.is_some_and(|stat| stat.kind == Kind::Special) {
        private.remove_file(name)?;
    }
    Ok(())
}

/// Accepts until the server stops, then waits for its connections.
async fn listen(shared: Arc<Shared>, socket: Socket, serves: Serves) {
    let mut connections = JoinSet::new();
    let stopped = shared.stopped();
    tokio::pin!(stopped);
    loop {
        let next = async {
            if matches!(serves, Serves::Proxy(_)) {
                shared.pace.turn().await;
            }
            socket.accept().await
        };
        // `next` is dropped only at the end.
        let client = tokio::select! {
            client = next => client,
            () = &mut stopped => break,
        };
        match client {
            Ok(client) => receive(&shared, &serves, client, &mut connections),
            Err(error) => {
                tracing::warn!(%error, "the egress proxy cannot accept a connection");
                sleep(RECOVERY).await;
            }
        }
        while let Some(ended) = connections.try_join_next() {
            complain(ended);
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    // Those that are still there are in the middle of a handshake, and end with the set.
    drop(timeout(GRACE, all).await);
}

fn receive(shared: &Arc<Shared>, serves: &Serves, client: Box<dyn Duplex>, connections: &mut JoinSet<()>) {
    let shared = shared.clone();
    match serves {
        Serves::Proxy(peer) => {
            let caller = shared.caller(peer.clone());
            match shared.open.clone().try_acquire_owned() {
                Ok(permit) => connections.spawn(async move {
                    let _permit = permit;
                    connection::serve(&shared, caller, client).await;
                }),
                // The pace bounds how many of these there are at a time.
                Err(_full) => {
                    connections.spawn(async move { connection::turn_away(&shared, caller, client).await })
                }
            };
        }
        Serves::LocalPort(port) => {
            let (caller, port) = (shared.caller(None), *port);
            match shared.local.clone().try_acquire_owned() {
                Ok(permit) => {
                    connections.spawn(async move {
                        let _permit = permit;
                        local::forward(&shared, caller, port, client).await;
                    });
                }
                Err(_full) => local::turn_away(&shared, caller, port),
            }
        }
    }
}

fn complain(ended: Result<(), tokio::task::JoinError>) {
    if let Err(broken) = ended {
        tracing::error!(%broken, "a task of the egress proxy broke off");
    }
}
