//! What all connections of a server share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use peers_model::{PeerName, RunId};
use peers_sys::clock;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::dial;
use super::limits::{Limits, Pace};
use super::log::{Log, LogLine};
use super::policy::{Policy, Rule};
use super::reason::Reason;

/// Connections to `local_ports` at a time.
const LOCAL: usize = 256;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) run: RunId,
    pub(crate) limits: Limits,
    pub(crate) pace: Pace,
    /// One permit per connection.
    pub(crate) open: Arc<Semaphore>,
    /// One permit per connection whose tunnel is not open yet.
    pub(crate) handshakes: Semaphore,
    /// One permit per connection to a local port.
    pub(crate) local: Arc<Semaphore>,
    state: watch::Sender<State>,
    log: Mutex<Log>,
    connections: AtomicU64,
    /// Bytes that were uploaded, by entry.
    spent: Mutex<HashMap<String, Arc<AtomicU64>>>,
}

#[derive(Debug)]
struct State {
    policy: Arc<Policy>,
    stopping: bool,
}

impl Shared {
    pub(crate) fn new(run: RunId, policy: Policy, limits: Limits, log: Log) -> Self {
        Self {
            run,
            pace: Pace::new(&limits),
            open: Arc::new(Semaphore::new(limits.connections)),
            handshakes: Semaphore::new(limits.handshakes),
            local: Arc::new(Semaphore::new(LOCAL)),
            limits,
            state: watch::Sender::new(State { policy: Arc::new(policy), stopping: false }),
            log: Mutex::new(log),
            connections: AtomicU64::new(0),
            spent: Mutex::default(),
        }
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.state.borrow().policy.clone()
    }

    /// The new list counts from now on; names go on to be resolved as they were.
    pub(crate) fn reload(&self, policy: Policy) {
        self.state.send_modify(|state| {
            state.policy = Arc::new(policy.resolving_with(state.policy.resolver().clone()));
        });
    }

    pub(crate) fn stop(&self) {
        self.state.send_modify(|state| state.stopping = true);
    }

    /// Returns when the server stops.
    pub(crate) async fn stopped(&self) {
        // The sender is in `self`, so this cannot fail while somebody waits.
        drop(self.state.subscribe().wait_for(|state| state.stopping).await);
    }

    /// Returns when the server stops or its policy no longer allows a connection to this host at this address.
    pub(crate) async fn cut(&self, host: &str, port: u16, addr: IpAddr) -> Reason {
        let mut states = self.state.subscribe();
        loop {
            {
                let state = states.borrow_and_update();
                if state.stopping {
                    return Reason::Ok;
                }
                if let Err(denied) = dial::check(&state.policy, host, port, addr) {
                    return denied.reason();
                }
            }
            // As in `stopped`.
            drop(states.changed().await);
        }
    }

    /// The counter of what was uploaded to the hosts of a rule in this run. It outlives a reload.
    pub(crate) fn spent(&self, rule: &Rule) -> Arc<AtomicU64> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.entry(rule.name()).or_default().clone()
    }

    /// Numbers a connection that was just accepted.
    pub(crate) fn caller(&self, peer: Option<PeerName>) -> Caller {
        let conn = self.connections.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        Caller { conn, peer, began: Instant::now() }
    }

    /// Logs the end of a request.
    pub(crate) fn record(&self, caller: Caller, facts: Facts, reason: Reason) {
        let Caller { conn, peer, began } = caller;
        let Facts { host, port, addr, sni, up, down } = facts;
        let now = Instant::now();
        let line = LogLine {
            ts: clock::now(),
            run: self.run.clone(),
            conn,
            peer,
            verdict: reason.verdict(),
            reason,
            host,
            port,
            addr,
            sni,
            up,
            down,
            ms: u64::try_from(now.duration_since(began).as_millis()).unwrap_or(u64::MAX),
        };
        self.log().write(&line, now);
    }

    pub(crate) fn flush_log(&self) {
        self.log().flush(clock::now());
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Caller {
    conn: u64,
    peer: Option<PeerName>,
    began: Instant,
}

/// What is known of a request.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) addr: Option<IpAddr>,
    pub(crate) sni: Option<String>,
    pub(crate) up: u64,
    pub(crate) down: u64,
}
