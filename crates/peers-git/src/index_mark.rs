//! The agents' index after a turn: what is staged there goes into the next commit, whoever makes it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use git2::{Index, IndexEntry, ObjectType, Oid};
use peers_model::{CommitId, TreeId};
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::checkout;
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::ids;
use crate::index_entries::{ASSUME, NEW, SKIP, STAGE, hidden};
use crate::objects::{self, MODE_EXEC, MODE_FILE, MODE_LINK};
use crate::repo::PeerRepo;
use crate::store::Budget;
use crate::write::{Author, graft};

/// Differences that are remembered one by one, and bytes of them. Beyond it the whole index counts as the
/// operator's.
const MAX_DIFFERENT: usize = 2_000;
const MAX_TEXT: usize = 4 << 20;
/// Staged files that are kept when nothing else has them, and how much of them.
const MAX_KEPT: usize = 2_000;
const KEEP_CAP: usize = if cfg!(test) { 1 << 10 } else { 64 << 20 };
const KEEP_TOTAL: usize = if cfg!(test) { 2 << 10 } else { 256 << 20 };
/// Of files of the work tree so much is read to see whether they hold what was staged, and for so long.
const LOOK_TOTAL: usize = 4 << 30;
pub(crate) const LOOK_TIME: Duration = Duration::from_mins(2);

/// How the index differed from the commit at some moment. Can be stored and read back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMark {
    /// Identity and stamp of the file.
    stamp: String,
    /// One text for each entry that is not as the commit has it.
    different: BTreeSet<String>,
    /// There were more than can be remembered.
    too_many: bool,
}

/// What was done about an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexSettled {
    /// Paths that were staged differently from the commit, cleaned for people, sorted.
    pub reset: Vec<String>,
    /// Paths whose content git had been told not to look at, cleaned for people.
    pub unhidden: Vec<String>,
    /// The name of a copy of staged content that is nowhere else.
    pub kept: Option<String>,
    /// Staged content that is nowhere else and that the copy lacks, as there is too much of it. It is in the
    /// agents' object store for as long as git leaves it there.
    pub left_out: Vec<LeftOut>,
}

/// Something staged of which there is no copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path, cleaned for people.
    pub path: String,
    /// The hash of its content: `git cat-file -p` shows it.
    pub id: String,
}

/// What a commit has at each path: mode and content.
type Leaves = BTreeMap<Vec<u8>, (u32, Oid)>;

impl PeerRepo {
    /// How the index differs from the tree of a commit that was imported. An index that cannot be read
    /// differs in nothing.
    ///
    /// # Errors
    /// As [`ControlDir::import`]'s trees: [`GitError::TooLarge`], [`GitError::Corrupt`].
    pub fn index_mark(&self, control: &ControlDir, tree: &TreeId) -> Result<IndexMark, GitError> {
        let stamp = self.index_stamp();
        let mut mark = IndexMark { stamp, ..IndexMark::default() };
        let Ok(index) = self.open_index_file() else { return Ok(mark) };
        let (leaves, mut bytes) = (leaves_of(control, tree)?, 0_usize);
        compare(&index, &leaves, &mut |text, _| {
            bytes = bytes.saturating_add(text.len());
            mark.different.insert(text);
            mark.too_many = mark.different.len() > MAX_DIFFERENT || bytes > MAX_TEXT;
            !mark.too_many
        });
        if mark.too_many {
            mark.different.clear();
        }
        Ok(mark)
    }

