//! The executor: performs effects, supervises children, runs gates, drives the machine.
//!
//! Ring 3. It decides nothing (that is `peers-core`) and prints nothing (it emits notices). The
//! engine is synchronous and generic over its ports, so that the simulator drives the very code
//! that runs in production. Start reading at [`engine`].

pub mod boot;
pub mod cache;
pub mod clock;
pub mod drive;
pub mod engine;
pub mod env;
pub mod gitrepo;
pub mod guard;
pub mod hooks;
pub mod inputs;
pub mod measure;
mod messages;
mod notes;
pub mod outlets;
pub mod outward;
pub mod perform;
pub mod ports;
pub mod primer;
pub mod procs;
pub mod pulse;
pub mod stopping;
pub mod tmux;
mod tool_spec;
