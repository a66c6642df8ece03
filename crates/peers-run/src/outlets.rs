//! The ways out of a sandbox: a proxy to the services of models, which alone has the credentials, and one to listed
//! hosts, each a process beside the loop (`docs/formats/proxies.md`), and what a peer is given of them.
//!
//! Behind a wall that has a network of its own, a peer reaches nothing but their sockets. Behind another one it is led
//! to the first proxy by a port of this machine, and so holds no login there either. A peer whose login that proxy
//! cannot serve keeps it, and with it the network of this machine: its hosts are known to nobody here.

mod ledger;
mod policies;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use peers_core::machine::Notice;
use peers_model::config::PeerSpec;
use peers_model::{Backend, Mono, PeerName, RunId, exit, limits};
use peers_sandbox::{Sidecar, SidecarError, SidecarSpec};
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::identity::Pid;
use peers_sys::spawn::{RawExit, StubProgram};
use peers_sys::{FileError, SafeDir, clock, term};
use peers_tools::{CommandPlan, Own, Tool, Way};
use tokio::sync::Notify;

use crate::boot::Finding;
use crate::cache;
use crate::env::{Net, Policy};
use policies::Asking;

pub use ledger::Metered;

/// The program that has the proxies; it lies beside ours.
const CONTROLLER: &str = "peers-ctl";
/// A proxy is ready within this time: it reads a few files.
const PATIENCE: Duration = Duration::from_secs(20);
/// A proxy that ends a second time within this time ends the run.
const FORGIVEN: Duration = Duration::from_mins(10);
/// Where a peer has its sockets, behind a wall.
pub(crate) const INSIDE: &str = "/run/peers/net";
/// The ports at which it finds the two proxies, there: above those that programs choose and that the kernel gives out.
const EGRESS_PORT: u16 = 61128;
const AUTH_PORT: u16 = 61080;
const EGRESS: &str = "egress";
const AUTH: &str = "auth";
/// Bytes of a directory for sockets that leave room for their names.
const RUNTIME_DIR: usize = 70;
/// A log that is longer when a run begins is moved aside.
const LOG: u64 = 8 * limits::MIB;
/// Where the sockets of a run are that was killed, below the directory of policies and logs.
const PLACE: &str = "sockets";

/// What the ways out are made from.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The operator's environment, in which credentials are found.
    pub env: &'a Env,
    /// What the operator decides.
    pub policy: &'a Policy,
    /// Who needs them.
    pub peers: &'a [PeerSpec],
    /// The wall that they are behind.
    pub backend: Backend,
    /// The run.
    pub run: &'a RunId,
    /// What becomes a child.
    pub stub: &'a StubProgram,
    /// Our program; the other one lies beside it.
    pub program: &'a Path,
    /// The cache: policies, logs, the state of tools.
    pub cache: &'a SafeDir,
}

/// The ways out of a run. Their processes end with the value.
#[derive(Debug, Default)]
pub struct Outlets {
    inner: Option<Inner>,
}

#[derive(Debug)]
struct Inner {
    auth: Option<SidecarSpec>,
    egress: Option<SidecarSpec>,
    asking: Vec<Asking>,
    sockets: Option<Sockets>,
    /// Each peer has a way out, led to its model or not.
    every: bool,
    local_ports: Vec<u16>,
    live: RefCell<Live>,
    ledger: ledger::Reader,
}

/// The directory with a directory of sockets for each peer.
#[derive(Debug)]
struct Sockets {
    parent: SafeDir,
    name: String,
    at: PathBuf,
}

#[derive(Debug)]
struct Live {
    helpers: Vec<Sidecar>,
    /// Told when one of them ends.
    lost: Arc<Notify>,
    again: Option<Mono>,
    outlets: BTreeMap<PeerName, Outlet>,
}

