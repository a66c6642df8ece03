//! Claude Code: `claude -p --output-format stream-json --verbose`.

mod command;
mod decode;

pub use command::Claude;
