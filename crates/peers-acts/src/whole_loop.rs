//! A loop in a container of its own: what it has there of this machine.
//!
//! It starts walls and proxies itself, as on the machine. Therefore it has what these are made of: the repository, what
//! peers keeps of this one project, the operator's settings of peers and of git's excludes, and the logins of the tools
//! that the project uses. Agents are behind a wall in there, which hides all of that from them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use peers_git::PeerRepo;
use peers_model::config::PeerSpec;
use peers_model::{RunId, RunRequest, exit};
use peers_place::Place;
use peers_run::boot::{Finding, accepted_config, walls};
use peers_run::env::{Policy, never_passes};
use peers_run::procs::tool_spec;
use peers_sandbox::{Access, IN_IMAGE, Network, PodmanClient};
use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::spawn::Spawn;
use peers_tools::adapter;

/// The loop that `spawn` starts in its working directory, in a container of its own, which ends with the process that is
/// started.
///
/// # Errors
/// A [`Finding`] where podman or its image is not fit, exit 6, and where a place that the loop needs cannot be made.
pub fn contain(
    mut spawn: Spawn,
    (run, request): (&RunId, &RunRequest),
    place: &Place,
    env: &Env,
) -> Result<Spawn, Finding> {
    let policy = Policy::load(env).map_err(|error| Finding::plain(exit::INVALID, chain(&error)))?;
    let access = access((&spawn.cwd, request), place, &policy, env)?;
    spawn.program = IN_IMAGE.into();
    spawn.env.retain(|(name, _)| passes(name));
    // Of two values the later one counts.
    spawn.env.extend(access.home.iter().map(|home| ("HOME".into(), home.into())));
    spawn.env.push(("IS_SANDBOX".into(), "1".into()));
    let refused = |why: String| Finding::plain(exit::ENVIRONMENT, why);
    let client = PodmanClient::find(&spawn.stub, env).map_err(refused)?;
    let image = (policy.image.as_deref(), run.as_str());
    client.whole_loop(spawn, &access, image).map_err(refused)
}

/// Whether the loop has a variable of the operator's there: what never reaches a child, it has no use for, except that it
/// is told of proxies.
fn passes(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let proxy = name.to_ascii_uppercase().ends_with("_PROXY");
    name != "TMPDIR" && (proxy || !never_passes(name))
}

fn access(
    (work_dir, request): (&Path, &RunRequest),
    place: &Place,
    policy: &Policy,
    env: &Env,
) -> Result<Access, Finding> {
    let repo = PeerRepo::open(work_dir);
    let repo = repo.map_err(|error| peers_run::boot::repo_finding(place, &error))?;
    let config = accepted_config(&mut place.open_view_disk()?)?;
    // What is not there cannot be bound.
    let mut own = vec![place.cache_dir().to_owned(), place.cli_data_dir().to_owned()];
    own.extend(request.worktree.is_some().then(|| place.worktrees_dir()));
    for dir in &own {
        SafeDir::create_root(dir).map_err(|error| Finding::from(&error))?;
    }
    own.push(place.store_dir().to_owned());
    let mut write = vec![work_dir.to_owned(), place.project_dir().to_owned()];
    write.extend(walls::outside_of(work_dir, &repo));
    write.extend(own);
    write.extend(config.peers.iter().flat_map(|peer| state_of(peer, env)));
    let mut read: Vec<PathBuf> = env.config_home().iter().flat_map(|config| settings(config)).collect();
    read.extend(env.home().map(|home| home.join(".gitconfig")));
    read.extend(peers_git::operator_excludes());
    for part in [&policy.peers, &policy.gates] {
        read.extend(part.read.iter().cloned());
        write.extend(part.write.iter().cloned());
    }
    let home = env.home().filter(|home| home.parent().is_some());
    // Agents are what uses most.
    let caps = policy.peers.caps;
    Ok(Access { read, write, home, network: Network::Host, caps, ..Access::default() })
}

/// Of the operator's settings: those of peers, and which files git leaves out.
fn settings(config: &Path) -> [PathBuf; 3] {
    ["peers", "git/config", "git/ignore"].map(|below| config.join(below))
}

/// Where the tool of a peer has its login, with its settings.
fn state_of(peer: &PeerSpec, env: &Env) -> Vec<PathBuf> {
    let places = adapter(&tool_spec(peer).kind).state_for(&peer.argv);
    let at = |place: &peers_tools::StatePlace| {
        let named = place.variable.and_then(|name| env.absolute(name));
        named.or_else(|| Some(env.home()?.join(place.below)))
    };
    places.iter().filter_map(at).collect()
}

/// What podman is told for it, for people.
#[must_use]
pub fn command(spawn: &Spawn) -> Vec<OsString> {
    let Some(within) = &spawn.within else { return Vec::new() };
    let program = within.program.clone().into_os_string();
    [program, "run".into()].into_iter().chain(within.args.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_has_logins_and_proxies_of_the_operator_and_nothing_of_this_machine() {
        let passed = |name: &&str| passes(OsStr::new(name));
        let names = ["ANTHROPIC_API_KEY", "HTTPS_PROXY", "HOME", "LC_ALL", "XDG_STATE_HOME"];
        assert!(names.iter().all(passed));
        for name in ["XDG_RUNTIME_DIR", "TMPDIR", "SSH_AUTH_SOCK", "LD_PRELOAD", "DBUS_SESSION_BUS_ADDRESS"] {
            assert!(!passes(OsStr::new(name)), "{name}");
        }
    }
}