/// What one peer is given.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    /// The directory of its sockets; absent where its network is this machine's.
    pub(crate) sockets: Option<PathBuf>,
    /// Other sockets: the port inside, and the socket.
    pub(crate) locals: Vec<(u16, PathBuf)>,
    /// How it is led to its model.
    pub(crate) led: Option<Led>,
}

/// How a peer is led to its model.
#[derive(Debug, Clone)]
pub(crate) struct Led {
    service: String,
    proxy: String,
    bearer: String,
    /// What its tool has in place of the operator's directory.
    pub(crate) state: PathBuf,
    settings: Option<String>,
}

/// Why a turn cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox lost its proxies: {0}")]
pub struct Lost(String);

/// Makes the ways out, and says who has which.
///
/// # Errors
/// A [`Finding`] where the operator asks for proxies and there can be none.
pub fn start(start: Start<'_>) -> Result<(Outlets, Vec<Notice>), Finding> {
    let Start { policy, backend, peers, .. } = start;
    let net = policy.peers.net;
    if backend == Backend::None {
        return Ok((Outlets::default(), Vec::new()));
    }
    if let Some(asked @ (Net::None | Net::Proxy)) = net
        && !backend.has_own_network()
    {
        let asked = if asked == Net::None { "none" } else { "proxy" };
        let what = format!(
            "`peers.net: {asked}` cannot be kept behind `{backend}`, which has no network of its own"
        );
        let hint = "install bubblewrap, or leave it out of your sandbox.yaml";
        return Err(Finding::new(exit::ENVIRONMENT, what, hint));
    }
    if net == Some(Net::None) {
        return Ok((Outlets::default(), Vec::new()));
    }
    let asking: Vec<Asking> = peers.iter().map(|peer| Asking::of(peer, start.env)).collect();
    let outlets = match Inner::new(start, asking) {
        Ok(inner) => Outlets { inner },
        // Who opened the network knows that nothing stands before it.
        Err(why) if net == Some(Net::Host) => {
            let why = format!("{why}; agents have their own logins");
            return Ok((Outlets::default(), vec![Notice::Warning(why)]));
        }
        Err(why) => {
            let hint = "mend that, or write `peers: {net: host}` into your sandbox.yaml: agents then have their own logins and the network of this machine";
            return Err(Finding::new(exit::ENVIRONMENT, why, hint));
        }
    };
    let notes = outlets.notes(start)?;
    Ok((outlets, notes.into_iter().map(Notice::Note).collect()))
}

impl Outlets {
    /// What this peer is given.
    pub(crate) fn of(&self, peer: &PeerName) -> Option<Outlet> {
        self.inner.as_ref()?.live.borrow().outlets.get(peer).cloned()
    }

    /// How each peer comes to its model: `proxy`, `mounted`. Empty where nothing is confined.
    #[must_use]
    pub fn credentials(&self, peers: &[PeerSpec]) -> BTreeMap<PeerName, String> {
        let led = |peer: &PeerName| self.of(peer).is_some_and(|outlet| outlet.led.is_some());
        let word = |peer: &PeerName| if led(peer) { "proxy" } else { "mounted" };
        peers.iter().map(|peer| (peer.name.clone(), word(&peer.name).to_owned())).collect()
    }

