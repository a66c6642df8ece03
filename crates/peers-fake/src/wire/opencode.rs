//! `opencode run --format json`.

use serde_json::{Value, json};

use super::{Call, Format, Outcome, Session, now_ms, resets_at, status};
use crate::step::{Fault, FaultKind, Retry, Usage, Window};

#[derive(Debug, Default)]
pub(super) struct Opencode {
    step_open: bool,
}

impl Opencode {
    fn event(session: &Session, kind: &str, part: &[(&str, Value)]) -> String {
        let id = format!("ses_{}", session.tag);
        let mut body = json!({"id": "prt_fake", "messageID": "msg_fake", "sessionID": id});
        for (key, value) in part {
            body[*key] = value.clone();
        }
        json!({"type": kind, "timestamp": now_ms(), "sessionID": id, "part": body}).to_string()
    }

    fn step(&mut self, session: &Session) -> Option<String> {
        let begins = !std::mem::replace(&mut self.step_open, true);
        begins.then(|| Self::event(session, "step_start", &[("type", json!("step-start"))]))
    }

    fn finish(&mut self, session: &Session, reason: &str, usage: &Usage) -> String {
        self.step_open = false;
        let tokens = json!({
            "total": usage.input + usage.output,
            "input": usage.input.saturating_sub(usage.cached),
            "output": usage.output,
            "reasoning": usage.reasoning,
            "cache": {"read": usage.cached, "write": 0},
        });
        let part = [
            ("type", json!("step-finish")),
            ("reason", json!(reason)),
            ("tokens", tokens),
            ("cost", json!(usage.usd)),
        ];
        Self::event(session, "step_finish", &part)
    }
}

impl Format for Opencode {
    /// It prints nothing before the first reply begins.
    fn open(&mut self, _session: &Session) -> Vec<String> {
        Vec::new()
    }

    fn say(&mut self, session: &Session, text: &str, _so_far: &Usage) -> Vec<String> {
        let mut lines: Vec<String> = self.step(session).into_iter().collect();
        lines.push(Self::event(session, "text", &[("type", json!("text")), ("text", json!(text))]));
        lines
    }

    /// It prints nothing while a tool runs.
    fn begin(&mut self, session: &Session, _call: &Call) -> Vec<String> {
        self.step(session).into_iter().collect()
    }

    fn end(&mut self, session: &Session, call: &Call, outcome: &Outcome) -> Vec<String> {
        let output = if outcome.output.is_empty() { "(no output)" } else { &outcome.output };
        let part = [
            ("type", json!("tool")),
            ("tool", json!("bash")),
            ("callID", json!(format!("call_{}{:04}", session.tag, call.number))),
            (
                "state",
                json!({
                    "status": "completed",
                    "input": {"command": call.command},
                    "output": output,
                    "metadata": {"output": output, "exit": outcome.code, "truncated": false},
                    "title": call.command,
                }),
            ),
        ];
        vec![Self::event(session, "tool_use", &part), self.finish(session, "tool-calls", &Usage::default())]
    }

    /// It prints nothing while it retries.
    fn retry(&mut self, _session: &Session, _retry: &Retry) -> Vec<String> {
        Vec::new()
    }

    fn window(&mut self, _session: &Session, _window: &Window) -> Vec<String> {
        Vec::new()
    }

    fn empty_step(&mut self, session: &Session) -> Vec<String> {
        let mut lines: Vec<String> = self.step(session).into_iter().collect();
        lines.push(self.finish(session, "unknown", &Usage::default()));
        lines
    }

    fn done(&mut self, session: &Session, usage: &Usage) -> Vec<String> {
        let mut lines: Vec<String> = self.step(session).into_iter().collect();
        lines.push(self.finish(session, "stop", usage));
        lines
    }

    fn failed(&mut self, session: &Session, fault: &Fault, _usage: &Usage) -> Vec<String> {
        let (words, kind, code) = match fault.kind {
            FaultKind::Auth => ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
            FaultKind::Quota => (
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                "insufficient_quota",
            ),
            FaultKind::UsageCap => ("The usage limit has been reached", "usage_limit_reached", ""),
            FaultKind::RateLimit => ("Rate limit reached for requests.", "requests", "rate_limit_exceeded"),
            FaultKind::Overload => ("The server is overloaded.", "server_error", "overloaded"),
            FaultKind::Error => ("scripted error", "invalid_request_error", ""),
        };
        let words = fault.message.as_deref().unwrap_or(words);
        let status = if fault.kind == FaultKind::Quota { 429 } else { status(fault.kind) };
        let mut body = json!({"error": {"message": words, "type": kind, "code": code}});
        if fault.kind == FaultKind::UsageCap {
            body["error"]["resets_at"] = json!(resets_at(fault.resets_at, fault.resets_in));
        }
        let mut headers = json!({"content-type": "application/json"});
        if let Some(wait) = fault.retry_after {
            headers["retry-after"] = json!(wait.as_secs().to_string());
        }
        let line = json!({
            "type": "error",
            "timestamp": now_ms(),
            "sessionID": format!("ses_{}", session.tag),
            "error": {"name": "APIError", "data": {
                "message": words,
                "statusCode": status,
                "isRetryable": matches!(status, 429 | 529),
                "responseHeaders": headers,
                "responseBody": body.to_string(),
            }},
        });
        vec![line.to_string()]
    }
}
