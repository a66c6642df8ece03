//! Taking a turn's commits out of its git directory.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use git2::Oid;
use peers_model::CommitId;

use super::layout;
use super::mounts::{Stores, odb_of};
use super::nested::{self, NestedGit};
use super::others::{self, KeptRef};
use super::shown::ShownRefs;
use super::state::TurnGit;
use crate::control::ControlDir;
use crate::copy;
use crate::diff;
use crate::error::{CliError, GitError, RepoError, clean};
use crate::files::{self, Small};
use crate::ids;
use crate::import::raw_parents;
use crate::known::Generation;
use crate::objects::{self, MODE_GITLINK};
use crate::repo::PeerRepo;
use crate::write::Author;

/// Commits of the checkout that are walked to see which were there before the turn.
const MAX_WALK: usize = 200_000;
/// A file of ours is read up to here.
const OWN_CAP: u64 = 64 << 20;

/// How a turn is harvested.
#[derive(Debug, Clone, Copy)]
pub struct HarvestSpec<'a> {
    /// The first commit of the run, for the import of the checkout; see [`ControlDir::import`].
    pub base: Option<&'a CommitId>,
    /// What is kept has this before its name, such as `tick-00012`.
    pub label: &'a str,
    /// Who keeps it, and when.
    pub author: &'a Author,
}

/// What a turn left.
#[derive(Debug)]
#[must_use]
pub struct Harvest {
    /// Whether its work can be taken.
    pub outcome: TurnOutcome,
    /// What it committed elsewhere than on the run's branch. Of a turn whose git directory could not be opened
    /// nothing is known here.
    pub kept: Vec<KeptRef>,
    /// Git directories that it left deeper in the work tree.
    pub nested: Vec<NestedGit>,
}

/// Whether the work of a turn can be taken.
#[derive(Debug)]
pub enum TurnOutcome {
    /// It can. It is in the control directory, and not published.
    Accepted(Accepted),
    /// It cannot: the run's branch stays where it was.
    Failed {
        /// Why, cleaned for people.
        why: String,
        /// Where the git directory of the turn is now. `None` when it is too large to be kept.
        aside: Option<PathBuf>,
    },
}

/// The work of a turn, in the control directory. Published by [`Accepted::publish`], or thrown away by
/// [`Accepted::discard`]; until then [`TurnGit::find`] finds it.
#[derive(Debug)]
pub struct Accepted {
    pub(super) git: TurnGit,
    /// Where the run's branch is after the turn. That it was before if nothing was committed.
    pub tip: CommitId,
    /// What [`ControlDir::new_commits`] is to be asked with to tell the turn's commits from all others.
    pub before: Generation,
    /// The commits that appeared with it, in no particular order. Fewer when it was harvested before.
    pub new: Vec<CommitId>,
}

impl Accepted {
    /// Throws the turn away without publishing it. Its commits stay in the control directory.
    ///
    /// # Errors
    /// As [`TurnGit::discard`].
    pub fn discard(self) -> Result<(), GitError> {
        self.git.discard()
    }
}

/// Why a harvest ends early.
pub(super) enum Stop {
    /// What the turn did cannot be taken.
    Refused(String),
    Error(GitError),
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        Self::Error(error)
    }
}

impl From<RepoError> for Stop {
    fn from(error: RepoError) -> Self {
        Self::Error(error.into())
    }
}

/// What was taken.
type Taken = (CommitId, Generation, Vec<CommitId>);

impl TurnGit {
    /// Brings the commits of the turn into the control directory. Only to be called when all processes of the
    /// turn have ended. Commits made meanwhile in the checkout come first, as nobody's. May be done again.
    ///
    /// # Errors
    /// What says nothing about the turn: [`GitError::DiskFull`], errors of the checkout and of our own files.
    /// Nothing is lost then; the turn is found again.
    pub fn harvest(
        mut self,
        control: &mut ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
    ) -> Result<Harvest, GitError> {
        let nested = nested::settle(control, &self, checkout, spec.label)?;
        let _seen = control.import(checkout, spec.base)?;
        let mut kept = Vec::new();
        let why = match self.take_in(control, checkout, spec, &mut kept) {
            Ok((tip, before, new)) => {
                let outcome = TurnOutcome::Accepted(Accepted { git: self, tip, before, new });
                return Ok(Harvest { outcome, kept, nested });
            }
            Err(Stop::Refused(why)) => why,
            // Our own copy may be what cannot be read or written.
            Err(Stop::Error(error)) if !self.is_about(&error) || !control.works()? => return Err(error),
            Err(Stop::Error(error)) => clean(&peers_sys::error::chain(&error), 500),
        };
        let aside = self.set_aside(spec.label)?;
        Ok(Harvest { outcome: TurnOutcome::Failed { why, aside }, kept, nested })
    }

