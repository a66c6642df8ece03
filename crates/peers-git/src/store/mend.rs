//! Putting back objects of the agents' repository that were destroyed there, from our copy.

use std::collections::HashSet;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ObjectType, Odb, Oid};
use peers_model::CommitId;

use super::complete::store_at;
use super::loose::write_loose;
use super::mark::StoreMark;
use crate::cli::LONG_LIMIT;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::files;
use crate::ids;
use crate::objects::{self, Entry, MODE_GITLINK};
use crate::ref_list::RefValue;
use crate::repo::PeerRepo;

/// Objects that are looked at when packs changed, or to tell what is still in use.
const MAX_OBJECTS: usize = 200_000;
/// Objects that are looked at when git only touched a pack, as it does when it would have written what is in
/// it already.
const TOUCHED: usize = 2_000;
/// Content beyond this is not read.
const LARGE: usize = 64 << 20;
/// New objects that are looked at.
const FRESH: usize = 2_000;
/// References whose history counts as in use.
const MAX_REFS: usize = 2_000;
/// The first bytes of an index of a pack.
const IDX: &[u8] = b"\xfftOc\0\0\0\x02";

/// What was destroyed in the agents' object store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct StoreMended {
    /// Files of the store, relative to the git directory, that are whole again, or gone where they were
    /// nothing.
    pub restored: Vec<String>,
    /// Objects that are damaged and of which there is no copy.
    pub lost: Vec<String>,
}

impl ControlDir {
    /// Makes the agents' object store whole again: objects that were there `before`, are in use, and were
    /// damaged or removed are written from our copy, an index of a pack is made from the pack, and new files
    /// that hold no object go. Looks at what changed; without `before` at the trees of `at`. Also returns how
    /// the store stands now, if nothing was written.
    ///
    /// # Errors
    /// [`GitError::Repo`] for a store that is unsafe to write to, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn mend_store(
        &self,
        peer: &PeerRepo,
        before: Option<&StoreMark>,
        at: &CommitId,
    ) -> Result<(StoreMended, Option<StoreMark>), GitError> {
        let mut mended = StoreMended::default();
        let now = peer.store_mark()?;
        let ours = objects::odb(&self.repo)?;
        let at = ids::commit_oid(at)?;
        let (mut suspects, mut looked_at) = (Vec::new(), 0);
        match before {
            Some(before) => {
                if now.whole {
                    suspects.extend(
                        before
                            .loose
                            .iter()
                            .filter(|(oid, was)| now.loose.get(oid) != Some(was))
                            .map(|(oid, _)| *oid),
                    );
                }
                for (name, was) in before.packs.iter().filter(|(name, was)| now.packs.get(*name) != Some(was))
                {
                    let touched = now.packs.get(name).is_some_and(|now| now.is_same_file(was));
                    looked_at = looked_at.max(if touched { TOUCHED } else { MAX_OBJECTS });
                }
                self.mend_indexes(peer, before, &now, &mut mended)?;
            }
            None => suspects.extend(closure(&ours, &[at], Depth::Trees, MAX_OBJECTS).0),
        }
        // Git takes an object for written that has a file, whatever is in it.
        let fresh: Vec<Oid> = match before {
            Some(before) if before.whole => {
                now.loose.keys().filter(|oid| !before.loose.contains_key(oid)).take(FRESH).copied().collect()
            }
            _ => Vec::new(),
        };
        if suspects.is_empty() && looked_at == 0 && fresh.is_empty() {
            let untouched = mended.restored.is_empty().then_some(now);
            return Ok((mended, untouched));
        }
        peer.check_objects()?;
        // Opened now: a store that was opened before may still have what is gone.
        let objects_dir = peer.objects_dir();
        let theirs = store_at(&objects_dir)?;
        let in_use = || {
            let refs = peer.list_refs("refs/", MAX_REFS).ok().flatten().unwrap_or_default();
            let mut tips: Vec<Oid> = refs
                .values()
                .filter_map(|value| match value {
                    RefValue::Direct(hash) => Oid::from_str(hash).ok(),
                    RefValue::Symbolic(_) => None,
                })
                .collect();
            tips.push(at);
            closure(&ours, &tips, Depth::All, MAX_OBJECTS)
        };
        for oid in fresh {
            let name = file_of(oid);
            if !is_sound(&theirs, oid) {
                match readable(&ours, oid) {
                    Some((kind, data)) => write_loose(&objects_dir, oid, kind, &data)?,
                    None => files::remove_tree(&peer.common_dir().join(&name))?,
                }
                mended.restored.push(name);
            }
        }
        let mut used = None;
        if looked_at == MAX_OBJECTS {
            let (all, whole) = in_use();
            suspects.extend(all.iter().copied());
            used = Some((all, whole));
        } else if looked_at > 0 {
            suspects.extend(closure(&ours, &[at], Depth::All, looked_at).0);
        }
        let mut seen = HashSet::new();
        for oid in suspects {
            if !seen.insert(oid) || is_sound(&theirs, oid) {
                continue;
            }
            let is_there = now.loose.contains_key(&oid);
            let name = file_of(oid);
            let Some((kind, data)) = readable(&ours, oid) else {
                if is_there {
                    mended.lost.push(name);
                }
                continue;
            };
            if !is_there {
                // What nothing names any more may go: git tidies up.
                let (all, whole) = used.get_or_insert_with(in_use);
                if *whole && !all.contains(&oid) {
                    continue;
                }
            }
            write_loose(&objects_dir, oid, kind, &data)?;
            mended.restored.push(name);
        }
        self.edge(&ours, &theirs, &mut mended)?;
        mended.restored.sort();
        mended.lost.sort();
        mended.lost.dedup();
        let untouched = mended.restored.is_empty().then_some(now);
        Ok((mended, untouched))
    }

    /// What comes before a shallow copy must still be there, since there is no copy of it.
    fn edge(&self, ours: &Odb<'_>, theirs: &Odb<'_>, mended: &mut StoreMended) -> Result<(), GitError> {
        let path = self.path().join("shallow");
        let found = files::read_small(&path, 16 << 20).map_err(|source| GitError::io(&path, source))?;
        let files::Small::Bytes(bytes) = found else { return Ok(()) };
        let text = String::from_utf8_lossy(&bytes);
        for oid in text.lines().filter_map(|line| Oid::from_str(line).ok()) {
            let commit = readable(ours, oid).and_then(|(_, data)| objects::parse_commit(&data));
            let parents = commit.map(|commit| commit.parents).unwrap_or_default();
            mended.lost.extend(parents.into_iter().filter(|p| readable(theirs, *p).is_none()).map(file_of));
        }
        Ok(())
    }

    /// Indexes of packs: one that is gone or was written over is made again, a new one that is none goes.
    fn mend_indexes(
        &self,
        peer: &PeerRepo,
        before: &StoreMark,
        now: &StoreMark,
        mended: &mut StoreMended,
    ) -> Result<(), GitError> {
        let dir = peer.objects_dir().join("pack");
        for (pack, was) in &before.packs {
            let Some(stem) = pack.strip_suffix(".pack") else { continue };
            let index = format!("{stem}.idx");
            let same = before.packs.get(&index) == now.packs.get(&index);
            // A pack of another size has no index that could be believed; its times change whenever git
            // would have written what is in it.
            let there = now.packs.get(pack).is_some_and(|now| now.is_same_file(was));
            if same || !there || !before.packs.contains_key(&index) {
                continue;
            }
            if self.index_pack(&dir.join(pack), &dir.join(&index))? {
                mended.restored.push(format!("objects/pack/{index}"));
            }
        }
        for index in now.packs.keys() {
            let sound = index.strip_suffix(".idx").is_none() || is_index(&dir.join(index));
            if before.packs.contains_key(index) || sound {
                continue;
            }
            files::remove_tree(&dir.join(index))?;
            mended.restored.push(format!("objects/pack/{index}"));
        }
        Ok(())
    }

    /// Makes the index of a pack again; whether that could be done.
    fn index_pack(&self, pack: &Path, index: &Path) -> Result<bool, GitError> {
        let (made, home) = (self.own("made.idx"), self.home());
        files::remove_tree(&made)?;
        let mut call = self.call(&home);
        call.arg("index-pack").arg("-o").arg(&made).arg(pack).limit(LONG_LIMIT);
        let done = call.run();
        files::remove_tree(&self.own("made.rev"))?;
        if done.is_err() {
            return Ok(false);
        }
        let bytes = std::fs::read(&made).map_err(|source| GitError::io(&made, source))?;
        files::remove_tree(&made)?;
        files::remove_tree(index)?;
        files::replace(index, &bytes)?;
        Ok(true)
    }
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

