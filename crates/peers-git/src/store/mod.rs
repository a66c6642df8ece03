//! Object stores: what the tip needs of the agents' one, and ours made whole again.

mod budget;
mod complete;
mod loose;
mod remake;
mod tip;

pub use complete::Completed;
pub use remake::Remade;
pub use tip::MissingObject;

pub(crate) use budget::{Bounded, Budget};
