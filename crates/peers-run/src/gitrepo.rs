//! The real repository: the [`Repo`] port over `peers-git`.
//!
//! What decides a verdict is read from the control git dir. What must survive a crash in the middle
//! of a turn (which commits were known before it, what was guarded) lies beside it in `turn.json`.

mod hunks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use peers_core::bugs::{Author as LedgerAuthor, LedgerCommit, PathTouched};
use peers_core::cheat::{Change, ChangedLine, FileDiff, FileStatus, TurnDiff};
use peers_core::classify_path::{PathKind, classify};
use peers_core::machine::{CommitSeen, Corrected, HeadFacts, Origin};
use peers_core::prompt::LastHandoff;
use peers_core::state::HandoffMark;
use peers_git::{
    Author, ChangeKind, ControlDir, DirtyStatus, Generation, GitError, GuardItem, GuardSnapshot, Hunks,
    PeerRepo, RepoError, SyntheticGit,
};
use peers_model::bug::BugClaims;
use peers_model::claim::CommitClaims;
use peers_model::record::{CorrectionKind, CorrectionPlanned};
use peers_model::verdict::TreeKey;
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, TreeId, limits};
use peers_store::Authors;
use peers_sys::dir::SafeDir;
use serde::{Deserialize, Serialize};

use crate::ports::{Repo, RepoFacts, RepoFailure, RepoHarvest, Scopes};
use crate::scope::Scope;

/// Attribution notes, a published copy.
pub const ATTEST_REF: &str = "refs/notes/peers-attest";
/// Refs that nobody but us may move.
const PROTECTED: [&str; 3] = ["refs/tags/peers-baseline", "refs/notes/peers-*", "refs/peers/*"];
/// The name of our own commits.
const SUBSTRATE: &str = "peers-substrate";
/// What survives a crash in the middle of a turn.
const TURN_FILE: &str = "turn.json";
/// Most bytes of diff text that anti-cheat looks at, of one file and of all of a turn.
const DIFF_CAP: usize = 2 * 1024 * 1024;
const DIFFS_CAP: usize = 32 * 1024 * 1024;
/// Uncommitted paths that are named.
const DIRTY_SHOWN: usize = 30;

/// The identity of our own commits.
#[must_use]
pub fn substrate(at: Timestamp) -> Author {
    Author::new(SUBSTRATE, "peers-substrate@local", at)
}

#[derive(Debug, Serialize, Deserialize)]
struct TurnMark {
    v: u32,
    tick: TickNo,
    known: Generation,
    index_lock: bool,
    /// Locks of references that were there before the turn.
    #[serde(default)]
    ref_locks: Vec<PathBuf>,
    /// The full name of the branch; absent when HEAD was detached.
    #[serde(default)]
    branch: Option<String>,
    guard: GuardSnapshot,
}

/// A commit that may claim something about bugs.
struct Candidate {
    id: CommitId,
    time: Timestamp,
    message: String,
    paths: Vec<PathTouched>,
}

/// The real repository.
pub struct GitRepo {
    work_dir: PathBuf,
    common_dir: PathBuf,
    control: ControlDir,
    git_dir: SafeDir,
    pristine: PathBuf,
    base: Option<CommitId>,
    turn: Option<TurnMark>,
    scopes: BTreeMap<(CommitId, GoalId), String>,
    ledger: Option<(CommitId, Vec<Candidate>)>,
    serial: u64,
}

impl std::fmt::Debug for GitRepo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitRepo").field("work_dir", &self.work_dir).finish_non_exhaustive()
    }
}

/// What [`GitRepo::new`] is made of.
#[derive(Debug)]
pub struct GitRepoParts {
    /// The work tree.
    pub work_dir: PathBuf,
    /// The common git directory, recorded when the run began.
    pub common_dir: PathBuf,
    /// Our directory beside the control git dir.
    pub git_dir: SafeDir,
    /// Where pristine checkouts go; it exists.
    pub pristine: PathBuf,
    /// History before it is the operator's.
    pub base: Option<CommitId>,
}

fn failure(error: GitError) -> RepoFailure {
    match error {
        GitError::Repo(error) => repo_failure(&error),
        other => RepoFailure::Git(chain(&other)),
    }
}

