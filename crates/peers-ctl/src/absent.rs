//! What the commands that look into a loop say where a tick or a peer that was named is not there.

use peers_console::error::CommandError;
use peers_fleet::ProjectName;
use peers_model::{PeerName, exit};
use peers_store::FsDisk;

/// There is no such tick.
pub(crate) fn no_tick(name: &ProjectName, tick: u64) -> CommandError {
    CommandError::new(exit::NEGATIVE, format!("{name} has no tick {tick}"))
        .hint(format!("`peers-ctl replay {name}` lists its ticks"))
}

/// That no peer of the project, as its newest run had them, is called so; `None` where one is.
pub(crate) fn no_peer(disk: &mut FsDisk, peer: &PeerName) -> Option<String> {
    let state = peers_store::store::read_state(disk).unwrap_or_default();
    if state.peers.contains_key(peer) {
        return None;
    }
    let known: Vec<&str> = state.peers.keys().map(PeerName::as_str).collect();
    let those = if known.is_empty() { String::new() } else { format!("; its peers: {}", known.join(", ")) };
    Some(format!("no peer is called `{peer}`{those}"))
}
