//! Links of a commit that lead out of its clean checkout: a gate would find there what no commit has.

use peers_core::apply::bounded;
use peers_git::{ControlDir, Git, OutwardLink, PeerRepo};
use peers_model::{CommitId, limits};
use peers_place::Place;
use peers_place::anchor;
use peers_store::{FsDisk, project};

/// Links that are named.
const NAMED: usize = 5;

/// Which links are the operator's own, and lead where they wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operators {
    /// No agent ever worked here.
    All,
    /// Those of the commit that the history is counted from.
    At(CommitId),
    /// It is not known.
    None,
}

impl Operators {
    /// What the trusted store says. What it does not say is no reason to allow anything.
    #[must_use]
    pub fn of(place: &Place) -> Self {
        let Ok(mut disk) = place.open_view_disk() else { return Self::None };
        Self::read(&mut disk).unwrap_or(Self::None)
    }

    fn read(disk: &mut FsDisk) -> Result<Self, peers_store::StoreError> {
        let Some(found) = project::read(disk)? else { return Ok(Self::None) };
        let base = match found.base {
            Some(base) => Some(base),
            None => anchor::of_runs(disk)?,
        };
        Ok(base.map_or(Self::All, Self::At))
    }
}

/// Why a clean checkout with these foreign links proves nothing; nothing where there is none.
///
/// `known`: there is a record of which are the operator's.
pub fn refusal(foreign: &[OutwardLink], known: bool) -> Option<String> {
    let named: Vec<String> = foreign.iter().take(NAMED).map(ToString::to_string).collect();
    if named.is_empty() {
        return None;
    }
    let more = if foreign.len() > NAMED { " and more" } else { "" };
    let named = named.join(", ");
    let whose = if known {
        "Links that were there when peers was set up are the operator's and may stay. Of a later link of their own \
         the operator exempts a gate by `tree: live`."
    } else {
        "Which links are the operator's is known where peers was set up, and not here: without a trusted store \
         none may stay. Verify it there, or in the work tree, without `--pristine`."
    };
    let text = format!(
        "a committed symbolic link leads out of the repository: {named}{more}; what it leads to is in no commit, \
         so nothing is proved here. Commit that itself, or remove the link. ({whose})"
    );
    Some(bounded(&text, limits::DIAGNOSTIC))
}

/// The same outside of a loop, where the commit that the history is counted from may have to be brought in.
///
/// # Errors
/// [`peers_git::GitError`].
pub fn look(
    (control, repo): (&ControlDir, &PeerRepo),
    operators: &Operators,
    (commit, checkout): (&CommitId, &std::path::Path),
    aside: impl FnOnce() -> Option<(std::path::PathBuf, Git)>,
) -> Result<Option<String>, peers_git::GitError> {
    let has = |control: &ControlDir, base: &CommitId, link: &OutwardLink| {
        control.has_link(base, link).unwrap_or(false)
    };
    let found = match operators {
        Operators::All => return Ok(None),
        Operators::None => control.outward_links(commit, checkout, |_| false)?,
        Operators::At(base) if control.facts().has(base) => {
            control.outward_links(commit, checkout, |link| has(control, base, link))?
        }
        Operators::At(base) => {
            let (mut aside, mut copy) = (Some(aside), None);
            control.outward_links(commit, checkout, |link| {
                // Brought in for the first link. One that cannot be had allows nothing.
                if let Some(aside) = aside.take() {
                    copy = aside().and_then(|(at, git)| {
                        let mut copy = ControlDir::open_or_create(&at, git).ok()?;
                        let _imported = copy.import(repo, Some(base)).ok()?;
                        Some(copy)
                    });
                }
                copy.as_ref().is_some_and(|copy| has(copy, base, link))
            })?
        }
    };
    Ok(refusal(&found, *operators != Operators::None))
}
