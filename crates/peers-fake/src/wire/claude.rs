//! Claude Code's `stream-json`.

use serde_json::{Value, json};

use super::{Call, Format, Outcome, Session, now_ms, resets_at, status};
use crate::step::{Fault, FaultKind, Retry, Usage, Window};

#[derive(Debug, Default)]
pub(super) struct Claude {
    messages: u32,
    last_words: String,
    started_ms: u64,
}

impl Claude {
    fn message(&mut self, session: &Session, content: &Value, usage: &Value) -> String {
        self.messages = self.messages.saturating_add(1);
        json!({
            "type": "assistant",
            "message": {
                "id": format!("msg_{}{:04}", session.tag, self.messages),
                "type": "message",
                "role": "assistant",
                "model": session.model,
                "content": [content],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage,
            },
            "parent_tool_use_id": null,
            "session_id": session.uuid(),
            "uuid": session.uuid(),
        })
        .to_string()
    }

    fn result(&self, session: &Session, usage: &Usage, more: &[(&str, Value)]) -> String {
        let mut line = json!({
            "type": "result",
            "subtype": "success",
            "is_error": false,
            "api_error_status": null,
            "terminal_reason": "completed",
            "stop_reason": "end_turn",
            "result": self.last_words,
            "num_turns": self.messages.max(1),
            "duration_ms": now_ms().saturating_sub(self.started_ms),
            "duration_api_ms": 0,
            "session_id": session.uuid(),
            "uuid": session.uuid(),
            "total_cost_usd": usage.usd,
            "usage": tokens(usage),
            "modelUsage": {},
            "permission_denials": [],
        });
        for (key, value) in more {
            line[*key] = value.clone();
        }
        line.to_string()
    }
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    })
}

fn no_tokens() -> Value {
    tokens(&Usage::default())
}

impl Format for Claude {
    fn open(&mut self, session: &Session) -> Vec<String> {
        self.started_ms = now_ms();
        let line = json!({
            "type": "system",
            "subtype": "init",
            "cwd": session.cwd,
            "session_id": session.uuid(),
            "tools": ["Bash", "Edit", "Read", "Write"],
            "mcp_servers": [],
            "model": session.model,
            "permissionMode": "bypassPermissions",
            "apiKeySource": "none",
            "claude_code_version": "fake",
            "uuid": session.uuid(),
        });
        vec![line.to_string()]
    }

    fn say(&mut self, session: &Session, text: &str, _so_far: &Usage) -> Vec<String> {
        text.clone_into(&mut self.last_words);
        vec![self.message(session, &json!({"type": "text", "text": text}), &no_tokens())]
    }

    fn begin(&mut self, session: &Session, call: &Call) -> Vec<String> {
        let block = json!({
            "type": "tool_use",
            "id": id(session, call),
            "name": "Bash",
            "input": {"command": call.command, "description": "Run a scripted step"},
        });
        vec![self.message(session, &block, &no_tokens())]
    }

