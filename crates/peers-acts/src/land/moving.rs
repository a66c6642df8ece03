//! Moving a branch in the name of a run, and recording it.

use peers_core::state::OpenMove;
use peers_git::{Author, BusyState, GitError, PeerRepo, RepoError};
use peers_model::command::Step;
use peers_model::record::{BranchMove, MoveKind, OperatorOp};
use peers_model::{CommitId, exit};
use peers_run::boot::{BootError, Finding, Loaded};
use peers_run::gitrepo::substrate;
use peers_store::runs::RunRecord;
use peers_sys::{clock, term};

use super::intent::intend;
use super::{Ground, Landed, subjects};
use crate::oneshot;

/// Records a landing that was cut short after the branch had moved. Whether it was one.
pub(super) fn complete(ground: &mut Ground, moving: &OpenMove) -> Result<bool, Finding> {
    let intent = &moving.what;
    let landing = intent.kind == MoveKind::Land;
    if landing {
        let op = OperatorOp::Landed {
            run: intent.run.clone(),
            into: intent.branch.clone(),
            commit: intent.to.clone(),
        };
        ground.record(op, &moving.by)?;
    }
    ground.intended()?;
    Ok(landing)
}

/// What is said of a landing that was finished only now. Its gates were green then.
pub(super) fn already(
    ground: &Ground,
    loaded: &Loaded,
    record: &RunRecord,
    (intent, blocked): (&BranchMove, Vec<String>),
) -> Result<Landed, BootError> {
    let facts = ground.control.facts();
    let tree = facts.tree_of(&intent.to)?;
    Ok(Landed {
        run: record.run_id.clone(),
        branch: record.branch.clone().unwrap_or_default(),
        into: intent.branch.clone(),
        commit: intent.to.clone(),
        tree,
        commits: subjects(ground, &intent.from, &intent.to)?.len(),
        gates: Vec::new(),
        proved: Vec::new(),
        exempt: oneshot::exempt(&loaded.goals),
        blocked,
    })
}

/// Moves the branch, and the work tree that has it checked out, and records it. Everything that could
/// forbid it is looked at before anything moves. Returns what could not be put in place.
pub(super) fn advance(
    ground: &mut Ground,
    work: Option<&PeerRepo>,
    landed: &Landed,
    (target, by): (&CommitId, &str),
) -> Result<Vec<String>, Finding> {
    let who = substrate(clock::now());
    let Landed { into, commit, run, .. } = landed;
    let intent = BranchMove {
        kind: MoveKind::Land,
        run: run.clone(),
        branch: into.clone(),
        from: target.clone(),
        to: commit.clone(),
        workdir: work.map(|work| work.work_dir().to_string_lossy().into_owned()),
    };
    let moved = move_branch(ground, work, &intent, (&who, by))?;
    let op = OperatorOp::Landed { run: run.clone(), into: into.clone(), commit: commit.clone() };
    ground.record(op, by)?;
    Ok(moved)
}

fn move_branch(
    ground: &mut Ground,
    work: Option<&PeerRepo>,
    intent: &BranchMove,
    (who, by): (&Author, &str),
) -> Result<Vec<String>, Finding> {
    let BranchMove { branch, from, to, run, .. } = intent;
    let result = if let Some(work) = work {
        // Gates took their time: somebody may have begun to edit.
        ground.refuse_dirty(work, from, branch)?;
        let reset = work.prepare_reset(&ground.control, Some(branch), from, to).map_err(busy)?;
        intend(&mut ground.store, intent, by)?;
        reset.apply(who).map(|report| report.blocked_names())
    } else {
        ground.repo.publish(&ground.control, to)?;
        intend(&mut ground.store, intent, by)?;
        let reason = format!("land: run {run}");
        ground.repo.update_branch(branch, Some(from), to, who, &reason).map(|()| Vec::new())
    };
    result.map_err(|error| failed(ground, branch, error))
}

/// What is said of a move that failed; recorded is what the branch says.
pub(super) fn failed(ground: &mut Ground, branch: &str, error: GitError) -> Finding {
    if ground.give_up() {
        return busy(error);
    }
    let mut finding = Finding::from(error);
    finding.hint = Some(
    format!(
        "`{}` was moved, but its work tree may not have followed: fix the problem above and run this again to finish",
        term::inline(branch)).into());
    finding
}

/// Refuses where a lock forbids the move of a branch and of the work tree that has it checked out.
pub(super) fn refuse_locked(repo: &PeerRepo, work: Option<&PeerRepo>, branch: &str) -> Result<(), Finding> {
    let locked = match repo.branch_lock(branch)? {
        None => work.and_then(PeerRepo::index_lock),
        found => found,
    };
    locked.map_or(Ok(()), |error| Err(busy(GitError::Repo(error))))
}

/// A lock of git's says what to do.
pub(super) fn busy(error: GitError) -> Finding {
    let locked = matches!(
        error,
        GitError::Repo(RepoError::Busy { state: BusyState::IndexLock | BusyState::RefLock, .. })
    );
    let mut finding = Finding::from(error);
    if locked {
        finding.exit = exit::CONFLICT;
        let found = "another git works there, or one that died left its lock; nothing was moved";
        finding.hint = Some(match finding.hint.take() {
            Some(remove) => Step::from(found).say("; ").join(remove),
            None => found.into(),
        });
    }
    finding
}
