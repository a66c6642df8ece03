//! The index that a turn begins with.

use std::collections::HashMap;
use std::path::Path;

use git2::{Index, IndexEntry};
use peers_model::CommitId;

use crate::blob;
use crate::checkout::index_entry;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::objects;
use crate::repo::PeerRepo;
use crate::snapshot::Known;

/// `assume-unchanged` among the flags of an entry, and `skip-worktree` among the extended ones.
const ASSUME: u16 = 0x8000;
const SKIP: u16 = 0x4000;

/// What the operator told git not to look at.
pub(super) fn hidden(entry: &IndexEntry) -> (u16, u16) {
    (entry.flags & ASSUME, entry.flags_extended & SKIP)
}

/// Writes one that holds the tree of a commit, whatever is in the work tree. Files whose content is known to
/// be that of the commit have their stamps, so git need not read them; the others have none.
pub(super) fn write(
    path: &Path,
    control: &ControlDir,
    checkout: &PeerRepo,
    tip: &CommitId,
    owner: (u32, u32),
) -> Result<(), GitError> {
    let fail = |source| GitError::library(format!("write `{}`", path.display()), source);
    let mut flags: HashMap<Vec<u8>, (u16, u16)> = HashMap::new();
    for entry in checkout.open_index_file()?.iter() {
        let hidden = hidden(&entry);
        if hidden != (0, 0) {
            flags.insert(entry.path, hidden);
        }
    }
    let odb = objects::odb(&control.repo)?;
    let stamps = control.stamps(checkout.work_dir());
    let mut index = Index::open(path).map_err(fail)?;
    for leaf in blob::leaves(&odb, objects::commit_tree(&control.repo, tip)?)? {
        let mut entry = index_entry(&leaf.path, leaf.mode, leaf.id, None);
        stamp(stamps.as_deref(), &mut entry, || Some(owner));
        if let Some((plain, extended)) = flags.get(&leaf.path) {
            (entry.flags, entry.flags_extended) = (*plain, *extended);
        }
        index.add(&entry).map_err(fail)?;
    }
    index.write().map_err(fail)
}

/// Writes the stamp of a file into its entry, where it is known to have the content and the mode.
pub(super) fn stamp(
    stamps: Option<&HashMap<Vec<u8>, Known>>,
    entry: &mut IndexEntry,
    owner: impl FnOnce() -> Option<(u32, u32)>,
) {
    let executable = entry.mode == objects::MODE_EXEC;
    let is_as = |known: &&Known| known.id == entry.id && known.stamp.is_executable() == executable;
    if (executable || entry.mode == objects::MODE_FILE)
        && let Some(known) = stamps.and_then(|stamps| stamps.get(&entry.path)).filter(is_as)
        && let Some(owner) = owner()
    {
        known.stamp.stamp(entry, owner);
    }
}
