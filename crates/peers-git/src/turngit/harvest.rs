//! Taking a turn's commits out of its git directory.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use git2::{Odb, Oid};
use peers_model::CommitId;

use super::layout;
use super::mounts::Stores;
use super::nested::{self, NestedGit};
use super::others::{self, HarvestSpec, KeptRef};
use super::shown::ShownRefs;
use super::state::TurnGit;
use crate::control::ControlDir;
use crate::copy;
use crate::diff;
use crate::error::{CliError, GitError, clean, clean_bytes};
use crate::files::{self, Small};
use crate::ids;
use crate::import::raw_parents;
use crate::known::Generation;
use crate::objects::{self, MODE_GITLINK};
use crate::repo::PeerRepo;

/// Commits of the checkout that are walked to see which were there before the turn.
const MAX_WALK: usize = 200_000;
/// A file of ours is read up to here.
const OWN_CAP: u64 = 64 << 20;

/// What a turn left.
#[derive(Debug)]
#[must_use]
pub struct Harvest {
    /// Its work, or why that cannot be taken: then the run's branch stays where it was.
    pub outcome: Result<Accepted, TurnFailure>,
    /// What it committed that is not on the run's branch now. Of a turn whose git directory could not be read
    /// this may not be all; it is still there.
    pub kept: Vec<KeptRef>,
    /// Git directories that it left deeper in the work tree.
    pub nested: Vec<NestedGit>,
}

/// Why the work of a turn cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    /// The reason, cleaned for people.
    pub why: String,
    /// Where the git directory of the turn is now. `None` when it is too large to be kept.
    pub aside: Option<PathBuf>,
}

