//! How much the peers of one run may ask of the proxy.

use std::time::Duration;

use peers_model::limits;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// Limits for all peers of a run together.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time, with those whose tunnel is not open yet. One more is answered with 503.
    pub connections: usize,
    /// Connections at a time whose tunnel is not open yet; more wait.
    pub handshakes: usize,
    /// New connections in a second, on average; more wait.
    pub per_second: u32,
    /// New connections at once after a quiet time.
    pub burst: u32,
    /// A tunnel in which no byte moves for so long is closed.
    pub idle: Duration,
    /// A tunnel is closed after so long.
    pub lifetime: Duration,
    /// Bytes that may be uploaded through one tunnel.
    pub tunnel_up: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            handshakes: 16,
            per_second: 20,
            burst: 60,
            idle: Duration::from_mins(10),
            lifetime: Duration::from_hours(4),
            tunnel_up: 1024 * limits::MIB,
        }
    }
}

/// Spreads new connections over time. Listeners take turns, so a busy one does not shut the others out.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    ahead: Duration,
    /// When the next connection would be due without a burst.
    due: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn new(limits: &Limits) -> Self {
        let interval = Duration::from_secs(1) / limits.per_second.max(1);
        Self { interval, ahead: interval * limits.burst.saturating_sub(1), due: Mutex::new(None) }
    }

    /// Waits until one more connection may be taken.
    pub(crate) async fn turn(&self) {
        // Held while it waits: the lock is fair, so that is the queue.
        let mut due = self.due.lock().await;
        let now = Instant::now();
        let start = due.map_or(now, |due| due.max(now));
        sleep(start.duration_since(now).saturating_sub(self.ahead)).await;
        *due = Some(start + self.interval);
    }
}
