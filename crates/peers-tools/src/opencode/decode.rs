//! Decodes the JSON lines of `opencode run --format json`.
//!
//! Usage is stated per step and summed. There is no end marker: a `step_finish` with reason `stop`
//! ends the conversation well, an `error` ends it badly, and a new step takes either back. Nothing is
//! printed while a tool runs or a request is retried.

use std::time::Duration;

use serde::Deserialize;

use crate::event::{FINAL_BYTES, Failure, ToolEvent};
use crate::jsonl::Line;
use crate::ledger::{Account, Ledger};
use crate::lenient::{Amount, Count, Int, Obj, Shape, Text, parse_line};
use crate::reset::header_wait;
use crate::signals::Evidence;
use crate::stream::{Lines, StreamDecoder};

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