fn repo_failure(error: &RepoError) -> RepoFailure {
    match error {
        RepoError::Redirected { .. } => RepoFailure::Redirected(chain(error)),
        _ => RepoFailure::Git(chain(error)),
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        at = cause.source();
    }
    text
}

impl GitRepo {
    /// Over an open control git dir.
    #[must_use]
    pub fn new(control: ControlDir, parts: GitRepoParts) -> Self {
        let GitRepoParts { work_dir, common_dir, git_dir, pristine, base } = parts;
        let read = git_dir.read_opt(TURN_FILE, limits::CONFIG * 16).ok().flatten();
        let mut turn: Option<TurnMark> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(mark) = &mut turn {
            // An operator who starts again after `tamper:git-redirected` has seen to the repository, maybe
            // by a copy; what is in it is compared all the same. One that is still gone is found later.
            let _absent = mark.guard.adopt_places();
        }
        Self {
            work_dir,
            common_dir,
            control,
            git_dir,
            pristine,
            base,
            turn,
            scopes: BTreeMap::new(),
            ledger: None,
            serial: 0,
        }
    }

    /// The control git dir.
    pub fn control(&mut self) -> &mut ControlDir {
        &mut self.control
    }

    fn open(&self) -> Result<PeerRepo, RepoFailure> {
        PeerRepo::open_known(&self.work_dir, &self.common_dir).map_err(|e| repo_failure(&e))
    }

    fn import(&mut self, peer: &PeerRepo) -> Result<(), RepoFailure> {
        let base = self.base.clone();
        self.control.import(peer, base.as_ref()).map(drop).map_err(failure)
    }

    fn head_facts(&self, peer: &PeerRepo) -> Result<(HeadFacts, bool), RepoFailure> {
        let head = peer.facts().head().map_err(failure)?;
        let tree = self.control.tree_state(&self.work_dir, &head.commit).map_err(failure)?;
        let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
        let facts =
            HeadFacts { head: head.commit, head_tree: tree.head_tree, worktree: tree.worktree_tree, branch };
        Ok((facts, tree.dirty))
    }

    fn dirty_names(&self, head: &CommitId, dirty: bool) -> Vec<String> {
        if !dirty {
            return Vec::new();
        }
        let files = self.control.dirty_files(&self.work_dir, head, DIRTY_SHOWN).unwrap_or_default();
        let mut names: Vec<String> = files
            .iter()
            .map(|f| {
                let mark = match f.status {
                    DirtyStatus::Added => "??",
                    DirtyStatus::Modified => " M",
                    DirtyStatus::Deleted => " D",
                };
                format!("{mark} {}", peers_sys::term::inline(&f.path))
            })
            .collect();
        if names.is_empty() {
            // A difference that has no nameable path (a submodule, say) is still a difference.
            names.push(" M (a path that cannot be named)".into());
        }
        names
    }

    fn scope_digests(
        &mut self,
        scopes: &Scopes,
        at: &CommitId,
    ) -> Result<BTreeMap<GoalId, String>, RepoFailure> {
        let mut out = BTreeMap::new();
        for (id, globs) in scopes {
            let key = (at.clone(), id.clone());
            if let Some(known) = self.scopes.get(&key) {
                out.insert(id.clone(), known.clone());
                continue;
            }
            let scope = Scope::new(globs);
            let digest = self.control.facts().scope_hash(at, |path| scope.holds(path)).map_err(failure)?;
            out.insert(id.clone(), digest.clone());
            if self.scopes.len() > 256 {
                self.scopes.clear();
            }
            self.scopes.insert(key, digest);
        }
        Ok(out)
    }