/// The work of a turn, in the control directory. Until it is published or discarded [`TurnGit::find`] finds it.
#[derive(Debug)]
pub struct Accepted {
    pub(super) git: TurnGit,
    /// Where the run's branch is after the turn; where it was if nothing was committed.
    pub tip: CommitId,
    /// What [`ControlDir::new_commits`] is to be asked with to tell the turn's commits from all others.
    pub before: Generation,
    /// The commits that appeared with it, in no particular order. None of those that an earlier harvest brought.
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

/// What was taken, or why that cannot be.
type Taken = Result<(CommitId, Generation, Vec<CommitId>), String>;

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
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let label: String = spec.label.chars().take(60).map(plain).collect();
        let spec = &HarvestSpec { label: &label, ..*spec };
        let nested = nested::settle(control, &self, checkout, &label)?;
        let _seen = control.import(checkout, spec.base)?;
        checkout.check_objects()?;
        let stores = Stores::of(checkout)?.seen_outside()?;
        let (shallow, shown) = (self.own_file("shallow")?, self.own_file("packed-refs")?);
        let shown = ShownRefs::parse(&shown.unwrap_or_default());
        let mut kept = Vec::new();
        let ready = layout::put_right(self.dir(), &stores, shallow.as_deref());
        let taken = ready.and_then(|()| self.take_in(control, checkout, &shown, (spec, &mut kept)));
        let why = match taken {
            Ok(Ok((tip, before, new))) => {
                return Ok(Harvest { outcome: Ok(Accepted { git: self, tip, before, new }), kept, nested });
            }
            Ok(Err(why)) => why,
            // Our own copy may be what cannot be read or written.
            Err(error) if self.is_ours(&error) || !control.works()? => return Err(error),
            Err(error) => clean(&peers_sys::error::chain(&error), 500),
        };
        let aside = self.set_aside(&label)?;
        Ok(Harvest { outcome: Err(TurnFailure { why, aside }), kept, nested })
    }

    fn take_in(
        &mut self,
        control: &mut ControlDir,
        checkout: &PeerRepo,
        shown: &BTreeMap<String, String>,
        (spec, kept): (&HarvestSpec<'_>, &mut Vec<KeptRef>),
    ) -> Result<Taken, GitError> {
        layout::weigh(&self.git_dir())?;
        let turn = PeerRepo::open(self.dir())?;
        turn.check_objects()?;
        let (branch, from) = (self.state.branch.clone(), self.state.tip.clone());
        let head = turn.facts().head();
        let tip = match (&branch, &head) {
            (Some(branch), _) => turn.facts().reference(branch)?,
            (None, Ok(head)) => head.branch.is_none().then(|| head.commit.clone()),
            (None, Err(_)) => None,
        };
        let taken = match &tip {
            Some(tip) => Some(self.import_tip(control, checkout, (&turn, tip), shown)?),
            None => None,
        };
        kept.extend(others::keep(control, &turn, branch.as_deref(), shown, spec)?);
        let head = head?;
        let Some((tip, (before, new))) = tip.zip(taken) else {
            return Ok(Err("the run's branch is gone".to_owned()));
        };
        let shown_head = |branch: Option<&String>| {
            branch.map_or_else(|| "a commit".to_owned(), |name| format!("`{}`", clean(name, 200)))
        };
        let why = if head.branch != branch {
            let (found, due) = (shown_head(head.branch.as_ref()), shown_head(branch.as_ref()));
            Some(format!("HEAD names {found} instead of {due}"))
        } else if control.facts().is_ancestor(&from, &tip)? {
            self.odd_submodule(control, &tip)?
        } else {
            Some(format!("history was rewritten: that of {} lacks {}", tip.short(), from.short()))
        };
        let Some(why) = why else { return Ok(Ok((tip, before, new))) };
        if tip != from {
            let name = branch.unwrap_or_else(|| "HEAD".to_owned());
            let salvage = Some(others::keep_known(control, (&name, &tip), spec)?);
            kept.push(KeptRef { name, commit: tip, salvage });
        }
        Ok(Err(why))
    }

    /// Imports the run's branch. Of the commits that come with it those that the checkout had are not the turn's.
    fn import_tip(
        &mut self,
        control: &mut ControlDir,
        checkout: &PeerRepo,
        (turn, tip): (&PeerRepo, &CommitId),
        shown: &BTreeMap<String, String>,
    ) -> Result<(Generation, Vec<CommitId>), GitError> {
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
        Ok((before, new.into_iter().map(ids::commit_id).collect()))
    }

    /// A submodule at a commit that was in none of those that were checked out. Where the turn alone has it, it goes
    /// with the turn.
    fn odd_submodule(&self, control: &ControlDir, tip: &CommitId) -> Result<Option<String>, GitError> {
        let facts = control.facts();
        let (old, new) = (facts.tree_of(&self.state.tip)?, facts.tree_of(tip)?);
        control.check_checkout(&old, &new)?;
        let odb = objects::odb(&control.repo)?;
        let changes = diff::raw_changes(&odb, Some(ids::tree_oid(&old)?), Some(ids::tree_oid(&new)?))?;
        let link =
            |side: Option<(u32, Oid)>| side.filter(|(mode, _)| *mode == MODE_GITLINK).map(|(_, id)| id);
        let before: HashSet<Oid> = changes.iter().filter_map(|change| link(change.old)).collect();
        let fail = |source| GitError::library("open the objects of submodules", source);
        let modules = Odb::new().map_err(fail)?;
        for objects in
            self.state.modules.iter().filter_map(|dir| dir.join("objects").to_str().map(str::to_owned))
        {
            modules.add_disk_alternate(&objects).map_err(fail)?;
        }
        let mut links = changes.iter().filter_map(|change| Some((&change.path, link(change.new)?)));
        let odd = links.find(|(_, id)| !before.contains(id) && !modules.exists(*id));
        Ok(odd.map(|(path, id)| {
            format!("submodule `{}` is at {id}, which no submodule of the checkout has", clean_bytes(path))
        }))
    }

    fn own_file(&self, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let path = self.own(name);
        match files::read_small(&path, OWN_CAP).map_err(|source| GitError::io(&path, source))? {
            Small::Bytes(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// Whether an error says nothing about what the turn wrote. The checkout was looked at before.
    fn is_ours(&self, error: &GitError) -> bool {
        let elsewhere = matches!(error, GitError::Io { path, .. } if !path.starts_with(self.git_dir()));
        elsewhere
            || matches!(
                error,
                GitError::DiskFull { .. }
                    | GitError::Moved { .. }
                    | GitError::Exists { .. }
                    | GitError::Cli(
                        CliError::Missing
                            | CliError::TooOld { .. }
                            | CliError::Spawn { .. }
                            | CliError::Unreadable { .. },
                    )
            )
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
    let (mut found, mut seen) = (HashSet::new(), HashSet::new());
    if wanted.is_empty() {
        return Ok(found);
    }
    let tips = shown.values().filter_map(|hash| checkout.peel(hash));
    let mut todo: Vec<Oid> = tips.map(|commit| ids::commit_oid(&commit)).collect::<Result<_, _>>()?;
    while let Some(oid) = todo.pop().filter(|_| !wanted.is_empty() && seen.len() < MAX_WALK) {
        if copy::has(&ours, oid) || !seen.insert(oid) {
            continue;
        }
        if wanted.remove(&oid) {
            found.insert(oid);
        }
        // What is damaged there leads nowhere.
        todo.extend(raw_parents(&theirs, oid).unwrap_or_default());
    }
    Ok(found)
}
