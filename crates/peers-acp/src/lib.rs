//! The bridge to agents that speak the Agent Client Protocol: one prompt in, JSON lines out.
//!
//! Ring 3. A process of its own between the supervisor and the agent: it starts the agent, asks it the
//! prompt that it was given on standard input, answers its requests by policy, and prints what happens in
//! lines of our own (`docs/formats/acp-bridge.md`), so that nothing else of the product has to know the
//! protocol. It knows nothing of goals, ticks, git or the journal, touches no file and believes nothing:
//! whatever the agent sends is hostile, bounded and skipped where it makes no sense.
//!
//! Start reading at `talk.rs` (the conversation, a pure machine), then `bridge.rs` (what carries it).

mod agent;
mod bridge;
mod message;
mod options;
mod protocol;
mod report;
mod talk;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

pub use bridge::{Io, run};
pub use options::{Options, OptionsError};

/// The first argument by which our program is asked to be the bridge.
pub const ENTRY: &str = "__acp";

/// Runs the bridge on the arguments after [`ENTRY`] and returns its exit code: 0 the agent ended its turn,
/// 1 it did not (refusal, a limit, an error of its own), 2 the arguments make no sense, 3 it could not be
/// started, does not speak the protocol or died.
#[must_use]
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let io = Io { stdin: &mut io::stdin(), stdout: &mut io::stdout(), stderr: &mut io::stderr() };
    match Options::parse(args) {
        Ok(options) => ExitCode::from(run(&options, io)),
        Err(error) => {
            // Nobody is left to be told when standard error is gone.
            let _gone = io::Write::write_all(io.stderr, format!("peers {ENTRY}: {error}\n").as_bytes());
            ExitCode::from(peers_model::exit::USAGE)
        }
    }
}
