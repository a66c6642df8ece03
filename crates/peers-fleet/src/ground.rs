//! Where the things of a project are: what lies at its path now, and which trusted store is its own.
//!
//! Agents can write into the repository, so what its `.git` says does not decide whose store is looked at: the
//! registry noted down which project it was. A repository that leads elsewhere, was moved or broke keeps its
//! store, and the loop in it can be seen and stopped.

use std::path::Path;

use peers_model::command::Step;
use peers_model::exit;
use peers_place::{Homes, Place, PlaceError, project_id};
use peers_run::boot::Finding;
use peers_sys::env::Env;
use peers_sys::term;

use crate::observe::PathSeen;
use crate::registry::Project;

/// Where the things of a project are.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Its store, whatever lies at its path.
    pub place: Place,
    /// What lies there.
    pub path: PathSeen,
}

impl Ground {
    /// Looks at its path. Nothing is made or changed.
    ///
    /// # Errors
    /// [`PlaceError`] where no trusted store can be named: no home directory, or one inside of the repository.
    pub fn of(project: &Project, env: &Env, homes: Option<&Homes>) -> Result<Self, PlaceError> {
        let path = Path::new(&project.path);
        let known = |seen| {
            let id = project.project_id.clone().unwrap_or_else(|| project_id(path));
            Place::recorded(path, &id, homes).map(|place| Self { place, path: seen })
        };
        let place = match Place::locate_below(path, env, homes) {
            Ok(place) => place,
            Err(PlaceError::NotADirectory { .. }) => return known(PathSeen::Missing),
            Err(error @ (PlaceError::NoHome | PlaceError::Inside { .. })) => return Err(error),
            Err(error) => return known(PathSeen::Misled(error.to_string())),
        };
        let place = match place.expect(project.project_id.as_ref()) {
            Ok(place) => place,
            Err(error) => return known(PathSeen::Misled(error.to_string())),
        };
        let other = project.path_id.is_some_and(|id| id.ino != place.identity().ino) && !place.is_linked();
        let path = if other { PathSeen::Other } else { PathSeen::Same };
        Ok(Self { place, path })
    }

    /// The same for who looks at one.
    ///
    /// # Errors
    /// As [`Ground::of`].
    pub fn of_one(project: &Project, env: &Env) -> Result<Self, Finding> {
        Self::of(project, env, Homes::of(env).ok().as_ref()).map_err(Finding::from)
    }

    /// Where a loop of the project may work.
    ///
    /// # Errors
    /// A [`Finding`] where its directory is gone (3), or is not the repository that was registered (5).
    pub fn located(project: &Project, env: &Env) -> Result<Place, Finding> {
        let name = project.name.as_str();
        let moved = Step::text(
            "if it was moved: `peers-ctl remove {}`, then `peers-ctl add NEW-PATH --name {}`; if it was deleted: `peers-ctl remove {}`",
            &[name, name, name],
        );
        let shown = term::inline(&project.path);
        match Self::of_one(project, env)?.path {
            PathSeen::Missing => Err(Finding::new(
                exit::INVALID,
                format!("the directory of {} is missing: {shown}", project.name),
                moved,
            )),
            // What is wrong with a repository is said by who opens it.
            _ => Ok(Place::locate(Path::new(&project.path), env)?.expect(project.project_id.as_ref())?),
        }
    }
}
