//! Notes: a published mirror of what we know better from elsewhere.

use git2::ErrorCode;
use peers_model::CommitId;

use crate::error::GitError;
use crate::facts::Facts;
use crate::ids;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::Author;

/// Notes read from one reference.
const MAX_NOTES: usize = 200_000;
/// One note is read up to here.
const NOTE_CAP: usize = 64 * 1024;

/// A note as somebody left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteFact {
    /// The commit that it stands at.
    pub commit: CommitId,
    /// Its text, invalid UTF-8 replaced. Empty for one above 64 KiB.
    pub text: String,
}

impl Facts<'_> {
    /// All notes below a notes reference, sorted by commit. No such reference: none.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond 200 000 notes.
    pub fn read_notes(&self, notes_ref: &str) -> Result<Vec<NoteFact>, GitError> {
        refs::check_name(notes_ref)?;
        let fail = |source| GitError::library("read notes", source);
        let notes = match self.repo.notes(Some(notes_ref)) {
            Ok(notes) => notes,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(fail(source)),
        };
        let odb = objects::odb(self.repo)?;
        let mut out = Vec::new();
        for note in notes {
            let (blob, commit) = note.map_err(fail)?;
            let small = odb.read_header(blob).is_ok_and(|(size, _)| size <= NOTE_CAP);
            let text = if small { odb.read(blob).ok() } else { None };
            let text = text.map(|blob| String::from_utf8_lossy(blob.data()).into_owned()).unwrap_or_default();
            out.push(NoteFact { commit: ids::commit_id(commit), text });
            if out.len() > MAX_NOTES {
                return Err(GitError::TooLarge { what: "the notes".into(), cap: MAX_NOTES.to_string() });
            }
        }
        out.sort_by(|a, b| a.commit.as_str().cmp(b.commit.as_str()));
        Ok(out)
    }
}

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
