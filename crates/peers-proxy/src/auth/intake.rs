//! The body of a request on its way in: capped, and cut off when it stalls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::options::Limits;
use super::refusal::Refusal;

/// What is left of a refused request's body is read for so long, so that the client is ready for the answer.
const DRAIN: Duration = Duration::from_secs(2);

/// A body that is read with limits.
pub(super) struct Intake {
    /// Read already, to be given out first.
    ahead: Option<Bytes>,
    rest: Incoming,
    cap: u64,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    waiting: bool,
    progress: Arc<Progress>,
}

/// What became of a body, for those who do not hold it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    read: AtomicU64,
    fault: OnceLock<Refusal>,
}

/// A body that the service gets.
pub(super) enum Load {
    /// All of it is here.
    Whole(Bytes),
    /// It is passed on as it comes.
    Stream(Intake),
}

impl Progress {
    /// Bytes read.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Why the body broke off.
    pub(super) fn fault(&self) -> Option<Refusal> {
        self.fault.get().cloned()
    }
}

impl Intake {
    pub(super) fn new(rest: Incoming, limits: &Limits) -> Self {
        Self {
            ahead: None,
            rest,
            cap: limits.body,
            idle: limits.body_idle,
            timer: Box::pin(sleep(limits.body_idle)),
            waiting: false,
            progress: Arc::default(),
        }
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Whether the length that was announced is too large.
    ///
    /// # Errors
    /// [`Refusal::BodyTooLarge`].
    pub(super) fn check_length(&self) -> Result<(), Refusal> {
        if self.rest.size_hint().lower() > self.cap { Err(Refusal::BodyTooLarge(self.cap)) } else { Ok(()) }
    }

    /// Keeps a body of at most `cap` bytes whole; a longer one goes on as a stream.
    ///
    /// # Errors
    /// Those of the body.
    pub(super) async fn load(mut self, cap: usize) -> Result<Load, Refusal> {
        let long = u64::try_from(cap).is_ok_and(|cap| self.rest.size_hint().lower() > cap);
        let mut whole = BytesMut::new();
        while !long && whole.len() <= cap {
            match self.frame().await {
                None => return Ok(Load::Whole(whole.freeze())),
                Some(frame) => whole.extend_from_slice(&frame?.into_data().unwrap_or_default()),
            }
        }
        self.ahead = Some(whole.freeze()).filter(|ahead| !ahead.is_empty());
        Ok(Load::Stream(self))
    }

    fn broken(&self, refusal: Refusal) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let first = self.progress.fault.get_or_init(|| refusal).clone();
        Poll::Ready(Some(Err(first)))
    }
}

/// Reads what is left of a body, for a while.
pub(super) async fn drain(mut rest: Incoming) {
    let all = async { while let Some(Ok(_)) = rest.frame().await {} };
    // A client that sends for longer may miss the answer.
    let _ended = timeout(DRAIN, all).await;
}

impl Body for Intake {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let this = self.get_mut();
        if let Some(ahead) = this.ahead.take() {
            return Poll::Ready(Some(Ok(Frame::data(ahead))));
        }
        loop {
            match Pin::new(&mut this.rest).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(_))) => return this.broken(Refusal::ClientGone),
                Poll::Ready(Some(Ok(frame))) => {
                    this.waiting = false;
                    // Trailers belong to this connection alone.
                    let Ok(data) = frame.into_data() else { continue };
                    let new = u64::try_from(data.len()).unwrap_or(u64::MAX);
                    let read = this.progress.read.fetch_add(new, Ordering::Relaxed).saturating_add(new);
                    if read > this.cap {
                        return this.broken(Refusal::BodyTooLarge(this.cap));
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Pending => {
                    // The time that the service took counts for nothing.
                    if !std::mem::replace(&mut this.waiting, true) {
                        this.timer.as_mut().reset(Instant::now() + this.idle);
                    }
                    return match this.timer.as_mut().poll(cx) {
                        Poll::Ready(()) => this.broken(Refusal::Slow),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.as_ref().map_or(0, |ahead| u64::try_from(ahead.len()).unwrap_or(u64::MAX));
        let rest = self.rest.size_hint();
        rest.exact().map_or_else(SizeHint::default, |exact| SizeHint::with_exact(exact.saturating_add(ahead)))
    }
}
