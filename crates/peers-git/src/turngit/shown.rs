//! Which references of the checkout a turn is shown.

use std::collections::BTreeMap;

use git2::{Odb, Oid};
use peers_model::CommitId;

use crate::copy;
use crate::error::GitError;
use crate::ref_list::RefValue;
use crate::refs;
use crate::repo::PeerRepo;

/// Kinds of references, and how many of one kind there may be. Beyond that the kind is left out.
const KINDS: [&str; 4] = ["refs/heads/", "refs/remotes/", "refs/tags/", "refs/notes/"];
pub(super) const MAX_REFS: usize = 50_000;

/// References as a turn begins with them.
#[derive(Default)]
pub(super) struct ShownRefs {
    /// Names and hashes.
    pub(super) direct: BTreeMap<String, String>,
    /// Such as `refs/remotes/origin/HEAD`: name and target.
    pub(super) symbolic: Vec<(String, String)>,
}

impl ShownRefs {
    /// Those of the checkout whose objects are in `odb`, the run's branch at `tip`.
    pub(super) fn of(
        checkout: &PeerRepo,
        odb: &Odb<'_>,
        (branch, tip): (Option<&str>, &CommitId),
    ) -> Result<Self, GitError> {
        let mut shown = Self::default();
        for kind in KINDS {
            for (name, value) in checkout.list_refs(kind, MAX_REFS)?.unwrap_or_default() {
                if refs::check_name(&name).is_err() {
                    continue;
                }
                match value {
                    RefValue::Direct(hash) if Oid::from_str(&hash).is_ok_and(|oid| copy::has(odb, oid)) => {
                        shown.direct.insert(name, hash);
                    }
                    RefValue::Symbolic(target) if kind == "refs/remotes/" => {
                        shown.symbolic.push((name, target));
                    }
                    RefValue::Direct(_) | RefValue::Symbolic(_) => {}
                }
            }
        }
        if let Some(branch) = branch {
            shown.direct.insert(branch.to_owned(), tip.to_string());
        }
        let Self { direct, symbolic } = &mut shown;
        symbolic.retain(|(_, target)| direct.contains_key(target));
        Ok(shown)
    }
}
