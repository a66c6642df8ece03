//! The bug ledger of a repository, from its commits and the record of who made them.

use std::collections::BTreeSet;

use peers_core::bugs::{Author, Ledger, LedgerCommit, PathTouched};
use peers_core::classify_path::TestPaths;
use peers_git::{CommitFact, Facts};
use peers_model::bug::BugClaims;

use crate::attribution::Whose;
use crate::cx::{CheckCx, CouldNot};

/// The ledger, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerReading {
    /// The bugs.
    pub ledger: Ledger,
    /// Commits looked at.
    pub commits: usize,
    /// Commits that claim something about bugs and of which nobody knows who made them.
    pub unattributed: usize,
    /// There is a record of who made the commits.
    pub attributed: bool,
}

/// Reads the ledger. Without a trusted store every commit counts as nobody's.
///
/// # Errors
/// [`CouldNot`] when the history or an existing record cannot be read.
pub fn read(cx: &CheckCx) -> Result<LedgerReading, CouldNot> {
    let attribution = cx.attribution_if_any()?;
    let whose = attribution.map(|attribution| Whose::new(cx, attribution)).transpose()?;
    let walked = cx.commits()?;
    let facts = cx.facts()?;
    let mut claims = Vec::new();
    let count = walked.len();
    for commit in walked.into_iter().filter(|commit| BugClaims::may_be_in(&commit.message)) {
        let watched = whose.as_ref().filter(|whose| !whose.is_unwatched(&commit.id));
        let author = watched.map_or(Author::Unattributed, |whose| whose.author(&commit.id));
        let voided = whose.as_ref().is_some_and(|whose| whose.is_voided(&commit.id));
        let paths = touched(cx.tests(), &facts, &commit)?;
        let CommitFact { id, time, message, .. } = commit;
        claims.push(LedgerCommit { id, author, time, message, paths, voided });
    }
    let nobody = BTreeSet::new();
    let acks = attribution.map_or(&nobody, |attribution| attribution.acks());
    Ok(LedgerReading {
        ledger: Ledger::read(&claims, acks),
        commits: count,
        unattributed: claims.iter().filter(|claim| claim.author == Author::Unattributed).count(),
        attributed: attribution.is_some(),
    })
}

/// What a commit changed against its first parent. The first commit of all has none and closes nothing.
pub(crate) fn touched(
    tests: &TestPaths,
    facts: &Facts<'_>,
    commit: &CommitFact,
) -> Result<Vec<PathTouched>, CouldNot> {
    let Some(parent) = commit.parents.first() else { return Ok(Vec::new()) };
    let fail = |error: peers_git::GitError| {
        CouldNot::new(format!("cannot compare commit {}: {}", commit.id.short(), crate::cx::chain(&error)))
    };
    let before = facts.tree_of(parent).map_err(fail)?;
    let changes = facts.diff_trees(&before, &commit.tree).map_err(fail)?;
    Ok(changes.into_iter().map(|change| PathTouched::among(tests, change.path)).collect())
}
