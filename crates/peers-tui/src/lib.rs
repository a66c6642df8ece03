//! The cockpit: a live terminal over many loops, or over one.
//!
//! Model, message, update, view. [`Model`] holds what was read, never a file; `Model::update` takes one message at a
//! time and gives commands back; drawing reads the model alone. What is read comes from a [`Host`], on a thread of its
//! own; what is done is a command of `peers` or `peers-ctl` that somebody could type, run by [`Acts`]. This crate knows
//! no store, no git and no registry, and words of its own only where a key does something: what a loop is, needs and
//! did is worded by `peers-view`. Start reading at [`runtime::run`].

mod actions;
mod dialog;
mod filter;
mod host;
mod keys;
mod loops;
mod message;
mod model;
mod palette;
mod prefs;
mod runtime;
mod theme;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub use host::{
    Acts, At, Content, Diff, DiffFile, Done, Event, Host, Live, LiveLine, LogKind, Part, Snapshot, TickText,
};
pub use message::Msg;
pub use model::{Model, Options};
pub use prefs::Prefs;
pub use runtime::{Failure, Left, Pace, Signals, run};
pub use theme::{Theme, ThemeName};
