//! The real repository: the [`Repo`] port over `peers-git`.
//!
//! What decides a verdict is read from the control git dir. What must survive a crash in the middle
//! of a turn (which commits were known before it, what was guarded) lies beside it in `turn.json`.

mod correct;
mod gates;
mod harvest;
mod kept;
mod mend;
mod own;
mod past;
mod putback;
mod stopped;
mod turn;
mod turngit;
mod unopened;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use peers_core::bugs::LedgerCommit;
use peers_core::cheat::TurnDiff;
use peers_core::classify_path::TestPaths;
use peers_core::machine::{Corrected, Harvest, HeadFacts};
use peers_core::prompt::LastHandoff;
use peers_core::scope::Scope;
use peers_core::state::HandoffMark;
use peers_git::{
    Author, CommitFact, ControlDir, DirtyStatus, GitError, Head, PeerRepo, RepoError, TreeState,
};
use peers_model::record::CorrectionPlanned;
use peers_model::verdict::TreeKey;
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, TreeId};
use peers_store::history::History;
use peers_store::{Authors, FsDisk};
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::error::chain;

use crate::measure::Measurer;
use crate::outward;
use crate::ports::{GateCopy, Repo, RepoFacts, RepoFailure, Scopes};
use gates::BeforeGates;
use putback::Stored;
use stopped::unimportable;
use turn::{TURN_FILE, TurnMark};

pub use own::open_control;
pub use past::ledger_author;
pub use turngit::Turns;
pub(crate) use unopened::{
    changed_since_gates, has_gates_mark, has_own_lock, mend_unopened, remove_own_locks,
};

/// Attribution notes, a published copy.
pub const ATTEST_REF: &str = "refs/notes/peers-attest";
/// Where work that cannot be imported stays in the agents' repository.
const UNREADABLE_REFS: &str = "refs/salvage-unreadable/";
/// Refs that nobody but us may move.
const PROTECTED: [&str; 4] =
    ["refs/tags/peers-baseline", "refs/notes/peers-*", "refs/peers/*", "refs/salvage-unreadable/*"];
/// The name of our own commits.
const SUBSTRATE: &str = "peers-substrate";
/// Uncommitted paths that are named.
pub(crate) const DIRTY_SHOWN: usize = 30;

/// The identity of our own commits.
#[must_use]
pub fn substrate(at: Timestamp) -> Author {
    Author::new(SUBSTRATE, "peers-substrate@local", at)
}

/// Whether a commit says that it is ours. A claim.
fn is_substrate(fact: &CommitFact) -> bool {
    fact.author.name == SUBSTRATE
}

/// The real repository.
pub struct GitRepo {
    work_dir: PathBuf,
    common_dir: PathBuf,
    control: ControlDir,
    git_dir: SafeDir,
    pristine: PathBuf,
    base: Option<CommitId>,
    tests: TestPaths,
    measurer: Measurer,
    turn: Option<TurnMark>,
    /// How things stood when gates began to run, and the commit that HEAD named.
    gates: Option<(TurnMark, CommitId)>,
    /// The work tree when gates began to run, and the commit that HEAD named.
    before_gates: Option<BeforeGates>,
    /// The turn that was taken in last had a git directory of its own.
    own_git: bool,
    scopes: BTreeMap<(CommitId, GoalId), String>,
    history: Option<History>,
    /// Where it is kept, and how many commits it had then.
    kept: Option<FsDisk>,
    kept_commits: usize,
    /// At this commit the work tree was clean when it was last looked at.
    clean_at: Option<CommitId>,
    /// Commits behind the values of references.
    peeled: HashMap<String, CommitId>,
    /// Warnings that are given once, and those that wait for the end of a turn.
    told: BTreeSet<String>,
    to_tell: Vec<String>,
    /// Where the git directory of a turn is made, where agents have one of their own.
    turns: Option<Turns>,
    /// What HEAD needs was looked for before the first turn of this process.
    looked_over: bool,
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
    /// Where pristine checkouts go; it exists. What is no directory of ours in the one above is removed.
    pub pristine: PathBuf,
    /// History before it is the operator's.
    pub base: Option<CommitId>,
    /// What else are tests.
    pub tests: TestPaths,
    /// What measures changes of tests.
    pub measurer: Measurer,
    /// The trusted store, for a loop: there it keeps what is long to read.
    pub kept: Option<FsDisk>,
    /// Where the git directory of a turn is made; absent where agents have the one of the checkout.
    pub turns: Option<Turns>,
}

