//! The allow-list: its file, and what it says of a host and a port.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use peers_model::limits;
use peers_sys::digest::sha256_hex;
use peers_sys::{FileError, SafeDir};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::denied::Denied;
use super::host::HostName;
use super::ranges::{Cidr, InvalidCidr};
use super::resolve::Resolver;

/// The version of the file that this program reads and writes.
const VERSION: u32 = 1;
/// Bytes that all peers may upload to an entry in one run, where the entry says nothing.
const MAX_UP: u64 = 2 * 1024 * limits::MIB;

/// Domains below which anybody can have a name: an entry for all names below them allows everybody.
const SHARED: [&str; 44] = [
    "akamaized.net",
    "amazonaws.com",
    "appspot.com",
    "azureedge.net",
    "azurewebsites.net",
    "backblazeb2.com",
    "blogspot.com",
    "cloudapp.net",
    "cloudfront.net",
    "datadoghq.com",
    "datadoghq.eu",
    "deno.dev",
    "digitaloceanspaces.com",
    "fastly.net",
    "firebaseapp.com",
    "firebaseio.com",
    "fly.dev",
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "glitch.me",
    "googleapis.com",
    "googleusercontent.com",
    "herokuapp.com",
    "netlify.app",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "onrender.com",
    "pages.dev",
    "r2.dev",
    "readthedocs.io",
    "repl.co",
    "run.app",
    "sentry.io",
    "statsigapi.net",
    "supabase.co",
    "surge.sh",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "webhook.site",
    "windows.net",
    "workers.dev",
];
/// Second labels below which registries of countries give names away, as in `co.uk`.
const REGISTRIES: [&str; 12] =
    ["ac", "asn", "co", "com", "edu", "gob", "gov", "ne", "net", "nom", "or", "org"];

/// The file `egress.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// The version of the format, 1.
    pub v: u32,
    /// What is allowed. The first entry that matches host and port counts.
    pub allow: Vec<AllowEntry>,
}

/// One entry of the file: either `host` or `suffix`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowEntry {
    /// Exactly this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// All hosts below this domain, not the domain itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// The ports; absent: 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// Networks, such as `10.1.0.0/16`, that this entry may lead to though they are private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private_ok: Vec<String>,
    /// Bytes that may be uploaded to this entry in one run; absent: 2 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_up_bytes: Option<u64>,
}

/// Which hosts may be reached, and how their names are resolved.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Vec<Rule>,
    resolver: Resolver,
}

/// One checked entry.
#[derive(Debug, Clone)]
pub struct Rule {
    pattern: Pattern,
    ports: Vec<u16>,
    private_ok: Vec<Cidr>,
    max_up_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exact(HostName),
    Below(HostName),
}

/// A host that may be reached.
#[derive(Debug)]
pub struct Allowed<'a> {
    /// The host.
    pub host: HostName,
    /// The entry that allows it.
    pub rule: &'a Rule,
}

/// Why a policy cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("read the egress policy")]
    Read(#[from] FileError),
    /// The file is not the one that was accepted.
    #[error("{path} changed since it was accepted")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Not this format.
    #[error("the egress policy is not valid: {0}")]
    Json(#[source] serde_json::Error),
    /// Another version of the format.
    #[error("version {0} of the egress policy is not known; this program reads version {VERSION}")]
    Version(u32),
    /// An entry says nothing, or too much.
    #[error("entry {number} of the egress policy: {why}")]
    Entry {
        /// Which entry, from 1.
        number: usize,
        /// What is wrong with it, and what to write.
        why: String,
    },
}

impl Policy {
    /// Reads the policy at `path`, an absolute path, at most 1 MiB. `digest`: the SHA-256 in hex that was accepted.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn read(path: &Path, digest: Option<&str>) -> Result<Self, PolicyError> {
        let dir = SafeDir::open_root(path.parent().unwrap_or(path))?;
        let bytes = dir.read(path.file_name().unwrap_or_default(), limits::STORE_FILE)?;
        if digest.is_some_and(|digest| digest != sha256_hex(&bytes)) {
            return Err(PolicyError::Changed { path: path.to_owned() });
        }
        Self::parse(&bytes)
    }

    /// Parses the JSON of [`PolicyFile`]. Names are resolved by the system.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(json: &[u8]) -> Result<Self, PolicyError> {
        Self::new(&serde_json::from_slice(json).map_err(PolicyError::Json)?)
    }

    /// Checks the entries. Names are resolved by the system.
    ///
    /// # Errors
    /// [`PolicyError::Version`], [`PolicyError::Entry`].
    pub fn new(file: &PolicyFile) -> Result<Self, PolicyError> {
        let PolicyFile { v, allow } = file;
        if *v != VERSION {
            return Err(PolicyError::Version(*v));
        }
        let checked = |(number, entry)| Rule::new(entry).map_err(|why| PolicyError::Entry { number, why });
        let rules = (1..).zip(allow).map(checked).collect::<Result<_, _>>()?;
        Ok(Self { rules, resolver: Resolver::system() })
    }

    /// The same list with another name service.
    #[must_use]
    pub fn resolving_with(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// Whether `host` may be reached at `port`, as far as the list tells; addresses are not looked up.
    ///
    /// # Errors
    /// [`Denied::Malformed`], [`Denied::IpLiteral`], [`Denied::NotListed`], [`Denied::Port`].
    pub fn decide(&self, host: &str, port: u16) -> Result<Allowed<'_>, Denied> {
        let host = HostName::parse(host)?;
        let mut listed = self.rules.iter().filter(|rule| rule.matches(&host)).peekable();
        if listed.peek().is_none() {
            return Err(Denied::NotListed { host: host.to_string() });
        }
        match listed.find(|rule| rule.ports.contains(&port)) {
            Some(rule) => Ok(Allowed { host, rule }),
            None => Err(Denied::Port { host: host.to_string(), port }),
        }
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.resolver
    }
}

