//! Packs of the agents' repository whose index may not be believed.
//!
//! Git takes the name of an object in a pack from the index and does not hash what it reads, and it looks
//! into packs before it looks for a file of the object's own. So an index that was written by hand can put
//! other content in the place of any object. The index that git makes of a pack names what is in it by its
//! content; one that differs from it is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Oid;

use super::budget::{Bounded, Budget, readable_within};
use super::complete::store_at;
use super::loose::write_loose;
use super::mark::StoreMark;
use super::mend::StoreMended;
use crate::aside;
use crate::cli::LONG_LIMIT;
use crate::control::ControlDir;
use crate::error::{CliError, GitError};
use crate::files::{self, Small};
use crate::repo::PeerRepo;

/// The first bytes of an index of a pack.
const IDX: &[u8] = b"\xfftOc\0\0\0\x02";
/// The names in it begin here.
const NAMES: usize = 8 + 1024;
/// A pack beyond this is looked at when it is new to us, not because we have not looked yet.
const LARGE_PACK: u64 = if cfg!(test) { 64 << 10 } else { 500 << 20 };
/// Packs that are looked at in one go. No turn makes as many.
const MOST_PACKS: usize = 2_000;
/// An index is read up to here.
const INDEX_CAP: u64 = 1 << 30;
/// Objects that are taken out of one pack that goes.
const TAKEN_OUT: usize = 200_000;
/// Content beyond this is not taken out, each and in total, and what is not in this time.
const LARGE: usize = 512 << 20;
const TOTAL: usize = if cfg!(test) { 1 << 20 } else { 4 << 30 };
const TIME: Duration = Duration::from_mins(5);
/// Files beside a pack that are nothing without it.
const BESIDE: [&str; 6] = [".pack", ".keep", ".promisor", ".mtimes", ".rev", ".bitmap"];
/// Those of them that only make reading it faster.
const FASTER: [&str; 2] = [".rev", ".bitmap"];
/// What git says when it is not the pack that is at fault.
const NOT_THE_PACK: [&str; 6] = [
    "ut of memory",
    "annot allocate",
    "oo many open files",
    "unable to create",
    "ermission denied",
    "No such file",
];
/// The list of packs that were looked at, among our own files.
const LIST: &str = "packs";

/// What a pack is found to be.
enum Found {
    /// Its index is the one that git makes.
    Sound,
    /// Its index was another one and was made again.
    Mended,
    /// No index can be made of it.
    Broken,
    /// That could not be told, and why.
    Unknown(String),
}

/// Packs that were looked at by the stamps that they and their indexes had.
#[derive(Default)]
struct Seen {
    packs: BTreeMap<String, String>,
    /// There was no list yet.
    first: bool,
}

impl Seen {
    fn text(&self) -> String {
        let mut text = String::new();
        for (stem, stamps) in &self.packs {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{stamps} {stem}");
        }
        text
    }
}

