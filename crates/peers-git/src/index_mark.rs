//! The agents' index after a turn: what is staged there goes into the next commit, whoever makes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use git2::{Index, IndexEntry, ObjectType, Oid};
use peers_model::{CommitId, TreeId};
use serde::{Deserialize, Serialize};

use crate::blob::{self, Leaf};
use crate::checkout;
use crate::control::ControlDir;
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::ids;
use crate::objects::{self, MODE_EXEC, MODE_FILE, MODE_LINK};
use crate::repo::PeerRepo;
use crate::store::Budget;
use crate::write::{Author, graft};

/// Differences that are remembered one by one. Beyond it the whole index counts as the operator's.
const MAX_DIFFERENT: usize = 2_000;
/// Staged files that are kept when nothing else has them, and how much of them.
const MAX_KEPT: usize = 2_000;
const KEEP_CAP: usize = if cfg!(test) { 1 << 10 } else { 64 << 20 };
const KEEP_TOTAL: usize = if cfg!(test) { 2 << 10 } else { 256 << 20 };
/// Of files of the work tree so much is read to see whether they hold what was staged, and for so long.
const LOOK_TOTAL: usize = 4 << 30;
const LOOK_TIME: Duration = Duration::from_mins(2);

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

/// What the index and the commit have at different places.
struct Compared {
    entries: Vec<IndexEntry>,
    leaves: BTreeMap<Vec<u8>, Leaf>,
    /// Text of the difference, path.
    different: BTreeMap<String, Vec<u8>>,
}

impl PeerRepo {
    /// How the index differs from the tree of a commit that was imported. An index that cannot be read
    /// differs in nothing.
    ///
    /// # Errors
    /// As [`ControlDir::import`]'s trees: [`GitError::TooLarge`], [`GitError::Corrupt`].
    pub fn index_mark(&self, control: &ControlDir, tree: &TreeId) -> Result<IndexMark, GitError> {
        let stamp = self.index_stamp();
        let Some(compared) = self.compare_index(control, tree)? else {
            return Ok(IndexMark { stamp, ..IndexMark::default() });
        };
        let too_many = compared.different.len() > MAX_DIFFERENT;
        let different = if too_many { BTreeSet::new() } else { compared.different.into_keys().collect() };
        Ok(IndexMark { stamp, different, too_many })
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
        let Some(Compared { entries, leaves, different }) = self.compare_index(control, &tree)? else {
            return Ok(settled);
        };
        let wrong: BTreeSet<&Vec<u8>> = different
            .iter()
            .filter(|(text, _)| !before.different.contains(*text))
            .map(|(_, path)| path)
            .collect();
        let touched = self.index_stamp() != before.stamp;
        if wrong.is_empty() && !touched {
            return Ok(settled);
        }
        self.check_writable()?;
        self.check_index_free()?;
        let mut staged = Vec::new();
        let mut keep = Vec::with_capacity(entries.len());
        let written = self.index_seconds();
        let mut right: HashMap<&[u8], &IndexEntry> = HashMap::new();
        for entry in &entries {
            if !wrong.contains(&entry.path) {
                keep.push(unracy(entry, written));
                continue;
            }
            let leaf = leaves.get(&entry.path);
            let as_committed = leaf.is_some_and(|leaf| (leaf.mode, leaf.id) == (entry.mode, entry.id));
            if as_committed && stage(entry) == 0 && !is_new(entry) {
                settled.unhidden.push(clean_bytes(&entry.path));
                right.insert(&entry.path, entry);
            } else {
                staged.push(entry);
            }
        }
        for path in &wrong {
            let Some(leaf) = leaves.get(*path) else { continue };
            keep.push(match right.get(path.as_slice()) {
                Some(entry) => IndexEntry { flags: 0, flags_extended: 0, ..unracy(entry, written) },
                None => checkout::index_entry(&leaf.path, leaf.mode, leaf.id, None),
            });
        }
        settled.reset =
            wrong.iter().filter(|p| !right.contains_key(p.as_slice())).map(|p| clean_bytes(p)).collect();
        (settled.kept, settled.left_out) =
            self.keep_staged(control, head, (&staged, &leaves), (name, author))?;
        let fail = |source| GitError::library("write the index", source);
        let mut index = Index::open(&self.git_dir().join("index")).map_err(fail)?;
        index.clear().map_err(fail)?;
        keep.sort_by(|a, b| (&a.path, stage(a)).cmp(&(&b.path, stage(b))));
        for entry in &keep {
            index.add(entry).map_err(fail)?;
        }
        self.write_index(&mut index)?;
        Ok(settled)
    }

