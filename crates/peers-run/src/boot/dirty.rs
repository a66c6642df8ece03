//! Uncommitted changes at a start.

use std::path::Path;
use std::time::Duration;

use peers_core::state::{OpenTick, State};
use peers_git::{ControlDir, GitError, PeerRepo, Unfollowed};
use peers_model::{CommitId, RunId, TickNo, Timestamp, exit};
use peers_place::Place;
use peers_store::{artifacts, layout};
use peers_sys::dir::SafeDir;
use peers_sys::term::quoted;
use peers_sys::{clock, reap, term};

use super::Finding;
use crate::gitrepo::substrate;

/// Changes that are named in a warning, and that are counted.
const NAMED: usize = 10;
const COUNTED: usize = 1000;
/// Files of outputs that are looked at.
const FILES: usize = 20_000;
/// What a turn was in the middle of has its last change before the turn was killed, or little later: the
/// outputs are written as they come.
const LATER: Duration = Duration::from_mins(1);
/// Where git keeps what it is in the middle of.
const OPERATIONS: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"];

/// The same, and what keeps a commit from being made.
pub(super) const IN_PROGRESS: [&str; 8] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "BISECT_LOG",
    "index.lock",
    "sequencer",
];

/// Uncommitted changes, so many as are worth counting, and the refusal of a work tree that differs from its
/// commit by what is not followed here: no run in it could ever be `complete`.
pub(super) fn uncommitted(
    control: &mut ControlDir,
    repo: &PeerRepo,
    base: Option<&CommitId>,
) -> Result<(Vec<String>, Option<Finding>), GitError> {
    let imported = control.import(repo, base)?;
    looked_at(control, repo, &imported.head)
}

/// As [`uncommitted`], against a commit that was imported before.
pub(super) fn looked_at(
    control: &ControlDir,
    repo: &PeerRepo,
    head: &CommitId,
) -> Result<(Vec<String>, Option<Finding>), GitError> {
    let found = control.dirty_files(repo.work_dir(), head, COUNTED)?;
    let refusal = repo.unfollowed(head, &found).map(|(why, path)| unfollowed(&why, &path));
    Ok((found.into_iter().map(|file| file.path).collect(), refusal))
}

/// The uncommitted paths as a prompt names them, against a commit that was imported before.
///
/// # Errors
/// [`GitError`].
pub fn uncommitted_paths(
    control: &ControlDir,
    repo: &PeerRepo,
    head: &CommitId,
) -> Result<Vec<String>, GitError> {
    let found = control.dirty_files(repo.work_dir(), head, COUNTED)?;
    Ok(found.iter().map(|file| term::inline(&file.path)).collect())
}

/// Uncommitted changes are the operator's when nothing of the loop has left any. What a turn left is no
/// reason to refuse a start: the next turn is told of it.
#[must_use]
pub fn are_operators(state: &State) -> bool {
    !state.dirty && !state.unwitnessed()
}

/// The refusal of a start.
fn unfollowed(why: &Unfollowed, path: &str) -> Finding {
    let hint = match why {
        Unfollowed::Sparse => {
            "`git sparse-checkout disable` makes the checkout whole; `peers run --worktree` works in a whole one beside it"
        }
        Unfollowed::Attribute(_) => {
            "peers runs no conversion programs, so that no agent can plant one: use `peers run --worktree`, where the files are as committed, or take the attribute away"
        }
        Unfollowed::LineEnds => {
            "state line ends in .gitattributes (`* text=auto`): `core.autocrlf` is not followed"
        }
    };
    Finding::new(exit::INVALID, format!("{}; no run could be `complete`", differs(why, path)), hint)
}

/// That a file differs from its commit by what is not followed, in words.
#[must_use]
pub fn differs(why: &Unfollowed, path: &str) -> String {
    let path = term::line(path, 200);
    match why {
        Unfollowed::Sparse => {
            format!("`{path}` was left out of this sparse checkout, and counts as deleted here")
        }
        Unfollowed::Attribute(attribute) => {
            let attribute = term::line(attribute, 80);
            format!("`{path}` is not what its commit has: git converts it by `{attribute}`")
        }
        Unfollowed::LineEnds => format!("`{path}` differs from its commit in line ends alone"),
    }
}

/// Keeps a copy of uncommitted changes before anybody of the loop can touch them. Its name.
pub(super) fn keep(
    control: &ControlDir,
    repo: &PeerRepo,
    changes: &[String],
    run: &RunId,
) -> Result<Option<String>, GitError> {
    if changes.is_empty() {
        return Ok(None);
    }
    let head = repo.facts().head()?.commit;
    let who = substrate(clock::now());
    control.salvage(&format!("start-{run}"), &head, repo.work_dir(), &who).map(|kept| Some(kept.name))
}

/// What an operator who left uncommitted changes must know: agents commit what they find, or remove it.
pub(super) fn warning(changes: &[String], theirs: bool, kept: Option<&str>) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let whose = if theirs { " of yours" } else { "" };
    let names: Vec<String> = changes.iter().take(NAMED).map(|path| term::line(path, 60)).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        _ if changes.len() >= COUNTED => " and many more".to_owned(),
        more => format!(" and {more} more"),
    };
    let copy = kept.map(|name| format!("; a copy is kept as salvage `{name}`")).unwrap_or_default();
    Some(format!(
        "uncommitted changes{whose} forbid `complete`, and an agent may commit or remove them: {}{more}{copy}",
        names.join(", ")
    ))
}

