//! What is wrong with the repository, and how it comes back from what peers knows of it.

use std::path::{Path, PathBuf};

use peers_git::{ControlDir, PeerRepo, RepoError};
use peers_model::CommitId;
use peers_model::command::Step;
use peers_model::record::{OperatorOp, Record};
use peers_store::{project, runs, store};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::error::chain;
use peers_sys::term;
use peers_sys::term::quoted;

use super::error::{has_git, repo_hint};
use super::place::Place;

/// A file that names a branch or a commit is shorter.
const HEAD: u64 = 4096;

/// What peers knows of a work tree whose repository cannot be read.
#[derive(Debug, Clone)]
struct Known {
    /// The branch that was checked out; absent when there was none.
    branch: Option<String>,
    /// Where it was when peers looked last.
    head: CommitId,
    /// The oldest commit that peers has a copy of.
    base: Option<CommitId>,
}

impl Place {
    /// What is wrong with the repository, and what to do about it, with what journal and trusted store know.
    #[must_use]
    pub fn repo_problem(&self, error: &RepoError) -> (String, Step) {
        let message = chain(error);
        let usual = || repo_hint(error);
        if self.lacks_repo()
            && let Some(known) = self.known().filter(|_| self.has_copy())
        {
            let message =
                format!("{message}, and the trusted store has a copy of its history since peers was set up");
            return (message, self.made_again(&known).into());
        }
        if let Some((message, hint)) = super::link::problem(error, Some(self.project_dir())) {
            return (message, hint.into());
        }
        match error {
            RepoError::Unborn { branch, .. } => match self.known() {
                Some(known) => {
                    let (message, hint) = self.lost_branch(branch, &known);
                    (message, hint.into())
                }
                None => (message, usual()),
            },
            RepoError::NotARepo { path } if !has_git(path) && self.has_copy() => {
                let copy = term::inline(&self.control_git_path().to_string_lossy());
                let hint = format!(
                    "put .git back from a backup; the trusted store has a copy of its commits at {copy}"
                );
                (message, hint.into())
            }
            RepoError::NotARepo { .. } | RepoError::Corrupt { .. } if self.head_is_garbled() => {
                match self.known() {
                    Some(known) => (
                        format!("{message}: .git/HEAD names no branch and no commit"),
                        self.head_line(&known).into(),
                    ),
                    None => (message, usual()),
                }
            }
            _ => (message, usual()),
        }
    }

    /// Whether a main work tree has no directory `.git`: its repository was removed or replaced.
    fn lacks_repo(&self) -> bool {
        let git = SafeDir::open_shared(self.work_dir()).and_then(|dir| dir.stat(".git"));
        !self.is_linked() && git.is_ok_and(|git| git.is_none_or(|git| git.kind != Kind::Dir))
    }

    fn has_copy(&self) -> bool {
        self.control_git_path().is_dir()
    }

