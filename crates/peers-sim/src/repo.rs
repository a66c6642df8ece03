//! A repository of commits with messages and trees that are maps of paths.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use peers_code::{ChangedFile, Side};
use peers_core::bugs::{Author as LedgerAuthor, LedgerCommit, PathTouched};
use peers_core::cheat::{FileDiff, TurnDiff};
use peers_core::machine::{CommitSeen, Corrected, Harvest, HeadFacts, Origin};
use peers_core::prompt::LastHandoff;
use peers_core::state::HandoffMark;
use peers_model::record::{CorrectionKind, CorrectionPlanned};
use peers_model::verdict::TreeKey;
use peers_model::{CommitId, GoalId, PeerName, RunId, TickNo, Timestamp, TreeId};
use peers_run::ports::{Repo, RepoFacts, RepoFailure, Scopes};
use peers_store::{Author, Authors};
use peers_sys::digest::sha256_hex;

use crate::fault::{Kind, Points, Verb, crash};

/// Paths and their content.
pub type Tree = BTreeMap<String, String>;

/// A commit.
#[derive(Debug, Clone)]
pub struct SimCommit {
    /// Its parent.
    pub parent: Option<CommitId>,
    /// Its tree.
    pub tree: Tree,
    /// Its message.
    pub message: String,
}

/// What is in the repository.
#[derive(Debug)]
pub struct RepoData {
    /// All objects.
    pub commits: BTreeMap<CommitId, SimCommit>,
    /// Branches.
    pub branches: BTreeMap<String, CommitId>,
    /// The branch that HEAD names.
    pub head: String,
    /// The work tree without ignored files.
    pub work: Tree,
    /// Heads that were known when no tick was open.
    pub known: BTreeSet<CommitId>,
    /// Copies of what was undone.
    pub salvage: BTreeMap<String, CommitId>,
    /// The git directory is gone.
    pub broken: bool,
}

/// The repository. Clones share their content: it outlives the loop.
#[derive(Debug, Clone)]
pub struct SimRepo {
    data: Rc<RefCell<RepoData>>,
    points: Points,
}

fn tree_id(tree: &Tree) -> TreeId {
    let parts: Vec<&str> = tree.iter().flat_map(|(p, c)| [p.as_str(), c.as_str()]).collect();
    let text = parts.join("\0");
    TreeId::new(sha256_hex(text.as_bytes())).unwrap_or_else(|_| unreachable_id())
}

fn unreachable_id<T: std::str::FromStr>() -> T {
    "0".repeat(64).parse().unwrap_or_else(|_| crash())
}

fn commit_id(parent: Option<&CommitId>, tree: &Tree, message: &str, salt: usize) -> CommitId {
    let text = format!("{parent:?}\0{}\0{message}\0{salt}", tree_id(tree));
    CommitId::new(sha256_hex(text.as_bytes())).unwrap_or_else(|_| unreachable_id())
}

impl RepoData {
    /// The commit that HEAD names.
    #[must_use]
    pub fn tip(&self) -> CommitId {
        self.branches.get(&self.head).cloned().unwrap_or_else(unreachable_id)
    }

    /// A commit's tree.
    #[must_use]
    pub fn tree(&self, id: &CommitId) -> Tree {
        self.commits.get(id).map(|c| c.tree.clone()).unwrap_or_default()
    }

    /// A commit and everything before it, newest first.
    #[must_use]
    pub fn history(&self, from: &CommitId) -> Vec<CommitId> {
        let mut out = Vec::new();
        let mut at = Some(from.clone());
        while let Some(id) = at {
            at = self.commits.get(&id).and_then(|c| c.parent.clone());
            out.push(id);
        }
        out
    }

    /// Commits the work tree on the current branch.
    pub fn commit(&mut self, message: &str) -> CommitId {
        let parent = self.tip();
        let id = commit_id(Some(&parent), &self.work, message, self.commits.len());
        let commit = SimCommit { parent: Some(parent), tree: self.work.clone(), message: message.to_owned() };
        self.commits.insert(id.clone(), commit);
        self.branches.insert(self.head.clone(), id.clone());
        id
    }

    fn facts(&self) -> HeadFacts {
        let head = self.tip();
        HeadFacts {
            head_tree: tree_id(&self.tree(&head)),
            worktree: tree_id(&self.work),
            content: tree_id(&self.work),
            branch: Some(self.head.clone()),
            head,
        }
    }

