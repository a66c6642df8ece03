//! Codex: `codex exec --json`.

mod command;
mod decode;

pub use command::Codex;
