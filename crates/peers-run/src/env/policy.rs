//! What the operator adds by name: their own `sandbox.yaml`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use peers_model::config::{NarrowNet, Narrower};
use peers_model::{Backend, limits};
use peers_sandbox::Caps;
use peers_sys::env::Env;
use peers_sys::yaml::{self, YamlError};
use peers_sys::{FileError, SafeDir};
use serde::Deserialize;
use thiserror::Error;

use super::never_passes;

/// Below the operator's configuration directory.
const POLICY_DIR: &str = "peers";
/// The operator's own file.
const POLICY_FILE: &str = "sandbox.yaml";

/// What the operator decides of confinement, from `sandbox.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The backend; absent: the best that holds.
    pub backend: Option<Backend>,
    /// The least tier; absent: what the command usually asks for.
    pub require: Option<u8>,
    /// The least tier that the project asks for.
    pub least: u8,
    /// New namespaces are refused as well.
    pub strict: bool,
    /// The image of containers; absent: the usual one.
    pub image: Option<String>,
    /// Of peers.
    pub peers: Part,
    /// Of gates.
    pub gates: Part,
}

/// What the operator decides of peers, or of gates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Names of variables that are passed on; to gates as far as `goals.env` asks for them.
    pub env: Vec<String>,
    /// Absolute places that are read besides the usual ones.
    pub read: Vec<PathBuf>,
    /// Absolute places that are written.
    pub write: Vec<PathBuf>,
    /// What is reached; absent: what is usual.
    pub net: Option<Net>,
    /// Hosts that the egress proxy leads to. Of peers alone.
    pub allow: Vec<Allowed>,
    /// Networks that those hosts may lead to though nobody outside reaches them. Of peers alone.
    pub private: Vec<String>,
    /// Ports of this machine that are reached at the same port of the own network. Of peers alone.
    pub local_ports: Vec<u16>,
    /// What a container may use at most.
    pub caps: Caps,
}

/// Hosts that may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The host, or the domain.
    pub host: String,
    /// All hosts below it, and not it.
    pub below: bool,
    /// The port.
    pub port: u16,
}

/// Hosts by one word: where packages of a language come from.
const PRESETS: [(&str, &[&str]); 4] = [
    ("rust", &["index.crates.io", "static.crates.io", "crates.io"]),
    ("python", &["pypi.org", "files.pythonhosted.org"]),
    ("node", &["registry.npmjs.org"]),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
];
/// Hosts and ports that may be listed.
const LISTED: usize = 64;
/// Where TLS is.
const TLS: u16 = 443;

/// A network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Net {
    /// Nobody but the programs of one child.
    None,
    /// The services of models, and listed hosts.
    Proxy,
    /// What this machine reaches.
    Host,
}

