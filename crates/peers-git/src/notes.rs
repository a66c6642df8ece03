//! Notes: a published mirror of what we know better from elsewhere.

use peers_model::CommitId;

use crate::error::GitError;
use crate::ids;
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::Author;

impl PeerRepo {
    /// Writes notes, replacing those that stand at the same commits.
    ///
    /// # Errors
    /// [`GitError::InvalidName`] for a reference that is not below `refs/notes/`.
    pub fn write_notes(
        &self,
        notes_ref: &str,
        notes: &[(CommitId, String)],
        author: &Author,
    ) -> Result<(), GitError> {
        refs::check_name(notes_ref)?;
        if !notes_ref.starts_with("refs/notes/") {
            return Err(GitError::InvalidName { what: "notes reference", text: notes_ref.to_owned() });
        }
        self.check_writable()?;
        let who = author.signature()?;
        for (commit, text) in notes {
            let text = text.replace('\0', "\u{fffd}");
            self.repo
                .note(&who, &who, Some(notes_ref), ids::commit_oid(commit)?, &text, true)
                .map_err(|source| GitError::library(format!("note at {}", commit.short()), source))?;
        }
        Ok(())
    }
}
