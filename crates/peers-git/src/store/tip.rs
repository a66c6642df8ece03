//! Whether the agents' object store still has what the next commit is built on.

use std::collections::HashSet;
use std::path::PathBuf;

use git2::ObjectType;
use peers_model::CommitId;

use super::budget::readable;
use super::complete::store_at;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::ids;
use crate::objects::{self, Entry};
use crate::repo::PeerRepo;

/// Objects of one commit that are looked at.
const MOST: usize = 500_000;

/// An object that is gone from the agents' repository, or cannot be read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingObject {
    /// Its kind and its hash.
    pub what: String,
    /// Where its own file is, or would be.
    pub file: PathBuf,
    /// The control directory has it.
    pub known: bool,
}

impl ControlDir {
    /// The first object that a commit of the agents' repository and its tree need and that is gone or unreadable
    /// there. Of files only the header is read. Looks at 500,000 objects at most, and not below one that is not
    /// well formed: the import refuses that.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a store that is unsafe to read.
    pub fn missing_object(
        &self,
        peer: &PeerRepo,
        commit: &CommitId,
    ) -> Result<Option<MissingObject>, GitError> {
        peer.check_objects()?;
        // Opened now: a store that was opened before may still have what is gone.
        let odb = store_at(&peer.objects_dir())?;
        let ours = objects::odb(&self.repo)?;
        let is_ours = |oid, due| ours.read_header(oid).is_ok_and(|(_, kind)| kind == due);
        let mut seen = HashSet::new();
        let mut todo = vec![(ids::commit_oid(commit)?, ObjectType::Commit)];
        while let Some((oid, due)) = todo.pop() {
            if !seen.insert(oid) {
                continue;
            }
            if seen.len() > MOST {
                break;
            }
            let data = match odb.read_header(oid) {
                Ok((size, kind)) if kind == due && kind != ObjectType::Blob && size <= objects::META_CAP => {
                    readable(&odb, oid).map(|(_, data)| data)
                }
                // What is of another kind here and not in our copy was damaged, else it was made so.
                Ok((_, kind)) if kind == due || !is_ours(oid, due) => continue,
                Ok(_) | Err(_) => None,
            };
            let Some(data) = data else {
                let known = is_ours(oid, due);
                let name = oid.to_string();
                let (fan_out, rest) = name.split_at(2);
                let file = peer.objects_dir().join(fan_out).join(rest);
                return Ok(Some(MissingObject { what: format!("{due} {oid}"), file, known }));
            };
            if due == ObjectType::Commit {
                todo.extend(objects::parse_commit(&data).map(|commit| (commit.tree, ObjectType::Tree)));
            } else {
                let entries = objects::parse_tree(&data).unwrap_or_default();
                todo.extend(entries.iter().filter_map(Entry::needed));
            }
        }
        Ok(None)
    }
}
