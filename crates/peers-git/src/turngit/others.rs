//! What a turn committed elsewhere than on the run's branch: kept as salvage.

use std::collections::BTreeMap;

use peers_model::CommitId;

use super::harvest::{HarvestSpec, Stop};
use super::shown::MAX_REFS;
use crate::control::ControlDir;
use crate::error::{GitError, clean};
use crate::facts::Head;
use crate::ref_list::{RefValue, STASH};
use crate::repo::PeerRepo;

/// References that are looked at one by one, and stash entries.
const MAX_KEPT: usize = 100;

/// Something besides the run's branch that a turn made or moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRef {
    /// Its full name, `HEAD`, or `stash-N`, cleaned for people.
    pub name: String,
    /// The commit that it names. A claim where it is not kept.
    pub commit: CommitId,
    /// The name of the salvage; `None` when the commit was known before, or cannot be brought in.
    pub salvage: Option<String>,
}

/// Keeps all of them.
pub(super) fn keep(
    control: &mut ControlDir,
    turn: &PeerRepo,
    (head, branch): (Option<&Head>, Option<&str>),
    shown: &BTreeMap<String, String>,
    spec: &HarvestSpec<'_>,
) -> Result<Vec<KeptRef>, Stop> {
    let mut found: Vec<(String, CommitId)> = Vec::new();
    let cap = shown.len().saturating_add(MAX_REFS);
    let Some(now) = turn.list_refs("refs/", cap)? else {
        return Err(Stop::Refused(format!("more than {cap} references")));
    };
    for (name, value) in &now {
        let RefValue::Direct(hash) = value else { continue };
        let same = shown.get(name) == Some(hash) || branch == Some(name) || name == STASH;
        if same || name.starts_with("refs/replace/") {
            continue;
        }
        if let Some(commit) = turn.peel(hash) {
            found.push((name.clone(), commit));
        }
        if found.len() > MAX_KEPT {
            return Err(Stop::Refused(format!("more than {MAX_KEPT} references made or moved")));
        }
    }
    let stash = turn.stash(MAX_KEPT);
    found.extend(stash.into_iter().enumerate().map(|(n, commit)| (format!("stash-{n}"), commit)));
    if let Some(head) = head.filter(|head| head.branch.is_none() && branch.is_some()) {
        found.push(("HEAD".to_owned(), head.commit.clone()));
    }
    let mut kept = Vec::new();
    for (name, commit) in found {
        let salvage = keep_one(control, turn, (&name, &commit), spec)?;
        kept.push(KeptRef { name: clean(&name, 200), commit, salvage });
    }
    Ok(kept)
}

/// Keeps a commit of a turn, unless it is known. Returns the name of the salvage.
pub(super) fn keep_one(
    control: &mut ControlDir,
    turn: &PeerRepo,
    (name, commit): (&str, &CommitId),
    spec: &HarvestSpec<'_>,
) -> Result<Option<String>, GitError> {
    if control.facts().has(commit) || control.adopt(turn, std::slice::from_ref(commit))?.is_empty() {
        return Ok(None);
    }
    let short = name.strip_prefix("refs/").unwrap_or(name);
    keep_known(control, (short, commit), spec).map(Some)
}

/// Keeps a commit that is here already.
pub(super) fn keep_known(
    control: &ControlDir,
    (name, commit): (&str, &CommitId),
    spec: &HarvestSpec<'_>,
) -> Result<String, GitError> {
    let named = |name: &str| control.keep(&format!("{}/{name}", spec.label), commit, spec.author);
    match named(name) {
        // A name that is fine in one place of the references need not be so in another, nor beside others.
        Err(GitError::InvalidName { .. } | GitError::Library { .. }) => {
            named(&format!("commit-{}", commit.short()))
        }
        other => other,
    }
}
