//! The control git directory: bare, ours, and the only thing that answers questions which decide a
//! verdict.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use git2::{Config, Oid, Repository, RepositoryOpenFlags};

use crate::cli::{Call, Git};
use crate::error::GitError;
use crate::facts::Facts;
use crate::files::{self, Small};
use crate::index_mark::LOOK_TIME;
use crate::known::Known;
use crate::snapshot::Cache;

/// The whole configuration. Nothing here comes from anywhere else.
///
/// Commit graphs and pack indexes over several packs are off because those of a store that we borrow
/// from while fetching are written by agents; bitmaps likewise.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tbare = true
\tfilemode = true
\tlogAllRefUpdates = always
\tuntrackedCache = false
\tcommitGraph = false
\tmultiPackIndex = false
[gc]
\tauto = 0
[pack]
\tuseBitmaps = false
[transfer]
\tfsckObjects = true
[user]
\tname = peers-substrate
\temail = peers-substrate@local
";

/// Names no branch: nothing is ever checked out of it.
const HEAD: &[u8] = b"ref: refs/heads/none\n";

/// Our own bare repository, with a copy of what the agents' repository held at each import.
pub struct ControlDir {
    pub(crate) repo: Repository,
    path: PathBuf,
    pub(crate) git: Git,
    pub(crate) known: Known,
    pub(crate) excludes: Option<PathBuf>,
    pub(crate) cache: RefCell<Option<Cache>>,
    /// Tells which file stamps are too young to be trusted.
    pub(crate) clock: fn() -> SystemTime,
    /// Time for looking at what is staged.
    pub(crate) look_time: Duration,
    /// Commits that could not be adopted: not tried again in this process.
    pub(crate) unadoptable: HashSet<Oid>,
}

impl ControlDir {
    /// Opens the directory, creating it when nothing is there. Its parent must exist and be ours alone.
    ///
    /// # Errors
    /// [`GitError::Exists`] when something else is at `path`, [`GitError::Io`], [`GitError::Library`].
    pub fn open_or_create(path: &Path, git: Git) -> Result<Self, GitError> {
        if files::lstat(path).map_err(|source| GitError::io(path, source))?.is_none() {
            create(path)?;
        }
        let path = files::canonical(path)?;
        if !matches!(files::lstat(&path.join("objects")), Ok(Some(_))) {
            return Err(GitError::Exists {
                what: format!("`{}`, which is not a git directory,", path.display()),
            });
        }
        heal(&path)?;
        let repo = open(&path)?;
        let known = Known::load(&path.join("peers/known"))?;
        Ok(Self {
            repo,
            path,
            git,
            known,
            excludes: None,
            cache: RefCell::new(None),
            clock: peers_sys::clock::system_now,
            look_time: LOOK_TIME,
            unadoptable: HashSet::new(),
        })
    }

    /// Also honours this ignore file, as the operator's own git does (see [`operator_excludes`]).
    #[must_use]
    pub fn with_excludes(mut self, file: Option<PathBuf>) -> Self {
        self.excludes = file;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its objects are.
    #[must_use]
    pub fn objects_dir(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Facts about the imported history.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts::new(&self.repo)
    }

    /// Whether it is there and can be written to and read.
    ///
    /// # Errors
    /// What says nothing about the directory itself, [`GitError::DiskFull`] above all.
    pub fn works(&self) -> Result<bool, GitError> {
        let written = || {
            self.heal()?;
            let fail = |source| GitError::library("write to our copy", source);
            let oid = crate::objects::odb(&self.repo)?.write(git2::ObjectType::Blob, b"").map_err(fail)?;
            open(&self.path)?.find_blob(oid).map(drop).map_err(fail)
        };
        match written() {
            Ok(()) => Ok(true),
            Err(error) if self.is_damaged_by(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether this error tells that the directory itself is damaged: neither a full disk nor a machine that
    /// has run out of something, nor the agents' repository.
    #[must_use]
    pub fn is_damaged_by(&self, error: &GitError) -> bool {
        error.is_damage_at(&self.path)
    }

    /// Puts our own files back before a `git` process reads them.
    pub(crate) fn heal(&self) -> Result<(), GitError> {
        heal(&self.path)
    }

    /// A file of ours inside the directory.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.path.join("peers").join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.own("home")
    }

    /// A call of `git` on this directory.
    pub(crate) fn call<'a>(&'a self, home: &'a Path) -> Call<'a> {
        self.git.call(&self.path, home)
    }

    /// Opens the directory again: a git process has changed packs or the shallow edge.
    pub(crate) fn reopen(&mut self) -> Result<(), GitError> {
        self.repo = open(&self.path)?;
        Ok(())
    }
}

/// The ignore file that the operator's own git honours everywhere, if there is one.
///
/// Reads the operator's global configuration; nothing of a repository.
#[must_use]
pub fn operator_excludes() -> Option<PathBuf> {
    let named = Config::open_default().ok().and_then(|config| config.get_path("core.excludesfile").ok());
    let usual = || Some(Config::find_xdg().ok()?.parent()?.join("ignore"));
    named.or_else(usual).filter(|file| file.is_absolute())
}

pub(crate) fn open(path: &Path) -> Result<Repository, GitError> {
    let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT | RepositoryOpenFlags::BARE;
    let fail = |source| GitError::library(format!("open `{}`", path.display()), source);
    let repo = Repository::open_ext(path, flags, std::iter::empty::<&std::ffi::OsStr>()).map_err(fail)?;
    // Only our file: the operator's global settings change nothing here.
    Config::open(&path.join("config")).and_then(|config| repo.set_config(&config)).map_err(fail)?;
    Ok(repo)
}

/// Makes it beside its place and renames it there, so that it is whole or absent.
fn create(path: &Path) -> Result<(), GitError> {
    let fail = |source: io::Error| GitError::io(path, source);
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
    let mut temp_name = name.to_owned();
    temp_name.push(format!(".{}.tmp", files::random_hex().map_err(fail)?));
    let temp = path.with_file_name(temp_name);
    for dir in
        ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "info", "peers", "peers/home"]
    {
        files::ensure_dir(&temp.join(dir))?;
    }
    files::replace(&temp.join("HEAD"), HEAD)?;
    files::replace(&temp.join("config"), CONFIG.as_bytes())?;
    match rustix::fs::renameat(rustix::fs::CWD, &temp, rustix::fs::CWD, path) {
        Ok(()) => Ok(()),
        Err(error) => {
            files::remove_tree(&temp)?;
            // Somebody else was faster: fine, it is the same thing.
            if files::lstat(path).map_err(fail)?.is_some() { Ok(()) } else { Err(fail(error.into())) }
        }
    }
}

/// Our files are as we write them, whatever an older version, an editor or an agent left. Hooks have no
/// place here: `git` would run them in our name.
fn heal(path: &Path) -> Result<(), GitError> {
    files::remove_tree(&path.join("hooks"))?;
    for dir in ["peers", "peers/home", "refs"] {
        files::ensure_dir(&path.join(dir))?;
    }
    for (name, text) in [("HEAD", HEAD), ("config", CONFIG.as_bytes())] {
        let file = path.join(name);
        match files::read_small(&file, 64 * 1024).map_err(|source| GitError::io(&file, source))? {
            Small::Bytes(bytes) if bytes == text => {}
            _ => files::replace(&file, text)?,
        }
    }
    Ok(())
}
