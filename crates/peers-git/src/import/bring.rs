//! Deciding what to bring in, and which way.

use std::collections::{BTreeMap, HashSet};

use git2::{ObjectType, Odb, Oid};
use peers_model::CommitId;

use super::edge::Edge;
use super::fetch::{BRANCHES, Check};
use super::tips::{Tips, parse_tips};
use crate::cli::{LIMIT, LONG_LIMIT};
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::error::GitError;
use crate::files;
use crate::ids;
use crate::known::Generation;
use crate::objects;
use crate::repo::PeerRepo;

/// Beyond this `git fetch` is faster, or safer for our memory. (About 60 µs per object in process;
/// a fetch costs about 20 ms before the first one.)
const IN_PROCESS: Limits = Limits { objects: 300, bytes: 32 * 1024 * 1024 };
/// New commits of one import.
const MAX_COMMITS: usize = 1_000_000;

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Imported {
    /// The commit that `HEAD` named.
    pub head: CommitId,
    /// The generation before this import: what [`ControlDir::new_commits`] is to be asked with.
    pub before: Generation,
    /// How the objects came.
    pub route: Route,
    /// The commits that were not known before, in no particular order. Empty for the first import.
    pub new: Vec<CommitId>,
    /// Branches that could not be read or imported, cleaned for people. They do not count as known.
    pub broken: Vec<String>,
}

/// How an import got its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// No reference moved: nothing was done.
    Unchanged,
    /// In process; this many objects.
    Copied(usize),
    /// By `git fetch`.
    Fetched,
}

