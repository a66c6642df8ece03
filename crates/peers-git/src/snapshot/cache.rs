//! File stamps and the content hashes that were computed under them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{IndexEntry, IndexTime, Oid};
use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};

use crate::error::GitError;
use crate::files::{self, Small};
use crate::ids;

const MAGIC: &[u8] = b"peers stamps 1\n";
const CACHE_CAP: u64 = 1 << 30;

/// What tells that a file has not been written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    ino: u64,
    size: u64,
    mode: u32,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        // Seconds may be signed or not, nanoseconds of any width: the platforms differ. Out of range
        // means "never equal to a sane one".
        let nanos = |n| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            ino: stat.st_ino,
            size: files::size(stat),
            mode: files::wide(stat.st_mode),
            modified: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
        }
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Writes it into an index entry of a file that belongs to this user and group.
    pub(crate) fn stamp(&self, entry: &mut IndexEntry, (uid, gid): (u32, u32)) {
        // The index keeps the low 32 bits of everything.
        let low = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap_or(0);
        let time = |(seconds, nanos): (i64, u32)| IndexTime::new(i32::try_from(seconds).unwrap_or(0), nanos);
        (entry.mtime, entry.ctime) = (time(self.modified), time(self.changed));
        (entry.ino, entry.file_size) = (low(self.ino), low(self.size));
        (entry.uid, entry.gid) = (uid, gid);
    }

    /// Could a write that happens after `now` leave this stamp as it is?
    ///
    /// File clocks are coarse: a stamp younger than their step (about 10 ms, or 2 s on file systems
    /// without fractions of a second) may stay the same over another write.
    pub(crate) fn is_racy(&self, now: SystemTime) -> bool {
        let coarse = self.modified.1 == 0 && self.changed.1 == 0;
        let step = if coarse { Duration::from_millis(2100) } else { Duration::from_millis(100) };
        let Some(edge) = now.checked_sub(step).and_then(|edge| edge.duration_since(UNIX_EPOCH).ok()) else {
            return true;
        };
        let edge = (i64::try_from(edge.as_secs()).unwrap_or(i64::MAX), edge.subsec_nanos());
        // The time of modification can be set to anything; the time of change cannot.
        self.changed >= edge
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) stamp: Stamp,
    /// How the content was converted before it was hashed.
    pub(crate) conversion: u8,
    pub(crate) id: Oid,
}

/// The cache of one work tree.
pub(crate) struct Cache {
    pub(crate) work_dir: PathBuf,
    file: PathBuf,
    pub(crate) entries: HashMap<Vec<u8>, Known>,
    /// What the last walk of this process was against, and where it found something of the name `.git`.
    pub(crate) nested: Option<(Oid, Vec<Vec<u8>>)>,
}

impl Cache {
    /// Loads it. Anything unexpected in the file makes an empty cache: everything is hashed again.
    pub(crate) fn load(dir: &Path, work_dir: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let digest = Sha256::digest(work_dir.as_os_str().as_bytes());
        let name = ids::hex(digest.get(..8).unwrap_or(&digest));
        let file = dir.join(format!("stamps-{name}"));
        let bytes = files::read_small(&file, CACHE_CAP).ok().and_then(Small::bytes);
        let entries = bytes.and_then(|bytes| decode(&bytes)).unwrap_or_default();
        Self { work_dir: work_dir.to_owned(), file, entries, nested: None }
    }

    /// Takes over the outcome of a walk, and writes the file when it differs.
    pub(crate) fn update(&mut self, entries: HashMap<Vec<u8>, Known>) -> Result<(), GitError> {
        if entries == self.entries {
            return Ok(());
        }
        self.entries = entries;
        files::overwrite(&self.file, &encode(&self.entries))
    }
}

fn encode(entries: &HashMap<Vec<u8>, Known>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for (path, known) in entries {
        let Known { stamp, conversion, id } = known;
        let Stamp { ino, size, mode, modified, changed } = stamp;
        out.extend_from_slice(&u32::try_from(path.len()).unwrap_or(0).to_le_bytes());
        out.extend_from_slice(path);
        out.extend_from_slice(&ino.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&mode.to_le_bytes());
        for (seconds, nanos) in [modified, changed] {
            out.extend_from_slice(&seconds.to_le_bytes());
            out.extend_from_slice(&nanos.to_le_bytes());
        }
        out.push(*conversion);
        out.extend_from_slice(id.as_bytes());
    }
    let check = Sha256::digest(&out);
    out.extend_from_slice(&check);
    out
}

fn decode(bytes: &[u8]) -> Option<HashMap<Vec<u8>, Known>> {
    let (body, check) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if Sha256::digest(body).as_slice() != check {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut entries = HashMap::new();
    while !rest.is_empty() {
        let len = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let path = rest.split_off(..len)?.to_vec();
        let stamp = Stamp {
            ino: u64::from_le_bytes(take(&mut rest)?),
            size: u64::from_le_bytes(take(&mut rest)?),
            mode: u32::from_le_bytes(take(&mut rest)?),
            modified: (i64::from_le_bytes(take(&mut rest)?), u32::from_le_bytes(take(&mut rest)?)),
            changed: (i64::from_le_bytes(take(&mut rest)?), u32::from_le_bytes(take(&mut rest)?)),
        };
        let [conversion] = take(&mut rest)?;
        let id = Oid::from_bytes(&take::<20>(&mut rest)?).ok()?;
        entries.insert(path, Known { stamp, conversion, id });
    }
    Some(entries)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(n: u8) -> Known {
        let stamp = Stamp { ino: 1, size: 2, mode: 3, modified: (-4, 5), changed: (i64::from(n), 7) };
        Known { stamp, conversion: n, id: Oid::from_bytes(&[n; 20]).unwrap() }
    }

    #[test]
    fn a_cache_survives_its_file_and_a_damaged_file_is_an_empty_cache() {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = Cache::load(dir.path(), Path::new("/w"));
        let entries: HashMap<_, _> = [(b"a/b".to_vec(), known(1)), (vec![0xff], known(2))].into();
        cache.update(entries.clone()).unwrap();
        assert_eq!(Cache::load(dir.path(), Path::new("/w")).entries, entries);
        assert!(Cache::load(dir.path(), Path::new("/other")).entries.is_empty());
        let mut bytes = std::fs::read(&cache.file).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&cache.file, bytes).unwrap();
        assert!(Cache::load(dir.path(), Path::new("/w")).entries.is_empty());
    }

    #[test]
    fn a_young_stamp_is_not_trusted_and_a_coarse_one_even_longer() {
        let at = |seconds, nanos| {
            let mut stamp = known(0).stamp;
            stamp.changed = (seconds, nanos);
            stamp.modified = (seconds, nanos);
            stamp
        };
        let now = UNIX_EPOCH + Duration::from_millis(10_500);
        assert!(at(10, 450_000_000).is_racy(now));
        assert!(!at(10, 300_000_000).is_racy(now));
        assert!(at(9, 0).is_racy(now) && !at(8, 0).is_racy(now));
        assert!(at(11, 1).is_racy(now), "a stamp from the future");
    }
}
