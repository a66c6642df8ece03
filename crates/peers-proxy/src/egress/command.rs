//! The egress proxy as a process.

use std::path::{Path, PathBuf};

use peers_model::RunId;
use peers_sys::confine::Files;

use super::limits::Limits;
use super::policy::Policy;
use super::server::{Listen, Options, Server};
use crate::process::{Lifetime, Parts, Process, Proxy, StartError};

/// What the process is started with.
#[derive(Debug, Clone)]
pub struct Start {
    /// The run that it serves.
    pub run: RunId,
    /// Its sockets.
    pub listen: Vec<Listen>,
    /// The file of the policy, absolute.
    pub policy: PathBuf,
    /// The SHA-256 in hex that the policy must have, also after a reload.
    pub digest: Option<String>,
    /// The file of the log, absolute.
    pub log: PathBuf,
    /// When it ends.
    pub lifetime: Lifetime,
}

/// Reads the policy, opens log and sockets, and confines this process. To be called while there is one thread.
///
/// # Errors
/// [`StartError`].
pub fn open(start: Start) -> Result<Proxy, StartError> {
    let Start { run, listen, policy: file, digest, log, lifetime } = start;
    let process = Process::new()?;
    let policy = Policy::read(&file, digest.as_deref())?;
    let files = Files { read: vec![parent(&file)], write: vec![parent(&log)] };
    process.open(|| {
        let server = Server::bind(Options { run, listen, policy, log, limits: Limits::default() })?;
        let (endpoints, handle) = (server.endpoints(), server.handle());
        let reload = move || match Policy::read(&file, digest.as_deref()) {
            Ok(policy) => handle.reload(policy),
            Err(error) => {
                let error = peers_sys::error::chain(&error);
                tracing::warn!(error, "the egress policy stays as it was");
            }
        };
        Ok(Parts {
            endpoints,
            reload: Box::new(reload),
            serve: Box::new(|shutdown| Box::pin(server.run(shutdown))),
            files,
            served: Vec::new(),
            lifetime,
        })
    })
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}
