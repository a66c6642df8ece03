//! The bug ledger of a repository, from its commits and the record of who made them.

use std::collections::BTreeSet;

use peers_core::bugs::{Author, Ledger, LedgerCommit, PathTouched};
use peers_git::GitError;
use peers_store::history::Claiming;

use crate::attribution::Whose;
use crate::cx::{CheckCx, CouldNot};
use crate::history;

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
    let facts = cx.facts()?;
    let fail = |error: GitError| CouldNot::git("read the history", &error);
    let read = history::read(&facts, cx.base(), cx.head(), cx.history()).map_err(fail)?;
    let claiming: Vec<_> = read.claiming.iter().map(|claiming| &claiming.id).collect();
    let whose = attribution.map(|attribution| Whose::of(cx, attribution, Some(&claiming))).transpose()?;
    let mut claims = Vec::new();
    for Claiming { id, time, message, paths } in read.claiming {
        let watched = whose.as_ref().filter(|whose| !whose.is_unwatched(&id));
        let author = watched.map_or(Author::Unattributed, |whose| whose.author(&id));
        let voided = whose.as_ref().is_some_and(|whose| whose.is_voided(&id));
        let paths = paths.into_iter().map(|path| PathTouched::among(cx.tests(), path)).collect();
        claims.push(LedgerCommit { id, author, time, message, paths, voided });
    }
    let nobody = BTreeSet::new();
    let acks = attribution.map_or(&nobody, |attribution| attribution.acks());
    Ok(LedgerReading {
        ledger: Ledger::read(&claims, acks),
        commits: read.commits,
        unattributed: claims.iter().filter(|claim| claim.author == Author::Unattributed).count(),
        attributed: attribution.is_some(),
    })
}
