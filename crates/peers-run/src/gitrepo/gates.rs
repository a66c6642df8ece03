//! What gates leave behind: they run what peers wrote, in the work tree.

use peers_core::cheat::{is_measured, weakenings};
use peers_core::machine::HeadFacts;
use peers_git::{GitError, RepoError};
use peers_model::{CommitId, TickNo, TreeId};
use peers_sys::term;

use super::mend::{self, aside, quoted};
use super::turn::TurnMark;
use super::{GitRepo, chain, failure, substrate};
use crate::ports::{RepoFailure, RepoHarvest};

/// The work tree when gates began to run.
pub(super) struct BeforeGates {
    tick: TickNo,
    head: CommitId,
    tree: TreeId,
}

impl GitRepo {
    /// Remembers how things stand before gates run.
    pub(super) fn mark_gates(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        let (mark, head) = self.mark(tick)?;
        let tree = if self.is_clean_at(&head).map_err(failure)? {
            self.control.facts().tree_of(&head)
        } else {
            self.control.store_work_tree(&self.work_dir, &head)
        };
        let tree = tree.map_err(failure)?;
        self.before_gates = Some(BeforeGates { tick, head: head.clone(), tree });
        self.gates = Some((mark, head));
        Ok(())
    }

    fn is_clean_at(&self, head: &CommitId) -> Result<bool, GitError> {
        Ok(self.clean_at.as_ref() == Some(head) || !self.control.tree_state(&self.work_dir, head)?.dirty)
    }

    /// Puts tests, gates and what hides them back to how they were in the work tree, where gates weakened
    /// them and committed nothing.
    pub(super) fn undo_what_gates_weakened(
        &mut self,
        before: &BeforeGates,
    ) -> Result<Vec<String>, RepoFailure> {
        let peer = self.open()?;
        let BeforeGates { tick, head, tree } = before;
        if peer.facts().head().map_err(failure)?.commit != *head
            || self.control.tree_state(&self.work_dir, head).map_err(failure)?.worktree_tree == *tree
        {
            return Ok(Vec::new());
        }
        let now = self.control.store_work_tree(&self.work_dir, head).map_err(failure)?;
        let found = weakenings(&self.turn_diff(tree, &now).map_err(failure)?);
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut names: Vec<String> = found.iter().map(|w| w.path().to_owned()).collect();
        names.sort();
        names.dedup();
        let who = substrate(peers_sys::clock::now());
        let kept =
            self.control.salvage(&aside(*tick, "gates"), head, &self.work_dir, &who).map_err(failure)?;
        let spare = |path: &str| !is_measured(path) || kept.left_out.iter().any(|out| out == path);
        let told = match peer.checkout_changed_but(&self.control, &now, tree, &spare) {
            Ok(_) => format!(
                "tests were weakened in the work tree while gates ran, at {}: that was undone, a copy is kept as salvage `{}`",
                quoted(&names),
                kept.name
            ),
            Err(error @ (GitError::DiskFull { .. } | GitError::Io { .. })) => return Err(failure(error)),
            Err(error) => format!(
                "tests were weakened in the work tree while gates ran, at {}, and could not be put back: {}",
                quoted(&names),
                chain(&error)
            ),
        };
        self.clean_at = None;
        self.tell(told.clone());
        Ok(vec![told])
    }

    /// Puts back what gates left in the git directory, as after a turn: they run what peers wrote. Says
    /// what that was.
    pub(super) fn mend_after_gates(&mut self) -> Result<Vec<String>, RepoFailure> {
        self.with_control(|repo| {
            let Some((mark, from)) = repo.gates.take() else { return Ok(Vec::new()) };
            let told = repo.mend_gates(&mark, &from);
            // Asked once more if it failed for a reason that could be helped.
            if told.is_err() {
                repo.gates = Some((mark, from));
            }
            told
        })
    }

    fn mend_gates(&mut self, mark: &TurnMark, from: &CommitId) -> Result<Vec<String>, RepoFailure> {
        let mut found = RepoHarvest::default();
        mend::files(mark, &self.git_dir, &mut found)?;
        mend::layout(mark, from, &mut found)?;
        let peer = self.open()?;
        mend::guarded_refs(&peer, mark, &mut found)?;
        self.take_unfinished(&peer, mark, &mut found)?;
        mend::debris(&peer, Some(mark), &mut found);
        let peer = if self.mend_objects(&peer, mark, from, &mut found)? { self.open()? } else { peer };
        self.mend_branch(&peer, mark, from, &mut found)?;
        if let Err(GitError::Repo(RepoError::Unborn { .. } | RepoError::Corrupt { .. })) = peer.facts().head()
        {
            mend::head(&peer, mark, from, &mut found)?;
        }
        self.import(&peer).map_err(failure)?;
        let head = peer.facts().head().map_err(failure)?;
        let head_tree = self.control.facts().tree_of(&head.commit).map_err(failure)?;
        let at = HeadFacts { head: head.commit, worktree: head_tree.clone(), head_tree, branch: head.branch };
        self.settle_index(&peer, mark, &at, &mut found)?;
        self.lost_refs(&peer, mark, &mut found)?;
        let put_back = found.git_tampered.iter().chain(&found.refs_tampered);
        let named: Vec<String> = put_back
            .map(|name| format!("a gate changed {}, which was put back", term::inline(name)))
            .collect();
        let told = found.warnings.iter().map(|told| told.replace("this turn", "a gate"));
        Ok(named.into_iter().chain(told).collect())
    }
}
