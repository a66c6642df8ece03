//! What history says: changes and what they weaken, claims about bugs, the newest handoff.

use peers_checks::history;
use peers_code::{ChangedFile, Side};
use peers_core::bugs::{Author as LedgerAuthor, LedgerCommit, PathTouched};
use peers_core::cheat::{FileDiff, TurnDiff};
use peers_core::classify_path::{PathKind, classify};
use peers_core::prompt::LastHandoff;
use peers_core::state::HandoffMark;
use peers_git::{GitError, PathChange};
use peers_model::claim::CommitClaims;
use peers_model::{CommitId, TreeId};
use peers_store::Authors;
use peers_store::history::{Claiming, History};

use super::GitRepo;
use super::putback::{Stored, shown, text};
use crate::measure::is_measured;
use crate::ports::RepoFailure;

/// Most bytes of text that are measured, of one file and of all of a turn. What is beyond counts as what cannot be read.
const TEXT_CAP: usize = 2 * 1024 * 1024;
const TEXTS_CAP: usize = 32 * 1024 * 1024;

/// Git's mode of a submodule.
const SUBMODULE: u32 = 0o160_000;

/// New commits after which what is known of the history is kept anew.
const UNKEPT: usize = 100;

impl GitRepo {
    /// What changed between work trees, pair by pair. All are measured at once.
    pub(super) fn diffs(&self, pairs: &[(&Stored, &Stored)]) -> Result<Vec<TurnDiff>, GitError> {
        let mut left = TEXTS_CAP;
        let changes = pairs.iter().map(|(old, new)| self.changes(old, new, &mut left));
        let (mut diffs, asked): (Vec<TurnDiff>, Vec<_>) =
            changes.collect::<Result<Vec<_>, GitError>>()?.into_iter().unzip();
        let answers = self.measurer.measure(&asked).map_err(|error| GitError::Io {
            path: self.measurer.program.clone(),
            source: std::io::Error::other(error),
        })?;
        for (diff, answer) in diffs.iter_mut().zip(answers) {
            diff.weaker = answer.found;
            for inline in answer.inline {
                diff.divide(&inline.path, inline.tests, inline.rest);
            }
        }
        Ok(diffs)
    }

    /// What changed between two work trees, and what of it is to be measured.
    fn changes(
        &self,
        old: &Stored,
        new: &Stored,
        left: &mut usize,
    ) -> Result<(TurnDiff, Vec<ChangedFile>), GitError> {
        let facts = self.control.facts();
        let (mut diff, mut asked) = (TurnDiff::default(), Vec::new());
        let (unread_before, unread) = (shown(&old.left_out), shown(&new.left_out));
        let changes =
            if old.tree == new.tree { Vec::new() } else { facts.diff_trees(&old.tree, &new.tree)? };
        // A new module of Go takes a directory out of the whole, unless its files are new too.
        let is_go = changes.iter().any(|change| change.old_mode == 0 && change.path.ends_with("/go.mod"));
        for change in changes {
            // Of what could not be read before nothing can be said.
            if unread_before.contains(&change.path) || unread.contains(&change.path) {
                continue;
            }
            let PathChange { path, old_mode, new_mode, added, deleted, binary, .. } = change;
            let kind = self.tests.classify(&path);
            if is_measured(&self.tests, &path) || (is_go && path.rsplit('.').next() == Some("go")) {
                let mut side = |mode: u32, tree: &TreeId| match mode {
                    0 => Side::Absent,
                    _ if binary => Side::Unread,
                    _ => match facts.read_blob_of(tree, &path, TEXT_CAP.min(*left)) {
                        Ok(None) if mode == SUBMODULE => Side::Absent,
                        Ok(Some(blob)) => {
                            *left = left.saturating_sub(blob.bytes.len());
                            Side::Text(String::from_utf8_lossy(&blob.bytes).into_owned())
                        }
                        // A name that is no text leads to nothing.
                        Ok(None) | Err(_) => Side::Unread,
                    },
                };
                let told = kind == PathKind::Test && classify(&path) != PathKind::Test;
                let (before, after) = (side(old_mode, &old.tree), side(new_mode, &new.tree));
                asked.push(ChangedFile { path: path.clone(), before, after, told });
            }
            diff.files.push(FileDiff { path, kind, added, deleted, binary });
        }
        for path in unread.difference(&unread_before) {
            // Two names that are the same text are one file here.
            let existed = new.left_out.iter().any(|raw| text(raw) == *path && self.is_file(&old.tree, raw));
            let kind = self.tests.classify(path);
            diff.files.push(FileDiff { kind, binary: true, ..FileDiff::text(path, 0, 0) });
            let before = if existed { Side::Unread } else { Side::Absent };
            asked.push(ChangedFile { path: path.clone(), before, after: Side::Unread, told: false });
        }
        Ok((diff, asked))
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
