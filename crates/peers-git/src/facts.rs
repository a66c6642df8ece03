//! Facts about commits and references.

use git2::{ErrorCode, Oid, Repository};
use peers_model::{CommitId, Timestamp, TreeId};

use crate::error::{GitError, RepoError, clean_bytes};
use crate::ids;

/// A message is read up to here.
pub const MESSAGE_CAP: usize = 64 * 1024;
/// A name or an address in a commit is read up to here.
const IDENTITY_CAP: usize = 1024;

/// Answers questions about one repository. Cheap to make.
pub struct Facts<'r> {
    pub(crate) repo: &'r Repository,
}

/// Where `HEAD` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit.
    pub commit: CommitId,
    /// The full name of the branch, `refs/heads/…`; `None` when detached.
    pub branch: Option<String>,
}

/// A name and an address as a commit claims them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name; invalid UTF-8 replaced, at most 1 KiB.
    pub name: String,
    /// The address; invalid UTF-8 replaced, at most 1 KiB.
    pub email: String,
}

/// One commit. Everything but the hashes is a claim of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFact {
    /// Its hash.
    pub id: CommitId,
    /// Parents as far as this repository knows them: none at the edge of a shallow history.
    pub parents: Vec<CommitId>,
    /// Its tree.
    pub tree: TreeId,
    /// The message, invalid UTF-8 replaced; of one longer than [`MESSAGE_CAP`] its first line and its end.
    pub message: String,
    /// The message was longer.
    pub message_cut: bool,
    /// Author.
    pub author: Identity,
    /// Committer.
    pub committer: Identity,
    /// The committer's time.
    pub time: Timestamp,
}

impl<'r> Facts<'r> {
    pub(crate) fn new(repo: &'r Repository) -> Self {
        Self { repo }
    }

