//! Where the lines of a file come from.

use std::path::Path;

use git2::BlameOptions;
use peers_model::CommitId;

use crate::error::{GitError, clean};
use crate::facts::Facts;
use crate::ids;

/// The largest file whose lines are followed, in bytes.
pub const BLAME_CAP: usize = 8 * 1024 * 1024;

/// A line, named by where it was written: two lines of the same name have the same text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The commit that wrote it.
    pub commit: CommitId,
    /// The file there.
    pub path: String,
    /// The line there, from 1.
    pub line: usize,
}

impl Facts<'_> {
    /// The mode and the id of the file `path` at `commit`; `None` when there is none.
    ///
    /// # Errors
    /// [`GitError::NotFound`], [`GitError::Corrupt`] for a tree that cannot be read.
    pub fn file_id(&self, commit: &CommitId, path: &str) -> Result<Option<String>, GitError> {
        Ok(self.blob_id(commit, path)?.map(|id| id.to_string()))
    }

    /// The origin of each line of the file `path` at `commit`, in order. History before `oldest` is not followed:
    /// what is older counts as its own. Empty when there is no such file.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] above [`BLAME_CAP`], [`GitError::Library`] for a history that cannot be read.
    pub fn blame(
        &self,
        commit: &CommitId,
        path: &str,
        oldest: Option<&CommitId>,
    ) -> Result<Vec<Origin>, GitError> {
        let Some(blob) = self.read_blob(commit, path, BLAME_CAP)? else { return Ok(Vec::new()) };
        if blob.bytes.is_empty() {
            return Ok(Vec::new());
        }
        let mut options = BlameOptions::new();
        options.newest_commit(self.commit_oid(commit)?);
        if let Some(oldest) = oldest {
            options.oldest_commit(self.commit_oid(oldest)?);
        }
        let fail = |source| GitError::library(format!("the lines of {}", clean(path, 200)), source);
        let blame = self.repo.blame_file(Path::new(path), Some(&mut options)).map_err(fail)?;
        let mut lines = Vec::new();
        for hunk in blame.iter() {
            let commit = ids::commit_id(hunk.final_commit_id());
            let of = hunk.path().map_or_else(|| path.to_owned(), |path| path.to_string_lossy().into_owned());
            for at in 0..hunk.lines_in_hunk() {
                let line = hunk.orig_start_line() + at;
                lines.push(Origin { commit: commit.clone(), path: of.clone(), line });
            }
        }
        Ok(lines)
    }
}
