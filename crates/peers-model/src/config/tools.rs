//! The older form of `peers`: a mapping from names to commands.

use super::{ARGV, Config, PeerSpec, Permissions, PromptMode, Role, SAID};
use crate::ids::PeerName;
use crate::keys::keys;

keys! {
    /// One agent of `tools`.
    pub struct ToolSpec {
        /// The program and its arguments; no shell is involved.
        argv: Vec<String> as ARGV,
        /// How the prompt reaches the program.
        prompt_mode: PromptMode = PromptMode::Stdin,
        /// The model, for claude, codex and opencode; translated into arguments. What `argv` says itself wins.
        model: Option<String> as SAID = None,
        /// claude: low, medium, high, xhigh, max; codex: minimal, low, medium, high, xhigh; opencode: all of these.
        reasoning: Option<String> as SAID = None,
        /// claude: anthropic, openrouter; codex: openai, openrouter; opencode: none, write `model: <provider>/<model>`.
        provider: Option<String> as SAID = None,
        /// Only for acp: what the agent is answered when it asks whether it may use a tool. Default: allow.
        permissions: Option<Permissions> = None,
    }
    gone {
        "name" => "the key of the entry is its name; write a list `peers` to choose both",
        "tool" => "the key of the entry is its tool; write a list `peers` to choose both",
        "role" => "entries of `tools` have no `role`; write a list `peers`",
    }
}

impl ToolSpec {
    /// The same as an entry of `peers`.
    #[must_use]
    pub fn peer(self, name: PeerName) -> PeerSpec {
        let Self { argv, prompt_mode, model, reasoning, provider, permissions } = self;
        let (tool, role) = (Some(name.as_str().to_owned()), Role::Default);
        PeerSpec { name, tool, argv, prompt_mode, role, model, reasoning, provider, permissions }
    }
}

impl Config {
    /// Makes each entry of `tools` a peer, in the order of their places in the file. That not both forms are
    /// there is checked by the reader.
    #[must_use]
    pub fn promote<P: Ord>(mut self, place: impl Fn(&PeerName) -> P) -> Self {
        if self.peers.is_empty() {
            self.peers = self.tools.iter().map(|(name, tool)| tool.clone().peer(name.clone())).collect();
            self.peers.sort_by_key(|peer| place(&peer.name));
        }
        self
    }
}
