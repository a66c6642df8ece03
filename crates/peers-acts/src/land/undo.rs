//! `peers undo`.

use std::collections::BTreeSet;
use std::path::Path;

use peers_git::GitError;
use peers_model::command::Step;
use peers_model::record::{BranchMove, MoveKind, OperatorOp, Record};
use peers_model::{CommitId, RunId, exit};
use peers_place::Place;
use peers_run::boot::{BootError, Finding};
use peers_run::gitrepo::substrate;
use peers_store::journal::{Journal, JournalError, Position};
use peers_store::runs::RunRecord;
use peers_store::{Disk, StoreError, store};
use peers_sys::clock;
use peers_sys::env::Env;
use peers_sys::term;
use peers_sys::term::quoted;

use super::intent::{Found, intend};
use super::moving::{busy, complete, failed, refuse_locked};
use super::{Ground, find};

/// Commits of somebody else that are named.
const NAMED: usize = 5;
/// Files of the operator's that are named.
const FILES: usize = 10;
/// Files in the command that brings them back.
const TYPED: usize = 1_000;

/// A run that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// Which.
    pub run: RunId,
    /// The branch.
    pub branch: String,
    /// The tip that was left.
    pub from: CommitId,
    /// Where the branch is now: the base of the run.
    pub to: CommitId,
    /// Commits that are no longer on the branch.
    pub commits: usize,
    /// The name of the copy; `None` when the branch was at the base already.
    pub salvage: Option<String>,
    /// Paths of the work tree that could not be put back, cleaned for people.
    pub blocked: Vec<String>,
    /// What had been cut short and was finished first.
    pub finished: Option<Finished>,
    /// The operator's own work that was not committed when the run began and that went with it.
    pub start: Option<StartCopy>,
    /// The branch in which it was landed and stays, and the commits to revert there.
    pub landed: Option<(String, String)>,
}

/// A move of a branch that had been cut short and is finished now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Which kind.
    pub kind: MoveKind,
    /// Of which run.
    pub run: RunId,
    /// The branch.
    pub branch: String,
    /// Where that was to go, and is now unless somebody went on from there.
    pub to: CommitId,
}

/// The copy of what an operator had not committed when a run began, where an undo takes some of it away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCopy {
    /// Its name.
    pub salvage: String,
    /// The files that went, the first ten; untrusted text.
    pub files: Vec<String>,
    /// How many more went.
    pub more: usize,
    /// The command that brings them all back into the work tree, uncommitted, or a thousand of them.
    pub command: String,
}

/// Sets a run's branch back to the commit that the run began at, after a copy of what is there.
///
/// `name` is the run's id, the beginning of it, or `last`.
///
/// # Errors
/// [`BootError`], exit 4 when the branch holds commits of somebody else.
pub fn undo(place: &Place, env: &Env, name: &str, by: &str) -> Result<Undone, BootError> {
    let mut ground = Ground::take(place, env, "undo")?;
    let (mut behind, mut finished) = (Vec::new(), None);
    if let Found::Moved(moving, blocked) = ground.take_up()? {
        complete(&mut ground, &moving)?;
        let BranchMove { kind, run, branch, to, .. } = moving.what;
        finished = Some(Finished { kind, run, branch, to });
        behind = blocked;
    }
    let said = finished.as_ref().map(Finished::words);
    take_back(&mut ground, name, by, (finished, behind)).map_err(|mut error| {
        // It stays done whatever else is refused.
        if let (Some(said), Some(first)) = (said, error.findings.first_mut()) {
            first.message = format!("{} ({said})", first.message);
        }
        error
    })
}

impl Finished {
    /// That it is finished, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let what = match self.kind {
            MoveKind::Land => "the landing",
            MoveKind::Undo => "the undo",
        };
        let branch = term::inline(&self.branch);
        format!(
            "{what} of run {} was cut short and is finished now: `{branch}` was moved to {}",
            self.run,
            self.to.short()
        )
    }
}

