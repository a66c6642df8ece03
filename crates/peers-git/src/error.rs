//! What can go wrong. Opening has its own family, since its cases decide an exit code.

use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};
use peers_model::CommitId;
use thiserror::Error;

/// Why a directory cannot be used as the repository that agents work in.
#[derive(Debug, Error)]
pub enum RepoError {
    /// There is no `.git` in the directory.
    #[error("`{path}` is not the top of a git work tree")]
    NotARepo {
        /// The directory that was asked for.
        path: PathBuf,
    },
    /// The repository has no work tree.
    #[error("`{path}` is a bare repository")]
    Bare {
        /// The directory that was asked for.
        path: PathBuf,
    },
    /// `HEAD` names a branch without any commit.
    #[error("`{path}` has no commit yet on `{branch}`")]
    Unborn {
        /// The work tree.
        path: PathBuf,
        /// The branch that `HEAD` names, cut and cleaned for people.
        branch: String,
    },
    /// The git directory, its common directory or the work tree lies somewhere else than it must.
    #[error("the repository at `{path}` is redirected to `{to}`")]
    Redirected {
        /// The work tree.
        path: PathBuf,
        /// Where it leads.
        to: String,
    },
    /// A file of the git directory is damaged.
    #[error("the repository at `{path}` is damaged: {detail}")]
    Corrupt {
        /// The work tree.
        path: PathBuf,
        /// What the library said.
        detail: String,
    },
    /// The repository needs a feature that this program does not have (an unknown extension, SHA-256, …).
    #[error("the repository at `{path}` needs an unsupported feature: {detail}")]
    UnsupportedExtension {
        /// The work tree.
        path: PathBuf,
        /// Which one.
        detail: String,
    },
    /// The repository belongs to another user.
    #[error("the repository at `{path}` belongs to another user")]
    WrongOwner {
        /// The work tree.
        path: PathBuf,
    },
    /// An operation of git is in progress, or was left behind.
    #[error("the repository at `{path}` is busy: {state}{}", named(lock.as_deref()))]
    Busy {
        /// The work tree.
        path: PathBuf,
        /// Which operation.
        state: BusyState,
        /// The lock of a reference, where it is known which one.
        lock: Option<PathBuf>,
    },
    /// A place that must be a plain file or directory is something else, or is too large to be sane.
    #[error("`{}` is {found}", shown(path))]
    Unsafe {
        /// The offending place.
        path: PathBuf,
        /// What was found there, readable after "is".
        found: String,
    },
    /// Reading failed.
    #[error("read `{path}`")]
    Io {
        /// The place.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn shown(path: &Path) -> String {
    clean(&path.display().to_string(), 300)
}

fn named(lock: Option<&Path>) -> String {
    lock.map_or_else(String::new, |lock| format!(" (`{}`)", shown(lock)))
}

/// What keeps a repository busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyState {
    /// A merge has not been concluded.
    Merge,
    /// A rebase or `git am` is in progress.
    Rebase,
    /// A bisect is in progress.
    Bisect,
    /// A cherry-pick is in progress.
    CherryPick,
    /// A revert is in progress.
    Revert,
    /// `index.lock` exists.
    IndexLock,
    /// A lock file of this kind exists beside a reference.
    RefLock,
}

impl std::fmt::Display for BusyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Merge => "a merge is in progress",
            Self::Rebase => "a rebase is in progress",
            Self::Bisect => "a bisect is in progress",
            Self::CherryPick => "a cherry-pick is in progress",
            Self::Revert => "a revert is in progress",
            Self::IndexLock => "`index.lock` exists",
            Self::RefLock => "a reference is locked",
        })
    }
}

