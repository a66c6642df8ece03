//! The git directory that agents have for one turn, where a wall mounts it over the one of the checkout.
//!
//! What a turn committed is published in the checkout before anything is asked of it: from there on it stands as
//! where a turn works in the checkout itself.

use peers_git::{
    Accepted, HarvestSpec, Identity, NestedGit, TurnFailure, TurnGit, TurnSpec, operator_config_files,
};
use peers_model::{PeerName, TickNo};
use peers_sandbox::Mount;
use peers_sys::SafeDir;
use peers_sys::term;

use super::mend::quoted;
use super::{GitRepo, substrate};
use crate::env::peer_email;
use crate::ports::RepoFailure;
use crate::procs::TurnMounts;

/// Where the git directories of turns are made.
#[derive(Debug)]
pub struct Turns {
    /// A private directory that outlives a crash.
    pub dir: SafeDir,
    /// One is made for each turn. Otherwise only what was left is taken in.
    pub make: bool,
    /// Nobody works outside of the wall, as with the drivers `hooks` and `sessions`.
    pub all_inside: bool,
    /// Where it is said what is mounted.
    pub mounts: TurnMounts,
}

impl GitRepo {
    /// Makes the one of a turn of this peer.
    pub(super) fn make_turn_git(&mut self, peer: &PeerName) -> Result<(), RepoFailure> {
        let Some(turns) = self.turns.as_ref().filter(|turns| turns.make) else { return Ok(()) };
        let checkout = self.open()?;
        let head = checkout.facts().head()?;
        let identity = Identity { name: peer.to_string(), email: peer_email(peer) };
        let config_files = operator_config_files();
        let spec = TurnSpec {
            branch: head.branch.as_deref(),
            tip: &head.commit,
            identity: &identity,
            owner: None,
            commit_hooks: false,
            config_files: &config_files,
        };
        let made = TurnGit::make(&turns.dir, &self.control, &checkout, &spec)?;
        let mounts = made.mounts.into_iter().map(|mount| Mount {
            outside: mount.outside,
            inside: mount.inside,
            writable: mount.writable,
        });
        turns.mounts.replace(mounts.collect());
        Ok(())
    }

    /// Takes in what a turn left in its git directory, if there is one. Says what is not as usual, for people.
    pub(super) fn take_turn_git(&mut self, tick: TickNo) -> Result<Vec<String>, RepoFailure> {
        let Some(turns) = &self.turns else { return Ok(Vec::new()) };
        turns.mounts.take();
        let found = TurnGit::find(&turns.dir)?.is_some();
        self.own_git = found && turns.all_inside;
        if !found {
            return Ok(Vec::new());
        }
        self.with_control(|repo| repo.publish_turn(tick))
    }

    fn publish_turn(&mut self, tick: TickNo) -> Result<Vec<String>, RepoFailure> {
        let Some(turns) = &self.turns else { return Ok(Vec::new()) };
        let Some(git) = TurnGit::find(&turns.dir)? else { return Ok(Vec::new()) };
        let checkout = self.open()?;
        let who = substrate(peers_sys::clock::now());
        let label = format!("tick-{:05}", tick.0);
        let base = self.base.clone();
        let spec = HarvestSpec { base: base.as_ref(), label: &label, author: &who };
        let found = git.harvest(&mut self.control, &checkout, &spec)?;
        let mut told = Vec::new();
        for kept in &found.kept {
            let at = kept.commit.short();
            let name = term::inline(&kept.name);
            told.push(match &kept.salvage {
                Some(salvage) => format!("this turn left `{name}` at {at}: kept as salvage `{salvage}`"),
                None => format!("this turn left `{name}` at {at}"),
            });
        }
        told.extend(found.nested.iter().map(|nested| nested_told("this turn", nested)));
        match found.outcome {
            Err(TurnFailure { why, aside }) => {
                let kept =
                    aside.map(|dir| format!("; it is kept as {}", term::inline(&dir.to_string_lossy())));
                told.push(format!(
                    "the git directory of this turn was not taken in: {why}{}",
                    kept.unwrap_or_default()
                ));
            }
            Ok(accepted) => {
                if let Some(mut mark) = self.turn.take() {
                    // What the checkout had meanwhile is nobody's.
                    mark.known = accepted.before;
                    self.keep_mark(mark)?;
                }
                told.extend(self.publish(accepted, &checkout, &spec)?);
            }
        }
        Ok(told)
    }

    /// Whether children work behind a wall that mounts: none of them reaches the git directory of the checkout.
    pub(super) fn is_walled(&self) -> bool {
        self.turns.as_ref().is_some_and(|turns| turns.make && turns.all_inside)
    }

    fn publish(
        &self,
        accepted: Accepted,
        checkout: &peers_git::PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<Vec<String>, RepoFailure> {
        let mut told = Vec::new();
        let published = accepted.publish(&self.control, checkout, spec)?;
        if let Some(moved) = published.moved {
            told.push(format!(
                "the branch was moved by somebody else during this turn: its work is kept as salvage `{}`",
                moved.kept
            ));
        }
        if !published.staged.is_empty() {
            told.push(format!(
                "this turn committed {}, which you have staged otherwise: that stays staged",
                quoted(&published.staged)
            ));
        }
        if !published.lfs_refused.is_empty() {
            told.push(format!(
                "files of git-lfs are not what their names say, and were not taken: {}",
                quoted(&published.lfs_refused)
            ));
        }
        Ok(told)
    }
}

/// What is said of a git directory deeper in the work tree.
pub(super) fn nested_told(who: &str, nested: &NestedGit) -> String {
    let NestedGit { path, aside, restored } = nested;
    let path = term::inline(path);
    if *restored {
        format!("{who} changed `{path}`, the git directory of a repository in this one: it was put back")
    } else {
        format!(
            "{who} made a git directory `{path}` in the work tree: it was moved to `.git/{aside}`, the files beside it stay"
        )
    }
}