/// Why the operator's `sandbox.yaml` cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: FileError,
    },
    /// It has other keys, or is no YAML.
    #[error(
        "{0}; it may say `backend`, `require`, `seccomp`, `image`, and of `peers` and `gates` each `env`, `read`, `write`, `net`, `memory`, `pids`, `cpus`, and of `peers` `allow`, `private`, `local_ports`"
    )]
    Syntax(Box<YamlError>),
    /// A name that makes no sense or is never passed.
    #[error("{}: `{key}` names `{name}`, {why}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The name, made printable.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A value that makes no sense.
    #[error("{}: `{key}`: {why}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Why not.
        why: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyFile {
    backend: Option<String>,
    require: Option<u8>,
    seccomp: Seccomp,
    image: Option<String>,
    peers: PartFile,
    gates: PartFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PartFile {
    env: Vec<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    net: Option<Net>,
    allow: Vec<String>,
    private: Vec<String>,
    local_ports: Vec<u16>,
    memory: Option<String>,
    pids: Option<u64>,
    cpus: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Seccomp {
    #[default]
    Default,
    Strict,
}

impl Policy {
    /// Nothing but variables that are passed on, by name.
    #[must_use]
    pub fn passing(peers: &[&str], gates: &[&str]) -> Self {
        let part = |names: &[&str]| Part {
            env: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Part::default()
        };
        Self { peers: part(peers), gates: part(gates), ..Self::default() }
    }

    /// Reads `$XDG_CONFIG_HOME/peers/sandbox.yaml`; nothing is passed when there is none.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn load(operator: &Env) -> Result<Self, PolicyError> {
        let Some(config) = operator.config_home() else { return Ok(Self::default()) };
        let path = config.join(POLICY_DIR).join(POLICY_FILE);
        // The operator may keep it as a link into a collection of such files.
        let Ok(target) = path.canonicalize() else { return Ok(Self::default()) };
        let read = |source| PolicyError::Read { path: path.clone(), source };
        let (Some(holder), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(Self::default());
        };
        let holder = SafeDir::open_shared(holder).map_err(read)?;
        match holder.read_text_opt(name, limits::CONFIG).map_err(read)? {
            Some(text) => Self::parse(&path, &text),
            None => Ok(Self::default()),
        }
    }

    /// Reads the text of the file; `path` is for messages.
    fn parse(path: &Path, text: &str) -> Result<Self, PolicyError> {
        let file: PolicyFile =
            yaml::from_str(POLICY_FILE, text).map_err(|error| PolicyError::Syntax(Box::new(error)))?;
        let value = |key, why: &str| PolicyError::Value { path: path.to_owned(), key, why: why.to_owned() };
        let backend = match file.backend.as_deref() {
            None | Some("auto") => None,
            Some(word) => Some(
                Backend::named(word)
                    .ok_or_else(|| value("backend", "it is one of auto, podman, bwrap, landlock, none"))?,
            ),
        };
        if file.require.is_some_and(|tier| tier > Backend::Podman.tier()) {
            return Err(value("require", "it is 0 (nothing), 1 (landlock), 2 (bwrap) or 3 (podman)"));
        }
        if file.image.as_deref().is_some_and(|image| !names_an_image(image)) {
            return Err(value("image", "it is a name as podman has it, such as `localhost/peers:dev`"));
        }
        let places = [
            ("peers.read", &file.peers.read),
            ("peers.write", &file.peers.write),
            ("gates.read", &file.gates.read),
            ("gates.write", &file.gates.write),
        ];
        for (key, places) in places {
            if let Some(place) = places.iter().find(|place| !place.is_absolute() || place.parent().is_none())
            {
                let place = peers_sys::term::line(&place.to_string_lossy(), 80);
                return Err(value(key, &format!("`{place}` is not an absolute path below `/`")));
            }
        }
        let lists = [("peers.env", &file.peers.env, true), ("gates.env", &file.gates.env, false)];
        for (key, names, secrets) in lists {
            for name in names {
                if let Some(why) = refusal(name, secrets) {
                    let name = peers_sys::term::line(name, 80);
                    return Err(PolicyError::Name { path: path.to_owned(), key, name, why });
                }
            }
        }
        let PolicyFile { require, seccomp, image, peers, gates, .. } = file;
        let lists = |part: &PartFile| [part.allow.len(), part.private.len(), part.local_ports.len()];
        if gates.net == Some(Net::Proxy) || lists(&gates) != [0; 3] {
            return Err(value(
                "gates",
                "gates have `net: none` or `net: host`; `allow`, `private` and `local_ports` are for peers",
            ));
        }
        if lists(&peers).into_iter().any(|listed| listed > LISTED) {
            return Err(value("peers", "`allow`, `private` and `local_ports` have at most 64 entries each"));
        }
        if let Some(net) = peers.private.iter().find(|net| !is_network(net)) {
            let net = peers_sys::term::line(net, 80);
            return Err(value("peers.private", &format!("`{net}` is not a network, as `10.1.0.0/16`")));
        }
        let mut ports = peers.local_ports.clone();
        ports.sort_unstable();
        ports.dedup();
        if ports.len() < peers.local_ports.len() || ports.iter().any(|port| [0, 61080, 61128].contains(port))
        {
            let why = "each port once, and none of 0, 61080 and 61128, where the proxies are";
            return Err(value("peers.local_ports", why));
        }
        let bad = |entry: &String| {
            let entry = peers_sys::term::line(entry, 80);
            value(
                "peers.allow",
                &format!(
                    "`{entry}` is not a host, as `api.example.com`, `*.example.com`, `example.com:8443`, or one of rust, python, node, go"
                ),
            )
        };
        let mut allow = Vec::new();
        for entry in &peers.allow {
            allow.extend(allowed(entry).ok_or_else(|| bad(entry))?);
        }
        let part = |key, part: PartFile, allow| {
            let PartFile { env, read, write, net, allow: _, private, local_ports, memory, pids, cpus } = part;
            let memory = memory.map(|text| bytes(&text).ok_or_else(|| value(key, MEMORY))).transpose()?;
            let caps = Caps { memory, pids, cpus };
            Ok(Part { env, read, write, net, allow, private, local_ports, caps })
        };
        let peers = part("peers.memory", peers, allow)?;
        let gates = part("gates.memory", gates, Vec::new())?;
        Ok(Self { backend, require, least: 0, strict: seccomp == Seccomp::Strict, image, peers, gates })
    }

    /// With what the project asks for in its own configuration, which loosens nothing.
    #[must_use]
    pub fn narrowed(mut self, by: &Narrower) -> Self {
        self.least = by.require;
        let Some(net) = by.net else { return self };
        self.peers.net = match (self.peers.net, net) {
            (Some(Net::None), _) | (_, NarrowNet::None) => Some(Net::None),
            (None | Some(Net::Proxy | Net::Host), NarrowNet::Proxy) => Some(Net::Proxy),
        };
        self.gates.net = match net {
            NarrowNet::None => Some(Net::None),
            NarrowNet::Proxy => self.gates.net.filter(|net| *net != Net::Host),
        };
        self
    }

    /// Why no gate gets the variable `name`, which `goals.env` asks for; `None` where gates get it.
    #[must_use]
    pub fn withheld_from_gates(&self, name: &str) -> Option<&'static str> {
        let listed = self.gates.env.iter().any(|listed| listed == name);
        refusal(name, listed).or((!listed).then_some("which `gates.env` does not list"))
    }
}

