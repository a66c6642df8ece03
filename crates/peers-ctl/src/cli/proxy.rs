//! `peers-ctl proxy`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use peers_console::error::CommandError;
use peers_model::{PeerName, RunId, exit};
use peers_place::{file_exit, file_hint};
use peers_proxy::auth::{NoCredential, PolicyError as AuthPolicyError};
use peers_proxy::egress::{Listen, PolicyError, Serves};
use peers_proxy::{BindError, Endpoint, Lifetime, Proxy, StartError, auth, egress};
use peers_sys::{FileError, env, term};
use serde_json::json;

use crate::ctl::Ctl;

/// Give a sandbox without a network a way to listed hosts, or to the services of models
///
/// A loop starts these itself; by hand they serve a sandbox of your own. Inside of it, `peers relay` leads ports to
/// their sockets.
///
/// When its sockets are open, a proxy prints one line that begins with `ready` (with --json, a document). It runs until
/// SIGTERM or Ctrl-C; SIGHUP reads the policy again. It sees no other files of yours than its policy, its log and the
/// logins that it uses.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Pass connections on to the hosts of an allow-list, by CONNECT
    ///
    /// TLS is not opened. The host that the client names in TLS must be the one that it asked for, and no name may lead
    /// to a private address unless the policy says so. Policy and log: docs/formats/proxies.md.
    #[command(verbatim_doc_comment)]
    Egress {
        /// Listen there, in the log under the name of PEER; may be repeated
        #[arg(long, value_name = "[PEER=]unix:PATH|127.0.0.1:PORT", required = true, value_parser = named)]
        listen: Vec<(Option<PeerName>, Endpoint)>,
        /// Lead `local-PORT.sock`, beside the first unix socket, to this port of 127.0.0.1; may be repeated
        #[arg(long = "local-port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        local_ports: Vec<u16>,
        /// Refuse a policy whose SHA-256 is another one
        #[arg(long, value_name = "HEX")]
        digest: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Pass requests on to the services of models, and add the credential
    ///
    /// A client asks for `/SERVICE/PATH` and shows the bearer that the policy gives to its peer. Credentials are found
    /// where the tools keep them, in the environment, or where the policy says. Policy and log:
    /// docs/formats/proxies.md.
    #[command(verbatim_doc_comment)]
    Auth {
        /// Listen there for PEER; may be repeated
        #[arg(long, value_name = "PEER=unix:PATH|127.0.0.1:PORT", required = true, value_parser = of_peer)]
        listen: Vec<(PeerName, Endpoint)>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// The policy
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Append a line of JSON for each request to this file
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// The run, for the log: 16 hexadecimal digits
    #[arg(long, value_name = "RUN")]
    run: RunId,
    /// End also when standard input ends
    #[arg(long)]
    with_stdin: bool,
}

/// `claude=unix:/run/user/1000/peers/egress.sock`, or without a name: for the parser.
fn named(text: &str) -> Result<(Option<PeerName>, Endpoint), String> {
    if let Ok(endpoint) = text.parse() {
        return Ok((None, endpoint));
    }
    of_peer(text).map(|(name, endpoint)| (Some(name), endpoint))
}

/// The same with the name: for the parser.
fn of_peer(text: &str) -> Result<(PeerName, Endpoint), String> {
    let (name, endpoint) =
        text.split_once('=').ok_or("no peer is named, as in claude=unix:/run/auth.sock")?;
    let name = PeerName::new(name).map_err(|error| error.to_string())?;
    Ok((name, endpoint.parse().map_err(|error: peers_proxy::InvalidEndpoint| error.to_string())?))
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let proxy = match &args.which {
        Which::Egress { listen, local_ports, digest, common } => {
            let Common { run, .. } = common;
            let lifetime = common.lifetime();
            let (policy, log) = common.files()?;
            let (listen, digest) = (sockets(listen, local_ports)?, digest.clone());
            egress::open(egress::Start { run: run.clone(), listen, policy, digest, log, lifetime })
        }
        Which::Auth { listen, common } => {
            let Common { run, .. } = common;
            let lifetime = common.lifetime();
            let (policy, log) = common.files()?;
            let (listen, env) = (listen.clone(), ctl.env.clone());
            auth::open(auth::Start { run: run.clone(), listen, policy, log, env, lifetime })
        }
    };
    let proxy = proxy.map_err(|error| refused(&error))?;
    tell(&proxy, ctl)?;
    proxy.run();
    Ok(ExitCode::SUCCESS)
}

impl Common {
    /// Policy and log, absolute.
    fn files(&self) -> Result<(PathBuf, PathBuf), CommandError> {
        let here = env::current_dir()?;
        Ok((here.join(&self.policy), here.join(&self.log)))
    }

    fn lifetime(&self) -> Lifetime {
        if self.with_stdin { Lifetime::OfStdin } else { Lifetime::OfSignals }
    }
}

fn sockets(
    listen: &[(Option<PeerName>, Endpoint)],
    local_ports: &[u16],
) -> Result<Vec<Listen>, CommandError> {
    let proxies =
        listen.iter().map(|(peer, at)| Listen { at: at.clone(), serves: Serves::Proxy(peer.clone()) });
    let mut all: Vec<Listen> = proxies.collect();
    if local_ports.is_empty() {
        return Ok(all);
    }
    let dir = listen.iter().find_map(|(_, at)| match at {
        Endpoint::Unix(path) => path.parent().map(Path::to_owned),
        Endpoint::Loopback(_) => None,
    });
    let dir = dir.ok_or_else(|| {
        CommandError::usage("--local-port puts its socket beside a unix socket, and --listen names none")
    })?;
    all.extend(local_ports.iter().map(|port| Listen {
        at: Endpoint::Unix(dir.join(format!("local-{port}.sock"))),
        serves: Serves::LocalPort(*port),
    }));
    Ok(all)
}

/// The one line on standard output, by which a starter knows that the sockets are open.
fn tell(proxy: &Proxy, ctl: &Ctl) -> Result<(), CommandError> {
    let listen: Vec<String> = proxy.endpoints().iter().map(|at| term::inline(&at.to_string())).collect();
    if ctl.json {
        let served = proxy.served().iter();
        let served: Vec<_> =
            served.map(|(peer, services)| json!({ "peer": peer, "services": services })).collect();
        return ctl.document("proxy", &json!({ "listen": listen, "served": served }), &[]);
    }
    let mut line = format!("ready: {}", listen.join(", "));
    for (peer, services) in proxy.served() {
        let services = if services.is_empty() { "nothing".to_owned() } else { services.join(", ") };
        line.extend(["; ", peer.as_str(), ": ", &services]);
    }
    ctl.out.line(&line)
}

fn refused(error: &StartError) -> CommandError {
    let file = |file: &FileError| CommandError::of(file_exit(file), error).hint_opt(file_hint(file));
    match error {
        StartError::Egress(PolicyError::Read(inner))
        | StartError::Auth(
            AuthPolicyError::Read(inner)
            | AuthPolicyError::Credential(NoCredential::File { source: inner, .. }),
        )
        | StartError::Log(inner)
        | StartError::Bind(BindError::File(inner)) => file(inner),
        StartError::Egress(PolicyError::Changed { .. }) => CommandError::of(exit::REFUSED, error)
            .hint("compare it with what was accepted; `sha256sum` gives the digest"),
        StartError::Bind(BindError::Open { dir }) => {
            let dir = term::quoted(&dir.to_string_lossy());
            CommandError::of(exit::REFUSED, error)
                .hint(format!("`mkdir -m 700 {dir}/peers`, and listen there"))
        }
        StartError::Egress(_)
        | StartError::Auth(
            AuthPolicyError::Json(_)
            | AuthPolicyError::Version(_)
            | AuthPolicyError::Peer { .. }
            | AuthPolicyError::Service { .. },
        ) => CommandError::of(exit::INVALID, error).hint("docs/formats/proxies.md describes the file"),
        StartError::Auth(AuthPolicyError::Credential(_))
        | StartError::Roots(_)
        | StartError::Walls { .. } => CommandError::of(exit::ENVIRONMENT, error),
        StartError::Bind(BindError::Listen { source, .. }) => {
            let taken = source.kind() == std::io::ErrorKind::AddrInUse;
            CommandError::of(if taken { exit::CONFLICT } else { exit::ENVIRONMENT }, error)
        }
        StartError::Setup(_) => CommandError::of(exit::BUG, error),
    }
}
