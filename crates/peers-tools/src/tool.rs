//! The two traits of an adapter and the plain data they work on.

use std::fmt;

use peers_model::config::Permissions;
use thiserror::Error;

use crate::event::{Stream, ToolEvent, ToolReport};
use crate::lead::{Own, SettingsFile, Wanted, Way};

/// Stands for the prompt's text in an argument.
pub const PROMPT: &str = "{PROMPT}";
/// Stands for the prompt file's path in an argument.
pub const PROMPT_FILE: &str = "{PROMPT_FILE}";
/// A prompt in an argument spills to a file above this many bytes: one argument of 128 KiB fails.
pub const ARGV_PROMPT_BYTES: usize = 96 * 1024;

/// Which adapter serves a peer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Any program that speaks the Agent Client Protocol.
    Acp,
    /// Any other program, by the name that the configuration gives it.
    Other(String),
}

impl ToolKind {
    /// The adapter for a configured tool name; an unknown name is served by the generic one.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "claude" => Self::Claude,
            "codex" => Self::Codex,
            "opencode" => Self::Opencode,
            "acp" => Self::Acp,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The configured name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Acp => "acp",
            Self::Other(name) => name,
        }
    }

    /// The values that the semantic field `reasoning` may take, lower case. Empty: not supported.
    #[must_use]
    pub fn reasoning_values(&self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["low", "medium", "high", "xhigh", "max"],
            Self::Codex => &["minimal", "low", "medium", "high", "xhigh"],
            Self::Opencode => &["minimal", "low", "medium", "high", "xhigh", "max"],
            Self::Acp | Self::Other(_) => &[],
        }
    }

    /// The values that the semantic field `provider` may take, lower case. Empty: not supported.
    #[must_use]
    pub fn provider_values(&self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["anthropic", "openrouter"],
            Self::Codex => &["openai", "openrouter"],
            Self::Opencode | Self::Acp | Self::Other(_) => &[],
        }
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a prompt reaches the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PromptMode {
    /// On standard input.
    #[default]
    Stdin,
    /// In a file whose path replaces [`PROMPT_FILE`].
    File,
    /// In place of [`PROMPT`] in each argument.
    ArgvSubstitute,
}

/// What the configuration says about a peer's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// The adapter.
    pub kind: ToolKind,
    /// The program and its arguments as written by the operator.
    pub argv: Vec<String>,
    /// How the prompt is delivered.
    pub prompt_mode: PromptMode,
    /// The semantic field `model`.
    pub model: Option<String>,
    /// The semantic field `reasoning`, lower case.
    pub reasoning: Option<String>,
    /// The semantic field `provider`, lower case.
    pub provider: Option<String>,
    /// What an agent is answered that asks through the protocol; means something for [`ToolKind::Acp`] alone.
    pub permissions: Permissions,
}

/// One request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The prompt.
    pub prompt: String,
    /// Where a prompt file may be put, should one be needed.
    pub prompt_file: Option<String>,
}

/// How to start the program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPlan {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Start our own program in its place, with these arguments and `argv` behind them.
    pub bridge: Option<Vec<String>>,
    /// What to write to standard input; `None` means the null device.
    pub stdin: Option<String>,
    /// Variables to add to the environment.
    pub env_add: Vec<(String, String)>,
    /// Variables to add whose value is another variable of the operator's: (name, source). The caller
    /// copies the value and redacts it everywhere.
    pub env_from: Vec<(String, String)>,
    /// Texts that must not appear in any log.
    pub redactions: Vec<String>,
    /// Files to write before the start into the directory of [`Way::state`]: name and text.
    pub state: Vec<(&'static str, String)>,
    /// The text to write to [`Ask::prompt_file`] (mode 0600) before the start.
    pub spill: Option<String>,
    /// What the operator should know.
    pub warnings: Vec<PlanWarning>,
}

/// A doubt about a command, readable as one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanWarning {
    /// The prompt is an argument. It matters only without an own PID namespace.
    #[error("the prompt is passed as an argument, which every user of this machine can read")]
    PromptInArgv,
    /// The prompt was too long for an argument.
    #[error("the prompt of {bytes} bytes is too long for an argument and goes through a file")]
    PromptSpilled {
        /// Size of the prompt.
        bytes: usize,
    },
    /// No token or cost accounting is possible.
    #[error("`{tool}` runs without structured output ({hint}), so tokens and cost stay unknown")]
    NoStructuredOutput {
        /// The tool's name.
        tool: String,
        /// The option to add.
        hint: &'static str,
    },
    /// The protocol leaves it to the agent what it tells.
    #[error(
        "`{tool}` tells what the agent chooses to tell: a cap on tokens or cost binds as far as that goes"
    )]
    AgentsOwnAccount {
        /// The tool's name.
        tool: String,
    },
    /// Claude Code refuses to start this way.
    #[error("claude needs `--verbose` together with `--output-format stream-json`")]
    NeedsVerbose,
}

