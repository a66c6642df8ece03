//! Taking back what a turn did, after a copy.

use peers_core::machine::Corrected;
use peers_git::{PeerRepo, SalvageRef};
use peers_model::record::{CorrectionKind, CorrectionPlanned};
use peers_model::{CommitId, PeerName, RunId, Timestamp};

use super::putback::not_back;
use super::stopped::unimportable;
use super::{GitRepo, UNREADABLE_REFS, correction_mark, failure, is_substrate, substrate};
use crate::ports::RepoFailure;

impl GitRepo {
    pub(super) fn take_back(
        &mut self,
        plan: &CorrectionPlanned,
        peer: &PeerName,
        run: &RunId,
    ) -> Result<Corrected, RepoFailure> {
        let now = peers_sys::clock::now();
        let repo = self.open()?;
        self.import(&repo).map_err(unimportable)?;
        let name = format!("{run}/{}-{peer}", plan.tick);
        let kept = self.salvage(&repo, &name, plan, now)?;
        let own = match plan.kind {
            CorrectionKind::Revert => self.revert(&repo, plan, now)?,
            CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch | CorrectionKind::Reset => {
                self.salvage_branch(&repo, &name, plan, now)?;
                self.set_back(&repo, plan, &kept.commit, now)?;
                Vec::new()
            }
        };
        self.take_left(&repo, plan, &kept)?;
        self.import(&repo).map_err(unimportable)?;
        let (at, _) = self.head_facts(&repo)?;
        Ok(Corrected { at, own, salvage: Some(kept.name) })
    }

    /// A copy of HEAD and the work tree. One from before a crash is the better one, as it holds what was
    /// there before anything was undone; but only what can be such a copy is taken for it: the commit that
    /// was found, or a work tree on top of it. While HEAD is still there, nothing was undone.
    fn salvage(
        &self,
        repo: &PeerRepo,
        name: &str,
        plan: &CorrectionPlanned,
        at: Timestamp,
    ) -> Result<SalvageRef, RepoFailure> {
        let tip = repo.facts().head()?.commit;
        if tip != plan.from {
            let numbered = format!("{name}.");
            let facts = self.control.facts();
            let found = self.control.list_salvage()?.into_iter().find(|kept| {
                let parent = || facts.commit(&kept.commit).ok()?.parents.into_iter().next();
                let whole = kept.commit == plan.from || (kept.dirty && parent() == Some(plan.from.clone()));
                whole && (kept.name == name || kept.name.starts_with(&numbered))
            });
            if let Some(found) = found {
                return Ok(found);
            }
        }
        self.control.salvage(name, &tip, &self.work_dir, &substrate(at)).map_err(failure)
    }

    /// A copy of the branch that is about to be set back, when HEAD was somewhere else.
    fn salvage_branch(
        &mut self,
        repo: &PeerRepo,
        name: &str,
        plan: &CorrectionPlanned,
        at: Timestamp,
    ) -> Result<(), RepoFailure> {
        let Some(branch) = &plan.branch else { return Ok(()) };
        let Some(tip) = repo.facts().reference(&full(branch))? else { return Ok(()) };
        if tip == plan.to || tip == plan.from {
            return Ok(());
        }
        if self.control.adopt(repo, std::slice::from_ref(&tip))?.is_empty() {
            let there = format!("{UNREADABLE_REFS}tick-{:05}-{}", plan.tick.0, tip.short());
            return repo.name_commit(&there, &tip, &substrate(at)).map_err(failure);
        }
        let kept = self.control.keep(&format!("{name}-branch"), &tip, &substrate(at))?;
        tracing::warn!(branch, tip = tip.short(), kept, "a branch is set back; its tip is kept");
        Ok(())
    }

    fn revert(
        &mut self,
        peer: &PeerRepo,
        plan: &CorrectionPlanned,
        at: Timestamp,
    ) -> Result<Vec<CommitId>, RepoFailure> {
        let mark = correction_mark(plan.tick);
        let head = peer.facts().head()?.commit;
        let facts = self.control.facts();
        let done = facts.commit(&head).ok().filter(|c| c.message.lines().any(|l| l.trim() == mark));
        let to_tree = facts.tree_of(&plan.to)?;
        let (commit, before) = match done {
            Some(fact) if fact.tree == to_tree && is_substrate(&fact) => {
                let before =
                    fact.parents.first().and_then(|p| facts.tree_of(p).ok()).unwrap_or(to_tree.clone());
                (fact.id, before)
            }
            _ => {
                let before = facts.tree_of(&head)?;
                let message = format!(
                    "Anti-cheating revert: tick {}\n\n{}\n\nPeer: peers-substrate\n{mark}\n",
                    plan.tick, plan.reason
                );
                let commit = self.control.revert_commit(&head, &plan.to, &message, &substrate(at))?;
                peer.publish(&self.control, &commit)?;
                peer.move_head(&head, &commit, &substrate(at), "peers: revert")?;
                (commit, before)
            }
        };
        self.check_out_whole(peer, (&before, &to_tree))?;
        Ok(vec![commit])
    }

    /// What a turn that is taken back left uncommitted in tests, gates and what hides them goes as well: the
    /// next commit would take it over. What was there before the turn is there again, and all else stays.
    fn take_left(
        &mut self,
        peer: &PeerRepo,
        plan: &CorrectionPlanned,
        kept: &SalvageRef,
    ) -> Result<(), RepoFailure> {
        let head = peer.facts().head()?.commit;
        let facts = self.control.facts();
        let to = facts.tree_of(&plan.to)?;
        let mark = self.turn.as_ref().filter(|mark| mark.tick == plan.tick);
        let Some(start) = mark.and_then(|mark| mark.start(&to)) else { return Ok(()) };
        let mut now = self.stored(&head)?;
        if plan.kind == CorrectionKind::Revert {
            // What the turn only committed is not left there once more.
            now.tree = facts.tree_of(&kept.commit)?;
        }
        let target = self.target(&to, &start, &to)?;
        let tests = self.tests.clone();
        let which = |path: &str| crate::measure::is_measured(&tests, path);
        let blocked = self.write_back(peer, (&now, &target), &which)?;
        if blocked.is_empty() { Ok(()) } else { Err(not_back(&blocked)) }
    }

    fn set_back(
        &mut self,
        peer: &PeerRepo,
        plan: &CorrectionPlanned,
        kept: &CommitId,
        at: Timestamp,
    ) -> Result<(), RepoFailure> {
        let who = substrate(at);
        peer.publish(&self.control, &plan.to)?;
        if let Some(branch) = &plan.branch {
            self.set_branch(peer, &full(branch), &plan.to)?;
            peer.set_head_branch(branch, &who)?;
        } else {
            // A branch that HEAD was put on in the turn stays where it is.
            peer.detach_head(&plan.to, &who)?;
        }
        let facts = self.control.facts();
        let from = match plan.kind {
            // Nothing was uncommitted when it began, so whatever is now is of the turn.
            CorrectionKind::Reset => kept,
            // What was not committed is left, above all what the operator had not.
            CorrectionKind::Revert | CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch => {
                &plan.from
            }
        };
        let from = facts.tree_of(from)?;
        let to = facts.tree_of(&plan.to)?;
        self.check_out_whole(peer, (&from, &to))?;
        if plan.kind == CorrectionKind::Reset {
            peer.reset_index(&self.control, &to)?;
        }
        Ok(())
    }
}

fn full(branch: &str) -> String {
    if branch.starts_with("refs/heads/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}
