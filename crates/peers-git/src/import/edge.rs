//! Where a shallow first import ends.

use std::collections::{HashSet, VecDeque};

use git2::{Odb, Oid};

use super::bring::raw_parents;
use super::tips::Tips;
use crate::error::GitError;

/// Where a shallow first import ends.
pub(super) struct Edge {
    /// Tips that have the base in their history.
    pub(super) grown: HashSet<Oid>,
    /// Not copied.
    pub(super) boundary: Vec<Oid>,
    /// Commits whose parents are not copied.
    pub(super) shallow: Vec<Oid>,
}

impl Edge {
    pub(super) fn find(src: &Odb<'_>, tips: &Tips, base: Oid) -> Result<Self, GitError> {
        let mut edge = Self { grown: HashSet::new(), boundary: Vec::new(), shallow: Vec::new() };
        edge.cut(src, base)?;
        let all: HashSet<Oid> = tips.branches.values().copied().chain([tips.head]).collect();
        for tip in all.iter().copied() {
            match descends(src, tip, base) {
                Ok(true) => {
                    edge.grown.insert(tip);
                }
                Ok(false) => edge.cut(src, tip)?,
                // Reported as broken when it is copied.
                Err(_) if tip != tips.head => {}
                Err(error) => return Err(error),
            }
        }
        // A tip may itself be the parent of another one. (A side branch that starts before the base and
        // was merged after it is followed to its root: the copy stops at its limits, a fetch takes it.)
        edge.boundary.retain(|oid| *oid != base && !all.contains(oid));
        Ok(edge)
    }

    fn cut(&mut self, src: &Odb<'_>, commit: Oid) -> Result<(), GitError> {
        let parents = raw_parents(src, commit)?;
        if !parents.is_empty() {
            self.shallow.push(commit);
            self.boundary.extend(parents);
        }
        Ok(())
    }
}

/// Has `tip` the commit `base` in its history? Gives up (no) after 20 000 commits.
fn descends(src: &Odb<'_>, tip: Oid, base: Oid) -> Result<bool, GitError> {
    let mut seen = HashSet::new();
    let mut todo = VecDeque::from([tip]);
    while let Some(oid) = todo.pop_front() {
        if oid == base {
            return Ok(true);
        }
        if seen.len() >= 20_000 {
            return Ok(false);
        }
        if seen.insert(oid) {
            match raw_parents(src, oid) {
                Ok(parents) => todo.extend(parents),
                // The operator's own clone may be shallow.
                Err(GitError::Corrupt { .. }) if oid != tip => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}
