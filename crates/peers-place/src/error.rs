//! Why a place cannot be used.

use std::path::{Path, PathBuf};

use peers_git::{BusyState, RepoError};
use peers_model::command::Step;
use peers_model::exit;
use peers_store::StoreError;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::term;
use thiserror::Error;

use super::holder::Holder;

/// Why a place cannot be used.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// Its `.git` leads to another project than is known to lie there.
    #[error(
        "{} is not the repository that was registered: its `.git` leads to {}",
        term::inline(&path.to_string_lossy()),
        term::inline(&leads.to_string_lossy())
    )]
    Misled {
        /// The directory.
        path: PathBuf,
        /// The repository that it belongs to now.
        leads: PathBuf,
    },
    /// The target is no directory that can be opened.
    #[error("{} is not a directory", term::inline(&path.to_string_lossy()))]
    NotADirectory {
        /// What was asked for.
        path: PathBuf,
    },
    /// Neither the environment nor the password database names a home directory.
    #[error("the home directory is unknown, so the trusted store has no place; set HOME")]
    NoHome,
    /// The linked worktree does not lead to its repository.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// A linked worktree does not find its repository any more.
    #[error("{message}")]
    CutOff {
        /// What is wrong, for people.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A directory of ours would lie where agents can write.
    #[error("{what} would lie inside the repository, at {}", term::inline(&path.to_string_lossy()))]
    Inside {
        /// Which directory of ours.
        what: &'static str,
        /// Where it would lie.
        path: PathBuf,
    },
    /// A file or directory of ours cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is neither `.peers/` nor a store.
    #[error("{} is not set up for peers", term::inline(&path.to_string_lossy()))]
    NotInitialised {
        /// The work tree.
        path: PathBuf,
        /// The top of the repository, if that is another directory.
        top: Option<PathBuf>,
    },
    /// There is `.peers/`, but no store that knows this directory.
    #[error(
        "{} has no trusted store: there is none at {} ({from})",
        term::inline(&path.to_string_lossy()),
        term::inline(&looked.to_string_lossy())
    )]
    NoStore {
        /// The work tree.
        path: PathBuf,
        /// Where the store would lie.
        looked: PathBuf,
        /// Which variable says so.
        from: String,
        /// Where the same directory was, according to another store.
        was: Option<PathBuf>,
        /// It was never set up here: goals and configuration came along with a clone, or were written by hand.
        cloned: bool,
    },
    /// The store was made for another directory.
    #[error("the trusted store of {} was made for {}", term::inline(&path.to_string_lossy()), made_for(.recorded, path))]
    Moved {
        /// The work tree.
        path: PathBuf,
        /// The path in the store.
        recorded: String,
    },
    /// Somebody holds the run lock.
    #[error("{}", held(holder))]
    Locked {
        /// Who, as far as it says.
        holder: Box<Holder>,
    },
    /// Somebody holds the run lock of older systems, which lies where agents write.
    #[error("another process holds `.peers/run.lock`, the lock of an older version")]
    ForeignLock {
        /// The file.
        path: PathBuf,
    },
}

fn held(holder: &Holder) -> String {
    match (&holder.command, &holder.run_id) {
        (Some(_), _) => format!("{holder}, and holds the lock of this repository"),
        (None, Some(_)) => format!("a run holds the lock of this repository ({holder})"),
        (None, None) => format!("another process holds the lock of this repository ({holder})"),
    }
}

fn made_for(recorded: &str, path: &Path) -> String {
    if path.to_str() == Some(recorded) {
        return "another directory of the same name".to_owned();
    }
    term::inline(recorded)
}

