//! Any other program: argv, prompt delivery and patterns come from configuration.

mod command;
mod decode;

pub use command::Generic;
pub(crate) use decode::TextDecoder;