fn failure(error: GitError) -> RepoFailure {
    match error {
        full if no_space(&full) => RepoFailure::DiskFull(chain(&full)),
        GitError::Repo(error) => repo_failure(&error),
        other => RepoFailure::Git(chain(&other)),
    }
}

impl From<GitError> for RepoFailure {
    fn from(error: GitError) -> Self {
        failure(error)
    }
}

impl From<FileError> for RepoFailure {
    fn from(error: FileError) -> Self {
        Self::Git(chain(&error))
    }
}

/// Whether there was no room to write: not the fault of what was read. The `git` program only says so.
fn no_space(error: &GitError) -> bool {
    matches!(error, GitError::DiskFull { .. })
        || matches!(error, GitError::Cli(_)) && chain(error).contains("No space left on device")
}

/// A repository that cannot be used stops the run as tampering. One that is busy, or a disk that fails, does not.
fn repo_failure(error: &RepoError) -> RepoFailure {
    let what = chain(error);
    match error {
        RepoError::Io { source, .. } if source.kind() != std::io::ErrorKind::PermissionDenied => {
            RepoFailure::Git(what)
        }
        RepoError::Busy { .. } | RepoError::Unborn { .. } => RepoFailure::Git(what),
        RepoError::NotARepo { .. }
        | RepoError::Bare { .. }
        | RepoError::Redirected { .. }
        | RepoError::Corrupt { .. }
        | RepoError::UnsupportedExtension { .. }
        | RepoError::WrongOwner { .. }
        | RepoError::Unsafe { .. }
        | RepoError::Io { .. } => RepoFailure::Tampered { what, way: None },
    }
}

impl GitRepo {
    /// Removes whatever lies where clean checkouts are made.
    fn clear_checkouts(&self) -> Result<(), RepoFailure> {
        let dir = SafeDir::open_shared(&self.pristine)?;
        if let Some(above) = self.pristine.parent() {
            let above = SafeDir::open_shared(above)?;
            crate::cache::clear_foreign(&above)?;
        }
        Ok(crate::cache::clear_but(&dir, |_| false)?)
    }

    /// Over an open control git dir.
    #[must_use]
    pub fn new(control: ControlDir, parts: GitRepoParts) -> Self {
        let GitRepoParts { work_dir, common_dir, git_dir, pristine, base, tests, measurer, mut kept, turns } =
            parts;
        let history = kept.as_mut().and_then(History::read);
        let read = git_dir.read_opt(TURN_FILE, turn::MARK_CAP).ok().flatten();
        let mut turn: Option<TurnMark> = read.and_then(|bytes| TurnMark::read(&bytes));
        if let Some(mark) = &mut turn {
            // An operator who starts again after `tamper:git-redirected` has seen to the repository, maybe
            // by a copy; what is in it is compared all the same. One that is still gone is found later.
            let _absent = mark.guard.adopt_places();
        }
        let mut repo = Self {
            work_dir,
            common_dir,
            control,
            git_dir,
            pristine,
            base,
            tests,
            measurer,
            turn,
            gates: None,
            before_gates: None,
            own_git: false,
            scopes: BTreeMap::new(),
            kept_commits: history.as_ref().map_or(0, |history| history.commits),
            history,
            kept,
            clean_at: None,
            peeled: HashMap::new(),
            told: BTreeSet::new(),
            to_tell: Vec::new(),
            turns,
            looked_over: false,
        };
        if let (Some(mark), Some(at)) = (&repo.turn, repo.started_at()) {
            // Where our own list was lost the work of the open turn would pass for known. A list that cannot
            // be written is an error that comes again.
            let _counted = repo.control.count_from(mark.known, &at);
        }
        repo
    }