/// Why a question to git, or a change, failed.
#[derive(Debug, Error)]
pub enum GitError {
    /// The repository cannot be opened.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The `git` program failed.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// Objects are missing, damaged, or refused by the consistency check.
    #[error("{what} is damaged: {detail}")]
    Corrupt {
        /// Which object, reference or directory.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// Something that was named does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// A name that cannot be a reference, a path or an identity.
    #[error("`{text}` is not a valid {what}")]
    InvalidName {
        /// What it was meant to be.
        what: &'static str,
        /// The text, cleaned for people.
        text: String,
    },
    /// A reference does not have the expected value any more; nothing was changed.
    #[error("`{name}` moved: expected {}, found {}", show(.expected.as_ref()), show(.found.as_ref()))]
    Moved {
        /// The reference.
        name: String,
        /// The value that the caller relied on; `None` means absent.
        expected: Option<CommitId>,
        /// The value that it has.
        found: Option<CommitId>,
    },
    /// Something that must be new exists already.
    #[error("{what} exists already")]
    Exists {
        /// What.
        what: String,
    },
    /// More than a bound allows.
    #[error("{what} is larger than {cap}")]
    TooLarge {
        /// What.
        what: String,
        /// The bound, in bytes or in items, as the text says.
        cap: String,
    },
    /// A path leads out of its directory, into `.git` or `.peers`, or through something that is no directory.
    #[error("refuse to touch `{path}`: {why}")]
    Unsafe {
        /// The path, cleaned for people.
        path: String,
        /// The rule.
        why: &'static str,
    },
    /// No space is left for our own files.
    #[error("no space left while writing {what}")]
    DiskFull {
        /// What was being written.
        what: String,
    },
    /// The library refused for a reason that has no case of its own.
    #[error("{what}: {}", .source.message())]
    Library {
        /// What was being done.
        what: String,
        /// The library's answer.
        #[source]
        source: git2::Error,
    },
    /// A file operation failed.
    #[error("access `{path}`")]
    Io {
        /// The place.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Why a call of the `git` program failed.
#[derive(Debug, Error)]
pub enum CliError {
    /// No `git` program was found.
    #[error("no `git` program was found")]
    Missing,
    /// The program is older than we need.
    #[error("git {found} is too old, 2.30 is needed")]
    TooOld {
        /// Its version.
        found: String,
    },
    /// It could not be started.
    #[error("start `{program}`")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It did not end in time and was killed with its whole process group.
    #[error("`git {command}` did not end within {seconds} s")]
    TimedOut {
        /// The subcommand.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// It wrote more than the output cap and was killed.
    #[error("`git {command}` wrote more than {cap} bytes")]
    OutputTooLarge {
        /// The subcommand.
        command: String,
        /// The cap in bytes.
        cap: usize,
    },
    /// It ended with an error.
    #[error("`git {command}` failed ({status}): {stderr}")]
    Failed {
        /// The subcommand.
        command: String,
        /// Exit status, for people.
        status: String,
        /// The first 2 KiB of its error output, control bytes replaced.
        stderr: String,
    },
    /// What it printed is not what it prints.
    #[error("`git {command}` printed something unexpected: {text}")]
    Unreadable {
        /// The subcommand.
        command: String,
        /// A piece of the output, cleaned.
        text: String,
    },
}

fn show(id: Option<&CommitId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.short().to_owned())
}

impl GitError {
    /// Whether what lies at `path` is not what it must be, as opposed to a system that refuses to read or write
    /// it just now.
    pub(crate) fn is_damage_at(&self, path: &std::path::Path) -> bool {
        use io::ErrorKind::{
            AlreadyExists, InvalidData, IsADirectory, NotADirectory, NotFound, UnexpectedEof,
        };
        match self {
            Self::Corrupt { .. } | Self::NotFound { .. } | Self::Exists { .. } => true,
            Self::Library { source, .. } => match source.class() {
                ErrorClass::NoMemory => false,
                ErrorClass::Os => ["No such file", "ot a directory", "s a directory"]
                    .iter()
                    .any(|told| source.message().contains(told)),
                _ => true,
            },
            Self::Io { path: at, source } => {
                let kinds =
                    [AlreadyExists, InvalidData, IsADirectory, NotADirectory, NotFound, UnexpectedEof];
                // A link where none may be has no kind of its own yet.
                let link = source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
                at.starts_with(path) && (link || kinds.contains(&source.kind()))
            }
            Self::Repo(_)
            | Self::Cli(_)
            | Self::InvalidName { .. }
            | Self::Moved { .. }
            | Self::TooLarge { .. }
            | Self::Unsafe { .. }
            | Self::DiskFull { .. } => false,
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.into(), source.into());
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Self::DiskFull { what: format!("`{}`", path.display()) };
        }
        Self::Io { path, source }
    }

    /// Sorts a library error by what it means for the caller.
    pub(crate) fn library(what: impl Into<String>, source: git2::Error) -> Self {
        let what = what.into();
        let text = source.message();
        if text.contains("No space left") || text.contains("quota exceeded") {
            return Self::DiskFull { what: format!("{what} ({})", clean(text, 300)) };
        }
        match (source.code(), source.class()) {
            (ErrorCode::HashsumMismatch, _) | (_, ErrorClass::Zlib) => {
                Self::Corrupt { what, detail: clean(text, 300) }
            }
            (ErrorCode::NotFound, ErrorClass::Odb | ErrorClass::Reference | ErrorClass::Tree) => {
                Self::NotFound { what }
            }
            (ErrorCode::Exists, _) => Self::Exists { what },
            (ErrorCode::InvalidSpec, _) => Self::InvalidName { what: "name", text: clean(&what, 120) },
            (_, ErrorClass::Odb | ErrorClass::Object | ErrorClass::Tree | ErrorClass::Indexer) => {
                Self::Corrupt { what, detail: clean(text, 300) }
            }
            _ => Self::Library { what, source },
        }
    }
}

impl RepoError {
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }
}

/// Text of unknown origin for a message: control characters replaced, at most `max` characters.
pub(crate) fn clean(text: &str, max: usize) -> String {
    let mut out: String = text
        .trim()
        .chars()
        .take(max)
        .map(|c| match c {
            '`' => '\'',
            c if c.is_control() => '?',
            c => c,
        })
        .collect();
    if text.trim().chars().nth(max).is_some() {
        out.push('…');
    }
    out
}

/// The same for bytes.
pub(crate) fn clean_bytes(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes)), 240)
}