    fn diff(&self, from: &CommitId, to: &CommitId) -> TurnDiff {
        let (old, new) = (self.tree(from), self.tree(to));
        let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let paths: Vec<&String> = paths.into_iter().filter(|p| old.get(*p) != new.get(*p)).collect();
        let files = paths
            .iter()
            .map(|p| FileDiff::text(p, u64::from(new.contains_key(*p)), u64::from(old.contains_key(*p))));
        let side = |tree: &Tree, path: &String| tree.get(path).cloned().map_or(Side::Absent, Side::Text);
        let changed = |path: &&String| ChangedFile {
            path: (*path).clone(),
            before: side(&old, path),
            after: side(&new, path),
            told: false,
        };
        // In this process: what is written here is not hostile.
        let weaker = peers_code::weaker(&paths.iter().map(changed).collect::<Vec<_>>()).found;
        TurnDiff { files: files.collect(), weaker }
    }

    fn dirty(&self) -> Vec<String> {
        let head = self.tree(&self.tip());
        let paths: BTreeSet<&String> = head.keys().chain(self.work.keys()).collect();
        paths.into_iter().filter(|p| head.get(*p) != self.work.get(*p)).map(|p| format!(" M {p}")).collect()
    }

    fn scopes(&self, scopes: &Scopes, at: &CommitId) -> BTreeMap<GoalId, String> {
        let mut tree = self.tree(at);
        tree.retain(|p, _| p.strip_suffix(".md").is_none());
        scopes.iter().map(|(id, _)| (id.clone(), tree_id(&tree).to_string())).collect()
    }
}

impl SimRepo {
    /// A repository with one commit on `main`.
    #[must_use]
    pub fn new(points: Points, tree: Tree) -> Self {
        let id = commit_id(None, &tree, "start", 0);
        let first = SimCommit { parent: None, tree: tree.clone(), message: "start".into() };
        let data = RepoData {
            commits: BTreeMap::from([(id.clone(), first)]),
            branches: BTreeMap::from([("main".to_owned(), id.clone())]),
            head: "main".into(),
            work: tree,
            known: BTreeSet::from([id]),
            salvage: BTreeMap::new(),
            broken: false,
        };
        Self { data: Rc::new(RefCell::new(data)), points }
    }

    /// Looks at the content.
    pub fn with<T>(&self, f: impl FnOnce(&mut RepoData) -> T) -> T {
        f(&mut self.data.borrow_mut())
    }

    /// An operation that changes something.
    fn act<T>(&self, f: impl FnOnce(&mut RepoData) -> T) -> Result<T, RepoFailure> {
        let verb = self.points.pass(Kind::Other);
        if self.data.borrow().broken {
            return Err(RepoFailure::Git("not a repository".into()));
        }
        match verb {
            Verb::Do => Ok(f(&mut self.data.borrow_mut())),
            Verb::ThenCrash => {
                let _done = f(&mut self.data.borrow_mut());
                crash();
            }
            // Object and ref updates are atomic: half of it is nothing.
            Verb::Half => crash(),
            Verb::Fail { .. } => Err(RepoFailure::Git("injected".into())),
        }
    }
}

fn ledger_author(authors: &Authors, id: &CommitId) -> LedgerAuthor {
    match authors.of(id) {
        Some(Author::Peer { name, .. }) => LedgerAuthor::Peer(name.clone()),
        Some(Author::Operator) => LedgerAuthor::Operator,
        Some(Author::Foreign) => LedgerAuthor::Foreign,
        Some(Author::Substrate) => LedgerAuthor::Substrate,
        None => LedgerAuthor::Unattributed,
    }
}

impl Repo for SimRepo {
    fn survey(
        &mut self,
        known_head: Option<&CommitId>,
        scopes: &Scopes,
        settled: bool,
    ) -> Result<RepoFacts, RepoFailure> {
        self.act(|data| {
            let at = data.facts();
            let history = data.history(&at.head);
            if settled {
                data.known.extend(history.iter().cloned());
            }
            let intact = known_head.is_none_or(|k| history.contains(k));
            let mut since = match known_head {
                Some(known) => history.iter().take_while(|c| *c != known).cloned().collect(),
                None => Vec::new(),
            };
            since.reverse();
            RepoFacts {
                dirty: data.dirty(),
                since,
                intact,
                scopes: data.scopes(scopes, &at.head),
                git_state: None,
                at,
            }
        })
    }

    fn file(&mut self, commit: &CommitId, path: &str, _cap: usize) -> Result<Option<Vec<u8>>, RepoFailure> {
        self.act(|data| data.tree(commit).remove(path).map(String::into_bytes))
    }

    fn diff(&mut self, from: &CommitId, to: &CommitId) -> Result<TurnDiff, RepoFailure> {
        self.act(|data| data.diff(from, to))
    }

