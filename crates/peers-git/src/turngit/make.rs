//! Making the git directory of a turn.

use std::path::PathBuf;

use git2::{Odb, Oid};
use peers_model::CommitId;
use peers_sys::dir::SafeDir;

use super::layout::CONFIG;
use super::mounts::{self, TurnMount};
use super::shown::ShownRefs;
use super::state::TurnGit;
use super::{config, hooks, index, nested};
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::error::GitError;
use crate::facts::Identity;
use crate::files::{self, Small};
use crate::ids;
use crate::import::raw_parents;
use crate::objects;
use crate::refs;
use crate::repo::{PeerRepo, peer_shallow};
use crate::worktree::SyntheticGit;

/// A file of the operator's that a turn gets.
const FILE_CAP: u64 = 1 << 20;

/// What a turn begins with.
#[derive(Debug, Clone, Copy)]
pub struct TurnSpec<'a> {
    /// The full name of the run's branch; `None` for a detached `HEAD`.
    pub branch: Option<&'a str>,
    /// The last known commit of it, imported.
    pub tip: &'a CommitId,
    /// Who commits in the turn.
    pub identity: &'a Identity,
    /// User and group that own the files of the work tree as seen inside; `None` for those outside.
    pub owner: Option<(u32, u32)>,
    /// Whether the operator's hooks around a commit run in turns.
    pub commit_hooks: bool,
    /// Files of the operator's configuration besides that of the checkout, see
    /// [`super::operator_config_files`].
    pub config_files: &'a [PathBuf],
}

/// The git directory of a turn, and what is to be mounted for it.
#[derive(Debug)]
pub struct MadeTurn {
    /// The directory. Holds nothing open: it is found again by [`TurnGit::find`].
    pub git: TurnGit,
    /// In the order in which they are to be made. Files and directories to mount over are there, but for
    /// those below `/run/peers` and, in a linked worktree, the git directories of submodules.
    pub mounts: Vec<TurnMount>,
}

impl TurnGit {
    /// Makes one in `scratch`, which must be private, on a disk, and writable by nothing in a sandbox.
    ///
    /// File stamps are those of the last look at the work tree, see [`ControlDir::tree_state`].
    ///
    /// # Errors
    /// [`GitError::Exists`] when the one of an earlier turn was not harvested, [`GitError::NotFound`] for a tip
    /// that was not imported, [`GitError::Repo`] for a checkout that is unsafe to read or whose index cannot
    /// be read, [`GitError::Io`], [`GitError::DiskFull`].
    pub fn make(
        scratch: &SafeDir,
        control: &ControlDir,
        checkout: &PeerRepo,
        spec: &TurnSpec<'_>,
    ) -> Result<MadeTurn, GitError> {
        if Self::find(scratch)?.is_some() {
            return Err(GitError::Exists { what: "the git directory of an earlier turn".to_owned() });
        }
        let branch = spec.branch.map(refs::branch_name).transpose()?;
        control.facts().commit_oid(spec.tip)?;
        checkout.check_writable()?;
        let mut turn = Self::begin(scratch, branch.clone(), spec.tip)?;
        let git = turn.git_dir();
        for dir in ["objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "info"] {
            files::ensure_dir(&git.join(dir))?;
        }
        let head = branch.as_ref().map_or_else(|| format!("{}\n", spec.tip), |name| format!("ref: {name}\n"));
        files::replace(&git.join("HEAD"), head.as_bytes())?;
        files::replace(&git.join("config"), CONFIG)?;
        let stores = mounts::stores(checkout)?;
        let alternates = git.join("objects/info/alternates");
        files::replace(&alternates, &mounts::alternates(stores.iter().map(|(outside, _)| outside))?)?;
        {
            let repo = PeerRepo::open(turn.dir())?;
            let odb = objects::odb(&repo.repo)?;
            // The edge of the checkout's history, and of what came from us.
            let mut shallow = peer_shallow(checkout)?.unwrap_or_default();
            shallow.extend(bring_tip(control, &odb, spec.tip)?.iter().map(|oid| format!("{oid}\n")));
            let shown = ShownRefs::of(checkout, &odb, (branch.as_deref(), spec.tip))?;
            turn.write_history(shown, shallow)?;
        }
        let (config, hooks) = config::for_turn(checkout, spec.config_files, spec.identity)?;
        files::replace(&git.join("config"), config.as_bytes())?;
        turn.write_info(control, checkout)?;
        if spec.commit_hooks {
            hooks::write(&turn, checkout, hooks)?;
        }
        turn.state.nested = nested::look(control, &turn, checkout.work_dir())?;
        let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        index::write(&git.join("index"), control, checkout, spec.tip, spec.owner.unwrap_or(us))?;
        let mounts = mounts::list(&mut turn, checkout, &stores)?;
        files::replace(&alternates, &mounts::alternates(stores.iter().map(|(_, inside)| inside))?)?;
        turn.save()?;
        Ok(MadeTurn { git: turn, mounts })
    }