    /// Something that the record of the next turn tells.
    pub fn tell(&mut self, text: String) {
        self.to_tell.push(text);
    }

    /// The control git dir.
    pub fn control(&mut self) -> &mut ControlDir {
        &mut self.control
    }

    fn open(&self) -> Result<PeerRepo, RepoFailure> {
        PeerRepo::open_known(&self.work_dir, &self.common_dir).map_err(|error| repo_failure(&error))
    }

    /// Imports what is there now, whoever made it. Not for a loop, which has to know whose it is.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn bring_in(&mut self, peer: &PeerRepo) -> Result<(), GitError> {
        self.import(peer)
    }

    fn import(&mut self, peer: &PeerRepo) -> Result<(), GitError> {
        let base = self.base.clone();
        self.control.import(peer, base.as_ref()).map(drop)
    }

    fn head_facts(&self, peer: &PeerRepo) -> Result<(HeadFacts, TreeState), GitError> {
        let head = peer.facts().head()?;
        let tree = self.control.tree_state(&self.work_dir, &head.commit)?;
        let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
        let facts = HeadFacts {
            head: head.commit,
            head_tree: tree.head_tree.clone(),
            worktree: tree.key()?,
            content: tree.content()?,
            branch,
        };
        Ok((facts, tree))
    }

    fn dirty_names(&self, head: &CommitId, state: &TreeState) -> Vec<String> {
        if !state.dirty {
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
    ) -> Result<BTreeMap<GoalId, String>, GitError> {
        let mut out = BTreeMap::new();
        for (id, globs) in scopes {
            let key = (at.clone(), id.clone());
            if let Some(known) = self.scopes.get(&key) {
                out.insert(id.clone(), known.clone());
                continue;
            }
            let scope = Scope::new(globs);
            let digest = self.control.facts().scope_hash(at, |path| scope.holds(path))?;
            out.insert(id.clone(), digest.clone());
            if self.scopes.len() > 256 {
                self.scopes.clear();
            }
            self.scopes.insert(key, digest);
        }
        Ok(out)
    }
}

/// HEAD, with nothing uncommitted.
fn clean_at(head: Head, tree: TreeId) -> HeadFacts {
    let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
    HeadFacts { head: head.commit, head_tree: tree.clone(), content: tree.clone(), worktree: tree, branch }
}

/// The mark that says which tick a commit of ours corrects.
#[must_use]
pub fn correction_mark(tick: TickNo) -> String {
    format!("Peers-Corrects: {tick}")
}

impl GitRepo {
    fn look(
        &mut self,
        known_head: Option<&CommitId>,
        scopes: &Scopes,
        settled: bool,
    ) -> Result<RepoFacts, RepoFailure> {
        let peer = self.open()?;
        if settled {
            self.import(&peer).map_err(unimportable)?;
        } else if self.control.facts().head().is_err() {
            // Nothing can be known of a turn whose start the control dir never saw; import what is there.
            self.import(&peer).map_err(unimportable)?;
        }
        if !settled {
            // An open tick: what its peer made must not become known before it is harvested.
            let head = peer.facts().head()?;
            let tree = peer.facts().tree_of(&head.commit)?;
            return Ok(RepoFacts {
                at: clean_at(head, tree),
                dirty: Vec::new(),
                since: Vec::new(),
                intact: true,
                scopes: BTreeMap::new(),
                git_state: None,
            });
        }
        let (at, state) = self.head_facts(&peer)?;
        self.clean_at = (!state.dirty).then(|| at.head.clone());
        if let Some(refusal) =
            at.branch.as_ref().and_then(|b| peer.symbolic_branch(&format!("refs/heads/{b}")))
        {
            return Err(repo_failure(&refusal));
        }
        let (mut since, mut intact) = (Vec::new(), true);
        let known = known_head.or(self.base.as_ref());
        if let Some(known) = known.filter(|k| **k != at.head) {
            let facts = self.control.facts();
            let has = facts.has(known);
            let behind = has && facts.is_ancestor(known, &at.head)?;
            intact = behind || known_head.is_none();
            let start = match (behind, has) {
                (true, _) => Some(known.clone()),
                // After a rebase, say: what is not shared is new.
                (false, true) => facts.merge_base(known, &at.head)?,
                (false, false) => self.base.clone(),
            };
            if let Some(start) = start.filter(|start| facts.has(start)) {
                let walked = facts.walk(Some(&start), &at.head, peers_git::WALK_CAP)?;
                since = walked.into_iter().map(|c| c.id).collect();
            }
        }
        let git_state = peer.busy().first().map(ToString::to_string);
        Ok(RepoFacts {
            dirty: self.dirty_names(&at.head, &state),
            since,
            intact,
            scopes: self.scope_digests(scopes, &at.head)?,
            git_state,
            at,
        })
    }

