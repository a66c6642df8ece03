//! The wall of a run: which backend it is, and how a child is put behind it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_model::Backend;
use peers_sys::confine::{Filter, has_landlock};
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::Env;
use peers_sys::spawn::{RawExit, Spawn, StubProgram, resolve_program};

use crate::access::Access;
use crate::bwrap::{self, Roots};
use crate::landlock;
use crate::podman::{self, Podman};
use crate::podman_here::Client;
use crate::watched::run_watched;

/// A live probe ends by itself within milliseconds.
const PROBE: Duration = Duration::from_secs(10);
/// The same in a container: the first one of an image is preceded by a copy of it.
const FIRST: Duration = Duration::from_mins(3);

/// Puts children behind a wall.
#[derive(Debug, Clone)]
pub struct Wall {
    kind: Kind,
    filter: Filter,
    remarks: Vec<String>,
}

#[derive(Debug, Clone)]
enum Kind {
    None,
    Landlock,
    Podman(Podman),
    Bwrap { bwrap: PathBuf, ours: PathBuf, roots: Roots },
}

/// What a wall is chosen from.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The backend that the operator names; absent: the best that holds.
    pub backend: Option<Backend>,
    /// The least tier.
    pub require: u8,
    /// How much the kernel refuses.
    pub filter: Filter,
    /// The stub, and our program under a name at which it can be bound.
    pub stub: &'a StubProgram,
    /// Our program under a name at which it can be bound.
    pub program: &'a Path,
    /// The search path in which bubblewrap is looked for.
    pub search: &'a std::ffi::OsStr,
    /// A file of ours that nobody behind a wall may see or change.
    pub canary: &'a Path,
    /// What podman goes by.
    pub operator: &'a Env,
    /// The image of podman's containers; absent: [`crate::USUAL_IMAGE`].
    pub image: Option<&'a str>,
}

/// What became of a choice.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The wall; absent where none reaches the tier that is asked for.
    pub wall: Option<Wall>,
    /// The backends that were tried before it, and why they do not hold here.
    pub missing: Vec<(Backend, String)>,
}

impl Wall {
    /// No wall.
    #[must_use]
    pub fn none() -> Self {
        Self { kind: Kind::None, filter: Filter::Usual, remarks: Vec::new() }
    }

    /// Tries the backends, the best first, with a live child each. One that is only taken by name is left out where
    /// nobody names it.
    #[must_use]
    pub fn choose(asked: &Asked<'_>) -> Chosen {
        let mut missing = Vec::new();
        for backend in Backend::ALL {
            let named = asked.backend == Some(backend);
            let wanted = named || (asked.backend.is_none() && !backend.is_by_name());
            if !wanted || backend.tier() < asked.require {
                continue;
            }
            match Self::try_out(backend, asked) {
                Ok(wall) => return Chosen { wall: Some(wall), missing },
                Err(why) => missing.push((backend, why)),
            }
        }
        Chosen { wall: None, missing }
    }

    fn try_out(backend: Backend, asked: &Asked<'_>) -> Result<Self, String> {
        let mut remarks = Vec::new();
        let kind = match backend {
            Backend::None => return Ok(Self { filter: asked.filter, ..Self::none() }),
            Backend::Podman => {
                let client = Client::find(asked.stub, asked.operator)?;
                let (podman, told) = client.look(asked.image)?;
                for (id, _) in client.strays()? {
                    client.remove(&id)?;
                }
                remarks = told.0;
                Kind::Podman(podman)
            }
            Backend::Landlock if has_landlock() => Kind::Landlock,
            Backend::Landlock => {
                let why = "this kernel has no Landlock of version 4 (Linux 6.7), or not among what `/sys/kernel/security/lsm` names";
                return Err(why.to_owned());
            }
            Backend::Bwrap => {
                let found = resolve_program("bwrap".as_ref(), Some(asked.search), Path::new("/"));
                let bwrap = found.map_err(|_| {
                    "bubblewrap is not installed: `apt install bubblewrap`, `dnf install bubblewrap`"
                        .to_owned()
                })?;
                Kind::Bwrap { bwrap, ours: asked.program.to_owned(), roots: Roots::look() }
            }
        };
        let wall = Self { kind, filter: asked.filter, remarks };
        wall.probe(asked).map(|()| wall)
    }

    /// A child behind the wall says whether it sees what it must not.
    fn probe(&self, asked: &Asked<'_>) -> Result<(), String> {
        const LOOK: &str = "(: < \"$1\") 2>/dev/null && exit 81; (: >> \"$1\") 2>/dev/null && exit 82; \
            (: > \"$2\") 2>/dev/null && exit 83; exit 80";
        let mut spawn = Spawn::new(asked.stub.clone(), "/bin/sh", "/");
        spawn.args = ["-c", LOOK, "probe"].map(Into::into).into();
        spawn.args.extend([asked.canary.into(), format!("/usr/.peers-{}", std::process::id()).into()]);
        let spawn = self.put_up(spawn, &Access { network: crate::Network::None, ..Access::default() });
        let limit = if matches!(self.kind, Kind::Podman(_)) { FIRST } else { PROBE };
        let ran = run_watched(&spawn, limit).map_err(|error| error.to_string())?;
        match ran.exit {
            Some(RawExit::Code(80)) => Ok(()),
            Some(RawExit::Code(81)) => Err("a file outside was read in a trial".to_owned()),
            Some(RawExit::Code(82 | 83)) => Err("a file outside was written in a trial".to_owned()),
            _ => {
                let said = String::from_utf8_lossy(&ran.stderr.bytes);
                let said = peers_sys::term::line(said.lines().next().unwrap_or_default(), 200);
                Err(format!("a trial failed: {said}"))
            }
        }
    }

    /// Makes what children behind it need beside them, once, in a private directory that none of them writes.
    ///
    /// # Errors
    /// [`FileError`] for what cannot be written.
    pub fn with_settings(self, scratch: &SafeDir) -> Result<Self, FileError> {
        let Self { kind, filter, remarks } = self;
        let kind = match kind {
            Kind::Bwrap { bwrap, ours, roots } => {
                Kind::Bwrap { bwrap, ours, roots: roots.with_settings(scratch)? }
            }
            kind @ (Kind::None | Kind::Landlock | Kind::Podman(_)) => kind,
        };
        Ok(Self { kind, filter, remarks })
    }

    /// What it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.kind {
            Kind::None => Backend::None,
            Kind::Landlock => Backend::Landlock,
            Kind::Bwrap { .. } => Backend::Bwrap,
            Kind::Podman(_) => Backend::Podman,
        }
    }

    /// Whether it limits memory and processes.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        matches!(&self.kind, Kind::Podman(podman) if podman.limits.contains(&podman::Limit::Processes))
    }

    /// What of it does not hold here, one sentence each.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The child, behind the wall.
    #[must_use]
    pub fn put_up(&self, spawn: Spawn, access: &Access) -> Spawn {
        match &self.kind {
            Kind::None => spawn,
            Kind::Landlock => landlock::put_up(spawn, access, self.filter),
            Kind::Podman(podman) => podman::put_up(spawn, access, (podman, self.filter)),
            Kind::Bwrap { bwrap, ours, roots } => {
                bwrap::put_up(spawn, access, (bwrap, ours), (roots, self.filter))
            }
        }
    }
}
