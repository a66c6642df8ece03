//! Tests against real repositories, made with the `git` program in a scrubbed environment.

mod facts;
mod guard;
mod hostile;
mod import;
mod open;
mod salvage;
mod state;
mod worktree;
mod write;

use std::path::{Path, PathBuf};
use std::process::Command;

use peers_model::{CommitId, Timestamp};

use crate::{Author, ControlDir, Git, PeerRepo};

/// A repository with helpers, and a place for a control directory beside it.
struct Fixture {
    dir: tempfile::TempDir,
    work: PathBuf,
}

impl Fixture {
    /// A repository with one commit that has the file `a`.
    fn new() -> Self {
        let fixture = Self::unborn();
        fixture.write("a", "one\n");
        fixture.commit("first");
        fixture
    }

    fn unborn() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&work).unwrap();
        let fixture = Self { dir, work };
        fixture.git(&["init", "-q", "-b", "main", "--template="]);
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.work, self.dir.path(), args)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        put(&self.work.join(name), text.as_ref());
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.work.join(name)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.join(name)).unwrap()
    }

    fn exists(&self, name: &str) -> bool {
        self.work.join(name).symlink_metadata().is_ok()
    }

    /// Commits everything.
    fn commit(&self, message: &str) -> CommitId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    fn head(&self) -> CommitId {
        self.rev("HEAD")
    }

    fn rev(&self, name: &str) -> CommitId {
        CommitId::new(self.git(&["rev-parse", name]).trim()).unwrap()
    }

    fn open(&self) -> PeerRepo {
        PeerRepo::open(&self.work).unwrap()
    }

    fn control(&self) -> ControlDir {
        ControlDir::open_or_create(&self.path("control.git"), program()).unwrap()
    }

    /// A control directory with everything imported.
    fn imported(&self) -> ControlDir {
        let mut control = self.control();
        let _imported = control.import(&self.open(), None).unwrap();
        control
    }
}

fn put(path: &Path, text: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn program() -> Git {
    Git::locate(&std::env::var_os("PATH").unwrap()).unwrap()
}

fn git_in(dir: &Path, home: &Path, args: &[&str]) -> String {
    let output = command(dir, home, args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn command(dir: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program().program());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.org");
        command.env(format!("GIT_{role}_DATE"), "1700000000 +0100");
    }
    command.current_dir(dir).args(["-c", "protocol.file.allow=always"]).args(args);
    command
}

fn substrate() -> Author {
    Author::new("peers-substrate", "peers-substrate@local", Timestamp::from_millis(1_700_000_001_000))
}

/// A clock for which no file stamp is young.
fn tomorrow() -> std::time::SystemTime {
    std::time::SystemTime::now() + std::time::Duration::from_hours(24)
}

fn link(target: &str, at: &Path) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

fn fifo(at: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
