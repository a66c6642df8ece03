//! A private directory of a command outside of a loop, in the cache.

use peers_model::{RunId, exit};
use peers_place::Place;
use peers_run::boot::{self, BootError, Finding};
use peers_run::cache;
use peers_sys::dir::SafeDir;
use peers_sys::error::chain;
use peers_sys::lock::FileLock;

/// A private directory, removed with the value.
pub(crate) struct Scratch {
    cache: SafeDir,
    name: String,
    dir: SafeDir,
    run_id: RunId,
    /// As long as it is held nobody takes this for a leftover.
    _owned: FileLock,
}

impl Scratch {
    /// Makes one.
    pub(crate) fn new(place: &Place) -> Result<Self, BootError> {
        boot::open_files()?;
        let bug = |what: String| Finding::plain(exit::BUG, what);
        let random = peers_sys::rand::hex::<8>().map_err(|e| bug(format!("random bytes: {e}")))?;
        let run_id = cache::run_of(&random).ok_or_else(|| bug("a digest is no id".to_owned()))?;
        let cache = SafeDir::create_root(place.cache_dir())?;
        let name = format!("{}{random}", cache::ONESHOT);
        let (dir, owned) = cache::begin(&cache, &name)?;
        Ok(Self { cache, name, dir, run_id, _owned: owned })
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &SafeDir {
        &self.dir
    }

    /// The id that processes of this command carry. It is that of no run.
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in the cache, private, and costs disk space only.
        if let Err(error) = self.cache.remove_tree(&self.name) {
            tracing::warn!(error = %chain(&error), "a scratch directory was not removed");
        }
    }
}