impl PlaceError {
    /// The exit code of a command that stops at it.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Self::NotADirectory { .. } | Self::NotInitialised { .. } => exit::INVALID,
            Self::NoHome => exit::ENVIRONMENT,
            Self::CutOff { .. }
            | Self::Inside { .. }
            | Self::NoStore { .. }
            | Self::Moved { .. }
            | Self::Misled { .. } => exit::REFUSED,
            Self::Locked { .. } | Self::ForeignLock { .. } => exit::CONFLICT,
            Self::Repo(error) => repo_exit(error),
            Self::File(error) => file_exit(error),
            Self::Store(error) => store_exit(error),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<Step> {
        let shown = |path: &Path| peers_sys::term::quoted(&path.to_string_lossy());
        Some(match self {
            Self::NoHome => "set HOME or XDG_STATE_HOME".into(),
            Self::CutOff { hint, .. } => hint.clone().into(),
            Self::Inside { .. } => {
                "set XDG_STATE_HOME and XDG_CACHE_HOME to directories outside the repository".into()
            }
            Self::File(FileError::HardLinked { .. }) => {
                "another process may write to it through its other name: inspect its content first".into()
            }
            Self::File(error) if error.is_unsafe() => {
                "peers did not create it: inspect it, delete it, and start again".into()
            }
            Self::Repo(error) => repo_hint(error),
            Self::Store(error) => return error.hint(),
            Self::File(error) => return file_hint(error),
            Self::NotADirectory { .. } => return None,
            Self::Misled { path, .. } => Step::text(
                "look at `.git` in {}; if that is wanted, register it anew: `peers-ctl remove`, then `peers-ctl add`",
                &[&shown(path)],
            ),
            Self::NotInitialised { top: Some(top), .. } => {
                format!("the repository's top is above: `peers -C {} ...`", shown(top)).into()
            }
            Self::NotInitialised { top: None, .. } => "run `peers init`".into(),
            Self::NoStore { was: Some(was), .. } => {
                Step::text("it was moved: `peers store attach {}`", &[&was.to_string_lossy()])
            }
            Self::NoStore { cloned: true, .. } => {
                "`peers init` makes one and keeps the goals and the configuration that are there; look at them, then `peers goals accept`".into()
            }
            Self::NoStore { was: None, .. } => {
                "if that variable was another one, set it as it was; if the repository was moved: `peers store attach OLD-PATH`; if the store is lost, restore it from a copy; only to start over without its history: `peers init --force`".into()
            }
            Self::Moved { recorded, .. } => Step::text(
                "if it is the same repository: `peers store attach {}`; to start over: `peers init --force`",
                &[recorded],
            ),
            Self::Locked { holder } if holder.command.is_some() => {
                "wait until it is done; `peers status` shows it".into()
            }
            Self::Locked { .. } => "wait for it, or stop it (`peers stop`); `peers status` shows it".into(),
            Self::ForeignLock { path } => format!(
                "`fuser -v {0}` shows which process: end it where it was started; one that an agent left can be ended too, or take the file away: `rm {0}`",
                shown(path)
            ).into(),
        })
    }
}

/// The exit code for a repository that cannot be opened.
#[must_use]
pub fn repo_exit(error: &RepoError) -> u8 {
    match error {
        RepoError::Redirected { .. } | RepoError::Unsafe { .. } | RepoError::WrongOwner { .. } => {
            exit::REFUSED
        }
        RepoError::NotARepo { .. }
        | RepoError::Bare { .. }
        | RepoError::Unborn { .. }
        | RepoError::Corrupt { .. }
        | RepoError::UnsupportedExtension { .. } => exit::INVALID,
        // Somebody works there, or left an operation half done.
        RepoError::Busy { .. } => exit::CONFLICT,
        RepoError::Io { .. } => exit::BUG,
    }
}

/// What to do about a repository that cannot be opened.
#[must_use]
pub fn repo_hint(error: &RepoError) -> Step {
    match error {
        RepoError::NotARepo { path } if has_git(path) => {
            "git does not accept .git as a repository: restore what it lacks (HEAD, config, objects, refs) from a backup".into()
        }
        RepoError::NotARepo { .. } => "run `git init` and commit something first".into(),
        RepoError::Unborn { .. } => "make a first commit: `git commit --allow-empty -m start`".into(),
        RepoError::Bare { .. } => "use a repository with a work tree".into(),
        RepoError::Busy { lock: Some(lock), .. } if is_plain(lock) => {
            let rm = if lock.is_dir() { "rm -r" } else { "rm" };
            format!("if no git runs there, remove it: `{rm} {}`", peers_sys::term::quoted(&lock.to_string_lossy())).into()
        }
        RepoError::Busy { path, state: BusyState::IndexLock, .. } => format!(
            "if no git runs there, remove it: `rm \"$(git -C {} rev-parse --absolute-git-dir)/index.lock\"`",
            peers_sys::term::quoted(&path.to_string_lossy())
        ).into(),
        RepoError::Busy { path, state: BusyState::RefLock, .. } => format!(
            "if no git runs there, remove it: `(cd {} && find \"$(git rev-parse --git-common-dir)\" -name '*.lock')` shows it",
            peers_sys::term::quoted(&path.to_string_lossy())
        ).into(),
        RepoError::Busy { .. } => "finish or abort it first (`git status` shows it)".into(),
        RepoError::Redirected { .. } => "peers works where .git is a directory, or in a worktree (`git worktree add`) of such a repository, without `core.worktree`: if you set it up otherwise, use a clone of it".into(),
        RepoError::Corrupt { .. } => "run `git fsck`".into(),
        RepoError::UnsupportedExtension { .. } => "see `extensions.*` in .git/config".into(),
        RepoError::WrongOwner { .. } => "run as the owner of the repository".into(),
        RepoError::Unsafe { path, found } => expected(path, found),
        RepoError::Io { .. } => "look at the file named".into(),
    }
}

