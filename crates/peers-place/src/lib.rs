//! Where the things of a repository lie: `.peers/`, the trusted store, the cache, and who holds the run lock.
//!
//! Ring 3. It knows no goals and no loop: it finds, opens, locks and says what is wrong. Looking up a [`Place`]
//! writes nothing and makes nothing. Start reading there.

pub mod anchor;
mod error;
mod holder;
mod link;
pub mod operator;
mod place;
mod repair;
#[cfg(test)]
mod tests;

pub use error::{
    FREE_SPACE, PlaceError, file_exit, file_hint, repo_exit, repo_hint, store_exit, writable_again,
};
pub use holder::{Holder, sign};
pub use link::{cut_off, is_cut_off};
pub use place::{Homes, PEERS_DIR, Place, held_locks, is_gone, project_id, resolved, unusable};
pub use repair::made_again;
