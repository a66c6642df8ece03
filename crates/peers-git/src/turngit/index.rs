//! The index that a turn begins with.

use std::collections::HashMap;
use std::path::Path;

use git2::IndexEntry;
use peers_model::CommitId;

use crate::blob::{self, Leaf};
use crate::checkout::index_entry;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::index_entries::{self, hidden};
use crate::objects;
use crate::repo::PeerRepo;
use crate::snapshot::Known;

/// Writes one that holds the tree of a commit, whatever is in the work tree. Files whose content is known to
/// be that of the commit have their stamps, so git need not read them; the others have none.
pub(super) fn write(
    path: &Path,
    control: &ControlDir,
    checkout: &PeerRepo,
    tip: &CommitId,
    owner: (u32, u32),
) -> Result<(), GitError> {
    let mut flags: HashMap<Vec<u8>, (u16, u16)> = HashMap::new();
    if checkout.hides_files()? {
        let index = checkout.open_index_file()?;
        let all = index.iter().map(|entry| (hidden(&entry), entry.path));
        flags.extend(all.filter(|(hidden, _)| *hidden != (0, 0)).map(|(hidden, path)| (path, hidden)));
    }
    let odb = objects::odb(&control.repo)?;
    let stamps = control.stamps(checkout.work_dir());
    let entry = |leaf: Leaf| {
        let mut entry = index_entry(leaf.path, leaf.mode, leaf.id, None);
        stamp(stamps.as_deref(), &mut entry, || Some(owner));
        (entry.flags, entry.flags_extended) = flags.get(&entry.path).copied().unwrap_or_default();
        entry
    };
    let leaves = blob::leaves(&odb, objects::commit_tree(&control.repo, tip)?)?;
    index_entries::write(path, leaves.into_iter().map(entry).collect())
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
