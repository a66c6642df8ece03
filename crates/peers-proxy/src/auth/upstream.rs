//! Connections to services: through the policy of the egress proxy, then TLS, then HTTP/1.1. One for each request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use peers_model::Timestamp;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::options::Clock;
use super::service_url::ServiceUrl;
use crate::egress::{Denied, Policy, dial};
use crate::listen::Duplex;

/// For a TLS handshake, and for connecting to the loopback.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way out.
pub(super) struct Upstream {
    policy: Policy,
    tls: Arc<ClientConfig>,
    clock: Clock,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum Unreachable {
    #[error("{0}; {hint}", hint = .0.hint())]
    Denied(#[from] Denied),
    #[error("connect to `{host}`: {source}")]
    Connect { host: String, source: io::Error },
    #[error("`{host}` is no name that a certificate can have")]
    Name { host: String, source: InvalidDnsNameError },
    #[error("begin HTTP: {0}")]
    Http(#[from] hyper::Error),
}

/// The system trusts no certificate, or they cannot be read.
#[derive(Debug, Error)]
pub enum NoRoots {
    /// None was found.
    #[error("no trusted certificates were found on this system")]
    None,
    /// TLS cannot be set up.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
}

/// A connection that can take one request.
pub(super) struct Opened<B> {
    pub(super) sender: SendRequest<B>,
    pub(super) running: Running,
}

/// Drives a connection, and closes it at once when dropped: a service must not go on answering for nobody.
#[derive(Debug)]
pub(super) struct Running(JoinHandle<()>);

impl Upstream {
    pub(super) fn new(policy: Policy, tls: Arc<ClientConfig>, clock: Clock) -> Self {
        Self { policy, tls, clock }
    }

    /// The wall time.
    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Connects for one request.
    pub(super) async fn open<B>(&self, to: &ServiceUrl) -> Result<Opened<B>, Unreachable>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (sender, connection) = handshake(TokioIo::new(self.connect(to).await?)).await?;
        let running = tokio::spawn(async move {
            // Its errors reach whoever waits for the answer.
            let _ended = connection.with_upgrades().await;
        });
        Ok(Opened { sender, running: Running(running) })
    }

    async fn connect(&self, to: &ServiceUrl) -> Result<Box<dyn Duplex>, Unreachable> {
        let failed = |source| Unreachable::Connect { host: to.host().to_owned(), source };
        if !to.is_tls() {
            let address = (to.host().trim_matches(['[', ']']), to.port());
            let stream = in_time(TcpStream::connect(address)).await.map_err(failed)?;
            return Ok(Box::new(stream));
        }
        let (stream, _) = dial(&self.policy, to.host(), to.port()).await?;
        let name = ServerName::try_from(to.host().to_owned());
        let name = name.map_err(|source| Unreachable::Name { host: to.host().to_owned(), source })?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
        Ok(Box::new(in_time(stream).await.map_err(failed)?))
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, work).await.unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// TLS that trusts what the system trusts, or the file that `SSL_CERT_FILE` names.
///
/// # Errors
/// [`NoRoots`].
pub fn system_tls() -> Result<Arc<ClientConfig>, NoRoots> {
    tls(rustls_native_certs::load_native_certs().certs)
}

/// TLS that trusts these certificates alone. Those that cannot be read are left out.
///
/// # Errors
/// [`NoRoots`].
pub fn tls(roots: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, NoRoots> {
    let mut store = RootCertStore::empty();
    let (added, _unreadable) = store.add_parsable_certificates(roots);
    if added == 0 {
        return Err(NoRoots::None);
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
