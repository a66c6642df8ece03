//! The scripted peer that ships with the product: plays a YAML script as if it were an agent.
//!
//! It is a program of the *outside*: it reads its prompt, prints what the real tools print, runs
//! `git` as an agent would, and does any damage that its script asks for. Therefore it uses none of
//! the hardened paths, and nothing of the product may depend on what it does. It needs no account
//! and no network.
//!
//! Start reading at [`script`] (what can be written), then `play.rs` (what it does). The
//! reference for users is `docs/formats/fake-peer.md`.

mod args;
mod commit;
mod damage;
mod examples;
mod play;
mod player;
mod process;
mod shell;
mod turn;
mod wire;

pub mod script;
pub mod step;

pub use examples::{EXAMPLES, example};
pub use play::{Io, Options, Prompt, run};
pub use script::{Script, ScriptError};

/// Exit code: a step could not be performed, or the script reported a failure as the tool would.
pub const FAILED: u8 = 1;
/// Exit code: the script, its state or its turn is unusable.
pub const UNUSABLE: u8 = 3;
/// Exit code: an expectation written in the script did not hold.
pub const UNEXPECTED: u8 = 9;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
