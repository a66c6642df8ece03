//! The git directory of a turn, with the real program as the agent in it.

mod harvest;
mod hostile;
mod make;
mod nested;
mod publish;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use peers_model::CommitId;
use peers_sys::dir::SafeDir;

use super::{Fixture, command, substrate, tomorrow};
use crate::{
    Accepted, Author, ControlDir, Harvest, HarvestSpec, Identity, MadeTurn, PeerRepo, TurnGit, TurnSpec,
};

/// A repository of the operator's, our copy of it, and a place for turns.
pub(super) struct Stage {
    pub(super) fixture: Fixture,
    pub(super) control: ControlDir,
    pub(super) scratch: SafeDir,
    pub(super) by: Author,
    pub(super) branch: Option<String>,
    pub(super) identity: Identity,
}

impl Stage {
    pub(super) fn new() -> Self {
        let fixture = Fixture::new();
        fixture.write("dir/b", "two\n");
        fixture.write(".gitignore", "*.log\n");
        fixture.commit("second");
        Self::over(fixture)
    }

    pub(super) fn over(fixture: Fixture) -> Self {
        let control = fixture.imported();
        Self::with(fixture, control)
    }

    pub(super) fn with(fixture: Fixture, mut control: ControlDir) -> Self {
        // No stamp is too young to be trusted.
        control.clock = tomorrow;
        let scratch = SafeDir::create_root(fixture.path("scratch")).unwrap();
        let identity = Identity { name: "alpha".into(), email: "alpha@peers.local".into() };
        Self {
            fixture,
            control,
            scratch,
            by: substrate(),
            branch: Some("refs/heads/main".to_owned()),
            identity,
        }
    }

    pub(super) fn peer(&self) -> PeerRepo {
        self.fixture.open()
    }

    /// A turn at this commit, made after a look at the work tree.
    pub(super) fn make_at(&self, tip: &CommitId) -> MadeTurn {
        self.make_by(tip, |_| {})
    }

    pub(super) fn spec<'a>(&'a self, tip: &'a CommitId) -> TurnSpec<'a> {
        TurnSpec {
            branch: self.branch.as_deref(),
            tip,
            identity: &self.identity,
            owner: None,
            commit_hooks: false,
            config_files: &[],
        }
    }

    pub(super) fn make_by<'a>(
        &'a self,
        tip: &'a CommitId,
        change: impl FnOnce(&mut TurnSpec<'a>),
    ) -> MadeTurn {
        let mut spec = self.spec(tip);
        change(&mut spec);
        TurnGit::make(&self.scratch, &self.control, &self.peer(), &spec).unwrap()
    }

    pub(super) fn make(&self) -> MadeTurn {
        self.make_at(&self.fixture.head())
    }

    /// Git as the agent runs it: behind mounts `.git` would be the turn's, and the stores at their places.
    pub(super) fn agent(&self, args: &[&str]) -> Command {
        agent_in(&self.fixture.work, &self.fixture, &self.git_dir(), args)
    }

    pub(super) fn git_dir(&self) -> PathBuf {
        self.fixture.path("scratch/turn-git/.git")
    }

    pub(super) fn run(&self, args: &[&str]) -> String {
        succeeded(self.agent(args).output().unwrap(), args)
    }

    /// A commit of the agent's.
    pub(super) fn work(&self, file: &str, text: &str) -> CommitId {
        self.fixture.write(file, text);
        self.run(&["add", "-A"]);
        self.run(&["commit", "-q", "-m", file]);
        CommitId::new(self.run(&["rev-parse", "HEAD"]).trim()).unwrap()
    }

    pub(super) fn found(&self) -> TurnGit {
        TurnGit::find(&self.scratch).unwrap().unwrap()
    }

    pub(super) fn harvest(&mut self) -> Harvest {
        let (git, peer) = (self.found(), self.peer());
        let spec = HarvestSpec { base: None, label: "tick-1", author: &self.by };
        git.harvest(&mut self.control, &peer, &spec).unwrap()
    }

    pub(super) fn accepted(&mut self) -> Accepted {
        self.harvest().outcome.unwrap()
    }

    /// Why the turn failed, and where it is.
    pub(super) fn failed(&mut self) -> (String, Option<PathBuf>) {
        let before = self.fixture.head();
        let harvest = self.harvest();
        assert_eq!(self.fixture.head(), before);
        assert!(TurnGit::find(&self.scratch).unwrap().is_none());
        let failure = harvest.outcome.unwrap_err();
        (failure.why, failure.aside)
    }

    pub(super) fn publish(&mut self) -> crate::Published {
        let accepted = self.accepted();
        let spec = HarvestSpec { base: None, label: "tick-1", author: &self.by };
        accepted.publish(&self.control, &self.peer(), &spec).unwrap()
    }

    pub(super) fn status(&self) -> String {
        self.fixture.git(&["status", "--porcelain"])
    }

    /// Files look as if they had been written a while ago.
    pub(super) fn age(&self) {
        age(&self.fixture.work);
    }
}

pub(super) fn agent_in(dir: &Path, fixture: &Fixture, git_dir: &Path, args: &[&str]) -> Command {
    let mut command = command(dir, fixture.dir.path(), args);
    command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &fixture.work);
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", fixture.work.join(".git/objects"));
    for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
        command.env_remove(format!("GIT_{name}"));
    }
    command
}

pub(super) fn succeeded(output: Output, args: &[&str]) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn age(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && entry.file_name() != ".git" {
            age(&entry.path());
        } else if kind.is_file() {
            let then = SystemTime::now() - Duration::from_mins(1);
            std::fs::File::options().write(true).open(entry.path()).unwrap().set_modified(then).unwrap();
        }
    }
}
