//! What the commands that look into a loop say where a tick or a peer that was named is not there.

use peers_console::error::CommandError;
use peers_fleet::ProjectName;
use peers_model::command::Step;
use peers_model::{PeerName, exit};
use peers_store::FsDisk;

/// There is no such tick.
pub(crate) fn no_tick(name: &ProjectName, tick: u64) -> CommandError {
    CommandError::new(exit::NEGATIVE, format!("{name} has no tick {tick}"))
        .hint(Step::text("`peers-ctl replay {}` lists its ticks", &[name.as_str()]))
}

/// That no peer of the project, as its newest run had them, is called so; `None` where one is.
///
/// # Errors
/// The journal cannot be read, so that it is not known who its peers are.
pub(crate) fn no_peer(disk: &mut FsDisk, peer: &PeerName) -> Result<Option<String>, CommandError> {
    let state = peers_store::store::read_state(disk)?;
    if state.peers.contains_key(peer) {
        return Ok(None);
    }
    let known: Vec<&str> = state.peers.keys().map(PeerName::as_str).collect();
    let those = if known.is_empty() { String::new() } else { format!("; its peers: {}", known.join(", ")) };
    Ok(Some(format!("no peer is called `{peer}`{those}")))
}
