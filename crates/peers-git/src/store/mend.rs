//! Putting back objects of the agents' repository that were destroyed there, from our copy.

use std::collections::HashSet;
use std::time::Duration;

use git2::{ObjectType, Odb, Oid};
use peers_model::CommitId;

use super::budget::{Bounded, Budget, readable, readable_within};
use super::complete::{head_of, store_at};
use super::look::Look;
use super::loose::write_loose;
use super::mark::StoreMark;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::files;
use crate::ids;
use crate::import::parse_tips;
use crate::objects::{self, Entry, MODE_GITLINK};
use crate::ref_list::{RefValue, hash_at};
use crate::repo::{PeerRepo, peer_shallow};
use crate::snapshot::Stamp;

/// Objects that are looked at when packs changed, or to tell what is still in use.
const MAX_OBJECTS: usize = 200_000;
/// Objects that are looked at when git only touched a pack, as it does when it would have written what is in
/// it already.
const TOUCHED: usize = 2_000;
/// Content of which there is no copy is read up to here, each and in total, and for so long.
const LARGE: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };
const TOTAL: usize = 4 << 30;
const TIME: Duration = Duration::from_mins(5);
/// Content of which there is a copy.
const LARGEST: usize = 2 << 30;
/// New objects that are looked at.
const FRESH: usize = 10_000;
/// References whose history counts as in use. Where there are more, it is that of the branches as they were
/// brought in.
const MAX_REFS: usize = if cfg!(test) { 30 } else { 2_000 };

/// References to what is not there that are looked into.
const MAX_MISSING: usize = 100;

/// What was destroyed in the agents' object store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct StoreMended {
    /// Files of the store, relative to the git directory, that are whole again.
    pub restored: Vec<String>,
    /// Files that were taken away: they held no object, or no index.
    pub removed: Vec<String>,
    /// Packs that were moved out of the store, each with the reason and what became of it.
    pub packs: Vec<String>,
    /// Objects that are damaged and of which there is no copy.
    pub lost: Vec<String>,
    /// Objects that were written back and still cannot be read.
    pub stuck: Vec<String>,
    /// What was not looked at, because there is too much of it or it could not be read.
    pub unseen: Vec<String>,
}

impl StoreMended {
    /// Nothing was written and nothing taken away.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.restored.is_empty() && self.removed.is_empty() && self.packs.is_empty() && self.stuck.is_empty()
    }

    fn sort(&mut self) {
        for list in [
            &mut self.restored,
            &mut self.removed,
            &mut self.packs,
            &mut self.lost,
            &mut self.stuck,
            &mut self.unseen,
        ] {
            list.sort();
            list.dedup();
        }
    }
}