fn file_of(oid: Oid) -> String {
    let name = oid.to_string();
    let (fan_out, rest) = name.split_at(2);
    format!("objects/{fan_out}/{rest}")
}

/// Whether an object can be read; of a very large one only whether it begins as one.
fn is_sound(odb: &Odb<'_>, oid: Oid) -> bool {
    odb.read_header(oid).is_ok_and(|(size, _)| size > LARGE || readable(odb, oid).is_some())
}

/// The object, its hash checked; nothing for one that is missing or damaged.
pub(super) fn readable(odb: &Odb<'_>, oid: Oid) -> Option<(ObjectType, Vec<u8>)> {
    let object = odb.read(oid).ok()?;
    Some((object.kind(), object.data().to_vec()))
}

/// How far a closure goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Commits and their trees.
    Trees,
    /// With the files, and all that came before.
    All,
}

/// What these commits need, as far as the store has it, and whether that is all of it.
pub(super) fn closure(odb: &Odb<'_>, tips: &[Oid], depth: Depth, cap: usize) -> (HashSet<Oid>, bool) {
    let mut seen: HashSet<Oid> = HashSet::new();
    let mut todo: Vec<Oid> = tips.to_vec();
    while let Some(oid) = todo.pop() {
        if !seen.insert(oid) {
            continue;
        }
        if seen.len() > cap {
            return (seen, false);
        }
        let Ok((_, kind)) = odb.read_header(oid) else { continue };
        if !matches!(kind, ObjectType::Commit | ObjectType::Tree) {
            continue;
        }
        let Some((_, data)) = readable(odb, oid) else { continue };
        if kind == ObjectType::Commit {
            let Some(commit) = objects::parse_commit(&data) else { continue };
            // Trees first, and the newest: what is left out by a limit is old.
            if depth == Depth::All {
                todo.extend(commit.parents);
            }
            todo.push(commit.tree);
        } else {
            let entries = objects::parse_tree(&data).unwrap_or_default();
            let wanted = |entry: &&Entry| match depth {
                Depth::Trees => entry.is_tree(),
                Depth::All => entry.mode != MODE_GITLINK,
            };
            todo.extend(entries.iter().filter(wanted).map(|entry| entry.id));
        }
    }
    (seen, true)
}