fn take_back(
    ground: &mut Ground,
    name: &str,
    by: &str,
    (finished, behind): (Option<Finished>, Vec<String>),
) -> Result<Undone, BootError> {
    let record = find(&ground.records, name)?.clone();
    let run = record.run_id.clone();
    let Some(base) = record.base.clone() else {
        return Err(Finding::plain(exit::NEGATIVE, format!("run {run} has no recorded base")).into());
    };
    let Some(branch) = record.branch.clone() else {
        let message = format!("run {run} worked on a detached HEAD, so there is no branch to set back");
        let dir = peers_sys::term::quoted(&record.workdir);
        let hint = format!("by hand: `git -C {dir} reset --keep {base}` goes back to where it began");
        return Err(Finding::new(exit::NEGATIVE, message, hint).into());
    };
    let Some(tip) = ground.tip(&branch)? else { return Err(ground.branch_gone(&branch, &record).into()) };
    let landed = landed(ground, &record, (&base, &tip));
    let done = |salvage, commits, blocked, start| Undone {
        landed: landed.clone(),
        run: run.clone(),
        branch: branch.clone(),
        from: tip.clone(),
        to: base.clone(),
        commits,
        salvage,
        blocked,
        finished: finished.clone(),
        start,
    };
    if tip == base {
        return Ok(done(None, 0, behind, None));
    }
    let work = ground.holder_of(&branch, &record);
    if let Some(work) = &work {
        Ground::unlock(work)?;
    }
    refuse_locked(&ground.repo, work.as_ref(), &branch)?;
    let commits = only_its_own(ground, &run, &branch, (&base, &tip))?;
    let start = match &work {
        Some(_) => went_along(ground, &run, (&base, &tip))?,
        None => None,
    };
    let who = substrate(clock::now());
    let name = format!("undo-{run}");
    let kept = match &work {
        Some(work) => ground.control.salvage(&name, &tip, work.work_dir(), &who).map(|kept| kept.name),
        // Checked out nowhere: no work tree is touched, so none is kept.
        None => ground.control.keep(&name, &tip, &who),
    };
    let kept = kept?;
    if let Some(work) = &work {
        // What forbids it is found before anything is recorded.
        drop(work.prepare_reset(&ground.control, Some(&branch), &tip, &base).map_err(busy)?);
    }
    let intent = BranchMove {
        kind: MoveKind::Undo,
        run: run.clone(),
        branch: branch.clone(),
        from: tip.clone(),
        to: base.clone(),
        workdir: work.as_ref().map(|work| work.work_dir().to_string_lossy().into_owned()),
    };
    // First the record: a crash in between leaves a branch that is ahead of it, which is harmless; the
    // other way round the next run would find its known history gone.
    let op =
        OperatorOp::Undone { run: run.clone(), from: tip.clone(), to: base.clone(), salvage: kept.clone() };
    ground.record(op, by)?;
    intend(&mut ground.store, &intent, by)?;
    let moved = if let Some(work) = &work {
        // Opened again: the salvage took its time.
        let again = ground.known(work.work_dir()).map_err(GitError::Repo);
        again
            .and_then(|work| work.reset_to(&ground.control, Some(&branch), &tip, &base, &who))
            .map(|report| report.blocked_names())
    } else {
        let reason = format!("undo: run {run}");
        ground.repo.update_branch(&branch, Some(&tip), &base, &who, &reason).map(|()| Vec::new())
    };
    let blocked = moved.map_err(|error| failed(ground, &branch, error))?;
    ground.intended()?;
    let start = start.zip(work).and_then(|(start, work)| start_copy(start, &blocked, work.work_dir()));
    Ok(done(Some(kept), commits, blocked, start))
}

/// The branch in which the run's branch was landed and stays, and the commits to revert there.
fn landed(
    ground: &mut Ground,
    record: &RunRecord,
    (base, tip): (&CommitId, &CommitId),
) -> Option<(String, String)> {
    let records = &ground.records;
    let is_it = |run: &RunId| records.iter().any(|one| one.run_id == *run && one.branch == record.branch);
    let mut last = None;
    let seen = store::read_each(ground.store.disk(), |line| {
        if let Record::Operator(act) = &line.record
            && let OperatorOp::Landed { run, into, commit } = &act.op
            && is_it(run)
        {
            last = Some((into.clone(), commit.clone()));
        }
    });
    let (into, commit) = last.filter(|_| seen.is_ok())?;
    let (facts, now) = (ground.repo.facts(), ground.tip(&into).ok()??);
    let has = |commit, head| facts.is_ancestor(commit, head).unwrap_or(false);
    if !has(&commit, &now) {
        return None;
    }
    let what = if has(tip, &commit) { format!("{base}..{tip}") } else { commit.to_string() };
    Some((into, what))
}

/// What of the operator's work from before a run the undo of it takes out of the work tree: what was not
/// committed then and was changed by the run's commits. The name of its copy, and the files.
fn went_along(
    ground: &Ground,
    run: &RunId,
    (base, tip): (&CommitId, &CommitId),
) -> Result<Option<(String, Vec<String>)>, GitError> {
    let name = format!("start-{run}");
    let Some(kept) = ground.control.list_salvage()?.into_iter().find(|kept| kept.name == name && kept.dirty)
    else {
        return Ok(None);
    };
    let facts = ground.control.facts();
    let (base, tip) = (facts.tree_of(base)?, facts.tree_of(tip)?);
    let ours: BTreeSet<String> = facts.changed_paths(&base, &tip)?.into_iter().collect();
    let files: Vec<String> = facts
        .diff_trees(&base, &facts.tree_of(&kept.commit)?)?
        .into_iter()
        .filter(|change| change.new_mode != 0 && ours.contains(&change.path))
        // What cannot be typed cannot be pasted.
        .filter(|change| term::inline(&change.path) == change.path)
        .map(|change| change.path)
        .collect();
    Ok(Some((name, files)))
}

