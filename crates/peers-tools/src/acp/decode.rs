//! Decodes the lines of our own bridge (`docs/formats/acp-bridge.md`).
//!
//! `end` and `error` are terminal. A message comes in pieces, so its lines are put together here. Costs are
//! those of the session so far. Tokens are what the agent says of its turn, which some say of the last
//! model step alone: they stay a lower bound.

use serde::Deserialize;

use crate::event::{FINAL_BYTES, TEXT_BYTES, ToolEvent};
use crate::jsonl::Line;
use crate::ledger::{Account, Ledger};
use crate::lenient::{Amount, Count, Flag, Int, Text, cut, parse_line};
use crate::signals::Evidence;
use crate::stream::{Lines, StreamDecoder};
use crate::tool::ExitKind;

/// The protocol's own code for a missing login.
const AUTH_REQUIRED: i64 = -32000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text<32>,
    id: Text<80>,
    message: Text<4096>,
    text: Text<4096>,
    name: Text<80>,
    title: Text<80>,
    #[serde(rename = "kind")]
    tool_kind: Text<80>,
    error: Flag,
    code: Int,
    data: Text<4096>,
    reason: Text<32>,
    input: Count,
    output: Count,
    thought: Count,
    cached_read: Count,
    cached_write: Count,
    total: Count,
    cost: Amount,
    currency: Text<8>,
}

/// The decoder of the bridge's stream.
pub(super) type AcpDecoder = StreamDecoder<State>;

/// What the stream has said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    ledger: Ledger,
    /// The message in the making, its beginning cut off where it is long.
    words: String,
    /// The id of that message, as far as it has one.
    message: String,
    /// The line of it that has no end yet.
    line: String,
}

impl Lines for State {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        if line.cut {
            self.ledger.line_dropped();
            return;
        }
        let Some(event) = parse_line::<Event>(line.bytes) else { return };
        if event.kind.as_str() == "text" {
            self.text(&event, out);
            return;
        }
        self.message_ended(out);
        match event.kind.as_str() {
            "session" => {
                self.ledger.session(event.id.0.as_ref());
                out.push(ToolEvent::Activity);
            }
            "tool" => {
                let names = [&event.name, &event.title, &event.tool_kind].map(|name| name.0.as_deref());
                let name = names.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("tool");
                self.ledger.begun(event.id.as_str(), name, out);
            }
            "tool_end" => self.ledger.ended(event.id.as_str(), "tool", event.error.0, out),
            "usage" => self.spent(&event, out),
            "error" => self.failed(&event, out),
            "end" => {
                self.ledger.one_more_turn();
                match event.reason.as_str() {
                    "end_turn" => self.ledger.end_well(out),
                    reason => {
                        let text = format!("the agent ended its turn: {reason}");
                        let failure = Evidence { text: &text, ..Evidence::default() }.failure();
                        self.ledger.end_badly(failure, out);
                    }
                }
            }
            _ => out.push(ToolEvent::Activity),
        }
    }

    fn ended(&mut self, _exit: ExitKind, out: &mut Vec<ToolEvent>) {
        self.message_ended(out);
    }

    fn into_ledger(self) -> Ledger {
        self.ledger
    }
}

impl State {
    /// A piece of a message. Whole lines are told as they end, pieces of one are a sign of life.
    fn text(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        if event.message.as_str() != self.message {
            self.message_ended(out);
            event.message.as_str().clone_into(&mut self.message);
        }
        let text = event.text.as_str();
        self.words.push_str(text);
        if self.words.len() > 2 * FINAL_BYTES {
            let excess = self.words.ceil_char_boundary(self.words.len() - FINAL_BYTES);
            self.words.drain(..excess);
        }
        self.line.push_str(text);
        let told = out.len();
        if let Some(end) = self.line.rfind('\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.say(&lines, out);
        }
        if self.line.len() > TEXT_BYTES {
            let line = std::mem::take(&mut self.line);
            self.say(&line, out);
        }
        if out.len() == told {
            out.push(ToolEvent::Activity);
        }
    }

