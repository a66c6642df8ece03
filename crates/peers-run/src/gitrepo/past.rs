//! What history says: changed lines, claims about bugs, the newest handoff.

use peers_checks::history;
use peers_core::bugs::{Author as LedgerAuthor, LedgerCommit, PathTouched};
use peers_core::cheat::{Change, ChangedLine, FileDiff, FileStatus, TurnDiff};
use peers_core::prompt::LastHandoff;
use peers_core::state::HandoffMark;
use peers_git::{ChangeKind, GitError, Hunks};
use peers_model::claim::CommitClaims;
use peers_model::{CommitId, TreeId};
use peers_store::Authors;
use peers_store::history::{Claiming, History};

use super::{GitRepo, hunks};
use crate::ports::RepoFailure;

/// Most bytes of diff text that anti-cheat looks at, of one file and of all of a turn.
const DIFF_CAP: usize = 2 * 1024 * 1024;
const DIFFS_CAP: usize = 32 * 1024 * 1024;

/// New commits after which what is known of the history is kept anew.
const UNKEPT: usize = 100;

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

    fn history(&mut self) -> Result<&History, RepoFailure> {
        let head = self.open()?.facts().head()?.commit;
        let facts = self.control.facts();
        let base = self.base.as_ref().filter(|base| facts.has(base));
        let history = history::read(&facts, base, &head, self.history.take())?;
        if let Some(disk) = &mut self.kept
            && history.commits.abs_diff(self.kept_commits) > UNKEPT
        {
            self.kept_commits = history.commits;
            if let Err(error) = history.write(disk) {
                tracing::warn!(%error, "what commits say about bugs was not kept");
            }
        }
        Ok(self.history.insert(history))
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
        let history = self.history()?.clone();
        let commit = |Claiming { id, time, message, paths }: Claiming| LedgerCommit {
            author: ledger_author(authors, &id),
            voided: authors.is_voided(&id),
            paths: paths.into_iter().map(|path| PathTouched::among(&self.tests, path)).collect(),
            id,
            time,
            message,
        };
        Ok(history.claiming.into_iter().map(commit).collect())
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
