//! Tokens, as the services report them in JSON and in server-sent events.

use hyper::header::HeaderValue;
use serde::Deserialize;

/// A line of events, or a whole JSON answer, beyond this is not read. Such an answer counts by its bytes.
const HELD: usize = 2 * 1024 * 1024;
/// Characters of a model's name.
const NAME: usize = 100;

/// Bytes of an event around the text that it carries.
const AROUND: usize = 80;
/// Bytes of text that count as one token.
const PER_TOKEN: usize = 4;

/// Tokens of one request. `input` does not contain what came from the cache or went to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

/// What was learned from an answer.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) usage: Usage,
    pub(super) model: Option<String>,
    /// About so many tokens came after the last report.
    pub(super) unreported: u64,
}

/// Reads an answer beside its way to the client; nothing waits for it.
#[derive(Debug)]
pub(super) struct Meter {
    shape: Shape,
    held: Vec<u8>,
    overflown: bool,
    pub(super) seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Events,
    Json,
    Other,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    model: Option<String>,
    usage: Option<Reported>,
    message: Option<Inner>,
    response: Option<Inner>,
}

#[derive(Deserialize)]
struct Inner {
    model: Option<String>,
    usage: Option<Reported>,
}

#[derive(Deserialize)]
struct Reported {
    #[serde(alias = "prompt_tokens")]
    input_tokens: Option<u64>,
    #[serde(alias = "completion_tokens")]
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    #[serde(alias = "prompt_tokens_details")]
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Usage {
    /// All tokens; `None` if nothing was reported.
    pub(super) fn total(self) -> Option<u64> {
        let Self { input, output, cache_read, cache_write } = self;
        [input, output, cache_read, cache_write].into_iter().flatten().reduce(u64::saturating_add)
    }

    /// Counts in a stream only grow.
    fn merge(&mut self, later: Self) {
        let Self { input, output, cache_read, cache_write } = later;
        self.input = self.input.max(input);
        self.output = self.output.max(output);
        self.cache_read = self.cache_read.max(cache_read);
        self.cache_write = self.cache_write.max(cache_write);
    }
}

impl From<Reported> for Usage {
    fn from(reported: Reported) -> Self {
        let Reported {
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            input_tokens_details,
        } = reported;
        // One wire format counts what came from the cache within the input, the other beside it.
        let within = input_tokens_details.and_then(|details| details.cached_tokens);
        Self {
            input: input_tokens.map(|all| all.saturating_sub(within.unwrap_or(0))),
            output: output_tokens,
            cache_read: cache_read_input_tokens.or(within),
            cache_write: cache_creation_input_tokens,
        }
    }
}

impl Seen {
    /// Takes in one JSON text. True if it says that an answer is complete.
    pub(super) fn take_in(&mut self, json: &[u8]) -> bool {
        let text = json.len().saturating_sub(AROUND) / PER_TOKEN;
        self.unreported = self.unreported.saturating_add(u64::try_from(text).unwrap_or(u64::MAX));
        // Only few of many events report usage.
        if !json.windows(7).any(|window| window == b"\"usage\"") {
            return false;
        }
        let Ok(Event { kind, model, usage, message, response }) = serde_json::from_slice::<Event>(json)
        else {
            return false;
        };
        let inner = message.or(response).unwrap_or(Inner { model: None, usage: None });
        if let Some(usage) = inner.usage.or(usage) {
            self.usage.merge(usage.into());
            self.unreported = 0;
        }
        if let Some(model) = inner.model.or(model) {
            self.model = Some(model.chars().filter(|c| !c.is_control()).take(NAME).collect());
        }
        matches!(kind.as_deref(), Some("response.completed" | "response.incomplete" | "response.failed"))
    }
}

impl Meter {
    /// For an answer with this content type.
    pub(super) fn new(content_type: Option<&HeaderValue>) -> Self {
        let text = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let shape = match text.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Shape::Events,
            "application/json" => Shape::Json,
            _ => Shape::Other,
        };
        Self { shape, held: Vec::new(), overflown: false, seen: Seen::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match self.shape {
            Shape::Other => {}
            Shape::Json => self.hold(bytes),
            Shape::Events => {
                for part in bytes.split_inclusive(|&byte| byte == b'\n') {
                    self.hold(part);
                    if part.ends_with(b"\n") {
                        self.finish();
                    }
                }
            }
        }
    }

