//! Starts programs of a project, such as its test runner, each confined as the backend can.
//!
//! Knows nothing of checks, goals, git or the journal, and decides nothing: facts come back. A backend
//! confines; [`run_watched`] ends what takes too long and caps what is said, whatever the backend.
//! Start reading at [`Sandbox`].

mod none;
mod port;
mod watched;

pub use none::Unconfined;
pub use port::{ExecError, ExecSpec, OUTPUT_CAP, Output, Ran, Sandbox};
pub use watched::run_watched;
