//! Between our identifiers and the library's.

use std::fmt::Write as _;

use git2::Oid;
use peers_model::{CommitId, TreeId};

use crate::error::GitError;

/// The library's form of a commit id. SHA-256 ids are refused: the library is built without them.
pub(crate) fn commit_oid(id: &CommitId) -> Result<Oid, GitError> {
    oid_of(id.as_str(), "commit")
}

/// The library's form of a tree id.
pub(crate) fn tree_oid(id: &TreeId) -> Result<Oid, GitError> {
    oid_of(id.as_str(), "tree")
}

fn oid_of(hex: &str, kind: &str) -> Result<Oid, GitError> {
    if hex.len() != 40 {
        return Err(GitError::NotFound { what: format!("{kind} {hex} (SHA-256 is not supported)") });
    }
    Oid::from_str(hex).map_err(|source| GitError::library(format!("{kind} {hex}"), source))
}

#[expect(clippy::expect_used, reason = "an object id prints as exactly 40 lower-case hex digits")]
pub(crate) fn commit_id(oid: Oid) -> CommitId {
    CommitId::new(oid.to_string()).expect("40 hex digits are a commit id")
}

#[expect(clippy::expect_used, reason = "an object id prints as exactly 40 lower-case hex digits")]
pub(crate) fn tree_id(oid: Oid) -> TreeId {
    TreeId::new(oid.to_string()).expect("40 hex digits are a tree id")
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}
