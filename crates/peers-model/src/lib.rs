//! Names, configuration types, records, verdicts and exit codes: data, and the parsing of data.
//!
//! Ring 0. Nothing here decides anything, reads a clock, touches a file or knows a crate of ours.
//! Start reading at [`record`] (what the journal holds) and [`config`] (what an operator writes).

mod backend;
pub mod bug;
pub mod check;
pub mod claim;
pub mod command;
pub mod config;
pub mod exit;
pub mod goal;
pub mod handoff;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod login;
pub mod money;
pub mod outcome;
pub mod reader;
pub mod record;
pub mod request;
pub mod review;
pub mod step;
pub mod time;
pub mod trailer;
pub mod verdict;
pub mod weakening;

pub use backend::Backend;
pub use ids::{BugId, CommitId, GateId, GoalId, InvalidId, PeerName, ProjectId, RunId, TickNo, TreeId};
pub use money::{Tokens, Usd};
pub use request::RunRequest;
pub use step::StepId;
pub use time::{Mono, Timestamp};