/// When something of the run that was killed in `open` was last seen: its turn, its output, its records.
pub(super) fn last_sign(peers: &SafeDir, open: &OpenTick) -> Timestamp {
    let changed = |dir: &SafeDir, name: &str| {
        let stat = dir.stat(name).ok().flatten()?;
        Some(Timestamp::from_millis(stat.changed_ns.div_euclid(1_000_000)))
    };
    let mut last = open.at;
    let (log, mirror) = layout::peers::MIRROR.rsplit_once('/').unwrap_or(("", layout::peers::MIRROR));
    if let Ok(dir) = peers.open_path(log) {
        last = last.max(changed(&dir, mirror).unwrap_or(last));
    }
    if let Ok(dir) = peers.open_path(layout::peers::LOG_PEERS) {
        let start = artifacts::tick_file(open.started.tick, open.started.peer.as_str(), "");
        for entry in dir.list(FILES).map(|listing| listing.entries).unwrap_or_default() {
            let name = entry.name.to_string_lossy();
            if name.starts_with(&start) {
                last = last.max(changed(&dir, &name).unwrap_or(last));
            }
        }
    }
    last
}

/// A merge, rebase or the like that was begun long after the run was killed, while nothing of it lived, is
/// the operator's: to take it away as what a turn left would undo a person's work.
///
/// # Errors
/// The refusal.
pub(super) fn refuse_begun_since(
    git_dir: &Path,
    last: Timestamp,
    run: Option<&RunId>,
    tick: TickNo,
) -> Result<(), Finding> {
    let Some(name) = SafeDir::open_shared(git_dir).ok().and_then(|dir| begun_since(&dir, last)) else {
        return Ok(());
    };
    if run.is_some_and(|run| reap::marked(run, None, None).is_ok_and(|alive| !alive.is_empty())) {
        return Ok(());
    }
    Err(Finding::new(
        exit::CONFLICT,
        format!(
            "git is in the middle of something (`{name}`) that was begun after the last run was killed in tick {tick}"
        ),
        "finish or abort it first (`git status` says how); then start again: what that turn left is seen to then",
    ))
}

/// A turn that was over when the run was killed had its branch checked out: who left that since was no turn,
/// and to put it back, or to charge the turn, would be wrong.
///
/// # Errors
/// The refusal.
pub(super) fn refuse_switched(repo: &PeerRepo, place: &Place, open: &OpenTick) -> Result<(), Finding> {
    let (Some(ended), Some(branch)) = (&open.ended, &open.started.branch) else { return Ok(()) };
    let Ok(head) = repo.facts().head() else { return Ok(()) };
    let now = head.branch.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    if now == Some(branch) {
        return Ok(());
    }
    let dir = quoted(&repo.work_dir().to_string_lossy());
    let here = now.map_or_else(|| "detached".to_owned(), |now| format!("on `{}`", term::line(now, 100)));
    let gone = matches!(repo.facts().reference(&format!("refs/heads/{branch}")), Ok(None));
    let hint = if gone {
        super::gone::of_turn(repo, place, branch, &ended.head)
    } else {
        format!("`git -C {dir} switch {}` goes back; then start again", quoted(branch))
    };
    Err(Finding::new(
        exit::CONFLICT,
        format!(
            "tick {} of the last run was cut short on `{}` after its turn, and HEAD is {here} now",
            open.started.tick,
            term::line(branch, 100)
        ),
        hint,
    ))
}

fn begun_since(git_dir: &SafeDir, last: Timestamp) -> Option<&'static str> {
    let edge = last.plus(LATER);
    OPERATIONS.into_iter().find(|name| {
        let stat = git_dir.stat(*name).ok().flatten();
        stat.is_some_and(|stat| Timestamp::from_millis(stat.changed_ns.div_euclid(1_000_000)) > edge)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncommitted_changes_are_named_up_to_ten() {
        let names: Vec<String> = (1..=13).map(|n| format!("{n}.txt")).collect();
        assert_eq!(warning(&[], true, None), None);
        assert_eq!(
            warning(&names[..2], true, Some("start-x")).unwrap(),
            "uncommitted changes of yours forbid `complete`, and an agent may commit or remove them: 1.txt, 2.txt; \
             a copy is kept as salvage `start-x`"
        );
        let many = warning(&names, false, None).unwrap();
        assert!(many.starts_with("uncommitted changes forbid"), "an agent left them: {many}");
        assert!(many.ends_with("9.txt, 10.txt and 3 more"), "{many}");
        let hostile = warning(&["a\u{1b}[2J\nb".to_owned()], true, None).unwrap();
        assert!(!hostile.contains(['\u{1b}', '\n']), "{hostile:?}");
    }

    #[test]
    fn a_merge_that_was_begun_long_after_the_last_sign_of_a_run_is_told_from_one_of_its_time() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::open_shared(tmp.path()).unwrap();
        let now = clock::now();
        assert_eq!(begun_since(&dir, Timestamp::from_millis(0)), None);
        std::fs::create_dir(tmp.path().join("rebase-merge")).unwrap();
        assert_eq!(begun_since(&dir, now), None);
        let long_ago = Timestamp::from_millis(now.as_millis() - 120_000);
        assert_eq!(begun_since(&dir, long_ago), Some("rebase-merge"));
        let refused = refuse_begun_since(tmp.path(), long_ago, None, TickNo(3)).unwrap_err();
        assert_eq!(refused.exit, exit::CONFLICT);
    }
}