    fn take_in(
        &mut self,
        control: &mut ControlDir,
        checkout: &PeerRepo,
        spec: &HarvestSpec<'_>,
        kept: &mut Vec<KeptRef>,
    ) -> Result<Taken, Stop> {
        let stores = Stores::of(checkout)?;
        let shallow = self.own_file("shallow")?;
        layout::put_right(self.dir(), &stores.seen_outside()?, shallow.as_deref())?;
        layout::weigh(&self.git_dir())?;
        let turn = PeerRepo::open(self.dir())?;
        turn.check_objects()?;
        let shown = ShownRefs::parse(&self.own_file("packed-refs")?.unwrap_or_default());
        let (branch, from) = (self.state.branch.clone(), self.state.tip.clone());
        let head = turn.facts().head();
        let seen = head.as_ref().ok();
        let on_branch = seen.is_some_and(|head| head.branch == branch);
        let taken = match seen.filter(|_| on_branch) {
            Some(head) => Some(self.import_tip(control, checkout, (&turn, &head.commit), &shown)?),
            None => None,
        };
        kept.extend(others::keep(control, &turn, (seen, branch.as_deref()), &shown, spec)?);
        let Some((tip, before, new)) = taken else {
            // What was committed on the branch before `HEAD` went elsewhere.
            let left = branch.as_deref().map(|name| turn.facts().reference(name)).transpose();
            if let (Ok(Some(Some(tip))), Some(name)) = (left, branch.as_deref()) {
                let salvage = others::keep_one(control, &turn, (name, &tip), spec)?;
                kept.extend(salvage.map(|salvage| KeptRef {
                    name: clean(name, 200),
                    commit: tip,
                    salvage: Some(salvage),
                }));
            }
            let found =
                head?.branch.map_or_else(|| "a commit".to_owned(), |name| format!("`{}`", clean(&name, 200)));
            let due = branch.map_or_else(|| "a detached commit".to_owned(), |name| format!("`{name}`"));
            return Err(Stop::Refused(format!("HEAD names {found} instead of {due}")));
        };
        if !control.facts().is_ancestor(&from, &tip)? {
            let salvage = others::keep_known(control, ("rewritten", &tip), spec)?;
            let name = branch.unwrap_or_else(|| "HEAD".to_owned());
            kept.push(KeptRef { name, commit: tip.clone(), salvage: Some(salvage) });
            return Err(Stop::Refused(format!(
                "history was rewritten: {} is not in that of {}",
                from.short(),
                tip.short()
            )));
        }
        self.check_work(control, &tip)?;
        Ok((tip, before, new))
    }

    /// Imports the run's branch. Of the commits that come with it those that the checkout had are not the turn's.
    fn import_tip(
        &mut self,
        control: &mut ControlDir,
        checkout: &PeerRepo,
        (turn, tip): (&PeerRepo, &CommitId),
        shown: &BTreeMap<String, String>,
    ) -> Result<Taken, GitError> {
        let unknown = control.unknown_of(turn, tip)?;
        let theirs = known_before(control, checkout, shown, &unknown)?;
        let (theirs, new): (Vec<Oid>, Vec<Oid>) = unknown.into_iter().partition(|oid| theirs.contains(oid));
        control.known.record(&theirs)?;
        let before = self.state.before.unwrap_or_else(|| control.generation());
        if self.state.before.is_none() {
            self.state.before = Some(before);
            self.save()?;
        }
        control.import_commit(turn, tip, &new)?;
        Ok((tip.clone(), before, new.into_iter().map(ids::commit_id).collect()))
    }

