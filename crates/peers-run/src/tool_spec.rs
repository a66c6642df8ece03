//! From what the configuration says of a peer to what its adapter takes.

use peers_model::config::{PeerSpec, PromptMode as Configured};
use peers_tools::{PromptMode, ToolKind, ToolSpec};

/// What an adapter needs to know of a peer.
#[must_use]
pub fn tool_spec(peer: &PeerSpec) -> ToolSpec {
    let lower = |value: &Option<String>| value.as_ref().map(|v| v.trim().to_ascii_lowercase());
    ToolSpec {
        kind: ToolKind::from_name(peer.tool_name()),
        argv: peer.argv.clone(),
        prompt_mode: match peer.prompt_mode {
            Configured::Stdin => PromptMode::Stdin,
            Configured::File => PromptMode::File,
            Configured::ArgvSubstitute => PromptMode::ArgvSubstitute,
        },
        model: peer.model.as_ref().map(|m| m.trim().to_owned()),
        reasoning: lower(&peer.reasoning),
        provider: lower(&peer.provider),
        permissions: peer.permissions.unwrap_or_default(),
    }
}
