//! The conversation with an agent: a pure machine from its lines to what is sent and printed.

use std::path::PathBuf;

use peers_model::config::Permissions;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::message::{self, ECHOED_ID, Message};
use crate::protocol::{
    self, Content, Error, Implementation, Initialized, MessageChunk, NewSession, PermissionRequest, Prompted,
    SessionNotification, StopReason, ToolCall, Update, method,
};
use crate::report::{ID, NAME, Report, Spent, TEXT, cut};

/// So many lines in a row that are no message, and the agent speaks something else.
const NONSENSE: u32 = 10_000;
/// So many open calls of tools are remembered.
const OPEN_TOOLS: usize = 64;

/// What is to be done next, in order.
#[derive(Debug)]
pub(crate) enum Act {
    /// Send this request of ours to the agent.
    Send(Vec<u8>),
    /// Send this answer to something that it asked.
    Answer(Vec<u8>),
    /// Print this line.
    Print(Report),
    /// It is over.
    End(End),
}

/// How a conversation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The agent ended its turn.
    Done,
    /// It ended the turn otherwise, or answered with an error.
    Negative,
    /// It does not do what the protocol says, in words that follow the agent's name.
    Broken(String),
}

/// What we wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Initialize,
    NewSession,
    Prompt,
    Over,
}

impl Step {
    /// The number of the request; nothing answers to 0.
    fn id(self) -> u64 {
        match self {
            Self::Initialize => 1,
            Self::NewSession => 2,
            Self::Prompt => 3,
            Self::Over => 0,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Initialize => method::INITIALIZE,
            Self::NewSession => method::SESSION_NEW,
            Self::Prompt | Self::Over => method::SESSION_PROMPT,
        }
    }
}

/// One conversation: a session, a prompt, an answer.
#[derive(Debug)]
pub(crate) struct Talk {
    permissions: Permissions,
    prompt: String,
    cwd: PathBuf,
    step: Step,
    session: Option<String>,
    open: Vec<String>,
    skipped: u64,
    in_a_row: u32,
    dropped: u64,
}

impl Talk {
    pub(crate) fn new(permissions: Permissions, prompt: String, cwd: PathBuf) -> Self {
        Self {
            permissions,
            prompt,
            cwd,
            step: Step::Initialize,
            session: None,
            open: Vec::new(),
            skipped: 0,
            in_a_row: 0,
            dropped: 0,
        }
    }

    /// The first words.
    pub(crate) fn open() -> Vec<u8> {
        message::request(Step::Initialize.id(), Step::Initialize.method(), &protocol::initialize())
    }

    /// A line of the agent.
    pub(crate) fn heard(&mut self, line: &[u8]) -> Vec<Act> {
        let mut acts = Vec::new();
        let line = line.trim_ascii();
        if line.is_empty() || self.step == Step::Over {
            return acts;
        }
        let understood = match Message::parse(line) {
            Some(Message::Answer { id, outcome }) if id == self.step.id() => {
                self.answered(outcome, &mut acts);
                true
            }
            Some(Message::Answer { .. }) | None => false,
            Some(Message::Request { id, method, params }) => {
                self.asked(id, &method, params, &mut acts);
                true
            }
            Some(Message::LongId) => {
                self.long_id("a request", &mut acts);
                true
            }
            Some(Message::Notification { method, params }) => {
                self.told(&method, params, &mut acts);
                true
            }
        };
        if understood {
            self.in_a_row = 0;
        } else {
            self.nonsense(&mut acts);
        }
        acts
    }

    /// A line beyond the limit was dropped unread.
    pub(crate) fn dropped(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }

    fn nonsense(&mut self, acts: &mut Vec<Act>) {
        self.skipped = self.skipped.saturating_add(1);
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row >= NONSENSE {
            self.end(End::Broken(format!("printed {NONSENSE} lines in a row that are no messages")), acts);
        }
    }

    /// It may not make us hold or send more than we read.
    fn long_id(&mut self, of: &str, acts: &mut Vec<Act>) {
        self.end(End::Broken(format!("gave {of} an id of more than {ECHOED_ID} bytes")), acts);
    }

    fn end(&mut self, end: End, acts: &mut Vec<Act>) {
        self.step = Step::Over;
        acts.push(Act::End(end));
    }