    fn say(&mut self, text: &str, out: &mut Vec<ToolEvent>) {
        let mut rest = text.trim_end_matches('\n');
        while !rest.is_empty() {
            let part = cut(rest, TEXT_BYTES);
            self.ledger.text(part, out);
            rest = rest.get(part.len()..).unwrap_or_default();
        }
    }

    fn message_ended(&mut self, out: &mut Vec<ToolEvent>) {
        let line = std::mem::take(&mut self.line);
        self.say(&line, out);
        if !self.words.trim().is_empty() {
            let excess = self.words.len().saturating_sub(FINAL_BYTES);
            let from = self.words.ceil_char_boundary(excess);
            self.ledger.last_words(self.words.get(from..).unwrap_or_default());
        }
        self.words.clear();
        self.message.clear();
    }

    fn spent(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let Account { input, cached_input, cache_write, output, reasoning, total, usd } = self.ledger.spent();
        let (read, write) = (event.cached_read.or_zero(), event.cached_write.or_zero());
        let sent = event.input.or_zero().saturating_add(read).saturating_add(write);
        let said = event.output.or_zero().saturating_add(event.thought.or_zero());
        let stated = Account {
            input: input.max(sent),
            cached_input: cached_input.max(read),
            cache_write: cache_write.max(write),
            output: output.max(said),
            reasoning: reasoning.max(event.thought.or_zero()),
            total: total.max(event.total.0.unwrap_or_else(|| sent.saturating_add(said))),
            usd: event.cost.0.filter(|_| event.currency.as_str() == "USD").max(usd),
        };
        let more = stated.beyond(self.ledger.spent());
        let told = out.len();
        self.ledger.spend(more, out);
        if out.len() == told {
            out.push(ToolEvent::Activity);
        }
    }

    fn failed(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let code = event.code.0.unwrap_or_default();
        let codes: &[&str] = if code == AUTH_REQUIRED { &["authentication_failed"] } else { &[] };
        let (message, data) = (event.message.as_str(), event.data.as_str());
        let text = match (message.is_empty(), data.is_empty()) {
            (_, true) => message.to_owned(),
            (true, false) => data.to_owned(),
            (false, false) => format!("{message} ({data})"),
        };
        let failure = Evidence { codes, text: &text, ..Evidence::default() }.failure();
        self.ledger.end_badly(failure, out);
    }
}

#[cfg(test)]
mod tests {
    use peers_model::Usd;

    use super::*;
    use crate::event::{FailureKind, Stream, ToolReport};
    use crate::tool::Decoder;

    fn decode(lines: &str) -> (Vec<ToolEvent>, ToolReport) {
        let mut decoder = Box::new(AcpDecoder::new());
        let mut events = Vec::new();
        decoder.feed(Stream::Stdout, lines.as_bytes(), &mut events);
        let report = decoder.finish(ExitKind::Code(0), &mut events);
        (events, report)
    }

    fn texts(events: &[ToolEvent]) -> Vec<&str> {
        fn text(event: &ToolEvent) -> Option<&str> {
            if let ToolEvent::Text(text) = event { Some(text) } else { None }
        }
        events.iter().filter_map(text).collect()
    }

    fn text(message: &str, text: &str) -> String {
        format!("{}\n", serde_json::json!({"type": "text", "message": message, "text": text}))
    }

