//! The built-in patterns, judged by hand on the bytes behind a trigger.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// A token is judged by so many bytes; a longer one is a secret as far as it matched, its rest too.
const TOKEN_MAX: usize = 4096;
/// The same for a private key block.
const BLOCK_MAX: usize = 16 * 1024;

/// Every pattern begins with one of these.
pub(super) const TRIGGERS: &[&str] = &[
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "AKIA",
    "ASIA",
    "Bearer ",
    "bearer ",
    "BEARER ",
    "eyJ",
    BLOCK_BEGIN,
];

const BLOCK_BEGIN: &str = "-----BEGIN ";

/// The answer for one trigger.
pub(super) enum Verdict {
    No,
    /// The bytes end before it is certain.
    Open,
    Secret(Hit),
}

/// A secret at `start..end`.
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) tag: String,
    /// Set when the secret goes on behind the bytes at hand.
    pub(super) rest: Option<Run>,
}

/// The bytes that a secret of some kind consists of.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// `A-Z a-z 0-9 _ -`
    Token,
    /// `A-Z a-z 0-9`
    Alnum,
    /// `A-Z 0-9`
    Upper,
    /// RFC 6750 `b64token`.
    Bearer,
    /// Tokens joined by dots.
    Dotted,
    /// Base64 in lines.
    Block,
}

impl Run {
    pub(super) fn contains(self, b: u8) -> bool {
        match self {
            Self::Token => b.is_ascii_alphanumeric() || b == b'_' || b == b'-',
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Bearer => {
                b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
            }
            Self::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
            Self::Block => {
                b.is_ascii_alphanumeric() || b.is_ascii_whitespace() || matches!(b, b'+' | b'/' | b'=')
            }
        }
    }

    fn len(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|&b| !self.contains(b)).unwrap_or(bytes.len())
    }
}

/// Judges the trigger at `at`; `before` is the byte in front of it. No private key block ends before
/// `no_end`, which is kept up to date so that many beginnings do not search the same bytes.
pub(super) fn judge(bytes: &[u8], at: usize, before: Option<u8>, last: bool, no_end: &mut usize) -> Verdict {
    let here = bytes.get(at..).unwrap_or_default();
    if here.starts_with(BLOCK_BEGIN.as_bytes()) {
        return block(here, at, last, no_end);
    }
    if here.starts_with(b"eyJ") {
        return web_token(here, at, last);
    }
    // (offset of the token, its alphabet)
    let (skip, run) = match here.get(..4) {
        Some(b"Bear" | b"bear" | b"BEAR") => (7, Run::Bearer),
        Some(b"AKIA" | b"ASIA") => (0, Run::Upper),
        Some(b"gith") => (0, Run::Token),
        Some([b'g', b'h', _, b'_']) => (4, Run::Alnum),
        _ => (0, Run::Token),
    };
    let body = here.get(skip..).unwrap_or_default();
    let len = run.len(body);
    let to_the_end = len == body.len() && !last;
    if to_the_end && here.len() < TOKEN_MAX {
        return Verdict::Open;
    }
    let body = body.get(..len).unwrap_or_default();
    let start = if matches!(run, Run::Bearer) { at + skip } else { at };
    let whole = here.get(start - at..skip + len).unwrap_or_default();
    let mid_word = before.is_some_and(|b| b.is_ascii_alphanumeric());
    let kind = match run {
        Run::Bearer if body.len() >= 20 => kind_of_token(body).unwrap_or("bearer"),
        Run::Upper if body.len() >= 20 => "aws-key",
        Run::Alnum if body.len() >= 30 => "github-token",
        Run::Token => match kind_of_token(body) {
            Some("api-key") if mid_word && !looks_random(body) => return Verdict::No,
            Some(kind) => kind,
            None => return Verdict::No,
        },
        _ => return Verdict::No,
    };
    Verdict::Secret(Hit {
        start,
        end: start + whole.len(),
        tag: super::tag(kind, whole),
        rest: to_the_end.then_some(run),
    })
}

fn kind_of_token(token: &[u8]) -> Option<&'static str> {
    if let Some(key) = token.strip_prefix(b"sk-ant-") {
        return (key.len() >= 6).then_some("anthropic-key");
    }
    if let Some(key) = token.strip_prefix(b"sk-") {
        return (Run::Token.len(key) >= 20).then_some("api-key");
    }
    if let Some(key) = token.strip_prefix(b"github_pat_") {
        return (key.len() >= 22).then_some("github-token");
    }
    (token.starts_with(b"gh") && token.get(3) == Some(&b'_') && token.len() >= 34).then_some("github-token")
}

