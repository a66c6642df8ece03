//! What peers and gates see from behind the wall of a run.
//!
//! A peer has the work tree, the state of its own tool and a place for what is temporary; a gate has its tree and its
//! home. Both read the programs and tool chains of the machine. Without a wall nothing of this applies.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use peers_model::config::{Config, PeerSpec};
use peers_model::{PeerName, TickNo};
use peers_sandbox::{Access, Backend, IN_IMAGE, Mount, Network, PROGRAM, place_of_program};
use peers_store::layout;
use peers_sys::error::chain;
use peers_sys::spawn::{Spawn, resolve_program};
use peers_sys::{FileError, SafeDir};
use peers_tools::{Ask, CommandPlan, adapter};

use super::launch;
use super::{Book, Site, gates};
use crate::cache;
use crate::env::{CARGO_HOME, Host, Net, PACKAGES, Part};
use crate::outlets::{self, Outlet};
use crate::tool_spec::tool_spec;

/// Where temporary files go, below a private home.
pub(super) const TMP: &str = "tmp";
/// Variables of ours whose value is a file or a directory that the child reads.
const LED_TO: [&str; 2] = ["GIT_CONFIG_GLOBAL", super::mode_dir::VARIABLE];

/// What a gate's command is, to those who put it behind a wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It judges.
    Gate,
    /// It prepares a checkout, and may fetch what that needs.
    SetUp,
}

/// What a gate's command writes.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The tree that it works in.
    pub tree: &'a Path,
    /// Its home directory.
    pub home: &'a Path,
    /// Another directory.
    pub more: Option<&'a Path>,
}