    /// Sets the index to the commit wherever it differs and did not differ in the very same way `before`.
    /// The work tree stays. What was staged and is neither in the commit nor in the work tree is kept as
    /// a copy under `name`.
    ///
    /// An index that was touched at all is written anew from its entries: what else a file can carry
    /// (trees computed earlier, lists of untracked files) would be believed by git.
    ///
    /// # Errors
    /// [`crate::RepoError::Busy`] when the index is locked, and as [`PeerRepo::index_mark`].
    pub fn settle_index(
        &self,
        control: &ControlDir,
        head: &CommitId,
        before: &IndexMark,
        (name, author): (&str, &Author),
    ) -> Result<IndexSettled, GitError> {
        let mut settled = IndexSettled::default();
        if before.too_many {
            return Ok(settled);
        }
        let tree = control.facts().tree_of(head)?;
        let Ok(index) = self.open_index_file() else { return Ok(settled) };
        let leaves = leaves_of(control, &tree)?;
        let mut wrong: BTreeSet<Vec<u8>> = BTreeSet::new();
        compare(&index, &leaves, &mut |text, path| {
            if !before.different.contains(&text) {
                wrong.insert(path.to_vec());
            }
            true
        });
        let touched = self.index_stamp() != before.stamp;
        if wrong.is_empty() && !touched {
            return Ok(settled);
        }
        self.check_writable()?;
        let _lock = self.lock_index()?;
        let mut staged = Vec::new();
        let mut keep = Vec::new();
        let written = self.index_seconds();
        let mut right: HashMap<Vec<u8>, IndexEntry> = HashMap::new();
        for entry in index.iter() {
            if !wrong.contains(&entry.path) {
                keep.push(unracy(entry, written));
                continue;
            }
            let as_committed = leaves.get(&entry.path) == Some(&(entry.mode, entry.id));
            if as_committed && stage(&entry) == 0 && !is_new(&entry) {
                settled.unhidden.push(clean_bytes(&entry.path));
                right.insert(entry.path.clone(), entry);
            } else {
                staged.push(entry);
            }
        }
        for path in &wrong {
            let there = right.remove(path);
            if there.is_none() {
                settled.reset.push(clean_bytes(path));
            }
            let Some((mode, id)) = leaves.get(path) else { continue };
            keep.push(match there {
                Some(entry) => IndexEntry { flags: 0, flags_extended: 0, ..unracy(entry, written) },
                None => checkout::index_entry(path.as_slice(), *mode, *id, None),
            });
        }
        (settled.kept, settled.left_out) =
            self.keep_staged(control, head, (&staged, &leaves), (name, author))?;
        self.put_index(keep)?;
        Ok(settled)
    }

    /// A copy of staged content that is nowhere else, and what is not in it.
    fn keep_staged(
        &self,
        control: &ControlDir,
        head: &CommitId,
        (staged, leaves): (&[IndexEntry], &Leaves),
        (name, author): (&str, &Author),
    ) -> Result<(Option<String>, Vec<LeftOut>), GitError> {
        let (ours, theirs) = (objects::odb(&control.repo)?, objects::odb(&self.repo)?);
        let head_tree = objects::commit_tree(&control.repo, head)?;
        let (mut tree, mut kept, mut total) = (head_tree, 0_usize, 0_usize);
        let mut left_out = Vec::new();
        let mut looks = Budget::new(LOOK_TOTAL, control.look_time);
        for entry in staged {
            if leaves.get(&entry.path).is_some_and(|(_, id)| *id == entry.id) {
                continue;
            }
            let mut leave =
                || left_out.push(LeftOut { path: clean_bytes(&entry.path), id: entry.id.to_string() });
            let plain = matches!(entry.mode, MODE_FILE | MODE_EXEC | MODE_LINK);
            let sane = !entry.path.split(|b| *b == b'/').any(objects::forbidden_name);
            if !plain {
                leave();
                continue;
            }
            // Each one that is not there makes the library look at all packs again.
            if looks.is_late() {
                leave();
                continue;
            }
            // What cannot be read cannot be committed either.
            let Ok((size, ObjectType::Blob)) = theirs.read_header(entry.id) else { continue };
            if sane && self.work_tree_has(&entry.path, (entry.id, size), &mut looks) {
                continue;
            }
            let fits = size <= KEEP_CAP && total.saturating_add(size) <= KEEP_TOTAL;
            if !sane || !fits || kept >= MAX_KEPT {
                leave();
                continue;
            }
            let Ok(bytes) = blob::read_capped(&theirs, entry.id, &entry.path, KEEP_CAP) else { continue };
            total = total.saturating_add(bytes.len());
            kept += 1;
            let fail = |source| GitError::library("keep what was staged", source);
            let id = ours.write(ObjectType::Blob, &bytes).map_err(fail)?;
            let mut path = entry.path.clone();
            if stage(entry) != 0 {
                // The sides of a conflict beside each other.
                path.extend_from_slice(format!(".stage-{}", stage(entry) >> 12).as_bytes());
            }
            tree = graft(&ours, Some(tree), &path, Some((entry.mode, id)))?.unwrap_or(tree);
        }
        if tree == head_tree {
            return Ok((None, left_out));
        }
        let message = format!("salvage: index on {}\n", head.short());
        let commit = control.commit_tree(tree, &[ids::commit_oid(head)?], &message, author)?;
        Ok((Some(control.keep(name, &commit, author)?), left_out))
    }