/// What is said of it: what could not be taken out of the work tree is still there.
fn start_copy(
    (name, mut files): (String, Vec<String>),
    blocked: &[String],
    work_dir: &Path,
) -> Option<StartCopy> {
    let stays = |path: &String| {
        let above = |dir: &String| path.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
        blocked.iter().any(|one| one == path || above(one))
    };
    files.retain(|path| !stays(path));
    if files.is_empty() {
        return None;
    }
    let dir = quoted(&work_dir.to_string_lossy());
    let words: Vec<String> = files.iter().take(TYPED).map(|path| quoted(path)).collect();
    let command = format!(
        "peers -C {dir} salvage restore {name} && git --literal-pathspecs -C {dir} restore --source=refs/peers/salvage/{name} --worktree -- {}",
        words.join(" ")
    );
    let more = files.len().saturating_sub(FILES);
    files.truncate(FILES);
    Some(StartCopy { salvage: name, files, more, command })
}

/// How many commits the run put on the branch, if the branch holds no others since its base.
fn only_its_own(
    ground: &mut Ground,
    run: &RunId,
    branch: &str,
    (base, tip): (&CommitId, &CommitId),
) -> Result<usize, Finding> {
    let facts = ground.control.facts();
    let shown = term::inline(branch);
    if !facts.is_ancestor(base, tip)? {
        return Err(Finding::plain(
            exit::CONFLICT,
            format!("`{shown}` was rewritten: the base of run {run} is no longer part of it"),
        ));
    }
    let range = facts.walk(Some(base), tip, peers_git::WALK_CAP)?;
    let own = commits_of(ground.store.disk(), run)?;
    let others: Vec<String> = range
        .iter()
        .filter(|fact| !own.contains(&fact.id))
        .map(|fact| {
            let subject = term::line(fact.message.lines().next().unwrap_or_default(), 60);
            format!("{} {subject}", fact.id.short())
        })
        .collect();
    if others.is_empty() {
        return Ok(range.len());
    }
    let named = term::first_of(others.len(), others.iter().take(NAMED).cloned());
    let message = format!("`{shown}` holds commits that are not of run {run}: {named}");
    // The newest first: what it made lies above what others did.
    let ids: BTreeSet<CommitId> = range.into_iter().map(|fact| fact.id).collect();
    let mut later = None;
    for record in ground.records.iter().rev().take_while(|record| record.run_id != *run) {
        let made = commits_of(ground.store.disk(), &record.run_id)?;
        if made.iter().any(|commit| ids.contains(commit) && !own.contains(commit)) {
            later = Some(record.run_id.clone());
            break;
        }
    }
    let hint = match later {
        Some(later) => Step::text("a later run made some of them: `peers undo {}` first", &[later.as_str()]),
        None => "no run made them: move them to another branch first".into(),
    };
    Err(Finding::new(exit::CONFLICT, message, hint))
}

/// Every commit that a run brought onto its branch, by the journal.
fn commits_of<D: Disk>(disk: &mut D, run: &RunId) -> Result<BTreeSet<CommitId>, StoreError> {
    let mut commits = BTreeSet::new();
    let _journal = Journal::open(disk, &Position::default(), false, |read| -> Result<(), JournalError> {
        if let (Some(of), Record::Tick(tick)) = (&read.line.run_id, &read.line.record)
            && of == run
        {
            for list in [&tick.commits, &tick.own, &tick.foreign] {
                commits.extend(list.iter().cloned());
            }
        }
        Ok(())
    })?;
    Ok(commits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_undo_took_along_comes_back_by_one_command_and_what_stayed_is_not_named() {
        let files: Vec<String> = (10..24).map(|n| format!("f{n}")).chain(["d/in".to_owned()]).collect();
        let blocked = ["f10".to_owned(), "d".to_owned()];
        let start = start_copy(("start-1".to_owned(), files.clone()), &blocked, Path::new("/w")).unwrap();
        assert_eq!((start.files.len(), start.more, start.files[0].as_str()), (10, 3, "f11"));
        let words: Vec<&str> = start.command.split(" -- ").nth(1).unwrap().split(' ').collect();
        assert_eq!(words, files[1..14]);
        assert_eq!(start_copy(("start-1".to_owned(), files[..1].to_vec()), &blocked, Path::new("/w")), None);
    }
}
