//! What a failure means, judged by numbers first, then codes, then words.
//!
//! Only text of a tool's own error events comes here, never an agent's words. Error prose changes
//! between releases, so each source is weaker than the one before; a halt beats a transient failure.

use std::time::Duration;

use crate::event::{Failure, FailureKind};
use crate::reset::{epoch_in, wait_in, words};

/// All that an error event says about itself.
#[derive(Debug, Default)]
pub(crate) struct Evidence<'a> {
    pub(crate) status: Option<i64>,
    /// Machine-readable codes of any origin; empty ones are ignored.
    pub(crate) codes: &'a [&'a str],
    pub(crate) text: &'a str,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) resets_at: Option<i64>,
}

impl Evidence<'_> {
    pub(crate) fn failure(&self) -> Failure {
        Failure { kind: self.kind(), text: words(self.text), structured: true }
    }

    pub(crate) fn kind(&self) -> FailureKind {
        self.by_code(&HALT_CODES)
            .or_else(|| by_phrase(&normal(self.text), &HALT_PHRASES))
            .or_else(|| self.status.and_then(by_status))
            .or_else(|| self.by_code(&TRANSIENT_CODES))
            .or_else(|| by_phrase(&normal(self.text), &TRANSIENT_PHRASES))
            .map_or(FailureKind::Other, |kind| self.fill(kind))
    }

    fn by_code(&self, table: &[(&str, FailureKind)]) -> Option<FailureKind> {
        table.iter().find(|(code, _)| self.codes.contains(code)).map(|&(_, kind)| kind)
    }

    fn fill(&self, kind: FailureKind) -> FailureKind {
        match kind {
            FailureKind::UsageCap { .. } => {
                FailureKind::UsageCap { resets_at: self.resets_at.or_else(|| epoch_in(self.text)) }
            }
            FailureKind::RateLimit { .. } => {
                FailureKind::RateLimit { retry_after: self.retry_after.or_else(|| wait_in(self.text)) }
            }
            FailureKind::Auth | FailureKind::Quota | FailureKind::Overload | FailureKind::Other => kind,
        }
    }
}

/// Judges one line of a tool's own error prose; for free-text matches that carry nothing better.
#[must_use]
pub fn judge_text(text: &str) -> FailureKind {
    Evidence { text, ..Evidence::default() }.kind()
}

const CAP: FailureKind = FailureKind::UsageCap { resets_at: None };
const LIMIT: FailureKind = FailureKind::RateLimit { retry_after: None };

const HALT_CODES: [(&str, FailureKind); 13] = [
    ("usage_limit_reached", CAP),
    ("insufficient_quota", FailureKind::Quota),
    ("billing_error", FailureKind::Quota),
    ("billing_not_active", FailureKind::Quota),
    ("authentication_failed", FailureKind::Auth),
    ("authentication_error", FailureKind::Auth),
    ("invalid_api_key", FailureKind::Auth),
    ("permission_error", FailureKind::Auth),
    ("request_forbidden", FailureKind::Auth),
    ("oauth_org_not_allowed", FailureKind::Auth),
    ("account_deactivated", FailureKind::Auth),
    ("token_expired", FailureKind::Auth),
    ("ProviderAuthError", FailureKind::Auth),
];

const TRANSIENT_CODES: [(&str, FailureKind); 10] = [
    ("rate_limit", LIMIT),
    ("rate_limit_error", LIMIT),
    ("rate_limit_exceeded", LIMIT),
    ("overloaded", FailureKind::Overload),
    ("overloaded_error", FailureKind::Overload),
    ("server_error", FailureKind::Overload),
    ("server_is_overloaded", FailureKind::Overload),
    ("api_error", FailureKind::Overload),
    ("timeout_error", FailureKind::Overload),
    ("connection_failed", FailureKind::Overload),
];

/// All words of a row must occur, in any order.
type Phrases = [(&'static [&'static str], FailureKind)];

const HALT_PHRASES: [(&[&str], FailureKind); 30] = [
    // Some providers word a limit per minute as a quota; it passes by itself.
    (&["quota", "per minute"], LIMIT),
    (&["quota", "per second"], LIMIT),
    (&["hit your usage limit"], CAP),
    (&["hit your limit"], CAP),
    (&["usage limit", "reached"], CAP),
    (&["usage limit", "exceeded"], CAP),
    (&["usage limit", "exhausted"], CAP),
    (&["usage_limit_reached"], CAP),
    (&["quota exhausted"], FailureKind::Quota),
    (&["quota exceeded"], FailureKind::Quota),
    (&["exceeded your current quota"], FailureKind::Quota),
    (&["insufficient_quota"], FailureKind::Quota),
    (&["insufficient credits"], FailureKind::Quota),
    (&["credit balance is too low"], FailureKind::Quota),
    (&["out of credits"], FailureKind::Quota),
    (&["payment required"], FailureKind::Quota),
    (&["authentication failed"], FailureKind::Auth),
    (&["authentication error"], FailureKind::Auth),
    (&["authentication_error"], FailureKind::Auth),
    (&["authentication_failed"], FailureKind::Auth),
    (&["failed to authenticate"], FailureKind::Auth),
    (&["invalid api key"], FailureKind::Auth),
    (&["incorrect api key"], FailureKind::Auth),
    (&["missing api key"], FailureKind::Auth),
    (&["expired api key"], FailureKind::Auth),
    // codex, where the key of a configured provider is not set.
    (&["missing environment variable"], FailureKind::Auth),
    (&["invalid_api_key"], FailureKind::Auth),
    (&["not logged in"], FailureKind::Auth),
    (&["not signed in"], FailureKind::Auth),
    (&["run /login"], FailureKind::Auth),
];

