//! The sockets, who may come in at once, and the way from a connection to its one request.

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use peers_model::PeerName;
use tokio::io::{AsyncReadExt, join, split};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::credential::Credential;
use super::exchange::{self, Shared, Slot};
use super::head;
use super::ledger::Ledger;
use super::options::{Options, Peer};
use super::refusal::Refusal;
use super::upstream::Upstream;
use crate::listen::{BindError, Duplex, Endpoint, Socket, complain};

/// Connections that are told that there are too many; further ones are closed at once.
const TOLD: usize = 16;
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
    name: PeerName,
    peer: Seat,
    places: Arc<Semaphore>,
}

/// What a peer may do now.
type Seat = Arc<Mutex<Arc<Peer>>>;

/// Changes a running server.
#[derive(Clone)]
pub struct Handle {
    seats: Vec<(PeerName, Seat)>,
    ledger: Arc<Ledger>,
}

/// Serves requests until `shutdown` is ready.
///
/// # Errors
/// As [`Server::bind`].
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), BindError> {
    Server::bind(options)?.run(shutdown).await;
    Ok(())
}

impl Server {
    /// Makes the sockets. From here on connections wait to be served. To be called within a runtime.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub fn bind(options: Options) -> Result<Self, BindError> {
        let Options { run, peers, policy, tls, limits, token_cap, log, clock } = options;
        let door = |peer: Peer| {
            Ok(Door {
                socket: Socket::bind(peer.listen.clone())?,
                name: peer.name.clone(),
                peer: Arc::new(Mutex::new(Arc::new(peer))),
                places: Arc::new(Semaphore::new(limits.per_peer)),
            })
        };
        let doors = peers.into_iter().map(door).collect::<Result<_, BindError>>()?;
        let total = Arc::new(Semaphore::new(limits.total));
        let upstream = Arc::new(Upstream::new(policy, tls, Arc::clone(&clock)));
        let ledger = Arc::new(Ledger::new(run, token_cap, clock, log));
        Ok(Self { shared: Arc::new(Shared { limits, upstream, ledger }), doors, total })
    }

    /// Where it listens, in the order of the peers.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.doors.iter().map(|door| door.socket.endpoint()).collect()
    }

    /// The handle that changes this server while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        let seat = |door: &Door| (door.name.clone(), Arc::clone(&door.peer));
        Handle { seats: self.doors.iter().map(seat).collect(), ledger: Arc::clone(&self.shared.ledger) }
    }

    /// Serves until `shutdown` is ready. Requests that are under way are cut off then; renewals of logins are not.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { shared, doors, total } = self;
        let mut credentials: Vec<Arc<Credential>> = Vec::new();
        for peer in doors.iter().map(|door| now(&door.peer)) {
            for service in &peer.services {
                if !credentials.iter().any(|known| Arc::ptr_eq(known, &service.credential)) {
                    credentials.push(Arc::clone(&service.credential));
                }
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
        tasks.abort_all();
        while let Some(ended) = tasks.join_next().await {
            complain(ended);
        }
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

impl Handle {
    /// Takes what peers may do, and the cap, from now on. Sockets stay; a peer that is not named any more may do
    /// nothing. Requests that are under way go on.
    pub fn reload(&self, mut peers: Vec<Peer>, token_cap: Option<u64>) {
        self.ledger.set_cap(token_cap);
        for (name, seat) in &self.seats {
            let mut seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = peers.iter().position(|peer| peer.name == *name).map(|at| peers.swap_remove(at));
            *seat = Arc::new(fresh.unwrap_or_else(|| seat.without_services()));
        }
    }
}

fn now(seat: &Seat) -> Arc<Peer> {
    Arc::clone(&seat.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Door {
    async fn serve(self, shared: Arc<Shared>, total: Arc<Semaphore>) {
        let Self { socket, peer, places, .. } = self;
        let told = Arc::new(Semaphore::new(TOLD));
        let receive = |stream: Box<dyn Duplex>, tasks: &mut JoinSet<()>| {
            let place = Arc::clone(&places).try_acquire_owned();
            match place.and_then(|own| Ok((own, Arc::clone(&total).try_acquire_owned()?))) {
                Ok(places) => {
                    let (shared, peer) = (Arc::clone(&shared), now(&peer));
                    tasks.spawn(async move {
                        connection(shared, peer, stream).await;
                        drop(places);
                    });
                }
                Err(_full) => {
                    if let Ok(place) = Arc::clone(&told).try_acquire_owned() {
                        tasks.spawn(async move {
                            head::refuse(stream, &Refusal::Busy).await;
                            drop(place);
                        });
                    }
                }
            }
        };
        socket.accept_each(&mut JoinSet::new(), || std::future::ready(()), receive).await;
    }
}

async fn connection(shared: Arc<Shared>, peer: Arc<Peer>, mut stream: Box<dyn Duplex>) {
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
    let served = http1::Builder::new().keep_alive(false).serve_connection(io, service).with_upgrades();
    // A client that does not read its answer holds up the clocks of the answer too.
    let _ended = timeout(shared.limits.connection(), served).await;
    let tunnel = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel.run(&shared.limits).await;
    }
}