impl ControlDir {
    /// The generation of the last import that brought commits.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.known.generation()
    }

    /// Brings in `HEAD` and all branches of the agents' repository.
    ///
    /// The first import takes the history from `base` on, or all of it without `base`. Does nothing
    /// when no reference moved since the last import.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] when objects that `HEAD` needs are missing, damaged or refused by the
    /// consistency check; [`GitError::Repo`] for a git directory that is unsafe to read.
    pub fn import(&mut self, peer: &PeerRepo, base: Option<&CommitId>) -> Result<Imported, GitError> {
        let mut tips = Tips::read(peer)?;
        let text = tips.text();
        let before = self.generation();
        let previous = self.previous_tips()?;
        if previous.as_deref() == Some(text.as_bytes())
            && self.facts().commit(&ids::commit_id(tips.head)).is_ok()
        {
            return Ok(imported(&tips, before, Route::Unchanged, &[]));
        }
        peer.check_content()?;
        let (route, new) = if previous.is_none() {
            (self.first_import(peer, &mut tips, base)?, Vec::new())
        } else {
            self.next_import(peer, &mut tips, previous.as_deref().unwrap_or_default())?
        };
        let head = ids::commit_id(tips.head);
        if let Err(error) = self.facts().commit(&head) {
            return Err(GitError::Corrupt {
                what: format!("our copy of commit {}", head.short()),
                detail: error.to_string(),
            });
        }
        // Torn by a crash it differs from every state, and the import is done again.
        files::overwrite(&self.own("tips"), text.as_bytes())?;
        Ok(imported(&tips, before, route, &new))
    }

    /// Fetches the history that a shallow first import left out. Nothing to do when it is complete.
    ///
    /// # Errors
    /// As [`ControlDir::import`].
    pub fn deepen(&mut self, peer: &PeerRepo) -> Result<(), GitError> {
        self.deepen_by(peer, Check::Shape)
    }

    /// The same. [`Check::Names`] is for history that is only shown: it came before us, and may have objects of a shape
    /// that git would not make today.
    pub(crate) fn deepen_by(&mut self, peer: &PeerRepo, check: Check) -> Result<(), GitError> {
        if !self.repo.is_shallow() {
            return Ok(());
        }
        peer.check_content()?;
        let tips = Tips::read(peer)?;
        let branches = tips.branches.clone();
        self.write_source(peer, tips.head, &branches)?;
        self.drop_stale_refs(&tips.branches)?;
        self.fetch_by(check, &["--unshallow", "--update-shallow"], BRANCHES, LONG_LIMIT)
    }

    pub(crate) fn previous_tips(&self) -> Result<Option<Vec<u8>>, GitError> {
        files::small(&self.own("tips"), 64 << 20)
    }

    fn next_import(
        &mut self,
        peer: &PeerRepo,
        tips: &mut Tips,
        previous: &[u8],
    ) -> Result<(Route, Vec<Oid>), GitError> {
        let mut new = HashSet::new();
        {
            let (src, dst) = (objects::odb(&peer.repo)?, objects::odb(&self.repo)?);
            unknown_commits(&src, &dst, tips.head, &mut new, MAX_COMMITS)?;
            let mut broken = Vec::new();
            for (name, oid) in &tips.branches {
                // A branch that somebody broke must not stop the work on HEAD.
                let mut found = new.clone();
                match unknown_commits(&src, &dst, *oid, &mut found, MAX_COMMITS) {
                    Ok(()) => new = found,
                    Err(GitError::Corrupt { .. }) => broken.push(name.clone()),
                    Err(other) => return Err(other),
                }
            }
            tips.drop_branches(&broken);
        }
        let new: Vec<Oid> = new.into_iter().collect();
        self.known.record(&new)?;
        let route = if let Some(written) = self.copy_in(peer, tips, &[])? {
            Route::Copied(written)
        } else {
            self.show_what_we_have(&parse_tips(previous))?;
            self.fetch_tips(peer, tips)?;
            Route::Fetched
        };
        Ok((route, new))
    }

    /// Copies in process; `None` when that is not the way to go.
    fn copy_in(&self, peer: &PeerRepo, tips: &mut Tips, boundary: &[Oid]) -> Result<Option<usize>, GitError> {
        let stores = (&objects::odb(&peer.repo)?, &objects::odb(&self.repo)?);
        let mut total = 0;
        match copy::copy_closure(stores, &[tips.head], boundary, IN_PROCESS, Shape::Strict)? {
            Copied::Done(written) => total += written,
            Copied::TooMuch | Copied::Odd(_) => return Ok(None),
        }
        let mut broken = Vec::new();
        for (name, oid) in &tips.branches {
            let left = Limits { objects: IN_PROCESS.objects.saturating_sub(total), ..IN_PROCESS };
            match copy::copy_closure(stores, &[*oid], boundary, left, Shape::Strict) {
                Ok(Copied::Done(written)) => total += written,
                Ok(Copied::TooMuch | Copied::Odd(_)) => return Ok(None),
                Err(GitError::Corrupt { .. }) => broken.push(name.clone()),
                Err(other) => return Err(other),
            }
        }
        tips.drop_branches(&broken);
        Ok(Some(total))
    }

    /// Fetches everything; when that fails, `HEAD` alone.
    fn fetch_tips(&mut self, peer: &PeerRepo, tips: &mut Tips) -> Result<(), GitError> {
        self.drop_stale_refs(&tips.branches)?;
        self.write_source(peer, tips.head, &tips.branches)?;
        match self.fetch(&[], BRANCHES, LIMIT) {
            Err(GitError::Corrupt { .. }) if !tips.branches.is_empty() => {
                self.write_source(peer, tips.head, &BTreeMap::new())?;
                self.fetch(&[], &["+HEAD:refs/peer-head"], LIMIT)?;
                let odb = objects::odb(&self.repo)?;
                let missing: Vec<String> = tips
                    .branches
                    .iter()
                    .filter(|(_, oid)| !copy::has(&odb, **oid))
                    .map(|(name, _)| name.clone())
                    .collect();
                drop(odb);
                tips.drop_branches(&missing);
                Ok(())
            }
            other => other,
        }
    }

    /// The commits that one of another repository leads to and that are not here.
    pub(crate) fn unknown_of(&self, peer: &PeerRepo, tip: &CommitId) -> Result<HashSet<Oid>, GitError> {
        let (src, dst) = (objects::odb(&peer.repo)?, objects::odb(&self.repo)?);
        let mut found = HashSet::new();
        unknown_commits(&src, &dst, ids::commit_oid(tip)?, &mut found, MAX_COMMITS)?;
        Ok(found)
    }

    /// Brings in one commit with all that it needs, checked as every import. `new` are the commits that
    /// appear with it, as one generation.
    pub(crate) fn import_commit(
        &mut self,
        peer: &PeerRepo,
        tip: &CommitId,
        new: &[Oid],
    ) -> Result<(), GitError> {
        // Before the objects: however this ends, no commit is there without its line.
        self.known.record(new)?;
        let head = ids::commit_oid(tip)?;
        let mut tips = Tips { head, branches: BTreeMap::new(), broken: Vec::new() };
        if self.copy_in(peer, &mut tips, &[])?.is_none() {
            let have = parse_tips(&self.previous_tips()?.unwrap_or_default());
            self.show_what_we_have(&have)?;
            self.write_source(peer, head, &BTreeMap::new())?;
            self.fetch(&[], &["+HEAD:refs/peer-head"], LIMIT)?;
        }
        self.facts().commit(tip).map(drop).map_err(|error| GitError::Corrupt {
            what: format!("our copy of commit {}", tip.short()),
            detail: error.to_string(),
        })
    }

    fn first_import(
        &mut self,
        peer: &PeerRepo,
        tips: &mut Tips,
        base: Option<&CommitId>,
    ) -> Result<Route, GitError> {
        let Some(base) = base else {
            if let Some(written) = self.copy_in(peer, tips, &[])? {
                return Ok(Route::Copied(written));
            }
            self.drop_stale_refs(&tips.branches)?;
            self.write_source(peer, tips.head, &tips.branches)?;
            self.fetch(&[], BRANCHES, LONG_LIMIT)?;
            return Ok(Route::Fetched);
        };
        let name = base.short();
        let base = ids::commit_oid(base)?;
        if !objects::odb(&peer.repo)?.exists(base) {
            return Err(GitError::NotFound { what: format!("base {name}") });
        }
        let edge = Edge::find(&objects::odb(&peer.repo)?, tips, base)?;
        if let Some(written) = self.copy_in(peer, tips, &edge.boundary)? {
            self.write_shallow(&edge.shallow)?;
            return Ok(Route::Copied(written));
        }
        // First the edge itself, then what grows from it, then the tips of everything else.
        self.write_source(peer, base, &BTreeMap::new())?;
        self.fetch(&["--depth=1"], &["+HEAD:refs/peers/base"], LONG_LIMIT)?;
        let (grown, apart): (BTreeMap<_, _>, BTreeMap<_, _>) =
            tips.branches.clone().into_iter().partition(|(_, oid)| edge.grown.contains(oid));
        let apart_args: &[&str] = &["--depth=1"];
        if edge.grown.contains(&tips.head) {
            self.write_source(peer, tips.head, &grown)?;
            self.fetch(&[], BRANCHES, LONG_LIMIT)?;
            if !apart.is_empty() {
                self.write_source(peer, base, &apart)?;
                self.fetch(apart_args, &["+refs/heads/*:refs/peer/*"], LONG_LIMIT)?;
            }
        } else {
            self.write_source(peer, tips.head, &tips.branches)?;
            self.fetch(apart_args, BRANCHES, LONG_LIMIT)?;
        }
        Ok(Route::Fetched)
    }

    fn write_shallow(&mut self, shallow: &[Oid]) -> Result<(), GitError> {
        if shallow.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> = shallow.iter().map(|oid| format!("{oid}\n")).collect();
        lines.sort_unstable();
        files::replace(&self.path().join("shallow"), lines.concat().as_bytes())?;
        self.reopen()
    }

    /// The branches as they were last imported, by their full names in the agents' repository.
    pub(crate) fn imported_branches(&self) -> Result<BTreeMap<String, Oid>, GitError> {
        let odb = objects::odb(&self.repo)?;
        let mut branches = parse_tips(&self.previous_tips()?.unwrap_or_default());
        branches.retain(|_, oid| copy::has(&odb, *oid));
        Ok(branches)
    }
}