impl Rule {
    /// Bytes that may be uploaded to the hosts of this entry in one run.
    #[must_use]
    pub fn max_up_bytes(&self) -> u64 {
        self.max_up_bytes
    }

    /// Whether the operator allowed this private address for this entry.
    #[must_use]
    pub fn is_private_ok(&self, addr: IpAddr) -> bool {
        self.private_ok.iter().any(|network| network.contains(addr))
    }

    /// The host or the domain with a leading `*.`, which names the entry.
    pub(crate) fn name(&self) -> String {
        match &self.pattern {
            Pattern::Exact(host) => host.to_string(),
            Pattern::Below(domain) => format!("*.{domain}"),
        }
    }

    fn new(entry: &AllowEntry) -> Result<Self, String> {
        let AllowEntry { host, suffix, ports, private_ok, max_up_bytes } = entry;
        let pattern = match (host, suffix) {
            (Some(host), None) => Pattern::Exact(name(host)?),
            (None, Some(suffix)) => Pattern::Below(domain(suffix)?),
            _ => return Err("give either `host` or `suffix`".to_owned()),
        };
        let ports = ports.clone().unwrap_or_else(|| vec![443]);
        if ports.is_empty() || ports.contains(&0) {
            return Err("`ports` holds at least one port, from 1 to 65535".to_owned());
        }
        let private_ok = private_ok.iter().map(|text| text.parse()).collect::<Result<_, InvalidCidr>>();
        let private_ok = private_ok.map_err(|error| format!("private_ok: {error}"))?;
        Ok(Self { pattern, ports, private_ok, max_up_bytes: max_up_bytes.unwrap_or(MAX_UP) })
    }

    fn matches(&self, host: &HostName) -> bool {
        match &self.pattern {
            Pattern::Exact(exact) => host == exact,
            Pattern::Below(domain) => host.is_below(domain),
        }
    }
}

fn name(text: &str) -> Result<HostName, String> {
    HostName::parse(text).map_err(|error| match error {
        Denied::IpLiteral { .. } => format!("{error}; give a host name"),
        _ => format!("`{text}` is not a host name{}", suggestion(text)),
    })
}

fn domain(text: &str) -> Result<HostName, String> {
    let domain = name(text)?;
    let labels: Vec<&str> = domain.as_str().split('.').collect();
    let public = match labels.as_slice() {
        [_] => true,
        [second, top] => top.len() == 2 && REGISTRIES.contains(second),
        _ => false,
    };
    let below = |shared: &str| HostName::parse(shared).is_ok_and(|shared| domain.is_below(&shared));
    if public || SHARED.iter().any(|shared| domain.as_str() == *shared || below(shared)) {
        return Err(format!("anybody can own a name below `{domain}`; list the hosts one by one"));
    }
    Ok(domain)
}

/// What to write in place of a wildcard or of a regular expression such as `^a\.b$` or `.*\.a\.b$`.
fn suggestion(text: &str) -> String {
    let plain = text.trim_start_matches('^').trim_end_matches('$').replace('\\', "");
    let (key, rest) = match plain.strip_prefix(".*.").or_else(|| plain.strip_prefix("*.")) {
        Some(rest) => ("suffix", rest),
        None => ("host", plain.as_str()),
    };
    match HostName::parse(rest) {
        Ok(host) => format!("; write {{\"{key}\": \"{host}\"}}"),
        Err(_) => String::new(),
    }
}