    fn write_history(&mut self, shown: ShownRefs, shallow: String) -> Result<(), GitError> {
        let git = self.git_dir();
        files::replace(&git.join("packed-refs"), shown.packed().as_bytes())?;
        for (name, target) in &shown.symbolic {
            let path = git.join(name);
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(|source| GitError::io(dir, source))?;
            }
            files::replace(&path, format!("ref: {target}\n").as_bytes())?;
        }
        if !shallow.is_empty() {
            files::replace(&git.join("shallow"), shallow.as_bytes())?;
        }
        (self.state.refs, self.state.shallow) = (shown.direct, shallow);
        Ok(())
    }

    /// What is ignored, and what a sparse checkout holds.
    fn write_info(&self, control: &ControlDir, checkout: &PeerRepo) -> Result<(), GitError> {
        // The operator's files may be links.
        let read = |path: PathBuf| match files::read_small(&path.canonicalize().unwrap_or(path), FILE_CAP) {
            Ok(Small::Bytes(bytes)) => bytes,
            _ => Vec::new(),
        };
        let mut exclude = b"/.peers/\n".to_vec();
        let global = control.excludes.clone();
        for file in global.into_iter().chain([checkout.common_dir().join("info/exclude")]) {
            exclude.extend(read(file));
            exclude.push(b'\n');
        }
        let info = self.git_dir().join("info");
        files::replace(&info.join("exclude"), &exclude)?;
        let sparse = read(checkout.git_dir().join("info/sparse-checkout"));
        if sparse.is_empty() {
            return Ok(());
        }
        files::replace(&info.join("sparse-checkout"), &sparse)
    }
}

/// Copies what the tip needs and the checkout lacks: it is in our own copy alone. Returns the commits that
/// came and whose parents are nowhere.
fn bring_tip(control: &ControlDir, turn: &Odb<'_>, tip: &CommitId) -> Result<Vec<Oid>, GitError> {
    let oid = ids::commit_oid(tip)?;
    if copy::has(turn, oid) {
        return Ok(Vec::new());
    }
    let ours = objects::odb(&control.repo)?;
    let (mut edge, mut boundary) = (Vec::new(), Vec::new());
    for commit in SyntheticGit::over_control(control)?.shallow {
        let commit = ids::commit_oid(&commit)?;
        let absent: Vec<Oid> =
            raw_parents(&ours, commit)?.into_iter().filter(|parent| !copy::has(turn, *parent)).collect();
        if !absent.is_empty() {
            edge.push(commit);
            boundary.extend(absent);
        }
    }
    let copied = copy::copy_closure((&ours, turn), &[oid], &boundary, Limits::OURS, Shape::Loose)?;
    if !matches!(copied, Copied::Done(_)) {
        let (what, detail) = (format!("commit {}", tip.short()), "too large or not well formed".to_owned());
        return Err(GitError::Corrupt { what, detail });
    }
    edge.retain(|commit| turn.exists(*commit));
    Ok(edge)
}
