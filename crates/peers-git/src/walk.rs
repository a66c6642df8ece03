//! Commits in a range.

use git2::{ObjectType, Oid, Sort};
use peers_model::CommitId;

use crate::control::ControlDir;
use crate::error::GitError;
use crate::facts::{CommitFact, Facts};
use crate::known::Generation;
use crate::{ids, objects};

/// Most commits that one walk returns.
pub const WALK_CAP: usize = 100_000;

/// A commit of a range, and whether the control directory knew it before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    /// The commit.
    pub fact: CommitFact,
    /// It had been imported by the end of the generation asked about: not the work of this tick.
    pub known: bool,
}

impl Facts<'_> {
    /// Commits reachable from `to` but not from `from`, oldest first, parents before children.
    ///
    /// Without `from`: the whole known history.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] when there are more than `limit`, [`GitError::NotFound`] for unknown ends.
    pub fn walk(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        limit: usize,
    ) -> Result<Vec<CommitFact>, GitError> {
        self.range(from, to, limit)?.into_iter().map(|oid| self.commit_fact(oid)).collect()
    }

    /// How many commits [`Facts::walk`] would return, and those of them whose message is `wanted`.
    ///
    /// # Errors
    /// As [`Facts::walk`].
    pub fn walk_where(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        limit: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(usize, Vec<CommitFact>), GitError> {
        if let Some((count, found)) = self.chain_where(from, to, limit, &wanted) {
            let found: Result<_, _> = found.into_iter().rev().map(|oid| self.commit_fact(oid)).collect();
            return Ok((count, found?));
        }
        let oids = self.range(from, to, limit)?;
        let mut found = Vec::new();
        for oid in &oids {
            let commit = self.repo.find_commit(*oid);
            let commit = commit.map_err(|source| GitError::library(format!("commit {oid}"), source))?;
            if wanted(&String::from_utf8_lossy(commit.message_bytes())) {
                found.push(self.commit_fact(*oid)?);
            }
        }
        Ok((oids.len(), found))
    }

    /// The same, newest first, where each commit has one parent down to `from`, or to the first of all: then nothing has
    /// to be brought into an order, and each object is looked at once. Nothing for any other history.
    fn chain_where(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        limit: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(usize, Vec<Oid>)> {
        let odb = objects::odb(self.repo).ok()?;
        let end = from.map(ids::commit_oid).transpose().ok()?;
        let (mut at, mut count, mut found) = (ids::commit_oid(to).ok()?, 0, Vec::new());
        while Some(at) != end {
            let object = odb.read(at).ok().filter(|object| object.kind() == ObjectType::Commit)?;
            let commit = objects::parse_commit(object.data())?;
            count += 1;
            let message = object.data().windows(2).position(|two| two == b"\n\n")?;
            if wanted(&String::from_utf8_lossy(object.data().get(message..)?)) {
                found.push(at);
            }
            match commit.parents.as_slice() {
                [parent] if count < limit.min(WALK_CAP) => at = *parent,
                [] if end.is_none() => break,
                _ => return None,
            }
        }
        Some((count, found))
    }

    /// The ids of the commits that [`Facts::walk`] would return.
    ///
    /// # Errors
    /// As [`Facts::walk`].
    pub fn walk_ids(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        limit: usize,
    ) -> Result<Vec<CommitId>, GitError> {
        Ok(self.range(from, to, limit)?.into_iter().map(crate::ids::commit_id).collect())
    }

    fn range(&self, from: Option<&CommitId>, to: &CommitId, limit: usize) -> Result<Vec<Oid>, GitError> {
        let fail = |source| GitError::library(format!("walk the history of {}", to.short()), source);
        let to_oid = self.commit_oid(to)?;
        let mut walk = self.repo.revwalk().map_err(fail)?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME).map_err(fail)?;
        walk.push(to_oid).map_err(fail)?;
        if let Some(from) = from {
            walk.hide(self.commit_oid(from)?).map_err(fail)?;
        }
        let mut oids = Vec::new();
        for oid in walk {
            if oids.len() >= limit.min(WALK_CAP) {
                return Err(GitError::TooLarge {
                    what: format!("the range up to {}", to.short()),
                    cap: format!("{} commits", limit.min(WALK_CAP)),
                });
            }
            oids.push(oid.map_err(fail)?);
        }
        oids.reverse();
        Ok(oids)
    }
}

impl ControlDir {
    /// Commits reachable from `to` but not from `from`, oldest first, each with whether it was known at
    /// the end of generation `since` ([`crate::Imported::before`], or [`ControlDir::generation`] at the
    /// start of a tick).
    ///
    /// # Errors
    /// As [`Facts::walk`]; [`GitError::Corrupt`] for a generation that this directory does not know (its
    /// list was lost).
    pub fn new_commits(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        since: Generation,
    ) -> Result<Vec<NewCommit>, GitError> {
        if since > self.generation() {
            return Err(GitError::Corrupt {
                what: "the list of known commits".to_owned(),
                detail: format!("it ends at generation {}, not {}", self.generation().0, since.0),
            });
        }
        self.facts()
            .walk(from, to, WALK_CAP)?
            .into_iter()
            .map(|fact| {
                let known = self.known.at(crate::ids::commit_oid(&fact.id)?, since);
                Ok(NewCommit { fact, known })
            })
            .collect()
    }
}
