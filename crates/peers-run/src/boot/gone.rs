//! A branch that somebody renamed or deleted. The operator gets the command that makes it again where it was.

use peers_git::PeerRepo;
use peers_model::command::{Command, NO_HOOKS, Step};
use peers_model::record::{BranchMove, OperatorOp, Record};
use peers_model::{CommitId, RunId, exit};
use peers_place::Place;
use peers_store::runs;
use peers_store::{FsDisk, store};
use peers_sys::term;
use peers_sys::term::quoted;

use super::finding::Finding;

/// The command that makes a branch again which stood at a commit.
#[must_use]
pub fn again(repo: &PeerRepo, place: &Place, branch: &str, at: &CommitId) -> String {
    let dir = quoted(&place.project_dir().to_string_lossy());
    if repo.facts().tree_of(at).is_ok() {
        return format!("git -C {dir} {NO_HOOKS} branch {} {at}", quoted(branch));
    }
    let copy = quoted(&place.control_git_path().to_string_lossy());
    let name = quoted(&format!("refs/heads/{}", branch.strip_prefix("refs/heads/").unwrap_or(branch)));
    format!("git -C {dir} {NO_HOOKS} fetch -q {copy} {at}:{name}")
}

/// What is said of a move that was cut short and whose branch is gone. It stays open: what of it was made
/// can be seen on the branch alone.
#[must_use]
pub fn of_move(repo: &PeerRepo, place: &Place, intent: &BranchMove) -> Finding {
    let shown = term::inline(&intent.branch);
    Finding::new(
        exit::CONFLICT,
        format!(
            "a move of `{shown}` to {} was interrupted, and the branch `{shown}` does not exist now",
            intent.to.short()
        ),
        format!(
            "give it its name back, or make it again where it was: `{}`; then start this again",
            again(repo, place, &intent.branch, &intent.from)
        ),
    )
}

/// What brings back the branch on which a turn ended at a commit, and which is gone.
pub(crate) fn of_turn(repo: &PeerRepo, place: &Place, branch: &str, at: &CommitId) -> String {
    let dir = quoted(&place.work_dir().to_string_lossy());
    format!(
        "`{} && git -C {dir} switch {}` makes it again where it was and goes back; then start again",
        again(repo, place, branch, at),
        quoted(branch)
    )
}

/// What is said where the branch is gone on which a run ended at a commit.
#[must_use]
pub fn of_run(repo: &PeerRepo, place: &Place, branch: &str, (run, at): (&RunId, &CommitId)) -> Finding {
    let shown = term::inline(branch);
    Finding::new(
        exit::INVALID,
        format!("there is no branch `{shown}`, on which run {run} ended at {}", at.short()),
        Step::of(Command::Line(again(repo, place, branch, at))).say(" makes it again where it was"),
    )
}

/// The same of the newest run, where its branch was neither landed nor undone. For looking: what cannot be read is
/// not told.
#[must_use]
pub fn lost(place: &Place, disk: &mut FsDisk) -> Option<Finding> {
    let record = runs::newest(disk, None).ok()??;
    let branch = record.branch.as_deref().filter(|_| record.own_branch && !record.request.dry_run)?;
    let repo = PeerRepo::open(place.project_dir()).ok()?;
    let name = format!("refs/heads/{}", branch.strip_prefix("refs/heads/").unwrap_or(branch));
    if repo.facts().reference(&name).ok()?.is_some() {
        return None;
    }
    let mut decided = Vec::new();
    let (state, ..) = store::read_each(disk, |line| {
        if let Record::Operator(act) = &line.record
            && let OperatorOp::Landed { run, .. } | OperatorOp::Undone { run, .. } = &act.op
            && line.ts >= record.started_at
        {
            decided.push(run.clone());
        }
    })
    .ok()?;
    let mut same =
        |run| runs::get(disk, &run).is_ok_and(|made| made.is_some_and(|made| made.branch == record.branch));
    if decided.into_iter().any(|run| run == record.run_id || same(run)) {
        return None;
    }
    let live = state.run.as_ref().is_some_and(|run| run.id == record.run_id);
    let at = record.head.clone().or(state.head.filter(|_| live)).or_else(|| record.base.clone())?;
    Some(of_run(&repo, place, branch, (&record.run_id, &at)))
}
