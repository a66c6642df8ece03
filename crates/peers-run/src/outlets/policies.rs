//! What the two proxies are told, and what the first one answers.

use std::path::PathBuf;

use peers_model::config::PeerSpec;
use peers_model::{PeerName, limits};
use peers_sys::env::Env;
use peers_sys::{FileError, SafeDir};
use peers_tools::{Own, Wanted, adapter};
use serde_json::{Value, json};

use crate::env::{Allowed, Part};
use crate::tool_spec::tool_spec;

/// A peer that may be served.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) peer: PeerName,
    pub(super) wanted: Vec<Wanted>,
    /// What the operator's settings of its tool say.
    pub(super) settings: Option<String>,
    /// What it shows the proxy; worth nothing elsewhere.
    pub(super) bearer: String,
    /// What its tool has in place of the operator's directory.
    pub(super) state: PathBuf,
}

impl Asking {
    pub(super) fn of(peer: &PeerSpec, env: &Env) -> Self {
        let (mut wanted, settings) = if is_scripted(peer) { (Vec::new(), None) } else { asked_by(peer, env) };
        let bearer = peers_sys::rand::hex::<32>().unwrap_or_default();
        if bearer.is_empty() {
            // Without random bytes nobody could be told from anybody.
            wanted.clear();
        }
        Self { peer: peer.name.clone(), wanted, settings, bearer, state: PathBuf::new() }
    }
}

/// A tool's services and settings are looked up with the operator's environment.
fn asked_by(peer: &PeerSpec, env: &Env) -> (Vec<Wanted>, Option<String>) {
    let spec = tool_spec(peer);
    let tool = adapter(&spec.kind);
    let var = |name: &str| env.text(name).map(str::to_owned);
    // Behind a proxy of a company it is the tool that knows the way.
    let proxied = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let local = |own: &Wanted| own.url.as_deref().is_some_and(|url| url.starts_with("http://"));
    let elsewhere = proxied.iter().any(|name| var(name).is_some());
    let read = |name: &str| -> Result<Option<String>, FileError> {
        let Some(file) = tool.settings() else { return Ok(None) };
        let dir = env.absolute(file.variable).or_else(|| Some(env.home()?.join(file.below)));
        let Some(Ok(dir)) = dir.map(SafeDir::open_shared) else { return Ok(None) };
        dir.read_text_opt(name, limits::CONFIG)
    };
    let found = tool.settings().map_or(Ok(None), |file| read(file.name));
    let dotenv = read(".env").ok().flatten().is_some_and(|text| text.to_ascii_uppercase().contains("_PROXY"));
    // Settings that cannot be read may lead elsewhere.
    let Ok(settings) = found else { return (Vec::new(), None) };
    let mut wanted = tool.services(&spec, Own { var: &var, settings: settings.as_deref() });
    if elsewhere || dotenv {
        wanted.retain(local);
    }
    (wanted, settings)
}

/// A script of ours plays the tool: it asks no model, and has no login.
pub(super) fn is_scripted(peer: &PeerSpec) -> bool {
    peer.argv.get(1).is_some_and(|word| word == "fake-peer")
}

/// The policy of the auth proxy: each peer gets the first of its services that there is a credential for.
pub(super) fn auth(asking: &[Asking]) -> String {
    let wanting = asking.iter().filter(|one| !one.wanted.is_empty());
    let peers: Vec<Value> = wanting
        .clone()
        .map(|one| {
            let services: Vec<&str> = one.wanted.iter().map(|wanted| wanted.service).collect();
            json!({"name": one.peer, "bearer": one.bearer, "services": services, "first_of": true})
        })
        .collect();
    let mut services: Vec<Value> = Vec::new();
    for wanted in wanting.flat_map(|one| &one.wanted) {
        let known = services.iter().any(|known| known["name"] == wanted.service);
        if let Some(url) = wanted.url.as_ref().filter(|_| !known) {
            // The operator's own address may well lie in the operator's own network.
            services.push(json!({"name": wanted.service, "url": url, "private_ok": PRIVATE}));
        }
    }
    json!({"v": 1, "peers": peers, "services": services}).to_string()
}

/// The policy of the egress proxy.
pub(super) fn egress(peers: &Part) -> String {
    let entry = |allowed: &Allowed| {
        let key = if allowed.below { "suffix" } else { "host" };
        json!({key: allowed.host, "ports": [allowed.port], "private_ok": peers.private})
    };
    json!({"v": 1, "allow": peers.allow.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

/// Networks that nobody outside reaches.
const PRIVATE: [&str; 5] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/// What the auth proxy serves a peer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) peer: String,
    pub(super) service: Option<String>,
    /// Where it listens, if that is a port.
    pub(super) port: Option<u16>,
}

/// Reads the line by which the auth proxy said that it is ready: where it listens, and whom it serves what, in the
/// same order.
pub(super) fn served(told: &str) -> Vec<Served> {
    let mut parts = told.trim_end().split("; ");
    let listen = parts.next().unwrap_or_default();
    let listen = listen.strip_prefix("ready: ").unwrap_or_default().split(", ");
    let port = |at: &str| at.strip_prefix("127.0.0.1:").and_then(|port| port.parse().ok());
    let served = parts.filter_map(|part| part.split_once(": "));
    let service = |text: &str| (text != "nothing").then(|| text.to_owned());
    listen
        .zip(served)
        .map(|(at, (peer, of))| Served { peer: peer.to_owned(), service: service(of), port: port(at) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_auth_proxy_is_read_in_its_order() {
        let served = served("ready: 127.0.0.1:4711, unix:/r/1/auth.sock; ann: chatgpt; ben: nothing\n");
        let of = |peer: &str, service: Option<&str>, port| Served {
            peer: peer.to_owned(),
            service: service.map(str::to_owned),
            port,
        };
        assert_eq!(served, [of("ann", Some("chatgpt"), Some(4711)), of("ben", None, None)]);
    }

    #[test]
    fn the_policies_name_each_peer_with_its_services_and_each_host_with_its_port() {
        let asking = |peer: &str, wanted: Vec<Wanted>| Asking {
            peer: PeerName::new(peer).unwrap(),
            wanted,
            settings: None,
            bearer: format!("bearer of {peer}"),
            state: PathBuf::new(),
        };
        let own = Wanted { service: "openai", url: Some("https://gate.example/v1".to_owned()) };
        let usual = Wanted { service: "chatgpt", url: None };
        let policy =
            auth(&[asking("ann", vec![usual, own.clone()]), asking("ben", vec![own]), asking("cy", vec![])]);
        let policy: Value = serde_json::from_str(&policy).unwrap();
        let ann = json!({"name": "ann", "bearer": "bearer of ann", "services": ["chatgpt", "openai"], "first_of": true});
        assert_eq!((policy["peers"].as_array().unwrap().len(), &policy["peers"][0]), (2, &ann));
        let service = json!({"name": "openai", "url": "https://gate.example/v1", "private_ok": PRIVATE});
        assert_eq!(policy["services"], json!([service]));
        let allowed = |host: &str, below, port| Allowed { host: host.to_owned(), below, port };
        let private = vec!["10.1.0.0/16".to_owned()];
        let allow = vec![allowed("a.example", false, 443), allowed("b.example", true, 8443)];
        let policy = egress(&Part { allow, private: private.clone(), ..Part::default() });
        let policy: Value = serde_json::from_str(&policy).unwrap();
        assert_eq!(
            policy["allow"],
            json!([
                {"host": "a.example", "ports": [443], "private_ok": private},
                {"suffix": "b.example", "ports": [8443], "private_ok": private},
            ])
        );
    }
}
