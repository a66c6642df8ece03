//! Changing references: compared, locked, with a reflog line, without hooks.

use git2::{ErrorCode, Oid, Reference, Repository, Signature, Time};
use peers_model::CommitId;

use crate::error::{BusyState, GitError, RepoError, clean, clean_bytes};
use crate::facts::Identity;
use crate::files;
use crate::ids;

/// Refuses what is no full reference name below `refs/`.
pub(crate) fn check_name(name: &str) -> Result<(), GitError> {
    let ok = name.starts_with("refs/")
        && name.len() <= 512
        && Reference::is_valid_name(name)
        && !name
            .split('/')
            .any(|part| part.starts_with('-') || crate::objects::forbidden_name(part.as_bytes()));
    if ok { Ok(()) } else { Err(GitError::InvalidName { what: "reference name", text: clean(name, 200) }) }
}

/// `name` or `refs/heads/name` as the full name of a branch.
pub(crate) fn branch_name(name: &str) -> Result<String, GitError> {
    let full = if name.starts_with("refs/heads/") { name.to_owned() } else { format!("refs/heads/{name}") };
    check_name(&full)?;
    Ok(full)
}

/// A signature for a commit, note or reflog line, at `seconds` since the epoch.
pub(crate) fn signature(who: &Identity, seconds: i64) -> Result<Signature<'static>, GitError> {
    Signature::new(&who.name, &who.email, &Time::new(seconds, 0))
        .map_err(|_| GitError::InvalidName { what: "identity", text: clean(&who.name, 80) })
}

/// Sets a reference if it still has the expected value (`None` = absent). The comparison happens while
/// the reference is locked, so a change in between is noticed.
pub(crate) fn compare_and_swap(
    repo: &Repository,
    name: &str,
    expected: Option<Oid>,
    new: Option<Oid>,
    who: &Signature<'_>,
    reason: &str,
) -> Result<(), GitError> {
    if name != "HEAD" {
        check_name(name)?;
    }
    let fail = |source: git2::Error| match source.code() {
        ErrorCode::Locked => {
            let dir = if name == "HEAD" { repo.path() } else { repo.commondir() };
            let lock = dir.join(format!("{name}.lock"));
            let lock = matches!(files::lstat(&lock), Ok(Some(_))).then_some(lock);
            let path = repo.workdir().unwrap_or(repo.path()).to_owned();
            GitError::Repo(RepoError::Busy { path, state: BusyState::RefLock, lock })
        }
        _ => GitError::library(format!("update `{}`", clean(name, 200)), source),
    };
    let mut change = repo.transaction().map_err(fail)?;
    change.lock_ref(name).map_err(fail)?;
    let found = match repo.find_reference(name) {
        Ok(reference) => match reference.target() {
            Some(oid) => Some(oid),
            None => {
                return Err(GitError::Unsafe { path: clean(name, 200), why: "it is a symbolic reference" });
            }
        },
        Err(error) if error.code() == ErrorCode::NotFound => None,
        Err(source) => return Err(fail(source)),
    };
    if found != expected {
        return Err(GitError::Moved {
            name: clean(name, 200),
            expected: expected.map(ids::commit_id),
            found: found.map(ids::commit_id),
        });
    }
    match new {
        Some(oid) => {
            // One line without NUL: the library's own conversion would panic on one.
            let reason: String =
                reason.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
            change.set_target(name, oid, Some(who), &reason).map_err(fail)?;
        }
        None if found.is_some() => change.remove(name).map_err(fail)?,
        None => return Ok(()),
    }
    change.commit().map_err(fail)
}

/// Makes `HEAD` name a branch, or a commit. Not through the library's own `set_head`: that one opens every linked
/// worktree, and refuses a branch that an agent has checked out in one of them.
pub(crate) fn set_head(
    repo: &Repository,
    to: Result<&str, Oid>,
    who: &Signature<'_>,
) -> Result<(), GitError> {
    let fail = |source| GitError::library("set HEAD", source);
    let mut change = repo.transaction().map_err(fail)?;
    change.lock_ref("HEAD").map_err(fail)?;
    match to {
        Ok(branch) => change.set_symbolic_target("HEAD", branch, Some(who), "checkout: by peers"),
        Err(commit) => change.set_target("HEAD", commit, Some(who), "checkout: by peers"),
    }
    .map_err(fail)?;
    change.commit().map_err(fail)
}

/// Direct references whose names match one of the patterns: a full name, or a prefix with `*` at its end.
pub(crate) fn matching(
    repo: &Repository,
    patterns: &[String],
    cap: usize,
) -> Result<Vec<(String, CommitId)>, GitError> {
    let mut out = Vec::new();
    for pattern in patterns {
        let fail = |source| GitError::library(format!("list `{}`", clean(pattern, 200)), source);
        for reference in repo.references_glob(pattern).map_err(fail)? {
            // What cannot be read cannot be what we wrote: it counts as absent.
            let Ok(reference) = reference else { continue };
            let target = reference.target();
            if let (Ok(name), Some(oid)) = (reference.name(), target) {
                out.push((name.to_owned(), ids::commit_id(oid)));
            }
            if out.len() > cap {
                return Err(GitError::TooLarge {
                    what: format!("the number of references like `{}`", clean_bytes(pattern.as_bytes())),
                    cap: cap.to_string(),
                });
            }
        }
    }
    out.sort();
    out.dedup();
    Ok(out)
}