impl ControlDir {
    /// Makes the agents' object store whole again: objects that were there `before`, are in use, and were
    /// damaged or removed are written from our copy, an index of a pack that names what is not in it is made
    /// from the pack, a new pack of which that cannot be told is moved aside, and new files that hold no
    /// object go. Looks at what changed; without `before` at the
    /// trees of `at`. Also returns how the store stands now, if nothing was written.
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
                suspects = changed_loose(peer, before, &now)?;
                for (name, was) in before.packs.iter().filter(|(name, was)| now.packs.get(*name) != Some(was))
                {
                    let touched = now.packs.get(name).is_some_and(|now| now.is_same_file(was));
                    looked_at = looked_at.max(if touched { TOUCHED } else { MAX_OBJECTS });
                }
                if !before.whole {
                    mended.unseen.push(format!("all but {} files of objects", before.loose.len()));
                }
            }
            None => suspects.extend(closure(&ours, &[at], Depth::Trees, MAX_OBJECTS).all),
        }
        if !now.all_packs {
            mended.unseen.push("objects/pack".to_owned());
        }
        let mut look = self.look(before, &now)?;
        if self.look_at_packs(peer, &now, &mut look, &mut mended)? {
            looked_at = MAX_OBJECTS;
        }
        let fresh = fresh_loose(before, &now, &mut mended);
        if suspects.is_empty() && looked_at == 0 && fresh.is_empty() {
            let untouched = mended.is_untouched().then_some(now);
            return Ok((mended, untouched));
        }
        peer.check_objects()?;
        // Opened now: a store that was opened before may still have what is gone.
        let objects_dir = peer.objects_dir();
        let theirs = store_at(&objects_dir)?;
        let mut budget = Budget::new(TOTAL, TIME);
        let mut written = settle_fresh(peer, (&theirs, &ours), fresh, &mut budget, &mut mended)?;
        let mut used = None;
        if looked_at == MAX_OBJECTS {
            let found = self.in_use(peer, &[at])?;
            suspects.extend(found.all.iter().copied());
            used = Some(found);
        } else if looked_at > 0 {
            suspects.extend(closure(&ours, &[at], Depth::All, looked_at).all);
        }
        written.extend(self.write_back(peer, (suspects, used, &[at]), &mut budget, &mut mended)?);
        self.read_again(peer, written, &mut look, &mut mended)?;
        self.edge(peer, &ours, &mut mended)?;
        mended.sort();
        let untouched = mended.is_untouched().then_some(now);
        Ok((mended, untouched))
    }

    /// Writes back what is in use and cannot be read any more.
    pub(super) fn give_back(
        &self,
        peer: &PeerRepo,
        look: &mut Look<'_>,
        mended: &mut StoreMended,
    ) -> Result<(), GitError> {
        let used = self.in_use(peer, &[])?;
        let suspects = used.all.iter().copied().collect();
        let mut budget = Budget::new(TOTAL, TIME);
        let written = self.write_back(peer, (suspects, Some(used), &[]), &mut budget, mended)?;
        self.read_again(peer, written, look, mended)?;
        mended.sort();
        Ok(())
    }

    /// What references name and these commits need, as far as we have it.
    pub(super) fn in_use(&self, peer: &PeerRepo, also: &[Oid]) -> Result<InUse, GitError> {
        let ours = objects::odb(&self.repo)?;
        let mut tips = also.to_vec();
        let (mut listed, mut copied, mut missing) = (true, true, 0);
        if let Ok(Some(refs)) = peer.list_refs("refs/", MAX_REFS) {
            for value in refs.values() {
                let RefValue::Direct(hash) = value else { continue };
                let Ok(oid) = Oid::from_str(hash) else { continue };
                if ours.read_header(oid).is_err() {
                    // Most likely a tag: what it leads to may be here.
                    copied = false;
                    // Each one that is not there makes the library look at all packs again.
                    if missing < MAX_MISSING {
                        let peeled = peer.peel(hash).and_then(|commit| ids::commit_oid(&commit).ok());
                        missing += usize::from(peeled.is_none());
                        tips.extend(peeled);
                    }
                } else {
                    tips.push(oid);
                }
            }
        } else {
            let brought = self.small("peers/tips", 64 << 20)?.unwrap_or_default();
            tips.extend(parse_tips(&brought).into_values().chain(head_of(&brought)));
            listed = false;
        }
        let mut used = closure(&ours, &tips, Depth::All, MAX_OBJECTS);
        used.whole &= listed;
        used.copied &= listed && copied;
        Ok(used)
    }

    /// Looks at objects and writes from our copy those that are damaged, and those that are gone and in use.
    fn write_back(
        &self,
        peer: &PeerRepo,
        (suspects, mut used, also): (Vec<Oid>, Option<InUse>, &[Oid]),
        budget: &mut Budget,
        mended: &mut StoreMended,
    ) -> Result<Vec<Oid>, GitError> {
        let (theirs, ours) = (store_at(&peer.objects_dir())?, objects::odb(&self.repo)?);
        let (mut seen, mut written) = (HashSet::new(), Vec::new());
        for oid in suspects {
            if !seen.insert(oid) {
                continue;
            }
            match judge(&theirs, &ours, oid, budget) {
                Judged::Sound => continue,
                Judged::Unread => {
                    mended.unseen.push(file_of(oid));
                    continue;
                }
                Judged::Damaged => {}
            }
            let is_there = exists(peer, oid)?;
            let Some((kind, data)) = readable(&ours, oid) else {
                if is_there {
                    mended.lost.push(file_of(oid));
                }
                continue;
            };
            if !is_there {
                // What nothing names any more may go: git tidies up.
                let found = match used.take() {
                    Some(found) => found,
                    None => self.in_use(peer, also)?,
                };
                let InUse { all, whole, .. } = used.insert(found);
                if *whole && !all.contains(&oid) {
                    continue;
                }
            }
            write_loose(&peer.objects_dir(), oid, kind, &data)?;
            written.push(oid);
        }
        Ok(written)
    }

    /// Reads what was written back. A pack comes before a file of its own: one that still hides an object is
    /// mended too, whatever it looked like before.
    fn read_again(
        &self,
        peer: &PeerRepo,
        written: Vec<Oid>,
        look: &mut Look<'_>,
        mended: &mut StoreMended,
    ) -> Result<(), GitError> {
        let mut after = store_at(&peer.objects_dir())?;
        let ours = objects::odb(&self.repo)?;
        let mut budget = Budget::new(TOTAL, TIME);
        for oid in written {
            if judge(&after, &ours, oid, &mut budget) == Judged::Damaged {
                if self.mend_packs_with(peer, oid, look, mended)? {
                    after = store_at(&peer.objects_dir())?;
                }
                if judge(&after, &ours, oid, &mut budget) == Judged::Damaged {
                    mended.stuck.push(file_of(oid));
                    continue;
                }
            }
            mended.restored.push(file_of(oid));
        }
        Ok(())
    }

    /// What comes before a shallow copy must still be there, since there is no copy of it: what could be read
    /// at an earlier look is told when it cannot be any more. What the agents' own copy leaves out never was.
    fn edge(&self, peer: &PeerRepo, ours: &Odb<'_>, mended: &mut StoreMended) -> Result<(), GitError> {
        let path = self.path().join("shallow");
        let found = files::read_small(&path, 16 << 20).map_err(|source| GitError::io(&path, source))?;
        let files::Small::Bytes(bytes) = found else { return Ok(()) };
        let theirs = store_at(&peer.objects_dir())?;
        let cut = peer_shallow(peer)?.unwrap_or_default();
        let cut: HashSet<&str> = cut.lines().collect();
        let text = String::from_utf8_lossy(&bytes);
        let mut readable_before = self.before_edge.borrow_mut();
        for line in text.lines().filter(|line| !cut.contains(line)) {
            let Ok(oid) = Oid::from_str(line) else { continue };
            let commit = readable(ours, oid).and_then(|(_, data)| objects::parse_commit(&data));
            for parent in commit.map(|commit| commit.parents).unwrap_or_default() {
                if readable_within(&theirs, parent, objects::META_CAP).is_some() {
                    readable_before.insert(parent);
                } else if readable_before.remove(&parent) {
                    mended.lost.push(file_of(parent));
                }
            }
        }
        Ok(())
    }
}

