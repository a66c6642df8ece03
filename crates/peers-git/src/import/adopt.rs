//! Bringing in single commits that no branch names: tags, stashes, what a pseudo-reference points to.

use std::collections::{BTreeMap, HashSet};

use git2::Oid;
use peers_model::CommitId;

use super::bring::unknown_commits;
use super::tips::parse_tips;
use crate::cli::LIMIT;
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::error::{CliError, GitError};
use crate::ids;
use crate::objects;
use crate::repo::PeerRepo;

/// New commits of one adoption, all together. What lies deeper (old tags of a long history whose
/// beginning was never imported) is left.
const MAX_COMMITS: usize = 5_000;
/// Beyond this a fetch takes over.
const IN_PROCESS: Limits = Limits { objects: 3_000, bytes: 64 * 1024 * 1024 };
/// Our names for them while they are fetched.
const WHILE_FETCHED: &str = "refs/peers/adopt/*";

impl ControlDir {
    /// Brings in single commits of the agents' repository with all that they need. From now on they count
    /// as known. Returns those that are here; one that is damaged, refused by the consistency check, or
    /// too deep is left out and not tried again in this process.
    ///
    /// # Errors
    /// [`GitError::Repo`] for objects that are unsafe to read, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn adopt(&mut self, peer: &PeerRepo, commits: &[CommitId]) -> Result<Vec<CommitId>, GitError> {
        let mut wanted = Vec::new();
        {
            let odb = objects::odb(&self.repo)?;
            for commit in commits {
                let oid = ids::commit_oid(commit)?;
                if !self.unadoptable.contains(&oid) && !copy::has(&odb, oid) {
                    wanted.push(oid);
                }
            }
        }
        if !wanted.is_empty() {
            peer.check_content()?;
            self.bring(peer, &wanted)?;
            let odb = objects::odb(&self.repo)?;
            let missing: Vec<Oid> = wanted.into_iter().filter(|oid| !odb.exists(*oid)).collect();
            self.unadoptable.extend(missing);
        }
        let odb = objects::odb(&self.repo)?;
        let mut here = commits.to_vec();
        here.retain(|commit| ids::commit_oid(commit).is_ok_and(|oid| copy::has(&odb, oid)));
        Ok(here)
    }

    fn bring(&mut self, peer: &PeerRepo, wanted: &[Oid]) -> Result<(), GitError> {
        let (mut new, mut sound) = (HashSet::new(), Vec::new());
        {
            let (src, dst) = (objects::odb(&peer.repo)?, objects::odb(&self.repo)?);
            for oid in wanted {
                match unknown_commits(&src, &dst, *oid, &mut new, MAX_COMMITS) {
                    Ok(()) => sound.push(*oid),
                    // What was seen of it before it ended is known all the same.
                    Err(GitError::Corrupt { .. } | GitError::TooLarge { .. }) => {}
                    Err(other) => return Err(other),
                }
            }
        }
        // Before the objects: however this ends, no commit is there without its line.
        let new: Vec<Oid> = new.into_iter().collect();
        self.known.record(&new)?;
        let mut left = Vec::new();
        {
            let stores = (&objects::odb(&peer.repo)?, &objects::odb(&self.repo)?);
            for oid in sound {
                match copy::copy_closure(stores, &[oid], &[], IN_PROCESS, Shape::Strict) {
                    Ok(Copied::Done(_)) | Err(GitError::Corrupt { .. }) => {}
                    Ok(Copied::TooMuch | Copied::Odd(_)) => left.push(oid),
                    Err(other) => return Err(other),
                }
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let have = parse_tips(&self.previous_tips()?.unwrap_or_default());
        self.show_what_we_have(&have)?;
        let together = self.fetch_commits(peer, &left)?;
        if !together {
            // One of them spoils it for the others.
            for oid in left.iter().take(20) {
                self.fetch_commits(peer, &[*oid])?;
            }
        }
        self.forget_names()
    }

    /// Whether they came.
    fn fetch_commits(&mut self, peer: &PeerRepo, commits: &[Oid]) -> Result<bool, GitError> {
        let Some(first) = commits.first() else { return Ok(true) };
        let named: BTreeMap<String, Oid> =
            commits.iter().enumerate().map(|(n, oid)| (format!("refs/heads/{n}"), *oid)).collect();
        self.write_source(peer, *first, &named)?;
        match self.fetch(&[], &["+refs/heads/*:refs/peers/adopt/*"], LIMIT) {
            Ok(()) => Ok(true),
            Err(
                GitError::Corrupt { .. }
                | GitError::Cli(CliError::TimedOut { .. } | CliError::OutputTooLarge { .. }),
            ) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn forget_names(&self) -> Result<(), GitError> {
        let fail = |source| GitError::library("forget what was adopted", source);
        for reference in self.repo.references_glob(WHILE_FETCHED).map_err(fail)? {
            reference.map_err(fail)?.delete().map_err(fail)?;
        }
        Ok(())
    }
}
