//! Decodes plain text: there is no structured channel, so no verdict either.
//!
//! Serves unknown tools, and the known ones when their structured output is switched off. Of the
//! latter's text only strict own-line summaries of tokens and cost are believed.

use peers_model::Usd;

use crate::event::{Stream, TEXT_BYTES, ToolEvent, ToolReport};
use crate::jsonl::{Line, LineSplitter};
use crate::ledger::{Account, Ledger};
use crate::tool::{Decoder, ExitKind};

/// A decoder of plain text.
#[derive(Debug)]
pub(crate) struct TextDecoder {
    stdout: LineSplitter,
    stderr: LineSplitter,
    state: State,
}

impl TextDecoder {
    /// `summaries`: believe own-line summaries of tokens and cost.
    pub(crate) fn new(summaries: bool) -> Self {
        Self {
            stdout: LineSplitter::new(TEXT_BYTES),
            stderr: LineSplitter::new(TEXT_BYTES),
            state: State { summaries, ..State::default() },
        }
    }
}

impl Decoder for TextDecoder {
    fn feed(&mut self, from: Stream, chunk: &[u8], out: &mut Vec<ToolEvent>) {
        let Self { stdout, stderr, state } = self;
        match from {
            Stream::Stdout => stdout.feed(chunk, |line| state.line(from, line, out)),
            Stream::Stderr => stderr.feed(chunk, |line| state.line(from, line, out)),
        }
    }

    fn held(&self) -> usize {
        self.stdout.held() + self.stderr.held()
    }

    fn finish(mut self: Box<Self>, _exit: ExitKind, out: &mut Vec<ToolEvent>) -> ToolReport {
        let Self { stdout, stderr, state } = &mut *self;
        stdout.finish(|line| state.line(Stream::Stdout, line, out));
        stderr.finish(|line| state.line(Stream::Stderr, line, out));
        let State { mut ledger, last, tokens, usd, .. } = self.state;
        if tokens.is_some() || usd.is_some() {
            let total = tokens.unwrap_or(0);
            ledger.settle(Account { total, usd, ..Account::default() }, out);
        }
        ledger.last_words(&last);
        let mut report = ledger.into_report();
        report.usage_known = tokens.is_some();
        report.no_end_event = false;
        report
    }
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    summaries: bool,
    last: String,
    tokens: Option<u64>,
    usd: Option<Usd>,
    /// The previous line of each stream was `tokens used`.
    announced: [bool; 2],
}

impl State {
    fn line(&mut self, from: Stream, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        let text = String::from_utf8_lossy(line.bytes);
        let text = text.trim_end_matches('\r');
        if self.summaries && !line.cut {
            self.summary(from, text.trim());
        }
        if from == Stream::Stdout && !text.trim().is_empty() {
            text.clone_into(&mut self.last);
            self.ledger.text(text, out);
        }
    }

    fn summary(&mut self, from: Stream, line: &str) {
        let [stdout, stderr] = &mut self.announced;
        let announced = match from {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let was_announced = std::mem::replace(announced, false);
        let lower = line.to_ascii_lowercase();
        if lower == "tokens used" {
            *announced = true;
        } else if let Some(n) = lower
            .strip_prefix("tokens used:")
            .or_else(|| lower.strip_suffix("tokens used"))
            .or_else(|| was_announced.then_some(lower.as_str()))
            .and_then(number)
        {
            // The agent can print such a line as well: it takes nothing back.
            self.tokens = self.tokens.max(Some(n));
        } else if let Some(cost) = lower.strip_prefix("total cost:") {
            let dollars = cost.trim().strip_prefix('$').and_then(|n| n.parse::<f64>().ok());
            self.usd = self.usd.max(dollars.and_then(Usd::from_f64));
        }
    }
}

/// A whole number with optional thousands separators.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| *c != ',').collect();
    if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(summaries: bool, stdout: &str, stderr: &str) -> ToolReport {
        let mut decoder = Box::new(TextDecoder::new(summaries));
        let mut events = Vec::new();
        decoder.feed(Stream::Stdout, stdout.as_bytes(), &mut events);
        decoder.feed(Stream::Stderr, stderr.as_bytes(), &mut events);
        decoder.finish(ExitKind::Code(0), &mut events)
    }

    #[test]
    fn own_line_summaries_are_read_in_each_wording() {
        for (stdout, stderr) in [
            ("done\n1,234 tokens used\n", ""),
            ("done\ntokens used: 1234", ""),
            ("done\n", "tokens used\n1,234\n"),
        ] {
            let report = report(true, stdout, stderr);
            assert_eq!((report.usage.total.0, report.usage_known), (1234, true), "{stdout:?}{stderr:?}");
        }
        assert_eq!(report(true, "Total cost: $0.25", "").usage.usd, Usd::from_f64(0.25));
    }

    #[test]
    fn prose_about_tokens_is_no_account() {
        let report = report(true, "I saw 99 tokens used here\ntokens used: many\n-5 tokens used\n", "");
        assert_eq!((report.usage.total.0, report.usage_known, report.usage.usd), (0, false, None));
    }

    #[test]
    fn an_unknown_tool_has_neither_tokens_nor_a_verdict() {
        let report = report(false, "tokens used: 5\nERROR rate limit\n", "");
        assert_eq!((report.usage.total.0, report.usage_known), (0, false));
        assert!(report.terminal.is_none() && report.failure.is_none() && !report.no_end_event);
        assert_eq!(report.final_text, "ERROR rate limit");
    }
}
