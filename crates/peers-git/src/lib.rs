//! Everything asked of git, hardened: facts, diffs, worktrees, control git dir.
//!
//! Every repository that agents can write to is hostile input: its configuration, hooks, attributes,
//! references, file names. Three rules follow. The agents' repository is only ever opened in process,
//! by [`PeerRepo`], with its configuration thrown away. What decides a verdict is read from a
//! repository of our own, the [`ControlDir`], into which the agents' history is imported. And the `git`
//! program runs on that directory alone ([`Git`] is the only builder), never with the agents' git
//! directory, so no hook, filter, pager or helper of theirs has a place to run in.
//!
//! The crate knows nothing of peers, ticks, goals or the journal, prints nothing, reads no environment
//! variable and stores nothing outside the directories that it is given.
//!
//! Start reading at [`PeerRepo::open`], [`ControlDir::import`] and [`ControlDir::tree_state`].

mod aside;
mod bare;
mod blame;
mod blob;
mod checkout;
mod cli;
mod control;
mod copy;
mod diff;
mod error;
mod facts;
mod files;
mod first;
mod gitconfig;
mod guard;
mod hygiene;
mod ids;
mod import;
mod index_entries;
mod index_file;
mod index_mark;
mod inspect;
mod known;
mod listings;
mod merge;
mod notes;
mod objects;
mod outward;
mod place;
mod plain_head;
mod ref_list;
mod refs;
mod repo;
mod reset;
mod salvage;
mod snapshot;
mod store;
mod turngit;
mod unfinished;
mod unfollowed;
mod walk;
mod worktree;
mod write;

#[cfg(test)]
mod tests;

pub use blame::{BLAME_CAP, Origin};
pub use blob::{Blob, ScopeFacts, TreeItem};
pub use checkout::CheckoutReport;
pub use cli::{Git, GitVersion};
pub use control::{ControlDir, operator_excludes};
pub use diff::{ChangeKind, DiffStat, DiffText, PathChange};
pub use error::{BusyState, CliError, GitError, RepoError};
pub use facts::{CommitFact, Facts, Head, Identity, MESSAGE_CAP};
pub use first::{FirstCommit, operator_identity};
pub use guard::{GuardChange, GuardHow, GuardItem, GuardSnapshot};
pub use import::{Imported, Route};
pub use index_mark::{IndexMark, IndexSettled, LeftOut};
pub use inspect::{GitWarning, WarningKind, scan};
pub use known::Generation;
pub use merge::{MergeStyle, Merged};
pub use outward::OutwardLink;
pub use plain_head::PlainHead;
pub use ref_list::{BranchState, RefValue};
pub use repo::{PeerRepo, Unlocked};
pub use reset::Reset;
pub use salvage::{SalvageRef, SalvageSeen};
pub use snapshot::{DirtyFile, DirtyStatus, StoredTree, SubmoduleState, TreeState};
pub use store::{Completed, MissingObject, Remade};
pub use turngit::{
    Accepted, BranchMoved, Harvest, HarvestSpec, KeptRef, MadeTurn, NestedGit, NestedSeen, Published,
    TurnFailure, TurnGit, TurnMount, TurnSpec, operator_config_files, readable_config,
};
pub use unfinished::{Begun, Unfinished};
pub use unfollowed::Unfollowed;
pub use walk::{NewCommit, WALK_CAP};
pub use worktree::{SyntheticGit, remove_checkout};
pub use write::Author;