    /// Who has which, for people.
    fn notes(&self, start: Start<'_>) -> Result<Vec<String>, Finding> {
        let Start { policy, peers, .. } = start;
        let is_led = |peer: &&PeerSpec| self.of(&peer.name).is_some_and(|outlet| outlet.led.is_some());
        let (led, others): (Vec<_>, Vec<_>) = peers.iter().partition(is_led);
        let mut notes = Vec::new();
        if !led.is_empty() {
            let names: Vec<String> = led.iter().map(|peer| format!("`{}`", peer.name)).collect();
            let one = names.len() == 1;
            let (holds, reaches) =
                if one { ("holds", "it reaches its model") } else { ("hold", "they reach their models") };
            let hosts = match (self.is_closed(), policy.peers.allow.is_empty()) {
                (false, _) => ", and the network of this machine",
                (true, true) => " and nothing else",
                (true, false) => " and the hosts that you list",
            };
            notes.push(format!("{} {holds} no login: by a proxy {reaches}{hosts}", names.join(" and ")));
        }
        for peer in others.into_iter().filter(|peer| !policies::is_scripted(peer)) {
            let asked = self.asking(&peer.name).is_some_and(|one| !one.wanted.is_empty());
            let tool = peer.tool_name();
            let why = if asked {
                let how = peers_model::login::how(tool).unwrap_or_default();
                format!("no login and no key was found for it ({how})")
            } else {
                "the auth proxy cannot serve its login (docs/agents.md)".to_owned()
            };
            if policy.peers.net == Some(Net::Proxy) && asked {
                return Err(Finding::new(
                    exit::ENVIRONMENT,
                    format!("`{}` reaches no model: {why}", peer.name),
                    "log in, or set its key",
                ));
            }
            let network = if policy.peers.net == Some(Net::Proxy) {
                "the hosts that you list"
            } else {
                "the network of this machine"
            };
            notes.push(format!("`{}` has its tool's own login, and {network}: {why}", peer.name));
        }
        Ok(notes)
    }

    fn asking(&self, peer: &PeerName) -> Option<&Asking> {
        self.inner.as_ref()?.asking.iter().find(|one| one.peer == *peer)
    }

    /// Whether peers have a network of their own.
    fn is_closed(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.sockets.is_some())
    }

    /// Sees to it that the proxies run, before a turn.
    ///
    /// # Errors
    /// [`Lost`].
    pub(crate) fn see_to(&self) -> Result<(), Lost> {
        let Some(inner) = &self.inner else { return Ok(()) };
        let Some(why) = inner.is_gone() else { return Ok(()) };
        let now = clock::mono();
        let again = inner.live.borrow().again;
        if again.is_some_and(|again| now.since(again) < FORGIVEN) {
            return Err(Lost(format!("a second time within ten minutes: {why}")));
        }
        tracing::warn!(why, "the proxies of the sandbox are started anew");
        let known = |live: &Live| -> Vec<PeerName> {
            let led = live.outlets.iter().filter(|(_, outlet)| outlet.led.is_some());
            led.map(|(peer, _)| peer.clone()).collect()
        };
        let before = known(&inner.live.borrow());
        let mut fresh = inner.open().map_err(Lost)?;
        let after = known(&fresh);
        if let Some(peer) = before.iter().find(|peer| !after.contains(peer)) {
            return Err(Lost(format!("there is no login any more for `{peer}`")));
        }
        fresh.again = Some(now);
        inner.live.replace(fresh);
        Ok(())
    }

    /// Told when a proxy ends that runs now and that this peer needs.
    pub(crate) fn lost(&self, peer: &PeerName) -> Option<Arc<Notify>> {
        self.of(peer)?;
        self.inner.as_ref().map(|inner| Arc::clone(&inner.live.borrow().lost))
    }

    /// The processes.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        let helpers =
            |inner: &Inner| inner.live.borrow().helpers.iter().map(|helper| helper.identity().pid).collect();
        self.inner.as_ref().map(helpers).unwrap_or_default()
    }

    /// What this peer was seen to use since it was asked last.
    pub(crate) fn used(&self, peer: &PeerName) -> Option<Metered> {
        let inner = self.inner.as_ref()?;
        self.of(peer)?.led?;
        inner.ledger.used(peer)
    }
}