/// What `memory` has to be.
const MEMORY: &str = "it is a size such as `512m` or `8g`, not below `64m`, or `0` for no limit";
/// With less nothing begins.
const LEAST: u64 = 64 * limits::MIB;

/// A size: a number, and `k`, `m` or `g` behind it.
fn bytes(text: &str) -> Option<u64> {
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(*unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let size = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size == 0 || size >= LEAST).then_some(size)
}

/// The hosts that an entry of `allow` names. What the egress proxy thinks of them it says itself.
fn allowed(entry: &str) -> Option<Vec<Allowed>> {
    let entry = entry.trim().to_ascii_lowercase();
    if let Some((_, hosts)) = PRESETS.iter().find(|(word, _)| *word == entry) {
        let tls = |host: &&str| Allowed { host: (*host).to_owned(), below: false, port: TLS };
        return Some(hosts.iter().map(tls).collect());
    }
    let (host, port) = match entry.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (entry.as_str(), None),
    };
    let (host, below) = host.strip_prefix("*.").map_or((host, false), |host| (host, true));
    let label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    // A word alone is rather a slip of one of those above.
    let whole = host.contains('.') || (port.is_some() && !below);
    let named = whole && host.len() <= 253 && host.split('.').all(label);
    named.then(|| vec![Allowed { host: host.to_owned(), below, port: port.unwrap_or(TLS) }])
}

fn is_network(text: &str) -> bool {
    let parts = text.split_once('/').map(|(net, bits)| (net.parse::<IpAddr>(), bits.parse::<u8>()));
    matches!(parts, Some((Ok(net), Ok(bits))) if bits <= if net.is_ipv4() { 32 } else { 128 })
}

