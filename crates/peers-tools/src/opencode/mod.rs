//! opencode: `opencode run --format json`.

mod command;
mod decode;
mod log;

pub use command::Opencode;
pub(crate) use log::is_failed_request;
