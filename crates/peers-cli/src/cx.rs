//! What every subcommand is given.

use std::path::PathBuf;

use peers_git::{ControlDir, Git, PeerRepo};
use peers_run::place::Place;
use peers_store::FsDisk;
use peers_sys::clock;
use peers_sys::env::Env;
use peers_view::{Asked, GitFacts, Lock, Sourced};

use crate::error::{self, CommandError};
use crate::output::Out;

/// What every subcommand is given.
#[derive(Debug)]
pub(crate) struct Cx {
    /// The environment.
    pub(crate) env: Env,
    /// The directory that the command is about.
    pub(crate) target: PathBuf,
    /// The terminal.
    pub(crate) out: Out,
}

impl Cx {
    /// Where the things of the target lie.
    pub(crate) fn place(&self) -> Result<Place, CommandError> {
        Ok(Place::locate(&self.target, &self.env)?)
    }

    /// The place with its store, for looking.
    pub(crate) fn view(&self) -> Result<(Place, FsDisk), CommandError> {
        let place = self.place()?;
        refuse_link(&place)?;
        let disk = place.open_view_disk()?;
        Ok((place, disk))
    }

    /// The place with its store, for a command that writes.
    pub(crate) fn store(&self) -> Result<(Place, FsDisk), CommandError> {
        let place = self.place()?;
        let disk = place.open_store_disk()?;
        Ok((place, disk))
    }

    /// The repository at the target.
    pub(crate) fn repo(place: &Place) -> Result<PeerRepo, CommandError> {
        Ok(PeerRepo::open(place.work_dir())?)
    }

    /// The control git directory of the place; `None` while there is none.
    pub(crate) fn control(&self, place: &Place) -> Result<Option<ControlDir>, CommandError> {
        let path = place.control_git_path();
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(ControlDir::open_or_create(&path, self.git()?)?))
    }

    /// The `git` program.
    pub(crate) fn git(&self) -> Result<Git, CommandError> {
        Ok(Git::locate(self.env.var("PATH").unwrap_or_default())?)
    }

    /// What a view is asked for: now, the lock, and what a cheap look at the repository shows.
    pub(crate) fn asked(place: &Place) -> Asked {
        let mut asked = Asked::new(clock::now(), clock::boot_id().map(str::to_owned), lock(place));
        let facts = PeerRepo::open(place.work_dir()).map_err(|error| error::chain(&error));
        let facts = facts.and_then(|repo| GitFacts::of(&repo).map_err(|error| error::chain(&error)));
        asked.git = match facts {
            Ok(facts) => Sourced::Fresh(facts),
            Err(why) => Sourced::Unreadable(why),
        };
        asked
    }

    /// The login name of who asks.
    pub(crate) fn operator(&self) -> String {
        let name = self.env.text("USER").or_else(|| self.env.text("LOGNAME")).unwrap_or("unknown");
        peers_sys::term::line(name, 64)
    }
}

/// What a look at the run lock shows.
pub(crate) fn lock(place: &Place) -> Lock {
    match place.holder() {
        Ok(None) => Lock::Free,
        Ok(Some(holder)) => Lock::Held { pid: holder.pid, run_id: holder.run_id, foreign: holder.foreign },
        Err(error) => Lock::Unreadable(error::chain(&error)),
    }
}

/// Commands that only look refuse a control directory that leads elsewhere.
fn refuse_link(place: &Place) -> Result<(), CommandError> {
    let found = place.open_work()?.stat(peers_run::place::PEERS_DIR)?;
    if found.is_some_and(|stat| stat.kind == peers_sys::dir::Kind::Symlink) {
        return Err(CommandError::new(peers_model::exit::REFUSED, ".peers is a symbolic link")
            .hint("somebody put it there: look at it, remove it, and start again"));
    }
    Ok(())
}
