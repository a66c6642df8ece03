//! Opening the agents' index, and locking it.
//!
//! A file of a few megabytes can stand for gigabytes: the number of entries in its header is believed before
//! there is one, names are stored as what differs from the one before, and the trees in it are as deep as they
//! say. So what it would come to is added up before the library sees it.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry};

use crate::blob::TreeItem;
use crate::error::{BusyState, GitError, RepoError};
use crate::files;
use crate::index_entries::{self, ASSUME, EXTENDED, LENGTH, SKIP, STAGE};
use crate::repo::PeerRepo;

/// Entries of an index. No repository that works has as many.
const MAX_ENTRIES: u32 = if cfg!(test) { 5_000 } else { 2_000_000 };
/// All paths written out.
const MAX_PATHS: u64 = if cfg!(test) { 1 << 20 } else { 128 << 20 };
/// Trees that git computed earlier, and how deep they are. Beyond that no path can be opened.
const MAX_TREES: u64 = 64 << 20;
const MAX_DEPTH: usize = 2_048;
/// What is remembered of conflicts. Each name in it costs many times its bytes.
const MAX_CONFLICTS: u64 = 16 << 20;
/// What stands in a lock of ours. Git's own hold an index.
pub(crate) const LOCK: &[u8] = b"peers\n";
/// Bytes of the hash at the end, and of each in it.
const HASH: u64 = 20;
/// Fields of an entry before its flags.
const FIELDS: u64 = 60;

