//! A turn that somebody else than the loop ran: what there is of it.
//!
//! An agent that a person works with in a terminal says by a hook that it stopped. That it stopped means
//! little: it does so after each answer. Its turn is over when a commit of it hands over, and only then is
//! there something for the loop to take in.

use std::path::Path;

use peers_core::machine::After;
use peers_model::claim::CommitClaims;
use peers_model::config::Config;
use peers_model::{PeerName, exit};
use peers_place::Place;
use peers_store::{FsDisk, project, store};
use peers_sys::error::chain;

use super::finding::Finding;
use super::preflight::open_repo;

/// Commits that are looked at.
const COMMITS: usize = 10_000;

/// What there is of a turn that ran outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outside {
    /// No commit is new.
    Nothing(PeerName),
    /// There are new commits, and none says that it is of that peer.
    Unnamed(PeerName),
    /// It has committed, and not handed over: its turn goes on.
    Unfinished(PeerName),
    /// It is over.
    Over(After),
}

/// Looks for the turn of `who`, the name of a peer or else of its tool. Writes nothing.
///
/// # Errors
/// [`Finding`] when `who` is nobody, several peers have that tool, or something cannot be read.
pub fn outside(place: &Place, disk: &mut FsDisk, config: &Config, who: &str) -> Result<Outside, Finding> {
    let peer = peer(config, who)?;
    let state = store::read_state(disk)?;
    let known = match &state.head {
        Some(head) => Some(head.clone()),
        None => project::read(disk)?.and_then(|project| project.base),
    };
    // Before anything is known nothing is new.
    let Some(head) = known else { return Ok(Outside::Nothing(peer)) };
    let repo = open_repo(place)?;
    let facts = repo.facts();
    let failed = |error: peers_git::GitError| Finding::plain(exit::INVALID, chain(&error));
    let now = facts.head().map_err(failed)?.commit;
    if now == head || !facts.has(&head) || !facts.is_ancestor(&head, &now).map_err(failed)? {
        // History that was rewritten is what the start of a run looks at.
        return Ok(Outside::Nothing(peer));
    }
    let mut any = false;
    for commit in facts.walk(Some(&head), &now, COMMITS).map_err(failed)? {
        let claims = CommitClaims::read(&commit.message);
        let said = claims.handoff.unverified();
        if said.names(&peer) {
            any = true;
            if said.is_handoff() || said.blocked().is_some() {
                let tree = facts.tree_of(&head).map_err(failed)?;
                return Ok(Outside::Over(After { peer, head, tree }));
            }
        }
    }
    Ok(if any { Outside::Unfinished(peer) } else { Outside::Unnamed(peer) })
}

/// The peer of that name, else the only one of that tool.
fn peer(config: &Config, who: &str) -> Result<PeerName, Finding> {
    if let Some(peer) = config.peers.iter().find(|peer| peer.name.as_str() == who) {
        return Ok(peer.name.clone());
    }
    let mut of_tool = config.peers.iter().filter(|peer| peer.tool_name() == who).map(|peer| &peer.name);
    match (of_tool.next(), of_tool.next()) {
        (Some(peer), None) => Ok(peer.clone()),
        (Some(one), Some(other)) => {
            let text = format!("several peers are run as `{who}`: `{one}`, `{other}`");
            Err(Finding::new(exit::USAGE, text, "name the peer"))
        }
        (None, _) => {
            let names: Vec<&str> = config.peers.iter().map(|peer| peer.name.as_str()).collect();
            let text = format!("no peer is called `{}` or run as it", peers_sys::term::line(who, 40));
            Err(Finding::new(exit::USAGE, text, format!("the peers are {}", names.join(", "))))
        }
    }
}

/// Whether the directory that a hook's message names lies in the work tree. `None`: the message names none.
#[must_use]
pub fn is_inside(message: &[u8], work_dir: &Path) -> Option<bool> {
    let said: serde_json::Value = serde_json::from_slice(message).ok()?;
    let cwd = said.get("cwd")?.as_str()?;
    let cwd = Path::new(cwd).canonicalize().ok();
    Some(cwd.is_some_and(|cwd| work_dir.canonicalize().is_ok_and(|top| cwd.starts_with(top))))
}
