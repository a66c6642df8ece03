//! Our own repository, when something happened to it: bits that rotted, or somebody who deletes files.

use peers_git::{Completed, ControlDir, Generation, Git, GitError, PeerRepo, RefValue, Remade, SalvageSeen};
use peers_model::CommitId;
use peers_sys::error::chain;
use peers_sys::term;

use super::mend::quoted;
use super::{GitRepo, failure, substrate};
use crate::ports::RepoFailure;

impl GitRepo {
    /// Does something; when git fails at it and our own repository was the reason, that is made whole again
    /// and it is done once more.
    pub(super) fn with_control<T>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<T, RepoFailure>,
    ) -> Result<T, RepoFailure> {
        match act(self) {
            Err(RepoFailure::Git(_) | RepoFailure::Tampered { way: None, .. }) if self.mend_control(None) => {
                act(self)
            }
            done => done,
        }
        .map_err(|failure| self.with_way_on(failure))
    }

    /// Makes our own repository whole again; `open` is where the turn began that is being harvested, and what
    /// was known then. Whether anything was wrong with it, and is not any more.
    pub(super) fn mend_control(&mut self, open: Option<(&CommitId, Generation)>) -> bool {
        let mended = self.try_mend_control(open);
        mended.unwrap_or_else(|failure| {
            tracing::warn!(%failure, "our own repository could not be made whole");
            false
        })
    }

    fn try_mend_control(&mut self, open: Option<(&CommitId, Generation)>) -> Result<bool, RepoFailure> {
        let peer = self.open()?;
        let marks = self.turn.iter().chain(self.gates.iter().map(|(mark, _)| mark));
        let known = marks.map(|mark| mark.known).chain(open.map(|(_, known)| known)).max();
        let start = open.map(|(from, _)| from.clone()).or_else(|| self.started_at());
        let at: Vec<CommitId> = start.into_iter().chain(self.base.clone()).collect();
        let mut remade = None;
        let whole = match self.control.complete(&peer, &at) {
            Ok(done) if done.stuck == 0 && self.control.works()? => Some(done),
            Ok(_) => None,
            Err(error) if self.control.is_damaged_by(&error) => None,
            // A full disk, say: what is there is as good as it was.
            Err(error) => return Err(failure(error)),
        };
        let done = if let Some(done) = whole {
            done
        } else {
            remade = Some(self.control.remake()?);
            self.control.complete(&peer, &at)?
        };
        // Else the work of an open turn would pass for known.
        let counted = match at.first() {
            Some(at) => self.control.count_from(known.unwrap_or_default(), at)?,
            None => false,
        };
        if let Some(remade) = &remade {
            let seen = self.control.name_again(&[], &substrate(peers_sys::clock::now()))?;
            self.to_tell.push(told_remade(remade));
            self.to_tell.extend(told_salvage(&seen));
        }
        self.to_tell.extend(told_completed(&done));
        for text in &self.to_tell {
            tracing::warn!(text, "our own repository was mended");
        }
        // The caches are about what was there.
        self.history = None;
        self.clean_at = None;
        Ok(remade.is_some() || counted || done.restored > 0)
    }

    /// Where HEAD was when the open turn began.
    pub(super) fn started_at(&self) -> Option<CommitId> {
        let mark = self.turn.as_ref()?;
        let branch = mark.branch.as_ref()?;
        match mark.refs.get(branch)? {
            RefValue::Direct(hash) => CommitId::new(hash.as_str()).ok(),
            RefValue::Symbolic(_) => None,
        }
    }
}

/// What is said of a directory that was made anew.
fn told_remade(remade: &Remade) -> String {
    let aside = remade.aside.as_ref().map_or_else(
        || "was gone".to_owned(),
        |aside| format!("could not be used and was moved to {}", term::inline(&aside.to_string_lossy())),
    );
    format!(
        "our own copy of the repository {aside}: it was made anew, with {} objects and {} salvages of the old one",
        remade.objects, remade.salvage
    )
}

fn told_completed(done: &Completed) -> Vec<String> {
    let objects = |n: usize| if n == 1 { "1 object".to_owned() } else { format!("{n} objects") };
    let mut told = Vec::new();
    if done.restored > 0 {
        told.push(format!(
            "missing or damaged in our own copy of the repository: {}, taken from it again",
            objects(done.restored)
        ));
    }
    if done.lost > 0 {
        told.push(format!(
            "lost from our own copy of the repository: {}, which it does not have either",
            objects(done.lost)
        ));
    }
    told
}

/// What is said of salvages whose names were gone.
fn told_salvage(seen: &SalvageSeen) -> Vec<String> {
    let mut told = Vec::new();
    if !seen.again.is_empty() {
        told.push(format!(
            "the names of kept copies were gone and are there again: salvage {}",
            quoted(&seen.again)
        ));
    }
    if !seen.lost.is_empty() {
        told.push(format!("kept copies are lost, names and content: salvage {}", quoted(&seen.lost)));
    }
    told
}

/// Opens our own repository for a start, whatever became of it: what it lost is taken from the repository
/// again, and what the journal says was kept has its name again. Says what was wrong.
///
/// # Errors
/// What [`ControlDir::open_or_remake`] says.
pub fn open_control(
    path: &std::path::Path,
    git: Git,
    peer: &PeerRepo,
    recorded: &[(String, CommitId)],
) -> Result<(ControlDir, Vec<String>), GitError> {
    let (mut control, remade) = ControlDir::open_or_remake(path, git)?;
    let mut told: Vec<String> = remade.iter().map(told_remade).collect();
    if !control.holds_head()? {
        match control.complete(peer, &[]) {
            Ok(done) => told.extend(told_completed(&done)),
            Err(error) => {
                told.push(format!("our own copy of the repository is not whole: {}", chain(&error)));
            }
        }
    }
    match control.name_again(recorded, &substrate(peers_sys::clock::now())) {
        Ok(seen) => told.extend(told_salvage(&seen)),
        Err(error) => told.push(format!("kept copies could not be looked at: {}", chain(&error))),
    }
    Ok((control, told))
}
