//! The policy of the auth proxy: who may ask which service, and what is different about a service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use peers_model::{PeerName, limits};
use peers_sys::env::Env;
use peers_sys::{FileError, SafeDir};
use serde::Deserialize;
use thiserror::Error;

use super::credential::{Credential, NoCredential, Oauth};
use super::options::{Bearer, Peer};
use super::provider::Provider;
use super::service::{Rule, Service};
use super::service_url::{PlainHttp, ServiceUrl};
use crate::egress::{self, AllowEntry};
use crate::listen::Endpoint;

/// The version of the file that this program reads.
const VERSION: u32 = 1;

/// Why a policy cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("read the policy of the auth proxy")]
    Read(#[from] FileError),
    /// Not this format.
    #[error("the policy of the auth proxy is not valid: {0}")]
    Json(#[source] serde_json::Error),
    /// Another version of the format.
    #[error("version {0} of the auth policy is not known; this program reads version {VERSION}")]
    Version(u32),
    /// What it says of a peer.
    #[error("the auth policy, peer `{name}`: {why}")]
    Peer {
        /// The peer.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// What it says of a service.
    #[error("the auth policy, service `{name}`: {why}")]
    Service {
        /// The service.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A service that a peer may use has none.
    #[error(transparent)]
    Credential(#[from] NoCredential),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    v: u32,
    token_cap: Option<u64>,
    peers: Vec<PeerEntry>,
    #[serde(default)]
    services: Vec<ServiceEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerEntry {
    name: PeerName,
    bearer: String,
    services: Vec<String>,
    #[serde(default)]
    first_of: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceEntry {
    name: String,
    /// Absent: the one of this name.
    provider: Option<String>,
    url: Option<String>,
    credential: Option<PathBuf>,
    #[serde(default)]
    routes: Vec<String>,
    #[serde(default)]
    private_ok: Vec<String>,
    token_urls: Option<Vec<String>>,
    client_id: Option<String>,
}

/// A policy that was checked.
pub(super) struct Policy {
    token_cap: Option<u64>,
    peers: Vec<Allowed>,
    services: Vec<Offered>,
}

struct Allowed {
    name: PeerName,
    bearer: Bearer,
    services: Vec<String>,
    /// It gets the first of them that there is a credential for, or none.
    first_of: bool,
}

struct Offered {
    name: String,
    provider: Provider,
    url: Option<ServiceUrl>,
    credential: Option<PathBuf>,
    routes: Vec<Rule>,
    private_ok: Vec<String>,
    token_urls: Option<Vec<String>>,
    client_id: Option<String>,
}

/// The credentials that were found, each once: two holders of one login would renew it against each other.
pub(super) struct Credentials {
    env: Env,
    found: Vec<(Provider, Option<PathBuf>, Oauth, Arc<Credential>)>,
}

impl Policy {
    /// Reads the policy at `path`, an absolute path, at most 1 MiB.
    pub(super) fn read(path: &Path) -> Result<Self, PolicyError> {
        let dir = SafeDir::open_root(path.parent().unwrap_or(path))?;
        Self::parse(&dir.read(path.file_name().unwrap_or_default(), limits::STORE_FILE)?)
    }

    fn parse(json: &[u8]) -> Result<Self, PolicyError> {
        let File { v, token_cap, peers, services } =
            serde_json::from_slice(json).map_err(PolicyError::Json)?;
        if v != VERSION {
            return Err(PolicyError::Version(v));
        }
        let mut offered: Vec<Offered> = Vec::new();
        for entry in services {
            let name = entry.name.clone();
            let bad = |why| PolicyError::Service { name: name.clone(), why };
            if offered.iter().any(|other| other.name == name) {
                return Err(bad("stands there twice".to_owned()));
            }
            offered.push(Offered::new(entry).map_err(bad)?);
        }
        let usual = Provider::ALL.into_iter().filter(|provider| {
            // What the file says of a service takes the place of what is usual.
            offered.iter().all(|other| other.name != provider.name())
        });
        let usual: Vec<Offered> = usual.map(Offered::usual).collect();
        offered.extend(usual);
        let mut allowed: Vec<Allowed> = Vec::new();
        for PeerEntry { name, bearer, services, first_of } in peers {
            let bad = |why: String| PolicyError::Peer { name: name.to_string(), why };
            if allowed.iter().any(|other| other.name == name) {
                return Err(bad("stands there twice".to_owned()));
            }
            if let Some(unknown) = services.iter().find(|name| offered.iter().all(|one| one.name != **name)) {
                let known: Vec<&str> = offered.iter().map(|one| one.name.as_str()).collect();
                return Err(bad(format!("there is no service `{unknown}`, only {}", known.join(", "))));
            }
            let bearer = Bearer::new(bearer.into()).map_err(|weak| bad(weak.to_string()))?;
            allowed.push(Allowed { name, bearer, services, first_of });
        }
        Ok(Self { token_cap, peers: allowed, services: offered })
    }

    pub(super) fn token_cap(&self) -> Option<u64> {
        self.token_cap
    }

    /// The peers that have a socket, with what they may use.
    pub(super) fn peers(
        &self,
        listen: &[(PeerName, Endpoint)],
        credentials: &mut Credentials,
    ) -> Result<Vec<Peer>, PolicyError> {
        let mut peers = Vec::new();
        for (name, at) in listen {
            let Some(allowed) = self.peers.iter().find(|peer| peer.name == *name) else {
                let why = "has a socket and is not in the policy".to_owned();
                return Err(PolicyError::Peer { name: name.to_string(), why });
            };
            let named = |name: &String| self.services.iter().find(|one| one.name == *name);
            let mut services = Vec::new();
            for offered in allowed.services.iter().filter_map(named) {
                match offered.service(credentials) {
                    Ok(service) => services.push(service),
                    Err(NoCredential::Missing { .. }) if allowed.first_of => continue,
                    Err(error) => return Err(error.into()),
                }
                if allowed.first_of {
                    break;
                }
            }
            let (name, listen, bearer) = (name.clone(), at.clone(), allowed.bearer.clone());
            peers.push(Peer { name, listen, bearer, services });
        }
        Ok(peers)
    }
}

/// Where the proxy itself may connect to: the services of these peers, and where their logins are renewed.
pub(super) fn hosts(policy: &Policy, peers: &[Peer]) -> Result<egress::Policy, egress::PolicyError> {
    let mut allow = Vec::new();
    for service in peers.iter().flat_map(|peer| &peer.services) {
        let offered = policy.services.iter().find(|one| one.name == service.name);
        let private_ok = offered.map(|one| one.private_ok.clone()).unwrap_or_default();
        allow.extend(entry(&service.url, private_ok));
        let renewed = service.credential.token_urls().iter();
        let renewed = renewed.filter_map(|url| ServiceUrl::parse(url, PlainHttp::Loopback).ok());
        allow.extend(renewed.filter_map(|url| entry(&url, Vec::new())));
    }
    egress::Policy::new(&egress::PolicyFile { v: 1, allow })
}

/// Of plain HTTP, which goes to the loopback alone, no policy is asked.
fn entry(url: &ServiceUrl, private_ok: Vec<String>) -> Option<AllowEntry> {
    url.is_tls().then(|| AllowEntry {
        host: Some(url.host().to_owned()),
        ports: Some(vec![url.port()]),
        private_ok,
        max_up_bytes: Some(u64::MAX),
        ..AllowEntry::default()
    })
}

impl Offered {
    fn new(entry: ServiceEntry) -> Result<Self, String> {
        let ServiceEntry { name, provider, url, credential, routes, private_ok, token_urls, client_id } =
            entry;
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err("a name is made of letters, digits, `-` and `_`".to_owned());
        }
        let word = provider.as_deref().unwrap_or(&name);
        let provider =
            Provider::ALL.into_iter().find(|provider| provider.name() == word).ok_or_else(|| {
                let known = Provider::ALL.map(Provider::name).join(", ");
                format!("`provider` must be one of {known}")
            })?;
        let url = url.map(|url| ServiceUrl::parse(&url, PlainHttp::Loopback)).transpose();
        let url = url.map_err(|bad| bad.to_string())?;
        let routes = routes.iter().map(|rule| rule.parse::<Rule>()).collect::<Result<_, _>>();
        let routes = routes.map_err(|bad| bad.to_string())?;
        if credential.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err("`credential` is not an absolute path".to_owned());
        }
        Ok(Self { name, provider, url, credential, routes, private_ok, token_urls, client_id })
    }

    fn usual(provider: Provider) -> Self {
        Self {
            name: provider.name().to_owned(),
            provider,
            url: None,
            credential: None,
            routes: Vec::new(),
            private_ok: Vec::new(),
            token_urls: None,
            client_id: None,
        }
    }

    fn service(&self, credentials: &mut Credentials) -> Result<Service, NoCredential> {
        let Self { name, provider, url, credential, routes, private_ok: _, token_urls, client_id } = self;
        let mut oauth = Oauth::new(*provider, &credentials.env);
        if let Some(urls) = token_urls {
            oauth.urls.clone_from(urls);
        }
        if let Some(id) = client_id {
            oauth.client_id.clone_from(id);
        }
        let mut service = Service::new(*provider, credentials.find(*provider, credential.as_deref(), oauth)?);
        service.name.clone_from(name);
        service.rules.extend(routes.iter().cloned());
        if let Some(url) = url {
            service.url = url.clone();
        }
        Ok(service)
    }
}

impl Credentials {
    pub(super) fn new(env: Env) -> Self {
        Self { env, found: Vec::new() }
    }

    /// The login files.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.found.iter().filter_map(|(_, _, _, credential)| credential.file())
    }

    fn find(
        &mut self,
        provider: Provider,
        explicit: Option<&Path>,
        oauth: Oauth,
    ) -> Result<Arc<Credential>, NoCredential> {
        let known = self
            .found
            .iter()
            .find(|(of, path, by, _)| *of == provider && path.as_deref() == explicit && *by == oauth);
        if let Some((_, _, _, credential)) = known {
            return Ok(Arc::clone(credential));
        }
        let credential = Credential::find(provider, explicit, &self.env, &oauth)?;
        self.found.push((provider, explicit.map(Path::to_owned), oauth, Arc::clone(&credential)));
        Ok(credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEARER: &str = "0123456789abcdef0123456789abcdef";

    fn parsed(peer: &str, services: &str) -> Result<Policy, String> {
        let text = format!("{{\"v\":1,\"peers\":[{peer}],\"services\":[{services}]}}");
        Policy::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn peer(services: &str) -> String {
        format!("{{\"name\":\"claude\",\"bearer\":\"{BEARER}\",\"services\":[{services}]}}")
    }

    #[test]
    fn a_peer_gets_the_services_that_it_names_and_no_others() {
        let policy = parsed(
            &peer("\"gateway\""),
            "{\"name\":\"gateway\",\"provider\":\"anthropic\",\"url\":\"https://llm.example:8443/a\",\
             \"routes\":[\"POST /v1/messages/batches\"],\"private_ok\":[\"10.0.0.0/8\"]}",
        )
        .unwrap();
        let env = Env::from_pairs([("ANTHROPIC_API_KEY", "k"), ("HOME", "/nonexistent")]);
        let mut credentials = Credentials::new(env);
        let listen = [(PeerName::new("claude").unwrap(), Endpoint::Loopback(0))];
        let peers = policy.peers(&listen, &mut credentials).unwrap();
        let names: Vec<&str> = peers[0].services.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["gateway"]);
        let hosts = hosts(&policy, &peers).unwrap();
        assert!(hosts.decide("llm.example", 8443).unwrap().rule.is_private_ok("10.1.2.3".parse().unwrap()));
        assert!(hosts.decide("api.anthropic.com", 443).is_err());
        let again = policy.peers(&listen, &mut credentials).unwrap();
        assert!(Arc::ptr_eq(&peers[0].services[0].credential, &again[0].services[0].credential));
    }

    #[test]
    fn of_several_services_a_peer_may_get_the_first_that_there_is_a_credential_for() {
        let served = |vars: &[(&str, &str)], services: &str| {
            let peer = peer(services).replacen('{', "{\"first_of\":true,", 1);
            let policy = parsed(&peer, "").unwrap();
            let none = ("HOME", "/nonexistent");
            let env = Env::from_pairs(vars.iter().copied().chain([none]));
            let listen = [(PeerName::new("claude").unwrap(), Endpoint::Loopback(0))];
            let peers = policy.peers(&listen, &mut Credentials::new(env)).unwrap();
            peers[0].services.iter().map(|service| service.name.clone()).collect::<Vec<_>>()
        };
        let keys = [("ANTHROPIC_API_KEY", "k"), ("CODEX_API_KEY", "k")];
        assert_eq!(served(&keys, "\"chatgpt\",\"openai\",\"anthropic\""), ["openai"]);
        assert_eq!(served(&keys, "\"anthropic\",\"openai\""), ["anthropic"]);
        assert_eq!(served(&[], "\"anthropic\""), [""; 0]);
    }

    #[test]
    fn a_login_may_be_renewed_where_its_provider_does_that() {
        let dir = tempfile::tempdir().unwrap();
        let login = "{\"claudeAiOauth\":{\"accessToken\":\"a\",\"refreshToken\":\"r\"}}";
        std::fs::write(dir.path().join("login.json"), login).unwrap();
        let file = dir.path().join("login.json");
        let policy = parsed(
            &peer("\"anthropic\""),
            &format!("{{\"name\":\"anthropic\",\"credential\":\"{}\"}}", file.display()),
        )
        .unwrap();
        let mut credentials = Credentials::new(Env::from_pairs([("HOME", "/nonexistent")]));
        let listen = [(PeerName::new("claude").unwrap(), Endpoint::Loopback(0))];
        let peers = policy.peers(&listen, &mut credentials).unwrap();
        let hosts = hosts(&policy, &peers).unwrap();
        for host in ["api.anthropic.com", "platform.claude.com", "console.anthropic.com"] {
            assert!(hosts.decide(host, 443).is_ok(), "{host}");
        }
        assert_eq!(credentials.files().collect::<Vec<_>>(), [file]);
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_that_says_where() {
        let twice = format!("{},{}", peer(""), peer(""));
        for (peers, services, says) in [
            (peer("\"nonsense\""), "", "peer `claude`: there is no service `nonsense`, only anthropic,"),
            (peer("").replace(BEARER, "short"), "", "at least 32 characters"),
            (twice, "", "twice"),
            (peer(""), "{\"name\":\"mine\"}", "service `mine`: `provider` must be one of"),
            (peer(""), "{\"name\":\"a/b\",\"provider\":\"openai\"}", "a name is made of"),
            (peer(""), "{\"name\":\"openai\",\"url\":\"http://far.example\"}", "the URL is not https"),
            (peer(""), "{\"name\":\"openai\",\"routes\":[\"GET\"]}", "`GET` is not a method and a path"),
            (peer(""), "{\"name\":\"openai\",\"credential\":\"a\"}", "absolute"),
            (peer(""), "{\"name\":\"openai\",\"key\":\"a\"}", "unknown field `key`"),
        ] {
            let error = parsed(&peers, services).err().unwrap_or_default();
            assert!(error.contains(says), "{says}: {error}");
            assert!(!error.contains(BEARER), "{error}");
        }
        let error = Policy::parse(b"{\"v\":2,\"peers\":[]}").err().unwrap();
        assert!(matches!(error, PolicyError::Version(2)), "{error}");
    }

    #[test]
    fn a_socket_of_nobody_is_an_error() {
        let mut credentials = Credentials::new(Env::from_pairs([("HOME", "/nonexistent")]));
        let listen = [(PeerName::new("codex").unwrap(), Endpoint::Loopback(0))];
        let error = parsed(&peer(""), "").unwrap().peers(&listen, &mut credentials).unwrap_err();
        assert!(error.to_string().contains("peer `codex`"), "{error}");
    }
}
