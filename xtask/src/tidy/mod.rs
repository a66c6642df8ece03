//! `cargo xtask tidy`: the rules of this repository that no compiler knows.
//!
//! [`table`] says what each crate may depend on and touch; the other modules compare the tree with it.
//! Start reading there. Every rule reports all its violations, so one run is enough to know what is wrong.

mod ceilings;
mod circles;
mod command;
mod dependencies;
mod documents;
mod finding;
mod leaks;
mod manifests;
mod source;
mod sources;
mod syntax;
mod table;

pub(crate) use command::{list_circles, run};
