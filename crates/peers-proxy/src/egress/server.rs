//! The server: its sockets, its connections, and its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use peers_model::{PeerName, RunId};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::limits::Limits;
use super::log::Log;
use super::policy::Policy;
use super::shared::Shared;
use super::{connection, local};
use crate::listen::{BindError, Duplex, Endpoint, Socket, complain};

/// Tunnels have so long to end when the server stops.
const GRACE: Duration = Duration::from_secs(1);

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

/// What a socket serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// The proxy, to this peer.
    Proxy(Option<PeerName>),
    /// One port of 127.0.0.1, as the operator listed it in `local_ports`.
    LocalPort(u16),
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

    /// Where it listens, in the order of [`Options::listen`].
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.sockets.iter().map(|(socket, _)| socket.endpoint()).collect()
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

/// Accepts until the server stops, then waits for its connections.
async fn listen(shared: Arc<Shared>, socket: Socket, serves: Serves) {
    let mut connections = JoinSet::new();
    let pace = async || {
        if matches!(serves, Serves::Proxy(_)) {
            shared.pace.turn().await;
        }
    };
    let receive = |client, tasks: &mut JoinSet<()>| receive(&shared, &serves, client, tasks);
    // What is dropped here is a client that was not accepted yet.
    tokio::select! {
        () = socket.accept_each(&mut connections, pace, receive) => {}
        () = shared.stopped() => {}
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
