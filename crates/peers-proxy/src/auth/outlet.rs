//! The body of an answer on its way out: each piece at once, metered beside the way.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::ledger::Entry;
use super::options::Limits;
use super::refusal::Refusal;
use super::upstream::Running;
use super::usage::Meter;

/// An answer. Dropping it closes the connection to the service and writes the record.
pub(super) struct Outlet {
    body: Incoming,
    meter: Meter,
    entry: Entry,
    idle: Duration,
    /// For the next piece.
    timer: Pin<Box<Sleep>>,
    /// For all of it.
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
    ended: bool,
    _running: Running,
}

impl Outlet {
    pub(super) fn new(body: Incoming, meter: Meter, entry: Entry, running: Running, limits: &Limits) -> Self {
        Self {
            body,
            meter,
            entry,
            idle: limits.idle,
            timer: Box::pin(sleep(limits.idle)),
            deadline: Box::pin(sleep(limits.whole)),
            waiting: false,
            ended: false,
            _running: running,
        }
    }

    fn cut_off(&mut self, refusal: Refusal) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        self.ended = true;
        self.entry.cut_off(&refusal);
        Poll::Ready(Some(Err(refusal)))
    }
}

impl Body for Outlet {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if this.deadline.as_mut().poll(cx).is_ready() {
            return this.cut_off(Refusal::Silent);
        }
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(None) => {
                    this.ended = true;
                    this.entry.complete();
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => return this.cut_off(Refusal::Upstream(error.to_string())),
                Poll::Ready(Some(Ok(frame))) => {
                    this.waiting = false;
                    let Ok(data) = frame.into_data() else { continue };
                    this.meter.feed(&data);
                    this.entry.count(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Pending => {
                    // The time that the client took counts for nothing.
                    if !std::mem::replace(&mut this.waiting, true) {
                        this.timer.as_mut().reset(Instant::now() + this.idle);
                    }
                    return match this.timer.as_mut().poll(cx) {
                        Poll::Ready(()) => this.cut_off(Refusal::Silent),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        // A body of known length is not asked for its end.
        if !self.ended && self.body.is_end_stream() {
            self.entry.complete();
        }
        self.entry.take_usage(&mut self.meter);
    }
}