    #[test]
    fn pieces_of_a_message_become_lines_and_the_last_message_the_last_words() {
        let end = "{\"type\":\"end\",\"reason\":\"end_turn\"}\n";
        let (events, report) = decode(
            &[
                text("1", "Look"),
                text("1", "ing\nat "),
                text("1", "it"),
                text("2", "Do"),
                text("2", "ne."),
                end.to_owned(),
            ]
            .concat(),
        );
        assert_eq!(texts(&events), ["Looking", "at it", "Done."]);
        assert_eq!((report.final_text.as_str(), report.terminal.map(|end| end.ok)), ("Done.", Some(true)));
        // A tool between two pieces ends a message that has no id.
        let piece = |words: &str| format!("{{\"type\":\"text\",\"text\":\"{words}\"}}\n");
        let tool = "{\"type\":\"tool\",\"id\":\"t\",\"kind\":\"read\",\"title\":\"\"}\n";
        let (events, report) = decode(&[piece("a"), piece("b"), tool.to_owned(), piece("c")].concat());
        assert_eq!((texts(&events), report.final_text.as_str()), (vec!["ab", "c"], "c"));
        assert_eq!(report.unfinished_tool.as_deref(), Some("read"));
        assert!(report.no_end_event);
    }

    #[test]
    fn the_name_of_a_tool_is_as_short_as_those_of_other_programs() {
        for field in ["name", "title", "kind"] {
            let line = serde_json::json!({"type": "tool", "id": "t", field: "x".repeat(200)});
            let (events, report) = decode(&format!("{line}\n"));
            let name = "x".repeat(80);
            assert_eq!(events, [ToolEvent::ToolBegun { name: name.clone(), id: "t".to_owned() }], "{field}");
            assert_eq!(report.unfinished_tool, Some(name), "{field}");
        }
    }

    #[test]
    fn a_message_without_an_end_is_held_in_part() {
        let (events, report) = decode(&text("1", &"x".repeat(4000)).repeat(100));
        assert!(texts(&events).iter().all(|text| text.len() <= TEXT_BYTES));
        assert_eq!(report.final_text.len(), FINAL_BYTES);
    }

    #[test]
    fn costs_are_of_the_session_and_tokens_never_shrink() {
        let usage = |json: &str| format!("{{\"type\":\"usage\",{json}}}\n");
        let (_, report) = decode(
            &[
                usage("\"cost\":0.5,\"currency\":\"USD\",\"context\":900,\"window\":1000"),
                usage("\"cost\":0.25,\"currency\":\"EUR\""),
                usage("\"cost\":0.75,\"currency\":\"USD\""),
                usage("\"input\":10,\"output\":5,\"thought\":2,\"cached_read\":20,\"cached_write\":1,\"total\":38"),
                usage("\"input\":1,\"output\":1,\"total\":2"),
            ]
            .concat(),
        );
        let usage = &report.usage;
        assert_eq!((usage.input.0, usage.cached_input.0, usage.output.0), (31, 20, 7));
        assert_eq!((usage.reasoning.0, usage.total.0), (2, 38));
        assert_eq!(usage.usd.map(Usd::as_micros), Some(750_000));
        assert!(!report.usage_known, "a lower bound");
        assert_eq!(decode("{\"type\":\"end\",\"reason\":\"end_turn\"}\n").1.usage.usd, None);
    }

    #[test]
    fn an_error_is_judged_by_its_code_and_its_words() {
        for (code, words, data, kind) in [
            (-32000, "whatever", "", FailureKind::Auth),
            (-32603, "Internal error: Incorrect API key provided.", "{}", FailureKind::Auth),
            (-32603, "Internal error", "quota exceeded", FailureKind::Quota),
            (-32603, "Internal error", "", FailureKind::Other),
        ] {
            let line = serde_json::json!({"type": "error", "code": code, "message": words, "data": data});
            let (events, report) = decode(&format!("{line}\n"));
            let failure = report.failure.expect("a failure");
            assert_eq!((failure.kind, failure.structured), (kind, true), "{words}");
            assert!(matches!(events.last(), Some(ToolEvent::Final { ok: false, .. })));
        }
        for reason in ["refusal", "max_tokens", "max_turn_requests", "cancelled"] {
            let report = decode(&format!("{{\"type\":\"end\",\"reason\":\"{reason}\"}}\n")).1;
            let failure = report.failure.expect("a failure");
            assert!(failure.kind == FailureKind::Other && failure.text.ends_with(reason));
        }
    }
}
