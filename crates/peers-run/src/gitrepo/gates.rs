//! What gates leave behind: they run what peers wrote, in the work tree.

use std::collections::BTreeMap;

use peers_core::machine::Harvest;
use peers_core::scope::Scope;
use peers_git::{GitError, NestedSeen};
use peers_model::verdict::TreeKey;
use peers_model::{CommitId, GoalId, TickNo};
use peers_sys::dir::Kind;
use peers_sys::{SafeDir, term};

use super::mend::{self, quoted};
use super::putback::Stored;
use super::stopped::unimportable;
use super::turn::TurnMark;
use super::turngit::nested_told;
use super::{GitRepo, clean_at, failure};
use crate::cache::BUILT;
use crate::ports::{GateCopy, RepoFailure, Scopes};

/// The work tree when gates began to run.
pub(super) struct BeforeGates {
    tick: TickNo,
    head: CommitId,
    stored: Stored,
    /// Where nothing else is looked at: no gate reaches the git directory.
    nested: Option<NestedSeen>,
}

/// The name of the copy for gates that have the machine.
pub(super) const COPY: &str = "tree";
/// The name of the copy for gates beside a peer.
pub(super) const BEHIND: &str = "behind";

impl GitRepo {
    /// A kept copy, brought to this commit; nothing where the work tree holds something else.
    pub(super) fn copy_for_gates(
        &mut self,
        key: &TreeKey,
        name: &'static str,
    ) -> Result<Option<GateCopy>, RepoFailure> {
        if self.control.facts().tree_of(&key.head)? != key.tree {
            return Ok(None);
        }
        let Some(cache) = self.pristine.parent() else { return Ok(None) };
        let cache = SafeDir::open_shared(cache)?;
        // Programs look for modules and configuration in the directories above: none but ours is there.
        crate::cache::clear_foreign(&cache)?;
        let above = cache.create_subdir(crate::cache::GATE_TREE)?;
        crate::cache::clear_but(&above, |name| [COPY, BEHIND].contains(&name))?;
        let (dir, peer) = (above.path().join(name), self.open()?);
        let git = self.control.lend(&peer)?;
        let there = above.stat(name)?.is_some_and(|stat| stat.kind == Kind::Dir);
        // What a gate made of the copy is no reason to fail: it is made anew.
        if there && self.control.reset_checkout(&key.head, &dir, &BUILT, &git).is_ok() {
            return Ok(Some(GateCopy { dir, fresh: false }));
        }
        above.remove_tree(name)?;
        self.control.checkout_pristine(&key.head, &dir, &git)?;
        Ok(Some(GateCopy::made(dir)))
    }

    /// What lies below globs, as digests; nothing where the work tree is not what the commit holds, and of
    /// globs that take no file or that take links, behind which anything may change.
    pub(super) fn scopes_at(
        &mut self,
        key: &TreeKey,
        globs: &Scopes,
    ) -> Result<BTreeMap<GoalId, String>, RepoFailure> {
        let facts = self.control.facts();
        if facts.tree_of(&key.head)? != key.tree {
            return Ok(BTreeMap::new());
        }
        let mut digests = BTreeMap::new();
        for (id, globs) in globs {
            let scope = Scope::new(globs);
            let held = facts.scope(&key.head, |path| scope.holds(path))?;
            if held.closed {
                digests.insert(id.clone(), held.hash);
            }
        }
        Ok(digests)
    }

    /// What lies below globs, as a digest, whatever that is; nothing where the work tree is not what the commit
    /// holds.
    pub(super) fn digest_at(
        &mut self,
        key: &TreeKey,
        globs: &[String],
    ) -> Result<Option<String>, RepoFailure> {
        let facts = self.control.facts();
        if facts.tree_of(&key.head)? != key.tree {
            return Ok(None);
        }
        let scope = Scope::new(globs);
        facts.scope_hash(&key.head, |path| scope.holds(path)).map(Some).map_err(failure)
    }

    /// Remembers how things stand before gates run.
    pub(super) fn mark_gates(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        let mark = if self.is_walled() { None } else { Some(self.mark(tick)?) };
        let head = match &mark {
            Some((_, head)) => head.clone(),
            None => self.known_head()?,
        };
        let stored = if self.is_clean_at(&head)? {
            self.control.facts().tree_of(&head).map(Stored::whole)
        } else {
            self.stored(&head)
        };
        let stored = stored?;
        let nested = match mark {
            Some(_) => None,
            None => Some(NestedSeen::look(&self.control, &self.open()?, &head)?),
        };
        self.before_gates = Some(BeforeGates { tick, head, stored, nested });
        match mark {
            Some((mark, head)) => self.keep_gates_mark(mark, head),
            None => Ok(()),
        }
    }

