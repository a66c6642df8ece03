//! The prompt of a turn: what a peer is told, in a fixed order, within a byte budget.
//!
//! [`assemble`] is deterministic: equal input, equal bytes. Instructions come first and are never
//! cut; they do not depend on the tick, so a tool that caches prompt prefixes can reuse them (only
//! the header of a skeptic turn stands before them). After them comes what belongs to this tick.
//! Everything that a peer, a program or the repository wrote stands in fences whose delimiter the
//! writer could not know, with control characters, escape sequences and invisible characters taken
//! out. Names with a grammar ([`peers_model::PeerName`] and the like) and the operator's own texts
//! (review prompts, goal descriptions) stand outside of fences, cleaned in the same way.

mod assemble;
mod blocks;
mod fence;
mod input;
mod share;
mod stable;
#[cfg(test)]
mod tests;
mod text;

pub use assemble::{Prompt, assemble};
pub use input::{
    BudgetLeft, BugLine, Findings, GateLine, GateState, InboxItem, LastHandoff, PeerMessage, PromptInput,
    ReviewAsk, StandstillLine, Task,
};
