//! The agents' object store: what changed in it, and how it is made whole again.

mod budget;
mod complete;
mod derived;
mod look;
mod loose;
mod mark;
mod mend;
mod out;
mod packs;
mod remake;

pub use complete::Completed;
pub use mark::StoreMark;
pub use mend::StoreMended;
pub use remake::Remade;

pub(crate) use budget::{Bounded, Budget};
pub(crate) use derived::{Derived, derived};
pub(crate) use look::PACK_TIME;
