//! Where the proxies listen, and how connections are accepted.

use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use peers_sys::dir::Kind;
use peers_sys::{FileError, SafeDir};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

/// Between attempts to accept, when the system has no descriptor left.
const RECOVERY: Duration = Duration::from_millis(100);

/// Where a socket listens: `unix:/an/absolute/path`, or `127.0.0.1:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A unix socket (0600), an absolute path of at most 107 bytes. Its directory is made if it is missing, and must be
    /// private (0700) otherwise; a socket that is already there is replaced.
    Unix(PathBuf),
    /// A port of 127.0.0.1; 0 lets the system choose.
    Loopback(u16),
}

/// A text that is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be `unix:/absolute/path` or `127.0.0.1:PORT`")]
pub struct InvalidEndpoint;

/// Why a socket cannot be had.
#[derive(Debug, Error)]
pub enum BindError {
    /// A file or a directory that it needs is not safe, or cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// Others may come through the directory.
    #[error("{} is open to other users; name a directory of mode 0700, or one that is not there yet", dir.display())]
    Open {
        /// The directory of the socket.
        dir: PathBuf,
    },
    /// The system refuses.
    #[error("listen at {at}")]
    Listen {
        /// Where.
        at: Endpoint,
        /// What the system reports.
        #[source]
        source: io::Error,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(port) => write!(f, "127.0.0.1:{port}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let unix = text.strip_prefix("unix:").map(Path::new);
        let named =
            |path: &Path| path.file_name().and(path.parent()).is_some_and(|dir| dir.file_name().is_some());
        if let Some(path) = unix.filter(|path| path.is_absolute() && named(path)) {
            return Ok(Self::Unix(path.to_owned()));
        }
        let port = text.strip_prefix("127.0.0.1:").and_then(|port| port.parse().ok());
        port.map(Self::Loopback).ok_or(InvalidEndpoint)
    }
}

/// Bytes both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// An open socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener, SocketAddr),
}

impl Socket {
    /// To be called within a runtime.
    pub(crate) fn bind(at: Endpoint) -> Result<Self, BindError> {
        let bound = match &at {
            Endpoint::Unix(path) => {
                make_room(path)?;
                bind_unix(path).map(|listener| Self::Unix(listener, path.clone()))
            }
            Endpoint::Loopback(port) => bind_loopback(*port).and_then(|listener| {
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, address))
            }),
        };
        bound.map_err(|source| BindError::Listen { at, source })
    }

    /// Where it listens; the port is the one that the system chose.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Unix(_, path) => Endpoint::Unix(path.clone()),
            Self::Tcp(_, address) => Endpoint::Loopback(address.port()),
        }
    }

    /// Accepts connections until it is dropped. Each one waits for `pace` first; `receive` gives the task that serves
    /// it to the set.
    pub(crate) async fn accept_each<P: Future>(
        &self,
        tasks: &mut JoinSet<()>,
        pace: impl Fn() -> P,
        receive: impl Fn(Box<dyn Duplex>, &mut JoinSet<()>),
    ) {
        loop {
            pace().await;
            match self.accept().await {
                Ok(client) => receive(client, tasks),
                Err(error) => {
                    tracing::warn!(%error, at = %self.endpoint(), "the proxy cannot accept a connection");
                    sleep(RECOVERY).await;
                }
            }
            while let Some(ended) = tasks.try_join_next() {
                complain(ended);
            }
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // Only latency is lost without it.
                let _delayed = stream.set_nodelay(true);
                Box::new(stream)
            }
        })
    }
}

/// Says that a task of a proxy panicked.
pub(crate) fn complain(ended: Result<(), JoinError>) {
    if let Err(broken) = ended
        && broken.is_panic()
    {
        tracing::error!(%broken, "a task of the proxy broke off");
    }
}

/// A listener on a port of 127.0.0.1.
pub(crate) fn bind_loopback(port: u16) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Nobody else comes through its directory between the two calls.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Makes the directory of a socket if it is missing, and removes a socket that an ended process left there.
///
/// A directory that is there is not made private: it may be `/tmp`.
fn make_room(path: &Path) -> Result<(), BindError> {
    let dir = path.parent().unwrap_or(path);
    let above = SafeDir::open_shared(dir.parent().unwrap_or(dir))?;
    let dir_name = dir.file_name().unwrap_or_default();
    let private = above.create_subdir(dir_name)?;
    if above.stat(dir_name)?.is_none_or(|stat| stat.mode & 0o077 != 0) {
        return Err(BindError::Open { dir: dir.to_owned() });
    }
    let name = path.file_name().unwrap_or_default();
    if private.stat(name)?.is_some_and(|stat| stat.kind == Kind::Special) {
        private.remove_file(name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_absolute_socket_or_a_port_of_the_loopback() {
        for good in ["unix:/run/peers/egress.sock", "127.0.0.1:3128", "127.0.0.1:0"] {
            assert_eq!(good.parse::<Endpoint>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "unix:",
            "unix:egress.sock",
            "unix:/",
            "/a",
            "0.0.0.0:1",
            "127.0.0.1",
            "127.0.0.1:65536",
            "[::1]:1",
        ] {
            assert_eq!(bad.parse::<Endpoint>(), Err(InvalidEndpoint), "{bad}");
        }
    }

    #[test]
    fn the_root_directory_holds_no_socket() {
        assert_eq!("unix:/one.sock".parse::<Endpoint>(), Err(InvalidEndpoint));
    }

    #[tokio::test]
    async fn a_socket_is_for_its_owner_alone_and_takes_the_place_of_an_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/one.sock");
        for _ in 0..2 {
            let socket = Socket::bind(Endpoint::Unix(path.clone())).unwrap();
            assert_eq!(socket.endpoint(), Endpoint::Unix(path.clone()));
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
    }

    #[tokio::test]
    async fn a_directory_that_others_use_is_refused_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("shared");
        std::fs::create_dir(&shared).unwrap();
        std::fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        let error = Socket::bind(Endpoint::Unix(shared.join("one.sock"))).unwrap_err();
        assert!(matches!(error, BindError::Open { .. }), "{error}");
        assert_eq!(std::fs::metadata(&shared).unwrap().permissions().mode() & 0o7777, 0o1777);
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/notes");
        drop(Socket::bind(Endpoint::Unix(path.with_file_name("other"))).unwrap());
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(Socket::bind(Endpoint::Unix(path.clone())), Err(BindError::Listen { .. })));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    }
}
