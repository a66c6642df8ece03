//! Bringing in the branch of a turn out of the git directory that was made for it.

use std::collections::{BTreeMap, HashSet};

use git2::Oid;
use peers_model::CommitId;

use super::bring::{MAX_COMMITS, unknown_commits};
use super::tips::{Tips, parse_tips};
use crate::cli::LIMIT;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::ids;
use crate::objects;
use crate::repo::PeerRepo;

impl ControlDir {
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
}
