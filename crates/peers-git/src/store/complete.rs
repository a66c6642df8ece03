//! Making our own object store whole again, from the agents' repository, whose objects prove themselves by
//! their hash.

use std::collections::HashSet;
use std::path::Path;

use git2::{ObjectType, Odb, Oid};
use peers_model::CommitId;

use super::budget::{readable, readable_within};
use super::loose::write_loose;
use crate::bare;
use crate::control::{self, ControlDir};
use crate::copy::{Limits, has};
use crate::error::GitError;
use crate::facts::Facts;
use crate::files;
use crate::ids;
use crate::import::parse_tips;
use crate::known::Generation;
use crate::objects::{self, Entry};
use crate::repo::PeerRepo;

/// Content beyond this is not taken from the agents' repository.
const LARGEST: usize = 2 << 30;

/// What completing a store came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Completed {
    /// Objects that were missing or damaged and are here again.
    pub restored: usize,
    /// Objects that neither repository has whole.
    pub lost: usize,
    /// Objects that cannot be put back beside what damages them: the directory must be made anew.
    pub stuck: usize,
}

impl ControlDir {
    /// Reads everything that the imported history and `also` need, and takes what is missing or damaged
    /// from the agents' repository, hashes checked. Commits that were not known do not become known.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a repository that is unsafe to read, [`GitError::Io`],
    /// [`GitError::TooLarge`].
    pub fn complete(&mut self, peer: &PeerRepo, also: &[CommitId]) -> Result<Completed, GitError> {
        peer.check_content()?;
        self.heal()?;
        let mut done = Completed::default();
        let edge = bare::shallow_of(self.path())?;
        let edge: HashSet<Oid> = edge.iter().map(ids::commit_oid).collect::<Result<_, _>>()?;
        let mut todo: Vec<(Oid, ObjectType)> = Vec::new();
        for commit in also {
            todo.push((ids::commit_oid(commit)?, ObjectType::Commit));
        }
        let tips = self.previous_tips()?.unwrap_or_default();
        for kept in self.list_salvage().unwrap_or_default() {
            todo.push((ids::commit_oid(&kept.commit)?, ObjectType::Commit));
        }
        {
            // Opened now: what an open store remembers may be gone from the disk.
            let ours = store_at(&self.objects_dir())?;
            let theirs = store_at(&peer.objects_dir())?;
            // `HEAD` was here. Of a branch that is not nobody can tell whether it ever was: it may be broken.
            let branches = parse_tips(&tips).into_values().filter(|oid| has(&ours, *oid));
            todo.extend(branches.chain(head_of(&tips)).map(|oid| (oid, ObjectType::Commit)));
            todo.extend(
                self.known.commits().filter(|oid| has(&ours, *oid)).map(|oid| (oid, ObjectType::Commit)),
            );
            let mut seen = HashSet::new();
            let mut written = Vec::new();
            while let Some((oid, due)) = todo.pop() {
                if !seen.insert(oid) {
                    continue;
                }
                if seen.len() > Limits::OURS.objects {
                    return Err(GitError::TooLarge {
                        what: "our copy of the history".to_owned(),
                        cap: format!("{} objects", Limits::OURS.objects),
                    });
                }
                let found = readable(&ours, oid);
                let mended = found.is_none();
                let Some((kind, data)) =
                    found.or_else(|| readable_within(&theirs, oid, LARGEST)).filter(|(kind, _)| *kind == due)
                else {
                    done.lost += 1;
                    continue;
                };
                if mended {
                    write_loose(&self.objects_dir(), oid, kind, &data)?;
                    written.push(oid);
                }
                match kind {
                    ObjectType::Commit => {
                        let Some(commit) = objects::parse_commit(&data) else { continue };
                        if !edge.contains(&oid) {
                            todo.extend(
                                commit.parents.into_iter().map(|parent| (parent, ObjectType::Commit)),
                            );
                        }
                        todo.push((commit.tree, ObjectType::Tree));
                    }
                    ObjectType::Tree => {
                        let entries = objects::parse_tree(&data).unwrap_or_default();
                        todo.extend(entries.iter().filter_map(Entry::needed));
                    }
                    _ => {}
                }
            }
            let after = store_at(&self.objects_dir())?;
            for oid in written {
                // A pack comes before a file of its own, and it may be the pack that is damaged.
                if readable(&after, oid).is_some() { done.restored += 1 } else { done.stuck += 1 }
            }
        }
        self.reopen()?;
        Ok(done)
    }

    /// Whether the commit is here that `HEAD` named when history was last brought in.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn holds_head(&self) -> Result<bool, GitError> {
        let tips = self.previous_tips()?.unwrap_or_default();
        let whole = |oid| self.repo.find_commit(oid).and_then(|found| found.tree()).is_ok();
        Ok(head_of(&tips).is_none_or(whole))
    }

    /// The commit that `HEAD` named when history was last brought in.
    #[must_use]
    pub fn last_head(&self) -> Option<CommitId> {
        head_of(&self.previous_tips().ok()??).map(ids::commit_id)
    }

    /// The same of the directory at `path`, where it goes on from a commit. Only looks.
    #[must_use]
    pub fn head_since(path: &Path, from: &CommitId) -> Option<CommitId> {
        let tips = files::small(&path.join("peers/tips"), 64 << 20).ok()??;
        let head = head_of(&tips).map(ids::commit_id)?;
        let repo = control::open(path).ok()?;
        Facts::new(&repo).is_ancestor(from, &head).is_ok_and(|goes_on| goes_on).then_some(head)
    }

    /// Counts on from this generation, in which `commit` was known, where the list of known commits was lost.
    /// Whether it was.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn count_from(&mut self, generation: Generation, commit: &CommitId) -> Result<bool, GitError> {
        let short = self.known.generation() < generation;
        if short {
            self.known.raise(generation, ids::commit_oid(commit)?)?;
        }
        if self.previous_tips()?.is_none() {
            // With it the next import is not taken for the first one, of which everything counts as known.
            files::overwrite(&self.own("tips"), format!("{commit} HEAD\n").as_bytes())?;
        }
        Ok(short)
    }
}

/// What `HEAD` was in a text of tips.
pub(super) fn head_of(tips: &[u8]) -> Option<Oid> {
    let text = String::from_utf8_lossy(tips);
    let head = text.lines().find_map(|line| line.strip_suffix(" HEAD"));
    head.and_then(|hash| Oid::from_str(hash).ok())
}

/// The store at a place, without what an open repository remembers of it.
pub(super) fn store_at(objects: &std::path::Path) -> Result<Odb<'static>, GitError> {
    let fail = |source| GitError::library("open the object store", source);
    let odb = Odb::new().map_err(fail)?;
    let path = objects.to_str().ok_or_else(|| GitError::Unsafe {
        path: crate::error::clean(&objects.to_string_lossy(), 200),
        why: "its name is not UTF-8",
    })?;
    odb.add_disk_alternate(path).map_err(fail)?;
    Ok(odb)
}