impl Inner {
    /// `None` where nobody asks for a proxy.
    fn new(start: Start<'_>, asking: Vec<Asking>) -> Result<Option<Self>, String> {
        let Start { env, policy, backend, run, stub, program, cache, .. } = start;
        let closed = backend.has_own_network() && policy.peers.net != Some(Net::Host);
        let every = closed && policy.peers.net == Some(Net::Proxy);
        if !every && asking.iter().all(|one| one.wanted.is_empty()) {
            return Ok(None);
        }
        let controller = program.with_file_name(CONTROLLER);
        if !controller.is_file() {
            let dir = program.parent().unwrap_or(program);
            let dir = term::inline(&dir.to_string_lossy());
            return Err(format!(
                "`{CONTROLLER}`, which has the proxies of the sandbox, is not in {dir} (`cargo install --path crates/peers-ctl --locked`)"
            ));
        }
        let told = |error: FileError| chain(&error);
        let net = cache.create_subdir(cache::NET).map_err(told)?;
        let state = cache.create_subdir(cache::TOOLS).map_err(told)?;
        let mut asking = asking;
        for one in &mut asking {
            let own = cache::usable(&state, one.peer.as_str()).map_err(told)?;
            own.path().clone_into(&mut one.state);
        }
        let sockets = if closed { Some(Sockets::make(env, run, &net, asking.len())?) } else { None };
        let at = |n: usize, kind: &str| match &sockets {
            Some(sockets) => format!("unix:{}", sockets.of(n).join(kind).with_extension("sock").display()),
            None => "127.0.0.1:0".to_owned(),
        };
        let spec = |kind: &str, listen: Vec<String>, more: Vec<String>| {
            let mut args = vec!["proxy".to_owned(), kind.to_owned()];
            args.extend(listen.into_iter().flat_map(|listen| ["--listen".to_owned(), listen]));
            args.extend(more);
            let mut args: Vec<OsString> = args.into_iter().map(OsString::from).collect();
            for (option, name) in [("--policy", format!("{kind}.json")), ("--log", format!("{kind}.log"))] {
                args.extend([option.into(), net.path().join(name).into_os_string()]);
            }
            args.extend(["--run".into(), run.as_str().into(), "--with-stdin".into()]);
            SidecarSpec {
                stub: stub.clone(),
                program: controller.clone(),
                args,
                env: env.vars().to_vec(),
                scratch: net.path().to_owned(),
                patience: PATIENCE,
            }
        };
        let wanting = asking.iter().enumerate().filter(|(_, one)| !one.wanted.is_empty());
        let listen: Vec<String> = wanting.map(|(n, one)| format!("{}={}", one.peer, at(n, AUTH))).collect();
        let auth = if listen.is_empty() {
            None
        } else {
            net.publish(format!("{AUTH}.json"), policies::auth(&asking).as_bytes()).map_err(told)?;
            Some(spec(AUTH, listen, Vec::new()))
        };
        let egress = if closed {
            net.publish(format!("{EGRESS}.json"), policies::egress(&policy.peers).as_bytes())
                .map_err(told)?;
            let all = asking.iter().enumerate();
            let listen = all.map(|(n, one)| format!("{}={}", one.peer, at(n, EGRESS))).collect();
            let ports = policy.peers.local_ports.iter();
            let ports = ports.flat_map(|port| ["--local-port".to_owned(), port.to_string()]).collect();
            Some(spec(EGRESS, listen, ports))
        } else {
            None
        };
        if net.stat(format!("{AUTH}.log")).map_err(told)?.is_some_and(|log| log.size > LOG) {
            net.rename(format!("{AUTH}.log"), format!("{AUTH}.log.1")).map_err(told)?;
        }
        let ledger = ledger::Reader::new(net, format!("{AUTH}.log"), run.clone());
        let live = Live { helpers: Vec::new(), lost: Arc::default(), again: None, outlets: BTreeMap::new() };
        let local_ports = policy.peers.local_ports.clone();
        let live = RefCell::new(live);
        let inner = Self { auth, egress, asking, sockets, every, local_ports, live, ledger };
        let live = inner.open()?;
        inner.live.replace(live);
        Ok(Some(inner))
    }

