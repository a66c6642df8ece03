//! Guarding what the operator's own git would obey: configuration, hooks, attributes, redirections.
//!
//! Where mounts cannot protect these files, they are compared before and after each tick and put back.
//! The file part works on paths alone: a tampered repository often cannot even be opened.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use peers_model::CommitId;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::aside;
use crate::error::{GitError, clean_bytes};
use crate::files::{self, Small};
use crate::ids;
use crate::place::{Content, Place};
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::Author;

/// A guarded file's bytes are kept up to here; a larger one can be compared but not restored.
const KEEP_CAP: usize = 1024 * 1024;
/// Hooks looked at.
const MAX_HOOKS: usize = 500;
/// Guarded references.
const MAX_REFS: usize = 50_000;

/// Files guarded in the git directory of the work tree.
const FILES: &[&str] = &["config.worktree", "commondir", "gitdir"];
/// Files guarded in the common git directory.
const COMMON_FILES: &[&str] = &[
    "config",
    "config.worktree",
    "info/attributes",
    "info/grafts",
    "shallow",
    "commondir",
    "objects/info/alternates",
];

/// The state of everything guarded. Can be stored and read back, to survive a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardSnapshot {
    work_dir: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// Device and inode of both directories.
    places: [(u64, u64); 2],
    files: BTreeMap<String, FileState>,
    patterns: Vec<String>,
    refs: BTreeMap<String, CommitId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileState {
    Absent,
    Directory,
    File {
        sha256: String,
        executable: bool,
        #[serde(with = "hex_bytes")]
        bytes: Option<Vec<u8>>,
    },
    Link {
        target: String,
    },
    Other {
        what: String,
    },
}

/// Something guarded that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardChange {
    /// What.
    pub item: GuardItem,
    /// How.
    pub how: GuardHow,
    /// It can be put back by `restore_files` or `restore_refs`.
    pub restorable: bool,
}

/// What is guarded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardItem {
    /// The git directory itself was replaced.
    GitDir,
    /// A file, relative to the git directory.
    File(String),
    /// `.gitmodules` in the work tree. It belongs to the history and is not put back.
    Modules,
    /// A reference.
    Ref(String),
}

/// How it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardHow {
    /// It was not there before.
    Added,
    /// It is gone.
    Removed,
    /// It is different.
    Changed,
}

impl GuardHow {
    fn of<T: PartialEq>(old: Option<T>, new: Option<T>) -> Option<Self> {
        match (old, new) {
            (old, new) if old == new => None,
            (None, _) => Some(Self::Added),
            (_, None) => Some(Self::Removed),
            _ => Some(Self::Changed),
        }
    }
}

impl GuardSnapshot {
    /// Takes the state now. `refs` are full names, or prefixes ending in `*`, of references that nobody
    /// but us may move; `refs/replace/*` is always among them.
    ///
    /// # Errors
    /// [`GitError::Io`], [`GitError::TooLarge`] beyond 50 000 guarded references.
    pub fn take(repo: &PeerRepo, refs: &[String]) -> Result<Self, GitError> {
        let mut patterns = refs.to_vec();
        patterns.push("refs/replace/*".to_owned());
        let (git_dir, common_dir) = (repo.git_dir().to_owned(), repo.common_dir().to_owned());
        Ok(Self {
            places: [identity(&git_dir)?, identity(&common_dir)?],
            files: read_files(repo.work_dir(), &git_dir, &common_dir)?,
            refs: refs::matching(&repo.repo, &patterns, MAX_REFS)?.into_iter().collect(),
            work_dir: repo.work_dir().to_owned(),
            git_dir,
            common_dir,
            patterns,
        })
    }

    /// Takes the directories that are there now for those that were: from here on only what is in them
    /// is compared. For a snapshot of an earlier process, since then the operator may have put the
    /// repository back from a copy, and some file systems are numbered anew at each boot.
    ///
    /// # Errors
    /// [`GitError::NotFound`] when one of them is no directory.
    pub fn adopt_places(&mut self) -> Result<(), GitError> {
        self.places = [identity(&self.git_dir)?, identity(&self.common_dir)?];
        Ok(())
    }