impl Site {
    /// Whether there is a wall.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.spec.wall.backend() != Backend::None
    }

    /// Whether programs are those of an image.
    pub(super) fn has_image(&self) -> bool {
        self.spec.wall.backend() == Backend::Podman
    }

    /// The child behind the wall.
    fn put_up(&self, mut spawn: Spawn, access: &Access) -> Spawn {
        if self.has_image() {
            // Tool chains that are not there.
            let there = |place: &OsStr| {
                access.read.iter().chain(&access.write).any(|dir| Path::new(place).starts_with(dir))
            };
            spawn.env.retain(|(name, value)| !Host::is_tool_chain(name) || there(value));
        }
        self.spec.wall.put_up(spawn, access)
    }

    fn common(&self, spawn: &Spawn, part: &Part) -> Access {
        // An image has programs and tool chains of its own.
        let mut read = if self.has_image() { Vec::new() } else { self.host.places() };
        read.extend(part.read.iter().cloned());
        read.push(self.spec.bin.clone());
        read.extend(LED_TO.iter().filter_map(|name| Some(PathBuf::from(value(&spawn.env, name)?))));
        let home = self.host.home().filter(|home| home.parent().is_some());
        let (write, home, caps) = (part.write.clone(), home.map(Path::to_owned), part.caps);
        Access { read, write, home, caps, ..Access::default() }
    }

    /// `.peers/` of the work tree stays as it is, and what others say there is not seen.
    fn keep_peers(&self, access: &mut Access) {
        let peers = self.spec.repo.join(peers_place::PEERS_DIR);
        let private = [layout::peers::LOG, layout::peers::COMMS, layout::peers::INBOX];
        access.hidden.extend(private.iter().map(|name| peers.join(name)).filter(|dir| dir.is_dir()));
        access.kept.push(peers);
    }

    /// A peer behind the wall. `prompt` is a file that it reads.
    ///
    /// # Errors
    /// [`FileError`] if a place of its own could not be made.
    pub(super) fn confine_peer(
        &self,
        mut spawn: Spawn,
        peer: &PeerSpec,
        prompt: Option<PathBuf>,
    ) -> Result<Spawn, FileError> {
        if !self.is_confined() {
            return Ok(spawn);
        }
        let part = &self.spec.chosen.peers;
        let mut access = self.common(&spawn, part);
        let path = value(&spawn.env, "PATH");
        let found = peer
            .argv
            .first()
            .and_then(|program| resolve_program(program.as_ref(), path, &self.spec.repo).ok());
        let real = found.and_then(|found| found.canonicalize().ok());
        if !self.has_image() {
            let home = self.host.home();
            access.read.extend(real.as_deref().and_then(|real| place_of_program(real, home)));
        }
        access.read.extend(prompt);
        // Files that the accepted command names; the program among them where nothing else brings it.
        let named = peer
            .argv
            .iter()
            .skip(usize::from(!self.has_image()))
            .map(Path::new)
            .filter(|path| path.is_absolute() && path.is_file());
        access.read.extend(named.map(Path::to_owned));
        access.write.push(self.spec.repo.clone());
        access.mounts.clone_from(&self.spec.turn.borrow());
        if !self.spec.wall.backend().has_mounts() {
            access.write.extend(self.spec.git.iter().cloned());
        } else if access.mounts.is_empty() {
            // Nothing commits outside of a turn.
            self.look_at_git()?;
            self.show_git(&mut access);
        }
        let outlet = self.spec.outlets.of(&peer.name);
        let led = outlet.as_ref().and_then(|outlet| outlet.led.as_ref());
        let state = match led {
            Some(led) => {
                access.write.push(led.state.clone());
                Vec::new()
            }
            None => self.state_of(peer),
        };
        access.write.extend(state.iter().map(|(_, at)| at.clone()));
        self.keep_downloads(&mut spawn, &mut access, &peer.name)?;
        self.keep_peers(&mut access);
        if let Some(peers) = &self.spec.peers {
            let inbox = peers.create_subdir(layout::peers::INBOX)?.create_subdir(peer.name.as_str())?;
            access.shown.push(inbox.path().to_owned());
        }
        // What tools that refuse to work as root without a sandbox look at.
        set(&mut spawn.env, "IS_SANDBOX", "1");
        access.network = if part.net == Some(Net::None) { Network::None } else { Network::Host };
        if let Some(outlet) = outlet.filter(|outlet| outlet.sockets.is_some()) {
            access.network = Network::None;
            spawn = through(spawn, &outlet, &mut access, if self.has_image() { IN_IMAGE } else { PROGRAM });
        }
        if self.spec.wall.backend() == Backend::Landlock {
            let home = self.private_home(&format!("peer-{}", peer.name), &state)?;
            set(&mut spawn.env, "HOME", home.path());
            access.scratch = Some(home.path().join(TMP));
            access.write.push(home.path().to_owned());
        }
        Ok(self.put_up(spawn, &access))
    }

    /// Packages that a peer fetches are kept in a place of its own, from turn to turn.
    fn keep_downloads(
        &self,
        spawn: &mut Spawn,
        access: &mut Access,
        peer: &PeerName,
    ) -> Result<(), FileError> {
        let Some(all) = &self.spec.downloads else { return Ok(()) };
        let own = cache::usable(all, peer.as_str())?;
        for (variable, below) in PACKAGES {
            let dir = cache::usable(&own, below)?;
            if variable == CARGO_HOME {
                // Where packages come from is for the operator to say.
                for (name, at) in self.host.cargo_settings() {
                    dir.remove_tree(name)?;
                    dir.link(name, &at)?;
                }
            }
            set(&mut spawn.env, variable, dir.path());
        }
        access.write.push(own.path().to_owned());
        Ok(())
    }

    /// Where the tool of a peer keeps its state: the name in a home directory, and the place itself.
    fn state_of(&self, peer: &PeerSpec) -> Vec<(&'static str, PathBuf)> {
        let places = adapter(&tool_spec(peer).kind).state_for(&peer.argv);
        let at = |place: &peers_tools::StatePlace| {
            let named = place.variable.and_then(|name| self.host.operator(name)).map(PathBuf::from);
            let named = named.filter(|dir| dir.is_absolute());
            let at = named.or_else(|| Some(self.host.home()?.join(place.below)))?;
            Some((place.below, at))
        };
        places.iter().filter_map(at).collect()
    }

    /// A home directory for one turn, with what the tool keeps in the operator's as links.
    fn private_home(&self, name: &str, state: &[(&str, PathBuf)]) -> Result<SafeDir, FileError> {
        let scratch = &self.spec.scratch;
        scratch.remove_tree(name)?;
        let home = scratch.create_subdir(name)?;
        home.create_subdir(TMP)?;
        for (below, at) in state {
            let (dir, file) = home.create_parent_of(below)?;
            dir.link(file, at)?;
        }
        Ok(home)
    }

    /// A command of a gate behind the wall.
    pub(super) fn confine_gate(&self, spawn: Spawn, at: Ground<'_>, role: Role) -> Spawn {
        let Ground { tree, home, more } = at;
        if !self.is_confined() {
            return spawn;
        }
        let part = &self.spec.chosen.gates;
        let mut access = self.common(&spawn, part);
        access.read.extend(self.spec.objects.iter().cloned());
        access.write.extend([tree, home].into_iter().chain(more).map(Path::to_owned));
        if tree == self.spec.repo {
            self.show_git(&mut access);
            self.keep_peers(&mut access);
        } else if let Some(packages) = &self.spec.packages {
            let to = if role == Role::SetUp { &mut access.write } else { &mut access.read };
            to.push(packages.clone());
        }
        access.network = match (part.net, role) {
            (Some(Net::Host), _) | (None, Role::SetUp) => Network::Host,
            // A gate is never led to a proxy; the file that says so is refused.
            (Some(Net::None | Net::Proxy), _) | (None, Role::Gate) => Network::None,
        };
        if self.spec.wall.backend() == Backend::Landlock {
            access.scratch = Some(home.join(TMP));
        }
        self.put_up(spawn, &access)
    }
}

