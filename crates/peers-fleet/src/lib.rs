//! The controller's logic: which loops an operator has, what becomes of them, how one is started and stopped.
//!
//! There is no daemon. The journal and the trusted store of each project say what its loop did; the registry
//! keeps only what supervision needs, and where the two differ the project is right: the run lock is held or it
//! is free. What is decided from what was seen is decided by a pure function ([`reconcile`]). Nothing here
//! prints, and nothing here trusts a process id: who is signalled was looked at a moment before, through a
//! handle that no other process can come to have.
//!
//! Start reading at [`registry`], then [`observe`], [`reconcile`], [`start`] and [`stop`].

pub mod budget;
pub mod checkup;
pub mod config;
pub mod fault;
pub mod ground;
pub mod notify;
pub mod observe;
pub mod oplock;
pub mod prune;
pub mod reconcile;
pub mod refresh;
pub mod registry;
pub mod roster;
pub mod runlog;
pub mod select;
pub mod service;
pub mod start;
pub mod stop;
pub mod supervise;
pub mod told;

pub use config::ConfigDir;
pub use registry::{Entry, Project, ProjectName, Registry};
