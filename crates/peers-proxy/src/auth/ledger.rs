//! One record for each request, and the count that enforces the token cap.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use peers_model::{RunId, Timestamp, limits};
use peers_sys::AppendLog;
use peers_sys::redact::redact_text;
use serde::Serialize;
use tokio::time::Instant;

use super::intake::Progress;
use super::options::Clock;
use super::refusal::Refusal;
use super::usage::{Meter, Seen, Usage};

/// Requests without a paid answer that are recorded in one second; what is beyond is only counted.
const UNPAID: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// In a log that is longer, these are only counted: a peer must not fill the disk with them.
const UNPAID_LOG: u64 = 16 * limits::MIB;
/// Characters of a refused path, and of an id that a service gave.
const SHOWN: usize = 200;
/// Bytes of text that count as one token where a service reports no usage.
const BYTES_PER_TOKEN: u64 = 4;

/// The records of a run.
pub(super) struct Ledger {
    run: RunId,
    clock: Clock,
    book: Mutex<Book>,
}

struct Book {
    log: AppendLog,
    cap: Option<u64>,
    /// The log could not be written; said once.
    broken: bool,
    used: u64,
    window: Instant,
    unpaid: u32,
    suppressed: u64,
}

/// A request while it is under way. Its record is written when it is dropped.
pub(super) struct Entry {
    ledger: Arc<Ledger>,
    peer: String,
    started: Instant,
    pub(super) route: Option<String>,
    pub(super) status: Option<StatusCode>,
    pub(super) request_id: Option<String>,
    /// Why it did not end as it should; "client-gone" until something else is known.
    reason: Option<&'static str>,
    /// The path of a refused request.
    path: Option<String>,
    pub(super) seen: Seen,
    /// Whether it costs tokens.
    pub(super) billed: bool,
    /// The request's body, once the service is asked.
    pub(super) upload: Option<Arc<Progress>>,
    /// Bytes of the answer, and of both directions of a WebSocket.
    bytes: u64,
    /// Its answers were recorded one by one.
    split: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    ts: Timestamp,
    run: &'a RunId,
    peer: &'a str,
    route: Option<&'a str>,
    model: Option<&'a str>,
    status: Option<u16>,
    r#in: Option<u64>,
    out: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    counted: u64,
    ms: u64,
    req_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

#[derive(Serialize)]
struct Gap<'a> {
    ts: Timestamp,
    run: &'a RunId,
    suppressed: u64,
}

impl Ledger {
    pub(super) fn new(run: RunId, cap: Option<u64>, clock: Clock, log: AppendLog) -> Self {
        let window = Instant::now();
        let book = Book { log, cap, broken: false, used: 0, window, unpaid: 0, suppressed: 0 };
        Self { run, clock, book: Mutex::new(book) }
    }

    /// Sets the cap for all requests of the run, also those that were.
    pub(super) fn set_cap(&self, cap: Option<u64>) {
        self.book().cap = cap;
    }

    /// Begins the record of a request.
    pub(super) fn open(self: &Arc<Self>, peer: &str) -> Entry {
        Entry {
            ledger: Arc::clone(self),
            peer: peer.to_owned(),
            started: Instant::now(),
            route: None,
            status: None,
            request_id: None,
            reason: Some(Refusal::ClientGone.code()),
            path: None,
            seen: Seen::default(),
            billed: false,
            upload: None,
            bytes: 0,
            split: false,
        }
    }