    fn end(&mut self, session: &Session, call: &Call, outcome: &Outcome) -> Vec<String> {
        let failed = outcome.code != 0;
        let text = if failed {
            format!("Exit code {}\n{}", outcome.code, outcome.output)
        } else if outcome.output.is_empty() {
            "(Bash completed with no output)".to_owned()
        } else {
            outcome.output.clone()
        };
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": [{
                "tool_use_id": id(session, call),
                "type": "tool_result",
                "content": text,
                "is_error": failed,
            }]},
            "parent_tool_use_id": null,
            "session_id": session.uuid(),
            "uuid": session.uuid(),
            "tool_use_result": {"stdout": outcome.output, "stderr": "", "interrupted": false},
        });
        vec![line.to_string()]
    }

    fn retry(&mut self, session: &Session, retry: &Retry) -> Vec<String> {
        let kind = FaultKind::named(&retry.why).unwrap_or_default();
        let line = json!({
            "type": "system",
            "subtype": "api_retry",
            "attempt": retry.attempt,
            "max_retries": retry.of,
            "retry_delay_ms": retry.delay.map_or(500, |delay| delay.as_millis()),
            "error_status": status(kind),
            "error": code(kind),
            "session_id": session.uuid(),
            "uuid": session.uuid(),
        });
        vec![line.to_string()]
    }

    fn window(&mut self, session: &Session, window: &Window) -> Vec<String> {
        let state = if window.used >= 1.0 { "rejected" } else { "allowed_warning" };
        vec![limit(session, state, resets_at(None, window.resets_in), Some(window.used))]
    }

    fn empty_step(&mut self, session: &Session) -> Vec<String> {
        vec![json!({"type": "system", "subtype": "status", "session_id": session.uuid()}).to_string()]
    }

    fn done(&mut self, session: &Session, usage: &Usage) -> Vec<String> {
        vec![self.result(session, usage, &[])]
    }

    fn failed(&mut self, session: &Session, fault: &Fault, usage: &Usage) -> Vec<String> {
        let status = status(fault.kind);
        let (kind, words) = match fault.kind {
            FaultKind::Auth => {
                ("authentication_error", "Invalid API key \u{b7} Fix external API key".to_owned())
            }
            FaultKind::Quota => ("invalid_request_error", "Credit balance is too low".to_owned()),
            FaultKind::UsageCap => {
                ("rate_limit_error", "You've hit your limit \u{b7} resets later".to_owned())
            }
            FaultKind::RateLimit => (
                "rate_limit_error",
                "API Error: Request rejected (429) \u{b7} This request would exceed the rate limit of your \
                 organization."
                    .to_owned(),
            ),
            FaultKind::Overload => {
                ("overloaded_error", "API Error: 529 The server is overloaded.".to_owned())
            }
            FaultKind::Error => ("invalid_request_error", "API Error: 400 scripted error".to_owned()),
        };
        let words = fault.message.clone().unwrap_or(words);
        let mut lines = Vec::new();
        if fault.kind == FaultKind::UsageCap {
            lines.push(limit(session, "rejected", resets_at(fault.resets_at, fault.resets_in), None));
        }
        let mut synthetic = json!({
            "type": "assistant",
            "message": {
                "id": session.uuid(),
                "model": "<synthetic>",
                "role": "assistant",
                "type": "message",
                "content": [{"type": "text", "text": words}],
                "usage": no_tokens(),
            },
            "session_id": session.uuid(),
            "uuid": session.uuid(),
            "error": code(fault.kind),
            "is_api_error_message": true,
            "api_error_status": status,
            "api_error_type": kind,
        });
        let mut more = vec![
            ("is_error", json!(true)),
            ("terminal_reason", json!("api_error")),
            ("stop_reason", json!("stop_sequence")),
            ("api_error_status", json!(status)),
            ("api_error_type", json!(kind)),
            ("result", json!(words)),
        ];
        if fault.kind == FaultKind::UsageCap {
            synthetic["api_error"] = json!("usage_limit_reached");
            more.push(("api_error", json!("usage_limit_reached")));
        }
        lines.push(synthetic.to_string());
        lines.push(self.result(session, usage, &more));
        lines
    }
}

fn id(session: &Session, call: &Call) -> String {
    format!("toolu_{}{:04}", session.tag, call.number)
}

/// The `error` field of notices.
fn code(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Auth => "authentication_failed",
        FaultKind::Quota => "billing_error",
        FaultKind::RateLimit | FaultKind::UsageCap => "rate_limit",
        FaultKind::Overload => "overloaded",
        FaultKind::Error => "unknown",
    }
}

fn limit(session: &Session, state: &str, resets_at: i64, used: Option<f64>) -> String {
    json!({
        "type": "rate_limit_event",
        "rate_limit_info": {
            "status": state,
            "resetsAt": resets_at,
            "rateLimitType": "five_hour",
            "utilization": used,
            "overageStatus": "rejected",
            "isUsingOverage": false,
        },
        "session_id": session.uuid(),
        "uuid": session.uuid(),
    })
    .to_string()
}