    /// Whether the git directory is gone, or another one lies in its place.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        [identity(&self.git_dir).ok(), identity(&self.common_dir).ok()] != self.places.map(Some)
    }

    /// What differs on disk now, the references aside. Opens nothing as a repository.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn compare_files(&self) -> Result<Vec<GuardChange>, GitError> {
        if self.is_replaced() {
            return Ok(vec![GuardChange {
                item: GuardItem::GitDir,
                how: GuardHow::Changed,
                restorable: false,
            }]);
        }
        let now = read_files(&self.work_dir, &self.git_dir, &self.common_dir)?;
        let names: BTreeSet<&String> = self.files.keys().chain(now.keys()).collect();
        let is_there = |state: &&FileState| **state != FileState::Absent;
        Ok(names
            .into_iter()
            .filter_map(|name| {
                let old = self.files.get(name).filter(is_there);
                let how = GuardHow::of(old, now.get(name).filter(is_there))?;
                let item = if name == MODULES { GuardItem::Modules } else { GuardItem::File(name.clone()) };
                let restorable = name != MODULES && old.is_none_or(FileState::restorable);
                Some(GuardChange { item, how, restorable })
            })
            .collect())
    }

    /// What differs among the guarded references.
    ///
    /// # Errors
    /// As [`GuardSnapshot::take`].
    pub fn compare_refs(&self, repo: &PeerRepo) -> Result<Vec<GuardChange>, GitError> {
        let now: BTreeMap<String, CommitId> =
            refs::matching(&repo.repo, &self.patterns, MAX_REFS)?.into_iter().collect();
        let names: BTreeSet<&String> = self.refs.keys().chain(now.keys()).collect();
        Ok(names
            .into_iter()
            .filter_map(|name| {
                let how = GuardHow::of(self.refs.get(name), now.get(name))?;
                Some(GuardChange { item: GuardItem::Ref(name.clone()), how, restorable: true })
            })
            .collect())
    }

    /// What a guarded file is now: its bytes, up to 1 MiB, or where a link leads. Nothing for what is no file.
    #[must_use]
    pub fn current(&self, name: &str) -> Option<Vec<u8>> {
        let (dir, path) = self.place_of(name);
        let path = dir.join(path);
        match files::read_small(&path, u64::try_from(KEEP_CAP).unwrap_or(u64::MAX)) {
            Ok(Small::Bytes(bytes)) => Some(bytes),
            _ => std::fs::read_link(&path).ok().map(|target| target.into_os_string().into_encoded_bytes()),
        }
    }

    /// Moves a guarded file as it is now to where git does not look: for what cannot be copied. Returns where it is,
    /// from the git directory; nothing when nothing is there.
    ///
    /// # Errors
    /// [`GitError::Io`] when it cannot be moved.
    pub fn keep_aside(&self, name: &str, label: &str) -> Result<Option<String>, GitError> {
        let (dir, shown) = self.place_of(name);
        aside::keep(&self.common_dir, &dir.join(shown), &Path::new(".git").join(shown), label)
    }

    /// The directory that a file lies in, and its path there.
    fn place_of<'a>(&'a self, name: &'a str) -> (&'a Path, &'a str) {
        match name.strip_prefix(OWN) {
            Some(path) => (&self.git_dir, path),
            None => (&self.common_dir, name),
        }
    }

    /// Whether the repository can be opened now.
    #[must_use]
    pub fn can_be_opened(&self) -> bool {
        PeerRepo::open(&self.work_dir).is_ok()
    }

    /// Puts changed files back from the kept bytes. Returns the changes that could not be undone.
    ///
    /// # Errors
    /// [`GitError::Io`], [`GitError::DiskFull`].
    pub fn restore_files(&self, changes: &[GuardChange]) -> Result<Vec<GuardChange>, GitError> {
        let mut left = Vec::new();
        let mut places: BTreeMap<&Path, Place> = BTreeMap::new();
        // `hooks` comes before what is in it.
        let mut ordered: Vec<&GuardChange> = changes.iter().collect();
        ordered.sort_by(|a, b| a.item.cmp(&b.item));
        for change in ordered {
            let GuardItem::File(name) = &change.item else {
                if !matches!(change.item, GuardItem::Ref(_)) {
                    left.push(change.clone());
                }
                continue;
            };
            let (dir, path) = self.place_of(name);
            let place = match places.entry(dir) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => entry.insert(Place::ours(dir)?),
            };
            if !self.restore(place, name, path)? {
                left.push(change.clone());
            }
        }
        Ok(left)
    }

    fn restore(&self, place: &mut Place, name: &str, path: &str) -> Result<bool, GitError> {
        let state = self.files.get(name).unwrap_or(&FileState::Absent);
        let content = match state {
            // Something else is there, or nothing. An empty one will do: its files follow.
            FileState::Directory => Content::Dir,
            FileState::File { bytes: Some(bytes), executable, .. } => {
                Content::File { bytes, executable: *executable }
            }
            FileState::Link { target } => Content::Link { target: target.as_bytes() },
            FileState::Absent => return place.remove_all(path.as_bytes()).map(|()| true),
            FileState::File { bytes: None, .. } | FileState::Other { .. } => return Ok(false),
        };
        place.remove_all(path.as_bytes())?;
        place.write(path.as_bytes(), &content).map(|done| done.is_ok())
    }

    /// Puts changed references back. Returns the changes that could not be undone (the old commit is gone).
    ///
    /// # Errors
    /// [`GitError::Repo`] when the git directory is unsafe to write to.
    pub fn restore_refs(
        &self,
        repo: &PeerRepo,
        changes: &[GuardChange],
        author: &Author,
    ) -> Result<Vec<GuardChange>, GitError> {
        repo.check_writable()?;
        let who = author.signature()?;
        let mut left = Vec::new();
        for change in changes {
            let GuardItem::Ref(name) = &change.item else { continue };
            let found = repo.repo.find_reference(name).ok().and_then(|found| found.target());
            let wanted = self.refs.get(name).map(ids::commit_oid).transpose()?;
            let result = refs::compare_and_swap(&repo.repo, name, found, wanted, &who, "peers: restored");
            if result.is_err() {
                left.push(change.clone());
            }
        }
        Ok(left)
    }
}

