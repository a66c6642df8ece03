//! What a prompt is made of besides the state: commits, messages, the newest handoff, open bugs. Only reads.

use std::collections::BTreeMap;

use peers_core::bugs::Ledger;
use peers_core::machine::ComposeFacts;
use peers_core::phases;
use peers_core::plan::{self, Plan};
use peers_core::prompt::{BugLine, InboxItem};
use peers_core::state::State;
use peers_model::goal::Course;
use peers_model::record::AckTarget;
use peers_model::{CommitId, PeerName, limits};
use peers_store::{Author, Authors, Disk, DiskError};
use thiserror::Error;

use crate::messages;
use crate::ports::{Repo, RepoFailure};
use crate::primer;

/// What the journal says.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The fold of the journal.
    pub state: &'a State,
    /// Who made which commit.
    pub authors: &'a Authors,
}

/// Why that cannot be read.
#[derive(Debug, Error)]
pub enum Unread {
    /// The repository.
    #[error(transparent)]
    Repo(#[from] RepoFailure),
    /// The messages that wait.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Gathers it for a turn of this peer.
///
/// # Errors
/// The repository, or a file of the store, cannot be read.
pub fn facts<R: Repo, D: Disk>(
    repo: &mut R,
    disk: &mut D,
    known: Known<'_>,
    peer: &PeerName,
    nonce: String,
) -> Result<ComposeFacts, Unread> {
    let Known { state, authors } = known;
    let mut inbox = Vec::new();
    let mut bookmarks: BTreeMap<PeerName, CommitId> = BTreeMap::new();
    for (sender, mark) in state.bookmarks.get(peer).into_iter().flatten() {
        for (commit, message) in repo.commits_since(mark)? {
            let by_sender = matches!(authors.of(&commit), Some(Author::Peer { name, .. }) if name == sender);
            if !by_sender {
                continue;
            }
            let subject = message.lines().next().unwrap_or_default().to_owned();
            inbox.push(InboxItem { from: sender.clone(), subject, sha: commit.clone() });
            bookmarks.insert(sender.clone(), commit);
        }
    }
    let messages = messages::deliver(disk, peer, &state.messages)?;
    let last_handoff = match &state.last_handoff {
        Some(mark) if mark.peer != *peer => repo.last_handoff(mark)?,
        _ => None,
    };
    let open_bugs = bug_lines(&ledger(repo, known)?);
    let notes = Vec::new();
    let primers = primer::there(disk);
    Ok(ComposeFacts { nonce, inbox, bookmarks, messages, last_handoff, open_bugs, notes, primers })
}

/// PLAN.md of a commit, where turns are given out by it and it is a plan.
///
/// # Errors
/// The repository cannot be read.
pub fn plan_at<R: Repo>(
    repo: &mut R,
    course: &Course,
    commit: &CommitId,
) -> Result<Option<Plan>, RepoFailure> {
    if !course.has_steps() {
        return Ok(None);
    }
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let bytes = repo.file(commit, phases::PLAN, cap)?;
    Ok(bytes.and_then(|bytes| plan::parse(&bytes).plan))
}

/// The bug ledger at HEAD.
pub(crate) fn ledger<R: Repo>(repo: &mut R, known: Known<'_>) -> Result<Ledger, RepoFailure> {
    let commits = repo.ledger(known.authors)?;
    let acks = known.state.acks.iter();
    let acks =
        acks.filter_map(|a| if let AckTarget::Bug(id) = a { Some(id.clone()) } else { None }).collect();
    Ok(Ledger::read(&commits, &acks))
}

/// Open bugs for a prompt, the worst first.
fn bug_lines(ledger: &Ledger) -> Vec<BugLine> {
    ledger
        .open_from(peers_model::bug::Severity::Info)
        .into_iter()
        .map(|bug| BugLine {
            id: bug.id.clone(),
            severity: bug.severity.to_string(),
            title: bug.title.clone(),
            location: bug.location.clone().unwrap_or_default(),
            reporter: bug.found_by.to_string(),
            needs: bug.open.as_ref().map(|o| o.as_str().to_owned()).unwrap_or_default(),
        })
        .collect()
}
