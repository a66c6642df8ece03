//! `peers sandbox`: what a peer or a gate sees from behind the wall, and a look around from there.

use std::path::Path;
use std::time::Duration;

use peers_model::config::PeerSpec;
use peers_model::request::AskedWall;
use peers_model::{Backend, exit};
use peers_place::Place;
use peers_run::boot::{BootError, Finding, Loaded, walls};
use peers_run::env::{Net, Policy};
use peers_run::outlets;
use peers_run::procs::{Role, Site, SiteSpec, as_gate, as_peer};
use peers_sandbox::{ExecError, run_watched};
use peers_sys::confine::Files;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::spawn::{RawExit, Spawn};

use crate::scratch::Scratch;

/// Who looks.
#[derive(Debug, Clone, Copy)]
pub enum Who<'a> {
    /// This peer, in its turn.
    Peer(&'a PeerSpec),
    /// A gate in the work tree.
    Gate,
    /// A command of `setup`.
    SetUp,
}

/// A place behind the wall; it goes with the value.
pub struct Inside {
    backend: Backend,
    limits: bool,
    gates_reach: bool,
    spawn: Spawn,
    notes: Vec<String>,
    _outlets: std::rc::Rc<Site>,
    _scratch: Scratch,
}

/// What a wall is told, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// Nothing.
    None,
    /// The arguments of bubblewrap, or of `podman run`.
    Arguments(Vec<String>),
    /// What Landlock lets through.
    Landlock {
        /// Read and executed, with all below.
        read: Vec<String>,
        /// Written as well.
        write: Vec<String>,
    },
}

impl Inside {
    /// Makes it ready for `/bin/sh`, or for `command` run by it. Nothing runs yet.
    ///
    /// # Errors
    /// [`BootError`], also where no wall holds that is asked for.
    pub fn new(
        place: &Place,
        env: &Env,
        loaded: &Loaded,
        (who, asked): (Who<'_>, AskedWall),
        command: Option<&str>,
    ) -> Result<Self, BootError> {
        let policy = Policy::load(env).map_err(|e| Finding::plain(exit::INVALID, chain(&e)))?;
        let policy = policy.narrowed(&loaded.config.sandbox);
        let scratch = Scratch::new(place)?;
        let peers = place.open_peers()?;
        let mut spec = SiteSpec { peers, ..scratch.site(place, env, (policy, asked), &loaded.config)? };
        let backend = spec.wall.backend();
        let mut notes = Vec::new();
        if let Who::Peer(peer) = who {
            let (outlets, more) = outlets::start(outlets::Start {
                env,
                policy: &spec.chosen,
                peers: std::slice::from_ref(peer),
                backend,
                run: scratch.run_id(),
                stub: &spec.stub,
                program: &walls::this_program()?.1,
                cache: scratch.dir(),
            })?;
            spec.outlets = std::rc::Rc::new(outlets);
            notes = more.into_iter().filter_map(|notice| notice.text().map(str::to_owned)).collect();
        }
        let limits = spec.wall.has_limits();
        let gates_reach = spec.chosen.gates.net == Some(Net::Host);
        let site = std::rc::Rc::new(Site::new(spec));
        let mut argv = vec!["/bin/sh".to_owned()];
        argv.extend(command.iter().flat_map(|command| ["-c".to_owned(), (*command).to_owned()]));
        let plain = |why: String| Finding::plain(exit::INVALID, why);
        let spawn = match who {
            Who::Peer(peer) => as_peer(&site, peer, argv).map_err(plain)?,
            Who::Gate => as_gate(&site, &loaded.config, &argv, Role::Gate).map_err(plain)?,
            Who::SetUp => as_gate(&site, &loaded.config, &argv, Role::SetUp).map_err(plain)?,
        };
        Ok(Self { backend, limits, gates_reach, spawn, notes, _outlets: site, _scratch: scratch })
    }

    /// What is worth knowing of its ways out.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Which wall it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether memory and processes are limited.
    #[must_use]
    pub fn limits(&self) -> bool {
        self.limits
    }

    /// Whether the operator gives gates the network of this machine.
    #[must_use]
    pub fn gates_reach(&self) -> bool {
        self.gates_reach
    }

    /// Runs it without streams of ours to its end, or up to a limit.
    ///
    /// # Errors
    /// [`ExecError`] if it could not be started, or its end was lost.
    pub fn try_out(&self, limit: Duration) -> Result<Option<RawExit>, ExecError> {
        run_watched(&self.spawn, limit).map(|ran| ran.exit)
    }

    /// What that wall is told.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        match (&self.spawn.within, &self.spawn.confine.files) {
            (Some(within), _) => {
                Rules::Arguments(within.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect())
            }
            (None, Some(Files { read, write })) => Rules::Landlock {
                read: read.iter().map(|path| shown(path)).collect(),
                write: write.iter().map(|path| shown(path)).collect(),
            },
            (None, None) => Rules::None,
        }
    }

    /// Runs it with our own standard streams, to its end.
    ///
    /// # Errors
    /// [`ExecError`] if it could not be started, or its end was lost.
    pub fn run(&self) -> Result<RawExit, ExecError> {
        let mut child = self.spawn.start_in_place()?;
        let ended = child.wait_exited(None)?;
        let reaped = child.reap();
        match ended {
            Some(exit) => Ok(exit),
            None => Ok(reaped?),
        }
    }
}