/// Objects with a file of their own that were there before and are not as they were.
fn changed_loose(peer: &PeerRepo, before: &StoreMark, now: &StoreMark) -> Result<Vec<Oid>, GitError> {
    let mut changed = Vec::new();
    for (oid, was) in &before.loose {
        let is = match now.loose.get(oid) {
            Some(is) => Some(*is),
            None if now.whole => None,
            // There are too many to remember: this one is looked at by itself.
            None => stamp_of(peer, *oid)?,
        };
        if is != Some(*was) {
            changed.push(*oid);
        }
    }
    Ok(changed)
}

/// New files that should hold objects; git takes an object for written that has one, whatever is in it.
/// Those that are empty cost nothing to look at.
fn fresh_loose(before: Option<&StoreMark>, now: &StoreMark, mended: &mut StoreMended) -> Vec<Oid> {
    let Some(before) = before.filter(|before| before.whole) else { return Vec::new() };
    let fresh = now.loose.iter().filter(|(oid, _)| !before.loose.contains_key(oid));
    let (mut empty, mut full) = (Vec::new(), Vec::new());
    for (oid, stamp) in fresh {
        if stamp.size() == 0 { empty.push(*oid) } else { full.push(*oid) }
    }
    if full.len() > FRESH {
        mended.unseen.push(format!("{} of {} new files of objects", full.len() - FRESH, full.len()));
        full.truncate(FRESH);
    }
    if !now.whole {
        mended.unseen.push(format!("new files of objects after the first {}", now.loose.len()));
    }
    empty.append(&mut full);
    empty
}

/// Looks into new files. One that holds no object goes, unless there is a copy. Returns what was written back.
fn settle_fresh(
    peer: &PeerRepo,
    (theirs, ours): (&Odb<'_>, &Odb<'_>),
    fresh: Vec<Oid>,
    budget: &mut Budget,
    mended: &mut StoreMended,
) -> Result<Vec<Oid>, GitError> {
    let mut written = Vec::new();
    for oid in fresh {
        match judge(theirs, ours, oid, budget) {
            Judged::Sound => {}
            Judged::Unread => mended.unseen.push(file_of(oid)),
            Judged::Damaged => {
                if let Some((kind, data)) = readable(ours, oid) {
                    write_loose(&peer.objects_dir(), oid, kind, &data)?;
                    written.push(oid);
                } else {
                    let name = file_of(oid);
                    files::remove_tree(&peer.common_dir().join(&name))?;
                    mended.removed.push(name);
                }
            }
        }
    }
    Ok(written)
}

fn exists(peer: &PeerRepo, oid: Oid) -> Result<bool, GitError> {
    Ok(stamp_of(peer, oid)?.is_some())
}