    fn key(&mut self) -> Result<TreeKey, RepoFailure> {
        let facts = self.data.borrow().facts();
        Ok(TreeKey { head: facts.head, tree: facts.worktree })
    }

    fn before_turn(&mut self, _tick: TickNo, _peer: &PeerName) -> Result<(), RepoFailure> {
        self.act(|_| ())
    }

    fn harvest(&mut self, tick: TickNo, from: &CommitId, scopes: &Scopes) -> Result<Harvest, RepoFailure> {
        self.act(|data| {
            let at = data.facts();
            let history = data.history(&at.head);
            let ancestor = history.contains(from);
            let before = data.history(from);
            let mut commits: Vec<CommitSeen> = history
                .iter()
                .filter(|c| !before.contains(c))
                .map(|id| {
                    let message = data.commits.get(id).map(|c| c.message.clone()).unwrap_or_default();
                    let own = message.contains(&format!("Peers-Corrects: {tick}"));
                    let origin = if own {
                        Origin::Own
                    } else if data.known.contains(id) {
                        Origin::Known
                    } else {
                        Origin::Peer
                    };
                    CommitSeen { id: id.clone(), message, origin, paths: Vec::new(), unfounded: Vec::new() }
                })
                .collect();
            commits.reverse();
            let (then, now) = (data.scopes(scopes, from), data.scopes(scopes, &at.head));
            let moved = then.into_iter().map(|(id, b)| {
                let after = now.get(&id).cloned().unwrap_or_default();
                (id, (b, after))
            });
            Harvest {
                ancestor,
                commits,
                diff: data.diff(from, &at.head),
                dirty: data.dirty(),
                scopes: moved.collect(),
                at: Some(at),
                ..Harvest::default()
            }
        })
    }

    fn correct(
        &mut self,
        plan: &CorrectionPlanned,
        peer: &PeerName,
        run: &RunId,
    ) -> Result<Corrected, RepoFailure> {
        let mark = format!("Peers-Corrects: {}", plan.tick);
        // First a copy, as an operation of its own: a crash may fall between the two.
        let name = format!("{run}/{}-{peer}", plan.tick);
        self.act(|data| {
            let tip = data.tip();
            if tip != plan.to {
                data.salvage.entry(name.clone()).or_insert(tip);
            }
        })?;
        self.act(|data| {
            let tip = data.tip();
            let mut own = Vec::new();
            match plan.kind {
                CorrectionKind::Revert => {
                    let newest = data.commits.get(&tip).map(|c| c.message.clone()).unwrap_or_default();
                    if newest.contains(&mark) {
                        own.push(tip);
                    } else {
                        data.work = data.tree(&plan.to);
                        own.push(data.commit(&format!("Anti-cheating revert\n\n{mark}\n")));
                    }
                }
                CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch | CorrectionKind::Reset => {
                    if let Some(branch) = &plan.branch {
                        data.head.clone_from(branch);
                        data.branches.insert(branch.clone(), plan.to.clone());
                    }
                    data.work = data.tree(&plan.to);
                }
            }
            Corrected { at: data.facts(), own, salvage: Some(name.clone()) }
        })
    }

    fn attest(&mut self, _commits: &[(CommitId, String)]) -> Result<(), RepoFailure> {
        self.act(|_| ())
    }

    fn commits_since(&mut self, from: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure> {
        let data = self.data.borrow();
        let mut out: Vec<(CommitId, String)> = data
            .history(&data.tip())
            .into_iter()
            .take_while(|c| c != from)
            .map(|c| {
                let message = data.commits.get(&c).map(|c| c.message.clone()).unwrap_or_default();
                (c, message)
            })
            .collect();
        out.reverse();
        Ok(out)
    }

    fn ledger(&mut self, authors: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure> {
        let data = self.data.borrow();
        let mut history = data.history(&data.tip());
        history.reverse();
        Ok(history
            .into_iter()
            .map(|id| LedgerCommit {
                author: ledger_author(authors, &id),
                time: Timestamp::default(),
                message: data.commits.get(&id).map(|c| c.message.clone()).unwrap_or_default(),
                paths: vec![PathTouched::of("src/lib.rs")],
                voided: authors.is_voided(&id),
                id,
            })
            .collect())
    }

    fn last_handoff(&mut self, _mark: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure> {
        Ok(None)
    }

    fn checkout(&mut self, _commit: &CommitId) -> Result<PathBuf, RepoFailure> {
        self.act(|_| PathBuf::from("/checkout"))
    }

    fn remove_checkout(&mut self, _dir: &Path) {}
}
