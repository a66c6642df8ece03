//! Whether this machine can run loops, and whether the registry is as it should be.

use std::path::Path;

use peers_model::command::Step;
use peers_model::exit;
use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::term;
use serde::Serialize;

use crate::config::{self, ConfigDir};
use crate::refresh;
use crate::registry::{self, Phase, State};

/// So little space is a finding, bytes.
const LITTLE: u64 = 1024 * 1024 * 1024;

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warning,
    /// Loops do not run so.
    Error,
}

impl Mark {
    /// The word in views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What, a word or two.
    pub about: &'static str,
    /// How bad.
    pub mark: Mark,
    /// For people.
    pub message: String,
    /// What mends it, a command where there is one.
    pub fix: Option<Step>,
    /// The exit code that it asks for.
    pub exit: u8,
}

impl Finding {
    fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, mark: Mark::Ok, message: message.into(), fix: None, exit: exit::OK }
    }

    fn warning(about: &'static str, message: impl Into<String>, fix: impl Into<Step>) -> Self {
        Self { about, mark: Mark::Warning, message: message.into(), fix: Some(fix.into()), exit: exit::OK }
    }

    fn error(about: &'static str, exit: u8, message: impl Into<String>, fix: Option<Step>) -> Self {
        Self { about, mark: Mark::Error, message: message.into(), fix, exit }
    }
}

/// Looks at the machine and the registry. With `fix`, what is safe to mend is mended; a line for each.
#[must_use]
pub fn host(told: Option<&Path>, env: &Env, fix: bool) -> (Vec<Finding>, Vec<String>) {
    let mut found = Vec::new();
    let mut fixed = Vec::new();
    match config::peers_bin(env) {
        Ok(bin) => found.push(Finding::ok("peers", term::inline(&bin.to_string_lossy()))),
        Err(why) => found.push(Finding::error("peers", why.exit, why.message, why.hint)),
    }
    match resolve_program("git".as_ref(), env.var("PATH"), Path::new("/")) {
        Ok(git) => found.push(Finding::ok("git", term::inline(&git.to_string_lossy()))),
        Err(_) => found.push(Finding::error(
            "git",
            exit::ENVIRONMENT,
            "`git` was not found in PATH",
            Some("install git 2.30 or newer".into()),
        )),
    }
    found.push(root(env));
    found.extend(lingering(env));
    directory(told, env, fix, &mut found, &mut fixed);
    match config::projects_root(env) {
        Ok(root) => found.push(Finding::ok("projects root", term::inline(&root.to_string_lossy()))),
        Err(why) => found.push(Finding::error("projects root", why.exit, why.message, why.hint)),
    }
    (found, fixed)
}

fn root(env: &Env) -> Finding {
    if !peers_sys::env::is_root() {
        return Finding::ok("user", "an ordinary user");
    }
    // That value alone is what claude asks for.
    if env.text("IS_SANDBOX") == Some("1") {
        return Finding::ok("user", "this is root, and IS_SANDBOX=1 lets claude work as root");
    }
    Finding::ok(
        "user",
        "this is root: claude works in a sandbox alone then, which runs have unless you say otherwise",
    )
}

/// Whether loops outlive a logout.
fn lingering(env: &Env) -> Option<Finding> {
    let user = env.text("USER").or_else(|| env.text("LOGNAME"))?;
    let login = SafeDir::open_shared("/var/lib/systemd").ok()?;
    let linger = login.subdir("linger").ok().and_then(|dir| dir.stat(user).ok().flatten());
    let about = "logout";
    if linger.is_some() {
        return Some(Finding::ok(about, "loops go on when you log out (linger)"));
    }
    // Without that setting systemd leaves processes of a session alone.
    let conf = SafeDir::open_shared("/etc/systemd").ok()?.read_text_opt("logind.conf", 256 * 1024).ok()??;
    let kills = conf.lines().any(|line| {
        let line = line.trim().to_ascii_lowercase().replace(' ', "");
        matches!(line.as_str(), "killuserprocesses=yes" | "killuserprocesses=true" | "killuserprocesses=1")
    });
    kills.then(|| {
        Finding::warning(
            about,
            "loops are ended when you log out (KillUserProcesses)",
            "loginctl enable-linger",
        )
    })
}

fn directory(told: Option<&Path>, env: &Env, fix: bool, found: &mut Vec<Finding>, fixed: &mut Vec<String>) {
    let about = "registry";
    let looked = ConfigDir::look(told, env);
    let config = match looked {
        Ok(Some(config)) => config,
        Ok(None) => {
            found.push(Finding::ok(about, "no project is registered yet"));
            return;
        }
        Err(why) => {
            found.push(Finding::error(about, why.exit, why.message, why.hint));
            return;
        }
    };
    modes(&config, fix, found, fixed);
    if let Ok(free) = config.dir().free_bytes()
        && free < LITTLE
    {
        found.push(Finding::warning(
            "disk",
            format!("only {} MiB are free", free / (1024 * 1024)),
            format!("df -h {}", term::quoted(&config.dir().path().to_string_lossy())),
        ));
    }
    let loaded = match registry::check(&config) {
        Ok(loaded) => loaded,
        Err(why) => {
            found.push(Finding::error(about, why.exit, why.message, why.hint));
            return;
        }
    };
    let projects = loaded.registry.projects().count();
    let where_ = term::inline(&config.dir().path().to_string_lossy());
    found.push(Finding::ok(about, format!("projects: {projects}, in {where_}")));
    for warning in loaded.warnings {
        found.push(Finding::warning(about, warning.message, "`peers-ctl registry check`"));
    }
    stale(&config, env, fix, found, fixed);
}

fn modes(config: &ConfigDir, fix: bool, found: &mut Vec<Finding>, fixed: &mut Vec<String>) {
    let path = config.dir().path().to_owned();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
    let wide = |parent: &Path| {
        let stat = SafeDir::open_shared(parent).ok()?.stat(name).ok()??;
        Some(stat.mode & 0o077 != 0)
    };
    if wide(parent) != Some(true) {
        return;
    }
    // To open it as part of a private directory is to narrow it.
    if fix && SafeDir::open_shared(parent).and_then(|parent| parent.into_private().subdir(name)).is_ok() {
        fixed.push("the registry's directory is readable by its owner alone".to_owned());
        return;
    }
    found.push(Finding::warning(
        "registry",
        "others on this machine can read the registry's directory",
        "`peers-ctl doctor --fix`",
    ));
}

/// Starts that never came to their end, runs that died.
fn stale(config: &ConfigDir, env: &Env, fix: bool, found: &mut Vec<Finding>, fixed: &mut Vec<String>) {
    if fix {
        match refresh::refresh(config, env, |_| true) {
            Ok((all, _)) => {
                fixed.extend(all.iter().filter_map(|one| one.change.as_ref()).map(refresh::Change::words));
            }
            Err(why) => found.push(Finding::error("registry", why.exit, why.message, why.hint)),
        }
        return;
    }
    let Ok(loaded) = registry::load(config) else { return };
    let now = peers_sys::clock::now();
    for project in loaded.registry.projects() {
        let seen = crate::observe::Observation::of(project, env);
        let Some(change) = crate::reconcile::reconcile(project, &seen, now) else { continue };
        let starting = project.runtime.as_ref().is_some_and(|runtime| runtime.phase == Phase::Starting);
        if starting || change.state == State::Crashed {
            let text = format!("{}: {}", project.name, change.words(project.state));
            found.push(Finding::warning("registry", text, "`peers-ctl reconcile`"));
        }
    }
}