    /// Reads what is held: the last line of events, or the JSON answer.
    pub(super) fn finish(&mut self) {
        if !self.overflown {
            let json = match self.shape {
                Shape::Events => self.held.strip_prefix(b"data:").unwrap_or_default(),
                Shape::Json | Shape::Other => &self.held,
            };
            self.seen.take_in(json);
        }
        self.overflown = false;
        self.held.clear();
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.overflown || self.held.len() + bytes.len() > HELD {
            self.overflown = true;
            self.held.clear();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metered(content_type: &'static str, text: &str, chunk: usize) -> Seen {
        let mut meter = Meter::new(Some(&HeaderValue::from_static(content_type)));
        for part in text.as_bytes().chunks(chunk) {
            meter.feed(part);
        }
        meter.finish();
        meter.seen
    }

    const MESSAGES: &str = "event: message_start\r\n\
        data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":{\"input_tokens\":7,\
        \"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":300,\"output_tokens\":1}}}\r\n\r\n\
        event: content_block_delta\n\
        data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"{\\\"usage\\\":{\\\"input_tokens\\\":9999}}\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":40}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":55}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";

    const RESPONSES: &str = "data: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-x\",\"usage\":null}}\n\n\
        data: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-x\",\"usage\":{\"input_tokens\":100,\
        \"input_tokens_details\":{\"cached_tokens\":60},\"output_tokens\":9,\"total_tokens\":109}}}";

    #[test]
    fn events_of_messages_are_metered_wherever_they_are_cut() {
        for chunk in [1, 2, 7, 64, 4096] {
            let seen = metered("text/event-stream; charset=utf-8", MESSAGES, chunk);
            let usage =
                Usage { input: Some(7), output: Some(55), cache_read: Some(300), cache_write: Some(20) };
            assert_eq!((seen.usage, seen.model.as_deref()), (usage, Some("claude-x")), "{chunk}");
        }
    }

    #[test]
    fn events_of_responses_are_metered_without_counting_the_cache_twice() {
        for chunk in [1, 5, 4096] {
            let seen = metered("text/event-stream", RESPONSES, chunk);
            let usage = Usage { input: Some(40), output: Some(9), cache_read: Some(60), cache_write: None };
            assert_eq!((seen.usage, seen.model.as_deref()), (usage, Some("gpt-x")), "{chunk}");
            assert_eq!(usage.total(), Some(109));
        }
    }

    #[test]
    fn json_answers_of_all_formats_are_metered() {
        let seen = metered(
            "application/json",
            r#"{"model":"m","usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":0}}"#,
            3,
        );
        assert_eq!(seen.usage.total(), Some(7));
        let chat = r#"{"model":"m","usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}"#;
        let usage = Usage { input: Some(8), output: Some(4), cache_read: Some(2), cache_write: None };
        assert_eq!(metered("application/json", chat, 3).usage, usage);
    }

    #[test]
    fn an_answer_without_usage_is_unknown_and_not_zero() {
        for text in
            ["{}", "{\"usage\":null}", "{\"usage\":{}}", "{\"usage\":\"much\"}", "[", "{\"input_tokens\":5}"]
        {
            assert_eq!(metered("application/json", text, 4096).usage.total(), None, "{text}");
        }
        assert_eq!(metered("text/html", "{\"usage\":{\"input_tokens\":3}}", 9).usage.total(), None);
    }

    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let text = format!("data: {}\n{MESSAGES}", "x".repeat(HELD + 1));
        assert_eq!(metered("text/event-stream", &text, 65536).usage.output, Some(55));
    }
}