    fn turn_diff(
        &self,
        old: &TreeId,
        new: &TreeId,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<TurnDiff, GitError> {
        if old == new {
            return Ok(TurnDiff::default());
        }
        let facts = self.control.facts();
        let first = |path: &str| matches!(classify(path), PathKind::Test);
        let mut files = Vec::new();
        for Hunks { change, text } in facts.diff_hunks(old, new, first, (DIFF_CAP, DIFFS_CAP))? {
            let status = match change.kind {
                ChangeKind::Added => FileStatus::Added,
                ChangeKind::Deleted => FileStatus::Deleted,
                ChangeKind::Modified => FileStatus::Modified,
            };
            let Some(text) = text else {
                files.push(FileDiff::opaque(&change.path, status));
                continue;
            };
            let lines = hunks::parse(&text);
            let is_rust = Path::new(&change.path).extension().is_some_and(|e| e.eq_ignore_ascii_case("rs"));
            if is_rust && classify(&change.path) == PathKind::Source {
                let read = |commit: &CommitId| -> String {
                    let blob = facts.read_blob(commit, &change.path, DIFF_CAP).ok().flatten();
                    blob.map(|b| String::from_utf8_lossy(&b.bytes).into_owned()).unwrap_or_default()
                };
                let (before, after) = (read(from), read(to));
                let old = Change { text: &before, lines: &lines.removed };
                let new = Change { text: &after, lines: &lines.added };
                files.extend(FileDiff::divided(&change.path, status, old, new));
            } else {
                let plain = |lines: &[ChangedLine]| lines.iter().map(|l| l.text.clone()).collect();
                files.push(FileDiff::text(&change.path, status, plain(&lines.removed), plain(&lines.added)));
            }
        }
        Ok(TurnDiff { files })
    }

    /// HEAD, when it is our own correction of this tick, from before a crash. Asked before the peer's work
    /// is imported: what the peer made is not in the control dir yet, so it can only forge the mark.
    /// Known work with such a mark is ours only if it restores the very tree, which is harmless.
    fn correction_at(&self, head: &CommitId, tick: TickNo, from: &CommitId) -> Option<CommitId> {
        let facts = self.control.facts();
        let fact = facts.commit(head).ok()?;
        let mark = correction_mark(tick);
        let ours = fact.author.name == SUBSTRATE
            && fact.message.lines().any(|l| l.trim() == mark)
            && facts.tree_of(from).is_ok_and(|tree| tree == fact.tree);
        ours.then_some(fact.id)
    }

    fn commits(
        &self,
        from: &CommitId,
        to: &CommitId,
        known: Generation,
        ours: Option<&CommitId>,
    ) -> Result<Vec<CommitSeen>, RepoFailure> {
        let new = self.control.new_commits(Some(from), to, known).map_err(failure)?;
        Ok(new
            .into_iter()
            .map(|c| {
                let origin = if ours == Some(&c.fact.id) {
                    Origin::Own
                } else if c.known {
                    Origin::Known
                } else {
                    Origin::Peer
                };
                CommitSeen { id: c.fact.id, message: c.fact.message, origin, paths: Vec::new() }
            })
            .collect())
    }

    fn candidates(&mut self) -> Result<(), RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head().map_err(failure)?.commit;
        let cached = self.ledger.take();
        let (from, mut list) = match cached {
            Some((at, list)) if at == head => {
                self.ledger = Some((at, list));
                return Ok(());
            }
            Some((at, list)) if self.control.facts().is_ancestor(&at, &head).unwrap_or(false) => {
                (Some(at), list)
            }
            _ => (self.base.clone(), Vec::new()),
        };
        let facts = self.control.facts();
        let from = from.filter(|f| facts.has(f));
        for fact in facts.walk(from.as_ref(), &head, peers_git::WALK_CAP).map_err(failure)? {
            if !BugClaims::may_be_in(&fact.message) {
                continue;
            }
            let before = fact.parents.first().and_then(|p| facts.tree_of(p).ok());
            let paths = match before {
                Some(before) => facts.diff_trees(&before, &fact.tree).map_err(failure)?,
                None => Vec::new(),
            };
            list.push(Candidate {
                id: fact.id,
                time: fact.time,
                message: fact.message,
                paths: paths.into_iter().map(|p| PathTouched::of(p.path)).collect(),
            });
        }
        self.ledger = Some((head, list));
        Ok(())
    }

    fn salvage(
        &self,
        name: &str,
        tip: &CommitId,
        at: Timestamp,
    ) -> Result<peers_git::SalvageRef, RepoFailure> {
        let kept = self.control.list_salvage().map_err(failure)?;
        // A copy from before a crash is the better one: it holds what was there before anything was undone.
        if let Some(found) = kept.into_iter().find(|s| s.name == name) {
            return Ok(found);
        }
        self.control.salvage(name, tip, &self.work_dir, &substrate(at)).map_err(failure)
    }

