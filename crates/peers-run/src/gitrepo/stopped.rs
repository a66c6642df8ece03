//! What stops a run: states of the repository that nobody but a person puts right, and the way on from them.
//!
//! Nothing is repaired here. The work of the turn is copied first, and everything that was known before it is in
//! the control git dir.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use peers_git::{BranchState, GitError, PeerRepo, RefValue};
use peers_model::{CommitId, TickNo};
use peers_place::made_again;
use peers_sys::dir::SafeDir;
use peers_sys::error::chain;
use peers_sys::term::{self, quoted as word};

use super::mend::{aside, quoted};
use super::turn::TurnMark;
use super::{GitRepo, failure, substrate};
use crate::ports::RepoFailure;

/// Characters of a long name.
const NAME: usize = 80;
/// Names tried for a branch that makes room.
const MOVED: u32 = 1000;

/// A failure to read the git directory of the agents: whatever it is, the repository is at fault.
pub(super) fn unsound(error: GitError) -> RepoFailure {
    match failure(error) {
        RepoFailure::Git(what) => RepoFailure::Tampered { what, way: None },
        other => other,
    }
}

/// A failure to import. What is damaged is in the repository: ours is made whole first.
pub(super) fn unimportable(error: GitError) -> RepoFailure {
    if matches!(error, GitError::Corrupt { .. }) { unsound(error) } else { failure(error) }
}

impl GitRepo {
    /// Opens the repository, and refuses one whose references cannot be listed or whose objects, where agents reach
    /// them, would be read for ever.
    pub(super) fn open_sound(&self) -> Result<PeerRepo, RepoFailure> {
        let peer = self.open()?;
        peer.list_refs("refs/", 0).map_err(unsound)?;
        if !self.own_git {
            peer.check_content().map_err(|error| failure(error.into()))?;
        }
        Ok(peer)
    }

    /// Refuses a branch of the turn that is another name for something, names nothing, or cannot be read.
    pub(super) fn check_branch(
        &self,
        peer: &PeerRepo,
        mark: &TurnMark,
        from: &CommitId,
    ) -> Result<(), RepoFailure> {
        let Some(branch) = &mark.branch else { return Ok(()) };
        let is = match peer.branch_state(branch)? {
            BranchState::Absent | BranchState::Commit(_) => return Ok(()),
            BranchState::Symbolic(target, _) => format!("is another name for `{}`", term::name(&target)),
            BranchState::Dangling(hash) => format!("names {hash}, which is not a commit here"),
            BranchState::Unreadable => "cannot be read".to_owned(),
        };
        let what = format!("`{}` {is}", term::name(branch));
        let way = self.back_to_start(&peer.common_dir().join(branch), mark, from);
        let way = format!("`{way}` sets it to where the turn began");
        Err(RepoFailure::Tampered { what, way: Some(way) })
    }

    /// Refuses a repository in which something is missing that a commit needs.
    pub(super) fn check_tip(
        &self,
        peer: &PeerRepo,
        tip: &CommitId,
        turn: Option<(&TurnMark, &CommitId)>,
    ) -> Result<(), RepoFailure> {
        let Some(missing) = self.control.missing_object(peer, tip).map_err(unsound)? else { return Ok(()) };
        let what = format!("{} is gone or damaged, and commit {} needs it", missing.what, tip.short());
        let way = turn.filter(|_| !missing.known).map(|(mark, from)| {
            let way = self.back_to_start(&missing.file, mark, from);
            format!("there is no copy of it: `{way}` discards the commits of the turn")
        });
        Err(RepoFailure::Tampered { what, way })
    }

    /// Refuses what lies deeper in the work tree than any tree that can be read: whoever commits all that lies
    /// there would answer for it.
    pub(super) fn check_depth(&self, too_deep: &[Vec<u8>]) -> Result<(), RepoFailure> {
        let Some(path) = too_deep.first() else { return Ok(()) };
        let shown = term::line(&term::name(&String::from_utf8_lossy(path)), NAME);
        let what = format!("`{shown}` goes deeper than can be read");
        let dir = self.work_dir.join(OsStr::from_bytes(path));
        let dir = term::quoted_bytes(dir.as_os_str().as_bytes());
        Err(RepoFailure::Tampered {
            what,
            way: Some(format!("move it elsewhere, or remove it: `rm -rf {dir}`")),
        })
    }

    /// A HEAD that cannot be set: it is no line that git understands.
    pub(super) fn garbled_head(
        peer: &PeerRepo,
        (mark, from): (&TurnMark, &CommitId),
        error: GitError,
    ) -> RepoFailure {
        let what = match unsound(error) {
            RepoFailure::Tampered { what, way: None } => what,
            other => return other,
        };
        let line = mark.branch.as_ref().map_or_else(|| from.to_string(), |branch| format!("ref: {branch}"));
        let file = word(&peer.git_dir().join("HEAD").to_string_lossy());
        let way = format!("`printf '%s\\n' {} > {file}` makes it name what the turn was on", word(&line));
        RepoFailure::Tampered { what, way: Some(way) }
    }