// In the middle of a word (`task-…`, `disk-…`) words joined by dashes are no key: a key has a long
// run without one.
fn looks_random(token: &[u8]) -> bool {
    token
        .split(|b| !b.is_ascii_alphanumeric())
        .any(|run| run.len() >= 16 && run.iter().any(u8::is_ascii_digit))
}

// header.payload.signature
fn web_token(here: &[u8], at: usize, last: bool) -> Verdict {
    let dotted = Run::Dotted.len(here);
    let to_the_end = dotted == here.len() && !last;
    if to_the_end && here.len() < TOKEN_MAX {
        return Verdict::Open;
    }
    let token = here.get(..dotted).unwrap_or_default();
    // A full stop that ends the sentence.
    let token = if to_the_end { token } else { token.strip_suffix(b".").unwrap_or(token) };
    let mut parts = token.split(|&b| b == b'.').map(<[u8]>::len);
    let long = |part: Option<usize>| part.is_some_and(|len| len >= 10);
    if !(long(parts.next()) && long(parts.next()) && (parts.next().is_some() || to_the_end)) {
        return Verdict::No;
    }
    Verdict::Secret(Hit {
        start: at,
        end: at + token.len(),
        tag: super::tag("jwt", token),
        rest: to_the_end.then_some(Run::Dotted),
    })
}

struct BlockPatterns {
    begin: Regex,
    end: Regex,
}

static BLOCK: LazyLock<BlockPatterns> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "constant patterns, compiled in every test run")]
    let regex = |pattern: &str| Regex::new(pattern).expect("constant pattern");
    BlockPatterns {
        begin: regex(r"(?-u)\A-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,40}-----"),
        end: regex(r"(?-u)-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,40}-----"),
    }
});

/// No marker is longer.
const MARKER_MAX: usize = 110;

fn block(here: &[u8], at: usize, last: bool, no_end: &mut usize) -> Verdict {
    let Some(begin) = BLOCK.begin.find(here) else {
        // Still only capitals behind BEGIN: the header itself may be cut.
        let header = here.get(BLOCK_BEGIN.len()..).unwrap_or_default();
        let open = header.iter().all(|&b| Run::Upper.contains(b) || b == b' ' || b == b'-');
        return if open && !last && here.len() < MARKER_MAX { Verdict::Open } else { Verdict::No };
    };
    let window = here.get(..BLOCK_MAX).unwrap_or(here);
    let from = no_end.saturating_sub(at).clamp(begin.end(), window.len());
    if let Some(end) = BLOCK.end.find_at(window, from) {
        let secret = here.get(..end.end()).unwrap_or_default();
        let tag = super::tag("private-key", secret);
        return Verdict::Secret(Hit { start: at, end: at + end.end(), tag, rest: None });
    }
    *no_end = (at + window.len()).saturating_sub(MARKER_MAX).max(*no_end);
    if !last && here.len() < BLOCK_MAX {
        return Verdict::Open;
    }
    // No end: a key that was cut off, or the marker alone as source code has it.
    match cut_off_key(window, begin.end()) {
        None => Verdict::No,
        Some(end) => {
            let secret = window.get(..end).unwrap_or_default();
            let more = end == window.len() && !last;
            Verdict::Secret(Hit {
                start: at,
                end: at + end,
                tag: super::tag("private-key", secret),
                rest: more.then_some(Run::Block),
            })
        }
    }
}

/// The end of the key material behind `from`: base64 in runs of at least 40 characters that follow
/// each other closely and are no hex digests.
fn cut_off_key(window: &[u8], from: usize) -> Option<usize> {
    const RUN: usize = 40;
    const GAP: usize = 80;
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let mut end = None;
    // A header (`Proc-Type:`, `DEK-Info:`) may come first.
    let mut limit = from + 256;
    let mut at = from;
    while at < window.len() && at <= limit {
        let rest = window.get(at..).unwrap_or_default();
        let len = rest.iter().position(|&b| !base64(b)).unwrap_or(rest.len());
        let run = rest.get(..len).unwrap_or_default();
        if len >= RUN && run.iter().any(|b| !b.is_ascii_hexdigit()) {
            end = Some(at + len);
            limit = at + len + GAP;
        }
        at += len.max(1);
    }
    // The last line of a key is short; what is left of one that was cut in it goes as well.
    end.map(|end| {
        let rest = window.get(end..).unwrap_or_default();
        let newline = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let tail = rest.get(newline..).unwrap_or_default();
        let len = tail.iter().position(|&b| !base64(b)).unwrap_or(tail.len());
        if newline > 0 && len > 0 && newline + len == rest.len() { end + newline + len } else { end }
    })
}
