//! Decodes the JSON lines of `opencode run --format json`.
//!
//! Usage is stated per step and summed. There is no end marker: a `step_finish` with reason `stop`
//! ends the conversation well, an `error` ends it badly, and a new step takes either back. Nothing is
//! printed while a tool runs or a request is retried, but for the log that `--print-logs` asks for.

use std::time::Duration;

use serde::Deserialize;

use crate::event::{FINAL_BYTES, Failure, FailureKind, Retry, ToolEvent};
use crate::jsonl::Line;
use crate::ledger::{Account, Ledger};
use crate::lenient::{Amount, Count, Int, Obj, Shape, Text, parse_line};
use crate::reset::header_wait;
use crate::signals::Evidence;
use crate::stream::{Lines, StreamDecoder};

use super::log::failed_request;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text<32>,
    /// Milliseconds since the epoch.
    timestamp: Int,
    #[serde(rename = "sessionID")]
    session: Text<80>,
    part: Obj<Part>,
    error: Obj<ErrorBody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    #[serde(rename = "type")]
    kind: Text<32>,
    reason: Text<32>,
    tokens: Obj<Tokens>,
    cost: Amount,
    text: Text<FINAL_BYTES>,
    tool: Text<80>,
    #[serde(rename = "callID")]
    call: Text<80>,
    state: Obj<CallState>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    total: Count,
    input: Count,
    output: Count,
    reasoning: Count,
    cache: Obj<Cache>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: Count,
    write: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallState {
    status: Text<32>,
    metadata: Obj<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    exit: Int,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    name: Text<64>,
    data: Shape<ErrorData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorData {
    message: Text<4096>,
    #[serde(rename = "statusCode")]
    status: Int,
    #[serde(rename = "responseHeaders")]
    headers: Obj<Headers>,
    #[serde(rename = "responseBody")]
    body: Text<16384>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Headers {
    #[serde(rename = "retry-after")]
    retry_after: Text<64>,
    #[serde(rename = "retry-after-ms")]
    retry_after_ms: Text<32>,
}

/// The body of a provider's refusal, as opencode quotes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Obj<BodyError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BodyError {
    #[serde(rename = "type")]
    kind: Text<64>,
    code: Text<64>,
    resets_at: Int,
    resets_in_seconds: Int,
}

/// The decoder of opencode's streams.
pub(super) type OpencodeDecoder = StreamDecoder<State>;

/// What the stream has said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    ledger: Ledger,
}

impl Lines for State {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        if line.cut {
            self.ledger.line_dropped();
            return;
        }
        let Some(event) = parse_line::<Event>(line.bytes) else { return };
        self.ledger.progress();
        self.ledger.session(event.session.0.as_ref());
        if event.kind.as_str() == "error" {
            let body = event.error.0.unwrap_or_default();
            self.ledger.end_badly(failure(&body, event.timestamp.0), out);
            return;
        }
        let Some(part) = &event.part.0 else {
            out.push(ToolEvent::Activity);
            return;
        };
        match (event.kind.as_str(), part.kind.as_str()) {
            ("step_start", _) => {
                self.ledger.reopen();
                self.ledger.step_begun();
                out.push(ToolEvent::Activity);
            }
            ("text", _) => {
                self.ledger.text(part.text.as_str(), out);
                self.ledger.last_words(part.text.as_str());
            }
            ("tool_use", _) => {
                let state = part.state.0.as_ref();
                let exit = state.and_then(|state| state.metadata.0.as_ref()).and_then(|data| data.exit.0);
                let is_error = state.is_some_and(|state| state.status.as_str() == "error")
                    || exit.is_some_and(|code| code != 0);
                self.ledger.ended(part.call.as_str(), part.tool.as_str(), is_error, out);
            }
            ("step_finish", _) | (_, "step-finish") => self.step_finish(part, out),
            _ => out.push(ToolEvent::Activity),
        }
    }

    fn aside(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        let Some(text) = failed_request(line.bytes).filter(|_| !line.cut) else { return };
        let Failure { kind, text, .. } = Evidence { text: &text, ..Evidence::default() }.failure();
        let kind = match kind {
            // A request that fails for no known cause is a connection that broke.
            FailureKind::Other => FailureKind::Overload,
            // When the window opens again only the error event at the end says.
            FailureKind::UsageCap { .. } => FailureKind::RateLimit { retry_after: None },
            kind => kind,
        };
        self.ledger.retry(Retry { attempt: 0, of: 0, delay: None, kind, text }, out);
    }

    fn into_ledger(self) -> Ledger {
        self.ledger
    }
}

