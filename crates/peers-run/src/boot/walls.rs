//! Which wall agents and gates are put behind: what the operator asks for, tried on this machine.

use std::path::{Path, PathBuf};

use peers_git::PeerRepo;
use peers_model::config::Config;
use peers_model::exit;
use peers_model::request::AskedWall;
use peers_sandbox::{Asked, Backend, IN_IMAGE, Wall};
use peers_sys::confine::Filter;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::Env;
use peers_sys::spawn::StubProgram;

use super::finding::Finding;
use crate::cache;
use crate::env::{Net, PACKAGES, Policy};

/// The tier that an unattended run asks for where nobody says otherwise: Landlock or better.
pub const UNATTENDED: u8 = 1;

/// The programs of ours that stand on both sides of a wall.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    /// What becomes a child.
    pub stub: &'a StubProgram,
    /// This program under a name at which it can be bound.
    pub bin: &'a Path,
    /// A file of the trusted store; a child that sees it is not behind a wall.
    pub canary: &'a Path,
}

/// What becomes a child of this program, and this program under a name at which it can be bound.
///
/// # Errors
/// A [`Finding`] if the system cannot tell.
pub fn this_program() -> Result<(StubProgram, PathBuf), Finding> {
    let bug = |error: std::io::Error| Finding::plain(exit::BUG, error.to_string());
    Ok((StubProgram::this_program().map_err(bug)?, peers_sys::env::current_exe().map_err(bug)?))
}

/// This program as gates have it: `running` may have no file any more, which only matters where its process is not
/// seen; an image has its own.
#[must_use]
pub fn bin(wall: Backend, running: PathBuf, file: PathBuf) -> PathBuf {
    match wall {
        Backend::None => running,
        Backend::Landlock | Backend::Bwrap => file,
        Backend::Podman => IN_IMAGE.into(),
    }
}

/// The wall, and what a better one lacks on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    /// The wall.
    pub wall: Wall,
    /// One sentence for each better one.
    pub better: Vec<String>,
}

/// Finds the best wall that the operator allows. `usual` is the least tier where neither a command line nor
/// `sandbox.yaml` names one.
///
/// # Errors
/// A [`Finding`] that names what each wall lacks here.
pub fn find(
    policy: &Policy,
    asked: AskedWall,
    usual: u8,
    env: &Env,
    ours: Ours<'_>,
) -> Result<Found, Finding> {
    // In a container there is no podman: whoever wants containers has one.
    let backend = asked.backend.or(policy.backend.filter(|named| !(asked.whole_loop && named.is_by_name())));
    let given_up = asked.backend == Some(Backend::None) && (asked.i_know || usual == 0);
    let least = policy.require.unwrap_or(usual).max(asked.require.unwrap_or(0)).max(policy.least);
    let least = if given_up { asked.require.unwrap_or(0) } else { least };
    if let Some(named) = backend.filter(|named| named.tier() < least) {
        return Err(too_low(named, least, asked));
    }
    let search = env.var("PATH").unwrap_or_default();
    let chosen = Wall::choose(&Asked {
        backend,
        require: least,
        filter: if policy.strict { Filter::Strict } else { Filter::Usual },
        stub: ours.stub,
        program: ours.bin,
        search,
        canary: ours.canary,
        operator: env,
        image: policy.image.as_deref(),
    });
    let by_name = (least > Backend::Bwrap.tier() && backend.is_none())
        .then(|| "podman: taken only by name, `--sandbox podman`".to_owned());
    let missing: Vec<String> =
        chosen.missing.iter().map(|(backend, why)| format!("{backend}: {why}")).chain(by_name).collect();
    match chosen.wall {
        Some(wall) => Ok(Found { wall, better: missing }),
        None => Err(Finding::new(
            exit::ENVIRONMENT,
            format!("{}:\n  {}", none_of(backend, least), missing.join("\n  ")),
            "install what is missing; `--sandbox none --i-know` starts without any wall",
        )),
    }
}

fn none_of(backend: Option<Backend>, least: u8) -> String {
    match backend {
        Some(named) => format!("the sandbox `{named}` does not hold on this machine"),
        None => format!(
            "no sandbox of tier {least} or better holds on this machine, and agents run what they like"
        ),
    }
}

fn too_low(named: Backend, least: u8, asked: AskedWall) -> Finding {
    let tier = named.tier();
    let by =
        if asked.backend.is_some() { format!("`--sandbox {named}`") } else { format!("`backend: {named}`") };
    let message = format!("{by} is of tier {tier}, and tier {least} is required");
    if named == Backend::None && asked.backend.is_some() && asked.require.is_none() {
        let hint = "add `--i-know`: agents and gates may then do all that you may, to every file of yours";
        return Finding::new(exit::ENVIRONMENT, message, hint);
    }
    Finding::new(
        exit::ENVIRONMENT,
        message,
        "name a better one, or lower `require` in your sandbox.yaml, `--require`, or `sandbox.require` of the project",
    )
}

/// Directories of git that lie outside of the work tree.
#[must_use]
pub fn outside_of(work_dir: &Path, repo: &PeerRepo) -> Vec<PathBuf> {
    let outside = |dir: &&Path| !dir.starts_with(work_dir);
    let mut found: Vec<PathBuf> = Vec::new();
    for dir in [repo.common_dir(), repo.git_dir()].iter().filter(|dir| outside(dir)) {
        if !found.iter().any(|known| dir.starts_with(known)) {
            found.push((*dir).to_owned());
        }
    }
    found
}

/// Where packages are kept that `setup` fetches, behind a wall: what the operator's own programs use is not written
/// by code of a project.
///
/// # Errors
/// [`FileError`] if it could not be made.
pub fn packages(wall: &Wall, config: &Config, cache: &SafeDir) -> Result<Option<PathBuf>, FileError> {
    if wall.backend() == Backend::None || config.setup.commands.is_empty() {
        return Ok(None);
    }
    let packages = cache.create_subdir(cache::PACKAGES)?;
    for (_, below) in PACKAGES {
        packages.create_subdir(below)?;
    }
    Ok(Some(packages.path().to_owned()))
}

/// Where agents keep packages that they fetch, behind a wall and where the operator lets them reach hosts. Gates never
/// read it: what one agent put there would take part in the verdict on another's work.
///
/// # Errors
/// [`FileError`] if it could not be made.
pub fn downloads(wall: &Wall, policy: &Policy, cache: &SafeDir) -> Result<Option<SafeDir>, FileError> {
    let reaches = policy.peers.net == Some(Net::Host) || !policy.peers.allow.is_empty();
    if wall.backend() == Backend::None || !reaches {
        return Ok(None);
    }
    cache.create_subdir(cache::DOWNLOADS).map(Some)
}