    /// The branch that the work tree was on, by the newest run in it; by the newest one that left from it,
    /// where that worked elsewhere.
    fn known(&self) -> Option<Known> {
        let mut disk = self.open_view_disk().ok()?;
        let base = project::read(&mut disk).ok().flatten().and_then(|project| project.base);
        let state = store::read_state(&mut disk).ok();
        let (records, _) = runs::list(&mut disk).ok()?;
        let here = self.work_dir().to_string_lossy();
        let newest = records.iter().rev().find(|record| record.workdir == here);
        let (record, branch, mut head) = if let Some(record) = newest {
            let live = state.filter(|state| state.run.as_ref().is_some_and(|run| run.id == record.run_id));
            let (branch, head) = live.map(|state| (state.branch, state.head)).unwrap_or_default();
            let head = head.or_else(|| record.head.clone()).or_else(|| record.base.clone());
            (record, branch.or_else(|| record.branch.clone()), head?)
        } else {
            let left = |record: &&runs::RunRecord| record.into.as_ref().is_some_and(|into| !into.is_empty());
            let record = records.iter().rev().find(left)?;
            (record, record.into.clone(), record.base.clone()?)
        };
        let branch = branch.map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned());
        // What was landed or taken back since; a journal that is damaged further on says what it can.
        let mut moved = false;
        let _read = store::read_each(&mut disk, |line| {
            let Record::Operator(operator) = &line.record else { return };
            match &operator.op {
                _ if line.ts < record.started_at => {}
                OperatorOp::Landed { into, commit, .. } if Some(into) == branch.as_ref() => {
                    (head, moved) = (commit.clone(), true);
                }
                OperatorOp::Undone { run, to, .. } if *run == record.run_id => {
                    (head, moved) = (to.clone(), true);
                }
                _ => {}
            }
        });
        // A turn may have been brought in that was not recorded yet.
        if !moved {
            head = ControlDir::head_since(&self.control_git_path(), &head).unwrap_or(head);
        }
        Some(Known { branch, head, base })
    }

    /// HEAD names a branch that has no commit.
    fn lost_branch(&self, named: &str, known: &Known) -> (String, String) {
        let named = named.strip_prefix("refs/heads/").unwrap_or(named);
        let (dir, head) = (word(self.work_dir()), &known.head);
        let Some(branch) = known.branch.as_deref() else {
            let message = format!("`{}` has no commit, and HEAD was at {head}", term::inline(named));
            let fetch = self.fetched(known);
            return (message, format!("`{fetch}git -C {dir} update-ref --no-deref HEAD {head}`"));
        };
        let (shown, full) = (term::inline(branch), quoted(&format!("refs/heads/{branch}")));
        if branch != named {
            let message = format!(
                "HEAD names `{}`, which has no commit, and the last run was on `{shown}`",
                term::inline(named)
            );
            return (message, format!("`git -C {dir} symbolic-ref HEAD {full}`"));
        }
        let message = format!("`{shown}` names no commit now; it was at {head} when peers looked last");
        let fetch = self.fetched(known);
        (message, format!("`{fetch}git -C {dir} update-ref {full} {head}` sets it back there"))
    }

    /// The command that brings a commit back from the copy, where the repository has it no more.
    fn fetched(&self, known: &Known) -> String {
        let repo = PeerRepo::open(self.work_dir());
        let has = |commit: &CommitId| repo.as_ref().is_ok_and(|repo| repo.facts().tree_of(commit).is_ok());
        if has(&known.head) || !self.has_copy() {
            return String::new();
        }
        // What lies before the copy's oldest commit is not needed where the repository has it.
        let edge = if known.base.as_ref().is_none_or(has) { "" } else { "--update-shallow " };
        format!("{} && ", self.fetch(edge, &known.head))
    }

    fn fetch(&self, edge: &str, head: &CommitId) -> String {
        fetch(self.work_dir(), &self.control_git_path(), edge, head)
    }

    fn made_again(&self, known: &Known) -> String {
        let commands =
            made_again(self.work_dir(), &self.control_git_path(), known.branch.as_deref(), &known.head);
        format!(
            "put .git back from a backup, or make it again from that copy, files stay as they are: `{commands}`"
        )
    }

    /// Whether `.git/HEAD` is no line that git understands.
    fn head_is_garbled(&self) -> bool {
        let Ok(git) = SafeDir::open_shared(self.work_dir()).and_then(|dir| dir.subdir(".git")) else {
            return false;
        };
        let Ok(bytes) = git.read_opt("HEAD", HEAD) else { return false };
        let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let branch = line.strip_prefix("ref:").map(str::trim_start).filter(|name| name.starts_with("refs/"));
        branch.is_none_or(|name| name.contains(char::is_whitespace) || name.ends_with('/'))
            && CommitId::new(line).is_err()
    }

    fn head_line(&self, known: &Known) -> String {
        let file = word(&self.work_dir().join(".git/HEAD"));
        let line = match &known.branch {
            Some(branch) => format!("ref: refs/heads/{branch}"),
            None => known.head.to_string(),
        };
        format!("`printf '%s\\n' {} > {file}` makes it name what the last run was on", quoted(&line))
    }
}

fn fetch(dir: &Path, copy: &Path, edge: &str, head: &CommitId) -> String {
    format!("git -C {} fetch -q {edge}{} {head}", word(dir), word(copy))
}

/// The commands that make the repository of a work tree again from a copy of ours. Files stay as they are; what lies
/// in its place is moved away first, since git would follow it.
#[must_use]
pub fn made_again(dir: &Path, copy: &Path, branch: Option<&str>, head: &CommitId) -> String {
    let fetch = fetch(dir, copy, "--update-shallow ", head);
    let away = moved_away(dir);
    let branch = branch.map_or("main", |branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    let (dir, branch) = (word(dir), quoted(&format!("refs/heads/{branch}")));
    format!(
        "{away}git init -q {dir} && {fetch} && git -C {dir} update-ref {branch} {head} && git -C {dir} symbolic-ref HEAD {branch} && git -C {dir} reset -q"
    )
}

/// The command that moves what lies at `.git` beside the work tree, under a name that is free.
fn moved_away(dir: &Path) -> String {
    let git = dir.join(".git");
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    if !is_there(&git) {
        return String::new();
    }
    let aside = |n: u32| {
        let mut name = dir.as_os_str().to_owned();
        name.push(format!(".git-{n}"));
        PathBuf::from(name)
    };
    let free = (1..=1000).map(aside).find(|path| !is_there(path)).unwrap_or_default();
    format!("mv {} {} && ", word(&git), word(&free))
}

fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
