//! Taking a turn's commits out of its git directory.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use git2::{Odb, Oid};
use peers_model::CommitId;

use super::layout;
use super::nested::{NestedGit, NestedSeen};
use super::shown::MAX_REFS;
use super::state::{State, TurnGit};
use crate::bare;
use crate::control::ControlDir;
use crate::copy;
use crate::diff;
use crate::error::{CliError, GitError, clean, clean_bytes};
use crate::ids;
use crate::import::raw_parents;
use crate::known::Generation;
use crate::objects::{self, MODE_GITLINK};
use crate::ref_list::{RefValue, STASH};
use crate::repo::PeerRepo;
use crate::write::Author;

/// Commits of the checkout that are walked to see which were there before the turn.
const MAX_WALK: usize = 200_000;
/// References that are kept, and stash entries.
const MAX_KEPT: usize = 100;

/// How a turn is harvested.
#[derive(Debug, Clone, Copy)]
pub struct HarvestSpec<'a> {
    /// The first commit of the run, for the import of the checkout; see [`ControlDir::import`].
    pub base: Option<&'a CommitId>,
    /// What is kept has this before or in its name, such as `tick-00012`: letters, digits, `-`.
    pub label: &'a str,
    /// Who keeps it, and when.
    pub author: &'a Author,
}

/// Something besides the run's branch that a turn made or moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRef {
    /// Its full name, `HEAD`, or `stash-N`, cleaned for people.
    pub name: String,
    /// The commit that it names. A claim where it is not kept.
    pub commit: CommitId,
    /// The name of the salvage; `None` when the commit was known before, or cannot be brought in.
    pub salvage: Option<String>,
}

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

