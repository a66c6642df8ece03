//! A branch that somebody renamed or deleted. The operator gets the command that makes it again where it was.

use peers_git::PeerRepo;
use peers_model::record::BranchMove;
use peers_model::{CommitId, exit};
use peers_place::Place;
use peers_sys::term;
use peers_sys::term::quoted;

use super::finding::Finding;

/// The command that makes a branch again which stood at a commit.
#[must_use]
pub fn again(repo: &PeerRepo, place: &Place, branch: &str, at: &CommitId) -> String {
    let dir = quoted(&place.project_dir().to_string_lossy());
    if repo.facts().tree_of(at).is_ok() {
        return format!("git -C {dir} branch {} {at}", quoted(branch));
    }
    let copy = quoted(&place.control_git_path().to_string_lossy());
    let name = quoted(&format!("refs/heads/{}", branch.strip_prefix("refs/heads/").unwrap_or(branch)));
    format!("git -C {dir} fetch -q {copy} {at}:{name}")
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
