//! What a turn committed elsewhere than on the run's branch: kept as salvage.

use std::collections::BTreeMap;

use peers_model::CommitId;

use super::shown::MAX_REFS;
use crate::control::ControlDir;
use crate::error::{GitError, clean};
use crate::ref_list::{RefValue, STASH};
use crate::repo::PeerRepo;
use crate::write::Author;

/// References that are kept, and stash entries.
const MAX_KEPT: usize = 100;

/// How a turn is harvested.
#[derive(Debug, Clone, Copy)]
pub struct HarvestSpec<'a> {
    /// The first commit of the run, for the import of the checkout; see [`ControlDir::import`].
    pub base: Option<&'a CommitId>,
    /// What is kept has this before or in its name, such as `tick-00012`: letters, digits, `-`.
    pub label: &'a str,
    /// Who keeps it, and when.
    pub author: &'a Author,
}

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

/// Keeps them: at most 100 references, and as many entries of the stash.
pub(super) fn keep(
    control: &mut ControlDir,
    turn: &PeerRepo,
    branch: Option<&str>,
    shown: &BTreeMap<String, String>,
    spec: &HarvestSpec<'_>,
) -> Result<Vec<KeptRef>, GitError> {
    let cap = shown.len().saturating_add(MAX_REFS);
    let now = turn.list_refs("refs/", cap)?.ok_or_else(|| GitError::TooLarge {
        what: "the number of references".to_owned(),
        cap: cap.to_string(),
    })?;
    let mut found: Vec<(String, CommitId)> = Vec::new();
    for (name, value) in now {
        let RefValue::Direct(hash) = value else { continue };
        let same = shown.get(&name) == Some(&hash) || branch == Some(&*name) || name == STASH;
        // Of those that replace objects nothing holds anywhere else.
        if !same && !name.starts_with("refs/replace/") && found.len() < MAX_KEPT {
            found.extend(turn.peel(&hash).map(|commit| (name, commit)));
        }
    }
    let stash = turn.stash(MAX_KEPT).into_iter().enumerate();
    found.extend(stash.map(|(n, commit)| (format!("stash-{n}"), commit)));
    if let Ok(head) = turn.facts().head()
        && head.branch.is_none()
        && branch.is_some()
    {
        found.push(("HEAD".to_owned(), head.commit));
    }
    let mut kept = Vec::new();
    for (name, commit) in found {
        let known = control.facts().has(&commit);
        let salvage = if known || control.adopt(turn, std::slice::from_ref(&commit))?.is_empty() {
            None
        } else {
            Some(keep_known(control, (&name, &commit), spec)?)
        };
        kept.push(KeptRef { name: clean(&name, 200), commit, salvage });
    }
    Ok(kept)
}

/// Keeps a commit that is here already. Returns the name of the salvage.
pub(super) fn keep_known(
    control: &ControlDir,
    (name, commit): (&str, &CommitId),
    spec: &HarvestSpec<'_>,
) -> Result<String, GitError> {
    let named = |name: &str| control.keep(&format!("{}/{name}", spec.label), commit, spec.author);
    match named(name.strip_prefix("refs/").unwrap_or(name)) {
        // A name that is fine in one place of the references need not be so in another, nor beside others.
        Err(GitError::InvalidName { .. } | GitError::Library { .. }) => {
            named(&format!("commit-{}", commit.short()))
        }
        other => other,
    }
}
