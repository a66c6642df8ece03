//! A private directory of a command outside of a loop, in the cache.

use std::path::PathBuf;
use std::rc::Rc;

use peers_git::PeerRepo;
use peers_model::config::Config;
use peers_model::request::AskedWall;
use peers_model::{Backend, RunId, exit};
use peers_place::Place;
use peers_run::boot::walls::{self, Found, Ours};
use peers_run::boot::{self, BootError, Finding};
use peers_run::cache;
use peers_run::env::Policy;
use peers_run::procs::{SiteSpec, TurnMounts, WALL};
use peers_store::verdicts::Verdicts;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::lock::FileLock;

/// A file that nobody behind a wall sees.
const CANARY: &str = "canary";

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
    ///
    /// # Errors
    /// A [`Finding`], also where no wall holds that is asked for.
    pub(crate) fn site(
        &self,
        place: &Place,
        env: &Env,
        (chosen, asked): (Policy, AskedWall),
        config: &Config,
    ) -> Result<SiteSpec, BootError> {
        let (stub, bin) = walls::this_program()?;
        let wall = self.wall(env, &chosen, asked)?.wall.with_settings(&self.dir)?;
        let repo = PeerRepo::open(place.work_dir()).ok();
        let own = self.dir.path().join("control.git/objects");
        let objects = repo
            .iter()
            .map(|repo| repo.common_dir().join("objects"))
            .chain([own, place.control_git_path().join("objects")]);
        Ok(SiteSpec {
            run_id: self.run_id.clone(),
            project: place.id().clone(),
            repo: place.work_dir().to_owned(),
            peers: None,
            scratch: self.dir.try_clone()?,
            program: stub.path().to_owned(),
            stub,
            bin: walls::bin(wall.backend(), running_exe()?, bin),
            git: repo.iter().flat_map(|repo| walls::outside_of(place.work_dir(), repo)).collect(),
            objects: objects.collect(),
            turn: TurnMounts::default(),
            outlets: Rc::default(),
            packages: walls::packages(&wall, config, &self.cache)?,
            downloads: walls::downloads(&wall, &chosen, &self.cache)?,
            wall,
            operator: env.clone(),
            chosen,
            subreaper: peers_sys::reap::become_subreaper().is_ok(),
            verdicts: Verdicts::default(),
            setup_pause: None,
        })
    }

    /// The wall that is asked for, or the best one that holds.
    ///
    /// # Errors
    /// A [`Finding`], also where none holds.
    pub(crate) fn wall(&self, env: &Env, chosen: &Policy, asked: AskedWall) -> Result<Found, BootError> {
        let (stub, bin) = walls::this_program()?;
        self.dir.publish_unsynced(CANARY, b"")?;
        let canary = self.dir.path().join(CANARY);
        // A check of a run is put behind the wall of that run.
        let of_run = env.text(WALL).and_then(Backend::named);
        let asked = AskedWall { backend: asked.backend.or(of_run), ..asked };
        Ok(walls::find(chosen, asked, 0, env, Ours { stub: &stub, bin: &bin, canary: &canary })?)
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

fn running_exe() -> Result<PathBuf, Finding> {
    peers_sys::env::running_exe().map_err(|error| Finding::plain(exit::BUG, error.to_string()))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in the cache, private, and costs disk space only.
        if let Err(error) = self.cache.remove_tree(format!("{}{}", cache::ONESHOT, self.id)) {
            tracing::warn!(error = %chain(&error), "a scratch directory was not removed");
        }
    }
}
