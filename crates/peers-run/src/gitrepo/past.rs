//! What history says: changed lines, claims about bugs, the newest handoff.

use peers_core::bugs::{Author as LedgerAuthor, LedgerCommit, PathTouched};
use peers_core::cheat::{Change, ChangedLine, FileDiff, FileStatus, TurnDiff};
use peers_core::prompt::LastHandoff;
use peers_core::state::HandoffMark;
use peers_git::{ChangeKind, GitError, Hunks};
use peers_model::bug::BugClaims;
use peers_model::claim::CommitClaims;
use peers_model::{CommitId, Timestamp, TreeId};
use peers_store::Authors;

use super::{GitRepo, hunks};
use crate::ports::RepoFailure;

/// Most bytes of diff text that anti-cheat looks at, of one file and of all of a turn.
const DIFF_CAP: usize = 2 * 1024 * 1024;
const DIFFS_CAP: usize = 32 * 1024 * 1024;

/// A commit that may claim something about bugs.
pub(super) struct Candidate {
    id: CommitId,
    time: Timestamp,
    message: String,
    paths: Vec<PathTouched>,
}

impl GitRepo {
    pub(super) fn turn_diff(&self, old: &TreeId, new: &TreeId) -> Result<TurnDiff, GitError> {
        if old == new {
            return Ok(TurnDiff::default());
        }
        let facts = self.control.facts();
        let first = |path: &str| self.tests.is_measured(path);
        let mut files = Vec::new();
        for Hunks { change, text } in facts.diff_hunks(old, new, first, (DIFF_CAP, DIFFS_CAP))? {
            let status = match change.kind {
                ChangeKind::Added => FileStatus::Added,
                ChangeKind::Deleted => FileStatus::Deleted,
                ChangeKind::Modified => FileStatus::Modified,
            };
            let kind = self.tests.classify(&change.path);
            let Some(text) = text else {
                files.push(FileDiff { kind, ..FileDiff::opaque(&change.path, status) });
                continue;
            };
            let lines = hunks::parse(&text);
            if FileDiff::wants_text_as(kind, &change.path) {
                let read = |tree: &TreeId| -> String {
                    let blob = facts.read_blob_of(tree, &change.path, DIFF_CAP).ok().flatten();
                    blob.map(|b| String::from_utf8_lossy(&b.bytes).into_owned()).unwrap_or_default()
                };
                let (before, after) = (read(old), read(new));
                let old = Change { text: &before, lines: &lines.removed };
                let new = Change { text: &after, lines: &lines.added };
                files.extend(FileDiff::divided_as(kind, &change.path, status, old, new));
            } else {
                let plain = |lines: &[ChangedLine]| lines.iter().map(|l| l.text.clone()).collect();
                let (removed, added) = (plain(&lines.removed), plain(&lines.added));
                files.push(FileDiff { kind, ..FileDiff::text(&change.path, status, removed, added) });
            }
        }
        Ok(TurnDiff { files })
    }

    fn candidates(&mut self) -> Result<(), RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head()?.commit;
        let cached = self.ledger.take();
        let (from, mut list) = match cached {
            Some((at, list)) if at == head => {
                self.ledger = Some((at, list));
                return Ok(());
            }
            Some((at, list)) if self.control.facts().is_ancestor(&at, &head).unwrap_or(false) => {
                (Some(at), list)
            }
            _ => (self.base.clone(), Vec::new()),
        };
        let facts = self.control.facts();
        let from = from.filter(|f| facts.has(f));
        for fact in facts.walk(from.as_ref(), &head, peers_git::WALK_CAP)? {
            if !BugClaims::may_be_in(&fact.message) {
                continue;
            }
            let before = fact.parents.first().and_then(|p| facts.tree_of(p).ok());
            let paths = match before {
                // A commit that touches more than can be listed proves nothing about any of it.
                Some(before) => match facts.diff_trees(&before, &fact.tree) {
                    Err(GitError::TooLarge { .. }) => Vec::new(),
                    paths => paths?,
                },
                None => Vec::new(),
            };
            list.push(Candidate {
                id: fact.id,
                time: fact.time,
                message: fact.message,
                paths: paths.into_iter().map(|p| PathTouched::among(&self.tests, p.path)).collect(),
            });
        }
        self.ledger = Some((head, list));
        Ok(())
    }

    pub(super) fn since(&self, from: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure> {
        let peer = self.open()?;
        let head = peer.facts().head()?.commit;
        if head == *from {
            return Ok(Vec::new());
        }
        let facts = self.control.facts();
        let start = if facts.has(from) { facts.merge_base(from, &head)? } else { self.base.clone() };
        let walked = facts.walk(start.as_ref(), &head, peers_git::WALK_CAP)?;
        Ok(walked.into_iter().map(|c| (c.id, c.message)).collect())
    }

    pub(super) fn bug_ledger(&mut self, authors: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure> {
        self.candidates()?;
        let list = self.ledger.as_ref().map(|(_, list)| list.as_slice()).unwrap_or_default();
        Ok(list
            .iter()
            .map(|c| LedgerCommit {
                id: c.id.clone(),
                author: ledger_author(authors, &c.id),
                time: c.time,
                message: c.message.clone(),
                paths: c.paths.clone(),
                voided: authors.is_voided(&c.id),
            })
            .collect())
    }

    pub(super) fn handoff_of(&self, mark: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure> {
        let facts = self.control.facts();
        if !facts.has(&mark.from) || !facts.has(&mark.to) {
            return Ok(None);
        }
        let commits = facts.walk(Some(&mark.from), &mark.to, 1000)?;
        let found = commits.into_iter().rev().find_map(|c| {
            let claims = CommitClaims::read(&c.message);
            let handoff = claims.handoff.unverified();
            let section = handoff.self_review_section.clone().unwrap_or_default();
            handoff.is_handoff().then_some((c.id, claims.subject, section))
        });
        let Some((sha, subject, self_review)) = found else { return Ok(None) };
        let (old, new) = (facts.tree_of(&mark.from)?, facts.tree_of(&mark.to)?);
        let changes = match facts.diff_trees(&old, &new) {
            Err(GitError::TooLarge { .. }) => Vec::new(),
            changes => changes?,
        };
        let mut diffstat: Vec<String> =
            changes.iter().take(30).map(|c| format!("{} +{} -{}", c.path, c.added, c.deleted)).collect();
        if changes.len() > 30 {
            diffstat.push(format!("and {} more", changes.len() - 30));
        }
        Ok(Some(LastHandoff {
            peer: mark.peer.clone(),
            sha,
            subject,
            self_review,
            diffstat: diffstat.join("\n"),
        }))
    }
}

/// The author as the ledger knows authors. Of a turn that ran outside of the loop nobody knows who made it.
#[must_use]
pub fn ledger_author(authors: &Authors, id: &CommitId) -> LedgerAuthor {
    match authors.of(id).filter(|_| !authors.is_unwatched(id)) {
        Some(peers_store::Author::Peer { name, .. }) => LedgerAuthor::Peer(name.clone()),
        Some(peers_store::Author::Operator) => LedgerAuthor::Operator,
        Some(peers_store::Author::Foreign) => LedgerAuthor::Foreign,
        Some(peers_store::Author::Substrate) => LedgerAuthor::Substrate,
        None => LedgerAuthor::Unattributed,
    }
}
