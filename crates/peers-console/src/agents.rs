//! The agents that both commands can configure.

use clap::ValueEnum;

/// An agent that peers can configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// opencode
    Opencode,
}

impl Agent {
    /// Its name, which is that of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }
}

/// The names of agents, if some were named.
#[must_use]
pub fn named(agents: &[Agent]) -> Option<Vec<&'static str>> {
    (!agents.is_empty()).then(|| agents.iter().map(|agent| agent.name()).collect())
}
