//! The repository that agents work in: opened by exactly one path, with its configuration ignored.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, ErrorClass, ErrorCode, Repository, RepositoryOpenFlags, RepositoryState};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::error::{BusyState, GitError, RepoError, clean, clean_bytes};
use crate::facts::Facts;
use crate::files::{self, Small};
use crate::hygiene;
use crate::ref_list::BranchState;
use crate::refs;

/// Locks of references that are named one by one.
const LOCKS_NAMED: usize = 20;

/// The agents' repository, opened in process.
///
/// Everything in it is hostile input. Its configuration is read by the library once, while opening,
/// and replaced by an empty one before anything else happens.
pub struct PeerRepo {
    pub(crate) repo: Repository,
    work_dir: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

/// What became of locks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unlocked {
    /// The first of those that were removed, at most 100.
    pub first: Vec<PathBuf>,
    /// How many were.
    pub removed: usize,
    /// One that could not be removed.
    pub stuck: Option<PathBuf>,
}

impl PeerRepo {
    /// Opens the repository whose work tree is exactly `work_dir`.
    ///
    /// Parent directories are not searched and no environment variable is honoured. A linked worktree
    /// is accepted when its git directory and its `.git` file name each other.
    ///
    /// # Errors
    /// [`RepoError`], one case per cause.
    pub fn open(work_dir: &Path) -> Result<Self, RepoError> {
        Self::open_checked(work_dir, None)
    }

    /// Opens it, and requires the common git directory to be the recorded one.
    ///
    /// # Errors
    /// [`RepoError::Redirected`] when it is another one, else as [`PeerRepo::open`].
    pub fn open_known(work_dir: &Path, common_dir: &Path) -> Result<Self, RepoError> {
        Self::open_checked(work_dir, Some(common_dir))
    }

