//! The Agent Client Protocol: the prompt comes as a request, and the end of the turn is its answer.

use std::io::{self, BufRead as _, BufReader, Read, Write};

use serde_json::{Value, json};

use super::{Call, Format, Outcome, Session};
use crate::step::{Fault, FaultKind, Retry, Usage, Window};

/// What a client asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The id of the request that the turn answers.
    id: Value,
    session: String,
    /// Its texts.
    pub(crate) prompt: String,
}

impl Asked {
    /// Answers the client's requests up to its prompt; at most `cap` bytes of them are read.
    ///
    /// # Errors
    /// Where the client ends before it asked for something.
    pub(crate) fn read(
        stdin: &mut dyn Read,
        stdout: &mut dyn Write,
        tag: &str,
        cap: u64,
    ) -> io::Result<Self> {
        let session = format!("ses_{tag}");
        for line in BufReader::new(stdin.take(cap)).lines() {
            let Ok(Value::Object(request)) = serde_json::from_str(&line?) else { continue };
            let (Some(id), Some(method)) = (request.get("id"), request.get("method")) else { continue };
            let answer = match method.as_str() {
                Some("initialize") => json!({"result": {
                    "protocolVersion": 1,
                    "agentCapabilities": {},
                    "authMethods": [],
                    "agentInfo": {"name": "fake-peer", "version": env!("CARGO_PKG_VERSION")},
                }}),
                Some("session/new") => json!({"result": {"sessionId": session}}),
                Some("session/prompt") => {
                    let parts = request.get("params").and_then(|params| params.get("prompt"));
                    let texts = parts.and_then(Value::as_array).into_iter().flatten();
                    let prompt = texts.filter_map(|part| part.get("text")?.as_str()).collect();
                    return Ok(Self { id: id.clone(), session, prompt });
                }
                _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
            };
            writeln!(stdout, "{}", response(id, answer))?;
            stdout.flush()?;
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client asked for nothing"))
    }
}

fn response(id: &Value, mut body: Value) -> Value {
    body["jsonrpc"] = json!("2.0");
    body["id"] = id.clone();
    body
}

#[derive(Debug)]
pub(super) struct Acp {
    asked: Asked,
    said: u32,
}

impl Acp {
    pub(super) fn new(asked: Asked) -> Self {
        Self { asked, said: 0 }
    }

    fn update(&self, update: &Value) -> String {
        let params = json!({"sessionId": self.asked.session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    }

    fn thought(&self, text: &str) -> Vec<String> {
        let content = json!({"type": "text", "text": text});
        vec![self.update(&json!({"sessionUpdate": "agent_thought_chunk", "content": content}))]
    }

    /// The size of the context and the cost so far.
    fn cost(&self, usage: &Usage) -> String {
        self.update(&json!({
            "sessionUpdate": "usage_update",
            "used": usage.input.saturating_add(usage.output),
            "size": 200_000,
            "cost": {"amount": usage.usd, "currency": "USD"},
        }))
    }
}

fn call_id(session: &Session, call: &Call) -> String {
    format!("call_{}{:04}", session.tag, call.number)
}

impl Format for Acp {
    fn open(&mut self, _session: &Session) -> Vec<String> {
        Vec::new()
    }

    fn say(&mut self, _session: &Session, text: &str, _so_far: &Usage) -> Vec<String> {
        self.said = self.said.saturating_add(1);
        vec![self.update(&json!({
            "sessionUpdate": "agent_message_chunk",
            "messageId": format!("msg_{}", self.said),
            "content": {"type": "text", "text": text},
        }))]
    }

    fn begin(&mut self, session: &Session, call: &Call) -> Vec<String> {
        vec![self.update(&json!({
            "sessionUpdate": "tool_call",
            "toolCallId": call_id(session, call),
            "title": call.command,
            "kind": "execute",
            "status": "in_progress",
            "rawInput": {"command": call.command},
        }))]
    }

    fn end(&mut self, session: &Session, call: &Call, outcome: &Outcome) -> Vec<String> {
        vec![self.update(&json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call_id(session, call),
            "status": if outcome.code == 0 { "completed" } else { "failed" },
            "content": [{"type": "content", "content": {"type": "text", "text": outcome.output}}],
            "rawOutput": {"output": outcome.output, "metadata": {"exit": outcome.code}},
        }))]
    }

    /// The protocol knows no retries; real agents think meanwhile, or are silent.
    fn retry(&mut self, _session: &Session, _retry: &Retry) -> Vec<String> {
        Vec::new()
    }

    fn window(&mut self, _session: &Session, _window: &Window) -> Vec<String> {
        Vec::new()
    }

    fn empty_step(&mut self, _session: &Session) -> Vec<String> {
        self.thought("")
    }

    fn done(&mut self, _session: &Session, usage: &Usage) -> Vec<String> {
        let tokens = json!({
            "totalTokens": usage.input.saturating_add(usage.output),
            "inputTokens": usage.input.saturating_sub(usage.cached),
            "cachedReadTokens": usage.cached,
            "outputTokens": usage.output.saturating_sub(usage.reasoning),
            "thoughtTokens": usage.reasoning,
        });
        let result = json!({"result": {"stopReason": "end_turn", "usage": tokens}});
        vec![self.cost(usage), response(&self.asked.id, result).to_string()]
    }

    fn failed(&mut self, _session: &Session, fault: &Fault, usage: &Usage) -> Vec<String> {
        let (code, words) = match fault.kind {
            FaultKind::Auth => (-32000, "Authentication required"),
            FaultKind::Quota => (
                -32603,
                "Internal error: You exceeded your current quota, please check your plan and billing details.",
            ),
            FaultKind::UsageCap => (-32603, "Internal error: The usage limit has been reached"),
            FaultKind::RateLimit => (-32603, "Internal error: Rate limit reached for requests."),
            FaultKind::Overload => (-32603, "Internal error: The server is overloaded."),
            FaultKind::Error => (-32603, "Internal error: scripted error"),
        };
        let message = fault.message.as_deref().unwrap_or(words);
        let error = json!({"error": {"code": code, "message": message}});
        vec![self.cost(usage), response(&self.asked.id, error).to_string()]
    }
}
