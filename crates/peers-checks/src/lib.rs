//! The built-in checks that goals name, and the bug ledger's command.
//!
//! A check is a function of commits and of the operator's own record: it reads git in process, takes
//! attribution from the journal, writes nothing and starts nothing: programs of the project run through a port that
//! whoever opens it lends ([`Tools`]). What cannot be measured is neither
//! a pass nor a failure. Start reading at [`registry()`]; [`CheckCx::open`] says what a check may see.

mod attribution;
pub mod bug_hunt;
mod check;
mod checks;
pub mod codemap;
mod cx;
pub mod history;
mod ledger;
mod manifests;
mod plan;
pub mod primer;
mod registry;
mod report;
mod reviews;
mod runners;
mod scan;
mod secrets;
pub mod staged;
#[cfg(test)]
mod tests;
mod tools;

pub use attribution::{Attribution, OpenTurn};
pub use check::Check;
pub use cx::{Asked, CheckCx, Contract, CouldNot, Ran, RanEnd, Runner};
pub use ledger::{LedgerReading, read as read_ledger};
pub use peers_model::check::{ArgKind, ArgSpec, Args, UsageError};
pub use registry::{find, names, registry, run, without_mode};
pub use report::{DEFAULT_LIMIT, Finding, Outcome, Report, Verdict};
pub use reviews::Reviews;
pub use tools::{Tool, ToolRan, Tools};
