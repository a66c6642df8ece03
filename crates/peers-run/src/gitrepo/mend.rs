//! What a turn must not leave behind, and how it is put back.

use std::os::unix::ffi::OsStrExt as _;

use peers_core::machine::Harvest;
use peers_git::{BranchState, BusyState, GitError, GuardItem, PeerRepo, RepoError};
use peers_model::{CommitId, TickNo};
use peers_sys::dir::SafeDir;
use peers_sys::error::chain;
use peers_sys::term;

use super::stopped::unsound;
use super::turn::{RefScope, TurnMark, is_ours};
use super::{GitRepo, UNREADABLE_REFS, failure, kept, substrate};
use crate::ports::RepoFailure;

/// Names in one warning.
const NAMED: usize = 10;
/// Warnings of one kind.
const TOLD: usize = 20;

/// Puts back what the turn must not have touched, before the repository is opened at all.
/// What is replaced is kept in `store`: it may be the operator's.
pub(super) fn files(mark: &TurnMark, store: &SafeDir, found: &mut Harvest) -> Result<(), RepoFailure> {
    let changes = mark.guard.compare_files().map_err(unsound)?;
    if changes.is_empty() {
        return Ok(());
    }
    if changes.iter().any(|c| c.item == GuardItem::GitDir) {
        let what = "the git directory was replaced during the turn".to_owned();
        return Err(RepoFailure::Tampered { what, way: None });
    }
    if let Some(kept) = kept::files(mark, store, &changes) {
        found.warnings.push(kept);
    }
    let left = mark.guard.restore_files(&changes).map_err(unsound)?;
    for change in &changes {
        match &change.item {
            GuardItem::File(name) => found.git_tampered.push(name.clone()),
            GuardItem::Modules => found.warnings.push("this turn changed .gitmodules".into()),
            GuardItem::GitDir | GuardItem::Ref(_) => {}
        }
    }
    for change in left.iter().filter(|c| matches!(c.item, GuardItem::File(_))) {
        found.warnings.push(format!("{:?} could not be put back", change.item));
    }
    Ok(())
}

/// Locks of the turn go, as with them nobody could commit, and nothing could be put back; operations in progress that
/// were there before it are told.
pub(super) fn debris(
    peer: &PeerRepo,
    mark: Option<&TurnMark>,
    found: &mut Harvest,
) -> Result<(), RepoFailure> {
    let mut stuck = None;
    if let Some(mark) = mark {
        let done = peer.remove_ref_locks(|lock| !mark.ref_locks.iter().any(|before| before == lock));
        for lock in done.first.iter().take(NAMED) {
            let shown = lock.strip_prefix(peer.work_dir()).unwrap_or(lock).to_string_lossy();
            let shown = term::name(&shown);
            found.warnings.push(format!("a stale lock of this turn was removed: {shown}"));
        }
        let more = done.removed.saturating_sub(NAMED);
        if more > 0 {
            found.warnings.push(format!("and {more} more stale locks of this turn were removed"));
        }
        stuck = done.stuck;
    }
    for state in peer.busy() {
        match state {
            BusyState::IndexLock if mark.is_some_and(|m| !m.index_lock) => {
                // It appeared in this turn and no process of the turn is alive.
                match peer.remove_index_lock() {
                    Ok(true) => {
                        found.warnings.push("a stale .git/index.lock of this turn was removed".into());
                    }
                    Ok(false) => {}
                    Err(_) => stuck = Some(peer.git_dir().join("index.lock")),
                }
            }
            other => found.warnings.push(format!("git was left in the middle of something: {other}")),
        }
    }
    let Some(lock) = stuck else { return Ok(()) };
    let what = format!("the lock `{}` of this turn cannot be removed", term::name(&lock.to_string_lossy()));
    let way = format!("`rm -rf {}` removes it", term::quoted_bytes(lock.as_os_str().as_bytes()));
    Err(RepoFailure::Tampered { what, way: Some(way) })
}

