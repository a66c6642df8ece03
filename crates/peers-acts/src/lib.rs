//! What is done once, outside of a loop: verify, test the gates, land and undo, the next prompt, the doctor.
//!
//! Ring 3. Nothing here decides about the loop, and nothing is printed. Acts that only look take no lock and work
//! beside a running loop. Start reading at [`oneshot`], whose gates the others share.

pub mod amend;
pub mod containers;
pub mod contract;
pub mod doctor;
pub mod isolation;
pub mod land;
pub mod mutants;
pub mod oneshot;
pub mod preview;
pub mod sandbox;
mod scratch;
pub mod tools;
pub mod whole_loop;