fn imported(tips: &Tips, before: Generation, route: Route, new: &[Oid]) -> Imported {
    Imported {
        head: ids::commit_id(tips.head),
        before,
        route,
        new: new.iter().copied().map(ids::commit_id).collect(),
        broken: tips.broken.clone(),
    }
}

/// Commits reachable from `tip` that `dst` lacks, by their own bytes (grafts do not count).
pub(super) fn unknown_commits(
    src: &Odb<'_>,
    dst: &Odb<'_>,
    tip: Oid,
    found: &mut HashSet<Oid>,
    cap: usize,
) -> Result<(), GitError> {
    let mut todo = vec![tip];
    while let Some(oid) = todo.pop() {
        if found.contains(&oid) || copy::has(dst, oid) {
            continue;
        }
        let parents = raw_parents(src, oid)?;
        found.insert(oid);
        if found.len() > cap {
            return Err(GitError::TooLarge {
                what: "the number of new commits".to_owned(),
                cap: cap.to_string(),
            });
        }
        todo.extend(parents);
    }
    Ok(())
}

pub(crate) fn raw_parents(odb: &Odb<'_>, oid: Oid) -> Result<Vec<Oid>, GitError> {
    let what = || format!("commit {oid}");
    let (size, kind) = odb.read_header(oid).map_err(|source| objects::missing(what(), source))?;
    if kind != ObjectType::Commit || size > objects::META_CAP {
        return Err(GitError::Corrupt { what: what(), detail: format!("a {kind} of {size} bytes") });
    }
    let object = odb.read(oid).map_err(|source| objects::missing(what(), source))?;
    objects::parse_commit(object.data())
        .map(|commit| commit.parents)
        .ok_or_else(|| GitError::Corrupt { what: what(), detail: "not a well-formed commit".to_owned() })
}

#[cfg(test)]
mod tests {
    use git2::{Repository, Signature, Time};

    use super::*;

    #[test]
    fn an_import_ends_at_its_bound_of_new_commits() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [src, dst] = dirs.each_ref().map(|dir| Repository::init_bare(dir.path()).unwrap());
        let who = Signature::new("a", "a@b", &Time::new(0, 0)).unwrap();
        let tree = src.find_tree(src.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let mut tip = src.commit(None, &who, &who, "first", &tree, &[]).unwrap();
        for _ in 0..2 {
            let parent = src.find_commit(tip).unwrap();
            tip = src.commit(None, &who, &who, "next", &tree, &[&parent]).unwrap();
        }
        let (src, dst) = (src.odb().unwrap(), dst.odb().unwrap());
        let within = |cap| unknown_commits(&src, &dst, tip, &mut HashSet::new(), cap);
        within(3).unwrap();
        assert!(matches!(within(2), Err(GitError::TooLarge { .. })));
    }
}
