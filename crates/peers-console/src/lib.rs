//! What the commands share: how they write, how they fail, what they are about, and what an operator does.
//!
//! A command is a thin skin of arguments. It is given a [`Cx`](cx::Cx), says what it found through
//! [`Out`](output::Out), fails with a [`CommandError`](error::CommandError), and changes a project through
//! [`operator`]. This crate knows no subcommand; of the command line it has the arguments of `run` ([`run_args`]) and the names of [`agents`]. Start reading at [`cx`].

pub mod about;
pub mod agents;
pub mod checkup;
pub mod cx;
pub mod error;
pub mod ledger;
pub mod modes;
pub mod operator;
pub mod origin;
pub mod output;
pub mod parts;
pub mod peek;
pub mod rows;
pub mod run_args;
pub mod screen;
pub mod typist;
