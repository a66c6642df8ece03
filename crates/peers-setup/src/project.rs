//! `peers-ctl new`: a directory becomes a project, whatever it is now.
//!
//! Everything is looked at before anything is written. A directory that is not there is built aside and
//! renamed into its place. The trusted store belongs to a path, so [`super::init`] runs last, at the final one.
//! Whatever cuts a call short, a failure or a kill, leaves a directory built aside, which the next call sweeps
//! away, or one in which the next call goes on.
//! Start reading at [`create`].

mod aside;
mod asked;
mod fill;
mod import;
mod setup;
mod site;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use peers_model::CommitId;
use peers_model::config::Driver;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use serde::{Serialize, Serializer};

pub use asked::text_of;

use self::aside::Aside;
use self::fill::Filler;
use self::site::{Git, Site};
use super::detect::Language;
use super::frozen::Planned;
use super::report::InitReport;
use super::settings::{Agents, PeerSetting};
use super::{Existing, Gates, ScaffoldError, fault};

/// What a project is to be.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// The directory. Its parent must be there.
    pub target: PathBuf,
    /// Also use a directory that has files and no commit: all of them become the first commit. A repository
    /// with a commit needs no flag, since nothing of it is overwritten.
    pub into_nonempty: bool,
    /// Move a control directory that is there aside, with the history of its runs, and start over.
    pub overwrite_peers: bool,
    /// What `SPEC.md` is to say: the text, or the file that has it. For a project without a commit.
    pub spec: Option<String>,
    /// A file with a plan.
    pub plan: Option<PathBuf>,
    /// The plan that was read from it and tried; [`create`] reads it where it was not.
    pub planned: Option<Planned>,
    /// Names of modes, as they stand on the command line.
    pub modes: Option<Vec<String>>,
    /// Written into the configuration.
    pub driver: Option<Driver>,
    /// What it will be written in, where nothing that is there says it.
    pub language: Option<Language>,
    /// What the goals ask for.
    pub gates: Gates,
    /// The tools of the peers in the configuration.
    pub agents: Agents,
    /// What `TASK.md` is to say.
    pub task: Option<String>,
    /// Written into the entries of peers in the configuration.
    pub settings: Vec<PeerSetting>,
}

/// Something that the operator should know, and that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// A word for machines.
    pub code: &'static str,
    /// For people; fit for a terminal.
    pub message: String,
}

/// What became of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The directory was made.
    Made,
    /// The directory was there, and became a repository.
    Filled,
    /// The repository was there, and got its first commit.
    Begun,
    /// The repository was there, with its history.
    Adopted,
    /// A set-up that had been cut short was completed.
    Completed,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Created {
    /// The directory, without symbolic links.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What became of the target.
    pub how: How,
    /// The first commit, if it was made here.
    pub first_commit: Option<CommitId>,
    /// What was set up in it, and what the operator should know of that.
    pub init: InitReport,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Makes a project of a directory: new, empty, with files, or a repository.
///
/// # Errors
/// [`ScaffoldError`]. After [`ScaffoldError::CutShort`] the same call goes on where this one stopped; after any
/// other error nothing was written.
pub fn create(
    options: &ProjectOptions,
    env: &Env,
    notices: &mut dyn FnMut(Notice),
) -> Result<Created, ScaffoldError> {
    let asked = asked::check(options, env)?;
    let options = &ProjectOptions { planned: asked.planned.clone(), ..options.clone() };
    let site = site::look(options, &asked, env)?;
    let mut filler = Filler::new(asked, env, notices);
    match site {
        Site::New { parent, name, path } => {
            let name = name.as_os_str();
            aside::sweep(&parent, name, filler.now());
            let aside = Aside::make(&parent, name)?;
            let built = filler.build(&aside, name).and_then(|first| {
                fault::at("place")?;
                aside.place(&parent, name)?;
                Ok(first)
            });
            aside.remove();
            let first = built?;
            let existing = if options.overwrite_peers { Existing::Force } else { Existing::Refuse };
            let init = setup::run(&path, existing, options, env)
                .map_err(|error| ScaffoldError::cut_short(&path, error))?;
            Ok(Created { path, how: How::Made, first_commit: Some(first), init })
        }
        Site::There { path, work, git, existing } => {
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
                && let Ok(parent) = SafeDir::open_shared(parent)
            {
                aside::sweep(&parent, name, filler.now());
            }
            let mut how = match git {
                Git::Absent => How::Filled,
                Git::Unborn => How::Begun,
                Git::Born => How::Adopted,
            };
            let cut_short = |error| ScaffoldError::cut_short(&path, error);
            let first = match git {
                Git::Born => None,
                Git::Absent | Git::Unborn => Some(filler.fill(&work, git).map_err(cut_short)?),
            };
            if existing == Existing::Upgrade {
                how = How::Completed;
            }
            let init = setup::run(&path, existing, options, env);
            let init = if git == Git::Born { init? } else { init.map_err(cut_short)? };
            Ok(Created { path, how, first_commit: first, init })
        }
    }
}