    /// Why the proxies do not serve any more, if they do not.
    fn is_gone(&self) -> Option<String> {
        let live = self.live.borrow();
        if let Some(end) = live.helpers.iter().find_map(Sidecar::ended) {
            let how = match end.exit {
                Some(RawExit::Code(code)) => format!("exit code {code}"),
                Some(RawExit::Signal(signal)) => format!("signal {signal}"),
                None => "an unknown end".to_owned(),
            };
            return Some(format!("a proxy ended ({how}) {}", end.said).trim_end().to_owned());
        }
        // Whoever cleans up after a session takes its sockets as well.
        let gone = |outlet: &Outlet| {
            let at = outlet.sockets.as_ref()?;
            let there = SafeDir::open_shared(at).and_then(|dir| dir.stat(format!("{EGRESS}.sock")));
            (!matches!(there, Ok(Some(_)))).then(|| format!("its sockets in {} are gone", at.display()))
        };
        live.outlets.values().find_map(gone)
    }

    /// Starts the processes, and finds out what each peer gets.
    fn open(&self) -> Result<Live, String> {
        let lost: Arc<Notify> = Arc::default();
        let begin = |spec: &SidecarSpec| {
            let lost = Arc::clone(&lost);
            Sidecar::start(spec, move |_| lost.notify_one()).map_err(|error| match error {
                SidecarError::Died { end, .. } => format!("a proxy does not start: {}", end.said),
                error => format!("a proxy does not start: {}", chain(&error)),
            })
        };
        // Those from before hold the same places.
        self.live.borrow_mut().helpers.clear();
        if let Some(sockets) = &self.sockets {
            sockets.make_each(self.asking.len())?;
        }
        let auth = self.auth.as_ref().map(begin).transpose()?;
        let served = auth.as_ref().map(|auth| policies::served(auth.told())).unwrap_or_default();
        let egress = self.egress.as_ref().map(begin).transpose()?;
        let mut outlets = BTreeMap::new();
        for (n, one) in self.asking.iter().enumerate() {
            let sockets = self.sockets.as_ref().map(|sockets| sockets.of(n));
            let of = served.iter().find(|served| served.peer == one.peer.as_str());
            let led = of.and_then(|served| {
                let port = if sockets.is_some() { AUTH_PORT } else { served.port? };
                Some(Led {
                    service: served.service.clone()?,
                    proxy: format!("http://127.0.0.1:{port}"),
                    bearer: one.bearer.clone(),
                    state: one.state.clone(),
                    settings: one.settings.clone(),
                })
            });
            if !self.every && led.is_none() {
                continue;
            }
            let first = self.sockets.as_ref().map(|sockets| sockets.of(0));
            let locals = first.iter().flat_map(|first| {
                self.local_ports.iter().map(|port| (*port, first.join(format!("local-{port}.sock"))))
            });
            outlets.insert(one.peer.clone(), Outlet { sockets, locals: locals.collect(), led });
        }
        let helpers = auth.into_iter().chain(egress).collect();
        Ok(Live { helpers, lost, again: None, outlets })
    }
}

impl Sockets {
    /// In the directory that the system has for such things, else in `/tmp`. Those of a run that was killed go.
    fn make(env: &Env, run: &RunId, net: &SafeDir, peers: usize) -> Result<Self, String> {
        let told = |error: FileError| chain(&error);
        let text = net.read_text_opt(PLACE, 4096).map_err(told)?;
        if let Some((dir, name)) = text.as_deref().and_then(|text| text.trim_end().rsplit_once('/'))
            && is_ours(name)
            && let Ok(parent) = SafeDir::open_shared(dir)
        {
            // They cost a few bytes; the next start tries again.
            let _gone = parent.remove_tree(name);
        }
        let short = run.as_str().get(..8).unwrap_or_default();
        // The path of a socket has at most 107 bytes.
        let short_enough = |dir: &PathBuf| dir.as_os_str().len() <= RUNTIME_DIR;
        let of_system = env.runtime_dir().filter(short_enough);
        let of_system = of_system.and_then(|dir| SafeDir::create_root(dir.join("peers")).ok());
        let (parent, name) = match of_system {
            Some(parent) => (parent, short.to_owned()),
            None => (SafeDir::open_shared("/tmp").map_err(told)?, format!("peers-{short}")),
        };
        let dir = parent.create_subdir(&name).map_err(told)?;
        let at = dir.path().to_owned();
        net.publish_unsynced(PLACE, at.to_string_lossy().as_bytes()).map_err(told)?;
        let sockets = Self { parent, name, at };
        sockets.make_each(peers)?;
        Ok(sockets)
    }