    /// The commit that HEAD names, brought in.
    fn known_head(&mut self) -> Result<CommitId, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head()?.commit;
        if !self.control.facts().has(&head) {
            self.import(&peer).map_err(unimportable)?;
        }
        Ok(head)
    }

    fn is_clean_at(&self, head: &CommitId) -> Result<bool, GitError> {
        Ok(self.clean_at.as_ref() == Some(head) || !self.control.tree_state(&self.work_dir, head)?.dirty)
    }

    /// What differs in the work tree from when gates began to run.
    pub(super) fn paths_since_gates(&self) -> Result<Vec<String>, RepoFailure> {
        let Some(before) = &self.before_gates else { return Ok(Vec::new()) };
        let head = self.open()?.facts().head()?.commit;
        let now = self.stored(&head)?;
        self.control.facts().changed_paths(&before.stored.tree, &now.tree).map_err(failure)
    }

    /// Puts tests, gates and what hides them back to how they were in the work tree, where gates weakened
    /// them and did not commit that.
    pub(super) fn undo_what_gates_weakened(
        &mut self,
        before: &BeforeGates,
    ) -> Result<Vec<String>, RepoFailure> {
        let BeforeGates { tick, head, stored, nested } = before;
        let now = self.known_head()?;
        let mut all = Vec::new();
        if let Some(nested) = nested {
            let label = format!("gates-{:05}", tick.0);
            let found = nested.settle(&self.control, &self.open()?, &label)?;
            all.extend(found.iter().map(|nested| nested_told("a gate", nested)));
        }
        let tree = self.control.tree_state(&self.work_dir, &now)?.worktree_tree;
        if tree == stored.tree && stored.left_out.is_empty() {
            return Ok(all);
        }
        let facts = self.control.facts();
        let from = facts.tree_of(head)?;
        let at = facts.tree_of(&now)?;
        let target = self.target(&from, stored, &at)?;
        let weaker = |repo: &Self, now: &Stored| repo.weaker_after_gates((&from, &at), stored, now);
        let Some(done) = self.put_back((*tick, "gates"), &target, &weaker)? else { return Ok(all) };
        let told = format!(
            "tests were weakened in the work tree while gates ran, at {}: that was undone, {}",
            quoted(&done.names),
            done.words()
        );
        self.tell(told.clone());
        all.push(told);
        Ok(all)
    }

    /// Puts back what gates left in the git directory, as after a turn: they run what peers wrote. Says
    /// what that was.
    pub(super) fn mend_after_gates(&mut self) -> Result<Vec<String>, RepoFailure> {
        self.with_control(|repo| {
            let Some((mark, from)) = repo.gates.take() else { return Ok(Vec::new()) };
            let told = repo
                .mend_gates(&mark, &from)
                .map_err(|failure| repo.keep_before_stop((mark.tick, &from), failure));
            // Asked once more if it failed for a reason that could be helped.
            if told.is_err() {
                repo.gates = Some((mark, from));
            } else {
                repo.forget_gates_mark();
            }
            told
        })
    }

    fn mend_gates(&mut self, mark: &TurnMark, from: &CommitId) -> Result<Vec<String>, RepoFailure> {
        let mut found = Harvest::default();
        mend::files(mark, &self.git_dir, &mut found)?;
        let peer = self.open_sound()?;
        Self::guarded_refs(&peer, mark, &mut found)?;
        self.take_unfinished(&peer, mark, &mut found)?;
        mend::debris(&peer, Some(mark), &mut found)?;
        self.check_branch(&peer, mark, from)?;
        self.mend_head(&peer, mark, from, &mut found)?;
        let head = peer.facts().head()?;
        self.check_tip(&peer, &head.commit, Some((mark, from)))?;
        self.import(&peer).map_err(unimportable)?;
        let head_tree = self.control.facts().tree_of(&head.commit)?;
        self.settle_index(&peer, mark, &clean_at(head, head_tree), &mut found)?;
        self.lost_refs(&peer, mark, &mut found)?;
        Ok(words(&found))
    }
}

/// What is said of what gates left and was put back.
pub(super) fn words(found: &Harvest) -> Vec<String> {
    let put_back = found.git_tampered.iter().chain(&found.refs_tampered);
    let named = put_back.map(|name| format!("a gate changed {}, which was put back", term::inline(name)));
    named.chain(found.warnings.iter().map(|told| told.replace("this turn", "a gate"))).collect()
}
