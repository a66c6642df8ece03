//! `hooks`: what of the operator's runs around turns and gates.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{ARGV, nz32};
use crate::keys::{Described, Shape, keys};

const COMMANDS: Shape = Shape::List { of: &HookCommand::SHAPE, least: 0, most: 20 };

/// When hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// Before a peer has its turn; the peer waits for it.
    PreTurn,
    /// After a turn was recorded.
    PostTurn,
    /// Before gates run; they wait for it.
    PreGate,
    /// After gates have answered.
    PostGate,
    /// After the loop stopped as `complete`.
    Converge,
    /// After it stopped for any other reason.
    Halt,
}

impl Hook {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::PreTurn, Self::PostTurn, Self::PreGate, Self::PostGate, Self::Converge, Self::Halt];

    /// Its key below `hooks`, which is also what the hook itself is told.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PreTurn => "pre_turn",
            Self::PostTurn => "post_turn",
            Self::PreGate => "pre_gate",
            Self::PostGate => "post_gate",
            Self::Converge => "converge",
            Self::Halt => "halt",
        }
    }

    /// Whether the loop has stopped when it runs.
    #[must_use]
    pub fn is_last(self) -> bool {
        matches!(self, Self::Converge | Self::Halt)
    }
}

keys! {
    /// The commands of each hook, in the order in which they run.
    #[derive(PartialEq, Eq)]
    pub struct Hooks: Default {
        /// Run before a peer has its turn, which waits for them.
        pre_turn: Vec<HookCommand> as COMMANDS = Vec::new(),
        /// Run after a turn was recorded.
        post_turn: Vec<HookCommand> as COMMANDS = Vec::new(),
        /// Run before gates, which wait for them.
        pre_gate: Vec<HookCommand> as COMMANDS = Vec::new(),
        /// Run after gates have answered.
        post_gate: Vec<HookCommand> as COMMANDS = Vec::new(),
        /// Run after the loop stopped as `complete`.
        converge: Vec<HookCommand> as COMMANDS = Vec::new(),
        /// Run after it stopped for any other reason.
        halt: Vec<HookCommand> as COMMANDS = Vec::new(),
    }
}

impl Hooks {
    /// The commands of one of them.
    #[must_use]
    pub fn of(&self, hook: Hook) -> &[HookCommand] {
        match hook {
            Hook::PreTurn => &self.pre_turn,
            Hook::PostTurn => &self.post_turn,
            Hook::PreGate => &self.pre_gate,
            Hook::PostGate => &self.post_gate,
            Hook::Converge => &self.converge,
            Hook::Halt => &self.halt,
        }
    }
}

keys! {
    /// One command of a hook.
    #[derive(PartialEq, Eq)]
    pub struct HookCommand {
        /// The program and its arguments; no shell is involved.
        cmd: Vec<String> as ARGV,
        /// Seconds before it is ended.
        timeout_s: NonZeroU32 = nz32(30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_hook_is_its_key_and_leads_to_its_commands() {
        for hook in Hook::ALL {
            assert_eq!(serde_json::to_value(hook).unwrap(), hook.word());
            let text = format!("{{\"{}\": [{{\"cmd\": [\"x\"]}}]}}", hook.word());
            let hooks: Hooks = serde_json::from_str(&text).unwrap();
            let found: Vec<Hook> =
                Hook::ALL.into_iter().filter(|other| !hooks.of(*other).is_empty()).collect();
            assert_eq!(found, [hook]);
            assert_eq!(hooks.of(hook)[0].timeout_s.get(), 30);
        }
    }
}