    /// Whether the file in the work tree has exactly this content. Conversions are not looked at: then it
    /// is kept once more than needed.
    fn work_tree_has(&self, path: &[u8], (id, size): (Oid, usize), looks: &mut Budget) -> bool {
        let mut open = || -> Option<std::fs::File> {
            let mut dir = files::open_dir(self.work_dir()).ok()?;
            let mut parts: Vec<&[u8]> = path.split(|b| *b == b'/').collect();
            let name = parts.pop()?;
            for part in parts {
                dir = files::open_dir_at(&dir, part).ok()?;
            }
            let (file, stat) = files::open_regular(&dir, name).ok()?;
            let fits = usize::try_from(files::size(&stat)) == Ok(size) && looks.take(size);
            fits.then_some(file)
        };
        // Piece by piece: it may be larger than memory.
        open().is_some_and(|file| files::hash_blob(&file).is_ok_and(|found| found == id))
    }

    fn index_stamp(&self) -> String {
        let stat = files::lstat(&self.index_path()).ok().flatten();
        stat.map_or_else(String::new, |s| {
            let times = (s.st_mtime, s.st_mtime_nsec, s.st_ctime, s.st_ctime_nsec);
            format!("{} {} {times:?}", s.st_ino, files::size(&s))
        })
    }

    /// When the index was written, in seconds.
    fn index_seconds(&self) -> i64 {
        let stat = files::lstat(&self.index_path()).ok().flatten();
        stat.map_or(0, |stat| stat.st_mtime)
    }
}

fn leaves_of(control: &ControlDir, tree: &TreeId) -> Result<Leaves, GitError> {
    let odb = objects::odb(&control.repo)?;
    let tree = objects::require_tree(&control.repo, tree)?;
    Ok(blob::leaves(&odb, tree)?.into_iter().map(|leaf| (leaf.path, (leaf.mode, leaf.id))).collect())
}

/// Hands over each place where the index and the commit differ, as a text and its path, for as long as more are
/// wanted. Entries are looked at one by one: there may be many more of them than the commit has files.
fn compare(index: &Index, leaves: &Leaves, each: &mut dyn FnMut(String, &[u8]) -> bool) {
    let mut absent: HashSet<&[u8]> = leaves.keys().map(Vec::as_slice).collect();
    for entry in index.iter() {
        absent.remove(entry.path.as_slice());
        let same = leaves.get(&entry.path) == Some(&(entry.mode, entry.id));
        if !same || stage(&entry) != 0 || hidden(&entry) != (0, 0) || is_new(&entry) {
            let (flags, more) = (entry.flags & (ASSUME | STAGE), entry.flags_extended & (SKIP | NEW));
            let path = ids::hex(&entry.path);
            let text = format!("{:o} {} {flags:x} {more:x} {path}", entry.mode, entry.id);
            if !each(text, &entry.path) {
                return;
            }
        }
    }
    for path in leaves.keys().filter(|path| absent.contains(path.as_slice())) {
        if !each(format!("absent {}", ids::hex(path)), path) {
            return;
        }
    }
}

fn stage(entry: &IndexEntry) -> u16 {
    entry.flags & STAGE
}

fn is_new(entry: &IndexEntry) -> bool {
    entry.flags_extended & NEW != 0
}

/// An entry whose file may have changed after it was looked at within the tick of a clock: git is made to
/// look again, as the time of the new index would no longer tell.
fn unracy(entry: IndexEntry, written: i64) -> IndexEntry {
    let racy = i64::from(entry.mtime.seconds()) >= written;
    IndexEntry { file_size: if racy { 0 } else { entry.file_size }, ..entry }
}
