//! Decodes the JSON lines of `codex exec --json`.
//!
//! The terminal event is `turn.completed` or `turn.failed`. An `error` line is neither: the tool may
//! recover. It counts only when nothing at all follows it. The stream knows no status numbers and no
//! money, so a failure is judged by its text, where two fixed phrases of codex carry the status.

use serde::Deserialize;

use crate::event::{FINAL_BYTES, Failure, FailureKind, Retry, ToolEvent};
use crate::jsonl::Line;
use crate::ledger::{Account, Ledger};
use crate::lenient::{Count, Int, Obj, Text, parse_line};
use crate::signals::Evidence;
use crate::stream::{Lines, StreamDecoder};
use crate::tool::ExitKind;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text<32>,
    thread_id: Text<80>,
    message: Text<4096>,
    error: Obj<ErrorBody>,
    usage: Obj<Spent>,
    item: Obj<Item>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    message: Text<4096>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spent {
    #[serde(rename = "input_tokens")]
    input: Count,
    #[serde(rename = "cached_input_tokens")]
    cached_input: Count,
    #[serde(rename = "cache_write_input_tokens")]
    cache_write: Count,
    #[serde(rename = "output_tokens")]
    output: Count,
    #[serde(rename = "reasoning_output_tokens")]
    reasoning: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    id: Text<80>,
    #[serde(rename = "type")]
    kind: Text<64>,
    text: Text<FINAL_BYTES>,
    tool: Text<80>,
    status: Text<32>,
    exit_code: Int,
}

/// Items that are no tool calls.
const NO_TOOLS: [&str; 5] = ["agent_message", "reasoning", "error", "todo_list", "plan"];

/// The decoder of codex's streams.
pub(super) type CodexDecoder = StreamDecoder<State>;

/// What the stream has said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    ledger: Ledger,
    /// The last `error` line, as long as nothing follows it.
    pending: Option<Failure>,
    /// What the last `turn.completed` stated.
    stated: Account,
}

impl Lines for State {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        if line.cut {
            self.ledger.line_dropped();
            return;
        }
        let Some(event) = parse_line::<Event>(line.bytes) else { return };
        self.pending = None;
        if event.kind.as_str() == "error" {
            self.error(event.message.as_str(), out);
            return;
        }
        self.ledger.progress();
        match event.kind.as_str() {
            "thread.started" => {
                self.ledger.session(event.thread_id.0.as_ref());
                out.push(ToolEvent::Activity);
            }
            "turn.started" => {
                self.ledger.reopen();
                out.push(ToolEvent::Activity);
            }
            "item.started" => self.item(&event, true, out),
            "item.completed" => self.item(&event, false, out),
            "turn.completed" => {
                if let Some(usage) = &event.usage.0 {
                    self.settle(usage, out);
                }
                self.ledger.one_more_turn();
                self.ledger.end_well(out);
            }
            "turn.failed" => {
                let text = event.error.0.as_ref().map_or("", |error| error.message.as_str());
                self.ledger.one_more_turn();
                self.ledger.end_badly(failure(text), out);
            }
            _ => out.push(ToolEvent::Activity),
        }
    }

    fn ended(&mut self, exit: ExitKind, out: &mut Vec<ToolEvent>) {
        if let Some(failure) = self.pending.take().filter(|_| exit != ExitKind::Code(0)) {
            self.ledger.end_badly(failure, out);
        }
    }

    fn into_ledger(self) -> Ledger {
        self.ledger
    }
}

impl State {
    fn error(&mut self, message: &str, out: &mut Vec<ToolEvent>) {
        if let Some(retry) = retry_notice(message) {
            self.ledger.retry(retry, out);
        } else {
            self.ledger.progress();
            self.pending = Some(failure(message));
            out.push(ToolEvent::Activity);
        }
    }