    fn compare_index(&self, control: &ControlDir, tree: &TreeId) -> Result<Option<Compared>, GitError> {
        let odb = objects::odb(&control.repo)?;
        let tree = objects::require_tree(&control.repo, tree)?;
        let read = || -> Result<Vec<IndexEntry>, git2::Error> {
            let mut index = Index::open(&self.git_dir().join("index"))?;
            index.read(true)?;
            Ok(index.iter().collect())
        };
        let Ok(entries) = read() else { return Ok(None) };
        let leaves: BTreeMap<Vec<u8>, Leaf> =
            blob::leaves(&odb, tree)?.into_iter().map(|leaf| (leaf.path.clone(), leaf)).collect();
        let mut different = BTreeMap::new();
        let mut there: BTreeSet<&[u8]> = BTreeSet::new();
        for entry in &entries {
            let leaf = leaves.get(&entry.path);
            let same = leaf.is_some_and(|leaf| (leaf.mode, leaf.id) == (entry.mode, entry.id));
            if !same || stage(entry) != 0 || is_hidden(entry) || is_new(entry) {
                let (flags, more) = (entry.flags & 0xb000, entry.flags_extended & 0x6000);
                let path = ids::hex(&entry.path);
                let text = format!("{:o} {} {flags:x} {more:x} {path}", entry.mode, entry.id);
                different.insert(text, entry.path.clone());
            }
            there.insert(&entry.path);
        }
        for path in leaves.keys().filter(|path| !there.contains(path.as_slice())) {
            different.insert(format!("absent {}", ids::hex(path)), path.clone());
        }
        Ok(Some(Compared { entries, leaves, different }))
    }

    /// A copy of staged content that is nowhere else, and what is not in it.
    fn keep_staged(
        &self,
        control: &ControlDir,
        head: &CommitId,
        (staged, leaves): (&[&IndexEntry], &BTreeMap<Vec<u8>, Leaf>),
        (name, author): (&str, &Author),
    ) -> Result<(Option<String>, Vec<LeftOut>), GitError> {
        let (ours, theirs) = (objects::odb(&control.repo)?, objects::odb(&self.repo)?);
        let head_tree = objects::commit_tree(&control.repo, head)?;
        let (mut tree, mut kept, mut total) = (head_tree, 0_usize, 0_usize);
        let mut left_out = Vec::new();
        let mut looks = Budget::new(LOOK_TOTAL, LOOK_TIME);
        for entry in staged {
            if leaves.get(&entry.path).is_some_and(|leaf| leaf.id == entry.id) {
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
        let stat = files::lstat(&self.git_dir().join("index")).ok().flatten();
        stat.map_or_else(String::new, |s| {
            let times = (s.st_mtime, s.st_mtime_nsec, s.st_ctime, s.st_ctime_nsec);
            format!("{} {} {times:?}", s.st_ino, files::size(&s))
        })
    }

    /// When the index was written, in seconds.
    fn index_seconds(&self) -> i64 {
        let stat = files::lstat(&self.git_dir().join("index")).ok().flatten();
        stat.map_or(0, |stat| stat.st_mtime)
    }
}

fn stage(entry: &IndexEntry) -> u16 {
    entry.flags & 0x3000
}

/// `assume-unchanged` or `skip-worktree`.
fn is_hidden(entry: &IndexEntry) -> bool {
    entry.flags & 0x8000 != 0 || entry.flags_extended & 0x4000 != 0
}

/// `intent-to-add`.
fn is_new(entry: &IndexEntry) -> bool {
    entry.flags_extended & 0x2000 != 0
}

/// An entry whose file may have changed after it was looked at within the tick of a clock: git is made to
/// look again, as the time of the new index would no longer tell.
fn unracy(entry: &IndexEntry, written: i64) -> IndexEntry {
    let racy = i64::from(entry.mtime.seconds()) >= written;
    let file_size = if racy { 0 } else { entry.file_size };
    IndexEntry {
        ctime: entry.ctime,
        mtime: entry.mtime,
        dev: entry.dev,
        ino: entry.ino,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        file_size,
        id: entry.id,
        flags: entry.flags,
        flags_extended: entry.flags_extended,
        path: entry.path.clone(),
    }
}