/// The work of a turn, in the control directory. Until it is published [`TurnGit::find`] finds it.
#[derive(Debug)]
pub struct Accepted {
    pub(crate) git: TurnGit,
    /// Where the run's branch is after the turn; where it was if nothing was committed.
    pub tip: CommitId,
    /// What [`ControlDir::new_commits`] is to be asked with to tell the turn's commits from all others.
    pub before: Generation,
    /// The commits that appeared with it, in no particular order. None of those that an earlier harvest brought.
    pub new: Vec<CommitId>,
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
        let seen = NestedSeen { before: self.state.nested.clone(), tip: self.state.tip.clone() };
        let nested = seen.settle(control, checkout, &label)?;
        let _seen = control.import(checkout, spec.base)?;
        checkout.check_objects()?;
        let stores = bare::alternates(&bare::stores_of(checkout)?)?;
        let mut kept = Vec::new();
        let ready = layout::put_right(self.dir(), &stores, &self.state.shallow);
        let taken = ready.and_then(|()| self.take_in(control, checkout, spec, &mut kept));
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
        spec: &HarvestSpec<'_>,
        kept: &mut Vec<KeptRef>,
    ) -> Result<Taken, GitError> {
        layout::weigh(&self.git_dir())?;
        let turn = PeerRepo::open(self.dir())?;
        turn.check_content()?;
        let (branch, from) = (self.state.branch.clone(), self.state.tip.clone());
        let head = turn.facts().head();
        let tip = match (&branch, &head) {
            (Some(branch), _) => turn.facts().reference(branch)?,
            (None, Ok(head)) => head.branch.is_none().then(|| head.commit.clone()),
            (None, Err(_)) => None,
        };
        let taken = match &tip {
            Some(tip) => Some(self.import_tip(control, checkout, (&turn, tip))?),
            None => None,
        };
        kept.extend(keep_others(control, &turn, &self.state, spec)?);
        let Some((tip, (before, new))) = tip.zip(taken) else {
            return Ok(Err("the run's branch is gone".to_owned()));
        };
        let why = match head {
            Err(error) => Some(clean(&peers_sys::error::chain(&error), 500)),
            Ok(head) if head.branch != branch => {
                let found =
                    head.branch.map_or("a commit".to_owned(), |name| format!("`{}`", clean(&name, 200)));
                Some(format!("HEAD names {found} and not what it named when the turn began"))
            }
            Ok(_) if control.facts().is_ancestor(&from, &tip)? => self.odd_submodule(control, &tip)?,
            Ok(_) => Some(format!("history was rewritten: that of {} lacks {}", tip.short(), from.short())),
        };
        let Some(why) = why else { return Ok(Ok((tip, before, new))) };
        if tip != from {
            let name = branch.unwrap_or_else(|| "HEAD".to_owned());
            let salvage = Some(keep_known(control, (&name, &tip), spec)?);
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
    ) -> Result<(Generation, Vec<CommitId>), GitError> {
        let unknown = control.unknown_of(turn, tip)?;
        let theirs = known_before(control, checkout, &self.state.refs, &unknown)?;
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

    /// Whether an error says nothing about what the turn wrote. The checkout was looked at before.
    fn is_ours(&self, error: &GitError) -> bool {
        let too_much =
            |error: &CliError| matches!(error, CliError::TimedOut { .. } | CliError::OutputTooLarge { .. });
        matches!(error, GitError::Io { path, .. } if !path.starts_with(self.git_dir()))
            || matches!(error, GitError::Cli(error) if !too_much(error))
            || matches!(error, GitError::DiskFull { .. } | GitError::Moved { .. } | GitError::Exists { .. })
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

/// Keeps them: at most 100 references, and as many entries of the stash.
fn keep_others(
    control: &mut ControlDir,
    turn: &PeerRepo,
    state: &State,
    spec: &HarvestSpec<'_>,
) -> Result<Vec<KeptRef>, GitError> {
    let cap = state.refs.len().saturating_add(MAX_REFS);
    let now = turn.list_refs("refs/", cap)?.ok_or_else(|| GitError::TooLarge {
        what: "the number of references".to_owned(),
        cap: cap.to_string(),
    })?;
    let mut found: Vec<(String, CommitId)> = Vec::new();
    for (name, value) in now {
        let RefValue::Direct(hash) = value else { continue };
        let same =
            state.refs.get(&name) == Some(&hash) || state.branch.as_ref() == Some(&name) || name == STASH;
        // Of those that replace objects nothing holds anywhere else.
        if !same && !name.starts_with("refs/replace/") && found.len() < MAX_KEPT {
            found.extend(turn.peel(&hash).map(|commit| (name, commit)));
        }
    }
    let stash = turn.stash(MAX_KEPT).into_iter().enumerate();
    found.extend(stash.map(|(n, commit)| (format!("stash-{n}"), commit)));
    if let Ok(head) = turn.facts().head()
        && head.branch.is_none()
        && state.branch.is_some()
    {
        found.push(("HEAD".to_owned(), head.commit));
    }
    let mut kept = Vec::new();
    for (name, commit) in found {
        let known = control.facts().has(&commit);
        let salvage = if known || control.adopt(turn, std::slice::from_ref(&commit))?.is_empty() {
            None
        } else {
            Some(keep_known(control, (&name, &commit), spec)?)
        };
        kept.push(KeptRef { name: clean(&name, 200), commit, salvage });
    }
    Ok(kept)
}

/// Keeps a commit that is here already. Returns the name of the salvage.
pub(super) fn keep_known(
    control: &ControlDir,
    (name, commit): (&str, &CommitId),
    spec: &HarvestSpec<'_>,
) -> Result<String, GitError> {
    let named = |name: &str| control.keep(&format!("{}/{name}", spec.label), commit, spec.author);
    match named(name.strip_prefix("refs/").unwrap_or(name)) {
        // A name that is fine in one place of the references need not be so in another, nor beside others.
        Err(GitError::InvalidName { .. } | GitError::Library { .. }) => {
            named(&format!("commit-{}", commit.short()))
        }
        other => other,
    }
}
