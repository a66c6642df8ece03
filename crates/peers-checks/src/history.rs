//! Commits that may say something about bugs, read once each.

use peers_git::{CommitFact, Facts, GitError, WALK_CAP};
use peers_model::CommitId;
use peers_model::bug::BugClaims;
use peers_store::history::{Claiming, History};

/// New commits that are followed one by one, from the newest back.
const STEPS: usize = 1000;

/// The history after `base` up to `head`. `kept` is one of before: where `head` follows on it commit by commit, only what
/// is new is read. Anything else that was kept, such as that of a branch that was left, is of no use.
///
/// # Errors
/// [`GitError`] for a history that cannot be read.
pub fn read(
    facts: &Facts<'_>,
    base: Option<&CommitId>,
    head: &CommitId,
    kept: Option<History>,
) -> Result<History, GitError> {
    if let Some(mut kept) = kept.filter(|kept| kept.base.as_ref() == base)
        && let Some(new) = chain(facts, base, &kept.head, head)?
    {
        kept.head = head.clone();
        kept.commits += new.len();
        add(&mut kept, facts, new)?;
        return Ok(kept);
    }
    let (commits, found) = facts.walk_where(base, head, WALK_CAP, BugClaims::may_be_in)?;
    let mut history = History { base: base.cloned(), head: head.clone(), commits, claiming: Vec::new() };
    add(&mut history, facts, found)?;
    Ok(history)
}

/// The commits from `old` to `new`, oldest first, where each has one parent: only then a walk over all of them would tell
/// the old ones in the same order.
fn chain(
    facts: &Facts<'_>,
    base: Option<&CommitId>,
    old: &CommitId,
    new: &CommitId,
) -> Result<Option<Vec<CommitFact>>, GitError> {
    let mut found = Vec::new();
    let mut at = new.clone();
    while at != *old {
        if found.len() == STEPS || base == Some(&at) {
            return Ok(None);
        }
        let fact = facts.commit(&at)?;
        let [parent] = fact.parents.as_slice() else { return Ok(None) };
        at = parent.clone();
        found.push(fact);
    }
    found.reverse();
    Ok(Some(found))
}

fn add(history: &mut History, facts: &Facts<'_>, commits: Vec<CommitFact>) -> Result<(), GitError> {
    for commit in commits.into_iter().filter(|commit| BugClaims::may_be_in(&commit.message)) {
        let paths = touched(facts, &commit)?;
        let CommitFact { id, time, message, .. } = commit;
        history.claiming.push(Claiming { id, time, message, paths });
    }
    Ok(())
}

/// What a commit changed against its first parent. The first commit of all has none and closes nothing; one that changes
/// more than can be listed proves nothing about any of it.
///
/// # Errors
/// [`GitError`] for trees that cannot be read.
pub(crate) fn touched(facts: &Facts<'_>, commit: &CommitFact) -> Result<Vec<String>, GitError> {
    let Some(parent) = commit.parents.first() else { return Ok(Vec::new()) };
    match facts.changed_paths(&facts.tree_of(parent)?, &commit.tree) {
        Err(GitError::TooLarge { .. }) => Ok(Vec::new()),
        paths => paths,
    }
}
