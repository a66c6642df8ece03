//! Moving a pack out of the agents' object store that is none, or may hide what is in the store.

use std::path::Path;

use super::budget::{Bounded, Budget, readable_within};
use super::complete::store_at;
use super::loose::write_loose;
use super::packs::{BESIDE, INDEX_CAP};
use crate::aside;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::files::{self, Small};
use crate::repo::PeerRepo;

/// Objects that are taken out of one pack.
const OBJECTS: usize = 200_000;
/// Larger ones are not.
const LARGE: usize = 512 << 20;

impl ControlDir {
    /// Moves a pack and what belongs to it to the place for what was in the way. Objects in it that have the
    /// name of their content and are nowhere else get files of their own, as far as the budget goes. Nothing
    /// is deleted that could be moved: which objects there are is only known from the index. Says what was
    /// done.
    pub(super) fn take_out(
        &self,
        peer: &PeerRepo,
        stem: &str,
        budget: &mut Budget,
    ) -> Result<String, GitError> {
        let objects_dir = peer.objects_dir();
        let dir = objects_dir.join("pack");
        let path = |end: &str| dir.join(format!("{stem}{end}"));
        let move_out = |end: &str| {
            let shown = format!("objects/pack/{stem}{end}");
            aside::keep(peer.common_dir(), &path(end), Path::new(&shown), "pack")
        };
        let index = match files::read_small(&path(".idx"), INDEX_CAP) {
            Ok(Small::Bytes(bytes)) if !budget.is_late() => bytes,
            _ => Vec::new(),
        };
        // First: without its index a pack is out of sight, wherever the rest is.
        if move_out(".idx").is_err() {
            files::remove_tree(&path(".idx"))?;
        }
        let mut kept = None;
        for end in BESIDE {
            match move_out(end) {
                Ok(to) if end == ".pack" => kept = to,
                // What cannot be moved is nothing without the index.
                Ok(_) | Err(_) => {}
            }
        }
        let place = kept.as_ref().map_or_else(|| path(".pack"), |to| peer.common_dir().join(to));
        let taken =
            if index.is_empty() { 0 } else { self.take_objects(&objects_dir, &place, &index, budget)? };
        let place = match kept {
            Some(to) => format!("moved to .git/{to}"),
            None => "it could not be moved and has no index any more".to_owned(),
        };
        Ok(match taken {
            0 => place,
            n => format!("{place}; of the objects in it {n} have files of their own now"),
        })
    }

    /// Writes the objects of a pack that are sound and nowhere else as files of their own; how many.
    fn take_objects(
        &self,
        objects_dir: &Path,
        pack: &Path,
        index: &[u8],
        budget: &mut Budget,
    ) -> Result<usize, GitError> {
        let alone = self.empty_git("alone")?.join("objects");
        files::replace(&alone.join("pack/pack-alone.idx"), index)?;
        let link = alone.join("pack/pack-alone.pack");
        std::os::unix::fs::symlink(pack, &link).map_err(|source| GitError::io(&link, source))?;
        let mut taken = 0;
        {
            let (from, rest) = (store_at(&alone)?, store_at(objects_dir)?);
            let mut all = Vec::new();
            // What cannot be listed cannot be read either.
            let _rest = from.foreach(|oid| {
                all.push(*oid);
                all.len() < OBJECTS
            });
            for oid in all {
                if budget.is_late() {
                    break;
                }
                // Of what this one claims to be so large, the other may be the true one.
                if let Bounded::Read(kind, data) = budget.read(&from, oid, LARGE)
                    && readable_within(&rest, oid, data.len()).is_none()
                {
                    write_loose(objects_dir, oid, kind, &data)?;
                    taken += 1;
                }
            }
        }
        files::remove_tree(&alone)?;
        Ok(taken)
    }
}
