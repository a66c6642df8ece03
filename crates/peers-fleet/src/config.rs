//! The controller's own directory.

use std::path::{Path, PathBuf};

use peers_model::exit;
use peers_run::boot::Finding;
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::term;

/// The variable that names the directory.
pub const CONFIG_DIR: &str = "PEERS_CTL_CONFIG_DIR";
/// The directory of the loops' logs, below it.
pub const LOGS: &str = "logs";
/// The variable that names the program that runs loops.
pub const PEERS_BIN: &str = "PEERS_CTL_PEERS_BIN";
/// The variable that names where projects lie that are called by a bare word.
pub const PROJECTS_ROOT: &str = "PEERS_PROJECTS_ROOT";

/// The controller's own directory, open. Everything in it is the operator's alone.
#[derive(Debug)]
pub struct ConfigDir {
    dir: SafeDir,
}

impl ConfigDir {
    /// Where it lies: as told on the command line, by the environment, or at the usual place.
    ///
    /// # Errors
    /// A [`Finding`] where no home directory is known.
    pub fn path(told: Option<&Path>, env: &Env) -> Result<PathBuf, Finding> {
        let named = told.map(Path::to_owned).or_else(|| {
            env.var(CONFIG_DIR)
                .filter(|dir| !dir.is_empty())
                .map(|dir| peers_sys::env::expand_home(Path::new(dir), env))
        });
        if let Some(dir) = named {
            return std::path::absolute(&dir).map_err(|error| {
                Finding::plain(exit::USAGE, format!("{}: {error}", term::inline(&dir.to_string_lossy())))
            });
        }
        let home = env.config_home().ok_or_else(|| {
            Finding::new(
                exit::ENVIRONMENT,
                "the home directory is unknown, so the registry has no place; set HOME",
                format!("set HOME, or name a directory with --config-dir or {CONFIG_DIR}"),
            )
        })?;
        Ok(home.join("peers-ctl"))
    }

    /// Opens it, made where it is missing, for nobody but its owner.
    ///
    /// # Errors
    /// A [`Finding`], exit 5 where somebody put a link there, or a file.
    pub fn open(told: Option<&Path>, env: &Env) -> Result<Self, Finding> {
        let path = Self::path(told, env)?;
        refuse_link(&path)?;
        let dir = SafeDir::create_root(&path).map_err(|error| Finding::from(&error))?;
        Ok(Self { dir })
    }

    /// Opens it for looking: nothing is made and no permission changed; `None` where there is none.
    ///
    /// # Errors
    /// As [`ConfigDir::open`].
    pub fn look(told: Option<&Path>, env: &Env) -> Result<Option<Self>, Finding> {
        let path = Self::path(told, env)?;
        refuse_link(&path)?;
        match SafeDir::open_shared(&path) {
            Ok(dir) => Ok(Some(Self { dir })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(Finding::from(&error)),
        }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &SafeDir {
        &self.dir
    }

    /// The directory of the loops' logs, made where it is missing.
    ///
    /// # Errors
    /// A [`Finding`].
    pub fn logs(&self) -> Result<SafeDir, Finding> {
        self.dir.create_subdir(LOGS).map_err(|error| Finding::from(&error))
    }

    /// The directory of the loops' logs, where there is one.
    ///
    /// # Errors
    /// A [`Finding`].
    pub fn logs_if_any(&self) -> Result<Option<SafeDir>, Finding> {
        match self.dir.subdir(LOGS) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(Finding::from(&error)),
        }
    }
}

/// Where projects lie that are called by a bare word.
///
/// # Errors
/// A [`Finding`] where no home directory is known.
pub fn projects_root(env: &Env) -> Result<PathBuf, Finding> {
    if let Some(root) = env.var(PROJECTS_ROOT).filter(|root| !root.is_empty()) {
        let root = peers_sys::env::expand_home(Path::new(root), env);
        return std::path::absolute(&root)
            .map_err(|error| Finding::plain(exit::USAGE, format!("{PROJECTS_ROOT}: {error}")));
    }
    let home = env.data_home().ok_or_else(|| {
        Finding::new(
            exit::ENVIRONMENT,
            "the home directory is unknown, so projects have no place; set HOME",
            format!("set HOME or {PROJECTS_ROOT}"),
        )
    })?;
    Ok(home.join("peers").join("projects"))
}

/// The path that an argument means: one with a slash, `.`, `..` and `~` as it stands, a bare word below the
/// projects root.
///
/// # Errors
/// As [`projects_root`].
pub fn project_path(argument: &Path, env: &Env) -> Result<PathBuf, Finding> {
    if !is_bare_word(argument) {
        return Ok(peers_sys::env::expand_home(argument, env));
    }
    Ok(projects_root(env)?.join(argument))
}

/// Whether an argument names a directory below the projects root.
#[must_use]
pub fn is_bare_word(argument: &Path) -> bool {
    let text = argument.to_string_lossy();
    !(text.contains('/') || text == "." || text == ".." || text.starts_with('~'))
}

/// The program that runs loops: as the environment says, else beside this one, else in the search path.
///
/// # Errors
/// A [`Finding`], exit 6, where there is none.
pub fn peers_bin(env: &Env) -> Result<PathBuf, Finding> {
    let missing = |what: String| {
        Finding::new(
            exit::ENVIRONMENT,
            what,
            format!("install `peers` beside `peers-ctl`, or name it with {PEERS_BIN}"),
        )
    };
    let runs = |path: &Path| peers_sys::env::program_stat(path).is_some_and(|stat| stat.kind == Kind::File);
    let path = env.var("PATH");
    let here = peers_sys::env::current_dir().unwrap_or_else(|_| "/".into());
    if let Some(named) = env.var(PEERS_BIN).filter(|named| !named.is_empty()) {
        let expanded = peers_sys::env::expand_home(Path::new(named), env);
        return resolve_program(expanded.as_os_str(), path, &here)
            .map_err(|error| missing(format!("{PEERS_BIN} names no program: {error}")));
    }
    let beside = peers_sys::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("peers")));
    if let Some(beside) = beside.filter(|beside| runs(beside)) {
        return Ok(beside);
    }
    resolve_program("peers".as_ref(), path, &here)
        .map_err(|_| missing("`peers` was found neither beside `peers-ctl` nor in PATH".to_owned()))
}

/// The directory itself must not be a link; those above it may be.
fn refuse_link(path: &Path) -> Result<(), Finding> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let Ok(parent) = SafeDir::open_shared(parent) else { return Ok(()) };
    match parent.stat(name).map_err(|error| Finding::from(&error))? {
        Some(found) if found.kind == Kind::Symlink => Err(Finding::new(
            exit::REFUSED,
            format!("{} is a symbolic link", term::inline(&path.to_string_lossy())),
            "the registry lies in a directory of its own: name it itself with --config-dir",
        )),
        Some(found) if found.kind != Kind::Dir => Err(Finding::new(
            exit::REFUSED,
            format!("{} is not a directory", term::inline(&path.to_string_lossy())),
            "move it away, or name another directory with --config-dir",
        )),
        _ => Ok(()),
    }
}