    fn key_now(&mut self) -> Result<TreeKey, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head()?.commit;
        if !self.control.facts().has(&head) {
            self.import(&peer).map_err(unimportable)?;
        }
        let tree = self.control.tree_state(&self.work_dir, &head)?;
        self.clean_at = (!tree.dirty).then(|| head.clone());
        Ok(TreeKey { head, tree: tree.key()? })
    }

    /// Only links that were there when the history began to be counted are the operator's.
    fn leads_out(&self, commit: &CommitId, checkout: &Path) -> Result<Option<String>, RepoFailure> {
        let is_operators = |link: &peers_git::OutwardLink| {
            self.base.as_ref().is_some_and(|base| self.control.has_link(base, link).unwrap_or(false))
        };
        let found = self.control.outward_links(commit, checkout, is_operators)?;
        Ok(outward::refusal(&found, true))
    }

    fn check_out(&mut self, commit: &CommitId) -> Result<PathBuf, RepoFailure> {
        let peer = self.open()?;
        // Programs look for modules and configuration in the directories above: none but ours is there.
        self.clear_checkouts()?;
        // What `setup` left may name its own place, so all gates of a proof have the same.
        let dir = self.pristine.join(commit.short());
        let git = self.control.lend(&peer)?;
        self.control.checkout_pristine(commit, &dir, &git)?;
        Ok(dir)
    }
}

/// Git's file modes of regular files.
const REGULAR: [u32; 2] = [0o100_644, 0o100_755];

impl Repo for GitRepo {
    fn survey(
        &mut self,
        known_head: Option<&CommitId>,
        scopes: &Scopes,
        settled: bool,
    ) -> Result<RepoFacts, RepoFailure> {
        self.see_to_old_gates();
        self.with_control(|repo| repo.look(known_head, scopes, settled))
    }

    fn diff(&mut self, from: &CommitId, to: &CommitId) -> Result<TurnDiff, RepoFailure> {
        self.with_control(|repo| {
            let facts = repo.control.facts();
            let (old, new) = (facts.tree_of(from)?, facts.tree_of(to)?);
            let diffs = repo.diffs(&[(&Stored::whole(old), &Stored::whole(new))])?;
            Ok(diffs.into_iter().next().unwrap_or_default())
        })
    }

    fn key(&mut self) -> Result<TreeKey, RepoFailure> {
        self.with_control(Self::key_now)
    }

    fn before_turn(&mut self, tick: TickNo, peer: &PeerName) -> Result<(), RepoFailure> {
        // Of a turn that was cut short and is not taken up: nobody's.
        let told = self.take_turn_git(tick)?;
        self.to_tell.extend(told);
        self.with_control(|repo| repo.mark_turn(tick))?;
        self.with_control(|repo| repo.make_turn_git(peer))
    }

    fn before_gates(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        self.with_control(|repo| repo.mark_gates(tick))
    }

    fn after_gates(&mut self) -> Result<Vec<String>, RepoFailure> {
        self.mend_after_gates()
    }

    fn changed_by_gates(&mut self) -> Vec<String> {
        // For people alone: what cannot be read is not named.
        self.paths_since_gates().unwrap_or_default()
    }