    /// Whether a checkout can have what was committed: sane names, and submodules at commits that are not in
    /// the turn's git directory alone.
    fn check_work(&self, control: &ControlDir, tip: &CommitId) -> Result<(), Stop> {
        let facts = control.facts();
        let (old, new) = (facts.tree_of(&self.state.tip)?, facts.tree_of(tip)?);
        control.check_checkout(&old, &new)?;
        let odb = objects::odb(&control.repo)?;
        let changes = diff::raw_changes(&odb, Some(ids::tree_oid(&old)?), Some(ids::tree_oid(&new)?))?;
        let link =
            |side: Option<(u32, Oid)>| side.filter(|(mode, _)| *mode == MODE_GITLINK).map(|(_, id)| id);
        let before: HashSet<Oid> = changes.iter().filter_map(|change| link(change.old)).collect();
        let modules = odb_of(&self.state.modules)?;
        for change in &changes {
            let Some(id) = link(change.new).filter(|id| !before.contains(id)) else { continue };
            if !modules.exists(id) {
                let path = crate::error::clean_bytes(&change.path);
                return Err(Stop::Refused(format!(
                    "submodule `{path}` is at {id}, which none of the submodules that were checked out has"
                )));
            }
        }
        Ok(())
    }

    fn own_file(&self, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let path = self.own(name);
        match files::read_small(&path, OWN_CAP).map_err(|source| GitError::io(&path, source))? {
            Small::Bytes(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// Whether an error says something about what the turn wrote.
    fn is_about(&self, error: &GitError) -> bool {
        let within = |path: &Path| path.starts_with(self.git_dir());
        match error {
            GitError::Io { path, .. } => within(path),
            GitError::Repo(error) => match error {
                RepoError::NotARepo { path }
                | RepoError::Bare { path }
                | RepoError::Unborn { path, .. }
                | RepoError::Redirected { path, .. }
                | RepoError::Corrupt { path, .. }
                | RepoError::UnsupportedExtension { path, .. }
                | RepoError::WrongOwner { path }
                | RepoError::Busy { path, .. }
                | RepoError::Unsafe { path, .. }
                | RepoError::Io { path, .. } => path.starts_with(self.dir()),
            },
            GitError::DiskFull { .. }
            | GitError::Moved { .. }
            | GitError::Exists { .. }
            | GitError::Cli(
                CliError::Missing
                | CliError::TooOld { .. }
                | CliError::Spawn { .. }
                | CliError::Unreadable { .. },
            ) => false,
            GitError::Corrupt { .. }
            | GitError::NotFound { .. }
            | GitError::InvalidName { .. }
            | GitError::TooLarge { .. }
            | GitError::Unsafe { .. }
            | GitError::Library { .. }
            | GitError::Cli(
                CliError::TimedOut { .. } | CliError::OutputTooLarge { .. } | CliError::Failed { .. },
            ) => true,
        }
    }
}

/// Which of these commits the references that the turn was shown lead to in the checkout. They may have come
/// with a merge and are nobody's. Nothing else of what those references name is brought in.
fn known_before(
    control: &ControlDir,
    checkout: &PeerRepo,
    shown: &BTreeMap<String, String>,
    unknown: &HashSet<Oid>,
) -> Result<HashSet<Oid>, GitError> {
    let (theirs, ours) = (objects::odb(&checkout.repo)?, objects::odb(&control.repo)?);
    let mut wanted: HashSet<Oid> = unknown.iter().copied().filter(|oid| copy::has(&theirs, *oid)).collect();
    let mut found = HashSet::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    let tips = shown.values().filter_map(|hash| checkout.peel(hash));
    let mut todo: Vec<Oid> = tips.map(|commit| ids::commit_oid(&commit)).collect::<Result<_, _>>()?;
    let mut seen = HashSet::new();
    while let Some(oid) = todo.pop() {
        if copy::has(&ours, oid) || !seen.insert(oid) {
            continue;
        }
        if wanted.remove(&oid) {
            found.insert(oid);
        }
        if wanted.is_empty() || seen.len() >= MAX_WALK {
            break;
        }
        // What is damaged there leads nowhere.
        todo.extend(raw_parents(&theirs, oid).unwrap_or_default());
    }
    Ok(found)
}
