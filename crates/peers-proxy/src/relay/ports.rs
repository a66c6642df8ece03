//! Ports that lead to sockets.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::listen::bind_loopback;

/// Connections at a time over all ports; more wait.
const CONNECTIONS: usize = 256;
/// Between attempts to accept, when the system has no descriptor left.
const RECOVERY: Duration = Duration::from_millis(100);

/// A running relay. It ends, with its connections, when this is dropped.
#[derive(Debug)]
pub struct Relay {
    ports: Vec<SocketAddr>,
    _listeners: JoinSet<()>,
}

/// Listens on each port of 127.0.0.1 and connects every client to the socket that belongs to the port.
///
/// All ports are open when this returns. To be called within a runtime, which carries the bytes.
///
/// # Errors
/// When a port cannot be had; no port is open then.
pub fn serve(maps: Vec<(u16, PathBuf)>) -> io::Result<Relay> {
    let bind = |(port, socket)| Ok((bind_loopback(port)?, socket));
    let bound = maps.into_iter().map(bind).collect::<io::Result<Vec<_>>>()?;
    let ports = bound.iter().map(|(listener, _)| listener.local_addr()).collect::<io::Result<_>>()?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut listeners = JoinSet::new();
    for (listener, socket) in bound {
        listeners.spawn(listen(listener, socket, room.clone()));
    }
    Ok(Relay { ports, _listeners: listeners })
}

impl Relay {
    /// The addresses that it listens on, in the order of the maps; of use where a map has port 0.
    #[must_use]
    pub fn ports(&self) -> &[SocketAddr] {
        &self.ports
    }
}

async fn listen(listener: TcpListener, socket: PathBuf, room: Arc<Semaphore>) {
    let socket = Arc::new(socket);
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                // The semaphore is never closed.
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                let socket = socket.clone();
                connections.spawn(async move {
                    let _permit = permit;
                    connect(client, &socket).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the relay cannot accept a connection");
                sleep(RECOVERY).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries bytes until both directions have ended. A socket that nobody listens on closes the connection.
async fn connect(mut client: TcpStream, socket: &Path) {
    match UnixStream::connect(socket).await {
        Ok(mut host) => {
            // Only latency is lost without it. A connection that breaks off is an end like any other.
            let _delayed = client.set_nodelay(true);
            let _ended = copy_bidirectional(&mut client, &mut host).await;
        }
        Err(error) => tracing::warn!(%error, socket = %socket.display(), "the relay cannot reach its socket"),
    }
}

#[cfg(test)]
mod tests;