impl ControlDir {
    /// Looks at the packs of the agents' repository that were not looked at since they were written: each
    /// object in them must have the name of its content. An index that says otherwise is made again, a pack
    /// of which none can be made goes, and what is sound in it is kept.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a store that is unsafe to read, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn mend_packs(&self, peer: &PeerRepo) -> Result<StoreMended, GitError> {
        let mut mended = StoreMended::default();
        let _changed = self.look_at_packs(peer, None, &peer.store_mark()?, &mut mended)?;
        Ok(mended)
    }

    /// Whether anything was changed.
    pub(super) fn look_at_packs(
        &self,
        peer: &PeerRepo,
        before: Option<&StoreMark>,
        now: &StoreMark,
        mended: &mut StoreMended,
    ) -> Result<bool, GitError> {
        let dir = peer.objects_dir().join("pack");
        let mut seen = self.seen_packs()?;
        let old = seen.text();
        seen.packs.retain(|stem, _| now.packs.contains_key(&format!("{stem}.pack")));
        let clock = (self.clock)();
        let (mut changed, mut left) = (false, MOST_PACKS);
        let stems: BTreeSet<&str> = now.packs.keys().filter_map(|name| stem_of(name)).collect();
        for stem in stems {
            let (pack, index) = (format!("{stem}.pack"), format!("{stem}.idx"));
            let was = |name: &str| before.and_then(|before| before.packs.get(name));
            let (Some(pack_now), index_now) = (now.packs.get(&pack), now.packs.get(&index)) else {
                // Git does not look at an index without its pack.
                if was(&index).is_none() && before.is_some() && !is_index(&dir.join(&index)) {
                    files::remove_tree(&dir.join(&index))?;
                    mended.removed.push(format!("objects/pack/{index}"));
                }
                continue;
            };
            let Some(index_now) = index_now else {
                // Without its index git does not look at a pack.
                if was(&index).is_some() && was(&pack).is_some() {
                    changed |= self.settle_pack(peer, stem, mended)?;
                }
                continue;
            };
            let stamps = format!("{} {}", pack_now.text(), index_now.text());
            if seen.packs.get(stem) == Some(&stamps) {
                continue;
            }
            let fresh = match before {
                Some(_) => was(&pack) != Some(pack_now) || was(&index) != Some(index_now),
                None => !seen.first,
            };
            if pack_now.size() > LARGE_PACK && !fresh {
                if before.is_none() && !stem.contains('\n') {
                    seen.packs.insert(stem.to_owned(), stamps);
                }
                continue;
            }
            let Some(fewer) = left.checked_sub(1) else {
                mended.unseen.push(format!("the packs after the first {MOST_PACKS} new ones"));
                break;
            };
            left = fewer;
            if self.settle_pack(peer, stem, mended)? {
                changed = true;
            } else if !pack_now.is_racy(clock) && !index_now.is_racy(clock) && !stem.contains('\n') {
                seen.packs.insert(stem.to_owned(), stamps);
            }
        }
        if seen.text() != old || seen.first {
            files::overwrite(&self.own(LIST), seen.text().as_bytes())?;
        }
        Ok(changed)
    }

    /// Mends every pack that claims to have this object. Whether there was one to mend.
    pub(super) fn mend_packs_with(
        &self,
        peer: &PeerRepo,
        oid: Oid,
        mended: &mut StoreMended,
    ) -> Result<bool, GitError> {
        let mut changed = false;
        for name in peer.store_mark()?.packs.into_keys() {
            let Some(stem) = name.strip_suffix(".idx") else { continue };
            if names(&peer.objects_dir().join("pack").join(&name), oid)? {
                changed |= self.settle_pack(peer, stem, mended)?;
            }
        }
        Ok(changed)
    }

    /// Looks at one pack and mends it. Whether that was needed and done.
    fn settle_pack(&self, peer: &PeerRepo, stem: &str, mended: &mut StoreMended) -> Result<bool, GitError> {
        let dir = peer.objects_dir().join("pack");
        peer.check_objects()?;
        match self.look_at_pack(&dir.join(format!("{stem}.pack")), &dir.join(format!("{stem}.idx")))? {
            Found::Sound => return Ok(false),
            Found::Mended => mended.restored.push(format!("objects/pack/{stem}.idx")),
            Found::Broken => {
                let name = format!("objects/pack/{stem}.pack");
                if let Some(kept) = self.take_apart(peer, stem)? {
                    let why = "no index can be made of it, and not all of it was taken out";
                    mended.unseen.push(format!("{name} ({why}: it is now {kept})"));
                }
                mended.removed.push(name);
            }
            Found::Unknown(why) => {
                mended.unseen.push(format!("objects/pack/{stem}.pack ({why})"));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the index of a pack and compares it with the one that is there.
    fn look_at_pack(&self, pack: &Path, index: &Path) -> Result<Found, GitError> {
        let fail = |source: std::io::Error| GitError::io(index, source);
        let there = match files::read_small(index, INDEX_CAP).map_err(fail)? {
            Small::Bytes(bytes) => bytes,
            Small::TooLarge => return Ok(Found::Unknown("its index is too large".to_owned())),
            Small::Absent | Small::Special(_) => Vec::new(),
        };
        let made = self.own("made.idx");
        files::remove_tree(&made)?;
        // Objects are named by their content alone: in a directory that has none there is nothing that they
        // could be compared with, damaged or not.
        let (empty, home) = (self.empty_git("empty")?, self.home());
        let mut call = self.git.call(&empty, &home);
        call.arg("index-pack");
        if !there.is_empty() && !there.starts_with(IDX) {
            call.arg("--index-version=1");
        }
        call.arg("-o").arg(&made).arg(pack).limit(LONG_LIMIT);
        let done = call.run();
        files::remove_tree(&self.own("made.rev"))?;
        match done {
            Ok(_) => {}
            Err(CliError::Failed { stderr, .. })
                if stderr.contains("No space left") || stderr.contains("quota exceeded") =>
            {
                return Err(GitError::DiskFull { what: format!("`{}`", made.display()) });
            }
            Err(CliError::Failed { status, stderr, .. })
                if status.starts_with("exit") && !NOT_THE_PACK.iter().any(|told| stderr.contains(told)) =>
            {
                return Ok(Found::Broken);
            }
            Err(error) => return Ok(Found::Unknown(error.to_string())),
        }
        let bytes = std::fs::read(&made).map_err(|source| GitError::io(&made, source))?;
        files::remove_tree(&made)?;
        if bytes == there {
            return Ok(Found::Sound);
        }
        rename(pack, index, &bytes)?;
        Ok(Found::Mended)
    }

    /// Removes a pack. Objects in it that have the name of their content and are nowhere else get files of
    /// their own. Where there is too much in it for that, the pack itself is kept; returns where.
    fn take_apart(&self, peer: &PeerRepo, stem: &str) -> Result<Option<String>, GitError> {
        let objects_dir = peer.objects_dir();
        let dir = objects_dir.join("pack");
        let path = |end: &str| dir.join(format!("{stem}{end}"));
        let alone = self.empty_git("alone")?.join("objects");
        let index = match files::read_small(&path(".idx"), INDEX_CAP) {
            Ok(Small::Bytes(bytes)) => bytes,
            _ => Vec::new(),
        };
        files::replace(&alone.join("pack/pack-alone.idx"), &index)?;
        let link = alone.join("pack/pack-alone.pack");
        std::os::unix::fs::symlink(path(".pack"), &link).map_err(|source| GitError::io(&link, source))?;
        // Without its index it is out of sight.
        files::remove_tree(&path(".idx"))?;
        let whole = {
            let (from, rest) = (store_at(&alone)?, store_at(&objects_dir)?);
            let mut all = Vec::new();
            // What cannot be listed cannot be read either.
            let _rest = from.foreach(|oid| {
                all.push(*oid);
                all.len() < TAKEN_OUT
            });
            let mut whole = all.len() < TAKEN_OUT;
            let mut budget = Budget::new(TOTAL, TIME);
            for oid in all {
                if budget.is_late() {
                    whole = false;
                    break;
                }
                // Of what this one claims to be so large, the other may be the true one.
                match budget.read(&from, oid, LARGE) {
                    Bounded::Read(kind, data) if readable_within(&rest, oid, data.len()).is_none() => {
                        write_loose(&objects_dir, oid, kind, &data)?;
                    }
                    Bounded::Read(..) | Bounded::Damaged => {}
                    Bounded::TooMuch => whole = false,
                }
            }
            whole
        };
        files::remove_tree(&alone)?;
        let name = format!("objects/pack/{stem}.pack");
        let kept = if whole {
            None
        } else if let Ok(kept) = aside::keep(peer.git_dir(), &path(".pack"), Path::new(&name), "pack") {
            kept.map(|kept| format!(".git/{kept}"))
        } else {
            return Ok(Some("without an index".to_owned()));
        };
        for end in BESIDE {
            files::remove_tree(&path(end))?;
        }
        Ok(kept)
    }

    /// A git directory of ours without any object, made anew.
    fn empty_git(&self, name: &str) -> Result<PathBuf, GitError> {
        let dir = self.own(name);
        files::remove_tree(&dir)?;
        for inner in ["", "objects", "objects/pack", "refs"] {
            files::ensure_dir(&dir.join(inner))?;
        }
        files::replace(&dir.join("HEAD"), b"ref: refs/heads/none\n")?;
        Ok(dir)
    }

    fn seen_packs(&self) -> Result<Seen, GitError> {
        let path = self.own(LIST);
        let found = files::read_small(&path, INDEX_CAP).map_err(|source| GitError::io(&path, source))?;
        let mut seen = Seen::default();
        let Small::Bytes(bytes) = found else { return Ok(Seen { first: true, ..seen }) };
        for line in String::from_utf8_lossy(&bytes).lines() {
            let mut parts = line.splitn(3, ' ');
            if let (Some(pack), Some(index), Some(stem)) = (parts.next(), parts.next(), parts.next()) {
                seen.packs.insert(stem.to_owned(), format!("{pack} {index}"));
            }
        }
        Ok(seen)
    }
}

/// Gives a pack this index, and another name: a program that has the pack open, ourselves among them, keeps the
/// index that it had under the old one.
fn rename(pack: &Path, index: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let fail = |source: std::io::Error| GitError::io(pack, source);
    let random = files::random_hex().map_err(fail)?;
    let name = Oid::hash_object(git2::ObjectType::Blob, random.as_bytes())
        .map_err(|source| GitError::library("name a pack", source))?;
    let new = pack.with_file_name(format!("pack-{name}"));
    files::remove_tree(index)?;
    // The index last: without it the pack is not looked at.
    for end in BESIDE {
        let (from, to) = (beside(pack, end), beside(&new.with_extension("pack"), end));
        if FASTER.contains(&end) {
            files::remove_tree(&from)?;
        } else if files::lstat(&from).map_err(fail)?.is_some() {
            rustix::fs::renameat(rustix::fs::CWD, &from, rustix::fs::CWD, &to)
                .map_err(|error| GitError::io(&from, error))?;
        }
    }
    files::replace(&new.with_extension("idx"), bytes)
}

/// A file beside a pack, by how its name ends.
fn beside(pack: &Path, end: &str) -> PathBuf {
    let name = pack.as_os_str().as_bytes();
    let stem = name.strip_suffix(b".pack").unwrap_or(name);
    PathBuf::from(OsStr::from_bytes(&[stem, end.as_bytes()].concat()))
}

fn stem_of(name: &str) -> Option<&str> {
    name.strip_suffix(".pack").or_else(|| name.strip_suffix(".idx"))
}

fn is_index(path: &Path) -> bool {
    let read = || -> std::io::Result<Vec<u8>> {
        let (file, _) = files::open_regular(rustix::fs::CWD, path.as_os_str().as_bytes())?;
        let mut bytes = Vec::new();
        file.take(8 + 1024).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let Ok(bytes) = read() else { return false };
    let counts = if bytes.starts_with(IDX) { bytes.get(8..) } else { bytes.get(..1024) };
    let counts: Vec<u32> = counts
        .unwrap_or_default()
        .chunks_exact(4)
        .map(|four| four.iter().fold(0, |sum, byte| (sum << 8) | u32::from(*byte)))
        .collect();
    counts.len() == 256 && counts.is_sorted()
}

/// Whether an index of a pack has the name of this object in it.
fn names(index: &Path, oid: Oid) -> Result<bool, GitError> {
    let found = files::read_small(index, INDEX_CAP).map_err(|source| GitError::io(index, source))?;
    let Small::Bytes(bytes) = found else { return Ok(false) };
    if !bytes.starts_with(IDX) {
        let entries = bytes.get(1024..).unwrap_or_default().chunks_exact(24);
        return Ok(entries.into_iter().any(|entry| entry.ends_with(oid.as_bytes())));
    }
    let last = bytes.get(NAMES - 4..NAMES).unwrap_or_default();
    let count = last.iter().fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
    let end = NAMES.saturating_add(count.saturating_mul(20)).min(bytes.len());
    let all = bytes.get(NAMES..end).unwrap_or_default();
    Ok(all.chunks_exact(20).any(|name| name == oid.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_known_by_how_it_begins() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("x.idx");
        for (bytes, is) in [
            ([IDX, &[0; 1024][..]].concat(), true),
            (vec![0; 1024], true),
            ([IDX, &[1, 0, 0, 0][..], &[0; 1020][..]].concat(), false),
            (b"garbage".to_vec(), false),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(is_index(&path), is);
        }
    }
}
