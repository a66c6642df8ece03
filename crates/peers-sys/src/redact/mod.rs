//! Secrets out of everything that is kept or shown.
//!
//! A secret becomes `[redacted:<kind>:<first 4 hex digits of its SHA-256>]`, so that two places with
//! the same secret can be told from two secrets. [`Redactor`] works on a stream in chunks of any
//! size: only what may still turn out to be a secret is held back, at most 4 KiB, for a private key
//! block 16 KiB. A longer one is redacted all the same, its rest is dropped as it comes.

mod patterns;

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use regex::bytes::{Regex, RegexBuilder};

use patterns::{Hit, Run, Verdict};

/// Known secrets shorter than this are ignored: redacting them would eat ordinary words.
pub const KNOWN_MIN: usize = 6;
/// So much of a known secret goes into the prefilter.
const PREFILTER: usize = 32;

/// What counts as a secret: the built-in patterns and the values known to this process.
///
/// Cheap to clone; building costs some microseconds per known value.
#[derive(Clone)]
pub struct Rules(Arc<Inner>);

struct Inner {
    triggers: Regex,
    /// Longest first.
    known: Vec<Needle>,
}

struct Needle {
    bytes: Vec<u8>,
    tag: String,
}

impl Rules {
    /// The built-in patterns plus `known` values, each also in its JSON spelling.
    ///
    /// Values are trimmed; those shorter than [`KNOWN_MIN`] are left out.
    #[must_use]
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        let mut needles = Vec::new();
        for value in known {
            let value = value.as_ref().trim();
            if value.len() < KNOWN_MIN {
                continue;
            }
            let tag = tag("secret", value.as_bytes());
            let json = serde_json::Value::from(value).to_string();
            let json = json.trim_matches('"').as_bytes();
            if json != value.as_bytes() {
                needles.push(Needle { bytes: json.to_vec(), tag: tag.clone() });
            }
            needles.push(Needle { bytes: value.as_bytes().to_vec(), tag });
        }
        needles.sort_by(|a, b| b.bytes.len().cmp(&a.bytes.len()).then_with(|| a.bytes.cmp(&b.bytes)));
        needles.dedup_by(|a, b| a.bytes == b.bytes);
        let literals = patterns::TRIGGERS
            .iter()
            .map(|text| text.as_bytes())
            .chain(needles.iter().map(|n| n.bytes.get(..PREFILTER).unwrap_or(&n.bytes)));
        Self(Arc::new(Inner { triggers: any_of(literals), known: needles }))
    }

    /// The built-in patterns alone.
    #[must_use]
    pub fn patterns() -> &'static Self {
        static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new::<&str>([]));
        &RULES
    }

    /// A redactor for one stream.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor { rules: self.clone(), held: Vec::new(), dropping: None, no_end: 0, before: None, count: 0 }
    }

    /// `text` with its secrets replaced; the argument itself when it has none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redactor = self.redactor();
        if !self.0.triggers.is_match(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        redactor.scan(text.as_bytes(), true, &mut out);
        if redactor.count == 0 {
            return Cow::Borrowed(text);
        }
        Cow::Owned(
            String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        )
    }
}

/// The number of known values only.
impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("known", &self.0.known.len()).finish_non_exhaustive()
    }
}

/// `text` with whatever matches a built-in pattern replaced. Known values need [`Rules::redact`].
#[must_use]
pub fn redact_text(text: &str) -> Cow<'_, str> {
    Rules::patterns().redact(text)
}

/// Redacts one stream; see the module for what it holds back.
pub struct Redactor {
    rules: Rules,
    /// Input that may be the beginning of a secret.
    held: Vec<u8>,
    /// The rest of an overlong secret, dropped while it lasts.
    dropping: Option<Run>,
    /// No private key block ends in `held` before this.
    no_end: usize,
    /// The last input byte before `held`.
    before: Option<u8>,
    count: u64,
}

impl Redactor {
    /// For one stream with these known values; several streams share [`Rules`].
    #[must_use]
    pub fn new(known: Vec<String>) -> Self {
        Rules::new(known).redactor()
    }

