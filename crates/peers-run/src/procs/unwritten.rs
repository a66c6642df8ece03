//! Reports that were there before the gate's command ran, and that it did not write.
//!
//! Before the command runs, each file that `json()` reads gets a time long past. A file that still is that
//! file, with that time, was not written since. The time of the inode's change would tell more, but moves
//! in steps of milliseconds: a report that was written at once would pass for an old one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use peers_sys::dir::FileId;
use peers_sys::{FileError, SafeDir, term};

/// Since the epoch. No tool that fixes times for reproducible output chooses this one.
const MARK: Duration = Duration::new(1, 736_182_945);

/// The marked files, by their path below the tree.
#[derive(Debug, Default)]
pub(super) struct Unwritten(BTreeMap<String, (FileId, i64)>);

impl Unwritten {
    /// Marks those of these files that are there.
    ///
    /// # Errors
    /// In words, when a file that could be read later cannot be marked.
    pub(super) fn mark(tree: &Path, files: &BTreeSet<String>) -> Result<Self, String> {
        let mut marked = BTreeMap::new();
        for file in files {
            let stat = SafeDir::open_shared(tree)
                .and_then(|tree| tree.parent_of(file))
                .and_then(|(dir, name)| dir.set_modified(name, MARK));
            match stat {
                Ok(stat) => drop(marked.insert(file.clone(), (stat.id, stat.modified_ns))),
                // What is no plain file below the tree is not read as a report either.
                Err(error) if error.is_not_found() || error.is_unsafe() => {}
                Err(error) => return Err(why(file, &error)),
            }
        }
        Ok(Self(marked))
    }

    /// Whether `name` in `dir`, which is `path` below the tree, is as it was marked.
    pub(super) fn holds(&self, path: &str, dir: &SafeDir, name: &std::ffi::OsStr) -> Result<bool, FileError> {
        let Some(marked) = self.0.get(path) else { return Ok(false) };
        Ok(dir.stat(name)?.is_some_and(|stat| (stat.id, stat.modified_ns) == *marked))
    }
}

fn why(file: &str, error: &FileError) -> String {
    let source = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!(
        "`{}`, which `json()` reads, could not be marked as not yet written{source}; let the command make \
         that report, and do not commit it",
        term::line(file, 200)
    )
}
