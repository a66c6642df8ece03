//! Why a repository is not set up, or not taken down.

use std::path::{Path, PathBuf};

use peers_git::{GitError, RepoError};
use peers_model::command::Step;
use peers_model::exit;
use peers_modes::ModeError;
use peers_place::{FREE_SPACE, PlaceError, file_exit, file_hint, repo_exit, repo_hint, store_exit};
use peers_store::{DiskError, DiskErrorKind, StoreError};
use peers_sys::dir::FileError;
use peers_sys::term;
use thiserror::Error;

use super::backup::Copies;

/// Why a repository is not set up, or not taken down.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// What is there, or what was asked for, forbids it.
    #[error("{message}")]
    Refused {
        /// The exit code.
        exit: u8,
        /// What, about which thing.
        message: String,
        /// What to do about it.
        hint: Option<Step>,
    },
    /// The target is not the top of a repository.
    #[error("{} is not the top of a git repository", shown(path))]
    Outside {
        /// The directory.
        path: PathBuf,
        /// The top of the repository that it lies in.
        top: Option<PathBuf>,
    },
    /// A symlink where we would write.
    #[error("{name} is a symbolic link")]
    Link {
        /// Its name in the target.
        name: &'static str,
    },
    /// The old one was moved aside, and the new one could not be finished.
    #[error("{}; the new set-up is not complete and nothing runs on it", copies.words())]
    HalfWay {
        /// What was moved aside, and where it lies.
        copies: Copies,
        /// What stopped it.
        source: Box<ScaffoldError>,
    },
    /// Something of a project was written when it stopped, and the next call goes on there.
    #[error("{source}; {} is only half set up", shown(path))]
    CutShort {
        /// The target.
        path: PathBuf,
        /// What stopped it.
        source: Box<ScaffoldError>,
    },
    /// The repository there cannot be worked in.
    #[error(transparent)]
    Repo(RepoError),
    /// Git refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The place cannot be used, or a run holds it.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The modes that were asked for cannot be had.
    #[error(transparent)]
    Mode(#[from] ModeError),
}

impl From<DiskError> for ScaffoldError {
    fn from(error: DiskError) -> Self {
        Self::Store(StoreError::Disk(error))
    }
}

impl ScaffoldError {
    /// A refusal with what to do about it.
    pub(super) fn refused(exit: u8, message: impl Into<String>, hint: impl Into<Step>) -> Self {
        Self::Refused { exit, message: message.into(), hint: Some(hint.into()) }
    }

    /// A refusal whose message says it all.
    pub(super) fn plain(exit: u8, message: impl Into<String>) -> Self {
        Self::Refused { exit, message: message.into(), hint: None }
    }

    /// The refusal of what an option asks for.
    pub(super) fn option(option: &str, why: impl std::fmt::Display) -> Self {
        Self::plain(exit::USAGE, format!("--{option}: {why}"))
    }

    /// `.peers` is something else than a directory.
    pub(super) fn not_ours() -> Self {
        let hint = "inspect it and move it out of the way";
        Self::refused(exit::REFUSED, ".peers is not a directory", hint)
    }

    pub(super) fn cut_short(path: &Path, error: Self) -> Self {
        Self::CutShort { path: path.to_owned(), source: Box::new(error) }
    }

    /// The exit code of the command.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Self::Refused { exit, .. } => *exit,
            Self::Link { .. } | Self::Git(GitError::Unsafe { .. }) => exit::REFUSED,
            Self::HalfWay { source, .. } | Self::CutShort { source, .. } => source.exit(),
            Self::Repo(error) | Self::Git(GitError::Repo(error)) => repo_exit(error),
            Self::Git(GitError::Exists { .. } | GitError::Moved { .. }) => exit::CONFLICT,
            Self::Outside { .. } | Self::Git(GitError::InvalidName { .. } | GitError::TooLarge { .. }) => {
                exit::INVALID
            }
            Self::Git(_) => exit::BUG,
            Self::Place(PlaceError::NotADirectory { .. }) => exit::USAGE,
            Self::Place(error) => error.exit(),
            Self::File(error) => file_exit(error),
            Self::Store(error) => store_exit(error),
            Self::Mode(error) => error.exit(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<Step> {
        Some(match self {
            Self::Refused { hint, .. } => return hint.clone(),
            Self::Link { .. } => "inspect it and move it out of the way".into(),
            Self::Outside { path, top: Some(top) } if top == path => {
                repo_hint(&RepoError::NotARepo { path: path.clone() })
            }
            Self::Outside { top: Some(top), .. } => {
                format!("agents work at the top of a repository: `peers -C {} init`", quoted(top)).into()
            }
            Self::Outside { top: None, .. } => {
                "`git init` makes one there; commit something, then run `peers init`".into()
            }
            Self::HalfWay { copies, source } => {
                let first = if source.is_disk_full() { "free some space, then" } else { "fix that, then" };
                Step::text(
                    "{} `peers init --force` once more, which keeps these copies; or go back to what was: `{}`",
                    &[first, &copies.back()],
                )
            }
            Self::CutShort { source, .. } => {
                let first = source.hint().map(|hint| hint.say("; ")).unwrap_or_default();
                first.say("run the same command again: it goes on where this one stopped")
            }
            Self::Repo(error) | Self::Git(GitError::Repo(error)) => repo_hint(error),
            Self::Git(GitError::DiskFull { .. }) => FREE_SPACE.into(),
            Self::Git(_) => return None,
            Self::Place(error) => return error.hint(),
            Self::File(error) => return file_hint(error),
            Self::Store(error) => return error.hint(),
            Self::Mode(ModeError::Empty) => "leave it out, or name one that `peers modes list` shows".into(),
            Self::Mode(ModeError::Unknown { near: Some(near), .. }) => {
                format!("did you mean `{near}`?").into()
            }
            Self::Mode(ModeError::Exclusive { exclusive, .. }) => Step::text(
                "run {} by itself first; then `peers init --force` sets up again with the others",
                &[exclusive],
            ),
            Self::Mode(_) => "`peers modes list` shows what each mode is for".into(),
        })
    }

    fn is_disk_full(&self) -> bool {
        match self {
            Self::File(error) | Self::Place(PlaceError::File(error)) => error.is_disk_full(),
            Self::Store(error) | Self::Place(PlaceError::Store(error)) => {
                error.disk().is_some_and(|disk| disk.kind == DiskErrorKind::Full)
            }
            _ => false,
        }
    }
}

/// A path for people.
pub(super) fn shown(path: &Path) -> String {
    term::inline(&path.to_string_lossy())
}

/// A path as a word of a command.
pub(super) fn quoted(path: &Path) -> String {
    term::quoted(&path.to_string_lossy())
}
