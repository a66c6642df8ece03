//! `TASK.md`: what the agents are to do.

use peers_git::{Author, PeerRepo, RepoError};
use peers_model::{Timestamp, limits};
use peers_sys::dir::SafeDir;

use super::ScaffoldError;
use super::report::{Action, Steps};

/// The file at the top of the repository that every prompt names.
pub(super) const TASK: &str = "TASK.md";

/// The bytes of the file for this task.
fn bytes(task: &str) -> Vec<u8> {
    format!("{}\n", task.trim_end()).into_bytes()
}

/// Refuses a task where another one is written already.
pub(super) fn refuse_other(work: &SafeDir, task: &str) -> Result<(), ScaffoldError> {
    let refuse = |why: &str| Err(ScaffoldError::option("task", why));
    if task.trim().is_empty() {
        return refuse("the task is empty; say what the agents are to do");
    }
    match work.read_opt(TASK, limits::CONFIG)? {
        Some(there) if there != bytes(task) => refuse("TASK.md exists and is kept; edit it"),
        _ => Ok(()),
    }
}

/// Writes the task, and commits it unless `no_commit`.
pub(super) fn lay_down(
    work: &SafeDir,
    repo: Option<&PeerRepo>,
    task: &str,
    (now, no_commit): (Timestamp, bool),
    steps: &mut Steps,
) -> Result<(), ScaffoldError> {
    if work.stat(TASK)?.is_none() {
        steps.act(Action::Create, TASK, || Ok(work.publish(TASK, &bytes(task))?))?;
    }
    let unborn = |repo: &PeerRepo| repo.preflight().iter().any(|e| matches!(e, RepoError::Unborn { .. }));
    let why = match repo {
        None => return Ok(()),
        Some(_) if no_commit => "--no-commit".to_owned(),
        Some(repo) if unborn(repo) => "make it part of the first commit".to_owned(),
        Some(repo) => match repo.busy().first() {
            Some(state) => state.to_string(),
            None if steps.dry_run() => return steps.act(Action::Commit, TASK, || Ok(())),
            None => {
                let author = Author::new("peers-init", "peers-init@local", now);
                match repo.commit_paths(&[TASK], "peers init: the task\n\nPeer: peers-init\n", &author) {
                    Ok(_) => return steps.act(Action::Commit, TASK, || Ok(())),
                    Err(error) => error.to_string(),
                }
            }
        },
    };
    steps.note(format!("{TASK} is not committed, so agents do not see it: {why}"));
    Ok(())
}