    /// Whether the cap allows another request.
    ///
    /// # Errors
    /// [`Refusal::Budget`].
    pub(super) fn afford(&self) -> Result<(), Refusal> {
        let book = self.book();
        if book.cap.is_some_and(|cap| book.used >= cap) { Err(Refusal::Budget) } else { Ok(()) }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, entry: &Entry) {
        let Usage { input, output, cache_read, cache_write } = entry.seen.usage;
        let now = (self.clock)();
        let counted = entry.tokens();
        let line = Line {
            ts: now,
            run: &self.run,
            peer: &entry.peer,
            route: entry.route.as_deref(),
            model: entry.seen.model.as_deref(),
            status: entry.status.map(|status| status.as_u16()),
            r#in: input,
            out: output,
            cache_read,
            cache_write,
            counted,
            ms: u64::try_from(entry.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            req_id: entry.request_id.as_deref(),
            reason: entry.reason,
            path: entry.path.as_deref(),
        };
        let mut book = self.book();
        book.used = book.used.saturating_add(counted);
        if book.window.elapsed() >= WINDOW {
            let suppressed = std::mem::take(&mut book.suppressed);
            (book.window, book.unpaid) = (Instant::now(), 0);
            if suppressed > 0 {
                book.write(&Gap { ts: now, run: &self.run, suppressed });
            }
        }
        // Whoever only connects and goes away again can do so many thousand times in a second.
        if counted == 0 || !entry.is_answered() {
            book.unpaid = book.unpaid.saturating_add(1);
            if book.unpaid > UNPAID || book.log.len() > UNPAID_LOG {
                book.suppressed = book.suppressed.saturating_add(1);
                return;
            }
        }
        book.write(&line);
    }
}

impl Book {
    fn write(&mut self, line: &impl Serialize) {
        let failed = match serde_json::to_vec(line) {
            Ok(json) => self.log.append(&json).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = failed
            && !std::mem::replace(&mut self.broken, true)
        {
            tracing::warn!("the usage log of the auth proxy is incomplete: {error}");
        }
    }
}

impl Entry {
    /// The request was answered by the proxy itself.
    pub(super) fn refuse(&mut self, refusal: &Refusal, path: Option<&str>) {
        self.reason = Some(refusal.code());
        self.status = (*refusal != Refusal::ClientGone).then(|| refusal.status());
        // Under the redaction, for a path may hold anything.
        self.path = path.map(|path| redact_text(&shown(path)).into_owned());
    }

    /// The answer was passed on to its end.
    pub(super) fn complete(&mut self) {
        self.reason = None;
    }

    /// The answer was cut off for this reason.
    pub(super) fn cut_off(&mut self, refusal: &Refusal) {
        self.reason = Some(refusal.code());
    }

    /// Bytes of an answer passed, or of either direction of a WebSocket.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(super) fn identify(&mut self, request_id: &str) {
        self.request_id = Some(shown(request_id));
    }

    pub(super) fn take_usage(&mut self, meter: &mut Meter) {
        meter.finish();
        self.seen = std::mem::take(&mut meter.seen);
    }

    /// Records one of several answers on this connection, and says whether the cap allows more.
    pub(super) fn record_answer(&mut self) -> Result<(), Refusal> {
        let reason = self.reason.take();
        self.ledger.record(self);
        (self.reason, self.split, self.bytes) = (reason, true, 0);
        (self.seen.usage, self.seen.unreported) = (Usage::default(), 0);
        self.started = Instant::now();
        self.ledger.afford()
    }

    /// Whether the service did what it was asked.
    fn is_answered(&self) -> bool {
        self.status.is_some_and(|status| status.is_success() || status.is_informational())
    }

    /// What it counts for: what was reported, and an estimate of what was not. So an answer is not free that hides its
    /// usage, that is cut off before it tells it, or that nobody waits for.
    fn tokens(&self) -> u64 {
        let Seen { usage, unreported, .. } = &self.seen;
        if let Some(reported) = usage.total() {
            return reported.saturating_add(*unreported);
        }
        let uploaded = self.upload.as_ref().map(|upload| upload.read());
        let works = self.is_answered() || self.status.is_none() && uploaded.is_some();
        if works && self.billed {
            self.bytes.saturating_add(uploaded.unwrap_or(0)) / BYTES_PER_TOKEN
        } else {
            0
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.split || self.seen.usage.total().is_some() || self.seen.unreported > 0 {
            let ledger = Arc::clone(&self.ledger);
            ledger.record(self);
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}