    fn revert(
        &mut self,
        peer: &PeerRepo,
        plan: &CorrectionPlanned,
        at: Timestamp,
    ) -> Result<Vec<CommitId>, RepoFailure> {
        let mark = correction_mark(plan.tick);
        let head = peer.facts().head().map_err(failure)?.commit;
        let facts = self.control.facts();
        let done = facts.commit(&head).ok().filter(|c| c.message.lines().any(|l| l.trim() == mark));
        let to_tree = facts.tree_of(&plan.to).map_err(failure)?;
        let (commit, before) = match done {
            Some(fact) if fact.tree == to_tree && fact.author.name == SUBSTRATE => {
                let before =
                    fact.parents.first().and_then(|p| facts.tree_of(p).ok()).unwrap_or(to_tree.clone());
                (fact.id, before)
            }
            _ => {
                let before = facts.tree_of(&head).map_err(failure)?;
                let message = format!(
                    "Anti-cheating revert: tick {}\n\n{}\n\nPeer: peers-substrate\n{mark}\n",
                    plan.tick, plan.reason
                );
                let commit =
                    self.control.revert_commit(&head, &plan.to, &message, &substrate(at)).map_err(failure)?;
                peer.publish(&self.control, &commit).map_err(failure)?;
                peer.move_head(&head, &commit, &substrate(at), "peers: revert").map_err(failure)?;
                (commit, before)
            }
        };
        let report = peer.checkout_changed(&self.control, &before, &to_tree).map_err(failure)?;
        tracing::debug!(?report, "reverted");
        Ok(vec![commit])
    }