    fn open_checked(work_dir: &Path, recorded: Option<&Path>) -> Result<Self, RepoError> {
        let work_dir = std::fs::canonicalize(work_dir).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => RepoError::NotARepo { path: work_dir.to_owned() },
            _ => RepoError::io(work_dir, source),
        })?;
        let (git_dir, common_dir) = locate(&work_dir)?;
        if let Some(recorded) = recorded
            && std::fs::canonicalize(recorded).ok().as_deref() != Some(common_dir.as_path())
        {
            return Err(redirected(&work_dir, &common_dir));
        }
        hygiene::check(&git_dir, &common_dir)?;
        let repo = Repository::open_ext(
            &work_dir,
            RepositoryOpenFlags::NO_SEARCH,
            std::iter::empty::<&std::ffi::OsStr>(),
        )
        .map_err(|source| sort_open_error(&work_dir, &source))?;
        if !same(repo.path(), &git_dir) || !same(repo.commondir(), &common_dir) {
            return Err(redirected(&work_dir, repo.path()));
        }
        match repo.workdir() {
            _ if repo.is_bare() => return Err(RepoError::Bare { path: work_dir }),
            None => return Err(RepoError::Bare { path: work_dir }),
            Some(found) if !same(found, &work_dir) => return Err(redirected(&work_dir, found)),
            Some(_) => {}
        }
        // From here on neither the repository's configuration nor the operator's counts. (The search
        // paths of the library can only be changed through an unsafe call; an empty configuration
        // does the same for everything that we use.)
        Config::new()
            .and_then(|empty| repo.set_config(&empty))
            .map_err(|source| sort_open_error(&work_dir, &source))?;
        Ok(Self { repo, work_dir, git_dir, common_dir })
    }

    /// The nearest directory at or above `start` that has a `.git` entry. Looks, opens nothing.
    #[must_use]
    pub fn find_top(start: &Path) -> Option<PathBuf> {
        let start = std::fs::canonicalize(start).ok()?;
        start
            .ancestors()
            .find(|dir| matches!(files::lstat(&dir.join(".git")), Ok(Some(_))))
            .map(Path::to_owned)
    }

    /// The work tree, without symlinks.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// The git directory of this work tree.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that all worktrees share (the same one in a plain repository).
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Where the objects are.
    #[must_use]
    pub fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Facts straight from this repository: for views and `init`.
    ///
    /// What decides a verdict is read from the control directory: grafts and commit graphs planted
    /// here can forge ancestry.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts::new(&self.repo)
    }

    /// Everything that forbids a start, all at once: objects that are cut short, no commit yet, an operation in
    /// progress, a stale lock of the index, stale locks of references.
    #[must_use]
    pub fn preflight(&self) -> Vec<RepoError> {
        let mut found: Vec<RepoError> = self.check_content().err().into_iter().collect();
        match self.facts().head() {
            Ok(head) => found.extend(head.branch.and_then(|branch| self.symbolic_branch(&branch))),
            Err(GitError::Repo(error)) => found.push(error),
            Err(other) => {
                found.push(RepoError::Corrupt { path: self.work_dir.clone(), detail: other.to_string() });
            }
        }
        let busy = self.busy().into_iter().filter(|state| *state != BusyState::RefLock);
        found.extend(busy.map(|state| self.is_busy(state, None)));
        let locks = self.ref_locks().into_iter().take(LOCKS_NAMED);
        found.extend(locks.map(|lock| self.is_busy(BusyState::RefLock, Some(lock))));
        found
    }

    /// Why a branch (full name) cannot be worked on when it is only another name for something: what is
    /// committed on it would move that.
    #[must_use]
    pub fn symbolic_branch(&self, branch: &str) -> Option<RepoError> {
        match self.branch_state(branch) {
            Ok(BranchState::Symbolic(target, _)) => Some(RepoError::Unsafe {
                path: self.common_dir.join(branch),
                found: format!("a symbolic reference to `{target}` and no branch of its own"),
            }),
            _ => None,
        }
    }

    /// Operations in progress and locks left behind.
    #[must_use]
    pub fn busy(&self) -> Vec<BusyState> {
        let mut found = Vec::new();
        match self.repo.state() {
            RepositoryState::Clean => {}
            RepositoryState::Merge => found.push(BusyState::Merge),
            RepositoryState::Revert | RepositoryState::RevertSequence => found.push(BusyState::Revert),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
                found.push(BusyState::CherryPick);
            }
            RepositoryState::Bisect => found.push(BusyState::Bisect),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailbox
            | RepositoryState::ApplyMailboxOrRebase => found.push(BusyState::Rebase),
        }
        if self.index_lock().is_some() {
            found.push(BusyState::IndexLock);
        }
        if !self.ref_locks().is_empty() {
            found.push(BusyState::RefLock);
        }
        found
    }

    pub(crate) fn is_busy(&self, state: BusyState, lock: Option<PathBuf>) -> RepoError {
        RepoError::Busy { path: self.work_dir.clone(), state, lock }
    }

    /// That the index of this work tree is locked, if it is.
    #[must_use]
    pub fn index_lock(&self) -> Option<RepoError> {
        let there = matches!(files::lstat(&self.git_dir.join("index.lock")), Ok(Some(_)));
        there.then(|| self.is_busy(BusyState::IndexLock, None))
    }

    /// That a branch (full name or short one) is locked, if it is: nobody can move it then.
    ///
    /// # Errors
    /// [`GitError::InvalidName`].
    pub fn branch_lock(&self, branch: &str) -> Result<Option<RepoError>, GitError> {
        let lock = self.common_dir.join(format!("{}.lock", refs::branch_name(branch)?));
        let there = matches!(files::lstat(&lock), Ok(Some(_)));
        Ok(there.then(|| self.is_busy(BusyState::RefLock, Some(lock))))
    }

    /// Removes a leftover `index.lock`. Returns whether there was one.
    ///
    /// Only for a caller that knows that no git process of the agents is alive.
    ///
    /// # Errors
    /// [`GitError::Io`] when it cannot be removed.
    pub fn remove_index_lock(&self) -> Result<bool, GitError> {
        Self::remove_lock(&self.git_dir.join("index.lock"))
    }

    /// Locks of references that somebody holds or left behind: of `HEAD`, of the packed references, of the
    /// branch that is checked out, and of every other one as far as there are not too many. At most 1000.
    #[must_use]
    pub fn ref_locks(&self) -> Vec<PathBuf> {
        self.locks(&|_| true)
    }

    fn locks(&self, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
        let head = self.repo.find_reference("HEAD").ok();
        let branch = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten());
        hygiene::locks(&self.git_dir, &self.common_dir, branch, wanted)
    }

    /// Removes locks of references that are `ours`, however many there are. One that cannot be removed stays.
    ///
    /// Only for a caller that knows that no git process of the agents is alive.
    #[must_use]
    pub fn remove_ref_locks(&self, ours: impl Fn(&Path) -> bool) -> Unlocked {
        const NAMED: usize = 100;
        let (mut done, mut left) = (Unlocked::default(), HashSet::new());
        loop {
            let found = self.locks(&|lock| ours(lock) && !left.contains(lock));
            if found.is_empty() {
                return done;
            }
            for lock in found {
                if Self::remove_lock(&lock).unwrap_or(false) {
                    done.removed += 1;
                    if done.first.len() < NAMED {
                        done.first.push(lock);
                    }
                } else {
                    done.stuck.get_or_insert_with(|| lock.clone());
                    left.insert(lock);
                }
            }
        }
    }

    /// Whether it was there. An empty directory in its place goes too.
    fn remove_lock(lock: &Path) -> Result<bool, GitError> {
        let fail = |source| GitError::io(lock, source);
        let (Some(parent), Some(name)) = (lock.parent(), lock.file_name()) else { return Ok(false) };
        let dir = files::open_dir(parent).map_err(fail)?;
        let remove = |flags| files::allowed(&dir, name, || rustix::fs::unlinkat(&dir, name, flags));
        let removed = match remove(AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => remove(AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Looks at the object store before objects are read from it or written to it.
    ///
    /// # Errors
    /// [`RepoError::Unsafe`] for what stops whoever reads it: special files, crowded directories.
    pub(crate) fn check_objects(&self) -> Result<(), RepoError> {
        hygiene::check_objects(&self.common_dir)
    }

    /// The same, and into its own loose objects.
    ///
    /// # Errors
    /// [`RepoError::Unsafe`] also for objects that are cut short.
    pub fn check_content(&self) -> Result<(), RepoError> {
        self.check_objects()?;
        hygiene::check_streams(&self.objects_dir())
    }

    /// Looks again before writing: an agent may have planted something since the repository was opened.
    pub(crate) fn check_writable(&self) -> Result<(), RepoError> {
        hygiene::check(&self.git_dir, &self.common_dir)?;
        self.check_objects()
    }
}

/// The git directory and the common directory of `work_dir`, without asking the library.
fn locate(work_dir: &Path) -> Result<(PathBuf, PathBuf), RepoError> {
    let dot_git = work_dir.join(".git");
    let Some(stat) = files::lstat(&dot_git).map_err(|source| RepoError::io(&dot_git, source))? else {
        let looks_bare = ["HEAD", "objects", "refs"]
            .iter()
            .all(|name| matches!(files::lstat(&work_dir.join(name)), Ok(Some(_))));
        return Err(if looks_bare {
            RepoError::Bare { path: work_dir.to_owned() }
        } else {
            RepoError::NotARepo { path: work_dir.to_owned() }
        });
    };
    match files::kind(&stat) {
        FileType::Directory => {
            let common = dot_git.join("commondir");
            if files::lstat(&common).map_err(|source| RepoError::io(&common, source))?.is_some() {
                return Err(redirected(work_dir, &common));
            }
            Ok((dot_git.clone(), dot_git))
        }
        FileType::RegularFile => locate_linked(work_dir, &dot_git),
        FileType::Symlink => Err(redirected(work_dir, &dot_git)),
        other => Err(RepoError::Unsafe { path: dot_git, found: files::kind_text(other).to_owned() }),
    }
}

/// A linked worktree: `.git` names `<common>/worktrees/<id>`, and that names us.
fn locate_linked(work_dir: &Path, dot_git: &Path) -> Result<(PathBuf, PathBuf), RepoError> {
    let target = path_file(dot_git, b"gitdir: ")?;
    let git_dir = resolve(work_dir, &target)
        .ok_or_else(|| RepoError::Redirected { path: work_dir.to_owned(), to: clean_bytes(&target) })?;
    let elsewhere = || redirected(work_dir, &git_dir);
    let common = path_file(&git_dir.join("commondir"), b"").map_err(|_| elsewhere())?;
    let common_dir = resolve(&git_dir, &common).ok_or_else(elsewhere)?;
    let back = path_file(&git_dir.join("gitdir"), b"").map_err(|_| elsewhere())?;
    let back = resolve(&git_dir, &back).ok_or_else(elsewhere)?;
    let ours = back == dot_git && git_dir.parent() == Some(common_dir.join("worktrees").as_path());
    if ours { Ok((git_dir, common_dir)) } else { Err(elsewhere()) }
}

/// The one path in a file such as `commondir`.
fn path_file(file: &Path, prefix: &[u8]) -> Result<Vec<u8>, RepoError> {
    let content = match files::read_small(file, 16 * 1024).map_err(|source| RepoError::io(file, source))? {
        Small::Bytes(bytes) => bytes,
        Small::Absent => {
            return Err(RepoError::Corrupt { path: file.to_owned(), detail: "missing".to_owned() });
        }
        Small::TooLarge => {
            return Err(RepoError::Unsafe { path: file.to_owned(), found: "too large".to_owned() });
        }
        Small::Special(found) => {
            return Err(RepoError::Unsafe { path: file.to_owned(), found: found.to_owned() });
        }
    };
    let text = content.strip_prefix(prefix).unwrap_or(b"");
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.is_empty() || text.contains(&0) || text.contains(&b'\n') {
        return Err(RepoError::Corrupt { path: file.to_owned(), detail: "not one path".to_owned() });
    }
    Ok(text.to_vec())
}

fn resolve(base: &Path, path: &[u8]) -> Option<PathBuf> {
    std::fs::canonicalize(base.join(std::ffi::OsStr::from_bytes(path))).ok()
}

fn same(found: &Path, expected: &Path) -> bool {
    std::fs::canonicalize(found).is_ok_and(|found| found == expected)
}

fn redirected(work_dir: &Path, to: &Path) -> RepoError {
    RepoError::Redirected { path: work_dir.to_owned(), to: clean(&to.display().to_string(), 300) }
}

fn sort_open_error(work_dir: &Path, source: &git2::Error) -> RepoError {
    let path = work_dir.to_owned();
    let detail = clean(source.message(), 300);
    let unsupported =
        ["unsupported extension", "repository version", "unknown object format", "object format"];
    if source.code() == ErrorCode::Owner {
        RepoError::WrongOwner { path }
    } else if unsupported.iter().any(|text| source.message().contains(text)) {
        RepoError::UnsupportedExtension { path, detail }
    } else if source.code() == ErrorCode::NotFound && source.class() == ErrorClass::Repository {
        RepoError::NotARepo { path }
    } else {
        RepoError::Corrupt { path, detail }
    }
}
