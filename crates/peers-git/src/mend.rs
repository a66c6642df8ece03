//! Mending a git directory that cannot be opened any more, by paths alone.
//!
//! Asked for after a turn, and only about places that were in order before it: the repository could be
//! opened then. So whatever is wrong came in the turn.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use peers_model::CommitId;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RawMode};

use crate::aside;
use crate::crowd::Thinning;
use crate::error::{GitError, clean};
use crate::files::{self, Small};
use crate::guard::{GuardSnapshot, MAX_HOOKS};
use crate::hygiene::{self, Fault};
use crate::ids;
use crate::ref_list::hash_at;
use crate::refs;

/// Most places that are mended at once, and how often that is done.
const MAX_MENDED: usize = if cfg!(test) { 10 } else { 10_000 };
const MAX_ROUNDS: usize = 60;
/// Entries below directories that nobody may look into which are looked at for more of the kind.
const MAX_OPENED: usize = 4_000_000;
/// Names down to here (`logs/refs/heads`) are those of git's own layout.
const STRUCTURE: usize = 3;
/// Packed references are read up to here.
const PACKED_CAP: u64 = 128 << 20;

/// Something that was taken out of the git directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// Its name there, cleaned for people.
    pub name: String,
    /// What it was.
    pub what: String,
    /// Where it is now, from the git directory; nothing when there was nothing in it to keep.
    pub kept: Option<String>,
    /// It is where it was, and may be read again.
    pub opened: bool,
}

