//! A branch that is not there any more: somebody renamed or deleted it.
//!
//! What was recorded of it names a commit, and a branch that stands there is most likely what it is called
//! now. Nothing is renamed here: the operator gets the command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use peers_git::{PeerRepo, RefValue};
use peers_model::record::BranchMove;
use peers_model::{CommitId, exit};
use peers_place::Place;
use peers_store::runs::RunRecord;
use peers_sys::term;
use peers_sys::term::quoted;

use super::finding::Finding;

/// Branches that are looked at.
const BRANCHES: usize = 20_000;
/// Branches that are named.
const NAMED: usize = 5;

/// The repository in which a branch is missing, with the branches that are there under names of their own.
pub struct Search<'a> {
    repo: &'a PeerRepo,
    place: &'a Place,
    known: BTreeSet<&'a str>,
}

impl<'a> Search<'a> {
    /// The branches of a repository, without those that runs are known by.
    #[must_use]
    pub fn new(repo: &'a PeerRepo, place: &'a Place, records: &'a [RunRecord]) -> Self {
        let known = records.iter().flat_map(|record| [&record.branch, &record.into]).flatten();
        let short = |name: &'a String| name.strip_prefix("refs/heads/").unwrap_or(name);
        Self { repo, place, known: known.map(short).collect() }
    }

    /// The branches that stand at one of these commits, or that are checked out and hold one; first the one
    /// that `dir` has checked out. Others that are known by their name are what they are, and were not
    /// renamed.
    ///
    /// # Errors
    /// A [`Finding`] for a repository that cannot be read.
    pub fn at(&self, commits: &[&CommitId], dir: Option<&Path>) -> Result<Vec<String>, Finding> {
        let found = self.repo.list_refs("refs/heads/", BRANCHES).map_err(Finding::from)?;
        let found: BTreeMap<String, RefValue> = found.unwrap_or_default();
        let checked_out = |dir: &Path| {
            let work = PeerRepo::open_known(dir, self.repo.common_dir()).ok()?;
            work.facts().head().ok()?.branch
        };
        let there = dir.and_then(checked_out);
        let mut here: Vec<String> = there.iter().cloned().collect();
        here.extend([self.place.work_dir(), self.place.project_dir()].into_iter().filter_map(checked_out));
        let facts = self.repo.facts();
        let holds = |hash: &str, commit: &CommitId| {
            CommitId::new(hash).is_ok_and(|tip| facts.is_ancestor(commit, &tip).unwrap_or(false))
        };
        let mut ranked: Vec<(usize, usize, String)> = found
            .into_iter()
            .filter_map(|(name, value)| {
                let RefValue::Direct(hash) = value else { return None };
                let short = name.strip_prefix("refs/heads/")?;
                let out = here.iter().position(|branch| *branch == name);
                let at = commits.iter().position(|commit| commit.as_str() == hash);
                let beyond = || {
                    let held = out.and_then(|_| commits.iter().position(|commit| holds(&hash, commit)))?;
                    Some(commits.len() + held)
                };
                let rank = at.or_else(beyond)?;
                (!self.known.contains(short)).then(|| (out.unwrap_or(here.len()), rank, short.to_owned()))
            })
            .collect();
        ranked.sort();
        Ok(ranked.into_iter().map(|(.., name)| name).collect())
    }

    /// The command that makes a branch again which stood at a commit.
    #[must_use]
    pub fn again(&self, branch: &str, at: &CommitId) -> String {
        let (dir, name) = (word(self.place.project_dir()), quoted(branch));
        if self.repo.facts().tree_of(at).is_ok() {
            return format!("git -C {dir} branch {name} {at}");
        }
        let copy = word(&self.place.control_git_path());
        format!(
            "git -C {dir} fetch -q {copy} {at}:{}",
            quoted(&format!("refs/heads/{}", branch.strip_prefix("refs/heads/").unwrap_or(branch)))
        )
    }

    /// The command that gives a branch its old name back.
    #[must_use]
    pub fn renamed(&self, new: &str, old: &str) -> String {
        format!("git -C {} branch -m {} {}", word(self.place.project_dir()), quoted(new), quoted(old))
    }
}

/// What is said of a move that was cut short and whose branch is gone. It stays open: what of it was made
/// can be seen on the branch alone.
///
/// # Errors
/// A [`Finding`] for a repository that cannot be read.
pub fn of_move(
    repo: &PeerRepo,
    place: &Place,
    records: &[RunRecord],
    intent: &BranchMove,
) -> Result<Finding, Finding> {
    let search = Search::new(repo, place, records);
    let BranchMove { branch, from, to, workdir, .. } = intent;
    let found = search.at(&[to, from], workdir.as_deref().map(Path::new))?;
    let shown = term::inline(branch);
    let what = format!(
        "a move of `{shown}` to {} was interrupted, and the branch `{shown}` does not exist now",
        to.short()
    );
    Ok(match found.first() {
        Some(new) => Finding::new(
            exit::CONFLICT,
            format!("{what}; where it was or was to go: {}", listed(&found)),
            format!(
                "if it was renamed, give it its name back and start this again: `{}`; you can rename it once this is finished",
                search.renamed(new, branch)
            ),
        ),
        None => Finding::new(
            exit::CONFLICT,
            format!("{what}, nor one where it was or was to go"),
            format!("make it again where it was and start this again: `{}`", search.again(branch, from)),
        ),
    })
}

/// What brings back the branch on which a turn ended at a commit, and which is gone.
pub(crate) fn of_turn(
    repo: &PeerRepo,
    place: &Place,
    records: &[RunRecord],
    (branch, at): (&str, &CommitId),
) -> Result<String, Finding> {
    let search = Search::new(repo, place, records);
    let found = search.at(&[at], Some(place.work_dir()))?;
    let dir = word(place.work_dir());
    let again = format!("`{} && git -C {dir} switch {}`", search.again(branch, at), quoted(branch));
    Ok(match found.first() {
        Some(new) => format!(
            "if it was renamed: `{} && git -C {dir} switch {}`; if it was deleted: {again}; then start again",
            search.renamed(new, branch),
            quoted(branch)
        ),
        None => format!("{again} makes it again where it was and goes back; then start again"),
    })
}

/// The names, cleaned for people; not more than a few.
#[must_use]
pub fn listed(names: &[String]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMED).map(|name| format!("`{}`", term::inline(name))).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