    fn item(&mut self, event: &Event, begins: bool, out: &mut Vec<ToolEvent>) {
        let Some(item) = &event.item.0 else {
            out.push(ToolEvent::Activity);
            return;
        };
        let kind = item.kind.as_str();
        if NO_TOOLS.contains(&kind) {
            if kind == "agent_message" && !begins {
                self.ledger.text(item.text.as_str(), out);
                self.ledger.last_words(item.text.as_str());
            } else {
                out.push(ToolEvent::Activity);
            }
            return;
        }
        let name = if item.tool.as_str().is_empty() { kind } else { item.tool.as_str() };
        if begins {
            self.ledger.begun(item.id.as_str(), name, out);
        } else {
            let is_error = item.status.as_str() == "failed" || item.exit_code.0.is_some_and(|code| code != 0);
            self.ledger.ended(item.id.as_str(), name, is_error, out);
        }
    }

    /// `usage` counts the whole thread, so a later account replaces an earlier one; one that is
    /// smaller cannot be cumulative and is added.
    fn settle(&mut self, usage: &Spent, out: &mut Vec<ToolEvent>) {
        let input = usage.input.or_zero();
        let output = usage.output.or_zero();
        let stated = Account {
            input,
            cached_input: usage.cached_input.or_zero(),
            cache_write: usage.cache_write.or_zero(),
            output,
            reasoning: usage.reasoning.or_zero(),
            total: input + output,
            usd: None,
        };
        let all = if stated.covers(self.stated) {
            self.ledger.spent().plus(stated.beyond(self.stated))
        } else {
            self.ledger.spent().plus(stated)
        };
        self.stated = stated;
        self.ledger.settle(all, out);
    }
}

/// `Reconnecting... 2/5 (cause)`.
fn retry_notice(message: &str) -> Option<Retry> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let (counts, cause) = rest.split_once(' ').unwrap_or((rest, ""));
    let (attempt, of) = counts.split_once('/')?;
    let cause = cause.trim().trim_start_matches('(').trim_end_matches(')');
    let Failure { kind, text, .. } = failure(cause);
    // A refused WebSocket is no refusal yet: codex then asks by HTTPS, and hears it again if it is one.
    let passes = kind == FailureKind::Other || cause.contains("url: ws");
    Some(Retry {
        attempt: attempt.parse().ok()?,
        of: of.parse().ok()?,
        delay: None,
        kind: if passes { FailureKind::Overload } else { kind },
        text,
    })
}

fn failure(text: &str) -> Failure {
    Evidence { status: status_of(text), text, ..Evidence::default() }.failure()
}

/// The status in codex's own wording, at the very start of a message and nowhere else.
fn status_of(text: &str) -> Option<i64> {
    let rest = text
        .strip_prefix("unexpected status ")
        .or_else(|| text.strip_prefix("exceeded retry limit, last status: "))?;
    let digits = rest.get(..3)?;
    let ends = rest.get(3..).is_some_and(|tail| !tail.starts_with(|c: char| c.is_ascii_alphanumeric()));
    if ends && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_counts_only_in_codexs_own_wording() {
        assert_eq!(status_of("unexpected status 401 Unauthorized: no"), Some(401));
        assert_eq!(status_of("exceeded retry limit, last status: 429 Too Many Requests"), Some(429));
        assert_eq!(status_of("the page said: unexpected status 401"), None);
        assert_eq!(status_of("unexpected status 4011"), None);
        assert_eq!(status_of("unexpected status 4é"), None);
    }

    #[test]
    fn a_retry_notice_tells_its_count_and_cause() {
        let retry =
            retry_notice("Reconnecting... 2/5 (unexpected status 401 Unauthorized: x)").expect("notice");
        assert_eq!((retry.attempt, retry.of, retry.kind), (2, 5, FailureKind::Auth));
        assert_eq!(retry_notice("Reconnecting to the database"), None);
        assert_eq!(retry_notice("Reconnecting... 1/5").map(|r| r.kind), Some(FailureKind::Overload));
    }

    #[test]
    fn a_refused_websocket_is_no_refusal_of_the_service() {
        let notice = |scheme: &str| {
            retry_notice(&format!(
                "Reconnecting... 2/5 (unexpected status 403 Forbidden: x, url: {scheme}://host/v1/responses)"
            ))
        };
        for scheme in ["ws", "wss"] {
            assert_eq!(notice(scheme).map(|r| r.kind), Some(FailureKind::Overload));
        }
        assert_eq!(notice("https").map(|r| r.kind), Some(FailureKind::Auth));
    }
}
