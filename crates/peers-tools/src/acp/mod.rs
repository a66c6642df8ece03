//! Any agent that speaks the Agent Client Protocol, through the bridge of our own program.

mod command;
mod decode;

pub use command::Acp;
