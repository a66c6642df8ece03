//! Importing the agents' history into the control directory.
//!
//! Small ranges are copied object by object in process. Larger ones, and anything of unusual shape,
//! go through `git fetch` with its consistency check. The fetch does not read the agents' git
//! directory either: it is pointed at a directory of ours that has our configuration, the references
//! as the library read them, and only borrows the agents' object store.

mod adopt;
mod bring;
mod edge;
mod fetch;
mod tips;

pub use bring::{Imported, Route};

pub(crate) use bring::raw_parents;
pub(crate) use fetch::Check;
pub(crate) use tips::parse_tips;
