//! Packs of the agents' repository whose index may not be believed.
//!
//! Git takes the name of an object in a pack from the index and does not hash what it reads, and it looks
//! into packs before it looks for a file of the object's own. So an index that was written by hand can put
//! other content in the place of any object. The index that git makes of a pack names what is in it by its
//! content; one that differs from it is replaced.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Oid;

use super::look::{Look, Seen, size_of, stamps};
use super::mark::StoreMark;
use super::mend::StoreMended;
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
/// An index is read up to here.
pub(super) const INDEX_CAP: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
/// An object has at most so many bytes in an index for each byte that it has in a pack, where the smallest one
/// has nine; and so much an index has besides.
const INDEX_PER_PACK: u64 = 4;
const INDEX_BESIDE: u64 = 4 << 10;
/// Files beside a pack that are nothing without it.
pub(super) const BESIDE: [&str; 6] = [".pack", ".keep", ".promisor", ".mtimes", ".rev", ".bitmap"];
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

/// What was done about a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// Nothing: it is as it must be.
    Sound,
    Changed,
    /// Nothing, and what it is could not be told.
    Left,
}

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

impl ControlDir {
    /// Looks at the packs of the agents' repository that were not looked at since they were written: each
    /// object in them must have the name of its content. An index that says otherwise is made again. A pack
    /// of which none can be made is moved out of the store, what is sound in it is kept, and what we have a
    /// copy of is written back.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a store that is unsafe to read, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn mend_packs(&self, peer: &PeerRepo) -> Result<StoreMended, GitError> {
        let mut mended = StoreMended::default();
        let now = peer.store_mark()?;
        let mut look = self.look(None, &now)?;
        let changed = self.look_at_packs(peer, &now, &mut look, &mut mended)?;
        // One that was left may hide what is in use: it goes when it does.
        if changed && !(mended.packs.is_empty() && mended.unseen.is_empty()) {
            self.give_back(peer, &mut look, &mut mended)?;
        }
        Ok(mended)
    }

    /// Begins to look at packs.
    pub(super) fn look<'a>(
        &self,
        before: Option<&'a StoreMark>,
        now: &StoreMark,
    ) -> Result<Look<'a>, GitError> {
        Ok(Look::new(before, self.seen_packs()?, now, self.pack_time))
    }

    /// Whether anything was changed, or something may be that could not be looked at.
    pub(super) fn look_at_packs(
        &self,
        peer: &PeerRepo,
        now: &StoreMark,
        look: &mut Look<'_>,
        mended: &mut StoreMended,
    ) -> Result<bool, GitError> {
        let dir = peer.objects_dir().join("pack");
        let old = look.seen.text();
        look.seen.packs.retain(|stem, _| now.packs.contains_key(&format!("{stem}.pack")));
        let clock = (self.clock)();
        let mut changed = false;
        let stems: BTreeSet<&str> = now.packs.keys().filter_map(|name| stem_of(name)).collect();
        let mut stems = Vec::from_iter(stems);
        // What was there before comes first, and of it what is largest: whatever is new cannot use up its time.
        stems.sort_by_key(|stem| (look.is_new(stem, now), Reverse(size_of(stem, now))));
        for stem in stems {
            let (pack, index) = (format!("{stem}.pack"), format!("{stem}.idx"));
            let (Some(pack_now), index_now) = (now.packs.get(&pack), now.packs.get(&index)) else {
                // Git does not look at an index without its pack.
                if look.before.is_some() && look.was(&index).is_none() && !is_index(&dir.join(&index)) {
                    files::remove_tree(&dir.join(&index))?;
                    mended.removed.push(format!("objects/pack/{index}"));
                }
                continue;
            };
            let Some(index_now) = index_now else {
                // Without its index git does not look at a pack.
                if look.was(&index).is_some() && look.was(&pack).is_some() {
                    changed |= self.settle_pack(peer, stem, (now, false), look, mended)? != Settled::Sound;
                }
                continue;
            };
            let Some(stamps) = stamps(stem, now).filter(|stamps| look.seen.packs.get(stem) != Some(stamps))
            else {
                continue;
            };
            let fresh = look.is_fresh(stem, now);
            let plain = !stem.contains('\n');
            if pack_now.size() > LARGE_PACK && !fresh {
                if look.before.is_none() && plain {
                    look.seen.packs.insert(stem.to_owned(), stamps);
                }
                continue;
            }
            match self.settle_pack(peer, stem, (now, false), look, mended)? {
                Settled::Changed => changed = true,
                Settled::Sound if plain && !pack_now.is_racy(clock) && !index_now.is_racy(clock) => {
                    look.seen.packs.insert(stem.to_owned(), stamps);
                }
                Settled::Sound => {}
                Settled::Left => {
                    changed |= fresh;
                    // It would cost as much each time, and be no better known.
                    if plain {
                        look.seen.packs.insert(stem.to_owned(), stamps);
                    }
                }
            }
        }
        if look.seen.text() != old || look.seen.first {
            files::overwrite(&self.own(LIST), look.seen.text().as_bytes())?;
        }
        Ok(changed)
    }

    /// Mends every pack that claims to have this object, which cannot be read though it was written. Whether
    /// there was one to mend.
    pub(super) fn mend_packs_with(
        &self,
        peer: &PeerRepo,
        oid: Oid,
        look: &mut Look<'_>,
        mended: &mut StoreMended,
    ) -> Result<bool, GitError> {
        let mut changed = false;
        let now = peer.store_mark()?;
        for name in now.packs.keys() {
            let Some(stem) = name.strip_suffix(".idx") else { continue };
            if names(&peer.objects_dir().join("pack").join(name), oid)? {
                let settled = self.settle_pack(peer, stem, (&now, true), look, mended)?;
                changed |= settled == Settled::Changed;
            }
        }
        Ok(changed)
    }

    /// Looks at one pack and mends it. One that is new and cannot be told to be sound is moved out of the
    /// store: what it hides there is in our copy. That is so for a very large one only when all that is in use
    /// can be given back, and for any when something is `hidden` for certain. One that was only touched, as git
    /// does, is most likely what it was: it stays until something is hidden.
    fn settle_pack(
        &self,
        peer: &PeerRepo,
        stem: &str,
        (now, hidden): (&StoreMark, bool),
        look: &mut Look<'_>,
        mended: &mut StoreMended,
    ) -> Result<Settled, GitError> {
        let dir = peer.objects_dir().join("pack");
        let name = format!("objects/pack/{stem}.pack");
        peer.check_objects()?;
        let stamps = stamps(stem, now);
        if stamps.is_some() && look.sound.get(stem) == stamps.as_ref() {
            return Ok(Settled::Sound);
        }
        let found = match look.next() {
            Ok(limit) => {
                self.look_at_pack(&dir.join(format!("{stem}.pack")), &dir.join(format!("{stem}.idx")), limit)?
            }
            Err(why) => Found::Unknown(why.to_owned()),
        };
        match found {
            Found::Sound => {
                look.sound.extend(stamps.map(|stamps| (stem.to_owned(), stamps)));
                return Ok(Settled::Sound);
            }
            Found::Mended => mended.restored.push(format!("objects/pack/{stem}.idx")),
            Found::Broken => {
                let what = self.take_out(peer, stem, &mut look.out)?;
                mended.packs.push(format!("{name} (no index can be made of it): {what}"));
            }
            Found::Unknown(why) => {
                let goes = stamps.is_some()
                    && look.is_fresh(stem, now)
                    && (hidden
                        || look.is_new(stem, now)
                            && (size_of(stem, now) <= LARGE_PACK || self.in_use(peer, &[])?.copied));
                if !goes {
                    mended.unseen.push(format!("{name} ({why})"));
                    return Ok(Settled::Left);
                }
                let what = self.take_out(peer, stem, &mut look.out)?;
                mended
                    .packs
                    .push(format!("{name} (it could not be compared with its content: {why}): {what}"));
            }
        }
        Ok(Settled::Changed)
    }

    /// Makes the index of a pack and compares it with the one that is there.
    fn look_at_pack(&self, pack: &Path, index: &Path, limit: Duration) -> Result<Found, GitError> {
        let fail = |source: std::io::Error| GitError::io(index, source);
        let bytes = files::lstat(pack).map_err(fail)?.map_or(0, |stat| files::size(&stat));
        let most = bytes.saturating_mul(INDEX_PER_PACK).saturating_add(INDEX_BESIDE);
        let there = match files::read_small(index, INDEX_CAP.min(most)).map_err(fail)? {
            Small::Bytes(bytes) => bytes,
            Small::TooLarge if most > INDEX_CAP => {
                return Ok(Found::Unknown("its index is too large".to_owned()));
            }
            // One that is larger than any of this pack is none of it.
            Small::TooLarge | Small::Absent | Small::Special(_) => Vec::new(),
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
        call.arg("-o").arg(&made).arg(pack).limit(limit);
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

    /// A git directory of ours without any object, made anew.
    pub(super) fn empty_git(&self, name: &str) -> Result<PathBuf, GitError> {
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
    let bytes = match found {
        Small::Bytes(bytes) => bytes,
        // It may.
        Small::TooLarge => return Ok(true),
        Small::Absent | Small::Special(_) => return Ok(false),
    };
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