fn stamp_of(peer: &PeerRepo, oid: Oid) -> Result<Option<Stamp>, GitError> {
    let path = peer.common_dir().join(file_of(oid));
    match files::lstat(&path) {
        Ok(stat) => Ok(stat.map(|stat| Stamp::of(&stat))),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        Err(source) => Err(GitError::io(&path, source)),
    }
}

fn file_of(oid: Oid) -> String {
    let name = oid.to_string();
    let (fan_out, rest) = name.split_at(2);
    format!("objects/{fan_out}/{rest}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Sound,
    Damaged,
    /// There is too much of it.
    Unread,
}

/// Whether an object of theirs is what its name says. The size in its header is only believed when our copy
/// has the same: what that is as large as may be read, and what is not so large is none of it.
fn judge(theirs: &Odb<'_>, ours: &Odb<'_>, oid: Oid, budget: &mut Budget) -> Judged {
    // Each one that is not there makes the library look at all packs again.
    if budget.is_late() {
        return Judged::Unread;
    }
    let Ok(found) = theirs.read_header(oid) else { return Judged::Damaged };
    let copy = ours.read_header(oid).ok();
    if copy == Some(found) && found.0 <= LARGEST {
        return if readable(theirs, oid).is_some() { Judged::Sound } else { Judged::Damaged };
    }
    match budget.read(theirs, oid, LARGE) {
        Bounded::Read(..) => Judged::Sound,
        Bounded::Damaged => Judged::Damaged,
        // A copy that is damaged itself says nothing about theirs.
        Bounded::TooMuch if copy.is_some_and(|copy| copy != found) && readable(ours, oid).is_some() => {
            Judged::Damaged
        }
        Bounded::TooMuch => Judged::Unread,
    }
}

/// Objects that are in use.
#[derive(Debug, Default)]
pub(super) struct InUse {
    pub(super) all: HashSet<Oid>,
    /// These are all, as far as our copy tells: what is none of them is not in use.
    pub(super) whole: bool,
    /// They are all, and we have a copy of each.
    pub(super) copied: bool,
}

/// How far a closure goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Commits and their trees.
    Trees,
    /// With the files, and all that came before.
    All,
}

/// What these commits and tags need, as far as the store has it.
pub(super) fn closure(odb: &Odb<'_>, tips: &[Oid], depth: Depth, cap: usize) -> InUse {
    let mut found = InUse { whole: true, copied: true, ..InUse::default() };
    let mut todo: Vec<Oid> = tips.to_vec();
    while let Some(oid) = todo.pop() {
        if !found.all.insert(oid) {
            continue;
        }
        if found.all.len() > cap {
            return InUse { whole: false, copied: false, ..found };
        }
        let needed = match odb.read_header(oid) {
            Ok((_, ObjectType::Blob)) => continue,
            Ok(_) => readable(odb, oid).and_then(|(kind, data)| needed(kind, &data, depth)),
            Err(_) => None,
        };
        found.copied &= needed.is_some();
        todo.extend(needed.unwrap_or_default());
    }
    found
}

/// What an object names; nothing for one that cannot be told to be what it should.
fn needed(kind: ObjectType, data: &[u8], depth: Depth) -> Option<Vec<Oid>> {
    match kind {
        ObjectType::Commit => {
            let commit = objects::parse_commit(data)?;
            // Trees first, and the newest: what is left out by a limit is old.
            let mut needed = if depth == Depth::All { commit.parents } else { Vec::new() };
            needed.push(commit.tree);
            Some(needed)
        }
        ObjectType::Tree => {
            let wanted = |entry: &&Entry| match depth {
                Depth::Trees => entry.is_tree(),
                Depth::All => entry.mode != MODE_GITLINK,
            };
            Some(objects::parse_tree(data)?.iter().filter(wanted).map(|entry| entry.id).collect())
        }
        ObjectType::Tag => {
            let line = data.strip_prefix(b"object ")?;
            hash_at(line, 0).and_then(|hash| Oid::from_str(hash).ok()).map(|oid| vec![oid])
        }
        _ => Some(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_time_left_no_object_is_looked_for() {
        let (dir, oid) = (tempfile::tempdir().unwrap(), Oid::ZERO_SHA1);
        let odb = store_at(dir.path()).unwrap();
        let judged = |time| judge(&odb, &odb, oid, &mut Budget::new(TOTAL, time));
        assert_eq!((judged(TIME), judged(Duration::ZERO)), (Judged::Damaged, Judged::Unread));
    }
}
