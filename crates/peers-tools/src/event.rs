//! What a decoder says about a stream: events as they happen, one report at the end.

use std::time::Duration;

use peers_model::{Tokens, Usd};
use serde::{Deserialize, Serialize};

/// Longest text carried by one [`ToolEvent::Text`], in bytes.
pub const TEXT_BYTES: usize = 4 * 1024;
/// Longest [`ToolReport::final_text`], in bytes.
pub const FINAL_BYTES: usize = 64 * 1024;
/// Longest words of a failure that are recorded, in characters.
pub const FAILURE_CHARS: usize = 200;
/// Longest words of a failure as long as secrets may stand in them, in characters: what a cut leaves of a
/// secret is not recognised any more.
pub const WORDS_CHARS: usize = 4096;

/// One of a child's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something that happened inside an agent, read from its output.
///
/// The same bytes give the same events however they are split into chunks.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolEvent {
    /// A well-formed event that needs no more words: start-up, a new turn, a task notice.
    Activity,
    /// Text written by the agent, cut to [`TEXT_BYTES`].
    Text(String),
    /// The agent started a tool.
    ToolBegun {
        /// The tool's name, or the kind of item where the stream names no tool.
        name: String,
        /// Joins the start and the end of one call.
        id: String,
    },
    /// A tool came back.
    ToolEnded {
        /// The `id` of [`ToolEvent::ToolBegun`].
        id: String,
        /// The tool reported failure. This is the agent's business and no failure of the turn.
        is_error: bool,
    },
    /// A model step that brought neither text nor a tool call; `in_a_row` counts them.
    EmptyStep {
        /// How many such steps have followed each other without anything useful.
        in_a_row: u32,
    },
    /// Tokens or money spent since the last such event.
    Usage(UsageDelta),
    /// The provider's own view of the subscription window, which can pace a run before it is refused.
    PlanWindow {
        /// The provider refuses requests now.
        rejected: bool,
        /// How much of the window is used, in percent.
        used_percent: Option<u8>,
        /// When the window starts anew, seconds since the epoch.
        resets_at: Option<i64>,
    },
    /// The tool retries by itself. Not a failure: a stream with such notices can still end well.
    RetryNotice(Retry),
    /// The stream's terminal event is a failure.
    Failure(Failure),
    /// The stream's terminal event.
    Final {
        /// The conversation ended well. It says nothing about what was done.
        ok: bool,
        /// The last words, cut to [`FINAL_BYTES`].
        text: String,
    },
}

/// A retry that the tool announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The number of this attempt, from 1; 0 when the tool does not say.
    pub attempt: u32,
    /// After how many attempts the tool gives up; 0 when it does not say.
    pub of: u32,
    /// How long the tool waits first.
    pub delay: Option<Duration>,
    /// Why it retries.
    pub kind: FailureKind,
    /// The tool's words, at most [`WORDS_CHARS`] characters, secrets and all; empty when it has none.
    pub text: String,
}

/// Why a provider or a tool refused to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Credentials are missing, wrong or not allowed. Only a person can go on.
    Auth,
    /// No credit or quota is left. Only a person can go on.
    Quota,
    /// The subscription's window is used up; it opens again by itself.
    UsageCap {
        /// When it opens again, seconds since the epoch, if the stream says so in numbers.
        resets_at: Option<i64>,
    },
    /// Too many requests for now.
    RateLimit {
        /// The wait that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// The service is overloaded, broken or not reachable for now.
    Overload,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// A person must act, or a long time must pass, before another attempt can help.
    #[must_use]
    pub fn halts(self) -> bool {
        match self {
            Self::Auth | Self::Quota | Self::UsageCap { .. } => true,
            Self::RateLimit { .. } | Self::Overload | Self::Other => false,
        }
    }

    /// Another attempt later can help.
    #[must_use]
    pub fn transient(self) -> bool {
        match self {
            Self::RateLimit { .. } | Self::Overload => true,
            Self::Auth | Self::Quota | Self::UsageCap { .. } | Self::Other => false,
        }
    }

    /// The name used in records: `auth`, `quota`, `usage-cap`, `rate-limit`, `overload`, `other`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::UsageCap { .. } => "usage-cap",
            Self::RateLimit { .. } => "rate-limit",
            Self::Overload => "overload",
            Self::Other => "other",
        }
    }
}

/// A failure that ended a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The tool's words as they are, at most [`WORDS_CHARS`] characters, secrets and all: for
    /// [`crate::brief`].
    pub text: String,
    /// It came from the tool's event channel, not from a guess over free text.
    pub structured: bool,
}

/// The terminal event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// The conversation ended well.
    pub ok: bool,
}

/// What a run cost, as far as its stream says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent to the model, cached ones included.
    pub input: Tokens,
    /// The part of `input` that was read from a cache.
    pub cached_input: Tokens,
    /// The part of `input` that was written to a cache, where the tool tells it.
    pub cache_write: Tokens,
    /// Tokens that came back, reasoning included.
    pub output: Tokens,
    /// The part of `output` spent on reasoning, where the tool tells it.
    pub reasoning: Tokens,
    /// `input + output`, or the tool's own total.
    pub total: Tokens,
    /// The cost. `None` when the stream does not say: unknown is never zero.
    pub usd: Option<Usd>,
    /// Model turns or steps.
    pub turns: u32,
    /// The model that answered, where the stream names one.
    pub model: Option<String>,
}

/// An increment of [`Usage`]. The increments of a stream add up to its report, unless a final
/// account is smaller than what was counted on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageDelta {
    /// More input tokens, cached ones included.
    pub input: Tokens,
    /// More cached input tokens.
    pub cached_input: Tokens,
    /// More input tokens that were written to a cache.
    pub cache_write: Tokens,
    /// More output tokens.
    pub output: Tokens,
    /// More reasoning tokens.
    pub reasoning: Tokens,
    /// More tokens altogether.
    pub total: Tokens,
    /// More money, if the stream tells money.
    pub usd: Option<Usd>,
    /// The model that they were spent on, where the stream names one.
    pub model: Option<String>,
}

/// What a finished stream says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolReport {
    /// Tokens and money. When `usage_known` is false it is a lower bound.
    pub usage: Usage,
    /// The tool gave its own account of the tokens.
    pub usage_known: bool,
    /// The terminal event, if there was one.
    pub terminal: Option<Terminal>,
    /// The failure that the *terminal* event reports. An error event that the tool recovered from
    /// is none.
    pub failure: Option<Failure>,
    /// The agent's last words, cut to [`FINAL_BYTES`].
    pub final_text: String,
    /// A structured stream that stopped without its terminal event: killed, refused at start, crashed.
    pub no_end_event: bool,
    /// The tool's name for the conversation. On a resumed session some tools report cumulative usage;
    /// a caller that resumes takes differences per session.
    pub session: Option<String>,
    /// The last thing the stream said was this retry notice.
    pub retrying: Option<Retry>,
    /// The name of the latest tool call that never came back.
    pub unfinished_tool: Option<String>,
    /// Lines beyond the cap that were dropped unread.
    pub lines_dropped: u64,
}
