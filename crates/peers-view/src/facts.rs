//! What the caller knows of the repository. A view asks git nothing by itself.

use std::collections::BTreeMap;

use peers_core::bugs::Ledger;
use peers_core::scope::Scope;
use peers_git::{DirtyFile, DirtyStatus, GitError, PeerRepo};
use peers_model::goal::{Goal, GoalKind};
use peers_model::{CommitId, GoalId, TreeId};

use crate::excluded;
use crate::sourced::Sourced;

/// Paths that are kept by name.
const NAMED: usize = 30;

/// The repository, as far as it was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct GitFacts {
    /// HEAD.
    pub head: CommitId,
    /// Its branch; absent when detached.
    pub branch: Option<String>,
    /// The tree of HEAD.
    pub head_tree: Option<TreeId>,
    /// The tree of everything that git would commit, if somebody made it.
    pub worktree: Option<TreeId>,
    /// Uncommitted paths, `XY path`, if somebody looked.
    pub dirty: Option<Paths>,
    /// Of these, paths that only `.git/info/exclude` ignores.
    pub excluded: Paths,
    /// The bug ledger at HEAD.
    pub bugs: Sourced<Ledger>,
    /// For each soft goal the digest of what it is about at HEAD, as far as known. Reviews of a goal that
    /// is not here are not counted: nobody knows whether they are about what is there now.
    pub scopes: BTreeMap<GoalId, String>,
}

/// Paths: how many, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    /// The first of them. Untrusted text.
    pub first: Vec<String>,
    /// How many were counted.
    pub count: u64,
    /// There may be more than were counted.
    pub more: bool,
}

impl Paths {
    fn new(paths: impl Iterator<Item = String>, more: bool) -> Self {
        let mut all = Self { first: Vec::new(), count: 0, more };
        for path in paths {
            all.count += 1;
            if all.first.len() < NAMED {
                all.first.push(path);
            }
        }
        all
    }
}

impl GitFacts {
    /// Uncommitted paths that are counted; whoever looks asks for one more.
    pub const COUNTED: usize = 1000;

    /// HEAD alone.
    #[must_use]
    pub fn new(head: CommitId) -> Self {
        Self {
            head,
            branch: None,
            head_tree: None,
            worktree: None,
            dirty: None,
            excluded: Paths::default(),
            bugs: Sourced::Missing,
            scopes: BTreeMap::new(),
        }
    }

    /// HEAD, its branch and its tree; the rest is left out.
    ///
    /// # Errors
    /// [`GitError`] for a repository without a commit, with an unreadable HEAD or with objects that nobody can read.
    pub fn of(repo: &PeerRepo) -> Result<Self, GitError> {
        repo.check_content()?;
        let facts = repo.facts();
        let head = facts.head()?;
        let head_tree = facts.tree_of(&head.commit).ok();
        let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
        Ok(Self { branch, head_tree, ..Self::new(head.commit) })
    }

    /// Takes what each soft goal is about at HEAD. A goal whose scope cannot be taken is left out.
    pub fn take_scopes(&mut self, repo: &PeerRepo, goals: &[Goal]) {
        let facts = repo.facts();
        // Most goals are about the same files.
        let mut taken: BTreeMap<&[String], Option<String>> = BTreeMap::new();
        for goal in goals {
            let GoalKind::Soft(soft) = &goal.kind else { continue };
            let digest = taken.entry(soft.paths.as_slice()).or_insert_with(|| {
                let scope = Scope::new(&soft.paths);
                facts.scope_hash(&self.head, |path| scope.holds(path)).ok()
            });
            if let Some(digest) = digest {
                self.scopes.insert(goal.id.clone(), digest.clone());
            }
        }
    }

    /// Takes the uncommitted paths, of which `dirty` has all or one more than [`GitFacts::COUNTED`], and
    /// notes which of them the lines of an `info/exclude` would hide from git.
    pub fn take_dirty(&mut self, dirty: &[DirtyFile], exclude: &str) {
        let shown = |file: &DirtyFile| {
            let mark = match file.status {
                DirtyStatus::Added => "??",
                DirtyStatus::Modified => " M",
                DirtyStatus::Deleted => " D",
            };
            format!("{mark} {}", file.path)
        };
        let more = dirty.len() > Self::COUNTED;
        let dirty = dirty.get(..Self::COUNTED).unwrap_or(dirty);
        self.dirty = Some(Paths::new(dirty.iter().map(shown), more));
        let hidden =
            |file: &&DirtyFile| file.status == DirtyStatus::Added && excluded::excluded(exclude, &file.path);
        self.excluded = Paths::new(dirty.iter().filter(hidden).map(|file| file.path.clone()), more);
    }
}

/// Where the loop stands, from git where somebody looked, else from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Here {
    pub(crate) head: Option<CommitId>,
    /// The tree of the work tree.
    pub(crate) tree: Option<TreeId>,
    /// The tree of HEAD.
    pub(crate) head_tree: Option<TreeId>,
    /// Nothing is uncommitted.
    pub(crate) clean: Option<bool>,
    /// Where that is not known: the last turn left something uncommitted.
    pub(crate) left_dirty: bool,
}

impl Here {
    pub(crate) fn new(state: &peers_core::state::State, git: Option<&GitFacts>) -> Self {
        // What the last turn left, and whether it is still so as far as the journal knows: who works now,
        // or between that turn and this run, is not in it.
        let left = (state.ticks.0 > 0).then_some(!state.dirty);
        let told = state.open.is_none() && state.run.as_ref().is_some_and(|run| run.ticks > 0);
        let still = left.filter(|_| told);
        let left_dirty = still.is_none() && left == Some(false);
        let Some(git) = git else {
            let head = state.head.clone();
            let tree = measured_tree(state, head.as_ref());
            let head_tree = tree.clone().filter(|_| left != Some(false));
            return Self { head, tree, head_tree, clean: still, left_dirty };
        };
        let named = git.dirty.as_ref().map(|dirty| dirty.count == 0);
        let compared = match (&git.worktree, &git.head_tree) {
            (Some(work), Some(head)) => Some(work == head),
            _ => None,
        };
        // What the last tick left is still so only while HEAD is where it was.
        let unmoved = state.head.as_ref() == Some(&git.head);
        let looked = compared.or(named);
        let clean = looked.or_else(|| still.filter(|_| unmoved));
        // Gates were run on what it left, whoever works on it now.
        let tree = git.worktree.clone().or_else(|| match looked.or_else(|| left.filter(|_| unmoved)) {
            Some(true) => git.head_tree.clone(),
            _ => measured_tree(state, Some(&git.head)),
        });
        let left_dirty = clean.is_none() && left_dirty && unmoved;
        Self { head: Some(git.head.clone()), tree, head_tree: git.head_tree.clone(), clean, left_dirty }
    }
}

/// The tree at which gates last ran at this head.
fn measured_tree(state: &peers_core::state::State, head: Option<&CommitId>) -> Option<TreeId> {
    let head = head?;
    let judged = state
        .board
        .gates
        .values()
        .filter_map(|standing| Some((standing.measured_at, standing.last.as_ref()?)));
    judged.filter(|(_, j)| j.at.head == *head).max_by_key(|(at, _)| *at).map(|(_, j)| j.at.tree.clone())
}