const TRANSIENT_PHRASES: [(&[&str], FailureKind); 25] = [
    (&["rate limit"], LIMIT),
    (&["rate_limit"], LIMIT),
    (&["too many requests"], LIMIT),
    (&["overloaded"], FailureKind::Overload),
    (&["temporarily limiting"], LIMIT),
    (&["temporarily unavailable"], FailureKind::Overload),
    (&["service unavailable"], FailureKind::Overload),
    (&["bad gateway"], FailureKind::Overload),
    (&["gateway timeout"], FailureKind::Overload),
    (&["internal server error"], FailureKind::Overload),
    (&["high demand"], FailureKind::Overload),
    (&["at capacity"], FailureKind::Overload),
    (&["try again later"], FailureKind::Overload),
    (&["try again in"], FailureKind::Overload),
    (&["try again soon"], FailureKind::Overload),
    (&["connection dropped"], FailureKind::Overload),
    (&["connection reset"], FailureKind::Overload),
    (&["connection was closed"], FailureKind::Overload),
    (&["econnreset"], FailureKind::Overload),
    (&["econnrefused"], FailureKind::Overload),
    (&["cannot connect to api"], FailureKind::Overload),
    (&["error sending request"], FailureKind::Overload),
    (&["stream disconnected"], FailureKind::Overload),
    (&["network error"], FailureKind::Overload),
    (&["request timed out"], FailureKind::Overload),
];

fn by_phrase(text: &str, table: &Phrases) -> Option<FailureKind> {
    table.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|&(_, kind)| kind)
}

/// The meaning of an HTTP status that a tool reported as a number.
fn by_status(status: i64) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Auth),
        402 => Some(FailureKind::Quota),
        429 => Some(LIMIT),
        408 | 500 | 502 | 503 | 504 | 529 => Some(FailureKind::Overload),
        _ => None,
    }
}

/// Lower case, plain apostrophes, single blanks.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2018}' | '\u{2019}' => out.push('\''),
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{FAILURE_CHARS, WORDS_CHARS};
    use crate::reset::brief;

    #[test]
    fn a_halt_beats_a_transient_status_and_transient_words() {
        let evidence = Evidence {
            status: Some(429),
            text: "You\u{2019}ve hit your usage limit. Upgrade, or try again at 9:22 AM.",
            resets_at: Some(1_795_166_922),
            ..Evidence::default()
        };
        assert_eq!(evidence.kind(), FailureKind::UsageCap { resets_at: Some(1_795_166_922) });
        let evidence = Evidence { status: Some(429), codes: &["insufficient_quota"], ..Evidence::default() };
        assert_eq!(evidence.kind(), FailureKind::Quota);
    }

    #[test]
    fn a_bare_number_in_prose_is_no_status() {
        assert_eq!(judge_text("Expected 503 items, found 401"), FailureKind::Other);
    }

    #[test]
    fn a_quota_per_minute_is_a_rate_limit() {
        assert_eq!(judge_text("Quota exceeded for requests per minute"), LIMIT);
        assert_eq!(judge_text("Quota exceeded. Check your plan and billing details."), FailureKind::Quota);
    }

    #[test]
    fn a_key_that_is_not_set_is_a_login_that_is_missing() {
        assert_eq!(judge_text("Missing environment variable: `OPENAI_API_KEY`."), FailureKind::Auth);
    }

    #[test]
    fn a_retry_after_is_kept() {
        let wait = Some(Duration::from_secs(7));
        let evidence = Evidence { status: Some(429), retry_after: wait, ..Evidence::default() };
        assert_eq!(evidence.kind(), FailureKind::RateLimit { retry_after: wait });
    }

    #[test]
    fn failure_text_is_bounded_and_briefly_one_short_line() {
        let failure = Evidence { text: &"x\n".repeat(5000), ..Evidence::default() }.failure();
        assert_eq!(failure.text.chars().count(), WORDS_CHARS);
        let brief = brief(&failure.text);
        assert!(brief.chars().count() <= FAILURE_CHARS && !brief.contains('\n'));
    }
}
