//! What is about to be committed, looked at early: the answer of a pre-commit hook. Gates judge what was committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use peers_core::plan::{Mark, Step, StepId, parse};
use peers_git::{Facts, GitError, PeerRepo, TreeItem};
use peers_model::config::Checks;
use peers_model::{CommitId, limits};

use crate::checks::no_secrets;
use crate::cx::CouldNot;
use crate::plan::{PLAN, Touches, about};
use crate::report::Finding;
use crate::secrets;

/// Git's file modes of regular files.
const REGULAR: [u32; 2] = [0o100_644, 0o100_755];
/// Bytes of a file that are looked at; the check `no-secrets` says what to think of larger ones.
const MOST: usize = 2 * 1024 * 1024;
/// Commits that are looked through for who changed a file last.
const STEPS: usize = 1000;

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committer {
    /// A peer, by its name.
    Peer(String),
    /// Somebody with this address.
    Email(String),
}

/// Secrets in staged files, and steps of the plan that their own author marks as done. `index` is the index of the
/// commit where that is not the repository's own.
///
/// # Errors
/// [`CouldNot`] for what cannot be read.
pub fn look(
    repo: &PeerRepo,
    index: Option<&Path>,
    settings: &Checks,
    who: Option<&Committer>,
) -> Result<Vec<Finding>, CouldNot> {
    let facts = repo.facts();
    let fail = |error: GitError| CouldNot::git("read what is staged", &error);
    // Before the first commit there is nothing to compare with.
    let head = facts.head().ok().map(|head| head.commit);
    let staged = repo.staged(index).map_err(fail)?;
    let committed =
        head.as_ref().map(|head| facts.list_tree(head)).transpose().map_err(fail)?.unwrap_or_default();
    let known: BTreeSet<(&str, &str)> =
        committed.iter().map(|file| (file.path.as_str(), file.id.as_str())).collect();
    let mut findings = Vec::new();
    for file in &staged {
        if REGULAR.contains(&file.mode) && !known.contains(&(file.path.as_str(), file.id.as_str())) {
            findings.extend(secrets_of(&facts, file, settings).map_err(fail)?);
        }
    }
    if let (Some(head), Some(who)) = (&head, who) {
        findings.extend(own_checkoffs(&facts, head, &staged, who).map_err(fail)?);
    }
    Ok(findings)
}

fn secrets_of(facts: &Facts<'_>, file: &TreeItem, settings: &Checks) -> Result<Vec<Finding>, GitError> {
    let bytes = match facts.read_object(&file.id, MOST) {
        Ok(bytes) => bytes,
        Err(GitError::TooLarge { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let found = secrets::find(&bytes).into_iter().filter_map(|secret| {
        let key = no_secrets::key(secret.label, &secret.matched);
        let what = format!("{} (to allow it: {key})", secret.label);
        let line = u64::try_from(secret.line).ok();
        (!settings.allow_secrets.contains(&key)).then(|| Finding::at(&file.path, line, "secret", &what, None))
    });
    Ok(found.collect())
}

/// Steps that become done although who commits changed one of their files last.
fn own_checkoffs(
    facts: &Facts<'_>,
    head: &CommitId,
    staged: &[TreeItem],
    who: &Committer,
) -> Result<Vec<Finding>, GitError> {
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let id = staged.iter().find(|file| file.path == PLAN).map(|file| file.id.clone());
    let before = facts.file_id(head, PLAN)?;
    if id == before {
        return Ok(Vec::new());
    }
    let steps = |id: Option<String>| {
        let bytes = id.and_then(|id| facts.read_object(&id, cap).ok()).unwrap_or_default();
        let plan = parse(&bytes).plan;
        let done = plan.map(|plan| plan.steps).unwrap_or_default().into_iter();
        done.filter(|step| step.mark == Mark::Done)
            .map(|step| (step.id, step))
            .collect::<BTreeMap<StepId, Step>>()
    };
    let before = steps(before);
    let new: Vec<(Step, Touches)> = steps(id)
        .into_iter()
        .filter(|(id, _)| !before.contains_key(id))
        .map(|(_, step)| {
            let touches = Touches::of(&step);
            (step, touches)
        })
        .collect();
    let mut open: BTreeSet<&str> = staged
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| new.iter().any(|(_, touches)| touches.holds(path)))
        .collect();
    let mut findings = Vec::new();
    let mut at = head.clone();
    for _ in 0..STEPS {
        if open.is_empty() {
            break;
        }
        let commit = facts.commit(&at)?;
        let own = match who {
            Committer::Peer(name) => commit.author.name == *name,
            Committer::Email(email) => commit.author.email == *email,
        };
        let parent = commit.parents.first().map(|parent| facts.tree_of(parent)).transpose()?;
        for file in facts.new_files(parent.as_ref(), &commit.tree)? {
            let Some(path) = open.take(file.path.as_str()).filter(|_| own) else { continue };
            for (step, _) in new.iter().filter(|(_, touches)| touches.holds(path)) {
                let what = format!("is checked off by who changed `{path}` last, in {}", commit.id.short());
                findings.push(about(step, "self-checkoff", &what));
            }
        }
        let Some(parent) = commit.parents.first() else { break };
        at = parent.clone();
    }
    Ok(findings)
}
