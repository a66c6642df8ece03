//! The files of a mode, laid down anew for each attempt of a gate that may need them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use peers_model::GoalId;
use peers_sys::SafeDir;

/// The bytes of files, by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The files of the mode that each gate comes from, where it has some.
pub type ModeFiles = BTreeMap<GoalId, Arc<Files>>;

/// The variable in which a gate finds them.
pub(super) const VARIABLE: &str = "PEERS_MODE_DIR";
/// Permissions of each file: to be read and run.
const MODE: u32 = 0o500;

/// A directory with the files of a mode, which goes with the value.
pub(super) struct ModeDir {
    scratch: SafeDir,
    name: String,
    path: PathBuf,
}

impl ModeDir {
    /// Writes the files. What an earlier attempt did to its own is not seen.
    pub(super) fn fresh(scratch: &SafeDir, files: &Files) -> Result<Self, String> {
        let name = format!("mode-{}", peers_sys::rand::hex::<8>().map_err(|error| error.to_string())?);
        let failed = |error| format!("the files of its mode were not written: {error}");
        let scratch = scratch.try_clone().map_err(failed)?;
        let dir = scratch.create_subdir(&name).map_err(failed)?;
        let made = Self { scratch, name, path: dir.path().to_owned() };
        for (file, bytes) in files {
            let (parent, leaf) = dir.create_parent_of(file).map_err(failed)?;
            parent.publish_as(leaf, bytes, MODE).map_err(failed)?;
        }
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ModeDir {
    fn drop(&mut self) {
        // What stays lies in a private directory that is emptied at the next start.
        let _removed = self.scratch.remove_tree(&self.name);
    }
}
