//! From a directory and flags to a running loop: preflight, lock, store, world, drive.
//!
//! Nothing is spawned and nothing is written before every check has passed; all findings are
//! reported at once. One thing comes before them: what a turn that was cut short did to the git directory
//! is put back, for they could not look at it otherwise.

mod control;
mod dirty;
mod finding;
pub mod gone;
mod load;
mod modes;
mod options;
mod outside;
mod preflight;
mod start;
pub mod walls;
mod watching;

pub use control::missing;
pub use control::strays;
pub use dirty::{are_operators, differs, uncommitted_paths};
pub use finding::{BootError, Finding, git_program};
pub use load::ACCEPT;
pub use load::{Acceptance, Loaded, acceptance, accepted_config, load, rules};
pub use modes::mode_files;
pub use options::RunOptions;
pub use options::configured;
pub use outside::{Outside, is_inside, outside};
pub use peers_core::machine::After;
pub use preflight::{Examined, Part, examine, full, quick_refusals, refusals, start_refusals};
pub use preflight::{open_files, open_repo, repo_finding, take_up};
pub use start::{Handover, RunSummary, new_run_id, run};
