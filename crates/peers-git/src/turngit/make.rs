//! Making the git directory of a turn.

use std::path::PathBuf;

use git2::Oid;
use peers_model::CommitId;
use peers_sys::dir::SafeDir;

use super::mounts::{self, TurnMount};
use super::shown::ShownRefs;
use super::state::TurnGit;
use super::{config, hooks, index, nested};
use crate::bare::{self, Bare};
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::error::GitError;
use crate::facts::Identity;
use crate::files;
use crate::ids;
use crate::import::raw_parents;
use crate::objects;
use crate::refs;
use crate::repo::PeerRepo;

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
    /// File stamps, and the git directories deeper in the work tree, are those of the last look at it, see
    /// [`ControlDir::tree_state`].
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
        let head = branch.as_ref().map_or_else(|| spec.tip.to_string(), |name| format!("ref: {name}"));
        let (config, hooks) = config::for_turn(checkout, spec.config_files, spec.identity)?;
        let stores = mounts::stores(checkout)?;
        let odb = objects::odb(&checkout.repo)?;
        let mut made = Bare {
            config: config.as_bytes(),
            head: &head,
            refs: String::new(),
            stores: bare::alternates(stores.iter().map(|(outside, _)| outside))?,
            shallow: &[],
        };
        // The edge of the checkout's history, and of what comes from us.
        let mut shallow = bare::shallow_of(checkout.common_dir())?;
        if !copy::has(&odb, ids::commit_oid(spec.tip)?) {
            made.write(&git)?;
            shallow.extend(bring_tip(control, &PeerRepo::open(turn.dir())?, spec.tip)?);
        }
        let shown = ShownRefs::of(checkout, &odb, (branch.as_deref(), spec.tip))?;
        made.refs = bare::packed_refs(&shown.direct);
        made.stores = bare::alternates(stores.iter().map(|(_, inside)| inside))?;
        made.shallow = &shallow;
        made.write(&git)?;
        for (name, target) in &shown.symbolic {
            let path = git.join(name);
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(|source| GitError::io(dir, source))?;
            }
            files::overwrite(&path, format!("ref: {target}\n").as_bytes())?;
        }
        (turn.state.refs, turn.state.shallow) = (shown.direct, bare::shallow_text(&shallow));
        turn.write_info(control, checkout)?;
        if spec.commit_hooks {
            hooks::write(&turn, checkout, hooks)?;
        }
        turn.state.nested =
            nested::look(control.nested_seen(checkout.work_dir(), spec.tip)?, checkout.work_dir())?;
        let us = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        index::write(&git.join("index"), control, checkout, spec.tip, spec.owner.unwrap_or(us))?;
        let mounts = mounts::list(&mut turn, checkout, &stores)?;
        turn.save()?;
        Ok(MadeTurn { git: turn, mounts })
    }

    /// What is ignored, and what a sparse checkout holds.
    fn write_info(&self, control: &ControlDir, checkout: &PeerRepo) -> Result<(), GitError> {
        // The operator's files may be links.
        let read = |path: PathBuf| {
            let found = files::small(&path.canonicalize().unwrap_or(path), FILE_CAP);
            found.ok().flatten().unwrap_or_default()
        };
        let mut exclude = b"/.peers/\n".to_vec();
        let global = control.excludes.clone();
        for file in global.into_iter().chain([checkout.common_dir().join("info/exclude")]) {
            exclude.extend(read(file));
            exclude.push(b'\n');
        }
        let info = self.git_dir().join("info");
        files::overwrite(&info.join("exclude"), &exclude)?;
        let sparse = read(checkout.git_dir().join("info/sparse-checkout"));
        if sparse.is_empty() {
            return Ok(());
        }
        files::overwrite(&info.join("sparse-checkout"), &sparse)
    }
}

/// Copies what the tip needs and the checkout lacks: it is in our own copy alone. Returns the commits that
/// came and whose parents are nowhere.
fn bring_tip(control: &ControlDir, turn: &PeerRepo, tip: &CommitId) -> Result<Vec<CommitId>, GitError> {
    let (oid, turn) = (ids::commit_oid(tip)?, &objects::odb(&turn.repo)?);
    let ours = objects::odb(&control.repo)?;
    let (mut edge, mut boundary) = (Vec::new(), Vec::new());
    for commit in bare::shallow_of(control.path())? {
        let parents = raw_parents(&ours, ids::commit_oid(&commit)?)?;
        let absent: Vec<Oid> = parents.into_iter().filter(|parent| !copy::has(turn, *parent)).collect();
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
    edge.retain(|commit| ids::commit_oid(commit).is_ok_and(|oid| turn.exists(oid)));
    Ok(edge)
}