impl State {
    fn step_finish(&mut self, part: &Part, out: &mut Vec<ToolEvent>) {
        self.ledger.one_more_turn();
        if let Some(tokens) = &part.tokens.0 {
            let (read, write) =
                tokens.cache.0.as_ref().map_or((0, 0), |cache| (cache.read.or_zero(), cache.write.or_zero()));
            let input = tokens.input.or_zero() + read + write;
            let reasoning = tokens.reasoning.or_zero();
            // Releases differ in whether `output` holds the reasoning; the total always does.
            let least = tokens.output.or_zero();
            let most = least + reasoning;
            let output = tokens.total.0.map_or(most, |total| total.saturating_sub(input).clamp(least, most));
            let account = Account {
                input,
                cached_input: read,
                cache_write: write,
                output,
                reasoning,
                total: tokens.total.0.unwrap_or(input + output),
                usd: part.cost.0,
            };
            self.ledger.spend(account, out);
            self.ledger.usage_known();
        }
        match part.reason.as_str() {
            "stop" => self.ledger.end_well(out),
            reason @ ("length" | "content-filter" | "error") => {
                let text = format!("the model stopped: {reason}");
                let failure = Evidence { text: &text, ..Evidence::default() }.failure();
                self.ledger.end_badly(failure, out);
            }
            _ => self.ledger.step_ended(out),
        }
    }
}

fn failure(error: &ErrorBody, timestamp_ms: Option<i64>) -> Failure {
    let name = error.name.as_str();
    match &error.data {
        Shape::Text(text) => Evidence { codes: &[name], text, ..Evidence::default() }.failure(),
        Shape::Neither => Evidence { codes: &[name], text: name, ..Evidence::default() }.failure(),
        Shape::Object(data) => {
            let body =
                crate::lenient::parse_line::<Body>(data.body.as_str().as_bytes()).unwrap_or_default().error.0;
            let body = body.unwrap_or_default();
            let resets_at = body.resets_at.0.or_else(|| {
                let seconds = body.resets_in_seconds.0.filter(|seconds| *seconds >= 0)?;
                Some(timestamp_ms?.div_euclid(1000).saturating_add(seconds))
            });
            let headers = data.headers.0.as_ref();
            let retry_after = headers.and_then(|headers| {
                let ms = headers.retry_after_ms.as_str().trim().parse::<u32>().ok();
                ms.map(|ms| Duration::from_millis(ms.into()))
                    .or_else(|| header_wait(headers.retry_after.as_str(), timestamp_ms))
            });
            let text = if data.message.as_str().is_empty() { name } else { data.message.as_str() };
            Evidence {
                status: data.status.0,
                codes: &[body.kind.as_str(), body.code.as_str(), name],
                text,
                retry_after,
                resets_at,
            }
            .failure()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Stream, ToolReport};
    use crate::tool::{Decoder, ExitKind};

    fn decode(parts: &[(Stream, &str)]) -> (Vec<ToolEvent>, ToolReport) {
        let mut decoder = Box::new(OpencodeDecoder::new());
        let mut events = Vec::new();
        for (stream, text) in parts {
            decoder.feed(*stream, text.as_bytes(), &mut events);
        }
        let report = decoder.finish(ExitKind::Code(0), &mut events);
        (events, report)
    }

    fn logged(error: &str) -> String {
        format!(
            "timestamp=T level=ERROR run=R message=\"stream error\" small=false error.error=\"{error}\"\n"
        )
    }

    #[test]
    fn a_failed_request_in_the_log_is_a_retry_until_the_stream_goes_on() {
        for (error, kind) in [
            (
                "AI_APICallError: Rate limit reached for requests.",
                FailureKind::RateLimit { retry_after: None },
            ),
            ("AI_APICallError: The server is overloaded.", FailureKind::Overload),
            ("AI_APICallError: You exceeded your current quota, please check your plan.", FailureKind::Quota),
            ("AI_APICallError: Incorrect API key provided.", FailureKind::Auth),
            (
                "AI_APICallError: The usage limit has been reached",
                FailureKind::RateLimit { retry_after: None },
            ),
            ("AI_JSONParseError: JSON parsing failed", FailureKind::Overload),
        ] {
            let line = logged(error);
            let notice = (Stream::Stderr, line.as_str());
            let (events, report) = decode(&[notice]);
            let retry = Retry { attempt: 0, of: 0, delay: None, kind, text: error.to_owned() };
            assert_eq!(events, [ToolEvent::RetryNotice(retry.clone())]);
            assert_eq!((report.retrying, report.failure), (Some(retry), None));
            let step = (Stream::Stdout, "{\"type\":\"step_start\",\"part\":{\"type\":\"step-start\"}}\n");
            assert_eq!(decode(&[notice, step]).1.retrying, None, "{error}");
        }
    }

    #[test]
    fn other_lines_of_the_log_and_a_line_that_was_cut_are_no_events() {
        let info = logged("x").replace("ERROR", "INFO");
        let long = logged(&"x".repeat(20_000));
        assert_eq!(decode(&[(Stream::Stderr, &info), (Stream::Stderr, &long)]).0, []);
    }
}