/// A command that cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// There is no program.
    #[error("argv of `{tool}` is empty")]
    EmptyArgv {
        /// The tool's name.
        tool: String,
    },
    /// The prompt would be lost.
    #[error("argv of `{tool}` has no `{placeholder}`, which its prompt_mode needs")]
    MissingPlaceholder {
        /// The tool's name.
        tool: String,
        /// The placeholder.
        placeholder: &'static str,
    },
    /// A placeholder would reach the program as it stands.
    #[error("argv of `{tool}` has `{placeholder}`, which does not fit its prompt_mode")]
    UnusedPlaceholder {
        /// The tool's name.
        tool: String,
        /// The placeholder.
        placeholder: &'static str,
    },
    /// A file is needed and the caller offered none.
    #[error("the prompt needs a file, and no directory was given for it")]
    NoPromptFile,
    /// The tool gets its prompt in one way alone.
    #[error("`{tool}` gets its prompt by the protocol: leave prompt_mode out")]
    OnlyStdin {
        /// The tool's name.
        tool: String,
    },
    /// The tool knows no such field or value.
    #[error("`{tool}` does not support {field} `{value}`")]
    Unsupported {
        /// The tool's name.
        tool: String,
        /// The semantic field.
        field: &'static str,
        /// Its value.
        value: String,
    },
}

/// How a child ended, as far as a decoder cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It never started.
    NotStarted,
    /// Nobody knows.
    Unknown,
}

/// The environment variables that carry a tool's own login, passed only where nothing is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginEnv {
    /// Exact names.
    pub names: &'static [&'static str],
    /// Prefixes of names.
    pub prefixes: &'static [&'static str],
}

impl LoginEnv {
    /// Whether the variable `name` belongs to the login.
    #[must_use]
    pub fn passes(&self, name: &str) -> bool {
        self.names.contains(&name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// A place below the home directory in which a tool keeps its login, settings and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatePlace {
    /// Relative to the home directory.
    pub below: &'static str,
    /// A variable of the operator's that names another place.
    pub variable: Option<&'static str>,
}

impl StatePlace {
    pub(crate) const fn new(below: &'static str) -> Self {
        Self { below, variable: None }
    }

    pub(crate) const fn named(below: &'static str, variable: &'static str) -> Self {
        Self { below, variable: Some(variable) }
    }
}

/// A stateless adapter for one agent program.
pub trait Tool: Sync {
    /// Which tool this is; the generic adapter has an empty name.
    fn kind(&self) -> ToolKind;

    /// Builds the command for one request.
    ///
    /// # Errors
    /// [`PlanError`] names what the configuration has wrong. No error depends on the prompt's text.
    fn plan(&self, spec: &ToolSpec, ask: &Ask) -> Result<CommandPlan, PlanError>;

    /// A decoder for the tool's structured output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A decoder for what `argv` makes the tool print: [`Tool::decoder`] or one for plain text.
    fn decoder_for(&self, argv: &[String]) -> Box<dyn Decoder> {
        if self.structured(argv) { self.decoder() } else { Box::new(crate::generic::TextDecoder::new(true)) }
    }

    /// Whether `argv` asks for structured output, so that tokens, cost and failures are known.
    fn structured(&self, argv: &[String]) -> bool;

    /// The variables of the tool's own login.
    fn login_env(&self) -> LoginEnv;

    /// Where the tool keeps its state. A place that ends in `.json` is a file.
    fn state(&self) -> &'static [StatePlace] {
        &[]
    }

    /// The same for what `argv` runs, for tools that are not one program.
    fn state_for(&self, _argv: &[String]) -> &'static [StatePlace] {
        self.state()
    }

    /// Where the operator keeps its settings.
    fn settings(&self) -> Option<SettingsFile> {
        None
    }

    /// The services by any of which a proxy can serve it, the preferred one first. Empty: it needs its own login, since
    /// that leads elsewhere, or nobody here knows how to lead it.
    fn services(&self, _spec: &ToolSpec, _own: Own<'_>) -> Vec<Wanted> {
        Vec::new()
    }

    /// Changes the command of one of [`Tool::services`] so that it asks the proxy.
    fn lead(&self, _plan: &mut CommandPlan, _way: Way<'_>, _own: Own<'_>) {}

    /// The model that the command line of `spec` asks for: an argument of it, else the field `model`.
    /// `None`: it leaves the choice to the tool, or nobody here knows how to read it.
    fn model_asked(&self, spec: &ToolSpec) -> Option<String>;

    /// The variables of the login of what `argv` runs, for tools that are not one program.
    fn login_env_for(&self, _argv: &[String]) -> LoginEnv {
        self.login_env()
    }

    /// The variables that must be set and not blank before `spec` can run.
    fn required_env(&self, spec: &ToolSpec) -> Vec<String>;
}

/// Turns the bytes of one child into events. Never panics, holds a bounded amount of memory, and
/// gives the same events for the same bytes however they are split.
pub trait Decoder: Send + fmt::Debug {
    /// Takes the next bytes of a stream.
    fn feed(&mut self, from: Stream, chunk: &[u8], out: &mut Vec<ToolEvent>);

    /// How many bytes of unfinished lines it holds: never more than
    /// [`STREAM_LINE`](peers_model::limits::STREAM_LINE).
    fn held(&self) -> usize;

    /// Ends both streams; an unterminated last line counts as a line.
    fn finish(self: Box<Self>, exit: ExitKind, out: &mut Vec<ToolEvent>) -> ToolReport;
}

/// A byte cap as a size in memory.
pub(crate) fn byte_cap(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
