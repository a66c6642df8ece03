//! A private directory of a command outside of a loop, in the cache.

use peers_model::{RunId, exit};
use peers_place::Place;
use peers_run::boot::{self, BootError, Finding};
use peers_run::cache;
use peers_run::env::OperatorEnv;
use peers_run::procs::SiteSpec;
use peers_store::verdicts::Verdicts;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::lock::FileLock;
use peers_sys::spawn::StubProgram;

/// A private directory, removed with the value.
pub(crate) struct Scratch {
    cache: SafeDir,
    id: String,
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
        let id = peers_sys::rand::hex::<8>().map_err(|e| bug(format!("random bytes: {e}")))?;
        let run_id = cache::run_of(&id).ok_or_else(|| bug("a digest is no id".to_owned()))?;
        let cache = SafeDir::create_root(place.cache_dir())?;
        let (dir, owned) = cache::begin(&cache, &format!("{}{id}", cache::ONESHOT))?;
        Ok(Self { cache, id, dir, run_id, _owned: owned })
    }

    /// What children of this command are started with and by, in the work tree of this place.
    pub(crate) fn site(&self, place: &Place, env: &Env, chosen: OperatorEnv) -> Result<SiteSpec, Finding> {
        let bug = |what: String| Finding::plain(exit::BUG, what);
        let stub = StubProgram::this_program().map_err(|e| bug(e.to_string()))?;
        Ok(SiteSpec {
            run_id: self.run_id.clone(),
            project: place.id().clone(),
            repo: place.work_dir().to_owned(),
            peers: None,
            scratch: self.dir.try_clone()?,
            program: stub.path().to_owned(),
            stub,
            bin: peers_sys::env::running_exe().map_err(|e| bug(e.to_string()))?,
            operator: env.clone(),
            chosen,
            subreaper: peers_sys::reap::become_subreaper().is_ok(),
            verdicts: Verdicts::default(),
            setup_pause: None,
        })
    }

    /// The cache that it lies in.
    pub(crate) fn cache(&self) -> &SafeDir {
        &self.cache
    }

    /// What its name, and that of all that goes with it, ends in.
    pub(crate) fn id(&self) -> &str {
        &self.id
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
        if let Err(error) = self.cache.remove_tree(format!("{}{}", cache::ONESHOT, self.id)) {
            tracing::warn!(error = %chain(&error), "a scratch directory was not removed");
        }
    }
}
