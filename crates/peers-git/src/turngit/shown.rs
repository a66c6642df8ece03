//! Which references of the checkout a turn is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

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
#[derive(Debug, Default, PartialEq, Eq)]
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
        let mut symbolic = Vec::new();
        for kind in KINDS {
            for (name, value) in checkout.list_refs(kind, MAX_REFS)?.unwrap_or_default() {
                if refs::check_name(&name).is_err() {
                    continue;
                }
                match value {
                    RefValue::Direct(hash) => {
                        let there = Oid::from_str(&hash).is_ok_and(|oid| copy::has(odb, oid));
                        if there {
                            shown.direct.insert(name, hash);
                        }
                    }
                    RefValue::Symbolic(target) if kind == "refs/remotes/" => symbolic.push((name, target)),
                    RefValue::Symbolic(_) => {}
                }
            }
        }
        if let Some(branch) = branch {
            shown.direct.insert(branch.to_owned(), tip.to_string());
        }
        symbolic.retain(|(_, target)| shown.direct.contains_key(target));
        shown.symbolic = symbolic;
        Ok(shown)
    }

    /// As a file `packed-refs`.
    pub(super) fn packed(&self) -> String {
        let mut text = String::from("# pack-refs with: sorted\n");
        for (name, hash) in &self.direct {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{hash} {name}");
        }
        text
    }

    /// Names and hashes in a file `packed-refs` of ours.
    pub(super) fn parse(packed: &[u8]) -> BTreeMap<String, String> {
        let text = String::from_utf8_lossy(packed);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).map(|(hash, name)| (name.into(), hash.into())).collect()
    }
}