impl GuardSnapshot {
    /// Takes away what must be a plain file or directory and is something else, is larger than sane, or lies
    /// too deep. What has content (files, directories) is moved aside as [`PeerRepo::move_aside`] does, with
    /// this label; the rest (FIFO, link, device) goes. What its owner may not read is made readable. Of crowded directories that is moved which is newer
    /// than this snapshot, where the time of that is known. The object store itself stays, and so does what was crowded before: a repository
    /// with such a place is refused when it is opened. Returns what was taken away.
    ///
    /// [`PeerRepo::move_aside`]: crate::PeerRepo::move_aside
    ///
    /// # Errors
    /// [`GitError::Repo`] when the directories cannot be looked at, [`GitError::Io`].
    pub fn clear_unsafe(&self, label: &str) -> Result<Vec<Cleared>, GitError> {
        let mut gone = self.open_up();
        let mut shut = false;
        // What a single turn may well make counts as a crowd only when nothing larger is new.
        let mut least = Some(hygiene::MAX_REFS / 100);
        for _ in 0..MAX_ROUNDS {
            let found = match hygiene::offenders(&self.git_dir, &self.common_dir, MAX_MENDED) {
                Err(_) if !std::mem::replace(&mut shut, true) => {
                    self.open_up_all(&mut gone);
                    continue;
                }
                found => found?,
            };
            if found.is_empty() {
                break;
            }
            let before = gone.len();
            let (crowded, wrong): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(_, fault)| *fault == Fault::Crowded);
            for (path, fault) in wrong {
                self.clear(path, fault, label, &mut gone)?;
            }
            if gone.len() > before {
                continue;
            }
            let Some(crowd) = least else { break };
            let tops: BTreeSet<PathBuf> =
                crowded.into_iter().map(|(path, _)| self.crowded_top(path)).collect();
            let aside = Thinning { snapshot: self, label, least: crowd };
            for top in tops {
                aside.thin(&top, 0, &mut gone)?;
            }
            if gone.len() == before {
                least = (crowd > 0).then_some(0);
            }
        }
        for dir in ["refs", "refs/heads"] {
            let path = self.common_dir.join(dir);
            if matches!(files::lstat(&path), Ok(None)) {
                files::ensure_dir(&path)?;
            }
        }
        Ok(gone)
    }

    /// Lets the owner read again what is guarded or looked at: a mode is enough to keep everything from being
    /// put back. Returns what that was needed for. What is not ours stays as it is.
    #[must_use]
    pub fn open_up(&self) -> Vec<Cleared> {
        let dirs = ["", "refs", "logs", "info", "hooks", "objects", "objects/info", "objects/pack"];
        let dirs = dirs.iter().flat_map(|dir| [self.git_dir.join(dir), self.common_dir.join(dir)]);
        let mut opened: Vec<Cleared> = dirs.filter_map(|path| self.open_one(&path, Mode::RWXU)).collect();
        let hooks =
            files::open_dir(&self.common_dir.join("hooks")).and_then(|dir| files::list(&dir, MAX_HOOKS));
        let hooks = hooks.ok().flatten().unwrap_or_default();
        let hooks =
            hooks.into_iter().map(|(name, _)| self.common_dir.join("hooks").join(OsStr::from_bytes(&name)));
        let files = hygiene::files_of(&self.git_dir, &self.common_dir).into_iter().chain(hooks);
        opened.extend(files.filter_map(|path| self.open_one(&path, Mode::RUSR)));
        opened
    }

    fn open_one(&self, path: &Path, wanted: Mode) -> Option<Cleared> {
        let inner = path.strip_prefix(&self.git_dir).or_else(|_| path.strip_prefix(&self.common_dir)).ok()?;
        let above = inner.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).count();
        let is_dir = |dir: &Path| matches!(files::lstat(dir), Ok(Some(stat)) if files::kind(&stat) == FileType::Directory);
        // Below a link there is something else.
        if !path.ancestors().skip(1).take(above).all(is_dir) {
            return None;
        }
        let stat = files::lstat(path).ok()??;
        let mode = Mode::from_raw_mode(RawMode::from(stat.st_mode));
        if files::kind(&stat) == FileType::Symlink || mode.contains(wanted) {
            return None;
        }
        rustix::fs::chmodat(CWD, path, mode | wanted, AtFlags::empty()).ok()?;
        let (name, what) =
            (clean(&self.shown(path).to_string_lossy(), 200), "closed to its owner".to_owned());
        Some(Cleared { name, what, kept: None, opened: true })
    }

    /// The same for every directory that is looked at.
    fn open_up_all(&self, gone: &mut Vec<Cleared>) {
        let tops = ["refs", "logs", "objects", "info"];
        let mut todo: Vec<PathBuf> = [&self.git_dir, &self.common_dir]
            .into_iter()
            .flat_map(|dir| tops.map(|top| dir.join(top)))
            .collect();
        let mut left = MAX_OPENED;
        while let Some(path) = todo.pop() {
            gone.extend(self.open_one(&path, Mode::RWXU));
            let Ok(dir) = files::open_dir(&path) else { continue };
            let Ok((listed, _)) = files::list_some(&dir, left) else { continue };
            left = left.saturating_sub(listed.len());
            let inner = listed.into_iter().filter(|(_, kind)| *kind == FileType::Directory);
            todo.extend(inner.map(|(name, _)| path.join(OsStr::from_bytes(&name))));
        }
    }

    /// Takes away a single place.
    fn clear(
        &self,
        path: PathBuf,
        fault: Fault,
        label: &str,
        gone: &mut Vec<Cleared>,
    ) -> Result<(), GitError> {
        if !self.may_go(&path) {
            return Ok(());
        }
        let path = if fault == Fault::Deep { self.chain_top(path) } else { path };
        let fail = |source| GitError::io(&path, source);
        let Some(stat) = files::lstat(&path).map_err(fail)? else { return Ok(()) };
        let shown = self.shown(&path);
        let kept = if matches!(files::kind(&stat), FileType::RegularFile | FileType::Directory) {
            aside::keep(&self.common_dir, &path, shown, label)?
        } else {
            files::remove_tree(&path)?;
            None
        };
        gone.push(Cleared {
            name: clean(&shown.to_string_lossy(), 200),
            what: fault.to_string(),
            kept,
            opened: false,
        });
        Ok(())
    }

    /// The highest directory above that holds nothing but the way to this one.
    fn chain_top(&self, path: PathBuf) -> PathBuf {
        let only_child = |dir: &Path| {
            let found = files::open_dir(dir).and_then(|dir| files::list(&dir, 1));
            matches!(found, Ok(Some(_))) && self.shown(dir).components().count() > STRUCTURE
        };
        let mut at = path;
        while let Some(above) = at.parent().filter(|above| only_child(above)) {
            at = above.to_owned();
        }
        at
    }

    /// Where a crowd is looked for: among all references, or all logs, whichever directory was the last straw.
    fn crowded_top(&self, path: PathBuf) -> PathBuf {
        let tops = [&self.git_dir, &self.common_dir]
            .into_iter()
            .flat_map(|dir| [dir.join("refs"), dir.join("logs")]);
        tops.into_iter().find(|top| path.starts_with(top)).unwrap_or(path)
    }

    /// The name of a place in the git directory.
    pub(crate) fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.common_dir).unwrap_or(path)
    }

    /// Not the object store.
    fn may_go(&self, path: &Path) -> bool {
        let Ok(inner) = path.strip_prefix(&self.common_dir).or_else(|_| path.strip_prefix(&self.git_dir))
        else {
            return false;
        };
        inner.components().count() > usize::from(inner.starts_with("objects"))
    }

    /// Writes `HEAD` again when it is gone or not of git's making: to the branch, or detached at `at`.
    /// Returns whether that was needed.
    ///
    /// # Errors
    /// [`GitError::Io`], [`GitError::InvalidName`].
    pub fn mend_head_file(&self, branch: Option<&str>, at: &CommitId) -> Result<bool, GitError> {
        let path = self.git_dir.join("HEAD");
        let found = files::read_small(&path, 64 * 1024).map_err(|source| GitError::io(&path, source))?;
        let sound = match &found {
            Small::Bytes(bytes) => {
                let text = bytes.trim_ascii_end();
                let name = text.strip_prefix(b"ref: ").and_then(|name| std::str::from_utf8(name).ok());
                match name {
                    Some(name) => refs::check_name(name.trim_ascii_start()).is_ok(),
                    None => text.len() == 40 && hash_at(text, 0).is_some(),
                }
            }
            Small::Absent | Small::TooLarge | Small::Special(_) => false,
        };
        if sound {
            return Ok(false);
        }
        let text = match branch {
            Some(branch) => format!("ref: {}\n", refs::branch_name(branch)?),
            None => format!("{}\n", ids::commit_oid(at)?),
        };
        if !matches!(found, Small::Absent | Small::Bytes(_)) {
            files::remove_tree(&path)?;
        }
        files::replace(&path, text.as_bytes())?;
        Ok(true)
    }

    /// Leaves out of the packed references what is no line of theirs: with one such line none of them can
    /// be read. Returns how many lines went.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn mend_packed_refs(&self) -> Result<usize, GitError> {
        let path: PathBuf = self.common_dir.join("packed-refs");
        let Small::Bytes(bytes) =
            files::read_small(&path, PACKED_CAP).map_err(|source| GitError::io(&path, source))?
        else {
            return Ok(0);
        };
        let (mut kept, mut bad, mut of_reference) = (Vec::new(), 0, false);
        for (nth, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            // What a tag leads to stands right behind the tag, and the header before everything.
            let in_place = match line.first() {
                Some(b'^') => of_reference,
                Some(b'#') => nth == 0,
                _ => true,
            };
            let good = in_place && packed_line(line);
            of_reference = good && !line.starts_with(b"^") && !line.starts_with(b"#");
            if good {
                kept.push(line);
            } else {
                bad += 1;
            }
        }
        if bad > 0 {
            // Without its header the file is taken as unsorted, with nothing said about tags.
            let kept = kept.into_iter().filter(|line| !line.starts_with(b"#"));
            files::replace(&path, &kept.flatten().copied().collect::<Vec<u8>>())?;
        }
        Ok(bad)
    }
}

fn packed_line(line: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b"\n") else { return false };
    if let Some(header) = line.strip_prefix(b"#") {
        return header.starts_with(b" pack-refs with:");
    }
    if let Some(peeled) = line.strip_prefix(b"^") {
        return peeled.len() == 40 && hash_at(peeled, 0).is_some();
    }
    let name = line.get(41..).and_then(|name| std::str::from_utf8(name).ok());
    hash_at(line, 0).is_some()
        && line.get(40) == Some(&b' ')
        && name.is_some_and(git2::Reference::is_valid_name)
}
