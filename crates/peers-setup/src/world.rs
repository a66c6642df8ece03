//! A machine in a temporary directory: repositories, a home, a trusted store.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use peers_place::Place;
use peers_store::accept::{self, Accepted};
use peers_store::layout::peers;
use peers_store::project;
use peers_sys::env::Env;

use super::{DeinitOptions, DeinitReport, Existing, InitOptions, InitReport, ScaffoldError, deinit, init};

/// A directory with repositories, state, cache and a home of its own.
pub(crate) struct World {
    pub(crate) root: PathBuf,
    pub(crate) env: Env,
    _dir: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let of = |name: &str| root.join(name).into_os_string();
        let env = Env::from_pairs([
            ("HOME", of("home")),
            ("XDG_STATE_HOME", of("state")),
            ("XDG_CACHE_HOME", of("cache")),
            ("XDG_DATA_HOME", of("data")),
            ("USER", "op".into()),
        ]);
        Self { root, env, _dir: dir }
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A repository with one commit.
    pub(crate) fn repo(&self, name: &str) -> PathBuf {
        let path = self.dir(name);
        git(&path, &["init", "-q", "-b", "main"]);
        std::fs::write(path.join("a.txt"), "a\n").unwrap();
        git(&path, &["add", "a.txt"]);
        git(&path, &["commit", "-q", "-m", "first"]);
        path
    }

    pub(crate) fn init(&self, target: &Path) -> InitReport {
        self.try_init(target, |_| {}).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn try_init(
        &self,
        target: &Path,
        change: impl FnOnce(&mut InitOptions),
    ) -> Result<InitReport, ScaffoldError> {
        let mut options = InitOptions { target: target.to_owned(), ..InitOptions::default() };
        change(&mut options);
        init(&options, &self.env)
    }

    pub(crate) fn force(&self, target: &Path) -> InitReport {
        self.try_init(target, |o| o.existing = Existing::Force).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn upgrade(&self, target: &Path) -> InitReport {
        self.try_init(target, |o| o.existing = Existing::Upgrade).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn refused(&self, target: &Path, change: impl FnOnce(&mut InitOptions)) -> ScaffoldError {
        let before = snapshot(&self.root);
        let error = self.try_init(target, change).unwrap_err();
        assert_eq!(snapshot(&self.root), before, "a refusal wrote something: {error}");
        error
    }

    pub(crate) fn deinit(&self, target: &Path, purge: bool) -> Result<DeinitReport, ScaffoldError> {
        deinit(&DeinitOptions { target: target.to_owned(), purge, dry_run: false }, &self.env)
    }

    pub(crate) fn place(&self, target: &Path) -> Place {
        Place::locate(target, &self.env).unwrap()
    }

    pub(crate) fn accepted(&self, target: &Path) -> Option<Accepted> {
        accept::read(&mut self.place(target).open_store_disk().unwrap()).unwrap()
    }

    pub(crate) fn base(&self, target: &Path) -> Option<String> {
        let project = project::read(&mut self.place(target).open_store_disk().unwrap()).unwrap().unwrap();
        project.base.map(|base| base.to_string())
    }

    /// Is what lies there what was accepted?
    pub(crate) fn agrees(&self, target: &Path) -> bool {
        let read = |name: &str| std::fs::read(target.join(".peers").join(name)).unwrap();
        let now = accept::digests(&read(peers::GOALS), &read(peers::CONFIG));
        self.accepted(target).is_some_and(|accepted| accepted.digests == now)
    }
}

/// Runs git with no configuration but ours.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
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
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Everything below a directory: kind, mode and content.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let stat = std::fs::symlink_metadata(&path).unwrap();
            let content = if stat.is_dir() {
                todo.push(path.clone());
                Vec::new()
            } else if stat.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.insert(path, (stat.mode(), content));
        }
    }
    found
}

pub(crate) fn mode(path: PathBuf) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}
