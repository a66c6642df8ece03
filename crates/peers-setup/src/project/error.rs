//! Why a directory does not become a project.

use std::path::{Path, PathBuf};

use peers_core::plan::Problem;
use peers_git::GitError;
use peers_model::command::Step;
use peers_model::exit;
use peers_place::{FREE_SPACE, repo_exit, repo_hint};
use peers_sys::term;
use thiserror::Error;

use super::super::ScaffoldError;
use super::shown;

/// Why a directory does not become a project.
#[derive(Debug, Error)]
pub enum ProjectError {
    /// Options that do not go together, or say nothing.
    #[error("{why}")]
    Usage {
        /// Why.
        why: String,
        /// What to do about it.
        hint: Option<Step>,
    },
    /// There is something else than a directory.
    #[error("{} is not a directory", shown(path))]
    NotADirectory {
        /// The target.
        path: PathBuf,
    },
    /// The directory that it would be in is not there.
    #[error("{} does not exist", shown(path))]
    NoParent {
        /// The parent.
        path: PathBuf,
    },
    /// It has files, and no commit.
    #[error("{} is not empty", shown(path))]
    NotEmpty {
        /// The target.
        path: PathBuf,
        /// It is a repository without a commit.
        unborn: bool,
    },
    /// It lies in a repository, below its top.
    #[error("{} is not the top of a git repository", shown(path))]
    Inside {
        /// The target.
        path: PathBuf,
        /// The top of the repository.
        top: PathBuf,
    },
    /// It was set up before.
    #[error("{} is set up for peers already", shown(path))]
    SetUp {
        /// The target.
        path: PathBuf,
    },
    /// `SPEC.md` is there and says something else.
    #[error("{} exists with other content", shown(path))]
    SpecThere {
        /// The file.
        path: PathBuf,
    },
    /// A directory that was at this path before has left its trusted store.
    #[error("the trusted store {} belongs to an earlier project at {}", shown(store), shown(path))]
    StoreThere {
        /// The target, which is not there.
        path: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// There is no such mode.
    #[error("there is no mode {}; this version has none yet", named(names))]
    UnknownMode {
        /// Those that were asked for.
        names: Vec<String>,
    },
    /// The file is no plan.
    #[error("{} is not a valid plan: {}", shown(path), listed(errors))]
    Plan {
        /// The file.
        path: PathBuf,
        /// All that is wrong with it.
        errors: Vec<Problem>,
    },
    /// A file that was named cannot be used.
    #[error("{} {why}", shown(path))]
    File {
        /// The file.
        path: PathBuf,
        /// Why, readable after it.
        why: &'static str,
        /// The exit code.
        exit: u8,
    },
    /// Git refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Something was written when it stopped, and the next call goes on there.
    #[error("{source}; {} is only half set up", shown(path))]
    CutShort {
        /// The target.
        path: PathBuf,
        /// What stopped it.
        source: Box<ScaffoldError>,
    },
}

impl ProjectError {
    pub(super) fn usage(why: impl Into<String>, hint: impl Into<Step>) -> Self {
        Self::Usage { why: why.into(), hint: Some(hint.into()) }
    }

    pub(super) fn cut_short(path: &Path, error: ScaffoldError) -> ScaffoldError {
        Self::CutShort { path: path.to_owned(), source: Box::new(error) }.into()
    }

    /// The exit code of the command.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Self::Usage { .. } | Self::NotADirectory { .. } | Self::NoParent { .. } => exit::USAGE,
            Self::NotEmpty { .. }
            | Self::SetUp { .. }
            | Self::SpecThere { .. }
            | Self::Git(GitError::Exists { .. } | GitError::Moved { .. }) => exit::CONFLICT,
            Self::Inside { .. }
            | Self::UnknownMode { .. }
            | Self::Plan { .. }
            | Self::Git(GitError::InvalidName { .. } | GitError::TooLarge { .. }) => exit::INVALID,
            Self::File { exit, .. } => *exit,
            Self::Git(GitError::Repo(error)) => repo_exit(error),
            Self::StoreThere { .. } | Self::Git(GitError::Unsafe { .. }) => exit::REFUSED,
            Self::Git(_) => exit::BUG,
            Self::CutShort { source, .. } => source.exit(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<Step> {
        Some(match self {
            Self::Usage { hint, .. } => return hint.clone(),
            Self::NotADirectory { .. } => "name a directory, or a name that is free".into(),
            Self::NoParent { path } => format!("`mkdir -p {}` makes it", quoted(path)).into(),
            Self::NotEmpty { unborn: false, .. } => {
                "`--into-nonempty` makes a repository of it, with all that is there in the first commit".into()
            }
            Self::NotEmpty { unborn: true, .. } => {
                "commit what belongs to it, or let `--into-nonempty` put all that is there into the first commit".into()
            }
            Self::Inside { top, .. } => {
                Step::text("agents work at the top of a repository: `peers-ctl new {}`", &[&top.to_string_lossy()])
            }
            Self::SetUp { path } => Step::text(
                "`peers-ctl add {}` registers it; `--overwrite-peers` moves its `.peers` aside and starts over",
                &[&path.to_string_lossy()],
            ),
            Self::StoreThere { .. } => {
                "put the directory back, or let `--overwrite-peers` move that history aside and start over".into()
            }
            Self::SpecThere { .. } => "leave `--spec` out, or move the file out of the way".into(),
            Self::UnknownMode { .. } => "leave `--modes` out: goals are written into .peers/goals.yaml".into(),
            Self::Git(GitError::Repo(error)) => repo_hint(error),
            Self::Git(GitError::DiskFull { .. }) => FREE_SPACE.into(),
            Self::CutShort { source, .. } => {
                let first = source.hint().map(|hint| hint.say("; ")).unwrap_or_default();
                first.say("run the same command again: it goes on where this one stopped")
            }
            Self::Plan { .. } | Self::File { .. } | Self::Git(_) => return None,
        })
    }
}

fn quoted(path: &Path) -> String {
    peers_sys::term::quoted(&path.to_string_lossy())
}

fn named(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", term::line(name, 60))).collect();
    names.join(", ")
}

fn listed(errors: &[Problem]) -> String {
    let lines: Vec<_> = errors
        .iter()
        .map(|error| format!("line {}: {}", error.line, term::line(&error.message, 300)))
        .collect();
    lines.join("; ")
}
