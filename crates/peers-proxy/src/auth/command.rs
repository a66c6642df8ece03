//! The auth proxy as a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use peers_model::{PeerName, RunId};
use peers_sys::confine::Files;
use peers_sys::env::Env;
use peers_sys::{AppendLog, SafeDir, clock};

use super::options::{Limits, Options, Peer};
use super::policy::{Credentials, Policy, hosts};
use super::server::Server;
use super::upstream::system_tls;
use crate::listen::Endpoint;
use crate::process::{Lifetime, Parts, Process, Proxy, StartError};

/// What the process is started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// The run that it serves.
    pub run: RunId,
    /// The socket of each peer.
    pub listen: Vec<(PeerName, Endpoint)>,
    /// The file of the policy, absolute.
    pub policy: PathBuf,
    /// The file of the log, absolute.
    pub log: PathBuf,
    /// Where credentials are found that the policy does not name.
    pub env: Env,
    /// When it ends.
    pub lifetime: Lifetime,
}

/// Reads the policy and the credentials, opens log and sockets, and confines this process. To be called while there is
/// one thread.
///
/// # Errors
/// [`StartError`].
pub fn open(start: Start) -> Result<Proxy, StartError> {
    let Start { run, listen, policy: file, log, env, lifetime } = start;
    let process = Process::new()?;
    let policy = Policy::read(&file)?;
    let mut credentials = Credentials::new(env);
    let peers = policy.peers(&listen, &mut credentials)?;
    let hosts = hosts(&policy, &peers)?;
    let names = |peer: &Peer| peer.services.iter().map(|service| service.name.clone()).collect();
    let offers = peers.iter().map(|peer| (peer.name.clone(), names(peer))).collect();
    let tls = system_tls()?;
    let log_dir = SafeDir::open_root(parent(&log)).map_err(StartError::Log)?;
    let mut written =
        AppendLog::open(&log_dir, log.file_name().unwrap_or_default()).map_err(StartError::Log)?;
    written.drop_torn_tail().map_err(StartError::Log)?;
    let mut files = Files { read: vec![parent(&file)], write: vec![parent(&log)] };
    files.write.extend(credentials.files().map(parent));
    process.open(|| {
        let server = Server::bind(Options {
            run,
            peers,
            policy: hosts,
            tls,
            limits: Limits::default(),
            token_cap: policy.token_cap(),
            log: written,
            clock: Arc::new(clock::now),
        })?;
        let (endpoints, handle) = (server.endpoints(), server.handle());
        let reload = move || {
            let fresh = Policy::read(&file).and_then(|policy| {
                let peers = policy.peers(&listen, &mut credentials)?;
                Ok((peers, policy.token_cap()))
            });
            match fresh {
                Ok((peers, cap)) => handle.reload(peers, cap),
                Err(error) => {
                    let error = peers_sys::error::chain(&error);
                    tracing::warn!(error, "the policy of the auth proxy stays as it was");
                }
            }
        };
        Ok(Parts {
            endpoints,
            reload: Box::new(reload),
            serve: Box::new(|shutdown| Box::pin(server.run(shutdown))),
            files,
            served: offers,
            lifetime,
        })
    })
}

fn parent(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    path.parent().unwrap_or(path).to_owned()
}
