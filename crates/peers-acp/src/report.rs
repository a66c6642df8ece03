//! The lines that the bridge prints. `docs/formats/acp-bridge.md` describes them.

use serde::Serialize;

use crate::protocol::{ContextUsage, Cost, Error, Usage};

/// Longest text in a line, in bytes.
pub(crate) const TEXT: usize = 4 * 1024;
/// Longest name, title or kind, in bytes.
pub(crate) const NAME: usize = 200;
/// Longest id, in bytes.
pub(crate) const ID: usize = 80;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Report {
    /// The agent says who it is.
    Agent { name: String, version: String },
    /// A conversation begins.
    Session { id: String },
    /// A piece of a message; a message ends where its id changes or something else is printed.
    Text {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        text: String,
    },
    /// The agent thinks.
    Thought,
    /// A tool begins.
    Tool {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        kind: &'static str,
        title: String,
    },
    /// A tool came back.
    ToolEnd { id: String, error: bool },
    /// What the agent says of its spending.
    Usage(Spent),
    /// A permission was asked for, and what it was answered.
    Permission { tool: String, answer: &'static str },
    /// A sign of life that needs no more words.
    Other { kind: String },
    /// The agent answered one of our requests with an error.
    Error {
        code: i32,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// The agent ended the turn.
    End {
        reason: &'static str,
        /// Lines that were no message, and lines beyond the limit of one.
        skipped: u64,
        dropped: u64,
    },
}

/// Tokens as the turn's answer states them, or the size of the context as updates do; the cost of the
/// session so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Spent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thought: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_write: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<String>,
}

impl Report {
    /// The line, with its line feed.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    pub(crate) fn error(error: &Error) -> Self {
        let data = error.data.as_ref().map(|data| match data.as_str() {
            Some(text) => text.to_owned(),
            None => data.to_string(),
        });
        Self::Error {
            code: error.code,
            message: cut(&error.message, TEXT),
            data: data.map(|data| cut(&data, TEXT)),
        }
    }

    pub(crate) fn other(kind: &str) -> Self {
        Self::Other { kind: cut(kind, ID) }
    }
}

impl From<&ContextUsage> for Spent {
    fn from(update: &ContextUsage) -> Self {
        let ContextUsage { used, size, cost } = update;
        let (cost, currency) = match cost {
            Some(Cost { amount, currency }) => (Some(*amount), Some(cut(currency, ID))),
            None => (None, None),
        };
        Self { context: Some(*used), window: Some(*size), cost, currency, ..Self::default() }
    }
}

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Self {
        Self {
            input: Some(usage.input_tokens),
            output: Some(usage.output_tokens),
            thought: usage.thought_tokens,
            cached_read: usage.cached_read_tokens,
            cached_write: usage.cached_write_tokens,
            total: Some(usage.total_tokens),
            ..Self::default()
        }
    }
}

/// At most `cap` bytes of `text`, cut between characters.
pub(crate) fn cut(text: &str, cap: usize) -> String {
    text.get(..text.floor_char_boundary(cap)).unwrap_or_default().to_owned()
}
