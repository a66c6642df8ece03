//! Embedded templates: the files that `peers init` lays down in a repository.
//!
//! Data and text editing only: nothing here touches a disk, and what a template says is checked by
//! whoever reads it. Start reading at [`CONFIG`] and [`GOALS`].

pub mod hooks;
pub mod ignore;
pub mod key;

/// `.peers/config.yaml`.
pub const CONFIG: &str = include_str!("../../../templates/config.yaml");

/// `.peers/goals.yaml`.
pub const GOALS: &str = include_str!("../../../templates/goals.yaml");

/// The line that `.gitignore` gets, with its line end.
pub const GITIGNORE: &str = include_str!("../../../templates/gitignore");

/// `.peers/hooks/README.md`.
pub const HOOKS_README: &str = include_str!("../../../templates/hooks/README.md");
