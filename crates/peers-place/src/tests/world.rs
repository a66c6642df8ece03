//! A machine in a temporary directory: repositories, a home, a trusted store.

use std::path::{Path, PathBuf};
use std::process::Command;

use peers_setup::InitOptions;
use peers_sys::env::Env;

/// A directory with repositories, state, cache and a home of its own.
pub(super) struct World {
    pub(super) root: PathBuf,
    pub(super) env: Env,
    _dir: tempfile::TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let of = |name: &str| root.join(name).into_os_string();
        let env = Env::from_pairs([
            ("HOME", of("home")),
            ("XDG_STATE_HOME", of("state")),
            ("XDG_CACHE_HOME", of("cache")),
            ("XDG_DATA_HOME", of("data")),
        ]);
        Self { root, env, _dir: dir }
    }

    pub(super) fn dir(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A repository with one commit.
    pub(super) fn repo(&self, name: &str) -> PathBuf {
        let path = self.dir(name);
        git(&path, &["init", "-q", "-b", "main"]);
        git(&path, &["commit", "-q", "--allow-empty", "-m", "first"]);
        path
    }

    /// As `peers init` sets it up.
    pub(super) fn init(&self, target: &Path) {
        let options = InitOptions { target: target.to_owned(), ..InitOptions::default() };
        peers_setup::init(&options, &self.env).unwrap();
    }
}

/// Runs git with no configuration but ours.
pub(super) fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=op", "-c", "user.email=op@local", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
