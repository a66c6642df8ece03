//! The steps of a turn, one type per step that has arguments.

mod claims;
mod damage;
mod kind;
mod output;
mod work;

pub use claims::{BugReport, BugResolve, Message, Review, Skeptic};
pub use damage::{EditGoals, ForgeNote, GitPart, Leave, MoveGit, ResetMode, Rewrite, SwitchBranch};
pub use kind::Step;
pub use output::{Drip, Emit, Fault, FaultKind, Flood, Retry, Stream, Usage, Window};
pub use work::{Commit, Fork, ForkKind, Hang, ReadPrompt, Shell, When, WriteFile};
#[cfg(test)]
pub(crate) use {kind::STEPS, output::EMITS};