    /// Refuses to go on where another reference leaves no room for a branch (full name).
    fn check_room(&self, peer: &PeerRepo, branch: &str) -> Result<(), RepoFailure> {
        let Some(other) = peer.in_the_way(branch)? else { return Ok(()) };
        let what = format!("`{}` leaves no room for `{}`", term::name(&other), term::name(branch));
        let other = other.strip_prefix("refs/heads/").unwrap_or(&other);
        let free = |name: &String| {
            matches!(peer.branch_state(&format!("refs/heads/{name}")), Ok(BranchState::Absent))
        };
        let named = |n: u32| format!("{}-{n}", other.replace('/', "-"));
        let new = (1..=MOVED).map(named).find(free).unwrap_or_else(|| named(MOVED));
        let (dir, new) = (word(&self.work_dir.to_string_lossy()), word(&new));
        let way = format!("`git -C {dir} branch -m {} {new}` makes room", word(other));
        Err(RepoFailure::Tampered { what, way: Some(way) })
    }

    /// Sets a branch (full name) to a commit of ours, whatever it names now.
    pub(super) fn set_branch(&self, peer: &PeerRepo, branch: &str, to: &CommitId) -> Result<(), RepoFailure> {
        let who = substrate(peers_sys::clock::now());
        self.check_room(peer, branch)?;
        // As it stands: what it names may be what cannot be read.
        let listed = peer.list_refs(branch, usize::MAX)?.unwrap_or_default();
        let tip = match listed.get(branch) {
            Some(RefValue::Direct(hash)) => CommitId::new(hash.as_str()).ok(),
            Some(RefValue::Symbolic(_)) | None => None,
        };
        match tip {
            Some(tip) if tip == *to => Ok(()),
            Some(tip) => peer.update_branch(branch, Some(&tip), to, &who, "peers: restore"),
            None => peer.create_branch(branch, to, &who),
        }
        .map_err(failure)
    }

    /// The failure with a way on, where it has none yet.
    pub(super) fn with_way_on(&self, failure: RepoFailure) -> RepoFailure {
        let RepoFailure::Tampered { what, way: None } = failure else { return failure };
        let copy = self.control.path();
        let gone = SafeDir::open_shared(&self.common_dir).is_err()
            || self.turn.as_ref().is_some_and(|mark| mark.guard.is_replaced());
        let own = self.common_dir == self.work_dir.join(".git");
        let way = match self.control.last_head().filter(|_| gone && own) {
            Some(head) => {
                let branch = self.turn.as_ref().and_then(|mark| mark.branch.as_deref());
                format!(
                    "put .git back, or make it again from the trusted store, files stay as they are: `{}`",
                    made_again(&self.work_dir, copy, branch, &head)
                )
            }
            None => format!("undo that; `{}` brings back every commit that peers knows", self.copied_back()),
        };
        RepoFailure::Tampered { what, way: Some(way) }
    }

    /// Copies what a turn left before the run stops: the work tree, and the tips that can be imported. Adds to the
    /// failure where that is.
    pub(super) fn keep_before_stop(
        &mut self,
        (tick, from): (TickNo, &CommitId),
        failure: RepoFailure,
    ) -> RepoFailure {
        let RepoFailure::Tampered { what, way } = failure else { return failure };
        let who = substrate(peers_sys::clock::now());
        let name = aside(tick, "stopped");
        let mut kept: Vec<String> = Vec::new();
        // Asked again, the work tree is what a person made of it meanwhile.
        let earlier = self.control.list_salvage().unwrap_or_default();
        if earlier.iter().any(|copy| copy.name == name) {
            kept.push(name);
        } else {
            match self.control.salvage(&name, from, &self.work_dir, &who) {
                Ok(copy) => kept.push(copy.name),
                Err(error) => tracing::warn!(error = %chain(&error), "the work tree was not copied"),
            }
        }
        if let Ok(peer) = self.open() {
            let mut tips = peer.reflog("HEAD", 1);
            tips.extend(peer.facts().head().map(|head| head.commit));
            if let Some(branch) = self.turn.as_ref().and_then(|mark| mark.branch.as_deref()) {
                tips.extend(peer.reflog(branch, 1));
                if let Ok(BranchState::Symbolic(_, Some(commit))) = peer.branch_state(branch) {
                    tips.push(commit);
                }
            }
            tips.retain(|tip| tip != from);
            tips.sort();
            tips.dedup();
            for tip in self.control.adopt(&peer, &tips).unwrap_or_default() {
                kept.extend(self.keep(tick, "tip", &tip));
            }
        }
        let kept = if kept.is_empty() { "nothing".to_owned() } else { format!("salvage {}", quoted(&kept)) };
        RepoFailure::Tampered { what: format!("{what}; kept of the turn: {kept}"), way }
    }

    /// The command that puts every object of ours into the repository, in place of those that are damaged. `tar`
    /// removes what lies at a name before it writes there: `cp` would write through a link, and wait at a FIFO.
    fn copied_back(&self) -> String {
        let (ours, theirs) = (self.control.objects_dir(), self.common_dir.join("objects"));
        let [ours, theirs] = [&ours, &theirs].map(|dir| word(&dir.to_string_lossy()));
        format!("tar -C {ours} -cf - . | tar -C {theirs} -xf -")
    }

    /// The command that removes a file of the git directory and sets what the turn was on to where it began.
    fn back_to_start(&self, file: &Path, mark: &TurnMark, from: &CommitId) -> String {
        let (file, dir) = (word(&file.to_string_lossy()), word(&self.work_dir.to_string_lossy()));
        let name = word(mark.branch.as_deref().unwrap_or("HEAD"));
        format!("rm -rf {file} && {} && git -C {dir} update-ref --no-deref {name} {from}", self.copied_back())
    }
}
