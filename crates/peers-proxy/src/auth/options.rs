//! What the proxy is started with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use peers_model::{PeerName, RunId, Timestamp};
use peers_sys::AppendLog;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio_rustls::rustls::ClientConfig;

use super::service::Service;
use crate::egress::Policy;
use crate::listen::Endpoint;

/// The shortest bearer: 128 bits in hex.
const BEARER: usize = 32;

/// Tells the wall time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the proxy is started with.
pub struct Options {
    /// The run, for the records.
    pub run: RunId,
    /// Who may ask, and what for.
    pub peers: Vec<Peer>,
    /// Where the proxy itself may connect to: the services and the hosts that renew logins.
    pub policy: Policy,
    /// Whose certificates are trusted: [`super::system_tls`].
    pub tls: Arc<ClientConfig>,
    /// Sizes, times and counts.
    pub limits: Limits,
    /// Tokens that all peers together may still use; `None`: no cap. Requests that are under way when it is reached
    /// are not cut off.
    pub token_cap: Option<u64>,
    /// Takes one JSON line for each request.
    pub log: AppendLog,
    /// The wall clock: [`peers_sys::clock::now`].
    pub clock: Clock,
}

/// A peer and its own way in.
#[derive(Debug)]
pub struct Peer {
    /// Its name, for the records.
    pub name: PeerName,
    /// Where it connects to.
    pub listen: Endpoint,
    /// What it has to show.
    pub bearer: Bearer,
    /// What it may use.
    pub services: Vec<Service>,
}

/// What a peer has to show. Made for this run; never forwarded.
#[derive(Debug, Clone)]
pub struct Bearer(SecretString);

/// A bearer that could be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a bearer has at least {BEARER} characters")]
pub struct WeakBearer;

/// Sizes in bytes, times and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The request line and the headers.
    pub head: usize,
    /// Until they have arrived.
    pub head_wait: Duration,
    /// The body of a request.
    pub body: u64,
    /// A body up to this is kept, so that the request can be repeated after a login was renewed.
    pub repeatable: usize,
    /// Between two pieces of a request's body.
    pub body_idle: Duration,
    /// Until the service begins to answer.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// Between two pieces in either direction of a WebSocket.
    pub socket_idle: Duration,
    /// For a whole answer or WebSocket.
    pub whole: Duration,
    /// Connections of one peer at once.
    pub per_peer: usize,
    /// Connections of all peers at once.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 32 * 1024,
            head_wait: Duration::from_secs(10),
            body: 32 * 1024 * 1024,
            repeatable: 1024 * 1024,
            body_idle: Duration::from_secs(30),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(5),
            socket_idle: Duration::from_mins(10),
            whole: Duration::from_hours(4),
            per_peer: 32,
            total: 128,
        }
    }
}

impl Limits {
    /// For a whole connection: its request, the wait for an answer, and the answer.
    pub(super) fn connection(&self) -> Duration {
        self.whole.saturating_add(self.first_byte.saturating_mul(3))
    }
}

impl Bearer {
    /// Takes a text of at least 32 characters.
    ///
    /// # Errors
    /// [`WeakBearer`].
    pub fn new(text: SecretString) -> Result<Self, WeakBearer> {
        if text.expose_secret().len() < BEARER { Err(WeakBearer) } else { Ok(Self(text)) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.expose_secret().as_bytes()
    }
}

impl Peer {
    /// The same peer, which may do nothing any more.
    pub(super) fn without_services(&self) -> Self {
        let Self { name, listen, bearer, services: _ } = self;
        Self { name: name.clone(), listen: listen.clone(), bearer: bearer.clone(), services: Vec::new() }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("run", &self.run)
            .field("peers", &self.peers)
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .field("token_cap", &self.token_cap)
            .finish_non_exhaustive()
    }
}