    fn undo_weakening(&mut self) -> Result<Vec<String>, RepoFailure> {
        let Some(before) = self.before_gates.take() else { return Ok(Vec::new()) };
        self.with_control(|repo| repo.undo_what_gates_weakened(&before))
    }

    fn undo_left(&mut self, tick: TickNo, from: &CommitId, found: &mut Harvest) -> Result<(), RepoFailure> {
        self.with_control(|repo| repo.undo_what_a_turn_left(tick, from, found))
    }

    fn remembers(&self, tick: TickNo) -> bool {
        self.turn.as_ref().is_some_and(|mark| mark.tick == tick)
    }

    fn harvest(&mut self, tick: TickNo, from: &CommitId, scopes: &Scopes) -> Result<Harvest, RepoFailure> {
        self.see_to_old_gates();
        let told = self.take_turn_git(tick)?;
        let mut found = self.harvest_turn(tick, from, scopes)?;
        found.warnings.splice(0..0, told);
        Ok(found)
    }

    fn before_stop(&mut self, turn: Option<(TickNo, &CommitId)>, what: String) -> String {
        let failure = self.with_way_on(RepoFailure::Tampered { what, way: None });
        let gates = self.gates.as_ref().map(|(mark, from)| (mark.tick, from.clone()));
        match turn.map(|(tick, from)| (tick, from.clone())).or(gates) {
            Some((tick, from)) => self.keep_before_stop((tick, &from), failure),
            None => failure,
        }
        .to_string()
    }

    fn correct(
        &mut self,
        plan: &CorrectionPlanned,
        peer: &PeerName,
        run: &RunId,
    ) -> Result<Corrected, RepoFailure> {
        self.with_control(|repo| repo.take_back(plan, peer, run))
    }

    fn attest(&mut self, commits: &[(CommitId, String)]) -> Result<(), RepoFailure> {
        let peer = self.open()?;
        peer.write_notes(ATTEST_REF, commits, &substrate(peers_sys::clock::now())).map_err(failure)
    }

    fn commits_since(&mut self, from: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure> {
        self.with_control(|repo| repo.since(from))
    }

    fn ledger(&mut self, authors: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure> {
        self.with_control(|repo| repo.bug_ledger(authors))
    }

    fn last_handoff(&mut self, mark: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure> {
        self.with_control(|repo| repo.handoff_of(mark))
    }

    fn file(&mut self, commit: &CommitId, path: &str, cap: usize) -> Result<Option<Vec<u8>>, RepoFailure> {
        self.with_control(|repo| match repo.control.facts().read_blob(commit, path, cap) {
            Ok(blob) => Ok(blob.filter(|blob| REGULAR.contains(&blob.mode)).map(|blob| blob.bytes)),
            Err(GitError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(failure(error)),
        })
    }

    fn gate_copy(&mut self, key: &TreeKey, behind: bool) -> Result<Option<GateCopy>, RepoFailure> {
        self.with_control(|repo| repo.copy_for_gates(key, if behind { gates::BEHIND } else { gates::COPY }))
    }

    fn scopes_of(&mut self, key: &TreeKey, globs: &Scopes) -> Result<BTreeMap<GoalId, String>, RepoFailure> {
        self.with_control(|repo| repo.scopes_at(key, globs))
    }

    fn digest_of(&mut self, key: &TreeKey, globs: &[String]) -> Result<Option<String>, RepoFailure> {
        self.with_control(|repo| repo.digest_at(key, globs))
    }

    fn checkout(&mut self, commit: &CommitId) -> Result<PathBuf, RepoFailure> {
        self.with_control(|repo| repo.check_out(commit))
    }

    fn unfit(&mut self, commit: &CommitId, checkout: &Path) -> Result<Option<String>, RepoFailure> {
        self.with_control(|repo| repo.leads_out(commit, checkout))
    }

    fn remove_checkout(&mut self, dir: &Path) {
        if let Err(error) = peers_git::remove_checkout(dir) {
            tracing::warn!(error = %chain(&error), "a checkout was not removed; it goes at the next start");
        }
    }
}