/// Whether a path reads on a terminal as it is.
fn is_plain(path: &Path) -> bool {
    path.to_str().is_some_and(|text| term::inline(text) == text)
}

pub(super) fn has_git(path: &Path) -> bool {
    SafeDir::open_shared(path).is_ok_and(|dir| matches!(dir.stat(".git"), Ok(Some(_))))
}

/// What belongs at a place of the git directory, and how it gets there. Never to remove it: git itself may
/// well live with it.
fn expected(path: &Path, found: &str) -> Step {
    const DIRS: [&str; 7] = ["refs", "objects", "info", "logs", "pack", "heads", "tags"];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "COMMIT_EDITMSG" {
        return format!(
            "remove it, git makes it anew: `rm -r {}`",
            peers_sys::term::quoted(&path.to_string_lossy())
        )
        .into();
    }
    let fan_out = name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let due = match found {
        "a directory" => "a regular file",
        "a regular file" => "a directory",
        "a symlink" | "a FIFO" | "a socket" | "a device" | "of unknown type" => {
            if fan_out || DIRS.contains(&&*name) { "a directory" } else { "a regular file" }
        }
        _ => return "inspect it, and restore the previous content from a backup".into(),
    };
    if found == "a symlink" {
        return format!(
            "{due} is expected there: git follows such a link, peers does not; put a copy of what it leads to in its place, or restore it from a backup"
        ).into();
    }
    format!("{due} is expected there: restore it from a backup").into()
}

/// The exit code for a file that cannot be used.
#[must_use]
pub fn file_exit(error: &FileError) -> u8 {
    match error {
        FileError::TooLarge { .. } | FileError::NotFound { .. } | FileError::NotUtf8 { .. } => exit::INVALID,
        error if error.is_unsafe() || error.is_denied() => exit::REFUSED,
        error if error.is_read_only() => exit::ENVIRONMENT,
        _ => exit::BUG,
    }
}

/// What helps where a disk is full.
pub const FREE_SPACE: &str = "free some space, then run it again";

/// What to do about a file system that is mounted read-only. What is kept there already is not looked for elsewhere.
#[must_use]
pub fn writable_again(path: &Path) -> String {
    format!(
        "`findmnt -T {}` shows where that is mounted: make it writable again; only where nothing is kept yet, XDG_CACHE_HOME names another place for caches, XDG_STATE_HOME one for trusted stores",
        peers_sys::term::quoted(&path.to_string_lossy())
    )
}

/// What to do about a file that cannot be used.
#[must_use]
pub fn file_hint(error: &FileError) -> Option<Step> {
    if error.is_denied() {
        return Some("run as the user who set this up, or give yourself access to it".into());
    }
    if error.is_read_only() {
        return Some(writable_again(error.path()).into());
    }
    error.is_disk_full().then(|| FREE_SPACE.into())
}

/// The exit code for a store that cannot be used.
#[must_use]
pub fn store_exit(error: &StoreError) -> u8 {
    use peers_store::DiskErrorKind;
    match error.disk().map(|disk| disk.kind) {
        Some(DiskErrorKind::Unsafe) => exit::REFUSED,
        Some(DiskErrorKind::TooLarge | DiskErrorKind::NoArea) => exit::INVALID,
        Some(DiskErrorKind::Full | DiskErrorKind::Exists | DiskErrorKind::Io) => exit::BUG,
        None => match error {
            StoreError::Refused(_) => exit::BUG,
            StoreError::Journal(_)
            | StoreError::Newer { .. }
            | StoreError::Lost { .. }
            | StoreError::Forked { .. }
            | StoreError::Disk(_)
            | StoreError::Illegal { .. }
            | StoreError::File { .. } => exit::INVALID,
        },
    }
}