    fn put_back(
        &mut self,
        peer: &PeerRepo,
        plan: &CorrectionPlanned,
        kept: &CommitId,
        at: Timestamp,
    ) -> Result<(), RepoFailure> {
        let who = substrate(at);
        peer.publish(&self.control, &plan.to).map_err(failure)?;
        if let Some(branch) = &plan.branch {
            let tip = peer.facts().reference(&format!("refs/heads/{branch}")).map_err(failure)?;
            match tip {
                Some(tip) if tip == plan.to => {}
                Some(tip) => peer
                    .update_branch(branch, Some(&tip), &plan.to, &who, "peers: restore")
                    .map_err(failure)?,
                None => peer.create_branch(branch, &plan.to, &who).map_err(failure)?,
            }
            peer.set_head_branch(branch, &who).map_err(failure)?;
        } else {
            // A branch that HEAD was put on in the turn stays where it is.
            peer.detach_head(&plan.to, &who).map_err(failure)?;
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
        let from = facts.tree_of(from).map_err(failure)?;
        let to = facts.tree_of(&plan.to).map_err(failure)?;
        peer.checkout_changed(&self.control, &from, &to).map(drop).map_err(failure)?;
        if plan.kind == CorrectionKind::Reset {
            peer.reset_index(&self.control, &to).map_err(failure)?;
        }
        Ok(())
    }
}

/// Puts back what the turn must not have touched, before the repository is opened at all.
fn mend_files(mark: &TurnMark, found: &mut RepoHarvest) -> Result<(), RepoFailure> {
    let changes = mark.guard.compare_files().map_err(failure)?;
    if changes.is_empty() {
        return Ok(());
    }
    if changes.iter().any(|c| c.item == GuardItem::GitDir) {
        return Err(RepoFailure::Redirected("the git directory was replaced during the turn".into()));
    }
    let left = mark.guard.restore_files(&changes).map_err(failure)?;
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

fn mend_refs(peer: &PeerRepo, mark: &TurnMark, found: &mut RepoHarvest) -> Result<(), RepoFailure> {
    let changes = mark.guard.compare_refs(peer).map_err(failure)?;
    if changes.is_empty() {
        return Ok(());
    }
    let at = peers_sys::clock::now();
    mark.guard.restore_refs(peer, &changes, &substrate(at)).map_err(failure)?;
    for change in changes {
        if let GuardItem::Ref(name) = change.item {
            found.refs_tampered.push(name);
        }
    }
    Ok(())
}

/// A HEAD that names no commit (a branch without one, something that is no branch, garbage) is put back
/// where the turn began. Whatever it named stays in the repository.
fn mend_head(
    peer: &PeerRepo,
    mark: &TurnMark,
    from: &CommitId,
    found: &mut RepoHarvest,
) -> Result<(), RepoFailure> {
    let who = substrate(peers_sys::clock::now());
    match &mark.branch {
        None => peer.detach_head(from, &who).map_err(failure)?,
        Some(branch) => {
            if peer.facts().reference(branch).map_err(failure)?.is_none() {
                peer.create_branch(branch, from, &who).map_err(failure)?;
            }
            peer.set_head_branch(branch, &who).map_err(failure)?;
        }
    }
    found.warnings.push("HEAD named no branch with a commit after this turn and was put back".into());
    Ok(())
}

fn debris(peer: &PeerRepo, mark: Option<&TurnMark>, found: &mut RepoHarvest) {
    use peers_git::BusyState;
    for state in peer.busy() {
        match state {
            BusyState::IndexLock if mark.is_some_and(|m| !m.index_lock) => {
                // It appeared in this turn and no process of the turn is alive.
                if peer.remove_index_lock().unwrap_or(false) {
                    found.warnings.push("a stale .git/index.lock of this turn was removed".into());
                }
            }
            other => found.warnings.push(format!("git was left in the middle of something: {other}")),
        }
    }
    let Some(mark) = mark else { return };
    for lock in peer.ref_locks().into_iter().filter(|lock| !mark.ref_locks.contains(lock)) {
        // With it nobody could commit, and nothing could be put back.
        if peer.remove_ref_lock(&lock).unwrap_or(false) {
            let shown = lock.strip_prefix(peer.work_dir()).unwrap_or(&lock).to_string_lossy();
            let shown = peers_sys::term::inline(&shown);
            found.warnings.push(format!("a stale lock of this turn was removed: {shown}"));
        }
    }
}

/// The mark that says which tick a commit of ours corrects.
#[must_use]
pub fn correction_mark(tick: TickNo) -> String {
    format!("Peers-Corrects: {tick}")
}

impl Repo for GitRepo {
    fn survey(
        &mut self,
        known_head: Option<&CommitId>,
        scopes: &Scopes,
        settled: bool,
    ) -> Result<RepoFacts, RepoFailure> {
        let peer = self.open()?;
        if settled {
            self.import(&peer)?;
        } else if self.control.facts().head().is_err() {
            // Nothing can be known of a turn whose start the control dir never saw; import what is there.
            self.import(&peer)?;
        }
        if !settled {
            // An open tick: what its peer made must not become known before it is harvested.
            let head = peer.facts().head().map_err(failure)?;
            let tree = peer.facts().tree_of(&head.commit).map_err(failure)?;
            let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
            let at = HeadFacts { head: head.commit, head_tree: tree.clone(), worktree: tree, branch };
            return Ok(RepoFacts {
                at,
                dirty: Vec::new(),
                since: Vec::new(),
                intact: true,
                scopes: BTreeMap::new(),
                git_state: None,
            });
        }
        let (at, dirty) = self.head_facts(&peer)?;
        let (mut since, mut intact) = (Vec::new(), true);
        let known = known_head.or(self.base.as_ref());
        if let Some(known) = known.filter(|k| **k != at.head) {
            let facts = self.control.facts();
            let has = facts.has(known);
            let behind = has && facts.is_ancestor(known, &at.head).map_err(failure)?;
            intact = behind || known_head.is_none();
            let start = match (behind, has) {
                (true, _) => Some(known.clone()),
                // After a rebase, say: what is not shared is new.
                (false, true) => facts.merge_base(known, &at.head).map_err(failure)?,
                (false, false) => self.base.clone(),
            };
            if let Some(start) = start.filter(|start| facts.has(start)) {
                let walked = facts.walk(Some(&start), &at.head, peers_git::WALK_CAP).map_err(failure)?;
                since = walked.into_iter().map(|c| c.id).collect();
            }
        }
        let git_state = peer.busy().first().map(ToString::to_string);
        Ok(RepoFacts {
            dirty: self.dirty_names(&at.head, dirty),
            since,
            intact,
            scopes: self.scope_digests(scopes, &at.head)?,
            git_state,
            at,
        })
    }

    fn diff(&mut self, from: &CommitId, to: &CommitId) -> Result<TurnDiff, RepoFailure> {
        let facts = self.control.facts();
        let (old, new) = (facts.tree_of(from).map_err(failure)?, facts.tree_of(to).map_err(failure)?);
        self.turn_diff(&old, &new, from, to).map_err(failure)
    }

    fn key(&mut self) -> Result<TreeKey, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head().map_err(failure)?.commit;
        if !self.control.facts().has(&head) {
            self.import(&peer)?;
        }
        let tree = self.control.tree_state(&self.work_dir, &head).map_err(failure)?;
        Ok(TreeKey { head, tree: tree.worktree_tree })
    }

    fn before_turn(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        let peer = self.open()?;
        let patterns: Vec<String> = PROTECTED.iter().map(|p| (*p).to_owned()).collect();
        let guard = GuardSnapshot::take(&peer, &patterns).map_err(failure)?;
        let index_lock = peer.busy().contains(&peers_git::BusyState::IndexLock);
        let known = self.control.generation();
        // A name that is no text cannot be kept; no git of ours or the operator's made it.
        let ref_locks = peer.ref_locks().into_iter().filter(|lock| lock.to_str().is_some()).collect();
        let branch = peer.facts().head().map_err(failure)?.branch;
        let mark = TurnMark { v: 1, tick, known, index_lock, ref_locks, branch, guard };
        let bytes = serde_json::to_vec(&mark).map_err(|e| RepoFailure::Git(format!("turn mark: {e}")))?;
        self.git_dir.publish_unsynced(TURN_FILE, &bytes).map_err(|e| RepoFailure::Git(chain(&e)))?;
        self.turn = Some(mark);
        Ok(())
    }

    fn harvest(
        &mut self,
        tick: TickNo,
        from: &CommitId,
        scopes: &Scopes,
    ) -> Result<RepoHarvest, RepoFailure> {
        let mut found = RepoHarvest::default();
        let mark = self.turn.take().filter(|m| m.tick == tick);
        if let Some(mark) = &mark {
            mend_files(mark, &mut found)?;
        }
        let peer = self.open()?;
        if let Some(mark) = &mark {
            mend_refs(&peer, mark, &mut found)?;
        }
        debris(&peer, mark.as_ref(), &mut found);
        let head = match (peer.facts().head(), &mark) {
            (Err(GitError::Repo(RepoError::Unborn { .. } | RepoError::Corrupt { .. })), Some(mark)) => {
                mend_head(&peer, mark, from, &mut found)?;
                peer.facts().head()
            }
            (head, _) => head,
        };
        let head = head.map_err(failure)?.commit;
        let ours = self.correction_at(&head, tick, from);
        self.import(&peer)?;
        let (at, dirty) = self.head_facts(&peer)?;
        if mark.is_some() && !peer.index_readable() {
            peer.reset_index(&self.control, &at.head_tree).map_err(failure)?;
            found
                .warnings
                .push("the index was unreadable after this turn and was made again from HEAD".into());
        }
        found.dirty = self.dirty_names(&at.head, dirty);
        let facts = self.control.facts();
        found.ancestor = facts.has(from) && facts.is_ancestor(from, &at.head).map_err(failure)?;
        if facts.has(from) {
            let known = mark.as_ref().map_or(Generation(0), |m| m.known);
            found.commits = self.commits(from, &at.head, known, ours.as_ref())?;
            let old = self.control.facts().tree_of(from).map_err(failure)?;
            found.diff = self.turn_diff(&old, &at.head_tree, from, &at.head).map_err(failure)?;
            let then = self.scope_digests(scopes, from)?;
            let mut now = self.scope_digests(scopes, &at.head)?;
            let pair = |(id, before): (GoalId, String)| {
                let after = now.remove(&id).unwrap_or_default();
                (id, (before, after))
            };
            found.scopes = then.into_iter().map(pair).collect();
        }
        self.turn = mark;
        found.at = Some(at);
        Ok(found)
    }

    fn correct(
        &mut self,
        plan: &CorrectionPlanned,
        peer: &PeerName,
        run: &RunId,
    ) -> Result<Corrected, RepoFailure> {
        let now = peers_sys::clock::now();
        let repo = self.open()?;
        self.import(&repo)?;
        let name = format!("{run}/{}-{peer}", plan.tick);
        let tip = repo.facts().head().map_err(failure)?.commit;
        let kept = self.salvage(&name, &tip, now)?;
        let own = match plan.kind {
            CorrectionKind::Revert => self.revert(&repo, plan, now)?,
            CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch | CorrectionKind::Reset => {
                self.put_back(&repo, plan, &kept.commit, now)?;
                Vec::new()
            }
        };
        self.import(&repo)?;
        let (at, _) = self.head_facts(&repo)?;
        Ok(Corrected { at, own, salvage: Some(kept.name) })
    }

    fn attest(&mut self, commits: &[(CommitId, String)]) -> Result<(), RepoFailure> {
        let peer = self.open()?;
        peer.write_notes(ATTEST_REF, commits, &substrate(peers_sys::clock::now())).map_err(failure)
    }

    fn commits_since(&mut self, from: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head().map_err(failure)?.commit;
        if head == *from {
            return Ok(Vec::new());
        }
        let facts = self.control.facts();
        let start =
            if facts.has(from) { facts.merge_base(from, &head).map_err(failure)? } else { self.base.clone() };
        let walked = facts.walk(start.as_ref(), &head, peers_git::WALK_CAP).map_err(failure)?;
        Ok(walked.into_iter().map(|c| (c.id, c.message)).collect())
    }

    fn ledger(&mut self, authors: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure> {
        self.candidates()?;
        let list = self.ledger.as_ref().map(|(_, list)| list.as_slice()).unwrap_or_default();
        Ok(list
            .iter()
            .map(|c| LedgerCommit {
                id: c.id.clone(),
                author: ledger_author(authors, &c.id),
                time: c.time,
                message: c.message.clone(),
                paths: c.paths.clone(),
                voided: authors.is_voided(&c.id),
            })
            .collect())
    }

    fn last_handoff(&mut self, mark: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure> {
        let facts = self.control.facts();
        if !facts.has(&mark.from) || !facts.has(&mark.to) {
            return Ok(None);
        }
        let commits = facts.walk(Some(&mark.from), &mark.to, 1000).map_err(failure)?;
        let found = commits.into_iter().rev().find_map(|c| {
            let claims = CommitClaims::read(&c.message);
            let handoff = claims.handoff.unverified();
            let section = handoff.self_review_section.clone().unwrap_or_default();
            handoff.is_handoff().then_some((c.id, claims.subject, section))
        });
        let Some((sha, subject, self_review)) = found else { return Ok(None) };
        let (old, new) =
            (facts.tree_of(&mark.from).map_err(failure)?, facts.tree_of(&mark.to).map_err(failure)?);
        let changes = facts.diff_trees(&old, &new).map_err(failure)?;
        let mut diffstat: Vec<String> =
            changes.iter().take(30).map(|c| format!("{} +{} -{}", c.path, c.added, c.deleted)).collect();
        if changes.len() > 30 {
            diffstat.push(format!("and {} more", changes.len() - 30));
        }
        Ok(Some(LastHandoff {
            peer: mark.peer.clone(),
            sha,
            subject,
            self_review,
            diffstat: diffstat.join("\n"),
        }))
    }

    fn checkout(&mut self, commit: &CommitId) -> Result<PathBuf, RepoFailure> {
        let peer = self.open()?;
        self.serial += 1;
        let dir = self.pristine.join(format!("{}-{}", commit.short(), self.serial));
        peers_git::remove_checkout(&dir).map_err(failure)?;
        let git = SyntheticGit::over_peer(&peer).map_err(failure)?;
        self.control.checkout_pristine(commit, &dir, &git).map_err(failure)?;
        Ok(dir)
    }

    fn remove_checkout(&mut self, dir: &Path) {
        if let Err(error) = peers_git::remove_checkout(dir) {
            tracing::warn!(error = %chain(&error), "a checkout was not removed; it goes at the next start");
        }
    }
}

/// The author as the ledger knows authors.
#[must_use]
pub fn ledger_author(authors: &Authors, id: &CommitId) -> LedgerAuthor {
    match authors.of(id) {
        Some(peers_store::Author::Peer { name, .. }) => LedgerAuthor::Peer(name.clone()),
        Some(peers_store::Author::Operator) => LedgerAuthor::Operator,
        Some(peers_store::Author::Foreign) => LedgerAuthor::Foreign,
        Some(peers_store::Author::Substrate) => LedgerAuthor::Substrate,
        None => LedgerAuthor::Unattributed,
    }
}
