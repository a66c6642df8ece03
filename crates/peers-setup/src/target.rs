//! Which directories may be set up at all.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use peers_git::{PeerRepo, RepoError};
use peers_model::exit;
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::env::{Env, home_of_user};

use super::ScaffoldError;
use super::error::shown;

/// Refuses a directory that is no place for agents, whether or not it is a repository: `/`, a home, the inside of
/// a git directory.
///
/// # Errors
/// [`ScaffoldError::Refused`].
pub fn refuse_no_place(target: &Path, env: &Env) -> Result<(), ScaffoldError> {
    admitted(target, env).map(drop)
}

/// The target without symlinks, if agents may work there.
pub(super) fn admitted(target: &Path, env: &Env) -> Result<PathBuf, ScaffoldError> {
    let not_a_directory = || {
        let message = format!("{} is not a directory", shown(target));
        ScaffoldError::refused(exit::USAGE, message, "name an existing directory: `peers -C DIR init`")
    };
    let path = target.canonicalize().map_err(|_| not_a_directory())?;
    SafeDir::open_shared(&path).map_err(|_| not_a_directory())?;
    allowed(&path, env)?;
    Ok(path)
}

/// Whether agents may work at this path, which has no symlinks; it need not be there.
pub(super) fn allowed(path: &Path, env: &Env) -> Result<(), ScaffoldError> {
    if let Some(why) = peers_place::unusable(path) {
        let message = format!("the path {} {why}", shown(path));
        return Err(ScaffoldError::refused(exit::INVALID, message, "rename the directory"));
    }
    let Some(why) = objection(path, env) else { return Ok(()) };
    let hint = "choose the top of a repository that agents may work in";
    Err(ScaffoldError::refused(exit::REFUSED, format!("{} {why}", shown(path)), hint))
}

fn objection(path: &Path, env: &Env) -> Option<&'static str> {
    let home = env.home();
    let config = home.as_deref().map(|home| home.join(".config"));
    let is = |other: &Path| other == path || other.canonicalize().is_ok_and(|other| other == path);
    if ["/", "/etc", "/usr"].into_iter().map(Path::new).any(is) {
        return Some("belongs to the system");
    }
    let homes = [home.clone(), home_of_user()];
    if homes.iter().flatten().any(|home| is(home)) || config.as_deref().is_some_and(is) {
        return Some("is the operator's own and never a work place of agents");
    }
    if path.components().any(|part| part.as_os_str() == OsStr::new(".peers")) {
        return Some("lies inside a control directory");
    }
    if path.components().any(|part| part.as_os_str() == OsStr::new(".git")) {
        return Some("lies inside a git directory");
    }
    if path.ancestors().any(looks_bare) {
        return Some("lies in a bare repository, which has no work tree");
    }
    None
}

fn looks_bare(path: &Path) -> bool {
    let Ok(dir) = SafeDir::open_shared(path) else { return false };
    let kind = |name: &str| dir.stat(name).ok().flatten().map(|stat| stat.kind);
    kind("HEAD") == Some(Kind::File)
        && kind("objects") == Some(Kind::Dir)
        && kind("refs") == Some(Kind::Dir)
        && kind(".git").is_none()
}

/// The repository at the target. A usable one, or why there is none; a directory that is no top of one is an
/// error, and so is a repository that leads elsewhere or holds planted files.
pub(super) fn repository(target: &Path) -> Result<Result<PeerRepo, String>, ScaffoldError> {
    match PeerRepo::open(target).and_then(|repo| repo.check_content().map(|()| repo)) {
        Ok(repo) => Ok(Ok(repo)),
        Err(
            error @ (RepoError::Redirected { .. } | RepoError::Unsafe { .. } | RepoError::WrongOwner { .. }),
        ) => Err(ScaffoldError::Repo(error)),
        Err(RepoError::NotARepo { .. }) => {
            Err(ScaffoldError::Outside { path: target.to_owned(), top: PeerRepo::find_top(target) })
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}
