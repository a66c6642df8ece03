//! The process environment, read in this place alone and carried as a value.
//!
//! Nothing here changes the environment; children start from an empty one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::dir::FileStat;

/// A snapshot of environment variables. Later changes of the process do not show.
#[derive(Clone, Default)]
pub struct Env {
    vars: Vec<(OsString, OsString)>,
}

impl Env {
    /// Takes the snapshot of this process.
    #[must_use]
    pub fn current() -> Self {
        Self { vars: std::env::vars_os().collect() }
    }

    /// An environment of the given pairs alone, for tests and for replayed runs.
    #[must_use]
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self { vars: pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect() }
    }

    /// All variables, in the order of the process.
    #[must_use]
    pub fn vars(&self) -> &[(OsString, OsString)] {
        &self.vars
    }

    /// The value of `name`, as bytes of any encoding.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// The value of `name` when it is UTF-8 and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.var(name).and_then(OsStr::to_str).filter(|text| !text.is_empty())
    }

    /// The value of `name` when it is an absolute path.
    #[must_use]
    pub fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Whether the switch `name` is on: set, and not empty, `0`, `false`, `no` or `off` in any case.
    #[must_use]
    pub fn switch(&self, name: &str) -> bool {
        let Some(value) = self.var(name) else { return false };
        let value = value.to_string_lossy().trim().to_ascii_lowercase();
        !matches!(value.as_str(), "" | "0" | "false" | "no" | "off")
    }

    /// The operator's home: `HOME`, else the password database; `None` when neither knows.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME").or_else(home_of_user)
    }

    /// `$XDG_STATE_HOME`, else `~/.local/state`.
    #[must_use]
    pub fn state_home(&self) -> Option<PathBuf> {
        self.xdg("XDG_STATE_HOME", ".local/state")
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    #[must_use]
    pub fn config_home(&self) -> Option<PathBuf> {
        self.xdg("XDG_CONFIG_HOME", ".config")
    }

    /// `$XDG_CACHE_HOME`, else `~/.cache`.
    #[must_use]
    pub fn cache_home(&self) -> Option<PathBuf> {
        self.xdg("XDG_CACHE_HOME", ".cache")
    }

    /// `$XDG_DATA_HOME`, else `~/.local/share`.
    #[must_use]
    pub fn data_home(&self) -> Option<PathBuf> {
        self.xdg("XDG_DATA_HOME", ".local/share")
    }

    /// `$XDG_RUNTIME_DIR`, which has no fallback.
    #[must_use]
    pub fn runtime_dir(&self) -> Option<PathBuf> {
        self.absolute("XDG_RUNTIME_DIR")
    }

    /// The absolute directories of `PATH`; relative and empty entries mean the current directory and
    /// are left out.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        self.var("PATH")
            .map(|path| std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect())
            .unwrap_or_default()
    }

    // The base directory specification: a relative value is invalid and ignored.
    fn xdg(&self, name: &str, fallback: &str) -> Option<PathBuf> {
        self.absolute(name).or_else(|| self.home().map(|home| home.join(fallback)))
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.vars.iter().map(|(name, _)| name)).finish()
    }
}

/// The home of this user in the password database, whatever `HOME` says.
#[must_use]
pub fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??;
    Some(user.dir).filter(|dir| dir.is_absolute())
}

/// The current directory.
///
/// # Errors
/// When it was removed or cannot be read.
pub fn current_dir() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// The running executable, absolute.
///
/// # Errors
/// When the system cannot tell.
pub fn current_exe() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// The running executable under a name that other processes can start it by, and that goes on to name it
/// when its file is replaced or removed: `/proc/PID/exe`, valid as long as this process lives. Where there
/// is no such name, its path.
///
/// # Errors
/// When the system cannot tell.
pub fn running_exe() -> io::Result<PathBuf> {
    let name = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if cfg!(target_os = "linux") && name.exists() { Ok(name) } else { current_exe() }
}

/// What the program behind `path` is now, links followed; `None` where there is none.
#[must_use]
pub fn program_stat(path: &Path) -> Option<FileStat> {
    rustix::fs::stat(path).ok().map(|stat| FileStat::new(&stat))
}

/// Whether this process is root's.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user and the group that we act as.
#[must_use]
pub fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The arguments of this process, the program name first.
#[must_use]
pub fn args() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// How many files this process may have open; `None` without a limit.
#[must_use]
pub fn open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// How many files may be open at a time at most, if somebody asks for it; absent where there is no limit.
#[must_use]
pub fn most_open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

/// `path` with a leading `~` or `~/` replaced by the home directory; other paths as they are.
#[must_use]
pub fn expand_home(path: &Path, env: &Env) -> PathBuf {
    match (path.strip_prefix("~"), env.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_directories_fall_back_below_home() {
        let env = Env::from_pairs([("HOME", "/home/op"), ("XDG_CACHE_HOME", "/big/cache")]);
        assert_eq!(env.state_home().unwrap(), Path::new("/home/op/.local/state"));
        assert_eq!(env.config_home().unwrap(), Path::new("/home/op/.config"));
        assert_eq!(env.data_home().unwrap(), Path::new("/home/op/.local/share"));
        assert_eq!(env.cache_home().unwrap(), Path::new("/big/cache"));
        assert_eq!(env.runtime_dir(), None);
    }

    #[test]
    fn a_relative_xdg_directory_is_ignored() {
        let env = Env::from_pairs([("HOME", "/home/op"), ("XDG_STATE_HOME", "state")]);
        assert_eq!(env.state_home().unwrap(), Path::new("/home/op/.local/state"));
    }

    #[test]
    fn switches_know_the_words_for_off() {
        let env = Env::from_pairs([
            ("A", "0"),
            ("B", " Off "),
            ("C", ""),
            ("D", "1"),
            ("E", "yes"),
            ("F", "FALSE"),
        ]);
        assert_eq!(["A", "B", "C", "F", "MISSING"].map(|n| env.switch(n)), [false; 5]);
        assert_eq!(["D", "E"].map(|n| env.switch(n)), [true; 2]);
    }

    #[test]
    fn the_search_path_has_no_relative_entry() {
        let env = Env::from_pairs([("PATH", "/usr/bin::.:bin:/bin")]);
        assert_eq!(env.search_path(), [Path::new("/usr/bin"), Path::new("/bin")]);
    }

    #[test]
    fn a_tilde_stands_for_home_only_as_a_whole_component() {
        let env = Env::from_pairs([("HOME", "/home/op")]);
        assert_eq!(expand_home(Path::new("~/x"), &env), Path::new("/home/op/x"));
        assert_eq!(expand_home(Path::new("~x"), &env), Path::new("~x"));
    }

    #[test]
    fn values_never_show_in_debug_output() {
        let env = Env::from_pairs([("TOKEN", "s3cret")]);
        assert_eq!(format!("{env:?}"), r#"["TOKEN"]"#);
    }
}