impl PeerRepo {
    /// Takes the lock that git takes before it changes the index.
    pub(crate) fn lock_index(&self) -> Result<IndexLock, GitError> {
        let path = self.git_dir().join("index.lock");
        let mut file = files::create_new(&path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => GitError::Repo(self.is_busy(BusyState::IndexLock, None)),
            _ => GitError::io(&path, source),
        })?;
        let lock = IndexLock(path);
        file.write_all(LOCK).map_err(|source| GitError::io(&lock.0, source))?;
        Ok(lock)
    }

    /// The index as that of the repository: what is added to it must be in the object store.
    pub(crate) fn open_index(&self) -> Result<Index, GitError> {
        let fail = |source| GitError::library("read the index", source);
        check(&self.index_path())?;
        let mut index = self.repo.index().map_err(fail)?;
        index.read(true).map_err(fail)?;
        Ok(index)
    }

    /// The index as a file of no repository.
    pub(crate) fn open_index_file(&self) -> Result<Index, GitError> {
        open(&self.index_path())
    }

    /// Whether git was told not to look at some of the files.
    pub(crate) fn hides_files(&self) -> Result<bool, GitError> {
        check(&self.index_path())
    }

    /// Writes a new index with these entries, which replaces the old one. To be called with the index locked.
    pub(crate) fn put_index(&self, entries: Vec<IndexEntry>) -> Result<(), GitError> {
        index_entries::write(&self.index_path(), entries)
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.git_dir().join("index")
    }

    /// The files that a commit of an index would have, sorted by path. `file` is the index, by default the
    /// repository's own; without one there are no files. What is in conflict is left out.
    ///
    /// # Errors
    /// [`GitError`] for an index that cannot be read.
    pub fn staged(&self, file: Option<&Path>) -> Result<Vec<TreeItem>, GitError> {
        let index = open(file.unwrap_or(&self.index_path()))?;
        let staged = index.iter().filter(|entry| entry.flags & STAGE == 0);
        let mut files: Vec<TreeItem> =
            staged.map(|entry| TreeItem::new(&entry.path, entry.mode, entry.id)).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

/// The lock that git takes before it changes the index.
pub(crate) struct IndexLock(PathBuf);

impl Drop for IndexLock {
    fn drop(&mut self) {
        // Nothing can be done about one that stays; `remove_own_index_lock` knows it.
        let _ = rustix::fs::unlinkat(rustix::fs::CWD, &self.0, rustix::fs::AtFlags::empty());
    }
}

fn open(path: &Path) -> Result<Index, GitError> {
    check(path)?;
    Index::open(path).map_err(|source| GitError::library("read the index", source))
}

/// Whether an index hides files.
fn check(path: &Path) -> Result<bool, GitError> {
    if files::lstat(path).map_err(|source| GitError::io(path, source))?.is_none() {
        return Ok(false);
    }
    read_through(path).ok_or_else(|| {
        let found = "no index of git, or one that stands for more than can be read".to_owned();
        RepoError::Unsafe { path: path.to_owned(), found }.into()
    })
}

/// Whether an index hides files; nothing for one that cannot be read, or would cost too much.
fn read_through(path: &Path) -> Option<bool> {
    let (file, stat) = files::open_regular(rustix::fs::CWD, path.as_os_str().as_bytes()).ok()?;
    let left = files::size(&stat).checked_sub(HASH)?;
    let mut from = Bytes { from: BufReader::with_capacity(1 << 16, file), left };
    if from.array::<4>()? != *b"DIRC" {
        return None;
    }
    let version = u32::from_be_bytes(from.array()?);
    let count = u32::from_be_bytes(from.array()?);
    if !(2..=4).contains(&version) || count > MAX_ENTRIES {
        return None;
    }
    let (mut last, mut total, mut hides) = (0_u64, 0_u64, false);
    for _ in 0..count {
        let hidden;
        (last, hidden) = entry(&mut from, (version == 4).then_some(last))?;
        hides |= hidden;
        total = total.checked_add(last).filter(|total| *total <= MAX_PATHS)?;
    }
    while from.left > 0 {
        let name: [u8; 4] = from.array()?;
        let size = u64::from(u32::from_be_bytes(from.array()?));
        match &name {
            b"TREE" if size <= MAX_TREES => trees(&from.vec(size)?)?,
            b"TREE" => return None,
            b"REUC" | b"NAME" if size > MAX_CONFLICTS => return None,
            _ => from.skip(size)?,
        }
    }
    Some(hides)
}

/// Goes over one entry: how long its path is, and whether it is hidden. `last` is how long the one before was, where a
/// path is what differs from that.
fn entry(from: &mut Bytes, last: Option<u64>) -> Option<(u64, bool)> {
    from.skip(FIELDS)?;
    let flags = u16::from_be_bytes(from.array()?);
    let (mut head, mut hidden) = (FIELDS + 2, flags & ASSUME != 0);
    if flags & EXTENDED != 0 {
        hidden |= u16::from_be_bytes(from.array()?) & SKIP != 0;
        head += 2;
    }
    if let Some(last) = last {
        let kept = last.checked_sub(from.varint()?)?;
        return Some((kept.checked_add(from.until_zero()?)?, hidden));
    }
    let length = match flags & LENGTH {
        LENGTH => from.until_zero()?,
        length => {
            let length = u64::from(length);
            from.skip(length)?;
            // Without it the library would take what follows for more of the path.
            if from.array()? != [0] {
                return None;
            }
            length
        }
    };
    let size = (head.checked_add(length)?.checked_add(8)?) & !7;
    from.skip(size.checked_sub(head + length + 1)?)?;
    Some((length, hidden))
}

/// Whether the trees in an index are as many as they say, and not too deep: they are read by recursion.
fn trees(bytes: &[u8]) -> Option<()> {
    let (mut rest, mut open) = (bytes, vec![1_usize]);
    while let Some(due) = open.last_mut() {
        let Some(fewer) = due.checked_sub(1) else {
            open.pop();
            continue;
        };
        *due = fewer;
        let name = rest.iter().position(|byte| *byte == 0)?;
        let (entries, after) = number(rest.get(name + 1..)?, b' ')?;
        let (children, after) = number(after, b'\n')?;
        rest = if entries < 0 { after } else { after.get(usize::try_from(HASH).ok()?..)? };
        let children = usize::try_from(children).ok().filter(|children| *children <= rest.len())?;
        if open.len() >= MAX_DEPTH {
            return None;
        }
        open.push(children);
    }
    rest.is_empty().then_some(())
}

fn number(bytes: &[u8], end: u8) -> Option<(i32, &[u8])> {
    let at = bytes.iter().take(12).position(|byte| *byte == end)?;
    let number = std::str::from_utf8(bytes.get(..at)?).ok()?.parse().ok()?;
    Some((number, bytes.get(at + 1..)?))
}

/// The bytes of a file, one after the other and up to an end.
struct Bytes {
    from: BufReader<std::fs::File>,
    left: u64,
}

impl Bytes {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut out = [0; N];
        self.left = self.left.checked_sub(u64::try_from(N).ok()?)?;
        self.from.read_exact(&mut out).ok()?;
        Some(out)
    }

    fn vec(&mut self, size: u64) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(size)?;
        let mut out = Vec::new();
        self.from.by_ref().take(size).read_to_end(&mut out).ok()?;
        (u64::try_from(out.len()).ok()? == size).then_some(out)
    }

    fn skip(&mut self, size: u64) -> Option<()> {
        self.left = self.left.checked_sub(size)?;
        let mut due = usize::try_from(size).ok()?;
        while due > 0 {
            let there = self.from.fill_buf().ok()?.len().min(due);
            if there == 0 {
                return None;
            }
            self.from.consume(there);
            due -= there;
        }
        Some(())
    }

    /// Goes behind the next zero; how many bytes are before it.
    fn until_zero(&mut self) -> Option<u64> {
        let mut length = 0_u64;
        loop {
            let there = self.from.fill_buf().ok()?;
            let zero = there.iter().position(|byte| *byte == 0);
            let used = zero.map_or(there.len(), |at| at + 1);
            if used == 0 {
                return None;
            }
            self.from.consume(used);
            let used = u64::try_from(used).ok()?;
            self.left = self.left.checked_sub(used)?;
            length = length.checked_add(used)?;
            if zero.is_some() {
                return length.checked_sub(1);
            }
        }
    }

    /// A number as git writes it before a path: seven bits a byte, and one more for each byte that follows.
    fn varint(&mut self) -> Option<u64> {
        let [mut byte] = self.array()?;
        let mut value = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            [byte] = self.array()?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        }
        Some(value)
    }
}
