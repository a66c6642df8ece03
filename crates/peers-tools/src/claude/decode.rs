//! Decodes the JSON lines (or the one JSON object) of Claude Code's print mode.
//!
//! The terminal event is the last `result` line. Its `subtype` is `success` even when `is_error` is
//! true, so only `is_error` counts; a `subtype` that begins with `error` is a failure as well.

use std::time::Duration;

use peers_model::Usd;
use serde::Deserialize;

use crate::event::{FINAL_BYTES, FailureKind, Retry, TEXT_BYTES, ToolEvent};
use crate::jsonl::Line;
use crate::ledger::{Account, Ledger};
use crate::lenient::{Amount, CostByModel, Count, Flag, Int, List, Obj, Percent, Text, parse_line};
use crate::reset::words;
use crate::signals::Evidence;
use crate::stream::{Lines, StreamDecoder};

/// How many message ids are remembered to count each message's usage once.
const MESSAGES: usize = 32;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Text<32>,
    subtype: Text<64>,
    session_id: Text<80>,
    model: Text<120>,
    message: Obj<Message>,
    is_api_error_message: Flag,
    error: Text<64>,
    error_status: Int,
    attempt: Count,
    max_retries: Count,
    retry_delay_ms: Count,
    rate_limit_info: Obj<LimitInfo>,
    is_error: Flag,
    result: Text<FINAL_BYTES>,
    api_error: Text<64>,
    api_error_type: Text<64>,
    api_error_status: Int,
    num_turns: Count,
    total_cost_usd: Amount,
    usage: Obj<Spent>,
    model_usage_since_last_result: CostByModel,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    id: Text<80>,
    model: Text<120>,
    content: List<Block, 64>,
    usage: Obj<Spent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: Text<32>,
    text: Text<TEXT_BYTES>,
    id: Text<80>,
    name: Text<80>,
    tool_use_id: Text<80>,
    is_error: Flag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spent {
    #[serde(rename = "input_tokens")]
    uncached: Count,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_write: Count,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Count,
    #[serde(rename = "output_tokens")]
    output: Count,
    #[serde(rename = "output_tokens_details")]
    details: Obj<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Count,
}

impl Spent {
    fn account(&self) -> Account {
        let cached = self.cache_read.or_zero();
        let cache_write = self.cache_write.or_zero();
        let input = self.uncached.or_zero() + cache_write + cached;
        let output = self.output.or_zero();
        let reasoning = self.details.0.as_ref().map_or(0, |d| d.thinking_tokens.or_zero());
        let total = input + output;
        Account { input, cached_input: cached, cache_write, output, reasoning, total, usd: None }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimitInfo {
    status: Text<32>,
    #[serde(rename = "resetsAt")]
    resets_at: Int,
    utilization: Percent,
}

/// The decoder of Claude Code's streams.
pub(super) type ClaudeDecoder = StreamDecoder<State>;

/// What the stream has said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    ledger: Ledger,
    /// Usage counted per message id: a message comes once per content block.
    counted: Vec<(String, Account)>,
    /// `error` of the last synthetic message, which the `result` line does not repeat.
    error_code: String,
    resets_at: Option<i64>,
    /// Money of earlier results in the same stream.
    usd_so_far: Option<Usd>,
}

impl Lines for State {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>) {
        if line.cut {
            self.ledger.line_dropped();
            return;
        }
        let Some(event) = parse_line::<Event>(line.bytes) else { return };
        self.ledger.session(event.session_id.0.as_ref());
        match (event.kind.as_str(), event.subtype.as_str()) {
            ("system", "api_retry") => self.retry(&event, out),
            (kind, subtype) => {
                self.ledger.progress();
                match kind {
                    "system" => {
                        if subtype == "init" {
                            self.ledger.model(event.model.0.as_ref());
                        }
                        out.push(ToolEvent::Activity);
                    }
                    "assistant" => self.assistant(&event, out),
                    "user" => self.user(&event, out),
                    "rate_limit_event" => self.limit(&event, out),
                    "result" => self.result(&event, out),
                    _ => out.push(ToolEvent::Activity),
                }
            }
        }
    }

    fn into_ledger(self) -> Ledger {
        self.ledger
    }
}

