//! The sockets, who may come in at once, and the way from a connection to its one request.

use std::convert::Infallible;
use std::io::{self, Cursor};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use peers_sys::dir::Kind;
use peers_sys::{FileError, SafeDir};
use secrecy::ExposeSecret;
use tokio::io::{AsyncReadExt, join, split};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::credential::Credential;
use super::exchange::{self, Shared, Slot};
use super::head;
use super::ledger::Ledger;
use super::options::{Options, Peer};
use super::refusal::Refusal;
use super::upstream::{Stream, Upstream};
use crate::egress::Endpoint;

/// The shortest bearer: 128 bits in hex.
const BEARER: usize = 32;
/// Connections that are told that there are too many; further ones are closed at once.
const TOLD: usize = 16;
/// After a failed accept, which happens when files run out.
const PAUSE: Duration = Duration::from_millis(100);
/// Longer than a renewal takes, with the wait for another process.
const SETTLE: Duration = Duration::from_secs(70);

/// The proxy, listening.
pub struct Server {
    shared: Arc<Shared>,
    doors: Vec<Door>,
    total: Arc<Semaphore>,
}

struct Door {
    socket: Socket,
    peer: Arc<Peer>,
    places: Arc<Semaphore>,
}

enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Serves requests until `shutdown` is ready.
///
/// # Errors
/// As [`Server::bind`].
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    Server::bind(options).await?.run(shutdown).await;
    Ok(())
}

impl Server {
    /// Makes the sockets. From here on connections wait to be served.
    ///
    /// # Errors
    /// A socket cannot be made, or a bearer is too short.
    pub async fn bind(options: Options) -> io::Result<Self> {
        let Options { run, peers, policy, tls, limits, token_cap, log, clock } = options;
        let mut doors = Vec::new();
        for peer in peers {
            if peer.bearer.expose_secret().len() < BEARER {
                let why = format!("the bearer of `{}` is shorter than {BEARER} characters", peer.name);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            let socket = Socket::bind(&peer.listen).await?;
            let places = Arc::new(Semaphore::new(limits.per_peer));
            doors.push(Door { socket, peer: Arc::new(peer), places });
        }
        let total = Arc::new(Semaphore::new(limits.total));
        let upstream = Arc::new(Upstream::new(policy, tls, Arc::clone(&clock)));
        let ledger = Arc::new(Ledger::new(run, token_cap, clock, log));
        Ok(Self { shared: Arc::new(Shared { limits, upstream, ledger }), doors, total })
    }

    /// The addresses of those sockets that are ports, in the order of the peers.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let address = |door: &Door| match &door.socket {
            Socket::Unix(_) => None,
            Socket::Tcp(listener) => listener.local_addr().ok(),
        };
        self.doors.iter().filter_map(address).collect()
    }

    /// Serves until `shutdown` is ready. Requests that are under way are cut off then; renewals of logins are not.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { shared, doors, total } = self;
        let mut credentials: Vec<Arc<Credential>> = Vec::new();
        for service in doors.iter().flat_map(|door| &door.peer.services) {
            if !credentials.iter().any(|known| Arc::ptr_eq(known, &service.credential)) {
                credentials.push(Arc::clone(&service.credential));
            }
        }
        let mut tasks = JoinSet::new();
        for credential in &credentials {
            tasks.spawn(Arc::clone(credential).keep_fresh(Arc::clone(&shared.upstream)));
        }
        for door in doors {
            tasks.spawn(door.serve(Arc::clone(&shared), Arc::clone(&total)));
        }
        shutdown.await;
        tasks.shutdown().await;
        let settled = async {
            for credential in credentials {
                credential.settled().await;
            }
        };
        if timeout(SETTLE, settled).await.is_err() {
            tracing::warn!("the auth proxy ended while a login was being renewed");
        }
    }
}

impl Socket {
    /// A directory of a socket becomes private, and a socket that an ended process left there is removed.
    async fn bind(at: &Endpoint) -> io::Result<Self> {
        let path = match at {
            Endpoint::Loopback(port) => {
                return Ok(Self::Tcp(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await?));
            }
            Endpoint::Unix(path) => path,
        };
        make_room(path).map_err(io::Error::other)?;
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Ok(Self::Unix(UnixListener::bind(path).map_err(named)?))
    }

    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without it small pieces of an answer would wait for each other.
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

fn make_room(path: &Path) -> Result<(), FileError> {
    let dir = path.parent().unwrap_or(path);
    let dir = SafeDir::open_root(dir.parent().unwrap_or(dir))?.subdir(dir.file_name().unwrap_or_default())?;
    let name = path.file_name().unwrap_or_default();
    if dir.stat(name)?.is_some_and(|stat| stat.kind == Kind::Special) {
        dir.remove_file(name)?;
    }
    Ok(())
}

impl Door {
    async fn serve(self, shared: Arc<Shared>, total: Arc<Semaphore>) {
        let mut connections = JoinSet::new();
        let told = Arc::new(Semaphore::new(TOLD));
        loop {
            // Both arms are cancel-safe.
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                Some(_ended) = connections.join_next() => continue,
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(
                        "the auth proxy cannot accept a connection of {}: {error}",
                        self.peer.name
                    );
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let place = Arc::clone(&self.places).try_acquire_owned();
            match place.and_then(|own| Ok((own, Arc::clone(&total).try_acquire_owned()?))) {
                Ok(places) => {
                    let (shared, peer) = (Arc::clone(&shared), Arc::clone(&self.peer));
                    connections.spawn(async move {
                        connection(shared, peer, stream).await;
                        drop(places);
                    });
                }
                Err(_full) => {
                    if let Ok(place) = Arc::clone(&told).try_acquire_owned() {
                        connections.spawn(async move {
                            head::refuse(stream, &Refusal::Busy).await;
                            drop(place);
                        });
                    }
                }
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, peer: Arc<Peer>, mut stream: Box<dyn Stream>) {
    let read = timeout(shared.limits.head_wait, head::read(&mut stream, shared.limits.head)).await;
    let head = match read.unwrap_or(Err(Refusal::Slow)) {
        Ok(head) => head,
        Err(refusal) => {
            shared.ledger.open(peer.name.as_str()).refuse(&refusal, None);
            if refusal != Refusal::ClientGone {
                head::refuse(stream, &refusal).await;
            }
            return;
        }
    };
    let (reader, writer) = split(stream);
    let io = TokioIo::new(join(Cursor::new(head).chain(reader), writer));
    let slot = Slot::default();
    let service = service_fn(|request| {
        let (shared, peer, slot) = (Arc::clone(&shared), Arc::clone(&peer), Arc::clone(&slot));
        async move { Ok::<_, Infallible>(exchange::answer(shared, peer, slot, request).await) }
    });
    // A connection carries one request. Its end, good or bad, is in the record of that request.
    let _ended = http1::Builder::new().keep_alive(false).serve_connection(io, service).with_upgrades().await;
    let tunnel = slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel.run(&shared.limits).await;
    }
}
