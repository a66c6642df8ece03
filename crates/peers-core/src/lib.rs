//! The loop machine, gate board, turns, budgets, convergence, ledgers, prompts.
//!
//! Ring 1, pure: no clock, no randomness, no file, no process, no git, no `async`. Time and facts
//! come in as values; what is to happen goes out as values. Start reading at [`machine`].

pub mod apply;
pub mod board;
pub mod budget;
pub mod bugs;
pub mod cheat;
pub mod classify_path;
pub mod compose;
pub mod converge;
pub mod course;
pub mod dsl;
pub mod failed;
pub mod harvest;
pub mod lint;
pub mod machine;
pub mod phases;
pub mod plan;
pub mod prompt;
pub mod reviews;
pub mod scope;
pub mod standstill;
pub mod state;
pub mod steps;
pub mod test_output;
pub mod turns;
pub mod waiting;
pub mod watch;
