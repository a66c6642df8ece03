//! Containers of peers that nobody keeps any more.

use peers_model::exit;
use peers_run::boot::{Finding, walls};
use peers_sandbox::PodmanClient;
use peers_sys::env::Env;

/// A container that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// What podman calls it.
    pub name: String,
}

/// Ends and removes containers whose run is gone; with `dry_run` only finds them. Each is kept by one process, and one
/// whose keeper runs is left alone.
///
/// # Errors
/// A [`Finding`] when podman is missing or refuses.
pub fn prune(env: &Env, dry_run: bool) -> Result<Vec<Stray>, Finding> {
    let refused = |why: String| Finding::plain(exit::ENVIRONMENT, why);
    let (stub, _) = walls::this_program()?;
    let client = PodmanClient::find(&stub, env).map_err(refused)?;
    let mut found = Vec::new();
    for (id, name) in client.strays().map_err(refused)? {
        if !dry_run {
            client.remove(&id).map_err(refused)?;
        }
        found.push(Stray { name });
    }
    Ok(found)
}