    /// The directory of each peer, where it is missing.
    fn make_each(&self, peers: usize) -> Result<(), String> {
        let made = || {
            let dir = self.parent.create_subdir(&self.name)?;
            (0..peers).try_for_each(|n| dir.create_subdir(n.to_string()).map(drop))
        };
        made().map_err(|error: FileError| chain(&error))
    }

    fn of(&self, n: usize) -> PathBuf {
        self.at.join(n.to_string())
    }
}

/// Whether a directory of this name may be removed.
fn is_ours(name: &str) -> bool {
    let short = name.strip_prefix("peers-").unwrap_or(name);
    short.len() == 8 && short.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Drop for Sockets {
    fn drop(&mut self) {
        // They cost a few bytes; the next start tries again.
        let _gone = self.parent.remove_tree(&self.name);
    }
}

impl Outlet {
    /// What `peers relay` leads where: the port, and the socket behind the wall.
    pub(crate) fn maps(&self) -> Vec<(u16, PathBuf)> {
        let mut maps = vec![(EGRESS_PORT, Path::new(INSIDE).join(EGRESS).with_extension("sock"))];
        if self.led.is_some() {
            maps.push((AUTH_PORT, Path::new(INSIDE).join(AUTH).with_extension("sock")));
        }
        maps.extend(self.locals.iter().map(|(port, _)| (*port, local(*port))));
        maps
    }

    /// Variables by which programs find the way to hosts.
    pub(crate) fn vars() -> Vec<(&'static str, String)> {
        let proxy = format!("http://127.0.0.1:{EGRESS_PORT}");
        let mut vars: Vec<(&str, String)> = ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"]
            .map(|name| (name, proxy.clone()))
            .into();
        vars.extend(["NO_PROXY", "no_proxy"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned())));
        vars.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
        vars
    }
}

/// Where a peer has the socket of a port of this machine.
pub(crate) fn local(port: u16) -> PathBuf {
    PathBuf::from(format!("/run/peers/local-{port}.sock"))
}

impl Led {
    /// Changes a command so that it asks the proxy, and gives its tool what it needs for that.
    ///
    /// # Errors
    /// [`FileError`] if the directory of its tool cannot be written.
    pub(crate) fn lead(&self, tool: &dyn Tool, plan: &mut CommandPlan) -> Result<(), FileError> {
        let Self { service, proxy, bearer, state, settings } = self;
        let text = state.to_string_lossy();
        let way = Way { service, proxy, bearer, state: &text };
        tool.lead(plan, way, Own { var: &|_| None, settings: settings.as_deref() });
        if !plan.state.is_empty() {
            let dir = SafeDir::create_root(state)?;
            for (name, text) in &plan.state {
                // An agent may have put something else there.
                dir.remove_tree(name)?;
                dir.publish_unsynced(name, text.as_bytes())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_is_named_as_ours_is_ever_removed() {
        assert!(is_ours("0123abcd") && is_ours("peers-0123abcd"));
        for name in ["", "peers", "peers-", "0123abcde", "peers-0123abcg", "..", "home"] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn a_relay_leads_only_to_sockets_that_are_there() {
        let outlet =
            Outlet { sockets: None, locals: vec![(5432, PathBuf::from("/r/local-5432.sock"))], led: None };
        let maps: Vec<String> =
            outlet.maps().into_iter().map(|(port, at)| format!("{port}={}", at.display())).collect();
        assert_eq!(maps, ["61128=/run/peers/net/egress.sock", "5432=/run/peers/local-5432.sock"]);
    }
}