    fn answered(&mut self, outcome: Result<&str, &str>, acts: &mut Vec<Act>) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.failed(error, acts),
        };
        let well = match self.step {
            Step::Initialize => self.greeted(result, acts),
            Step::NewSession => self.opened(result, acts),
            Step::Prompt => self.finished(result, acts),
            Step::Over => Some(()),
        };
        if well.is_none() {
            let method = self.step.method();
            self.end(End::Broken(format!("answered `{method}` with something else")), acts);
        }
    }

    /// An error in place of the answer.
    fn failed(&mut self, error: &str, acts: &mut Vec<Act>) {
        let step = self.step;
        let error = read::<Error>(error).unwrap_or_else(|| Error::new(0, "an error that is none"));
        acts.push(Act::Print(Report::error(&error)));
        if step == Step::Initialize {
            let what = format!("refused `{}`: {}", step.method(), cut(&error.message, NAME));
            self.end(End::Broken(what), acts);
        } else {
            self.end(End::Negative, acts);
        }
    }

    fn greeted(&mut self, result: &str, acts: &mut Vec<Act>) -> Option<()> {
        let hello: Initialized = read(result)?;
        if hello.protocol_version != protocol::VERSION {
            let what = format!("speaks version {} of the protocol, this is 1", hello.protocol_version);
            self.end(End::Broken(what), acts);
            return Some(());
        }
        if let Some(Implementation { name, version }) = &hello.agent_info {
            acts.push(Act::Print(Report::Agent { name: cut(name, NAME), version: cut(version, NAME) }));
        }
        self.step = Step::NewSession;
        let ask = protocol::new_session(&self.cwd);
        acts.push(Act::Send(message::request(self.step.id(), self.step.method(), &ask)));
        Some(())
    }

    fn opened(&mut self, result: &str, acts: &mut Vec<Act>) -> Option<()> {
        let NewSession { session_id } = read(result)?;
        if session_id.len() > ECHOED_ID {
            self.long_id("its session", acts);
            return Some(());
        }
        acts.push(Act::Print(Report::Session { id: cut(&session_id, ID) }));
        self.step = Step::Prompt;
        let ask = protocol::prompt(&session_id, &std::mem::take(&mut self.prompt));
        acts.push(Act::Send(message::request(self.step.id(), self.step.method(), &ask)));
        self.session = Some(session_id);
        Some(())
    }

    fn finished(&mut self, result: &str, acts: &mut Vec<Act>) -> Option<()> {
        let Prompted { stop_reason, usage } = read(result)?;
        if let Some(usage) = &usage {
            acts.push(Act::Print(Report::Usage(Spent::from(usage))));
        }
        let (reason, end) = match stop_reason {
            StopReason::EndTurn => ("end_turn", End::Done),
            StopReason::MaxTokens => ("max_tokens", End::Negative),
            StopReason::MaxTurnRequests => ("max_turn_requests", End::Negative),
            StopReason::Refusal => ("refusal", End::Negative),
            StopReason::Cancelled => ("cancelled", End::Negative),
        };
        acts.push(Act::Print(Report::End { reason, skipped: self.skipped, dropped: self.dropped }));
        self.end(end, acts);
        Some(())
    }

    /// A request of the agent.
    fn asked(&mut self, id: &RawValue, method: &str, params: &str, acts: &mut Vec<Act>) {
        let refusal = if method == method::REQUEST_PERMISSION {
            if let Some(request) = read::<PermissionRequest>(params) {
                return self.permit(id, &request, acts);
            }
            Error::invalid_params()
        } else {
            Error::method_not_found()
        };
        acts.push(Act::Print(Report::other(method)));
        acts.push(Act::Answer(message::answer::<(), _>(id, Err(&refusal))));
    }

    fn permit(&mut self, id: &RawValue, request: &PermissionRequest, acts: &mut Vec<Act>) {
        let wanted: &[&'static str] = match self.permissions {
            Permissions::Allow => &["allow_once", "allow_always"],
            // Never for good: what is refused for good is refused in the operator's own sessions, too.
            Permissions::Reject => &["reject_once"],
        };
        let of = |kind: &str| request.options.iter().find(|option| option.kind == kind);
        let chosen = wanted.iter().find_map(|kind| Some((of(kind)?, *kind)));
        if chosen.is_some_and(|(option, _)| option.option_id.len() > ECHOED_ID) {
            return self.long_id("an option of a permission", acts);
        }
        let answer = chosen.map_or("cancelled", |(_, kind)| kind);
        let response = protocol::permission(chosen.map(|(option, _)| option.option_id.as_str()));
        let tool = request.tool_call.title.as_deref().unwrap_or_else(|| request.tool_call.kind());
        acts.push(Act::Print(Report::Permission { tool: cut(tool, NAME), answer }));
        acts.push(Act::Answer(message::answer::<_, Error>(id, Ok(&response))));
    }

    /// A notification of the agent.
    fn told(&mut self, method: &str, params: &str, acts: &mut Vec<Act>) {
        let update = (method == method::SESSION_UPDATE)
            .then(|| read::<SessionNotification>(params))
            .flatten()
            .filter(|told| self.session.as_ref() == Some(&told.session_id));
        let report = match update.map(|told| told.update) {
            None => Report::other(method),
            Some(Update::AgentMessageChunk(MessageChunk { content, message_id })) => match content {
                Content::Text { text } => {
                    Report::Text { message: message_id.map(|id| cut(&id, ID)), text: cut(&text, TEXT) }
                }
                Content::Other => Report::other("agent_message_chunk"),
            },
            Some(Update::AgentThoughtChunk {}) => Report::Thought,
            Some(Update::UsageUpdate(update)) => Report::Usage(Spent::from(&update)),
            Some(Update::ToolCall(call) | Update::ToolCallUpdate(call)) => return self.tool(&call, acts),
            Some(Update::Plan {}) => Report::other("plan"),
            Some(Update::AvailableCommandsUpdate {}) => Report::other("available_commands_update"),
            Some(Update::Other) => Report::other("update"),
        };
        acts.push(Act::Print(report));
    }

    /// A call begins when it is first heard of and ends once.
    fn tool(&mut self, call: &ToolCall, acts: &mut Vec<Act>) {
        let id = cut(&call.tool_call_id, ID);
        let known = self.open.iter().position(|open| *open == id);
        if known.is_none() {
            acts.push(Act::Print(Report::Tool {
                id: id.clone(),
                name: call.name.as_deref().map(|name| cut(name, NAME)),
                kind: call.kind(),
                title: cut(call.title.as_deref().unwrap_or_default(), NAME),
            }));
        }
        match (call.failed(), known) {
            (Some(error), known) => {
                if let Some(at) = known {
                    self.open.remove(at);
                }
                acts.push(Act::Print(Report::ToolEnd { id, error }));
            }
            (None, None) => {
                if self.open.len() >= OPEN_TOOLS {
                    self.open.remove(0);
                }
                self.open.push(id);
            }
            (None, Some(_)) => acts.push(Act::Print(Report::other("tool_call_update"))),
        }
    }
}

fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}
