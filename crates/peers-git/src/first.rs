//! Where a history begins: a repository is made, and its first commit.

use std::collections::HashMap;
use std::path::Path;

use git2::{Config, ObjectType, Repository, RepositoryInitOptions};
use peers_model::CommitId;

use crate::blob;
use crate::checkout;
use crate::error::{GitError, RepoError, clean};
use crate::facts::Identity;
use crate::files;
use crate::ids;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;
use crate::snapshot::{Scan, Wanted};
use crate::write::Author;

/// The first commit of a repository.
#[derive(Debug)]
pub struct FirstCommit {
    /// The commit.
    pub commit: CommitId,
    /// Files that are not in it since they are too large (64 MiB) or unreadable. Untrusted bytes.
    pub left_out: Vec<Vec<u8>>,
    /// What cannot be in a commit: other spellings of `.git`, directories that lie too deep. For people.
    pub unrepresentable: Vec<String>,
}

/// Who the operator is for git, if that was ever configured.
///
/// Reads the operator's global configuration; nothing of a repository.
#[must_use]
pub fn operator_identity() -> Option<Identity> {
    let config = Config::open_default().ok()?;
    let get = |key| config.get_string(key).ok().filter(|value| !value.trim().is_empty());
    Some(Identity { name: get("user.name")?, email: get("user.email")? })
}

impl PeerRepo {
    /// Makes a repository without a commit in `work_dir`, where there is none. Nothing of a template of the
    /// operator's goes into it. `identity` is written into its configuration.
    ///
    /// # Errors
    /// [`GitError::Exists`] when there is something, [`GitError::InvalidName`], [`GitError::Library`].
    pub fn create(work_dir: &Path, branch: &str, identity: Option<&Identity>) -> Result<Self, GitError> {
        refs::branch_name(branch)?;
        let work_dir = files::canonical(work_dir)?;
        let dot_git = work_dir.join(".git");
        if files::lstat(&dot_git).map_err(|source| GitError::io(&dot_git, source))?.is_some() {
            return Err(GitError::Exists { what: format!("`{}`", clean(&dot_git.to_string_lossy(), 300)) });
        }
        let fail = |source| GitError::library("make a repository", source);
        let mut options = RepositoryInitOptions::new();
        options.no_reinit(true).mkdir(false).mkpath(false).external_template(false).initial_head(branch);
        let repo = Repository::init_opts(&work_dir, &options).map_err(fail)?;
        if let Some(Identity { name, email }) = identity {
            let mut config = Config::open(&repo.path().join("config")).map_err(fail)?;
            config
                .set_str("user.name", name)
                .and_then(|()| config.set_str("user.email", email))
                .map_err(fail)?;
        }
        drop(repo);
        Ok(Self::open(&work_dir)?)
    }

    /// Commits all of the work tree that is not ignored as the first commit of the branch that `HEAD` names.
    /// The index follows. `excludes` is one more ignore file, see [`crate::operator_excludes`].
    ///
    /// The work tree is read as by [`crate::ControlDir::tree_state`]: no filter, no hook, and what lies in
    /// repositories inside of it are files like others.
    ///
    /// # Errors
    /// [`GitError::Exists`] when there is a commit, [`GitError::Moved`] when one appears meanwhile,
    /// [`RepoError::Busy`], [`GitError::TooLarge`] for a work tree beyond all bounds.
    pub fn commit_first(
        &self,
        message: &str,
        author: &Author,
        excludes: Option<&Path>,
    ) -> Result<FirstCommit, GitError> {
        let branch = self.unborn_branch()?;
        self.check_writable()?;
        let _lock = self.lock_index()?;
        let fail = |source| GitError::library("commit the work tree", source);
        let odb = objects::odb(&self.repo)?;
        let nothing = odb.write(ObjectType::Tree, &[]).map_err(fail)?;
        let stamps = HashMap::new();
        let scan = Scan::new(&odb, &stamps, Wanted::Objects, peers_sys::clock::system_now);
        let (outcome, _stamps) = scan.run(self.work_dir(), nothing, excludes)?;
        let who = author.signature()?;
        let tree = self.repo.find_tree(outcome.tree).map_err(fail)?;
        let message = message.replace('\0', "\u{fffd}");
        let commit = self.repo.commit(None, &who, &who, &message, &tree, &[]).map_err(fail)?;
        // The index first: whoever is killed in between finds everything staged, and commits it once more.
        let leaves = blob::leaves(&odb, outcome.tree)?.into_iter();
        let staged = leaves.map(|leaf| checkout::index_entry(leaf.path, leaf.mode, leaf.id, None));
        self.put_index(staged.collect())?;
        let subject = message.lines().next().unwrap_or_default();
        let reason = format!("commit (initial): {subject}");
        refs::compare_and_swap(&self.repo, &branch, None, Some(commit), &who, &reason)?;
        Ok(FirstCommit {
            commit: ids::commit_id(commit),
            left_out: outcome.left_out,
            unrepresentable: outcome.unrepresentable,
        })
    }

    fn unborn_branch(&self) -> Result<String, GitError> {
        match self.facts().head() {
            Ok(head) => Err(GitError::Exists { what: format!("a first commit ({})", head.commit.short()) }),
            Err(GitError::Repo(RepoError::Unborn { .. })) => {
                let fail = |source| GitError::library("read HEAD", source);
                let head = self.repo.find_reference("HEAD").map_err(fail)?;
                let name = head.symbolic_target().ok().flatten().map(str::to_owned);
                name.ok_or_else(|| GitError::NotFound { what: "the branch that HEAD names".to_owned() })
            }
            Err(error) => Err(error),
        }
    }
}
