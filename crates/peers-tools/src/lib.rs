//! Per-tool adapters: how an agent's command line is built and what its output means.
//!
//! Ring 1. Pure: no files, processes, environment, network or clocks; bytes and plain data come in,
//! plain data goes out. It must never know about goals, ticks, git or the journal.
//!
//! Start reading at [`tool`] (the two traits), then [`claude`] as the fullest adapter. A new adapter
//! is a directory and one line in [`registry`].

pub mod acp;
pub mod billing;
pub mod classify;
pub mod claude;
pub mod codex;
pub mod cost;
pub mod event;
pub mod generic;
pub mod jsonl;
mod lenient;
mod model;
pub mod omens;
pub mod opencode;
pub mod patterns;
pub mod prices;
pub mod registry;
pub mod reset;
mod signals;
mod stream;
pub mod tool;

mod argv;
mod echo;
mod lead;
mod ledger;

pub use classify::{Classified, Facts, HitTime, classify};
pub use cost::{CostFrom, Meter, cost};
pub use event::{Failure, FailureKind, Retry, Stream, Terminal, ToolEvent, ToolReport, Usage, UsageDelta};
pub use lead::{Own, SettingsFile, Wanted, Way};
pub use model::other_model;
pub use omens::{Omen, Omens};
pub use patterns::{HitClass, PatternError, PatternHit, PatternScanner, Patterns};
pub use prices::{Price, Prices};
pub use registry::adapter;
pub use reset::{brief, opens_at, reset_at};
pub use signals::judge_text;
pub use tool::{
    Ask, CommandPlan, Decoder, ExitKind, LoginEnv, PlanError, PlanWarning, PromptMode, StatePlace, Tool,
    ToolKind, ToolSpec,
};

#[cfg(test)]
mod fixtures;
