//! The messages of the Agent Client Protocol, version 1, as far as the bridge sends and reads them.
//!
//! What the bridge does not need is not read, and an optional field that holds something else counts as
//! absent: an agent of a newer version of the protocol works as far as it can.

use std::path::Path;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol.
pub(crate) const VERSION: u16 = 1;

/// The methods that are used.
pub(crate) mod method {
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const SESSION_NEW: &str = "session/new";
    pub(crate) const SESSION_PROMPT: &str = "session/prompt";
    pub(crate) const SESSION_UPDATE: &str = "session/update";
    pub(crate) const REQUEST_PERMISSION: &str = "session/request_permission";
}

/// Kinds of tools.
const TOOL_KINDS: [&str; 9] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"];

/// Who we are. No files and no terminal are offered: the agent has its own.
pub(crate) fn initialize() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        "clientInfo": {"name": "peers", "version": env!("CARGO_PKG_VERSION")},
    })
}

pub(crate) fn new_session(cwd: &Path) -> Value {
    json!({"cwd": cwd, "mcpServers": []})
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// The answer to a request for permission: the chosen option, or that none was.
pub(crate) fn permission(option: Option<&str>) -> Value {
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    json!({"outcome": outcome})
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct Error {
    pub(crate) code: i32,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl Error {
    pub(crate) fn new(code: i32, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }

    pub(crate) fn invalid_params() -> Self {
        Self::new(-32602, "Invalid params")
    }

    pub(crate) fn method_not_found() -> Self {
        Self::new(-32601, "Method not found")
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub(crate) protocol_version: u16,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) agent_info: Option<Implementation>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Implementation {
    pub(crate) name: String,
    pub(crate) version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) session_id: String,
}

/// The answer to the prompt, at the end of the turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Prompted {
    pub(crate) stop_reason: StopReason,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

/// Tokens of a turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(crate) struct Usage {
    pub(crate) total_tokens: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) thought_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) cached_read_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) cached_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest {
    pub(crate) tool_call: ToolCall,
    pub(crate) options: Vec<PermissionOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    pub(crate) option_id: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub(crate) kind: String,
}

/// A tool call, when it begins or changes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(crate) struct ToolCall {
    pub(crate) tool_call_id: String,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) title: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) name: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    status: Option<String>,
}

impl ToolCall {
    /// The kind of the tool, `other` where it is none that the protocol knows.
    pub(crate) fn kind(&self) -> &'static str {
        TOOL_KINDS.into_iter().find(|kind| self.kind.as_deref() == Some(kind)).unwrap_or("other")
    }

    /// Whether the call is over; `Some(true)`: it failed.
    pub(crate) fn failed(&self) -> Option<bool> {
        match self.status.as_deref() {
            Some("completed") => Some(false),
            Some("failed") => Some(true),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionNotification {
    pub(crate) session_id: String,
    pub(crate) update: Update,
}

/// What an agent tells of its turn while it lasts.
#[derive(Debug, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names of the protocol")]
pub(crate) enum Update {
    AgentMessageChunk(MessageChunk),
    AgentThoughtChunk {},
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCall),
    Plan {},
    AvailableCommandsUpdate {},
    UsageUpdate(ContextUsage),
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageChunk {
    pub(crate) content: Content,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) message_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Content {
    Text {
        text: String,
    },
    #[serde(other)]
    Other,
}

/// How full the context is, and what the session has cost so far.
#[derive(Debug, Deserialize)]
pub(crate) struct ContextUsage {
    pub(crate) used: u64,
    pub(crate) size: u64,
    #[serde(default, deserialize_with = "or_absent")]
    pub(crate) cost: Option<Cost>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Cost {
    pub(crate) amount: f64,
    pub(crate) currency: String,
}

/// A value of another type counts as absent.
fn or_absent<'de, T: DeserializeOwned, D: Deserializer<'de>>(reader: D) -> Result<Option<T>, D::Error> {
    Value::deserialize(reader).map(|value| serde_json::from_value(value).ok())
}
