//! What a loop asks of its operator, and what helps: the one place that decides it, for every view.
//!
//! [`table`](table::attention) goes from how a loop stands and what is known of it to advice, whose commands are
//! values; [`Spelling`] makes words of them for whoever reads it.

mod again;
mod caps;
mod cause;
mod facts;
mod peer;
mod running;
mod spelling;
mod stopped;
mod table;

pub(crate) use caps::key;
pub use cause::{Attention, Cause, Level};
pub(crate) use facts::Facts;
pub(crate) use peer::{back, out};
pub use spelling::{Spelling, Typed};
pub(crate) use stopped::{is_alarming, level_of};
pub(crate) use table::{FOREIGN_LOCK, NOT_SET_UP, attention};
