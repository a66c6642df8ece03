//! Merging inside the control directory.

use git2::MergeOptions;
use peers_model::CommitId;

use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::ids;
use crate::write::Author;

/// How a merge is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeStyle {
    /// Fast-forward when possible, else a commit with two parents.
    Merge,
    /// One commit on top, with the other side's changes.
    Squash,
}

/// What came of a merge. Nothing outside the control directory changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Merged {
    /// There is nothing to merge: `into` has it all.
    UpToDate,
    /// `into` can simply become this commit.
    FastForward(CommitId),
    /// This commit holds both.
    Commit(CommitId),
    /// They conflict at these paths, sorted, cleaned for people.
    Conflict(Vec<String>),
}

impl ControlDir {
    /// Merges the imported commit `from` into the imported commit `into`.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when one of them was not imported, or their common history was not
    /// ([`ControlDir::deepen`] helps).
    pub fn merge_trees(
        &self,
        into: &CommitId,
        from: &CommitId,
        style: MergeStyle,
        message: &str,
        author: &Author,
    ) -> Result<Merged, GitError> {
        let facts = self.facts();
        if facts.is_ancestor(from, into)? {
            return Ok(Merged::UpToDate);
        }
        if style == MergeStyle::Merge && facts.is_ancestor(into, from)? {
            return Ok(Merged::FastForward(from.clone()));
        }
        if facts.merge_base(into, from)?.is_none() {
            return Err(GitError::NotFound {
                what: format!("a common ancestor of {} and {}", into.short(), from.short()),
            });
        }
        let fail = |source| GitError::library("merge", source);
        let (ours, theirs) = (ids::commit_oid(into)?, ids::commit_oid(from)?);
        let mut options = MergeOptions::new();
        options.find_renames(true).target_limit(500).recursion_limit(8);
        let mut index = self
            .repo
            .merge_commits(
                &self.repo.find_commit(ours).map_err(fail)?,
                &self.repo.find_commit(theirs).map_err(fail)?,
                Some(&options),
            )
            .map_err(fail)?;
        if index.has_conflicts() {
            let mut paths = Vec::new();
            for conflict in index.conflicts().map_err(fail)? {
                let conflict = conflict.map_err(fail)?;
                let side = conflict.our.or(conflict.their).or(conflict.ancestor);
                paths.extend(side.map(|entry| clean_bytes(&entry.path)));
            }
            paths.sort();
            paths.dedup();
            return Ok(Merged::Conflict(paths));
        }
        let tree = index.write_tree_to(&self.repo).map_err(fail)?;
        let parents = match style {
            MergeStyle::Merge => vec![ours, theirs],
            MergeStyle::Squash => vec![ours],
        };
        self.commit_tree(tree, &parents, message, author).map(Merged::Commit)
    }
}