impl FileState {
    fn restorable(&self) -> bool {
        match self {
            Self::Absent | Self::Directory | Self::File { bytes: Some(_), .. } | Self::Link { .. } => true,
            Self::File { bytes: None, .. } | Self::Other { .. } => false,
        }
    }
}

/// Marks the names of files in the work tree's own git directory, where it differs from the common one.
const OWN: &str = "worktree:";
/// The name of `.gitmodules`, which lies in neither.
const MODULES: &str = "work tree:.gitmodules";

fn read_files(
    work_dir: &Path,
    git_dir: &Path,
    common_dir: &Path,
) -> Result<BTreeMap<String, FileState>, GitError> {
    let mut out = BTreeMap::new();
    for name in COMMON_FILES {
        out.insert((*name).to_owned(), state(&common_dir.join(name))?);
    }
    if git_dir != common_dir {
        for name in FILES {
            out.insert(format!("{OWN}{name}"), state(&git_dir.join(name))?);
        }
    }
    out.insert(MODULES.to_owned(), state(&work_dir.join(".gitmodules"))?);
    let hooks = common_dir.join("hooks");
    let found = state(&hooks)?;
    if found == FileState::Directory {
        let fail = |source: io::Error| GitError::io(&hooks, source);
        let dir = files::open_dir(&hooks).map_err(fail)?;
        let listed = files::list(&dir, MAX_HOOKS).map_err(fail)?.ok_or_else(|| GitError::TooLarge {
            what: "the hooks directory".to_owned(),
            cap: format!("{MAX_HOOKS} files"),
        })?;
        for (name, _) in listed {
            let sample = is_sample(&name);
            // A name that is no text is no hook of git.
            let Ok(name) = String::from_utf8(name) else { continue };
            if !sample {
                out.insert(format!("hooks/{name}"), state(&hooks.join(&name))?);
            }
        }
    }
    // An empty hooks directory and none are the same thing.
    if !matches!(found, FileState::Absent | FileState::Directory) {
        out.insert("hooks".to_owned(), found);
    }
    Ok(out)
}

fn is_sample(name: &[u8]) -> bool {
    name.ends_with(b".sample")
}

fn state(path: &Path) -> Result<FileState, GitError> {
    let fail = |source: io::Error| GitError::io(path, source);
    // A parent that is a symlink or missing: for git the file may exist, for us it is something else.
    let parent = path.parent().map(files::lstat).transpose().map_err(fail)?.flatten();
    if parent.is_some_and(|stat| files::kind(&stat) == FileType::Symlink) {
        return Ok(FileState::Other { what: "below a symlink".to_owned() });
    }
    let Some(stat) = files::lstat(path).map_err(fail)? else { return Ok(FileState::Absent) };
    Ok(match files::kind(&stat) {
        FileType::Directory => FileState::Directory,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(rustix::fs::CWD, path, Vec::new())
                .map_err(|error| fail(error.into()))?;
            match target.into_string() {
                Ok(target) => FileState::Link { target },
                Err(_) => FileState::Other { what: "a symlink to a name that is not UTF-8".to_owned() },
            }
        }
        FileType::RegularFile => {
            let cap = u64::try_from(KEEP_CAP).unwrap_or(u64::MAX);
            match files::read_small(path, cap).map_err(fail)? {
                Small::Bytes(bytes) => FileState::File {
                    sha256: ids::hex(&Sha256::digest(&bytes)),
                    executable: stat.st_mode & 0o100 != 0,
                    bytes: Some(bytes),
                },
                Small::TooLarge => FileState::File {
                    sha256: format!(
                        "size {} changed {:?}",
                        files::size(&stat),
                        (stat.st_ctime, stat.st_ctime_nsec)
                    ),
                    executable: stat.st_mode & 0o100 != 0,
                    bytes: None,
                },
                Small::Absent => FileState::Absent,
                Small::Special(what) => FileState::Other { what: what.to_owned() },
            }
        }
        other => FileState::Other { what: files::kind_text(other).to_owned() },
    })
}

fn identity(path: &Path) -> Result<(u64, u64), GitError> {
    match files::lstat(path).map_err(|source| GitError::io(path, source))? {
        Some(stat) if files::kind(&stat) == FileType::Directory => Ok(files::device_and_inode(&stat)),
        _ => Err(GitError::NotFound {
            what: format!("directory `{}`", clean_bytes(path.to_string_lossy().as_bytes())),
        }),
    }
}

/// Kept bytes as hex text.
mod hex_bytes {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, out: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => out.serialize_some(&crate::ids::hex(bytes)),
            None => out.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(input)? else { return Ok(None) };
        let digits = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
        });
        digits.collect::<Option<Vec<u8>>>().map(Some).ok_or_else(|| D::Error::custom("not hex"))
    }
}