impl GitRepo {
    /// Puts guarded references back.
    pub(super) fn guarded_refs(
        peer: &PeerRepo,
        mark: &TurnMark,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let changes = mark.guard.compare_refs(peer).map_err(unsound)?;
        if changes.is_empty() {
            return Ok(());
        }
        let at = peers_sys::clock::now();
        let left = mark.guard.restore_refs(peer, &changes, &substrate(at))?;
        if let Some(GuardItem::Ref(name)) = left.first().map(|change| &change.item) {
            let what = format!("`{}` cannot be put back", term::name(name));
            return Err(RepoFailure::Tampered { what, way: None });
        }
        for change in changes {
            if let GuardItem::Ref(name) = change.item {
                found.refs_tampered.push(name);
            }
        }
        Ok(())
    }

    /// A HEAD that names no commit (a branch without one, something that is no branch, garbage) is put back
    /// where the turn began. Whatever it named stays in the repository.
    pub(super) fn mend_head(
        &self,
        peer: &PeerRepo,
        mark: &TurnMark,
        from: &CommitId,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        if !matches!(
            peer.facts().head(),
            Err(GitError::Repo(RepoError::Unborn { .. } | RepoError::Corrupt { .. }))
        ) {
            return Ok(());
        }
        let who = substrate(peers_sys::clock::now());
        match &mark.branch {
            None => peer.detach_head(from, &who),
            Some(branch) => {
                if peer.branch_state(branch)? == BranchState::Absent {
                    self.set_branch(peer, branch, from)?;
                }
                peer.set_head_branch(branch, &who)
            }
        }
        .map_err(|error| Self::garbled_head(peer, (mark, from), error))?;
        found.warnings.push("HEAD named no branch with a commit after this turn and was put back".into());
        Ok(())
    }

    /// The branch of the turn, when HEAD is somewhere else and does not have what was committed on it.
    pub(super) fn keep_left_branch(
        &mut self,
        peer: &PeerRepo,
        mark: &TurnMark,
        (from, head): (&CommitId, &CommitId),
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let Some(branch) = &mark.branch else { return Ok(()) };
        let BranchState::Commit(tip) = peer.branch_state(branch)? else { return Ok(()) };
        let facts = self.control.facts();
        let safe = tip == *from || tip == *head || facts.is_ancestor(&tip, head).unwrap_or(false);
        if safe {
            return Ok(());
        }
        let kept = self.keep_somewhere(peer, mark.tick, &short(branch), &tip)?;
        let branch = term::name(branch);
        found.warnings.push(format!(
            "`{branch}` was at {} after this turn, which HEAD does not have{kept}",
            tip.short()
        ));
        Ok(())
    }

    /// Tells which references besides the branch of the turn were made, moved or deleted in it, and keeps
    /// what those named that went or lost commits.
    pub(super) fn lost_refs(
        &mut self,
        peer: &PeerRepo,
        mark: &TurnMark,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let (mut told, mut forward, mut made) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(now) = mark.scope.list(peer)? {
            for (name, old) in &mark.refs {
                let mine = mark.branch.as_ref() == Some(name) || name == "refs/stash" || is_ours(name);
                let new = now.get(name);
                if mine || new == Some(old) || name.starts_with(UNREADABLE_REFS) {
                    continue;
                }
                let was = self.peel(peer, old).or_else(|| self.known_commit(old));
                if let (Some(was), Some(new)) = (&was, new)
                    && !name.starts_with("refs/tags/")
                    && self.is_forward(peer, was, new)?
                {
                    forward.push(name.clone());
                    continue;
                }
                let how = if new.is_some() { "moved" } else { "deleted" };
                let kept = match &was {
                    Some(commit) => self.keep_somewhere(peer, mark.tick, &short(name), commit)?,
                    None => String::new(),
                };
                let at = was.map_or_else(String::new, |commit| format!("; it was at {}", commit.short()));
                told.push(format!("this turn {how} `{}`{at}{kept}", term::name(name)));
            }
            let new = |name: &&String| {
                !mark.refs.contains_key(*name)
                    && name.as_str() != "refs/stash"
                    && !is_ours(name)
                    && mark.branch.as_ref() != Some(name)
            };
            if mark.scope != RefScope::Nothing {
                made.extend(now.keys().filter(new).cloned());
            }
        } else if !mark.refs.is_empty() {
            told.push("there are too many references after this turn to see which were lost".to_owned());
        }
        if !forward.is_empty() {
            told.push(format!(
                "this turn moved {} forward, which is not the branch of this work; nothing was lost, it stays",
                quoted(&forward)
            ));
        }
        if !made.is_empty() {
            told.push(format!("this turn made {}; it stays", quoted(&made)));
        }
        let now = TurnMark::stash_now(peer);
        for (n, entry) in mark.stash.iter().enumerate().filter(|(_, entry)| !now.contains(entry)) {
            let kept = self.keep_somewhere(peer, mark.tick, &format!("stash-{n}"), entry)?;
            told.push(format!("this turn dropped the stash entry {}{kept}", entry.short()));
        }
        let more = told.len().saturating_sub(TOLD);
        found.warnings.extend(told.into_iter().take(TOLD));
        if more > 0 {
            found.warnings.push(format!("and {more} more references; `peers salvage list` has them"));
        }
        Ok(())
    }

