//! `codex exec --json`.

use serde_json::{Value, json};

use super::{Call, Format, Outcome, Session, resets_at, status, wall_clock};
use crate::step::{Fault, FaultKind, Retry, Usage, Window};

#[derive(Debug, Default)]
pub(super) struct Codex {
    items: u32,
    open: u32,
}

impl Codex {
    fn next(&mut self) -> u32 {
        let item = self.items;
        self.items = self.items.saturating_add(1);
        item
    }
}

fn item(kind: &str, number: u32, fields: &[(&str, Value)]) -> String {
    let mut item = json!({"id": format!("item_{number}")});
    for (key, value) in fields {
        item[*key] = value.clone();
    }
    json!({"type": kind, "item": item}).to_string()
}

fn execution(call: &Call) -> Vec<(&'static str, Value)> {
    vec![("type", json!("command_execution")), ("command", json!(format!("/bin/sh -lc {:?}", call.command)))]
}

impl Format for Codex {
    fn open(&mut self, session: &Session) -> Vec<String> {
        vec![
            json!({"type": "thread.started", "thread_id": session.uuid()}).to_string(),
            json!({"type": "turn.started"}).to_string(),
        ]
    }

    fn say(&mut self, _session: &Session, text: &str, _so_far: &Usage) -> Vec<String> {
        let number = self.next();
        vec![item("item.completed", number, &[("type", json!("agent_message")), ("text", json!(text))])]
    }

    fn begin(&mut self, _session: &Session, call: &Call) -> Vec<String> {
        self.open = self.next();
        let mut fields = execution(call);
        fields.extend([
            ("aggregated_output", json!("")),
            ("exit_code", Value::Null),
            ("status", json!("in_progress")),
        ]);
        vec![item("item.started", self.open, &fields)]
    }

    fn end(&mut self, _session: &Session, call: &Call, outcome: &Outcome) -> Vec<String> {
        let mut fields = execution(call);
        fields.extend([
            ("aggregated_output", json!(outcome.output)),
            ("exit_code", json!(outcome.code)),
            ("status", json!(if outcome.code == 0 { "completed" } else { "failed" })),
        ]);
        vec![item("item.completed", self.open, &fields)]
    }

    fn retry(&mut self, _session: &Session, retry: &Retry) -> Vec<String> {
        let kind = FaultKind::named(&retry.why).unwrap_or_default();
        let text = format!("Reconnecting... {}/{} ({})", retry.attempt, retry.of, words(kind));
        vec![json!({"type": "error", "message": text}).to_string()]
    }

    fn window(&mut self, _session: &Session, _window: &Window) -> Vec<String> {
        Vec::new()
    }

    fn empty_step(&mut self, _session: &Session) -> Vec<String> {
        let number = self.next();
        vec![item("item.completed", number, &[("type", json!("reasoning")), ("text", json!(""))])]
    }

    fn done(&mut self, _session: &Session, usage: &Usage) -> Vec<String> {
        let line = json!({"type": "turn.completed", "usage": {
            "input_tokens": usage.input,
            "cached_input_tokens": usage.cached,
            "cache_write_input_tokens": 0,
            "output_tokens": usage.output,
            "reasoning_output_tokens": usage.reasoning,
        }});
        vec![line.to_string()]
    }

    fn failed(&mut self, session: &Session, fault: &Fault, _usage: &Usage) -> Vec<String> {
        let told = || match fault {
            Fault { kind: FaultKind::UsageCap, resets_at: None, resets_in: None, .. } => words(fault.kind),
            Fault { kind: FaultKind::UsageCap, .. } => {
                let at = resets_at(fault.resets_at, fault.resets_in);
                cap(&wall_clock(at, session.zone))
            }
            Fault { kind, .. } => words(*kind),
        };
        let text = fault.message.clone().unwrap_or_else(told);
        vec![
            json!({"type": "error", "message": text}).to_string(),
            json!({"type": "turn.failed", "error": {"message": text}}).to_string(),
        ]
    }
}

fn cap(until: &str) -> String {
    format!("You\u{2019}ve hit your usage limit. Upgrade your plan or try again at {until}.")
}

fn words(kind: FaultKind) -> String {
    let url = "url: http://127.0.0.1/v1/responses";
    match kind {
        FaultKind::Auth => {
            format!("unexpected status {} Unauthorized: Incorrect API key provided., {url}", status(kind))
        }
        FaultKind::Quota => "Quota exceeded. Check your plan and billing details.".to_owned(),
        FaultKind::UsageCap => cap("9:22 AM"),
        FaultKind::RateLimit => "exceeded retry limit, last status: 429 Too Many Requests".to_owned(),
        FaultKind::Overload => format!(
            "unexpected status {} <unknown status code>: The server is overloaded., {url}",
            status(kind)
        ),
        FaultKind::Error => "{\"error\": {\"message\": \"scripted error\"}}".to_owned(),
    }
}
