//! opencode: `opencode run --format json`.

mod command;
mod decode;

pub use command::Opencode;