    /// Takes the next chunk and appends to `out` what is certain by now.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let chunk = self.drop_rest(chunk);
        if self.held.is_empty() {
            let done = self.scan(chunk, false, out);
            self.held.extend_from_slice(chunk.get(done..).unwrap_or_default());
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(chunk);
            let done = self.scan(&held, false, out);
            held.drain(..done);
            self.held = held;
        }
    }

    /// Ends the stream and appends the rest to `out`. The redactor is then ready for another stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.scan(&held, true, out);
        self.dropping = None;
        self.before = None;
    }

    /// How many secrets were replaced so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    // How far `bytes` were dealt with; everything when `last`.
    fn scan(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let rules = Arc::clone(&self.rules.0);
        let mut written = 0;
        let mut from = 0;
        let mut pending = if last { None } else { rules.pending(bytes, 0) };
        let hold = loop {
            let found = rules.triggers.find_at(bytes, from).map(|m| m.start());
            if pending.is_some_and(|p| p < from) {
                pending = rules.pending(bytes, from);
            }
            let at = match (found, pending) {
                (Some(at), Some(pending)) if pending < at => break pending,
                (Some(at), _) => at,
                (None, Some(pending)) => break pending,
                (None, None) => break bytes.len(),
            };
            let before =
                if at == 0 { self.before } else { at.checked_sub(1).and_then(|i| bytes.get(i)).copied() };
            match rules.judge(bytes, at, before, last, &mut self.no_end) {
                Verdict::No => from = at + 1,
                Verdict::Open => break at,
                Verdict::Secret(hit) => {
                    out.extend_from_slice(bytes.get(written..hit.start).unwrap_or_default());
                    out.extend_from_slice(hit.tag.as_bytes());
                    self.count += 1;
                    self.dropping = hit.rest.filter(|_| !last);
                    written = hit.end;
                    from = hit.end;
                }
            }
        };
        out.extend_from_slice(bytes.get(written..hold).unwrap_or_default());
        self.no_end = self.no_end.saturating_sub(hold);
        if let Some(&byte) = hold.checked_sub(1).and_then(|i| bytes.get(i)) {
            self.before = Some(byte);
        }
        hold
    }

    fn drop_rest<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let Some(run) = self.dropping else { return chunk };
        let end = chunk.iter().position(|&b| !run.contains(b));
        if end.is_some() {
            self.dropping = None;
        }
        chunk.get(end.unwrap_or(chunk.len())..).unwrap_or_default()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Inner {
    /// The verdict on the trigger at `at`. `last` means that no more bytes will come.
    fn judge(&self, bytes: &[u8], at: usize, before: Option<u8>, last: bool, no_end: &mut usize) -> Verdict {
        let here = bytes.get(at..).unwrap_or_default();
        for needle in &self.known {
            if here.starts_with(&needle.bytes) {
                let end = at + needle.bytes.len();
                return Verdict::Secret(Hit { start: at, end, tag: needle.tag.clone(), rest: None });
            }
            if !last && needle.bytes.starts_with(here) {
                return Verdict::Open;
            }
        }
        let mut hit = match patterns::judge(bytes, at, before, last, no_end) {
            Verdict::Secret(hit) => hit,
            other => return other,
        };
        if hit.rest.is_some() {
            return Verdict::Secret(hit);
        }
        // A known value that begins inside the match and ends behind it must not show its end.
        let mut start = hit.start + 1;
        while start < hit.end {
            let inner = bytes.get(start..).unwrap_or_default();
            if let Some(needle) = self.known.iter().find(|n| inner.starts_with(&n.bytes)) {
                hit.end = hit.end.max(start + needle.bytes.len());
            }
            start += 1;
        }
        let cut = !last && self.known_pending(bytes, hit.start + 1).is_some_and(|s| s < hit.end);
        if cut { Verdict::Open } else { Verdict::Secret(hit) }
    }

    /// Where a trigger begins whose end is not in `bytes` yet: the first such place from `from` on.
    fn pending(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let builtin = patterns::TRIGGERS.iter().filter_map(|t| open_end(bytes, from, t.as_bytes())).min();
        let known = self.known_pending(bytes, from);
        [builtin, known].into_iter().flatten().min()
    }

    fn known_pending(&self, bytes: &[u8], from: usize) -> Option<usize> {
        self.known.iter().filter_map(|n| open_end(bytes, from, &n.bytes)).min()
    }
}

/// The first place from `from` on where the rest of `bytes` is a proper beginning of `literal`.
fn open_end(bytes: &[u8], from: usize, literal: &[u8]) -> Option<usize> {
    let first = bytes.len().saturating_sub(literal.len().saturating_sub(1)).max(from);
    (first..bytes.len()).find(|&at| bytes.get(at..).is_some_and(|rest| literal.starts_with(rest)))
}

#[expect(clippy::expect_used, reason = "escaped literals are a valid pattern and no size limit applies")]
fn any_of<'a>(literals: impl Iterator<Item = &'a [u8]>) -> Regex {
    let mut pattern = String::from("(?-u)");
    for (i, literal) in literals.enumerate() {
        if i > 0 {
            pattern.push('|');
        }
        for byte in literal {
            // A cut may split a character, so the literal is spelled in bytes.
            // Writing to a string cannot fail.
            let _ = write!(pattern, "\\x{byte:02x}");
        }
    }
    RegexBuilder::new(&pattern)
        .size_limit(usize::MAX)
        .dfa_size_limit(1 << 20)
        .build()
        .expect("an alternation of literals compiles")
}

fn tag(kind: &str, secret: &[u8]) -> String {
    let digest = crate::digest::sha256_hex(secret);
    format!("[redacted:{kind}:{}]", digest.get(..4).unwrap_or_default())
}

#[cfg(test)]
mod tests;