    /// The commit that a full id, `HEAD`, a full reference name, or the name of a branch, a tag or a remote branch means.
    /// Whether there is such a commit is not asked for an id.
    ///
    /// # Errors
    /// [`GitError`] for references that cannot be read.
    pub fn named(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        if let Ok(id) = CommitId::new(name.to_ascii_lowercase()) {
            return Ok(Some(id));
        }
        if name == "HEAD" {
            return Ok(Some(self.head()?.commit));
        }
        if name.starts_with("refs/") {
            return self.reference(name);
        }
        for kind in ["heads", "tags", "remotes"] {
            if let Some(found) = self.reference(&format!("refs/{kind}/{name}"))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// `HEAD`: its commit, and its branch unless detached.
    ///
    /// # Errors
    /// [`RepoError::Unborn`] without any commit, [`RepoError::Corrupt`] when `HEAD` is unreadable.
    pub fn head(&self) -> Result<Head, GitError> {
        let path = || self.repo.workdir().unwrap_or_else(|| self.repo.path()).to_owned();
        let corrupt = |detail: String| GitError::Repo(RepoError::Corrupt { path: path(), detail });
        let head = self
            .repo
            .find_reference("HEAD")
            .map_err(|source| corrupt(format!("HEAD: {}", clean_bytes(source.message().as_bytes()))))?;
        let branch = match head.symbolic_target_bytes() {
            None => None,
            Some(target) => match std::str::from_utf8(target) {
                Ok(name) if name.starts_with("refs/heads/") => Some(name.to_owned()),
                _ => return Err(corrupt(format!("HEAD names `{}`", clean_bytes(target)))),
            },
        };
        match head.resolve() {
            Ok(resolved) => match resolved.target() {
                Some(oid) => Ok(Head { commit: ids::commit_id(oid), branch }),
                None => Err(corrupt("HEAD does not lead to a commit".to_owned())),
            },
            Err(error) if error.code() == ErrorCode::NotFound => {
                let name = branch.unwrap_or_default();
                let short = name.strip_prefix("refs/heads/").unwrap_or(&name);
                Err(GitError::Repo(RepoError::Unborn { path: path(), branch: clean_bytes(short.as_bytes()) }))
            }
            Err(error) => Err(corrupt(format!("HEAD: {}", clean_bytes(error.message().as_bytes())))),
        }
    }

    /// The commit that a reference (full name) names, tags peeled; `None` when there is no such reference.
    ///
    /// # Errors
    /// [`GitError::Library`] when the name is no reference name or it leads to something else.
    pub fn reference(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        let what = || format!("reference `{}`", clean_bytes(name.as_bytes()));
        if !git2::Reference::is_valid_name(name) {
            return Err(GitError::InvalidName { what: "reference", text: clean_bytes(name.as_bytes()) });
        }
        match self.repo.find_reference(name) {
            Ok(found) => found
                .peel_to_commit()
                .map(|commit| Some(ids::commit_id(commit.id())))
                .map_err(|source| GitError::library(what(), source)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(GitError::library(what(), source)),
        }
    }

    /// Is `ancestor` in the history of `commit`? A commit is its own ancestor.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when one of them is unknown here.
    pub fn is_ancestor(&self, ancestor: &CommitId, commit: &CommitId) -> Result<bool, GitError> {
        let (old, new) = (self.commit_oid(ancestor)?, self.commit_oid(commit)?);
        if old == new {
            return Ok(true);
        }
        self.repo
            .graph_descendant_of(new, old)
            .map_err(|source| GitError::library(format!("history of {}", commit.short()), source))
    }

    /// The best common ancestor; `None` for unrelated histories.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when one of them is unknown here.
    pub fn merge_base(&self, one: &CommitId, two: &CommitId) -> Result<Option<CommitId>, GitError> {
        match self.repo.merge_base(self.commit_oid(one)?, self.commit_oid(two)?) {
            Ok(oid) => Ok(Some(ids::commit_id(oid))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(GitError::library("find a merge base", source)),
        }
    }

    /// Does this repository have the commit?
    #[must_use]
    pub fn has(&self, commit: &CommitId) -> bool {
        self.commit_oid(commit).is_ok()
    }

    /// One commit.
    ///
    /// # Errors
    /// [`GitError::NotFound`] or [`GitError::Corrupt`].
    pub fn commit(&self, commit: &CommitId) -> Result<CommitFact, GitError> {
        self.commit_fact(ids::commit_oid(commit)?)
    }

    /// The tree of a commit.
    ///
    /// # Errors
    /// [`GitError::NotFound`] or [`GitError::Corrupt`].
    pub fn tree_of(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        crate::objects::commit_tree(self.repo, commit).map(ids::tree_id)
    }

    pub(crate) fn commit_oid(&self, commit: &CommitId) -> Result<Oid, GitError> {
        let oid = ids::commit_oid(commit)?;
        self.repo
            .find_commit(oid)
            .map(|found| found.id())
            .map_err(|source| GitError::library(format!("commit {}", commit.short()), source))
    }

    pub(crate) fn commit_fact(&self, oid: Oid) -> Result<CommitFact, GitError> {
        let found = self
            .repo
            .find_commit(oid)
            .map_err(|source| GitError::library(format!("commit {oid}"), source))?;
        let raw = found.message_bytes();
        let (message, message_cut) = shorten(raw);
        let seconds = found.time().seconds();
        Ok(CommitFact {
            id: ids::commit_id(found.id()),
            parents: found.parent_ids().map(ids::commit_id).collect(),
            tree: ids::tree_id(found.tree_id()),
            message,
            message_cut,
            author: identity(&found.author()),
            committer: identity(&found.committer()),
            time: Timestamp::from_millis(seconds.saturating_mul(1000)),
        })
    }
}

fn identity(signature: &git2::Signature<'_>) -> Identity {
    Identity {
        name: cut(signature.name_bytes(), IDENTITY_CAP).0,
        email: cut(signature.email_bytes(), IDENTITY_CAP).0,
    }
}

/// A message as it is read: a long one is its first line and its end, since claims stand at the end.
/// What is left is longer than [`MESSAGE_CAP`], so a reader that stops there knows that it was cut.
fn shorten(raw: &[u8]) -> (String, bool) {
    const SUBJECT: usize = 1024;
    if raw.len() <= MESSAGE_CAP {
        return (String::from_utf8_lossy(raw).into_owned(), false);
    }
    let line = raw.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let subject = cut(line, SUBJECT).0;
    let tail = raw.get(raw.len() - MESSAGE_CAP..).unwrap_or_default();
    (format!("{subject}\n\n{}", String::from_utf8_lossy(tail)), true)
}

/// At most `cap` bytes as text; never ends in half a character.
fn cut(bytes: &[u8], cap: usize) -> (String, bool) {
    let Some(head) = bytes.get(..cap).filter(|_| bytes.len() > cap) else {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    };
    let head = match std::str::from_utf8(head) {
        // An incomplete last character is ours to drop; an invalid one is shown as such.
        Err(error) if error.error_len().is_none() => head.get(..error.valid_up_to()).unwrap_or(head),
        _ => head,
    };
    (String::from_utf8_lossy(head).into_owned(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_first_line_and_its_end() {
        let raw = format!("\nSubject\n\n{}\n\nBug-Report: big-1\n", "x".repeat(MESSAGE_CAP + 9));
        let (message, cut) = shorten(raw.as_bytes());
        assert!(cut && message.len() > MESSAGE_CAP && message.len() < MESSAGE_CAP + 2048);
        assert!(message.starts_with("Subject\n\n") && message.ends_with("\n\nBug-Report: big-1\n"));
        assert_eq!(shorten(b"short\n"), ("short\n".to_owned(), false));
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé".as_bytes(), 2), ("a".to_owned(), true));
        assert_eq!(cut("aé".as_bytes(), 3), ("aé".to_owned(), false));
        assert_eq!(cut(b"a\xff\xffb", 3), ("a\u{fffd}\u{fffd}".to_owned(), true));
    }
}
