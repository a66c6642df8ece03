//! Why a repository is not set up, or not taken down.

use std::path::PathBuf;

use peers_git::RepoError;
use peers_model::command::Step;
use peers_model::exit;
use peers_place::{PlaceError, file_exit, file_hint, repo_exit, repo_hint, store_exit};
use peers_store::{DiskError, DiskErrorKind, StoreError};
use peers_sys::dir::FileError;
use peers_sys::term;
use thiserror::Error;

use super::backup::Copies;

/// Why a repository is not set up, or not taken down.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// The target is no directory.
    #[error("{} is not a directory", shown(path))]
    NotADirectory {
        /// What was asked for.
        path: PathBuf,
    },
    /// A directory that must not become a work place of agents.
    #[error("{} {why}", shown(path))]
    Forbidden {
        /// The directory.
        path: PathBuf,
        /// Why, readable after it.
        why: &'static str,
    },
    /// A path that cannot stand in a line of text.
    #[error("the path {} {why}", shown(path))]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why, readable after it.
        why: &'static str,
    },
    /// The target is not the top of a repository.
    #[error("{} is not the top of a git repository", shown(path))]
    Outside {
        /// The directory.
        path: PathBuf,
        /// The top of the repository that it lies in.
        top: Option<PathBuf>,
    },
    /// The store belongs to the main checkout, which would lose its history.
    #[error("{} is a linked worktree: its store is that of {}", shown(path), shown(main))]
    Linked {
        /// The worktree.
        path: PathBuf,
        /// The main checkout.
        main: PathBuf,
    },
    /// The repository there cannot be worked in.
    #[error(transparent)]
    Repo(RepoError),
    /// A symlink where we would write.
    #[error("{name} is a symbolic link")]
    Link {
        /// Its name in the target.
        name: &'static str,
    },
    /// `.peers` is something else than a directory.
    #[error(".peers is not a directory")]
    NotOurs,
    /// It was set up before.
    #[error("{} exists already", shown(path))]
    Exists {
        /// The control directory.
        path: PathBuf,
    },
    /// The old one was moved aside, and the new one could not be finished.
    #[error("{}; the new set-up is not complete and nothing runs on it", copies.words())]
    HalfWay {
        /// What was moved aside, and where it lies.
        copies: Copies,
        /// What stopped it.
        source: Box<ScaffoldError>,
    },
    /// A setting of peers on the command line.
    #[error("--peer-{option}: {why}")]
    Setting {
        /// What it sets.
        option: &'static str,
        /// Why it cannot be.
        why: String,
    },
    /// What an option asks for cannot be.
    #[error("--{option}: {why}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Why.
        why: String,
    },
    /// No gate fits.
    #[error("no manifest of a known stack was found in {}", shown(path))]
    NothingDetected {
        /// The work tree.
        path: PathBuf,
    },
    /// A directory does not become a project.
    #[error(transparent)]
    Project(#[from] super::project::ProjectError),
    /// There is nothing to take away.
    #[error("{} is not set up for peers", shown(path))]
    NothingThere {
        /// The work tree.
        path: PathBuf,
    },
    /// The place cannot be used, or a run holds it.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DiskError> for ScaffoldError {
    fn from(error: DiskError) -> Self {
        Self::Store(StoreError::Disk(error))
    }
}

impl ScaffoldError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Self::NotADirectory { .. }
            | Self::Setting { .. }
            | Self::Option { .. }
            | Self::Place(PlaceError::NotADirectory { .. }) => exit::USAGE,
            Self::Forbidden { .. } | Self::Link { .. } | Self::NotOurs => exit::REFUSED,
            Self::Unusable { .. } | Self::Outside { .. } | Self::Linked { .. } => exit::INVALID,
            Self::Exists { .. } => exit::CONFLICT,
            Self::NothingThere { .. } | Self::NothingDetected { .. } => exit::NEGATIVE,
            Self::HalfWay { source, .. } => source.exit(),
            Self::Repo(error) => repo_exit(error),
            Self::Project(error) => error.exit(),
            Self::Place(error) => error.exit(),
            Self::File(error) => file_exit(error),
            Self::Store(error) => store_exit(error),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<Step> {
        Some(match self {
            Self::NotADirectory { .. } => "name an existing directory: `peers -C DIR init`".into(),
            Self::Forbidden { .. } => "choose the top of a repository that agents may work in".into(),
            Self::Link { .. } | Self::NotOurs => "inspect it and move it out of the way".into(),
            Self::Exists { .. } => {
                "`peers init --upgrade` refreshes it and keeps configuration, goals and state; `peers init --force` starts over and keeps a copy".into()
            }
            Self::Unusable { .. } => "rename the directory".into(),
            Self::Outside { path, top: Some(top) } if top == path => repo_hint(&RepoError::NotARepo { path: path.clone() }),
            Self::Outside { top: Some(top), .. } => {
                format!("agents work at the top of a repository: `peers -C {} init`", quoted(top)).into()
            }
            Self::Outside { top: None, .. } => {
                "`git init` makes one there; commit something, then run `peers init`".into()
            }
            Self::Linked { main, .. } => format!("start over there: `peers -C {} init --force`", quoted(main)).into(),
            Self::HalfWay { copies, source } => {
                let first = if source.is_disk_full() { "free some space, then" } else { "fix that, then" };
                Step::text(
                    "{} `peers init --force` once more, which keeps these copies; or go back to what was: `{}`",
                    &[first, &copies.back()],
                )
            }
            Self::Place(error) => return error.hint(),
            Self::Project(error) => return error.hint(),
            Self::Repo(error) => repo_hint(error),
            Self::File(error) => return file_hint(error),
            Self::Store(error) => return error.hint(),
            Self::NothingDetected { .. } => {
                "name the command that runs the tests: `--test CMD`".into()
            }
            Self::NothingThere { .. } | Self::Option { .. } | Self::Setting { .. } => return None,
        })
    }
}

impl ScaffoldError {
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

fn shown(path: &std::path::Path) -> String {
    term::inline(&path.to_string_lossy())
}

fn quoted(path: &std::path::Path) -> String {
    peers_sys::term::quoted(&path.to_string_lossy())
}
