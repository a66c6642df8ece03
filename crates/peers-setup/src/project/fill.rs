//! The files of a project without a history, its repository, and its first commit.

use std::ffi::OsStr;

use peers_git::{Author, FirstCommit, Identity, PeerRepo};
use peers_model::{CommitId, Timestamp};
use peers_sys::clock;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::Env;
use peers_sys::term;

use super::super::{ScaffoldError, fault};
use super::aside::{self, Aside};
use super::asked::Asked;
use super::site::Git;
use super::{Notice, import};

pub(super) const README: &str = "README.md";
pub(super) const SPEC: &str = "SPEC.md";
const BRANCH: &str = "main";
const SUBJECT: &str = "initial scaffold";
/// Permissions of the two files.
const MODE: u32 = 0o644;

/// Makes what is in a project before it is set up.
pub(super) struct Filler<'a> {
    asked: Asked,
    notices: &'a mut dyn FnMut(Notice),
    now: Timestamp,
    /// Who the operator's git says that they are.
    inherited: Option<Identity>,
    /// Who they are otherwise.
    local: Identity,
}

impl<'a> Filler<'a> {
    pub(super) fn new(asked: Asked, env: &Env, notices: &'a mut dyn FnMut(Notice)) -> Self {
        Self::of(asked, env, notices, peers_git::operator_identity())
    }

    pub(super) fn of(
        asked: Asked,
        env: &Env,
        notices: &'a mut dyn FnMut(Notice),
        inherited: Option<Identity>,
    ) -> Self {
        let local = Identity { name: peers_place::operator::name(env), email: "operator@local".to_owned() };
        Self { asked, notices, now: clock::now(), inherited, local }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Everything of a new directory.
    pub(super) fn build(&mut self, aside: &Aside, name: &OsStr) -> Result<CommitId, ScaffoldError> {
        let work = aside.tree();
        self.files(work, name)?;
        fault::at("make the repository")?;
        let repo = self.repository(work)?;
        Ok(self.first(&repo)?.commit)
    }

    /// What a directory that is there lacks.
    pub(super) fn fill(&mut self, work: &SafeDir, git: Git) -> Result<CommitId, ScaffoldError> {
        let name = work.path().file_name().unwrap_or_default().to_owned();
        // It would become part of the first commit.
        aside::sweep(work, "git".as_ref(), self.now);
        self.files(work, &name)?;
        if git == Git::Absent {
            let aside = Aside::make(work, "git".as_ref())?;
            // Whole or absent, as for everybody who looks.
            let made = fault::at("make the repository").and_then(|()| {
                drop(self.repository(aside.tree())?);
                fault::at("place the repository")?;
                Ok(aside.tree().rename_new_into(".git", work, ".git")?)
            });
            aside.remove();
            made?;
        }
        fault::at("open the repository")?;
        let repo = PeerRepo::open(work.path()).map_err(ScaffoldError::Repo)?;
        Ok(self.first(&repo)?.commit)
    }

    /// The two files, as far as they are absent.
    fn files(&self, work: &SafeDir, name: &OsStr) -> Result<(), ScaffoldError> {
        let readme = readme(name);
        for (file, text) in [(README, Some(&readme)), (SPEC, self.asked.spec.as_ref())] {
            let Some(text) = text else { continue };
            fault::at(file)?;
            match work.publish_new_as(file, text.as_bytes(), MODE) {
                // One that is there was looked at before.
                Ok(()) | Err(FileError::AlreadyExists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn repository(&self, work: &SafeDir) -> Result<PeerRepo, ScaffoldError> {
        let local = if self.inherited.is_none() { Some(&self.local) } else { None };
        Ok(PeerRepo::create(work.path(), BRANCH, local)?)
    }

    fn author(&self) -> Author {
        let Identity { name, email } = self.inherited.as_ref().unwrap_or(&self.local);
        Author::new(name, email, self.now)
    }

    fn first(&mut self, repo: &PeerRepo) -> Result<FirstCommit, ScaffoldError> {
        fault::at("commit")?;
        let excludes = peers_git::operator_excludes();
        let first = repo.commit_first(SUBJECT, &self.author(), excludes.as_deref())?;
        for notice in import::notices(repo, &first) {
            (self.notices)(notice);
        }
        Ok(first)
    }
}

/// What `README.md` of a new project says.
pub(super) fn readme(name: &OsStr) -> String {
    let title = term::inline(&name.to_string_lossy());
    format!("# {title}\n\nWhat {title} is for.\n")
}