fn refusal(name: &str, secrets: bool) -> Option<&'static str> {
    let tame = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(tame) || name.starts_with(|c: char| c.is_ascii_digit()) {
        Some("which is not the name of a variable")
    } else if never_passes(name) {
        Some("which is never passed on")
    } else if !secrets && is_credential(name) {
        Some("a credential; gates run the project's own code and get none")
    } else {
        None
    }
}

/// Never an option of podman's.
fn names_an_image(image: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    image.starts_with(|c: char| c.is_ascii_alphanumeric()) && image.chars().all(plain)
}

fn is_credential(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.ends_with("_API_KEY") || upper.ends_with("_TOKEN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_narrows_what_the_operator_allows_and_loosens_nothing() {
        let policy = |peers, gates| Policy {
            peers: Part { net: peers, ..Part::default() },
            gates: Part { net: gates, ..Part::default() },
            ..Policy::default()
        };
        let nets = |policy: Policy| (policy.peers.net, policy.gates.net);
        let to = |net| Narrower { net: Some(net), require: 2 };
        let open = policy(Some(Net::Host), Some(Net::Host));
        assert_eq!(open.clone().narrowed(&to(NarrowNet::Proxy)).least, 2);
        assert_eq!(nets(open.clone().narrowed(&Narrower::default())), (Some(Net::Host), Some(Net::Host)));
        assert_eq!(nets(open.clone().narrowed(&to(NarrowNet::Proxy))), (Some(Net::Proxy), None));
        assert_eq!(nets(open.narrowed(&to(NarrowNet::None))), (Some(Net::None), Some(Net::None)));
        let closed = policy(Some(Net::None), Some(Net::None));
        assert_eq!(nets(closed.narrowed(&to(NarrowNet::Proxy))), (Some(Net::None), Some(Net::None)));
    }

    #[test]
    fn limits_of_containers_are_numbers_and_sizes() {
        let parse = |text: &str| Policy::parse(Path::new("/c/sandbox.yaml"), text);
        let good = parse("peers: {memory: 12g, pids: 0, cpus: 2}\ngates: {memory: 0}\n").unwrap();
        assert_eq!(good.peers.caps, Caps { memory: Some(12 << 30), pids: Some(0), cpus: Some(2) });
        assert_eq!(good.gates.caps, Caps { memory: Some(0), ..Caps::default() });
        for bad in ["1m", "8 g", "-1", "99999999999g", "much"] {
            let error = parse(&format!("gates: {{memory: \"{bad}\"}}\n")).unwrap_err().to_string();
            assert!(error.contains("`gates.memory`: it is a size"), "{bad}: {error}");
        }
    }

    #[test]
    fn the_operators_file_takes_names_and_nothing_else() {
        let path = Path::new("/c/sandbox.yaml");
        let parse = |text: &str| Policy::parse(path, text);
        let text = "backend: landlock\nrequire: 1\nseccomp: strict\npeers: {env: [MY_API_KEY], write: [/h/.x]}\n\
            gates:\n  env: [DATABASE_URL]\n  net: host\n  read: [/srv/tools]\n";
        let good = parse(text).unwrap();
        let image = parse("backend: podman\nimage: localhost/x:1\n").unwrap();
        assert_eq!((image.backend, image.image.as_deref()), (Some(Backend::Podman), Some("localhost/x:1")));
        assert_eq!((good.backend, good.require, good.strict), (Some(Backend::Landlock), Some(1), true));
        let (peers, gates) = (good.peers, good.gates);
        assert_eq!((peers.env, peers.write), (vec!["MY_API_KEY".to_owned()], vec![PathBuf::from("/h/.x")]));
        assert_eq!((gates.env, gates.net), (vec!["DATABASE_URL".to_owned()], Some(Net::Host)));
        assert_eq!(gates.read, [Path::new("/srv/tools")]);
        assert_eq!(
            (parse("").unwrap(), parse("backend: auto\n").unwrap()),
            (Policy::default(), Policy::default())
        );
        for (text, word) in [
            ("backend: docker\n", "`backend`: it is one of auto"),
            ("require: 4\n", "`require`: it is 0"),
            ("peers: {net: wide}\n", "it may say `backend`"),
            ("gates: {net: proxy}\n", "gates have `net: none` or"),
            ("gates: {allow: [rust]}\n", "are for peers"),
            ("peers: {allow: ['http://a.example']}\n", "is not a host"),
            ("peers: {allow: ['*']}\n", "is not a host"),
            ("peers: {allow: [rsut]}\n", "is not a host"),
            ("peers: {allow: ['*.example:443']}\n", "is not a host"),
            ("peers: {private: [10.0.0.1]}\n", "is not a network"),
            ("peers: {private: [10.0.0.0/33]}\n", "is not a network"),
            ("gates: {private: [10.0.0.0/8]}\n", "are for peers"),
            ("peers: {local_ports: [0]}\n", "none of 0"),
            ("peers: {local_ports: [61080]}\n", "none of 0"),
            ("peers: {local_ports: [80, 80]}\n", "each port once"),
            ("image: --privileged\n", "`image`: it is a name"),
            ("picture: x\n", "it may say `backend`"),
            ("gates: {read: [tools]}\n", "`gates.read`: `tools` is not an absolute path"),
            ("peers: {write: [/]}\n", "`peers.write`: `/` is not an absolute path below"),
            ("peers: {env: [LD_PRELOAD]}\n", "never passed"),
            ("peers: {env: ['A=1']}\n", "not the name"),
            ("gates: {env: [MY_API_KEY]}\n", "get none"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_are_listed_one_by_one_by_domain_or_by_a_word() {
        let text = "peers: {net: proxy, allow: [go, API.Example.com, '*.example.org:8443', 'mirror:8081'], private: [10.1.0.0/16, '::1/128'], local_ports: [5432]}\n";
        let peers = Policy::parse(Path::new("/c/sandbox.yaml"), text).unwrap().peers;
        let hosts: Vec<String> = peers
            .allow
            .iter()
            .map(|one| format!("{}{}:{}", if one.below { "below " } else { "" }, one.host, one.port))
            .collect();
        let due = [
            "proxy.golang.org:443",
            "sum.golang.org:443",
            "api.example.com:443",
            "below example.org:8443",
            "mirror:8081",
        ];
        assert_eq!(hosts, due);
        assert_eq!((peers.net, peers.local_ports), (Some(Net::Proxy), vec![5432]));
        assert_eq!(peers.private, ["10.1.0.0/16", "::1/128"]);
    }

    #[test]
    fn what_gates_do_not_get_is_known_with_its_reason() {
        let chosen = Policy::passing(&["PGHOST"], &["DATABASE_URL"]);
        assert_eq!(chosen.withheld_from_gates("DATABASE_URL"), None);
        for (name, why) in [("PGHOST", "does not list"), ("A_TOKEN", "credential"), ("LD_PRELOAD", "never")] {
            assert!(chosen.withheld_from_gates(name).unwrap().contains(why), "{name}");
        }
    }

    #[test]
    fn without_the_file_nothing_is_passed_and_a_link_to_it_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::from_pairs([("HOME", home.path())]);
        assert_eq!(Policy::load(&env).unwrap(), Policy::default());
        std::fs::create_dir_all(home.path().join(".config/peers")).unwrap();
        std::fs::write(home.path().join("elsewhere.yaml"), "peers: {env: [A]}\n").unwrap();
        let file = home.path().join(".config/peers/sandbox.yaml");
        std::os::unix::fs::symlink(home.path().join("elsewhere.yaml"), file).unwrap();
        assert_eq!(Policy::load(&env).unwrap().peers.env, ["A"]);
    }
}