/// The child as the child of a relay that leads ports of its own network to the sockets of the proxies.
fn through(mut spawn: Spawn, outlet: &Outlet, access: &mut Access, relay: &str) -> Spawn {
    let bound =
        |outside: &Path, inside: PathBuf| Mount { outside: outside.to_owned(), inside, writable: false };
    access.mounts.extend(outlet.sockets.iter().map(|dir| bound(dir, outlets::INSIDE.into())));
    access.mounts.extend(outlet.locals.iter().map(|(port, at)| bound(at, outlets::local(*port))));
    let mut args: Vec<OsString> = vec!["relay".into()];
    for (port, socket) in outlet.maps() {
        let mut map = OsString::from(format!("{port}="));
        map.push(socket);
        args.extend(["--map".into(), map]);
    }
    args.push("--".into());
    args.push(std::mem::replace(&mut spawn.program, relay.into()));
    args.append(&mut spawn.args);
    spawn.args = args;
    spawn
}

/// A command that a peer runs, in its surroundings and behind its wall.
///
/// # Errors
/// Why there is none.
pub fn as_peer(site: &Site, peer: &PeerSpec, argv: Vec<String>) -> Result<Spawn, String> {
    let spec = tool_spec(peer);
    let ask = Ask { prompt: String::new(), prompt_file: Some(String::new()) };
    let plan = adapter(&spec.kind).plan(&spec, &ask).map_err(|error| error.to_string())?;
    let plan = launch::led(site, peer, plan).map_err(|error| chain(&error))?;
    let plan = CommandPlan { argv, stdin: None, spill: None, bridge: None, ..plan };
    launch::spawn(site, (peer, None), TickNo(0), &plan).map_err(|error| chain(&error))
}

/// A command in the work tree, as a gate or `setup` has it. Its home directory goes with the [`Site`]'s scratch
/// directory.
///
/// # Errors
/// Why there is none.
pub fn as_gate(site: &Rc<Site>, config: &Config, command: &[String], role: Role) -> Result<Spawn, String> {
    let book = Book::new(config.clone(), &[]).map_err(|error| chain(&error))?;
    let tree = site.spec.repo.clone();
    let (vars, home) = gates::surroundings(site, &book, TickNo(0), (&tree, "gitconfig-gate"))?;
    let (program, args) = command.split_first().ok_or("no command")?;
    let mut spawn = Spawn::new(site.spec.stub.clone(), program, &tree);
    spawn.args = args.iter().map(Into::into).collect();
    spawn.env = vars;
    let spawn = site.confine_gate(spawn, home.ground(&tree, None), role);
    home.leave();
    Ok(spawn)
}

/// The value of a variable.
fn value<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    env.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_os_str())
}

fn set(env: &mut Vec<(OsString, OsString)>, name: &str, value: impl AsRef<OsStr>) {
    env.retain(|(own, _)| own != name);
    env.push((name.into(), value.as_ref().to_owned()));
}