impl State {
    fn retry(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let code = event.error.as_str();
        let kind = Evidence {
            status: event.error_status.0,
            codes: &[code],
            resets_at: self.resets_at,
            ..Evidence::default()
        }
        .kind();
        let small = |count: &Count| u32::try_from(count.or_zero()).unwrap_or(u32::MAX);
        let retry = Retry {
            attempt: small(&event.attempt),
            of: small(&event.max_retries),
            delay: event.retry_delay_ms.0.map(Duration::from_millis),
            // A retried failure without a cause is a connection that broke.
            kind: if kind == FailureKind::Other { FailureKind::Overload } else { kind },
            text: match event.error_status.0 {
                Some(status) => words(&format!("{code} (status {status})")),
                None => words(code),
            },
        };
        self.ledger.retry(retry, out);
    }

    fn assistant(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let Some(message) = &event.message.0 else {
            out.push(ToolEvent::Activity);
            return;
        };
        if event.is_api_error_message.0 {
            event.error.as_str().clone_into(&mut self.error_code);
            out.push(ToolEvent::Activity);
            return;
        }
        self.ledger.model(message.model.0.as_ref());
        let before = out.len();
        for block in &message.content.0 {
            match block.kind.as_str() {
                "text" => self.ledger.text(block.text.as_str(), out),
                "tool_use" => self.ledger.begun(block.id.as_str(), block.name.as_str(), out),
                _ => {}
            }
        }
        if out.len() == before {
            out.push(ToolEvent::Activity);
        }
        if let (Some(usage), Some(id)) = (&message.usage.0, &message.id.0) {
            self.count(id, usage.account(), out);
        }
    }

    fn count(&mut self, id: &str, account: Account, out: &mut Vec<ToolEvent>) {
        let seen = self.counted.iter_mut().find(|(seen, _)| seen == id);
        let before = if let Some((_, before)) = seen {
            std::mem::replace(before, account)
        } else {
            if self.counted.len() >= MESSAGES {
                self.counted.remove(0);
            }
            self.counted.push((id.to_owned(), account));
            Account::default()
        };
        self.ledger.spend(account.beyond(before), out);
    }

    fn user(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let before = out.len();
        for block in event.message.0.iter().flat_map(|message| &message.content.0) {
            if block.kind.as_str() == "tool_result" {
                self.ledger.ended(block.tool_use_id.as_str(), "tool", block.is_error.0, out);
            }
        }
        if out.len() == before {
            out.push(ToolEvent::Activity);
        }
    }

    fn limit(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        let Some(info) = &event.rate_limit_info.0 else {
            out.push(ToolEvent::Activity);
            return;
        };
        let rejected = info.status.as_str() == "rejected";
        if rejected {
            self.resets_at = info.resets_at.0;
        }
        out.push(ToolEvent::PlanWindow {
            rejected,
            used_percent: info.utilization.0,
            resets_at: info.resets_at.0,
        });
    }

    fn result(&mut self, event: &Event, out: &mut Vec<ToolEvent>) {
        if event.usage.0.is_some() || event.total_cost_usd.0.is_some() {
            let tokens = event.usage.0.as_ref().map_or_else(|| self.ledger.spent(), Spent::account);
            // `total_cost_usd` counts a resumed session from its beginning, the other only this run.
            let usd = match event.model_usage_since_last_result.0 {
                Some(usd) => Some(self.usd_so_far.unwrap_or_default() + usd),
                None => event.total_cost_usd.0,
            };
            self.usd_so_far = usd;
            self.ledger.settle(Account { usd, ..tokens }, out);
        }
        if let Some(turns) = event.num_turns.0 {
            self.ledger.turns(u32::try_from(turns).unwrap_or(u32::MAX));
        }
        self.ledger.last_words(event.result.as_str());
        let subtype = event.subtype.as_str();
        if event.is_error.0 || subtype.starts_with("error") {
            let text = if event.result.as_str().is_empty() { subtype } else { event.result.as_str() };
            let failure = Evidence {
                status: event.api_error_status.0,
                codes: &[
                    event.api_error.as_str(),
                    event.api_error_type.as_str(),
                    &self.error_code,
                    event.error.as_str(),
                ],
                text,
                retry_after: None,
                resets_at: self.resets_at,
            }
            .failure();
            self.ledger.end_badly(failure, out);
        } else {
            self.ledger.end_well(out);
        }
    }
}