    /// A value of a reference whose object is gone from the agents' repository but not from ours.
    fn known_commit(&self, value: &peers_git::RefValue) -> Option<CommitId> {
        let peers_git::RefValue::Direct(hash) = value else { return None };
        CommitId::new(hash.as_str()).ok().filter(|commit| self.control.facts().has(commit))
    }

    fn is_forward(
        &mut self,
        peer: &PeerRepo,
        was: &CommitId,
        new: &peers_git::RefValue,
    ) -> Result<bool, RepoFailure> {
        let Some(new) = self.peel(peer, new) else { return Ok(false) };
        if new == *was {
            return Ok(true);
        }
        let here = self.control.adopt(peer, std::slice::from_ref(&new))?;
        Ok(!here.is_empty() && self.control.facts().is_ancestor(was, &new).unwrap_or(false))
    }

    /// Keeps an imported commit under a name of this tick.
    pub(super) fn keep(&self, tick: TickNo, what: &str, commit: &CommitId) -> Result<String, RepoFailure> {
        let who = substrate(peers_sys::clock::now());
        let kept = self.control.keep(&aside(tick, what), commit, &who);
        // A name that is fine in one place of the references need not be so in another, nor beside others.
        let kept = match kept {
            Err(GitError::InvalidName { .. } | GitError::Library { .. }) => {
                self.control.keep(&aside(tick, &format!("commit-{}", commit.short())), commit, &who)
            }
            other => other,
        };
        kept.map_err(failure)
    }

    /// Keeps a commit of the agents' repository: in ours when it can be imported, else by a name over
    /// there. Returns the words for a warning.
    pub(super) fn keep_somewhere(
        &mut self,
        peer: &PeerRepo,
        tick: TickNo,
        what: &str,
        commit: &CommitId,
    ) -> Result<String, RepoFailure> {
        if !self.control.adopt(peer, std::slice::from_ref(commit))?.is_empty() {
            return Ok(format!("; kept as salvage `{}`", self.keep(tick, what, commit)?));
        }
        let who = substrate(peers_sys::clock::now());
        let name = format!("{UNREADABLE_REFS}tick-{:05}-{}", tick.0, commit.short());
        match peer.name_commit(&name, commit, &who) {
            Ok(()) => Ok(format!("; it cannot be imported and stays as `{name}`")),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "a commit could not be named");
                Ok(format!("; it cannot be imported: {commit}"))
            }
        }
    }
}

/// The name of something that a tick nearly lost.
pub(super) fn aside(tick: TickNo, what: &str) -> String {
    format!("tick-{:05}/{what}", tick.0)
}

/// `refs/heads/x` as `heads/x`.
fn short(name: &str) -> String {
    name.strip_prefix("refs/").unwrap_or(name).to_owned()
}

/// Names for a warning, the first few of them.
pub(super) fn quoted(names: &[String]) -> String {
    term::first_of(names.len(), names.iter().take(NAMED).map(|name| format!("`{}`", term::name(name))))
}
