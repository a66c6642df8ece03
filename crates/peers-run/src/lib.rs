//! The executor: performs effects, supervises children, runs gates, drives the machine.
//!
//! Ring 3. It decides nothing (that is `peers-core`) and prints nothing (it emits notices). The
//! engine is synchronous and generic over its ports, so that the simulator drives the very code
//! that runs in production. Start reading at [`engine`].

mod anchor;
pub mod boot;
mod cache;
pub mod clock;
pub mod doctor;
pub mod drive;
pub mod engine;
pub mod env;
pub mod gitrepo;
pub mod guard;
pub mod hooks;
pub mod inputs;
pub mod land;
mod messages;
pub mod oneshot;
pub mod operator;
mod outward;
pub mod perform;
pub mod place;
pub mod ports;
pub mod preview;
pub mod procs;
pub mod pulse;
pub mod scaffold;
mod scratch;
pub mod stopping;
pub mod tmux;
