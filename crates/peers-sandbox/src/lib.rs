//! Starts programs of a project, such as its test runner, each confined as the backend can.
//!
//! Knows nothing of checks, goals, git or the journal, and decides nothing: facts come back. A [`Wall`] confines;
//! [`run_watched`] ends what takes too long and caps what is said, whatever the wall. Start reading at [`Wall`].

mod access;
mod bwrap;
mod landlock;
mod podman;
mod podman_here;
mod port;
mod settings;
mod sidecar;
mod wall;
mod watched;

pub use access::{Access, Caps, Mount, Network, SYSTEM, place_of_program, places_of_programs};
pub use bwrap::STUB as PROGRAM;
pub use peers_model::Backend;
pub use podman::{INSIDE as IN_IMAGE, USUAL_IMAGE};
pub use podman_here::Client as PodmanClient;
pub use port::{ExecError, OUTPUT_CAP, Output, Ran};
pub use sidecar::{Sidecar, SidecarEnd, SidecarError, SidecarSpec};
pub use wall::{Asked, Chosen, Wall};
pub use watched::run_watched;
