//! `peers init` and `peers deinit`: laying a control directory down in a repository, and taking it away;
//! [`detect`]: which gates fit a repository; [`project`]: a directory becomes a project.
//!
//! Both look first and refuse before anything is written; with `dry_run` they stop there and report what
//! they would do. Start reading at [`init`].

mod backup;
mod codex;
mod deinit;
pub mod detect;
mod error;
mod fault;
pub mod frozen;
mod gates;
mod host;
mod ignore;
mod init;
mod modes;
pub mod named;
mod programs;
pub mod project;
mod report;
mod settings;
mod target;
mod task;

#[cfg(test)]
mod world;

pub use deinit::{DeinitOptions, deinit};
pub use error::ScaffoldError;
pub use gates::Gates;
pub use host::{Did, HostHook, HostHooks, is_hooked, uninstall_host_hooks};
pub use init::{Existing, InitOptions, init};
pub use project::text_of;
pub use report::{Action, Change, DeinitReport, InitReport, Outcome, WORK_WITH_HOOKS};
pub use settings::{Agents, Field, PeerSetting, installed_agents};
pub use target::refuse_no_place;
