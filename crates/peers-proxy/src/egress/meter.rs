//! Counts what moves through a tunnel, and stops uploads that are over their budget.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// What moved through one tunnel.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    /// Milliseconds after `began`.
    last: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    over: AtomicBool,
    budget: Budget,
}

/// What may be uploaded.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Through this tunnel.
    pub(crate) tunnel: u64,
    /// To all hosts of the entry in this run.
    pub(crate) entry: u64,
    /// Of that, what was uploaded so far, by whomever.
    pub(crate) spent: Arc<AtomicU64>,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            began: Instant::now(),
            last: AtomicU64::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            over: AtomicBool::new(false),
            budget,
        }
    }

    /// Bytes that the client sent and that were passed on.
    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    /// Bytes that the client received.
    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Whether an upload was stopped.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns when nothing moved for `idle`, or `lifetime` after the beginning.
    pub(crate) async fn silence(&self, idle: Duration, lifetime: Duration) {
        let end = self.began + lifetime;
        loop {
            let until = (self.began + self.last() + idle).min(end);
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn last(&self) -> Duration {
        Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    fn moved(&self) {
        let last = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(last, Ordering::Relaxed);
    }

    fn sent(&self, bytes: u64) -> io::Result<()> {
        let Budget { tunnel, entry, spent } = &self.budget;
        let over = |before: u64, most: u64| before.saturating_add(bytes) > most;
        if over(self.up(), *tunnel) || over(spent.load(Ordering::Relaxed), *entry) {
            self.over.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.up.fetch_add(bytes, Ordering::Relaxed);
        spent.fetch_add(bytes, Ordering::Relaxed);
        self.moved();
        Ok(())
    }

    fn received(&self, bytes: u64) {
        self.down.fetch_add(bytes, Ordering::Relaxed);
        self.moved();
    }
}

/// The client's side of a tunnel: bytes that were read early come first, all are counted.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    pub(crate) inner: S,
    /// Read before the tunnel was open.
    pub(crate) early: Vec<u8>,
    pub(crate) meter: Arc<Meter>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.early.is_empty() {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        } else {
            let count = self.early.len().min(buf.remaining());
            let rest = self.early.split_off(count);
            buf.put_slice(&self.early);
            self.early = rest;
        }
        let count = buf.filled().len().saturating_sub(before);
        if count > 0 {
            self.meter.sent(u64::try_from(count).unwrap_or(u64::MAX))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.meter.received(u64::try_from(count).unwrap_or(u64::MAX));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
