//! Fences around text that must not be obeyed.

use super::text;

/// The word of both delimiter lines. No fenced text holds it.
const WORD: &str = "peers-data";

/// Makes fences with the random delimiter of one prompt.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    nonce: String,
}

impl Fence {
    /// Keeps the hex digits of `nonce`.
    pub(crate) fn new(nonce: &str) -> Self {
        let nonce =
            nonce.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).take(64).collect();
        Self { nonce }
    }

    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Cleans a text and takes the delimiter out of it: the word, and the nonce, which a writer can
    /// only have seen by breaking a confinement. Never longer than the input.
    pub(crate) fn safe(&self, raw: &str) -> String {
        let text = replace_ascii_case_insensitive(&text::clean(raw), WORD, "peers_data");
        if self.nonce.len() < 8 {
            return text;
        }
        replace_ascii_case_insensitive(&text, &self.nonce, &"x".repeat(self.nonce.len()))
    }

    /// As [`Self::safe`], on one line of at most `max` bytes.
    pub(crate) fn safe_line(&self, raw: &str, max: usize) -> String {
        self.safe(&text::one_line(&text::clean(raw), max))
    }

    /// Wraps a text that is already safe. `label` is ours.
    pub(crate) fn wrap(&self, label: &str, safe: &str) -> String {
        let end = if safe.is_empty() || safe.ends_with('\n') { "" } else { "\n" };
        format!("<<<{WORD} {} {label}\n{safe}{end}{WORD} {}>>>\n", self.nonce, self.nonce)
    }

    /// What a fence adds at most to the text in it, bytes.
    pub(crate) fn overhead(&self, label: &str) -> usize {
        self.wrap(label, "").len() + 1
    }
}

/// `with` has the length of `what` and cannot be part of a new occurrence of it.
fn replace_ascii_case_insensitive(text: &str, what: &str, with: &str) -> String {
    let folded = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = folded.get(from..).and_then(|rest| rest.find(what)) {
        out.push_str(text.get(from..from + at).unwrap_or(""));
        out.push_str(with);
        from += at + what.len();
    }
    out.push_str(text.get(from..).unwrap_or(""));
    out
}
